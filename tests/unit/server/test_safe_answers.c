/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that wait for the journal. The test simulates the journal: changes get numbers from
 * a log that keeps them, and are safe when the test says so. */
#include <stdio.h>

#include "server/core/server_state.h"
#include "store/store.h"
#include "support/live_server.h"
#include "support/recorder.h"
#include "wire/request_write.h"

typedef struct scene {
    rp_test_live live;
    rp_test_recorder log;
    rp_test_client *client;
    rp_buf message;
} scene;

static int set_up(void **state)
{
    static scene s;

    rp_test_live_start(&s.live, NULL);
    rp_test_recorder_init(&s.log, NULL, 0);
    rp_store_set_log(s.live.store, &s.log.log);
    atomic_store(&s.live.server->safety.safe, 0);
    s.client = rp_test_live_connect(&s.live);
    assert_non_null(s.client);
    rp_buf_init(&s.message, rp_allocator_default());
    *state = &s;
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;

    rp_test_client_free(s->client);
    rp_test_live_end(&s->live);
    rp_store_set_log(s->live.store, NULL);
    rp_test_live_stop(&s->live);
    rp_test_recorder_deinit(&s->log);
    rp_buf_deinit(&s->message);
    return 0;
}

/* As the server does it when the journal tells. */
static void make_safe(scene *s, uint64_t lsn)
{
    rp_server *server = s->live.server;

    if (!rp_safety_raise(&server->safety, lsn)) return;
    for (size_t i = 0; i < server->worker_count; i++)
        rp_safe_waits_wake(&server->workers[i].safe_waits);
}

static uint64_t last_lsn(scene *s)
{
    uint64_t lsn;

    rp_mutex_lock(&s->log.mu);
    lsn = s->log.count;
    rp_mutex_unlock(&s->log.mu);
    return lsn;
}

/* Waits until so many changes are made. */
static void await_lsn(scene *s, uint64_t lsn)
{
    for (int i = 0; i < 5000 && last_lsn(s) < lsn; i++) rp_test_client_step(s->client, 1);
    assert_true(last_lsn(s) >= lsn);
}

static rp_test_stream *insert(scene *s, rp_test_stream *stream, const char *table, uint64_t key)
{
    if (stream == NULL) stream = rp_test_client_open(s->client, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&s->message, table, key, 10);
    rp_test_stream_put(stream, &s->message);
    return stream;
}

static void inserts_are_confirmed_when_they_are_safe_and_in_order(void **state)
{
    scene *s = *state;
    rp_test_stream *stream = NULL;

    for (uint64_t key = 1; key <= 3; key++) {
        stream = insert(s, stream, "replay", key);
        await_lsn(s, key);
    }
    rp_test_client_idle(s->client, 50);
    assert_int_equal(rp_test_confirmed(stream), 0);
    assert_int_equal(rp_test_live_info(&s->live, "replay").size, 3);
    make_safe(s, 2);
    assert_true(rp_test_await_confirmed(stream, 2));
    rp_test_client_idle(s->client, 50);
    assert_int_equal(rp_test_confirmed(stream), 2);
    make_safe(s, 3);
    assert_true(rp_test_await_confirmed(stream, 3));
    stream = insert(s, stream, "replay", 4);
    make_safe(s, 100); /* before or after it is in */
    assert_true(rp_test_await_confirmed(stream, 4));
}

static void a_stream_ends_when_all_is_confirmed(void **state)
{
    scene *s = *state;
    rp_test_stream *stream = insert(s, NULL, "replay", 1);

    rp_test_stream_end(stream);
    await_lsn(s, 1);
    rp_test_client_idle(s->client, 50);
    assert_false(stream->is_over);
    make_safe(s, 1);
    assert_true(rp_test_stream_wait(stream));
    assert_int_equal(stream->status, RP_OK);
    assert_int_equal(rp_test_confirmed(stream), 1);
}

static void streams_that_end_while_they_wait_leave_nothing_behind(void **state)
{
    scene *s = *state;
    rp_test_stream *streams[20];

    for (uint64_t i = 0; i < 20; i++) streams[i] = insert(s, NULL, "replay", i + 1);
    await_lsn(s, 20);
    for (int i = 0; i < 20; i += 2) rp_test_stream_reset(streams[i], 8);
    rp_test_client_idle(s->client, 20);
    make_safe(s, 20);
    for (int i = 1; i < 20; i += 2) assert_true(rp_test_await_confirmed(streams[i], 1));
    (void)insert(s, NULL, "replay", 99);
    await_lsn(s, 21); /* and it is closed by tear_down() while it waits */
}

static void a_part_of_a_batch_is_confirmed_when_that_is_safe(void **state)
{
    scene *s = *state;
    rp_test_stream *stream = rp_test_client_open(s->client, RP_TEST_REVERB "InsertStream");
    const uint64_t none[1] = {0};

    for (uint64_t key = 1; key <= 6; key++) rp_test_put_chunk(&s->message, key, 10);
    for (uint64_t key = 1; key <= 6; key++)
        rp_test_put_item(&s->message, "queue", key, 1.0, key, 0, 1);
    rp_test_put_keep(&s->message, none, 0);
    rp_test_stream_put(stream, &s->message); /* four of six find room */
    for (int i = 0; i < 5000 && rp_test_live_info(&s->live, "queue").waiting_inserts == 0; i++)
        rp_test_client_step(s->client, 1);
    rp_test_client_idle(s->client, 50);
    assert_int_equal(rp_test_confirmed(stream), 0);
    make_safe(s, last_lsn(s));
    assert_true(rp_test_await_confirmed(stream, 4));
    assert_true(rp_test_live_take(&s->live, "queue"));
    assert_true(rp_test_live_take(&s->live, "queue"));
    assert_true(rp_test_live_await(&s->live, "queue", 0, 0));
    rp_test_client_idle(s->client, 50);
    assert_int_equal(rp_test_confirmed(stream), 4);
    make_safe(s, last_lsn(s));
    assert_true(rp_test_await_confirmed(stream, 6));
}

