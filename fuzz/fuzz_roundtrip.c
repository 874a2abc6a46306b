/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a chunk: the input chooses columns, codec, delta and rows. After the message of the
 * chunk is parsed, its rows must be those that were appended, for all values.
 *
 *   input   columns | codec and delta | rows | for each column: dtype, rank, dims | data ... */
#include "chunk/chunk.h"
#include "fuzz.h"

enum { MAX_COLUMNS = 2, MAX_ROWS = 5, MAX_ROW_BYTES = 256 };

typedef struct column {
    rp_spec spec;
    size_t elements;
    size_t row_bytes; /* for strings, of their rp_strings */
    uint8_t data[MAX_ROWS][MAX_ROW_BYTES];
} column;

static column columns[MAX_COLUMNS];

static void choose_column(fuzz_input *in, column *c)
{
    c->spec = (rp_spec){.dtype = (rp_dtype)(fuzz_byte(in) % 31)};
    if (rp_dtype_size(c->spec.dtype) == 0) c->spec.dtype = RP_STRING;
    c->spec.shape.rank = fuzz_byte(in) % 4;
    c->elements = 1;
    for (int32_t i = 0; i < c->spec.shape.rank; i++) {
        c->spec.shape.dims[i] = fuzz_byte(in) % 6;
        c->elements *= (size_t)c->spec.shape.dims[i];
    }
    if (c->elements * rp_dtype_size(c->spec.dtype) > MAX_ROW_BYTES) {
        c->spec.shape.rank = 0;
        c->elements = 1;
    }
    c->row_bytes = c->elements * rp_dtype_size(c->spec.dtype);
}

/* Chooses the strings of a row, which point into the input. */
static void choose_strings(fuzz_input *in, column *c, size_t row)
{
    rp_string *strings = (rp_string *)(void *)c->data[row];

    for (size_t i = 0; i < c->elements; i++) {
        size_t length = fuzz_byte(in), left = fuzz_left(in);
        strings[i] = (rp_string){(const char *)in->at, length < left ? length : left};
        in->at += strings[i].size;
    }
}

/* Chooses a row of numbers: the row before it, or that plus bytes of the input, so that the
 * data can be compressed. */
static void choose_numbers(fuzz_input *in, column *c, size_t row)
{
    uint8_t mode = fuzz_byte(in);
    size_t take = fuzz_left(in) < c->row_bytes ? fuzz_left(in) : c->row_bytes;

    if (row > 0)
        memcpy(c->data[row], c->data[row - 1], c->row_bytes);
    else
        memset(c->data[row], mode, c->row_bytes);
    if (mode < 128) return;
    for (size_t i = 0; i < take; i++) c->data[row][i] = (uint8_t)(c->data[row][i] + in->at[i]);
    in->at += take;
}

static rp_chunk *build(fuzz_input *in, size_t column_count, size_t rows,
                       const rp_chunk_options *options)
{
    rp_chunk_origin origin = {.key = rows, .first_step = 1, .last_step = (int32_t)rows};
    rp_spec specs[MAX_COLUMNS];
    rp_chunk_builder *builder = NULL;
    rp_chunk *chunk = NULL;

    for (size_t i = 0; i < column_count; i++) {
        choose_column(in, &columns[i]);
        specs[i] = columns[i].spec;
    }
    fuzz_check(rp_chunk_builder_new(rp_allocator_default(), specs, column_count, options,
                                    &builder, NULL) == RP_OK);
    for (size_t r = 0; r < rows; r++) {
        rp_tensor row[MAX_COLUMNS];
        for (size_t i = 0; i < column_count; i++) {
            column *c = &columns[i];
            if (c->spec.dtype == RP_STRING)
                choose_strings(in, c, r);
            else
                choose_numbers(in, c, r);
            row[i] = (rp_tensor){c->spec.dtype, c->spec.shape, c->data[r]};
        }
        fuzz_check(rp_chunk_builder_append(builder, row, NULL) == RP_OK);
    }
    fuzz_check(rp_chunk_builder_finish(builder, &origin, &chunk, NULL) == RP_OK);
    rp_chunk_builder_free(builder);
    return chunk;
}

static void check_strings(const column *c, const rp_chunk *chunk, size_t index, size_t row,
                          rp_decoder *decoder)
{
    const rp_string *expected = (const rp_string *)(const void *)c->data[row];
    rp_string got[MAX_ROW_BYTES / sizeof(rp_string)];

    fuzz_check(rp_decoder_strings(decoder, chunk, (rp_row_range){index, row, 1}, got,
                                  c->elements, NULL) == RP_OK);
    for (size_t i = 0; i < c->elements; i++) {
        fuzz_check(got[i].size == expected[i].size);
        fuzz_check(memcmp(got[i].data, expected[i].data, got[i].size) == 0);
    }
}

static void check_chunk(const rp_chunk *chunk, size_t column_count, size_t rows,
                        rp_decoder *decoder)
{
    uint8_t got[MAX_ROW_BYTES];

    for (size_t i = 0; i < column_count; i++) {
        const column *c = &columns[i];
        fuzz_check(rp_chunk_get_column(chunk, i)->dtype == c->spec.dtype);
        fuzz_check(rp_chunk_rows(chunk, i) == rows);
        for (size_t r = 0; r < rows; r++) {
            if (c->spec.dtype == RP_STRING) {
                check_strings(c, chunk, i, r, decoder);
                continue;
            }
            fuzz_check(rp_decoder_rows(decoder, chunk, (rp_row_range){i, r, 1}, got,
                                       c->row_bytes, NULL) == RP_OK);
            fuzz_check(memcmp(got, c->data[r], c->row_bytes) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rp_decoder *decoder;
    fuzz_input in = {data, data + size};
    size_t column_count = 1 + fuzz_byte(&in) % MAX_COLUMNS, wire_bytes, rows;
    uint8_t how = fuzz_byte(&in);
    rp_chunk_options options = {
        .codec = (rp_codec)(how / 2 % 4), .level = 1, .delta = how >= 128};
    rp_chunk *built, *parsed = NULL;
    const uint8_t *wire;

    if (decoder == NULL)
        fuzz_check(rp_decoder_new(rp_allocator_default(), FUZZ_MAX_BYTES, &decoder) == RP_OK);
    rows = 1 + fuzz_byte(&in) % MAX_ROWS;
    built = build(&in, column_count, rows, &options);
    wire = rp_chunk_wire(built, &wire_bytes);
    fuzz_check(rp_chunk_parse(rp_allocator_default(), wire, wire_bytes, NULL, &parsed, NULL) ==
               RP_OK);
    fuzz_check(rp_chunk_column_count(parsed) == column_count);
    check_chunk(how % 2 == 0 ? built : parsed, column_count, rows, decoder);
    rp_decoder_clear(decoder);
    rp_chunk_unref(parsed);
    rp_chunk_unref(built);
    return 0;
}
