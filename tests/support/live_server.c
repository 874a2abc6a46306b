/* SPDX-License-Identifier: Apache-2.0 */
#include "support/live_server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"
#include "wire/fields.h"

static void add_table(rp_test_live *live, rp_table_options options)
{
    assert_ok_err(rp_store_add_table(live->store, &options, NULL, &live->err), &live->err);
}

static void add_tables(rp_test_live *live)
{
    static const rp_spec column = {"x", RP_UINT8, {.rank = 2, .dims = {-1, -1}}};
    rp_signature *signature = NULL;

    assert_ok(rp_signature_flat(&live->alloc, &column, 1, &signature, NULL));
    add_table(live, (rp_table_options){.name = "replay",
                                       .sampler = {.kind = RP_UNIFORM},
                                       .limiter = rp_limiter_min_size(1),
                                       .max_size = 10000});
    add_table(live, (rp_table_options){.name = "queue",
                                       .limiter = rp_limiter_queue(4),
                                       .max_size = 4,
                                       .max_times_sampled = 1});
    add_table(live, (rp_table_options){.name = "slow",
                                       .sampler = {.kind = RP_UNIFORM},
                                       .limiter = rp_limiter_ratio(2.0, 2, 4.0),
                                       .max_size = 1000});
    add_table(live, (rp_table_options){.name = "strict",
                                       .sampler = {RP_PRIORITIZED, 0.6},
                                       .limiter = rp_limiter_min_size(1),
                                       .max_size = 100,
                                       .signature = signature});
    rp_signature_unref(signature);
}

void rp_test_live_init(rp_test_live *live, const rp_store_options *store)
{
    rp_store_options options = store != NULL ? *store : (rp_store_options){0};

    *live = (rp_test_live){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED)};
    live->alloc = rp_test_oom_allocator(&live->oom);
    options.alloc = &live->alloc;
    options.seed = 7;
    assert_ok_err(rp_store_new(&options, &live->store, &live->err), &live->err);
    add_tables(live);
    (void)snprintf(live->folder, sizeof live->folder, "/tmp/reprise-test-XXXXXX");
    assert_non_null(mkdtemp(live->folder));
    (void)snprintf(live->path, sizeof live->path, "%s/socket", live->folder);
}

/* Binds a socket to the port, which does not listen. Without one the test goes on. */
static void hold_port(rp_test_live *live)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)live->port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0) return;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd > 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        live->holder = fd;
    else
        (void)close(fd);
}

static void release_port(rp_test_live *live)
{
    if (live->holder > 0) (void)close(live->holder);
    live->holder = 0;
}

rp_status rp_test_live_try(rp_test_live *live, const rp_server_options *options)
{
    rp_server_options o = options != NULL ? *options : (rp_server_options){0};
    char local[112];
    const char *addresses[] = {"127.0.0.1:0", local};
    rp_status st;

    (void)snprintf(local, sizeof local, "unix:%s", live->path);
    o.alloc = &live->alloc;
    if (o.address_count == 0) {
        o.addresses = addresses;
        o.address_count = 2;
    }
    if (o.loops == 0) o.loops = 2;
    release_port(live);
    st = rp_server_start(live->store, &o, &live->server, &live->err);
    if (st == RP_OK) live->port = rp_server_port(live->server);
    return st;
}

void rp_test_live_start_with(rp_test_live *live, const rp_server_options *options,
                             const rp_store_options *store)
{
    rp_test_live_init(live, store);
    assert_ok_err(rp_test_live_try(live, options), &live->err);
}

void rp_test_live_start(rp_test_live *live, const rp_server_options *options)
{
    rp_test_live_start_with(live, options, NULL);
}

void rp_test_live_end(rp_test_live *live)
{
    bool was_open = live->server != NULL && live->port > 0;

    rp_server_free(live->server);
    live->server = NULL;
    if (was_open) hold_port(live);
}

