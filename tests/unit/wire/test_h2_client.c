/* SPDX-License-Identifier: Apache-2.0 */
/* Our client and our server: calls of every kind, with bytes split anywhere. */
#include "support/h2_ends.h"

/* But for the one window update with which every client of ours begins. */
static size_t nuisance_count(const rp_test_ends *e)
{
    size_t sum = (size_t)0 - (e->nuisances[RP_NUISANCE_WINDOW] > 0);

    for (size_t i = 0; i < RP_NUISANCE_KINDS; i++) sum += e->nuisances[i];
    return sum;
}

static void assert_end(const rp_test_ends_call *call, rp_status status)
{
    if (call->status != status) print_error("%d: %s\n", call->status, call->text);
    assert_int_equal(call->ends, 1);
    assert_int_equal(call->closes, 1);
    assert_int_equal(call->status, status);
    if (status == RP_OK) assert_string_equal(call->text, "");
}

static void one_message_gets_one_response_at_every_size(void **state)
{
    static const size_t sizes[] = {
        0,       1,       5,       4095,    4096,    16379,   65530,    65536,
        1 << 20, 3000000, 4 << 20, 5000000, 7 << 20, 9000001, 16 << 20, RP_TEST_ENDS_BIG};
    rp_test_ends e;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        rp_test_ends_call *call = rp_test_ends_begin(&e, "/echo");
        assert_true(rp_test_ends_say(&e, call, sizes[i]));
        rp_call_half_close(call->call);
        rp_test_ends_carry(&e);
        assert_end(call, RP_OK);
        assert_int_equal(call->messages, 1);
        assert_int_equal(call->bytes, sizes[i]);
    }
    assert_int_equal(e.served_half_closes, COUNT_OF(sizes));
    assert_int_equal(nuisance_count(&e), 0);
    assert_true(e.in_place > 10 << 20);
    assert_int_equal(rp_h2_queued_bytes(e.client), 0);
    assert_int_equal(rp_h2_held_bytes(e.client), 0);
    rp_test_ends_deinit(&e);
}

/* All of a small call leaves in one write, though the server has said nothing yet. */
static void a_call_is_sent_before_the_server_has_greeted(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    call = rp_test_ends_begin(&e, "/echo");
    assert_true(rp_test_ends_say(&e, call, 1000));
    rp_call_half_close(call->call);
    e.is_whole = true;
    while (rp_test_ends_to_server(&e, SIZE_MAX) > 0) {}
    assert_int_equal(e.served_messages, 1);
    assert_int_equal(e.served_half_closes, 1);
    rp_test_ends_carry(&e);
    assert_end(call, RP_OK);
    assert_int_equal(call->messages, 1);
    rp_test_ends_deinit(&e);
}

static void the_server_can_send_many_messages(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    e.source_bytes = 300000;
    call = rp_test_ends_begin(&e, "/source");
    assert_true(rp_test_ends_say(&e, call, 100));
    rp_test_ends_carry(&e);
    assert_end(call, RP_OK); /* though we never closed our half */
    assert_int_equal(call->messages, 100);
    assert_int_equal(call->bytes, 100 * 300000);
    assert_int_equal(nuisance_count(&e), 0);
    assert_int_equal(e.served_closes, 1); /* our reset told it */
    rp_test_ends_deinit(&e);
}

static void the_client_can_send_many_messages(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    call = rp_test_ends_begin(&e, "/count");
    for (size_t i = 0; i < 300; i++) {
        assert_true(rp_test_ends_say(&e, call, i * 117 % 70000));
        if (i % 7 == 0) (void)rp_test_ends_to_server(&e, SIZE_MAX);
    }
    assert_int_equal(rp_call_queued_bytes(call->call) > 0, 1);
    rp_call_half_close(call->call);
    assert_true(rp_test_ends_say(&e, call, 5)); /* too late: not sent */
    rp_test_ends_carry(&e);
    assert_end(call, RP_OK);
    assert_int_equal(e.served_messages, 300);
    assert_int_equal(call->bytes, 300);
    rp_test_ends_deinit(&e);
}

