/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: items with priorities, drawn by a sampler, evicted by a remover, paced by a rate
 * limiter.
 *
 * Tables are made by a store (store.h) from options (table_options.h). Every call here is safe
 * from any thread. Calls take batches: the table's one lock is taken once a batch and held for
 * selection and bookkeeping only; data is never copied, compressed or freed under it.
 *
 * An insert or a sample that the rate limiter refuses waits, in order of arrival, until others
 * make it possible, until its deadline, or until the table is closed. A waiting call can be
 * asked what it waits for: rp_table_waiting(). */
#ifndef REPRISE_TABLE_H
#define REPRISE_TABLE_H

#include "reprise/extension.h"
#include "reprise/table_options.h"
#include "reprise/trajectory.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

/* A table that is dropped (store.h) stays in memory, closed and empty, as long as there are
 * references to it. A reference must be held during every call, and as long as an operation
 * waits; a callback must not drop that of the call it is run in. NULL is fine for unref. */
RP_API rp_table *rp_table_ref(rp_table *table);
RP_API void rp_table_unref(rp_table *table);

enum {
    RP_INSERT_MAX_PRIORITY = 1, /* give it the largest priority the table has had, at least 1 */
    RP_INSERT_TAKE = 2, /* the table takes the caller's reference to the trajectory if the item
                           is among those that went in; otherwise it stays the caller's */
};

/* An item to insert. */
typedef struct rp_insert {
    uint64_t key;
    double priority;           /* ignored with RP_INSERT_MAX_PRIORITY */
    rp_trajectory *trajectory; /* borrowed, unless RP_INSERT_TAKE */
    int32_t times_sampled;     /* normally 0 */
    uint32_t flags;            /* RP_INSERT_..., or 0 */
} rp_insert;

/* Inserts `count` items in order; a key that is there already only has its priority changed,
 * though it waits its turn like any other. Waits as long as the rate limiter (or a store that
 * blocks when full) refuses. All items are checked before the first is inserted. `*inserted`
 * (may be NULL) is written in every case: how many went in; those are there even if the call
 * then fails.
 *
 * RP_INVALID (a priority the table cannot have, no trajectory, signature, a chunk that is in
 * another store: it belongs for good to the first that takes it), RP_DEADLINE,
 * RP_CANCELLED (table closed, or the wait cancelled), RP_NO_RESOURCE (memory, an item larger
 * than a byte limit, a store that rejects when full); items that were evicted to make room for
 * it stay evicted. */
RP_API RP_NODISCARD rp_status rp_table_insert(rp_table *table, const rp_insert *items,
                                              size_t count, rp_wait wait, size_t *inserted,
                                              rp_error *err);

/* An item drawn, or looked at. */
typedef struct rp_sample {
    uint64_t key;
    double priority;
    double probability;        /* with which this draw picked it */
    double weight;             /* importance weight, see rp_sample_options; 1 without */
    rp_trajectory *trajectory; /* a reference of the caller's: rp_samples_release() */
    int64_t table_size;        /* items in the table when it was drawn */
    int64_t inserted_at_ns;    /* wall clock */
    int32_t times_sampled;     /* this draw included */
    bool rate_limited;         /* the call had waited when it was drawn */
} rp_sample;

typedef struct rp_sample_options {
    size_t count;    /* items wanted, >= 1 */
    size_t at_least; /* return once no more can be had without waiting, but not with fewer than
                        this; 0: all of them */
    bool
        distinct; /* no item twice in one batch; a table with fewer items gives what it has, and
                     one with max_times_sampled at most as many as have 16,384 chunks, counted
                     as if each had as many as the largest, rounded up to a power of 2 */
    double beta;  /* > 0: weight = (size * probability)^-beta, divided by the largest of the
                     batch */
} rp_sample_options;

/* Draws items into `out`, which has room for options->count, and writes how many to `*drawn`.
 * Waits as long as the rate limiter refuses; if the deadline passes when some have been drawn
 * already, they are returned with RP_OK. Each trajectory in `out` is a reference that the
 * caller drops with rp_samples_release().
 *
 * RP_INVALID, RP_DEADLINE (none drawn; the text says what was waited for), RP_CANCELLED (table
 * closed, or the wait cancelled; none drawn), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_table_sample(rp_table *table, const rp_sample_options *options,
                                              rp_sample *out, size_t *drawn, rp_wait wait,
                                              rp_error *err);

/* Drops the references of `count` samples and sets their trajectories to NULL. */
RP_API void rp_samples_release(rp_sample *samples, size_t count);

typedef struct rp_update {
    uint64_t key;
    double priority;
} rp_update;

/* Sets priorities, in order, 256 under one lock. Unknown keys are skipped; `*found` (may be
 * NULL) counts the others, in every case. All priorities are checked first: RP_INVALID has
 * changed nothing.
 * RP_INVALID, RP_CANCELLED (closed), RP_NO_RESOURCE (no memory for a deferred extension's
 * events); with the last two, those counted in `*found` are set. */
