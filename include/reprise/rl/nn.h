/* SPDX-License-Identifier: Apache-2.0 */
/* Neural networks: a network is a list of layers, and a tape runs a network.
 *
 * A network (rp_net) describes the layers: shapes, names and offsets. It does not hold the
 * parameters. The parameters of all layers are in one array of rp_net_size() numbers, which the
 * caller owns. Gradients, and the running averages (moments) of optimizers, are in arrays with
 * the same layout. To copy parameters, the caller copies the array with memcpy().
 *
 * A tape (rp_tape) runs a network. rp_tape_new() allocates all memory of a tape; forward and
 * backward passes allocate nothing. A tape for inference keeps no intermediate results, so it
 * cannot make backward passes.
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
 * In this example `rows` is an rp_loss_rows (loss.h).
 *
 * Every call computes only on the calling thread. The order in which the terms of a sum are
 * added does not depend on the number of rows or on other rows, so a row gives the same bits
 * alone and in a batch. The kernel "cblas" (rp_net_use_kernel()) guarantees neither of these
 * two properties.
 *
 * Only rp_net_use_kernel() changes a network. After that call any number of threads may use the
 * network, each with a tape of its own. One thread at a time may use a tape. */
#ifndef REPRISE_RL_NN_H
#define REPRISE_RL_NN_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

/* The type of all numbers is float. Only the tests of gradients build the same sources with
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

/* The shape of one row of a batch: an image with its channels last, or a vector {1, 1, n}. */
typedef struct rp_net_shape {
    size_t height, width, channels;
} rp_net_shape;

typedef enum rp_net_kind {
    RP_NET_DENSE = 1, /* out = activation(in W + b), with W of shape in x out; an image is
                         flattened */
    RP_NET_CONV,      /* convolution without padding, kernel x kernel, with `out` channels */
    RP_NET_NORM,      /* layer norm over all numbers of a row (epsilon 1e-5), with gain and
                         bias */
    RP_NET_LSTM,      /* LSTM of `out` units over the steps of a sequence */
    RP_NET_DUELING,   /* value and advantage streams (Wang et al. 2016): Q = V + A - mean A */
} rp_net_kind;

/* One layer. The comment of a field names the kinds of layer that use the field; for other
 * kinds the field must be 0. */
typedef struct rp_net_layer {
    rp_net_kind kind;
    rp_activation activation; /* dense, convolution, norm */
    size_t out;               /* dense: width; convolution: channels; LSTM: units; dueling:
                                 actions */
    size_t kernel, stride;    /* convolution: width of the square kernel; stride, 0 means 1 */
    size_t atoms;             /* dueling: numbers per action, for heads (loss.h) that need
                                 several; 0 means 1 */
    bool shared;              /* dueling. true: both streams read all inputs. false: the value
                                 stream reads the first half of them, and the advantage stream
                                 the second half */
} rp_net_layer;

/* One parameter tensor of a network.
 *
 * `dims` is the shape of the tensor in the array of parameters, row-major. In PyTorch and in
 * files (safetensors.h) the dimensions have another order: dimension i in a file is
 * dims[order[i]]. In addition, the dimensions of the file from index file_merge on are merged
 * into one. For example, the weight of a dense layer after an image has dims {h, w, c, out},
 * order {3, 2, 0, 1} and file_merge 1. In the order of a file this is {out, c, h, w}. The
 * dimensions from index 1 on are merged, so the shape in the file is {out, c * h * w}. */
typedef struct rp_net_parameter {
    char name[48]; /* "0.weight": the index of the layer, and PyTorch's name */
    size_t offset; /* index of the tensor's first number in the array of parameters */
    size_t size;   /* number of elements */
    size_t fan_in; /* inputs of one unit, for initialisation */
    size_t rank;   /* number of dimensions, 1 to 4 */
    size_t dims[4];
    uint8_t order[4];
    uint8_t file_merge; /* equal to `rank` if no dimensions are merged */
    bool is_bias;       /* true: a bias, or the gain of a layer norm; false: a weight */
    bool is_gain;       /* true: the gain of a layer norm, which rp_net_init() sets to 1 */
} rp_net_parameter;

typedef struct rp_net rp_net;
typedef struct rp_tape rp_tape;

enum { RP_NET_MAX_LAYERS = 64 };

