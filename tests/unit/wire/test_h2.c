/* SPDX-License-Identifier: Apache-2.0 */
/* A connection as a whole: its beginning and end, and requests. */
#include <stdio.h>

#include "support/h2_frames.h"

static rp_h2_wait waits(const rp_test_pair *p)
{
    uint64_t bytes;

    return rp_h2_waits_for(p->h2, &bytes);
}

static void settings_are_exchanged_before_anything_else(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    assert_true(rp_h2_wants_output(p.h2));
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_GREETING);
    rp_test_pair_carry(&p);
    assert_int_equal(p.client->settings, 1);
    assert_int_equal(nghttp2_session_get_remote_settings(
                         p.client->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS),
                     100);
    assert_int_equal(nghttp2_session_get_remote_settings(p.client->session,
                                                         NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE),
                     4 << 20);
    assert_int_equal(
        nghttp2_session_get_remote_settings(p.client->session, NGHTTP2_SETTINGS_MAX_FRAME_SIZE),
        1 << 20);
    assert_int_equal(nghttp2_session_get_remote_window_size(p.client->session), 16 << 20);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    assert_false(rp_h2_wants_output(p.h2) || rp_h2_is_over(p.h2));
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    rp_test_pair_deinit(&p);
}

static void a_wrong_preface_gets_goaway(void **state)
{
    (void)state;
    static const char *const first[] = {"GET / HTTP/1.1\r\n\r\n.......",
                                        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nxxxxxxxxxxxxxxxxxx"};

    for (size_t i = 0; i < COUNT_OF(first); i++) {
        rp_test_pair p;
        rp_test_pair_init(&p, NULL, NULL);
        rp_test_pair_feed(&p, first[i], strlen(first[i]));
        rp_test_pair_carry_out(&p);
        assert_true(p.client->goes_away);
        assert_int_not_equal(p.client->goaway_code, 0);
        assert_true(rp_h2_is_violated(p.h2) && rp_h2_is_over(p.h2));
        assert_int_equal(p.request_count, 0);
        rp_test_pair_deinit(&p);
    }
}

static void a_request_has_the_values_of_its_headers(void **state)
{
    (void)state;
    static const rp_test_header headers[] = {{"authorization", "Bearer abc"},
                                             {"grpc-encoding", "gzip"},
                                             {"grpc-timeout", "250m"},
                                             {"x-anything", "else"}};
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open_with(p.client, "/a.B/C", headers, COUNT_OF(headers));
    rp_test_pair_carry(&p);
    assert_string_equal(p.method, "POST");
    assert_string_equal(p.path, "/a.B/C");
    assert_string_equal(p.content_type, "application/grpc");
    assert_string_equal(p.authorization, "Bearer abc");
    assert_string_equal(p.encoding, "gzip");
    assert_int_equal(p.head.timeout_ns, 250000000);
    assert_false(p.head.too_large || p.head.too_many || p.head.bad_timeout);

    (void)rp_test_client_get(p.client, "GET", "/");
    rp_test_pair_carry(&p);
    assert_string_equal(p.method, "GET");
    assert_string_equal(p.path, "/");
    assert_string_equal(p.authorization, ""); /* not that of the last one */
    assert_string_equal(p.content_type, "");
    assert_int_equal(p.head.timeout_ns, -1);
    assert_int_equal(p.half_close_count, 1);
    rp_test_pair_deinit(&p);
}

static void a_malformed_timeout_is_marked(void **state)
{
    (void)state;
    static const rp_test_header header = {"grpc-timeout", "soon"};
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open_with(p.client, "/a", &header, 1);
    rp_test_pair_carry(&p);
    assert_true(p.head.bad_timeout);
    assert_int_equal(p.head.timeout_ns, -1);
    rp_test_pair_deinit(&p);
}

static void the_number_of_headers_has_a_limit(void **state)
{
    enum { OWN = 6, MOST = 20 };
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_header headers[MOST + 1];

    limits.header_fields = MOST;
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        headers[i] = (rp_test_header){"x-some", "thing"};
    for (size_t count = MOST - OWN - 1; count <= MOST - OWN + 2; count++) {
        rp_test_pair p;
        rp_test_pair_init(&p, &limits, NULL);
        (void)rp_test_client_open_with(p.client, "/a", headers, count);
        rp_test_pair_carry(&p);
        assert_int_equal(p.request_count, 1);
        assert_int_equal(p.head.too_many, count > MOST - OWN);
        assert_false(p.head.too_large);
        assert_string_equal(p.path, "/a");
        rp_test_pair_deinit(&p);
    }
}

static void the_size_of_headers_has_a_limit(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    /* as HTTP/2 counts: name, value, and 32 for each field */
    size_t own = 0;
    static const char *const fields[][2] = {
        {":method", "POST"}, {":scheme", "http"}, {":authority", "test"},
        {":path", "/a"},     {"te", "trailers"},  {"content-type", "application/grpc"}};

    for (size_t i = 0; i < COUNT_OF(fields); i++)
        own += strlen(fields[i][0]) + strlen(fields[i][1]) + 32;
    limits.header_bytes = 1000;
    for (size_t over = 0; over < 2; over++) {
        rp_test_pair p;
        char value[1001] = {0};
        rp_test_header header = {"x-long", value};
        memset(value, 'v', 1000 - own - 6 - 32 + over);
        rp_test_pair_init(&p, &limits, NULL);
        (void)rp_test_client_open_with(p.client, "/a", &header, 1);
        rp_test_pair_carry(&p);
        assert_int_equal(p.request_count, 1);
        assert_int_equal(p.head.too_large, over);
        assert_false(p.head.too_many);
        rp_test_pair_deinit(&p);
    }
}

static void headers_that_decompress_to_much_are_counted(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    uint8_t block[9000];
    size_t size = 0;
    rp_test_pair p;

    /* ":path: /" and the like from the static table, one byte each, thousands of times */
    limits.header_fields = 64;
    block[size++] = 0x83;                             /* POST */
    block[size++] = 0x86;                             /* http */
    block[size++] = 0x84;                             /* / */
    while (size < sizeof block) block[size++] = 0x90; /* accept-encoding: gzip, deflate */
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry(&p);
    rp_test_send_frame(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof block);
    assert_true(p.nuisances[RP_NUISANCE_OTHER] >= 100);
    assert_true(p.request_count == 0 || p.head.too_many);
    rp_test_pair_deinit(&p);
}

static void calls_over_the_limit_are_refused_and_counted(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_pair p;

    limits.streams = 3;
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry_in(&p); /* the client has not seen our limit yet */
    for (uint32_t i = 0; i < 5; i++) rp_test_open_raw(&p, 1 + 2 * i);
    rp_test_drop_output(&p);
    assert_int_equal(p.request_count, 3);
    assert_int_equal(rp_h2_call_count(p.h2), 3);
    assert_int_equal(p.nuisances[RP_NUISANCE_REFUSED], 2);
    assert_true(p.alive);
    rp_test_slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    rp_test_open_raw(&p, 11);
    assert_int_equal(p.request_count, 4);
    rp_test_pair_deinit(&p);
}

static void a_call_over_the_acknowledged_limit_is_refused_alone(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_pair p;

    limits.streams = 3;
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry(&p);
    for (uint32_t i = 0; i < 4; i++) rp_test_open_raw(&p, 1 + 2 * i);
    rp_test_drop_output(&p);
    assert_int_equal(p.request_count, 3);
    assert_int_equal(p.nuisances[RP_NUISANCE_REFUSED], 1);
    assert_false(rp_h2_is_violated(p.h2));
    assert_true(p.alive);
    rp_test_slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    rp_test_open_raw(&p, 9);
    assert_int_equal(p.request_count, 4);
    rp_test_pair_deinit(&p);
}

static void the_client_waits_with_calls_over_the_limit(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_pair p;

    limits.streams = 2;
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry(&p);
    p.on_half_close = rp_test_finish_at_once;
    for (int i = 0; i < 2; i++) (void)rp_test_client_open(p.client, "/stays");
    for (int i = 0; i < 3; i++) rp_test_stream_end(rp_test_client_open(p.client, "/waits"));
    rp_test_pair_carry(&p);
    assert_int_equal(p.request_count, 2);
    rp_call_finish(p.calls[0], RP_OK, NULL);
    for (int i = 0; i < 3; i++) {
        rp_test_pair_carry(&p);
        rp_h2_sweep(p.h2);
    }
    rp_test_pair_carry(&p);
    assert_int_equal(p.request_count, 5);
    assert_int_equal(rp_test_nuisance_count(&p), 0);
    rp_test_pair_deinit(&p);
}

static void count_call(void *user, rp_call *call)
{
    ++*(size_t *)user;
    rp_call_finish(call, RP_UNAVAILABLE, "all of you");
}

static void every_open_call_can_be_visited(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *streams[5];
    size_t count = 0;

    rp_test_pair_init(&p, NULL, NULL);
    for (int i = 0; i < 5; i++) streams[i] = rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    rp_call_set_user(p.calls[2], &p);
    assert_ptr_equal(rp_call_user(p.calls[2]), &p);
    assert_null(rp_call_user(p.calls[1]));
    rp_h2_each_call(p.h2, count_call, &count);
    assert_int_equal(count, 5);
    rp_test_pair_carry(&p);
    for (int i = 0; i < 5; i++) assert_int_equal(streams[i]->status, RP_UNAVAILABLE);
    rp_test_pair_deinit(&p);
}

static void pings_are_answered(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_pongs(p.h2), 0);
    rp_h2_ping(p.h2);
    assert_true(rp_h2_wants_output(p.h2));
    rp_test_pair_carry(&p);
    assert_int_equal(p.client->pings, 1);
    assert_int_equal(rp_h2_pongs(p.h2), 1);
    rp_test_pair_deinit(&p);
}

