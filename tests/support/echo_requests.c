/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "support/echo.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"
#include "wire/durability_wire.h"
#include "wire/fields.h"
#include "wire/health_messages.h"
#include "wire/insert_request.h"
#include "wire/reflection_messages.h"
#include "wire/reverb_messages.h"
#include "wire/signature_wire.h"

enum { MAX_KEYS = 1 << 20, MAX_SLICES = 65536 };

typedef rp_status echo_function(const uint8_t *data, size_t size, rp_buf *out, rp_error *err);

static void put_string(rp_buf *out, uint32_t number, rp_string text)
{
    rp_wire_put_bytes(out, number, text.data, text.size);
}

/* Writes a double of an optional field, even if it is 0. */
static void put_double_always(rp_buf *out, uint32_t number, double value)
{
    uint8_t zeroes[8] = {0}, tag = (uint8_t)rp_pb_tag(number, RP_PB_FIXED64);
    size_t before = out->size;

    rp_wire_put_double(out, number, value);
    if (out->size != before) return;
    rp_buf_append(out, &tag, 1);
    rp_buf_append(out, zeroes, sizeof zeroes);
}

static void put_updates(rp_buf *out, uint32_t number, const rp_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t mark = rp_wire_begin(out, number);
        rp_wire_put_number(out, 1, updates[i].key);
        rp_wire_put_double(out, 2, updates[i].priority);
        rp_wire_end(out, mark);
    }
}

static rp_status echo_sample_stream(const uint8_t *data, size_t size, rp_buf *out,
                                    rp_error *err)
{
    rp_wire_sample_request request;
    rp_status st = rp_wire_read_sample_request(data, size, &request, err);

    if (st != RP_OK) return st;
    put_string(out, 1, request.table);
    rp_wire_put_int(out, 2, request.num_samples);
    if (request.has_timeout) {
        size_t mark = rp_wire_begin(out, 3);
        rp_wire_put_int(out, 1, request.timeout_ms);
        rp_wire_end(out, mark);
    }
    return RP_OK;
}

static rp_status echo_mutate(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_mutate_request request;
    rp_status st = rp_wire_read_mutate_request(data, size, MAX_KEYS, &request, err);
    rp_update *updates;
    uint64_t *deletes;

    if (st != RP_OK) return st;
    updates = calloc(request.update_count + 1, sizeof *updates);
    deletes = calloc(request.delete_count + 1, sizeof *deletes);
    rp_wire_mutate_updates(&request, updates);
    rp_wire_mutate_deletes(&request, deletes);
    put_string(out, 1, request.table);
    put_updates(out, 2, updates, request.update_count);
    rp_wire_put_packed(out, 3, deletes, request.delete_count);
    free(updates);
    free(deletes);
    return RP_OK;
}

static rp_status echo_reset(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_string table;
    rp_status st = rp_wire_read_reset_request(data, size, &table, err);

    if (st == RP_OK) put_string(out, 1, table);
    return st;
}

static rp_status echo_initialize(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    int64_t pid;
    rp_string table;
    rp_status st = rp_wire_read_initialize_request(data, size, &pid, &table, err);

    if (st != RP_OK) return st;
    rp_wire_put_int(out, 1, pid);
    put_string(out, 2, table);
    return RP_OK;
}

static void put_item(rp_buf *out, const rp_wire_item *item, const rp_wire_column *columns,
                     const rp_wire_slice *slices)
{
    size_t mark = rp_wire_begin(out, 2), trajectory, column, slice;

    rp_wire_put_number(out, 1, item->key);
    put_string(out, 2, item->table);
    rp_wire_put_double(out, 5, item->priority);
    rp_wire_put_int(out, 6, item->times_sampled);
    trajectory = rp_wire_begin(out, 8);
    for (size_t i = 0; i < item->column_count; i++) {
        column = rp_wire_begin(out, 1);
        for (size_t j = 0; j < columns[i].slice_count; j++, slices++) {
            slice = rp_wire_begin(out, 1);
            rp_wire_put_number(out, 1, slices->chunk_key);
            rp_wire_put_number(out, 2, slices->offset);
            rp_wire_put_number(out, 3, slices->length);
            rp_wire_put_number(out, 4, slices->index);
            rp_wire_end(out, slice);
        }
        rp_wire_put_number(out, 2, columns[i].squeeze);
        rp_wire_end(out, column);
    }
    rp_wire_end(out, trajectory);
    rp_wire_end(out, mark);
}