/* Makes a network of `count` layers for rows of shape `in`. Copies `layers`. Returns owned.
 * Errors: RP_INVALID (a layer does not fit its input or has a bad field; the text of the error
 * names the layer), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_net_new(const rp_allocator *alloc, rp_net_shape in,
                                         const rp_net_layer *layers, size_t count, rp_net **out,
                                         rp_error *err);
RP_API void rp_net_free(rp_net *net); /* NULL is fine. The caller must free its tapes first */

RP_API size_t rp_net_size(const rp_net *net);       /* numbers in all parameters */
RP_API size_t rp_net_in_size(const rp_net *net);    /* numbers in a row of input */
RP_API size_t rp_net_out_size(const rp_net *net);   /* numbers in a row of output */
RP_API size_t rp_net_state_size(const rp_net *net); /* numbers of LSTM state per sequence; 0
                                                       without an LSTM */

RP_API size_t rp_net_parameter_count(const rp_net *net); /* number of parameter tensors */
/* Returns parameter tensor `i`. Borrowed, valid until the network is freed. */
RP_API const rp_net_parameter *rp_net_parameter_at(const rp_net *net, size_t i);

/* Returns the name of the kernel that computes matrix products: "avx512", "avx2", "plain" or
 * "cblas". Static. */
RP_API const char *rp_net_kernel(const rp_net *net);
/* Selects a kernel by name. The caller must do this before it makes the first tape. The default
 * is the fastest kernel of this machine. The kernel "cblas" calls a CBLAS library. If this is
 * OpenBLAS, the function sets OpenBLAS to one thread for the whole process. Returns
 * RP_NOT_FOUND if this machine or this build does not have the kernel. */
RP_API RP_NODISCARD rp_status rp_net_use_kernel(rp_net *net, const char *name);

typedef struct rp_tape_options {
    size_t rows; /* the most rows of one pass, >= 1 */
    bool train;  /* true: keep the intermediate results that a backward pass needs; false: the
                    tape is for inference */
} rp_tape_options;

/* Makes a tape for `net`. Borrows `net` until the tape is freed. Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE (memory, or a size that overflows). */
RP_API RP_NODISCARD rp_status rp_tape_new(const rp_allocator *alloc, const rp_net *net,
                                          rp_tape_options options, rp_tape **out,
                                          rp_error *err);
RP_API void rp_tape_free(rp_tape *tape); /* NULL is fine */

/* Makes a forward pass over `rows` rows of `input`, where `rows` is 1 to options.rows. A
 * backward pass reads `input` again, so the caller must not change these numbers until the
 * backward pass has ended. Returns rows x rp_net_out_size() numbers, valid until the next
 * forward pass. An LSTM treats each row as a sequence of one step that starts with a state of
 * zeros. For longer sequences use rp_tape_forward_sequence(). */
RP_API const rp_real *rp_tape_forward(rp_tape *tape, const rp_real *params,
                                      const rp_real *input, size_t rows);

/* Sequences for networks with an LSTM. A pass over `rows` rows has rows / steps sequences. Row
 * t * (rows / steps) + s of the input is step t of sequence s. */
typedef struct rp_tape_sequence {
    size_t steps;         /* steps of a sequence, >= 1; `rows` must be a multiple of `steps` */
    const rp_real *state; /* the state of each sequence before step 0, rp_net_state_size()
                             numbers per sequence; NULL: zeros */
    const rp_real *keep;  /* for each row, 0 or 1. 0 clears the state before the step, because
                             an episode begins with this step; 1 keeps the state. NULL: 1 for
                             every row. Borrowed until the end of the backward pass */
    rp_real *state_out;   /* receives the state after the last step; may be NULL or `state` */
} rp_tape_sequence;

/* Makes a forward pass over sequences. In all other respects it works like rp_tape_forward().
 * The backward pass does not compute gradients with respect to the initial state. */
RP_API const rp_real *rp_tape_forward_sequence(rp_tape *tape, const rp_real *params,
                                               const rp_real *input, size_t rows,
                                               const rp_tape_sequence *sequence);

/* Makes the backward pass that belongs to the last forward pass. `params` must be the same as
 * in the forward pass. `grad_out` is the gradient with respect to the output. Writes the
 * gradient with respect to the parameters to `grads`. If `grad_in` is not NULL, writes the
 * gradient with respect to the input to `grad_in`. The option `train` of the tape must be
 * true. */
RP_API void rp_tape_backward(rp_tape *tape, const rp_real *params, const rp_real *grad_out,
                             rp_real *grads, rp_real *grad_in);

RP_END_DECLS

#endif