static void on_room_is_called_when_half_of_the_queue_is_sent(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    rp_test_ends_carry(&e);
    call = rp_test_ends_begin(&e, "/count");
    for (size_t i = 0; i < 3; i++) assert_true(rp_test_ends_say(&e, call, 1 << 20));
    assert_int_equal(call->rooms, 0);
    rp_test_ends_carry(&e);
    assert_int_equal(call->rooms, 1);
    for (size_t i = 0; i < 3; i++) assert_true(rp_test_ends_say(&e, call, 1 << 20));
    rp_call_half_close(call->call);
    rp_test_ends_carry(&e);
    assert_int_equal(call->rooms, 1); /* nobody can use it */
    assert_end(call, RP_OK);
    rp_test_ends_deinit(&e);
}

static void both_send_at_once_within_the_windows(void **state)
{
    enum { CALLS = 5, ROUNDS = 40 };
    rp_test_ends e;
    rp_test_ends_call *calls[CALLS];
    size_t sent[CALLS] = {0};

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < CALLS; i++) calls[i] = rp_test_ends_begin(&e, "/echo");
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CALLS; i++) {
            size_t bits = rp_rng_next(&e.rng) % 23;
            size_t size = rp_rng_next(&e.rng) % ((size_t)1 << bits);
            assert_true(rp_test_ends_say(&e, calls[i], size));
            sent[i] += size;
        }
        (void)rp_test_ends_to_server(&e, SIZE_MAX);
        (void)rp_test_ends_to_client(&e, SIZE_MAX);
    }
    for (size_t i = 0; i < CALLS; i++) rp_call_half_close(calls[i]->call);
    rp_test_ends_carry(&e);
    for (size_t i = 0; i < CALLS; i++) {
        assert_end(calls[i], RP_OK);
        assert_int_equal(calls[i]->messages, ROUNDS);
        assert_int_equal(calls[i]->bytes, sent[i]);
    }
    assert_int_equal(nuisance_count(&e), 0);
    rp_test_ends_deinit(&e);
}

static void request_headers_carry_authorization_and_timeout(void **state)
{
    rp_test_ends e;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    (void)rp_test_ends_begin_with(&e, &(rp_call_head){.path = "/hang",
                                                      .authority = "a:1",
                                                      .authorization = "Bearer x",
                                                      .secure = true,
                                                      .timeout_ns = INT64_C(2500000000)});
    rp_test_ends_carry(&e);
    assert_int_equal(e.head.timeout_ns, INT64_C(2500000000));
    assert_string_equal(e.authorization, "Bearer x");
    (void)rp_test_ends_begin(&e, "/hang");
    rp_test_ends_carry(&e);
    assert_int_equal(e.head.timeout_ns, -1);
    assert_string_equal(e.authorization, "");
    rp_test_ends_deinit(&e);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(e.calls[i].status, RP_UNAVAILABLE); /* the connection was freed */
        assert_int_equal(e.calls[i].ends, 1);
    }
}

static void a_refusal_has_its_message(void **state)
{
    static const char *const paths[] = {"/fail", "/late"};
    rp_test_ends e;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < 2; i++) {
        rp_test_ends_call *call = rp_test_ends_begin(&e, paths[i]);
        assert_true(rp_test_ends_say(&e, call, 3 << 20)); /* which nobody will read */
        rp_test_ends_carry(&e);
        assert_end(call, RP_NOT_FOUND);
        assert_string_equal(call->text, RP_TEST_ENDS_TEXT);
        assert_int_equal(call->messages, i);
        assert_int_equal(rp_h2_queued_bytes(e.client), 0);
    }
    assert_int_equal(nuisance_count(&e), 0);
    rp_test_ends_deinit(&e);
}

static void an_http_page_is_an_error_by_its_status(void **state)
{
    static const int pages[][2] = {{401, RP_UNAUTHENTICATED}, {403, RP_DENIED},
                                   {404, RP_UNIMPLEMENTED},   {429, RP_UNAVAILABLE},
                                   {503, RP_UNAVAILABLE},     {500, RP_INTERNAL},
                                   {200, RP_INTERNAL}};
    rp_test_ends e;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        rp_test_ends_call *call = rp_test_ends_begin(&e, "/page");
        e.http_status = pages[i][0];
        rp_test_ends_carry(&e);
        assert_end(call, (rp_status)pages[i][1]);
        if (pages[i][0] != 200) assert_non_null(strstr(call->text, "HTTP status"));
    }
    rp_test_ends_deinit(&e);
}

