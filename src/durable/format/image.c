/* SPDX-License-Identifier: Apache-2.0 */
/* The codec of blocks. */
#include "durable/format/image.h"

#include "chunk/trajectory.h"
#include "durable/format/pack.h"
#include "util/error.h"
#include "util/mem.h"

enum { BLOCK_VERSION = 1, SLOT_FREE = 0, SLOT_LIVE = 1 };

void rp_image_init(rp_image *image, const rp_allocator *alloc)
{
    memset(image, 0, sizeof *image);
    image->alloc = *alloc;
}

void rp_image_deinit(rp_image *image)
{
    rp_release(&image->alloc, image->places, image->place_capacity * sizeof(rp_place));
    rp_release(&image->alloc, image->columns, image->column_capacity * sizeof(rp_image_column));
    rp_release(&image->alloc, image->slices, image->slice_capacity * sizeof(rp_image_slice));
    rp_release(&image->alloc, image->index, image->index_capacity * sizeof(uint32_t));
    image->places = NULL;
    image->columns = NULL;
    image->slices = NULL;
    image->index = NULL;
    image->place_capacity = image->column_capacity = image->slice_capacity = 0;
    image->index_capacity = 0;
}

void rp_image_clear(rp_image *image)
{
    memset(image->slots, 0, sizeof image->slots);
    image->place_count = image->column_count = image->slice_count = 0;
    image->bad = false;
    if (image->index != NULL) memset(image->index, 0, image->index_capacity * sizeof(uint32_t));
}

/* Room for one more element. */
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

static size_t home_of(const rp_image *image, const rp_place *place)
{
    uint64_t hash = (place->segment * 0x9e3779b97f4a7c15u) ^ place->offset;

    hash = (hash ^ hash >> 29) * 0xbf58476d1ce4e5b9u;
    return (size_t)(hash >> 32) & (image->index_capacity - 1);
}

/* Where a place stands in the index, or the free entry where it would. */
static size_t find_place(const rp_image *image, const rp_place *place)
{
    size_t at = home_of(image, place);

    for (; image->index[at] != 0; at = (at + 1) & (image->index_capacity - 1)) {
        const rp_place *other = &image->places[image->index[at] - 1];
        if (other->segment == place->segment && other->offset == place->offset) break;
    }
    return at;
}

/* Keeps the index at most half full. */
static bool grow_index(rp_image *image)
{
    size_t capacity =
        image->index_capacity == 0 ? 2 * RP_SLOTS_PER_BLOCK : 2 * image->index_capacity;
    uint32_t *index;

    if (2 * (image->place_count + 1) <= image->index_capacity) return true;
    index = rp_alloc_array(&image->alloc, capacity, sizeof *index);
    if (index == NULL) {
        image->bad = true;
        return false;
    }
    rp_release(&image->alloc, image->index, image->index_capacity * sizeof(uint32_t));
    image->index = index;
    image->index_capacity = capacity;
    for (size_t i = 0; i < image->place_count; i++)
        index[find_place(image, &image->places[i])] = (uint32_t)i + 1;
    return true;
}

uint32_t rp_image_add_place(rp_image *image, const rp_place *place)
{
    size_t at;

    if (!grow_index(image)) return 0;
    at = find_place(image, place);
    if (image->index[at] != 0) return image->index[at] - 1;
    if (!make_room(image, &image->places, image->place_count, &image->place_capacity,
                   sizeof *image->places))
        return 0;
    image->places[image->place_count++] = *place;
    image->index[at] = (uint32_t)image->place_count;
    return (uint32_t)image->place_count - 1;
}

void rp_image_add_column(rp_image *image, size_t slot, bool squeeze)
{
    rp_image_slot *s = &image->slots[slot];

    if (!make_room(image, &image->columns, image->column_count, &image->column_capacity,
                   sizeof *image->columns))
        return;
    if (s->column_count++ == 0) s->first_column = (uint32_t)image->column_count;
    image->columns[image->column_count++] =
        (rp_image_column){.first_slice = (uint32_t)image->slice_count, .squeeze = squeeze};
}

void rp_image_add_slice(rp_image *image, const rp_image_slice *slice)
{
    if (!make_room(image, &image->slices, image->slice_count, &image->slice_capacity,
                   sizeof *image->slices))
        return;
    image->slices[image->slice_count++] = *slice;
    image->columns[image->column_count - 1].slice_count++;
}

