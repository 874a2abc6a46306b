/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "chunk/trajectory.h"
#include "support/echo.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/admin_messages.h"
#include "wire/connection_messages.h"
#include "wire/durability_wire.h"
#include "wire/fields.h"
#include "wire/health_messages.h"
#include "wire/insert_request.h"
#include "wire/responses.h"
#include "wire/reverb_messages.h"
#include "wire/sample_response.h"
#include "wire/signature_wire.h"

enum { MAX_TABLES = 64, MAX_CHUNKS = 256, MAX_COLUMNS = 64, MAX_SLICES = 256, MAX_TEXT = 1024 };

typedef rp_status echo_function(const uint8_t *data, size_t size, rp_buf *out, rp_error *err);

/* Returns a reader of the fields of a submessage. */
static rp_pb_reader fields_of(const rp_pb_field *field)
{
    return rp_pb_open(field->data, field->size);
}

static bool next(rp_pb_reader *reader, rp_pb_field *f)
{
    return rp_pb_next(reader, f) == RP_PB_FIELD;
}

/* Returns the number in field `number` of a submessage, or 0. */
static uint64_t number_in(const rp_pb_field *message, uint32_t number)
{
    rp_pb_reader reader = fields_of(message);
    rp_pb_field f;
    uint64_t value = 0;

    while (next(&reader, &f))
        if (f.number == number) value = f.value;
    return value;
}

static char *text_of(const rp_pb_field *field)
{
    char *text = calloc(1, field->size + 1);

    if (text != NULL && field->size > 0) memcpy(text, field->data, field->size);
    return text;
}

static rp_status echo_insert_response(const uint8_t *data, size_t size, rp_buf *out,
                                      rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    uint64_t keys[4096];
    size_t count = 0;

    (void)err;
    while (next(&reader, &f)) {
        size_t before = count;
        if (f.number != 1 || !rp_wire_count_numbers(&f, &count) || count > 4096) continue;
        (void)rp_wire_copy_numbers(&f, keys + before);
    }
    rp_wire_write_insert_response(out, keys, count);
    return RP_OK;
}

static rp_status echo_checkpoint(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;

    (void)err;
    while (next(&reader, &f)) {
        char *path = text_of(&f);
        rp_wire_write_checkpoint_response(out, path);
        free(path);
    }
    return RP_OK;
}

static rp_status echo_health(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_field whole = {.data = data, .size = size};

    (void)err;
    rp_wire_write_health_response(out, (rp_wire_serving)number_in(&whole, 1));
    return RP_OK;
}

static rp_status echo_found(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_field whole = {.data = data, .size = size};

    (void)err;
    rp_wire_write_found(out, (size_t)number_in(&whole, 1));
    return RP_OK;
}

static rp_status echo_empty(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    (void)data;
    (void)out;
    return size == 0 ? RP_OK : rp_fail(err, RP_INVALID, "not empty");
}

static void echo_waiting_call(const rp_pb_field *field, rp_buf *out)
{
    enum { NOW_NS = 5000000, NS_PER_MS = 1000000 };
    rp_pb_reader reader = fields_of(field);
    rp_waiting waiting = {.until_ns = RP_FOREVER};
    char *table = NULL, *client = NULL;
    rp_wire_caller caller = {NULL, 0};
    rp_pb_field f;

    while (next(&reader, &f)) {
        if (f.number == 1) table = text_of(&f);
        if (f.number == 8) client = text_of(&f);
        if (f.number == 9) caller.id = f.value;
        if (f.number == 2) waiting.is_insert = f.value == 1;
        if (f.number == 3) waiting.wanted = (size_t)f.value;
        if (f.number == 4) waiting.done = (size_t)f.value;
        if (f.number == 5) waiting.waiting_ns = (int64_t)f.value * NS_PER_MS;
        if (f.number == 6) waiting.until_ns = NOW_NS + (int64_t)f.value * NS_PER_MS;
        if (f.number == 7)
            (void)snprintf(waiting.why, sizeof waiting.why, "%.*s", (int)f.size,
                           (const char *)f.data);
    }
    caller.address = client;
    rp_wire_write_waiting_call(out, table, &waiting, &caller, NOW_NS);
    free(table);
    free(client);
}

static rp_status echo_clients(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    static rp_wire_connection list[MAX_TABLES]; /* too large for a stack */
    rp_wire_connections found = {.list = list, .capacity = MAX_TABLES};
    rp_status st = rp_wire_read_connections(data, size, &found, err);

    for (size_t i = 0; st == RP_OK && i < found.count; i++)
        rp_wire_write_connection(out, &list[i]);
    if (st == RP_OK) rp_wire_write_connection_total(out, found.total);
    return st;
}

