/* SPDX-License-Identifier: Apache-2.0 */
/* Codecs for the state of a table in a checkpoint: for a block of 256 slots (a slot holds an
 * item or is free), and for the rest of the state. docs/checkpoint.md specifies the bytes. The
 * functions access only memory of the caller. Decoding malicious bytes is safe.
 *
 * An item has columns, and a column has slices: ranges of rows in a column of a chunk
 * (chunk/trajectory.h). A slice refers to its chunk by the chunk's disk location. A block has a
 * list with each location once, and a slice has an index in this list. */
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
    bool squeeze; /* as rp_slices.squeeze (chunk/trajectory.h) */
} rp_image_column;

typedef struct rp_image_slot {
    uint64_t key;
    double priority;
    int64_t inserted_at_ns;
    uint64_t sequence, turn; /* as in rp_slot (table/slots.h) */
    int32_t times_sampled;
    uint32_t next; /* of a free slot: the next slot in the free list */
    uint32_t first_column, column_count;
    bool live;
} rp_image_slot;

/* A block that is being built, or that was read. The struct is too large for a stack. Only one
 * thread may use it. Invariants:
 *
 *   I1  each count is at most its capacity;
 *   I2  the columns of a slot, and the slices of a column, are contiguous ranges;
 *   I3  `index` is at most half full; its capacity is 0 or a power of two. */
typedef struct rp_image {
    rp_image_slot slots[RP_SLOTS_PER_BLOCK];
    rp_disk_location *locations;
    rp_image_column *columns;
    rp_image_slice *slices;
    size_t location_count, column_count, slice_count;
    /* private */
    size_t location_capacity, column_capacity, slice_capacity;
    uint32_t *index; /* open addressing: an entry is the index of a location + 1; 0: free */
    size_t index_capacity;
    bool bad; /* an allocation has failed */
    rp_allocator alloc;
} rp_image;

void rp_image_init(rp_image *image, const rp_allocator *alloc);
void rp_image_deinit(rp_image *image);
/* Makes every slot free, with `next` 0, and removes all locations. Keeps the memory. */
void rp_image_clear(rp_image *image);

/* Returns the index of a location. If the block does not have the location, adds it. If there
 * is no memory, the image becomes bad, and rp_image_write() will fail. */
uint32_t rp_image_add_location(rp_image *image, const rp_disk_location *location);
/* Adds a column to the item of `slot`. The columns of one slot must be added one directly after
 * the other. */
void rp_image_add_column(rp_image *image, size_t slot, bool squeeze);
/* Adds a slice to the column that was added last. */
void rp_image_add_slice(rp_image *image, const rp_image_slice *slice);

/* Appends the encoded block. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_write(const rp_image *image, rp_buf *out);

/* Reads a block into `image`. The image takes at most eight times the memory of the encoded
 * block. Checks that slices have a location and a length >= 1, but not that they fit their
 * chunks: rp_trajectory_new() checks this when the item is made. Errors: RP_CORRUPT,
 * RP_NO_RESOURCE; after a failure `image` is clear. */
RP_NODISCARD rp_status rp_image_read(rp_image *image, const uint8_t *data, size_t size,
                                     rp_error *err);

/* Appends the state of a table, except its slots and the order of its dense sets (arrays from
 * which slots are drawn uniformly). state->options has the name and the signature. */
void rp_image_write_table(rp_buf *out, const rp_table_state *state);

/* Sets `*bytes` to an upper bound of the bytes that a table with this signature adds to a
 * checkpoint in addition to its items: the table's own state in the manifest, and one block of
 * slots that is not full. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_table_bytes(const rp_allocator *alloc,
                                            const rp_signature *signature, uint64_t *bytes);

/* Reads the state of a table. options.name (zero-terminated) and options.signature (a
 * reference, or NULL) belong to the caller, who releases them with rp_image_release_table().
 * Checks only that the numbers fit their types; rp_table_restore() checks their values. Errors:
 * RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_read_table(const rp_allocator *alloc, const uint8_t *data,
                                           size_t size, rp_table_state *out, rp_error *err);
void rp_image_release_table(const rp_allocator *alloc, rp_table_state *state);

/* Sets `*same` to true if both signatures are NULL, or if they have the same columns in the
 * same nest; otherwise to false. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_image_same_signature(const rp_allocator *alloc, const rp_signature *a,
                                               const rp_signature *b, bool *same);

#endif
