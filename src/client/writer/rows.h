/* SPDX-License-Identifier: Apache-2.0 */
/* Consecutive rows of one column of a writer, from the first value until they are a chunk.
 *
 *   open ──(full, or flushed)──► closed ──(an item needs it: compressed)──► has a chunk
 *
 * A chunk of one uncompressed row is built directly by append: its rows are closed at once.
 *
 * Only the writer's caller appends to open rows. Closed rows do not change. The job reads
 * closed rows, compresses them and replaces them with a chunk under the writer's lock. Rows
 * that no item needs are never compressed.
 *
 * There are two counts: of references, and of the references that read. References are held by
 * the history of the column (before the first row: by the column), the list of rows to
 * compress, and each item that uses a row; each of them reads at first. An item whose
 * trajectory is built stops reading, but keeps its reference until it is settled, because the
 * writer counts the bytes until then. When no reference reads, only the trajectory holds the
 * chunk, so the sink can see that no later item will use it. */
#ifndef RP_CLIENT_WRITER_ROWS_H
#define RP_CLIENT_WRITER_ROWS_H

#include <stdatomic.h>

#include "chunk/builder.h"

typedef struct rp_writer_column rp_writer_column;

typedef struct rp_rows rp_rows;
struct rp_rows {
    atomic_uint_fast64_t
        counts;     /* RP_ROWS_REFERENCE for each reference, plus RP_ROWS_READER for each
                       reference that reads */
    size_t held;    /* pieces of unsettled items that use it; guarded by the writer's lock */
    size_t charged; /* while held > 0: its bytes in the writer's `bytes`; guarded likewise */
    rp_writer_column *column; /* of the writer */
    uint32_t count;           /* rows; written by the caller, fixed once closed */
    bool closed;              /* set by the caller, before the job can see the rows */
    bool wanted;              /* an item needs the rows; used by the caller only */
    uint64_t first_item;      /* if wanted: number of the first item that needs them */
    rp_chunk_origin origin;   /* last_step grows until the rows are closed */

    /* guarded by the writer's lock once `wanted` */
    rp_rows *next;             /* in the list of rows to compress */
    rp_chunk_builder *builder; /* NULL once there is a chunk */
    rp_chunk *chunk;
};

#define RP_ROWS_READER ((uint64_t)1)
#define RP_ROWS_REFERENCE ((uint64_t)1 << 32)

/* `length` rows from `offset` on. */
typedef struct rp_piece {
    rp_rows *rows;
    uint32_t offset, length;
} rp_piece;

/* Creates open rows and takes the builder, which is empty. With a NULL builder the caller sets
 * the chunk. Returns owned, or NULL if there is no memory. */
rp_rows *rp_rows_new(const rp_allocator *alloc, rp_chunk_builder *builder);
static inline rp_rows *rp_rows_ref(rp_rows *rows)
{
    atomic_fetch_add_explicit(&rows->counts, RP_ROWS_REFERENCE + RP_ROWS_READER,
                              memory_order_relaxed);
    return rows;
}
/* Turns a reference that reads into one that does not. */
void rp_rows_let_go(rp_rows *rows);
/* rp_rows_unref() drops a reference that reads, rp_rows_unref_idle() one that does not. `alloc`
 * is that of rp_rows_new(). */
void rp_rows_unref(const rp_allocator *alloc, rp_rows *rows); /* NULL is fine */
void rp_rows_unref_idle(const rp_allocator *alloc, rp_rows *rows);

/* Returns the bytes of the rows, or of their chunk. */
size_t rp_rows_bytes(const rp_rows *rows);

#endif
