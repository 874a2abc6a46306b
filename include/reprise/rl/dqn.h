/* SPDX-License-Identifier: Apache-2.0 */
/* DQN (Mnih et al. 2015) for environments with discrete actions, with four well-known
 * improvements. Each is a setting:
 *
 *   double_q      the online network selects the next action, and the target network evaluates
 *                 it (van Hasselt et al. 2016)
 *   dueling       one stream for the value of a state, one for the advantages of the actions
 *                 (Wang et al. 2016)
 *   n_step        targets of n rewards and one bootstrapped value (Sutton 1988)
 *   prioritized   sampling by TD error, with importance weights (Schaul et al. 2016)
 *
 * The agent writes items through an adder (adder.h) to the table "replay" of a store in this
 * process, samples batches from the table, and updates their priorities. The table's rate
 * limiter decides when an update is due. The agent runs on the caller's thread; if the setting
 * `learners` is over 1, it has further threads that learn. Unless `async_learners` is set, runs
 * with the same settings, seed and observations give the same bits.
 *
 * The agent consists of an actor (actor.h) and a learner (learner.h). A program can also make
 * an actor or a learner alone, for example to run them in different processes. The actor and
 * the learner share only the table "replay" and the parameters.
 *
 * docs/agents/dqn.md has learning curves, the command that made them, and the differences from
 * the papers. */
#ifndef REPRISE_RL_DQN_H
#define REPRISE_RL_DQN_H

#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/dqn_settings.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/settings.h"

RP_BEGIN_DECLS

/* All settings. rp_dqn_settings_init() fills in the defaults; for some environments it fills in
 * values that solve them (docs/agents/dqn.md). dqn_settings.h lists the defaults and bounds. */
typedef struct rp_dqn_settings {
    int64_t copies;      /* parallel environments, stepped as one group */
    int64_t hidden;      /* units of a hidden layer */
    int64_t layers;      /* hidden layers, after the convolutions if observations are images */
    bool dueling;        /* see above */
    bool double_q;       /* see above */
    int64_t n_step;      /* number of rewards in a target, n */
    double discount;     /* discount per step */
    double reward_scale; /* rewards are multiplied by this */
    bool rmsprop;        /* true: centred RMSProp with a decay of .95; false: Adam */
    double rate;         /* learning rate */
    double adam_epsilon; /* epsilon of the optimizer */
    double max_norm;     /* gradients are clipped to this norm; 0: no clipping */
    double huber;        /* the loss is a Huber loss, which is linear beyond this error; 0:
                            squared error */
    int64_t batch;       /* items in a batch */
    int64_t steps_per_update; /* items inserted for each update */
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* most items in the replay */
    bool prioritized;         /* true: sample by TD error; false: sample uniformly */
    double priority_exponent; /* alpha, the exponent of priorities */
    double weight_exponent;   /* beta, the exponent of importance weights */
    int64_t target_every;     /* updates between two updates of the target network */
    double target_rate;       /* an update moves the target network by target_rate * (online -
                                 target); 1: copies the online network */
    bool ladder;              /* true: environment i of N always explores with the epsilon
                                 0.4^(1 + 7 i / (N - 1)) (Horgan et al. 2018); these values are
                                 called the ladder. false: epsilon falls linearly from
                                 epsilon_first to epsilon_last */
    double epsilon_first, epsilon_last;
    int64_t epsilon_steps; /* steps of all environments together until epsilon_last is
                              reached */
    double max_loss;       /* if the loss of an update is over this bound, the run has diverged
                              and ends */
    int64_t learners;      /* number of learner threads. They work together on each batch,
                              unless async_learners is set */
    bool async_learners;   /* true: each learner thread draws its own batches, and applies its
                              gradients as soon as they are computed. Such runs are not
                              reproducible. Has no effect with one learner */
} rp_dqn_settings;

/* The number of settings (dqn_settings.h). */
enum { RP_DQN_SETTINGS = 29 };

/* Returns the settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_dqn_settings_table(void);

/* These two functions call rp_settings_init() and rp_settings_check() (settings.h) with the
 * table of DQN. */
