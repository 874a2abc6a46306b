/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer/sparse_array.h"

#include <assert.h>

/* Sizes of a segment: large enough for huge pages, small enough to allocate quickly. */
enum { LEAST_BYTES = 64 << 10, MOST_BYTES = 16 << 20 };

/* The number of elements in a segment, as a power of two. */
static uint32_t choose_shift(size_t element_bytes, size_t capacity, size_t parts)
{
    uint32_t shift = 0;

    while ((size_t)1 << shift < capacity && element_bytes << (shift + 1) <= MOST_BYTES &&
           (element_bytes << shift < LEAST_BYTES || parts << shift < capacity))
        shift++;
    return shift;
}

rp_status rp_sparse_array_init(rp_sparse_array *s, const rp_allocator *alloc,
                               size_t element_bytes, size_t capacity, size_t parts)
{
    uint32_t shift = choose_shift(element_bytes, capacity, parts);

    assert(element_bytes >= 1 && capacity >= 1 && capacity <= (size_t)1 << 32);
    memset(s, 0, sizeof *s);
    s->alloc = *alloc;
    s->element_bytes = element_bytes;
    s->shift = shift;
    s->mask = ((uint32_t)1 << shift) - 1;
    s->table_count = ((capacity - 1) >> shift) + 1;
    if (!rp_size_mul(element_bytes, (size_t)1 << shift, &s->segment_bytes))
        return RP_NO_RESOURCE;
    s->table = rp_alloc_array(alloc, s->table_count, sizeof *s->table);
    return s->table == NULL ? RP_NO_RESOURCE : RP_OK;
}

void rp_sparse_array_deinit(rp_sparse_array *s)
{
    if (s->table == NULL) return;
    for (size_t i = 0; i < s->table_count; i++)
        rp_release_aligned(&s->alloc, s->table[i], s->segment_bytes);
    rp_release_aligned(&s->alloc, s->spare, s->segment_bytes);
    rp_release(&s->alloc, s->table, s->table_count * sizeof *s->table);
    memset(s, 0, sizeof *s);
}

rp_status rp_sparse_array_need(rp_sparse_array *s, size_t element)
{
    char **segment = &s->table[element >> s->shift];

    assert(element >> s->shift < s->table_count);
    if (*segment != NULL) return RP_OK;
    if (s->spare != NULL)
        *segment = s->spare, s->spare = NULL;
    else
        *segment = rp_alloc_aligned(&s->alloc, s->segment_bytes);
    if (*segment == NULL) return RP_NO_RESOURCE;
    s->used++;
    return RP_OK;
}

rp_status rp_sparse_array_fill(rp_sparse_array *s)
{
    for (size_t i = 0; i < s->table_count; i++) {
        if (rp_sparse_array_need(s, i << s->shift) != RP_OK) return RP_NO_RESOURCE;
        rp_touch(s->table[i], s->segment_bytes);
    }
    assert(s->used == s->table_count); /* A1 */
    return RP_OK;
}

void rp_sparse_array_drop(rp_sparse_array *s, size_t element)
{
    char **segment = &s->table[element >> s->shift];

    if (*segment == NULL) return;
    assert(s->used > 0); /* A1 */
    rp_release_aligned(&s->alloc, s->spare, s->segment_bytes);
    s->spare = *segment;
    *segment = NULL;
    s->used--;
}

size_t rp_sparse_array_memory(const rp_sparse_array *s)
{
    return (s->used + (s->spare != NULL)) * s->segment_bytes +
           s->table_count * sizeof *s->table;
}
