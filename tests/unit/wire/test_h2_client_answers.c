/* SPDX-License-Identifier: Apache-2.0 */
/* A client and a server that the test simulates, frame by frame: valid and invalid responses.
 */
#include "support/unit.h"
#include "wire/h2/h2_inside.h"

enum { DATA = 0, HEADERS = 1, RESET = 3, SETTINGS = 4, PUSH = 5, PING = 6, GOAWAY = 7 };
enum { WINDOW = 8 };
enum { END = 1, ACK = 1, END_HEADERS = 4 };
enum { CALLS = 4 };

typedef struct world {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_message_pool pool;
    rp_h2 *h2;
    bool alive;
    uint8_t block[8192]; /* of headers */
    size_t block_size;
    rp_call *calls[CALLS];
    size_t begun, messages, ends, closes;
    rp_status status; /* of the last one that ended */
    char text[512];
    uint8_t sent[4096]; /* the last bytes of the client's */
    size_t sent_size;
} world;

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    (void)call, (void)data, (void)size, (void)block;
    ((world *)user)->messages++;
}

static void on_room(void *user, rp_call *call)
{
    (void)user, (void)call;
}

static void on_end(void *user, rp_call *call, rp_status status, const char *text)
{
    world *w = user;

    (void)call;
    w->ends++;
    w->status = status;
    (void)snprintf(w->text, sizeof w->text, "%s", text);
}

static void on_close(void *user, rp_call *call)
{
    world *w = user;

    w->closes++;
    for (size_t i = 0; i < CALLS; i++)
        if (w->calls[i] == call) w->calls[i] = NULL;
}

static const rp_h2_handler handler = {
    .on_message = on_message, .on_room = on_room, .on_close = on_close, .on_end = on_end};

/* Keeps what the client sends, the last of it. */
static void take_output(world *w)
{
    struct iovec part;

    w->sent_size = 0;
    while (rp_h2_output(w->h2, &part, 1) > 0) {
        size_t room = sizeof w->sent - w->sent_size;
        size_t size = part.iov_len < room ? part.iov_len : room;
        memcpy(w->sent + w->sent_size, part.iov_base, size);
        w->sent_size += size;
        rp_h2_written(w->h2, part.iov_len);
    }
}

/* Whether these bytes are among what the client sent last. */
static bool was_sent(const world *w, const void *bytes, size_t size)
{
    return memmem(w->sent, w->sent_size, bytes, size) != NULL;
}

static void feed(world *w, const void *data, size_t size)
{
    if (w->alive && size > 0) w->alive = rp_h2_receive(w->h2, data, size);
}

static void frame(world *w, unsigned type, unsigned flags, uint32_t stream, const void *data,
                  size_t size)
{
    const uint8_t head[9] = {
        (uint8_t)(size >> 16),   (uint8_t)(size >> 8),   (uint8_t)size,
        (uint8_t)type,           (uint8_t)flags,         (uint8_t)(stream >> 24),
        (uint8_t)(stream >> 16), (uint8_t)(stream >> 8), (uint8_t)stream};

    feed(w, head, sizeof head);
    feed(w, data, size);
}

static void field(world *w, const char *name, const char *value)
{
    size_t name_size = strlen(name), value_size = strlen(value);
    uint8_t *at = w->block + w->block_size;

    assert_true(name_size < 127 && value_size < 127);
    assert_true(w->block_size + name_size + value_size + 3 <= sizeof w->block);
    *at++ = 0; /* literal, not indexed */
    *at++ = (uint8_t)name_size;
    memcpy(at, name, name_size);
    at += name_size;
    *at++ = (uint8_t)value_size;
    memcpy(at, value, value_size);
    w->block_size += 3 + name_size + value_size;
}

static void send_headers(world *w, uint32_t stream, bool end)
{
    frame(w, HEADERS, END_HEADERS | (end ? END : 0u), stream, w->block, w->block_size);
    w->block_size = 0;
}

