/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/insert_request.h"

#include <assert.h>
#include <string.h>

#include "util/error.h"
#include "wire/fields.h"

/* Field numbers. */
enum {
    REQUEST_CHUNK = 1,
    REQUEST_ITEM = 2,
    REQUEST_KEEP = 3,
    ITEM_KEY = 1,
    ITEM_TABLE = 2,
    ITEM_PRIORITY = 5,
    ITEM_TIMES_SAMPLED = 6,
    ITEM_INSERTED_AT = 7,
    ITEM_TRAJECTORY = 8,
    TRAJECTORY_COLUMN = 1,
    COLUMN_SLICE = 1,
    COLUMN_SQUEEZE = 2,
    SLICE_CHUNK = 1,
    SLICE_OFFSET = 2,
    SLICE_LENGTH = 3,
    SLICE_INDEX = 4,
    TIME_SECONDS = 1,
    TIME_NANOS = 2,
};

enum { MAX_NAME_BYTES = RP_WIRE_MAX_NAME_BYTES };

static rp_status malformed(const char *what, rp_error *err)
{
    return rp_fail(err, RP_INVALID, "malformed %s", what);
}

static rp_status too_many(rp_insert_excess *excess, rp_insert_excess kind, const char *what,
                          size_t limit, rp_error *err)
{
    *excess = kind;
    return rp_fail(err, RP_NO_RESOURCE, "a message may have at most %zu %s", limit, what);
}

/* Counts packed varints. */
static bool count_varints(const uint8_t *at, size_t size, size_t *count)
{
    size_t n = 0, run = 0;

    for (size_t i = 0; i < size; i++) {
        run++;
        if (at[i] >= 0x80) {
            if (run >= 10) return false;
            continue;
        }
        n++;
        run = 0;
    }
    *count = n;
    return run == 0;
}

static rp_status count_part(const rp_pb_field *field, const rp_insert_limits *limits,
                            rp_insert_request *out, rp_error *err)
{
    size_t count = 1;

    if (rp_pb_is(field, REQUEST_CHUNK, RP_PB_BYTES)) {
        out->chunk_count++;
        if (field->size <= limits->chunk_bytes) return RP_OK;
        out->excess = RP_EXCESS_CHUNK_BYTES;
        return rp_fail(err, RP_NO_RESOURCE,
                       "a chunk of %zu bytes is over the limit of %zu: write shorter chunks",
                       field->size, limits->chunk_bytes);
    } else if (rp_pb_is(field, REQUEST_ITEM, RP_PB_BYTES)) {
        if (++out->item_count > limits->items)
            return too_many(&out->excess, RP_EXCESS_ITEMS, "items", limits->items, err);
    } else if (field->number == REQUEST_KEEP &&
               (field->type == RP_PB_BYTES || field->type == RP_PB_VARINT)) {
        if (field->type == RP_PB_BYTES && !count_varints(field->data, field->size, &count))
            return malformed("keep_chunk_keys", err);
        out->keep_count += count;
        if (out->keep_count > limits->keys)
            return too_many(&out->excess, RP_EXCESS_KEYS, "keys to keep", limits->keys, err);
    }
    return RP_OK;
}

rp_status rp_insert_request_read(const uint8_t *data, size_t size,
                                 const rp_insert_limits *limits, rp_insert_request *out,
                                 rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field field;
    rp_pb_step step;

    *out = (rp_insert_request){.data = data, .size = size};
    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        rp_status st = count_part(&field, limits, out, err);
        if (st != RP_OK) return st;
    }
    assert(out->item_count <= limits->items && out->keep_count <= limits->keys);
    return step == RP_PB_END ? RP_OK : malformed("InsertStreamRequest", err);
}

static bool next_part(rp_pb_reader *reader, uint32_t number, const uint8_t **data, size_t *size)
{
    rp_pb_field field;

    while (rp_pb_next(reader, &field) == RP_PB_FIELD)
        if (rp_pb_is(&field, number, RP_PB_BYTES)) {
            *data = field.data;
            *size = field.size;
            return true;
        }
    return false;
}

bool rp_insert_request_next_chunk(rp_pb_reader *reader, const uint8_t **data, size_t *size)
{
    return next_part(reader, REQUEST_CHUNK, data, size);
}

bool rp_insert_request_next_item(rp_pb_reader *reader, const uint8_t **data, size_t *size)
{
    return next_part(reader, REQUEST_ITEM, data, size);
}

void rp_insert_request_keep(const rp_insert_request *request, uint64_t *keys)
{
    rp_pb_reader reader = rp_pb_open(request->data, request->size);
    rp_pb_field field;

    while (rp_pb_next(&reader, &field) == RP_PB_FIELD) {
        if (rp_pb_is(&field, REQUEST_KEEP, RP_PB_VARINT)) *keys++ = field.value;
        if (!rp_pb_is(&field, REQUEST_KEEP, RP_PB_BYTES)) continue;
        for (const uint8_t *at = field.data, *end = at + field.size; at != end;) {
            uint64_t key = 0;
            if (!rp_pb_get_varint(&at, end, &key)) /* over 64 bits: 0, which is no key */
                while (*at++ >= 0x80) {}
            *keys++ = key;
        }
    }
}