static uint64_t end_of(const rp_place *place)
{
    return place->offset + RP_RECORD_HEADER_BYTES + place->size;
}

static void write_places(const rp_image *image, rp_buf *out)
{
    rp_place before = {0};

    rp_pack_number(out, image->place_count);
    for (size_t i = 0; i < image->place_count; i++) {
        const rp_place *place = &image->places[i];

        rp_pack_change(out, place->segment, before.segment);
        rp_pack_change(out, place->offset, end_of(&before));
        rp_pack_number(out, place->size);
        before = *place;
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

            rp_pack_change(out, slice->place, *before);
            rp_pack_number(out, slice->column);
            rp_pack_number(out, slice->offset);
            rp_pack_number(out, slice->length);
            *before = slice->place;
        }
    }
}

rp_status rp_image_write(const rp_image *image, rp_buf *out)
{
    rp_image_slot before = {0};
    uint32_t place = 0;

    rp_pack_number(out, BLOCK_VERSION);
    write_places(image, out);
    for (size_t i = 0; i < RP_SLOTS_PER_BLOCK; i++) {
        const rp_image_slot *slot = &image->slots[i];

        if (!slot->live) {
            rp_pack_number(out, SLOT_FREE);
            rp_pack_number(out, (uint32_t)(slot->next + 1)); /* 0: the last */
            continue;
        }
        rp_pack_number(out, SLOT_LIVE);
        rp_pack_word(out, slot->key);
        rp_pack_double(out, slot->priority);
        rp_pack_change(out, (uint64_t)slot->inserted_at_ns, (uint64_t)before.inserted_at_ns);
        rp_pack_change(out, slot->sequence, before.sequence);
        rp_pack_change(out, slot->turn, before.turn);
        rp_pack_change(out, (uint64_t)(int64_t)slot->times_sampled, 0);
        write_columns(image, slot, &place, out);
        before = *slot;
    }
    return image->bad || out->bad ? RP_NO_RESOURCE : RP_OK;
}

static void read_places(rp_image *image, rp_unpack *in)
{
    /* Three bytes each at least: what is announced is there. */
    uint64_t count = rp_unpack_bounded(in, rp_unpack_left(in) / 3);
    rp_place before = {0};

    for (uint64_t i = 0; i < count && !in->bad && !image->bad; i++) {
        rp_place place = {0};

        place.segment = rp_unpack_change(in, before.segment);
        place.offset = rp_unpack_change(in, end_of(&before));
        place.size = (uint32_t)rp_unpack_bounded(in, RP_MAX_RECORD_BYTES);
        if (place.segment == 0 || place.offset < RP_FILE_HEADER_BYTES ||
            place.offset > INT64_MAX)
            in->bad = true;
        if (!make_room(image, &image->places, image->place_count, &image->place_capacity,
                       sizeof *image->places))
            return;
        image->places[image->place_count++] = place;
        before = place;
    }
}

static void read_slice(rp_image *image, rp_unpack *in, uint32_t *before)
{
    uint64_t place = rp_unpack_change(in, *before);
    rp_image_slice slice = {0};

    if (place >= image->place_count) in->bad = true;
    slice.place = (uint32_t)place;
    slice.column = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    slice.offset = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    slice.length = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    if (slice.length == 0) in->bad = true;
    if (in->bad) return;
    rp_image_add_slice(image, &slice);
    *before = slice.place;
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
    uint32_t place = 0;

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
        read_columns(image, i, in, &place);
        before = *slot;
    }
}

rp_status rp_image_read(rp_image *image, const uint8_t *data, size_t size, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    size_t at;

    rp_image_clear(image);
    if (rp_unpack_number(&in) != BLOCK_VERSION) in.bad = true;
    read_places(image, &in);
    read_slots(image, &in);
    if (image->bad) {
        rp_image_clear(image);
        return rp_fail_memory(err, size);
    }
    at = (size_t)(in.at - data);
    if (!in.bad && at == size) return RP_OK;
    rp_image_clear(image);
    return rp_fail(err, RP_CORRUPT, "block: malformed at byte %zu of %zu", at, size);
}
