/* SPDX-License-Identifier: Apache-2.0 */
/* The private part of a trajectory, for tables and decoders. A trajectory is the data of an
 * item: columns, which refer to rows of chunks. A store has millions of items, so a trajectory
 * is one small allocation: the shape and dtype of a column are not stored, but computed from
 * its chunks when needed.
 *
 *   | rp_trajectory | chunks x k | extents x n | slices, column by column |
 *
 * Invariants:
 *   J1  `chunks` has the chunks of all slices, each chunk once, in order of first appearance;
 *   J2  the extents are contiguous: each begins where the previous extent ends;
 *   J3  if is_plain is set in the extent of a column, the column is a single row, and the
 *       extent has the dtype, the shape and the address of this row. */
#ifndef RP_CHUNK_TRAJECTORY_H
#define RP_CHUNK_TRAJECTORY_H

#include <assert.h>

#include "chunk/chunk_api.h"
#include "reprise/trajectory.h"
#include "util/refcount.h"

/* Rows [offset, offset + length) of column `column` of `chunk`. */
typedef struct rp_chunk_slice {
    rp_chunk *chunk;
    uint32_t column;
    uint32_t offset;
    uint32_t length; /* >= 1 */
} rp_chunk_slice;

/* One column of a trajectory: the rows of its slices, one after the other. */
typedef struct rp_slices {
    const rp_chunk_slice *slices;
    size_t slice_count; /* >= 1 */
    bool squeeze; /* the column has exactly one row, which is read without the row dimension */
} rp_slices;

/* Makes a trajectory. Borrows `columns` and their slices during the call, and adds a reference
 * to each chunk. Checks the slices against their chunks. All slices of one column must have the
 * same dtype and row shape. The caller owns `*out`. Errors: RP_INVALID (the error text names
 * column, slice, value and bound), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_trajectory_new(const rp_allocator *alloc, const rp_slices *columns,
                                         size_t column_count, rp_trajectory **out,
                                         rp_error *err);

/* Return the number of chunks, and a chunk, which is borrowed. Each chunk occurs once. The
 * chunks are in the order in which the slices first refer to them. */
size_t rp_trajectory_chunk_count(const rp_trajectory *trajectory);
rp_chunk *rp_trajectory_get_chunk(const rp_trajectory *trajectory, size_t index);

/* Checks a trajectory against a signature: number of columns, dtypes, shapes. A column may also
 * be a sequence of steps if each step has the shape in the signature: `Writer`, the older of
 * Reverb's two writers, makes such items. Errors: RP_INVALID (the error text names the column,
 * its value and the expected value). */
RP_NODISCARD rp_status rp_trajectory_check(const rp_trajectory *trajectory,
                                           const rp_signature *signature, rp_error *err);

/* An extent says which slices a column has. The extent of a plain column also has the dtype,
 * shape and address of the column's only row, so that the row can be read without reading the
 * header of its chunk first. A column is plain if all of these are true:
 *
 *   - the column is one row, a scalar or a vector that has an rp_row_kind();
 *   - the row is stored uncompressed, in the allocation of the rp_chunk itself;
 *   - the row begins less than 2^16 bytes after the rp_chunk. */
typedef struct rp_extent {
    uint32_t first_slice : 21;
    uint32_t squeeze : 1;
    uint32_t is_plain : 1;
    uint32_t more; /* if not plain: the number of slices. If plain, there is one slice: the
                      upper 16 bits are the rp_row_kind() of the row, and the lower 16 bits are
                      the distance in bytes from the rp_chunk to the row */
} rp_extent;

static_assert(2 * RP_MAX_SLICES <= 1 << 21, "first_slice has 21 bits");

static inline uint32_t rp_extent_slices(const rp_extent *extent)
{
    return extent->is_plain ? 1 : extent->more;
}

static_assert(RP_UINT4 < 32, "the largest dtype fits into the 5 bits of a row kind");

/* Returns the kind of a row: a number that stands for its dtype and shape, so rows of one kind
 * have the same dtype and shape. Returns 0 (no kind) unless the row is a scalar or a vector of
 * 1 to 2^10 - 1 elements. */
static inline uint32_t rp_row_kind(rp_dtype dtype, int32_t rank, const int64_t *dims)
{
    uint32_t base = (uint32_t)dtype << 11;

    assert((uint32_t)dtype < 32);
    if (rank == 0) return base;
    return rank == 1 && dims[0] > 0 && dims[0] < 1 << 10 ? base | 1 << 10 | (uint32_t)dims[0]
                                                         : 0;
}

enum {
    /* The bytes that byte limits count for an item's slot and its entries in the key map and in
     * both selectors. Growing arrays can be half unused, so each entry counts twice. */
    RP_ITEM_INDEX_BYTES = 192,
    /* Bytes of an item without its chunks, columns and slices: RP_ITEM_INDEX_BYTES, and the
     * header of its trajectory. */
    RP_ITEM_FIXED_BYTES = 248,
};

struct rp_trajectory {
    rp_refcount refs;
    uint32_t chunk_count;
    uint16_t column_count; /* <= RP_MAX_COLUMNS */
    uint16_t slice_image;  /* upper bound of the mean size of a slice of this trajectory in a
                              checkpoint, in sixteenths of a byte */
    /* The bytes that byte limits count for an item without its chunks. */
    uint32_t item_cost;
    size_t cost;  /* item_cost plus rp_chunk_memory() of each chunk */
    size_t bytes; /* sum of the wire bytes of the chunks */
    rp_allocator alloc;
    rp_chunk *chunks[]; /* owned references; each chunk occurs once */
};

/* Upper bounds of the bytes that parts of an item take in a checkpoint
 * (durable/format/image.h). */
