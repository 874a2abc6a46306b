/* SPDX-License-Identifier: Apache-2.0 */
/* Ape-X (Horgan et al. 2018): distributed training with many actors, one replay, one learner
 * and one evaluator.
 *
 * The actors, the learner and the evaluator are called parts. They communicate only through the
 * tables of the replay, which they use through clients:
 *
 *   actor i     --items with priorities-->  "replay"     --batches-->     learner
 *   learner     --priorities, trimming-->   "replay"
 *   learner     --parameters-->             "variables"  --parameters-->  actors, evaluator
 *   learner     --its state-->              "snapshot"   --its state-->   restarted learner
 *
 * The parts can therefore be threads of one process that share a store, or processes on several
 * hosts that use servers. An rp_apex runs the parts of one process: those that rp_apex_start()
 * has started. Below, an rp_apex is called a program. The parts can be started in any order,
 * because each part makes the tables that are missing. A part that cannot reach the replay
 * waits until the replay is back, and reports the wait in rp_apex_part.waits_for. After the
 * wait an actor sends its unconfirmed items again. An item is unconfirmed until the table has
 * accepted it.
 *
 *   rp_apex_new(NULL, &options, &apex, &err);
 *   rp_apex_start(apex, RP_APEX_LEARNER, 0, &err);
 *   rp_apex_start(apex, RP_APEX_ACTOR, i, &err);          for each i
 *   rp_apex_start(apex, RP_APEX_EVALUATOR, 0, &err);
 *   while (rp_apex_wait(apex, 200, &done, &err) == RP_OK && !done) ... rp_apex_get_parts() ...
 *   rp_apex_free(apex);
 *
 * Any thread may call any function except rp_apex_free(), which must be the last call. */
#ifndef REPRISE_RL_APEX_H
#define REPRISE_RL_APEX_H

#include "reprise/rl/actor.h"
#include "reprise/rl/evaluator.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/run_log.h"

RP_BEGIN_DECLS

/* The arguments to make an actor, a learner or a policy. The client must outlive the object.
 * The other pointers are borrowed for one call. */
typedef struct rp_apex_making {
    const rp_allocator *alloc;
    const void *settings;    /* the settings struct of the algorithm, for example
                                rp_dqn_settings */
    const rp_env_spec *spec; /* specification of the environment */
    rp_client *client;
    int64_t index, actors; /* index: that of the actor to make, from 0 on. actors: number of
                              actors in all processes */
    rp_pcg64 *rng;         /* a new actor copies the generator; a new learner draws its initial
                              parameters from it */
} rp_apex_making;

/* An algorithm that Ape-X can run: its actor and its learner. */
typedef struct rp_apex_algorithm {
    const char *name; /* name of the algorithm, for example "dqn" */
    /* Returns the number of parallel environments of one actor. */
    size_t (*copies)(const void *settings);
    /* Fills in the options of the table "replay". The max_size in these options is a soft
     * limit: the table is allowed to exceed it until the learner removes the excess items (see
     * trim_every below). The caller must release the signature. */
    rp_status (*table)(const rp_apex_making *making, rp_table_options *out, rp_error *err);
    rp_status (*new_actor)(const rp_apex_making *making, rp_wait wait, rp_actor **out,
                           rp_error *err);
    rp_status (*new_learner)(const rp_apex_making *making, rp_learner **out, rp_error *err);
    /* Makes a policy for a part that has no learner, such as the evaluator. */
    rp_status (*new_policy)(const rp_apex_making *making, size_t rows, rp_policy **out,
                            rp_error *err);
} rp_apex_algorithm;

/* Return the algorithms. Their settings are rp_dqn_settings (dqn.h), rp_dpg_settings (dpg.h)
 * and rp_sac_settings (sac.h). The setting `copies` is the number of environments of one
 * actor. */
RP_API const rp_apex_algorithm *rp_apex_dqn(void);
RP_API const rp_apex_algorithm *rp_apex_dpg(void);
RP_API const rp_apex_algorithm *rp_apex_sac(void);
/* Returns the algorithm named `name`: "dqn", "dpg" or "sac". Returns NULL for other names. */
RP_API const rp_apex_algorithm *rp_apex_find(const char *name);

