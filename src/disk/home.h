/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk's home: where its record is in the segments of a store. Hangs at rp_chunk.home and
 * goes with the chunk.
 *
 * A chunk may lie in several durable stores of a process: then its homes are a list, one for
 * each, newest first. A home is made when the chunk is put, by segments.c, and never taken off
 * again.
 *
 *   where     number of the segment (32 bits) | offset (32 bits); 0: nowhere
 *
 * It changes when a segment is condemned, when the queue is dropped, and when the chunk is
 * moved; any thread may read it at any time. So `stored` may be read: once it is true the chunk
 * can be read from `where`, and its bytes are not looked at in memory again, until the chunk is
 * moved. */
#ifndef RP_DISK_HOME_H
#define RP_DISK_HOME_H

#include "disk/segment.h"

typedef struct rp_home {
    rp_chunk_home base;
    struct rp_home *next;          /* in another store; fixed */
    const rp_segment_index *index; /* whose it is; fixed */
    rp_segment *segment;           /* counted; changed only under the lock of its rp_segments */
    atomic_uint_least64_t where;
    uint64_t
        first; /* the place from which it was moved first; 0: never. Under that lock, too */
    atomic_bool stored; /* on stable storage */
    uint32_t size;      /* of the payload */
} rp_home;

/* The chunk's home in the store whose segments these are. NULL: none. */
static inline rp_home *rp_home_of(const rp_chunk *chunk, const rp_segment_index *index)
{
    /* What hangs there was filled in before. */
    rp_home *home = (rp_home *)atomic_load_explicit(&chunk->home, memory_order_acquire);

    while (home != NULL && home->index != index) home = home->next;
    return home;
}

static inline uint64_t rp_home_pack(uint64_t segment, uint64_t offset)
{
    return segment << 32 | offset;
}

static inline rp_place rp_home_place(const rp_home *home)
{
    /* It names a place and leads to no memory. */
    uint64_t where = atomic_load_explicit(&home->where, memory_order_relaxed);

    return (rp_place){where >> 32, where & UINT32_MAX, home->size};
}

/* Copies the place to `out`. False: it has none. */
static inline bool rp_home_find(const rp_home *home, rp_place *out)
{
    rp_place place = rp_home_place(home);

    if (place.segment == 0) return false;
    *out = place;
    return true;
}

/* True if the chunk is on stable storage, at its place. */
static inline bool rp_home_is_stored(const rp_home *home)
{
    return atomic_load_explicit(&home->stored, memory_order_acquire);
}

#endif
