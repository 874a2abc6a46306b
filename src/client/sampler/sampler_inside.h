/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a sampler (reprise/sampler.h) and its internal functions, for
 *
 *   sampler_calls.c    create and free, threads that wait for samples
 *   sampler_lanes.c    prefetched samples, the order of delivery, requests to sources
 *   sampler_events.c   callbacks of the sources; states of the shards
 *   batch.c            batches; batch_decode.c decodes them
 *   sampler_stack.c    samples that are decoded as they arrive
 *   sampler_timeout.c  the timeout of the rate limiter, where no server applies it
 *
 * A sampler gets samples from sources (source.h), and prefetches them into queues, called
 * lanes. Each shard (server) has a lane; with the option `ordered`, each source has one. A
 * feeder is a source with the lane that it fills.
 *
 *   sources --on_samples--> lanes --take--> callers
 *      ^                      |
 *      +-------- want <-------+  credit: the requested and prefetched samples of a lane never
 *                                exceed max_in_flight times the number of its sources
 *
 * If there is one lane, or if shards take turns without `ordered`, callers get the samples in
 * the order of their arrival. Otherwise, a schedule says from which lane each of the next
 * samples comes. The schedule is drawn in advance from the seeded random generator, as far as
 * the lanes have room. Samples are requested according to the schedule. Therefore servers draw
 * no sample that is not delivered, and the order does not depend on which response arrives
 * first.
 *
 * Invariants, whenever mu is free:
 *   S1  `wanted` of a lane is the sum of `wanted` of its feeders, and wanted + ready <=
 *       capacity. If a source delivers more samples than were requested, the excess is
 *       dropped;
 *   S2  `picks` of a lane is the number of its entries in the schedule, at most `capacity`;
 *   S3  waiters are in order of arrival, and only the first of them takes samples. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H
#define RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H

#include "client/sampler/batch_decode.h"
#include "client/sampler/sampler.h"
#include "util/cancel.h"
#include "util/mutex.h"
#include "util/rng.h"

/* How the sampler chooses the lane of the next sample. */
typedef enum rp_sampler_mode {
    RP_MODE_UNKNOWN, /* not known yet: there are several shards, whose states are not known */
    RP_MODE_ANY,     /* any lane that has a sample, in turns */
    RP_MODE_WEIGHTS, /* by the schedule: shards at random, in proportion to their weights */
    RP_MODE_UNIFORM, /* by the schedule: streams of the only shard, uniformly at random */
    RP_MODE_TURNS,   /* by the schedule: lanes in turns */
} rp_sampler_mode;

/* A source and its requests. */
typedef struct rp_feeder {
    rp_sampler *sampler;
    rp_source *source;
    size_t lane;
    size_t wanted;  /* samples requested but not delivered, including `ask` */
    size_t ask;     /* samples to request when the lock is released */
    bool unreached; /* its server cannot be reached */
} rp_feeder;

/* A queue of prefetched samples. */
typedef struct rp_lane {
    size_t shard;
    size_t first_feeder, feeder_count;
    rp_sample *ring;               /* ring buffer of `capacity` samples */
    size_t capacity, first, ready; /* first: index of the first of `ready` samples */
    size_t wanted;                 /* S1 */
    size_t picks;                  /* S2 */
    size_t unreached;              /* feeders whose server cannot be reached */
    bool gone;                     /* by its latest state, the shard does not have the table */
} rp_lane;

/* An entry of the schedule. */
typedef struct rp_lane_pick {
    size_t lane;
    double share; /* probability with which the lane's shard was picked */
} rp_lane_pick;

/* Samples that a failed call of the sampler had taken. They were given back, and the next call
 * gets them first. */
typedef struct rp_returned rp_returned;
struct rp_returned {
    rp_returned *next;
    size_t capacity, first, count;
    rp_sample samples[];
};

/* A thread that waits for samples. */
typedef struct rp_sampler_waiter rp_sampler_waiter;
struct rp_sampler_waiter {
    rp_sampler *sampler;
    rp_cond cv;
    rp_cancel_link link;
    rp_sampler_waiter *prev, *next;
    size_t lacking; /* if is_direct: number of samples that the thread still needs and has
                       requested */
    bool in_line, cancelled; /* in_line: this is in the queue of waiters */
};

/* The latest response of a server to the question why samples wait. */
typedef struct rp_sampler_reason {
    int64_t asked_ns; /* when the server was asked; 0: never */
    int64_t taken;    /* value of rp_sampler.taken at that time */
    char text[RP_ERROR_TEXT_BYTES];
} rp_sampler_reason;

