/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a sampler, shared by the files that implement it:
 *
 *   sampler_calls.c    create and free, threads that wait for samples
 *   sampler_lanes.c    prefetched samples, the order of delivery, requests to sources
 *   sampler_events.c   callbacks of the sources; states of the shards
 *   batch.c            batches; batch_decode.c: their decoding
 *   sampler_stack.c    samples that are decoded as they arrive
 *
 * Prefetched samples are in lanes: one for each shard, or, with `ordered`, one for each source.
 *
 *   sources --on_samples--> lanes --take--> callers
 *      ^                      |
 *      +-------- want <-------+  credit: the requested and prefetched samples of a lane never
 *                                exceed max_in_flight times the number of its sources
 *
 * With one lane, or if shards take turns without `ordered`, callers get the samples that have
 * arrived. Otherwise a schedule says from which lane each of the next samples comes. It is
 * drawn in advance from the seeded generator, as far as the lanes have room, and samples are
 * requested as they are scheduled. So servers draw no sample that is not delivered, and the
 * order does not depend on which response arrives first.
 *
 * Invariants, whenever mu is free:
 *   S1  `wanted` of a lane is the sum of `wanted` of its feeders, and wanted + ready <=
 *       capacity; samples that a source delivers beyond its requests are dropped;
 *   S2  `picks` of a lane is the number of its entries in the schedule, at most `capacity`;
 *   S3  the queue of waiters is in order of arrival; only the first takes samples. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H
#define RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H

#include "client/sampler/batch_decode.h"
#include "client/sampler/sampler.h"
#include "util/cancel.h"
#include "util/mutex.h"
#include "util/rng.h"

/* How the lane of the next sample is found. */
typedef enum rp_sampler_mode {
    RP_MODE_UNKNOWN, /* several shards whose states are not known yet */
    RP_MODE_ANY,     /* any lane that has a sample, in turns */
    RP_MODE_WEIGHTS, /* scheduled: shards by their weights */
    RP_MODE_UNIFORM, /* scheduled: random streams of one shard */
    RP_MODE_TURNS,   /* scheduled: lanes one after the other */
} rp_sampler_mode;

/* One source. */
typedef struct rp_feeder {
    rp_sampler *sampler;
    rp_source *source;
    size_t lane;
    size_t wanted;  /* samples requested and not delivered, `ask` included */
    size_t ask;     /* samples to request once the lock is released */
    bool unreached; /* its server cannot be reached */
} rp_feeder;

typedef struct rp_lane {
    size_t shard;
    size_t first_feeder, feeder_count;
    rp_sample *ring; /* of `capacity` */
    size_t capacity, first, ready;
    size_t wanted;
    size_t picks;
    size_t unreached; /* feeders whose server cannot be reached */
    bool gone;        /* the shard has no such table, according to its last state */
} rp_lane;

/* An entry of the schedule. */
typedef struct rp_lane_pick {
    size_t lane;
    double share; /* probability with which its shard was picked */
} rp_lane_pick;

/* Samples that a call took and gave back: the next call gets them. */
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
    size_t lacking; /* of a direct sampler: samples that it lacks and has had requested */
    bool in_line, cancelled;
};

/* What a server said last about samples that wait. */
typedef struct rp_sampler_reason {
    int64_t asked_ns; /* 0: never */
    int64_t taken;    /* samples that were taken by then */
    char text[RP_ERROR_TEXT_BYTES];
} rp_sampler_reason;

struct rp_sampler {
    /* constant */
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
    bool is_direct;    /* callers draw from the only source, which is idle while none waits; set
                          before samples are requested */
    rp_cancel *cancel; /* ends a weighing in progress (rp_sampler_weigh_locked()) */

    rp_mutex mu;   /* rank 82 */
    rp_cond quiet; /* signalled when `inside` or `is_weighing` changes */
    rp_lane *lanes RP_GUARDED_BY(mu);
    rp_feeder *feeders RP_GUARDED_BY(mu);
    rp_sampler_mode mode RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    size_t turn RP_GUARDED_BY(mu); /* the lane that comes next */
    rp_lane_pick *schedule RP_GUARDED_BY(mu);
    size_t schedule_capacity, schedule_first, schedule_count RP_GUARDED_BY(mu);
    rp_lane_pick next_pick RP_GUARDED_BY(mu); /* the next entry, whose lane was full */
    bool has_next_pick RP_GUARDED_BY(mu);
    /* The columns of the items of the last stack, for the next one; NULL: none, or in use. */
    rp_trajectory_column *known RP_GUARDED_BY(mu);
    size_t known_count RP_GUARDED_BY(mu);
    int64_t taken RP_GUARDED_BY(mu); /* samples so far, for options.max_samples */
    rp_sampler_reason reason RP_GUARDED_BY(mu);
    rp_returned *returned RP_GUARDED_BY(mu);
    rp_sampler_waiter *first, *last RP_GUARDED_BY(mu);
    size_t inside RP_GUARDED_BY(mu);  /* threads that use the sampler: free waits for them */
    bool is_asking RP_GUARDED_BY(mu); /* one of these threads calls `want` of the sources */
    bool started RP_GUARDED_BY(mu);   /* all sources are open */
    bool closed RP_GUARDED_BY(mu);
    rp_status end RP_GUARDED_BY(mu);    /* RP_OK: not ended */
    char end_text[RP_ERROR_TEXT_BYTES]; /* guarded by mu */
    /* When a sample came or a wait began; times at which no call waited are left out. */
    int64_t last_sample_ns RP_GUARDED_BY(mu);
    int64_t waited_ns RP_GUARDED_BY(mu); /* since a sample came, if no call waits now */

