/* SPDX-License-Identifier: Apache-2.0 */
/* Ape-X (Horgan et al. 2018): many actors, one replay, one learner, one evaluator.
 *
 * The parts share nothing but the tables of the replay, which they use through clients:
 *
 *   actor i     --items with priorities-->  "replay"     --batches-->     learner
 *   learner     --priorities, trimming-->   "replay"
 *   learner     --parameters-->             "variables"  --parameters-->  actors, evaluator
 *   learner     --its state-->              "snapshot"   --its state-->   a learner that
 * restarts
 *
 * So the parts may be threads of one process on a store, or processes on the hosts of a cluster
 * with servers between them. They can be started in any order; each makes the tables that are
 * missing. A part that loses the replay waits until it is back, and says so; what an actor had
 * written and the replay had not confirmed is sent again.
 *
 *   rp_apex_new(NULL, &options, &apex, &err);
 *   rp_apex_start(apex, RP_APEX_LEARNER, 0, &err);
 *   rp_apex_start(apex, RP_APEX_ACTOR, i, &err);          for each i
 *   rp_apex_start(apex, RP_APEX_EVALUATOR, 0, &err);
 *   while (rp_apex_wait(apex, 200, &done, &err) == RP_OK && !done) ... rp_apex_get_parts() ...
 *   rp_apex_free(apex);
 *
 * Any thread may make any call but rp_apex_free(). */
#ifndef REPRISE_RL_APEX_H
#define REPRISE_RL_APEX_H

#include "reprise/rl/actor.h"
#include "reprise/rl/evaluator.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"
#include "reprise/rl/run_log.h"

RP_BEGIN_DECLS

/* What a half is made of. Borrowed for one call, except that the client must outlive the half.
 */
typedef struct rp_apex_making {
    const rp_allocator *alloc;
    const void *settings;    /* of the algorithm */
    const rp_env_spec *spec; /* of the environment */
    rp_client *client;
    int64_t index, actors; /* which actor, of how many */
    rp_pcg64 *rng;         /* to copy (actor) or draw from (learner) */
} rp_apex_making;

/* An algorithm that Ape-X can run: two halves that go together. */
typedef struct rp_apex_algorithm {
    const char *name; /* "dqn" */
    /* The environments of one actor. */
    size_t (*copies)(const void *settings);
    /* Fills in the options of the table "replay"; max_size is the soft limit. The caller drops
     * the signature. */
    rp_status (*table)(const rp_apex_making *making, rp_table_options *out, rp_error *err);
    rp_status (*new_actor)(const rp_apex_making *making, rp_wait wait, rp_actor **out,
                           rp_error *err);
    rp_status (*new_learner)(const rp_apex_making *making, rp_learner **out, rp_error *err);
    /* A policy that needs no learner. */
    rp_status (*new_policy)(const rp_apex_making *making, size_t rows, rp_policy **out,
                            rp_error *err);
} rp_apex_algorithm;

/* DQN; its settings are rp_dqn_settings (dqn.h), with the copies of one actor. */
RP_API const rp_apex_algorithm *rp_apex_dqn(void);
/* DPG; its settings are rp_dpg_settings (dpg.h), with the copies of one actor. */
RP_API const rp_apex_algorithm *rp_apex_dpg(void);
/* SAC; its settings are rp_sac_settings (sac.h), with the copies of one actor. */
RP_API const rp_apex_algorithm *rp_apex_sac(void);
/* The algorithm of this name: "dqn", "dpg" or "sac". NULL if there is none. */
RP_API const rp_apex_algorithm *rp_apex_find(const char *name);

/* Zero-initialise it; fields marked * must be set. Pointers are borrowed until the program is
 * freed. */
typedef struct rp_apex_options {
    const rp_apex_algorithm *algorithm; /* * */
    const void *settings;               /* * of the algorithm */
    const rp_env_class *env_class;      /* * */
    rp_client *client;                  /* * of a store of this process, or of servers */
    rp_client *home; /* of the one server that has parameters and snapshots; needed if `client`
                        has shards. NULL: `client` */
    int64_t actors;  /* * of the whole program, 1 to RP_APEX_MAX_ACTORS */
    int64_t most_actors; /* that rp_apex_set_actors() may ask for; 0: `actors` */
    uint64_t seed;
    int64_t max_steps;  /* items that the learner has seen arrive, after which it ends; 0: no
                           end */
    bool keep_going;    /* the evaluator does not end when the task is solved */
    int64_t pull_every; /* steps of an actor between its pulls of parameters; 0: 400 */
    /* Of all threads of the learner: */
    int64_t publish_every; /* updates between publications of parameters; 0: 50 */
    int64_t trim_every;    /* updates between removals of what is over the soft limit; 0: 100 */
    int64_t save_every;    /* updates between snapshots of the learner; 0: 2,000 */
    int64_t eval_episodes; /* 0: 20 */
    int64_t confirm_episodes; /* of parameters that pass; 0: 300 */
    double threshold;         /* mean return at which the task is solved; 0: that of the
                                 environment. NaN: none */
    int64_t patience_ms;      /* how long a part waits for a replay that is away; 0: 300,000 */
    int64_t tend_ms;          /* between the learner's looks whether others have written
                                 parameters; 0: 2,000 */
} rp_apex_options;