static rp_status echo_insert(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_insert_limits limits = {1 << 26, 65536, RP_MAX_COLUMNS, MAX_SLICES, MAX_KEYS};
    rp_wire_column *columns = calloc(RP_MAX_COLUMNS, sizeof *columns);
    rp_wire_slice *slices = calloc(MAX_SLICES, sizeof *slices);
    uint64_t *keep = NULL;
    rp_insert_request request;
    rp_pb_reader parts;
    const uint8_t *part;
    size_t part_size;
    rp_status st = rp_insert_request_read(data, size, &limits, &request, err);

    if (st != RP_OK) goto out;
    parts = rp_insert_request_parts(&request);
    while (rp_insert_request_next_chunk(&parts, &part, &part_size))
        rp_wire_put_bytes_always(out, 1, part, part_size);
    parts = rp_insert_request_parts(&request);
    while (rp_insert_request_next_item(&parts, &part, &part_size)) {
        rp_wire_item item;
        st = rp_wire_item_read(
            part, part_size,
            &(rp_wire_item_arrays){columns, RP_MAX_COLUMNS, slices, MAX_SLICES}, &item, err);
        if (st != RP_OK) goto out;
        put_item(out, &item, columns, slices);
    }
    keep = calloc(request.keep_count + 1, sizeof *keep);
    rp_insert_request_keep(&request, keep);
    rp_wire_put_packed(out, 3, keep, request.keep_count);
out:
    free(keep);
    free(columns);
    free(slices);
    return st;
}

/* A signature is not a request itself: it is written as field 6 of a container, of which only
 * the contents are kept. */
static rp_status echo_signature(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_signature *signature;
    rp_status st = rp_wire_read_signature(rp_allocator_default(), data, size, &signature, err);
    rp_buf whole;
    rp_pb_reader reader;
    rp_pb_field f;

    if (st != RP_OK) return st;
    rp_buf_init(&whole, rp_allocator_default());
    rp_wire_put_signature(&whole, 6, signature);
    reader = rp_pb_open(whole.data, whole.size);
    if (rp_pb_next(&reader, &f) == RP_PB_FIELD) rp_buf_append(out, f.data, f.size);
    rp_buf_deinit(&whole);
    rp_signature_unref(signature);
    return RP_OK;
}

static rp_status echo_health(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_string service;
    rp_status st = rp_wire_read_health_request(data, size, &service, err);

    if (st == RP_OK) put_string(out, 1, service);
    return st;
}

static rp_status echo_reflection(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_reflection_request request;
    rp_status st = rp_wire_read_reflection_request(data, size, &request, err);

    if (st == RP_OK) rp_wire_write_reflection_response(out, &request);
    return st;
}

static void put_selector(rp_buf *out, uint32_t number, const rp_selector_options *options)
{
    static const uint32_t numbers[] = {1, 6, 2, 3, 4, 4}; /* by rp_selector_kind */
    uint32_t which = numbers[options->kind];
    size_t mark = rp_wire_begin(out, number), inner;

    if (which == 3 || which == 4) {
        inner = rp_wire_begin(out, which);
        if (which == 3) rp_wire_put_double(out, 1, options->exponent);
        if (which == 4) rp_wire_put_number(out, 1, options->kind == RP_MIN_HEAP);
        rp_wire_end(out, inner);
    } else {
        rp_wire_put_number(out, which, 1);
    }
    rp_wire_end(out, mark);
}

