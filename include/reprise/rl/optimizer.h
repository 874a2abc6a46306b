/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers over flat arrays of parameters: SGD, Adam, centred RMSProp.
 *
 * The formulas, and the order of their operations, are PyTorch's. An optimizer owns its
 * moments; steps allocate nothing. Not thread-safe. */
#ifndef REPRISE_RL_OPTIMIZER_H
#define REPRISE_RL_OPTIMIZER_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

typedef enum rp_optimizer_kind {
    RP_SGD = 1, /* with momentum: v = momentum v + g; p -= rate v */
    RP_ADAM,    /* Kingma and Ba 2015, with bias correction */
    RP_RMSPROP, /* Tieleman and Hinton 2012; centred: Graves 2013, as DQN used */
} rp_optimizer_kind;

typedef struct rp_optimizer_options {
    rp_optimizer_kind kind;
    double rate;     /* > 0, finite */
    double beta1;    /* Adam: 0 means .9 */
    double beta2;    /* Adam: 0 means .999. RMSProp: decay (alpha), 0 means .99 */
    double epsilon;  /* 0 means 1e-8 */
    double momentum; /* SGD, RMSProp; in [0, 1) */
    bool centred;    /* RMSProp: divide by the deviation, not by the root mean square */
    double max_norm; /* > 0: scale gradients down to this global norm first. 0: never */
} rp_optimizer_options;

typedef struct rp_optimizer rp_optimizer;

/* Makes an optimizer for `size` parameters.
 * RP_INVALID (the text names the option), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_optimizer_new(const rp_allocator *alloc, size_t size,
                                               const rp_optimizer_options *options,
                                               rp_optimizer **out, rp_error *err);
RP_API void rp_optimizer_free(rp_optimizer *optimizer); /* NULL is fine */

/* Makes one step: updates `params` with the gradients `grads`. Both have `size` numbers. If
 * max_norm is set and the norm of `grads` exceeds it, `grads` is scaled in place. Returns the
 * norm before scaling if max_norm is set, else 0. If that norm is not finite, returns it and
 * changes nothing, so that a run that diverges can be stopped. */
RP_API double rp_optimizer_step(rp_optimizer *optimizer, rp_real *params, rp_real *grads);

/* Some of the parameters, for a step that several threads make together (team.h). */
typedef struct rp_optimizer_slice {
    size_t first, count;     /* of the `size` parameters */
    rp_real *params, *grads; /* of these: `count` numbers each */
} rp_optimizer_slice;

/* Makes a step of these parameters only; `norm` is that of all gradients. Scales `grads` as
 * rp_optimizer_step() does. Does nothing if `norm` is not finite. Threads may do this at the
 * same time with slices that do not overlap. */
RP_API void rp_optimizer_step_slice(const rp_optimizer *optimizer,
                                    const rp_optimizer_slice *slice, double norm);
/* Counts the step, when all of its slices are done. */
RP_API void rp_optimizer_end_slices(rp_optimizer *optimizer, double norm);

/* Changes the learning rate, > 0 and finite. */
RP_API void rp_optimizer_set_rate(rp_optimizer *optimizer, double rate);

/* The moments and the number of steps done, so that a run can be saved and resumed. `moments`
 * is size * moment_count numbers; the caller may write to it. Borrowed, valid until freed. */
typedef struct rp_optimizer_state {
    rp_real *moments;
    size_t moment_count; /* SGD 0 or 1, Adam 2, RMSProp 1 to 3 */
    uint64_t steps;
} rp_optimizer_state;
RP_API rp_optimizer_state rp_optimizer_get_state(rp_optimizer *optimizer);
RP_API void rp_optimizer_set_steps(rp_optimizer *optimizer, uint64_t steps);

/* sums += numbers, for `count` numbers. */
RP_API void rp_add_numbers(rp_real *sums, const rp_real *numbers, size_t count);

/* The norm of `count` numbers, summed in float64. */
RP_API double rp_global_norm(const rp_real *numbers, size_t count);

/* target = (1 - rate) target + rate online. A rate of 1 copies. */
RP_API void rp_polyak(rp_real *target, const rp_real *online, size_t count, double rate);

RP_END_DECLS

#endif
