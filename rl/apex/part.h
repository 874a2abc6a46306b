/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a program, and what the loops of all roles need: to stop, to wait, to say what
 * they wait for, and to live on when the replay was away.
 *
 * A loop runs on the thread of its part. Other threads read only `state` and the clock of
 * waiting, which the mutex of the program guards. */
#ifndef RP_APEX_PART_H
#define RP_APEX_PART_H

#include <pthread.h>
#include <stdatomic.h>

#include "reprise/rl/apex.h"
#include "reprise/rl/variables.h"

#define RP_APEX_REPLAY "replay"
#define RP_APEX_VARIABLES "variables"
enum {
    RP_SLICE_MS = 500,   /* of a wait after which a part says what it waits for */
    RP_CALL_MS = 5000,   /* the longest wait for the response to a call */
    RP_UNFIT_MS = 10000, /* how long a part without parameters waits for fit ones */
};

typedef struct rp_part {
    rp_apex *apex;
    rp_apex_role role;
    int64_t index;
    pthread_t thread;
    bool has_thread;
    /* of its own thread: */
    int64_t worked_ns; /* when the part last got on with its work */
    int64_t unfit_ns;  /* since when parameters in the table are of no use; 0: they are not */
    rp_error unfit;    /* why */
    bool has_params;   /* of this program */
    int64_t earlier_steps, earlier_episodes, earlier_items; /* actor: of earlier lives */
    uint32_t lives;                                         /* actor */
    /* Called while the part waits for others; NULL: nothing is to be done. */
    rp_status (*tend)(void *ctx, rp_error *err);
    void *tend_ctx;
    atomic_bool is_leaving; /* actor: it is asked to. Set under the program's mutex */
    /* guarded by the program's mutex: */
    rp_apex_part state;
    int64_t wait_began_ns; /* 0: it does not wait */
    int64_t waited_ns;     /* finished waits since `counted_ns` */
    int64_t counted_ns;    /* when somebody last asked */
} rp_part;

struct rp_apex {
    rp_allocator alloc;
    rp_apex_options options; /* with defaults filled in */
    rp_env *env;             /* one copy, for its spec */
    size_t parameter_count;
    int64_t began_ns;
    rp_cancel *cancel; /* fired when the parts have to end */
    atomic_bool is_stopping;
    atomic_llong actors;   /* now: those whose indices are below it */
    atomic_llong learners; /* that are wanted; 0: as the settings have it */
    pthread_mutex_t mu;
    pthread_cond_t cv; /* signalled when is_stopping, is_leaving or is_done changes */
    /* guarded by mu: */
    rp_part **parts; /* room for all actors, the learner and the evaluator */
    size_t part_count, part_room;
    bool is_done; /* a part has ended the program */
    rp_status status;
    rp_error error;
    rp_real *params; /* those that solved the task, or else the latest */
    bool has_params, is_solved;
};

/* Loops of the roles. They return when the program stops (RP_OK), when their work is over
 * (RP_OK), or when they fail. */
RP_NODISCARD rp_status rp_apex_learner_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_actor_loop(rp_part *part, rp_error *err);
RP_NODISCARD rp_status rp_apex_evaluator_loop(rp_part *part, rp_error *err);

/* The part has to end: the program stops, or the part is asked to leave. */
bool rp_part_is_stopping(const rp_part *part);
bool rp_part_is_leaving(const rp_part *part);
/* A wait of at most `ms` milliseconds that ends when the program stops. */
rp_wait rp_part_wait(const rp_part *part, int64_t ms);
/* Sleeps for `ms` milliseconds, or until the program stops. */
void rp_part_sleep(rp_part *part, int64_t ms);

