/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/format/journal_records.h"

#include <assert.h>
#include <inttypes.h>

#include "chunk/trajectory.h"
#include "durable/format/pack.h"
#include "util/error.h"
#include "util/mem.h"

enum { INSERT_UPDATE = 0, INSERT_ITEM = 1, BY_EXTENSION = 1, DISTINCT = 1 };

rp_record_kind rp_journal_kind_of(const rp_log_record *change)
{
    static const rp_record_kind kinds[] = {
        [RP_LOGGED_INSERT] = RP_RECORD_INSERT,     [RP_LOGGED_SAMPLE] = RP_RECORD_SAMPLE,
        [RP_LOGGED_UPDATE] = RP_RECORD_UPDATE,     [RP_LOGGED_DELETE] = RP_RECORD_DELETE,
        [RP_LOGGED_EVICT] = RP_RECORD_EVICT,       [RP_LOGGED_RESET] = RP_RECORD_RESET,
        [RP_LOGGED_ALTER] = RP_RECORD_ALTER,       [RP_LOGGED_PAUSE] = RP_RECORD_PAUSE,
        [RP_LOGGED_RENUMBER] = RP_RECORD_RENUMBER,
    };
    assert((size_t)change->kind < sizeof kinds / sizeof kinds[0] && kinds[change->kind] != 0);
    return kinds[change->kind];
}

void rp_journal_encoder_init(rp_journal_encoder *e, const rp_allocator *alloc)
{
    *e = (rp_journal_encoder){.alloc = *alloc};
}

void rp_journal_encoder_deinit(rp_journal_encoder *e)
{
    rp_release(&e->alloc, e->locations, e->location_capacity * sizeof *e->locations);
    rp_release(&e->alloc, e->index, e->index_capacity * sizeof *e->index);
    e->locations = NULL;
    e->index = NULL;
    e->location_capacity = e->index_capacity = 0;
}

