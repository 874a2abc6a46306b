/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are paused: their messages wait, and the peer cannot send more. */
#include "support/h2_pair.h"

enum { MIB = 1 << 20, WINDOW = RP_H2_WINDOW };

static void pause_at_once(rp_test_pair *p, rp_call *call)
{
    (void)p;
    rp_call_pause(call);
}

/* Pauses again with each message. */
static void pause_again(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                        rp_block *block)
{
    (void)p, (void)data, (void)size, (void)block;
    rp_call_pause(call);
}

static void send_number(rp_test_stream *call, uint32_t number)
{
    rp_test_stream_send(call, &number, sizeof number);
}

static void expect_numbers(const rp_test_pair *p, size_t count)
{
    assert_int_equal(p->message_count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(p->messages[i].size, sizeof i);
        assert_memory_equal(p->messages[i].data, &i, sizeof i);
    }
}

/* Bytes that the client could not send yet. */
static size_t unsent(const rp_test_stream *call)
{
    return call->out.size - call->out_sent;
}

static void messages_wait_and_come_in_order_when_resumed(void **state)
{
    (void)state;
    for (size_t frame = 1; frame < 40; frame += 6) {
        rp_test_pair p;
        rp_test_stream *call;

        rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = frame});
        p.on_request = pause_at_once;
        call = rp_test_client_open(p.client, "/a");
        for (uint32_t i = 0; i < 20; i++) send_number(call, i);
        rp_test_pair_carry(&p);
        assert_true(rp_call_is_paused(p.calls[0]));
        assert_int_equal(p.message_count, 0);
        assert_true(rp_h2_held_bytes(p.h2) >= 20 * 4);

        rp_call_resume(p.calls[0]);
        expect_numbers(&p, 20);
        assert_false(rp_call_is_paused(p.calls[0]));
        assert_int_equal(rp_h2_held_bytes(p.h2), 0);
        rp_call_resume(p.calls[0]); /* not paused: nothing */
        expect_numbers(&p, 20);
        rp_test_pair_deinit(&p);
    }
}

static void a_message_that_pauses_again_is_the_last(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_message = pause_again;
    call = rp_test_client_open(p.client, "/a");
    for (uint32_t i = 0; i < 10; i++) send_number(call, i);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);
    for (uint32_t i = 1; i <= 10; i++) {
        expect_numbers(&p, i);
        assert_int_equal(p.half_close_count, 0);
        assert_true(rp_call_is_paused(p.calls[0]));
        rp_call_resume(p.calls[0]);
    }
    expect_numbers(&p, 10);
    assert_int_equal(p.half_close_count, 1);
    rp_test_pair_deinit(&p);
}

/* Takes as many messages as p->user points at. */
static bool take_some(rp_test_pair *p, rp_call *call, size_t size)
{
    size_t *left = p->user;

    (void)call;
    assert_int_equal(size, sizeof(uint32_t));
    if (*left == 0) return false;
    --*left;
    return true;
}

static void a_message_that_may_not_be_delivered_pauses_its_call(void **state)
{
    (void)state;
    for (size_t frame = 1; frame < 40; frame += 6) {
        size_t left = 3;
        rp_test_pair p;
        rp_test_stream *call;

        rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = frame});
        p.may_deliver = take_some;
        p.user = &left;
        call = rp_test_client_open(p.client, "/a");
        for (uint32_t i = 0; i < 10; i++) send_number(call, i);
        rp_test_stream_end(call);
        rp_test_pair_carry(&p);
        expect_numbers(&p, 3);
        assert_true(rp_call_is_paused(p.calls[0]));
        assert_true(rp_h2_held_bytes(p.h2) >= 7 * sizeof(uint32_t));

        left = 2;
        rp_call_resume(p.calls[0]);
        expect_numbers(&p, 5);
        assert_true(rp_call_is_paused(p.calls[0]));
        assert_int_equal(p.half_close_count, 0);
        left = 10;
        rp_call_resume(p.calls[0]);
        expect_numbers(&p, 10);
        assert_int_equal(p.half_close_count, 1);
        assert_int_equal(rp_h2_held_bytes(p.h2), 0);
        rp_test_pair_deinit(&p);
    }
}

