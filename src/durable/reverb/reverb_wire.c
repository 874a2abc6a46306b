/* SPDX-License-Identifier: Apache-2.0 */
#include "durable/reverb/reverb_wire.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "chunk/chunk_wire.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/item_wire.h"
#include "wire/selector_wire.h"
#include "wire/signature_wire.h"

/* Field numbers. Those of items are in wire/item_wire.h, those of chunks in chunk_wire.h. */
enum {
    TABLE_NAME = 1,
    TABLE_ITEM = 2,
    TABLE_LIMITER = 3,
    TABLE_SAMPLER = 4,
    TABLE_REMOVER = 5,
    TABLE_MAX_SIZE = 6,
    TABLE_MAX_TIMES = 7,
    TABLE_DELETED_EPISODES = 8,
    TABLE_SIGNATURE = 9,
    TABLE_UNIQUE_SAMPLES = 10,
    LIMITER_RATIO = 2,
    LIMITER_MIN_DIFF = 3,
    LIMITER_MAX_DIFF = 4,
    LIMITER_MIN_SIZE = 5,
    LIMITER_SAMPLES = 6,
    LIMITER_INSERTS = 7,
    LIMITER_DELETES = 8,
    ITEM_OLD_KEYS = 3,
    ITEM_OLD_RANGE = 4,
    RANGE_OFFSET = 1,
    RANGE_LENGTH = 2,
    CHUNK_OLD_TENSOR = 3,
};

static rp_status malformed(rp_error *err, const char *message)
{
    return rp_fail(err, RP_CORRUPT, "malformed %s", message);
}

static bool read_limiter(const rp_pb_field *limiter, rp_reverb_table *out)
{
    rp_pb_reader reader = rp_pb_open(limiter->data, limiter->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, LIMITER_RATIO, RP_PB_FIXED64))
            out->limiter.samples_per_insert = rp_wire_double(&f);
        else if (rp_pb_is(&f, LIMITER_MIN_DIFF, RP_PB_FIXED64))
            out->limiter.min_diff = rp_wire_double(&f);
        else if (rp_pb_is(&f, LIMITER_MAX_DIFF, RP_PB_FIXED64))
            out->limiter.max_diff = rp_wire_double(&f);
        else if (rp_pb_is(&f, LIMITER_MIN_SIZE, RP_PB_VARINT))
            out->limiter.min_size = (int64_t)f.value;
        else if (rp_pb_is(&f, LIMITER_SAMPLES, RP_PB_VARINT))
            out->samples = (int64_t)f.value;
        else if (rp_pb_is(&f, LIMITER_INSERTS, RP_PB_VARINT))
            out->inserts = (int64_t)f.value;
        else if (rp_pb_is(&f, LIMITER_DELETES, RP_PB_VARINT))
            out->deletes = (int64_t)f.value;
    }
    return step == RP_PB_END;
}

static bool read_number(const rp_pb_field *f, rp_reverb_table *out)
{
    if (f->type != RP_PB_VARINT) return false;
    switch (f->number) {
    case TABLE_MAX_SIZE: out->max_size = (int64_t)f->value; return true;
    case TABLE_MAX_TIMES: out->max_times_sampled = rp_wire_int32(f); return true;
    case TABLE_DELETED_EPISODES: out->deleted_episodes = (int64_t)f->value; return true;
    case TABLE_UNIQUE_SAMPLES: out->unique_samples = (int64_t)f->value; return true;
    default: return false;
    }
}

static bool counts_make_sense(const rp_reverb_table *t)
{
    return t->inserts >= 0 && t->samples >= 0 && t->deletes >= 0 && t->deleted_episodes >= 0 &&
           t->unique_samples >= 0;
}

rp_status rp_reverb_table_read(const uint8_t *data, size_t size, rp_reverb_table *out,
                               rp_error *err)
{
    rp_wire_selector sampler = {0}, remover = {0};
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;
    bool ok = true;

    *out = (rp_reverb_table){.name = {"", 0}};
    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (read_number(&f, out) || f.type != RP_PB_BYTES) continue;
        if (f.number == TABLE_NAME)
            ok = rp_wire_read_text(&f, "the table's name", &out->name, NULL) == RP_OK;
        if (f.number == TABLE_ITEM) out->old_items++;
        if (f.number == TABLE_LIMITER) ok = read_limiter(&f, out);
        if (f.number == TABLE_SAMPLER) ok = rp_wire_read_selector(&f, &sampler);
        if (f.number == TABLE_REMOVER) ok = rp_wire_read_selector(&f, &remover);
        if (f.number == TABLE_SIGNATURE) out->signature = f.data;
        if (f.number == TABLE_SIGNATURE) out->signature_size = f.size;
    }
    if (!ok || step != RP_PB_END || out->name.size == 0)
        return malformed(err, "PriorityTableCheckpoint");
    if (!sampler.present || !remover.present ||
        !rp_wire_take_selector(&sampler, &out->sampler) ||
        !rp_wire_take_selector(&remover, &out->remover))
        return rp_fail(err, RP_CORRUPT,
                       "table '%.*s' has a sampler or remover of no known kind",
                       (int)(out->name.size < 64 ? out->name.size : 64), out->name.data);
    if (!counts_make_sense(out))
        return rp_fail(err, RP_CORRUPT, "table '%.*s' has a count below 0",
                       (int)(out->name.size < 64 ? out->name.size : 64), out->name.data);
    return RP_OK;
}

