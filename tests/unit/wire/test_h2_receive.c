/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are received: however they are split, they are delivered whole, once and in
 * order. */
#include "support/h2_pair.h"
#include "util/rng.h"

enum { MIB = 1 << 20 };

/* Bytes that tell where they belong. */
static uint8_t *pattern(size_t size, unsigned seed)
{
    enum { PERIOD = 251 * 256 };
    uint8_t *data = malloc(size + 1);
    size_t first = size < PERIOD ? size : PERIOD;

    assert_non_null(data);
    for (size_t i = 0; i < first; i++) data[i] = (uint8_t)(i * 31 + i / 251 + seed);
    for (size_t i = first; i < size; i += PERIOD)
        memcpy(data + i, data, size - i < PERIOD ? size - i : PERIOD);
    return data;
}

static void expect_message(const rp_test_pair *p, size_t index, size_t size, unsigned seed)
{
    uint8_t *expected = pattern(size, seed);

    assert_true(index < p->message_count);
    assert_int_equal(p->messages[index].size, size);
    assert_memory_equal(p->messages[index].data, expected, size);
    free(expected);
}

static void send_pattern(rp_test_stream *call, size_t size, unsigned seed)
{
    uint8_t *data = pattern(size, seed);

    rp_test_stream_send(call, data, size);
    free(data);
}

static const size_t sizes[] = {0, 1, 4, 5, 6, 300, 0, 17};

static void send_all_sizes(rp_test_pair *p)
{
    rp_test_stream *call = rp_test_client_open(p->client, "/a");

    for (size_t i = 0; i < COUNT_OF(sizes); i++) send_pattern(call, sizes[i], (unsigned)i);
    rp_test_stream_end(call);
}

static void expect_all_sizes(const rp_test_pair *p)
{
    assert_int_equal(p->message_count, COUNT_OF(sizes));
    for (size_t i = 0; i < COUNT_OF(sizes); i++) expect_message(p, i, sizes[i], (unsigned)i);
    assert_int_equal(p->half_close_count, 1);
    assert_int_equal(rp_h2_held_bytes(p->h2), 0);
}

static void messages_arrive_whole_in_frames_of_every_size(void **state)
{
    (void)state;
    for (size_t frame = 1; frame <= 24; frame++)
        for (size_t carried = 0; carried < 4; carried++) {
            rp_test_client_options options = {.frame_bytes = frame};
            rp_test_pair p;

            rp_test_pair_init(&p, NULL, &options);
            p.in_bytes = carried * carried; /* 0 (all), 1, 4, 9 */
            send_all_sizes(&p);
            rp_test_pair_carry(&p);
            expect_all_sizes(&p);
            rp_test_pair_deinit(&p);
        }
}

static void messages_arrive_whole_wherever_the_bytes_are_cut(void **state)
{
    (void)state;
    size_t total = 1000;

    for (size_t cut = 0; cut < total; cut++) {
        rp_test_pair p;
        const uint8_t *data;

        rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = 100});
        send_all_sizes(&p);
        data = rp_test_client_output(p.client, &total);
        assert_non_null(data);
        rp_test_pair_feed(&p, data, cut);
        rp_test_pair_feed(&p, data + cut, total - cut);
        expect_all_sizes(&p);
        rp_test_pair_deinit(&p);
    }
    assert_true(total > 400);
}

static void padding_is_no_part_of_a_message(void **state)
{
    (void)state;
    rp_test_client_options options = {.frame_bytes = 40, .padding = 33};
    rp_test_pair p;

    rp_test_pair_init(&p, NULL, &options);
    p.in_bytes = 11;
    send_all_sizes(&p);
    rp_test_pair_carry(&p);
    expect_all_sizes(&p);
    assert_int_equal(p.nuisances[RP_NUISANCE_EMPTY], 0);
    rp_test_pair_deinit(&p);
}

