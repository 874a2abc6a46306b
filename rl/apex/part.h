/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of an Ape-X program (reprise/rl/apex.h), struct rp_apex, and what the loops of
 * all roles share: stopping, waiting, reporting what they wait for, and retrying when the
 * replay cannot be reached.
 *
 * A part of the program is the learner, the evaluator or one actor. The replay is the server,
 * or the shards, with the tables that the parts share. Such a server is "away" while calls to
 * it fail.
 *
 * Each part has its own thread, which runs the loop of its role. Other threads read only the
 * fields that the program's mutex guards. */
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
    RP_SLICE_MS = 500,   /* a part that has waited for so long reports what it waits for */
    RP_CALL_MS = 5000,   /* the longest wait for the response to one call */
    RP_UNFIT_MS = 10000, /* how long a part without parameters waits for usable ones */
};

typedef struct rp_part {
    rp_apex *apex;
    rp_apex_role role;
    int64_t index;
    pthread_t thread;
    bool has_thread;
    /* Only the part's own thread uses these: */
    int64_t worked_ns; /* when the part last made progress */
    int64_t unfit_ns;  /* since when the parameters in the table cannot be used; 0: they can */
    rp_error unfit;    /* why they cannot be used */
    bool has_params;   /* the part has fetched parameters of this program */
    /* An actor whose calls fail because the replay is away starts again: that is a new life. */
    int64_t earlier_steps, earlier_episodes, earlier_items; /* sums over the earlier lives */
    uint32_t lives;                                         /* number of lives so far */
    /* Called again and again while the part waits for other parts; may be NULL. */
    rp_status (*tend)(void *ctx, rp_error *err);
    void *tend_ctx;
    atomic_bool is_leaving; /* this actor is asked to end. Set under the program's mutex */
    /* The program's mutex guards these: */
    rp_apex_part state;
    int64_t wait_began_ns; /* 0: the part is not waiting */
    int64_t waited_ns;     /* time spent in finished waits since `counted_ns` */
    int64_t counted_ns;    /* time of the last rp_apex_get_parts() */
} rp_part;

struct rp_apex {
    rp_allocator alloc;
    rp_apex_options options; /* with defaults filled in */
    rp_env *env;             /* a single environment, made to get the spec of the task */
    size_t parameter_count;
    int64_t began_ns;
    rp_cancel *cancel; /* ends the waits of all parts when they have to end */
    atomic_bool is_stopping;
    atomic_llong actors;   /* number of actors now; their indices are below it */
    atomic_llong learners; /* wanted number of learner threads; 0: that of the settings */
    pthread_mutex_t mu;
    pthread_cond_t cv; /* signalled when is_stopping, is_leaving or is_done changes */
    /* `mu` guards these: */
    rp_part **parts; /* room for all actors, the learner and the evaluator */
    size_t part_count, part_room;
    bool is_done; /* a part has ended the program */
    rp_status status;
    rp_error error;
    rp_real *params; /* the ones that solved the task, or else the latest ones */
    bool has_params, is_solved;
};

/* The loops of the roles. Each returns RP_OK when the program stops or the role's work is done,
 * or another status when it fails. */
RP_NODISCARD rp_status rp_apex_learner_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_actor_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_evaluator_loop(rp_part *part, rp_error *err);

/* True if the part has to end: the program stops, or the part is_leaving. */
bool rp_part_is_stopping(const rp_part *part);
/* True if the part, an actor, is asked to end while the program goes on. */
bool rp_part_is_leaving(const rp_part *part);
/* Returns a wait of at most `ms` milliseconds that ends early when the program stops. */
rp_wait rp_part_wait(const rp_part *part, int64_t ms);
/* Sleeps for `ms` milliseconds, or until the part has to end. */
void rp_part_sleep(rp_part *part, int64_t ms);

