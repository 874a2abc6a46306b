/* SPDX-License-Identifier: Apache-2.0 */
/* DQN (Mnih et al. 2015) for environments with discrete actions, with the improvements that are
 * worth their lines, each of them an option:
 *
 *   double_q      the online network picks the next action, the target network rates it (van
 *                 Hasselt et al. 2016)
 *   dueling       one stream for the value of a state, one for the advantages of the actions
 *                 (Wang et al. 2016)
 *   n_step        targets of n rewards and one estimate (Sutton 1988)
 *   prioritized   sampling by TD error, with importance weights (Schaul et al. 2016)
 *
 * The agent writes items through an adder (adder.h) into a table of a store of this process,
 * samples batches from the table, and sets priorities in it. The table's rate limiter decides
 * when an update is due. All of this is on the caller's thread, except that several `learners`
 * have threads of their own. Unless learners are asynchronous, the result of the agent
 * depends only on the settings, the seed and the observations: two runs are equal bit by bit.
 *
 * The two halves of the agent can be used alone, also in processes of their own: an actor
 * (actor.h) and a learner (learner.h) that share nothing but a replay and parameters. The agent
 * is both of them on one store.
 *
 * docs/agents/dqn.md has curves, the command, and the differences from the papers. */
#ifndef REPRISE_RL_DQN_H
#define REPRISE_RL_DQN_H

#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/dqn_settings.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/settings.h"

RP_BEGIN_DECLS

/* Every setting. rp_dqn_settings_init() fills in the defaults, or the values that solve an
 * environment (docs/agents/dqn.md); dqn_settings.h lists them, with bounds. */
typedef struct rp_dqn_settings {
    int64_t copies; /* environments stepped as one group */
    int64_t hidden; /* units of a hidden layer */
    int64_t layers; /* hidden layers, after the convolutions if observations are images */
    bool dueling;
    bool double_q;
    int64_t n_step;
    double discount;     /* of rewards a step later */
    double reward_scale; /* rewards are multiplied by this */
    bool rmsprop;        /* centred RMSProp with a decay of .95; otherwise Adam */
    double rate;         /* of the optimizer */
    double adam_epsilon; /* of the optimizer */
    double max_norm;     /* gradients are scaled down to this norm; 0: never */
    double huber;        /* the loss is linear beyond this error; 0: the square everywhere */
    int64_t batch;       /* items of an update */
    int64_t steps_per_update;
    int64_t start;            /* items in the replay before the first update */
    int64_t capacity;         /* items in the replay */
    bool prioritized;         /* otherwise all items are equally likely */
    double priority_exponent; /* alpha */
    double weight_exponent;   /* beta, of importance weights */
    int64_t target_every;     /* updates between changes of the target network */
    double target_rate;       /* 1: it is replaced; less: it moves by this share */
    bool ladder; /* copy i of N explores with .4^(1 + 7 i / (N - 1)), for ever (Horgan
                    et al. 2018); otherwise all explore by the schedule below */
    double epsilon_first, epsilon_last;
    int64_t epsilon_steps; /* over which epsilon falls from first to last, linearly */
    double max_loss;       /* a loss over this means that the run has diverged */
    int64_t learners;      /* threads that share each update, or, if asynchronous, make updates
                              of their own */
    bool async_learners;   /* each learner draws its own batches, and applies its gradient when
                              it is ready; runs are not reproducible. Not with one learner */
} rp_dqn_settings;

enum { RP_DQN_SETTINGS = 29 };

/* The settings as a table (settings.h). Static. */
RP_API const rp_settings_table *rp_dqn_settings_table(void);

/* rp_settings_init() and rp_settings_check() of that table. */
RP_API void rp_dqn_settings_init(rp_dqn_settings *settings, const char *env_name);
RP_API RP_NODISCARD rp_status rp_dqn_settings_check(const rp_dqn_settings *settings,
                                                    rp_error *err);

/* What an agent works with. All of it is borrowed and must outlive the agent. */
typedef struct rp_dqn_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* of the environment; its bounds are not used */
    rp_store *store;                 /* gets a table "replay", or has it from a snapshot */
    rp_client *client;               /* of that store */
    uint64_t seed;                   /* of parameters and exploration */
} rp_dqn_options;

