/* SPDX-License-Identifier: Apache-2.0 */
/* SAC: soft actor-critic, a stochastic policy for environments with continuous actions
 * (Haarnoja et al. 2018, "Soft Actor-Critic" and "Soft Actor-Critic Algorithms and
 * Applications"). SAC maximises the return plus the weighted entropy of the policy. The weight
 * is called the temperature. By default SAC learns the temperature, too.
 *
 *   policy    maps an observation o to a Gaussian for each dimension of an action; u is the
 *             tanh of a sample, and the action is u scaled to the bounds of the environment.
 *             Without exploration u is the tanh of the mean
 *   critics   two: Q1(o, u) and Q2(o, u)
 *
 * All parameters are in one array: first the policy's, then those of both critics, then the
 * logarithm of the temperature. A policy object (agent.h) takes the whole array, although it
 * uses only the policy's part.
 *
 * docs/agents/sac.md has learning curves, the command that made them, and the differences from
 * the papers. */
#ifndef REPRISE_RL_SAC_H
#define REPRISE_RL_SAC_H

#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/sac_settings.h"
#include "reprise/rl/settings.h"

RP_BEGIN_DECLS

/* All settings. rp_sac_settings_init() fills in the defaults; for some environments it fills in
 * values that solve them (docs/agents/sac.md). sac_settings.h lists the defaults and bounds. */
typedef struct rp_sac_settings {
    int64_t copies;      /* parallel environments, stepped as one group */
    int64_t hidden;      /* units of a hidden layer */
    int64_t layers;      /* hidden layers of each network */
    bool normalize;      /* networks read observations scaled from their bounds to [-1, 1];
                            elements without finite bounds are not scaled */
    int64_t n_step;      /* number of rewards in a target, n. If n > 1, the target does not
                            include the entropy of the steps in between */
    double discount;     /* discount per step */
    double reward_scale; /* rewards are multiplied by this */
    double rate;         /* learning rate of Adam for the critics */
    double policy_rate;  /* learning rate of Adam for the policy */
    double adam_epsilon; /* epsilon of Adam */
    double max_norm;     /* each of three gradients is clipped to this norm: that of the policy,
                            that of both critics together, and that of the temperature. 0: no
                            clipping */
    double huber;        /* the critics' loss is a Huber loss, which is linear beyond this
                            error; 0: squared error */
    int64_t batch;       /* items in a batch */
    int64_t steps_per_update; /* items inserted for each update */
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* most items in the replay */
    bool prioritized;         /* true: sample by TD error; false: sample uniformly */
    double priority_exponent; /* alpha, the exponent of priorities */
    double weight_exponent;   /* beta, the exponent of the importance weights in the critics'
                                 loss */
    int64_t target_every;     /* updates between two updates of the target networks */
    double target_rate;       /* an update moves the target networks by target_rate * (online -
                                 target); 1: copies the online networks */
    double noise_memory;      /* exploration computes each action from noise. noise_memory is
                                 the correlation of this noise with the noise of the step
                                 before. 0: the noise of each step is independent */
    double temperature;       /* initial temperature */
    bool tune_temperature;    /* true: learn the temperature; false: it is constant */
    double temperature_rate;  /* learning rate of Adam for the logarithm of the temperature */
    double target_entropy;    /* the temperature is learned such that the entropy of the policy
                                 approaches this value, per dimension of u */
    double max_loss;          /* if the loss of an update is over this bound, the run has
                                 diverged and ends */
    int64_t learners;         /* number of learner threads, which work together on each batch */
} rp_sac_settings;

/* The number of settings, and the number of those that only SAC has (sac_settings.h). */
enum { RP_SAC_SETTINGS = 28, RP_SAC_OWN_SETTINGS = 4 };

/* Returns the settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_sac_settings_table(void);

/* These two functions call rp_settings_init() and rp_settings_check() (settings.h) with the
 * table of SAC. */
