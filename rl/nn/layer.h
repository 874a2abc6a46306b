/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a network: its shapes, its parameters, and the functions of its kind.
 *
 * A kind of layer, such as dense or LSTM, is a table of functions. plan() checks a layer
 * against the shape of its input and sets the layer's sizes. Only plan() can fail. forward()
 * and backward() find every array that they use in an rp_pass. They allocate nothing and keep
 * no state. */
#ifndef RP_NN_LAYER_H
#define RP_NN_LAYER_H

#include "nn/gemm.h"
#include "nn/loops.h"

typedef struct rp_layer rp_layer;
typedef struct rp_pass rp_pass;

typedef struct rp_layer_kind {
    const char *name; /* for error texts */

    /* Reads the fields `spec` and `in` of `layer`. Sets its output shape, its parameters, and
     * the fields kept, scratch_fixed, scratch_per_row and state. Errors: RP_INVALID (the text
     * does not name the layer, so the caller must add the name). */
    rp_status (*plan)(rp_layer *layer, rp_error *err);
    /* Reads `in` of the pass and writes `out`. */
    void (*forward)(const rp_layer *layer, const rp_pass *pass);

    /* Reads `grad_out` of the pass, and possibly overwrites it. Writes the gradients of the
     * layer's parameters. If `grad_in` of the pass is not NULL, writes the gradient with
     * respect to the input to `grad_in`. */
    void (*backward)(const rp_layer *layer, const rp_pass *pass);
} rp_layer_kind;

enum { RP_LAYER_MAX_PARAMETERS = 4 };

struct rp_layer {
    const rp_layer_kind *kind;
    rp_net_layer spec;
    rp_net_shape in, out;
    size_t in_size, out_size; /* numbers in a row of input, and in a row of output */
    size_t kept;              /* numbers per row that forward() stores for backward(), in
                                 addition to input and output */
    size_t scratch_fixed;     /* numbers of scratch memory per pass */
    size_t scratch_per_row;   /* further numbers of scratch memory per row of a pass */
    size_t state;             /* numbers of LSTM state per sequence */
    size_t state_offset;      /* index of this layer's state within a network's state */
    size_t parameter_count;
    rp_net_parameter parameters[RP_LAYER_MAX_PARAMETERS];
};

/* One pass over one layer. */
struct rp_pass {
    const rp_gemm_ops *gemm;
    const rp_loops *loops;
    size_t rows;
    const rp_real *params; /* parameters of the whole network */
    rp_real *grads;        /* gradients of the whole network; NULL in a forward pass */
    const rp_real *in;
    rp_real *out;
    rp_real *kept;     /* what forward() stores for backward(): rows x layer->kept numbers. Not
                          NULL if layer->kept > 0 */
    rp_real *scratch;  /* scratch memory: scratch_fixed + rows x scratch_per_row numbers */
    rp_real *grad_out; /* gradient with respect to `out` */
    rp_real *grad_in;  /* gradient with respect to `in`; may be NULL */
    const rp_tape_sequence *sequence;
    size_t state_size; /* numbers of state per sequence in the whole network */
};

extern const rp_layer_kind rp_dense_kind;
extern const rp_layer_kind rp_conv_kind;
extern const rp_layer_kind rp_norm_kind;
extern const rp_layer_kind rp_lstm_kind;
extern const rp_layer_kind rp_dueling_kind;

/* Adds a parameter tensor named `name` to a layer. The caller must set the shape of the
 * result. */
rp_net_parameter *rp_layer_add(rp_layer *layer, const char *name, size_t fan_in);
/* Adds a bias or a gain of `count` numbers. */
void rp_layer_add_bias(rp_layer *layer, const char *name, size_t count, size_t fan_in);
/* Adds a weight matrix of `in` x `out` numbers. PyTorch stores it as out x in. */
void rp_layer_add_weight(rp_layer *layer, const char *name, size_t in, size_t out);

/* Return parameter tensor `i` of the layer, and its gradient. */
static inline const rp_real *rp_pass_param(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    return pass->params + layer->parameters[i].offset;
}
static inline rp_real *rp_pass_grad(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    return pass->grads + layer->parameters[i].offset;
}

/* A dense product within a layer: out = activation(in weight + bias). The matrix `in` has
 * `rows` rows of in_size numbers, and `out` has `rows` rows of out_size numbers. */
typedef struct rp_dense {
    size_t rows, in_size, out_size;
    const rp_real *in, *weight, *bias; /* weight is in_size x out_size; bias may be NULL */
    rp_real *out;
    size_t in_row, out_row; /* numbers from the start of one row to the start of the next */
    rp_activation activation;
    bool accumulate; /* true: forward adds to `out`, and backward adds to grad_weight and
                        grad_bias, instead of overwriting them */
    bool add_in;     /* true: backward adds to grad_in instead of overwriting it */
} rp_dense;

/* Computes the dense product. */
void rp_dense_forward(const rp_gemm_ops *gemm, const rp_dense *d);

/* Computes the gradients of a dense product. d->activation must be RP_LINEAR. d->out must be
 * the gradient with respect to the output. Results whose pointer is NULL are not computed. The
 * rows of grad_in begin d->in_row numbers apart. */
void rp_dense_backward(const rp_pass *pass, const rp_dense *d, rp_real *grad_weight,
                       rp_real *grad_bias, rp_real *grad_in);

#endif
