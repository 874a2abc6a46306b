/* SPDX-License-Identifier: Apache-2.0 */
/* A large array whose memory is allocated on demand, in segments of 64 KiB to 16 MiB. The
 * segments are on huge pages if the system has them.
 *
 * Not thread-safe: the owner must serialise all calls.
 *
 * Invariant A1: `used` is the number of pointers in `table` that are not NULL. */
#ifndef RP_BUFFER_SPARSE_ARRAY_H
#define RP_BUFFER_SPARSE_ARRAY_H

#include <assert.h>

#include "util/mem.h"

typedef struct rp_sparse_array {
    rp_allocator alloc;
    char **table; /* pointers to segments; NULL: not allocated */
    char *spare;  /* the segment that was freed last, kept for reuse; NULL: none */
    size_t table_count;
    size_t element_bytes;
    size_t segment_bytes;
    size_t used;          /* see invariant A1 */
    uint32_t shift, mask; /* element number = segment << shift | index within the segment */
} rp_sparse_array;

/* Initialises an array for the elements 0 to capacity - 1, without allocating segments. Divides
 * the array into about `parts` segments, or fewer or more if a segment would be smaller than 64
 * KiB or larger than 16 MiB. With more segments, less memory is unused. `element_bytes` must be
 * >= 1. On RP_NO_RESOURCE, there is nothing to deinitialise. */
RP_NODISCARD rp_status rp_sparse_array_init(rp_sparse_array *s, const rp_allocator *alloc,
                                            size_t element_bytes, size_t capacity,
                                            size_t parts);
void rp_sparse_array_deinit(rp_sparse_array *s); /* *s may be zeroed memory */

/* Allocates the segment of an element if necessary. A new segment has undefined contents.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sparse_array_need(rp_sparse_array *s, size_t element);

/* Allocates all segments, and makes the system provide their memory now instead of at the first
 * write. On RP_NO_RESOURCE, some segments are allocated and others are not. */
RP_NODISCARD rp_status rp_sparse_array_fill(rp_sparse_array *s);

/* Frees the segment that contains an element, with all its elements. */
void rp_sparse_array_drop(rp_sparse_array *s, size_t element);

/* Returns the number of elements in a segment, a power of two. */
static inline size_t rp_sparse_array_length(const rp_sparse_array *s)
{
    return (size_t)s->mask + 1;
}

/* Returns the memory of an element. The segment of the element must be allocated. */
static inline char *rp_sparse_array_at(const rp_sparse_array *s, size_t element)
{
    assert(element >> s->shift < s->table_count && s->table[element >> s->shift] != NULL);
    return s->table[element >> s->shift] + (element & s->mask) * s->element_bytes;
}

/* Returns true if the segment of an element is allocated. */
static inline bool rp_sparse_array_has(const rp_sparse_array *s, size_t element)
{
    return s->table[element >> s->shift] != NULL;
}

/* Returns the bytes of memory that the array holds. */
size_t rp_sparse_array_memory(const rp_sparse_array *s);

#endif
