/* SPDX-License-Identifier: Apache-2.0 */
#include "client/rows.h"

#include "util/mem.h"

rp_rows *rp_rows_new(const rp_allocator *alloc, rp_chunk_builder *builder)
{
    rp_rows *rows = rp_alloc(alloc, sizeof *rows);

    if (rows == NULL) return NULL;
    *rows = (rp_rows){.builder = builder};
    rp_refcount_init(&rows->refs);
    rp_refcount_init(&rows->readers);
    return rows;
}

void rp_rows_let_go(rp_rows *rows)
{
    if (!rp_refcount_dec(&rows->readers)) return;
    rp_chunk_builder_free(rows->builder);
    rp_chunk_unref(rows->chunk);
    rows->builder = NULL;
    rows->chunk = NULL;
}

void rp_rows_unref_idle(const rp_allocator *alloc, rp_rows *rows)
{
    if (rp_refcount_dec(&rows->refs)) rp_release(alloc, rows, sizeof *rows);
}

void rp_rows_unref(const rp_allocator *alloc, rp_rows *rows)
{
    if (rows == NULL) return;
    rp_rows_let_go(rows);
    rp_rows_unref_idle(alloc, rows);
}

size_t rp_rows_bytes(const rp_rows *rows)
{
    size_t wire;

    if (rows->chunk == NULL) return rp_chunk_builder_bytes(rows->builder);
    (void)rp_chunk_wire(rows->chunk, &wire);
    return wire;
}
