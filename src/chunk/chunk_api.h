/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk has consecutive rows of one or more columns. It is compressed, immutable and
 * refcounted.
 *
 * This header is the interface of src/chunk for the other modules of the library. A builder
 * collects rows and makes a chunk from them. A trajectory (chunk/trajectory.h) refers to rows
 * of chunks. A decoder converts rows of a chunk back to plain memory. A chunk stores its bytes
 * in the form in which they are sent: a serialised `ChunkData` message, in which each column is
 * compressed separately. Bytes from a peer are stored and forwarded unchanged.
 *
 * Any number of threads may use a chunk at the same time. Only one thread at a time may use a
 * builder or a decoder. */
#ifndef RP_CHUNK_CHUNK_API_H
#define RP_CHUNK_CHUNK_API_H

#include "reprise/codec.h"
#include "reprise/trajectory.h"

typedef struct rp_chunk rp_chunk;

/* The key of a chunk, and the steps of the episode to which its rows belong. */
typedef struct rp_chunk_origin {
    uint64_t key;       /* unique, random */
    uint64_t episode;   /* id of the episode to which its rows belong */
    int32_t first_step; /* step of the first row within the episode */
    int32_t last_step;  /* step of the last row; >= first_step */
    bool sparse;        /* some steps between the two have no row */
} rp_chunk_origin;

/* One column of a chunk. The shape includes the rows as its first dimension. */
typedef struct rp_chunk_column {
    rp_dtype dtype;
    rp_shape shape;
    size_t stored_bytes; /* size in the message */
    /* Size when decompressed. For strings it depends on the format in the message
     * (string_list.h). Format "list": the bytes of the message's string list. Format "values":
     * the sum of the bytes of all strings. */
    size_t raw_bytes;
} rp_chunk_column;

rp_chunk *rp_chunk_ref(rp_chunk *chunk);
void rp_chunk_unref(rp_chunk *chunk); /* NULL is fine */

/* The results are borrowed, and valid as long as the chunk exists. `index` must be less than
 * the number of columns. */
const rp_chunk_origin *rp_chunk_get_origin(const rp_chunk *chunk);
size_t rp_chunk_column_count(const rp_chunk *chunk);
const rp_chunk_column *rp_chunk_get_column(const rp_chunk *chunk, size_t index);
/* Returns the codec of the chunk. A builder with RP_CODEC_NONE writes uncompressed bytes in the
 * snappy format. So for a chunk of this builder that was sent and parsed, returns
 * RP_CODEC_SNAPPY. */
rp_codec rp_chunk_codec(const rp_chunk *chunk);
bool rp_chunk_is_delta(const rp_chunk *chunk);

/* Returns the serialised message. Its size counts against every byte limit. Returns NULL if a
 * store with a disk tier (reprise/durable.h) has moved the bytes to disk. This can happen to a
 * chunk that the caller has built and inserted, but not to the chunks of a sample. */
const uint8_t *rp_chunk_wire(const rp_chunk *chunk, size_t *size);

/* Bounds on the messages that rp_chunk_parse() accepts. */
typedef struct rp_chunk_limits {
    size_t max_wire_bytes; /* size of the message */
    size_t max_raw_bytes;  /* size of all columns when decompressed */
    size_t max_columns;
} rp_chunk_limits;

/* Returns the defaults: 64 MiB, 1 GiB, RP_MAX_COLUMNS. */
rp_chunk_limits rp_chunk_limits_default(void);

/* Copies a serialised message into a new chunk. Checks everything except the compressed bytes,
 * which a decoder checks later. If `limits` is NULL, the default limits apply. The caller owns
 * `*out`. Errors: RP_CORRUPT (the message is malformed, or its lengths contradict each other),
 * RP_INVALID (an unknown dtype or codec), RP_NO_RESOURCE (a limit is exceeded, or memory runs
 * out). */
RP_NODISCARD rp_status rp_chunk_parse(const rp_allocator *alloc, const uint8_t *wire,
                                      size_t size, const rp_chunk_limits *limits,
                                      rp_chunk **out, rp_error *err);

typedef struct rp_chunk_builder rp_chunk_builder;

/* Makes a builder for chunks of `column_count` columns. Each spec has the dtype and the shape
 * of a row; no dimension may be -1. The specs are copied. If `options` is NULL, the codec is
 * snappy without delta encoding. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_builder_new(const rp_allocator *alloc, const rp_spec *columns,
                                            size_t column_count,
                                            const rp_chunk_options *options,
                                            rp_chunk_builder **out, rp_error *err);
void rp_chunk_builder_free(rp_chunk_builder *builder); /* NULL is fine */

