/* SPDX-License-Identifier: Apache-2.0 */
#include "client/writer/rows.h"

#include <assert.h>

#include "util/mem.h"

rp_rows *rp_rows_new(const rp_allocator *alloc, rp_chunk_builder *builder)
{
    rp_rows *rows = rp_alloc(alloc, sizeof *rows);

    if (rows == NULL) return NULL;
    *rows = (rp_rows){.builder = builder};
    atomic_init(&rows->counts, RP_ROWS_REFERENCE + RP_ROWS_READER);
    return rows;
}

static uint64_t readers_of(uint64_t counts)
{
    return counts & (RP_ROWS_REFERENCE - 1);
}

/* Frees rows and chunk, for the last reader. */
static void empty(rp_rows *rows)
{
    rp_chunk_builder_free(rows->builder);
    rp_chunk_unref(rows->chunk);
    rows->builder = NULL;
    rows->chunk = NULL;
}

/* As in util/refcount.h: no other thread can change a count of 1 that is ours, so a load is
 * enough. */
void rp_rows_let_go(rp_rows *rows)
{
    uint64_t counts = atomic_load_explicit(&rows->counts, memory_order_acquire);

    assert(readers_of(counts) >= 1 && counts >= RP_ROWS_REFERENCE);
    if (readers_of(counts) > 1) {
        counts = atomic_fetch_sub_explicit(&rows->counts, RP_ROWS_READER, memory_order_acq_rel);
        if (readers_of(counts) > 1) return;
    }
    empty(rows);
}

void rp_rows_unref_idle(const rp_allocator *alloc, rp_rows *rows)
{
    uint64_t counts = atomic_load_explicit(&rows->counts, memory_order_acquire);

    assert(counts >= RP_ROWS_REFERENCE);
    if (counts >= 2 * RP_ROWS_REFERENCE)
        counts =
            atomic_fetch_sub_explicit(&rows->counts, RP_ROWS_REFERENCE, memory_order_acq_rel);
    if (counts < 2 * RP_ROWS_REFERENCE) rp_release(alloc, rows, sizeof *rows);
}

void rp_rows_unref(const rp_allocator *alloc, rp_rows *rows)
{
    uint64_t counts;

    if (rows == NULL) return;
    counts = atomic_load_explicit(&rows->counts, memory_order_acquire);
    assert(readers_of(counts) >= 1 && counts >= RP_ROWS_REFERENCE);
    while (readers_of(counts) > 1) /* so there is another reference */
        if (atomic_compare_exchange_weak_explicit(&rows->counts, &counts,
                                                  counts - RP_ROWS_REFERENCE - RP_ROWS_READER,
                                                  memory_order_acq_rel, memory_order_acquire))
            return;
    empty(rows); /* before our reference is dropped */
    rp_rows_unref_idle(alloc, rows);
}

size_t rp_rows_bytes(const rp_rows *rows)
{
    size_t wire;

    assert((rows->chunk == NULL) != (rows->builder == NULL));
    if (rows->chunk == NULL) return rp_chunk_builder_bytes(rows->builder);
    (void)rp_chunk_wire(rows->chunk, &wire);
    return wire;
}
