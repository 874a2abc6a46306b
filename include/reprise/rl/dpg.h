/* SPDX-License-Identifier: Apache-2.0 */
/* DPG: a deterministic policy and a critic for environments with continuous actions (Silver et
 * al. 2014; DDPG, Lillicrap et al. 2016). This is the variant of Ape-X (Horgan et al. 2018,
 * section 3.2 and appendix D), with n-step targets, sampling by TD error with importance
 * weights, eviction by priority, and independent noise.
 *
 *   policy   maps an observation o to u = tanh(...), with one component from -1 to 1 for each
 *            dimension of an action; the action is u scaled to the bounds of the environment
 *   critic   Q(o, u)
 *
 * All parameters are in one array: first the policy's, then the critic's. A policy object
 * (agent.h) takes the whole array, although it uses only the policy's part.
 *
 * docs/agents/dpg.md has learning curves, the command that made them, and the differences from
 * the papers. */
#ifndef REPRISE_RL_DPG_H
#define REPRISE_RL_DPG_H

#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/dpg_settings.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/settings.h"

RP_BEGIN_DECLS

/* All settings. rp_dpg_settings_init() fills in the defaults, or the values that solve an
 * environment (docs/agents/dpg.md). dpg_settings.h lists the defaults and bounds. */
typedef struct rp_dpg_settings {
    int64_t copies;      /* parallel environments, stepped as one group */
    int64_t hidden;      /* units of a hidden layer */
    int64_t layers;      /* hidden layers of each network */
    bool normalize;      /* networks read observations scaled from their bounds to [-1, 1];
                            elements without finite bounds are not scaled */
    int64_t n_step;      /* rewards in a target */
    double discount;     /* discount per step */
    double reward_scale; /* rewards are multiplied by this */
    double rate;         /* learning rate of Adam for the critic */
    double policy_rate;  /* learning rate of Adam for the policy */
    double adam_epsilon; /* epsilon of Adam */
    double max_norm;  /* gradients of each network are clipped to this norm; 0: no clipping */
    double max_slope; /* each component of dQ/du is clipped to +- this; 0: no clipping */
    double huber;     /* Huber loss of the critic, linear beyond this error; 0: squared */
    int64_t batch;    /* items in a batch */
    int64_t steps_per_update; /* items inserted per update */
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* most items in the replay */
    bool prioritized;         /* true: sample by TD error; false: sample uniformly */
    double priority_exponent; /* exponent of priorities, alpha */
    double weight_exponent;   /* exponent of importance weights of the critic's loss, beta */
    double evict_exponent;    /* <= 0. A full replay evicts items with a probability
                                 proportional to priority^evict_exponent; 0: it evicts the
                                 oldest item */
    int64_t target_every;     /* updates between two updates of the target networks */
    double target_rate;       /* target += target_rate * (online - target); 1: copy */
    double noise;             /* standard deviation of the noise that is added to u */
    double noise_memory;      /* correlation of the noise with that of the step before. 0: noise
                                 is independent. Over 0: an Ornstein-Uhlenbeck process with the
                                 same standard deviation, restarted in every episode */
    double max_loss;          /* a loss over this means that the run has diverged */
    int64_t learners;         /* learner threads, which work together on each batch */
} rp_dpg_settings;

enum { RP_DPG_SETTINGS = 27, RP_DPG_OWN_SETTINGS = 6 };

/* Returns the settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_dpg_settings_table(void);

/* The same as rp_settings_init() and rp_settings_check() with the table of DPG (settings.h). */
RP_API void rp_dpg_settings_init(rp_dpg_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_dpg_settings_check(const rp_dpg_settings *settings,
                                                    rp_error *err);

/* The arguments of rp_dpg_new(). The store, the client and the arrays of bounds in `spec` must
 * outlive the agent. */
typedef struct rp_dpg_options {
    const rp_dpg_settings *settings; /* copied */
    const rp_env_spec *spec;         /* of the environment; copied */
    rp_store *store;   /* the table "replay" is added if it is missing in the store */
    rp_client *client; /* a client of that store */
    uint64_t seed;     /* of the initial parameters and of exploration */
} rp_dpg_options;

/* Makes an agent: an actor and a learner that run on the caller's thread. Runs with the same
 * settings, seed and observations are equal bit by bit. `alloc` NULL means
 * rp_allocator_default(). Returns owned.
 * RP_INVALID (a bad setting, or an environment that DPG cannot learn: see rp_dpg_new_net()),
 * RP_NO_RESOURCE, or a status of the store. */
RP_API RP_NODISCARD rp_status rp_dpg_new(const rp_allocator *alloc,
                                         const rp_dpg_options *options, rp_agent **out,
                                         rp_error *err);

/* The arguments of rp_dpg_actor_new(). The client and the arrays of bounds in `spec` must
 * outlive the actor. */
typedef struct rp_dpg_actor_options {
    const rp_dpg_settings *settings; /* copied; `copies` is the number of this actor's
                                        environments */
    const rp_env_spec *spec;
    rp_client *client;    /* of a server or a store that has the table "replay" */
    bool settled;         /* true: items are in the table when observe() returns. Needs a client
                             of a store in this process */
    size_t max_in_flight; /* observe() waits while one environment has more unconfirmed items
                             than this; 0: 1,000 */
    const rp_pcg64 *rng;  /* the random stream of the noise; copied */
} rp_dpg_actor_options;

/* Makes the actor of a DPG agent. `wait` limits the wait for the signature of the table.
 * Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_dpg_actor_new(const rp_allocator *alloc,
                                               const rp_dpg_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* The arguments of rp_dpg_learner_new(). The client and the arrays of bounds in `spec` must
 * outlive the learner. */
typedef struct rp_dpg_learner_options {
    const rp_dpg_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses: batches are drawn from its table on
                          the caller's thread. NULL: a sampler of the client prefetches them */
    size_t mutate_for; /* send the priorities of this many updates in one call; 0: 1 */
    rp_pcg64 *rng;     /* draws the initial parameters; the call advances it */
} rp_dpg_learner_options;

/* Makes the learner of a DPG agent. If `store` is NULL, the table may be created later. Returns
 * owned.
 * RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_dpg_learner_new(const rp_allocator *alloc,
                                                 const rp_dpg_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay", as rp_dqn_table() does (dqn.h), with eviction by
 * priority. The caller must release the signature with rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_table(const rp_dpg_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Make the policy network and the critic network that these settings define. Return owned.
 * RP_INVALID (a bad setting; an environment whose actions are not continuous with finite
 * bounds, or whose observations are not float32), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_new_net(const rp_allocator *alloc,
                                             const rp_dpg_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);
RP_API RP_NODISCARD rp_status rp_dpg_new_critic(const rp_allocator *alloc,
                                                const rp_dpg_settings *settings,
                                                const rp_env_spec *spec, rp_net **out,
                                                rp_error *err);

/* Makes a policy that runs the policy network `net` on at most `rows` rows. `net` and the
 * arrays of bounds in `spec` must outlive the policy. Returns owned. RP_INVALID,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_dpg_settings *settings,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file (onnx.h). The file's model reads
 * observations of the environment. Its output "outputs" is u, from -1 to 1, and "actions" is u
 * scaled to the bounds of the environment.
 * RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_dpg_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_dpg_settings *settings,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