static void answer(world *w, uint32_t stream)
{
    field(w, ":status", "200");
    field(w, "content-type", "application/grpc");
    send_headers(w, stream, false);
}

static void trailers(world *w, uint32_t stream, const char *status, const char *text)
{
    if (status != NULL) field(w, "grpc-status", status);
    if (text != NULL) field(w, "grpc-message", text);
    field(w, "x-more", "or less");
    send_headers(w, stream, true);
}

static rp_call *begin(world *w)
{
    const rp_call_head head = {.path = "/a", .authority = "b", .timeout_ns = -1};

    assert_true(w->begun < CALLS);
    return w->calls[w->begun++] = rp_h2_begin(w->h2, &head, NULL);
}

static void start_with(world *w, const rp_h2_limits *limits)
{
    *w = (world){.oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED), .alive = true};
    w->alloc = rp_test_oom_allocator(&w->oom);
    rp_message_pool_init(&w->pool, &w->alloc);
    assert_ok(rp_h2_new_client(&w->alloc, &handler, w, limits, &w->pool, &w->h2));
}

/* A connection with one call, which has been sent. */
static void start(world *w)
{
    start_with(w, &(rp_h2_limits){.message_bytes = 1 << 20,
                                  .header_bytes = 4096,
                                  .header_fields = 32,
                                  .queued_bytes = 1 << 20});
    assert_non_null(begin(w));
    take_output(w);
    frame(w, SETTINGS, 0, 0, NULL, 0);
    frame(w, SETTINGS, ACK, 0, NULL, 0);
}

static void finish(world *w)
{
    rp_h2_free(w->h2);
    rp_message_pool_deinit(&w->pool);
    assert_int_equal(w->closes, w->begun);
    assert_int_equal(w->oom.live, 0);
}

static void assert_end(const world *w, rp_status status, const char *text)
{
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->status, status);
    assert_string_equal(w->text, text);
}

static void trailers_have_the_status(void **state)
{
    static const struct {
        const char *status, *text;
        rp_status expected;
        const char *shown;
    } cases[] = {
        {"0", NULL, RP_OK, ""},
        {"0", "ignored", RP_OK, ""},
        {"1", "why", RP_CANCELLED, "why"},
        {"5", "no t%C3%A9l%25", RP_NOT_FOUND, "no t\xc3\xa9l%"},
        {"10", "aborted", RP_PRECONDITION, "aborted"},
        {"11", "out of range", RP_INVALID, "out of range"},
        {"2", "unknown", RP_INTERNAL, "unknown"},
        {"17", "new", RP_INTERNAL, "new"},
        {"4294967296", NULL, RP_INTERNAL, ""},
        {"-1", "below", RP_INTERNAL, "below"},
        {"ok", "word", RP_INTERNAL, "word"},
        {NULL, "text alone", RP_INTERNAL, "the server ended the call without a status"},
    };

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        world w;
        size_t k = i / 2;
        start(&w);
        answer(&w, 1);
        if (i % 2 == 1) frame(&w, DATA, 0, 1, "\0\0\0\0\2hi\0\0\0\0\0", 12);
        trailers(&w, 1, cases[k].status, cases[k].text);
        assert_end(&w, cases[k].expected, cases[k].shown);
        assert_int_equal(w.messages, i % 2 == 1 ? 2 : 0);
        take_output(&w); /* our half was open: it is reset, with NO_ERROR */
        assert_true(was_sent(&w, "\0\0\4\3\0\0\0\0\1\0\0\0\0", 13));
        finish(&w);
    }
}

static void a_response_may_be_trailers_only(void **state)
{
    (void)state;
    for (int http = 200; http <= 503; http += 303) {
        world w;
        start(&w);
        field(&w, ":status", http == 200 ? "200" : "503");
        field(&w, "content-type", "application/grpc+proto");
        trailers(&w, 1, "16", "who%20are you?");
        assert_end(&w, RP_UNAUTHENTICATED, "who are you?");
        assert_int_equal(w.closes, 1);
        finish(&w);
    }
}

