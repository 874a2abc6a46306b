/* SPDX-License-Identifier: Apache-2.0 */
/* A server whose tables are larger than memory. Items that are inserted over the network are
 * moved to disk and read again by every call that returns items. Calls that end meanwhile leave
 * nothing behind. */
#include <unistd.h>

#include "chunk/protobuf.h"
#include "reprise/client.h"
#include "reprise/sampler.h"
#include "reprise/server.h"
#include "support/caller.h"
#include "support/hosted.h"
#include "support/live_server.h"
#include "support/tier_rig.h"
#include "wire/fields.h"

#define REPLAY "/reprise.v1.Replay/"

enum { MEMORY = 2 << 20, CACHE = 256 << 10, ITEMS = 200, SMALL = 6000, LARGE = 40000 };

typedef struct stage {
    rp_tier_rig rig;
    rp_server *server;
    size_t bytes; /* of an item */
    rp_buf request;
} stage;

/* Inserts over a stream; large ones stay in the messages they came in until they are spilled.
 */
static void open_limited(stage *s, rp_selector_kind sampler, size_t bytes, size_t message_bytes)
{
    static const char *const address = "127.0.0.1:0";
    rp_server_options options = {.addresses = &address,
                                 .address_count = 1,
                                 .loops = 2,
                                 .limits = {.message_bytes = message_bytes}};
    rp_table_options table = rp_test_options("t", sampler, RP_FIFO, 100000);
    rp_test_live live = {0};
    rp_test_client *client;

    rp_tier_rig_init(&s->rig, NULL, &table, bytes == SMALL ? MEMORY / 4 : MEMORY,
                     bytes == SMALL ? CACHE / 4 : CACHE);
    options.alloc = &s->rig.bed.alloc;
    assert_ok_err(rp_server_start(s->rig.bed.store, &options, &s->server, &s->rig.bed.err),
                  &s->rig.bed.err);
    live.port = rp_server_port(s->server);
    client = rp_test_live_connect(&live);
    assert_non_null(client);
    rp_test_insert_items(client, "t", 1, ITEMS, bytes);
    rp_test_client_free(client);
    s->bytes = bytes;
    assert_true(rp_tier_rig_info(&s->rig).spilled_bytes > ITEMS / 2 * bytes);
    rp_buf_init(&s->request, rp_allocator_default());
}

static void open_stage(stage *s, rp_selector_kind sampler, size_t bytes)
{
    open_limited(s, sampler, bytes, 0);
}

static void close_stage(stage *s)
{
    rp_server_free(s->server);
    rp_buf_deinit(&s->request);
    rp_tier_rig_deinit(&s->rig);
}

/* Items have bytes that are all the low one of their key. */
static void assert_bytes(const uint8_t *data, size_t size, uint64_t key)
{
    for (size_t i = 0; i < size; i++) assert_int_equal(data[i], key & 0xff);
}

static void sample_with(stage *s, rp_client *client)
{
    rp_sampler_options options = {
        .table = "t", .max_samples = 400, .rate_limiter_timeout_ms = -1};
    uint8_t *data = malloc(s->bytes);
    rp_decoder *decoder = NULL;
    rp_sampler *sampler = NULL;
    size_t taken = 0, count;
    rp_sample samples[64];

    assert_non_null(data);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    assert_ok(rp_sampler_new(client, &options, &sampler, NULL));
    while (taken < 400) {
        assert_ok(rp_sampler_next(sampler, samples, 64, &count, rp_wait_ms(20000), NULL));
        for (size_t i = 0; i < count; i++) {
            const rp_trajectory *trajectory = samples[i].trajectory;
            assert_ok(rp_decoder_stack(decoder, &trajectory, 1, 0, data, s->bytes, NULL));
            assert_bytes(data, s->bytes, samples[i].key);
        }
        rp_decoder_clear(decoder);
        rp_samples_release(samples, count);
        taken += count;
    }
    rp_sampler_free(sampler);
    rp_decoder_free(decoder);
    free(data);
}

static void sample_over_the_network(size_t bytes)
{
    rp_client *client = NULL;
    char address[64];
    stage s;

    open_stage(&s, RP_UNIFORM, bytes);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", rp_server_port(s.server));
    assert_ok(rp_client_new(address, NULL, &client, NULL));
    sample_with(&s, client);
    rp_client_free(client);
    assert_true(rp_tier_rig_info(&s.rig).loads > 0);
    close_stage(&s);
}

static void sample_streams_read_spilled_items(void **state)
{
    (void)state;
    sample_over_the_network(SMALL);
    sample_over_the_network(LARGE);
}

static void a_local_client_samples_spilled_items(void **state)
{
    rp_client *client = NULL;
    stage s;

    (void)state;
    open_stage(&s, RP_UNIFORM, LARGE);
    assert_ok(rp_client_local(s.rig.bed.store, NULL, &client, NULL));
    sample_with(&s, client);
    rp_client_free(client);
    close_stage(&s);
}

