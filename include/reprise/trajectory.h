/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectories: for each column, a list of slices of chunks.
 *
 * The data of an item is a trajectory. It holds references to its chunks and copies nothing, so
 * items that overlap share their bytes. Immutable and reference counted; every call is safe
 * from any thread. */
#ifndef REPRISE_TRAJECTORY_H
#define REPRISE_TRAJECTORY_H

#include "reprise/chunk.h"

RP_BEGIN_DECLS

typedef struct rp_trajectory rp_trajectory;

/* Rows [offset, offset + length) of column `column` of `chunk`. */
typedef struct rp_slice {
    rp_chunk *chunk;
    uint32_t column;
    uint32_t offset;
    uint32_t length; /* >= 1 */
} rp_slice;

/* One column of a trajectory: the rows of its slices, one after the other. */
typedef struct rp_slices {
    const rp_slice *slices;
    size_t slice_count; /* >= 1 */
    bool squeeze;       /* exactly one row; a reader gets it without the row dimension */
} rp_slices;

enum { RP_MAX_SLICES = 1 << 20 }; /* in one trajectory, over all columns */

/* Makes a trajectory. Copies the slices and takes a reference to each chunk. Each slice must
 * lie within its chunk; the slices of one column must have one dtype and one row shape. Returns
 * owned.
 * RP_INVALID (names column, slice, value and bound), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_trajectory_new(const rp_allocator *alloc,
                                                const rp_slices *columns, size_t column_count,
                                                rp_trajectory **out, rp_error *err);
RP_API rp_trajectory *rp_trajectory_ref(rp_trajectory *trajectory);
RP_API void rp_trajectory_unref(rp_trajectory *trajectory); /* NULL is fine */

RP_API size_t rp_trajectory_column_count(const rp_trajectory *trajectory);

/* One column as a reader gets it. The shape is the row shape with the number of rows in front,
 * or the row shape alone if squeezed. */
typedef struct rp_trajectory_column {
    rp_dtype dtype;
    bool squeeze;
    uint32_t slice_count;
    rp_shape shape;
    size_t bytes; /* decoded; for strings, elements * sizeof(rp_string) */
} rp_trajectory_column;

/* `index` must be < the column count. The slices are borrowed, valid as long as the trajectory.
 */
RP_API rp_trajectory_column rp_trajectory_get_column(const rp_trajectory *trajectory,
                                                     size_t index);
RP_API const rp_slice *rp_trajectory_get_slices(const rp_trajectory *trajectory, size_t index);

/* The chunks, each once, in order of first appearance. Borrowed. */
RP_API size_t rp_trajectory_chunk_count(const rp_trajectory *trajectory);
RP_API rp_chunk *rp_trajectory_get_chunk(const rp_trajectory *trajectory, size_t index);

/* The wire bytes of its chunks, each counted once. */
RP_API size_t rp_trajectory_bytes(const rp_trajectory *trajectory);

/* The bytes that an item with this trajectory adds towards byte limits (`max_bytes` of a table
 * and of a store) if it shares no chunk with another item:
 *
 *   248 + 8 * chunks + 8 * columns + 24 * slices, for the item and its entries in indexes
 *   + for each chunk, 224 + 128 * its columns + the bytes of its message
 *
 * A chunk that several items refer to counts once. */
RP_API size_t rp_trajectory_cost(const rp_trajectory *trajectory);

/* Decodes column `column` of `count` trajectories and stacks them in `dst`, which has exactly
 * their size. All must have the dtype and shape of the first. Not for strings.
 * RP_INVALID (names the item that differs, and how), RP_CORRUPT, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_decoder_stack(rp_decoder *decoder,
                                               const rp_trajectory *const *trajectories,
                                               size_t count, size_t column, void *dst,
                                               size_t dst_bytes, rp_error *err);

/* The same for a string column: writes `element_count` elements, which are borrowed from the
 * chunks and valid as long as the trajectories. */
RP_API RP_NODISCARD rp_status rp_decoder_stack_strings(rp_decoder *decoder,
                                                       const rp_trajectory *const *trajectories,
                                                       size_t count, size_t column,
                                                       rp_string *dst, size_t element_count,
                                                       rp_error *err);

/* Checks a trajectory against a signature: number of columns, dtypes, shapes. A column also
 * fits if each of its rows has the shape of the signature, as items of Reverb's first writer
 * have.
 * RP_INVALID (names the column, its type and the expected one). */
RP_API RP_NODISCARD rp_status rp_trajectory_check(const rp_trajectory *trajectory,
                                                  const rp_signature *signature, rp_error *err);

RP_END_DECLS

#endif
