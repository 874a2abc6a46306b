/* SPDX-License-Identifier: Apache-2.0 */
/* The page about one item, with the first rows of its columns.
 *
 * A column of a chunk is decompressed as a whole. So the bytes that are decompressed for a page
 * are bounded too, not only those that it shows; and so are those that are read from disk. */
#include <assert.h>
#include <stdio.h>

#include "chunk/chunk_api.h"
#include "chunk/decoder.h"
#include "chunk/trajectory.h"
#include "reprise/printable.h"
#include "server/http/json_out.h"
#include "server/http/pages.h"
#include "table/spill.h"
#include "util/clock.h"
#include "util/mem.h"

enum {
    MOST_COLUMNS = 256,
    COLUMN_BYTES = 64 << 10,  /* shown of a column */
    ITEM_BYTES = 256 << 10,   /* shown of an item */
    DECODED_BYTES = 32 << 20, /* decompressed for a page */
    READ_BYTES = 32 << 20,    /* of an item that may have to be read from disk */
    MOST_STRINGS = 1024,      /* elements shown of a column of strings */
};

typedef struct reader {
    rp_decoder *decoder;
    const rp_trajectory *trajectory;
    uint8_t *rows; /* COLUMN_BYTES */
    size_t shown;  /* bytes so far */
    size_t decoded;
} reader;

static void write_base64(rp_buf *out, const uint8_t *data, size_t size)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (size_t i = 0; i < size; i += 3) {
        uint32_t n = (uint32_t)data[i] << 16;
        char text[4];

        if (i + 1 < size) n |= (uint32_t)data[i + 1] << 8;
        if (i + 2 < size) n |= data[i + 2];
        text[0] = digits[n >> 18];
        text[1] = digits[n >> 12 & 63];
        text[2] = i + 1 < size ? digits[n >> 6 & 63] : '=';
        text[3] = i + 2 < size ? digits[n & 63] : '=';
        rp_buf_append(out, text, sizeof text);
    }
}

static void append_part(void *out, const char *part, size_t size)
{
    rp_buf_append(out, part, size);
}

/* Whether the columns of these slices may be decompressed. Counts their bytes. */
static bool may_decode(reader *r, const rp_chunk_slice *slices, size_t count)
{
    const rp_chunk *last = NULL;
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (slices[i].chunk == last) continue;
        last = slices[i].chunk;
        bytes += rp_chunk_get_column(last, slices[i].column)->raw_bytes;
        if (bytes > DECODED_BYTES - r->decoded) return false;
    }
    r->decoded += bytes;
    return true;
}

/* Reads the first rows of a column. Returns how many bytes were read; 0 also if none may be. */
static size_t read_rows(reader *r, const rp_slices *slices, size_t row_bytes, size_t most)
{
    size_t size = 0;

    for (size_t i = 0; i < slices->slice_count && row_bytes > 0; i++) {
        const rp_chunk_slice *slice = &slices->slices[i];
        size_t rows = (most - size) / row_bytes;

        if (rows > slice->length) rows = slice->length;
        if (rows == 0 || !may_decode(r, slice, 1) ||
            rp_decoder_copy(r->decoder, slice->chunk, slice->column, slice->offset, rows,
                            r->rows + size, NULL) != RP_OK)
            break;
        size += rows * row_bytes;
        if (rows < slice->length) break;
    }
    assert(size <= COLUMN_BYTES);
    return size;
}

/* Writes the data of a column of numbers. Returns whether all of it was written. */
static bool write_rows(rp_buf *out, reader *r, size_t index, const rp_trajectory_column *column)
{
    rp_slices slices = rp_trajectory_slices(r->trajectory, index);
    size_t rows = 0, most = ITEM_BYTES - r->shown, size;

    for (size_t i = 0; i < slices.slice_count; i++) rows += slices.slices[i].length;
    if (most > COLUMN_BYTES) most = COLUMN_BYTES;
    size = read_rows(r, &slices, rows > 0 ? column->bytes / rows : 0, most);
    rp_out_key(out, "data");
    rp_buf_text(out, "\"");
    write_base64(out, r->rows, size);
    rp_buf_text(out, "\"");
    r->shown += size;
    return size == column->bytes;
}

/* Writes the data of a column of strings. Returns whether all of it was written. */
static bool write_strings(rp_buf *out, reader *r, size_t index,
                          const rp_trajectory_column *column)
{
    size_t count = column->bytes / sizeof(rp_string), i = 0, start;
    rp_slices slices = rp_trajectory_slices(r->trajectory, index);
    rp_string *texts = (rp_string *)(void *)r->rows;
    bool can = count <= MOST_STRINGS && may_decode(r, slices.slices, slices.slice_count) &&
               rp_decoder_stack_strings(r->decoder, &r->trajectory, 1, index, texts, count,
                                        NULL) == RP_OK;

    rp_out_key(out, "strings");
    rp_buf_text(out, "[");
    start = out->size;
    for (; can && i < count; i++) {
        if (out->size - start + 6 * texts[i].size > COLUMN_BYTES ||
            r->shown + 6 * texts[i].size > ITEM_BYTES)
            break;
        rp_buf_text(out, i > 0 ? ",\"" : "\"");
        rp_spell_text(texts[i].data, texts[i].size, RP_SPELL_JSON, append_part, out);
        rp_buf_text(out, "\"");
        r->shown += texts[i].size;
    }
    rp_buf_text(out, "]");
    return i == count;
}

_Static_assert(MOST_STRINGS * sizeof(rp_string) <= COLUMN_BYTES, "r->rows holds them");