static void without_a_grpc_status_the_http_status_counts(void **state)
{
    static const struct {
        const char *status;
        rp_status expected;
    } cases[] = {{"401", RP_UNAUTHENTICATED}, {"403", RP_DENIED},
                 {"404", RP_UNIMPLEMENTED},   {"429", RP_UNAVAILABLE},
                 {"502", RP_UNAVAILABLE},     {"503", RP_UNAVAILABLE},
                 {"504", RP_UNAVAILABLE},     {"400", RP_INTERNAL},
                 {"500", RP_INTERNAL},        {"302", RP_INTERNAL}};

    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(cases); i++) {
        world w;
        char text[64];
        start(&w);
        field(&w, ":status", cases[i / 2].status);
        field(&w, "content-type", "text/html");
        send_headers(&w, 1, i % 2 == 0);
        (void)snprintf(text, sizeof text, "the server answered with HTTP status %s",
                       cases[i / 2].status);
        assert_end(&w, cases[i / 2].expected, text);
        if (i % 2 == 1) frame(&w, DATA, 0, 1, "<html>", 6); /* a page may follow */
        take_output(&w);
        if (i % 2 == 1) frame(&w, DATA, END, 1, "</html>", 7);
        assert_int_equal(w.messages, 0);
        assert_true(w.alive);
        finish(&w);
    }
}

static void a_response_of_another_content_type_is_refused(void **state)
{
    static const char *const types[] = {"text/plain", "application/grpcx", "application/json"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        world w;
        start(&w);
        field(&w, ":status", "200");
        field(&w, "content-type", types[i]);
        send_headers(&w, 1, false);
        assert_end(&w, RP_INTERNAL, "the server does not answer with gRPC");
        take_output(&w); /* CANCEL */
        assert_true(was_sent(&w, "\0\0\4\3\0\0\0\0\1\0\0\0\10", 13));
        finish(&w);
    }
}

static void informational_responses_are_skipped(void **state)
{
    world w;

    (void)state;
    start(&w);
    field(&w, ":status", "103");
    field(&w, "grpc-status", "5");
    send_headers(&w, 1, false);
    answer(&w, 1);
    frame(&w, DATA, 0, 1, "\0\0\0\0\2hi", 7);
    trailers(&w, 1, "0", NULL);
    assert_end(&w, RP_OK, "");
    assert_int_equal(w.messages, 1);
    finish(&w);
}

static void data_with_end_stream_ends_a_call_as_an_error(void **state)
{
    world w;

    (void)state;
    start(&w);
    answer(&w, 1);
    frame(&w, DATA, END, 1, "\0\0\0\0\2hi", 7);
    assert_end(&w, RP_INTERNAL, "the server ended the call without a status");
    assert_int_equal(w.messages, 1);
    finish(&w);
}

static void an_incomplete_message_turns_only_ok_into_an_error(void **state)
{
    (void)state;
    for (int bad = 0; bad < 2; bad++) {
        world w;
        start(&w);
        answer(&w, 1);
        frame(&w, DATA, 0, 1, "\0\0\0\0\3hi", 7);
        trailers(&w, 1, bad ? "8" : "0", "full");
        assert_end(&w, bad ? RP_NO_RESOURCE : RP_INTERNAL,
                   bad ? "full" : "the server ended the call within a message");
        finish(&w);
    }
}

static void a_compressed_message_ends_the_call(void **state)
{
    world w;

    (void)state;
    start(&w);
    answer(&w, 1);
    frame(&w, DATA, 0, 1, "\1\0\0\0\2hi", 7);
    assert_int_equal(w.ends, 1);
    assert_int_equal(w.status, RP_UNIMPLEMENTED);
    trailers(&w, 1, "0", NULL);
    assert_int_equal(w.ends, 1);
    finish(&w);
}

