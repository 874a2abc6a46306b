/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that visit every table: a turn of the loop runs some of them, and all get responses. */
#include "server/core/deferral.h"

#include <stdio.h>

#include "support/live_server.h"

enum { CALLS = 640, A_TURN = 16 };

static rp_loop_metrics metrics(const rp_test_live *live)
{
    rp_loop_metrics sums;

    rp_metrics_sum(live->server->metrics, &sums);
    return sums;
}

/* One client on one loop, which knows how many calls it may have open. */
static rp_test_client *start(rp_test_live *live)
{
    const rp_server_options options = {.loops = 1};
    rp_test_client *client;

    rp_test_live_start(live, &options);
    client = rp_test_live_connect(live);
    assert_non_null(client);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    return client;
}

static void a_turn_runs_some_of_many_calls_and_all_complete(void **state)
{
    static const char *const methods[] = {RP_TEST_REVERB "ServerInfo", RP_TEST_REPLAY "Status",
                                          RP_TEST_REPLAY "WhyBlocked"};

    (void)state;
    for (size_t m = 0; m < sizeof methods / sizeof *methods; m++) {
        rp_test_live live;
        rp_test_client *client = start(&live);
        rp_loop_metrics before = metrics(&live), after;
        size_t answered = 0;

        for (int i = 0; i < CALLS; i++) {
            rp_test_stream *call = rp_test_client_open(client, methods[m]);
            rp_test_stream_send(call, "", 0);
            rp_test_stream_end(call);
        }
        for (rp_test_stream *call = client->calls; call != NULL; call = call->next) {
            assert_true(rp_test_stream_wait(call));
            assert_int_equal(call->status, RP_OK);
            answered += call->message_count;
        }
        after = metrics(&live);
        assert_int_equal(answered, CALLS + 1);
        assert_true(rp_counter_get(&after.turns) - rp_counter_get(&before.turns) >=
                    CALLS / A_TURN - 2); /* the last one may not be over */
        rp_test_client_free(client);
        rp_test_live_stop(&live);
    }
}

static void deferred_calls_may_be_cancelled(void **state)
{
    rp_test_live live;
    rp_test_client *client, *other;

    (void)state;
    client = start(&live);
    other = rp_test_live_connect(&live);
    for (int i = 0; i < CALLS; i++) {
        rp_test_stream *call = rp_test_client_open(client, RP_TEST_REVERB "ServerInfo");
        rp_test_stream_send(call, "", 0);
        if (i % 3 == 0) rp_test_stream_end(call);
        if (i % 2 == 0) rp_test_stream_reset(call, NGHTTP2_CANCEL);
    }
    (void)rp_test_client_step(client, 0);
    rp_test_client_free(client); /* and the rest goes with the connection */
    assert_int_equal(rp_test_client_unary(other, RP_TEST_REVERB "ServerInfo", "", 0), RP_OK);
    rp_test_client_free(other);
    rp_test_live_stop(&live);
}

static void a_second_message_of_a_deferred_call_is_dropped(void **state)
{
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *last = NULL;

    (void)state;
    client = start(&live);
    for (int i = 0; i < CALLS; i++) {
        last = rp_test_client_open(client, RP_TEST_REVERB "ServerInfo");
        rp_test_stream_send(last, "", 0);
        rp_test_stream_send(last, "", 0);
        rp_test_stream_end(last);
    }
    assert_true(rp_test_stream_wait(last));
    assert_int_equal(last->status, RP_OK); /* as if it had not been deferred */
    assert_int_equal(last->message_count, 1);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

enum { COLUMNS = 256, NAME_BYTES = 4000 };

/* Adds a table whose signature has about a MiB. */
static void add_wide(rp_test_live *live)
{
    static char names[COLUMNS][NAME_BYTES + 24];
    rp_spec specs[COLUMNS];
    rp_table_options options = {.name = "wide",
                                .sampler = {.kind = RP_FIFO},
                                .remover = {.kind = RP_FIFO},
                                .limiter = rp_limiter_min_size(1),
                                .max_size = 10};

    for (size_t i = 0; i < COLUMNS; i++) {
        memset(names[i], 'x', NAME_BYTES);
        (void)snprintf(names[i] + NAME_BYTES, 24, "%zu", i);
        specs[i] = (rp_spec){names[i], RP_FLOAT32, {0, {0}}};
    }
    assert_ok_err(
        rp_signature_flat(&live->alloc, specs, COLUMNS, &options.signature, &live->err),
        &live->err);
    assert_ok_err(rp_store_add_table(live->store, &options, NULL, &live->err), &live->err);
    rp_signature_unref(options.signature);
}

static const rp_server_options narrow = {
    .loops = 1, .limits = {.queued_bytes = 1 << 20, .message_bytes = 256 << 10}};

/* The response would have a MiB, and there is room for less: it is not made first. */
static void a_response_over_the_queue_budget_takes_no_memory(void **state)
{
    rp_test_live live;
    rp_test_client *client;
    rp_loop_metrics sums;
    size_t before;

    (void)state;
    rp_test_live_start(&live, &narrow);
    client = rp_test_live_connect(&live);
    add_wide(&live);
    before = atomic_load(&live.oom.live_bytes);
    atomic_store(&live.oom.peak_bytes, before);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0),
                     RP_NO_RESOURCE);
    assert_true(atomic_load(&live.oom.peak_bytes) - before < 900 << 10);
    sums = metrics(&live);
    assert_int_equal(rp_counter_get(&sums.refusals[RP_REFUSED_QUEUED]), 1);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* Each writes more than 256 KiB before it is refused: a turn runs half as many. */
static void a_large_response_counts_as_several_calls(void **state)
{
    rp_test_live live;
    rp_test_client *client;
    rp_loop_metrics before, after;

    (void)state;
    rp_test_live_start(&live, &narrow);
    client = rp_test_live_connect(&live);
    add_wide(&live);
    assert_int_equal(rp_test_client_unary(client, RP_TEST_REVERB "ServerInfo", "", 0),
                     RP_NO_RESOURCE);
    before = metrics(&live);
    for (int i = 0; i < CALLS; i++) {
        rp_test_stream *call = rp_test_client_open(client, RP_TEST_REVERB "ServerInfo");
        rp_test_stream_send(call, "", 0);
        rp_test_stream_end(call);
    }
    for (rp_test_stream *call = client->calls; call != NULL; call = call->next) {
        assert_true(rp_test_stream_wait(call));
        assert_int_equal(call->status, RP_NO_RESOURCE);
    }
    after = metrics(&live);
    assert_true(rp_counter_get(&after.turns) - rp_counter_get(&before.turns) >=
                CALLS / (A_TURN / 2) - 2);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

RP_TESTS(deferral)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_runs_some_of_many_calls_and_all_complete),
        cmocka_unit_test(deferred_calls_may_be_cancelled),
        cmocka_unit_test(a_second_message_of_a_deferred_call_is_dropped),
        cmocka_unit_test(a_response_over_the_queue_budget_takes_no_memory),
        cmocka_unit_test(a_large_response_counts_as_several_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