static void incomplete_headers_and_messages_are_awaited(void **state)
{
    (void)state;
    const uint8_t *block = rp_test_request_block;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, 0, 1, block, 3); /* and no end of it */
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_HEADERS);
    assert_int_equal(p.request_count, 0);
    rp_test_slip_in(&p, 9, NGHTTP2_FLAG_END_HEADERS, 1, block + 3, 3);
    assert_int_equal(p.request_count, 1);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    rp_test_slip_in(&p, DATA, 0, 1, "\0\0", 2);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_MESSAGE);
    rp_test_slip_in(&p, DATA, 0, 1, "\0\0\1x", 4);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    assert_int_equal(p.message_count, 1);
    rp_test_pair_deinit(&p);
}

static void bad_headers_are_not_awaited(void **state)
{
    (void)state;
    static const uint8_t block[] = {0x83, 0x86, 0x84, 0, 1, 'A', 1, 'v'}; /* a capital */
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    rp_test_slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof block);
    rp_test_drop_output(&p);
    assert_int_equal(p.request_count, 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_BAD_FRAME], 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_MADE_RESET], 1);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    assert_true(p.alive);
    rp_test_pair_deinit(&p);
}

static void going_away_is_first_a_notice_and_then_final(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *before, *between, *after;

    rp_test_pair_init(&p, NULL, NULL);
    before = rp_test_client_open(p.client, "/before");
    rp_test_pair_carry(&p);
    between = rp_test_client_open(p.client, "/between"); /* on its way */
    rp_h2_go_away(p.h2);
    rp_test_pair_carry(&p);
    assert_true(p.client->goes_away);
    assert_int_equal(p.client->last_id, INT32_MAX);
    assert_int_equal(p.client->goaway_code, 0);
    assert_int_equal(p.request_count, 2);

    rp_h2_go_away(p.h2);
    rp_test_pair_carry(&p);
    assert_int_equal(p.client->last_id, between->id);
    after = rp_test_client_open(p.client, "/after");
    rp_test_pair_carry(&p);
    assert_int_equal(p.request_count, 2);
    assert_int_equal(after->status, -1);

    assert_false(rp_h2_is_over(p.h2));
    rp_call_finish(p.calls[0], RP_OK, NULL);
    rp_call_finish(p.calls[1], RP_OK, NULL);
    rp_test_stream_end(before);
    rp_test_stream_end(between);
    rp_test_pair_carry(&p);
    assert_int_equal(before->status, RP_OK);
    assert_int_equal(between->status, RP_OK);
    assert_true(rp_h2_is_over(p.h2));
    assert_false(rp_h2_is_violated(p.h2));
    rp_test_pair_deinit(&p);
}