static rp_buf *ask_for_samples(stage *s, int64_t count)
{
    rp_buf_clear(&s->request);
    rp_wire_put_text(&s->request, 1, "t");
    rp_wire_put_int(&s->request, 2, count);
    return &s->request;
}

static rp_buf *ask_for_items(stage *s, const uint64_t *keys, size_t count)
{
    rp_buf_clear(&s->request);
    rp_wire_put_text(&s->request, 1, "t");
    rp_wire_put_packed(&s->request, 2, keys, count);
    rp_wire_put_number(&s->request, 3, 1);
    return &s->request;
}

/* The chunks of an answer are whole. Returns how many. */
static size_t check_chunks(const rp_test_outcome *outcome, size_t bytes)
{
    rp_pb_reader reader = rp_pb_open(outcome->message.data, outcome->message.size);
    uint8_t *data = malloc(bytes);
    rp_decoder *decoder = NULL;
    size_t count = 0;
    rp_pb_field f;

    assert_non_null(data);
    assert_int_equal(outcome->status, 0);
    assert_ok(rp_decoder_new(rp_allocator_default(), 0, &decoder));
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        rp_chunk *chunk = NULL;
        if (f.number != 1) continue;
        assert_ok(rp_chunk_parse(rp_allocator_default(), f.data, f.size, NULL, &chunk, NULL));
        assert_ok(rp_decoder_rows(decoder, chunk, (rp_row_range){0, 0, 1}, data, bytes, NULL));
        assert_bytes(data, bytes, rp_chunk_get_origin(chunk)->key);
        rp_decoder_clear(decoder);
        rp_chunk_unref(chunk);
        count++;
    }
    rp_decoder_free(decoder);
    free(data);
    return count;
}

static void calls_read_items_from_disk(void **state)
{
    rp_test_caller *caller;
    uint64_t keys[] = {1, 2, 3, ITEMS, ITEMS - 1, 7, 99999};
    stage s;

    (void)state;
    open_stage(&s, RP_FIFO, SMALL);
    caller = rp_test_caller_open(rp_server_port(s.server));
    for (int round = 0; round < 2; round++) { /* the second time they are in the cache */
        rp_buf *request = ask_for_items(&s, keys, COUNT_OF(keys));
        const rp_test_outcome *outcome =
            rp_test_call_wait(caller, rp_test_call_start(caller, REPLAY "Peek", request->data,
                                                         request->size, NULL));
        assert_int_equal(check_chunks(outcome, SMALL), 6);
        request = ask_for_samples(&s, 20); /* the same ones: they are not spread over keys */
        outcome =
            rp_test_call_wait(caller, rp_test_call_start(caller, REPLAY "Sample", request->data,
                                                         request->size, NULL));
        assert_in_range(check_chunks(outcome, SMALL), 1, 20);
    }
    assert_true(rp_tier_rig_info(&s.rig).loads > 0);
    rp_test_caller_close(caller);
    close_stage(&s);
}

/* A Peek whose chunks do not fit into a message reads none of them, however many they are. */
static void a_peek_over_the_limit_reads_nothing_issue_20(void **state)
{
    uint64_t keys[ITEMS / 2];
    const rp_test_outcome *outcome;
    rp_test_caller *caller;
    rp_buf *request;
    uint64_t loads;
    stage s;

    (void)state;
    open_limited(&s, RP_UNIFORM, LARGE, 1 << 20);
    caller = rp_test_caller_open(rp_server_port(s.server));
    for (size_t i = 0; i < COUNT_OF(keys); i++) keys[i] = i + 1;
    loads = rp_tier_rig_info(&s.rig).loads;
    request = ask_for_items(&s, keys, COUNT_OF(keys));
    outcome = rp_test_call_wait(
        caller, rp_test_call_start(caller, REPLAY "Peek", request->data, request->size, NULL));
    assert_int_equal(outcome->status, 8); /* RESOURCE_EXHAUSTED */
    assert_int_equal(rp_tier_rig_info(&s.rig).loads, loads);
    /* A chunk that several items have is read once, and counts once. */
    for (size_t i = 0; i < COUNT_OF(keys); i++) keys[i] = i % 20 + 1;
    request = ask_for_items(&s, keys, COUNT_OF(keys));
    outcome = rp_test_call_wait(
        caller, rp_test_call_start(caller, REPLAY "Peek", request->data, request->size, NULL));
    assert_int_equal(check_chunks(outcome, LARGE), 20);
    rp_test_caller_close(caller);
    close_stage(&s);
}

