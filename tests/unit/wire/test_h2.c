/* SPDX-License-Identifier: Apache-2.0 */
/* A connection as a whole: its beginning and end, requests, and what a peer does too often. */
#include <stdio.h>

#include "support/h2_pair.h"

enum { DATA = 0, HEADERS = 1, PRIORITY = 2, RESET = 3, SETTINGS = 4, PING = 6, WINDOW = 8 };

static rp_h2_wait waits(const rp_test_pair *p)
{
    uint64_t bytes;

    return rp_h2_waits_for(p->h2, &bytes);
}

/* Frames of the peer's that nghttp2 would not send. */
static void send_frame(rp_test_pair *p, uint8_t type, uint8_t flags, uint32_t stream,
                       const void *payload, size_t size)
{
    rp_test_client_frame(p->client, type, flags, stream, payload, size);
    rp_test_pair_carry(p);
}

/* The same past the client, which would not understand the answer. */
static void slip_in(rp_test_pair *p, uint8_t type, uint8_t flags, uint32_t stream,
                    const void *payload, size_t size)
{
    const uint8_t head[9] = {0, (uint8_t)(size >> 8), (uint8_t)size, type, flags, 0, 0,
                             0, (uint8_t)stream};

    rp_test_pair_feed(p, head, sizeof head);
    rp_test_pair_feed(p, payload, size);
}

/* Drops what there is to be written. */
static void drop_output(rp_test_pair *p)
{
    struct iovec part;

    while (rp_h2_output(p->h2, &part, 1) > 0) rp_h2_written(p->h2, part.iov_len);
}

static size_t nuisance_count(const rp_test_pair *p)
{
    size_t sum = 0;

    for (size_t i = 0; i < RP_NUISANCE_KINDS; i++) sum += p->nuisances[i];
    return sum;
}

static void finish_at_once(rp_test_pair *p, rp_call *call)
{
    (void)p;
    rp_call_finish(call, RP_OK, NULL);
}

/* --- beginning ---------------------------------------------------------------------------------- */

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
    assert_int_equal(nuisance_count(&p), 0);
    rp_test_pair_deinit(&p);
}

static void who_speaks_something_else_is_told_so(void **state)
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

/* --- requests ----------------------------------------------------------------------------------- */

static void a_request_shows_what_its_headers_say(void **state)
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

static void a_timeout_that_is_none_is_marked(void **state)
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

static void headers_that_unpack_to_much_are_counted(void **state)
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
    send_frame(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof block);
    assert_true(p.nuisances[RP_NUISANCE_OTHER] >= 100);
    assert_true(p.request_count == 0 || p.head.too_many);
    rp_test_pair_deinit(&p);
}

static const uint8_t request_block[] = {0x83, 0x86, 0x84, 0x41, 1, 'a'};

static void open_raw(rp_test_pair *p, uint32_t stream)
{
    slip_in(p, HEADERS, NGHTTP2_FLAG_END_HEADERS, stream, request_block, sizeof request_block);
}

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
    slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, size + 39000);
    assert_int_equal(p.nuisances[RP_NUISANCE_OTHER], 39000 / 4096);
    rp_test_pair_deinit(&p);
}

static void size_updates_of_the_header_table_count(void **state)
{
    (void)state;
    rp_test_pair p;
    uint8_t block[100 + sizeof request_block];

    memset(block, 0x20, 100);
    memcpy(block + 100, request_block, sizeof request_block);
    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block + 98, sizeof block - 98);
    assert_int_equal(p.request_count, 1);
    assert_int_equal(nuisance_count(&p), 0);
    slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, block, sizeof block);
    assert_int_equal(p.request_count, 2);
    assert_int_equal(p.nuisances[RP_NUISANCE_TABLE_SIZE], 98);
    assert_int_equal(nuisance_count(&p), 98);
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
    slip_in(&p, HEADERS, 0, 1, block, 2 + 9);
    assert_false(rp_h2_is_ended(p.h2));
    slip_in(&p, NGHTTP2_CONTINUATION, 0, 1, block, 1);
    assert_true(rp_h2_is_ended(p.h2));
    assert_int_equal(p.request_count, 0);
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
    for (uint32_t i = 0; i < 5; i++) open_raw(&p, 1 + 2 * i);
    drop_output(&p);
    assert_int_equal(p.request_count, 3);
    assert_int_equal(rp_h2_call_count(p.h2), 3);
    assert_int_equal(p.nuisances[RP_NUISANCE_REFUSED], 2);
    assert_true(p.alive);
    slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    open_raw(&p, 11);
    assert_int_equal(p.request_count, 4);
    rp_test_pair_deinit(&p);
}

