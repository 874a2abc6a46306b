/* SPDX-License-Identifier: Apache-2.0 */
/* A run of rows of one column of a writer, from the first value that is appended to the chunk
 * that they become.
 *
 *   open ──(full, or flushed)──► closed ──(an item needs it: compressed)──► has a chunk
 *
 * Of chunks of one plain row, the chunk is there before the row is: closed at once, it needs
 * nothing more.
 *
 * The writer's caller appends to open rows, alone. Closed rows do not change; the one thread
 * that compresses for the writer reads them, and swaps them for a chunk under the writer's
 * lock. Rows that no item needs are never compressed.
 *
 * Counted twice over: whoever holds it reads it, at first; the column's history (or, before the
 * first row, the column), the list of what is to be compressed, each item that uses a row. An
 * item that has its trajectory reads it no more, though the writer counts its bytes until it is
 * settled: then the chunk is the trajectory's alone, and whoever sends that can tell that
 * nobody else will need it. */
#ifndef RP_CLIENT_WRITER_ROWS_H
#define RP_CLIENT_WRITER_ROWS_H

#include <stdatomic.h>

#include "chunk/builder.h"

typedef struct rp_writer_column rp_writer_column;

typedef struct rp_rows rp_rows;
struct rp_rows {
    atomic_uint_fast64_t counts; /* RP_ROWS_REFERENCE each, and RP_ROWS_READER for those that
                                    need the rows or the chunk */
    size_t held;    /* pieces of unsettled items that use it; this and the next: guarded by */
    size_t charged; /* the writer's lock; bytes it counts for there, while it is held */
    rp_writer_column *column; /* of the writer */
    uint32_t count;           /* the caller's; fixed once closed */
    bool closed;              /* set by the caller, before anybody else may see it */
    bool wanted;              /* an item needs it: the caller's */
    uint64_t first_item;      /* wanted: number of the first item that does */
    rp_chunk_origin origin;   /* its last step grows until it is closed */

    /* guarded by the writer's lock once it is wanted */
    rp_rows *next;             /* among those that are to be compressed */
    rp_chunk_builder *builder; /* until there is a chunk */
    rp_chunk *chunk;
};

#define RP_ROWS_READER ((uint64_t)1)
#define RP_ROWS_REFERENCE ((uint64_t)1 << 32)

/* Rows `offset` and on of a run. */
typedef struct rp_piece {
    rp_rows *rows;
    uint32_t offset, length;
} rp_piece;

/* Takes the builder, which is empty; or NULL: the caller sets the chunk before anybody else
 * sees it. NULL if there is no memory. Returns owned. */
rp_rows *rp_rows_new(const rp_allocator *alloc, rp_chunk_builder *builder);
static inline rp_rows *rp_rows_ref(rp_rows *rows)
{
    atomic_fetch_add_explicit(&rows->counts, RP_ROWS_REFERENCE + RP_ROWS_READER,
                              memory_order_relaxed);
    return rows;
}
/* A reference reads no more. */
void rp_rows_let_go(rp_rows *rows);
/* Drops a reference that reads, and one that does not. `alloc` is the one it came from. */
void rp_rows_unref(const rp_allocator *alloc, rp_rows *rows); /* NULL is fine */
void rp_rows_unref_idle(const rp_allocator *alloc, rp_rows *rows);

/* What it holds: the rows, or the chunk. */
size_t rp_rows_bytes(const rp_rows *rows);

#endif