bool rp_reverb_table_next_item(rp_pb_reader *reader, const uint8_t **data, size_t *size)
{
    rp_pb_field f;

    while (rp_pb_next(reader, &f) == RP_PB_FIELD)
        if (rp_pb_is(&f, TABLE_ITEM, RP_PB_BYTES)) {
            *data = f.data;
            *size = f.size;
            return true;
        }
    return false;
}

void rp_reverb_table_write(rp_buf *out, const rp_reverb_table *t, const rp_signature *signature)
{
    size_t mark;

    rp_wire_put_bytes(out, TABLE_NAME, t->name.data, t->name.size);
    mark = rp_wire_begin(out, TABLE_LIMITER);
    rp_wire_put_double(out, LIMITER_RATIO, t->limiter.samples_per_insert);
    rp_wire_put_double(out, LIMITER_MIN_DIFF, t->limiter.min_diff);
    rp_wire_put_double(out, LIMITER_MAX_DIFF, t->limiter.max_diff);
    rp_wire_put_int(out, LIMITER_MIN_SIZE, t->limiter.min_size);
    rp_wire_put_int(out, LIMITER_SAMPLES, t->samples);
    rp_wire_put_int(out, LIMITER_INSERTS, t->inserts);
    rp_wire_put_int(out, LIMITER_DELETES, t->deletes);
    rp_wire_end(out, mark);
    rp_wire_put_selector(out, TABLE_SAMPLER, &t->sampler);
    rp_wire_put_selector(out, TABLE_REMOVER, &t->remover);
    rp_wire_put_int(out, TABLE_MAX_SIZE, t->max_size);
    rp_wire_put_int(out, TABLE_MAX_TIMES, t->max_times_sampled);
    rp_wire_put_int(out, TABLE_DELETED_EPISODES, t->deleted_episodes);
    if (signature != NULL) rp_wire_put_signature(out, TABLE_SIGNATURE, signature);
    rp_wire_put_int(out, TABLE_UNIQUE_SAMPLES, t->unique_samples);
}

static bool read_span(const rp_pb_field *range, rp_reverb_span *span)
{
    rp_pb_reader reader = rp_pb_open(range->data, range->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, RANGE_OFFSET, RP_PB_VARINT)) span->offset = rp_wire_int32(&f);
        if (rp_pb_is(&f, RANGE_LENGTH, RP_PB_VARINT)) span->length = rp_wire_int32(&f);
    }
    return step == RP_PB_END;
}

rp_status rp_reverb_item_form(const uint8_t *data, size_t size, rp_reverb_form *form,
                              rp_reverb_span *span, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    unsigned seen = RP_REVERB_NEITHER;
    rp_pb_field f;
    rp_pb_step step;
    bool ok = true;

    *span = (rp_reverb_span){0};
    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.number == ITEM_OLD_KEYS && (f.type == RP_PB_BYTES || f.type == RP_PB_VARINT))
            ok = rp_wire_count_numbers(&f, &span->key_count);
        if (rp_pb_is(&f, RP_ITEM_TRAJECTORY, RP_PB_BYTES)) seen |= RP_REVERB_NEW;
        if (!rp_pb_is(&f, ITEM_OLD_RANGE, RP_PB_BYTES)) continue;
        seen |= RP_REVERB_OLD;
        ok = read_span(&f, span);
    }
    if (!ok || step != RP_PB_END) return malformed(err, "PrioritizedItem");
    *form = (rp_reverb_form)seen;
    return RP_OK;
}

void rp_reverb_item_keys(const uint8_t *data, size_t size, uint64_t *keys)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == ITEM_OLD_KEYS && (f.type == RP_PB_BYTES || f.type == RP_PB_VARINT))
            keys = rp_wire_copy_numbers(&f, keys);
}