/* Reads an int32 that must not be negative. */
static bool get_count(uint64_t value, uint32_t *out)
{
    *out = (uint32_t)value;
    return value <= INT32_MAX;
}

static bool read_slice(const uint8_t *data, size_t size, rp_wire_slice *out)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field field;
    rp_pb_step step;

    *out = (rp_wire_slice){0};
    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        bool ok = true;
        if (field.type != RP_PB_VARINT) continue;
        switch (field.number) {
        case SLICE_CHUNK: out->chunk_key = field.value; break;
        case SLICE_OFFSET: ok = get_count(field.value, &out->offset); break;
        case SLICE_LENGTH: ok = get_count(field.value, &out->length); break;
        case SLICE_INDEX: ok = get_count(field.value, &out->index); break;
        default: break;
        }
        if (!ok) return false;
    }
    return step == RP_PB_END;
}

static rp_status read_column(const uint8_t *data, size_t size,
                             const rp_wire_item_arrays *arrays, rp_wire_item *out,
                             rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_column column = {0};
    rp_pb_field field;
    rp_pb_step step;

    if (out->column_count == arrays->max_columns)
        return too_many(&out->excess, RP_EXCESS_COLUMNS, "columns in an item",
                        arrays->max_columns, err);
    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        if (rp_pb_is(&field, COLUMN_SQUEEZE, RP_PB_VARINT)) column.squeeze = field.value != 0;
        if (!rp_pb_is(&field, COLUMN_SLICE, RP_PB_BYTES)) continue;
        if (out->slice_count == arrays->max_slices)
            return too_many(&out->excess, RP_EXCESS_SLICES, "slices", arrays->max_slices, err);
        if (!read_slice(field.data, field.size, &arrays->slices[out->slice_count]))
            return malformed("ChunkSlice", err);
        out->slice_count++;
        column.slice_count++;
    }
    if (step != RP_PB_END) return malformed("Column", err);
    if (column.slice_count == 0)
        return rp_fail(err, RP_INVALID, "item %llu: column %zu has no slices",
                       (unsigned long long)out->key, out->column_count);
    assert(out->column_count < arrays->max_columns && out->slice_count <= arrays->max_slices);
    arrays->columns[out->column_count++] = column;
    return RP_OK;
}

static rp_status read_trajectory(const uint8_t *data, size_t size,
                                 const rp_wire_item_arrays *arrays, rp_wire_item *out,
                                 rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field field;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        rp_status st;
        if (!rp_pb_is(&field, TRAJECTORY_COLUMN, RP_PB_BYTES)) continue;
        st = read_column(field.data, field.size, arrays, out, err);
        if (st != RP_OK) return st;
    }
    return step == RP_PB_END ? RP_OK : malformed("FlatTrajectory", err);
}

/* Reads a google.protobuf.Timestamp. Wraps around if it does not fit, since the time is
 * informative only. */
static bool read_time(const uint8_t *data, size_t size, int64_t *ns)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    uint64_t seconds = 0, nanos = 0;
    rp_pb_field field;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        if (rp_pb_is(&field, TIME_SECONDS, RP_PB_VARINT)) seconds = field.value;
        if (rp_pb_is(&field, TIME_NANOS, RP_PB_VARINT)) nanos = field.value;
    }
    *ns = (int64_t)(seconds * 1000000000u + nanos);
    return step == RP_PB_END;
}

/* Fast paths for fields in the order in which all known writers send them (chunk/protobuf.h).
 * If one of them returns false, the functions above read the item again. */

static inline bool slice_in_order(rp_pb_reader r, rp_wire_slice *out)
{
    uint64_t offset, length, index;

    if (!rp_pb_take_if(&r, SLICE_CHUNK, &out->chunk_key) ||
        !rp_pb_take_if(&r, SLICE_OFFSET, &offset) ||
        !rp_pb_take_if(&r, SLICE_LENGTH, &length) || !rp_pb_take_if(&r, SLICE_INDEX, &index))
        return false;
    return get_count(offset, &out->offset) && get_count(length, &out->length) &&
           get_count(index, &out->index) && r.at == r.end;
}

static inline bool column_in_order(rp_pb_reader r, const rp_wire_item_arrays *arrays,
                                   rp_wire_item *out)
{
    rp_pb_reader slice;
    uint32_t count = 0;
    uint64_t squeeze;

    if (out->column_count == arrays->max_columns) return false;
    for (; rp_pb_begins(&r, COLUMN_SLICE, RP_PB_BYTES); count++)
        if (out->slice_count == arrays->max_slices || !rp_pb_take_bytes(&r, &slice) ||
            !slice_in_order(slice, &arrays->slices[out->slice_count++]))
            return false;
    if (count == 0 || !rp_pb_take_if(&r, COLUMN_SQUEEZE, &squeeze) || r.at != r.end)
        return false;
    assert(out->column_count < arrays->max_columns && out->slice_count <= arrays->max_slices);
    arrays->columns[out->column_count++] = (rp_wire_column){count, squeeze != 0};
    return true;
}

