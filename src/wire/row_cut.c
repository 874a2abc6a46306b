/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the rows into one block of memory, column after column, and appends them to a builder
 * row by row. */
#include "wire/row_cut.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "util/error.h"
#include "util/mem.h"

/* Whether `part` is at most three quarters of `whole`. */
static bool saves_a_quarter(size_t part, size_t whole)
{
    return part <= whole - whole / 4;
}

/* Estimates the bytes that are read for one column. Numbers are decoded from row 0 up to the
 * last row of the cut, strings as a whole. */
static size_t column_cost(const rp_chunk *chunk, size_t column, size_t first, size_t count)
{
    const rp_column_place *place = &chunk->places[column];
    const rp_chunk_column *strings = &chunk->columns[column];

    switch (place->form) {
    case RP_FORM_STORED: return count * place->row_bytes;
    case RP_FORM_CODED: return (first + 2 * count) * place->row_bytes;
    case RP_FORM_STRING_LIST:
    case RP_FORM_STRING_VALUES: break;
    }
    /* One stored string may be used by many elements, which take more memory when decoded. */
    return rp_chunk_rows(chunk, column) * place->row_bytes +
           (strings->raw_bytes > strings->stored_bytes ? strings->raw_bytes
                                                       : strings->stored_bytes);
}

size_t rp_row_cut_cost(const rp_chunk *chunk, size_t first, size_t count)
{
    size_t rows = rp_chunk_rows(chunk, 0), cost = 1;

    if (count == 0 || !saves_a_quarter(count, rows) || chunk->origin.first_step < 0) return 0;
    for (size_t i = 0; i < chunk->column_count; i++) {
        if (rp_chunk_rows(chunk, i) != rows) return 0;
        cost += column_cost(chunk, i, first, count); /* does not overflow */
    }
    return cost;
}

static rp_chunk_origin origin_of(const rp_chunk *chunk, size_t first, size_t count)
{
    rp_chunk_origin origin = chunk->origin;
    int64_t steps = (int64_t)origin.last_step - origin.first_step + 1;

    if (origin.sparse || steps != (int64_t)rp_chunk_rows(chunk, 0)) return origin;
    origin.first_step += (int32_t)first;
    origin.last_step = origin.first_step + (int32_t)count - 1;
    return origin;
}

/* The codec of a chunk. For a received chunk only its columns tell whether it is stored or
 * compressed with snappy. */
static rp_codec codec_of(const rp_chunk *chunk)
{
    if (chunk->codec != RP_CODEC_SNAPPY) return chunk->codec;
    for (size_t i = 0; i < chunk->column_count; i++)
        if (chunk->places[i].form == RP_FORM_CODED) return RP_CODEC_SNAPPY;
    return RP_CODEC_NONE;
}

static rp_shape row_shape(const rp_chunk *chunk, size_t column)
{
    const rp_shape *all = &chunk->columns[column].shape;
    rp_shape row = {.rank = all->rank - 1};

    for (int32_t i = 0; i < row.rank; i++) row.dims[i] = all->dims[i + 1];
    return row;
}

static rp_status new_builder(const rp_allocator *alloc, const rp_chunk *chunk,
                             rp_chunk_builder **out, rp_error *err)
{
    rp_chunk_options options = {.codec = codec_of(chunk), .delta = chunk->delta};
    size_t count = chunk->column_count;
    rp_spec *specs = rp_alloc_array(alloc, count, sizeof *specs);
    rp_status st;

    if (specs == NULL) return rp_fail_memory(err, count * sizeof *specs);
    for (size_t i = 0; i < count; i++)
        specs[i] = (rp_spec){.dtype = chunk->columns[i].dtype, .shape = row_shape(chunk, i)};
    st = rp_chunk_builder_new(alloc, specs, count, &options, out, err);
    rp_release(alloc, specs, count * sizeof *specs);
    return st;
}