RP_API void rp_sac_settings_init(rp_sac_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_sac_settings_check(const rp_sac_settings *settings,
                                                    rp_error *err);

/* The arguments of rp_sac_new(). The store, the client and the arrays of bounds in `spec` must
 * outlive the agent. */
typedef struct rp_sac_options {
    const rp_sac_settings *settings; /* copied */
    const rp_env_spec *spec;         /* specification of the environment; copied */
    rp_store *store;   /* the table "replay" is added if it is missing in the store */
    rp_client *client; /* a client of that store */
    uint64_t seed;     /* seed of the initial parameters and of exploration */
} rp_sac_options;

/* Makes an agent: an actor and a learner that run on the caller's thread (if the setting
 * `learners` is over 1, the learner has further threads). Runs with the same settings, seed and
 * observations give the same bits. `alloc` NULL means rp_allocator_default(). Returns owned.
 * Errors: RP_INVALID (a bad setting, or an environment that SAC cannot learn: see
 * rp_sac_new_net()), RP_NO_RESOURCE, or a status of the store. */
RP_API RP_NODISCARD rp_status rp_sac_new(const rp_allocator *alloc,
                                         const rp_sac_options *options, rp_agent **out,
                                         rp_error *err);

/* The arguments of rp_sac_actor_new(). The client and the arrays of bounds in `spec` must
 * outlive the actor. */
typedef struct rp_sac_actor_options {
    const rp_sac_settings *settings; /* copied; `copies` is the number of this actor's
                                        environments */
    const rp_env_spec *spec;
    rp_client *client;    /* a client of a server or a store that has the table "replay" */
    bool settled;         /* true: the new items are in the table when observe() returns. Needs
                             a client of a store in this process */
    size_t max_in_flight; /* observe() waits while the environments have, on average, more
                             unconfirmed items (not yet accepted by the table) than this; 0:
                             1,000 */
    const rp_pcg64 *rng;  /* the random stream of the noise; copied */
} rp_sac_actor_options;

/* Makes the actor of a SAC agent. `wait` limits the wait for the signature of the table.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_sac_actor_new(const rp_allocator *alloc,
                                               const rp_sac_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* The arguments of rp_sac_learner_new(). The client and the arrays of bounds in `spec` must
 * outlive the learner. */
typedef struct rp_sac_learner_options {
    const rp_sac_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses; batches are then drawn from its table
                          on the caller's thread. NULL: a sampler of the client
                          (reprise/sampler.h) prefetches batches */
    size_t mutate_for; /* number of updates whose new priorities are sent in one request; 0: 1.
                          Has no effect if `store` is set */
    rp_pcg64 *rng;     /* the generator of the initial parameters; rp_sac_learner_new() advances
                          it */
} rp_sac_learner_options;

/* Makes the learner of a SAC agent. If `store` is NULL, the table "replay" need not exist yet.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_sac_learner_new(const rp_allocator *alloc,
                                                 const rp_sac_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay", as rp_dqn_table() does. dqn.h explains `slack`.
 * The caller must release the signature with rp_signature_unref().
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_table(const rp_sac_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Make the policy network and the critic network that these settings define. Both critics use
 * the same network, each with parameters of its own. Return owned.
 * Errors: RP_INVALID (a bad setting; an environment whose actions are not continuous with
 * finite bounds, or whose observations are not float32), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_new_net(const rp_allocator *alloc,
                                             const rp_sac_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);
RP_API RP_NODISCARD rp_status rp_sac_new_critic(const rp_allocator *alloc,
                                                const rp_sac_settings *settings,
                                                const rp_env_spec *spec, rp_net **out,
                                                rp_error *err);

/* Makes a policy that runs the policy network `net` on at most `rows` rows. `net` and the
 * arrays of bounds in `spec` must outlive the policy. Returns owned. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_sac_settings *settings,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file (onnx.h). The file's model reads
 * observations of the environment. Its output "outputs" has the means and the logarithms of the
 * standard deviations of the Gaussians, "deviations" has the standard deviations, and "actions"
 * the tanh of the means, scaled to the bounds of the environment.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_sac_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_sac_settings *settings,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