static rp_status put_read_signature(rp_buf *out, const rp_wire_table_options *options,
                                    rp_error *err)
{
    rp_signature *signature;
    rp_status st;

    if (options->signature == NULL) return RP_OK;
    st = rp_wire_read_signature(rp_allocator_default(), options->signature,
                                options->signature_size, &signature, err);
    if (st != RP_OK) return st;
    rp_wire_put_signature(out, 9, signature);
    rp_signature_unref(signature);
    return RP_OK;
}

static rp_status echo_create(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_table_options options;
    rp_status st = rp_wire_read_create_table(data, size, &options, err);
    size_t mark, limiter;

    if (st != RP_OK) return st;
    mark = rp_wire_begin(out, 1);
    put_string(out, 1, options.name);
    put_selector(out, 2, &options.sampler);
    put_selector(out, 3, &options.remover);
    rp_wire_put_int(out, 4, options.max_size);
    rp_wire_put_number(out, 5, options.max_bytes);
    rp_wire_put_int(out, 6, options.max_times_sampled);
    rp_wire_put_number(out, 7, options.soft_limit);
    limiter = rp_wire_begin(out, 8);
    put_double_always(out, 1, options.limiter.samples_per_insert);
    rp_wire_put_number_always(out, 2, (uint64_t)options.limiter.min_size);
    put_double_always(out, 3, options.limiter.min_diff);
    put_double_always(out, 4, options.limiter.max_diff);
    rp_wire_end(out, limiter);
    st = put_read_signature(out, &options, err);
    rp_wire_end(out, mark);
    return st;
}

static rp_status echo_drop(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_string table;
    rp_status st = rp_wire_read_drop_table(data, size, &table, err);

    if (st == RP_OK) put_string(out, 1, table);
    return st;
}

static rp_status echo_alter(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_alter_table alter;
    const rp_wire_limiter *l = &alter.limiter;
    rp_status st = rp_wire_read_alter_table(data, size, &alter, err);
    size_t mark;

    if (st != RP_OK) return st;
    put_string(out, 1, alter.table);
    if (alter.has_max_size) rp_wire_put_number_always(out, 2, (uint64_t)alter.max_size);
    if (alter.has_max_bytes) rp_wire_put_number_always(out, 3, alter.max_bytes);
    if (alter.has_max_times_sampled)
        rp_wire_put_number_always(out, 4, (uint64_t)alter.max_times_sampled);
    mark = rp_wire_begin(out, 5);
    if (l->has_samples_per_insert) put_double_always(out, 1, l->value.samples_per_insert);
    if (l->has_min_size) rp_wire_put_number_always(out, 2, (uint64_t)l->value.min_size);
    if (l->has_min_diff) put_double_always(out, 3, l->value.min_diff);
    if (l->has_max_diff) put_double_always(out, 4, l->value.max_diff);
    rp_wire_end(out, mark);
    rp_wire_put_number(out, 6, alter.recenter);
    return RP_OK;
}

static rp_status echo_pause(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_pause_table pause;
    rp_status st = rp_wire_read_pause_table(data, size, &pause, err);

    if (st != RP_OK) return st;
    put_string(out, 1, pause.table);
    rp_wire_put_number(out, 2, !pause.samples ? 1 : !pause.inserts ? 2 : 0);
    return RP_OK;
}

static rp_status echo_status_request(const uint8_t *data, size_t size, rp_buf *out,
                                     rp_error *err)
{
    bool without_tables = false;
    rp_string table;
    rp_status st = rp_wire_read_status_request(data, size, &table, &without_tables, err);

    if (st != RP_OK) return st;
    put_string(out, 1, table);
    rp_wire_put_number(out, 2, without_tables);
    return RP_OK;
}

static rp_status echo_why_blocked(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_string table;
    size_t max_calls;
    rp_status st = rp_wire_read_why_blocked(data, size, &table, &max_calls, err);

    if (st != RP_OK) return st;
    put_string(out, 1, table);
    rp_wire_put_number(out, 2, max_calls);
    return RP_OK;
}

