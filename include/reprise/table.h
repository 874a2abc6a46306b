/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: items with priorities. An item has a key, a priority and a trajectory, which is its
 * data (trajectory.h). The sampler of a table chooses the items to draw, its remover chooses
 * the items to evict, and its rate limiter decides when inserts and samples proceed.
 *
 * A store (store.h) makes tables from options (table_options.h). Every call here is safe from
 * any thread. Calls take batches of items. A table has one lock. Inserts, updates and deletes
 * hold this lock for at most 256 items of a batch at a time. The table holds the lock only to
 * select items and to change its indexes: it never copies, compresses or frees data under the
 * lock.
 *
 * An insert or a sample that the rate limiter refuses waits until other calls make it possible,
 * until its deadline, or until the table is closed. Waiting calls proceed in order of arrival.
 * There is one exception: a waiting sample that has drawn 256 items, and wants more, goes to
 * the end of the queue. rp_table_waiting() reports why each waiting call waits. */
#ifndef REPRISE_TABLE_H
#define REPRISE_TABLE_H

#include "reprise/extension.h"
#include "reprise/table_options.h"
#include "reprise/trajectory.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

/* References to a table. A table that was dropped (rp_store_drop_table()) stays in memory,
 * closed and empty, as long as there are references to it. If another thread or a callback
 * could drop the table during a call, the caller must hold a reference until the call returns.
 * rp_table_unref() accepts NULL. */
RP_API rp_table *rp_table_ref(rp_table *table);
RP_API void rp_table_unref(rp_table *table);

enum {
    RP_INSERT_MAX_PRIORITY = 1, /* use the table's largest priority so far, at least 1 */
    RP_INSERT_TAKE = 2, /* if the item is inserted, the table takes the caller's reference to
                           the trajectory; if not, the caller keeps the reference */
};

/* An item to insert. */
typedef struct rp_insert {
    uint64_t key;
    double priority;           /* not used with RP_INSERT_MAX_PRIORITY */
    rp_trajectory *trajectory; /* borrowed, unless RP_INSERT_TAKE */
    int32_t times_sampled;     /* 0 for a new item */
    uint32_t flags;            /* RP_INSERT_..., or 0 */
} rp_insert;

/* Inserts `count` items in order. If a key exists already, the call only changes the priority
 * of its item; this change waits for the rate limiter like any insert. The call waits while the
 * rate limiter refuses an insert, or while a store with RP_BUDGET_BLOCK is full. All items are
 * checked before the first is inserted. `*inserted` (`inserted` may be NULL) gets the number of
 * items inserted, whatever the status. If the call fails, these items stay in the table, and
 * items that were evicted to make room for them stay evicted.
 *
 * Errors: RP_INVALID (a priority that the selectors refuse, no trajectory, a mismatch with the
 * signature, a chunk of another store: a chunk belongs to the first store that takes it),
 * RP_DEADLINE, RP_CANCELLED (the table is closed, or the wait was cancelled), RP_NO_RESOURCE
 * (no memory, an item larger than a byte limit, or a full store that cannot make room by its
 * policy), RP_UNAVAILABLE (the journal of a durable store cannot write). */
RP_API RP_NODISCARD rp_status rp_table_insert(rp_table *table, const rp_insert *items,
                                              size_t count, rp_wait wait, size_t *inserted,
                                              rp_error *err);

/* An item that was drawn, or that rp_data_dump() (data.h) read from a checkpoint. */
typedef struct rp_sample {
    uint64_t key;
    double priority;
    double probability; /* probability of this draw */
    double weight;      /* importance weight (`beta` of rp_sample_options); 1 if beta is 0 */
    rp_trajectory *trajectory; /* owned by the caller; dropped by rp_samples_release() */
    int64_t table_size;        /* items in the table when the item was drawn */
    int64_t inserted_at_ns;    /* time of the insert, by the wall clock */
    int32_t times_sampled;     /* number of draws of the item so far, including this one */
    bool rate_limited;         /* the call had to wait before it drew the item */
} rp_sample;