static void headers_have_their_limits(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        world w;
        char value[101] = {0};
        start(&w);
        memset(value, 'v', 100);
        field(&w, ":status", "200");
        for (int i = 0; i < 40; i++) field(&w, "x", how == 0 ? "" : value);
        send_headers(&w, 1, false);
        assert_end(&w, RP_NO_RESOURCE, "the headers of the answer are over the limit");
        assert_true(w.alive);
        finish(&w);
    }
}

static void a_reset_ends_the_call_as_grpc_says(void **state)
{
    static const rp_status expected[16] = {
        [0] = RP_INTERNAL,  [1] = RP_INTERNAL,  [2] = RP_INTERNAL,  [3] = RP_INTERNAL,
        [4] = RP_INTERNAL,  [5] = RP_INTERNAL,  [6] = RP_INTERNAL,  [7] = RP_UNAVAILABLE,
        [8] = RP_CANCELLED, [9] = RP_INTERNAL,  [10] = RP_INTERNAL, [11] = RP_NO_RESOURCE,
        [12] = RP_DENIED,   [13] = RP_INTERNAL, [14] = RP_INTERNAL, [15] = RP_INTERNAL,
    };

    (void)state;
    for (uint8_t i = 0; i < 32; i++) {
        world w;
        start(&w);
        if (i >= 16) {
            answer(&w, 1);
            frame(&w, DATA, 0, 1, "\0\0\0\0\2h", 6);
        }
        frame(&w, RESET, 0, 1, (uint8_t[]){0, 0, 0, i % 16}, 4);
        assert_int_equal(w.ends, 1);
        assert_int_equal(w.status, expected[i % 16]);
        assert_non_null(strstr(w.text, "the call was reset: "));
        assert_true(w.alive && rp_h2_can_begin(w.h2));
        finish(&w);
    }
}

static void a_reset_after_the_response_changes_nothing(void **state)
{
    (void)state;
    for (int paused = 0; paused < 2; paused++) {
        world w;
        start(&w);
        if (paused) rp_call_pause(w.calls[0]);
        answer(&w, 1);
        frame(&w, DATA, 0, 1, "\0\0\0\0\2hi", 7);
        trailers(&w, 1, "0", NULL);
        frame(&w, RESET, 0, 1, "\0\0\0\0", 4);
        take_output(&w);
        assert_int_equal(w.ends, !paused);
        if (paused) rp_call_resume(w.calls[0]);
        assert_end(&w, RP_OK, "");
        assert_int_equal(w.messages, 1);
        finish(&w);
    }
}

static void messages_before_a_reset_are_delivered(void **state)
{
    world w;

    (void)state;
    start(&w);
    rp_call_pause(w.calls[0]);
    answer(&w, 1);
    frame(&w, DATA, 0, 1, "\0\0\0\0\2hi", 7);
    frame(&w, RESET, 0, 1, "\0\0\0\10", 4);
    assert_int_equal(w.messages + w.ends, 0);
    rp_call_resume(w.calls[0]);
    assert_int_equal(w.messages, 1);
    assert_end(&w, RP_CANCELLED, "the call was reset: CANCEL");
    finish(&w);
}

