/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as ONNX files, for onnxruntime and other programs that run them.
 *
 * A file has the network, its parameters and the head of a policy, in operators of ONNX's own
 * set, version 17. The dimension "batch" is the number of rows, which each run chooses. The
 * same network, parameters and options give the same bytes.
 *
 *   input    observations   {batch, ...}, float32 or uint8
 *            state          {batch, state_size}; only with an LSTM
 *   output   outputs        {batch, out_size}: what rp_tape_forward() returns
 *            state_after    {batch, state_size}; only with an LSTM
 *            and what the head adds, see rp_onnx_head
 *
 * With an LSTM a run is one step. The caller begins an episode with a state of zeroes, and
 * gives state_after to the next step.
 *
 *   session = onnxruntime.InferenceSession("policy.onnx")
 *   actions, = session.run(["actions"], {"observations": batch})
 *
 * Numbers differ from ours by rounding: other programs add in another order. */
#ifndef REPRISE_RL_ONNX_H
#define REPRISE_RL_ONNX_H

#include "reprise/rl/loss.h"
#include "reprise/tensor.h"

RP_BEGIN_DECLS

enum { RP_ONNX_OPSET = 17 };

/* What a row of `outputs` means, and which outputs the file has in addition. */
typedef enum rp_onnx_head {
    RP_ONNX_OUTPUTS = 0, /* any numbers. Adds no output */
    RP_ONNX_VALUES, /* the value of each action. Adds actions {batch}, int64: rp_argmax() */
    RP_ONNX_CATEGORICAL, /* logits. Adds values {batch, actions}, and actions as above */
    RP_ONNX_QUANTILE,    /* quantiles. Adds values {batch, actions}, and actions as above */
    RP_ONNX_GAUSSIAN,    /* Adds deviations {batch, actions} and actions {batch, actions}: the
                            means, or their tanh with `squash` */
    RP_ONNX_BOX, /* numbers from -1 to 1. Adds actions {batch, out_size}: scaled by `box`
                    to the bounds of actions */
} rp_onnx_head;

/* A number for each element of a row. Borrowed for one call. */
typedef struct rp_onnx_scale {
    const float *middle, *factor;
} rp_onnx_scale;

typedef struct rp_onnx_options {
    /* The shape of one observation. Rank 0: that of the network, {n} or {height, width,
     * channels}; with `planes`, {channels, height, width}. */
    rp_shape observation;
    bool bytes;          /* observations are uint8, multiplied by 1 / 255 */
    bool planes;         /* observations are images whose channels come first */
    rp_onnx_scale input; /* the first layer reads (observation - middle) * factor, in_size
                            numbers each; NULL: the observation. Not with `planes` */

    rp_onnx_head head;
    rp_categorical categorical; /* of RP_ONNX_CATEGORICAL */
    size_t quantiles;           /* of RP_ONNX_QUANTILE: per action */
    rp_gaussian gaussian;       /* of RP_ONNX_GAUSSIAN */
    /* Scales actions to middle + factor * action. Both arrays have one entry for each number of
     * an action. RP_ONNX_BOX needs them, and scales the output. With RP_ONNX_GAUSSIAN they may
     * be NULL: then the actions are not scaled. Other heads ignore them. */
    rp_onnx_scale box;
} rp_onnx_options;

/* A file in memory. */
typedef struct rp_onnx_file {
    uint8_t *bytes;
    size_t size;
    size_t allocated; /* at `bytes` */
} rp_onnx_file;

/* Writes the file to memory. Owned: free it with rp_onnx_file_free() and the same allocator.
 * RP_INVALID (options that do not fit the network; a network of more than 2 GB, which an ONNX
 * file cannot hold; the text says which), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_net_write_onnx(const rp_allocator *alloc, const rp_net *net,
                                                const rp_real *params,
                                                const rp_onnx_options *options,
                                                rp_onnx_file *out, rp_error *err);
RP_API void rp_onnx_file_free(const rp_allocator *alloc, rp_onnx_file *file);

/* Writes the file to `path`, which is replaced as a whole, as by rp_net_save().
 * The errors above, and RP_UNAVAILABLE (the file cannot be written). */
RP_API RP_NODISCARD rp_status rp_net_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_real *params,
                                               const rp_onnx_options *options, const char *path,
                                               rp_error *err);

RP_END_DECLS

#endif