static void a_message_over_the_limit_ends_the_call(void **state)
{
    const rp_h2_limits limits = {.streams = 100,
                                 .message_bytes = 1000,
                                 .header_bytes = 16384,
                                 .header_fields = 64,
                                 .queued_bytes = 2 << 20};
    rp_test_ends e;
    rp_test_ends_call *call, *other;

    (void)state;
    rp_test_ends_init(&e, &limits, NULL);
    other = rp_test_ends_begin(&e, "/echo");
    call = rp_test_ends_begin(&e, "/echo");
    assert_true(rp_test_ends_say(&e, call, 1000));
    assert_true(rp_test_ends_say(&e, call, 1001));
    rp_test_ends_carry(&e);
    assert_end(call, RP_NO_RESOURCE);
    assert_int_equal(call->messages, 1);
    assert_non_null(strstr(call->text, "1001 bytes"));
    assert_int_equal(e.served_closes, 1); /* it was taken back */
    assert_true(rp_test_ends_say(&e, other, 1000));
    rp_call_half_close(other->call);
    rp_test_ends_carry(&e);
    assert_end(other, RP_OK);
    rp_test_ends_deinit(&e);
}

static void a_paused_call_blocks_the_server_and_no_other_call(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call, *other;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    e.source_bytes = 100000;
    call = rp_test_ends_begin(&e, "/source");
    call->pause_after = 1;
    assert_true(rp_test_ends_say(&e, call, 250));
    rp_test_ends_carry(&e);
    assert_int_equal(call->messages, 1);
    assert_true(rp_h2_held_bytes(e.client) <= RP_H2_WINDOW + 200000);
    other = rp_test_ends_begin(&e, "/source");
    assert_true(rp_test_ends_say(&e, other, 250));
    rp_test_ends_carry(&e);
    assert_end(other, RP_OK);
    for (size_t i = 2; i <= 250; i++) {
        assert_int_equal(call->ends, 0);
        rp_call_resume(call->call);
        rp_test_ends_carry(&e);
        assert_int_equal(call->messages, i);
    }
    assert_int_equal(call->ends, 0); /* paused after the last one: its end waits, too */
    rp_call_resume(call->call);
    assert_end(call, RP_OK);
    assert_true(e.peak_held <= RP_H2_WINDOW + 200000 + 64 * 1024);
    rp_test_ends_deinit(&e);
}

/* Everything has arrived and the stream is closed; the messages are still to be had. */
static void a_paused_call_outlives_its_stream(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *calls[4];

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        calls[i] = rp_test_ends_begin(&e, "/echo");
        rp_call_pause(calls[i]->call);
        for (size_t k = 0; k < 5; k++) assert_true(rp_test_ends_say(&e, calls[i], 1000 * k));
        rp_call_half_close(calls[i]->call);
    }
    rp_test_ends_carry(&e);
    assert_int_equal(e.served_closes, 4);
    assert_int_equal(rp_h2_call_count(e.client), 4);
    assert_int_equal(e.client->streams, 0);
    calls[1]->pause_after = 2;
    calls[2]->cancel_after = 3; /* from within a message, with no stream behind it */
    for (size_t i = 0; i < 3; i++) rp_call_resume(calls[i]->call);
    assert_end(calls[0], RP_OK);
    assert_int_equal(calls[0]->messages, 5);
    assert_int_equal(calls[1]->messages, 2);
    assert_int_equal(calls[2]->messages, 3);
    assert_true(calls[2]->closes == 1 && calls[2]->ends == 0);
    rp_call_cancel(calls[3]->call);
    assert_true(calls[3]->closes == 1 && calls[3]->ends == 0);
    rp_call_resume(calls[1]->call);
    assert_int_equal(calls[1]->messages, 4);
    rp_test_ends_carry(&e);
    assert_int_equal(calls[1]->ends, 0);
    rp_call_resume(calls[1]->call);
    assert_int_equal(calls[1]->messages, 5);
    assert_end(calls[1], RP_OK);
    assert_int_equal(rp_h2_held_bytes(e.client), 0);
    rp_test_ends_deinit(&e);
}

static void a_paused_call_ends_unavailable_when_the_connection_is_freed(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    call = rp_test_ends_begin(&e, "/echo");
    rp_call_pause(call->call);
    assert_true(rp_test_ends_say(&e, call, 10));
    rp_call_half_close(call->call);
    rp_test_ends_carry(&e);
    rp_test_ends_close_client(&e);
    assert_end(call, RP_UNAVAILABLE); /* a message was lost */
    rp_test_ends_deinit(&e);
}

