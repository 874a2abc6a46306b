/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/admin_messages.h"

#include <assert.h>
#include <float.h>

#include "util/error.h"
#include "wire/sample_response.h"
#include "wire/selector_wire.h"

enum { DEFAULT_CALLS = 100, MAX_CALLS = 1000 };

static rp_status read_table(const rp_pb_field *field, rp_string *out, rp_error *err)
{
    return rp_wire_read_text(field, "the table's name", out, err);
}

static bool read_limiter(const rp_pb_field *field, rp_wire_limiter *limiter)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_FIXED64)) {
            limiter->has_samples_per_insert = true;
            limiter->value.samples_per_insert = rp_wire_double(&f);
        } else if (rp_pb_is(&f, 2, RP_PB_VARINT)) {
            limiter->has_min_size = true;
            limiter->value.min_size = (int64_t)f.value;
        } else if (rp_pb_is(&f, 3, RP_PB_FIXED64)) {
            limiter->has_min_diff = true;
            limiter->value.min_diff = rp_wire_double(&f);
        } else if (rp_pb_is(&f, 4, RP_PB_FIXED64)) {
            limiter->has_max_diff = true;
            limiter->value.max_diff = rp_wire_double(&f);
        }
    }
    return step == RP_PB_END;
}

void rp_wire_limiter_apply(const rp_wire_limiter *limiter, rp_limiter_options *options)
{
    const rp_limiter_options *value = &limiter->value;

    if (limiter->has_samples_per_insert)
        options->samples_per_insert = value->samples_per_insert;
    if (limiter->has_min_size) options->min_size = value->min_size;
    if (limiter->has_min_diff) options->min_diff = value->min_diff;
    if (limiter->has_max_diff) options->max_diff = value->max_diff;
}

/* Leaves the default in `*out` if the selector is absent. */
static rp_status take_selector(const rp_wire_selector *selector, const char *what,
                               rp_selector_options *out, rp_error *err)
{
    if (rp_wire_take_selector(selector, out)) return RP_OK;
    return rp_fail(err, RP_INVALID, "the %s names no distribution that is known", what);
}

/* The fields of TableOptions that have been read so far. */
typedef struct options_reading {
    rp_wire_table_options options;
    rp_wire_selector sampler, remover;
    rp_wire_limiter limiter;
    bool present, malformed;
    rp_error *err;
} options_reading;

static rp_status read_submessage(const rp_pb_field *f, options_reading *r)
{
    bool ok = true;

    switch (f->number) {
    case 1: return read_table(f, &r->options.name, r->err);
    case 2: ok = rp_wire_read_selector(f, &r->sampler); break;
    case 3: ok = rp_wire_read_selector(f, &r->remover); break;
    case 8: ok = read_limiter(f, &r->limiter); break;
    case 9:
        if (r->options.signature != NULL)
            return rp_fail(r->err, RP_INVALID, "TableOptions: more than one signature");
        r->options.signature = f->data;
        r->options.signature_size = f->size;
        break;
    default: break;
    }
    r->malformed |= !ok;
    return RP_OK;
}

static void read_number(const rp_pb_field *f, rp_wire_table_options *options)
{
    switch (f->number) {
    case 4: options->max_size = (int64_t)f->value; break;
    case 5: options->max_bytes = f->value; break;
    case 6: options->max_times_sampled = rp_wire_int32(f); break;
    case 7: options->soft_limit = f->value != 0; break;
    default: break;
    }
}

static rp_status read_options(const rp_pb_field *field, options_reading *r)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    r->present = true;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_number(&f, &r->options);
        if (f.type != RP_PB_BYTES) continue;
        st = read_submessage(&f, r);
        if (st != RP_OK) return st;
    }
    r->malformed |= step != RP_PB_END;
    return RP_OK;
}

