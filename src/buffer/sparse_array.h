/* SPDX-License-Identifier: Apache-2.0 */
/* An array of elements of one size, in segments of some megabytes that are allocated on demand,
 * on huge pages if the system has them.
 *
 * Not thread-safe: the owner serialises all calls.
 *
 * Invariant A1: `used` is the number of segments in the table that are not NULL. */
#ifndef RP_BUFFER_SPARSE_ARRAY_H
#define RP_BUFFER_SPARSE_ARRAY_H

#include <assert.h>

#include "util/mem.h"

typedef struct rp_sparse_array {
    rp_allocator alloc;
    char **table; /* segments, or NULL */
    char *spare;  /* the segment freed last, which is reused next; or NULL */
    size_t table_count;
    size_t element_bytes;
    size_t segment_bytes;
    size_t used;          /* A1 */
    uint32_t shift, mask; /* an element's number is segment << shift | index in the segment */
} rp_sparse_array;

/* Prepares for the elements 0 .. capacity - 1, but allocates no segment. The array has about
 * `parts` segments or more: with more segments, less memory is unused. `element_bytes` >= 1.
 * RP_NO_RESOURCE, with nothing to deinit. */
RP_NODISCARD rp_status rp_sparse_array_init(rp_sparse_array *s, const rp_allocator *alloc,
                                            size_t element_bytes, size_t capacity,
                                            size_t parts);
void rp_sparse_array_deinit(rp_sparse_array *s); /* zeroed memory is fine */

/* Allocates the segment of an element if necessary. The contents of a new segment are
 * undefined.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sparse_array_need(rp_sparse_array *s, size_t element);

/* Allocates all segments, and asks the system to provide their memory now. RP_NO_RESOURCE: only
 * some have been allocated. */
RP_NODISCARD rp_status rp_sparse_array_fill(rp_sparse_array *s);

/* Frees the whole segment of an element. */
void rp_sparse_array_drop(rp_sparse_array *s, size_t element);

/* Elements of a segment, a power of two. */
static inline size_t rp_sparse_array_length(const rp_sparse_array *s)
{
    return (size_t)s->mask + 1;
}

/* The memory of an element, whose segment must be allocated. */
static inline char *rp_sparse_array_at(const rp_sparse_array *s, size_t element)
{
    assert(element >> s->shift < s->table_count && s->table[element >> s->shift] != NULL);
    return s->table[element >> s->shift] + (element & s->mask) * s->element_bytes;
}

/* True if the segment of an element is allocated. */
static inline bool rp_sparse_array_has(const rp_sparse_array *s, size_t element)
{
    return s->table[element >> s->shift] != NULL;
}

/* Bytes held. */
size_t rp_sparse_array_memory(const rp_sparse_array *s);

#endif
