/* SPDX-License-Identifier: Apache-2.0 */
/* All settings of DQN as one X-macro list. The arguments of an entry are the kind
 * (RP_SETTING_... of settings.h), the field of rp_dqn_settings (dqn.h), the name in options and
 * files, the default, the lower bound, the upper bound, and a description. To use the list,
 * define a macro with these arguments and pass it as X. */
#ifndef REPRISE_RL_DQN_SETTINGS_H
#define REPRISE_RL_DQN_SETTINGS_H

/* clang-format off */
#define RP_DQN_SETTING_LIST(X)                                                                 \
    X(INTEGER, copies, "copies", 8, 1, 4096, "environments stepped as one group")              \
    X(INTEGER, hidden, "hidden", 64, 1, 65536, "units of a hidden layer")                      \
    X(INTEGER, layers, "layers", 2, 0, 16, "hidden layers")                                    \
    X(SWITCH, dueling, "dueling", true, 0, 1, "streams for value and advantages")              \
    X(SWITCH, double_q, "double-q", true, 0, 1, "online network picks the next action")        \
    X(INTEGER, n_step, "n-step", 5, 1, 64, "rewards in a target")                              \
    X(NUMBER, discount, "discount", 0.99, 0, 1, "discount factor per step")                    \
    X(NUMBER, reward_scale, "reward-scale", 1, 1e-9, 1e9, "factor of all rewards")             \
    X(SWITCH, rmsprop, "rmsprop", false, 0, 1, "centred RMSProp in place of Adam")             \
    X(NUMBER, rate, "rate", 2e-3, 1e-12, 1e12, "learning rate of the optimizer")               \
    X(NUMBER, adam_epsilon, "adam-epsilon", 1e-8, 1e-12, 1, "epsilon of the optimizer")        \
    X(NUMBER, max_norm, "max-norm", 10, 0, 1e9, "clip gradients to this norm; 0: never")       \
    X(NUMBER, huber, "huber", 1, 0, 1e9, "loss is linear from this error on; 0: square")       \
    X(INTEGER, batch, "batch", 32, 1, 65536, "items sampled for an update")                    \
    X(INTEGER, steps_per_update, "steps-per-update", 4, 1, 1000000,                            \
      "items inserted per update")                                                             \
    X(INTEGER, start, "start", 1000, 1, 1000000000, "items before the first update")           \
    X(INTEGER, capacity, "capacity", 10000, 1, 1000000000, "items in the replay")              \
    X(SWITCH, prioritized, "prioritized", true, 0, 1, "sample by TD error")                    \
    X(NUMBER, priority_exponent, "priority-exponent", 0.6, 0, 10, "alpha of priorities")       \
    X(NUMBER, weight_exponent, "weight-exponent", 0.4, 0, 10, "beta of importance weights")    \
    X(INTEGER, target_every, "target-every", 100, 1, 1000000000,                               \
      "updates between changes of the target net")                                             \
    X(NUMBER, target_rate, "target-rate", 1, 1e-9, 1,                                          \
      "soft update rate of the target net; 1: copy")                                           \
    X(SWITCH, ladder, "ladder", true, 0, 1, "a fixed epsilon per environment, .4 to .0007")    \
    X(NUMBER, epsilon_first, "epsilon-first", 1, 0, 1, "without ladder: epsilon at first")     \
    X(NUMBER, epsilon_last, "epsilon-last", 0.05, 0, 1, "without ladder: epsilon at last")     \
    X(INTEGER, epsilon_steps, "epsilon-steps", 10000, 1, 1000000000000,                        \
      "without ladder: steps from first to last")                                              \
    X(NUMBER, max_loss, "max-loss", 1e6, 1e-9, 1e30, "loss above which a run has diverged")    \
    X(INTEGER, learners, "learners", 1, 1, 64, "threads that learn together")                  \
    X(SWITCH, async_learners, "async-learners", false, 0, 1,                                   \
      "each learner applies its gradients when ready")
/* clang-format on */

#endif