static rp_status finish_options(options_reading *r, rp_wire_table_options *out, rp_error *err)
{
    rp_status st;

    if (!r->present) return rp_fail(err, RP_INVALID, "CreateTableRequest: no options");
    r->options.sampler = (rp_selector_options){RP_UNIFORM, 0};
    r->options.remover = (rp_selector_options){RP_FIFO, 0};
    r->options.limiter = (rp_limiter_options){1.0, 1, -DBL_MAX, DBL_MAX};
    st = take_selector(&r->sampler, "sampler", &r->options.sampler, err);
    if (st != RP_OK) return st;
    st = take_selector(&r->remover, "remover", &r->options.remover, err);
    if (st != RP_OK) return st;
    rp_wire_limiter_apply(&r->limiter, &r->options.limiter);
    *out = r->options;
    return RP_OK;
}

rp_status rp_wire_read_create_table(const uint8_t *data, size_t size,
                                    rp_wire_table_options *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    options_reading r = {.options = {.name = {"", 0}}, .err = err};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = read_options(&f, &r);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END || r.malformed) return rp_wire_malformed(err, "CreateTableRequest");
    return finish_options(&r, out, err);
}

rp_status rp_wire_read_drop_table(const uint8_t *data, size_t size, rp_string *table,
                                  rp_error *err)
{
    return rp_wire_read_only_text(data, size, "DropTableRequest", "the table's name", table,
                                  err);
}

static void read_alteration(const rp_pb_field *f, rp_wire_alter_table *alter)
{
    if (f->number == 2) {
        alter->has_max_size = true;
        alter->max_size = (int64_t)f->value;
    } else if (f->number == 3) {
        alter->has_max_bytes = true;
        alter->max_bytes = f->value;
    } else if (f->number == 4) {
        alter->has_max_times_sampled = true;
        alter->max_times_sampled = rp_wire_int32(f);
    } else if (f->number == 6) {
        alter->recenter = f->value != 0;
    }
}

rp_status rp_wire_read_alter_table(const uint8_t *data, size_t size, rp_wire_alter_table *out,
                                   rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_alter_table found = {.table = {"", 0}};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_alteration(&f, &found);
        if (rp_pb_is(&f, 5, RP_PB_BYTES) && !read_limiter(&f, &found.limiter)) break;
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = read_table(&f, &found.table, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "AlterTableRequest");
    *out = found;
    return RP_OK;
}

rp_status rp_wire_read_pause_table(const uint8_t *data, size_t size, rp_wire_pause_table *out,
                                   rp_error *err)
{
    enum { BOTH = 0, INSERTS = 1, SAMPLES = 2 };
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string table = {"", 0};
    int32_t side = BOTH;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) side = rp_wire_int32(&f);
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = read_table(&f, &table, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "PauseTableRequest");
    if (side < BOTH || side > SAMPLES)
        return rp_fail(err, RP_INVALID, "side must be in [%d, %d], got %d", BOTH, SAMPLES,
                       (int)side);
    *out = (rp_wire_pause_table){table, side != SAMPLES, side != INSERTS};
    return RP_OK;
}

rp_status rp_wire_read_why_blocked(const uint8_t *data, size_t size, rp_string *table,
                                   size_t *max_calls, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string found = {"", 0};
    int64_t calls = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) calls = (int64_t)f.value;
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = read_table(&f, &found, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "WhyBlockedRequest");
    if (calls < 0)
        return rp_fail(err, RP_INVALID, "max_calls must be >= 0, got %lld", (long long)calls);
    *table = found;
    *max_calls = calls == 0 ? DEFAULT_CALLS : calls < MAX_CALLS ? (size_t)calls : MAX_CALLS;
    assert(*max_calls >= 1 && *max_calls <= MAX_CALLS);
    return RP_OK;
}

void rp_wire_write_waiting_call(rp_buf *out, const char *table, const rp_waiting *waiting,
                                const rp_wire_caller *caller, int64_t now_ns)
{
    enum { NS_PER_MS = 1000000 };
    size_t mark = rp_wire_begin(out, 1);

    rp_wire_put_text(out, 1, table);
    rp_wire_put_number(out, 2, waiting->is_insert ? 1 : 2);
    rp_wire_put_number(out, 3, waiting->wanted);
    rp_wire_put_number(out, 4, waiting->done);
    rp_wire_put_int(out, 5, waiting->waiting_ns / NS_PER_MS);
    if (waiting->until_ns != RP_FOREVER) {
        int64_t left_ns = waiting->until_ns > now_ns ? waiting->until_ns - now_ns : 0;
        rp_wire_put_number_always(out, 6, (uint64_t)(left_ns / NS_PER_MS));
    }
    rp_wire_put_text(out, 7, waiting->why);
    if (caller->address != NULL) rp_wire_put_text(out, 8, caller->address);
    rp_wire_put_number(out, 9, caller->id);
    rp_wire_end(out, mark);
}

