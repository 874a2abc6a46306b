/* SPDX-License-Identifier: Apache-2.0 */
/* Items on their way into a table, first come first in.
 *
 *   draft ──(its last chunk is complete)──► trajectory ──(inserted)──► gone
 *
 * A draft is a trajectory some of whose chunks are still being collected: slices without a
 * chunk. A column has one such chunk at a time, so the slice's column says which it is. When it
 * completes, every draft gets it at once; so a slice without a chunk always means the chunk
 * being collected now.
 *
 * Part of the writer. One thread at a time. */
#ifndef RP_STORE_PENDING_H
#define RP_STORE_PENDING_H

#include "reprise/writer.h"

/* One allocation: header, columns, slices, sources. */
typedef struct rp_draft {
    size_t size_bytes; /* of the whole allocation */
    size_t missing;    /* slices without a chunk */
    bool holds;        /* each slice has a reference to its chunk, if it has a chunk */
    size_t column_count;
    rp_slices *columns;
    rp_slice *slices;  /* of all columns */
    uint32_t *sources; /* the writer's column behind each column */
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
    rp_chunk_tuner *tuners; /* the writer's, one for each of its columns; NULL: none listen */
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

/* Adds an item, in the room reserved. Takes its draft on RP_OK: it becomes a trajectory at once
 * if nothing is missing, else it takes references to its chunks. RP_NO_RESOURCE, with nothing
 * changed. */
RP_NODISCARD rp_status rp_pending_push(rp_pending *q, const rp_pending_item *item,
                                       rp_error *err);

/* The chunk that the writer's column was collecting has become `chunk`. A trajectory for which
 * there is no memory now is made in rp_pending_gather(). */
void rp_pending_complete(rp_pending *q, uint32_t source, rp_chunk *chunk);

/* Takes a reference to a table that items have borrowed: the last of them keeps it, and with it
 * those before; if there is none, it is dropped. NULL is fine. */
void rp_pending_keep_table(rp_pending *q, rp_table *table);

/* The oldest item; there must be one. Valid until the queue is changed. */
const rp_pending_item *rp_pending_head(const rp_pending *q);

/* Describes the oldest items, as many as are complete and go to one table, at most `max`. They
 * borrow from the queue. `*count` is 0 if the oldest is not complete. RP_NO_RESOURCE (the
 * oldest is, but there is no memory for its trajectory). */
RP_NODISCARD rp_status rp_pending_gather(rp_pending *q, rp_insert *out, size_t max,
                                         size_t *count, rp_error *err);

/* Drops the `count` oldest items. */
void rp_pending_pop(rp_pending *q, size_t count);

#endif