enum {
    RP_IMAGE_ITEM_BYTES = 54, /* state, key, priority, time, sequence, turn, times sampled,
                                 number of columns: 1 + 8 + 8 + 10 + 10 + 10 + 5 + 2 */
    RP_IMAGE_SETS_BYTES = 10, /* the slot of the item in the manifest, in the lists of the dense
                                 sets (dense_set.h) of sampler and remover: 5 + 5 */
    RP_IMAGE_CHUNK_BYTES = 15, /* the chunk's location on disk: segment (file), offset, size */
    RP_IMAGE_INDEX_BYTES = 5,  /* the reference of a slice to its chunk; it takes only one byte
                                  if the previous slice has the same chunk */
    RP_IMAGE_PARTS = 16,       /* slice_image counts in units of 1/16 byte */
    /* A slot without an item: 6 bytes for the slot, and 2 bytes for its part of the header of
     * its block (256 slots) and of the block's entry in the manifest. A slot with an item
     * counts these 8 bytes in addition to the item's. */
    RP_IMAGE_SLOT_BYTES = 8,
};

/* Returns an upper bound of the bytes that an item with this trajectory takes in a checkpoint:
 * the item in its block, and its entries in the manifest. The number of slices of a column
 * takes one byte; from 64 slices on it takes another byte. */
static inline uint64_t rp_trajectory_image(const rp_trajectory *t)
{
    const uint32_t least = RP_ITEM_FIXED_BYTES + sizeof(rp_chunk *) + sizeof(rp_extent) +
                           sizeof(rp_chunk_slice); /* one chunk, one column and one slice */
    uint64_t slices;

    if (t->item_cost == least) /* without the divisions below */
        return RP_IMAGE_ITEM_BYTES + RP_IMAGE_SETS_BYTES + RP_IMAGE_SLOT_BYTES + 2 +
               t->slice_image / RP_IMAGE_PARTS + RP_IMAGE_CHUNK_BYTES;
    slices = (t->item_cost - RP_ITEM_FIXED_BYTES - t->chunk_count * sizeof(rp_chunk *) -
              t->column_count * sizeof(rp_extent)) /
             sizeof(rp_chunk_slice);

    return RP_IMAGE_ITEM_BYTES + RP_IMAGE_SETS_BYTES + RP_IMAGE_SLOT_BYTES + t->column_count +
           slices / 64 + slices * t->slice_image / RP_IMAGE_PARTS + 1 +
           (uint64_t)t->chunk_count * RP_IMAGE_CHUNK_BYTES;
}

static inline const rp_extent *rp_trajectory_extents(const rp_trajectory *t)
{
    return (const rp_extent *)(const void *)(t->chunks + t->chunk_count);
}

/* Returns the slices of column `index`, which must exist. */
static inline rp_slices rp_trajectory_slices(const rp_trajectory *t, size_t index)
{
    const rp_extent *extents = rp_trajectory_extents(t), *extent = &extents[index];
    const rp_chunk_slice *slices =
        (const rp_chunk_slice *)(const void *)(extents + t->column_count);
    rp_slices column = {slices + extent->first_slice, rp_extent_slices(extent),
                        extent->squeeze};

    assert(index < t->column_count && column.slice_count >= 1);
    return column;
}

/* Checks column `index` as rp_trajectory_check() does. */
RP_NODISCARD rp_status rp_trajectory_column_check(size_t index,
                                                  const rp_trajectory_column *column,
                                                  const rp_spec *spec, rp_error *err);

/* A limit on the decoded size of a trajectory. */
typedef struct rp_decoded_limit {
    size_t bytes;
    const char *setting; /* for the error text: name of the setting that can be raised */
} rp_decoded_limit;

/* Returns an upper bound of the bytes of the strings of a column. For each slice, the bound
 * includes all strings in the chunk's column, even strings outside the slice. Returns SIZE_MAX
 * if the sum is too large. */
size_t rp_slices_string_bytes(const rp_slices *column);

/* Returns the number of slices of all columns. */
static inline size_t rp_trajectory_slice_count(const rp_trajectory *trajectory)
{
    const rp_extent *last = rp_trajectory_extents(trajectory) + trajectory->column_count - 1;

    return (size_t)last->first_slice + rp_extent_slices(last);
}

/* Like rp_trajectory_new(), but adds no references to the chunks. Before the trajectory is
 * released, the caller must either give its own references to the trajectory or call
 * rp_trajectory_hold(), which adds references. `limit` (may be NULL) bounds the decoded size:
 * the bytes of all rows, where a row counts as at least 1 byte, plus the bytes of all strings.
 * Errors: RP_NO_RESOURCE (no memory, or the size exceeds `limit`), RP_INVALID. */
RP_NODISCARD rp_status rp_trajectory_new_unheld(const rp_allocator *alloc,
                                                const rp_slices *columns, size_t column_count,
                                                const rp_decoded_limit *limit,
                                                rp_trajectory **out, rp_error *err);
void rp_trajectory_hold(rp_trajectory *trajectory);

/* Makes a copy of a trajectory with other chunks: `chunks` must have, for each chunk of the
 * trajectory, in order, a chunk with the same columns, shapes and dtypes. Adds references to
 * these chunks. The caller owns the result. Returns NULL if there is no memory. */
rp_trajectory *rp_trajectory_over(const rp_allocator *alloc, const rp_trajectory *trajectory,
                                  rp_chunk *const *chunks);

/* Add or drop `count` references at once. */
static inline rp_trajectory *rp_trajectory_ref_many(rp_trajectory *trajectory, uint32_t count)
{
    rp_refcount_add(&trajectory->refs, count);
    return trajectory;
}
void rp_trajectory_unref_many(rp_trajectory *trajectory, uint32_t count);

#endif
