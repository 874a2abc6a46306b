/* SPDX-License-Identifier: Apache-2.0 */
/* Neural networks: a list of layers over one array of parameters, and a tape to run it.
 *
 * A network (rp_net) is a description: shapes, names and offsets. It owns no numbers. All its
 * parameters lie in one array of rp_net_size() numbers that the caller owns, and so do
 * gradients and the moments of optimizers, with the same layout. Copying a network is memcpy().
 *
 * A tape (rp_tape) runs a network. It has one arena, allocated with it; forward and backward
 * passes allocate nothing. A tape for inference keeps no intermediate results and cannot go
 * backward.
 *
 *   const rp_net_layer layers[] = {
 *       {.kind = RP_NET_DENSE, .out = 64, .activation = RP_RELU},
 *       {.kind = RP_NET_DENSE, .out = 64, .activation = RP_RELU},
 *       {.kind = RP_NET_DENSE, .out = 2},
 *   };
 *   rp_net_new(alloc, (rp_net_shape){1, 1, 4}, layers, 3, &net, &err);
 *   rp_tape_new(alloc, net, (rp_tape_options){.rows = 32, .train = true}, &tape, &err);
 *   rp_net_init(alloc, net, RP_INIT_TORCH, &rng, params);               // init.h
 *   ...
 *   const rp_real *q = rp_tape_forward(tape, params, observations, 32);
 *   rp_td_loss(&rows, 1.0, q, targets, grad_q, errors);                 // loss.h
 *   rp_tape_backward(tape, params, grad_q, grads, NULL);
 *   rp_optimizer_step(optimizer, params, grads);                        // optimizer.h
 *
 * Every call computes on the calling thread only. Each number of a result is summed in an order
 * that depends neither on the number of rows nor on other rows, so one row gives the same bits
 * alone and in a batch. (Products by a CBLAS may differ, see rp_net_use_kernel().)
 *
 * Only rp_net_use_kernel() changes a network. After that any number of threads may use the
 * network, each with a tape of its own. A tape is used by one thread at a time. */
#ifndef REPRISE_RL_NN_H
#define REPRISE_RL_NN_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

/* The type of all numbers. It is float. The tests of gradients build the same sources with
 * double. */
#ifdef RP_REAL_IS_DOUBLE
typedef double rp_real;
#else
typedef float rp_real;
#endif

typedef enum rp_activation {
    RP_LINEAR = 0,
    RP_RELU,
    RP_TANH,
    RP_ELU, /* x for x > 0, else e^x - 1 */
} rp_activation;

/* The shape of one row of a batch: an image with channels last, or a vector {1, 1, n}. */
typedef struct rp_net_shape {
    size_t height, width, channels;
} rp_net_shape;

typedef enum rp_net_kind {
    RP_NET_DENSE = 1, /* out = activation(in W + b), W is in x out; an image is flattened */
    RP_NET_CONV,      /* convolution, no padding: out channels, kernel x kernel, stride */
    RP_NET_NORM,      /* layer norm over all numbers of a row (epsilon 1e-5), gain and bias */
    RP_NET_LSTM,      /* one layer of `out` units over the steps of a sequence */
    RP_NET_DUELING,   /* value and advantage streams (Wang et al. 2016): Q = V + A - mean A */
} rp_net_kind;

/* One layer. Fields that its kind does not name are 0. */
typedef struct rp_net_layer {
    rp_net_kind kind;
    rp_activation activation; /* dense, convolution, norm */
    size_t out;               /* dense: width; convolution: channels; LSTM: units; dueling:
                                 actions */
    size_t kernel, stride;    /* convolution; stride 0 means 1 */
    size_t atoms;             /* dueling: numbers per action, for distributions; 0 means 1 */
    bool shared;              /* dueling: both streams read all inputs. Otherwise the value
                                 stream reads the first half, the advantage stream the second */
} rp_net_layer;

/* One tensor of the parameters.
 *
 * `dims` is its shape in our array, row-major. PyTorch and files (safetensors.h) have the
 * dimensions in another order: dimension i there is order[i] here; there, dimensions from
 * file_merge on are merged into one. A dense layer after an image has dims {h, w, c, out},
 * order {3, 2, 0, 1} and file_merge 1: the shape there is {out, c * h * w}. */