/* Callers that hang up while the disk is being read. */
static void calls_may_end_during_a_disk_read(void **state)
{
    uint64_t keys[40];
    stage s;

    (void)state;
    open_stage(&s, RP_UNIFORM, SMALL);
    for (int round = 0; round < 30; round++) {
        rp_test_caller *caller = rp_test_caller_open(rp_server_port(s.server));

        for (int i = 0; i < 4; i++) {
            rp_buf *request;

            for (size_t k = 0; k < COUNT_OF(keys); k++)
                keys[k] = (uint64_t)(round * 7 + i * 3 + (int)k * 5) % ITEMS + 1;
            request =
                i % 2 == 0 ? ask_for_items(&s, keys, COUNT_OF(keys)) : ask_for_samples(&s, 40);
            (void)rp_test_call_start(caller, i % 2 == 0 ? REPLAY "Peek" : REPLAY "Sample",
                                     request->data, request->size, NULL);
        }
        (void)usleep((useconds_t)round * 100);
        rp_test_caller_close(caller);
    }
    close_stage(&s);
}

/* A record that cannot be read ends the call that drew it, and the server goes on. */
static void damage_on_disk_is_an_error(void **state)
{
    uint64_t bad = 2, good = 3;
    rp_test_caller *caller;
    rp_buf *request;
    rp_sample sample;
    rp_disk_location location;
    char path[32];
    stage s;

    (void)state;
    open_stage(&s, RP_UNIFORM, SMALL);
    assert_ok(rp_table_peek_unread(s.rig.table, &bad, 1, &sample, NULL, NULL));
    assert_true(rp_chunk_locate(rp_trajectory_get_chunk(sample.trajectory, 0), &location));
    rp_samples_release(&sample, 1);
    assert_true(rp_sim_flip(s.rig.disk, rp_segment_path(path, location.segment),
                            8 * (location.offset + 500)));
    caller = rp_test_caller_open(rp_server_port(s.server));
    request = ask_for_items(&s, &bad, 1);
    assert_int_equal(
        rp_test_call_wait(caller, rp_test_call_start(caller, REPLAY "Peek", request->data,
                                                     request->size, NULL))
            ->status,
        15); /* DATA_LOSS */
    request = ask_for_items(&s, &good, 1);
    assert_int_equal(
        check_chunks(
            rp_test_call_wait(caller, rp_test_call_start(caller, REPLAY "Peek", request->data,
                                                         request->size, NULL)),
            SMALL),
        1);
    rp_test_caller_close(caller);
    close_stage(&s);
}

static void describe(void *ctx, rp_server_view *view)
{
    *view = (rp_server_view){.store = ctx};
}

/* Returns the status of the page about an item. */
static int show_item(rp_tier_rig *rig, const char *key, rp_page_response *answer)
{
    rp_page_host host = {.ctx = rig->bed.store, .describe = describe};
    rp_page_ask ask;
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/tables/t/items/%s", key);
    rp_test_ask_for(&ask, path);
    rp_page_make(&host, &ask, answer);
    return answer->status;
}

/* A page about an item reads it from disk if it is not large. */
static void the_page_about_an_item_reads_a_bounded_part_of_the_disk(void **state)
{
    rp_table_options table = rp_test_options("t", RP_UNIFORM, RP_FIFO, 100000);
    rp_page_response answer = {0};
    rp_tier_rig rig;
    uint64_t loads;

    (void)state;
    rp_buf_init(&answer.body, rp_allocator_default());
    rp_tier_rig_init(&rig, NULL, &table, MEMORY, CACHE);
    for (uint64_t key = 1; key <= 50; key++)
        assert_ok(rp_tier_rig_put(&rig, key, LARGE, 20000));
    rp_tier_rig_await(rp_tier_rig_info(&rig).spilled_bytes > 20 * 2 * LARGE);
    loads = rp_tier_rig_info(&rig).loads;
    assert_int_equal(show_item(&rig, "1", &answer), 200);
    assert_true(rp_tier_rig_info(&rig).loads > loads);
    rp_tier_rig_deinit(&rig);

    rp_tier_rig_init(&rig, NULL, &table, 64 << 20, CACHE);
    assert_ok(rp_tier_rig_put(&rig, 1, 17 << 20, 20000)); /* has two rows of that */
    assert_int_equal(show_item(&rig, "1", &answer), 413);
    assert_int_equal(show_item(&rig, "2", &answer), 404);
    rp_tier_rig_deinit(&rig);
    rp_buf_deinit(&answer.body);
}

RP_TESTS(tier_served)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_streams_read_spilled_items),
        cmocka_unit_test(a_local_client_samples_spilled_items),
        cmocka_unit_test(calls_read_items_from_disk),
        cmocka_unit_test(a_peek_over_the_limit_reads_nothing_issue_20),
        cmocka_unit_test(calls_may_end_during_a_disk_read),
        cmocka_unit_test(damage_on_disk_is_an_error),
        cmocka_unit_test(the_page_about_an_item_reads_a_bounded_part_of_the_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