/* Zero-initialise the struct. Fields whose comment begins with * must be set. Pointers are
 * borrowed until rp_apex_free(). */
typedef struct rp_apex_options {
    const rp_apex_algorithm *algorithm; /* * */
    const void *settings;               /* * settings struct of the algorithm */
    const rp_env_class *env_class;      /* * */
    rp_client *client;   /* * a client of a store in this process, or of servers */
    rp_client *home;     /* a client of the one server that has the tables "variables" and
                            "snapshot". It must be set if the table "replay" is spread over
                            several servers (shards), which `client` then uses. NULL:
                            `client` */
    int64_t actors;      /* * number of actors of all processes, 1 to RP_APEX_MAX_ACTORS */
    int64_t most_actors; /* largest argument of rp_apex_set_actors(); 0: `actors` */
    uint64_t seed;
    int64_t max_steps;  /* the learner ends when this many items have been inserted; 0: never */
    bool keep_going;    /* true: the program continues after the evaluator has found the task
                           solved */
    bool has_threshold; /* true: a threshold of 0 is 0 */
    int64_t pull_every; /* steps that all environments of an actor make between two fetches of
                           parameters; 0: 400 */
    /* The next three fields are numbers of updates, summed over all threads of the learner. */
    int64_t publish_every;    /* updates between two publications of parameters; 0: 50 */
    int64_t trim_every;       /* updates between two checks of the size of "replay". A check
                                 removes the items over the soft limit; 0: 100 */
    int64_t save_every;       /* updates between two snapshots of the learner; 0: 2,000 */
    int64_t eval_episodes;    /* episodes of an evaluation; 0: 20 */
    int64_t confirm_episodes; /* episodes of the second evaluation, which confirms a first one
                                 that reached the threshold; 0: 300 */
    double threshold;         /* mean return at which the task is solved. 0 without
                                 has_threshold: the value of the environment; NaN: the task is
                                 never solved */
    int64_t patience_ms;      /* a part fails if it has not reached the replay for this time; 0:
                                 300,000 */
    int64_t tend_ms;          /* the learner checks from time to time that the table "variables"
                                 still has its latest parameters, and publishes them again if
                                 not. tend_ms is the least time between two checks; 0: 2,000 */
} rp_apex_options;

enum { RP_APEX_MAX_ACTORS = 4096 };

typedef enum rp_apex_role {
    RP_APEX_LEARNER = 0,
    RP_APEX_ACTOR,
    RP_APEX_EVALUATOR
} rp_apex_role;

/* Returns "learner", "actor" or "evaluator". Static. */
RP_API const char *rp_apex_role_name(rp_apex_role role);

typedef struct rp_apex rp_apex;

/* Makes a program without parts. Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_apex_new(const rp_allocator *alloc,
                                          const rp_apex_options *options, rp_apex **out,
                                          rp_error *err);
/* Stops all parts, waits for their threads, and frees the program. NULL is fine. */
RP_API void rp_apex_free(rp_apex *apex);

/* Starts a part on a thread of its own. `index` is the index of an actor; for the other roles
 * it must be 0. Errors: RP_INVALID, RP_EXISTS (the part was started before), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_apex_start(rp_apex *apex, rp_apex_role role, int64_t index,
                                            rp_error *err);

/* Changes the number of actors to `actors`, which must be from 1 to most_actors. All actors
 * must be in this process. Starts the actors that are missing, or asks those with the largest
 * indices to leave, without waiting for them. Before an actor leaves, it writes its remaining
 * items to the replay. If the rate limiter of the replay delays these items, the actor waits
 * until the learner has drawn enough samples. The other actors adapt their exploration to the
 * new number at their next fetch of parameters. Errors: RP_INVALID, RP_NO_RESOURCE (not all
 * missing actors could be started). */
RP_API RP_NODISCARD rp_status rp_apex_set_actors(rp_apex *apex, int64_t actors, rp_error *err);