typedef struct rp_net_parameter {
    char name[48]; /* "0.weight": the index of the layer, and PyTorch's name */
    size_t offset; /* of its first number in the array of parameters */
    size_t size;   /* its numbers */
    size_t fan_in; /* inputs of one unit, for initialisation */
    size_t rank;   /* 1 to 4 */
    size_t dims[4];
    uint8_t order[4];
    uint8_t file_merge; /* rank: no dimensions are merged */
    bool is_bias;       /* a bias, or a gain of a norm (is_gain), which starts at 1 */
    bool is_gain;
} rp_net_parameter;

typedef struct rp_net rp_net;
typedef struct rp_tape rp_tape;

enum { RP_NET_MAX_LAYERS = 64 };

/* Makes a network of `count` layers for rows of shape `in`. Copies `layers`.
 * RP_INVALID (a layer that does not fit; the text names it), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_net_new(const rp_allocator *alloc, rp_net_shape in,
                                         const rp_net_layer *layers, size_t count, rp_net **out,
                                         rp_error *err);
RP_API void rp_net_free(rp_net *net); /* NULL is fine. Free its tapes first */

RP_API size_t rp_net_size(const rp_net *net);       /* numbers in all parameters */
RP_API size_t rp_net_in_size(const rp_net *net);    /* numbers in a row of input */
RP_API size_t rp_net_out_size(const rp_net *net);   /* numbers in a row of output */
RP_API size_t rp_net_state_size(const rp_net *net); /* numbers of state per sequence; 0 without
                                                       an LSTM */

RP_API size_t rp_net_parameter_count(const rp_net *net);
/* Parameter `i` < count. Borrowed, valid until the network is freed. */
RP_API const rp_net_parameter *rp_net_parameter_at(const rp_net *net, size_t i);

/* The kernel of matrix products in use: "avx512", "avx2", "plain" or "cblas". Static. */
RP_API const char *rp_net_kernel(const rp_net *net);
/* Selects a kernel before the first tape is made. The default is the best of this machine.
 * RP_NOT_FOUND if this machine or this build does not have it. */
RP_API RP_NODISCARD rp_status rp_net_use_kernel(rp_net *net, const char *name);

typedef struct rp_tape_options {
    size_t rows; /* the most rows of a pass, >= 1 */
    bool train;  /* keep what a backward pass needs */
} rp_tape_options;

/* Makes a tape for `net`, which it borrows until it is freed.
 * RP_INVALID, RP_NO_RESOURCE (memory, or a size that overflows). */
RP_API RP_NODISCARD rp_status rp_tape_new(const rp_allocator *alloc, const rp_net *net,
                                          rp_tape_options options, rp_tape **out,
                                          rp_error *err);
RP_API void rp_tape_free(rp_tape *tape); /* NULL is fine */

/* Runs the network over `rows` rows of `input`, which is borrowed until the backward pass, or
 * the next forward pass. Returns rows x out_size numbers, valid until the next pass forward.
 * `rows` must be 1 .. options.rows. With an LSTM each row is a sequence of one step that begins
 * with a state of zeroes; use rp_tape_forward_sequence(). */
RP_API const rp_real *rp_tape_forward(rp_tape *tape, const rp_real *params,
                                      const rp_real *input, size_t rows);

/* Sequences for networks with LSTM. Row t * (rows / steps) + s of the input is step t of
 * sequence s. */
typedef struct rp_tape_sequence {
    size_t steps;         /* rows must be a multiple of it; >= 1 */
    const rp_real *state; /* state_size numbers per sequence before step 0; NULL is zeroes */
    const rp_real *keep;  /* per row: 0 clears the state before this step (an episode begins),
                             1 keeps it; NULL keeps always. Borrowed until the backward pass */
    rp_real *state_out;   /* receives the state after the last step; may be NULL, may be
                             `state` */
} rp_tape_sequence;

/* As rp_tape_forward(), for rows / steps sequences. The backward pass stops at the first step:
 * no gradient flows into the initial state. */
RP_API const rp_real *rp_tape_forward_sequence(rp_tape *tape, const rp_real *params,
                                               const rp_real *input, size_t rows,
                                               const rp_tape_sequence *sequence);

/* Goes backward over the last forward pass, which had the same `params`. `grad_out` is the
 * gradient with respect to each number of the output. Writes the gradient with respect to each
 * parameter to `grads`, and with respect to the input to `grad_in`, unless `grad_in` is NULL.
 * The tape must be for training. */
RP_API void rp_tape_backward(rp_tape *tape, const rp_real *params, const rp_real *grad_out,
                             rp_real *grads, rp_real *grad_in);

RP_END_DECLS

#endif
