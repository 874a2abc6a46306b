/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/sample_response.h"

#include <assert.h>

#include "wire/item_wire.h"
#include "wire/sample_fields.h"

/* Field numbers. */
enum {
    TIME_SECONDS = 1,
    TIME_NANOS = 2,
};

/* Splits a time into seconds and nanoseconds. The nanoseconds are never negative. */
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
    s.time = rp_item_varint_size((uint64_t)s.seconds) + rp_item_varint_size((uint64_t)s.nanos);
    s.trajectory = rp_item_trajectory_size(sample->trajectory);
    s.item = rp_item_varint_size(sample->key) +
             (name_size > 0 ? rp_pb_bytes_field_size(RP_ITEM_TABLE, name_size) : 0) +
             rp_item_double_size(sample->priority) +
             rp_item_varint_size((uint64_t)(int64_t)sample->times_sampled) +
             rp_pb_bytes_field_size(RP_ITEM_INSERTED_AT, s.time) +
             rp_pb_bytes_field_size(RP_ITEM_TRAJECTORY, s.trajectory);
    s.info = rp_pb_bytes_field_size(RP_PB_INFO_ITEM, s.item) +
             rp_item_double_size(sample->probability) +
             rp_item_varint_size((uint64_t)sample->table_size) +
             rp_item_varint_size(sample->rate_limited);
    return s;
}

static uint8_t *put_info(uint8_t *at, const rp_sample *sample, const char *name,
                         size_t name_size, const info_sizes *s)
{
    at = rp_pb_put_bytes_head(at, RP_PB_INFO_ITEM, s->item);
    at = rp_item_put_varint(at, RP_ITEM_KEY, sample->key);
    if (name_size > 0) {
        at = rp_pb_put_bytes_head(at, RP_ITEM_TABLE, name_size);
        memcpy(at, name, name_size);
        at += name_size;
    }
    at = rp_item_put_double(at, RP_ITEM_PRIORITY, sample->priority);
    at =
        rp_item_put_varint(at, RP_ITEM_TIMES_SAMPLED, (uint64_t)(int64_t)sample->times_sampled);
    at = rp_pb_put_bytes_head(at, RP_ITEM_INSERTED_AT, s->time);
    at = rp_item_put_varint(at, TIME_SECONDS, (uint64_t)s->seconds);
    at = rp_item_put_varint(at, TIME_NANOS, (uint64_t)s->nanos);
    at = rp_pb_put_bytes_head(at, RP_ITEM_TRAJECTORY, s->trajectory);
    at = rp_item_put_trajectory(at, sample->trajectory);
    at = rp_item_put_double(at, RP_PB_INFO_PROBABILITY, sample->probability);
    at = rp_item_put_varint(at, RP_PB_INFO_TABLE_SIZE, (uint64_t)sample->table_size);
    return rp_item_put_varint(at, RP_PB_INFO_RATE_LIMITED, sample->rate_limited);
}

size_t rp_sample_info_size(const rp_sample *sample, size_t table_size)
{
    return measure(sample, table_size).info;
}

uint8_t *rp_sample_info_write(uint8_t *at, const rp_sample *sample, const char *table,
                              size_t table_size)
{
    info_sizes sizes = measure(sample, table_size);
    uint8_t *end = put_info(at, sample, table, table_size, &sizes);

    assert((size_t)(end - at) == sizes.info);
    return end;
}

/* The form of a chunk in its entry. */
typedef struct chunk_form {
    bool is_shared;
    uint64_t offset;
    size_t size; /* of the field, without its head */
} chunk_form;

static chunk_form form_of(const rp_chunk *chunk, const rp_sample_shared *shared)
{
    chunk_form form = {.size = chunk->wire_bytes};

    if (!rp_sample_is_shared(shared, chunk->wire, chunk->wire_bytes)) return form;
    form.is_shared = true;
    form.offset = (uint64_t)(chunk->wire - shared->base);
    assert(form.offset + chunk->wire_bytes <= shared->bytes);
    form.size = rp_item_varint_size(form.offset) + rp_item_varint_size(chunk->wire_bytes);
    return form;
}

static size_t form_size(const chunk_form *form)
{
    return rp_pb_bytes_field_size(form->is_shared ? RP_PB_ENTRY_SHARED : RP_PB_ENTRY_CHUNK,
                                  form->size);
}

static bool put_chunk(rp_message *reply, const rp_chunk *chunk, const chunk_form *form)
{
    uint8_t *at = rp_buf_reserve(&reply->bytes, 16 + (form->is_shared ? form->size : 0));

    if (at == NULL) return false;
    at = rp_pb_put_bytes_head(at, form->is_shared ? RP_PB_ENTRY_SHARED : RP_PB_ENTRY_CHUNK,
                              form->size);
    if (form->is_shared) {
        at = rp_item_put_varint(at, RP_PB_SHARED_OFFSET, form->offset);
        at = rp_item_put_varint(at, RP_PB_SHARED_SIZE, chunk->wire_bytes);
    }
    reply->bytes.size = (size_t)(at - reply->bytes.data);
    return form->is_shared || rp_message_add(reply, chunk->wire, chunk->wire_bytes);
}

bool rp_sample_entry_append(rp_message *reply, const rp_sample *sample, const char *table,
                            size_t table_size, size_t first, size_t count,
                            const rp_sample_shared *shared)
{
    const rp_trajectory *trajectory = sample->trajectory;
    bool is_last = first + count == trajectory->chunk_count;
    size_t size = is_last ? 2 : 0, heads;
    info_sizes sizes = {0};
    uint8_t *at;

    assert(first + count <= trajectory->chunk_count);
    assert(shared == NULL || shared->hold != 0);
    if (first == 0) {
        sizes = measure(sample, table_size);
        size += rp_pb_bytes_field_size(RP_PB_ENTRY_INFO, sizes.info);
        if (shared != NULL) size += rp_item_varint_size(shared->hold);
    }
    heads = size + 16;
    for (size_t i = 0; i < count; i++) {
        chunk_form form = form_of(trajectory->chunks[first + i], shared);
        size += form_size(&form);
    }
    at = rp_buf_reserve(&reply->bytes, heads);
    if (at == NULL) return false;
    at = rp_pb_put_bytes_head(at, RP_PB_RESPONSE_ENTRY, size);
    if (first == 0) {
        at = rp_pb_put_bytes_head(at, RP_PB_ENTRY_INFO, sizes.info);
        at = put_info(at, sample, table, table_size, &sizes);
        if (shared != NULL) at = rp_item_put_varint(at, RP_PB_ENTRY_HOLD, shared->hold);
    }
    reply->bytes.size = (size_t)(at - reply->bytes.data);
    assert(reply->bytes.size <= reply->bytes.capacity);
    for (size_t i = 0; i < count; i++) {
        const rp_chunk *chunk = trajectory->chunks[first + i];
        chunk_form form = form_of(chunk, shared);
        if (!put_chunk(reply, chunk, &form)) return false;
    }
    if (!is_last) return true;
    at = rp_buf_reserve(&reply->bytes, 2);
    if (at == NULL) return false;
    reply->bytes.size =
        (size_t)(rp_item_put_varint(at, RP_PB_ENTRY_END, 1) - reply->bytes.data);
    return true;
}
