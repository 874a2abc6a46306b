/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of blocks. */
#include "durable/format/image.h"

#include <assert.h>

#include "chunk/trajectory.h"
#include "durable/format/pack.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum { BLOCK_VERSION = 1, SLOT_FREE = 0, SLOT_LIVE = 1 };

#ifndef NDEBUG
/* Checks I1 to I3 of a whole block. */
static bool is_valid(const rp_image *image)
{
    if (image->location_count > image->location_capacity ||
        image->column_count > image->column_capacity ||
        image->slice_count > image->slice_capacity)
        return false; /* I1 */
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_image_slot *slot = &image->slots[i];

        if ((size_t)slot->first_column + slot->column_count > image->column_count) return false;
    }
    for (size_t i = 0; i < image->column_count; i++) {
        const rp_image_column *column = &image->columns[i];

        if ((size_t)column->first_slice + column->slice_count > image->slice_count)
            return false;
    }
    for (size_t i = 0; i < image->slice_count; i++)
        if (image->slices[i].location >= image->location_count) return false; /* I2 */
    return (image->index_capacity & (image->index_capacity - 1)) == 0;        /* I3 */
}
#endif

void rp_image_init(rp_image *image, const rp_allocator *alloc)
{
    memset(image, 0, sizeof *image);
    image->alloc = *alloc;
}

void rp_image_deinit(rp_image *image)
{
    rp_release(&image->alloc, image->locations,
               image->location_capacity * sizeof(rp_disk_location));
    rp_release(&image->alloc, image->columns, image->column_capacity * sizeof(rp_image_column));
    rp_release(&image->alloc, image->slices, image->slice_capacity * sizeof(rp_image_slice));
    rp_release(&image->alloc, image->index, image->index_capacity * sizeof(uint32_t));
    image->locations = NULL;
    image->columns = NULL;
    image->slices = NULL;
    image->index = NULL;
    image->location_capacity = image->column_capacity = image->slice_capacity = 0;
    image->index_capacity = 0;
}

void rp_image_clear(rp_image *image)
{
    memset(image->slots, 0, sizeof image->slots);
    image->location_count = image->column_count = image->slice_count = 0;
    image->bad = false;
    if (image->index != NULL) memset(image->index, 0, image->index_capacity * sizeof(uint32_t));
}

/* Grows an array for one more element. */
static bool make_room(rp_image *image, void *array, size_t count, size_t *capacity,
                      size_t element_size)
{
    size_t more = *capacity < RP_SLOTS_PER_BLOCK ? RP_SLOTS_PER_BLOCK : 2 * *capacity;

    if (count < *capacity) return true;
    if (image->bad || count >= UINT32_MAX / 2 ||
        !rp_resize_array(&image->alloc, array, *capacity, more, element_size)) {
        image->bad = true;
        return false;
    }
    *capacity = more;
    return true;
}

static size_t bucket_of(const rp_image *image, const rp_disk_location *location)
{
    uint64_t hash = (location->segment * 0x9e3779b97f4a7c15u) ^ location->offset;

    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    return (size_t)(hash >> 32) & (image->index_capacity - 1);
}

/* The index entry of a location, or the free entry where it would be inserted. */
static size_t find_location(const rp_image *image, const rp_disk_location *location)
{
    size_t at = bucket_of(image, location);

    assert(2 * image->location_count <= image->index_capacity); /* I3 */
    for (; image->index[at] != 0; at = (at + 1) & (image->index_capacity - 1)) {
        const rp_disk_location *other = &image->locations[image->index[at] - 1];
        if (other->segment == location->segment && other->offset == location->offset) break;
    }
    return at;
}

/* Keeps the index at most half full. */
static bool grow_index(rp_image *image)
{
    size_t capacity =
        image->index_capacity == 0 ? 2 * RP_SLOTS_PER_BLOCK : 2 * image->index_capacity;
    uint32_t *index;

    if (2 * (image->location_count + 1) <= image->index_capacity) return true;
    index = rp_alloc_array(&image->alloc, capacity, sizeof *index);
    if (index == NULL) {
        image->bad = true;
        return false;
    }
    rp_release(&image->alloc, image->index, image->index_capacity * sizeof(uint32_t));
    image->index = index;
    image->index_capacity = capacity;
    for (size_t i = 0; i < image->location_count; i++)
        index[find_location(image, &image->locations[i])] = (uint32_t)i + 1;
    return true;
}