RP_API RP_NODISCARD rp_status rp_table_update(rp_table *table, const rp_update *updates,
                                              size_t count, size_t *found, rp_error *err);

/* Deletes items, 256 under one lock. Unknown keys are skipped; `*found` (may be NULL) counts
 * the others, in every case.
 * RP_CANCELLED (closed), RP_NO_RESOURCE (no memory for a deferred extension's events); then
 * those counted in `*found` are gone. */
RP_API RP_NODISCARD rp_status rp_table_delete(rp_table *table, const uint64_t *keys,
                                              size_t count, size_t *found, rp_error *err);

/* Removes, by the remover, what is over max_size: how a table with a soft limit is kept in
 * bounds.
 * `*removed` (may be NULL) is written in every case. RP_CANCELLED (closed), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_table_trim(rp_table *table, size_t *removed, rp_error *err);

/* Removes all items and puts every counter back to its beginning: the limiter's, those of
 * episodes, samples, updates and evictions, and the largest priority. Waiting calls go on
 * waiting.
 * RP_CANCELLED (closed), RP_NO_RESOURCE (no memory for a deferred extension's event). */
RP_API RP_NODISCARD rp_status rp_table_reset(rp_table *table, rp_error *err);

/* Changes bounds and the rate limiter of a table in use, all that was asked for or nothing. The
 * new values are checked as at birth. Items over a bound that has come down are evicted by the
 * remover, a few hundred under one lock; until that is done the bound comes down with them.
 * With a soft limit max_size evicts nothing. An item that has been sampled more often than a
 * new max_times_sampled goes at its next sample. Waiting calls that have become possible go on.
 * RP_INVALID (names the value and the bound), RP_CANCELLED (closed), RP_NO_RESOURCE (no memory
 * for a deferred extension's events); what was evicted by then stays evicted. */
RP_API RP_NODISCARD rp_status rp_table_alter(rp_table *table, const rp_table_change *change,
                                             rp_error *err);

enum { RP_SIDE_INSERTS = 1, RP_SIDE_SAMPLES = 2 };

/* Holds up inserts, samples or both, as if the rate limiter refused them, until they are
 * resumed: they wait, and time out, as ever. Other calls go on, and a reset leaves it paused.
 * Sides that are paused, or not, already stay so.
 * RP_INVALID (`sides` is not one or both of RP_SIDE_...), RP_CANCELLED (closed). */
RP_API RP_NODISCARD rp_status rp_table_pause(rp_table *table, uint32_t sides, rp_error *err);
RP_API RP_NODISCARD rp_status rp_table_resume(rp_table *table, uint32_t sides, rp_error *err);

/* Refuses everything from now on and ends all waits with RP_CANCELLED. Items stay until the
 * table is dropped or the store freed. May be called again. */
RP_API void rp_table_close(rp_table *table);

/* How one side of a table has waited. */
typedef struct rp_waits {
    int64_t longest_ns; /* for how long the first in line has; 0 if there is none */
    int64_t parked;     /* calls that have had to, since birth: a reset changes nothing */
    int64_t total_ns;   /* for how long they have, all together, those included that still do */
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
    uint64_t bytes;                     /* of its items, as max_bytes counts them */
    int64_t inserts, samples, deletes;  /* the limiter's, since birth or reset */
    int64_t updates;                    /* priorities set by key */
    int64_t evictions;                  /* deletes made by the remover */
    int64_t episodes, deleted_episodes; /* referred to now; referred to no more */
    int64_t unique_samples;             /* items sampled at least once, ever */
    double max_priority;                /* what RP_INSERT_MAX_PRIORITY gives */
    double total_weight;                /* of all items, as the sampler weighs them: the sum of
                                           priority^exponent of RP_PRIORITIZED, else 1 each */
    double limiter_diff; /* inserts * samples_per_insert - samples, and what is carried: what
                            the limiter keeps between min_diff and max_diff */
    int64_t waiting_inserts, waiting_samples; /* calls */
    rp_waits insert_waits, sample_waits;
} rp_table_info;

/* All of one moment. */
RP_API void rp_table_get_info(rp_table *table, rp_table_info *out);
RP_API const char *rp_table_name(const rp_table *table);

/* What the rate limiter says of `count` (>= 1) inserts or samples right now; false if that side
 * is paused. */
RP_API bool rp_table_can_insert(rp_table *table, int64_t count);
RP_API bool rp_table_can_sample(rp_table *table, int64_t count);

/* A waiting call, and why it waits. */
typedef struct rp_waiting {
    bool is_insert;
    size_t wanted, done;           /* items */
    int64_t waiting_ns;            /* for how long */
    int64_t until_ns;              /* its deadline */
    char why[RP_ERROR_TEXT_BYTES]; /* which side waits, the counts, the bound, what would
                                      release it */
} rp_waiting;

/* Describes up to `capacity` waiting calls, first in line first, inserts before samples;
 * returns how many there are in all. */
RP_API size_t rp_table_waiting(rp_table *table, rp_waiting *out, size_t capacity);

RP_END_DECLS

#endif
