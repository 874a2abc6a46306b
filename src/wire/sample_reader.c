/* SPDX-License-Identifier: Apache-2.0 */
/* A sample is assembled from its info, stored as columns and slices of chunk keys, and its
 * chunks. After its last piece, keys are resolved to chunks and a trajectory is made
 * (sample_trajectory.c).
 *
 * Samples of one message may share chunks, which are sent again with each sample. `recent` is a
 * cache of chunks by key. A cached chunk is used only if the bytes are equal, as two writers
 * may have chosen the same key. The cache borrows its chunks from the sample in assembly, or
 * from samples of the current call of rp_sample_reader_next(). So the cache is cleared when
 * such a call begins, and when a chunk is dropped that is in no sample. */
#include <assert.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"
#include "wire/insert_request.h"
#include "wire/sample_fields.h"
#include "wire/sample_reader.h"

enum {
    BATCH_CHUNK = 1,
    BATCH_ENTRY = 2,
    BATCH_ENTRY_INFO = 1,
    BATCH_ENTRY_WEIGHT = 2,
};

enum {
    RECENT_MIN_BITS = 4,
    RECENT_MAX_BITS = 12,
    RECENT_BYTES_EACH = 512, /* bytes of the message for each entry */
};

rp_sample_limits rp_sample_limits_default(void)
{
    rp_sample_limits limits = {
        .chunk = rp_chunk_limits_default(),
        .chunks = 65536,
        .columns = RP_MAX_COLUMNS,
        .slices = RP_MAX_SLICES,
        .bytes = (size_t)1 << 30,
        .batch_chunks = (size_t)1 << 20,
        .item_bytes = (size_t)1 << 30,
    };

    limits.chunk.max_wire_bytes = (size_t)512 << 20;
    return limits;
}

static rp_status malformed(const char *message, rp_error *err)
{
    return rp_wire_blame_peer(rp_wire_malformed(err, message), err);
}

rp_status rp_sample_reader_new(const rp_allocator *alloc, const rp_sample_limits *limits,
                               rp_sample_reader **out, rp_error *err)
{
    size_t recent_bytes = sizeof(recent_chunk) << RECENT_MAX_BITS;
    rp_sample_reader *r = rp_alloc_zero(alloc, sizeof *r);

    if (r == NULL) return rp_fail_memory(err, sizeof *r);
    r->recent = rp_alloc_zero(alloc, recent_bytes);
    if (r->recent == NULL) {
        rp_release(alloc, r, sizeof *r);
        return rp_fail_memory(err, recent_bytes);
    }
    r->alloc = *alloc;
    r->limits = limits != NULL ? *limits : rp_sample_limits_default();
    r->recent_bits = RECENT_MIN_BITS;
    /* The seed is an address, which is hard to guess, since the server or its writers choose
     * the keys. */
    rp_map_init(&r->map, &r->alloc, (uint64_t)(uintptr_t)r);
    *out = r;
    return RP_OK;
}

static void forget_recent(rp_sample_reader *r)
{
    if (!r->recent_dirty) return;
    memset(r->recent, 0, sizeof *r->recent << r->recent_bits);
    r->recent_dirty = false;
}

/* Clears the list of chunks, whose references were passed on or dropped. */
static void clear_chunks(rp_sample_reader *r)
{
    assert(r->hold == NULL || r->shared != NULL); /* S3 */
    if (r->hold != NULL) r->shared->unref(r->hold);
    r->hold = NULL;
    r->chunk_count = r->bytes = r->found = 0;
    if (!r->mapped) return;
    rp_map_clear(&r->map);
    r->mapped = false;
}

static void forget_chunks(rp_sample_reader *r)
{
    for (size_t i = 0; i < r->chunk_count; i++) rp_chunk_unref(r->chunks[i]);
    clear_chunks(r);
}

void rp_sample_reader_reset(rp_sample_reader *reader)
{
    forget_recent(reader);
    forget_chunks(reader);
    reader->has_info = false;
    reader->message = rp_pb_open(NULL, 0);
    reader->block = NULL;
}

void rp_sample_reader_free(rp_sample_reader *reader)
{
    rp_sample_reader *r = reader;
    rp_allocator alloc;

    if (r == NULL) return;
    alloc = r->alloc;
    rp_sample_reader_reset(r);
    rp_map_deinit(&r->map);
    rp_release(&r->alloc, r->columns, r->column_capacity * sizeof *r->columns);
    rp_release(&r->alloc, r->views, r->view_capacity * sizeof *r->views);
    rp_release(&r->alloc, r->slices, r->slice_capacity * sizeof *r->slices);
    rp_release(&r->alloc, r->cuts, r->cut_capacity * sizeof *r->cuts);
    rp_release(&r->alloc, r->chunks, r->chunk_capacity * sizeof(rp_chunk *));
    rp_release(&r->alloc, r->recent, sizeof *r->recent << RECENT_MAX_BITS);
    rp_release(&alloc, r, sizeof *r);
}

