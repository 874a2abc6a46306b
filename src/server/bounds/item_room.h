/* SPDX-License-Identifier: Apache-2.0 */
/* Where items of a message are taken apart: arrays that grow as far as the limits let a peer
 * make them, and are given back when a message has needed much. A worker has one, used by one
 * item at a time. */
#ifndef RP_SERVER_BOUNDS_ITEM_ROOM_H
#define RP_SERVER_BOUNDS_ITEM_ROOM_H

#include "chunk/trajectory.h"
#include "util/bytes.h"
#include "wire/insert_request.h"

/* Zero is empty. */
typedef struct rp_item_room {
    rp_wire_column *wire_columns; /* of the last item read */
    rp_wire_slice *wire_slices;
    rp_slices *columns; /* room for as many of these */
    rp_slice *slices;
    uint64_t *keys;                                   /* see rp_item_room_keys() */
    size_t wire_column_capacity, wire_slice_capacity; /* at least the two below */
    size_t column_capacity, slice_capacity;
    size_t key_capacity;
} rp_item_room;

void rp_item_room_deinit(rp_item_room *room, const rp_allocator *alloc);

/* Reads an item of at most so many columns and slices. As rp_wire_item_read(). */
RP_NODISCARD rp_status rp_item_room_read(rp_item_room *room, const rp_allocator *alloc,
                                         rp_bytes data, size_t most_columns, size_t most_slices,
                                         rp_wire_item *item, rp_error *err);

/* Makes room for `count` keys. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_item_room_keys(rp_item_room *room, const rp_allocator *alloc,
                                         size_t count);

/* A message in a thousand needs much room; the others shall not pay for it. */
void rp_item_room_trim(rp_item_room *room, const rp_allocator *alloc);

#endif