static void many_messages_of_one_frame_are_delivered_in_place(void **state)
{
    enum { COUNT = 1000 };
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    rp_test_pair_carry(&p); /* frames may be large from here on */
    call = rp_test_client_open(p.client, "/a");
    for (unsigned i = 0; i < COUNT; i++) send_pattern(call, i % 10, i);
    rp_test_pair_carry(&p);

    assert_int_equal(p.message_count, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        expect_message(&p, i, i % 10, i);
        assert_false(p.messages[i].had_block);
    }
    rp_test_pair_deinit(&p);
}

static void messages_of_several_calls_may_be_interleaved(void **state)
{
    enum { CALLS = 8, COUNT = 30 };
    (void)state;
    rp_test_pair p;
    rp_test_stream *calls[CALLS];
    size_t seen[CALLS] = {0};

    rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = 13});
    for (int i = 0; i < CALLS; i++) calls[i] = rp_test_client_open(p.client, "/a");
    for (unsigned k = 0; k < COUNT; k++)
        for (unsigned i = 0; i < CALLS; i++) send_pattern(calls[i], 20 + k, 100 * i + k);
    rp_test_pair_carry(&p);

    assert_int_equal(p.message_count, CALLS * COUNT);
    for (size_t i = 0; i < p.message_count; i++) {
        size_t call = p.messages[i].call, k = seen[call]++;
        expect_message(&p, i, 20 + k, (unsigned)(100 * call + k));
    }
    rp_test_pair_deinit(&p);
}

static void a_message_larger_than_every_window_arrives(void **state)
{
    const size_t size = rp_test_part(40, 20) * MIB + 7; /* the connection's window has 16 MiB */
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    send_pattern(call, size, 3);
    rp_test_stream_end(call);
    rp_test_pair_carry(&p);

    assert_int_equal(p.message_count, 1);
    expect_message(&p, 0, size, 3);
    assert_true(p.messages[0].had_block);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

static void large_messages_are_read_directly_into_their_block(void **state)
{
    enum { SIZE = 5 * MIB };
    (void)state;
    rp_test_client_options options = {.frame_bytes = 700000}; /* a block fills within a frame */
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, &options);
    rp_test_pair_carry(&p);
    call = rp_test_client_open(p.client, "/a");
    p.in_bytes = 100000;
    send_pattern(call, SIZE, 3);
    rp_test_pair_carry(&p);
    expect_message(&p, 0, SIZE, 3);
    assert_true(p.in_place > SIZE / 2);

    p.in_place = 0;
    p.no_place = true;
    send_pattern(call, SIZE, 4);
    rp_test_pair_carry(&p);
    expect_message(&p, 1, SIZE, 4);
    assert_int_equal(p.in_place, 0);
    rp_test_pair_deinit(&p);
}

static void padded_and_small_frames_are_not_read_directly(void **state)
{
    (void)state;
    rp_test_client_options options[] = {{.padding = 10}, {.frame_bytes = 8000}};

    for (size_t i = 0; i < COUNT_OF(options); i++) {
        rp_test_pair p;
        rp_test_pair_init(&p, NULL, &options[i]);
        rp_test_pair_carry(&p);
        p.in_bytes = 5000;
        send_pattern(rp_test_client_open(p.client, "/a"), 100000, 3);
        rp_test_pair_carry(&p);
        expect_message(&p, 0, 100000, 3);
        assert_int_equal(p.in_place, 0);
        rp_test_pair_deinit(&p);
    }
}

static void memory_grows_with_received_bytes_and_not_announced_ones(void **state)
{
    (void)state;
    static const uint8_t prefix[] = {0, 0x03, 0xff, 0xff, 0xff}; /* 64 MiB less one */
    rp_test_pair p;
    rp_test_stream *call;
    size_t before;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    rp_test_pair_carry(&p);
    before = p.oom.live_bytes;
    rp_test_stream_send_raw(call, prefix, sizeof prefix);
    rp_test_stream_send_raw(call, prefix, 1);
    rp_test_pair_carry(&p);
    assert_true(p.oom.live_bytes - before < MIB + 4096);
    assert_int_equal(rp_h2_held_bytes(p.h2), 1);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    rp_test_pair_carry(&p);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    assert_true(p.oom.live_bytes <= before);
    rp_test_pair_deinit(&p);
}