static void put_keys_request(rp_buf *out, const rp_wire_keys_request *request)
{
    uint64_t *keys = calloc(request->count + 1, sizeof *keys);

    rp_wire_request_keys(request, keys);
    put_string(out, 1, request->table);
    rp_wire_put_packed(out, 2, keys, request->count);
    rp_wire_put_number(out, 3, request->with_data);
    rp_wire_put_number(out, 4, request->cut_rows);
    free(keys);
}

static rp_status echo_peek(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_keys_request request;
    rp_status st = rp_wire_read_peek(data, size, MAX_KEYS, &request, err);

    if (st == RP_OK) put_keys_request(out, &request);
    return st;
}

static rp_status echo_delete(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_keys_request request;
    rp_status st = rp_wire_read_delete(data, size, MAX_KEYS, &request, err);

    if (st == RP_OK) put_keys_request(out, &request);
    return st;
}

static rp_status echo_update(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_keys_request request;
    rp_status st = rp_wire_read_update_request(data, size, MAX_KEYS, &request, err);
    rp_update *updates;

    if (st != RP_OK) return st;
    updates = calloc(request.count + 1, sizeof *updates);
    rp_wire_request_updates(&request, updates);
    put_string(out, 1, request.table);
    put_updates(out, 2, updates, request.count);
    free(updates);
    return RP_OK;
}

static rp_status echo_draw(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_draw_request request;
    rp_status st = rp_wire_read_draw(data, size, &request, err);

    if (st != RP_OK) return st;
    put_string(out, 1, request.table);
    rp_wire_put_int(out, 2, request.count);
    rp_wire_put_int(out, 3, request.at_least);
    if (request.has_timeout) rp_wire_put_number_always(out, 4, (uint64_t)request.timeout_ms);
    rp_wire_put_number(out, 5, request.distinct);
    rp_wire_put_double(out, 6, request.beta);
    rp_wire_put_number(out, 7, request.cut_rows);
    return RP_OK;
}

static rp_status echo_empty(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    (void)data;
    (void)out;
    return size == 0 ? RP_OK : rp_fail(err, RP_INVALID, "not empty");
}

rp_status rp_test_echo_request(const char *message, const uint8_t *data, size_t size,
                               rp_buf *out, rp_error *err)
{
    static const struct {
        const char *message;
        echo_function *echo;
    } functions[] = {
        {"AlterTableRequest", echo_alter},
        {"CheckpointRequest", echo_empty},
        {"CreateTableRequest", echo_create},
        {"DeleteRequest", echo_delete},
        {"DropTableRequest", echo_drop},
        {"HealthCheckRequest", echo_health},
        {"InitializeConnectionRequest", echo_initialize},
        {"InsertStreamRequest", echo_insert},
        {"MutatePrioritiesRequest", echo_mutate},
        {"PauseTableRequest", echo_pause},
        {"PeekRequest", echo_peek},
        {"ResetRequest", echo_reset},
        {"SampleRequest", echo_draw},
        {"SampleStreamRequest", echo_sample_stream},
        {"ServerInfoRequest", echo_empty},
        {"ServerReflectionRequest", echo_reflection},
        {"StatusRequest", echo_status_request},
        {"StructuredValue", echo_signature},
        {"UpdateRequest", echo_update},
        {"WhyBlockedRequest", echo_why_blocked},
    };

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].message, message) == 0)
            return functions[i].echo(data, size, out, err);
    return rp_fail(err, RP_NOT_FOUND, "no such message: %s", message);
}

rp_status rp_test_echo(const char *message, const uint8_t *data, size_t size, rp_buf *out,
                       rp_error *err)
{
    rp_status st = rp_test_echo_request(message, data, size, out, err);

    return st == RP_NOT_FOUND ? rp_test_echo_response(message, data, size, out, err) : st;
}