static void goaway_ends_the_calls_above_its_last_stream(void **state)
{
    world w;

    (void)state;
    start(&w);
    assert_non_null(begin(&w));
    take_output(&w);
    assert_non_null(begin(&w)); /* not sent yet */
    frame(&w, GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0bye", 11);
    take_output(&w);
    assert_int_equal(w.ends, 2);
    assert_int_equal(w.status, RP_UNAVAILABLE);
    assert_false(rp_h2_can_begin(w.h2));
    assert_null(rp_h2_begin(w.h2, &(rp_call_head){"/a", "b", NULL, false, -1}, NULL));
    assert_non_null(w.calls[0]);
    answer(&w, 1);
    trailers(&w, 1, "0", NULL);
    take_output(&w);
    assert_int_equal(w.ends, 3);
    assert_int_equal(w.status, RP_OK);
    assert_true(rp_h2_is_over(w.h2));
    finish(&w);
}

static void the_limit_of_calls_may_change(void **state)
{
    static const uint8_t two[] = {0, 3, 0, 0, 0, 2}, none[] = {0, 3, 0, 0, 0, 0};
    world w;

    (void)state;
    start(&w);
    frame(&w, SETTINGS, 0, 0, two, sizeof two);
    assert_true(rp_h2_can_begin(w.h2));
    assert_non_null(begin(&w));
    assert_false(rp_h2_can_begin(w.h2));
    frame(&w, SETTINGS, 0, 0, none, sizeof none);
    take_output(&w);
    frame(&w, RESET, 0, 1, "\0\0\0\7", 4);
    assert_int_equal(w.ends, 1);
    assert_false(rp_h2_can_begin(w.h2)); /* the other one waits within the session */
    rp_call_cancel(w.calls[1]);
    take_output(&w);
    assert_int_equal(w.closes, 2);
    assert_false(rp_h2_can_begin(w.h2));
    frame(&w, SETTINGS, 0, 0, two, sizeof two);
    take_output(&w);
    assert_true(rp_h2_can_begin(w.h2));
    assert_int_equal(w.h2->streams, 0);
    finish(&w);
}

static void a_server_may_ping_and_open_windows_as_it_likes(void **state)
{
    world w;

    (void)state;
    start(&w);
    for (int i = 0; i < 10000; i++) {
        frame(&w, PING, 0, 0, "12345678", 8);
        frame(&w, WINDOW, 0, 0, "\0\0\0\1", 4);
        frame(&w, SETTINGS, 0, 0, NULL, 0);
        frame(&w, 77, 0, 0, "what", 4);
        if (i % 1000 == 0) take_output(&w);
    }
    assert_true(w.alive);
    finish(&w);
}

static void a_server_that_pings_and_never_reads_is_disconnected(void **state)
{
    world w;
    size_t live;

    (void)state;
    start(&w);
    live = w.oom.live_bytes;
    for (int i = 0; i < 100000 && w.alive; i++) frame(&w, PING, 0, 0, "12345678", 8);
    assert_false(w.alive);
    assert_true(w.oom.live_bytes - live < 8 << 20);
    finish(&w);
    assert_end(&w, RP_UNAVAILABLE, "the server does not keep to HTTP/2");
}

static void a_server_of_another_protocol_is_disconnected(void **state)
{
    static const char *const first[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                        "\0\0\0\1\0\0\0\0\1"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(first); i++) {
        world w;
        start_with(&w, &(rp_h2_limits){.message_bytes = 1 << 20,
                                       .header_bytes = 4096,
                                       .header_fields = 32,
                                       .queued_bytes = 1 << 20});
        assert_non_null(begin(&w));
        take_output(&w);
        feed(&w, first[i], i == 0 ? strlen(first[i]) : 9);
        take_output(&w);
        assert_true(rp_h2_is_over(w.h2) && rp_h2_is_violated(w.h2));
        assert_false(rp_h2_can_begin(w.h2));
        finish(&w);
        assert_end(&w, RP_UNAVAILABLE, "the server does not keep to HTTP/2");
    }
}

/* Headers that are not allowed, after which the stream is reset from here. */
static void a_malformed_response_ends_its_call_only(void **state)
{
    static const char *const bad[][2] = {
        {":status", "20"}, {":method", "GET"}, {"Content-Type", "x"}, {"connection", "close"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        world w;
        start(&w);
        if (i > 0) field(&w, ":status", "200");
        field(&w, bad[i][0], bad[i][1]);
        send_headers(&w, 1, false);
        take_output(&w);
        assert_int_equal(w.ends, 1);
        assert_int_equal(w.status, RP_INTERNAL);
        assert_true(w.alive);
        finish(&w);
    }
}

static void pushed_responses_are_refused(void **state)
{
    world w;

    (void)state;
    start_with(&w, &(rp_h2_limits){.message_bytes = 1 << 20,
                                   .header_bytes = 4096,
                                   .header_fields = 32,
                                   .queued_bytes = 1 << 20});
    assert_non_null(begin(&w));
    take_output(&w);
    frame(&w, SETTINGS, 0, 0, NULL, 0); /* but it has not seen ours */
    memcpy(w.block, "\0\0\0\2", 4);
    w.block_size = 4;
    field(&w, ":method", "GET");
    field(&w, ":path", "/p");
    frame(&w, PUSH, END_HEADERS, 1, w.block, w.block_size);
    w.block_size = 0;
    take_output(&w);
    answer(&w, 2);
    answer(&w, 1);
    trailers(&w, 1, "0", NULL);
    assert_end(&w, RP_OK, "");
    assert_int_equal(rp_h2_call_count(w.h2), 0);
    finish(&w);
}

static void data_before_headers_breaks_the_connection(void **state)
{
    world w;

    (void)state;
    start(&w);
    frame(&w, DATA, 0, 1, "\0\0\0\0\2hi", 7);
    take_output(&w);
    assert_int_equal(w.messages, 0);
    assert_true(rp_h2_is_over(w.h2) && rp_h2_is_violated(w.h2));
    finish(&w);
}

static void the_preface_and_our_settings_come_first(void **state)
{
    world w;

    (void)state;
    start_with(&w, &(rp_h2_limits){.message_bytes = 1 << 20,
                                   .header_bytes = 4096,
                                   .header_fields = 32,
                                   .queued_bytes = 1 << 20});
    assert_non_null(begin(&w));
    take_output(&w);
    assert_true(w.sent_size > 33 &&
                memcmp(w.sent, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24) == 0);
    assert_memory_equal(w.sent + 24, "\0\0\30\4\0\0\0\0\0\0\2\0\0\0\0", 15); /* no pushes */
    assert_true(was_sent(&w, "\0\4\0\100\0\0", 6));                          /* 4 MiB */
    finish(&w);
}

RP_TESTS(h2_client_answers)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trailers_have_the_status),
        cmocka_unit_test(a_response_may_be_trailers_only),
        cmocka_unit_test(without_a_grpc_status_the_http_status_counts),
        cmocka_unit_test(a_response_of_another_content_type_is_refused),
        cmocka_unit_test(informational_responses_are_skipped),
        cmocka_unit_test(data_with_end_stream_ends_a_call_as_an_error),
        cmocka_unit_test(an_incomplete_message_turns_only_ok_into_an_error),
        cmocka_unit_test(a_compressed_message_ends_the_call),
        cmocka_unit_test(headers_have_their_limits),
        cmocka_unit_test(a_reset_ends_the_call_as_grpc_says),
        cmocka_unit_test(a_reset_after_the_response_changes_nothing),
        cmocka_unit_test(messages_before_a_reset_are_delivered),
        cmocka_unit_test(goaway_ends_the_calls_above_its_last_stream),
        cmocka_unit_test(the_limit_of_calls_may_change),
        cmocka_unit_test(a_server_may_ping_and_open_windows_as_it_likes),
        cmocka_unit_test(a_server_that_pings_and_never_reads_is_disconnected),
        cmocka_unit_test(a_server_of_another_protocol_is_disconnected),
        cmocka_unit_test(a_malformed_response_ends_its_call_only),
        cmocka_unit_test(pushed_responses_are_refused),
        cmocka_unit_test(data_before_headers_breaks_the_connection),
        cmocka_unit_test(the_preface_and_our_settings_come_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