static rp_block *kept;

static void keep_block(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    (void)p, (void)call, (void)data, (void)size;
    assert_non_null(block);
    kept = rp_block_ref(block);
}

static void a_referenced_block_is_not_reused(void **state)
{
    enum { SIZE = 3 * MIB };
    (void)state;
    rp_test_pair p;
    uint8_t *expected = pattern(SIZE, 9);

    rp_test_pair_init(&p, NULL, NULL);
    p.on_message = keep_block;
    send_pattern(rp_test_client_open(p.client, "/a"), SIZE, 9);
    rp_test_pair_carry(&p);
    rp_test_pair_close(&p);

    assert_int_equal(kept->size, SIZE);
    assert_memory_equal(kept->data, expected, SIZE);
    rp_block_unref(kept);
    free(expected);
    rp_test_pair_deinit(&p);
}

static rp_h2_limits messages_of(size_t bytes)
{
    rp_h2_limits limits = rp_test_h2_limits();

    limits.message_bytes = bytes;
    return limits;
}

static void the_size_of_a_message_has_a_limit(void **state)
{
    (void)state;
    rp_h2_limits limits = messages_of(1000);

    for (size_t frame = 3; frame < 2000; frame += 1000) { /* in parts, and at once */
        rp_test_pair p;
        rp_test_stream *good, *bad;
        rp_test_pair_init(&p, &limits, &(rp_test_client_options){.frame_bytes = frame});
        good = rp_test_client_open(p.client, "/good");
        bad = rp_test_client_open(p.client, "/bad");
        send_pattern(good, 1000, 1);
        send_pattern(bad, 1001, 2);
        rp_test_pair_carry(&p);

        assert_int_equal(p.message_count, 1);
        expect_message(&p, 0, 1000, 1);
        assert_int_equal(good->status, -1);
        assert_int_equal(bad->status, RP_NO_RESOURCE);
        assert_string_equal(bad->text, "a message of 1001 bytes is over the limit of 1000");
        assert_false(bad->has_trailers);
        assert_int_equal(p.faults[RP_FAULT_MESSAGE_BYTES], 1);
        assert_int_equal(p.fault_status, RP_NO_RESOURCE);
        assert_int_equal(rp_h2_held_bytes(p.h2), 0);
        rp_test_pair_deinit(&p);
    }
}

static void the_largest_announcement_costs_nothing(void **state)
{
    static const uint8_t prefix[] = {0, 0xff, 0xff, 0xff, 0xff};
    (void)state;
    rp_test_pair p;
    rp_test_stream *call;

    rp_test_pair_init(&p, NULL, NULL);
    call = rp_test_client_open(p.client, "/a");
    rp_test_stream_send_raw(call, prefix, sizeof prefix);
    rp_test_pair_carry(&p);
    assert_int_equal(call->status, RP_NO_RESOURCE);
    assert_true(p.oom.peak_bytes < MIB);
    rp_test_pair_deinit(&p);
}

static void compressed_messages_are_refused(void **state)
{
    static const uint8_t message[] = {1, 0, 0, 0, 2, 'h', 'i'};
    (void)state;

    for (size_t frame = 1; frame < 8; frame += 6) {
        rp_test_pair p;
        rp_test_stream *call;
        rp_test_pair_init(&p, NULL, &(rp_test_client_options){.frame_bytes = frame});
        call = rp_test_client_open(p.client, "/a");
        rp_test_stream_send_raw(call, message, sizeof message);
        rp_test_pair_carry(&p);
        assert_int_equal(call->status, RP_UNIMPLEMENTED);
        assert_int_equal(p.faults[RP_FAULT_COMPRESSED], 1);
        assert_int_equal(p.message_count, 0);
        rp_test_pair_deinit(&p);
    }
}