/* Return the number of rows appended since the last finish or clear, and their bytes before
 * compression. */
size_t rp_chunk_builder_rows(const rp_chunk_builder *builder);
size_t rp_chunk_builder_bytes(const rp_chunk_builder *builder);

/* Copies one row of every column: `row` must have as many tensors as the builder has columns.
 * On failure nothing was appended. Errors: RP_INVALID (the error text names the column, its
 * value and the expected value), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_builder_append(rp_chunk_builder *builder, const rp_tensor *row,
                                               rp_error *err);

/* Compresses the rows into a chunk and empties the builder. The caller owns `*out`. On failure
 * the builder keeps its rows. Errors: RP_PRECONDITION (no rows), RP_INVALID (origin),
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_chunk_builder_finish(rp_chunk_builder *builder,
                                               const rp_chunk_origin *origin, rp_chunk **out,
                                               rp_error *err);

/* Copies `length` rows of a column out of the builder. They have the values that a decoder
 * would return for the finished chunk. Returns RP_INVALID if the rows are out of range, if
 * `dst_bytes` is not their size, or if the column has strings. */
RP_NODISCARD rp_status rp_chunk_builder_rows_copy(const rp_chunk_builder *builder,
                                                  size_t column, size_t offset, size_t length,
                                                  void *dst, size_t dst_bytes, rp_error *err);

/* Discards the collected rows. */
void rp_chunk_builder_clear(rp_chunk_builder *builder);

/* A tuner of the number of rows per chunk. By hill climbing it minimizes a score in bytes per
 * step, which is the sum of two means. The first mean, over chunks, is the bytes of a chunk per
 * row (a row is one step): the cost of storage. The second mean, over items, is the bytes of
 * all chunks of an item per step of the item: the cost of transport. The algorithm is that of
 * Reverb. The struct owns no memory and may be copied. */
typedef struct rp_chunk_tuner {
    int32_t length;     /* number of rows that the next chunk should have */
    int32_t max_length; /* upper bound of `length` */
    double last_score;  /* the last score; < 0 before the first */
    double last_length; /* mean rows of the chunks from which last_score was computed */
    int32_t item_count, chunk_count; /* number of entries in use below, oldest first */
    double item_bytes_per_step[10];
    double item_chunk_rows[10]; /* mean over the chunks of the item */
    double chunk_bytes_per_step[5];
    int32_t chunk_rows[5];
    uint64_t chunk_keys[5];
} rp_chunk_tuner;

/* Initializes a tuner with length 1. Returns RP_INVALID if max_length < 1. */
RP_NODISCARD rp_status rp_chunk_tuner_init(rp_chunk_tuner *tuner, int32_t max_length);

/* For every item, the caller must call rp_chunk_tuner_on_chunk() for each chunk to which the
 * item refers, and then rp_chunk_tuner_on_item() with the sums over these chunks and the number
 * of steps of the item. A chunk whose key is among the last five is not counted again. Only
 * rp_chunk_tuner_on_item() changes `length`. A call with `rows`, `chunk_count` or `steps` 0 has
 * no effect. */
void rp_chunk_tuner_on_chunk(rp_chunk_tuner *tuner, uint64_t key, size_t bytes, int32_t rows);
void rp_chunk_tuner_on_item(rp_chunk_tuner *tuner, size_t chunk_bytes, size_t chunk_rows,
                            size_t chunk_count, size_t steps);

/* Removes everything from the cache of the decoder. */
void rp_decoder_clear(rp_decoder *decoder);

/* Rows [offset, offset + length) of a column. */
typedef struct rp_row_range {
    size_t column, offset, length;
} rp_row_range;

/* Writes rows of a chunk to `dst`, which must have exactly their size. The decoder decompresses
 * a column only up to the last requested row. If a later request is beyond that row, the
 * decoder decompresses the column again, at least twice as many bytes as before, so that
 * reading row by row takes linear time. A cached column holds a reference to its chunk. Errors:
 * RP_INVALID (rows out of range, wrong size, a string column), RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_decoder_rows(rp_decoder *decoder, const rp_chunk *chunk,
                                       rp_row_range rows, void *dst, size_t dst_bytes,
                                       rp_error *err);

/* Does the same for a string column: writes the `element_count` elements of the rows to `dst`.
 * String columns are never compressed, so the strings are borrowed from the chunk's message.
 * They are valid as long as the chunk exists. */
RP_NODISCARD rp_status rp_decoder_strings(rp_decoder *decoder, const rp_chunk *chunk,
                                          rp_row_range rows, rp_string *dst,
                                          size_t element_count, rp_error *err);

#endif
