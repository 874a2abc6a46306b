/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch arrays for reading the items of a message. They grow as far as the limits allow, and
 * are trimmed after a message that needed much. A worker has one rp_item_room, used for one
 * item at a time. */
#ifndef RP_SERVER_BOUNDS_ITEM_ROOM_H
#define RP_SERVER_BOUNDS_ITEM_ROOM_H

#include "chunk/trajectory.h"
#include "util/bytes.h"
#include "wire/insert_request.h"

/* A zeroed one has no memory. */
typedef struct rp_item_room {
    rp_wire_column *wire_columns; /* of the last item that was read */
    rp_wire_slice *wire_slices;   /* of the last item that was read */
    rp_slices *columns;           /* for the trajectory that is made of that item */
    rp_slice *slices;             /* for the same trajectory */
    uint64_t *keys;               /* see rp_item_room_keys() */
    /* At least column_capacity and slice_capacity. */
    size_t wire_column_capacity, wire_slice_capacity;
    size_t column_capacity, slice_capacity;
    size_t key_capacity;
} rp_item_room;

void rp_item_room_deinit(rp_item_room *room, const rp_allocator *alloc);

/* Reads an item of at most `most_columns` columns and `most_slices` slices into the arrays.
 * Otherwise as rp_wire_item_read(). */
RP_NODISCARD rp_status rp_item_room_read(rp_item_room *room, const rp_allocator *alloc,
                                         rp_bytes data, size_t most_columns, size_t most_slices,
                                         rp_wire_item *item, rp_error *err);

/* Makes room for `count` keys. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_item_room_keys(rp_item_room *room, const rp_allocator *alloc,
                                         size_t count);

/* Shrinks arrays that have grown large. Call it after each message: few messages need large
 * arrays, so the memory is not kept. */
void rp_item_room_trim(rp_item_room *room, const rp_allocator *alloc);

#endif