static void who_knows_the_limit_and_goes_over_it_loses_the_call_only(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_pair p;

    limits.streams = 3;
    rp_test_pair_init(&p, &limits, NULL);
    rp_test_pair_carry(&p);
    for (uint32_t i = 0; i < 4; i++) open_raw(&p, 1 + 2 * i);
    drop_output(&p);
    assert_int_equal(p.request_count, 3);
    assert_int_equal(p.nuisances[RP_NUISANCE_REFUSED], 1);
    assert_false(rp_h2_is_violated(p.h2));
    assert_true(p.alive);
    slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    open_raw(&p, 9);
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
    p.on_half_close = finish_at_once;
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
    assert_int_equal(nuisance_count(&p), 0);
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

/* --- nuisances ---------------------------------------------------------------------------------- */

static void resets_count_before_an_answer_and_not_after(void **state)
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
    assert_int_equal(nuisance_count(&p), 1);
    rp_test_pair_deinit(&p);
}

static void pings_count_unless_data_explains_them(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (int i = 0; i < 7; i++) send_frame(&p, PING, 0, 0, "12345678", 8);
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 7);
    assert_int_equal(p.client->pongs, 7);
    rp_test_pair_say(&p, p.calls[0], "one frame", 9);
    rp_test_pair_carry(&p);
    for (int i = 0; i < RP_H2_EARNED_PINGS + 2; i++) send_frame(&p, PING, 0, 0, "12345678", 8);
    assert_int_equal(p.nuisances[RP_NUISANCE_PING], 7 + 2);
    send_frame(&p, PING, NGHTTP2_FLAG_ACK, 0, "12345678", 8); /* we have not asked */
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
    for (int i = 0; i < 3; i++) slip_in(&p, SETTINGS, 0, 0, NULL, 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_SETTINGS], 3);
    assert_int_equal(nuisance_count(&p), 3);
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
    for (int i = 0; i < 4; i++) send_frame(&p, DATA, 0, 1, NULL, 0);
    send_frame(&p, DATA, NGHTTP2_FLAG_PADDED, 1, padding, sizeof padding);
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 5);
    send_frame(&p, DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0); /* but for the end */
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 5);
    assert_int_equal(p.half_close_count, 1);
    assert_int_equal(nuisance_count(&p), 5);
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
        send_frame(&p, WINDOW, 0, i % 2 == 1 ? 1 : 0, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 3);
    rp_test_pair_say(&p, p.calls[0], "one frame", 9);
    rp_test_pair_carry(&p);
    for (int i = 0; i < RP_H2_EARNED_WINDOWS + 1; i++)
        send_frame(&p, WINDOW, 0, 0, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 4);
    rp_test_pair_deinit(&p);
}

static void what_is_earned_has_a_bound(void **state)
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
    send_frame(&p, 0xbe, 0, 0, "whatever", 8);
    send_frame(&p, 0xff, 0xff, 1, NULL, 0);
    send_frame(&p, PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
    assert_int_equal(p.nuisances[RP_NUISANCE_OTHER], 2);
    assert_int_equal(p.nuisances[RP_NUISANCE_PRIORITY], 1);
    assert_true(p.alive);
    assert_int_equal(nuisance_count(&p), 3);
    rp_test_pair_deinit(&p);
}

static void a_peer_that_makes_us_reset_a_call_is_counted(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    open_raw(&p, 1);
    slip_in(&p, WINDOW, 0, 1, "\x7f\xff\xff\xff", 4); /* more than a window can be */
    drop_output(&p);
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
    open_raw(&p, 1);
    slip_in(&p, HEADERS, flags, 1, trailers, sizeof trailers);
    assert_int_equal(nuisance_count(&p), 0);
    assert_int_equal(p.half_close_count, 1);
    slip_in(&p, HEADERS, flags, 1, trailers, sizeof trailers);
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
    p.on_request = finish_at_once;
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (size_t i = 0; i < free_frames; i++) slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(nuisance_count(&p), 0);
    for (size_t i = 0; i < 5; i++) slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 5);
    assert_int_equal(nuisance_count(&p), 5);
    rp_test_pair_deinit(&p);
}