/* Reads with the end of the item as the bound, so that ten bytes are readable. Then checks that
 * the time ends where its length says. */
static inline bool time_in_order(rp_pb_reader *r, int64_t *ns)
{
    rp_pb_reader time;
    uint64_t seconds, nanos;

    if (!rp_pb_take_bytes(r, &time)) return false;
    r->at = time.at;
    if (!rp_pb_take_if(r, TIME_SECONDS, &seconds) || !rp_pb_take_if(r, TIME_NANOS, &nanos))
        return false;
    *ns = (int64_t)(seconds * 1000000000u + nanos);
    return r->at == time.end;
}

static bool item_in_order(rp_pb_reader r, const rp_wire_item_arrays *arrays, rp_wire_item *out)
{
    rp_pb_reader part;
    uint64_t times;

    *out = (rp_wire_item){.table = {"", 0}};
    if (!rp_pb_take_if(&r, ITEM_KEY, &out->key)) return false;
    if (rp_pb_begins(&r, ITEM_TABLE, RP_PB_BYTES)) {
        if (!rp_pb_take_bytes(&r, &part) || part.end - part.at > MAX_NAME_BYTES) return false;
        out->table = (rp_string){(const char *)part.at, (size_t)(part.end - part.at)};
    }
    if (!rp_pb_take_double_if(&r, ITEM_PRIORITY, &out->priority) ||
        !rp_pb_take_if(&r, ITEM_TIMES_SAMPLED, &times))
        return false;
    out->times_sampled = (int32_t)(uint32_t)times;
    if (rp_pb_begins(&r, ITEM_INSERTED_AT, RP_PB_BYTES) &&
        !time_in_order(&r, &out->inserted_at_ns))
        return false;
    if (rp_pb_begins(&r, ITEM_TRAJECTORY, RP_PB_BYTES)) {
        if (!rp_pb_take_bytes(&r, &part)) return false;
        while (rp_pb_begins(&part, TRAJECTORY_COLUMN, RP_PB_BYTES)) {
            rp_pb_reader column;
            if (!rp_pb_take_bytes(&part, &column) || !column_in_order(column, arrays, out))
                return false;
        }
        if (part.at != part.end) return false;
    }
    return r.at == r.end;
}

rp_status rp_wire_item_read_any(const uint8_t *data, size_t size,
                                const rp_wire_item_arrays *arrays, rp_wire_item *out,
                                rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field field;
    rp_pb_step step;

    if (item_in_order(reader, arrays, out)) return RP_OK;
    *out = (rp_wire_item){.table = {"", 0}};
    while ((step = rp_pb_next(&reader, &field)) == RP_PB_FIELD) {
        rp_status st = RP_OK;
        if (rp_pb_is(&field, ITEM_KEY, RP_PB_VARINT)) {
            out->key = field.value;
        } else if (rp_pb_is(&field, ITEM_TABLE, RP_PB_BYTES)) {
            out->table = (rp_string){(const char *)field.data, field.size};
        } else if (rp_pb_is(&field, ITEM_PRIORITY, RP_PB_FIXED64)) {
            memcpy(&out->priority, &field.value, sizeof out->priority);
        } else if (rp_pb_is(&field, ITEM_TIMES_SAMPLED, RP_PB_VARINT)) {
            out->times_sampled = (int32_t)(uint32_t)field.value;
        } else if (rp_pb_is(&field, ITEM_TRAJECTORY, RP_PB_BYTES)) {
            st = read_trajectory(field.data, field.size, arrays, out, err);
        } else if (rp_pb_is(&field, ITEM_INSERTED_AT, RP_PB_BYTES)) {
            if (!read_time(field.data, field.size, &out->inserted_at_ns)) break;
        }
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return malformed("PrioritizedItem", err);
    if (out->table.size > MAX_NAME_BYTES)
        return rp_fail(err, RP_INVALID, "a table's name has at most %d bytes, got %zu",
                       MAX_NAME_BYTES, out->table.size);
    return RP_OK;
}

rp_status rp_wire_item_read(const uint8_t *data, size_t size, const rp_wire_item_arrays *arrays,
                            rp_wire_item *out, rp_error *err)
{
    rp_status st = rp_wire_item_read_any(data, size, arrays, out, err);

    if (st == RP_OK && out->column_count == 0)
        return rp_fail(err, RP_INVALID, "item %llu: its trajectory has no columns",
                       (unsigned long long)out->key);
    return st;
}
