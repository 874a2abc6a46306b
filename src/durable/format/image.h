/* SPDX-License-Identifier: Apache-2.0 */
/* What a block of 256 slots, and the rest of a table, look like on disk. Pure codecs: bytes in,
 * values out, hostile bytes included; docs/checkpoint.md draws them.
 *
 * A block's items refer to chunks by their locations; each location stands once in the block,
 * and slices refer to it by its index. Nothing here knows a chunk. */
#ifndef RP_DURABLE_FORMAT_IMAGE_H
#define RP_DURABLE_FORMAT_IMAGE_H

#include "disk/segments.h"
#include "table/snapshot/cut.h"
#include "util/buf.h"

typedef struct rp_image_slice {
    uint32_t location; /* index in the block's locations */
    uint32_t column, offset, length;
} rp_image_slice;

typedef struct rp_image_column {
    uint32_t first_slice, slice_count;
    bool squeeze;
} rp_image_column;

typedef struct rp_image_slot {
    uint64_t key;
    double priority;
    int64_t inserted_at_ns;
    uint64_t sequence, turn;
    int32_t times_sampled;
    uint32_t next; /* of a free one */
    uint32_t first_column, column_count;
    bool live;
} rp_image_slot;

/* A block in the making, or one that was read. Large: not for a stack. One thread. */
typedef struct rp_image {
    rp_image_slot slots[RP_SLOTS_PER_BLOCK];
    rp_disk_location *locations;
    rp_image_column *columns;
    rp_image_slice *slices;
    size_t location_count, column_count, slice_count;
    /* private */
    size_t location_capacity, column_capacity, slice_capacity;
    uint32_t *index; /* open addressing: index of a location, plus 1 */
    size_t index_capacity;
    bool bad; /* there was no memory */
    rp_allocator alloc;
} rp_image;

void rp_image_init(rp_image *image, const rp_allocator *alloc);
void rp_image_deinit(rp_image *image);
/* Every slot free with `next` 0, and no locations. Keeps the memory. */
void rp_image_clear(rp_image *image);

/* The index of a location, which is added if it is not there. If there is no memory the image
 * turns bad, as a buffer does, and encoding it fails. */
uint32_t rp_image_add_location(rp_image *image, const rp_disk_location *location);
/* Adds a column to the item of `slot`, whose columns come one after the other, and then its
 * slices. */
void rp_image_add_column(rp_image *image, size_t slot, bool squeeze);
void rp_image_add_slice(rp_image *image, const rp_image_slice *slice);

/* Appends the block's bytes. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_write(const rp_image *image, rp_buf *out);

/* Reads a block into `image`, which takes at most eight times the memory of the bytes. Slices
 * have a location and a length >= 1; whether they fit their chunks shows when a trajectory is
 * made of them. RP_CORRUPT, RP_NO_RESOURCE; then `image` is clear. */
RP_NODISCARD rp_status rp_image_read(rp_image *image, const uint8_t *data, size_t size,
                                     rp_error *err);

/* Appends everything of a table but its slots and sets: state->options has the name and the
 * signature. */
void rp_image_write_table(rp_buf *out, const rp_table_state *state);

/* Reads it. options.name (zero-terminated, of the allocator) and options.signature (a
 * reference, or NULL) are the caller's: rp_image_release_table(). What a table may be is
 * checked by rp_table_restore(), here only that the numbers are of their types.
 * RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_read_table(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_table_state *out, rp_error *err);
void rp_image_release_table(const rp_allocator *alloc, rp_table_state *state);

/* True if both are NULL or describe the same columns in the same nest. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_same_signature(const rp_allocator *alloc, const rp_signature *a,
                                               const rp_signature *b, bool *same);

#endif
