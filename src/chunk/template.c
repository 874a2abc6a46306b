/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/template.h"

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

void rp_chunk_template_set(rp_chunk_template *template, const rp_chunk *chunk)
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
    if (place->rows_at - head > RP_TEMPLATE_BYTES ||
        chunk->wire_bytes - end > RP_TEMPLATE_BYTES)
        return;
    if (!has_no_head(chunk->wire + head, chunk->wire_bytes - head)) return;
    assert(place->rows_at >= head && end <= chunk->wire_bytes);
    template->rows_bytes = column->raw_bytes;
    template->before_bytes = place->rows_at - head;
    template->after_bytes = chunk->wire_bytes - end;
    memcpy(template->before, chunk->wire + head, template->before_bytes);
    memcpy(template->after, chunk->wire + end, template->after_bytes);
    template->codec = chunk->codec;
    template->column = *column;
    template->place = *place;
    template->place.content_at -= head;
    template->place.rows_at -= head;
}

/* Fills in the fields of a chunk besides its message. */
static void fill_in(const rp_chunk_template *template, const rp_chunk_origin *origin,
                    size_t head, rp_chunk *chunk)
{
    chunk->origin = *origin;
    chunk->codec = template->codec;
    chunk->columns[0] = template->column;
    chunk->places[0] = template->place;
    chunk->places[0].content_at += head;
    chunk->places[0].rows_at += head;
}

rp_chunk *rp_chunk_template_make(const rp_chunk_template *template, const rp_allocator *alloc,
                                 const rp_chunk_origin *origin, const uint8_t *rows)
{
    uint8_t head[RP_CHUNK_HEAD_BYTES], *at;
    size_t head_bytes = (size_t)(rp_chunk_wire_put_head(origin, head) - head);
    size_t around = template->before_bytes + template->after_bytes;
    rp_chunk *chunk = rp_chunk_alloc(alloc, 1, head_bytes + around + template->rows_bytes, &at);

    assert(template->rows_bytes > 0 && head_bytes <= RP_CHUNK_HEAD_BYTES);
    assert(template->before_bytes <= RP_TEMPLATE_BYTES &&
           template->after_bytes <= RP_TEMPLATE_BYTES);
    if (chunk == NULL) return NULL;
    memcpy(at, head, head_bytes);
    at += head_bytes;
    memcpy(at, template->before, template->before_bytes);
    at += template->before_bytes;
    memcpy(at, rows, template->rows_bytes);
    memcpy(at + template->rows_bytes, template->after, template->after_bytes);
    fill_in(template, origin, head_bytes, chunk);
    return chunk;
}

/* True if a matching chunk is within the limits: the template may come from a chunk that was
 * parsed with other limits. */
static bool is_within(const rp_chunk_template *m, size_t size, const rp_chunk_limits *limits)
{
    return m->rows_bytes > 0 && size <= limits->max_wire_bytes &&
           m->rows_bytes <= limits->max_raw_bytes && limits->max_columns >= 1;
}

static bool matches(const rp_chunk_template *m, const uint8_t *wire, size_t size, size_t head)
{
    assert(head <= size);
    return size - head == m->before_bytes + m->rows_bytes + m->after_bytes &&
           memcmp(wire + head, m->before, m->before_bytes) == 0 &&
           memcmp(wire + size - m->after_bytes, m->after, m->after_bytes) == 0;
}

rp_status rp_chunk_template_parse(rp_chunk_template *template, const rp_allocator *alloc,
                                  rp_bytes wire, const rp_chunk_head *head,
                                  const rp_chunk_limits *limits, rp_chunk **out, rp_error *err)
{
    rp_chunk *chunk;
    uint8_t *at;
    rp_status st;

    if (is_within(template, wire.size, limits) && head->bytes > 0 &&
        matches(template, wire.data, wire.size, head->bytes)) {
        chunk = rp_chunk_alloc(alloc, 1, wire.size, &at);
        if (chunk != NULL) {
            memcpy(at, wire.data, wire.size);
            fill_in(template, &head->origin, head->bytes, chunk);
            *out = chunk;
            return RP_OK;
        }
    }
    st = rp_chunk_parse(alloc, wire.data, wire.size, limits, out, err);
    if (st == RP_OK) rp_chunk_template_set(template, *out);
    return st;
}