void rp_test_live_stop(rp_test_live *live)
{
    rp_table *tables[16];
    size_t count;

    rp_test_live_end(live);
    release_port(live);
    count = rp_store_tables(live->store, tables, 16);
    for (size_t i = 0; i < count && i < 16; i++) {
        rp_table_info info;
        rp_table_get_info(tables[i], &info);
        assert_true(rp_table_check(tables[i]));
        assert_int_equal(info.waiting_inserts, 0);
        assert_int_equal(info.waiting_samples, 0);
    }
    rp_store_free(live->store);
    (void)unlink(live->path);
    assert_int_equal(rmdir(live->folder), 0);
    assert_int_equal(live->oom.live, 0);
    assert_int_equal(live->oom.live_bytes, 0);
}

rp_test_client *rp_test_live_connect_with(const rp_test_live *live,
                                          const rp_test_client_options *options)
{
    rp_test_client *client = rp_test_client_new(options);

    if (rp_test_client_connect(client, live->port)) return client;
    rp_test_client_free(client);
    return NULL;
}

rp_test_client *rp_test_live_connect(const rp_test_live *live)
{
    return rp_test_live_connect_with(live, NULL);
}

rp_test_client *rp_test_live_connect_unix(const rp_test_live *live)
{
    rp_test_client *client = rp_test_client_new(NULL);

    if (rp_test_client_connect_unix(client, live->path)) return client;
    rp_test_client_free(client);
    return NULL;
}

rp_table_info rp_test_live_info(const rp_test_live *live, const char *table)
{
    rp_table_info info = {0};
    rp_table *t = rp_store_find_table(live->store, (rp_string){table, strlen(table)});

    if (t != NULL) rp_table_get_info(t, &info);
    rp_table_unref(t);
    return info;
}

bool rp_test_live_await(const rp_test_live *live, const char *table, int64_t inserts,
                        int64_t samples)
{
    for (int i = 0; i < 10000; i++) {
        const struct timespec moment = {.tv_nsec = 1000000};
        rp_table_info info = rp_test_live_info(live, table);
        if (info.waiting_inserts == inserts && info.waiting_samples == samples) return true;
        (void)nanosleep(&moment, NULL);
    }
    return false;
}

bool rp_test_live_take(const rp_test_live *live, const char *table)
{
    rp_table *t = rp_store_find_table(live->store, (rp_string){table, strlen(table)});
    rp_sample_options options = {.count = 1};
    rp_sample sample;
    size_t done = 0;
    rp_status st = RP_NOT_FOUND;

    if (t != NULL) st = rp_table_sample(t, &options, &sample, &done, rp_wait_none(), NULL);
    if (st == RP_OK) rp_samples_release(&sample, done);
    rp_table_unref(t);
    return st == RP_OK && done == 1;
}

void rp_test_put_chunk(rp_buf *out, uint64_t key, size_t bytes)
{
    rp_chunk *chunk = rp_test_try_blob(rp_allocator_default(), key, 1, bytes);
    size_t size;
    const uint8_t *wire;

    if (chunk == NULL) abort();
    wire = rp_chunk_wire(chunk, &size);
    rp_wire_put_bytes(out, 1, wire, size);
    rp_chunk_unref(chunk);
}

void rp_test_put_item(rp_buf *out, const char *table, uint64_t key, double priority,
                      uint64_t chunk, uint32_t offset, uint32_t length)
{
    size_t item = rp_wire_begin(out, 2), trajectory, column, slice;

    rp_wire_put_number(out, 1, key);
    rp_wire_put_text(out, 2, table);
    rp_wire_put_double(out, 5, priority);
    trajectory = rp_wire_begin(out, 8);
    column = rp_wire_begin(out, 1);
    slice = rp_wire_begin(out, 1);
    rp_wire_put_number(out, 1, chunk);
    rp_wire_put_number(out, 2, offset);
    rp_wire_put_number(out, 3, length);
    rp_wire_end(out, slice);
    rp_wire_end(out, column);
    rp_wire_end(out, trajectory);
    rp_wire_end(out, item);
}