uint32_t rp_image_add_location(rp_image *image, const rp_disk_location *location)
{
    size_t at;

    if (!grow_index(image)) return 0;
    at = find_location(image, location);
    if (image->index[at] != 0) return image->index[at] - 1;
    if (!make_room(image, &image->locations, image->location_count, &image->location_capacity,
                   sizeof *image->locations))
        return 0;
    image->locations[image->location_count++] = *location;
    image->index[at] = (uint32_t)image->location_count;
    assert(image->location_count <= image->location_capacity);
    return (uint32_t)image->location_count - 1;
}

void rp_image_add_column(rp_image *image, size_t slot, bool squeeze)
{
    rp_image_slot *s = &image->slots[slot];

    assert(slot < RP_SLOTS_PER_BLOCK && s->live);
    if (!make_room(image, &image->columns, image->column_count, &image->column_capacity,
                   sizeof *image->columns))
        return;
    if (s->column_count++ == 0) s->first_column = (uint32_t)image->column_count;
    assert((size_t)s->first_column + s->column_count == image->column_count + 1); /* I2 */
    image->columns[image->column_count++] =
        (rp_image_column){.first_slice = (uint32_t)image->slice_count, .squeeze = squeeze};
}

void rp_image_add_slice(rp_image *image, const rp_image_slice *slice)
{
    if (!make_room(image, &image->slices, image->slice_count, &image->slice_capacity,
                   sizeof *image->slices))
        return;
    assert(image->bad || slice->location < image->location_count);
    assert(image->bad || image->column_count > 0);
    image->slices[image->slice_count++] = *slice;
    if (image->column_count > 0) image->columns[image->column_count - 1].slice_count++;
}

static void write_locations(const rp_image *image, rp_buf *out)
{
    rp_disk_location before = {0};

    rp_pack_number(out, image->location_count);
    for (size_t i = 0; i < image->location_count; i++) {
        const rp_disk_location *location = &image->locations[i];

        rp_pack_change(out, location->segment, before.segment);
        rp_pack_change(out, location->offset, rp_location_end(&before));
        rp_pack_number(out, location->size);
        before = *location;
    }
}

static void write_columns(const rp_image *image, const rp_image_slot *slot, uint32_t *before,
                          rp_buf *out)
{
    rp_pack_number(out, slot->column_count);
    for (uint32_t c = 0; c < slot->column_count; c++) {
        const rp_image_column *column = &image->columns[slot->first_column + c];

        rp_pack_number(out, (uint64_t)column->slice_count << 1 | column->squeeze);
        for (uint32_t i = 0; i < column->slice_count; i++) {
            const rp_image_slice *slice = &image->slices[column->first_slice + i];

            rp_pack_change(out, slice->location, *before);
            rp_pack_number(out, slice->column);
            rp_pack_number(out, slice->offset);
            rp_pack_number(out, slice->length);
            *before = slice->location;
        }
    }
}

rp_status rp_image_write(const rp_image *image, rp_buf *out)
{
    rp_image_slot before = {0};
    uint32_t location = 0;

    RP_VERIFY(image->slice_count, image->bad || is_valid(image));
    rp_pack_number(out, BLOCK_VERSION);
    write_locations(image, out);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_image_slot *slot = &image->slots[i];

        if (!slot->live) {
            rp_pack_number(out, SLOT_FREE);
            rp_pack_number(out, (uint32_t)(slot->next + 1)); /* 0: the end of the free list */
            continue;
        }
        rp_pack_number(out, SLOT_LIVE);
        rp_pack_word(out, slot->key);
        rp_pack_double(out, slot->priority);
        rp_pack_change(out, (uint64_t)slot->inserted_at_ns, (uint64_t)before.inserted_at_ns);
        rp_pack_change(out, slot->sequence, before.sequence);
        rp_pack_change(out, slot->turn, before.turn);
        rp_pack_change(out, (uint64_t)(int64_t)slot->times_sampled, 0);
        write_columns(image, slot, &location, out);
        before = *slot;
    }
    return image->bad || out->bad ? RP_NO_RESOURCE : RP_OK;
}

