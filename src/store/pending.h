/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of items that a writer has created but not inserted.
 *
 *   draft ──(its last chunk is complete)──► trajectory ──(inserted)──► removed
 *
 * A draft is a trajectory with incomplete chunks: slices without a chunk. A column has one
 * incomplete chunk at a time, so the column of a slice identifies it. When it is complete, all
 * drafts get it at once; so a slice without a chunk always refers to the present one.
 *
 * Invariants:
 *   Q1  `missing` of a draft is the number of its slices without a chunk;
 *   Q2  an item has either a draft or a trajectory;
 *   Q3  count <= capacity, and head < capacity unless capacity is 0.
 *
 * Part of the writer. One thread at a time. */
#ifndef RP_STORE_PENDING_H
#define RP_STORE_PENDING_H

#include "reprise/writer.h"

/* One allocation: header, columns, slices, sources. */
typedef struct rp_draft {
    size_t size_bytes; /* of the whole allocation */
    size_t missing;    /* Q1 */
    bool holds;        /* each slice with a chunk owns a reference to it */
    size_t column_count;
    rp_slices *columns;
    rp_slice *slices;  /* of all columns */
    uint32_t *sources; /* by column: the column of the writer */
} rp_draft;

typedef struct rp_pending_item {
    uint64_t key;
    double priority;
    rp_table *table; /* borrowed from the writer, unless holds_table */
    bool holds_table;
    rp_draft *draft; /* owned; NULL once there is a trajectory */
    rp_trajectory *trajectory;
} rp_pending_item;

/* A ring that doubles as it fills. */
typedef struct rp_pending {
    rp_allocator alloc;
    rp_chunk_tuner *tuners; /* of the writer, one for each of its columns, or NULL */
    rp_pending_item *items;
    size_t head, count;
    size_t capacity; /* 0 or a power of two */
} rp_pending;

/* Makes an empty draft with room for `slice_count` slices. The caller fills in its columns,
 * slices, sources and the count of missing ones; it holds no references yet. Owned. NULL if
 * there is no memory. */
rp_draft *rp_draft_new(const rp_allocator *alloc, size_t column_count, size_t slice_count);
void rp_draft_free(const rp_allocator *alloc, rp_draft *draft); /* NULL is fine */

/* Cannot fail; allocates nothing. */
void rp_pending_init(rp_pending *q, const rp_allocator *alloc, rp_chunk_tuner *tuners);
void rp_pending_deinit(rp_pending *q);

/* Makes room for one more item. False, with nothing changed, if there is no memory. */
RP_NODISCARD bool rp_pending_reserve(rp_pending *q);

/* Adds an item, in the reserved room. On RP_OK the queue owns its draft: if nothing is missing,
 * makes the trajectory at once; otherwise takes references to its chunks. RP_NO_RESOURCE, with
 * nothing changed. */
RP_NODISCARD rp_status rp_pending_push(rp_pending *q, const rp_pending_item *item,
                                       rp_error *err);

/* Sets the chunk that a column of the writer has completed in all drafts. If there is no memory
 * for a trajectory, rp_pending_gather() makes it later. */
void rp_pending_complete(rp_pending *q, uint32_t source, rp_chunk *chunk);

/* Takes over the caller's reference to a table that items borrow: the last of these items owns
 * it; if there is none, it is dropped. NULL is fine. */
void rp_pending_keep_table(rp_pending *q, rp_table *table);

/* The oldest item; there must be one. Valid until the queue is changed. */
const rp_pending_item *rp_pending_head(const rp_pending *q);

/* Describes the oldest items that are complete and go to one table, at most `max`. The output
 * borrows from the queue. `*count` is 0 if the oldest is not complete. RP_NO_RESOURCE (no
 * memory for the trajectory of the oldest). */
RP_NODISCARD rp_status rp_pending_gather(rp_pending *q, rp_insert *out, size_t max,
                                         size_t *count, rp_error *err);

/* Removes the `count` oldest items. */
void rp_pending_pop(rp_pending *q, size_t count);

#endif
