/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and heads for the output of a network. A head interprets the output as values,
 * distributions or actions. A loss function computes a loss and its gradient with respect to
 * the output.
 *
 * Every loss is a mean over the rows of a batch, in which each row's loss is multiplied by the
 * row's importance weight. The caller can pass the gradient to rp_tape_backward() (nn.h)
 * unchanged. The functions use only arrays of the caller and allocate nothing. Any thread may
 * call them. */
#ifndef REPRISE_RL_LOSS_H
#define REPRISE_RL_LOSS_H

#include "reprise/rl/nn.h"

RP_BEGIN_DECLS

/* The rows of a batch for a loss over discrete actions. For each row and action, the network's
 * output has one number (Q), or a group of numbers (the atoms or quantiles of the heads
 * below). */
typedef struct rp_loss_rows {
    size_t rows, actions;
    const int32_t *taken;   /* for each row, the action taken, in [0, actions) */
    const rp_real *weights; /* for each row, the importance weight; NULL: every weight is 1 */
} rp_loss_rows;

/* Huber loss of TD errors: error = target - q[taken]. The loss is error^2 / 2 if |error| <=
 * delta, and linear beyond that. If `delta` is 0, the loss is always error^2 / 2. Writes rows x
 * actions gradients to `grad`, and the error of each row to `errors`. Returns the loss. */
RP_API double rp_td_loss(const rp_loss_rows *rows, double delta, const rp_real *q,
                         const rp_real *target, rp_real *grad, rp_real *errors);

/* Computes the targets of double Q-learning: reward + discount * q_target[argmax q_online]. If
 * `q_online` is NULL, computes reward + discount * (the maximum of q_target). The caller must
 * set the discount of a row to 0 if the episode terminated. */
RP_API void rp_td_target(size_t rows, size_t actions, const rp_real *reward,
                         const rp_real *discount, const rp_real *q_online,
                         const rp_real *q_target, rp_real *target);

/* Returns the index of the largest of `count` >= 1 numbers. If several are the largest, returns
 * the index of the first of them. If numbers[0] is NaN, returns 0. Ignores any other NaN. */
RP_API size_t rp_argmax(const rp_real *numbers, size_t count);

/* Categorical head (Bellemare et al. 2017): each action has `atoms` logits. They define a
 * distribution over `atoms` values, which are equally spaced from low to high. */
typedef struct rp_categorical {
    size_t atoms; /* >= 2 */
    double low, high;
} rp_categorical;

/* Writes the expected value of each of `count` distributions. */
RP_API void rp_categorical_values(const rp_categorical *head, const rp_real *logits,
                                  size_t count, rp_real *values);
/* Computes the target distributions. `logits` has one distribution per row: the distribution of
 * the action that is chosen in the next state. The function moves each atom from its value to
 * reward + discount * value, and projects the resulting distribution back onto the fixed values
 * of the head. Writes rows x atoms probabilities to `target`. */
RP_API void rp_categorical_project(const rp_categorical *head, const rp_real *logits,
                                   const rp_real *reward, const rp_real *discount, size_t rows,
                                   rp_real *target);
/* Computes the cross entropy between the targets and the distributions of the actions taken.
 * Writes rows x actions x atoms gradients to `grad`, and the cross entropy of each row to
 * `errors`. Returns the loss. */
RP_API double rp_categorical_loss(const rp_loss_rows *rows, const rp_categorical *head,
                                  const rp_real *logits, const rp_real *target, rp_real *grad,
                                  rp_real *errors);

/* Quantile head (Dabney et al. 2018): each action has `quantiles` values, whose mean is Q. The
 * Huber quantile loss compares a quantile of the action taken with one of `target_count` target
 * samples. The loss of a row is the sum over the quantiles of the mean over the samples. */
typedef struct rp_quantile {
    size_t quantiles, target_count; /* >= 1 */
    double delta;                   /* threshold of the Huber loss, > 0 */
} rp_quantile;

/* Writes the mean of the quantiles of each of `count` groups. */
RP_API void rp_quantile_values(const rp_quantile *head, const rp_real *out, size_t count,
                               rp_real *values);
/* Computes the quantile loss. `target` has rows x target_count numbers. Writes rows x actions x
 * quantiles gradients to `grad`, and the loss of each row to `errors`. Returns the loss. */
RP_API double rp_quantile_loss(const rp_loss_rows *rows, const rp_quantile *head,
                               const rp_real *out, const rp_real *target, rp_real *grad,
                               rp_real *errors);

/* Gaussian head for continuous actions. A row of output has a mean for each of the `actions`
 * dimensions of an action, then the logarithm of a standard deviation for each dimension. These
 * logarithms are clamped to [log_low, log_high]. If `squash` is true, an action is the tanh of
 * the sample, and its density is that of the squashed variable (Haarnoja et al. 2018, appendix
 * C). */
typedef struct rp_gaussian {
    size_t actions;
    double log_low, log_high;
    bool squash;
} rp_gaussian;

/* Samples actions: action = mean + standard deviation * noise, squashed if `squash` is true.
 * `noise` has rows x actions standard normal numbers. Writes the logarithm of the density of
 * each row's action to `log_density`. */
RP_API void rp_gaussian_sample(const rp_gaussian *head, const rp_real *out,
                               const rp_real *noise, size_t rows, rp_real *action,
                               rp_real *log_density);
/* Computes the gradient of a loss with respect to `out`, with the noise held constant
 * (reparametrisation). The inputs are the gradients of the loss with respect to the action
 * (`grad_action`, rows x actions) and to log_density (`grad_density`, one number per row).
 * Writes the gradient to `grad`. */
RP_API void rp_gaussian_backward(const rp_gaussian *head, const rp_real *out,
                                 const rp_real *noise, size_t rows, const rp_real *grad_action,
                                 const rp_real *grad_density, rp_real *grad);

RP_END_DECLS

#endif