void rp_reverb_item_write(rp_buf *out, const char *table, const rp_reverb_item *item)
{
    int64_t seconds = item->inserted_at_ns / 1000000000,
            nanos = item->inserted_at_ns % 1000000000;
    size_t mark, size = rp_item_trajectory_size(item->trajectory);
    uint8_t *at;

    if (nanos < 0) seconds--, nanos += 1000000000;
    assert(nanos >= 0 && nanos < 1000000000);
    rp_wire_put_number(out, RP_ITEM_KEY, item->key);
    rp_wire_put_text(out, RP_ITEM_TABLE, table);
    rp_wire_put_double(out, RP_ITEM_PRIORITY, item->priority);
    rp_wire_put_int(out, RP_ITEM_TIMES_SAMPLED, item->times_sampled);
    mark = rp_wire_begin(out, RP_ITEM_INSERTED_AT);
    rp_wire_put_int(out, 1, seconds);
    rp_wire_put_int(out, 2, nanos);
    rp_wire_end(out, mark);
    at = rp_buf_reserve(out, rp_pb_bytes_field_size(RP_ITEM_TRAJECTORY, size));
    if (at == NULL) return;
    at = rp_pb_put_bytes_head(at, RP_ITEM_TRAJECTORY, size);
    at = rp_item_put_trajectory(at, item->trajectory);
    assert((size_t)(at - out->data) ==
           out->size + rp_pb_bytes_field_size(RP_ITEM_TRAJECTORY, size));
    out->size = (size_t)(at - out->data);
}

rp_status rp_reverb_chunk_form(const uint8_t *data, size_t size, rp_reverb_form *form,
                               rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    unsigned seen = RP_REVERB_NEITHER;
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, CHUNK_OLD_TENSOR, RP_PB_BYTES)) seen |= RP_REVERB_OLD;
        if (rp_pb_is(&f, RP_PB_CHUNK_DATA, RP_PB_BYTES)) seen |= RP_REVERB_NEW;
    }
    if (step != RP_PB_END) return malformed(err, "ChunkData");
    *form = (rp_reverb_form)seen;
    return RP_OK;
}

void rp_reverb_chunk_modernise(rp_buf *out, const uint8_t *data, size_t size)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    uint64_t tensors = 0;
    const uint8_t *from = data;
    rp_pb_field f;
    size_t mark;

    /* Copies all fields but the tensors and their count. A field ends where the next begins. */
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (f.number != CHUNK_OLD_TENSOR && f.number != RP_PB_CHUNK_TENSOR_COUNT)
            rp_buf_append(out, from, (size_t)(reader.at - from));
        assert(reader.at >= from && reader.at <= data + size);
        from = reader.at;
    }
    mark = rp_wire_begin(out, RP_PB_CHUNK_DATA);
    reader = rp_pb_open(data, size);
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (rp_pb_is(&f, CHUNK_OLD_TENSOR, RP_PB_BYTES)) {
            rp_wire_put_bytes_always(out, RP_PB_DATA_TENSOR, f.data, f.size);
            tensors++;
        }
    rp_wire_end(out, mark);
    rp_wire_put_number(out, RP_PB_CHUNK_TENSOR_COUNT, tensors);
}

/* Decodes row `row` of a column into `scratch`, which is large enough. */
static rp_status decode_row(rp_decoder *decoder, rp_chunk *chunk, size_t column, size_t row,
                            uint8_t *scratch, rp_error *err)
{
    size_t bytes = chunk->places[column].row_bytes;

    assert(column < chunk->column_count && row < rp_chunk_rows(chunk, column));
    if (chunk->columns[column].dtype == RP_STRING)
        return rp_decoder_strings(decoder, chunk, (rp_row_range){column, row, 1},
                                  (rp_string *)(void *)scratch, bytes / sizeof(rp_string), err);
    return rp_decoder_rows(decoder, chunk, (rp_row_range){column, row, 1}, scratch, bytes, err);
}

/* The scratch memory of a re-encoding. */
typedef struct recoding {
    rp_spec *specs;
    rp_tensor *row;
    uint8_t *scratch; /* one row of each column, aligned */
    size_t scratch_bytes;
    rp_chunk_builder *builder;
} recoding;

static size_t aligned(size_t bytes)
{
    return (bytes + 15) / 16 * 16;
}

