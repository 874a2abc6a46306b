/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of an Ape-X program (struct rp_apex of reprise/rl/apex.h), and functions that
 * the loops of all roles use: to stop, to wait, to report the reason of a wait, and to retry
 * when the replay cannot be reached.
 *
 * A part of the program is the learner, the evaluator or one actor. The replay is the server,
 * or the servers (shards), with the tables that the parts share. The replay is called away
 * while calls to it fail because it cannot be reached or has lost a table.
 *
 * Each part has its own thread, which runs the loop of its role. Other threads read only the
 * fields of the part that the program's mutex guards, and the atomic field is_leaving. */
#ifndef RP_APEX_PART_H
#define RP_APEX_PART_H

#include <pthread.h>
#include <stdatomic.h>

#include "reprise/rl/apex.h"
#include "reprise/rl/variables.h"

/* Names of tables: the items of the actors, and the parameters that the learner publishes. */
#define RP_APEX_REPLAY "replay"
#define RP_APEX_VARIABLES "variables"
enum {
    RP_SLICE_MS = 500,   /* after this time in a wait, a part finds out what it waits for and
                            reports it */
    RP_CALL_MS = 5000,   /* the longest wait for the response to one request */
    RP_UNFIT_MS = 10000, /* how long a part that has no parameters waits for usable ones before
                            it fails */
};

typedef struct rp_part {
    rp_apex *apex;
    rp_apex_role role;
    int64_t index;
    pthread_t thread;
    bool has_thread;
    /* Only the part's own thread uses the next fields, up to `tend_ctx`: */
    int64_t worked_ns; /* when the part last made progress */
    int64_t unfit_ns;  /* when the parameters in the table became unusable; 0: they can be
                          used */
    rp_error unfit;    /* why they cannot be used */
    bool has_params;   /* the part has fetched parameters of this program */
    /* If the calls of an actor fail because the replay is away, the loop makes a new rp_actor.
     * The time for which one rp_actor is used is called a life of the part. */
    int64_t earlier_steps, earlier_episodes, earlier_items; /* sums over the earlier lives */
    uint32_t lives;                                         /* number of lives so far */
    /* The part's own thread calls tend() repeatedly while the part waits for other parts; may
     * be NULL. */
    rp_status (*tend)(void *ctx, rp_error *err);
    void *tend_ctx;
    atomic_bool is_leaving; /* true: this actor is asked to end. Written only while the
                               program's mutex is held */
    /* The program's mutex guards the remaining fields: */
    rp_apex_part state;
    int64_t wait_began_ns; /* 0: the part is not waiting */
    int64_t waited_ns;     /* time spent in waits that have ended, since counted_ns */
    int64_t counted_ns;    /* time of the last rp_apex_get_parts() */
} rp_part;

struct rp_apex {
    rp_allocator alloc;
    rp_apex_options options; /* with defaults filled in */
    rp_env *env;             /* a single environment, which is needed only for the specification
                                of the task */
    size_t parameter_count;
    int64_t began_ns;
    rp_cancel *cancel; /* ends the waits of all parts when the program stops */
    atomic_bool is_stopping;
    atomic_llong actors;   /* current number of actors, whose indices are below this number */
    atomic_llong learners; /* requested number of learner threads; 0: the number in the
                              settings */
    pthread_mutex_t mu;
    pthread_cond_t cv; /* signalled when is_stopping, is_leaving or is_done changes */
    /* `mu` guards the remaining fields: */
    rp_part **parts; /* array with room for all actors, the learner and the evaluator */
    size_t part_count, part_room;
    bool is_done; /* a part has ended the program */
    rp_status status;
    rp_error error;
    rp_real *params; /* the parameters that solved the task, or else the latest ones */
    bool has_params, is_solved;
};

/* The loops of the roles. Each returns RP_OK if the program stops or the work of the role is
 * done, or another status if the part fails. */
RP_NODISCARD rp_status rp_apex_learner_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_actor_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_evaluator_loop(rp_part *part, rp_error *err);

/* Returns true if the part has to end: the program stops, or is_leaving is set. */
bool rp_part_is_stopping(const rp_part *part);
/* Returns true if the part is an actor that has to end while the program continues. */
bool rp_part_is_leaving(const rp_part *part);
/* Returns a wait of at most `ms` milliseconds that ends early when the program stops. */
rp_wait rp_part_wait(const rp_part *part, int64_t ms);
/* Sleeps for `ms` milliseconds, or until the part has to end. */
void rp_part_sleep(rp_part *part, int64_t ms);

/* rp_part_waits() records that the part waits from now on; the text says for what.
 * rp_part_works() records that the part works again. */