/* Decodes the rows of a column to `at`. */
static rp_status decode(rp_decoder *decoder, const rp_chunk *chunk, size_t column, size_t first,
                        size_t count, uint8_t *at, rp_error *err)
{
    size_t bytes = count * chunk->places[column].row_bytes;

    assert(column < chunk->column_count && first + count <= rp_chunk_rows(chunk, column));
    if (chunk->columns[column].dtype == RP_STRING)
        return rp_decoder_strings(decoder, chunk, (rp_row_range){column, first, count},
                                  (rp_string *)(void *)at, bytes / sizeof(rp_string), err);
    return rp_decoder_rows(decoder, chunk, (rp_row_range){column, first, count}, at, bytes,
                           err);
}

/* Decodes all columns into `rows`, each aligned, and sets `tensors` to the first row of each.
 */
static rp_status decode_all(rp_decoder *decoder, const rp_chunk *chunk, size_t first,
                            size_t count, rp_tensor *tensors, uint8_t *rows, rp_error *err)
{
    assert(tensors != NULL && rows != NULL);
    for (size_t i = 0; i < chunk->column_count; i++) {
        rp_status st = decode(decoder, chunk, i, first, count, rows, err);
        if (st != RP_OK) return st;
        tensors[i] = (rp_tensor){chunk->columns[i].dtype, row_shape(chunk, i), rows};
        rows += (count * chunk->places[i].row_bytes + 15) / 16 * 16;
    }
    return RP_OK;
}

static size_t rows_size(const rp_chunk *chunk, size_t count)
{
    size_t size = 16;

    for (size_t i = 0; i < chunk->column_count; i++)
        size += (count * chunk->places[i].row_bytes + 15) / 16 * 16;
    return size;
}

static rp_status append_all(rp_chunk_builder *builder, const rp_chunk *chunk, size_t count,
                            rp_tensor *tensors, rp_error *err)
{
    for (size_t row = 0; row < count; row++) {
        rp_status st = rp_chunk_builder_append(builder, tensors, err);
        if (st != RP_OK) return st;
        for (size_t i = 0; i < chunk->column_count; i++)
            tensors[i].data = (const uint8_t *)tensors[i].data + chunk->places[i].row_bytes;
    }
    return RP_OK;
}

rp_status rp_row_cut(const rp_allocator *alloc, rp_decoder *decoder, const rp_chunk *chunk,
                     size_t first, size_t count, rp_chunk **out, rp_error *err)
{
    rp_chunk_origin origin = origin_of(chunk, first, count);
    size_t tensor_bytes = chunk->column_count * sizeof(rp_tensor);
    size_t row_bytes = rows_size(chunk, count);
    rp_tensor *tensors = rp_alloc(alloc, tensor_bytes);
    uint8_t *rows = rp_alloc(alloc, row_bytes);
    rp_chunk_builder *builder = NULL;
    rp_chunk *cut = NULL;
    rp_status st;

    assert(count > 0 && rp_row_cut_cost(chunk, first, count) > 0);
    if (tensors == NULL || rows == NULL)
        st = rp_fail_memory(err, tensor_bytes + row_bytes);
    else
        st = decode_all(decoder, chunk, first, count, tensors, rows, err);
    if (st == RP_OK) st = new_builder(alloc, chunk, &builder, err);
    if (st == RP_OK) st = append_all(builder, chunk, count, tensors, err);
    if (st == RP_OK) st = rp_chunk_builder_finish(builder, &origin, &cut, err);
    rp_chunk_builder_free(builder);
    rp_release(alloc, tensors, tensor_bytes);
    rp_release(alloc, rows, row_bytes);
    if (st != RP_OK) return st;
    if (!saves_a_quarter(cut->wire_bytes, chunk->wire_bytes)) {
        rp_chunk_unref(cut);
        cut = NULL;
    }
    *out = cut;
    return RP_OK;
}
