/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that visit every table: a turn of the loop runs some, and all have their answers. */
#include "server/core/deferral.h"

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

static void a_turn_runs_some_of_many_calls_and_all_are_answered(void **state)
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

static void deferred_calls_may_be_taken_back(void **state)
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

static void a_second_message_ends_a_deferred_call(void **state)
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
    assert_int_equal(last->status, RP_INVALID);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

RP_TESTS(deferral)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_runs_some_of_many_calls_and_all_are_answered),
        cmocka_unit_test(deferred_calls_may_be_taken_back),
        cmocka_unit_test(a_second_message_ends_a_deferred_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