/* Wants each message three times: p->user counts the deliveries. */
static void take_thrice(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                        rp_block *block)
{
    size_t *deliveries = p->user;

    (void)data, (void)size;
    assert_int_equal(rp_call_is_again(call), *deliveries % 3 != 0);
    assert_non_null(block);
    if (++*deliveries % 3 != 0) rp_call_deliver_again(call);
}

static void a_message_is_delivered_again_if_its_handler_wants_that(void **state)
{
    enum { COUNT = 4 };
    size_t deliveries = 0;
    rp_test_pair p;
    rp_test_stream *call;

    (void)state;
    /* In small frames, so that each message has a block. */
    rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = 3});
    p.on_message = take_thrice;
    p.user = &deliveries;
    call = rp_test_client_open(p.client, "/a");
    for (uint32_t i = 0; i < COUNT; i++) send_number(call, i);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);
    for (size_t left = 2 * COUNT; left > 0; left--) {
        assert_true(rp_call_is_paused(p.calls[0]));
        assert_true(rp_h2_held_bytes(p.h2) >= (COUNT - p.message_count / 3) * sizeof(uint32_t));
        assert_int_equal(p.half_close_count, 0);
        rp_call_resume(p.calls[0]);
    }
    assert_false(rp_call_is_paused(p.calls[0]));
    assert_int_equal(p.message_count, 3 * COUNT);
    for (uint32_t i = 0; i < 3 * COUNT; i++)
        assert_memory_equal(p.messages[i].data, &(uint32_t){i / 3}, sizeof i);
    assert_int_equal(deliveries, 3 * COUNT);
    assert_int_equal(p.half_close_count, 1);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void a_message_to_be_delivered_again_is_dropped_with_its_call(void **state)
{
    size_t deliveries = 0;
    rp_test_pair p;
    rp_test_stream *call;

    (void)state;
    rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = 3});
    p.on_message = take_thrice;
    p.user = &deliveries;
    call = rp_test_client_open(p.client, "/a");
    send_number(call, 0);
    send_number(call, 1);
    rp_test_pair_carry(&p);
    assert_int_equal(deliveries, 1);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(deliveries, 1);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void the_end_is_reported_after_the_last_message(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    send_number(call, 0);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);
    assert_int_equal(p.half_close_count, 0);
    rp_call_resume(p.calls[0]);
    expect_numbers(&p, 1);
    assert_int_equal(p.half_close_count, 1);
    rp_call_pause(p.calls[0]);
    rp_call_resume(p.calls[0]);
    assert_int_equal(p.half_close_count, 1); /* once */
    rp_test_pair_deinit(&p);
}

static void an_end_within_a_message_is_reported_when_resumed(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    send_number(call, 0);
    rp_test_stream_send_raw(call, "\0\0\0\0\5abc", 8);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);
    assert_int_equal(p.faults[RP_FAULT_FRAMING], 0);
    rp_call_resume(p.calls[0]);
    expect_numbers(&p, 1);
    assert_int_equal(p.faults[RP_FAULT_FRAMING], 1);
    assert_int_equal(p.half_close_count, 0);
    rp_test_pair_carry(&p);
    assert_int_equal(call->status, RP_INVALID);
    rp_test_pair_deinit(&p);
}

/* Of an incomplete message: what has arrived, and what is still to come. Not while its call is
 * paused, nor once the call is over. */