static void read_locations(rp_image *image, rp_unpack *in)
{
    /* Each location takes at least three bytes, which bounds the count. */
    uint64_t count = rp_unpack_bounded(in, rp_unpack_left(in) / 3);
    rp_disk_location before = {0};

    for (uint64_t i = 0; i < count && !in->bad && !image->bad; i++) {
        rp_disk_location location = {0};

        location.segment = rp_unpack_change(in, before.segment);
        location.offset = rp_unpack_change(in, rp_location_end(&before));
        location.size = (uint32_t)rp_unpack_bounded(in, RP_MAX_RECORD_BYTES);
        if (location.segment == 0 || location.offset < RP_FILE_HEADER_BYTES ||
            location.offset > INT64_MAX)
            in->bad = true;
        if (!make_room(image, &image->locations, image->location_count,
                       &image->location_capacity, sizeof *image->locations))
            return;
        image->locations[image->location_count++] = location;
        before = location;
    }
}

static void read_slice(rp_image *image, rp_unpack *in, uint32_t *before)
{
    uint64_t location = rp_unpack_change(in, *before);
    rp_image_slice slice = {0};

    if (location >= image->location_count) in->bad = true;
    slice.location = (uint32_t)location;
    slice.column = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    slice.offset = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    slice.length = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    if (slice.length == 0) in->bad = true;
    if (in->bad) return;
    rp_image_add_slice(image, &slice);
    *before = slice.location;
}

static void read_columns(rp_image *image, size_t slot, rp_unpack *in, uint32_t *before)
{
    uint64_t columns = rp_unpack_bounded(in, RP_MAX_COLUMNS);
    uint64_t left = RP_MAX_SLICES;

    if (columns == 0) in->bad = true;
    for (uint64_t c = 0; c < columns && !in->bad && !image->bad; c++) {
        uint64_t head = rp_unpack_bounded(in, left << 1 | 1);

        if (head >> 1 == 0 || head >> 1 > rp_unpack_left(in) / 4) in->bad = true;
        if (in->bad) return;
        left -= head >> 1;
        rp_image_add_column(image, slot, head & 1);
        for (uint64_t i = 0; i < head >> 1 && !in->bad && !image->bad; i++)
            read_slice(image, in, before);
    }
}

static void read_slots(rp_image *image, rp_unpack *in)
{
    rp_image_slot before = {0};
    uint32_t location = 0;

    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK && !in->bad && !image->bad; i++) {
        rp_image_slot *slot = &image->slots[i];
        int64_t times;

        if (rp_unpack_bounded(in, SLOT_LIVE) == SLOT_FREE) {
            slot->next = (uint32_t)rp_unpack_bounded(in, UINT32_MAX) - 1;
            continue;
        }
        slot->live = true;
        slot->key = rp_unpack_word(in);
        slot->priority = rp_unpack_double(in);
        slot->inserted_at_ns = (int64_t)rp_unpack_change(in, (uint64_t)before.inserted_at_ns);
        slot->sequence = rp_unpack_change(in, before.sequence);
        slot->turn = rp_unpack_change(in, before.turn);
        times = (int64_t)rp_unpack_change(in, 0);
        if (times < INT32_MIN || times > INT32_MAX) in->bad = true;
        slot->times_sampled = (int32_t)times;
        read_columns(image, i, in, &location);
        before = *slot;
    }
}

rp_status rp_image_read(rp_image *image, const uint8_t *data, size_t size, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    size_t at;

    rp_image_clear(image);
    if (rp_unpack_number(&in) != BLOCK_VERSION) in.bad = true;
    read_locations(image, &in);
    read_slots(image, &in);
    if (image->bad) {
        rp_image_clear(image);
        return rp_fail_memory(err, size);
    }
    at = (size_t)(in.at - data);
    assert(at <= size);
    if (!in.bad && at == size) {
        RP_VERIFY(image->slice_count, is_valid(image));
        return RP_OK;
    }
    rp_image_clear(image);
    return rp_fail(err, RP_CORRUPT, "block: malformed at byte %zu of %zu", at, size);
}
