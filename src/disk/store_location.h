/* SPDX-License-Identifier: Apache-2.0 */
/* The disk location of a chunk in the segments of one durable store (a store with a data
 * directory). It is attached to rp_chunk.home and freed with the chunk.
 *
 * If several durable stores of a process store the same chunk, its locations form a list,
 * newest first, one for each store. segments_put.c adds a location when the chunk is put, and
 * never removes it from the list.
 *
 * Invariants:
 *
 *   L1  `where` is the packed location segment << 32 | offset, or 0: no location. Any thread
 *       may read `where`. It changes only under the lock of the store's rp_segments
 *       (segments.h), in these cases:
 *         - writing a segment fails: its unsynced chunks get locations in a new segment;
 *         - the queue is dropped: `where` of a chunk in it becomes 0, or the location before
 *           the move if the chunk was being moved;
 *         - the chunk is moved;
 *         - the chunk is put again, after its location was dropped or its segment was revoked;
 *   L2  while `stored` is true and the segment is not revoked, the chunk can be read from
 *       `where`. While `stored` is true, rp_segments does not use the bytes of the chunk in
 *       memory. Moving the chunk, or putting it again, sets `stored` to false;
 *   L3  `next`, `index` and `size` never change after the location is published. */
#ifndef RP_DISK_STORE_LOCATION_H
#define RP_DISK_STORE_LOCATION_H

#include "chunk/chunk.h"
#include "disk/segment.h"

typedef struct rp_store_location {
    rp_chunk_location base;
    struct rp_store_location *next; /* location of the same chunk in another store */
    const rp_segment_index *index;  /* index of the store's segments */
    rp_segment *segment;            /* a reference; changed only under the lock */
    atomic_uint_least64_t where;
    uint64_t first; /* packed location before the first move; 0: never moved. Changed only under
                       the lock */
    atomic_bool stored; /* the chunk is on stable storage */
    uint32_t size;      /* of the payload, in bytes */
} rp_store_location;

/* Returns the location of a chunk in the store with the index `index`. NULL if there is
 * none. */
static inline rp_store_location *rp_store_location_of(const rp_chunk *chunk,
                                                      const rp_segment_index *index)
{
    /* Acquire: the location was filled in before it was published. */
    rp_store_location *current =
        (rp_store_location *)atomic_load_explicit(&chunk->home, memory_order_acquire);

    while (current != NULL && current->index != index) current = current->next;
    return current;
}

static inline rp_disk_location rp_store_location_get(const rp_store_location *current)
{
    /* Relaxed is enough: `where` is no pointer and guards no other data. */
    uint64_t where = atomic_load_explicit(&current->where, memory_order_relaxed);

    return (rp_disk_location){where >> 32, where & UINT32_MAX, current->size};
}

/* Copies the location to `out`. Returns false if the chunk has none. */
static inline bool rp_store_location_find(const rp_store_location *current,
                                          rp_disk_location *out)
{
    rp_disk_location location = rp_store_location_get(current);

    if (location.segment == 0) return false;
    *out = location;
    return true;
}

/* Returns true if the chunk is on stable storage at its location. */
static inline bool rp_store_location_is_stored(const rp_store_location *current)
{
    return atomic_load_explicit(&current->stored, memory_order_acquire);
}

#endif