static void write_shape(rp_buf *out, const rp_shape *shape)
{
    rp_out_key(out, "shape");
    rp_buf_text(out, "[");
    for (int32_t i = 0; i < shape->rank; i++)
        rp_buf_format(out, "%s%lld", i > 0 ? "," : "", (long long)shape->dims[i]);
    rp_buf_text(out, "]");
}

static void write_slices(rp_buf *out, const reader *r, size_t index)
{
    rp_slices slices = rp_trajectory_slices(r->trajectory, index);
    size_t rows = 0, chunks = 0;
    char text[96];

    for (size_t i = 0; i < slices.slice_count; i++) {
        rows += slices.slices[i].length;
        chunks += i == 0 || slices.slices[i].chunk != slices.slices[i - 1].chunk;
    }
    (void)snprintf(text, sizeof text, "%zu %s in %zu %s of %zu %s", rows,
                   rows == 1 ? "row" : "rows", slices.slice_count,
                   slices.slice_count == 1 ? "slice" : "slices", chunks,
                   chunks == 1 ? "chunk" : "chunks");
    rp_out_text(out, "slices", text);
}

static void write_columns(rp_buf *out, reader *r, const rp_signature *signature)
{
    size_t count = rp_trajectory_column_count(r->trajectory);
    bool is_named = signature != NULL && rp_signature_column_count(signature) == count;

    rp_out_count(out, "column_count", count);
    rp_out_key(out, "columns");
    rp_buf_text(out, "[");
    for (size_t i = 0; i < count && i < MOST_COLUMNS; i++) {
        rp_trajectory_column column = rp_trajectory_get_column(r->trajectory, i);
        bool is_whole;

        rp_buf_text(out, i > 0 ? ",{" : "{");
        rp_out_text(out, "name", is_named ? rp_signature_column(signature, i)->name : NULL);
        rp_out_text(out, "dtype", rp_dtype_name(column.dtype));
        write_shape(out, &column.shape);
        write_slices(out, r, i);
        is_whole = column.dtype == RP_STRING ? write_strings(out, r, i, &column)
                                             : write_rows(out, r, i, &column);
        rp_out_bool(out, "truncated", !is_whole);
        rp_out_close(out);
    }
    rp_buf_text(out, "]");
}

static void write_item(rp_buf *out, const rp_sample *item, const rp_table_info *info, reader *r)
{
    char key[24];

    (void)snprintf(key, sizeof key, "%llu", (unsigned long long)item->key);
    rp_buf_text(out, "{");
    rp_out_text(out, "table", info->name);
    rp_out_text(out, "key", key);
    rp_out_number(out, "priority", item->priority);
    rp_out_whole(out, "times_sampled", item->times_sampled);
    rp_out_number(out, "age_s", (double)(rp_wall_ns(NULL) - item->inserted_at_ns) / 1e9);
    rp_out_count(out, "bytes", rp_trajectory_cost(item->trajectory));
    write_columns(out, r, info->signature);
    rp_buf_text(out, "}\n");
}

/* Writes the page about an item. Returns the HTTP status. */
static int show(rp_table *table, const rp_sample *item, rp_page_response *answer)
{
    const rp_allocator *alloc = answer->body.alloc;
    reader r = {.trajectory = item->trajectory};
    rp_table_info info;
    int status = 503;

    rp_table_get_info(table, &info);
    r.rows = rp_alloc(alloc, COLUMN_BYTES);
    if (r.rows != NULL && rp_decoder_new(alloc, 0, &r.decoder) == RP_OK) {
        write_item(&answer->body, item, &info, &r);
        status = 200;
    }
    rp_decoder_free(r.decoder);
    if (r.rows != NULL) rp_release(alloc, r.rows, COLUMN_BYTES);
    return status;
}

/* Shows an item of a table with a disk tier. The whole item is read, since which of its bytes
 * are on disk is known only while they are read. */
static int show_tiered(rp_table *table, rp_sample *item, rp_page_response *answer)
{
    size_t bytes = rp_trajectory_cost(item->trajectory);
    rp_error err;

    if (bytes > READ_BYTES)
        return rp_page_fail(answer, 413,
                            "the item has %zu bytes, and this page reads at most %d bytes from "
                            "disk: read the item with a client",
                            bytes, READ_BYTES);
    if (rp_table_load(table, item, 1, &err) != RP_OK)
        return rp_page_fail(answer, 503, "%s", err.text);
    return show(table, item, answer);
}

int rp_page_item(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_table *table;
    rp_sample item = {0};
    rp_error err;
    uint64_t key;
    int status = 503;

    if (!rp_route_read_number((rp_string){ask->names[1].text, ask->names[1].size}, &key))
        return rp_page_fail(answer, 400, "a key is a whole number below 2^64, not '%.100s'",
                            ask->names[1].text);
    table = rp_page_table_of(host, ask, answer, &status);
    if (table == NULL) return status;
    if (rp_table_peek_unread(table, &key, 1, &item, NULL, &err) != RP_OK)
        status = rp_page_fail(answer, 503, "%s", err.text);
    else if (item.trajectory == NULL)
        status = rp_page_fail(answer, 404, "table '%.100s' has no item with the key %llu",
                              ask->names[0].text, (unsigned long long)key);
    else if (rp_table_has_tier(table))
        status = show_tiered(table, &item, answer);
    else
        status = show(table, &item, answer);
    rp_samples_release(&item, 1);
    rp_table_unref(table);
    return status;
}