static rp_status echo_why_blocked(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;

    (void)err;
    while (next(&reader, &f)) {
        if (f.number == 1) echo_waiting_call(&f, out);
        if (f.number == 2) rp_wire_write_waiting_total(out, (size_t)f.value);
    }
    return RP_OK;
}

static rp_status echo_status(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_wire_tables *list = NULL;
    rp_durable_info durable;
    bool is_durable = false;
    rp_status st = rp_wire_read_status(rp_allocator_default(), data, size, &list, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < list->count; i++) rp_wire_write_table_status(out, &list->tables[i]);
    rp_wire_tables_free(list);
    st = rp_wire_read_durability(data, size, &is_durable, &durable, err);
    if (st == RP_OK && is_durable) rp_wire_write_durability(out, &durable);
    return st;
}

static rp_selector_options selector_of(const rp_pb_field *field)
{
    rp_pb_reader reader = fields_of(field);
    rp_selector_options options = {RP_FIFO, 0};
    rp_pb_field f, inner;

    while (next(&reader, &f)) {
        if (f.number == 2) options.kind = RP_UNIFORM;
        if (f.number == 3) {
            rp_pb_reader parameters = fields_of(&f);
            options.kind = RP_PRIORITIZED;
            while (next(&parameters, &inner)) options.exponent = rp_wire_double(&inner);
        }
        if (f.number == 4) options.kind = number_in(&f, 1) ? RP_MIN_HEAP : RP_MAX_HEAP;
        if (f.number == 6) options.kind = RP_LIFO;
    }
    return options;
}

static void read_limiter(const rp_pb_field *field, rp_table_info *info)
{
    rp_pb_reader reader = fields_of(field);
    rp_pb_field f;

    while (next(&reader, &f)) {
        if (f.number == 1) info->limiter.samples_per_insert = rp_wire_double(&f);
        if (f.number == 2) info->limiter.min_diff = rp_wire_double(&f);
        if (f.number == 3) info->limiter.max_diff = rp_wire_double(&f);
        if (f.number == 4) info->limiter.min_size = (int64_t)f.value;
        if (f.number == 5) info->inserts = (int64_t)number_in(&f, 2);
        if (f.number == 6) info->samples = (int64_t)number_in(&f, 2);
    }
}

static rp_status read_table_info(const rp_pb_field *field, rp_table_info *info, rp_error *err)
{
    rp_pb_reader reader = fields_of(field);
    rp_status st = RP_OK;
    rp_pb_field f;

    *info = (rp_table_info){.name = NULL};
    while (st == RP_OK && next(&reader, &f)) {
        switch (f.number) {
        case 1: info->sampler = selector_of(&f); break;
        case 2: info->remover = selector_of(&f); break;
        case 3: info->max_size = (int64_t)f.value; break;
        case 4: info->max_times_sampled = rp_wire_int32(&f); break;
        case 5: read_limiter(&f, info); break;
        case 6:
            st = rp_wire_read_signature(rp_allocator_default(), f.data, f.size,
                                        &info->signature, err);
            break;
        case 7: info->size = (int64_t)f.value; break;
        case 8: info->name = text_of(&f); break;
        case 9: info->episodes = (int64_t)f.value; break;
        case 10: info->deleted_episodes = (int64_t)f.value; break;
        case 11: info->unique_samples = (int64_t)f.value; break;
        default: break;
        }
    }
    return st;
}

static rp_status echo_server_info(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_table_info tables[MAX_TABLES];
    uint64_t state_id[2] = {0, 0};
    size_t count = 0;
    rp_status st = RP_OK;
    rp_pb_field f;

    while (st == RP_OK && next(&reader, &f)) {
        if (f.number == 1) {
            state_id[0] = number_in(&f, 1);
            state_id[1] = number_in(&f, 2);
        }
        if (f.number == 2 && count < MAX_TABLES)
            st = read_table_info(&f, &tables[count++], err);
    }
    if (st == RP_OK) rp_wire_write_server_info(out, state_id, tables, count);
    for (size_t i = 0; i < count; i++) {
        free((char *)(uintptr_t)tables[i].name);
        rp_signature_unref(tables[i].signature);
    }
    return st;
}

/* The chunks that were read so far. */
typedef struct chunks {
    rp_chunk *all[MAX_CHUNKS];
    size_t count;
} chunks;