void rp_wire_write_waiting_total(rp_buf *out, size_t total)
{
    rp_wire_put_number(out, 2, total);
}

static void put_waits(rp_buf *out, uint32_t number, const rp_waits *waits)
{
    size_t mark = rp_wire_begin(out, number);

    rp_wire_put_int(out, 1, waits->longest_ns);
    rp_wire_put_int(out, 2, waits->parked);
    rp_wire_put_int(out, 3, waits->total_ns);
    rp_wire_end(out, mark);
}

void rp_wire_write_table_status(rp_buf *out, const rp_table_info *table)
{
    size_t mark = rp_wire_begin(out, 1);

    rp_wire_put_text(out, 1, table->name);
    rp_wire_put_double(out, 2, table->total_weight);
    rp_wire_put_int(out, 3, table->size);
    rp_wire_put_number(out, 4, table->bytes);
    rp_wire_put_number(out, 5, table->max_bytes);
    rp_wire_put_number(out, 6, table->soft_limit);
    rp_wire_put_number(out, 7, table->closed);
    rp_wire_put_number(out, 8, (table->paused & RP_SIDE_INSERTS) != 0);
    rp_wire_put_number(out, 9, (table->paused & RP_SIDE_SAMPLES) != 0);
    rp_wire_put_int(out, 10, table->deletes);
    rp_wire_put_int(out, 11, table->updates);
    rp_wire_put_int(out, 12, table->evictions);
    rp_wire_put_double(out, 13, table->max_priority);
    rp_wire_put_double(out, 14, table->limiter_diff);
    rp_wire_put_int(out, 15, table->waiting_inserts);
    rp_wire_put_int(out, 16, table->waiting_samples);
    put_waits(out, 17, &table->insert_waits);
    put_waits(out, 18, &table->sample_waits);
    rp_wire_end(out, mark);
}

/* PeekRequest, UpdateRequest and DeleteRequest have their table in field 1 and their keys or
 * updates in field 2. */
enum { KEYS_TABLE = 1, KEYS_KEY = 2, PEEK_WITH_DATA = 3, PEEK_CUT_ROWS = 4 };

typedef struct keys_reading {
    const char *message;
    bool updates; /* field 2 has KeyWithPriority, not numbers */
    size_t max_keys;
} keys_reading;

static rp_status read_keys_field(const rp_pb_field *f, const keys_reading *how,
                                 rp_wire_keys_request *r, bool *ok, rp_error *err)
{
    if (rp_pb_is(f, KEYS_TABLE, RP_PB_BYTES)) return read_table(f, &r->table, err);
    if (rp_pb_is(f, PEEK_WITH_DATA, RP_PB_VARINT)) r->with_data = f->value != 0;
    if (rp_pb_is(f, PEEK_CUT_ROWS, RP_PB_VARINT)) r->cut_rows = f->value != 0;
    if (f->number != KEYS_KEY) return RP_OK;
    if (!how->updates) {
        *ok = rp_wire_count_numbers(f, &r->count);
    } else if (f->type == RP_PB_BYTES) {
        *ok = rp_wire_is_update(f);
        r->count++;
    }
    return RP_OK;
}