    rp_shard_state *states RP_GUARDED_BY(mu);
    rp_shard_state *fresh; /* used by weigh_job only */
    rp_job weigh_job;
    bool is_weighing RP_GUARDED_BY(mu);
    bool weighed RP_GUARDED_BY(mu); /* a weighing has succeeded */
    int64_t weighed_at_ns RP_GUARDED_BY(mu);
    size_t picks_since RP_GUARDED_BY(mu); /* lanes picked since the last weighing began */
    char weigh_text[RP_ERROR_TEXT_BYTES]; /* error of the last weighing; guarded by mu */
};

/* Allocates lanes, feeders and the schedule. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sampler_make_lanes(rp_sampler *s, size_t streams, rp_error *err);
/* Releases the samples in the lanes and frees the lanes. Works after a failed allocation. */
void rp_sampler_free_lanes(rp_sampler *s);

/* Takes up to `capacity` samples. Returns their number. */
size_t rp_sampler_take_locked(rp_sampler *s, rp_sample *out, size_t capacity)
    RP_REQUIRES(s->mu);
/* Returns true if rp_sampler_take_locked() would give a sample. */
bool rp_sampler_has_samples_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* Returns true if the next sample may come from this lane and has not arrived. */
bool rp_sampler_awaits_locked(const rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* Returns true if samples may come from the lane. */
bool rp_sampler_is_open_locked(const rp_sampler *s, const rp_lane *lane) RP_REQUIRES(s->mu);
/* Returns true if there is a lane to pick. */
bool rp_sampler_can_pick_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* Puts samples into a lane. Returns how many fit. */
size_t rp_lane_push(rp_lane *lane, const rp_sample *samples, size_t count);
/* Removes the lane's entries from the schedule whose samples have not arrived. */
void rp_sampler_drop_picks_locked(rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* Counts samples that were requested of a feeder and were delivered or forgotten. */
void rp_sampler_uncount_locked(rp_sampler *s, rp_feeder *feeder, size_t count)
    RP_REQUIRES(s->mu);
/* Computes how many samples to request and requests them. Releases the lock meanwhile. */
void rp_sampler_credit_locked(rp_sampler *s) RP_REQUIRES(s->mu);
/* Returns true if S1, S2 and S3 hold. */
bool rp_sampler_is_valid_locked(const rp_sampler *s) RP_REQUIRES(s->mu);

extern const rp_source_events rp_sampler_events; /* `user` is a feeder */

/* Starts to query the states of the shards (a weighing) if that is due. Returns the time at
 * which the next weighing is due. */
int64_t rp_sampler_weigh_locked(rp_sampler *s, int64_t now_ns) RP_REQUIRES(s->mu);
void rp_sampler_run_weighing(rp_job *job);

/* Ends the sampler: every later call returns this status. */
void rp_sampler_end_locked(rp_sampler *s, rp_status status, const char *text)
    RP_REQUIRES(s->mu);
/* Wakes the first waiter if there is a sample. */
void rp_sampler_wake_locked(rp_sampler *s) RP_REQUIRES(s->mu);
/* Counts a thread in `inside`. Returns false if the sampler is closed. */
bool rp_sampler_enter_locked(rp_sampler *s) RP_REQUIRES(s->mu);
void rp_sampler_leave_locked(rp_sampler *s) RP_REQUIRES(s->mu);

/* Begin and end a call that uses the sampler more than once: rp_sampler_free() waits for its
 * end.
 * RP_PRECONDITION (in the child of a fork), RP_CANCELLED (closed). */
rp_status rp_sampler_begin_call(rp_sampler *s, rp_error *err);
void rp_sampler_end_call(rp_sampler *s);

/* Waits for and takes `least` to `capacity` consecutive samples. Sets `*count` in every case;
 * the caller owns the `*count` samples, even after an error. */
rp_status rp_sampler_fetch(rp_sampler *s, rp_sample *out, size_t least, size_t capacity,
                           size_t *count, rp_wait wait, rp_error *err);
/* Returns true if the sampler has ended and is not closed: no more samples will arrive. */
bool rp_sampler_is_over(rp_sampler *s);
/* Gives samples of rp_sampler_fetch() back to the sampler: the next call gets them. Takes
 * `returned`. */
void rp_sampler_return(rp_sampler *s, rp_returned *returned);

rp_status rp_batch_check_size(const rp_sampler *s, size_t size, rp_error *err);
/* Compares a column of item `index` with that of item 0 in everything but the length.
 * RP_INVALID, naming the difference. */
rp_status rp_batch_check_column(size_t index, size_t column, const rp_trajectory_column *own,
                                const rp_trajectory_column *first, rp_error *err);

/* Puts the name of the table before a text about an item. Returns `st`. */
rp_status rp_batch_name_table(const rp_sampler *s, rp_status st, rp_error *err);

#endif