void rp_sample_reader_share(rp_sample_reader *reader, const rp_shared_source *shared)
{
    rp_sample_reader_reset(reader);
    reader->shared = shared;
}

bool rp_sample_reader_is_within(const rp_sample_reader *reader)
{
    return reader->has_info || reader->chunk_count > 0;
}

void rp_sample_reader_open(rp_sample_reader *reader, const uint8_t *data, size_t size,
                           rp_block *block)
{
    forget_recent(reader);
    reader->recent_bits = RECENT_MIN_BITS;
    while (reader->recent_bits < RECENT_MAX_BITS &&
           (size_t)RECENT_BYTES_EACH << reader->recent_bits < size)
        reader->recent_bits++;
    reader->message = rp_pb_open(data, size);
    reader->block = block;
}

/* Makes room for `count` elements. False if there is no memory. */
static bool grow(const rp_allocator *alloc, void *array, size_t element_size, size_t *capacity,
                 size_t count)
{
    size_t larger = *capacity > 0 ? *capacity : 8;

    if (count <= *capacity) return true;
    while (larger < count) larger *= 2;
    if (!rp_resize_array(alloc, array, *capacity, larger, element_size)) return false;
    *capacity = larger;
    return true;
}

/* Makes room for the columns and slices of an item, and for its trajectory. */
static inline bool make_item_room(rp_sample_reader *r, size_t columns, size_t slices)
{
    if (columns <= r->view_capacity && slices <= r->cut_capacity) return true;
    /* The two capacities that are tested above grow last: if they are large enough, all are. */
    return grow(&r->alloc, &r->columns, sizeof *r->columns, &r->column_capacity, columns) &&
           grow(&r->alloc, &r->slices, sizeof *r->slices, &r->slice_capacity, slices) &&
           grow(&r->alloc, &r->views, sizeof *r->views, &r->view_capacity, columns) &&
           grow(&r->alloc, &r->cuts, sizeof *r->cuts, &r->cut_capacity, slices);
}

/* An item of `size` bytes has less than size / 2 columns and slices. */
static rp_status read_item(rp_sample_reader *r, const uint8_t *data, size_t size, rp_error *err)
{
    size_t most = size / 2 + 1;
    size_t columns = most < r->limits.columns ? most : r->limits.columns;
    size_t slices = most < r->limits.slices ? most : r->limits.slices;
    rp_wire_item item;
    rp_status st;

    if (!make_item_room(r, columns, slices))
        return rp_fail_memory(err, slices * sizeof *r->cuts);
    st = rp_wire_item_read(
        data, size, &(rp_wire_item_arrays){r->columns, columns, r->slices, slices}, &item, err);
    if (st != RP_OK) return rp_wire_blame_peer(st, err);
    r->sample.key = item.key;
    r->sample.priority = item.priority;
    r->sample.times_sampled = item.times_sampled;
    r->sample.inserted_at_ns = item.inserted_at_ns;
    r->column_count = item.column_count;
    r->slice_count = item.slice_count;
    assert(r->column_count <= r->view_capacity && r->slice_count <= r->cut_capacity); /* S2 */
    return RP_OK;
}

/* A fast path for fields in the order in which all known writers send them (chunk/protobuf.h).
 * If it returns false, `out` is unchanged. */
static bool info_in_order(rp_pb_reader r, rp_pb_reader *item, rp_sample *out)
{
    uint64_t table_size, rate_limited;
    double probability;

    if (!rp_pb_begins(&r, RP_PB_INFO_ITEM, RP_PB_BYTES) || !rp_pb_take_bytes(&r, item) ||
        !rp_pb_take_double_if(&r, RP_PB_INFO_PROBABILITY, &probability) ||
        !rp_pb_take_if(&r, RP_PB_INFO_TABLE_SIZE, &table_size) ||
        !rp_pb_take_if(&r, RP_PB_INFO_RATE_LIMITED, &rate_limited) || r.at != r.end)
        return false;
    out->probability = probability;
    out->table_size = (int64_t)table_size;
    out->rate_limited = rate_limited != 0;
    return true;
}