struct rp_sampler {
    /* These fields are constant: */
    rp_allocator alloc;
    rp_runtime *runtime;
    uint64_t generation; /* of the process that created the sampler */
    rp_sampler_feed feed;
    rp_sampler_options options;
    char *table;
    size_t table_bytes;
    size_t max_in_flight;
    size_t lane_count, feeder_count;
    rp_stack_pool *pool;
    bool is_direct;    /* there is one source, which prefetches nothing: callers draw from it */
    rp_cancel *cancel; /* ends a weighing in progress (rp_sampler_weigh_locked()) */

    rp_mutex mu;   /* lock rank 82 (util/mutex.h) */
    rp_cond quiet; /* signalled when `inside` or `is_weighing` changes */
    rp_lane *lanes RP_GUARDED_BY(mu);
    rp_feeder *feeders RP_GUARDED_BY(mu);
    rp_sampler_mode mode RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    size_t turn RP_GUARDED_BY(mu); /* the next lane, if lanes take turns */
    rp_lane_pick *schedule RP_GUARDED_BY(mu);
    size_t schedule_capacity, schedule_first, schedule_count RP_GUARDED_BY(mu);
    rp_lane_pick next_pick RP_GUARDED_BY(mu); /* if has_next_pick: the next entry, which waits
                                                 until its lane has room */
    bool has_next_pick RP_GUARDED_BY(mu);
    /* The columns of the items that were last decoded into arrays, kept for the next call.
     * NULL: none, or a call uses them. */
    rp_trajectory_column *known RP_GUARDED_BY(mu);
    size_t known_count RP_GUARDED_BY(mu);
    int64_t taken RP_GUARDED_BY(mu); /* samples taken so far, for options.max_samples */
    rp_sampler_reason reason RP_GUARDED_BY(mu);
    rp_returned *returned RP_GUARDED_BY(mu);
    rp_sampler_waiter *first, *last RP_GUARDED_BY(mu);
    size_t inside RP_GUARDED_BY(mu);  /* threads that use the sampler; rp_sampler_free() waits
                                         for them */
    bool is_asking RP_GUARDED_BY(mu); /* a thread counted in `inside` calls want() of the
                                         sources */
    bool started RP_GUARDED_BY(mu);   /* all sources are open */
    bool closed RP_GUARDED_BY(mu);
    rp_status end RP_GUARDED_BY(mu);    /* RP_OK: the sampler has not ended */
    char end_text[RP_ERROR_TEXT_BYTES]; /* guarded by mu */
    /* While calls wait for samples: the time from which the timeout counts. It is the time of
     * the last sample, plus the periods since then in which no call waited. */
    int64_t last_sample_ns RP_GUARDED_BY(mu);
    int64_t waited_ns RP_GUARDED_BY(mu); /* while no call waits: for how long calls have waited
                                            since the last sample */

    /* The questions whether servers respond (sampler_timeout.c): none is asked before probe_ns,
     * and the next goes to the server of lane probe_lane. silent_ns is the time of the first
     * question since a server has responded; 0: none. */
    int64_t probe_ns RP_GUARDED_BY(mu);
    int64_t silent_ns RP_GUARDED_BY(mu);
    size_t probe_lane RP_GUARDED_BY(mu);

    rp_shard_state *states RP_GUARDED_BY(mu);
    rp_shard_state *fresh; /* result of a weighing in progress; only weigh_job uses it */
    rp_job weigh_job;
    bool is_weighing RP_GUARDED_BY(mu);
    bool weighed RP_GUARDED_BY(mu); /* a weighing has succeeded */
    int64_t weighed_at_ns RP_GUARDED_BY(mu);
    size_t picks_since RP_GUARDED_BY(mu); /* lanes picked since the last weighing began */
    char weigh_text[RP_ERROR_TEXT_BYTES]; /* error of the last weighing; guarded by mu */
};

/* Allocates lanes, feeders and the schedule. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sampler_make_lanes(rp_sampler *s, size_t streams, rp_error *err);
/* Releases the samples in the lanes and frees the lanes. May be called after
 * rp_sampler_make_lanes() has failed. */
void rp_sampler_free_lanes(rp_sampler *s);

/* Takes up to `capacity` samples that have arrived. Returns their number. */
size_t rp_sampler_take_locked(rp_sampler *s, rp_sample *out, size_t capacity)
    RP_REQUIRES(s->mu);
