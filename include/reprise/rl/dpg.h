/* SPDX-License-Identifier: Apache-2.0 */
/* DPG: a deterministic policy and a critic for environments with continuous actions (Silver et
 * al. 2014; DDPG, Lillicrap et al. 2016). This is the variant of the paper on Ape-X (Horgan et
 * al. 2018, section 3.2 and appendix D): it has n-step targets, samples by TD error with
 * importance weights, and evicts items by priority. By default the exploration noise of a step
 * is independent of the noise of other steps.
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

/* All settings. rp_dpg_settings_init() fills in the defaults; for some environments it fills in
 * values that solve them (docs/agents/dpg.md). dpg_settings.h lists the defaults and bounds. */
typedef struct rp_dpg_settings {
    int64_t copies;      /* parallel environments, stepped as one group */
    int64_t hidden;      /* units of a hidden layer */
    int64_t layers;      /* hidden layers of each network */
    bool normalize;      /* networks read observations scaled from their bounds to [-1, 1];
                            elements without finite bounds are not scaled */
    int64_t n_step;      /* number of rewards in a target, n */
    double discount;     /* discount per step */
    double reward_scale; /* rewards are multiplied by this */
    double rate;         /* learning rate of Adam for the critic */
    double policy_rate;  /* learning rate of Adam for the policy */
    double adam_epsilon; /* epsilon of Adam */
    double max_norm;  /* gradients of each network are clipped to this norm; 0: no clipping */
    double max_slope; /* each component of dQ/du is clipped to +- this; 0: no clipping */
    double huber;     /* the critic's loss is a Huber loss, which is linear beyond this error;
                         0: squared error */
    int64_t batch;    /* items in a batch */
    int64_t steps_per_update; /* items inserted for each update */
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* most items in the replay */
    bool prioritized;         /* true: sample by TD error; false: sample uniformly */
    double priority_exponent; /* alpha, the exponent of priorities */
    double weight_exponent;   /* beta, the exponent of the importance weights in the critic's
                                 loss */
    double evict_exponent;    /* <= 0. Below 0: a full replay evicts items with a probability
                                 proportional to priority^evict_exponent. 0: it evicts the
                                 oldest item */
    int64_t target_every;     /* updates between two updates of the target networks */
    double target_rate;       /* an update moves the target networks by target_rate * (online -
                                 target); 1: copies the online networks */
    double noise;             /* standard deviation of the noise that is added to u */
    double noise_memory;      /* correlation of the noise with the noise of the step before. 0:
                                 the noise of each step is independent. Over 0: an
                                 Ornstein-Uhlenbeck process with the same standard deviation,
                                 which restarts in every episode */
    double max_loss;          /* if the loss of an update is over this bound, the run has
                                 diverged and ends */
    int64_t learners;         /* number of learner threads, which work together on each batch */
} rp_dpg_settings;

/* The number of settings, and the number of those that DQN does not have (dpg_settings.h). */
enum { RP_DPG_SETTINGS = 27, RP_DPG_OWN_SETTINGS = 6 };

/* Returns the settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_dpg_settings_table(void);

/* These two functions call rp_settings_init() and rp_settings_check() (settings.h) with the
 * table of DPG. */
RP_API void rp_dpg_settings_init(rp_dpg_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_dpg_settings_check(const rp_dpg_settings *settings,
                                                    rp_error *err);

/* The arguments of rp_dpg_new(). The store, the client and the arrays of bounds in `spec` must
 * outlive the agent. */
typedef struct rp_dpg_options {
    const rp_dpg_settings *settings; /* copied */
    const rp_env_spec *spec;         /* specification of the environment; copied */
    rp_store *store;   /* the table "replay" is added if it is missing in the store */
    rp_client *client; /* a client of that store */
    uint64_t seed;     /* seed of the initial parameters and of exploration */
} rp_dpg_options;

/* Makes an agent: an actor and a learner that run on the caller's thread (if the setting
 * `learners` is over 1, the learner has further threads). Runs with the same settings, seed and
 * observations give the same bits. `alloc` NULL means rp_allocator_default(). Returns owned.
 * Errors: RP_INVALID (a bad setting, or an environment that DPG cannot learn: see
 * rp_dpg_new_net()), RP_NO_RESOURCE, or a status of the store. */
RP_API RP_NODISCARD rp_status rp_dpg_new(const rp_allocator *alloc,
                                         const rp_dpg_options *options, rp_agent **out,
                                         rp_error *err);

/* The arguments of rp_dpg_actor_new(). The client and the arrays of bounds in `spec` must
 * outlive the actor. */
typedef struct rp_dpg_actor_options {
    const rp_dpg_settings *settings; /* copied; `copies` is the number of this actor's
                                        environments */
    const rp_env_spec *spec;
    rp_client *client;    /* a client of a server or a store that has the table "replay" */
    bool settled;         /* true: the new items are in the table when observe() returns. Needs
                             a client of a store in this process */
    size_t max_in_flight; /* observe() waits while the environments have, on average, more
                             unconfirmed items (not yet accepted by the table) than this; 0:
                             1,000 */
    const rp_pcg64 *rng;  /* the random stream of the noise; copied */
} rp_dpg_actor_options;

/* Makes the actor of a DPG agent. `wait` limits the wait for the signature of the table.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_dpg_actor_new(const rp_allocator *alloc,
                                               const rp_dpg_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* The arguments of rp_dpg_learner_new(). The client and the arrays of bounds in `spec` must
 * outlive the learner. */
typedef struct rp_dpg_learner_options {
    const rp_dpg_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses; batches are then drawn from its table
                          on the caller's thread. NULL: a sampler of the client
                          (reprise/sampler.h) prefetches batches */
    size_t mutate_for; /* number of updates whose new priorities are sent in one request; 0: 1.
                          Has no effect if `store` is set */
    rp_pcg64 *rng;     /* the generator of the initial parameters; rp_dpg_learner_new() advances
                          it */
} rp_dpg_learner_options;

/* Makes the learner of a DPG agent. If `store` is NULL, the table "replay" need not exist yet.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_dpg_learner_new(const rp_allocator *alloc,
                                                 const rp_dpg_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay", as rp_dqn_table() does. dqn.h explains `slack`.
 * The table evicts items by priority if evict_exponent is below 0. The caller must release the
 * signature with rp_signature_unref().
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_table(const rp_dpg_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Make the policy network and the critic network that these settings define. Return owned.
 * Errors: RP_INVALID (a bad setting; an environment whose actions are not continuous with
 * finite bounds, or whose observations are not float32), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_new_net(const rp_allocator *alloc,
                                             const rp_dpg_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);
RP_API RP_NODISCARD rp_status rp_dpg_new_critic(const rp_allocator *alloc,
                                                const rp_dpg_settings *settings,
                                                const rp_env_spec *spec, rp_net **out,
                                                rp_error *err);

/* Makes a policy that runs the policy network `net` on at most `rows` rows. `net` and the
 * arrays of bounds in `spec` must outlive the policy. Returns owned. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dpg_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_dpg_settings *settings,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file (onnx.h). The file's model reads
 * observations of the environment. Its output "outputs" is u, from -1 to 1, and "actions" is u
 * scaled to the bounds of the environment.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_dpg_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_dpg_settings *settings,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
