/* SPDX-License-Identifier: Apache-2.0 */
/* All settings of SAC as one X-macro list. The arguments of an entry are the kind
 * (RP_SETTING_... of settings.h), the field of rp_sac_settings (sac.h), the name in options and
 * files, the default, the lower bound, the upper bound, and a description. To use the list,
 * define a macro with these arguments and pass it as X. */
#ifndef REPRISE_RL_SAC_SETTINGS_H
#define REPRISE_RL_SAC_SETTINGS_H

/* clang-format off */
#define RP_SAC_SETTING_LIST(X) RP_SAC_SHARED_SETTING_LIST(X) RP_SAC_OWN_SETTING_LIST(X)

/* Settings whose names DQN or DPG also has. The defaults below are those of SAC. */
#define RP_SAC_SHARED_SETTING_LIST(X)                                                          \
    X(INTEGER, copies, "copies", 8, 1, 4096, "environments stepped as one group")              \
    X(INTEGER, hidden, "hidden", 64, 1, 65536, "units of a hidden layer")                      \
    X(INTEGER, layers, "layers", 2, 0, 16, "hidden layers of each network")                    \
    X(INTEGER, n_step, "n-step", 1, 1, 64, "rewards in a target")                              \
    X(NUMBER, discount, "discount", 0.99, 0, 1, "discount factor per step")                    \
    X(NUMBER, reward_scale, "reward-scale", 1, 1e-9, 1e9, "factor of all rewards")             \
    X(NUMBER, rate, "rate", 1e-3, 1e-12, 1e12, "learning rate of Adam for the critics")        \
    X(NUMBER, adam_epsilon, "adam-epsilon", 1e-8, 1e-12, 1, "epsilon of Adam")                 \
    X(NUMBER, max_norm, "max-norm", 0, 0, 1e9, "clip gradients to this norm; 0: never")        \
    X(NUMBER, huber, "huber", 0, 0, 1e9, "loss is linear from this error on; 0: square")       \
    X(INTEGER, batch, "batch", 100, 1, 65536, "items sampled for an update")                   \
    X(INTEGER, steps_per_update, "steps-per-update", 1, 1, 1000000,                            \
      "items inserted per update")                                                             \
    X(INTEGER, start, "start", 1000, 1, 1000000000, "items before the first update")           \
    X(INTEGER, capacity, "capacity", 100000, 1, 1000000000, "items in the replay")             \
    X(SWITCH, prioritized, "prioritized", false, 0, 1, "sample by TD error")                   \
    X(NUMBER, priority_exponent, "priority-exponent", 0.6, 0, 10, "alpha of priorities")       \
    X(NUMBER, weight_exponent, "weight-exponent", 0.4, 0, 10, "beta of importance weights")    \
    X(INTEGER, target_every, "target-every", 1, 1, 1000000000,                                 \
      "updates between changes of the target nets")                                            \
    X(NUMBER, target_rate, "target-rate", 0.005, 1e-9, 1,                                      \
      "soft update rate of the target nets; 1: copy")                                          \
    X(NUMBER, max_loss, "max-loss", 1e6, 1e-9, 1e30, "loss above which a run has diverged")    \
    X(INTEGER, learners, "learners", 1, 1, 64, "threads that learn together")                  \
    X(SWITCH, normalize, "normalize", true, 0, 1, "scale observations by their bounds")        \
    X(NUMBER, policy_rate, "policy-rate", 1e-3, 1e-12, 1e12, "rate of Adam for the policy")    \
    X(NUMBER, noise_memory, "noise-memory", 0, 0, 0.9999,                                      \
      "correlation of exploration noise between steps")

/* Settings that only SAC has. */
#define RP_SAC_OWN_SETTING_LIST(X)                                                             \
    X(NUMBER, temperature, "temperature", 1, 1e-9, 1e9, "weight of the entropy, at first")     \
    X(SWITCH, tune_temperature, "tune-temperature", true, 0, 1,                                \
      "learn the temperature; false: constant")                                                \
    X(NUMBER, temperature_rate, "temperature-rate", 1e-3, 1e-12, 1e12,                         \
      "rate of Adam for the temperature")                                                      \
    X(NUMBER, target_entropy, "target-entropy", -1, -100, 100,                                 \
      "target entropy per action dimension")
/* clang-format on */

#endif
