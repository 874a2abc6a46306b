/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sample_response.h"

#include "chunk/chunk.h"
#include "chunk/protobuf.h"
#include "chunk/trajectory.h"

/* Field numbers. */
enum {
    RESPONSE_ENTRY = 1,
    ENTRY_INFO = 1,
    ENTRY_CHUNK = 2,
    ENTRY_END = 3,
    INFO_ITEM = 1,
    INFO_PROBABILITY = 2,
    INFO_TABLE_SIZE = 3,
    INFO_RATE_LIMITED = 4,
    ITEM_KEY = 1,
    ITEM_TABLE = 2,
    ITEM_PRIORITY = 5,
    ITEM_TIMES_SAMPLED = 6,
    ITEM_INSERTED_AT = 7,
    ITEM_TRAJECTORY = 8,
    TIME_SECONDS = 1,
    TIME_NANOS = 2,
    TRAJECTORY_COLUMN = 1,
    COLUMN_SLICE = 1,
    COLUMN_SQUEEZE = 2,
    SLICE_CHUNK = 1,
    SLICE_OFFSET = 2,
    SLICE_LENGTH = 3,
    SLICE_INDEX = 4,
};

/* A field whose value is the default is not written. All numbers here are below 16. */
static inline size_t varint_size(uint64_t value)
{
    return value == 0 ? 0 : 1 + rp_pb_varint_size(value);
}

static inline uint8_t *put_varint(uint8_t *at, uint32_t number, uint64_t value)
{
    return value == 0 ? at : rp_pb_put_varint_field(at, number, value);
}

static inline size_t double_size(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits == 0 ? 0 : 9;
}

static inline uint8_t *put_double(uint8_t *at, uint32_t number, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (bits == 0) return at;
    *at++ = (uint8_t)rp_pb_tag(number, RP_PB_FIXED64);
    for (unsigned i = 0; i < 8; i++) at[i] = (uint8_t)(bits >> (8 * i));
    return at + 8;
}

/* --- trajectories ------------------------------------------------------------------------------ */

static inline size_t slice_size(const rp_slice *slice)
{
    return varint_size(slice->chunk->origin.key) + varint_size(slice->offset) +
           varint_size(slice->length) + varint_size(slice->column);
}

static size_t column_size(const rp_slices *column)
{
    size_t size = column->squeeze ? 2 : 0;

    for (size_t i = 0; i < column->slice_count; i++)
        size += rp_pb_bytes_field_size(COLUMN_SLICE, slice_size(&column->slices[i]));
    return size;
}

static size_t trajectory_size(const rp_trajectory *trajectory)
{
    size_t size = 0;

    for (size_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);
        size += rp_pb_bytes_field_size(TRAJECTORY_COLUMN, column_size(&column));
    }
    return size;
}

static uint8_t *put_trajectory(uint8_t *at, const rp_trajectory *trajectory)
{
    for (size_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);
        at = rp_pb_put_bytes_head(at, TRAJECTORY_COLUMN, column_size(&column));
        for (size_t j = 0; j < column.slice_count; j++) {
            const rp_slice *slice = &column.slices[j];
            at = rp_pb_put_bytes_head(at, COLUMN_SLICE, slice_size(slice));
            at = put_varint(at, SLICE_CHUNK, slice->chunk->origin.key);
            at = put_varint(at, SLICE_OFFSET, slice->offset);
            at = put_varint(at, SLICE_LENGTH, slice->length);
            at = put_varint(at, SLICE_INDEX, slice->column);
        }
        at = put_varint(at, COLUMN_SQUEEZE, column.squeeze);
    }
    return at;
}

/* --- infos --------------------------------------------------------------------------------------- */

/* Seconds and nanoseconds of a time, the latter never negative. */
static void split_time(int64_t ns, int64_t *seconds, int64_t *nanos)
{
    *seconds = ns / 1000000000;
    *nanos = ns % 1000000000;
    if (*nanos < 0) {
        *nanos += 1000000000;
        *seconds -= 1;
    }
}

/* The lengths of the messages within an info. */
typedef struct info_sizes {
    size_t time, trajectory, item, info;
    int64_t seconds, nanos;
} info_sizes;

