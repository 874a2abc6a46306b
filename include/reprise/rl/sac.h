/* SPDX-License-Identifier: Apache-2.0 */
/* SAC: soft actor-critic, a stochastic policy for environments with continuous actions
 * (Haarnoja et al. 2018, "Soft Actor-Critic" and "Soft Actor-Critic Algorithms and
 * Applications"): it seeks rewards and entropy. The weight of the entropy, the temperature, is
 * learned.
 *
 *   policy    maps an observation o to a Gaussian for each number of an action; u is the tanh
 *             of a sample, and the action is u scaled to the bounds of the environment. Without
 *             exploration u is the tanh of the mean
 *   critics   two: Q1(o, u) and Q2(o, u)
 *
 * Parameters are one array: those of the policy, then those of both critics, then the logarithm
 * of the temperature. A policy needs the first part only, but its parameter_count is that of
 * all.
 *
 * docs/agents/sac.md has curves, the command, and the differences from the papers. */
#ifndef REPRISE_RL_SAC_H
#define REPRISE_RL_SAC_H

#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/sac_settings.h"
#include "reprise/rl/settings.h"

RP_BEGIN_DECLS

/* Every setting. rp_sac_settings_init() fills in the defaults, or the values that solve an
 * environment (docs/agents/sac.md); sac_settings.h lists them, with bounds. */
typedef struct rp_sac_settings {
    int64_t copies;  /* environments stepped as one group */
    int64_t hidden;  /* units of a hidden layer */
    int64_t layers;  /* hidden layers of each network */
    bool normalize;  /* networks see observations scaled from their bounds to -1 .. 1; numbers
                        without bounds as they are */
    int64_t n_step;  /* over 1: targets leave out the entropy of the steps in between */
    double discount; /* factor of a reward one step later */
    double reward_scale; /* rewards are multiplied by this */
    double rate;         /* of Adam for the critics */
    double policy_rate;  /* of Adam for the policy */
    double adam_epsilon; /* of Adam */
    double max_norm; /* gradients of the policy, of the critics together and of the temperature
                        are scaled down to this norm; 0: never */
    double huber;    /* the critics' loss is linear beyond this error; 0: the square */
    int64_t batch;   /* items of an update */
    int64_t steps_per_update;
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* items in the replay */
    bool prioritized;         /* otherwise all items are equally likely */
    double priority_exponent; /* alpha */
    double weight_exponent;   /* beta, of importance weights of the critics' loss */
    int64_t target_every;     /* updates between changes of the target networks */
    double target_rate;       /* 1: they are replaced; less: they move by this share */
    double noise_memory;      /* while exploring: correlation of the noise in an action with the
                                 noise of the step before. 0: independent */
    double temperature;       /* of the entropy, at first */
    bool tune_temperature;    /* learn it; false: it stays as it is */
    double temperature_rate;  /* of Adam for its logarithm */
    double target_entropy;    /* the temperature is tuned so that the policy has this entropy
                                 for each number of u */
    double max_loss;          /* a loss over this means that the run has diverged */
    int64_t learners;         /* threads that share each update */
} rp_sac_settings;

enum { RP_SAC_SETTINGS = 28, RP_SAC_OWN_SETTINGS = 4 };

/* The settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_sac_settings_table(void);

/* rp_settings_init() and rp_settings_check() of that table. */
RP_API void rp_sac_settings_init(rp_sac_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_sac_settings_check(const rp_sac_settings *settings,
                                                    rp_error *err);

/* What an agent works with. All of it is borrowed and must outlive the agent. */
typedef struct rp_sac_options {
    const rp_sac_settings *settings; /* copied */
    const rp_env_spec *spec;         /* of the environment */
    rp_store *store;                 /* a table "replay" is added unless it has one, for example
                                        from a snapshot */
    rp_client *client;               /* of that store */
    uint64_t seed;                   /* of parameters and exploration */
} rp_sac_options;

/* Makes an agent, and its table if the store has none: an actor and a learner on one thread,
 * whose result depends only on the settings, the seed and the observations. `alloc` NULL is
 * rp_allocator_default(). Returns owned.
 * RP_INVALID (a setting; an environment that SAC cannot learn), RP_NO_RESOURCE, or a status of
 * the store. */
RP_API RP_NODISCARD rp_status rp_sac_new(const rp_allocator *alloc,
                                         const rp_sac_options *options, rp_agent **out,
                                         rp_error *err);

/* What an actor works with. The pointers are borrowed; the client must outlive the actor. */
typedef struct rp_sac_actor_options {
    const rp_sac_settings *settings; /* copied; settings->copies: environments of this actor */
    const rp_env_spec *spec;
    rp_client *client;    /* of a server or a store that has the table "replay" */
    bool settled;         /* items are in the table when observe() returns */
    size_t max_in_flight; /* items of a copy that may be unconfirmed; 0: 1,000 */
    const rp_pcg64 *rng;  /* copied: the stream of noise */
} rp_sac_actor_options;

/* Makes the half that acts. `wait` bounds the wait for the table's signature. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_sac_actor_new(const rp_allocator *alloc,
                                               const rp_sac_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* What a learner works with. The pointers are borrowed; the client must outlive the learner. */
typedef struct rp_sac_learner_options {
    const rp_sac_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* of the client: batches are drawn from its table on the caller's
                          thread. NULL: a sampler of the client prefetches them */
    size_t mutate_for; /* updates whose priorities are sent in one call; 0: 1 */
    rp_pcg64 *rng;     /* draws the first parameters, and advances */
} rp_sac_learner_options;

/* Makes the half that learns. Without a store the table need not exist yet. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_sac_learner_new(const rp_allocator *alloc,
                                                 const rp_sac_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay", as rp_dqn_table() does. The caller drops the
 * signature with rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_table(const rp_sac_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Make the networks of these settings: the policy's, and one that both critics use, each with
 * parameters of its own. Return owned.
 * RP_INVALID (a setting; an environment whose actions are not a box with finite bounds, or
 * whose observations are not floats), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_new_net(const rp_allocator *alloc,
                                             const rp_sac_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);
RP_API RP_NODISCARD rp_status rp_sac_new_critic(const rp_allocator *alloc,
                                                const rp_sac_settings *settings,
                                                const rp_env_spec *spec, rp_net **out,
                                                rp_error *err);

/* Makes a policy of the policy network `net` for at most `rows` rows. Borrows `net` until it is
 * freed; copies `settings` and `spec`. Returns owned. RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_sac_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_sac_settings *settings,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file (onnx.h) whose observations and
 * actions are those of the environment: "outputs" are means and logarithms of deviations,
 * "deviations" those of the Gaussians, "actions" the tanh of the means, scaled to the bounds.
 * RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_sac_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_sac_settings *settings,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
