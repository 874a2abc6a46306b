/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/mould.h"

#include <assert.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/protobuf.h"

/* True if none of the fields in these bytes belongs to a head. */
static bool has_no_head(const uint8_t *wire, size_t size)
{
    rp_pb_reader reader = rp_pb_open(wire, size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == RP_PB_CHUNK_KEY || f.number == RP_PB_CHUNK_RANGE) return false;
    return true;
}

void rp_chunk_mould_take(rp_chunk_mould *mould, const rp_chunk *chunk)
{
    const rp_column_place *place = &chunk->places[0];
    const rp_chunk_column *column = &chunk->columns[0];
    rp_chunk_head begin;
    size_t head, end;

    if (chunk->column_count != 1 || place->form != RP_FORM_STORED || column->raw_bytes == 0)
        return;
    if (chunk->delta ||
        rp_chunk_wire_peek(chunk->wire, chunk->wire_bytes, &begin, NULL) != RP_OK ||
        begin.bytes == 0)
        return;
    head = begin.bytes;
    end = place->rows_at + column->raw_bytes;
    if (place->rows_at - head > RP_MOULD_BYTES || chunk->wire_bytes - end > RP_MOULD_BYTES)
        return;
    if (!has_no_head(chunk->wire + head, chunk->wire_bytes - head)) return;
    assert(place->rows_at >= head && end <= chunk->wire_bytes);
    mould->rows_bytes = column->raw_bytes;
    mould->before_bytes = place->rows_at - head;
    mould->after_bytes = chunk->wire_bytes - end;
    memcpy(mould->before, chunk->wire + head, mould->before_bytes);
    memcpy(mould->after, chunk->wire + end, mould->after_bytes);
    mould->codec = chunk->codec;
    mould->column = *column;
    mould->place = *place;
    mould->place.content_at -= head;
    mould->place.rows_at -= head;
}

/* Fills in the fields of a chunk besides its message. */
static void fill_in(const rp_chunk_mould *mould, const rp_chunk_origin *origin, size_t head,
                    rp_chunk *chunk)
{
    chunk->origin = *origin;
    chunk->codec = mould->codec;
    chunk->columns[0] = mould->column;
    chunk->places[0] = mould->place;
    chunk->places[0].content_at += head;
    chunk->places[0].rows_at += head;
}

rp_chunk *rp_chunk_mould_cast(const rp_chunk_mould *mould, const rp_allocator *alloc,
                              const rp_chunk_origin *origin, const uint8_t *rows)
{
    uint8_t head[RP_CHUNK_HEAD_BYTES], *at;
    size_t head_bytes = (size_t)(rp_chunk_wire_put_head(origin, head) - head);
    size_t around = mould->before_bytes + mould->after_bytes;
    rp_chunk *chunk = rp_chunk_alloc(alloc, 1, head_bytes + around + mould->rows_bytes, &at);

    assert(mould->rows_bytes > 0 && head_bytes <= RP_CHUNK_HEAD_BYTES);
    assert(mould->before_bytes <= RP_MOULD_BYTES && mould->after_bytes <= RP_MOULD_BYTES);
    if (chunk == NULL) return NULL;
    memcpy(at, head, head_bytes);
    at += head_bytes;
    memcpy(at, mould->before, mould->before_bytes);
    at += mould->before_bytes;
    memcpy(at, rows, mould->rows_bytes);
    memcpy(at + mould->rows_bytes, mould->after, mould->after_bytes);
    fill_in(mould, origin, head_bytes, chunk);
    return chunk;
}

/* True if a matching chunk is within the limits: the template may come from a chunk that was
 * parsed with others. */
static bool is_within(const rp_chunk_mould *m, size_t size, const rp_chunk_limits *limits)
{
    return m->rows_bytes > 0 && size <= limits->max_wire_bytes &&
           m->rows_bytes <= limits->max_raw_bytes && limits->max_columns >= 1;
}

static bool matches(const rp_chunk_mould *m, const uint8_t *wire, size_t size, size_t head)
{
    assert(head <= size);
    return size - head == m->before_bytes + m->rows_bytes + m->after_bytes &&
           memcmp(wire + head, m->before, m->before_bytes) == 0 &&
           memcmp(wire + size - m->after_bytes, m->after, m->after_bytes) == 0;
}

rp_status rp_chunk_mould_parse(rp_chunk_mould *mould, const rp_allocator *alloc, rp_bytes wire,
                               const rp_chunk_head *head, const rp_chunk_limits *limits,
                               rp_chunk **out, rp_error *err)
{
    rp_chunk *chunk;
    uint8_t *at;
    rp_status st;

    if (is_within(mould, wire.size, limits) && head->bytes > 0 &&
        matches(mould, wire.data, wire.size, head->bytes)) {
        chunk = rp_chunk_alloc(alloc, 1, wire.size, &at);
        if (chunk != NULL) {
            memcpy(at, wire.data, wire.size);
            fill_in(mould, &head->origin, head->bytes, chunk);
            *out = chunk;
            return RP_OK;
        }
    }
    st = rp_chunk_parse(alloc, wire.data, wire.size, limits, out, err);
    if (st == RP_OK) rp_chunk_mould_take(mould, *out);
    return st;
}