static info_sizes measure(const rp_sample *sample, size_t name_size)
{
    info_sizes s;

    split_time(sample->inserted_at_ns, &s.seconds, &s.nanos);
    s.time = varint_size((uint64_t)s.seconds) + varint_size((uint64_t)s.nanos);
    s.trajectory = trajectory_size(sample->trajectory);
    s.item = varint_size(sample->key) +
             (name_size > 0 ? rp_pb_bytes_field_size(ITEM_TABLE, name_size) : 0) +
             double_size(sample->priority) +
             varint_size((uint64_t)(int64_t)sample->times_sampled) +
             rp_pb_bytes_field_size(ITEM_INSERTED_AT, s.time) +
             rp_pb_bytes_field_size(ITEM_TRAJECTORY, s.trajectory);
    s.info = rp_pb_bytes_field_size(INFO_ITEM, s.item) + double_size(sample->probability) +
             varint_size((uint64_t)sample->table_size) + varint_size(sample->rate_limited);
    return s;
}

static uint8_t *put_info(uint8_t *at, const rp_sample *sample, const char *name,
                         size_t name_size, const info_sizes *s)
{
    at = rp_pb_put_bytes_head(at, INFO_ITEM, s->item);
    at = put_varint(at, ITEM_KEY, sample->key);
    if (name_size > 0) {
        at = rp_pb_put_bytes_head(at, ITEM_TABLE, name_size);
        memcpy(at, name, name_size);
        at += name_size;
    }
    at = put_double(at, ITEM_PRIORITY, sample->priority);
    at = put_varint(at, ITEM_TIMES_SAMPLED, (uint64_t)(int64_t)sample->times_sampled);
    at = rp_pb_put_bytes_head(at, ITEM_INSERTED_AT, s->time);
    at = put_varint(at, TIME_SECONDS, (uint64_t)s->seconds);
    at = put_varint(at, TIME_NANOS, (uint64_t)s->nanos);
    at = rp_pb_put_bytes_head(at, ITEM_TRAJECTORY, s->trajectory);
    at = put_trajectory(at, sample->trajectory);
    at = put_double(at, INFO_PROBABILITY, sample->probability);
    at = put_varint(at, INFO_TABLE_SIZE, (uint64_t)sample->table_size);
    return put_varint(at, INFO_RATE_LIMITED, sample->rate_limited);
}

size_t rp_sample_info_size(const rp_sample *sample, size_t table_size)
{
    return measure(sample, table_size).info;
}

uint8_t *rp_sample_info_write(uint8_t *at, const rp_sample *sample, const char *table,
                              size_t table_size)
{
    info_sizes sizes = measure(sample, table_size);

    return put_info(at, sample, table, table_size, &sizes);
}

/* --- entries -------------------------------------------------------------------------------------- */

bool rp_sample_entry_append(rp_reply *reply, const rp_sample *sample, const char *table,
                            size_t table_size, size_t first, size_t count)
{
    const rp_trajectory *trajectory = sample->trajectory;
    bool is_last = first + count == trajectory->chunk_count;
    size_t size = is_last ? 2 : 0, heads;
    info_sizes sizes = {0};
    uint8_t *at;

    if (first == 0) {
        sizes = measure(sample, table_size);
        size += rp_pb_bytes_field_size(ENTRY_INFO, sizes.info);
    }
    heads = size + 16;
    for (size_t i = 0; i < count; i++)
        size += rp_pb_bytes_field_size(ENTRY_CHUNK, trajectory->chunks[first + i]->wire_bytes);
    at = rp_buf_reserve(&reply->bytes, heads);
    if (at == NULL) return false;
    at = rp_pb_put_bytes_head(at, RESPONSE_ENTRY, size);
    if (first == 0) {
        at = rp_pb_put_bytes_head(at, ENTRY_INFO, sizes.info);
        at = put_info(at, sample, table, table_size, &sizes);
    }
    reply->bytes.size = (size_t)(at - reply->bytes.data);
    for (size_t i = 0; i < count; i++) {
        const rp_chunk *chunk = trajectory->chunks[first + i];
        at = rp_buf_reserve(&reply->bytes, 16);
        if (at == NULL) return false;
        at = rp_pb_put_bytes_head(at, ENTRY_CHUNK, chunk->wire_bytes);
        reply->bytes.size = (size_t)(at - reply->bytes.data);
        if (!rp_reply_add(reply, chunk->wire, chunk->wire_bytes)) return false;
    }
    if (!is_last) return true;
    at = rp_buf_reserve(&reply->bytes, 2);
    if (at == NULL) return false;
    reply->bytes.size = (size_t)(put_varint(at, ENTRY_END, 1) - reply->bytes.data);
    return true;
}
