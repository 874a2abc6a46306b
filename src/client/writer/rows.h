/* SPDX-License-Identifier: Apache-2.0 */
/* Consecutive rows of one column of a trajectory writer, from the first value until they have
 * become a chunk (chunk/chunk_api.h), the serialised form in which they are sent:
 *
 *   open ──(full, or flushed)──► closed ──(an item needs it: compressed)──► has a chunk
 *
 * A flush of the writer closes rows that are not full if an item needs them. If chunks consist
 * of one uncompressed row, the append builds the chunk directly, and the rows are closed at
 * once.
 *
 * Only the writer's caller (the thread that appends values) changes open rows. Closed rows do
 * not change. The writer's background job compresses closed rows and replaces them with a
 * chunk, under the writer's lock. Rows that no item needs are never compressed.
 *
 * An rp_rows has two counts: the number of references, and the number of references that read,
 * that is, whose holders can still access the values. References are held by the history of the
 * column (before the first row: by the column itself), by the list of rows to compress, and by
 * each item that uses a row. Each reference reads at first. When the trajectory of an item has
 * been built, the item's reference stops reading. The item keeps the reference until the item
 * is settled (confirmed or rejected), because the writer counts the bytes of the rows until
 * then. When no reference reads any more, only trajectories hold the chunk. From the chunk's
 * reference count, the sink then sees that no later item will use the chunk. */
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
    size_t held;    /* number of pieces (rp_piece) of unsettled items in these rows; guarded by
                       the writer's lock */
    size_t charged; /* if held > 0: the bytes of these rows that rp_trajectory_writer.bytes
                       includes; guarded by the writer's lock */
    rp_writer_column *column; /* column to which the rows belong */
    uint32_t count;           /* number of rows; only the caller changes it, and only while the
                                 rows are open */
    bool closed;              /* the caller sets it before the background job gets the rows */
    bool wanted;              /* an item needs the rows; only the caller uses it */
    uint64_t first_item;      /* if wanted: number of the first item that needs the rows */
    rp_chunk_origin origin;   /* last_step grows until the rows are closed */

    /* Once `wanted` is set, the writer's lock guards these: */
    rp_rows *next;             /* in the list of rows to compress */
    rp_chunk_builder *builder; /* NULL once there is a chunk */
    rp_chunk *chunk;
};

#define RP_ROWS_READER ((uint64_t)1)
#define RP_ROWS_REFERENCE ((uint64_t)1 << 32)

/* A range of rows: `length` rows from `offset` on. */
typedef struct rp_piece {
    rp_rows *rows;
    uint32_t offset, length;
} rp_piece;

/* Creates open rows, and takes ownership of `builder`, which must be empty. If `builder` is
 * NULL, the caller must set the chunk. The caller owns the first reference. Returns NULL if
 * memory runs out. */
rp_rows *rp_rows_new(const rp_allocator *alloc, rp_chunk_builder *builder);
static inline rp_rows *rp_rows_ref(rp_rows *rows)
{
    atomic_fetch_add_explicit(&rows->counts, RP_ROWS_REFERENCE + RP_ROWS_READER,
                              memory_order_relaxed);
    return rows;
}
/* Makes a reference stop reading. The reference remains. */
void rp_rows_let_go(rp_rows *rows);
/* Release a reference: rp_rows_unref() one that reads, rp_rows_unref_idle() one that has
 * stopped reading. `alloc` must be that of rp_rows_new(). */
void rp_rows_unref(const rp_allocator *alloc, rp_rows *rows); /* NULL is fine */
void rp_rows_unref_idle(const rp_allocator *alloc, rp_rows *rows);

/* Returns the number of bytes of the rows, or of their chunk if there is one. */
size_t rp_rows_bytes(const rp_rows *rows);

#endif