typedef struct rp_sample_options {
    size_t count; /* items wanted, >= 1 */
    /* Once the call has drawn this many items, it returns as soon as it would have to wait for
     * the next one. 0: it waits for all `count` items. */
    size_t at_least;
    /* No item is drawn twice in one batch. If the table has fewer items than `count`, the batch
     * has all of them. If the option max_times_sampled of the table is not 0, a batch has at
     * most 16,384 / n items, but at least one. n is the largest number of chunks of an item in
     * the table, rounded up to the next of 1, 3, 7, 15, ... */
    bool distinct;
    /* If > 0, an item has the importance weight (size * probability)^-beta, divided by the
     * largest weight of the batch. */
    double beta;
} rp_sample_options;

/* Draws items into `out`, which has space for options->count items, and writes the number of
 * drawn items to `*drawn`. Waits while the rate limiter refuses a sample. If the deadline
 * passes after some items were drawn, the call returns these items with RP_OK. The caller owns
 * the trajectories in `out` and must drop them with rp_samples_release().
 *
 * Errors: RP_INVALID, RP_DEADLINE (no item was drawn; the text says why the call waited),
 * RP_CANCELLED (the table is closed, or the wait was cancelled; no item was drawn),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_table_sample(rp_table *table, const rp_sample_options *options,
                                              rp_sample *out, size_t *drawn, rp_wait wait,
                                              rp_error *err);

/* Drops the references of `count` samples and sets their trajectories to NULL. */
RP_API void rp_samples_release(rp_sample *samples, size_t count);

typedef struct rp_update {
    uint64_t key;
    double priority;
} rp_update;

/* Sets priorities in order, at most 256 per acquisition of the lock. Unknown keys are skipped.
 * `*found` (may be NULL) gets the number of keys found, whatever the status. All priorities are
 * checked first, so on RP_INVALID nothing has changed.
 * Errors: RP_INVALID, RP_CANCELLED (the table is closed), RP_NO_RESOURCE (no memory for the
 * events of a deferred extension, see extension.h), RP_UNAVAILABLE (the journal of a durable
 * store cannot write). On the last three errors, the items counted in `*found` have their new
 * priority. */
RP_API RP_NODISCARD rp_status rp_table_update(rp_table *table, const rp_update *updates,
                                              size_t count, size_t *found, rp_error *err);

/* Deletes items, at most 256 per acquisition of the lock. Unknown keys are skipped. `*found`
 * (may be NULL) gets the number of keys found, whatever the status.
 * Errors: RP_CANCELLED, RP_NO_RESOURCE and RP_UNAVAILABLE, as in rp_table_update(). Whatever
 * the status, the items counted in `*found` are deleted. */
RP_API RP_NODISCARD rp_status rp_table_delete(rp_table *table, const uint64_t *keys,
                                              size_t count, size_t *found, rp_error *err);

/* Evicts items, chosen by the remover, until the table is within max_size and max_bytes. In a
 * table with a soft limit, only this call and rp_store_trim() evict items because of max_size.
 * `*removed` (`removed` may be NULL) gets the number of evicted items, whatever the status.
 * Errors: as in rp_table_delete(). */
RP_API RP_NODISCARD rp_status rp_table_trim(rp_table *table, size_t *removed, rp_error *err);

/* Removes all items. Resets the largest priority and every counter: the counters of the
 * limiter, of episodes, samples, updates and evictions. Waiting calls continue to wait. Errors:
 * as in rp_table_delete(). */
RP_API RP_NODISCARD rp_status rp_table_reset(rp_table *table, rp_error *err);

/* Changes bounds and the rate limiter of a table in use: all requested fields or none. The new
 * values are checked like those of a new table. Waiting calls proceed if the new options allow
 * them.
 *
 * If a bound is lowered, the call first evicts the items over the new bound, in steps of at
 * most 256 items. The call releases the lock between the steps, and lowers the bound in force
 * after each step to what the remaining items use. In a table with a soft limit, a lower
 * max_size evicts nothing. An item that has already been sampled as often as a new
 * max_times_sampled is deleted at its next sample.
 *
 * Errors: RP_INVALID (the text names the value and the bound), and those of rp_table_delete().
 * Items that were evicted before an error stay evicted. */
RP_API RP_NODISCARD rp_status rp_table_alter(rp_table *table, const rp_table_alteration *change,
                                             rp_error *err);

