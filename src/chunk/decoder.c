/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder locates the requested rows in the cheapest way:
 *
 *   stored      the message holds plain rows: read them there
 *   cached      the column has been decoded at least as far: read them from the cache
 *   otherwise   decode the column up to the last requested row, into the cache
 *
 * and copies them. Strings are handled alike: their decoded rows are rp_strings that point into
 * the chunk, always of the whole column. A column that is too large for the cache and requested
 * as a whole is decoded directly into the caller's memory. */
#include <assert.h>
#include <inttypes.h>

#include "chunk/cache.h"
#include "chunk/codec.h"
#include "chunk/decoder.h"
#include "chunk/delta.h"
#include "chunk/string_list.h"
#include "util/copy.h"
#include "util/error.h"
#include "util/mem.h"

enum { LARGE_COPY_BYTES = 4096 }; /* the smallest copy with non-temporal stores */

struct rp_decoder {
    rp_allocator alloc;
    rp_codec_state codec;
    rp_cache cache;
    bool is_large; /* rp_decoder_set_large() */
};

rp_status rp_decoder_new(const rp_allocator *alloc, size_t cache_bytes, rp_decoder **out)
{
    rp_decoder *d;

    if (alloc == NULL) alloc = rp_allocator_default();
    d = rp_alloc(alloc, sizeof *d);
    if (d == NULL) return RP_NO_RESOURCE;
    d->alloc = *alloc;
    d->is_large = false;
    rp_codec_state_init(&d->codec, alloc);
    rp_cache_init(&d->cache, alloc, cache_bytes);
    *out = d;
    return RP_OK;
}

void rp_decoder_set_large(rp_decoder *decoder, bool is_large)
{
    decoder->is_large = is_large;
}

void rp_decoder_free(rp_decoder *decoder)
{
    rp_allocator alloc;

    if (decoder == NULL) return;
    alloc = decoder->alloc;
    rp_cache_deinit(&decoder->cache);
    rp_codec_state_deinit(&decoder->codec);
    rp_release(&alloc, decoder, sizeof *decoder);
}

void rp_decoder_clear(rp_decoder *decoder)
{
    rp_cache_clear(&decoder->cache);
}

/* Decodes the first `rows` rows into `dst`; for strings, all rows must be requested. */
static rp_status decode(rp_decoder *d, const rp_chunk *chunk, size_t column, size_t rows,
                        uint8_t *dst)
{
    const rp_chunk_column *c = &chunk->columns[column];
    const rp_column_place *place = &chunk->places[column];
    const uint8_t *content = chunk->wire + place->content_at;
    size_t count = rows * (place->row_bytes / sizeof(rp_string));
    rp_status st;

    assert(rows <= rp_chunk_rows(chunk, column));
    switch (place->form) {
    case RP_FORM_STRING_LIST:
        return rp_string_list_get(content, c->stored_bytes, count, (rp_string *)(void *)dst);
    case RP_FORM_STRING_VALUES:
        return rp_string_values_get(content, c->stored_bytes, count, (rp_string *)(void *)dst);
    case RP_FORM_CODED:
    case RP_FORM_STORED: break;
    }
    st = rp_codec_decompress(&d->codec, chunk->codec, content, c->stored_bytes, c->raw_bytes,
                             dst, rows * place->row_bytes);
    if (st == RP_OK && place->delta)
        rp_delta_decode(dst, rows, place->row_bytes, rp_dtype_size(c->dtype));
    return st;
}

static rp_status fail_decode(rp_status st, const rp_chunk *chunk, size_t column, rp_error *err)
{
    if (st == RP_CORRUPT)
        (void)rp_fail(err, st, "chunk %" PRIu64 ", column %zu: its %s data is corrupt",
                      chunk->origin.key, column, rp_codec_name(chunk->codec));
    else
        (void)rp_fail(err, st, "chunk %" PRIu64 ", column %zu: %zu bytes could not be decoded",
                      chunk->origin.key, column, chunk->columns[column].raw_bytes);
    return st;
}

/* The number of rows to decode: up to the last requested row, but if the column is cached, at
 * least twice as many as before, so that reading row by row takes linear time. */
static size_t rows_to_decode(rp_decoder *d, const rp_chunk *chunk, size_t column, size_t asked)
{
    size_t all = rp_chunk_rows(chunk, column);
    rp_cached *entry = rp_cache_find(&d->cache, chunk, column);

    if (chunk->columns[column].dtype == RP_STRING) return all;
    if (entry == NULL) return asked;
    asked = asked > 2 * entry->rows ? asked : 2 * entry->rows;
    rp_cache_drop(&d->cache, entry);
    return asked < all ? asked : all;
}

static rp_status load(rp_decoder *d, const rp_chunk *chunk, size_t column, size_t asked,
                      const uint8_t **rows, rp_error *err)
{
    size_t row_bytes = chunk->places[column].row_bytes;
    size_t count = rows_to_decode(d, chunk, column, asked), bytes = count * row_bytes;
    uint8_t *data = rp_cache_reserve(&d->cache, bytes);
    rp_status st;

    if (data == NULL) {
        (void)rp_fail_memory(err, bytes);
        return RP_NO_RESOURCE;
    }
    st = decode(d, chunk, column, count, data);
    if (st != RP_OK) {
        rp_release(&d->alloc, data, bytes);
        return fail_decode(st, chunk, column, err);
    }
    rp_cache_put(&d->cache, chunk, column, data, bytes, count);
    *rows = data;
    return RP_OK;
}

