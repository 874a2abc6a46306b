/* SPDX-License-Identifier: Apache-2.0 */
/* Writing ChunkData. Lengths precede the data, so each message has a function for its size and
 * one that writes it. */
#include "chunk/chunk_wire.h"

#include <assert.h>
#include <string.h>

#include "chunk/protobuf.h"

/* An int32 is written as the varint of its sign-extended 64-bit value. */
static uint64_t int32_varint(int32_t value)
{
    return (uint64_t)(int64_t)value;
}

/* proto3 omits zeroes. */
static size_t varint_or_nothing_size(uint32_t number, uint64_t value)
{
    return value == 0 ? 0 : rp_pb_varint_field_size(number, value);
}

static uint8_t *put_varint_or_nothing(uint8_t *at, uint32_t number, uint64_t value)
{
    return value == 0 ? at : rp_pb_put_varint_field(at, number, value);
}

static size_t range_size(const rp_chunk_origin *o)
{
    return varint_or_nothing_size(RP_PB_RANGE_EPISODE, o->episode) +
           varint_or_nothing_size(RP_PB_RANGE_START, int32_varint(o->first_step)) +
           varint_or_nothing_size(RP_PB_RANGE_END, int32_varint(o->last_step)) +
           varint_or_nothing_size(RP_PB_RANGE_SPARSE, o->sparse);
}

static uint8_t *put_range(uint8_t *at, const rp_chunk_origin *o)
{
    at = put_varint_or_nothing(at, RP_PB_RANGE_EPISODE, o->episode);
    at = put_varint_or_nothing(at, RP_PB_RANGE_START, int32_varint(o->first_step));
    at = put_varint_or_nothing(at, RP_PB_RANGE_END, int32_varint(o->last_step));
    return put_varint_or_nothing(at, RP_PB_RANGE_SPARSE, o->sparse);
}

static size_t dim_size(int64_t dim)
{
    return varint_or_nothing_size(RP_PB_DIM_SIZE, (uint64_t)dim);
}

static size_t shape_size(const rp_shape *shape)
{
    size_t size = 0;

    for (int32_t i = 0; i < shape->rank; i++)
        size += rp_pb_bytes_field_size(RP_PB_SHAPE_DIM, dim_size(shape->dims[i]));
    return size;
}

static uint8_t *put_shape(uint8_t *at, const rp_shape *shape)
{
    for (int32_t i = 0; i < shape->rank; i++) {
        at = rp_pb_put_bytes_head(at, RP_PB_SHAPE_DIM, dim_size(shape->dims[i]));
        at = put_varint_or_nothing(at, RP_PB_DIM_SIZE, (uint64_t)shape->dims[i]);
    }
    return at;
}

static size_t content_size(const rp_chunk_content *c)
{
    return c->head_bytes + c->pieces[0].size + c->pieces[1].size;
}

static uint8_t *put_content(uint8_t *at, const rp_chunk_content *c)
{
    memcpy(at, c->head, c->head_bytes);
    at += c->head_bytes;
    for (int i = 0; i < 2; i++) {
        if (c->pieces[i].size > 0) memcpy(at, c->pieces[i].data, c->pieces[i].size);
        at += c->pieces[i].size;
    }
    return at;
}

/* proto3 omits empty bytes too; only a string tensor without elements has empty content. */
static size_t tensor_size(const rp_chunk_part *part)
{
    size_t content = content_size(&part->content);

    return varint_or_nothing_size(RP_PB_TENSOR_DTYPE, (uint64_t)part->dtype) +
           rp_pb_bytes_field_size(RP_PB_TENSOR_SHAPE, shape_size(&part->shape)) +
           (content == 0 ? 0 : rp_pb_bytes_field_size(RP_PB_TENSOR_CONTENT, content));
}

static uint8_t *put_tensor(uint8_t *at, const rp_chunk_part *part)
{
    size_t content = content_size(&part->content);

    at = put_varint_or_nothing(at, RP_PB_TENSOR_DTYPE, (uint64_t)part->dtype);
    at = rp_pb_put_bytes_head(at, RP_PB_TENSOR_SHAPE, shape_size(&part->shape));
    at = put_shape(at, &part->shape);
    if (content == 0) return at;
    at = rp_pb_put_bytes_head(at, RP_PB_TENSOR_CONTENT, content);
    return put_content(at, &part->content);
}

static size_t data_size(const rp_chunk_part *parts, size_t count)
{
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += rp_pb_bytes_field_size(RP_PB_DATA_TENSOR, tensor_size(&parts[i]));
    return size;
}

/* The value of field 1000; 0, which is omitted, for the codecs that every client reads. */
static uint64_t codec_on_wire(rp_codec codec)
{
    return codec == RP_CODEC_NONE ? RP_CODEC_SNAPPY : (uint64_t)codec;
}

size_t rp_chunk_wire_size(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                          size_t raw_bytes)
{
    size_t count = outline->column_count;

    return varint_or_nothing_size(RP_PB_CHUNK_KEY, outline->origin.key) +
           rp_pb_bytes_field_size(RP_PB_CHUNK_RANGE, range_size(&outline->origin)) +
           varint_or_nothing_size(RP_PB_CHUNK_DELTA, outline->delta) +
           rp_pb_bytes_field_size(RP_PB_CHUNK_DATA, data_size(parts, count)) +
           varint_or_nothing_size(RP_PB_CHUNK_TENSOR_COUNT, count) +
           varint_or_nothing_size(RP_PB_CHUNK_RAW_BYTES, raw_bytes) +
           varint_or_nothing_size(RP_PB_CHUNK_CODEC, codec_on_wire(outline->codec));
}

uint8_t *rp_chunk_wire_put_head(const rp_chunk_origin *origin, uint8_t *dst)
{
    uint8_t *at = put_varint_or_nothing(dst, RP_PB_CHUNK_KEY, origin->key), *range;

    *at++ = (uint8_t)rp_pb_tag(RP_PB_CHUNK_RANGE, RP_PB_BYTES);
    range = at + 1; /* at most 35 bytes, so their length takes one byte */
    at = put_range(range, origin);
    assert(at - range < 0x80 && at - dst <= RP_CHUNK_HEAD_BYTES);
    range[-1] = (uint8_t)(at - range);
    return at;
}

void rp_chunk_wire_write(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                         size_t raw_bytes, uint8_t *dst)
{
    size_t count = outline->column_count;
    uint8_t *at = rp_chunk_wire_put_head(&outline->origin, dst);

    at = put_varint_or_nothing(at, RP_PB_CHUNK_DELTA, outline->delta);
    at = rp_pb_put_bytes_head(at, RP_PB_CHUNK_DATA, data_size(parts, count));
    for (size_t i = 0; i < count; i++) {
        at = rp_pb_put_bytes_head(at, RP_PB_DATA_TENSOR, tensor_size(&parts[i]));
        at = put_tensor(at, &parts[i]);
    }
    at = put_varint_or_nothing(at, RP_PB_CHUNK_TENSOR_COUNT, count);
    at = put_varint_or_nothing(at, RP_PB_CHUNK_RAW_BYTES, raw_bytes);
    at = put_varint_or_nothing(at, RP_PB_CHUNK_CODEC, codec_on_wire(outline->codec));
    assert((size_t)(at - dst) == rp_chunk_wire_size(outline, parts, raw_bytes));
    (void)at;
}
