/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers over flat arrays of parameters: SGD, Adam, RMSProp.
 *
 * The formulas, and the order of their operations, are PyTorch's. An optimizer owns its
 * moments, which are the running averages that it keeps for each parameter. Steps allocate
 * nothing. Not thread-safe. */
#ifndef REPRISE_RL_OPTIMIZER_H
#define REPRISE_RL_OPTIMIZER_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef enum rp_optimizer_kind {
    RP_SGD = 1, /* with gradient g, velocity v and parameter p: v = momentum v + g; p -= rate
                   v */
    RP_ADAM,    /* Kingma and Ba 2015, with bias correction */
    RP_RMSPROP, /* Tieleman and Hinton 2012; the centred form is that of Graves 2013, which the
                   paper on DQN used */
} rp_optimizer_kind;

typedef struct rp_optimizer_options {
    rp_optimizer_kind kind;
    double rate;     /* > 0, finite */
    double beta1;    /* Adam: 0 means .9 */
    double beta2;    /* Adam: 0 means .999. RMSProp: decay (alpha), 0 means .99 */
    double epsilon;  /* 0 means 1e-8 */
    double momentum; /* SGD, RMSProp; in [0, 1) */
    bool centred;    /* RMSProp. true: divides the gradient by its standard deviation; false: by
                        its root mean square */
    double max_norm; /* > 0: if the norm of all gradients together is larger, they are first
                        scaled to this norm; 0: no clipping */
} rp_optimizer_options;

typedef struct rp_optimizer rp_optimizer;

/* Makes an optimizer for `size` parameters. Returns owned.
 * Errors: RP_INVALID (the text of the error names the option), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_optimizer_new(const rp_allocator *alloc, size_t size,
                                               const rp_optimizer_options *options,
                                               rp_optimizer **out, rp_error *err);
RP_API void rp_optimizer_free(rp_optimizer *optimizer); /* NULL is fine */

/* Makes one step: updates `params` with the gradients `grads`. Both have `size` numbers. If
 * max_norm is set and the norm of `grads` exceeds it, scales `grads` in place. Returns the norm
 * before scaling if max_norm is set, else 0. If that norm is not finite, changes nothing, so
 * that the caller can stop a run that diverges. */
RP_API double rp_optimizer_step(rp_optimizer *optimizer, rp_real *params, rp_real *grads);

/* A range of the parameters. Several threads that make one step together (team.h) each update
 * one such range. */
typedef struct rp_optimizer_slice {
    size_t first, count;     /* index of the first parameter; number of parameters */
    rp_real *params, *grads; /* arrays of `count` numbers, which begin with parameter `first` */
} rp_optimizer_slice;

/* Makes a step for the parameters of one slice. The caller must compute `norm`, the norm of the
 * gradients of all parameters. Scales `grads` as rp_optimizer_step() does. Does nothing if
 * `norm` is not finite. Several threads may call this function at the same time with slices
 * that do not overlap. */
RP_API void rp_optimizer_step_slice(const rp_optimizer *optimizer,
                                    const rp_optimizer_slice *slice, double norm);
/* Counts the step that the calls of rp_optimizer_step_slice() made. The caller must call this
 * function once for each step, after all slices of the step, with the same `norm`. */
RP_API void rp_optimizer_end_slices(rp_optimizer *optimizer, double norm);

/* Changes the learning rate, which must be > 0 and finite. */
RP_API void rp_optimizer_set_rate(rp_optimizer *optimizer, double rate);

/* The moments and the number of steps done, with which a program can save and resume a run.
 * `moments` has size * moment_count numbers, where `size` is the number of parameters. To
 * restore the moments, the caller writes to this array. Borrowed, valid until the optimizer is
 * freed. */
typedef struct rp_optimizer_state {
    rp_real *moments;
    size_t moment_count; /* SGD 0 or 1, Adam 2, RMSProp 1 to 3 */
    uint64_t steps;
} rp_optimizer_state;
RP_API rp_optimizer_state rp_optimizer_get_state(rp_optimizer *optimizer);
RP_API void rp_optimizer_set_steps(rp_optimizer *optimizer, uint64_t steps);

/* Adds numbers[i] to sums[i], for `count` numbers. */
RP_API void rp_add_numbers(rp_real *sums, const rp_real *numbers, size_t count);

/* Returns the Euclidean norm of `count` numbers, summed in float64. */
RP_API double rp_global_norm(const rp_real *numbers, size_t count);

/* Computes target = (1 - rate) * target + rate * online, for `count` numbers. With a rate of 1
 * it copies `online`. */
RP_API void rp_polyak(rp_real *target, const rp_real *online, size_t count, double rate);

RP_END_DECLS

#endif