static void termination_sends_goaway_with_its_code(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    rp_h2_terminate(p.h2, NGHTTP2_INTERNAL_ERROR, "why");
    rp_h2_terminate(p.h2, NGHTTP2_NO_ERROR, "other"); /* changes nothing */
    assert_true(rp_h2_is_ended(p.h2));
    rp_test_pair_carry_out(&p);
    assert_int_equal(p.client->goaway_code, NGHTTP2_INTERNAL_ERROR);
    assert_int_equal(stream->status, -1);
    assert_int_equal(p.close_count, 0);
    rp_test_pair_close(&p);
    assert_int_equal(p.close_count, 1);
    rp_test_pair_deinit(&p);
}

static void many_calls_one_after_the_other_leave_nothing(void **state)
{
    (void)state;
    rp_test_pair p;
    size_t live = 0;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = rp_test_finish_at_once;
    for (int i = 0; i < 2000; i++) {
        rp_test_stream_end(rp_test_client_open(p.client, "/a"));
        rp_test_pair_carry(&p);
        if (i == 100) live = p.oom.live_bytes;
    }
    assert_int_equal(p.request_count, 2000);
    assert_int_equal(p.close_count, 2000);
    assert_int_equal(rp_h2_call_count(p.h2), 0);
    assert_true(p.oom.live_bytes <= live);
    rp_test_pair_deinit(&p);
}

