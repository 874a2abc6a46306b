/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that a peer sends too often are counted, and end the connection. */
#include "support/h2_frames.h"

static void a_large_field_over_the_limit_counts_by_its_bytes(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    uint8_t block[40000 + 8] = {0x83, 0x86, 0x84, 0x00, 1, 'x', 0x7f};
    size_t size = 7;
    rp_test_pair p;

    limits.header_bytes = 16384;
    for (size_t left = 39000 - 127; left > 0; left >>= 7)
        block[size++] = (uint8_t)((left & 127) | (left >= 128 ? 128 : 0));
    memset(block + size, 'v', 39000);
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, size + 39000);
    assert_int_equal(p.nuisances[RP_NUISANCE_OTHER], 39000 / 4096);
    rp_test_pair_deinit(&p);
}

static void size_updates_of_the_header_table_count(void **state)
{
    (void)state;
    rp_test_pair p;
    uint8_t block[100 + sizeof rp_test_request_block];

    memset(block, 0x20, 100);
    memcpy(block + 100, rp_test_request_block, sizeof rp_test_request_block);
    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block + 98, sizeof block - 98);
    assert_int_equal(p.request_count, 1);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    rp_test_slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, block, sizeof block);
    assert_int_equal(p.request_count, 2);
    assert_int_equal(p.nuisances[RP_NUISANCE_TABLE_SIZE], 98);
    assert_int_equal(rp_test_nuisance_count(&p), 98);
    rp_test_pair_deinit(&p);
}

static void size_updates_end_the_connection_before_their_block_does(void **state)
{
    (void)state;
    uint8_t block[200];
    rp_test_pair p;

    memset(block, 0x20, sizeof block);
    rp_test_pair_init(&p, NULL, NULL);
    p.most_nuisances = 10;
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, 0, 1, block, 2 + 9);
    assert_false(rp_h2_is_ended(p.h2));
    rp_test_slip_in(&p, NGHTTP2_CONTINUATION, 0, 1, block, 1);
    assert_true(rp_h2_is_ended(p.h2));
    assert_int_equal(p.request_count, 0);
    rp_test_pair_deinit(&p);
}

static void resets_count_before_a_response_and_not_after(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *early, *late;

    rp_test_pair_init(&p, NULL, NULL);
    early = rp_test_client_open(p.client, "/a");
    late = rp_test_client_open(p.client, "/b");
    rp_test_pair_carry(&p);
    rp_test_pair_say(&p, p.calls[1], "answer", 6);
    rp_test_pair_carry(&p);
    rp_test_stream_reset(early, NGHTTP2_CANCEL);
    rp_test_stream_reset(late, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(p.close_count, 2);
    assert_int_equal(p.nuisances[RP_NUISANCE_RESET], 1);
    assert_int_equal(rp_test_nuisance_count(&p), 1);
    rp_test_pair_deinit(&p);
}

static void pings_count_unless_data_explains_them(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (int i = 0; i < 7; i++) rp_test_send_frame(&p, PING, 0, 0, "12345678", 8);
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 7);
    assert_int_equal(p.client->pongs, 7);
    rp_test_pair_say(&p, p.calls[0], "one frame", 9);
    rp_test_pair_carry(&p);
    for (int i = 0; i < RP_H2_EARNED_PINGS + 2; i++)
        rp_test_send_frame(&p, PING, 0, 0, "12345678", 8);
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 7 + 2);
    rp_test_send_frame(&p, PING, NGHTTP2_FLAG_ACK, 0, "12345678", 8); /* we have not asked */
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 10);
    assert_int_equal(rp_h2_pongs(p.h2), 0);
    rp_h2_ping(p.h2);
    rp_test_pair_carry(&p);
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 10);
    assert_int_equal(rp_h2_pongs(p.h2), 1);
    rp_test_pair_deinit(&p);
}

static void settings_count_after_the_first(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    assert_int_equal(p.nuisances[RP_NUISANCE_SETTINGS], 0);
    for (int i = 0; i < 3; i++) rp_test_slip_in(&p, SETTINGS, 0, 0, NULL, 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_SETTINGS], 3);
    assert_int_equal(rp_test_nuisance_count(&p), 3);
    rp_test_pair_deinit(&p);
}

static void frames_that_carry_nothing_count(void **state)
{
    (void)state;
    static const uint8_t padding[] = {2, 0, 0};
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = rp_test_client_open(p.client, "/a");
    rp_test_stream_send(stream, "x", 1);
    rp_test_pair_carry(&p);
    for (int i = 0; i < 4; i++) rp_test_send_frame(&p, DATA, 0, 1, NULL, 0);
    rp_test_send_frame(&p, DATA, NGHTTP2_FLAG_PADDED, 1, padding, sizeof padding);
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 5);
    rp_test_send_frame(&p, DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0); /* but for the end */
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 5);
    assert_int_equal(p.half_close_count, 1);
    assert_int_equal(rp_test_nuisance_count(&p), 5);
    rp_test_pair_deinit(&p);
}

