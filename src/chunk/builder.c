/* SPDX-License-Identifier: Apache-2.0 */
/* A builder collects plain rows in one buffer per column and compresses them into a chunk:
 *
 *   rows ──(differences)──► scratch ──(compress)──► scratch ──(copy)──► chunk
 *   rows ──────────────────────────(codec none, strings: copy)────────► chunk
 *
 * Lengths precede the data in the message, so compressed bytes pass through a scratch buffer.
 * The scratch buffer and the buffers of the columns are reused, so that in the long run a
 * builder allocates nothing but chunks. For uncompressed chunks it keeps a template
 * (template.h).
 *
 * Invariants between calls:
 *   B1  every column holds `rows` rows, plain;
 *   B2  `charged` is the sum of the bytes of all rows that count against MAX_BYTES;
 *   B3  a call that fails has changed neither rows nor counts;
 *   B4  finishing changes no row before the chunk is made;
 *   B5  size <= capacity for each buffer. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "chunk/builder.h"
#include "chunk/chunk.h"
#include "chunk/chunk_wire.h"
#include "chunk/codec.h"
#include "chunk/delta.h"
#include "chunk/mismatch.h"
#include "chunk/protobuf.h"
#include "chunk/snappy_decode.h"
#include "chunk/template.h"
#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum {
    /* The most bytes of a chunk before compression. Slightly less than the default limit of a
     * reader, which also counts the headers of string tensors. */
    MAX_BYTES = RP_CODEC_MAX_RAW_BYTES - (1 << 20),
    MAX_ROWS = INT32_MAX,
    /* The overhead of a string that TensorFlow counts in data_uncompressed_size. */
    TF_STRING_BYTES = 24,
};

/* A growable byte array. */
typedef struct buffer {
    uint8_t *data;
    size_t size, capacity;
} buffer;

typedef struct builder_column {
    rp_spec spec; /* of a row; the name is owned */
    size_t row_elements;
    size_t row_bytes; /* 0 for strings */
    buffer data;      /* rows, or the bytes of the strings */
    buffer lengths;   /* varints of the strings */
} builder_column;

struct rp_chunk_builder {
    rp_allocator alloc;
    size_t size_bytes; /* of the whole allocation */
    rp_chunk_options options;
    rp_chunk_compressor press;
    size_t rows;
    size_t charged;  /* B2 */
    size_t reserved; /* bytes of the reserved row */
    size_t column_count;
    builder_column *columns;
    rp_chunk_part *parts;       /* the columns to be written by finish */
    rp_chunk_template template; /* the template of uncompressed chunks */
};

static_assert(sizeof(rp_chunk_builder) % _Alignof(builder_column) == 0 &&
                  sizeof(builder_column) % _Alignof(rp_chunk_part) == 0,
              "the arrays of a builder follow each other without gaps");

static rp_status check_spec(const rp_spec *spec, size_t index, size_t *row_elements,
                            rp_error *err)
{
    size_t row_bytes;
    char label[48];

    if (rp_dtype_size(spec->dtype) == 0) {
        (void)snprintf(label, sizeof label, "column %zu", index);
        return rp_refuse_dtype(label, spec->dtype, err);
    }
    if (spec->shape.rank >= RP_MAX_RANK) {
        (void)snprintf(label, sizeof label, "a row of column %zu", index);
        return rp_refuse_rank(label, spec->shape.rank, RP_MAX_RANK - 1, err);
    }
    if (rp_shape_elements(&spec->shape, row_elements) != RP_OK)
        return rp_fail(err, RP_INVALID,
                       "column %zu: the shape of a row must be known and its size must fit",
                       index);
    if (!rp_size_mul(*row_elements, rp_dtype_size(spec->dtype), &row_bytes) ||
        row_bytes > MAX_BYTES)
        return rp_fail(err, RP_INVALID, "column %zu: a row is larger than %d bytes", index,
                       (int)MAX_BYTES);
    return RP_OK;
}

static rp_status check_options(const rp_chunk_options *options, rp_error *err)
{
    if (rp_codec_name(options->codec) == NULL)
        return rp_fail(err, RP_INVALID, "unknown codec %d", (int)options->codec);
    if (!rp_codec_level_is_valid(options->codec, options->level))
        return rp_fail(err, RP_INVALID, "%d is not a level of %s", options->level,
                       rp_codec_name(options->codec));
    return RP_OK;
}

