/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/item_room.h"

#include "util/error.h"
#include "util/mem.h"

enum {
    FIRST_COLUMNS = 16,
    FIRST_SLICES = 64,
    KEPT = 16 << 10, /* slices and keys; larger arrays are shrunk after a message */
};

/* `array` is the address of the pointer to the array, here and below. */
static bool grow(const rp_allocator *alloc, void *array, size_t *capacity, size_t count,
                 size_t element_size)
{
    if (count <= *capacity) return true;
    if (!rp_resize_array(alloc, array, *capacity, count, element_size)) return false;
    *capacity = count;
    return true;
}

static bool reserve(rp_item_room *room, const rp_allocator *alloc, size_t columns,
                    size_t slices)
{
    return grow(alloc, &room->wire_columns, &room->wire_column_capacity, columns,
                sizeof *room->wire_columns) &&
           grow(alloc, &room->columns, &room->column_capacity, columns,
                sizeof *room->columns) &&
           grow(alloc, &room->wire_slices, &room->wire_slice_capacity, slices,
                sizeof *room->wire_slices) &&
           grow(alloc, &room->slices, &room->slice_capacity, slices, sizeof *room->slices);
}

static size_t lower(size_t a, size_t b)
{
    return a < b ? a : b;
}

rp_status rp_item_room_read(rp_item_room *room, const rp_allocator *alloc, rp_bytes data,
                            size_t most_columns, size_t most_slices, rp_wire_item *item,
                            rp_error *err)
{
    if (room->slice_capacity == 0 && !reserve(room, alloc, FIRST_COLUMNS, FIRST_SLICES))
        return rp_fail_memory(err, FIRST_SLICES * sizeof(rp_chunk_slice));
    for (;;) {
        size_t columns = lower(room->column_capacity, most_columns);
        size_t slices = lower(room->slice_capacity, most_slices);
        rp_status st = rp_wire_item_read(
            data.data, data.size,
            &(rp_wire_item_arrays){room->wire_columns, columns, room->wire_slices, slices},
            item, err);
        if (st != RP_NO_RESOURCE || (columns == most_columns && slices == most_slices))
            return st;
        if (item->column_count == columns) columns = lower(4 * columns, most_columns);
        if (item->slice_count == slices) slices = lower(4 * slices, most_slices);
        if (columns <= room->column_capacity && slices <= room->slice_capacity) return st;
        if (!reserve(room, alloc, columns, slices))
            return rp_fail_memory(err, slices * sizeof(rp_chunk_slice));
    }
}

rp_status rp_item_room_keys(rp_item_room *room, const rp_allocator *alloc, size_t count)
{
    return grow(alloc, &room->keys, &room->key_capacity, count, sizeof *room->keys)
               ? RP_OK
               : RP_NO_RESOURCE;
}

static void trim(const rp_allocator *alloc, void *array, size_t *capacity, size_t element_size)
{
    if (*capacity > KEPT && rp_resize_array(alloc, array, *capacity, KEPT, element_size))
        *capacity = KEPT;
}

void rp_item_room_trim(rp_item_room *room, const rp_allocator *alloc)
{
    trim(alloc, &room->slices, &room->slice_capacity, sizeof *room->slices);
    if (room->slice_capacity <= KEPT)
        trim(alloc, &room->wire_slices, &room->wire_slice_capacity, sizeof *room->wire_slices);
    trim(alloc, &room->keys, &room->key_capacity, sizeof *room->keys);
}

void rp_item_room_deinit(rp_item_room *room, const rp_allocator *alloc)
{
    rp_release(alloc, room->wire_columns,
               room->wire_column_capacity * sizeof *room->wire_columns);
    rp_release(alloc, room->columns, room->column_capacity * sizeof *room->columns);
    rp_release(alloc, room->wire_slices, room->wire_slice_capacity * sizeof *room->wire_slices);
    rp_release(alloc, room->slices, room->slice_capacity * sizeof *room->slices);
    rp_release(alloc, room->keys, room->key_capacity * sizeof *room->keys);
    *room = (rp_item_room){0};
}
