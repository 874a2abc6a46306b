/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/reverb_messages.h"

#include <assert.h>

#include "util/error.h"
#include "wire/selector_wire.h"
#include "wire/signature_wire.h"

static bool read_timeout(const rp_pb_field *field, int64_t *ms)
{
    rp_pb_reader reader = rp_pb_open(field->data, field->size);
    rp_pb_field f;
    rp_pb_step step;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) *ms = (int64_t)f.value;
    return step == RP_PB_END;
}

rp_status rp_wire_read_sample_request(const uint8_t *data, size_t size,
                                      rp_wire_sample_request *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_sample_request found = {.table = {"", 0}, .lease = {"", 0}};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) {
            st = rp_wire_read_text(&f, "the table's name", &found.table, err);
            if (st != RP_OK) return st;
        } else if (rp_pb_is(&f, 2, RP_PB_VARINT)) {
            found.num_samples = (int64_t)f.value;
        } else if (rp_pb_is(&f, 3, RP_PB_BYTES)) {
            found.has_timeout = true;
            if (!read_timeout(&f, &found.timeout_ms)) break;
        } else if (rp_pb_is(&f, 15, RP_PB_BYTES)) {
            found.lease = (rp_string){(const char *)f.data, f.size};
        } else if (rp_pb_is(&f, 16, RP_PB_VARINT)) {
            found.lease_call = f.value;
        }
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "SampleStreamRequest");
    *out = found;
    return RP_OK;
}

enum { MUTATE_TABLE = 1, MUTATE_UPDATE = 2, MUTATE_DELETE = 3 };

/* Reads one field of a MutatePrioritiesRequest. `*ok` is false if it is malformed. */
static rp_status read_mutation(const rp_pb_field *f, rp_wire_mutate_request *r, bool *ok,
                               rp_error *err)
{
    if (rp_pb_is(f, MUTATE_TABLE, RP_PB_BYTES))
        return rp_wire_read_text(f, "the table's name", &r->table, err);
    if (rp_pb_is(f, MUTATE_UPDATE, RP_PB_BYTES)) {
        *ok = rp_wire_is_update(f);
        r->update_count++;
    }
    if (f->number == MUTATE_DELETE) *ok = rp_wire_count_numbers(f, &r->delete_count);
    return RP_OK;
}

rp_status rp_wire_read_mutate_request(const uint8_t *data, size_t size, size_t max_keys,
                                      rp_wire_mutate_request *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_wire_mutate_request found = {.table = {"", 0}, .data = data, .size = size};
    rp_pb_field f;
    rp_pb_step step;
    rp_status st = RP_OK;
    bool ok = true;

    do {
        while (rp_wire_skip_update(&reader, MUTATE_UPDATE)) found.update_count++;
        /* The sum does not overflow: each update or delete takes at least a byte of the
         * message. */
        if (found.update_count + found.delete_count > max_keys)
            return rp_fail(err, RP_NO_RESOURCE, "more than %zu keys in one message", max_keys);
        step = rp_pb_next(&reader, &f);
        if (step == RP_PB_FIELD) st = read_mutation(&f, &found, &ok, err);
        if (st != RP_OK) return st;
    } while (ok && step == RP_PB_FIELD);
    if (!ok || step != RP_PB_END) return rp_wire_malformed(err, "MutatePrioritiesRequest");
    assert(found.update_count + found.delete_count <= max_keys);
    *out = found;
    return RP_OK;
}

void rp_wire_mutate_updates(const rp_wire_mutate_request *request, rp_update *updates)
{
    rp_wire_copy_updates(request->data, request->size, MUTATE_UPDATE, updates);
}

void rp_wire_mutate_deletes(const rp_wire_mutate_request *request, uint64_t *keys)
{
    rp_pb_reader reader = rp_pb_open(request->data, request->size);
    rp_pb_field f;

    if (request->delete_count == 0) return;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == MUTATE_DELETE) keys = rp_wire_copy_numbers(&f, keys);
}

rp_status rp_wire_read_reset_request(const uint8_t *data, size_t size, rp_string *table,
                                     rp_error *err)
{
    return rp_wire_read_only_text(data, size, "ResetRequest", "the table's name", table, err);
}

rp_status rp_wire_read_initialize_request(const uint8_t *data, size_t size, int64_t *pid,
                                          rp_string *table, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_string found = {"", 0};
    int64_t found_pid = 0;
    rp_pb_field f;
    rp_pb_step step;
    rp_status st;

    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) found_pid = (int64_t)f.value;
        if (!rp_pb_is(&f, 2, RP_PB_BYTES)) continue;
        st = rp_wire_read_text(&f, "the table's name", &found, err);
        if (st != RP_OK) return st;
    }
    if (step != RP_PB_END) return rp_wire_malformed(err, "InitializeConnectionRequest");
    *pid = found_pid;
    *table = found;
    return RP_OK;
}

void rp_wire_write_insert_response(rp_buf *out, const uint64_t *keys, size_t count)
{
    rp_wire_put_packed(out, 1, keys, count);
}

void rp_wire_write_checkpoint_response(rp_buf *out, const char *path)
{
    rp_wire_put_text(out, 1, path);
}

/* Writes a RateLimiterCallStats, even if it is empty. */
static void put_completed(rp_buf *out, uint32_t number, int64_t completed)
{
    size_t mark = rp_wire_begin(out, number);

    rp_wire_put_int(out, 2, completed);
    rp_wire_end(out, mark);
}

static void put_limiter(rp_buf *out, uint32_t number, const rp_table_info *table)
{
    size_t mark = rp_wire_begin(out, number);

    rp_wire_put_double(out, 1, table->limiter.samples_per_insert);
    rp_wire_put_double(out, 2, table->limiter.min_diff);
    rp_wire_put_double(out, 3, table->limiter.max_diff);
    rp_wire_put_int(out, 4, table->limiter.min_size);
    put_completed(out, 5, table->inserts);
    put_completed(out, 6, table->samples);
    rp_wire_end(out, mark);
}

static void put_table_info(rp_buf *out, uint32_t number, const rp_table_info *table)
{
    size_t mark = rp_wire_begin(out, number);

    rp_wire_put_selector(out, 1, &table->sampler);
    rp_wire_put_selector(out, 2, &table->remover);
    rp_wire_put_int(out, 3, table->max_size);
    rp_wire_put_int(out, 4, table->max_times_sampled);
    put_limiter(out, 5, table);
    if (table->signature != NULL) rp_wire_put_signature(out, 6, table->signature);
    rp_wire_put_int(out, 7, table->size);
    rp_wire_put_text(out, 8, table->name);
    rp_wire_put_int(out, 9, table->episodes);
    rp_wire_put_int(out, 10, table->deleted_episodes);
    rp_wire_put_int(out, 11, table->unique_samples);
    rp_wire_end(out, rp_wire_begin(out, 12)); /* an empty table_worker_time */
    rp_wire_end(out, mark);
}

void rp_wire_write_server_info(rp_buf *out, const uint64_t state_id[2],
                               const rp_table_info *tables, size_t count)
{
    size_t mark = rp_wire_begin(out, 1);

    rp_wire_put_number(out, 1, state_id[0]);
    rp_wire_put_number(out, 2, state_id[1]);
    rp_wire_end(out, mark);
    for (size_t i = 0; i < count; i++) put_table_info(out, 2, &tables[i]);
}