RP_API void rp_dqn_settings_init(rp_dqn_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_dqn_settings_check(const rp_dqn_settings *settings,
                                                    rp_error *err);

/* The arguments of rp_dqn_new(). The store and the client must outlive the agent. */
typedef struct rp_dqn_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* specification of the environment; copied, except for the
                                        arrays of bounds, which are not used */
    rp_store *store;   /* the table "replay" is added if it is missing in the store */
    rp_client *client; /* a client of that store */
    uint64_t seed;     /* seed of the initial parameters and of exploration */
} rp_dqn_options;

/* Makes an agent. `alloc` NULL means rp_allocator_default(). Returns owned.
 * Errors: RP_INVALID (a bad setting, or an environment whose actions are not discrete),
 * RP_NO_RESOURCE, or a status of the store. */
RP_API RP_NODISCARD rp_status rp_dqn_new(const rp_allocator *alloc,
                                         const rp_dqn_options *options, rp_agent **out,
                                         rp_error *err);

/* The arguments of rp_dqn_actor_new(). The client and `priority` must outlive the actor. */
typedef struct rp_dqn_actor_options {
    const rp_dqn_settings *settings; /* copied; `copies` is the number of this actor's
                                        environments */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;               /* a client of a server or a store that has the table
                                        "replay" */
    /* With `ladder`: the position of this actor's environments on the ladder of epsilons. All
     * actors together have all_copies environments, and those of this actor have the indices
     * from first_copy on. all_copies 0 means that there is no other actor. If all actors
     * together have only one environment, the actor draws the epsilon of each episode from the
     * ladder of N = 8. */
    int64_t first_copy, all_copies;
    /* Points to the initial priority of items, which the actor reads whenever it makes an item.
     * NULL: the initial priority is the absolute TD error, computed with the actor's
     * parameters, plus a small constant. */
    const double *priority;
    bool settled;         /* true: the new items are in the table when observe() returns. Needs
                             a client of a store in this process */
    size_t max_in_flight; /* observe() waits while the environments have, on average, more
                             unconfirmed items (not yet accepted by the table) than this; 0:
                             1,000 */
    const rp_pcg64 *rng;  /* the random stream of exploration; copied */
} rp_dqn_actor_options;

/* Makes the actor of a DQN agent. `wait` limits the wait for the signature of the table.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_dqn_actor_new(const rp_allocator *alloc,
                                               const rp_dqn_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* The arguments of rp_dqn_learner_new(). The client must outlive the learner. */
typedef struct rp_dqn_learner_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses; batches are then drawn from its table
                          on the caller's thread. NULL: a sampler of the client
                          (reprise/sampler.h) prefetches batches */
    size_t mutate_for; /* number of updates whose new priorities are sent in one request; 0: 1.
                          Has no effect if `store` is set */
    rp_pcg64 *rng;     /* the generator of the initial parameters; rp_dqn_learner_new() advances
                          it */
} rp_dqn_learner_options;

/* Makes the learner of a DQN agent. If `store` is NULL, the table "replay" need not exist yet.
 * Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_dqn_learner_new(const rp_allocator *alloc,
                                                 const rp_dqn_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay". Its rate limiter keeps the number of samples near
 * batch / steps_per_update times the number of inserts after the first `start`. The limiter
 * tolerates a difference of `slack` samples, plus one batch, plus the samples for n_step
 * inserts of each environment. The name in the options is static. The caller must release the
 * signature with rp_signature_unref().
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_table(const rp_dqn_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Makes the network that these settings define, for example to load parameters (safetensors.h)
 * or to export them. Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_net(const rp_allocator *alloc,
                                             const rp_dqn_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);

/* Makes a policy that runs `net`, made by rp_dqn_new_net(), on at most `rows` rows. Borrows
 * `net` until the policy is freed; copies `spec`. Returns owned. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes `net`, made by rp_dqn_new_net(), and its parameters to an ONNX file (onnx.h). The
 * file's model reads observations of the environment. Its output "outputs" has the value of
 * each action, and its output "actions" has the action with the largest value.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_dqn_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