/* After so many bytes each way: whatever has happened by then. */
static void a_call_can_be_cancelled_at_any_time(void **state)
{
    (void)state;
    for (size_t steps = 0; steps < 120; steps += rp_test_length(rp_test_step(1, 7), 17)) {
        rp_test_ends e;
        rp_test_ends_call *call, *other;

        rp_test_ends_init(&e, NULL, NULL);
        e.source_bytes = 30000;
        call = rp_test_ends_begin(&e, "/source");
        other = rp_test_ends_begin(&e, "/echo");
        assert_true(rp_test_ends_say(&e, call, 70));
        assert_true(rp_test_ends_say(&e, call, 200000));
        if (steps % 3 == 0) call->pause_after = 4;
        for (size_t i = 0; i < steps; i++) {
            (void)rp_test_ends_to_server(&e, steps * 7);
            (void)rp_test_ends_to_client(&e, steps * 500);
        }
        if (call->call != NULL) rp_call_cancel(call->call);
        assert_int_equal(call->closes, 1);
        assert_int_equal(rp_h2_call_count(e.client), 1);
        rp_test_ends_carry(&e);
        assert_int_equal(call->closes, 1);
        assert_int_equal(rp_h2_queued_bytes(e.client) + rp_h2_held_bytes(e.client), 0);
        assert_true(rp_test_ends_say(&e, other, 5000000));
        rp_call_half_close(other->call);
        rp_test_ends_carry(&e);
        assert_end(other, RP_OK);
        assert_int_equal(other->bytes, 5000000);
        assert_int_equal(rp_h2_call_count(e.server), 0);
        rp_test_ends_deinit(&e);
    }
}

static void a_call_can_be_cancelled_in_its_message_callback(void **state)
{
    (void)state;
    for (size_t after = 1; after < 20; after++) {
        rp_test_ends e;
        rp_test_ends_call *call;
        rp_test_ends_init(&e, NULL, NULL);
        e.source_bytes = after * 9000;
        e.is_whole = after % 2 == 0;
        call = rp_test_ends_begin(&e, "/source");
        call->cancel_after = after;
        assert_true(rp_test_ends_say(&e, call, 30));
        rp_test_ends_carry(&e);
        assert_int_equal(call->messages, after);
        assert_true(call->closes == 1 && call->ends == 0);
        assert_int_equal(rp_h2_call_count(e.server), 0);
        rp_test_ends_deinit(&e);
    }
}

static void the_server_may_end_a_call_at_any_time(void **state)
{
    (void)state;
    for (size_t steps = 2; steps < 100; steps++) {
        rp_test_ends e;
        rp_test_ends_call *call;

        rp_test_ends_init(&e, NULL, NULL);
        call = rp_test_ends_begin(&e, "/echo");
        for (size_t i = 0; i < 4; i++) assert_true(rp_test_ends_say(&e, call, 40000));
        if (steps % 2 == 0) rp_call_half_close(call->call);
        for (size_t i = 0; i < steps; i++) {
            (void)rp_test_ends_to_server(&e, steps * 50);
            (void)rp_test_ends_to_client(&e, steps * 50);
        }
        if (e.served_count > 0 && e.served[0] != NULL)
            rp_call_abort(e.served[0], RP_DENIED, "enough");
        rp_test_ends_carry(&e);
        if (e.served_count == 0) {
            rp_test_ends_deinit(&e);
            continue;
        }
        assert_int_equal(call->ends, 1);
        assert_true(call->status == RP_DENIED ||
                    (call->messages == 4 && call->status == RP_OK));
        assert_int_equal(rp_h2_queued_bytes(e.client) + rp_h2_held_bytes(e.client), 0);
        assert_int_equal(rp_h2_call_count(e.server), 0);
        rp_test_ends_deinit(&e);
    }
}