void rp_part_waits(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rp_part_works(rp_part *part);

/* Records a problem that does not stop the part. An empty text means that there is no problem
 * any more. */
void rp_part_trouble(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* If the parameters in the table "variables" have changed, fetches them into `params`. Waits
 * for at most `ms` milliseconds. Other programs can write to the table, too. If the parameters
 * in the table do not fit this program, the function records this with rp_part_trouble() and
 * sets `got->changed` to false. The caller must then keep using its old parameters until the
 * learner publishes again. Errors: RP_CORRUPT (the part has no parameters, and those in the
 * table have not fitted for RP_UNFIT_MS, because they belong to other settings), or a status of
 * the client. */
RP_NODISCARD rp_status rp_part_pull(rp_part *part, rp_variable_client *variables,
                                    rp_real *params, int64_t ms, rp_variables *got,
                                    rp_error *err);

/* Lock and unlock the program's mutex. rp_part_lock() returns part->state, which
 * rp_apex_get_parts() reports. */
rp_apex_part *rp_part_lock(rp_part *part);
void rp_part_unlock(rp_part *part);

/* Returns true if a call that has failed with `st` will succeed once the replay is back. */
bool rp_part_is_away(rp_status st);

/* Returns false if the part has made no progress for more than the option patience_ms of the
 * program. */
bool rp_part_is_patient(const rp_part *part);

/* Calls live(), and calls it again after growing pauses while it fails because the replay is
 * away. Calls rp_part_waits() first; live() must call rp_part_works() when the part begins to
 * work. Returns RP_OK if live() returns RP_OK or the part has to end. If live() fails for
 * another reason, returns its status. Returns RP_UNAVAILABLE if the part has made no progress
 * for more than the option patience_ms of the program. */
RP_NODISCARD rp_status rp_part_outlive(rp_part *part,
                                       rp_status (*live)(void *ctx, rp_error *err), void *ctx,
                                       rp_error *err);

/* Returns a seed for random numbers of a part. Different values of `part` give independent
 * seeds. `part` is RP_SEED_LEARNER, RP_SEED_EVALUATOR, RP_SEED_ACTOR + i for actor i, or
 * RP_SEED_ENVS + i for the environments of actor i. */
enum { RP_SEED_LEARNER, RP_SEED_EVALUATOR, RP_SEED_ACTOR, RP_SEED_ENVS = 1 << 16 };
uint64_t rp_apex_seed(const rp_apex *apex, uint32_t part);

/* Return arguments for the functions of the algorithm (rp_apex_algorithm). rp_part_making() is
 * for new_actor(), new_learner() and new_policy(): its field `actors` is the current number of
 * actors. rp_part_table_making() is for table(): its field `actors` is the option
 * most_actors. */
rp_apex_making rp_part_making(const rp_part *part, rp_pcg64 *rng);
rp_apex_making rp_part_table_making(const rp_part *part);
/* Returns the current number of actors, but at least part->index + 1, because an actor that is
 * about to leave still counts itself. */
int64_t rp_part_actors(const rp_part *part);

/* Keeps parameters of the learner or the evaluator for rp_apex_get_parameters(). Parameters
 * that solved the task are never replaced. If `is_solved` is false, parameters from the
 * evaluator are ignored if this process has a learner, because the learner's parameters are
 * newer. */
void rp_part_keep(rp_part *part, const rp_real *params, bool is_solved);

/* The state of the table "replay": sums over all shards that can be reached. */
typedef struct rp_replay_view {
    int64_t *inserts_of; /* inserts of each shard; -1: the shard is away or has no such table.
                            NULL: the caller does not need them */
    int64_t size, max_size, inserts, samples;
    int64_t min_size; /* sum of the min_size of the rate limiters: the items that a table needs
                         before it can be sampled */
    double samples_per_insert;
    bool is_short;   /* a shard has fewer items than its limiter's min_size */
    uint32_t paused; /* RP_SIDE_... flags: what is paused (inserts, samples) on at least one
                        shard */
} rp_replay_view;

/* Makes the table "replay" if it does not exist. Errors: RP_PRECONDITION (the table exists, but
 * its signature shows that it belongs to another program; see rp_check_tables() in
 * error/unfit.h), or a status of the client. */
RP_NODISCARD rp_status rp_apex_make_table(rp_part *part, rp_error *err);
/* Reads the state of the table "replay". Before this call, the caller must set out->inserts_of
 * to an array or to NULL. Errors: RP_NOT_FOUND (no shard has the table), or a status of the
 * client. */
RP_NODISCARD rp_status rp_apex_look(rp_part *part, rp_replay_view *out, rp_error *err);
/* The part calls this function when a wait for the replay has timed out. The function finds out
 * what this part waits for (the learner, the actors, an administrator, or the replay itself),
 * and records the reason with rp_part_waits(). Returns RP_DEADLINE if the part should continue
 * to wait. Returns RP_NOT_FOUND if the table does not exist any more, RP_UNAVAILABLE if the
 * replay has been away for too long, and RP_CANCELLED if the program stops. */
RP_NODISCARD rp_status rp_apex_explain(rp_part *part, rp_error *err);
/* Computes the argument max_diff with which actors call rp_apex_is_ahead(). */
RP_NODISCARD rp_status rp_apex_max_diff(const rp_part *part, double *out, rp_error *err);
/* Returns true if this part, the learner or an actor, has to wait so that the ratio of samples
 * to inserts is kept. With several shards, the rate limiters of the shards cannot enforce this
 * ratio, so the parts enforce it. With one shard, always returns false. */
bool rp_apex_is_ahead(const rp_part *part, const rp_replay_view *view, double max_diff);
/* Waits while rp_apex_is_ahead() returns true, but not longer than until the part has to end.
 * During the wait, calls part->tend repeatedly. Sets *view to the latest state of the table.
 * Errors: those of rp_apex_look() and of part->tend. */
RP_NODISCARD rp_status rp_apex_pace(rp_part *part, rp_replay_view *view, double max_diff,
                                    rp_error *err);
/* If the table has more items than its soft limit, removes the excess. The soft limit is the
 * capacity in the settings. A table without a signature is left as it is, because it possibly
 * belongs to another program. Errors: RP_PRECONDITION (the table belongs to another program),
 * or a status of the client. */
RP_NODISCARD rp_status rp_apex_trim(rp_part *part, const rp_replay_view *view, rp_error *err);

#endif