enum { RP_SIDE_INSERTS = 1, RP_SIDE_SAMPLES = 2 };

/* Pauses or resumes inserts, samples or both. Inserts or samples that are paused wait as if the
 * rate limiter refused them, until their deadlines. Other calls are not affected.
 * rp_table_reset() does not resume a paused table. Pausing what is paused, or resuming what is
 * not paused, has no effect.
 * Errors: RP_INVALID (`sides` is not RP_SIDE_INSERTS, RP_SIDE_SAMPLES or both), RP_CANCELLED
 * (the table is closed), RP_UNAVAILABLE (the journal of a durable store cannot write). */
RP_API RP_NODISCARD rp_status rp_table_pause(rp_table *table, uint32_t sides, rp_error *err);
RP_API RP_NODISCARD rp_status rp_table_resume(rp_table *table, uint32_t sides, rp_error *err);

/* Closes the table: all waits end with RP_CANCELLED, and later calls return RP_CANCELLED. Items
 * stay in memory until the table is dropped or the store freed. A second call has no effect. */
RP_API void rp_table_close(rp_table *table);

/* The waiting times of the inserts or of the samples of a table. rp_table_reset() does not
 * clear them. */
typedef struct rp_waits {
    int64_t longest_ns; /* waiting time of the first call in the queue; 0: the queue is empty */
    int64_t parked;     /* number of calls that have had to wait so far */
    int64_t total_ns;   /* sum of the waiting times, including calls that still wait */
} rp_waits;

typedef struct rp_table_info {
    const char *name; /* valid as long as the table */
    rp_selector_options sampler, remover;
    rp_limiter_options limiter;
    int64_t max_size;
    uint64_t max_bytes;
    int32_t max_times_sampled;
    bool soft_limit, closed;
    uint32_t paused;                    /* RP_SIDE_... */
    rp_signature *signature;            /* borrowed, valid as long as the table; may be NULL */
    int64_t size;                       /* items now */
    uint64_t bytes;                     /* memory of its items, as max_bytes counts it */
    int64_t inserts, samples, deletes;  /* counts of the limiter, since creation or reset */
    int64_t updates;                    /* priorities set by key */
    int64_t evictions;                  /* deletes made by the remover */
    int64_t episodes, deleted_episodes; /* number of episodes that have items now, and of those
                                           that had items but have none now */
    int64_t unique_samples; /* number of items sampled at least once, including items removed
                               since */
    double max_priority;    /* the priority that RP_INSERT_MAX_PRIORITY assigns */
    double total_weight; /* sum over all items: priority^exponent with RP_PRIORITIZED, else 1 */
    double limiter_diff; /* inserts * samples_per_insert - samples, plus the offset that
                            RP_ALTER_RECENTER sets. The limiter keeps this sum between min_diff
                            and max_diff */
    int64_t waiting_inserts, waiting_samples; /* number of waiting calls */
    rp_waits insert_waits, sample_waits;
} rp_table_info;

/* Reads all fields under one acquisition of the lock. */
RP_API void rp_table_get_info(rp_table *table, rp_table_info *out);
RP_API const char *rp_table_name(const rp_table *table);

/* Return true if inserts, or samples, are not paused and the rate limiter would now allow
 * `count` (>= 1) of them. */
RP_API bool rp_table_can_insert(rp_table *table, int64_t count);
RP_API bool rp_table_can_sample(rp_table *table, int64_t count);

/* A waiting call, and why it waits. */
typedef struct rp_waiting {
    bool is_insert;
    size_t wanted, done;           /* number of items that the call wants, and number of items
                                      that it has inserted or drawn */
    int64_t waiting_ns;            /* time that the call has waited */
    int64_t until_ns;              /* its deadline */
    char why[RP_ERROR_TEXT_BYTES]; /* a sentence: what the call waits for, the counts and the
                                      bound, and what would end the wait */
} rp_waiting;

/* Describes up to `capacity` waiting calls: inserts, then samples, each in the order of their
 * queue. Returns the number of all waiting calls. */
RP_API size_t rp_table_waiting(rp_table *table, rp_waiting *out, size_t capacity);

RP_END_DECLS

#endif
