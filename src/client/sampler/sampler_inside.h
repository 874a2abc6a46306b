/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a sampler, shared by the files that implement it:
 *
 *   sampler.c          birth and death, threads that wait for samples
 *   sampler_lanes.c    samples that have come, which is handed out next, what is asked for
 *   sampler_events.c   what sources tell; what is known of the shards
 *   batch.c            batches; batch_decode.c: how they are decoded
 *   sampler_stack.c    samples that are decoded as they come
 *
 * Samples wait in lanes: one for each shard, or, if the order counts, one for each source.
 *
 *   sources --on_samples--> lanes --take--> callers
 *      ^                      |
 *      +-------- want <-------+  credit: what is under way and what lies in a lane together
 *                                never exceed max_in_flight for each of its sources
 *
 * With one lane, or if shards take turns in no strict order, whatever has come is handed out.
 * Otherwise a schedule says from which lane each of the next samples will come. It is drawn
 * ahead, from the seeded generator, as far as the lanes have room; samples are asked for as
 * they are scheduled. So no more are drawn than are handed out, and the order does not depend
 * on who answers first.
 *
 * Invariants, whenever mu is free:
 *   S1  a lane's wanted is the sum of its feeders', and wanted + ready <= capacity, unless a
 *       source gives more than was wanted: that is dropped;
 *   S2  a lane's picks is the number of its entries in the schedule, <= capacity;
 *   S3  the line of waiters is in order of arrival; only the first of it takes samples. */
#ifndef RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H
#define RP_CLIENT_SAMPLER_SAMPLER_INSIDE_H

#include "client/sampler/batch_decode.h"
#include "client/sampler/sampler.h"
#include "util/cancel.h"
#include "util/mutex.h"
#include "util/rng.h"

/* How the lane of the next sample is found. */
typedef enum rp_sampler_mode {
    RP_MODE_UNKNOWN, /* several shards, none of which has told what it has */
    RP_MODE_ANY,     /* any lane that has a sample, in turns */
    RP_MODE_WEIGHTS, /* scheduled: shards by their weights */
    RP_MODE_UNIFORM, /* scheduled: streams of one shard, by chance */
    RP_MODE_TURNS,   /* scheduled: one after the other */
} rp_sampler_mode;

/* One source. */
typedef struct rp_feeder {
    rp_sampler *sampler;
    rp_source *source;
    size_t lane;
    size_t wanted; /* and not come yet; what is to be asked for included */
    size_t ask;    /* to be asked for once the lock is left */
    bool unreached;
} rp_feeder;

typedef struct rp_lane {
    size_t shard;
    size_t first_feeder, feeder_count;
    rp_sample *ring; /* of `capacity` */
    size_t capacity, first, ready;
    size_t wanted;
    size_t picks;
    size_t unreached; /* feeders */
    bool gone;        /* the table is: until the shard is weighed again */
} rp_lane;

/* An entry of the schedule. */
typedef struct rp_lane_pick {
    size_t lane;
    double share; /* with which its shard was picked */
} rp_lane_pick;

/* Samples that a call took and could not make use of. */
typedef struct rp_returned rp_returned;
struct rp_returned {
    rp_returned *next;
    size_t capacity, first, count;
    rp_sample samples[];
};

/* A thread that waits. */
typedef struct rp_sampler_waiter rp_sampler_waiter;
struct rp_sampler_waiter {
    rp_sampler *sampler;
    rp_cond cv;
    rp_cancel_link link;
    rp_sampler_waiter *prev, *next;
    bool in_line, cancelled;
};

struct rp_sampler {
    /* fixed at birth */
    rp_allocator alloc;
    rp_runtime *runtime;
    uint64_t generation; /* of the process that made it */
    rp_sampler_feed feed;
    rp_sampler_options options;
    char *table;
    size_t table_bytes;
    size_t max_in_flight;
    size_t lane_count, feeder_count;
    rp_stack_pool *pool;
    rp_cancel *cancel; /* ends a weighing */

    rp_mutex mu;   /* rank 82 */
    rp_cond quiet; /* inside or weighing has ended */
    rp_lane *lanes RP_GUARDED_BY(mu);
    rp_feeder *feeders RP_GUARDED_BY(mu);
    rp_sampler_mode mode RP_GUARDED_BY(mu);
    rp_rng rng RP_GUARDED_BY(mu);
    size_t turn RP_GUARDED_BY(mu); /* the lane that comes next */
    rp_lane_pick *schedule RP_GUARDED_BY(mu);
    size_t schedule_capacity, schedule_first, schedule_count RP_GUARDED_BY(mu);
    rp_lane_pick next_pick RP_GUARDED_BY(mu); /* whose lane was full */
    bool has_next_pick RP_GUARDED_BY(mu);
    int64_t taken RP_GUARDED_BY(mu);
    rp_returned *returned RP_GUARDED_BY(mu);
    rp_sampler_waiter *first, *last RP_GUARDED_BY(mu);
    size_t inside RP_GUARDED_BY(mu);  /* threads that will come back to this memory */
    bool is_asking RP_GUARDED_BY(mu); /* one of them calls `want` */
    bool started RP_GUARDED_BY(mu);   /* all sources are open */
    bool closed RP_GUARDED_BY(mu);
    rp_status end RP_GUARDED_BY(mu);          /* RP_OK: it goes on */
    char end_text[RP_ERROR_TEXT_BYTES];       /* guarded by mu */
    int64_t last_sample_ns RP_GUARDED_BY(mu); /* when it came, or somebody began to wait */

