/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch arrays that a worker uses to read the items of insert messages. They grow as far as
 * the limits on items allow, and are trimmed after a message that needed much memory. Each
 * worker has one rp_item_room and uses it for one item at a time. */
#ifndef RP_SERVER_BOUNDS_ITEM_ROOM_H
#define RP_SERVER_BOUNDS_ITEM_ROOM_H

#include "chunk/trajectory.h"
#include "util/bytes.h"
#include "wire/insert_request.h"

/* A zeroed rp_item_room has no memory. */
typedef struct rp_item_room {
    rp_wire_column *wire_columns; /* columns of the last item that was read */
    rp_wire_slice *wire_slices;   /* slices of the last item that was read */
    rp_slices *columns;           /* columns of the trajectory that is made of that item */
    rp_chunk_slice *slices;       /* slices of that trajectory */
    uint64_t *keys;               /* scratch for keys: rp_item_room_keys() */
    /* Lengths of the arrays. wire_column_capacity >= column_capacity, and wire_slice_capacity
     * >= slice_capacity. */
    size_t wire_column_capacity, wire_slice_capacity;
    size_t column_capacity, slice_capacity;
    size_t key_capacity;
} rp_item_room;

void rp_item_room_deinit(rp_item_room *room, const rp_allocator *alloc);

/* Reads an item of at most `most_columns` columns and `most_slices` slices into the arrays.
 * Apart from that, the function does the same as rp_wire_item_read() (wire/insert_request.h).
 */
RP_NODISCARD rp_status rp_item_room_read(rp_item_room *room, const rp_allocator *alloc,
                                         rp_bytes data, size_t most_columns, size_t most_slices,
                                         rp_wire_item *item, rp_error *err);

/* Makes `keys` at least `count` elements long. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_item_room_keys(rp_item_room *room, const rp_allocator *alloc,
                                         size_t count);

/* Shrinks arrays that have grown large, since few messages need large arrays. Must be called
 * after each insert message. */
void rp_item_room_trim(rp_item_room *room, const rp_allocator *alloc);

#endif