/* Returns true if rp_sampler_take_locked() would return a sample. */
bool rp_sampler_has_samples_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* Returns true if the next sample has not arrived and can come from this lane. */
bool rp_sampler_awaits_locked(const rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* Returns true if samples can come from the lane: its shard is the only one, or the shard has
 * the table and at least one source of the lane can be reached. */
bool rp_sampler_is_open_locked(const rp_sampler *s, const rp_lane *lane) RP_REQUIRES(s->mu);
/* Returns true if there is a lane that the schedule can pick. */
bool rp_sampler_can_pick_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* Puts samples into a lane until it has `capacity` samples. Returns how many were put. */
size_t rp_lane_push(rp_lane *lane, const rp_sample *samples, size_t count);
/* Removes from the schedule those entries of the lane whose samples have not arrived. */
void rp_sampler_drop_picks_locked(rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* Subtracts `count` samples, which were delivered or forgotten, from the requests of a
 * feeder. */
void rp_sampler_uncount_locked(rp_sampler *s, rp_feeder *feeder, size_t count)
    RP_REQUIRES(s->mu);
/* Computes how many samples to request, then requests them from the sources. Releases the lock
 * while it calls the sources. */
void rp_sampler_credit_locked(rp_sampler *s) RP_REQUIRES(s->mu);
/* For assertions: returns false if it finds a violation of the invariants S1, S2 or S3. */
bool rp_sampler_is_valid_locked(const rp_sampler *s) RP_REQUIRES(s->mu);

extern const rp_source_events rp_sampler_events; /* the argument `user` is a feeder */

/* A weighing queries the states of the shards. Starts a weighing if one is due. Returns the
 * time at which the next is due. */
int64_t rp_sampler_weigh_locked(rp_sampler *s, int64_t now_ns) RP_REQUIRES(s->mu);
void rp_sampler_run_weighing(rp_job *job);

/* Checks the timeout of the rate limiter where no server does. The caller must be the first in
 * the queue. Returns when to check again; may end the sampler. May release the lock to ask
 * a server whether it responds, not longer than `wait`; then returns a time that has passed. */
int64_t rp_sampler_expire_locked(rp_sampler *s, int64_t now_ns, rp_wait wait)
    RP_REQUIRES(s->mu);

/* Ends the sampler: when the samples that have arrived are taken, all calls return this
 * status. */
void rp_sampler_end_locked(rp_sampler *s, rp_status status, const char *text)
    RP_REQUIRES(s->mu);
/* Wakes the first waiter if a sample can be taken. */
void rp_sampler_wake_locked(rp_sampler *s) RP_REQUIRES(s->mu);
/* Begin and end the use of the sampler by a thread; s->inside counts these threads.
 * rp_sampler_enter_locked() returns false if the sampler is closed. */
bool rp_sampler_enter_locked(rp_sampler *s) RP_REQUIRES(s->mu);
void rp_sampler_leave_locked(rp_sampler *s) RP_REQUIRES(s->mu);

/* Begin and end a call that uses the sampler several times; rp_sampler_free() waits for the end
 * of the call. rp_sampler_begin_call() returns RP_PRECONDITION in the child of a fork, or
 * RP_CANCELLED if the sampler is closed. */
rp_status rp_sampler_begin_call(rp_sampler *s, rp_error *err);
void rp_sampler_end_call(rp_sampler *s);

/* Waits for `least` samples, and takes `least` to `capacity` consecutive samples. Always sets
 * `*count` to the number of samples taken, which after an error can be less than `least`. The
 * caller owns them, even after an error. */
rp_status rp_sampler_fetch(rp_sampler *s, rp_sample *out, size_t least, size_t capacity,
                           size_t *count, rp_wait wait, rp_error *err);
/* Returns true if the sampler has ended, so that no more samples will arrive, but is not
 * closed. */
bool rp_sampler_is_over(rp_sampler *s);
/* Gives samples of rp_sampler_fetch() back to the sampler, for the next call. Takes ownership
 * of `returned`. */
void rp_sampler_return(rp_sampler *s, rp_returned *returned);

/* Returns RP_INVALID if `size` is not a valid number of samples for a batch. */
rp_status rp_batch_check_size(const rp_sampler *s, size_t size, rp_error *err);
/* Checks that a column of item `index` equals that of item 0 in everything except the length.
 * Otherwise returns RP_INVALID, and the error text describes the difference. */
rp_status rp_batch_check_column(size_t index, size_t column, const rp_trajectory_column *own,
                                const rp_trajectory_column *first, rp_error *err);

/* Inserts the name of the table at the beginning of an error text about an item. Returns
 * `st`. */
rp_status rp_batch_name_table(const rp_sampler *s, rp_status st, rp_error *err);

#endif