enum { RP_APEX_MAX_ACTORS = 4096 };

typedef enum rp_apex_role {
    RP_APEX_LEARNER = 0,
    RP_APEX_ACTOR,
    RP_APEX_EVALUATOR
} rp_apex_role;

/* "learner", "actor" or "evaluator". Static. */
RP_API const char *rp_apex_role_name(rp_apex_role role);

typedef struct rp_apex rp_apex;

/* Makes a program without parts. Returns owned. RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_apex_new(const rp_allocator *alloc,
                                          const rp_apex_options *options, rp_apex **out,
                                          rp_error *err);
/* Stops the parts, waits for their threads, and frees everything. NULL is fine. */
RP_API void rp_apex_free(rp_apex *apex);

/* Starts a part on a thread of its own; `index` is that of an actor, else 0. A part may be
 * started once. RP_INVALID, RP_EXISTS, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_apex_start(rp_apex *apex, rp_apex_role role, int64_t index,
                                            rp_error *err);

/* Changes the number of actors of a program that has all of them in this process, 1 to
 * most_actors: starts those that are missing, and asks those with the largest indices to leave.
 * They write the items that they have to the replay first, which may wait for the learner; this
 * call does not. The others explore as members of the new group from their next pull of
 * parameters on. RP_INVALID, RP_NO_RESOURCE: there are fewer actors than that. */
RP_API RP_NODISCARD rp_status rp_apex_set_actors(rp_apex *apex, int64_t actors, rp_error *err);

/* Changes the number of threads that share the updates of the learner of this process, from its
 * next update on. If it cannot have that number, it keeps the one that it has, and its part
 * says so. */
RP_API void rp_apex_set_learners(rp_apex *apex, int64_t learners);

/* Asks all parts to end: within one step, update or call to the replay. */
RP_API void rp_apex_stop(rp_apex *apex);

/* Waits for at most `ms` milliseconds until something ends the program: the learner reached
 * max_steps, the evaluator found the task solved, a part failed (its status is returned, and
 * the text names the part), or rp_apex_stop(). `*done` says whether it has ended; the parts are
 * asked to end then. */
RP_API RP_NODISCARD rp_status rp_apex_wait(rp_apex *apex, int64_t ms, bool *done,
                                           rp_error *err);

/* A part at one moment. Numbers that a part does not have are 0, or NaN if they are doubles. */
typedef struct rp_apex_part {
    rp_apex_role role;
    int64_t index;
    bool has_ended;
    bool has_left;       /* actor: rp_apex_set_actors() has made do without it */
    char waits_for[160]; /* "" while it works */
    char trouble[160];   /* what fails although the part goes on; "": nothing */
    double wait_share;   /* share of its time that it has waited since the last call, 0 to 1 */
    int64_t version;     /* of the parameters: published, used, or evaluated last */
    int64_t learner_steps; /* items that the learner had seen arrive when it published them */
    int64_t steps;         /* actor: of its environments */
    int64_t items;         /* actor: written, at its latest pull of parameters */
    int64_t episodes;      /* actor: finished; evaluator: evaluations */
    double mean_return, mean_length; /* actor: of its latest 100 episodes; evaluator: of the
                                        latest evaluation */
    double exploration;              /* actor */
    rp_agent_metrics metrics;        /* learner: means of its latest updates */
    int64_t threads;     /* learner: as rp_apex_set_learners() asked for; 0: it has not */
    int64_t shards_away; /* learner: shards without the table, or not reached */
    bool is_solved;      /* evaluator */
    rp_verdict verdict;  /* evaluator: the latest; version 0: none yet */
    rp_verdict solution; /* evaluator: the first that found the task solved */
} rp_apex_part;

/* Writes the parts of this process, in the order in which they were started: at most
 * `capacity`. Returns their number. */
RP_API size_t rp_apex_get_parts(rp_apex *apex, rp_apex_part *out, size_t capacity);

/* Sums up parts: the progress of a run (run_log.h) since the program was made. `last` is the
 * progress before, or NULL; rates are since then. What these parts do not know is NaN. */
RP_API rp_run_progress rp_apex_progress(const rp_apex *apex, const rp_apex_part *parts,
                                        size_t count, const rp_run_progress *last);

/* Copies the parameters that solved the task, or else the latest that this process has seen.
 * Returns false if there are none. `count` must be rp_apex_parameter_count(). */
RP_API bool rp_apex_get_parameters(rp_apex *apex, rp_real *out, size_t count);
RP_API size_t rp_apex_parameter_count(const rp_apex *apex);

/* The mean return at which the task is solved; NaN: none. */
RP_API double rp_apex_get_threshold(const rp_apex *apex);

RP_END_DECLS

#endif