/* Makes an agent, and its table if the store has none. `alloc` NULL is rp_allocator_default().
 * Returns owned.
 * RP_INVALID (a setting; an environment whose actions are not discrete), RP_NO_RESOURCE, or a
 * status of the store. */
RP_API RP_NODISCARD rp_status rp_dqn_new(const rp_allocator *alloc,
                                         const rp_dqn_options *options, rp_agent **out,
                                         rp_error *err);

/* What an actor works with. The pointers are borrowed; the client must outlive the actor. */
typedef struct rp_dqn_actor_options {
    const rp_dqn_settings *settings; /* copied; its copies are those of this actor */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;               /* of a server or a store that has the table "replay" */
    /* The place of this actor's copies on the ladder of epsilons. All actors together have
     * all_copies copies; those of this actor begin with number first_copy, from 0. all_copies
     * 0: there is no other actor. If there is only one copy in all, it draws its epsilon from a
     * ladder of eight for each episode. */
    int64_t first_copy, all_copies;
    /* The priority of new items, read when an item is made. NULL: the TD error of the actor's
     * own Q-values. */
    const double *priority;
    bool settled;         /* items are in the table when observe() returns */
    size_t max_in_flight; /* items of a copy that may be unconfirmed; 0: 1,000 */
    const rp_pcg64 *rng;  /* copied: the stream of exploration */
} rp_dqn_actor_options;

/* Makes the half that acts. `wait` is for the signature of the table. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_API RP_NODISCARD rp_status rp_dqn_actor_new(const rp_allocator *alloc,
                                               const rp_dqn_actor_options *options,
                                               rp_wait wait, rp_actor **out, rp_error *err);

/* What a learner works with. The pointers are borrowed; the client must outlive the learner. */
typedef struct rp_dqn_learner_options {
    const rp_dqn_settings *settings; /* copied */
    const rp_env_spec *spec;         /* copied */
    rp_client *client;
    rp_store *store;   /* the store that the client uses: batches are drawn from its table on
                          the caller's thread. NULL: a sampler of the client prefetches them */
    size_t mutate_for; /* updates whose priorities are sent in one call; 0: 1 */
    rp_pcg64 *rng; /* draws the initial parameters, which advances it; used by this call only */
} rp_dqn_learner_options;

/* Makes the half that learns. Without a store the table need not exist yet. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_API RP_NODISCARD rp_status rp_dqn_learner_new(const rp_allocator *alloc,
                                                 const rp_dqn_learner_options *options,
                                                 rp_learner **out, rp_error *err);

/* Fills in the options of the table "replay": its rate limiter keeps the number of samples
 * near batch / steps_per_update for each item. The two may differ by the samples for n_step
 * items of each copy, by one batch, and by `slack` samples more. The name is static; the caller
 * drops the signature with rp_signature_unref().
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_table(const rp_dqn_settings *settings,
                                           const rp_env_spec *spec, double slack,
                                           rp_table_options *out, rp_error *err);

/* Makes the network of these settings: to load parameters (safetensors.h), or to export them.
 * Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_net(const rp_allocator *alloc,
                                             const rp_dqn_settings *settings,
                                             const rp_env_spec *spec, rp_net **out,
                                             rp_error *err);

/* Makes a policy of that network for at most `rows` rows. Borrows `net` and `spec` until it is
 * freed. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_dqn_new_policy(const rp_allocator *alloc, const rp_net *net,
                                                const rp_env_spec *spec, size_t rows,
                                                rp_policy **out, rp_error *err);

/* Writes that network and its parameters to an ONNX file (onnx.h) whose observations are those
 * of the environment: "outputs" are the values of the actions, "actions" the greedy ones.
 * RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_dqn_save_onnx(const rp_allocator *alloc, const rp_net *net,
                                               const rp_env_spec *spec, const rp_real *params,
                                               const char *path, rp_error *err);

RP_END_DECLS

#endif