static void the_missing_bytes_of_a_message_are_known(void **state)
{
    static const uint8_t zeros[700];
    (void)state;
    rp_test_pair p;
    rp_test_stream *call, *other;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send_raw(call, "\0\0", 2);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 0); /* not known yet */
    rp_test_stream_send_raw(call, "\0\3\xe8", 3);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_partial_bytes(p.h2), 0);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 1000);
    rp_test_stream_send_raw(call, zeros, 700);
    other = rp_test_client_open(p.client, "/b");
    rp_test_stream_send_raw(other, "\0\0\0\0\5abc", 8);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_partial_bytes(p.h2), 703);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 302);
    rp_call_pause(p.calls[0]);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 2);
    rp_call_resume(p.calls[0]);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 302);
    rp_call_abort(p.calls[1], RP_INVALID, "no");
    assert_int_equal(rp_h2_partial_bytes(p.h2), 700);
    assert_int_equal(rp_h2_awaited_bytes(p.h2), 300);
    rp_test_stream_send_raw(call, zeros, 300);
    rp_test_pair_carry(&p);
    assert_int_equal(p.message_count, 1);
    assert_int_equal(rp_h2_partial_bytes(p.h2) + rp_h2_awaited_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void a_paused_call_holds_no_more_than_its_window(void **state)
{
    enum { SIZE = 1000, COUNT = 3 * WINDOW / SIZE };
    static const uint8_t message[SIZE];
    (void)state;
    rp_test_pair p;
    rp_test_stream *call, *other;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    for (size_t i = 0; i < COUNT; i++) rp_test_stream_send(call, message, SIZE);
    rp_test_pair_carry(&p);
    assert_true(unsent(call) > WINDOW);
    assert_true(rp_h2_held_bytes(p.h2) > WINDOW / 2);
    assert_true(rp_h2_held_bytes(p.h2) <= WINDOW + WINDOW / SIZE * 100);

    /* nobody else is held up, though more than the connection's window was sent in all */
    p.on_request = NULL;
    other = rp_test_client_open(p.client, "/b");
    for (size_t i = 0; i < 20 * MIB / SIZE; i++) rp_test_stream_send(other, message, SIZE);
    rp_test_pair_carry(&p);
    assert_int_equal(p.message_count, 20 * MIB / SIZE);
    assert_int_equal(unsent(other), 0);

    rp_call_resume(p.calls[0]);
    rp_test_pair_carry(&p);
    assert_int_equal(p.message_count, 20 * MIB / SIZE + COUNT);
    assert_int_equal(unsent(call), 0);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void frames_that_end_within_a_message_do_not_open_the_window(void **state)
{
    enum { SIZE = 16000 };
    static const uint8_t message[SIZE];
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;
    size_t most = 2 * WINDOW;

    /* every frame has the end of one message and the beginning of the next */
    rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = SIZE + 5});
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send(call, message, 100);
    for (size_t i = 0; i < 20 * MIB / SIZE; i++) rp_test_stream_send(call, message, SIZE);
    rp_test_pair_carry(&p);
    assert_true(unsent(call) > 10 * MIB);
    assert_true(rp_h2_held_bytes(p.h2) < most);
    rp_call_resume(p.calls[0]);
    rp_test_pair_carry(&p);
    assert_int_equal(p.message_count, 1 + 20 * MIB / SIZE);
    rp_test_pair_deinit(&p);
}

static void a_message_larger_than_the_window_comes_after_the_pause(void **state)
{
    enum { SIZE = 3 * WINDOW };
    (void)state;
    uint8_t *message = calloc(1, SIZE);
    rp_test_pair p;
    rp_test_stream *call;

    assert_non_null(message);
    message[SIZE - 1] = 7;
    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send(call, message, SIZE);
    rp_test_stream_send(call, message, SIZE);
    rp_test_pair_carry(&p);
    assert_true(rp_h2_held_bytes(p.h2) <= WINDOW);
    assert_true(unsent(call) >= 2 * SIZE - WINDOW);
    assert_int_equal(p.message_count, 0);

    rp_call_resume(p.calls[0]);
    assert_int_equal(p.message_count, 0);
    rp_test_pair_carry(&p);
    assert_int_equal(p.message_count, 2);
    assert_int_equal(p.messages[1].size, SIZE);
    assert_int_equal(p.messages[1].data[SIZE - 1], 7);
    rp_test_pair_deinit(&p);
    free(message);
}