static void a_call_that_ends_within_a_message_is_an_error(void **state)
{
    static const uint8_t message[] = {0, 0, 0, 0, 3, 'a', 'b', 'c'};
    (void)state;

    for (size_t size = 0; size <= sizeof message; size++) {
        rp_test_pair p;
        rp_test_stream *call;
        bool whole = size == 0 || size == sizeof message;
        rp_test_pair_init(&p, NULL, NULL);
        call = rp_test_client_open(p.client, "/a");
        rp_test_stream_send_raw(call, message, size);
        rp_test_stream_end(call);
        rp_test_pair_carry(&p);
        assert_int_equal(p.half_close_count, whole);
        assert_int_equal(p.faults[RP_FAULT_FRAMING], !whole);
        assert_int_equal(call->status, whole ? -1 : RP_INVALID);
        rp_test_pair_deinit(&p);
    }
}

static void finish_it(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                      rp_block *block)
{
    (void)p, (void)data, (void)size, (void)block;
    if (size > 0 && data[0] == 'f') rp_call_finish(call, RP_OK, NULL);
}

static void data_of_a_finished_call_is_dropped_and_delays_no_other_call(void **state)
{
    (void)state;
    rp_test_pair p;
    rp_test_stream *over, *other;

    rp_test_pair_init(&p, NULL, NULL);
    p.on_message = finish_it;
    over = rp_test_client_open(p.client, "/over");
    other = rp_test_client_open(p.client, "/other");
    rp_test_stream_send(over, "f", 1);
    rp_test_stream_send(over, "behind", 6);
    send_pattern(over, rp_test_part(30, 18) * MIB, 1);
    send_pattern(other, 20 * MIB, 2);
    rp_test_pair_carry(&p);

    assert_int_equal(over->status, RP_OK);
    assert_int_equal(p.message_count, 2);
    expect_message(&p, 1, 20 * MIB, 2);
    assert_int_equal(rp_h2_held_bytes(p.h2), 0);
    rp_test_pair_deinit(&p);
}

/* Random sizes, frames and cuts. */
static void random_cuts_change_nothing(void **state)
{
    (void)state;
    rp_rng rng;

    rp_rng_init(&rng, 5);
    for (int round = 0; round < 60; round++) {
        rp_test_client_options options = {.frame_bytes = 1 + rp_rng_below(&rng, 5000),
                                          .padding = rp_rng_below(&rng, 3) * 20};
        size_t count = 1 + rp_rng_below(&rng, 40), used[40];
        rp_test_pair p;
        rp_test_stream *call;

        rp_test_pair_init(&p, NULL, &options);
        p.in_bytes = 1 + rp_rng_below(&rng, 3000);
        call = rp_test_client_open(p.client, "/a");
        for (size_t i = 0; i < count; i++) {
            used[i] = rp_rng_below(&rng, rp_rng_below(&rng, 4) == 0 ? 60000 : 100);
            send_pattern(call, used[i], (unsigned)i);
        }
        rp_test_pair_carry(&p);
        assert_int_equal(p.message_count, count);
        for (size_t i = 0; i < count; i++) expect_message(&p, i, used[i], (unsigned)i);
        rp_test_pair_deinit(&p);
    }
}

RP_TESTS(h2_receive)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_whole_in_frames_of_every_size),
        cmocka_unit_test(messages_arrive_whole_wherever_the_bytes_are_cut),
        cmocka_unit_test(padding_is_no_part_of_a_message),
        cmocka_unit_test(many_messages_of_one_frame_are_delivered_in_place),
        cmocka_unit_test(messages_of_several_calls_may_be_interleaved),
        cmocka_unit_test(a_message_larger_than_every_window_arrives),
        cmocka_unit_test(large_messages_are_read_directly_into_their_block),
        cmocka_unit_test(padded_and_small_frames_are_not_read_directly),
        cmocka_unit_test(memory_grows_with_received_bytes_and_not_announced_ones),
        cmocka_unit_test(a_referenced_block_is_not_reused),
        cmocka_unit_test(the_size_of_a_message_has_a_limit),
        cmocka_unit_test(the_largest_announcement_costs_nothing),
        cmocka_unit_test(compressed_messages_are_refused),
        cmocka_unit_test(a_call_that_ends_within_a_message_is_an_error),
        cmocka_unit_test(data_of_a_finished_call_is_dropped_and_delays_no_other_call),
        cmocka_unit_test(random_cuts_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