static rp_status add_chunk(chunks *c, const rp_pb_field *field, rp_error *err)
{
    rp_chunk *chunk;
    rp_status st;

    if (c->count == MAX_CHUNKS) return rp_fail(err, RP_NO_RESOURCE, "too many chunks");
    st = rp_chunk_parse(rp_allocator_default(), field->data, field->size, NULL, &chunk, err);
    if (st == RP_OK) c->all[c->count++] = chunk;
    return st;
}

static rp_chunk *find_chunk(const chunks *c, uint64_t key)
{
    for (size_t i = 0; i < c->count; i++)
        if (rp_chunk_get_origin(c->all[i])->key == key) return c->all[i];
    return NULL;
}

static void release_chunks(chunks *c)
{
    for (size_t i = 0; i < c->count; i++) rp_chunk_unref(c->all[i]);
    c->count = 0;
}

/* Makes the trajectory of a serialised item from the chunks that were read. */
static rp_status make_trajectory(const rp_pb_field *item, const chunks *c, rp_wire_item *read,
                                 rp_trajectory **out, rp_error *err)
{
    rp_wire_column wire_columns[MAX_COLUMNS];
    rp_wire_slice wire_slices[MAX_SLICES];
    rp_chunk_slice slices[MAX_SLICES];
    rp_slices columns[MAX_COLUMNS];
    size_t slice = 0;
    rp_status st = rp_wire_item_read(
        item->data, item->size,
        &(rp_wire_item_arrays){wire_columns, MAX_COLUMNS, wire_slices, MAX_SLICES}, read, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < read->column_count; i++) {
        columns[i] =
            (rp_slices){slices + slice, wire_columns[i].slice_count, wire_columns[i].squeeze};
        for (size_t j = 0; j < wire_columns[i].slice_count; j++, slice++) {
            const rp_wire_slice *s = &wire_slices[slice];
            rp_chunk *chunk = find_chunk(c, s->chunk_key);
            if (chunk == NULL) return rp_fail(err, RP_INVALID, "a chunk is missing");
            slices[slice] = (rp_chunk_slice){chunk, s->index, s->offset, s->length};
        }
    }
    return rp_trajectory_new(rp_allocator_default(), columns, read->column_count, out, err);
}

static int64_t time_of(const rp_pb_field *field)
{
    return (int64_t)(number_in(field, 1) * 1000000000 + number_in(field, 2));
}

/* Reads a sample from its SampleInfo. Sets `table` to the name of its table, of at most
 * MAX_TEXT bytes. */
static rp_status read_sample(const rp_pb_field *info, const chunks *c, rp_sample *sample,
                             char *table, rp_error *err)
{
    rp_pb_reader reader = fields_of(info), item_reader;
    rp_wire_item item = {0};
    rp_status st = RP_OK;
    rp_pb_field f, part;

    *sample = (rp_sample){0};
    while (st == RP_OK && next(&reader, &f)) {
        if (f.number == 2) sample->probability = rp_wire_double(&f);
        if (f.number == 3) sample->table_size = (int64_t)f.value;
        if (f.number == 4) sample->rate_limited = f.value != 0;
        if (f.number != 1) continue;
        st = make_trajectory(&f, c, &item, &sample->trajectory, err);
        item_reader = fields_of(&f);
        while (next(&item_reader, &part))
            if (part.number == 7) sample->inserted_at_ns = time_of(&part);
    }
    sample->key = item.key;
    sample->priority = item.priority;
    sample->times_sampled = item.times_sampled;
    (void)snprintf(table, MAX_TEXT, "%.*s", (int)item.table.size,
                   item.table.size > 0 ? item.table.data : "");
    return st;
}

/* Appends the bytes that a closed message would send to `out`, without the prefix. */
static rp_status flush_reply(rp_message *reply, rp_buf *out, rp_error *err)
{
    rp_buf whole;
    const uint8_t *data;
    size_t size;

    if (!rp_message_close(reply)) return rp_fail_memory(err, 0);
    rp_buf_init(&whole, rp_allocator_default());
    while (rp_message_remaining(reply) > 0) {
        size = rp_message_take(reply, 1000, &data);
        rp_buf_append(&whole, data, size);
    }
    rp_buf_append(out, whole.data + RP_GRPC_PREFIX, whole.size - RP_GRPC_PREFIX);
    rp_buf_deinit(&whole);
    return RP_OK;
}