static rp_status prepare(const rp_allocator *alloc, const rp_chunk *chunk, recoding *r,
                         rp_error *err)
{
    const rp_chunk_options options = {.codec = RP_CODEC_SNAPPY, .delta = chunk->delta};

    r->specs = rp_alloc_array(alloc, chunk->column_count, sizeof *r->specs);
    r->row = rp_alloc_array(alloc, chunk->column_count, sizeof *r->row);
    if (r->specs == NULL || r->row == NULL)
        return rp_fail_memory(err, chunk->column_count * sizeof *r->row);
    for (size_t i = 0; i < chunk->column_count; i++) {
        const rp_shape *shape = &chunk->columns[i].shape;

        if (rp_chunk_rows(chunk, i) != rp_chunk_rows(chunk, 0))
            return rp_fail(err, RP_UNIMPLEMENTED,
                           "chunk %" PRIu64 " has columns of different lengths",
                           chunk->origin.key);
        assert(shape->rank >= 1); /* the first dimension is the rows */
        r->specs[i] = (rp_spec){"", chunk->columns[i].dtype, {.rank = shape->rank - 1}};
        memcpy(r->specs[i].shape.dims, shape->dims + 1,
               (size_t)(shape->rank - 1) * sizeof shape->dims[0]);
        r->scratch_bytes += aligned(chunk->places[i].row_bytes);
    }
    r->scratch_bytes += 16; /* rows may have no bytes, but rp_alloc() needs some */
    r->scratch = rp_alloc(alloc, r->scratch_bytes);
    if (r->scratch == NULL) return rp_fail_memory(err, r->scratch_bytes);
    return rp_chunk_builder_new(alloc, r->specs, chunk->column_count, &options, &r->builder,
                                err);
}

rp_status rp_reverb_chunk_for(const rp_allocator *alloc, rp_decoder *decoder, rp_chunk *chunk,
                              rp_chunk **out, rp_error *err)
{
    recoding r = {0};
    rp_status st;

    if (chunk->codec == RP_CODEC_SNAPPY || chunk->codec == RP_CODEC_NONE) {
        *out = rp_chunk_ref(chunk);
        return RP_OK;
    }
    st = prepare(alloc, chunk, &r, err);
    for (size_t row = 0; st == RP_OK && row < rp_chunk_rows(chunk, 0); row++) {
        uint8_t *scratch = r.scratch;

        for (size_t i = 0; st == RP_OK && i < chunk->column_count; i++) {
            r.row[i] = (rp_tensor){chunk->columns[i].dtype, r.specs[i].shape, scratch};
            st = decode_row(decoder, chunk, i, row, scratch, err);
            scratch += aligned(chunk->places[i].row_bytes);
            assert(scratch <= r.scratch + r.scratch_bytes);
        }
        if (st == RP_OK) st = rp_chunk_builder_append(r.builder, r.row, err);
    }
    if (st == RP_OK) st = rp_chunk_builder_finish(r.builder, &chunk->origin, out, err);
    rp_chunk_builder_free(r.builder);
    rp_release(alloc, r.scratch, r.scratch_bytes);
    rp_release(alloc, r.row, chunk->column_count * sizeof *r.row);
    rp_release(alloc, r.specs, chunk->column_count * sizeof *r.specs);
    return st;
}

/* Converts a day, counted from 1970-01-01, to a date of the proleptic Gregorian calendar.
 * Counts years from March, so that a leap day is the last of its year; 400 years have 146,097
 * days. */
static void civil_date(int64_t day, int64_t *year, int *month, int *day_of_month)
{
    int64_t shifted = day + 719468; /* from 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t in_era = shifted - era * 146097;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * in_year + 2) / 153; /* from March */

    *day_of_month = (int)(in_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = y + era * 400 + (*month <= 2);
    assert(*month >= 1 && *month <= 12 && *day_of_month >= 1 && *day_of_month <= 31);
}

char *rp_reverb_name(char out[RP_REVERB_NAME_BYTES], int64_t wall_ns)
{
    const int64_t day_ns = 86400000000000;
    int64_t day = wall_ns / day_ns, rest = wall_ns % day_ns, year;
    char fraction[16] = "";
    int month, day_of_month, seconds;

    if (rest < 0) day--, rest += day_ns;
    civil_date(day, &year, &month, &day_of_month);
    seconds = (int)(rest / 1000000000);
    rest %= 1000000000;
    if (rest != 0) {
        (void)snprintf(fraction, sizeof fraction, ".%09d", (int)rest);
        for (size_t last = 9; last > 0 && fraction[last] == '0'; last--) fraction[last] = '\0';
    }
    (void)snprintf(out, RP_REVERB_NAME_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d%s+00:00",
                   (int)year, month, day_of_month, seconds / 3600, seconds / 60 % 60,
                   seconds % 60, fraction);
    return out;
}