/* Opens a call, has it answered in full, and half-closes it: its stream has ended. */
static void end_a_call(rp_test_pair *p)
{
    rp_test_stream *stream;

    p->on_half_close = finish_at_once;
    stream = rp_test_client_open(p->client, "/a");
    rp_test_pair_carry(p);
    rp_test_stream_end(stream);
    rp_test_pair_carry(p);
    assert_int_equal(p->close_count, 1);
    assert_int_equal(nuisance_count(p), 0);
    p->h2->earned_windows = 0;
}

static void frames_of_a_call_that_is_over_count(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    end_a_call(&p);
    for (int i = 0; i < 3; i++) slip_in(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 3);
    slip_in(&p, DATA, 0, 1, NULL, 0);
    slip_in(&p, DATA, NGHTTP2_FLAG_END_STREAM, 1, NULL, 0);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 5);
    for (int i = 0; i < 3; i++) slip_in(&p, RESET, 0, 1, "\0\0\0\10", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 7); /* one may cross our end of the call */
    slip_in(&p, WINDOW, 0, 1, "\0\0\0\1", 4);
    assert_int_equal(p.nuisances[RP_NUISANCE_WINDOW], 1);
    slip_in(&p, PRIORITY, 0, 1, "\0\0\0\0\x10", 5);
    assert_int_equal(p.nuisances[RP_NUISANCE_PRIORITY], 1);
    assert_int_equal(nuisance_count(&p), 9);
    assert_true(p.alive);
    rp_test_pair_deinit(&p);
}

/* We answer before the peer has sent all. A window of it may be under way. */
static void data_that_was_under_way_does_not_count(void **state)
{
    (void)state;
    const size_t frame_bytes = 16 << 10, in_window = RP_H2_WINDOW / frame_bytes;
    uint8_t *frame = calloc(1, 9 + frame_bytes);
    rp_test_pair p;

    frame[1] = (uint8_t)(frame_bytes >> 8);
    frame[8] = 1;
    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = finish_at_once;
    (void)rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    for (size_t i = 0; i < in_window / 2; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(nuisance_count(&p), 0);
    for (int i = 0; i < 2; i++) rp_h2_sweep(p.h2); /* resets it */
    drop_output(&p);
    assert_int_equal(p.close_count, 1);
    for (size_t i = 0; i < in_window / 2; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(nuisance_count(&p), 0);

    p.h2->earned_late = frame_bytes;
    for (size_t i = 0; i < 3; i++) rp_test_pair_feed(&p, frame, 9 + frame_bytes);
    assert_int_equal(p.nuisances[RP_NUISANCE_LATE], 2);
    assert_int_equal(nuisance_count(&p), 2);
    free(frame);
    rp_test_pair_deinit(&p);
}

static void what_may_be_under_way_has_a_bound(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_request = finish_at_once;
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
    send_frame(&p, DATA, 0, 1, "\0\0\0\0\1x", 6);                          /* a message */
    assert_int_equal(p.h2->earned_fragments, 2 * RP_H2_MESSAGE_FRAGMENTS); /* and the call */
    p.h2->earned_fragments = RP_H2_MESSAGE_FRAGMENTS;
    for (int i = 0; i < 2; i++) send_frame(&p, DATA, 0, 1, "\0\0\0\0\10", i == 0 ? 1 : 3);
    assert_int_equal(nuisance_count(&p), 0);
    send_frame(&p, DATA, 0, 1, "\10", 1);
    for (int i = 0; i < 7; i++) send_frame(&p, DATA, 0, 1, "x", 1);
    assert_int_equal(p.message_count, 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_FRAGMENT], 8);
    send_frame(&p, DATA, 0, 1, "x", 1); /* completes it */
    assert_int_equal(p.message_count, 2);
    assert_int_equal(nuisance_count(&p), 8);
    rp_test_pair_deinit(&p);
}

static void small_continuations_count(void **state)
{
    (void)state;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    slip_in(&p, HEADERS, 0, 1, "", 0);
    for (int i = 0; i < 3; i++) slip_in(&p, NGHTTP2_CONTINUATION, 0, 1, "", 0);
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
        assert_int_equal(nuisance_count(&p), most); /* nothing is read behind it */
        assert_true(rp_h2_is_ended(p.h2) && !rp_h2_is_violated(p.h2));
        assert_true(p.client->goes_away);
        assert_int_equal(p.client->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
        assert_false(rp_h2_receive(p.h2, (const uint8_t *)"x", 1));
        rp_test_pair_deinit(&p);
    }
}

/* --- signs of life and the end ------------------------------------------------------------------ */

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

static void what_is_begun_is_waited_for(void **state)
{
    (void)state;
    const uint8_t *block = request_block;
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    slip_in(&p, HEADERS, 0, 1, block, 3); /* and no end of it */
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_HEADERS);
    assert_int_equal(p.request_count, 0);
    slip_in(&p, 9, NGHTTP2_FLAG_END_HEADERS, 1, block + 3, 3);
    assert_int_equal(p.request_count, 1);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    slip_in(&p, DATA, 0, 1, "\0\0", 2);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_MESSAGE);
    slip_in(&p, DATA, 0, 1, "\0\0\1x", 4);
    assert_int_equal(waits(&p), RP_H2_WAITS_FOR_NOTHING);
    assert_int_equal(p.message_count, 1);
    rp_test_pair_deinit(&p);
}

