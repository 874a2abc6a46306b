/* SPDX-License-Identifier: Apache-2.0 */
/* Responses that are sent: borrowed bytes, in writes of any size. */
#include "chunk/trajectory.h"
#include "support/fixture.h"
#include "support/h2_pair.h"

enum { MIB = 1 << 20 };

/* A chunk large enough to be borrowed, and who refers to it. */
typedef struct borrowed {
    rp_trajectory *trajectory;
    const uint8_t *wire;
    size_t bytes;
} borrowed;

static borrowed borrow(size_t payload)
{
    borrowed b = {.trajectory =
                      rp_test_blob_trajectory(rp_allocator_default(), 0x5a, 1, payload)};

    b.wire = rp_chunk_wire(rp_trajectory_get_chunk(b.trajectory, 0), &b.bytes);
    return b;
}

static size_t references(const borrowed *b)
{
    return atomic_load(&b->trajectory->refs.n);
}

static void give_up(borrowed *b)
{
    assert_int_equal(references(b), 1);
    rp_trajectory_unref(b->trajectory);
}

static void send_borrowed(rp_test_pair *p, rp_call *call, const borrowed *b)
{
    rp_message *reply = rp_test_pair_reply(p, b->wire, b->bytes, b->trajectory);

    assert_non_null(reply);
    rp_call_send(call, reply);
}

static void expect_borrowed(const rp_test_stream *stream, size_t index, const borrowed *b)
{
    size_t size;
    const uint8_t *data = rp_test_stream_message(stream, index, &size);

    assert_int_equal(size, b->bytes);
    assert_memory_equal(data, b->wire, size);
}

/* A call that is open and has no answer yet. */
static rp_test_stream *open_call(rp_test_pair *p)
{
    rp_test_stream *stream = rp_test_client_open(p->client, "/a");
    size_t before = p->request_count;

    rp_test_pair_carry(p);
    assert_int_equal(p->request_count, before + 1);
    return stream;
}

/* Windows in which nothing has to wait. */
static const rp_test_client_options wide = {.window = 1 << 30, .session_window = 1 << 30};