static void no_more_calls_begin_than_the_server_takes(void **state)
{
    const rp_h2_limits limits = {.streams = 3,
                                 .message_bytes = 1000,
                                 .header_bytes = 16384,
                                 .header_fields = 64,
                                 .queued_bytes = 2 << 20};
    rp_test_ends e;
    rp_test_ends_call *calls[3];

    (void)state;
    rp_test_ends_init(&e, NULL, &limits);
    assert_true(rp_h2_can_begin(e.client)); /* it has said nothing yet */
    rp_test_ends_carry(&e);
    for (size_t i = 0; i < 3; i++) {
        assert_true(rp_h2_can_begin(e.client));
        calls[i] = rp_test_ends_begin(&e, "/echo");
    }
    assert_false(rp_h2_can_begin(e.client));
    assert_null(rp_test_ends_begin(&e, "/echo"));
    rp_test_ends_carry(&e);
    assert_false(rp_h2_can_begin(e.client));
    rp_call_half_close(calls[0]->call);
    rp_test_ends_carry(&e);
    assert_true(rp_h2_can_begin(e.client));
    (void)rp_test_ends_begin(&e, "/echo");
    rp_call_cancel(calls[1]->call);
    assert_false(rp_h2_can_begin(e.client)); /* until the reset has left */
    rp_test_ends_carry(&e);
    assert_true(rp_h2_can_begin(e.client));
    assert_int_equal(e.nuisances[RP_NUISANCE_REFUSED], 0);
    rp_test_ends_deinit(&e);
}

static void a_server_after_goaway_completes_open_calls(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *calls[3];

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < 2; i++) calls[i] = rp_test_ends_begin(&e, "/echo");
    rp_test_ends_carry(&e);
    rp_h2_go_away(e.server);
    rp_h2_go_away(e.server);
    calls[2] = rp_test_ends_begin(&e, "/echo"); /* on its way when the goodbye comes */
    rp_test_ends_carry(&e);
    assert_false(rp_h2_can_begin(e.client));
    assert_null(rp_test_ends_begin(&e, "/echo"));
    assert_end(calls[2], RP_UNAVAILABLE);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(calls[i]->ends, 0);
        assert_true(rp_test_ends_say(&e, calls[i], 100000));
        rp_call_half_close(calls[i]->call);
    }
    rp_test_ends_carry(&e);
    for (size_t i = 0; i < 2; i++) assert_end(calls[i], RP_OK);
    assert_true(rp_h2_is_over(e.client));
    assert_false(rp_h2_is_violated(e.client));
    rp_test_ends_deinit(&e);
}

static void a_client_after_goaway_gets_its_responses(void **state)
{
    rp_test_ends e;
    rp_test_ends_call *call;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    call = rp_test_ends_begin(&e, "/echo");
    rp_test_ends_carry(&e);
    rp_h2_go_away(e.client);
    assert_false(rp_h2_can_begin(e.client));
    assert_true(rp_test_ends_say(&e, call, 100000));
    rp_call_half_close(call->call);
    rp_test_ends_carry(&e);
    assert_end(call, RP_OK);
    rp_test_ends_deinit(&e);
}

static void pings_are_answered_both_ways(void **state)
{
    rp_test_ends e;

    (void)state;
    rp_test_ends_init(&e, NULL, NULL);
    for (size_t i = 0; i < 3000; i++) rp_h2_ping(e.server);
    rp_h2_ping(e.client);
    e.is_whole = true;
    rp_test_ends_carry(&e);
    assert_int_equal(rp_h2_pongs(e.server), 3000);
    assert_int_equal(rp_h2_pongs(e.client), 1);
    assert_true(e.client_alive);
    rp_test_ends_deinit(&e);
}

/* Calls of several kinds, as far as memory reaches. */
static void use_everything(rp_test_ends *e)
{
    rp_test_ends_call *calls[4];

    e->source_bytes = 300000;
    calls[0] = rp_test_ends_begin(e, "/source");
    calls[1] = rp_test_ends_begin(e, "/echo");
    calls[2] = rp_test_ends_begin(e, "/echo");
    calls[3] = rp_test_ends_begin(e, "/late");
    if (calls[0] != NULL) {
        calls[0]->pause_after = 2;
        (void)rp_test_ends_say(e, calls[0], 6);
    }
    for (size_t i = 1; i < 3; i++) {
        if (calls[i] == NULL) continue;
        (void)rp_test_ends_say(e, calls[i], 1500000);
        (void)rp_test_ends_say(e, calls[i], 10);
        rp_call_half_close(calls[i]->call);
    }
    for (size_t round = 0; round < 20; round++) {
        rp_test_ends_carry(e);
        if (calls[2] != NULL && calls[2]->call != NULL && round == 1)
            rp_call_cancel(calls[2]->call);
        if (calls[0] != NULL && calls[0]->call != NULL) rp_call_resume(calls[0]->call);
    }
}

