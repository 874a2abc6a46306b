/* SPDX-License-Identifier: Apache-2.0 */
/* A layer of a network: its shapes, its parameters, and the functions of its kind.
 *
 * A kind is a table of functions. plan() checks a layer against its input and sets sizes; it is
 * the only function that can fail. forward() and backward() get every array that they use in an
 * rp_pass. They allocate nothing and keep nothing. */
#ifndef RP_NN_LAYER_H
#define RP_NN_LAYER_H

#include "nn/gemm.h"
#include "nn/loops.h"

typedef struct rp_layer rp_layer;
typedef struct rp_pass rp_pass;

typedef struct rp_layer_kind {
    const char *name; /* in error texts */

    /* Sets out, kept, scratch and parameters of `layer`, whose `spec` and `in` are set.
     * RP_INVALID, with a text that does not name the layer. */
    rp_status (*plan)(rp_layer *layer, rp_error *err);
    void (*forward)(const rp_layer *layer, const rp_pass *pass);

    /* Changes grad_out as it likes. Writes the gradients of the layer's parameters, and grad_in
     * unless that is NULL. */
    void (*backward)(const rp_layer *layer, const rp_pass *pass);
} rp_layer_kind;

enum { RP_LAYER_MAX_PARAMETERS = 4 };

struct rp_layer {
    const rp_layer_kind *kind;
    rp_net_layer spec;
    rp_net_shape in, out;
    size_t in_size, out_size; /* numbers of a row */
    size_t kept;              /* numbers per row that backward() needs beside in- and output */
    size_t scratch_fixed;     /* numbers of scratch for a pass */
    size_t scratch_per_row;   /* and for each of its rows */
    size_t state;             /* numbers of state per sequence, and where they begin */
    size_t state_offset;
    size_t parameter_count;
    rp_net_parameter parameters[RP_LAYER_MAX_PARAMETERS];
};

/* One pass over one layer. */
struct rp_pass {
    const rp_gemm_ops *gemm;
    const rp_loops *loops;
    size_t rows;
    const rp_real *params; /* of the whole network */
    rp_real *grads;        /* of the whole network; NULL forward */
    const rp_real *in;
    rp_real *out;
    rp_real *kept;    /* rows x layer->kept; never NULL if that is not 0 */
    rp_real *scratch; /* scratch_fixed + rows x scratch_per_row */
    rp_real *grad_out;
    rp_real *grad_in; /* may be NULL */
    const rp_tape_sequence *sequence;
    size_t state_size; /* of the whole network */
};

extern const rp_layer_kind rp_dense_kind;
extern const rp_layer_kind rp_conv_kind;
extern const rp_layer_kind rp_norm_kind;
extern const rp_layer_kind rp_lstm_kind;
extern const rp_layer_kind rp_dueling_kind;

/* Adds a parameter named `name`, whose shape is set by the caller. */
rp_net_parameter *rp_layer_add(rp_layer *layer, const char *name, size_t fan_in);
/* Adds a bias, or a gain, of `count` numbers. */
void rp_layer_add_bias(rp_layer *layer, const char *name, size_t count, size_t fan_in);
/* Adds a weight of `in` x `out`; the order of PyTorch is out x in. */
void rp_layer_add_weight(rp_layer *layer, const char *name, size_t in, size_t out);

static inline const rp_real *rp_pass_param(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    return pass->params + layer->parameters[i].offset;
}
static inline rp_real *rp_pass_grad(const rp_layer *layer, const rp_pass *pass, size_t i)
{
    return pass->grads + layer->parameters[i].offset;
}

/* A dense product within a layer: `rows` rows of `in` numbers that are in_row apart, and so on.
 */
typedef struct rp_dense {
    size_t rows, in_size, out_size;
    const rp_real *in, *weight, *bias; /* weight is in_size x out_size; bias may be NULL */
    rp_real *out;
    size_t in_row, out_row; /* numbers from one row to the next */
    rp_activation activation;
    bool accumulate; /* add to out; backward: add to grad_weight and grad_bias */
    bool add_in;     /* backward: add to grad_in */
} rp_dense;
void rp_dense_forward(const rp_gemm_ops *gemm, const rp_dense *d);

/* Gradients of a dense product without activation, where d->out is the gradient by its output.
 * NULL results are skipped. grad_in has rows of in_row numbers. */
void rp_dense_backward(const rp_pass *pass, const rp_dense *d, rp_real *grad_weight,
                       rp_real *grad_bias, rp_real *grad_in);

#endif