void rp_test_put_keep(rp_buf *out, const uint64_t *keys, size_t count)
{
    rp_wire_put_packed(out, 3, keys, count);
}

void rp_test_put_insert(rp_buf *out, const char *table, uint64_t key, size_t bytes)
{
    rp_test_put_chunk(out, key, bytes);
    rp_test_put_item(out, table, key, 1.0, key, 0, 1);
}

void rp_test_put_sample(rp_buf *out, const char *table, int64_t count, int64_t timeout_ms)
{
    rp_wire_put_text(out, 1, table);
    rp_wire_put_int(out, 2, count);
    if (timeout_ms >= -1) {
        size_t mark = rp_wire_begin(out, 3);
        rp_wire_put_int(out, 1, timeout_ms);
        rp_wire_end(out, mark);
    }
}

void rp_test_put_update(rp_buf *out, const char *table, uint64_t key, double priority)
{
    size_t mark;

    rp_wire_put_text(out, 1, table);
    mark = rp_wire_begin(out, 2);
    rp_wire_put_number(out, 1, key);
    rp_wire_put_double(out, 2, priority);
    rp_wire_end(out, mark);
}

void rp_test_stream_put(rp_test_stream *stream, rp_buf *message)
{
    if (message->bad) abort();
    rp_test_stream_send(stream, message->data, message->size);
    rp_buf_clear(message);
}

size_t rp_test_confirmed(const rp_test_stream *stream)
{
    size_t count = 0;

    for (size_t i = 0; i < stream->message_count; i++) {
        size_t size;
        const uint8_t *data = rp_test_stream_message(stream, i, &size);
        rp_pb_reader reader = rp_pb_open(data, size);
        rp_pb_field field;
        while (rp_pb_next(&reader, &field) == RP_PB_FIELD)
            if (!rp_wire_count_numbers(&field, &count)) abort();
    }
    return count;
}

/* Returns the number of entries of a response that end a sample. */
static size_t ends(const uint8_t *data, size_t size)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field entry, field;
    size_t count = 0;

    while (rp_pb_next(&reader, &entry) == RP_PB_FIELD) {
        rp_pb_reader inner = rp_pb_open(entry.data, entry.size);
        while (rp_pb_next(&inner, &field) == RP_PB_FIELD)
            if (field.number == 3 && field.value == 1) count++;
    }
    return count;
}

size_t rp_test_sampled(const rp_test_stream *stream)
{
    size_t count = 0;

    for (size_t i = 0; i < stream->message_count; i++) {
        size_t size;
        const uint8_t *data = rp_test_stream_message(stream, i, &size);
        count += ends(data, size);
    }
    return count;
}

static bool await(rp_test_stream *stream, size_t (*counts)(const rp_test_stream *),
                  size_t count)
{
    while (counts(stream) < count) {
        size_t messages = stream->message_count;
        if (stream->is_over || !rp_test_stream_wait_messages(stream, messages + 1)) break;
        if (stream->message_count == messages) break;
    }
    return counts(stream) >= count;
}

bool rp_test_await_confirmed(rp_test_stream *stream, size_t count)
{
    return await(stream, rp_test_confirmed, count);
}

bool rp_test_await_sampled(rp_test_stream *stream, size_t count)
{
    return await(stream, rp_test_sampled, count);
}

void rp_test_insert_items(rp_test_client *client, const char *table, uint64_t first,
                          size_t count, size_t bytes)
{
    rp_test_stream *stream = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
    rp_buf message;

    rp_buf_init(&message, rp_allocator_default());
    for (size_t i = 0; i < count; i++) {
        rp_test_put_insert(&message, table, first + i, bytes);
        rp_test_stream_put(stream, &message);
    }
    rp_test_stream_end(stream);
    assert_true(rp_test_stream_wait(stream));
    assert_int_equal(stream->status, RP_OK);
    assert_int_equal(rp_test_confirmed(stream), count);
    rp_buf_deinit(&message);
}
