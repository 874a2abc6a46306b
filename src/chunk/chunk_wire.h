/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes ChunkData, the message format of a chunk.
 *
 *   ChunkData          1 chunk_key  2 SequenceRange  4 delta_encoded  5 Data
 *                      6 data_tensors_len  7 data_uncompressed_size  1000 codec (ours)
 *   SequenceRange      1 episode_id  2 start  3 end  4 sparse
 *   Data               1 TensorProto, repeated
 *   TensorProto        1 dtype  2 TensorShapeProto  4 tensor_content
 *   TensorShapeProto   2 Dim, repeated  3 unknown_rank
 *   Dim                1 size
 *
 * Only this project uses field 1000; other clients skip it. Without this field the codec is
 * snappy. The bytes that RP_CODEC_NONE writes are valid snappy, so their message has no field
 * 1000. Unknown fields are skipped. As protocol buffers require, if a number field occurs
 * several times, the last value counts; if a submessage occurs several times, the occurrences
 * are merged (tensors and dimensions are concatenated).
 *
 * Reading takes two passes, since the field with the codec can follow the data. The first pass
 * reads the outline (all fields except the tensors), so that the caller can allocate memory.
 * The second pass reads the columns. */
#ifndef RP_CHUNK_CHUNK_WIRE_H
#define RP_CHUNK_CHUNK_WIRE_H

#include "chunk/chunk_api.h"
#include "chunk/column_place.h"

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
    RP_PB_TENSOR_LAST_VAL = 18, /* typed values are in fields 5 to 18 */
    RP_PB_SHAPE_DIM = 2,
    RP_PB_SHAPE_UNKNOWN_RANK = 3,
    RP_PB_DIM_SIZE = 1,
};

/* The fields of a message outside the tensors. */
typedef struct rp_chunk_outline {
    rp_chunk_origin origin;
    rp_codec codec; /* after reading never RP_CODEC_NONE, which is written as snappy */
    bool delta;
    size_t column_count;
    size_t tensors_from; /* set by reading: no tensor begins before this offset in the
                            message */
} rp_chunk_outline;

/* Reads all fields except the tensors, and counts the tensors. Errors: RP_CORRUPT, RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_wire_outline(const uint8_t *wire, size_t size,
                                             const rp_chunk_limits *limits,
                                             rp_chunk_outline *outline, rp_error *err);

/* Reads the outline->column_count tensors of a message whose outline has been read. Checks
 * dtypes, shapes, lengths and strings. Of compressed bytes, it checks only the header. Errors:
 * RP_CORRUPT, RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_wire_columns(const uint8_t *wire, size_t size,
                                             const rp_chunk_limits *limits,
                                             const rp_chunk_outline *outline,
                                             rp_chunk_column *columns, rp_column_place *places,
                                             rp_error *err);

/* The tensor_content of a column to be written: a short header, followed by two pieces. */
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
    rp_shape shape; /* its first dimension is the number of rows */
    rp_chunk_content content;
} rp_chunk_part;

/* Returns the number of bytes that rp_chunk_wire_write() writes to `dst`. `raw_bytes` is the
 * size of the columns before compression, which is a field of the message. */
size_t rp_chunk_wire_size(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                          size_t raw_bytes);
/* Writes the head of a message to `dst`: the fields that depend on the origin. Returns the
 * address after the head, which has at most RP_CHUNK_HEAD_BYTES bytes. */
enum { RP_CHUNK_HEAD_BYTES = 48 };
uint8_t *rp_chunk_wire_put_head(const rp_chunk_origin *origin, uint8_t *dst);
/* The head of a message, read without the rest. */
typedef struct rp_chunk_head {
    rp_chunk_origin origin;
    size_t bytes; /* size of the head; 0: only origin.key was found */
} rp_chunk_head;

/* Reads the head of a message. If the message begins with a head in the usual order and with
 * valid steps, fills in the whole origin. Otherwise fills in only origin.key; if the key is not
 * the first field, searches the whole message for it. The result is only a hint:
 * rp_chunk_parse() can find another origin. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_chunk_wire_peek(const uint8_t *wire, size_t size, rp_chunk_head *head,
                                          rp_error *err);
void rp_chunk_wire_write(const rp_chunk_outline *outline, const rp_chunk_part *parts,
                         size_t raw_bytes, uint8_t *dst);

#endif