/* Sends a call, which must not be answered before its change is safe. */
static void expect_late(scene *s, const char *path)
{
    uint64_t before = last_lsn(s);
    rp_test_stream *call = rp_test_client_open(s->client, path);

    rp_test_stream_put(call, &s->message);
    rp_test_stream_end(call);
    await_lsn(s, before + 1);
    rp_test_client_idle(s->client, 30);
    assert_false(call->is_over);
    make_safe(s, last_lsn(s));
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_OK);
}

static void changes_are_confirmed_when_they_are_safe(void **state)
{
    scene *s = *state;
    const rp_update update = {1, 2.0};
    const uint64_t key = 1;
    const rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE, .max_size = 100};
    rp_test_stream *stream = insert(s, NULL, "replay", 1);

    await_lsn(s, 1);
    make_safe(s, 1);
    assert_true(rp_test_await_confirmed(stream, 1));
    rp_test_put_update(&s->message, "replay", 1, 3.0);
    expect_late(s, RP_TEST_REVERB "MutatePriorities");
    rp_wire_write_update(&s->message, "replay", &update, 1);
    expect_late(s, RP_TEST_REPLAY "Update");
    rp_wire_write_delete(&s->message, "replay", &key, 1);
    expect_late(s, RP_TEST_REPLAY "Delete");
    rp_wire_write_alter_table(&s->message, "replay", &change);
    expect_late(s, RP_TEST_REPLAY "AlterTable");
    rp_wire_write_pause_table(&s->message, "replay", RP_SIDE_SAMPLES);
    expect_late(s, RP_TEST_REPLAY "PauseTable");
    rp_wire_write_pause_table(&s->message, "replay", RP_SIDE_SAMPLES);
    expect_late(s, RP_TEST_REPLAY "ResumeTable");
    rp_wire_write_reset_request(&s->message, "replay");
    expect_late(s, RP_TEST_REVERB "Reset");
}

static void a_call_that_waits_keeps_its_deadline(void **state)
{
    scene *s = *state;
    const rp_test_header timeout = {"grpc-timeout", "100m"};
    rp_test_stream *call =
        rp_test_client_open_with(s->client, RP_TEST_REVERB "Reset", &timeout, 1);

    rp_wire_write_reset_request(&s->message, "replay");
    rp_test_stream_put(call, &s->message);
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_DEADLINE);
    make_safe(s, 10); /* nobody is there any more */
    assert_int_equal(rp_test_client_unary(s->client, "/grpc.health.v1.Health/Check", "", 0),
                     RP_OK);
}

static void a_second_message_is_refused_while_the_first_waits(void **state)
{
    scene *s = *state;
    rp_test_stream *call = rp_test_client_open(s->client, RP_TEST_REVERB "Reset");

    for (int i = 0; i < 2; i++) {
        rp_wire_write_reset_request(&s->message, "replay");
        rp_test_stream_put(call, &s->message);
    }
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_INVALID);
    assert_int_equal(last_lsn(s), 1);
}

static void errors_are_sent_at_once(void **state)
{
    scene *s = *state;

    rp_wire_write_reset_request(&s->message, "nowhere");
    assert_int_equal(rp_test_client_unary(s->client, RP_TEST_REVERB "Reset", s->message.data,
                                          s->message.size),
                     RP_NOT_FOUND);
}

static void a_stream_is_paused_when_too_many_confirmations_wait(void **state)
{
    scene *s = *state;
    enum { ITEMS = 500, MESSAGES = 40 };
    rp_server_limits limits = {.stream_queued_bytes = 8 * ITEMS};
    rp_test_stream *stream;
    rp_error err;

    assert_ok_err(rp_server_reload(s->live.server, &limits, &err), &err);
    rp_test_client_idle(s->client, 20);
    stream = rp_test_client_open(s->client, RP_TEST_REVERB "InsertStream");
    for (uint64_t m = 0; m < MESSAGES; m++) {
        const uint64_t chunk = m + 1;
        rp_test_put_chunk(&s->message, chunk, 10000);
        for (uint64_t i = 0; i < ITEMS; i++)
            rp_test_put_item(&s->message, "replay", m * ITEMS + i + 1, 1.0, chunk, 0, 1);
        rp_test_stream_put(stream, &s->message);
    }
    rp_test_client_idle(s->client, 300);
    assert_int_equal(rp_test_confirmed(stream), 0);
    assert_true(rp_test_live_info(&s->live, "replay").size < MESSAGES * ITEMS / 2);
    for (int i = 0; i < 2000 && rp_test_confirmed(stream) < MESSAGES * ITEMS; i++) {
        make_safe(s, last_lsn(s));
        rp_test_client_idle(s->client, 5);
    }
    assert_int_equal(rp_test_confirmed(stream), MESSAGES * ITEMS);
}

RP_TESTS(safe_answers)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(inserts_are_confirmed_when_they_are_safe_and_in_order),
        CASE(a_stream_ends_when_all_is_confirmed),
        CASE(streams_that_end_while_they_wait_leave_nothing_behind),
        CASE(a_part_of_a_batch_is_confirmed_when_that_is_safe),
        CASE(changes_are_confirmed_when_they_are_safe),
        CASE(a_call_that_waits_keeps_its_deadline),
        CASE(a_second_message_is_refused_while_the_first_waits),
        CASE(errors_are_sent_at_once),
        CASE(a_stream_is_paused_when_too_many_confirmations_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