static rp_status read_any_info(rp_sample_reader *r, rp_pb_reader reader, rp_error *err)
{
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, RP_PB_INFO_ITEM, RP_PB_BYTES)) {
            st = read_item(r, f.data, f.size, err);
            if (st != RP_OK) return st;
        } else if (rp_pb_is(&f, RP_PB_INFO_PROBABILITY, RP_PB_FIXED64)) {
            r->sample.probability = rp_wire_double(&f);
        } else if (rp_pb_is(&f, RP_PB_INFO_TABLE_SIZE, RP_PB_VARINT)) {
            r->sample.table_size = (int64_t)f.value;
        } else if (rp_pb_is(&f, RP_PB_INFO_RATE_LIMITED, RP_PB_VARINT)) {
            r->sample.rate_limited = f.value != 0;
        }
    }
    return step == RP_PB_END ? RP_OK : malformed("SampleInfo", err);
}

static rp_status read_info(rp_sample_reader *r, const rp_pb_field *field, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size), item;
    rp_status st;

    if (r->has_info) return rp_fail(err, RP_CORRUPT, "a sample with two infos");
    r->sample = (rp_sample){.weight = 1};
    r->column_count = r->slice_count = 0;
    if (info_in_order(reader, &item, &r->sample))
        st = read_item(r, item.at, (size_t)(item.end - item.at), err);
    else
        st = read_any_info(r, reader, err);
    if (st != RP_OK) return st;
    if (r->column_count == 0) return rp_fail(err, RP_CORRUPT, "a sample without an item");
    r->has_info = true;
    return RP_OK;
}

static recent_chunk *recent_place(const rp_sample_reader *r, uint64_t key)
{
    assert(r->recent_bits >= RECENT_MIN_BITS && r->recent_bits <= RECENT_MAX_BITS);
    return &r->recent[key * 0x9e3779b97f4a7c15u >> (64 - r->recent_bits)];
}

static void release_block(void *block)
{
    rp_block_unref(block);
}

static rp_status parse_chunk(rp_sample_reader *r, const rp_pb_field *f,
                             const rp_chunk_head *head, rp_chunk **out, rp_error *err)
{
    rp_chunk_owner owner = {.release = release_block};
    rp_status st;

    if (r->block == NULL || f->size < RP_READ_COPY_BYTES)
        return rp_wire_blame_peer(rp_chunk_template_parse(&r->template, &r->alloc,
                                                          (rp_bytes){f->data, f->size}, head,
                                                          &r->limits.chunk, out, err),
                                  err);
    owner.ctx = rp_block_ref(r->block);
    st = rp_chunk_adopt(&r->alloc, f->data, f->size, &r->limits.chunk, &owner, out, err);
    if (st != RP_OK) rp_block_unref(r->block);
    return rp_wire_blame_peer(st, err);
}

/* Gets the chunk of a field from the cache, or parses it. Returns owned. */
static rp_status get_chunk(rp_sample_reader *r, const rp_pb_field *f, rp_chunk **out,
                           rp_error *err)
{
    recent_chunk *place;
    rp_chunk_head head;
    rp_status st = rp_chunk_wire_peek(f->data, f->size, &head, err);

    if (st != RP_OK) return rp_wire_blame_peer(st, err);
    place = recent_place(r, head.origin.key);
    if (place->chunk != NULL && place->key == head.origin.key &&
        place->chunk->wire_bytes == f->size &&
        memcmp(place->chunk->wire, f->data, f->size) == 0) { /* keys may collide */
        *out = rp_chunk_ref(place->chunk);
        return RP_OK;
    }
    st = parse_chunk(r, f, &head, out, err);
    if (st != RP_OK) return st;
    *place = (recent_chunk){head.origin.key, *out};
    r->recent_dirty = true;
    return RP_OK;
}

/* Makes room for one more chunk of that size, within the limits. */
static rp_status make_room(rp_sample_reader *r, size_t size, size_t max_chunks,
                           size_t max_bytes, rp_error *err)
{
    assert(r->chunk_count <= max_chunks && r->bytes <= max_bytes);
    if (r->chunk_count == max_chunks)
        return rp_fail(err, RP_NO_RESOURCE, "more than %zu chunks in one answer", max_chunks);
    if (size > max_bytes - r->bytes)
        return rp_fail(err, RP_NO_RESOURCE, "more than %zu bytes of chunks in one answer",
                       max_bytes);
    if (!grow(&r->alloc, &r->chunks, sizeof(rp_chunk *), &r->chunk_capacity,
              r->chunk_count + 1))
        return rp_fail_memory(err, 2 * r->chunk_count * sizeof(rp_chunk *));
    return RP_OK;
}