static rp_status read_keys(const uint8_t *data, size_t size, const keys_reading *how,
                           rp_wire_keys_request *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_keys_request found = {.table = {"", 0}, .data = data, .size = size};
    rp_pb_field f;
    rp_pb_step step = RP_PB_END;
    bool ok = true;
    rp_status st;

    while (ok && (step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        st = read_keys_field(&f, how, &found, &ok, err);
        if (st != RP_OK) return st;
        if (found.count > how->max_keys)
            return rp_fail(err, RP_NO_RESOURCE, "more than %zu keys in one message",
                           how->max_keys);
    }
    if (!ok || step != RP_PB_END) return rp_wire_malformed(err, how->message);
    *out = found;
    return RP_OK;
}

rp_status rp_wire_read_peek(const uint8_t *data, size_t size, size_t max_keys,
                            rp_wire_keys_request *out, rp_error *err)
{
    return read_keys(data, size, &(keys_reading){"PeekRequest", false, max_keys}, out, err);
}

rp_status rp_wire_read_update_request(const uint8_t *data, size_t size, size_t max_keys,
                                      rp_wire_keys_request *out, rp_error *err)
{
    return read_keys(data, size, &(keys_reading){"UpdateRequest", true, max_keys}, out, err);
}

rp_status rp_wire_read_delete(const uint8_t *data, size_t size, size_t max_keys,
                              rp_wire_keys_request *out, rp_error *err)
{
    return read_keys(data, size, &(keys_reading){"DeleteRequest", false, max_keys}, out, err);
}

void rp_wire_request_keys(const rp_wire_keys_request *request, uint64_t *keys)
{
    rp_pb_reader reader = rp_pb_open(request->data, request->size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == KEYS_KEY) keys = rp_wire_copy_numbers(&f, keys);
}

void rp_wire_request_updates(const rp_wire_keys_request *request, rp_update *updates)
{
    rp_wire_copy_updates(request->data, request->size, KEYS_KEY, updates);
}

void rp_wire_write_found(rp_buf *out, size_t found)
{
    rp_wire_put_number(out, 1, found);
}

static void read_draw_number(const rp_pb_field *f, rp_wire_draw_request *r)
{
    switch (f->number) {
    case 2: r->count = (int64_t)f->value; break;
    case 3: r->at_least = (int64_t)f->value; break;
    case 4:
        r->has_timeout = true;
        r->timeout_ms = (int64_t)f->value;
        break;
    case 5: r->distinct = f->value != 0; break;
    case 7: r->cut_rows = f->value != 0; break;
    default: break;
    }
}

rp_status rp_wire_read_draw(const uint8_t *data, size_t size, rp_wire_draw_request *out,
                            rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_draw_request found = {.table = {"", 0}};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (f.type == RP_PB_VARINT) read_draw_number(&f, &found);
        if (rp_pb_is(&f, 6, RP_PB_FIXED64)) found.beta = rp_wire_double(&f);
        if (!rp_pb_is(&f, 1, RP_PB_BYTES)) continue;
        st = read_table(&f, &found.table, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "SampleRequest");
    *out = found;
    return RP_OK;
}

enum { ANSWER_CHUNK = 1, ANSWER_ENTRY = 2, ENTRY_INFO = 1, ENTRY_WEIGHT = 2 };

bool rp_wire_add_chunk(rp_message *reply, const rp_chunk *chunk)
{
    size_t size;
    const uint8_t *data = rp_chunk_wire(chunk, &size);
    uint8_t *at = rp_buf_reserve(&reply->bytes, 16);

    if (at == NULL) return false;
    reply->bytes.size += (size_t)(rp_pb_put_bytes_head(at, ANSWER_CHUNK, size) - at);
    return rp_message_add(reply, data, size);
}

bool rp_wire_add_entry(rp_message *reply, const rp_sample *sample, const char *table)
{
    rp_buf *out = &reply->bytes;
    size_t table_size = strlen(table), size = rp_sample_info_size(sample, table_size);
    size_t mark = rp_wire_begin(out, ANSWER_ENTRY);
    uint8_t *at = rp_buf_reserve(out, 16 + size);

    if (at == NULL) return false;
    at = rp_pb_put_bytes_head(at, ENTRY_INFO, size);
    at = rp_sample_info_write(at, sample, table, table_size);
    out->size = (size_t)(at - out->data);
    rp_wire_put_double(out, ENTRY_WEIGHT, sample->weight);
    rp_wire_end(out, mark);
    return !out->bad;
}
