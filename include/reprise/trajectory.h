/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectories: the data of items, which are the entries of tables (table.h). An item has
 * columns. A column is a tensor whose first dimension counts its rows, which are the values of
 * consecutive steps, for example.
 *
 * A chunk holds consecutive rows of one or more columns, compressed. A slice is a range of rows
 * of one column of a chunk. A trajectory has, for each column of its item, a list of slices.
 * The trajectory holds references to chunks and copies nothing, so items that overlap share
 * their bytes. A trajectory is immutable and reference counted. Every call is safe from any
 * thread, except the calls on a decoder. */
#ifndef REPRISE_TRAJECTORY_H
#define REPRISE_TRAJECTORY_H

#include "reprise/tensor.h"

RP_BEGIN_DECLS

typedef struct rp_trajectory rp_trajectory;

enum { RP_MAX_SLICES = 1 << 20 }; /* the most slices of one trajectory, over all columns */

RP_API rp_trajectory *rp_trajectory_ref(rp_trajectory *trajectory);
RP_API void rp_trajectory_unref(rp_trajectory *trajectory); /* NULL is fine */

RP_API size_t rp_trajectory_column_count(const rp_trajectory *trajectory);

/* One column as a reader gets it. The shape is the number of rows, followed by the shape of a
 * row. A column with `squeeze` has exactly one row, and `shape` is the shape of this row. */
typedef struct rp_trajectory_column {
    rp_dtype dtype;
    bool squeeze;
    uint32_t slice_count;
    rp_shape shape;
    size_t bytes; /* size when decoded; for strings, elements * sizeof(rp_string) */
} rp_trajectory_column;

/* Returns a column. `index` must be below the number of columns. */
RP_API rp_trajectory_column rp_trajectory_get_column(const rp_trajectory *trajectory,
                                                     size_t index);

/* Returns the number of bytes that an item with this trajectory counts in byte limits
 * (`max_bytes` of a table and of a store), if it shares no chunk with another item. The number
 * is:
 *
 *   248 + 8 * chunks + 8 * columns + 24 * slices, for the item and its entries in indexes
 *   + for each chunk, 224 + 128 * its columns + the bytes of the chunk as a serialised
 *     ChunkData message of Reverb
 *
 * A chunk to which several items refer counts once. */
RP_API size_t rp_trajectory_cost(const rp_trajectory *trajectory);

/* A decoder decodes rows of chunks into plain memory. It caches the columns that it has
 * decompressed, up to a number of bytes, so that overlapping items decompress each chunk once.
 * A column that is not compressed is read directly from its chunk and never cached. One thread
 * at a time may use a decoder. */
typedef struct rp_decoder rp_decoder;

/* Makes a decoder. `cache_bytes` bounds its cache; with 0 the decoder keeps only the latest
 * column. Errors: RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_decoder_new(const rp_allocator *alloc, size_t cache_bytes,
                                             rp_decoder **out);
RP_API void rp_decoder_free(rp_decoder *decoder); /* NULL is fine */

/* Decodes column `column` of `count` trajectories and writes the results to `dst`, one after
 * the other. `dst_bytes` must be exactly the size of all results. In this column all
 * trajectories must have the dtype and shape of the first one. The column must not have
 * strings.
 * Errors: RP_INVALID (the text names the item that differs, and how it differs), RP_CORRUPT,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_decoder_stack(rp_decoder *decoder,
                                               const rp_trajectory *const *trajectories,
                                               size_t count, size_t column, void *dst,
                                               size_t dst_bytes, rp_error *err);

/* Decodes a string column like rp_decoder_stack(): writes strings to `dst`. `element_count`
 * must be exactly the number of elements of all trajectories in this column. The elements are
 * borrowed from the chunks and valid as long as the trajectories. */
RP_API RP_NODISCARD rp_status rp_decoder_stack_strings(rp_decoder *decoder,
                                                       const rp_trajectory *const *trajectories,
                                                       size_t count, size_t column,
                                                       rp_string *dst, size_t element_count,
                                                       rp_error *err);

RP_END_DECLS

#endif
