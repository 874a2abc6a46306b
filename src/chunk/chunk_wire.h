/* SPDX-License-Identifier: Apache-2.0 */
/* ChunkData, the message a chunk travels as: reading and writing it.
 *
 *   ChunkData          1 chunk_key  2 SequenceRange  4 delta_encoded  5 Data
 *                      6 data_tensors_len  7 data_uncompressed_size  1000 codec (ours)
 *   SequenceRange      1 episode_id  2 start  3 end  4 sparse
 *   Data               1 TensorProto, repeated
 *   TensorProto        1 dtype  2 TensorShapeProto  4 tensor_content
 *   TensorShapeProto   2 Dim, repeated  3 unknown_rank
 *   Dim                1 size
 *
 * Old clients skip field 1000; without it the codec is snappy, and RP_CODEC_NONE, being snappy,
 * is written without it. Fields we do not know are skipped; of a number that stands twice the
 * last counts, and a submessage that stands twice is merged, as protocol buffers demand:
 * tensors and dimensions add up.
 *
 * Reading takes two walks, since the codec may stand behind the data: the outline first, so
 * that the caller can allocate, then the columns. Both are pure functions of the bytes. */
#ifndef RP_CHUNK_CHUNK_WIRE_H
#define RP_CHUNK_CHUNK_WIRE_H

#include "chunk/chunk.h"

/* Field numbers. */
enum {
    RP_PB_CHUNK_KEY = 1,
    RP_PB_CHUNK_RANGE = 2,
    RP_PB_CHUNK_DELTA = 4,
    RP_PB_CHUNK_DATA = 5,
    RP_PB_CHUNK_TENSOR_COUNT = 6,
    RP_PB_CHUNK_RAW_BYTES = 7,
    RP_PB_CHUNK_CODEC = 1000,
    RP_PB_RANGE_EPISODE = 1,
    RP_PB_RANGE_START = 2,
    RP_PB_RANGE_END = 3,
    RP_PB_RANGE_SPARSE = 4,
    RP_PB_DATA_TENSOR = 1,
    RP_PB_TENSOR_DTYPE = 1,
    RP_PB_TENSOR_SHAPE = 2,
    RP_PB_TENSOR_CONTENT = 4,
    RP_PB_TENSOR_STRING_VAL = 8,
    RP_PB_TENSOR_LAST_VAL = 18, /* values of a kind stand in fields 5 to 18 */
    RP_PB_SHAPE_DIM = 2,
    RP_PB_SHAPE_UNKNOWN_RANK = 3,
    RP_PB_DIM_SIZE = 1,
};

/* What stands outside the tensors. */
typedef struct rp_chunk_outline {
    rp_chunk_origin origin;
    rp_codec codec; /* never RP_CODEC_NONE when read: on the wire that is snappy */
    bool delta;
    size_t column_count;
    size_t tensors_from; /* when read: no tensor stands before this byte */
} rp_chunk_outline;

/* Reads all but the tensors, and counts those. RP_CORRUPT, RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_wire_outline(const uint8_t *wire, size_t size,
                                             const rp_chunk_limits *limits,
                                             rp_chunk_outline *outline, rp_error *err);

/* Reads the tensors of a message with that outline: column_count entries each. Checks dtype,
 * shape and lengths, all of the strings, compressed bytes by their head. The same statuses. */
RP_NODISCARD rp_status rp_chunk_wire_columns(const uint8_t *wire, size_t size,
                                             const rp_chunk_limits *limits,
                                             const rp_chunk_outline *outline,
                                             rp_chunk_column *columns, rp_column_place *places,
                                             rp_error *err);

/* The tensor_content of a column to be written: a short head, then two pieces. */
typedef struct rp_chunk_content {
    uint8_t head[16];
    size_t head_bytes;
    struct {
        const uint8_t *data; /* borrowed; may be NULL if size is 0 */
        size_t size;
    } pieces[2];
} rp_chunk_content;

/* A column to be written. */
typedef struct rp_chunk_part {
    rp_dtype dtype;
    rp_shape shape; /* rows first */
    rp_chunk_content content;
} rp_chunk_part;

/* Bytes of the message, and writing them: exactly that many, at `dst`. `raw_bytes` is the size
 * before compression that the message states. */
size_t rp_chunk_wire_size(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                          size_t raw_bytes);
/* What a message begins with, and all that its origin has a part in. Returns the end of it, at
 * most RP_CHUNK_HEAD_BYTES on. */
enum { RP_CHUNK_HEAD_BYTES = 48 };
uint8_t *rp_chunk_wire_put_head(const rp_chunk_origin *origin, uint8_t *dst);
/* What can be said of a message without reading all of it: the key, if it stands first, as
 * writers put it; otherwise as a reader would find it. If the message begins with a whole head,
 * written as everybody does and with steps that are possible, all of the origin and how long
 * that is; 0: only the key. What the chunk says once it is parsed counts. RP_INVALID. */
typedef struct rp_chunk_head {
    rp_chunk_origin origin;
    size_t bytes;
} rp_chunk_head;

RP_NODISCARD rp_status rp_chunk_wire_peek(const uint8_t *wire, size_t size, rp_chunk_head *head,
                                          rp_error *err);
void rp_chunk_wire_write(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                         size_t raw_bytes, uint8_t *dst);

#endif