static rp_status check_columns(const rp_spec *columns, size_t count, size_t *name_bytes,
                               rp_error *err)
{
    size_t elements;
    rp_status st;

    *name_bytes = 0;
    if (count == 0 || count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "the number of columns must be in [1, %d], got %zu",
                       RP_MAX_COLUMNS, count);
    for (size_t i = 0; i < count; i++) {
        st = check_spec(&columns[i], i, &elements, err);
        if (st != RP_OK) return st;
        if (columns[i].name != NULL) *name_bytes += strlen(columns[i].name) + 1;
    }
    return RP_OK;
}

static void init_columns(rp_chunk_builder *b, const rp_spec *columns, char *names)
{
    for (size_t i = 0; i < b->column_count; i++) {
        builder_column *c = &b->columns[i];
        rp_status st;
        *c = (builder_column){.spec = columns[i]};
        st = rp_shape_elements(&c->spec.shape, &c->row_elements);
        assert(st == RP_OK); /* check_spec() has tested this */
        (void)st;
        if (c->spec.dtype != RP_STRING)
            c->row_bytes = c->row_elements * rp_dtype_size(c->spec.dtype);
        if (c->spec.name == NULL) continue;
        names = stpcpy(names, columns[i].name) + 1;
        c->spec.name = names - strlen(columns[i].name) - 1;
    }
}

rp_status rp_chunk_builder_new(const rp_allocator *alloc, const rp_spec *columns,
                               size_t column_count, const rp_chunk_options *options,
                               rp_chunk_builder **out, rp_error *err)
{
    static const rp_chunk_options defaults = {.codec = RP_CODEC_SNAPPY};
    size_t per_column = sizeof(builder_column) + sizeof(rp_chunk_part), name_bytes, size;
    rp_chunk_builder *b;
    rp_status st;

    if (options == NULL) options = &defaults;
    st = check_options(options, err);
    if (st == RP_OK) st = check_columns(columns, column_count, &name_bytes, err);
    if (st != RP_OK) return st;
    size = sizeof *b + column_count * per_column + name_bytes;
    b = rp_alloc(alloc, size);
    if (b == NULL) return rp_fail_memory(err, size);
    *b = (rp_chunk_builder){
        .alloc = *alloc, .size_bytes = size, .options = *options, .column_count = column_count};
    rp_chunk_compressor_init(&b->press, alloc);
    b->columns = (builder_column *)(b + 1);
    b->parts = (rp_chunk_part *)(b->columns + column_count);
    init_columns(b, columns, (char *)(b->parts + column_count));
    *out = b;
    return RP_OK;
}

void rp_chunk_builder_free(rp_chunk_builder *builder)
{
    rp_allocator alloc;

    if (builder == NULL) return;
    alloc = builder->alloc;
    for (size_t i = 0; i < builder->column_count; i++) {
        builder_column *c = &builder->columns[i];
        rp_release(&alloc, c->data.data, c->data.capacity);
        rp_release(&alloc, c->lengths.data, c->lengths.capacity);
    }
    rp_chunk_compressor_deinit(&builder->press);
    rp_release(&alloc, builder, builder->size_bytes);
}

size_t rp_chunk_builder_rows(const rp_chunk_builder *builder)
{
    return builder->rows;
}

size_t rp_chunk_builder_bytes(const rp_chunk_builder *builder)
{
    size_t bytes = 0;

    for (size_t i = 0; i < builder->column_count; i++)
        bytes += builder->columns[i].data.size + builder->columns[i].lengths.size;
    return bytes;
}

/* Makes room for `more` bytes; doubles the capacity. */
static bool reserve(const rp_allocator *alloc, buffer *b, size_t more)
{
    size_t need = b->size + more, capacity = b->capacity > 0 ? b->capacity : 64;

    if (need <= b->capacity) return true;
    while (capacity < need) capacity *= 2;
    if (!rp_resize_array(alloc, &b->data, b->capacity, capacity, 1)) return false;
    b->capacity = capacity;
    return true;
}

static void put(buffer *b, const void *data, size_t size)
{
    assert(size <= b->capacity - b->size); /* B5 */
    if (size > 0) memcpy(b->data + b->size, data, size);
    b->size += size;
}

/* Computes the bytes of a row of strings: of the strings, and of the varints of their lengths.
 * False if they exceed the limit of a chunk. */
static bool measure_strings(const rp_string *strings, size_t count, size_t *data_bytes,
                            size_t *length_bytes)
{
    *data_bytes = *length_bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (strings[i].size > MAX_BYTES - *data_bytes) return false;
        *data_bytes += strings[i].size;
        *length_bytes += rp_pb_varint_size(strings[i].size);
    }
    return true;
}

