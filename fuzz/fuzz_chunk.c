/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a serialised chunk from a peer, and reads every column whole and in part. A chunk that
 * is accepted must be consistent: parsing its message again gives the same chunk, a part equals
 * the same rows of the whole, and a trajectory over all rows stacks to the whole. */
#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "fuzz.h"
#include "reprise/trajectory.h"

static const rp_chunk_limits limits = {FUZZ_MAX_BYTES, FUZZ_MAX_BYTES, 64};

static rp_decoder *decoder;

static void check_same(const rp_chunk *a, const rp_chunk *b)
{
    fuzz_check(a->column_count == b->column_count && a->wire_bytes == b->wire_bytes);
    fuzz_check(a->origin.key == b->origin.key && a->codec == b->codec && a->delta == b->delta);
    for (size_t i = 0; i < a->column_count; i++) {
        fuzz_check(a->columns[i].dtype == b->columns[i].dtype);
        fuzz_check(rp_shape_equal(&a->columns[i].shape, &b->columns[i].shape));
        fuzz_check(a->places[i].content_at == b->places[i].content_at);
        fuzz_check(a->places[i].form == b->places[i].form);
    }
}

static void check_parse_again(const rp_chunk *chunk)
{
    size_t size;
    const uint8_t *wire = rp_chunk_wire(chunk, &size);
    rp_chunk *again = NULL;

    fuzz_check(rp_chunk_parse(rp_allocator_default(), wire, size, &limits, &again, NULL) ==
               RP_OK);
    check_same(chunk, again);
    rp_chunk_unref(again);
}

/* Checks that a trajectory of all rows, if there are any, stacks to `whole`. */
static void check_stack(rp_chunk *chunk, size_t column, size_t rows, const uint8_t *whole,
                        size_t bytes)
{
    static uint8_t stacked[FUZZ_MAX_BYTES];
    rp_chunk_slice slice = {chunk, (uint32_t)column, 0, (uint32_t)rows};
    rp_slices columns = {&slice, 1, rows == 1};
    rp_trajectory *t = NULL;
    const rp_trajectory *items[1];

    if (rows == 0 || rows > UINT32_MAX) return;
    fuzz_check(rp_trajectory_new(rp_allocator_default(), &columns, 1, &t, NULL) == RP_OK);
    fuzz_check(rp_trajectory_get_column(t, 0).bytes == bytes);
    items[0] = t;
    fuzz_check(rp_decoder_stack(decoder, items, 1, 0, stacked, bytes, NULL) == RP_OK);
    fuzz_check(memcmp(stacked, whole, bytes) == 0);
    rp_trajectory_unref(t);
}

static void read_numbers(rp_chunk *chunk, size_t column)
{
    static uint8_t whole[FUZZ_MAX_BYTES], part[FUZZ_MAX_BYTES];
    size_t rows = rp_chunk_rows(chunk, column), row_bytes = chunk->places[column].row_bytes;
    size_t bytes = chunk->columns[column].raw_bytes, first = rows / 3;
    size_t length = (rows - first + 1) / 2;
    rp_status st, part_st;

    /* The part is read first, so that the decoder has to continue from a prefix. */
    part_st = rp_decoder_rows(decoder, chunk, (rp_row_range){column, first, length}, part,
                              length * row_bytes, NULL);
    st = rp_decoder_rows(decoder, chunk, (rp_row_range){column, 0, rows}, whole, bytes, NULL);
    fuzz_check(st == RP_OK || st == RP_CORRUPT);
    fuzz_check(part_st == RP_OK || part_st == RP_CORRUPT);
    if (st != RP_OK) return;
    fuzz_check(part_st == RP_OK);
    fuzz_check(memcmp(part, whole + first * row_bytes, length * row_bytes) == 0);
    check_stack(chunk, column, rows, whole, bytes);
}

static void read_strings(rp_chunk *chunk, size_t column)
{
    static rp_string strings[FUZZ_MAX_BYTES / sizeof(rp_string)];
    size_t rows = rp_chunk_rows(chunk, column);
    size_t count = rows * (chunk->places[column].row_bytes / sizeof(rp_string));
    size_t total = 0;

    fuzz_check(count <= sizeof strings / sizeof strings[0]);
    fuzz_check(rp_decoder_strings(decoder, chunk, (rp_row_range){column, 0, rows}, strings,
                                  count, NULL) == RP_OK);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < strings[i].size; k += 64) total += (uint8_t)strings[i].data[k];
    fuzz_check(total < SIZE_MAX); /* reads the bytes, for the sanitizer */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rp_chunk *chunk = NULL;
    rp_error err;

    if (decoder == NULL)
        fuzz_check(rp_decoder_new(rp_allocator_default(), FUZZ_MAX_BYTES, &decoder) == RP_OK);
    if (rp_chunk_parse(rp_allocator_default(), data, size, &limits, &chunk, &err) != RP_OK) {
        fuzz_check(chunk == NULL && err.text[0] != '\0');
        return 0;
    }
    check_parse_again(chunk);
    for (size_t i = 0; i < rp_chunk_column_count(chunk); i++) {
        if (rp_chunk_get_column(chunk, i)->dtype == RP_STRING)
            read_strings(chunk, i);
        else
            read_numbers(chunk, i);
    }
    rp_decoder_clear(decoder);
    rp_chunk_unref(chunk);
    return 0;
}