/* The part waits, from now on, for what the format says; or it works again. */
void rp_part_waits(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void rp_part_works(rp_part *part);

/* Something fails, or is wrong, although the part goes on; "": not any more. */
void rp_part_trouble(rp_part *part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fetches newer parameters, if there are any, into `params`. Those in the table may be of no
 * use: others can write to it. Then the part says so, `got->changed` is false, and the part
 * keeps what it has until the learner publishes again. RP_CORRUPT: it has none, and those in
 * the table have been of no use for RP_UNFIT_MS; they are of other settings. */
RP_NODISCARD rp_status rp_part_pull(rp_part *part, rp_variable_client *variables,
                                    rp_real *params, int64_t ms, rp_variables *got,
                                    rp_error *err);

/* Sums for rp_apex_get_parts(): call between rp_part_lock() and rp_part_unlock(). */
rp_apex_part *rp_part_lock(rp_part *part);
void rp_part_unlock(rp_part *part);

/* True for failures of calls that pass when the replay is back. */
bool rp_part_is_away(rp_status st);

/* False once the part has not got on for the patience of the program. */
bool rp_part_is_patient(const rp_part *part);

/* Calls live(), again and again, until it succeeds, fails for another reason than that the
 * replay is away, or the program stops. Waits longer after each failure in a row. Returns the
 * failure once the part has not worked for the patience of the program. */
RP_NODISCARD rp_status rp_part_outlive(rp_part *part,
                                       rp_status (*live)(void *ctx, rp_error *err), void *ctx,
                                       rp_error *err);

/* Seeds for the parts of a program, which are independent of each other. */
enum { RP_SEED_LEARNER, RP_SEED_EVALUATOR, RP_SEED_ACTOR, RP_SEED_ENVS = 1 << 16 };
uint64_t rp_apex_seed(const rp_apex *apex, uint32_t part);

/* What halves of this part are made of, with the number of actors now; and what the table is
 * made of, which has room for the most. */
rp_apex_making rp_part_making(const rp_part *part, rp_pcg64 *rng);
rp_apex_making rp_part_table_making(const rp_part *part);
/* The number of actors now, at least so many that the part is one. */
int64_t rp_part_actors(const rp_part *part);

/* Keeps parameters for rp_apex_get_parameters(). Those of an evaluator that do not solve the
 * task count only if this process has no learner, whose parameters are newer. */
void rp_part_keep(rp_part *part, const rp_real *params, bool is_solved);

/* The table "replay" of all shards that can be reached together. */
typedef struct rp_replay_view {
    int64_t *inserts_of; /* of each shard, -1: it is away, or has no table. NULL: not wanted */
    int64_t size, max_size, inserts, samples;
    int64_t min_size; /* of the limiters */
    double samples_per_insert;
    bool is_short;   /* a shard has fewer items than the min_size of its limiter */
    uint32_t paused; /* RP_SIDE_..., of any shard */
} rp_replay_view;

/* Makes the table "replay" if it does not exist. */
RP_NODISCARD rp_status rp_apex_make_table(rp_part *part, rp_error *err);
/* Reads its state. The caller sets out->inserts_of. RP_NOT_FOUND, or a status of the client. */
RP_NODISCARD rp_status rp_apex_look(rp_part *part, rp_replay_view *out, rp_error *err);
/* Says who holds the part up, after a wait for the replay has ended. Returns RP_DEADLINE if the
 * part should wait on, or else why not: RP_NOT_FOUND (the table is gone), RP_UNAVAILABLE (the
 * replay has been away for too long), RP_CANCELLED. */
RP_NODISCARD rp_status rp_apex_explain(rp_part *part, rp_error *err);
/* The max_diff of actors for rp_apex_is_ahead(). */
RP_NODISCARD rp_status rp_apex_max_diff(const rp_part *part, double *out, rp_error *err);
/* True if the learner or the actor has to wait because no limiter of several shards makes it
 * wait. */
bool rp_apex_is_ahead(const rp_part *part, const rp_replay_view *view, double max_diff);
/* Waits while the part is ahead, and calls part->tend; then *view is the last look. A status of
 * rp_apex_look(). */
RP_NODISCARD rp_status rp_apex_pace(rp_part *part, rp_replay_view *view, double max_diff,
                                    rp_error *err);
/* Removes the items over the soft limit, if there are any. */
RP_NODISCARD rp_status rp_apex_trim(rp_part *part, const rp_replay_view *view, rp_error *err);

#endif