/* Checks one tensor of a row, makes room for it and adds its bytes to `*charge`. */
static rp_status reserve_tensor(rp_chunk_builder *b, size_t index, const rp_tensor *tensor,
                                size_t *charge, rp_error *err)
{
    builder_column *c = &b->columns[index];
    size_t data_bytes = c->row_bytes, length_bytes = 0;
    rp_status st = rp_column_match(index, tensor->dtype, &tensor->shape, &c->spec, err);

    if (st != RP_OK) return st;
    if (tensor->data == NULL && c->row_elements > 0)
        return rp_fail(err, RP_INVALID, "column %zu: no data", index);
    if (c->spec.dtype == RP_STRING) {
        if (!measure_strings(tensor->data, c->row_elements, &data_bytes, &length_bytes))
            return rp_fail(err, RP_NO_RESOURCE, "column %zu: its strings are over %d bytes",
                           index, (int)MAX_BYTES);
        *charge += c->row_elements * sizeof(rp_string);
    }
    *charge += data_bytes + length_bytes; /* no overflow: 4096 columns of 2^30 bytes at most */
    if (*charge > MAX_BYTES - b->charged)
        return rp_fail(err, RP_NO_RESOURCE,
                       "a chunk holds at most %d bytes; this row would exceed them",
                       (int)MAX_BYTES);
    if (!reserve(&b->alloc, &c->data, data_bytes)) return rp_fail_memory(err, data_bytes);
    if (!reserve(&b->alloc, &c->lengths, length_bytes))
        return rp_fail_memory(err, length_bytes);
    return RP_OK;
}

static void commit_tensor(builder_column *c, const rp_tensor *tensor)
{
    const rp_string *strings = tensor->data;

    if (c->spec.dtype != RP_STRING) {
        put(&c->data, tensor->data, c->row_bytes);
        return;
    }
    for (size_t i = 0; i < c->row_elements; i++) {
        uint8_t *end = c->lengths.data + c->lengths.size;
        c->lengths.size = (size_t)(rp_pb_put_varint(end, strings[i].size) - c->lengths.data);
        put(&c->data, strings[i].data, strings[i].size);
    }
}

rp_status rp_chunk_builder_reserve(rp_chunk_builder *builder, const rp_tensor *row,
                                   rp_error *err)
{
    size_t charge = 0;
    rp_status st;

    if (builder->rows == MAX_ROWS)
        return rp_fail(err, RP_NO_RESOURCE, "a chunk holds at most %d rows", MAX_ROWS);
    for (size_t i = 0; i < builder->column_count; i++) {
        st = reserve_tensor(builder, i, &row[i], &charge, err);
        if (st != RP_OK) return st; /* B3: only capacities have changed */
    }
    builder->reserved = charge;
    return RP_OK;
}

#ifndef NDEBUG
static bool builder_is_valid(const rp_chunk_builder *b)
{
    for (size_t i = 0; i < b->column_count; i++) {
        const builder_column *c = &b->columns[i];
        if (c->data.size > c->data.capacity || c->lengths.size > c->lengths.capacity)
            return false; /* B5 */
        if (c->spec.dtype != RP_STRING && c->data.size != b->rows * c->row_bytes)
            return false; /* B1 */
    }
    return b->charged <= MAX_BYTES; /* B2 */
}
#endif

void rp_chunk_builder_commit(rp_chunk_builder *builder, const rp_tensor *row)
{
    for (size_t i = 0; i < builder->column_count; i++)
        commit_tensor(&builder->columns[i], &row[i]);
    assert(builder->rows < MAX_ROWS && builder->reserved <= MAX_BYTES - builder->charged);
    builder->charged += builder->reserved;
    builder->rows++;
    RP_VERIFY(builder->column_count, builder_is_valid(builder));
}

rp_status rp_chunk_builder_append(rp_chunk_builder *builder, const rp_tensor *row,
                                  rp_error *err)
{
    rp_status st = rp_chunk_builder_reserve(builder, row, err);

    if (st == RP_OK) rp_chunk_builder_commit(builder, row);
    return st;
}