static void bad_headers_are_not_waited_for(void **state)
{
    (void)state;
    static const uint8_t block[] = {0x83, 0x86, 0x84, 0, 1, 'A', 1, 'v'}; /* a capital */
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p);
    slip_in(&p, HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, block, sizeof block);
    drop_output(&p);
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

static void an_end_is_told_with_its_reason(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    rp_h2_terminate(p.h2, NGHTTP2_INTERNAL_ERROR);
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
    p.on_request = finish_at_once;
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
    drop_output(&p);
    assert_true(rp_h2_is_over(p.h2));
    assert_int_equal(rp_h2_close_calls(p.h2, 100), 0);
    assert_int_equal(p.close_count, 10);
    assert_int_equal(rp_h2_close_calls(p.h2, 100), 0);
    rp_test_pair_deinit(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_closed_connection_end_in_pieces),
        cmocka_unit_test(settings_are_exchanged_before_anything_else),
        cmocka_unit_test(who_speaks_something_else_is_told_so),
        cmocka_unit_test(a_request_shows_what_its_headers_say),
        cmocka_unit_test(a_timeout_that_is_none_is_marked),
        cmocka_unit_test(the_number_of_headers_has_a_limit),
        cmocka_unit_test(the_size_of_headers_has_a_limit),
        cmocka_unit_test(headers_that_unpack_to_much_are_counted),
        cmocka_unit_test(a_large_field_over_the_limit_counts_by_its_bytes),
        cmocka_unit_test(size_updates_of_the_header_table_count),
        cmocka_unit_test(size_updates_end_the_connection_before_their_block_does),
        cmocka_unit_test(calls_over_the_limit_are_refused_and_counted),
        cmocka_unit_test(who_knows_the_limit_and_goes_over_it_loses_the_call_only),
        cmocka_unit_test(the_client_waits_with_calls_over_the_limit),
        cmocka_unit_test(every_open_call_can_be_visited),
        cmocka_unit_test(resets_count_before_an_answer_and_not_after),
        cmocka_unit_test(pings_count_unless_data_explains_them),
        cmocka_unit_test(settings_count_after_the_first),
        cmocka_unit_test(frames_that_carry_nothing_count),
        cmocka_unit_test(window_updates_count_unless_data_explains_them),
        cmocka_unit_test(what_is_earned_has_a_bound),
        cmocka_unit_test(unknown_frames_and_priorities_count),
        cmocka_unit_test(a_peer_that_makes_us_reset_a_call_is_counted),
        cmocka_unit_test(trailers_are_free_once),
        cmocka_unit_test(tiny_data_of_a_call_that_we_have_ended_counts),
        cmocka_unit_test(frames_of_a_call_that_is_over_count),
        cmocka_unit_test(data_that_was_under_way_does_not_count),
        cmocka_unit_test(what_may_be_under_way_has_a_bound),
        cmocka_unit_test(fragments_of_a_message_count_but_for_two_a_message),
        cmocka_unit_test(small_continuations_count),
        cmocka_unit_test(too_many_nuisances_end_the_connection),
        cmocka_unit_test(pings_are_answered),
        cmocka_unit_test(what_is_begun_is_waited_for),
        cmocka_unit_test(bad_headers_are_not_waited_for),
        cmocka_unit_test(going_away_is_first_a_notice_and_then_final),
        cmocka_unit_test(an_end_is_told_with_its_reason),
        cmocka_unit_test(many_calls_one_after_the_other_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