static void messages_come_before_the_status(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;
    size_t size;

    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    rp_test_pair_say(&p, p.calls[0], "one", 3);
    rp_test_pair_say(&p, p.calls[0], "", 0);
    rp_test_pair_say(&p, p.calls[0], "three", 5);
    rp_test_pair_carry(&p);
    assert_int_equal(stream->message_count, 3);
    assert_int_equal(stream->status, -1);
    rp_call_finish(p.calls[0], RP_OK, "not told with OK");
    assert_true(rp_call_is_finished(p.calls[0]));
    rp_test_stream_end(stream);
    rp_test_pair_carry(&p);

    assert_int_equal(stream->http_status, 200);
    assert_string_equal(stream->content_type, "application/grpc");
    assert_memory_equal(rp_test_stream_message(stream, 0, &size), "one", 3);
    (void)rp_test_stream_message(stream, 1, &size);
    assert_int_equal(size, 0);
    assert_memory_equal(rp_test_stream_message(stream, 2, &size), "three", 5);
    assert_int_equal(stream->status, RP_OK);
    assert_string_equal(stream->text, "");
    assert_true(stream->has_trailers && stream->is_over && !stream->was_reset);
    assert_int_equal(p.close_count, 1);
    assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void a_status_alone_comes_with_the_headers(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    rp_call_finish(p.calls[0], RP_NOT_FOUND, "no table '\xc3\xa9' of 100 %");
    rp_test_pair_carry(&p);
    assert_int_equal(stream->http_status, 200);
    assert_int_equal(stream->status, RP_NOT_FOUND);
    assert_string_equal(stream->text, "no table '%C3%A9' of 100 %25");
    assert_false(stream->has_trailers);
    assert_int_equal(stream->message_count, 0);
    rp_test_pair_deinit(&p);
}

static void a_long_status_message_is_cut(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;
    char text[1000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    rp_call_finish(p.calls[0], RP_INTERNAL, text);
    rp_test_pair_carry(&p);
    assert_int_equal(strlen(stream->text), RP_H2_TEXT_BYTES - 1);
    rp_test_pair_deinit(&p);
}

static void only_the_first_finish_counts(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    rp_call_finish(p.calls[0], RP_NOT_FOUND, "first");
    rp_call_finish(p.calls[0], RP_OK, NULL);
    rp_call_abort(p.calls[0], RP_INTERNAL, "third");
    rp_test_pair_say(&p, p.calls[0], "late", 4);
    rp_call_respond_http(p.calls[0], &(rp_http_response){200, "text/plain", NULL, NULL}, NULL);
    rp_test_pair_carry(&p);
    assert_int_equal(stream->status, RP_NOT_FOUND);
    assert_string_equal(stream->text, "first");
    assert_int_equal(stream->message_count, 0);
    assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void http_requests_get_http_responses(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *with, *without, *head;

    rp_test_pair_init(&p, NULL, NULL);
    with = rp_test_client_get(p.client, "GET", "/with");
    without = rp_test_client_get(p.client, "GET", "/without");
    head = rp_test_client_get(p.client, "HEAD", "/empty");
    rp_test_pair_carry(&p);
    rp_call_respond_http(p.calls[0], &(rp_http_response){200, "text/html", NULL, NULL},
                         rp_test_pair_reply(&p, "<p>", 3, NULL));
    rp_call_respond_http(p.calls[1], &(rp_http_response){404, "text/plain", "allow", "GET"},
                         NULL);
    rp_call_respond_http(p.calls[2], &(rp_http_response){503, "text/plain", NULL, NULL},
                         rp_test_pair_reply(&p, "", 0, NULL));
    rp_test_pair_carry(&p);

    assert_int_equal(with->http_status, 200);
    assert_string_equal(with->content_type, "text/html");
    assert_int_equal(with->in.size, 3);
    assert_memory_equal(with->in.data, "<p>", 3);
    assert_int_equal(with->status, -1);
    assert_int_equal(without->http_status, 404);
    assert_int_equal(without->in.size, 0);
    assert_int_equal(head->http_status, 503);
    assert_true(with->is_over && without->is_over && head->is_over);
    assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void responses_are_sent_in_parts_of_every_size(void **state)
{
    static const size_t steps[] = {1, 2, 3, 5, 9, 100, 4095, 4096, 10000};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(steps); i++)
        for (size_t parts = 1; parts < 4; parts++) {
            borrowed b = borrow(9000);
            rp_test_pair p;
            rp_test_stream *stream;
            size_t size;

            rp_test_pair_init(&p, NULL, NULL);
            stream = open_call(&p);
            p.out_bytes = steps[i];
            p.out_parts = parts;
            rp_test_pair_say(&p, p.calls[0], "first", 5);
            send_borrowed(&p, p.calls[0], &b);
            rp_test_pair_say(&p, p.calls[0], "middle", 6);
            send_borrowed(&p, p.calls[0], &b);
            rp_call_finish(p.calls[0], RP_OK, NULL);
            rp_test_pair_carry(&p);

            assert_false(p.client->is_bad);
            assert_int_equal(stream->message_count, 4);
            assert_memory_equal(rp_test_stream_message(stream, 0, &size), "first", 5);
            expect_borrowed(stream, 1, &b);
            assert_memory_equal(rp_test_stream_message(stream, 2, &size), "middle", 6);
            expect_borrowed(stream, 3, &b);
            assert_int_equal(stream->status, RP_OK);
            assert_int_equal(references(&b), 1);
            assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
            rp_test_pair_deinit(&p);
            give_up(&b);
        }
}

static void borrowed_bytes_are_held_until_sent(void **state)
{
    (void)state;
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *stream;
    size_t queued, left = 0;

    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    send_borrowed(&p, p.calls[0], &b);
    assert_int_equal(references(&b), 2);
    assert_int_equal(rp_h2_queued_bytes(p.h2), b.bytes + 5);
    while (stream->message_count == 0) {
        assert_int_equal(references(&b), 2);
        queued = rp_h2_queued_bytes(p.h2);
        assert_int_equal(rp_test_pair_write(&p, 7), 7);
        assert_true(rp_h2_queued_bytes(p.h2) <= queued);
        assert_int_equal(rp_h2_left_bytes(p.h2) + rp_h2_queued_bytes(p.h2), b.bytes + 5);
        assert_true(rp_h2_left_bytes(p.h2) >= left);
        left = rp_h2_left_bytes(p.h2);
    }
    rp_test_pair_carry(&p);
    assert_int_equal(references(&b), 1);
    assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void a_call_may_be_closed_while_its_bytes_are_being_written(void **state)
{
    (void)state;
    for (size_t written = 0; written < 20000; written += 1233) {
        /* in every other round the window ends within the second message */
        rp_test_client_options options = {.window = written % 2 == 0 ? 65535 : 7000};
        borrowed b = borrow(5000);
        rp_test_pair p;
        rp_test_stream *stream, *other;

        rp_test_pair_init(&p, NULL, &options);
        other = open_call(&p);
        stream = open_call(&p);
        send_borrowed(&p, p.calls[1], &b);
        send_borrowed(&p, p.calls[1], &b);
        send_borrowed(&p, p.calls[1], &b);
        (void)rp_test_pair_write(&p, 10);
        (void)rp_test_pair_write(&p, written / 2);
        rp_test_stream_reset(stream, NGHTTP2_CANCEL);
        rp_test_pair_carry_in(&p);
        assert_int_equal(p.close_count, 1);
        rp_test_pair_say(&p, p.calls[0], "still here", 10);
        rp_test_pair_carry(&p);

        assert_false(p.client->is_bad);
        assert_int_equal(other->message_count, 1);
        assert_int_equal(references(&b), 1);
        assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
        rp_test_pair_deinit(&p);
        give_up(&b);
    }
}

static void a_connection_may_be_freed_while_its_bytes_are_being_written(void **state)
{
    (void)state;
    for (size_t written = 0; written < 20000; written += 3000) {
        borrowed b = borrow(5000);
        rp_test_pair p;

        rp_test_pair_init(&p, NULL, NULL);
        (void)open_call(&p);
        for (int i = 0; i < 4; i++) send_borrowed(&p, p.calls[0], &b);
        if (written > 0) (void)rp_test_pair_write(&p, written);
        rp_test_pair_deinit(&p);
        give_up(&b);
    }
}

static void responses_wait_for_the_window_of_their_call(void **state)
{
    (void)state;
    rp_test_client_options options = {.window = 1000, .hold_windows = true};
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *slow, *other;

    rp_test_pair_init(&p, NULL, &options);
    slow = open_call(&p);
    other = open_call(&p);
    send_borrowed(&p, p.calls[0], &b);
    rp_test_pair_carry(&p);
    assert_int_equal(slow->in.size, 1000);
    assert_int_equal(rp_call_queued_bytes(p.calls[0]), b.bytes + 5 - 1000);
    assert_int_equal(rp_h2_queued_bytes(p.h2), b.bytes + 5 - 1000);
    rp_test_pair_say(&p, p.calls[1], "quick", 5);
    rp_test_pair_carry(&p);
    assert_int_equal(other->message_count, 1);

    while (slow->message_count == 0) {
        rp_test_stream_read(slow, SIZE_MAX);
        rp_test_pair_carry(&p);
    }
    expect_borrowed(slow, 0, &b);
    assert_int_equal(references(&b), 1);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void on_room_is_called_once_when_half_of_the_queue_is_sent(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    rp_test_client_options options = {.window = 1000, .hold_windows = true};
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *stream;

    limits.queued_bytes = 6000;
    rp_test_pair_init(&p, &limits, &options);
    stream = open_call(&p);
    rp_test_pair_say(&p, p.calls[0], b.wire, 2000);
    rp_test_pair_carry(&p);
    assert_int_equal(p.room_count, 0); /* there always was some */
    send_borrowed(&p, p.calls[0], &b);
    rp_test_pair_carry(&p);
    assert_int_equal(p.room_count, 0);
    while (rp_call_queued_bytes(p.calls[0]) > 3000) {
        assert_int_equal(p.room_count, 0);
        rp_test_stream_read(stream, 100);
        rp_test_pair_carry(&p);
        rp_test_stream_read(stream, SIZE_MAX);
        rp_test_pair_carry(&p);
    }
    assert_int_equal(p.room_count, 1);
    while (rp_h2_queued_bytes(p.h2) > 0) {
        rp_test_stream_read(stream, SIZE_MAX);
        rp_test_pair_carry(&p);
    }
    assert_int_equal(p.room_count, 1);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void say_more(rp_test_pair *p, rp_call *call)
{
    if (p->room_count < 50) send_borrowed(p, call, p->user);
}

static void on_room_may_send_again(void **state)
{
    (void)state;
    rp_h2_limits limits = rp_test_h2_limits();
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *stream;

    limits.queued_bytes = 6000;
    rp_test_pair_init(&p, &limits, &wide);
    p.on_room = say_more;
    p.user = &b;
    stream = open_call(&p);
    send_borrowed(&p, p.calls[0], &b);
    rp_test_pair_carry(&p);
    assert_int_equal(p.room_count, 50);
    assert_int_equal(stream->message_count, 50);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void say_something(rp_test_pair *p, rp_call *call)
{
    rp_test_pair_say(p, call, "here", 4);
}

static void make_room_calls_on_room_of_calls_with_empty_queues(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *streams[4];

    rp_test_pair_init(&p, NULL, NULL);
    for (int i = 0; i < 4; i++) streams[i] = open_call(&p);
    rp_test_pair_say(&p, p.calls[1], "waits", 5);
    rp_call_finish(p.calls[2], RP_OK, NULL);
    p.on_room = say_something;
    rp_h2_make_room(p.h2);
    assert_int_equal(p.room_count, 2);
    rp_test_pair_carry(&p);
    assert_int_equal(streams[0]->message_count, 1);
    assert_int_equal(streams[1]->message_count, 1);
    assert_int_equal(streams[2]->message_count, 0);
    assert_int_equal(streams[3]->message_count, 1);
    rp_test_pair_deinit(&p);
}

static void an_abort_drops_queued_messages(void **state)
{
    (void)state;
    rp_test_client_options options = {.window = 1000, .hold_windows = true};
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, &options);
    stream = open_call(&p);
    for (int i = 0; i < 3; i++) rp_test_pair_say(&p, p.calls[0], "dropped", 7);
    rp_call_abort(p.calls[0], RP_DEADLINE, "too late");
    rp_test_pair_carry(&p);
    assert_int_equal(stream->message_count, 0);
    assert_int_equal(stream->status, RP_DEADLINE);
    assert_int_equal(rp_h2_queued_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void an_abort_completes_a_partly_sent_message(void **state)
{
    (void)state;
    rp_test_client_options options = {.window = 1000, .hold_windows = true};
    borrowed b = borrow(5000);
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, &options);
    stream = open_call(&p);
    send_borrowed(&p, p.calls[0], &b);
    send_borrowed(&p, p.calls[0], &b);
    rp_test_pair_carry(&p); /* 1000 bytes of the first */
    rp_call_abort(p.calls[0], RP_DEADLINE, "too late");
    assert_int_equal(references(&b), 2);
    while (!stream->is_over && stream->status < 0) {
        rp_test_stream_read(stream, SIZE_MAX);
        rp_test_pair_carry(&p);
    }
    assert_int_equal(stream->message_count, 1);
    expect_borrowed(stream, 0, &b);
    assert_int_equal(stream->status, RP_DEADLINE);
    assert_int_equal(references(&b), 1);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

/* The session has asked for bytes of a call, and the output was full. */
static void an_abort_keeps_bytes_the_session_has_requested(void **state)
{
    (void)state;
    borrowed b = borrow(900000);
    rp_test_pair p;
    rp_test_stream *streams[3];

    rp_test_pair_init(&p, NULL, &wide);
    for (int i = 0; i < 3; i++) streams[i] = open_call(&p);
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++) send_borrowed(&p, p.calls[i], &b);
    (void)rp_test_pair_write(&p, 1); /* output is made, up to a megabyte */
    for (int i = 0; i < 3; i++) rp_call_abort(p.calls[i], RP_NO_RESOURCE, "enough");
    rp_test_pair_carry(&p);

    assert_false(p.client->is_bad);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(streams[i]->status, RP_NO_RESOURCE);
        assert_int_equal(streams[i]->in.size, streams[i]->in_parsed); /* whole messages */
        assert_true(streams[i]->message_count < 4);
        for (size_t k = 0; k < streams[i]->message_count; k++)
            expect_borrowed(streams[i], k, &b);
    }
    assert_int_equal(references(&b), 1);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

static void a_finished_call_is_reset_with_delay(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *open, *closed;

    rp_test_pair_init(&p, NULL, NULL);
    open = open_call(&p);
    closed = open_call(&p);
    rp_call_finish(p.calls[0], RP_OK, NULL);
    rp_call_finish(p.calls[1], RP_OK, NULL);
    rp_test_stream_end(closed);
    rp_test_pair_carry(&p);
    assert_true(closed->is_over && !open->is_over);
    assert_int_equal(rp_h2_call_count(p.h2), 1);

    rp_h2_sweep(p.h2);
    rp_test_pair_carry(&p);
    assert_false(open->is_over); /* a proxy may still be passing it on */
    rp_h2_sweep(p.h2);
    rp_test_pair_carry(&p);
    assert_true(open->is_over && open->was_reset);
    assert_int_equal(open->reset_code, NGHTTP2_NO_ERROR);
    assert_int_equal(open->status, RP_OK);
    assert_int_equal(p.close_count, 2);
    assert_int_equal(p.client->resets, 1);
    assert_int_equal(p.nuisances[RP_NUISANCE_MADE_RESET], 0);
    rp_h2_sweep(p.h2);
    rp_test_pair_deinit(&p);
}

static void a_client_that_closes_in_time_is_not_reset(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *stream;

    rp_test_pair_init(&p, NULL, NULL);
    stream = open_call(&p);
    rp_call_finish(p.calls[0], RP_OK, NULL);
    rp_test_pair_carry(&p);
    rp_h2_sweep(p.h2);
    rp_test_stream_end(stream);
    rp_test_pair_carry(&p);
    assert_int_equal(p.close_count, 1);
    for (int i = 0; i < 3; i++) rp_h2_sweep(p.h2);
    rp_test_pair_carry(&p);
    assert_int_equal(p.client->resets, 0);
    rp_test_pair_deinit(&p);
}

static void much_output_is_made_a_megabyte_at_a_time(void **state)
{
    (void)state;
    borrowed b = borrow(300000);
    rp_test_pair p;
    rp_test_stream *stream;
    struct iovec parts[1];

    rp_test_pair_init(&p, NULL, &wide);
    stream = open_call(&p);
    for (int i = 0; i < 40; i++) send_borrowed(&p, p.calls[0], &b);
    assert_int_equal(rp_h2_output(p.h2, parts, 1), 1);
    assert_true(p.h2->out_bytes < 3 * MIB);
    assert_true(rp_call_queued_bytes(p.calls[0]) > 9 * MIB);
    rp_test_pair_carry(&p);
    assert_int_equal(stream->message_count, 40);
    rp_test_pair_deinit(&p);
    give_up(&b);
}

RP_TESTS(h2_send)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_before_the_status),
        cmocka_unit_test(a_status_alone_comes_with_the_headers),
        cmocka_unit_test(a_long_status_message_is_cut),
        cmocka_unit_test(only_the_first_finish_counts),
        cmocka_unit_test(http_requests_get_http_responses),
        cmocka_unit_test(responses_are_sent_in_parts_of_every_size),
        cmocka_unit_test(borrowed_bytes_are_held_until_sent),
        cmocka_unit_test(a_call_may_be_closed_while_its_bytes_are_being_written),
        cmocka_unit_test(a_connection_may_be_freed_while_its_bytes_are_being_written),
        cmocka_unit_test(responses_wait_for_the_window_of_their_call),
        cmocka_unit_test(on_room_is_called_once_when_half_of_the_queue_is_sent),
        cmocka_unit_test(on_room_may_send_again),
        cmocka_unit_test(make_room_calls_on_room_of_calls_with_empty_queues),
        cmocka_unit_test(an_abort_drops_queued_messages),
        cmocka_unit_test(an_abort_completes_a_partly_sent_message),
        cmocka_unit_test(an_abort_keeps_bytes_the_session_has_requested),
        cmocka_unit_test(a_finished_call_is_reset_with_delay),
        cmocka_unit_test(a_client_that_closes_in_time_is_not_reset),
        cmocka_unit_test(much_output_is_made_a_megabyte_at_a_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
