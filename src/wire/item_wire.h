/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the trajectory of an item. A client sends a trajectory when it inserts an item, a
 * server when it returns an item. The size is computed first, so that the trajectory is written
 * directly into the memory of the message.
 *
 *   FlatTrajectory   1 Column, repeated
 *   Column           1 ChunkSlice, repeated   2 squeeze
 *   ChunkSlice       1 chunk_key  2 offset  3 length  4 index
 *
 * A slice has less than 128 bytes, and so has a column of at most RP_SHORT_COLUMN slices. A
 * length below 128 is a varint of one byte. So the writer leaves one byte free before each
 * slice or short column, and sets this byte to the length after it has written the content. */
#ifndef RP_WIRE_ITEM_WIRE_H
#define RP_WIRE_ITEM_WIRE_H

#include <assert.h>
#include <string.h>

#include "chunk/chunk.h"
#include "chunk/protobuf.h"
#include "chunk/trajectory.h"

/* Field numbers of a PrioritizedItem and of the messages inside it. */
enum {
    RP_ITEM_KEY = 1,
    RP_ITEM_TABLE = 2,
    RP_ITEM_PRIORITY = 5,
    RP_ITEM_TIMES_SAMPLED = 6,
    RP_ITEM_INSERTED_AT = 7,
    RP_ITEM_TRAJECTORY = 8,
    RP_ITEM_COLUMN = 1, /* field of FlatTrajectory */
    RP_ITEM_SLICE = 1,  /* field of Column */
    RP_ITEM_SQUEEZE = 2,
    RP_SLICE_CHUNK = 1,
    RP_SLICE_OFFSET = 2,
    RP_SLICE_LENGTH = 3,
    RP_SLICE_INDEX = 4,
};

enum {
    RP_SLICE_MAX_BYTES = 2 + 11 + 3 * 6, /* largest size of a slice with its tag and length */
    /* This many slices, together with the field RP_ITEM_SQUEEZE, always fit into 127 bytes, the
     * largest length whose varint has one byte. */
    RP_SHORT_COLUMN = (127 - 2) / RP_SLICE_MAX_BYTES,
};

/* The functions rp_item_*_size() and rp_item_put_*() omit fields that are 0, the default. A tag
 * is one byte, since all field numbers here are below 16. */
static inline size_t rp_item_varint_size(uint64_t value)
{
    return value == 0 ? 0 : 1 + rp_pb_varint_size(value);
}

static inline uint8_t *rp_item_put_varint(uint8_t *at, uint32_t number, uint64_t value)
{
    return value == 0 ? at : rp_pb_put_varint_field(at, number, value);
}

static inline size_t rp_item_double_size(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits == 0 ? 0 : 9;
}

static inline uint8_t *rp_item_put_double(uint8_t *at, uint32_t number, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    if (bits == 0) return at;
    *at++ = (uint8_t)rp_pb_tag(number, RP_PB_FIXED64);
    for (unsigned i = 0; i < 8; i++) at[i] = (uint8_t)(bits >> (8 * i));
    return at + 8;
}

static inline size_t rp_item_column_size(const rp_slices *column)
{
    size_t size = 2 * column->slice_count + (column->squeeze ? 2 : 0);

    for (size_t i = 0; i < column->slice_count; i++) {
        const rp_chunk_slice *slice = &column->slices[i];
        size += rp_item_varint_size(slice->chunk->origin.key) +
                rp_item_varint_size(slice->offset) + rp_item_varint_size(slice->length) +
                rp_item_varint_size(slice->column);
    }
    return size;
}

/* Returns the size of a serialised FlatTrajectory. rp_item_put_trajectory() writes exactly that
 * many bytes at `at`, and returns the address after them. */
static inline size_t rp_item_trajectory_size(const rp_trajectory *trajectory)
{
    size_t size = 0;

    for (size_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);
        size += rp_pb_bytes_field_size(RP_ITEM_COLUMN, rp_item_column_size(&column));
    }
    return size;
}

static inline uint8_t *rp_item_put_slice(uint8_t *at, const rp_chunk_slice *slice)
{
    uint8_t *content = at + 2;

    at[0] = (uint8_t)rp_pb_tag(RP_ITEM_SLICE, RP_PB_BYTES);
    at = rp_item_put_varint(content, RP_SLICE_CHUNK, slice->chunk->origin.key);
    at = rp_item_put_varint(at, RP_SLICE_OFFSET, slice->offset);
    at = rp_item_put_varint(at, RP_SLICE_LENGTH, slice->length);
    at = rp_item_put_varint(at, RP_SLICE_INDEX, slice->column);
    assert(at - content < 128);
    content[-1] = (uint8_t)(at - content);
    return at;
}

static inline uint8_t *rp_item_put_trajectory(uint8_t *at, const rp_trajectory *trajectory)
{
    for (size_t i = 0; i < trajectory->column_count; i++) {
        rp_slices column = rp_trajectory_slices(trajectory, i);
        bool is_short = column.slice_count <= RP_SHORT_COLUMN;
        size_t size = is_short ? 0 : rp_item_column_size(&column);
        uint8_t *content = at = rp_pb_put_bytes_head(at, RP_ITEM_COLUMN, size);

        for (size_t j = 0; j < column.slice_count; j++)
            at = rp_item_put_slice(at, &column.slices[j]);
        at = rp_item_put_varint(at, RP_ITEM_SQUEEZE, column.squeeze);
        assert(is_short ? at - content < 128 : (size_t)(at - content) == size);
        if (is_short) content[-1] = (uint8_t)(at - content);
    }
    return at;
}

#endif