static rp_status add_chunk(rp_sample_reader *r, const rp_pb_field *f, size_t max_chunks,
                           size_t max_bytes, rp_error *err)
{
    rp_chunk *chunk = NULL;
    rp_status st = make_room(r, f->size, max_chunks, max_bytes, err);

    if (st != RP_OK) return st;
    st = get_chunk(r, f, &chunk, err);
    if (st != RP_OK) return st;
    assert(r->chunk_count < r->chunk_capacity); /* S1 */
    r->chunks[r->chunk_count++] = chunk;
    r->bytes += f->size;
    return RP_OK;
}

static rp_status take_hold(rp_sample_reader *r, uint64_t hold, rp_error *err)
{
    if (r->shared == NULL || r->hold != NULL)
        return rp_fail(err, RP_CORRUPT, "a hold on memory that is not shared, or a second one");
    r->hold = r->shared->take(r->shared->ctx, hold);
    return r->hold != NULL ? RP_OK : rp_fail_memory(err, sizeof(void *));
}

static bool read_place(const rp_pb_field *field, uint64_t *offset, uint64_t *size)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    *offset = *size = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, RP_PB_SHARED_OFFSET, RP_PB_VARINT)) *offset = f.value;
        if (rp_pb_is(&f, RP_PB_SHARED_SIZE, RP_PB_VARINT)) *size = f.value;
    }
    return step == RP_PB_END;
}

static rp_status adopt_shared(rp_sample_reader *r, const uint8_t *data, size_t size,
                              rp_chunk **out, rp_error *err)
{
    const rp_chunk_owner owner = {r->shared->unref, r->hold};
    recent_chunk *place;
    rp_chunk_head head;
    rp_status st = rp_chunk_wire_peek(data, size, &head, err);

    if (st != RP_OK) return st;
    place = recent_place(r, head.origin.key);
    if (place->chunk != NULL && place->chunk->wire == data &&
        place->chunk->wire_bytes == size) {
        *out = rp_chunk_ref(place->chunk);
        return RP_OK;
    }
    r->shared->ref(r->hold);
    st = rp_chunk_adopt(&r->alloc, data, size, &r->limits.chunk, &owner, out, err);
    if (st != RP_OK) {
        r->shared->unref(r->hold);
        return st;
    }
    *place = (recent_chunk){head.origin.key, *out};
    r->recent_dirty = true;
    return RP_OK;
}

static rp_status add_shared(rp_sample_reader *r, const rp_pb_field *f, rp_error *err)
{
    const uint8_t *data;
    uint64_t offset, size;
    rp_chunk *chunk = NULL;
    rp_status st;

    if (!read_place(f, &offset, &size)) return malformed("SharedChunk", err);
    if (r->hold == NULL) return rp_fail(err, RP_CORRUPT, "a shared chunk that nothing holds");
    data = r->shared->find(r->shared->ctx, offset, size);
    if (data == NULL || size > SIZE_MAX)
        return rp_fail(err, RP_CORRUPT, "a chunk that is not in the memory we share");
    st = make_room(r, (size_t)size, r->limits.chunks, r->limits.bytes, err);
    if (st != RP_OK) return st;
    st = adopt_shared(r, data, (size_t)size, &chunk, err);
    if (st != RP_OK) return rp_wire_blame_peer(st, err);
    assert(r->chunk_count < r->chunk_capacity); /* S1 */
    r->chunks[r->chunk_count++] = chunk;
    r->bytes += (size_t)size;
    return RP_OK;
}

/* Reads an entry, which is a sample or a piece of one. `*whole` is set if it is the last piece.
 */
static rp_status read_entry(rp_sample_reader *r, const rp_pb_field *field, bool *whole,
                            rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    *whole = false;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        st = RP_OK;
        if (rp_pb_is(&f, RP_PB_ENTRY_INFO, RP_PB_BYTES))
            st = read_info(r, &f, err);
        else if (rp_pb_is(&f, RP_PB_ENTRY_CHUNK, RP_PB_BYTES))
            st = add_chunk(r, &f, r->limits.chunks, r->limits.bytes, err);
        else if (rp_pb_is(&f, RP_PB_ENTRY_HOLD, RP_PB_VARINT))
            st = take_hold(r, f.value, err);
        else if (rp_pb_is(&f, RP_PB_ENTRY_SHARED, RP_PB_BYTES))
            st = add_shared(r, &f, err);
        else if (rp_pb_is(&f, RP_PB_ENTRY_END, RP_PB_VARINT))
            *whole = f.value != 0;
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return malformed("SampleEntry", err);
    if (!r->has_info)
        return rp_fail(err, RP_CORRUPT, "a sample that does not begin with its info");
    return RP_OK;
}