rp_status rp_chunk_builder_rows_copy(const rp_chunk_builder *builder, size_t column,
                                     size_t offset, size_t length, void *dst, size_t dst_bytes,
                                     rp_error *err)
{
    const builder_column *c;

    if (column >= builder->column_count)
        return rp_fail(err, RP_INVALID, "column %zu of a builder with %zu", column,
                       builder->column_count);
    c = &builder->columns[column];
    if (c->spec.dtype == RP_STRING)
        return rp_fail(err, RP_INVALID, "column %zu holds strings", column);
    if (offset > builder->rows || length > builder->rows - offset)
        return rp_fail(err, RP_INVALID, "column %zu: rows [%zu, %zu + %zu) of %zu", column,
                       offset, offset, length, builder->rows);
    if (dst_bytes != length * c->row_bytes)
        return rp_fail(err, RP_INVALID, "column %zu: %zu row%s %zu bytes, got room for %zu",
                       column, length, length == 1 ? " has" : "s have", length * c->row_bytes,
                       dst_bytes);
    if (dst_bytes > 0) memcpy(dst, c->data.data + offset * c->row_bytes, dst_bytes);
    return RP_OK;
}

void rp_chunk_builder_clear(rp_chunk_builder *builder)
{
    for (size_t i = 0; i < builder->column_count; i++) {
        builder->columns[i].data.size = 0;
        builder->columns[i].lengths.size = 0;
    }
    builder->rows = 0;
    builder->charged = 0;
}

static bool is_delta_column(const rp_chunk_builder *b, const builder_column *c)
{
    return b->options.delta && rp_dtype_is_integer(c->spec.dtype) && c->spec.shape.rank >= 1;
}

static bool is_compressed(const rp_chunk_builder *b, const rp_chunk_compressor *press,
                          const builder_column *c)
{
    if (press->is_off && b->options.codec == RP_CODEC_SNAPPY) return false;
    return c->spec.dtype != RP_STRING && b->options.codec != RP_CODEC_NONE;
}

/* Makes room for all columns at once, as the data in the scratch buffer must not move. */
static rp_status reserve_scratch(const rp_chunk_builder *b, rp_chunk_compressor *press,
                                 rp_error *err)
{
    buffer room = {.data = press->scratch, .capacity = press->capacity};
    size_t need = 0;

    for (size_t i = 0; i < b->column_count; i++) {
        const builder_column *c = &b->columns[i];
        if (is_delta_column(b, c)) need += c->data.size;
        if (is_compressed(b, press, c))
            need += rp_codec_max_bytes(b->options.codec, c->data.size);
    }
    press->used = 0;
    if (!reserve(&press->codec.alloc, &room, need)) return rp_fail_memory(err, need);
    press->scratch = room.data;
    press->capacity = room.capacity;
    return RP_OK;
}

/* Writes the differences between the rows of a column to the scratch buffer. */
static const uint8_t *make_differences(const rp_chunk_builder *b, const builder_column *c,
                                       rp_chunk_compressor *press)
{
    uint8_t *at;

    if (c->data.size == 0) return c->data.data; /* the scratch buffer may be NULL */
    assert(c->data.size <= press->capacity - press->used);
    at = press->scratch + press->used;
    memcpy(at, c->data.data, c->data.size);
    rp_delta_encode(at, b->rows, c->row_bytes, rp_dtype_size(c->spec.dtype));
    press->used += c->data.size;
    return at;
}

/* Prepares column `index` for writing: compresses it into the scratch buffer. */
static rp_status make_part(rp_chunk_builder *b, rp_chunk_compressor *press, size_t index,
                           rp_error *err)
{
    const builder_column *c = &b->columns[index];
    rp_chunk_part *part = &b->parts[index];
    rp_chunk_content *content = &part->content;
    uint8_t *at;
    size_t stored;
    rp_status st;

    *part = (rp_chunk_part){.dtype = c->spec.dtype, .shape.rank = c->spec.shape.rank + 1};
    part->shape.dims[0] = (int64_t)b->rows;
    for (int32_t i = 0; i < c->spec.shape.rank; i++)
        part->shape.dims[i + 1] = c->spec.shape.dims[i];
    content->pieces[1].data =
        is_delta_column(b, c) ? make_differences(b, c, press) : c->data.data;
    content->pieces[1].size = c->data.size;
    if (c->spec.dtype == RP_STRING) {
        content->pieces[0].data = c->lengths.data;
        content->pieces[0].size = c->lengths.size;
        return RP_OK;
    }
    if (!is_compressed(b, press, c)) {
        at = rp_snappy_put_literal_head(content->head, c->data.size);
        content->head_bytes = (size_t)(at - content->head);
        return RP_OK;
    }
    at = press->scratch + press->used;
    st = rp_codec_compress(&press->codec, b->options.codec, b->options.level,
                           content->pieces[1].data, c->data.size, at, &stored);
    if (st != RP_OK)
        return rp_fail(err, st, "column %zu: %s could not compress %zu bytes", index,
                       rp_codec_name(b->options.codec), c->data.size);
    content->pieces[1].data = at;
    content->pieces[1].size = stored;
    press->used += stored;
    assert(press->used <= press->capacity);
    return RP_OK;
}

