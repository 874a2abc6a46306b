/* SPDX-License-Identifier: Apache-2.0 */
/* Writes networks as ONNX files, for onnxruntime and other programs.
 *
 * A file has the network, its parameters and the head, which turns the network's output into
 * actions. The file uses only operators of ONNX's standard set, version 17. The dimension
 * "batch" is the number of rows, which can be different in each run. The same network,
 * parameters and options give the same bytes.
 *
 *   input    observations   {batch, ...}, float32 or uint8
 *            state          {batch, state_size}; only with an LSTM
 *   output   outputs        {batch, out_size}: what rp_tape_forward() returns
 *            state_after    {batch, state_size}; only with an LSTM
 *            further outputs of the head, see rp_onnx_head
 *
 * If the network has an LSTM, a run is one step of an episode. The program that runs the file
 * starts an episode with a state of zeros, and passes state_after as the state of the next
 * step.
 *
 *   session = onnxruntime.InferenceSession("policy.onnx")
 *   actions, = session.run(["actions"], {"observations": batch})
 *
 * The results differ from those of rp_tape_forward() by rounding, because other programs add
 * numbers in another order. */
#ifndef REPRISE_RL_ONNX_H
#define REPRISE_RL_ONNX_H

#include "reprise/rl/loss.h"
#include "reprise/tensor.h"

RP_BEGIN_DECLS

enum { RP_ONNX_OPSET = 17 };

/* The head of a network: the meaning of a row of `outputs`, and the further outputs of the
 * file. */
typedef enum rp_onnx_head {
    RP_ONNX_OUTPUTS = 0, /* outputs without a meaning that is known here. Adds no output */
    RP_ONNX_VALUES, /* the value of each action. Adds actions {batch}, int64: the action with
                       the largest value, as rp_argmax() selects it */
    RP_ONNX_CATEGORICAL, /* logits of a categorical head (loss.h). Adds values {batch, actions},
                            and actions as for RP_ONNX_VALUES */
    RP_ONNX_QUANTILE,    /* quantiles of a quantile head (loss.h). Adds values {batch, actions},
                            and actions as for RP_ONNX_VALUES */
    RP_ONNX_GAUSSIAN,    /* means, then logarithms of standard deviations. Adds deviations
                            {batch, actions}: the standard deviations; and actions {batch,
                            actions}: the means, or their tanh if `squash` is true */
    RP_ONNX_BOX,         /* continuous actions from -1 to 1. Adds actions {batch, out_size}: the
                            outputs, scaled by the option `box` to the bounds of actions */
} rp_onnx_head;

/* The coefficients of a linear map of the elements of a row: arrays with one number per
 * element. Borrowed for one call. */
typedef struct rp_onnx_scale {
    const float *middle, *factor;
} rp_onnx_scale;

typedef struct rp_onnx_options {
    /* The shape of one observation. If its rank is 0, the shape is that of the network's input:
     * {n} or {height, width, channels}, or {channels, height, width} if `planes` is true. */
    rp_shape observation;
    bool bytes;          /* true: observations are uint8, and the model multiplies them by 1 /
                            255 */
    bool planes;         /* true: observations are images with their channels first */
    rp_onnx_scale input; /* the first layer reads (observation - middle) * factor. Both arrays
                            have in_size entries. If `middle` is NULL, the layer reads the
                            observation. `middle` must be NULL if `planes` is true */

    rp_onnx_head head;
    rp_categorical categorical; /* for RP_ONNX_CATEGORICAL */
    size_t quantiles;           /* for RP_ONNX_QUANTILE: quantiles per action */
    rp_gaussian gaussian;       /* for RP_ONNX_GAUSSIAN */
    /* Scales actions to middle + factor * action. Both arrays have one entry for each dimension
     * of an action. For RP_ONNX_BOX both must be set. For RP_ONNX_GAUSSIAN both may be NULL;
     * actions are then not scaled. Other heads ignore `box`. */
    rp_onnx_scale box;
} rp_onnx_options;

/* A file in memory. */
typedef struct rp_onnx_file {
    uint8_t *bytes;
    size_t size;      /* bytes of the file */
    size_t allocated; /* bytes allocated at `bytes` */
} rp_onnx_file;

/* Writes the file to memory. Returns owned: the caller must free it with rp_onnx_file_free()
 * and the same allocator.
 * Errors: RP_INVALID (options that do not fit the network, or a network of more than 2 GB,
 * which an ONNX file cannot hold), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_net_write_onnx(const rp_allocator *alloc, const rp_net *net,
                                                const rp_real *params,
                                                const rp_onnx_options *options,
                                                rp_onnx_file *out, rp_error *err);
RP_API void rp_onnx_file_free(const rp_allocator *alloc, rp_onnx_file *file);

/* Writes the file to `path`. An existing file is replaced atomically, as by rp_net_save()
 * (safetensors.h). Errors: those of rp_net_write_onnx(), and RP_UNAVAILABLE (the file cannot be
 * written). */
RP_API RP_NODISCARD rp_status rp_net_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_real *params,
                                               const rp_onnx_options *options, const char *path,
                                               rp_error *err);

RP_END_DECLS

#endif