static void queued_empty_messages_are_charged_their_memory(void **state)
{
    enum { COUNT = 10000 };
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;
    size_t before, taken;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    before = p.oom.live_bytes;
    for (int i = 0; i < COUNT; i++) rp_test_stream_send(call, NULL, 0);
    rp_test_pair_carry(&p);
    taken = p.oom.live_bytes - before;
    assert_true(rp_h2_held_bytes(p.h2) >= taken * 9 / 10);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void finish_second(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                          rp_block *block)
{
    (void)data, (void)size, (void)block;
    if (p->message_count == 2) rp_call_finish(call, RP_OK, NULL);
}

static void messages_behind_the_one_that_ends_the_call_are_dropped(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    p.on_message = finish_second;
    call = rp_test_client_open(p.client, "/a");
    for (uint32_t i = 0; i < 5; i++) send_number(call, i);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);
    rp_call_resume(p.calls[0]);
    expect_numbers(&p, 2);
    rp_test_pair_carry(&p);
    assert_int_equal(call->status, RP_OK);
    assert_int_equal(p.half_close_count, 0);
    assert_int_equal(p.close_count, 1);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void a_reset_frees_queued_messages(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    for (uint32_t i = 0; i < 5; i++) send_number(call, i);
    rp_test_stream_send_raw(call, "\0\0\0\0\5abc", 8);
    rp_test_pair_carry(&p);
    assert_true(rp_h2_held_bytes(p.h2) > 0);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(p.close_count, 1);
    assert_int_equal(p.message_count, 0);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void freeing_a_connection_frees_queued_messages(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = pause_at_once;
    call = rp_test_client_open(p.client, "/a");
    for (uint32_t i = 0; i < 5; i++) send_number(call, i);
    rp_test_pair_carry(&p);
    rp_test_pair_deinit(&p); /* counts what is left */
}

static rp_h2_wait waits(const rp_test_pair *p)
{
    uint64_t bytes;

    return rp_h2_waits_for(p->h2, &bytes);
}

static void a_paused_call_is_not_late_with_its_message(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call, *other;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send_raw(call, "\0\0\0\0\5abc", 8);
    rp_test_pair_carry(&p);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_MESSAGE);
    rp_call_pause(p.calls[0]);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    other = rp_test_client_open(p.client, "/b");
    rp_test_stream_send_raw(other, "\0", 1);
    rp_test_pair_carry(&p);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_MESSAGE);
    rp_test_stream_reset(other, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    rp_call_resume(p.calls[0]);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_MESSAGE);
    rp_test_stream_send_raw(call, "de", 2);
    rp_test_pair_carry(&p);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    assert_int_equal(p.message_count, 1);
    rp_test_pair_deinit(&p);
}

static void a_call_that_is_finished_is_not_late_either(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;
    uint64_t bytes;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send_raw(call, "\0\0\0\0\5abc", 8);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_waits_for(p.h2, &bytes), RP_H2_WAITS_FOR_MESSAGE);
    assert_int_equal(bytes, 3);
    rp_call_finish(p.calls[0], RP_DEADLINE, "too late");
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    rp_test_pair_carry(&p);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_CLOSE); /* the client goes on */
    rp_test_pair_deinit(&p);
}

RP_TESTS(h2_pause)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_wait_and_come_in_order_when_resumed),
        cmocka_unit_test(a_message_that_pauses_again_is_the_last),
        cmocka_unit_test(a_message_that_may_not_be_delivered_pauses_its_call),
        cmocka_unit_test(a_message_is_delivered_again_if_its_handler_wants_that),
        cmocka_unit_test(a_message_to_be_delivered_again_is_dropped_with_its_call),
        cmocka_unit_test(the_end_is_reported_after_the_last_message),
        cmocka_unit_test(an_end_within_a_message_is_reported_when_resumed),
        cmocka_unit_test(the_missing_bytes_of_a_message_are_known),
        cmocka_unit_test(a_paused_call_holds_no_more_than_its_window),
        cmocka_unit_test(frames_that_end_within_a_message_do_not_open_the_window),
        cmocka_unit_test(a_message_larger_than_the_window_comes_after_the_pause),
        cmocka_unit_test(queued_empty_messages_are_charged_their_memory),
        cmocka_unit_test(messages_behind_the_one_that_ends_the_call_are_dropped),
        cmocka_unit_test(a_reset_frees_queued_messages),
        cmocka_unit_test(freeing_a_connection_frees_queued_messages),
        cmocka_unit_test(a_paused_call_is_not_late_with_its_message),
        cmocka_unit_test(a_call_that_is_finished_is_not_late_either),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
