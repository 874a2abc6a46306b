/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint, of a server whose store has a data directory. */
#include <stdio.h>
#include <unistd.h>

#include "support/live_server.h"
#include "wire/responses.h"

typedef struct scene {
    rp_test_live live;
    rp_durable *durable;
    rp_test_client *client;
    char folder[64];
} scene;

/* With so much time between two, after a few. */
static void begin(scene *s, int64_t spacing_ms)
{
    rp_durable_options storage = {.directory = s->folder, .period_ns = RP_FOREVER};
    rp_server_options options = {.limits = {.checkpoint_spacing_ms = spacing_ms}};

    rp_test_live_init(&s->live, NULL);
    (void)snprintf(s->folder, sizeof s->folder, "/tmp/reprise-data-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    assert_ok_err(rp_durable_open(&storage, s->live.store, &s->durable, &s->live.err),
                  &s->live.err);
    options.durable = s->durable;
    assert_ok_err(rp_test_live_try(&s->live, &options), &s->live.err);
    s->client = rp_test_live_connect(&s->live);
    assert_non_null(s->client);
}

static void end(scene *s)
{
    char command[96];

    rp_test_client_free(s->client);
    rp_test_live_end(&s->live);
    assert_ok_err(rp_durable_close(s->durable, &s->live.err), &s->live.err);
    rp_test_live_stop(&s->live);
    (void)snprintf(command, sizeof command, "rm -r %s", s->folder);
    assert_int_equal(system(command), 0);
}

static rp_test_stream *ask(rp_test_client *client)
{
    rp_test_stream *call = rp_test_client_open(client, RP_TEST_REVERB "Checkpoint");

    rp_test_stream_send(call, "", 0);
    rp_test_stream_end(call);
    return call;
}

static uint64_t written(scene *s)
{
    rp_durable_info info;

    rp_durable_get_info(s->durable, &info);
    return info.checkpoints;
}

static void checkpoint_returns_the_path_of_a_file(void **state)
{
    (void)state;
    char path[4096];
    rp_test_stream *call;
    const uint8_t *data;
    rp_string text;
    size_t size;
    scene s = {0};

    begin(&s, 0);
    rp_test_insert_items(s.client, "replay", 1, 10, 100);
    call = ask(s.client);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_OK);
    data = rp_test_stream_message(call, 0, &size);
    assert_ok(rp_wire_read_checkpoint_response(data, size, &text, NULL));
    (void)snprintf(path, sizeof path, "%.*s", (int)text.size, text.data);
    assert_int_equal(access(path, R_OK), 0);
    assert_memory_equal(path, s.folder, strlen(s.folder));
    end(&s);
}

static void concurrent_callers_share_checkpoints(void **state)
{
    (void)state;
    rp_test_stream *calls[40];
    uint64_t before;
    scene s = {0};

    begin(&s, 0);
    before = written(&s);
    for (int i = 0; i < 40; i++) calls[i] = ask(s.client);
    for (int i = 0; i < 40; i++) {
        assert_true(rp_test_stream_wait(calls[i]));
        assert_int_equal(calls[i]->status, RP_OK);
    }
    assert_true(written(&s) - before <= 6);
    end(&s);
}

/* So many at once, and the next one waits. */
static rp_test_stream *use_up(scene *s)
{
    rp_test_stream *call;

    for (int i = 0; i < 6; i++)
        assert_int_equal(rp_test_client_unary(s->client, RP_TEST_REVERB "Checkpoint", "", 0),
                         RP_OK);
    call = ask(s->client);
    rp_test_client_idle(s->client, 100);
    assert_false(call->is_over);
    return call;
}

static void frequent_checkpoints_are_spaced(void **state)
{
    (void)state;
    rp_test_stream *call;
    uint64_t before;
    scene s = {0};

    begin(&s, 300);
    for (int i = 0; i < 6; i++)
        assert_int_equal(rp_test_client_unary(s.client, RP_TEST_REVERB "Checkpoint", "", 0),
                         RP_OK);
    before = written(&s);
    call = ask(s.client);
    assert_true(rp_test_stream_wait(call)); /* it comes, in its time */
    assert_int_equal(call->status, RP_OK);
    assert_int_equal(written(&s), before + 1);
    end(&s);
}

static void calls_cancelled_while_waiting_are_forgotten(void **state)
{
    (void)state;
    const rp_test_header timeout = {"grpc-timeout", "50m"};
    rp_test_stream *call;
    uint64_t before;
    scene s = {0};

    begin(&s, 3600 * 1000);
    rp_test_stream_reset(use_up(&s), 8);
    call = rp_test_client_open_with(s.client, RP_TEST_REVERB "Checkpoint", &timeout, 1);
    rp_test_stream_send(call, "", 0);
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_DEADLINE);
    before = written(&s);
    (void)ask(s.client); /* is still waiting when the server ends */
    rp_test_client_idle(s.client, 20);
    assert_int_equal(written(&s), before);
    end(&s);
}

static void calls_cancelled_during_a_checkpoint_are_awaited(void **state)
{
    (void)state;
    rp_test_stream *calls[20];
    scene s = {0};

    begin(&s, 0);
    rp_test_insert_items(s.client, "replay", 1, 2000, 100);
    for (int i = 0; i < 20; i++) calls[i] = ask(s.client);
    rp_test_client_step(s.client, 1);
    for (int i = 0; i < 20; i += 2) rp_test_stream_reset(calls[i], 8);
    rp_test_client_step(s.client, 1);
    end(&s);
}

static void two_messages_or_none_are_refused(void **state)
{
    (void)state;
    rp_test_stream *call;
    scene s = {0};

    begin(&s, 3600 * 1000);
    call = use_up(&s);
    rp_test_stream_reset(call, 8);
    call = rp_test_client_open(s.client, RP_TEST_REVERB "Checkpoint");
    rp_test_stream_send(call, "", 0);
    rp_test_stream_send(call, "", 0);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_INVALID);
    call = rp_test_client_open(s.client, RP_TEST_REVERB "Checkpoint");
    rp_test_stream_end(call);
    assert_true(rp_test_stream_wait(call));
    assert_int_equal(call->status, RP_INVALID);
    end(&s);
}

RP_TESTS(checkpoint_call)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoint_returns_the_path_of_a_file),
        cmocka_unit_test(concurrent_callers_share_checkpoints),
        cmocka_unit_test(frequent_checkpoints_are_spaced),
        cmocka_unit_test(calls_cancelled_while_waiting_are_forgotten),
        cmocka_unit_test(calls_cancelled_during_a_checkpoint_are_awaited),
        cmocka_unit_test(two_messages_or_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
