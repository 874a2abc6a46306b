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
 * limiter decides when an update is due. All of this runs on the caller's thread. If the
 * setting `learners` is over 1, there are further threads that learn. If `async_learners` is
 * false, runs with the same settings, seed and observations are equal bit by bit.
 *
 * The agent consists of an actor (actor.h) and a learner (learner.h). A program can also use
 * each of them alone, for example in processes of their own. They then have only a replay and
 * the parameters in common.
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

/* All settings. rp_dqn_settings_init() fills in the defaults, or the values that solve an
 * environment (docs/agents/dqn.md). dqn_settings.h lists the defaults and bounds. */
typedef struct rp_dqn_settings {
    int64_t copies;      /* parallel environments, stepped as one group */
    int64_t hidden;      /* units of a hidden layer */
    int64_t layers;      /* hidden layers, after the convolutions if observations are images */
    bool dueling;        /* see above */
    bool double_q;       /* see above */
    int64_t n_step;      /* rewards in a target */
    double discount;     /* discount per step */
    double reward_scale; /* rewards are multiplied by this */
    bool rmsprop;        /* true: centred RMSProp with a decay of .95; false: Adam */
    double rate;         /* learning rate */
    double adam_epsilon; /* epsilon of the optimizer */
    double max_norm;     /* gradients are clipped to this norm; 0: no clipping */
    double huber;        /* Huber loss, linear beyond this error; 0: squared error */
    int64_t batch;       /* items in a batch */
    int64_t steps_per_update; /* items inserted per update */
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* most items in the replay */
    bool prioritized;         /* true: sample by TD error; false: sample uniformly */
    double priority_exponent; /* exponent of priorities, alpha */
    double weight_exponent;   /* exponent of importance weights, beta */
    int64_t target_every;     /* updates between two updates of the target network */
    double target_rate;       /* target += target_rate * (online - target); 1: copy */
    bool ladder;              /* true: environment i of N always explores with the epsilon
                                 .4^(1 + 7 i / (N - 1)) (Horgan et al. 2018); false: epsilon
                                 falls linearly from epsilon_first to epsilon_last */
    double epsilon_first, epsilon_last;
    int64_t epsilon_steps; /* environment steps until epsilon_last is reached */
    double max_loss;       /* a loss over this means that the run has diverged */
    int64_t learners;      /* learner threads. They work together on each batch, unless
                              async_learners is set */
    bool async_learners;   /* each learner draws its own batches, and applies its gradients as
                              soon as they are computed. Runs are then not reproducible. Has no
                              effect with one learner */
} rp_dqn_settings;

enum { RP_DQN_SETTINGS = 29 };

/* Returns the settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_dqn_settings_table(void);

/* These call rp_settings_init() and rp_settings_check() (settings.h) with that table. */
RP_API void rp_dqn_settings_init(rp_dqn_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_dqn_settings_check(const rp_dqn_settings *settings,
                                                    rp_error *err);

/* The arguments of rp_dqn_new(). The store and the client must outlive the agent. */
typedef struct rp_dqn_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* of the environment; copied; its bounds are not used */
    rp_store *store;   /* the table "replay" is added if it is missing in the store */
    rp_client *client; /* a client of that store */
    uint64_t seed;     /* of the initial parameters and of exploration */
} rp_dqn_options;

/* Makes an agent. `alloc` NULL means rp_allocator_default(). Returns owned.
 * RP_INVALID (a bad setting, or an environment whose actions are not discrete), RP_NO_RESOURCE,
 * or a status of the store. */
RP_API RP_NODISCARD rp_status rp_dqn_new(const rp_allocator *alloc,
                                         const rp_dqn_options *options, rp_agent **out,
                                         rp_error *err);

/* The arguments of rp_dqn_actor_new(). The client and `priority` must outlive the actor. */
typedef struct rp_dqn_actor_options {
    const rp_dqn_settings *settings; /* copied; `copies` is the number of this actor's
                                        environments */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;               /* of a server or a store that has the table "replay" */
    /* The position of this actor's environments on the ladder of epsilons. All actors together
     * have all_copies environments, of which this actor's are numbered from first_copy on.
     * all_copies 0 means that there is no other actor. If there is only one environment in all,
     * it draws its epsilon anew for each episode, from a ladder of eight. */
    int64_t first_copy, all_copies;
    /* The initial priority of items, read whenever an item is made. NULL: the priority is the
     * absolute TD error by the actor's own Q-values. */
    const double *priority;
    bool settled;         /* true: items are in the table when observe() returns. Needs a client
                             of a store in this process */
    size_t max_in_flight; /* observe() waits while one environment has more unconfirmed items
                             than this; 0: 1,000 */
    const rp_pcg64 *rng;  /* the random stream of exploration; copied */
} rp_dqn_actor_options;

/* Makes the actor of a DQN agent. `wait` limits the wait for the signature of the table.
 * Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_dqn_actor_new(const rp_allocator *alloc,
                                               const rp_dqn_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* The arguments of rp_dqn_learner_new(). The client must outlive the learner. */
typedef struct rp_dqn_learner_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses: batches are drawn from its table on
                          the caller's thread. NULL: a sampler of the client prefetches them */
    size_t mutate_for; /* send the priorities of this many updates in one call; 0: 1 */
    rp_pcg64 *rng;     /* draws the initial parameters; the call advances it */
} rp_dqn_learner_options;

/* Makes the learner of a DQN agent. If `store` is NULL, the table may be created later. Returns
 * owned.
 * RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_dqn_learner_new(const rp_allocator *alloc,
                                                 const rp_dqn_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay". Its rate limiter keeps the ratio of samples to
 * inserts, not counting the first `start` inserts, at batch / steps_per_update. There may be
 * more or fewer samples than this, by at most one batch, plus the samples for n_step inserts of
 * each environment, plus `slack`. The name in the options is static. The caller must release
 * the signature with rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_table(const rp_dqn_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Makes the network that these settings define, for example to load parameters (safetensors.h)
 * or to export them. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_net(const rp_allocator *alloc,
                                             const rp_dqn_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);

/* Makes a policy that runs `net`, made by rp_dqn_new_net(), on at most `rows` rows. Borrows
 * `net` until the policy is freed; copies `spec`. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes `net`, made by rp_dqn_new_net(), and its parameters to an ONNX file (onnx.h). The
 * file's model reads observations of the environment. Its output "outputs" has the values of
 * the actions, and "actions" the greedy actions.
 * RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_dqn_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