/* Passes the references of the chunks to the trajectory, which has each of its chunks once; all
 * of these are in r->chunks. If both have equally many chunks, the trajectory takes the
 * reader's references. Otherwise some chunk of the reader is not in the sample, and the
 * trajectory takes references of its own. */
static void pass_chunks(rp_sample_reader *r, rp_trajectory *trajectory)
{
    assert(trajectory->chunk_count <= r->chunk_count);
    if (trajectory->chunk_count == r->chunk_count) {
        clear_chunks(r);
        return;
    }
    rp_trajectory_hold(trajectory);
    forget_recent(r);
    forget_chunks(r);
}

/* Reads the next sample of the message; `*found` false: there is none. */
static rp_status read_sample(rp_sample_reader *r, rp_sample *out, bool *found, rp_error *err)
{
    rp_pb_field f;
    rp_pb_step step;
    bool whole;
    rp_status st;

    while ((step = rp_pb_next(&r->message, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, RP_PB_RESPONSE_ENTRY, RP_PB_BYTES)) continue;
        st = read_entry(r, &f, &whole, err);
        if (st != RP_OK) return st;
        if (!whole) continue;
        st = rp_sample_make_trajectory(r, err);
        if (st != RP_OK) return st;
        *out = r->sample;
        pass_chunks(r, out->trajectory);
        r->has_info = false;
        *found = true;
        return RP_OK;
    }
    *found = false;
    return step == RP_PB_END ? RP_OK : malformed("SampleStreamResponse", err);
}

static void drop_samples(rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(samples[i].trajectory);
}

rp_status rp_sample_reader_next(rp_sample_reader *reader, rp_sample *out, size_t capacity,
                                size_t *count, rp_error *err)
{
    bool found = true;
    size_t n = 0;
    rp_status st;

    forget_recent(reader);
    *count = 0;
    while (n < capacity) {
        st = read_sample(reader, &out[n], &found, err);
        if (st != RP_OK) {
            drop_samples(out, n);
            rp_sample_reader_reset(reader);
            return st;
        }
        if (!found) break;
        n++;
    }
    *count = n;
    return RP_OK;
}

static rp_status read_batch_chunks(rp_sample_reader *r, const uint8_t *data, size_t size,
                                   rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, BATCH_CHUNK, RP_PB_BYTES)) continue;
        st = add_chunk(r, &f, r->limits.batch_chunks, SIZE_MAX, err);
        if (st != RP_OK) return st;
    }
    return step == RP_PB_END ? RP_OK : malformed("SampleResponse", err);
}

static rp_status read_batch_entry(rp_sample_reader *r, const rp_pb_field *field, bool with_data,
                                  rp_sample *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    double weight = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    r->has_info = false;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, BATCH_ENTRY_WEIGHT, RP_PB_FIXED64)) weight = rp_wire_double(&f);
        if (!rp_pb_is(&f, BATCH_ENTRY_INFO, RP_PB_BYTES)) continue;
        st = read_info(r, &f, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return malformed("Entry", err);
    if (!r->has_info) return rp_fail(err, RP_CORRUPT, "an entry without its info");
    st = with_data ? rp_sample_make_trajectory(r, err) : RP_OK;
    if (st != RP_OK) return st;
    if (with_data) rp_trajectory_hold(r->sample.trajectory);
    *out = r->sample;
    out->weight = weight;
    return RP_OK;
}

static rp_status read_batch(rp_sample_reader *r, const uint8_t *data, size_t size,
                            bool with_data, rp_sample_list *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_status st = with_data ? read_batch_chunks(r, data, size, err) : RP_OK;
    rp_pb_step step = RP_PB_END;

    while (st == RP_OK && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, BATCH_ENTRY, RP_PB_BYTES)) continue;
        if (out->count == out->capacity)
            return rp_fail(err, RP_NO_RESOURCE, "more than %zu items in one answer",
                           out->capacity);
        st = read_batch_entry(r, &f, with_data, &out->samples[out->count], err);
        if (st == RP_OK) out->count++;
    }
    if (st != RP_OK) return st;
    return step == RP_PB_END ? RP_OK : malformed("SampleResponse", err);
}

rp_status rp_sample_reader_batch(rp_sample_reader *reader, const uint8_t *data, size_t size,
                                 bool with_data, rp_sample_list *out, rp_error *err)
{
    rp_status st;

    rp_sample_reader_reset(reader);
    out->count = 0;
    st = read_batch(reader, data, size, with_data, out, err);
    rp_sample_reader_reset(reader);
    if (st != RP_OK) {
        drop_samples(out->samples, out->count);
        out->count = 0;
    }
    return st;
}