static void window_updates_count_unless_data_explains_them(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (int i = 0; i < RP_H2_CALL_WINDOWS + 3; i++) /* some are the call's */
        rp_test_send_frame(&p, WINDOW, 0, i % 2 == 1 ? 1 : 0, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 3);
    rp_test_pair_say(&p, p.calls[0], "one frame", 9);
    rp_test_pair_carry(&p);
    for (int i = 0; i < RP_H2_EARNED_WINDOWS + 1; i++)
        rp_test_send_frame(&p, WINDOW, 0, 0, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 4);
    rp_test_pair_deinit(&p);
}

static void earned_allowances_have_a_bound(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (int i = 0; i < 3000; i++) {
        rp_test_pair_say(&p, p.calls[0], "x", 1);
        rp_test_pair_carry(&p);
    }
    assert_int_equal(p.h2->earned_pings, RP_H2_EARNED_MOST);
    assert_true(p.h2->earned_windows <= RP_H2_EARNED_MOST);
    rp_test_pair_deinit(&p);
}

static void unknown_frames_and_priorities_count(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    rp_test_send_frame(&p, 0xbe, 0, 0, "whatever", 8);
    rp_test_send_frame(&p, 0xff, 0xff, 1, NULL, 0);
    rp_test_send_frame(&p, PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
    assert_int_equal(p.nuisances[RP_NUISANCE_OTHER], 2);
    assert_int_equal(p.nuisances[RP_NUISANCE_PRIORITY], 1);
    assert_true(p.alive);
    assert_int_equal(rp_test_nuisance_count(&p), 3);
    rp_test_pair_deinit(&p);
}

static void a_peer_that_makes_us_reset_a_call_is_counted(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_open_raw(&p, 1);
    rp_test_slip_in(&p, WINDOW, 0, 1, "\x7f\xff\xff\xff", 4); /* more than a window can be */
    rp_test_drop_output(&p);
    assert_int_equal(p.nuisances[RP_NUISANCE_MADE_RESET], 1);
    assert_int_equal(p.close_count, 1);
    assert_true(p.alive);
    rp_test_pair_deinit(&p);
}

static void trailers_are_free_once(void **state)
{
    (void)state;
    static const uint8_t trailers[] = {0, 1, 'x', 1, 'y'};
    uint8_t flags = NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_open_raw(&p, 1);
    rp_test_slip_in(&p, HEADERS, flags, 1, trailers, sizeof trailers);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    assert_int_equal(p.half_close_count, 1);
    rp_test_slip_in(&p, HEADERS, flags, 1, trailers, sizeof trailers);
    assert_true(p.nuisances[RP_NUISANCE_BAD_FRAME] >= 1);
    rp_test_pair_deinit(&p);
}

/* Single bytes use up what may be under way by more than their number. */
static void tiny_data_of_a_call_that_we_have_ended_counts(void **state)
{
    (void)state;
    const size_t free_frames = RP_H2_WINDOW / RP_FRAME_LEAST_COST;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = rp_test_finish_at_once;
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (size_t i = 0; i < free_frames; i++) rp_test_slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    for (size_t i = 0; i < 5; i++) rp_test_slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 5);
    assert_int_equal(rp_test_nuisance_count(&p), 5);
    rp_test_pair_deinit(&p);
}

/* Opens a call, has it answered in full, and half-closes it: its stream has ended. */
static void end_a_call(rp_test_pair *p)
{
    rp_test_stream *stream;

    p->on_half_close = rp_test_finish_at_once;
    stream = rp_test_client_open(p->client, "/a");
    rp_test_pair_carry(p);
    rp_test_stream_end(stream);
    rp_test_pair_carry(p);
    assert_int_equal(p->close_count, 1);
    assert_int_equal(rp_test_nuisance_count(p), 0);
    p->h2->earned_windows = 0;
}

static void frames_of_a_call_that_is_over_count(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    end_a_call(&p);
    for (int i = 0; i < 3; i++) rp_test_slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 3);
    rp_test_slip_in(&p, DATA, 0, 1, NULL, 0);
    rp_test_slip_in(&p, DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 5);
    for (int i = 0; i < 3; i++) rp_test_slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 7); /* one may cross our end of the call */
    rp_test_slip_in(&p, WINDOW, 0, 1, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 1);
    rp_test_slip_in(&p, PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
    assert_int_equal(p.nuisances[RP_NUISANCE_PRIORITY], 1);
    assert_int_equal(rp_test_nuisance_count(&p), 9);
    assert_true(p.alive);
    rp_test_pair_deinit(&p);
}