    rp_shard_state *states RP_GUARDED_BY(mu);
    rp_shard_state *fresh; /* the weighing's */
    rp_job weigh_job;
    bool is_weighing RP_GUARDED_BY(mu);
    bool weighed RP_GUARDED_BY(mu); /* at least once */
    int64_t weighed_at_ns RP_GUARDED_BY(mu);
    size_t picks_since RP_GUARDED_BY(mu);
    char weigh_text[RP_ERROR_TEXT_BYTES]; /* why the last one failed; guarded by mu */
};

/* Makes lanes, feeders and the schedule. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sampler_make_lanes(rp_sampler *s, size_t streams, rp_error *err);
void rp_sampler_free_lanes(rp_sampler *s); /* lets go of what is in them; NULLs are fine */

/* Hands out up to `capacity` samples. */
size_t rp_sampler_take_locked(rp_sampler *s, rp_sample *out, size_t capacity)
    RP_REQUIRES(s->mu);
/* True if the next call would hand out something. */
bool rp_sampler_has_samples_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* True if the next sample can come from this lane, and has not. */
bool rp_sampler_awaits_locked(const rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* True if a sample may come from it. */
bool rp_sampler_is_open_locked(const rp_sampler *s, const rp_lane *lane) RP_REQUIRES(s->mu);
/* True if there is a lane to pick. */
bool rp_sampler_can_pick_locked(const rp_sampler *s) RP_REQUIRES(s->mu);
/* Puts samples into a lane; returns how many fitted. */
size_t rp_lane_push(rp_lane *lane, const rp_sample *samples, size_t count);
/* Takes picks out of the schedule whose samples are not there. */
void rp_sampler_drop_picks_locked(rp_sampler *s, size_t lane) RP_REQUIRES(s->mu);
/* Works out what is to be asked for, and asks: leaves the lock meanwhile. */
void rp_sampler_credit_locked(rp_sampler *s) RP_REQUIRES(s->mu);

extern const rp_source_events rp_sampler_events; /* `user` is a feeder */

/* Begins a weighing if one is due. Returns when the next will be. */
int64_t rp_sampler_weigh_locked(rp_sampler *s, int64_t now_ns) RP_REQUIRES(s->mu);
void rp_sampler_run_weighing(rp_job *job);

void rp_sampler_end_locked(rp_sampler *s, rp_status status, const char *text)
    RP_REQUIRES(s->mu);
/* Wakes the first in line if there is something for it. */
void rp_sampler_wake_locked(rp_sampler *s) RP_REQUIRES(s->mu);
/* Counts a thread in; false if the sampler is closed. */
bool rp_sampler_enter_locked(rp_sampler *s) RP_REQUIRES(s->mu);
void rp_sampler_leave_locked(rp_sampler *s) RP_REQUIRES(s->mu);

/* Around what a call does with the sampler, if that is more than one of the next: whoever frees
 * the sampler meanwhile waits for the end. RP_PRECONDITION (in the child of a fork),
 * RP_CANCELLED (it is closed). */
rp_status rp_sampler_begin_call(rp_sampler *s, rp_error *err);
void rp_sampler_end_call(rp_sampler *s);

/* Takes `least` to `capacity` samples, in one piece, and waits for them. `*count` is written in
 * every case; with a status other than RP_OK they are the caller's all the same. */
rp_status rp_sampler_fetch(rp_sampler *s, rp_sample *out, size_t least, size_t capacity,
                           size_t *count, rp_wait wait, rp_error *err);
/* True if it has ended by itself: no call will get more than is there. */
bool rp_sampler_is_over(rp_sampler *s);
/* Takes back samples that rp_sampler_fetch() gave: the next call gets them. Takes `returned`.
 */
void rp_sampler_return(rp_sampler *s, rp_returned *returned);

rp_status rp_batch_check_size(const rp_sampler *s, size_t size, rp_error *err);
/* Says how a column of item `index` differs from item 0's in anything but its length. */
rp_status rp_batch_check_column(size_t index, size_t column, const rp_trajectory_column *own,
                                const rp_trajectory_column *first, rp_error *err);

#endif