static void calls_of_a_closed_connection_end_in_pieces(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    for (int i = 0; i < 10; i++) (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_call_count(p.h2), 10);

    assert_int_equal(rp_h2_close_calls(p.h2, 4), 6);
    assert_int_equal(p.close_count, 4);
    for (size_t i = 0; i < 10; i++) /* those that are left may still be used, for nothing */
        if (p.calls[i] != NULL) rp_call_finish(p.calls[i], RP_OK, NULL);
    rp_test_drop_output(&p);
    assert_true(rp_h2_is_over(p.h2));
    assert_int_equal(rp_h2_close_calls(p.h2, 100), 0);
    assert_int_equal(p.close_count, 10);
    assert_int_equal(rp_h2_close_calls(p.h2, 100), 0);
    rp_test_pair_deinit(&p);
}

RP_TESTS(h2)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_closed_connection_end_in_pieces),
        cmocka_unit_test(settings_are_exchanged_before_anything_else),
        cmocka_unit_test(a_wrong_preface_gets_goaway),
        cmocka_unit_test(a_request_has_the_values_of_its_headers),
        cmocka_unit_test(a_malformed_timeout_is_marked),
        cmocka_unit_test(the_number_of_headers_has_a_limit),
        cmocka_unit_test(the_size_of_headers_has_a_limit),
        cmocka_unit_test(headers_that_decompress_to_much_are_counted),
        cmocka_unit_test(calls_over_the_limit_are_refused_and_counted),
        cmocka_unit_test(a_call_over_the_acknowledged_limit_is_refused_alone),
        cmocka_unit_test(the_client_waits_with_calls_over_the_limit),
        cmocka_unit_test(every_open_call_can_be_visited),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(incomplete_headers_and_messages_are_awaited),
        cmocka_unit_test(bad_headers_are_not_awaited),
        cmocka_unit_test(going_away_is_first_a_notice_and_then_final),
        cmocka_unit_test(termination_sends_goaway_with_its_code),
        cmocka_unit_test(many_calls_one_after_the_other_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