/* We answer before the peer has sent all. A window of it may be under way. */
static void data_in_flight_does_not_count(void **state)
{
    (void)state;
    const size_t frame_bytes = 16 << 10, in_window = RP_H2_WINDOW / frame_bytes;
    uint8_t *frame = calloc(1, 9 + frame_bytes);
    rp_test_pair p;

    frame[1] = (uint8_t)(frame_bytes >> 8);
    frame[8] = 1;
    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = rp_test_finish_at_once;
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (size_t i = 0; i < in_window / 2; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    for (int i = 0; i < 2; i++) rp_h2_sweep(p.h2); /* resets it */
    rp_test_drop_output(&p);
    assert_int_equal(p.close_count, 1);
    for (size_t i = 0; i < in_window / 2; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(rp_test_nuisance_count(&p), 0);

    p.h2->earned_late = frame_bytes;
    for (size_t i = 0; i < 3; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 2);
    assert_int_equal(rp_test_nuisance_count(&p), 2);
    free(frame);
    rp_test_pair_deinit(&p);
}

static void the_allowance_for_data_in_flight_has_a_bound(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = rp_test_finish_at_once;
    for (int i = 0; i < 20; i++) (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (int i = 0; i < 2; i++) rp_h2_sweep(p.h2); /* resets them */
    assert_int_equal(p.h2->earned_late, RP_H2_CONNECTION_WINDOW);
    rp_test_pair_deinit(&p);
}

static void fragments_of_a_message_count_but_for_two_a_message(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    rp_test_send_frame(&p, DATA, 0, 1, "\0\0\0\0\1x", 6);                  /* a message */
    assert_int_equal(p.h2->earned_fragments, 2 * RP_H2_MESSAGE_FRAGMENTS); /* and the call */
    p.h2->earned_fragments = RP_H2_MESSAGE_FRAGMENTS;
    for (int i = 0; i < 2; i++)
        rp_test_send_frame(&p, DATA, 0, 1, "\0\0\0\0\10", i == 0 ? 1 : 3);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    rp_test_send_frame(&p, DATA, 0, 1, "\10", 1);
    for (int i = 0; i < 7; i++) rp_test_send_frame(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.message_count, 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_FRAGMENT], 8);
    rp_test_send_frame(&p, DATA, 0, 1, "x", 1); /* completes it */
    assert_int_equal(p.message_count, 2);
    assert_int_equal(rp_test_nuisance_count(&p), 8);
    rp_test_pair_deinit(&p);
}

static void small_continuations_count(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, 0, 1, "", 0);
    for (int i = 0; i < 3; i++) rp_test_slip_in(&p, NGHTTP2_CONTINUATION, 0, 1, "", 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 3);
    rp_test_pair_deinit(&p);
}

static void too_many_nuisances_end_the_connection(void **state)
{
    (void)state;
    for (size_t most = 1; most < 6; most++) {
        rp_test_pair p;
        rp_test_pair_init(&p, NULL, NULL);
        p.most_nuisances = most;
        rp_test_pair_carry(&p);
        for (size_t i = 0; i < 10; i++)
            rp_test_client_frame(p.client, PING, 0, 0, "12345678", 8);
        rp_test_pair_carry(&p);
        assert_false(p.alive);
        assert_int_equal(rp_test_nuisance_count(&p), most); /* nothing is read behind it */
        assert_true(rp_h2_is_ended(p.h2) && !rp_h2_is_violated(p.h2));
        assert_true(p.client->goes_away);
        assert_int_equal(p.client->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
        assert_false(rp_h2_receive(p.h2, (const uint8_t *)"x", 1));
        rp_test_pair_deinit(&p);
    }
}

RP_TESTS(h2_nuisance)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_field_over_the_limit_counts_by_its_bytes),
        cmocka_unit_test(size_updates_of_the_header_table_count),
        cmocka_unit_test(size_updates_end_the_connection_before_their_block_does),
        cmocka_unit_test(resets_count_before_a_response_and_not_after),
        cmocka_unit_test(pings_count_unless_data_explains_them),
        cmocka_unit_test(settings_count_after_the_first),
        cmocka_unit_test(frames_that_carry_nothing_count),
        cmocka_unit_test(window_updates_count_unless_data_explains_them),
        cmocka_unit_test(earned_allowances_have_a_bound),
        cmocka_unit_test(unknown_frames_and_priorities_count),
        cmocka_unit_test(a_peer_that_makes_us_reset_a_call_is_counted),
        cmocka_unit_test(trailers_are_free_once),
        cmocka_unit_test(tiny_data_of_a_call_that_we_have_ended_counts),
        cmocka_unit_test(frames_of_a_call_that_is_over_count),
        cmocka_unit_test(data_in_flight_does_not_count),
        cmocka_unit_test(the_allowance_for_data_in_flight_has_a_bound),
        cmocka_unit_test(fragments_of_a_message_count_but_for_two_a_message),
        cmocka_unit_test(small_continuations_count),
        cmocka_unit_test(too_many_nuisances_end_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