static size_t bucket_of(const rp_journal_encoder *e, const rp_chunk *chunk)
{
    return (size_t)(((uintptr_t)chunk >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) &
           (e->index_capacity - 1);
}

/* The index entry of a chunk, or the free entry where it would be inserted. */
static size_t find_chunk(const rp_journal_encoder *e, const rp_chunk *chunk)
{
    size_t at = bucket_of(e, chunk);

    assert(2 * e->location_count <= e->index_capacity); /* E1 */
    while (e->index[at].turn == e->turn && e->index[at].chunk != chunk)
        at = (at + 1) & (e->index_capacity - 1);
    return at;
}

/* Starts a record with up to `count` chunks. Returns false without memory. */
static bool begin_locations(rp_journal_encoder *e, size_t count)
{
    size_t capacity = 1024;

    while (capacity < 2 * count) capacity *= 2;
    if (count > e->location_capacity) {
        if (!rp_resize_array(&e->alloc, &e->locations, e->location_capacity, capacity / 2,
                             sizeof *e->locations))
            return false;
        e->location_capacity = capacity / 2;
    }
    if (2 * count > e->index_capacity) {
        void *index = rp_alloc_array(&e->alloc, capacity, sizeof *e->index);

        if (index == NULL) return false;
        rp_release(&e->alloc, e->index, e->index_capacity * sizeof *e->index);
        e->index = index;
        e->index_capacity = capacity;
        e->turn = 0;
    }
    if (++e->turn == 0) { /* it wraps around: entries of old turns must not become valid */
        memset(e->index, 0, e->index_capacity * sizeof *e->index);
        e->turn = 1;
    }
    e->location_count = 0;
    return true;
}

static rp_status gather_locations(rp_journal_encoder *e, const rp_log_record *change,
                                  rp_locate_chunk *location_of, void *ctx)
{
    size_t count = 0;

    for (size_t i = 0; i < change->count; i++)
        if (change->inserted[i].trajectory != NULL)
            count += change->inserted[i].trajectory->chunk_count;
    if (!begin_locations(e, count)) return RP_NO_RESOURCE;
    for (size_t i = 0; i < change->count; i++) {
        const rp_trajectory *t = change->inserted[i].trajectory;

        for (uint32_t j = 0; t != NULL && j < t->chunk_count; j++) {
            size_t at = find_chunk(e, t->chunks[j]);
            rp_status st;

            if (e->index[at].turn == e->turn) continue;
            assert(e->location_count < e->location_capacity); /* E1 */
            st = location_of(ctx, t->chunks[j], &e->locations[e->location_count].at);
            if (st != RP_OK) return st;
            e->locations[e->location_count].key = t->chunks[j]->origin.key;
            e->index[at].chunk = t->chunks[j];
            e->index[at].turn = e->turn;
            e->index[at].location = (uint32_t)e->location_count++;
        }
    }
    return RP_OK;
}

static void write_trajectory(const rp_journal_encoder *e, const rp_trajectory *t, rp_buf *out)
{
    rp_pack_number(out, t->column_count);
    for (uint32_t i = 0; i < t->column_count; i++) {
        rp_slices column = rp_trajectory_slices(t, i);

        rp_pack_number(out, column.slice_count << 1 | column.squeeze);
        for (size_t j = 0; j < column.slice_count; j++) {
            const rp_chunk_slice *slice = &column.slices[j];
            size_t at = find_chunk(e, slice->chunk);

            assert(e->index[at].turn == e->turn); /* gather_locations() has added it */
            rp_pack_number(out, e->index[at].location);
            rp_pack_number(out, slice->column);
            rp_pack_number(out, slice->offset);
            rp_pack_number(out, slice->length);
        }
    }
}

static rp_status write_insert(rp_journal_encoder *e, const rp_log_record *change,
                              rp_locate_chunk *location_of, void *ctx, rp_buf *out)
{
    rp_disk_location before = {0};
    rp_status st = gather_locations(e, change, location_of, ctx);

    if (st != RP_OK) return st;
    rp_pack_word(out, (uint64_t)change->wall_ns);
    rp_pack_number(out, change->dead);
    rp_pack_number(out, change->count);
    rp_pack_number(out, e->location_count);
    for (size_t i = 0; i < e->location_count; i++) {
        const rp_disk_location *p = &e->locations[i].at;

        rp_pack_change(out, p->segment, before.segment);
        rp_pack_change(out, p->offset, before.offset);
        rp_pack_number(out, p->size);
        rp_pack_word(out, e->locations[i].key);
        before = *p;
    }
    for (size_t i = 0; i < change->count; i++) {
        const rp_inserted *in = &change->inserted[i];

        rp_pack_word(out, in->key);
        rp_pack_double(out, in->priority);
        rp_pack_number(out, (uint64_t)in->evicted << 1 |
                                (in->trajectory != NULL ? INSERT_ITEM : INSERT_UPDATE));
        if (in->trajectory == NULL) continue;
        rp_pack_number(out, (uint32_t)in->times_sampled);
        write_trajectory(e, in->trajectory, out);
    }
    return RP_OK;
}

static void write_alter(const rp_table_alteration *alter, rp_buf *out)
{
    rp_pack_number(out, alter->which);
    rp_pack_number(out, (uint32_t)alter->max_times_sampled);
    rp_pack_number(out, (uint64_t)alter->max_size);
    rp_pack_number(out, alter->max_bytes);
    rp_pack_double(out, alter->limiter.samples_per_insert);
    rp_pack_number(out, (uint64_t)alter->limiter.min_size);
    rp_pack_double(out, alter->limiter.min_diff);
    rp_pack_double(out, alter->limiter.max_diff);
}

rp_status rp_journal_encode(rp_journal_encoder *e, rp_string table, const rp_log_record *change,
                            rp_locate_chunk *location_of, void *ctx, rp_buf *out)
{
    rp_status st = RP_OK;

    assert(table.size >= 1 && table.size <= RP_MAX_TABLE_NAME_BYTES);
    rp_pack_number(out, table.size);
    rp_buf_append(out, table.data, table.size);
    switch (change->kind) {
    case RP_LOGGED_INSERT: st = write_insert(e, change, location_of, ctx, out); break;
    case RP_LOGGED_SAMPLE:
        rp_pack_number(out, (uint64_t)change->count << 1 | change->distinct);
        break;
    case RP_LOGGED_UPDATE:
        rp_pack_number(out, (uint64_t)change->count << 1 | change->by_extension);
        for (size_t i = 0; i < change->count; i++) {
            rp_pack_word(out, change->updates[i].key);
            rp_pack_double(out, change->updates[i].priority);
        }
        break;
    case RP_LOGGED_DELETE:
        rp_pack_number(out, change->count);
        for (size_t i = 0; i < change->count; i++) rp_pack_word(out, change->keys[i]);
        break;
    case RP_LOGGED_EVICT: rp_pack_number(out, change->count); break;
    case RP_LOGGED_RESET:
    case RP_LOGGED_RENUMBER: break;
    case RP_LOGGED_ALTER: write_alter(&change->alter, out); break;
    case RP_LOGGED_PAUSE: rp_pack_number(out, change->paused); break;
    }
    return st == RP_OK && out->bad ? RP_NO_RESOURCE : st;
}

void rp_journal_encode_drop(rp_string table, rp_buf *out)
{
    rp_pack_number(out, table.size);
    rp_buf_append(out, table.data, table.size);
}

void rp_decoded_change_init(rp_decoded_change *decoded, const rp_allocator *alloc)
{
    memset(decoded, 0, sizeof *decoded);
    decoded->alloc = *alloc;
}

void rp_decoded_change_deinit(rp_decoded_change *decoded)
{
    rp_release(&decoded->alloc, decoded->locations,
               decoded->location_capacity * sizeof *decoded->locations);
    rp_release(&decoded->alloc, decoded->columns,
               decoded->column_capacity * sizeof *decoded->columns);
    rp_release(&decoded->alloc, decoded->slices,
               decoded->slice_capacity * sizeof *decoded->slices);
    decoded->locations = NULL;
    decoded->columns = NULL;
    decoded->slices = NULL;
    decoded->location_capacity = decoded->column_capacity = decoded->slice_capacity = 0;
}

/* Grows an array for `more` elements behind the first `count`. */
static bool make_room(const rp_decoded_change *decoded, void *array, size_t count, size_t more,
                      size_t *capacity, size_t element_size)
{
    size_t want = *capacity < 64 ? 64 : *capacity;

    assert(count <= *capacity);
    if (count + more <= *capacity) return true;
    while (want < count + more) want *= 2;
    if (!rp_resize_array(&decoded->alloc, array, *capacity, want, element_size)) return false;
    *capacity = want;
    return true;
}

static rp_string read_name(rp_unpack *in)
{
    rp_string name = {NULL, 0};

    name.size = (size_t)rp_unpack_bounded(in, RP_MAX_TABLE_NAME_BYTES);
    name.data = (const char *)rp_unpack_bytes(in, name.size);
    if (name.size == 0 || name.data == NULL || memchr(name.data, '\0', name.size) != NULL)
        in->bad = true;
    return name;
}

/* Reads a count of elements, each of which takes at least `least` bytes. */
static size_t read_count(rp_unpack *in, size_t least, uint64_t most)
{
    uint64_t count = rp_unpack_bounded(in, most);

    if (count > rp_unpack_left(in) / least) in->bad = true;
    return in->bad ? 0 : (size_t)count;
}

static rp_status read_locations(rp_decoded_change *decoded, rp_unpack *in)
{
    rp_disk_location before = {0};
    size_t count = read_count(in, 11, UINT32_MAX); /* a location has at least 11 bytes */

    if (!make_room(decoded, &decoded->locations, 0, count, &decoded->location_capacity,
                   sizeof *decoded->locations))
        return RP_NO_RESOURCE;
    for (size_t i = 0; i < count && !in->bad; i++) {
        rp_disk_location *p = &decoded->locations[i].at;

        p->segment = rp_unpack_change(in, before.segment);
        p->offset = rp_unpack_change(in, before.offset);
        p->size = (uint32_t)rp_unpack_bounded(in, RP_MAX_RECORD_BYTES);
        decoded->locations[i].key = rp_unpack_word(in);
        if (p->segment == 0) in->bad = true;
        before = *p;
    }
    decoded->location_count = count;
    return RP_OK;
}

static rp_status read_slices(rp_decoded_change *decoded, rp_unpack *in, size_t count)
{
    if (!make_room(decoded, &decoded->slices, decoded->slice_count, count,
                   &decoded->slice_capacity, sizeof *decoded->slices))
        return RP_NO_RESOURCE;
    for (size_t i = 0; i < count && !in->bad; i++) {
        rp_decoded_slice *s = &decoded->slices[decoded->slice_count++];

        s->location = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
        s->column = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
        s->offset = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
        s->length = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
        if (s->location >= decoded->location_count || s->length == 0) in->bad = true;
    }
    return RP_OK;
}

static rp_status read_trajectory(rp_decoded_change *decoded, rp_decoded_item *item,
                                 rp_unpack *in)
{
    size_t count = read_count(in, 5, UINT32_MAX);
    rp_status st = RP_OK;

    if (count == 0) in->bad = true;
    if (in->bad) return RP_OK;
    if (!make_room(decoded, &decoded->columns, decoded->column_count, count,
                   &decoded->column_capacity, sizeof *decoded->columns))
        return RP_NO_RESOURCE;
    *item = (rp_decoded_item){(uint32_t)decoded->column_count, (uint32_t)count};
    for (size_t i = 0; i < count && st == RP_OK && !in->bad; i++) {
        rp_decoded_column *column = &decoded->columns[decoded->column_count++];
        uint64_t head = rp_unpack_bounded(in, (uint64_t)RP_MAX_SLICES << 1 | 1);

        if (head >> 1 == 0 || head >> 1 > rp_unpack_left(in) / 4) in->bad = true;
        if (in->bad) break;
        column->first_slice = (uint32_t)decoded->slice_count;
        column->slice_count = (uint32_t)(head >> 1);
        column->squeeze = head & 1;
        st = read_slices(decoded, in, column->slice_count);
    }
    return st;
}

static rp_status read_insert(rp_decoded_change *decoded, rp_unpack *in)
{
    rp_log_record *change = &decoded->change;
    rp_status st;

    change->wall_ns = (int64_t)rp_unpack_word(in);
    change->dead = (size_t)rp_unpack_bounded(in, UINT32_MAX);
    change->count = read_count(in, 17, RP_JOURNAL_MAX_ITEMS);
    change->inserted = decoded->inserted;
    if (change->count == 0) in->bad = true;
    st = read_locations(decoded, in);
    for (size_t i = 0; i < change->count && st == RP_OK && !in->bad; i++) {
        rp_inserted *to = &decoded->inserted[i];
        uint64_t head;

        *to = (rp_inserted){.key = rp_unpack_word(in), .priority = rp_unpack_double(in)};
        decoded->items[i] = (rp_decoded_item){0, 0};
        head = rp_unpack_bounded(in, (uint64_t)UINT32_MAX << 1 | 1);
        to->evicted = (uint32_t)(head >> 1);
        if ((head & 1) == INSERT_UPDATE) continue;
        to->times_sampled = (int32_t)rp_unpack_bounded(in, INT32_MAX);
        st = read_trajectory(decoded, &decoded->items[i], in);
    }
    return st;
}

static void read_updates(rp_decoded_change *decoded, rp_unpack *in)
{
    uint64_t head = rp_unpack_bounded(in, (uint64_t)RP_JOURNAL_MAX_ITEMS << 1 | 1);

    decoded->change.by_extension = head & BY_EXTENSION;
    decoded->change.count = (size_t)(head >> 1);
    decoded->change.updates = decoded->updates;
    for (size_t i = 0; i < decoded->change.count && !in->bad; i++) {
        decoded->updates[i].key = rp_unpack_word(in);
        decoded->updates[i].priority = rp_unpack_double(in);
    }
    if (decoded->change.count == 0) in->bad = true;
}

static void read_keys(rp_decoded_change *decoded, rp_unpack *in)
{
    decoded->change.count = read_count(in, 8, RP_JOURNAL_MAX_ITEMS);
    decoded->change.keys = decoded->keys;
    for (size_t i = 0; i < decoded->change.count && !in->bad; i++)
        decoded->keys[i] = rp_unpack_word(in);
    if (decoded->change.count == 0) in->bad = true;
}

static void read_alter(rp_table_alteration *alter, rp_unpack *in)
{
    alter->which = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
    alter->max_times_sampled = (int32_t)rp_unpack_bounded(in, INT32_MAX);
    alter->max_size = (int64_t)rp_unpack_bounded(in, INT64_MAX);
    alter->max_bytes = rp_unpack_number(in);
    alter->limiter.samples_per_insert = rp_unpack_double(in);
    alter->limiter.min_size = (int64_t)rp_unpack_bounded(in, INT64_MAX);
    alter->limiter.min_diff = rp_unpack_double(in);
    alter->limiter.max_diff = rp_unpack_double(in);
}

static rp_status read_change(rp_decoded_change *decoded, rp_record_kind kind, rp_unpack *in)
{
    rp_log_record *change = &decoded->change;
    uint64_t head;

    switch ((int)kind) {
    case RP_RECORD_INSERT: change->kind = RP_LOGGED_INSERT; return read_insert(decoded, in);
    case RP_RECORD_SAMPLE:
        change->kind = RP_LOGGED_SAMPLE;
        head = rp_unpack_bounded(in, (uint64_t)RP_MAX_BATCH << 1 | 1);
        change->distinct = head & DISTINCT;
        change->count = (size_t)(head >> 1);
        break;
    case RP_RECORD_UPDATE:
        change->kind = RP_LOGGED_UPDATE;
        read_updates(decoded, in);
        break;
    case RP_RECORD_DELETE:
        change->kind = RP_LOGGED_DELETE;
        read_keys(decoded, in);
        break;
    case RP_RECORD_EVICT:
        change->kind = RP_LOGGED_EVICT;
        change->count = (size_t)rp_unpack_bounded(in, UINT32_MAX);
        break;
    case RP_RECORD_RESET: change->kind = RP_LOGGED_RESET; break;
    case RP_RECORD_RENUMBER: change->kind = RP_LOGGED_RENUMBER; break;
    case RP_RECORD_ALTER:
        change->kind = RP_LOGGED_ALTER;
        read_alter(&change->alter, in);
        break;
    case RP_RECORD_PAUSE:
        change->kind = RP_LOGGED_PAUSE;
        change->paused = (uint32_t)rp_unpack_bounded(in, UINT32_MAX);
        break;
    default: in->bad = true;
    }
    return RP_OK;
}

rp_status rp_decoded_change_read(rp_decoded_change *decoded, rp_record_kind kind,
                                 const uint8_t *data, size_t size, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    rp_status st;

    decoded->change = (rp_log_record){0};
    decoded->location_count = decoded->column_count = decoded->slice_count = 0;
    decoded->table = read_name(&in);
    st = read_change(decoded, kind, &in);
    if (st != RP_OK) return rp_fail(err, st, "journal record: no memory to read it");
    if (in.bad || rp_unpack_left(&in) != 0)
        return rp_fail(err, RP_CORRUPT,
                       "journal record of kind %d: its %zu bytes are malformed", (int)kind,
                       size);
    assert(decoded->location_count <= decoded->location_capacity);
    assert(decoded->column_count <= decoded->column_capacity);
    assert(decoded->slice_count <= decoded->slice_capacity);
    return RP_OK;
}

rp_status rp_journal_read_drop(const uint8_t *data, size_t size, rp_string *out, rp_error *err)
{
    rp_unpack in = rp_unpack_open(data, size);
    rp_string name = read_name(&in);

    if (in.bad || rp_unpack_left(&in) != 0)
        return rp_fail(err, RP_CORRUPT, "journal record: its %zu bytes are no table's name",
                       size);
    *out = name;
    return RP_OK;
}
