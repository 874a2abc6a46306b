/* SPDX-License-Identifier: Apache-2.0 */
/* An array of elements of one size, in segments of some megabytes each that are there only when
 * needed, on huge pages where the system has them.
 *
 * Not thread-safe: the owner serialises all calls. */
#ifndef RP_BUFFER_SPARSE_ARRAY_H
#define RP_BUFFER_SPARSE_ARRAY_H

#include "util/mem.h"

typedef struct rp_sparse_array {
    rp_allocator alloc;
    char **table; /* NULL where there is no segment */
    char *spare;  /* the one given up last, to be used next; or NULL */
    size_t table_count;
    size_t element_bytes;
    size_t segment_bytes;
    size_t used;          /* segments there are, without the spare */
    uint32_t shift, mask; /* an element's number is segment << shift | place in it */
} rp_sparse_array;

/* Room for the numbers 0 .. capacity - 1, none of them with memory, in about so many parts or
 * more: the more, the less is taken in vain. `element_bytes` >= 1.
 * RP_NO_RESOURCE, with nothing to deinit. */
RP_NODISCARD rp_status rp_sparse_array_init(rp_sparse_array *s, const rp_allocator *alloc,
                                            size_t element_bytes, size_t capacity,
                                            size_t parts);
void rp_sparse_array_deinit(rp_sparse_array *s); /* zeroed memory is fine */

/* Sees to it that an element has memory; of no particular contents. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_sparse_array_need(rp_sparse_array *s, size_t element);

/* Gives up the whole segment that the element is in. */
void rp_sparse_array_drop(rp_sparse_array *s, size_t element);

/* Elements of a segment, a power of two. */
static inline size_t rp_sparse_array_length(const rp_sparse_array *s)
{
    return (size_t)s->mask + 1;
}

/* The memory of an element, which must have some. */
static inline char *rp_sparse_array_at(const rp_sparse_array *s, size_t element)
{
    return s->table[element >> s->shift] + (element & s->mask) * s->element_bytes;
}

/* True if it has. */
static inline bool rp_sparse_array_has(const rp_sparse_array *s, size_t element)
{
    return s->table[element >> s->shift] != NULL;
}

/* Bytes held. */
size_t rp_sparse_array_memory(const rp_sparse_array *s);

#endif