static void without_memory_every_call_ends_once(void **state)
{
    bool enough = false;

    (void)state;
    for (size_t room = 0; !enough; room++) {
        rp_test_ends e;
        rp_test_ends_try(&e, room);
        assert_true(e.opened == RP_OK || e.opened == RP_NO_RESOURCE);
        if (e.opened == RP_OK) use_everything(&e);
        enough = e.client_oom.failed == 0;
        rp_test_ends_close_client(&e);
        for (size_t i = 0; i < e.call_count; i++) {
            const rp_test_ends_call *call = &e.calls[i];
            assert_int_equal(call->closes, 1);
            assert_true(enough || call->ends == 0 || call->status == RP_OK ||
                        call->status == RP_NO_RESOURCE || call->status == RP_UNAVAILABLE ||
                        call->status == RP_INTERNAL || call->status == RP_NOT_FOUND);
        }
        if (enough) {
            assert_int_equal(e.call_count, 4);
            assert_end(&e.calls[0], RP_OK);
            assert_int_equal(e.calls[0].messages, 6);
            assert_end(&e.calls[1], RP_OK);
            assert_end(&e.calls[3], RP_NOT_FOUND);
            assert_true(room > 50);
        }
        rp_test_ends_deinit(&e);
    }
}

/* Blocks that were used before may be larger than the message: it ends where it ends. */
static void messages_in_reused_blocks_arrive(void **state)
{
    static const size_t sizes[] = {1 << 20, 300 << 10, 3 << 20, 270 << 10, 400 << 10, 100};
    rp_block_pool *pool = rp_block_pool_new(rp_allocator_default());
    rp_test_ends e;
    rp_test_ends_call *call;
    size_t total = 0;

    (void)state;
    assert_non_null(pool);
    rp_test_ends_init(&e, NULL, NULL);
    rp_h2_use_blocks(e.client, pool);
    call = rp_test_ends_begin(&e, "/echo");
    for (size_t round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            assert_true(rp_test_ends_say(&e, call, sizes[i]));
            if (i % 2 == round % 2) rp_test_ends_carry(&e);
            total += sizes[i];
        }
    rp_call_half_close(call->call);
    rp_test_ends_carry(&e);
    assert_int_equal(call->messages, 3 * COUNT_OF(sizes));
    assert_int_equal(call->bytes, total);
    assert_int_equal(call->ends, 1);
    rp_test_ends_close_client(&e);
    rp_block_pool_unref(pool);
    rp_test_ends_deinit(&e);
}

RP_TESTS(h2_client)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message_gets_one_response_at_every_size),
        cmocka_unit_test(a_call_is_sent_before_the_server_has_greeted),
        cmocka_unit_test(the_server_can_send_many_messages),
        cmocka_unit_test(the_client_can_send_many_messages),
        cmocka_unit_test(on_room_is_called_when_half_of_the_queue_is_sent),
        cmocka_unit_test(both_send_at_once_within_the_windows),
        cmocka_unit_test(request_headers_carry_authorization_and_timeout),
        cmocka_unit_test(a_refusal_has_its_message),
        cmocka_unit_test(an_http_page_is_an_error_by_its_status),
        cmocka_unit_test(a_message_over_the_limit_ends_the_call),
        cmocka_unit_test(a_paused_call_blocks_the_server_and_no_other_call),
        cmocka_unit_test(a_paused_call_outlives_its_stream),
        cmocka_unit_test(a_paused_call_ends_unavailable_when_the_connection_is_freed),
        cmocka_unit_test(a_call_can_be_cancelled_at_any_time),
        cmocka_unit_test(a_call_can_be_cancelled_in_its_message_callback),
        cmocka_unit_test(the_server_may_end_a_call_at_any_time),
        cmocka_unit_test(no_more_calls_begin_than_the_server_takes),
        cmocka_unit_test(a_server_after_goaway_completes_open_calls),
        cmocka_unit_test(a_client_after_goaway_gets_its_responses),
        cmocka_unit_test(pings_are_answered_both_ways),
        cmocka_unit_test(without_memory_every_call_ends_once),
        cmocka_unit_test(messages_in_reused_blocks_arrive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