rp_status rp_decoder_find(rp_decoder *decoder, const rp_chunk *chunk, size_t column,
                          size_t offset, size_t length, const uint8_t **rows, rp_error *err)
{
    const rp_column_place *place = &chunk->places[column];
    const rp_cached *entry;
    const uint8_t *first = NULL;
    rp_status st;

    assert(length >= 1 && place->row_bytes >= 1);
    assert(offset + length <= rp_chunk_rows(chunk, column));
    if (place->form == RP_FORM_STORED) {
        *rows = chunk->wire + place->rows_at + offset * place->row_bytes;
        return RP_OK;
    }
    entry = rp_cache_find(&decoder->cache, chunk, column);
    if (entry != NULL && entry->rows >= offset + length) {
        *rows = entry->data + offset * place->row_bytes;
        return RP_OK;
    }
    st = load(decoder, chunk, column, offset + length, &first, err);
    if (st == RP_OK) *rows = first + offset * place->row_bytes;
    return st;
}

rp_status rp_decoder_copy(rp_decoder *decoder, const rp_chunk *chunk, size_t column,
                          size_t offset, size_t length, void *dst, rp_error *err)
{
    const rp_column_place *place = &chunk->places[column];
    size_t bytes = length * place->row_bytes;
    const uint8_t *rows;
    rp_status st;

    assert(offset + length <= rp_chunk_rows(chunk, column));
    if (bytes == 0) return RP_OK;
    if (place->form == RP_FORM_CODED && bytes == chunk->columns[column].raw_bytes &&
        bytes > decoder->cache.max_bytes &&
        rp_cache_find(&decoder->cache, chunk, column) == NULL) {
        st = decode(decoder, chunk, column, length, dst);
        return st == RP_OK ? RP_OK : fail_decode(st, chunk, column, err);
    }
    st = rp_decoder_find(decoder, chunk, column, offset, length, &rows, err);
    if (st != RP_OK) return st;
    if (decoder->is_large && bytes >= LARGE_COPY_BYTES)
        rp_copy_past_caches(dst, rows, bytes);
    else
        memcpy(dst, rows, bytes);
    return RP_OK;
}

static rp_status check_rows(const rp_chunk *chunk, rp_row_range rows, bool strings,
                            rp_error *err)
{
    size_t column = rows.column, there;

    if (column >= chunk->column_count)
        return rp_fail(err, RP_INVALID, "chunk %" PRIu64 ": column %zu of %u",
                       chunk->origin.key, column, chunk->column_count);
    if ((chunk->columns[column].dtype == RP_STRING) != strings)
        return rp_fail(err, RP_INVALID, "chunk %" PRIu64 ", column %zu: it holds %s",
                       chunk->origin.key, column, rp_dtype_name(chunk->columns[column].dtype));
    there = rp_chunk_rows(chunk, column);
    if (rows.offset > there || rows.length > there - rows.offset)
        return rp_fail(err, RP_INVALID,
                       "chunk %" PRIu64 ", column %zu: rows [%zu, %zu + %zu) of %zu",
                       chunk->origin.key, column, rows.offset, rows.offset, rows.length, there);
    return RP_OK;
}

rp_status rp_decoder_rows(rp_decoder *decoder, const rp_chunk *chunk, rp_row_range rows,
                          void *dst, size_t dst_bytes, rp_error *err)
{
    rp_status st = check_rows(chunk, rows, false, err);
    size_t bytes;

    if (st != RP_OK) return st;
    bytes = rows.length * chunk->places[rows.column].row_bytes;
    if (dst_bytes != bytes)
        return rp_fail(err, RP_INVALID,
                       "chunk %" PRIu64 ", column %zu: %zu row%s %zu bytes, got room for %zu",
                       chunk->origin.key, rows.column, rows.length,
                       rows.length == 1 ? " has" : "s have", bytes, dst_bytes);
    return rp_decoder_copy(decoder, chunk, rows.column, rows.offset, rows.length, dst, err);
}

rp_status rp_decoder_strings(rp_decoder *decoder, const rp_chunk *chunk, rp_row_range rows,
                             rp_string *dst, size_t element_count, rp_error *err)
{
    rp_status st = check_rows(chunk, rows, true, err);
    size_t elements;

    if (st != RP_OK) return st;
    elements = rows.length * (chunk->places[rows.column].row_bytes / sizeof(rp_string));
    if (element_count != elements)
        return rp_fail(err, RP_INVALID,
                       "chunk %" PRIu64 ", column %zu: %zu row%s %zu string%s, got room for "
                       "%zu",
                       chunk->origin.key, rows.column, rows.length,
                       rows.length == 1 ? " has" : "s have", elements, elements == 1 ? "" : "s",
                       element_count);
    return rp_decoder_copy(decoder, chunk, rows.column, rows.offset, rows.length, dst, err);
}
