/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of the output of a network, each with its gradient with respect to that output, and
 * heads, which give the output a meaning: values, distributions, actions.
 *
 * Every loss is a mean over rows, each multiplied by its importance weight. A function writes
 * the gradient with respect to every number of the output; the result can be passed to
 * rp_tape_backward() unchanged. The functions use only arrays of the caller, allocate nothing,
 * and may be called on any thread. */
#ifndef REPRISE_RL_LOSS_H
#define REPRISE_RL_LOSS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

/* The rows of a loss over discrete actions. In each row the network has, for each action, one
 * number (Q), or one group of numbers (the atoms or quantiles of the heads below). */
typedef struct rp_loss_rows {
    size_t rows, actions;
    const int32_t *taken;   /* per row: the action taken, in [0, actions) */
    const rp_real *weights; /* per row: importance weight; NULL means 1 */
} rp_loss_rows;

/* Huber loss of TD errors: error = target - q[taken], loss = error^2 / 2 up to `delta` and
 * linear beyond it. delta 0 means the square everywhere. Writes rows x actions gradients and
 * `rows` errors. Returns the loss. */
RP_API double rp_td_loss(const rp_loss_rows *rows, double delta, const rp_real *q,
                         const rp_real *target, rp_real *grad, rp_real *errors);

/* Targets of double Q-learning: reward + discount * q_target[argmax q_online]. Without
 * `q_online` (NULL) the maximum of q_target is taken. `discount` is 0 after a termination. */
RP_API void rp_td_target(size_t rows, size_t actions, const rp_real *reward,
                         const rp_real *discount, const rp_real *q_online,
                         const rp_real *q_target, rp_real *target);

/* The largest of `count` >= 1 numbers; the first of equals. NaN is never the largest, unless it
 * is first. */
RP_API size_t rp_argmax(const rp_real *numbers, size_t count);

/* Categorical head (Bellemare et al. 2017): each action has `atoms` logits of a distribution
 * over `atoms` values, equally spaced from low to high. */
typedef struct rp_categorical {
    size_t atoms; /* >= 2 */
    double low, high;
} rp_categorical;

/* Writes the expected value of each of `count` distributions. */
RP_API void rp_categorical_values(const rp_categorical *head, const rp_real *logits,
                                  size_t count, rp_real *values);
/* Moves each atom from its value to reward + discount * value and projects the resulting
 * distribution back onto the fixed values of the head: writes `rows` x atoms probabilities.
 * `logits` has one distribution per row, that of the chosen action. */
RP_API void rp_categorical_project(const rp_categorical *head, const rp_real *logits,
                                   const rp_real *reward, const rp_real *discount, size_t rows,
                                   rp_real *target);
/* Cross entropy between the targets and the distributions of the actions taken. Writes rows x
 * actions x atoms gradients, and the cross entropy of each row to `errors`. */
RP_API double rp_categorical_loss(const rp_loss_rows *rows, const rp_categorical *head,
                                  const rp_real *logits, const rp_real *target, rp_real *grad,
                                  rp_real *errors);

/* Quantile head (Dabney et al. 2018): each action has `quantiles` values, whose mean is Q. The
 * loss of a row is the Huber quantile loss between every quantile of the action taken and every
 * one of `target_count` target samples: the sum over quantiles of the mean over samples. */
typedef struct rp_quantile {
    size_t quantiles, target_count; /* >= 1 */
    double delta;                   /* > 0 */
} rp_quantile;

RP_API void rp_quantile_values(const rp_quantile *head, const rp_real *out, size_t count,
                               rp_real *values);
/* `target` is rows x target_count. Writes rows x actions x quantiles gradients, and the loss of
 * each row to `errors`. */
RP_API double rp_quantile_loss(const rp_loss_rows *rows, const rp_quantile *head,
                               const rp_real *out, const rp_real *target, rp_real *grad,
                               rp_real *errors);

/* Gaussian head: a row of output is `actions` means, then `actions` logarithms of deviations,
 * which are clamped to [log_low, log_high]. With `squash` an action is the tanh of the sample,
 * and its density is that of the squashed variable (Haarnoja et al. 2018, appendix C). */
typedef struct rp_gaussian {
    size_t actions;
    double log_low, log_high;
    bool squash;
} rp_gaussian;

/* action = mean + deviation * noise, squashed or not; `noise` is standard normal, rows x
 * actions. Writes the logarithm of the density of each row's action to `log_density`. */
RP_API void rp_gaussian_sample(const rp_gaussian *head, const rp_real *out,
                               const rp_real *noise, size_t rows, rp_real *action,
                               rp_real *log_density);
/* Computes the gradient of a loss with respect to `out`, with the noise fixed (reparametrised),
 * from its gradients with respect to the action (`grad_action`, rows x actions) and to
 * log_density (`grad_density`, one number per row). */
RP_API void rp_gaussian_backward(const rp_gaussian *head, const rp_real *out,
                                 const rp_real *noise, size_t rows, const rp_real *grad_action,
                                 const rp_real *grad_density, rp_real *grad);

RP_END_DECLS

#endif