/* Changes the number of threads that compute the updates of the learner in this process, from
 * its next update on. If the learner cannot use the new number, it keeps the old one and says
 * so in rp_apex_part.trouble. */
RP_API void rp_apex_set_learners(rp_apex *apex, int64_t learners);

/* Asks all parts to end. Each part ends after its current step, its current update or its
 * current call to the replay. */
RP_API void rp_apex_stop(rp_apex *apex);

/* Waits at most `ms` milliseconds for the end of the program. Sets `*done` to true if the
 * program has ended; at this point all parts have been asked to end. The program ends when the
 * learner has reached max_steps, when a part fails, or when rp_apex_stop() was called. If
 * keep_going is false, it also ends when the evaluator finds the task solved. If a part has
 * failed, returns its status, and the text of the error names the part. */
RP_API RP_NODISCARD rp_status rp_apex_wait(rp_apex *apex, int64_t ms, bool *done,
                                           rp_error *err);

/* The state of a part at one moment. If a comment begins with the name of a role, only parts of
 * this role have the field; for other roles the field is 0, or NaN if it is a double. */
typedef struct rp_apex_part {
    rp_apex_role role;
    int64_t index;
    bool has_ended;
    bool has_left;       /* actor: it has left because rp_apex_set_actors() lowered the number
                            of actors */
    char waits_for[160]; /* what the part waits for; "" while it works */
    char trouble[160];   /* a problem with which the part continues to work; "": none */
    double wait_share;   /* fraction of the time since the last rp_apex_get_parts() during which
                            the part has waited, 0 to 1 */
    int64_t version;     /* version (variables.h) of the latest parameters that the learner
                            published, the actor uses, or the evaluator evaluated */
    int64_t learner_steps; /* items inserted when the learner published these parameters */
    int64_t steps;         /* actor: steps of its environments */
    int64_t items;         /* actor: items written, at its latest fetch of parameters */
    int64_t episodes;      /* actor: finished episodes; evaluator: evaluations */
    double mean_return, mean_length; /* actor: means over its latest 100 episodes; evaluator:
                                        means of the latest evaluation */
    double exploration;              /* actor: rp_actor.exploration */
    rp_agent_metrics metrics;        /* learner: means over its latest updates */
    int64_t threads;     /* learner: number of threads that rp_apex_set_learners() has set; 0:
                            rp_apex_set_learners() was not called, or the learner refused the
                            number */
    int64_t shards_away; /* learner: number of shards that cannot be reached or have no table
                            "replay" */
    bool is_solved;      /* evaluator: it has found the task solved */
    rp_verdict verdict;  /* evaluator: the latest verdict; version 0: none yet */
    rp_verdict solution; /* evaluator: the first verdict that found the task solved */
} rp_apex_part;

/* Writes the states of the parts of this process to `out`, in the order in which the parts were
 * started, but at most `capacity` states. Returns the number of states written. */
RP_API size_t rp_apex_get_parts(rp_apex *apex, rp_apex_part *out, size_t capacity);

/* Computes the progress of the run (run_log.h) from the states of `count` parts. `last` is the
 * previous progress: rates are over the time since then. If `last` is NULL, rates are over the
 * time since rp_apex_new(). Numbers that these parts do not know are NaN. */
RP_API rp_run_progress rp_apex_progress(const rp_apex *apex, const rp_apex_part *parts,
                                        size_t count, const rp_run_progress *last);

/* Copies the parameters that solved the task to `out`. If the task is not solved, copies the
 * latest parameters that this process has published or has fetched for an evaluation. Returns
 * false if there are none. `count` must be rp_apex_parameter_count(). */
RP_API bool rp_apex_get_parameters(rp_apex *apex, rp_real *out, size_t count);
RP_API size_t rp_apex_parameter_count(const rp_apex *apex);

/* Returns the mean return at which the task is solved; NaN: it is never solved. */
RP_API double rp_apex_get_threshold(const rp_apex *apex);

RP_END_DECLS

#endif