/* Record that the part waits from now on, for what the text says, or that it works again. */
void rp_part_waits(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rp_part_works(rp_part *part);

/* Records a problem that does not stop the part. An empty text means that it is solved. */
void rp_part_trouble(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fetches the parameters in the table "variables" into `params` if they are newer. Waits for at
 * most `ms` milliseconds. Other programs can write to the table too. If the parameters there do
 * not fit this program, the part records that as its trouble, `got->changed` is false, and the
 * part keeps its parameters until the learner publishes again. Returns RP_CORRUPT if the part
 * has no parameters and those in the table have not fitted for RP_UNFIT_MS: they are of other
 * settings. */
RP_NODISCARD rp_status rp_part_pull(rp_part *part, rp_variable_client *variables,
                                    rp_real *params, int64_t ms, rp_variables *got,
                                    rp_error *err);

/* Lock and unlock the program's mutex. The first returns part->state, whose numbers
 * rp_apex_get_parts() reports. */
rp_apex_part *rp_part_lock(rp_part *part);
void rp_part_unlock(rp_part *part);

/* True if calls that fail with `st` will succeed once the replay can be reached again. */
bool rp_part_is_away(rp_status st);

/* False once the part has made no progress for the program's patience_ms. */
bool rp_part_is_patient(const rp_part *part);

/* Calls live() and retries it, with growing pauses, while it fails because the replay is away.
 * The part waits from the beginning, until live() calls rp_part_works() or rp_part_waits().
 * Returns the status of live() if that is RP_OK or another failure, RP_OK if the part has to
 * end, and RP_UNAVAILABLE once the part has made no progress for the program's patience_ms. */
RP_NODISCARD rp_status rp_part_outlive(rp_part *part,
                                       rp_status (*live)(void *ctx, rp_error *err), void *ctx,
                                       rp_error *err);

/* Returns the seed of a part's random numbers. The parts get independent seeds. `part` is one
 * of these constants; for actor i and its environments, the constant plus i. */
enum { RP_SEED_LEARNER, RP_SEED_EVALUATOR, RP_SEED_ACTOR, RP_SEED_ENVS = 1 << 16 };
uint64_t rp_apex_seed(const rp_apex *apex, uint32_t part);

/* Return the arguments with which the algorithm makes its half of this part (the actor or the
 * learner), and its table. The first has the number of actors now, the second most_actors. */
rp_apex_making rp_part_making(const rp_part *part, rp_pcg64 *rng);
rp_apex_making rp_part_table_making(const rp_part *part);
/* Returns the number of actors now, but at least part->index + 1: an actor that is about to
 * leave still counts itself. */
int64_t rp_part_actors(const rp_part *part);

/* Keeps the parameters of the learner or the evaluator for rp_apex_get_parameters(). Parameters
 * that solved the task are never replaced. Others from the evaluator are ignored if this
 * process has a learner, because the learner's are newer. */
void rp_part_keep(rp_part *part, const rp_real *params, bool is_solved);

/* The state of the table "replay": sums over all shards that can be reached. */
typedef struct rp_replay_view {
    int64_t *inserts_of; /* inserts of each shard; -1: the shard is away or has no such table.
                            NULL: the caller does not need them */
    int64_t size, max_size, inserts, samples;
    int64_t min_size; /* sum of the min_size of the rate limiters */
    double samples_per_insert;
    bool is_short;   /* a shard has fewer items than its limiter's min_size */
    uint32_t paused; /* RP_SIDE_... flags of what is paused on any shard */
} rp_replay_view;

/* Makes the table "replay" if it does not exist. RP_PRECONDITION: it exists, with items that
 * are not of this program. */
RP_NODISCARD rp_status rp_apex_make_table(rp_part *part, rp_error *err);
/* Reads the state of the table. The caller must set out->inserts_of. Returns RP_NOT_FOUND, or a
 * status of the client. */
RP_NODISCARD rp_status rp_apex_look(rp_part *part, rp_replay_view *out, rp_error *err);
/* Called when a wait for the replay has timed out: finds out which other parts this one waits
 * for, and records that with rp_part_waits(). Returns RP_DEADLINE if the part should go on
 * waiting. Returns RP_NOT_FOUND if the table is gone, RP_UNAVAILABLE if the replay has been
 * away for too long, and RP_CANCELLED if the program stops. */
RP_NODISCARD rp_status rp_apex_explain(rp_part *part, rp_error *err);
/* Computes the max_diff with which actors call rp_apex_is_ahead(). */
RP_NODISCARD rp_status rp_apex_max_diff(const rp_part *part, double *out, rp_error *err);
/* True if the learner or actor has to wait to keep the ratio of samples to inserts. With
 * several shards, their rate limiters cannot enforce that ratio, so the parts do. Always false
 * with one. */
bool rp_apex_is_ahead(const rp_part *part, const rp_replay_view *view, double max_diff);
/* Waits while rp_apex_is_ahead(), and calls part->tend meanwhile. *view is then the latest
 * state of the table. Returns a status of rp_apex_look() or part->tend. */
RP_NODISCARD rp_status rp_apex_pace(rp_part *part, rp_replay_view *view, double max_diff,
                                    rp_error *err);
/* Removes the items above the table's soft limit, if there are any. The soft limit is the
 * capacity in the settings. A table without this program's signature keeps its items and its
 * own limit. RP_PRECONDITION: it is the table of another program. */
RP_NODISCARD rp_status rp_apex_trim(rp_part *part, const rp_replay_view *view, rp_error *err);

#endif