/* Writes the prepared columns into a new chunk. Parses the message to fill in columns and
 * places, so that a built chunk is the same as a received one. */
static rp_status make_chunk(rp_chunk_builder *b, const rp_chunk_origin *origin, rp_chunk **out,
                            rp_error *err)
{
    static const rp_chunk_limits none = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    rp_chunk_outline outline = {.origin = *origin,
                                .codec = b->options.codec,
                                .delta = b->options.delta,
                                .column_count = b->column_count};
    size_t raw_bytes = 0, size;
    rp_chunk *chunk;
    uint8_t *wire;

    for (size_t i = 0; i < b->column_count; i++) {
        const builder_column *c = &b->columns[i];
        raw_bytes += c->data.size;
        if (c->spec.dtype == RP_STRING)
            raw_bytes += b->rows * c->row_elements * TF_STRING_BYTES;
    }
    size = rp_chunk_wire_size(&outline, b->parts, raw_bytes);
    chunk = rp_chunk_alloc(&b->alloc, b->column_count, size, &wire);
    if (chunk == NULL) return rp_fail_memory(err, size);
    rp_chunk_wire_write(&outline, b->parts, raw_bytes, wire);
    chunk->origin = *origin;
    chunk->codec = b->options.codec;
    chunk->delta = b->options.delta;
    if (rp_chunk_wire_columns(wire, size, &none, &outline, chunk->columns, chunk->places,
                              err) != RP_OK) {
        rp_chunk_unref(chunk);
        return RP_INTERNAL;
    }
    *out = chunk;
    return RP_OK;
}

static rp_status check_finish(const rp_chunk_builder *b, const rp_chunk_origin *origin,
                              rp_error *err)
{
    if (b->rows == 0) return rp_fail(err, RP_PRECONDITION, "the builder holds no rows");
    if (origin->first_step < 0 || origin->last_step < origin->first_step)
        return rp_fail(err, RP_INVALID,
                       "chunk %" PRIu64 ": steps must be 0 <= first <= last, got %d and %d",
                       origin->key, (int)origin->first_step, (int)origin->last_step);
    return RP_OK;
}

void rp_chunk_compressor_init(rp_chunk_compressor *press, const rp_allocator *alloc)
{
    *press = (rp_chunk_compressor){.scratch = NULL};
    rp_codec_state_init(&press->codec, alloc);
}

void rp_chunk_compressor_deinit(rp_chunk_compressor *press)
{
    rp_release(&press->codec.alloc, press->scratch, press->capacity);
    rp_codec_state_deinit(&press->codec);
}

/* The template has rows of this column, so an equal number of bytes is an equal number of rows.
 */
static bool fits_mould(const rp_chunk_builder *b)
{
    return b->template.rows_bytes > 0 && b->template.rows_bytes == b->columns[0].data.size;
}

rp_status rp_chunk_builder_compress(rp_chunk_builder *builder, rp_chunk_compressor *press,
                                    const rp_chunk_origin *origin, rp_chunk **out,
                                    rp_error *err)
{
    rp_status st = check_finish(builder, origin, err);

    if (st == RP_OK && fits_mould(builder)) {
        *out = rp_chunk_template_make(&builder->template, &builder->alloc, origin,
                                      builder->columns[0].data.data);
        return *out != NULL ? RP_OK : rp_fail_memory(err, builder->template.rows_bytes);
    }
    if (st == RP_OK) st = reserve_scratch(builder, press, err);
    for (size_t i = 0; st == RP_OK && i < builder->column_count; i++)
        st = make_part(builder, press, i, err);
    if (st == RP_OK) st = make_chunk(builder, origin, out, err);
    if (st == RP_OK && builder->options.codec == RP_CODEC_NONE)
        rp_chunk_template_set(&builder->template, *out);
    return st;
}

rp_status rp_chunk_builder_finish(rp_chunk_builder *builder, const rp_chunk_origin *origin,
                                  rp_chunk **out, rp_error *err)
{
    rp_status st = rp_chunk_builder_compress(builder, &builder->press, origin, out, err);

    if (st == RP_OK) rp_chunk_builder_clear(builder);
    return st;
}