static rp_status echo_stream_entry(const rp_pb_field *entry, rp_message *reply, rp_error *err)
{
    rp_pb_reader reader = fields_of(entry);
    chunks c = {.count = 0};
    rp_pb_field f, info = {0};
    rp_status st = RP_OK;
    rp_sample sample = {0};
    char table[MAX_TEXT];

    while (st == RP_OK && next(&reader, &f)) {
        if (f.number == 1) info = f;
        if (f.number == 2) st = add_chunk(&c, &f, err);
    }
    if (st == RP_OK) st = read_sample(&info, &c, &sample, table, err);
    if (st == RP_OK &&
        !rp_sample_entry_append(reply, &sample, table, strlen(table), 0,
                                rp_trajectory_chunk_count(sample.trajectory), NULL))
        st = rp_fail_memory(err, 0);
    /* The message holds a reference to the trajectory that it borrows, until it is released. */
    if (st == RP_OK && !rp_message_hold(reply, sample.trajectory)) st = rp_fail_memory(err, 0);
    release_chunks(&c);
    return st;
}

static rp_status echo_sample_stream(const uint8_t *data, size_t size, rp_buf *out,
                                    rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_message_pool pool;
    rp_message *reply;
    rp_status st = RP_OK;
    rp_pb_field f;

    rp_message_pool_init(&pool, rp_allocator_default());
    reply = rp_message_new(&pool);
    while (st == RP_OK && next(&reader, &f))
        if (f.number == 1) st = echo_stream_entry(&f, reply, err);
    if (st == RP_OK) st = flush_reply(reply, out, err);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    return st;
}

static rp_status echo_entry(const rp_pb_field *entry, const chunks *c, rp_message *reply,
                            rp_error *err)
{
    rp_pb_reader reader = fields_of(entry);
    rp_pb_field f, info = {0};
    rp_sample sample = {0};
    double weight = 0;
    char table[MAX_TEXT];
    rp_status st;

    while (next(&reader, &f)) {
        if (f.number == 1) info = f;
        if (f.number == 2) weight = rp_wire_double(&f);
    }
    st = read_sample(&info, c, &sample, table, err);
    sample.weight = weight;
    if (st == RP_OK && !rp_wire_add_entry(reply, &sample, table)) st = rp_fail_memory(err, 0);
    rp_trajectory_unref(sample.trajectory);
    return st;
}

/* Echoes SampleResponse and PeekResponse. */
static rp_status echo_draw(const uint8_t *data, size_t size, rp_buf *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    chunks c = {.count = 0};
    rp_message_pool pool;
    rp_message *reply;
    rp_status st = RP_OK;
    rp_pb_field f;

    rp_message_pool_init(&pool, rp_allocator_default());
    reply = rp_message_new(&pool);
    while (st == RP_OK && next(&reader, &f)) {
        if (f.number == 1) {
            st = add_chunk(&c, &f, err);
            if (st == RP_OK && !rp_wire_add_chunk(reply, c.all[c.count - 1]))
                st = rp_fail_memory(err, 0);
        }
        if (f.number == 2) st = echo_entry(&f, &c, reply, err);
    }
    if (st == RP_OK) st = flush_reply(reply, out, err);
    rp_message_release(&pool, reply);
    rp_message_pool_deinit(&pool);
    release_chunks(&c);
    return st;
}

rp_status rp_test_echo_response(const char *message, const uint8_t *data, size_t size,
                                rp_buf *out, rp_error *err)
{
    static const struct {
        const char *message;
        echo_function *echo;
    } functions[] = {
        {"CheckpointResponse", echo_checkpoint},
        {"ClientsResponse", echo_clients},
        {"DeleteResponse", echo_found},
        {"HealthCheckResponse", echo_health},
        {"InitializeConnectionResponse", echo_empty}, /* address 0 */
        {"InsertStreamResponse", echo_insert_response},
        {"MutatePrioritiesResponse", echo_empty},
        {"PeekResponse", echo_draw},
        {"ResetResponse", echo_empty},
        {"SampleResponse", echo_draw},
        {"SampleStreamResponse", echo_sample_stream},
        {"ServerInfoResponse", echo_server_info},
        {"StatusResponse", echo_status},
        {"UpdateResponse", echo_found},
        {"WhyBlockedResponse", echo_why_blocked},
    };

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (strcmp(functions[i].message, message) == 0)
            return functions[i].echo(data, size, out, err);
    return rp_fail(err, RP_NOT_FOUND, "no such message: %s", message);
}
