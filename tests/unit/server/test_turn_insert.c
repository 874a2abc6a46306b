/* SPDX-License-Identifier: Apache-2.0 */
/* InsertStream messages with many chunks or items: they are handled in pieces, in several turns
 * of the loop. */
#include <stdio.h>

#include "turn_fixture.h"

/* One message of many items is inserted in pieces, in order, and confirmed as a whole. */
static void a_large_insert_is_done_in_pieces(void **state)
{
    enum { MANY_ITEMS = 250000, PIECE = RP_BLOCK };
    rp_test_stream *call;
    int64_t bytes;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_items(&out, 0, MANY_ITEMS);
    bytes = (int64_t)out.size;
    call = call_once(&s, RP_TEST_REVERB "InsertStream", &out);

    assert_int_equal(call->status, RP_OK);
    assert_int_equal(rp_test_confirmed(call), MANY_ITEMS);
    assert_int_equal(rp_test_info_of(s.table).inserts, ITEMS + MANY_ITEMS);
    /* Four items count as one key, and so do UNIT_BYTES bytes of the message. */
    assert_true(s.most_change <= 4 * (A_TURN - bytes / UNIT_BYTES) + PIECE);
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

enum { TABLES = 16 };

/* Puts items that go round TABLES tables. Each is a batch, so that a turn does few of them. */
static void put_rounds(stage *s, rp_buf *out, size_t rounds)
{
    char name[8];

    rp_test_put_chunk(out, 1, 8);
    for (int k = 1; k < TABLES; k++) {
        rp_table_options options;
        (void)snprintf(name, sizeof name, "t%d", k);
        options = rp_test_options(name, RP_FIFO, RP_FIFO, 10);
        (void)rp_test_bed_table(&s->bed, &options);
    }
    for (uint64_t i = 0; i < rounds * TABLES; i++) {
        (void)snprintf(name, sizeof name, i % TABLES == 0 ? "t" : "t%d", (int)(i % TABLES));
        rp_test_put_item(out, name, ITEMS + i, 1.0, 1, 0, 1);
    }
}

/* Items that go round many tables take much more time than items of one. */
static void each_batch_of_a_message_counts_as_work(void **state)
{
    enum { ROUNDS = 2500, BATCH_WORK = 4 };
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_rounds(&s, &out, ROUNDS);
    call = call_once(&s, RP_TEST_REVERB "InsertStream", &out);

    assert_int_equal(call->status, RP_OK);
    assert_int_equal(rp_test_confirmed(call), ROUNDS * TABLES);
    assert_int_equal(rp_test_info_of(s.table).inserts, ITEMS + ROUNDS);
    assert_true(s.most_change <= A_TURN / BATCH_WORK / TABLES + RP_BLOCK);
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* Items before the bad one are inserted, also those of earlier turns. */
static void a_bad_item_ends_a_message_that_is_done_in_pieces(void **state)
{
    enum { ROUNDS = 2500 };
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_rounds(&s, &out, ROUNDS);
    rp_test_put_item(&out, "missing", 1, 1.0, 1, 0, 1);
    put_items(&out, ROUNDS * TABLES, 10);
    call = call_once(&s, RP_TEST_REVERB "InsertStream", &out);

    assert_int_equal(call->status, RP_NOT_FOUND);
    assert_int_equal(rp_test_info_of(s.table).inserts, ITEMS + ROUNDS);
    assert_true(s.most_change < ROUNDS); /* in several turns */
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static bool has_inserted(stage *s)
{
    return rp_test_info_of(s->table).inserts > ITEMS;
}

static void a_call_can_end_between_two_pieces(void **state)
{
    enum { ROUNDS = 4000 }; /* some turns of work */
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, NULL);
    rp_buf_init(&out, &s.bed.alloc);
    put_rounds(&s, &out, ROUNDS);
    call = rp_test_client_open(s.peer, RP_TEST_REVERB "InsertStream");
    rp_test_stream_put(call, &out);
    run_until(&s, has_inserted);
    assert_true(rp_counter_get(&s.worker->metrics->queued_bytes) > 0); /* of the rest */
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    run_until(&s, has_ended);

    assert_true(rp_test_info_of(s.table).inserts < ITEMS + ROUNDS);
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    assert_true(rp_table_check(s.table));
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* Chunks of a few bytes take much more memory than on the wire. */
static void a_message_of_many_chunks_is_refused_before_they_take_memory(void **state)
{
    enum { CHUNKS = 20000, PINNED = 1 << 20 };
    const rp_server_limits limits = {.stream_pinned_bytes = PINNED};
    rp_test_stream *call;
    size_t before, message;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, &limits);
    rp_buf_init(&out, rp_allocator_default());
    for (uint64_t key = 1; key <= CHUNKS; key++) rp_test_put_chunk(&out, key, 1);
    message = out.size;
    before = atomic_load(&s.bed.oom.live_bytes);
    atomic_store(&s.bed.oom.peak_bytes, before);
    call = call_once(&s, RP_TEST_REVERB "InsertStream", &out);

    assert_int_equal(call->status, RP_NO_RESOURCE);
    assert_int_equal(rp_counter_get(&s.worker->metrics->refusals[RP_REFUSED_STREAM_PINNED]), 1);
    assert_true(atomic_load(&s.bed.oom.peak_bytes) - before < 3 * message + 2 * PINNED);
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* As long as items of the same message refer to them, chunks may be more than the limit. */
static void chunks_with_their_items_do_not_count_as_pinned(void **state)
{
    enum { CHUNKS = 100, BYTES = 4096, PINNED = 64 << 10 };
    const rp_server_limits limits = {.stream_pinned_bytes = PINNED};
    rp_test_stream *call;
    rp_buf out;
    stage s;

    (void)state;
    open_stage(&s, &limits);
    rp_buf_init(&out, rp_allocator_default());
    for (uint64_t key = 1; key <= CHUNKS; key++) rp_test_put_insert(&out, "q", key, BYTES);
    assert_true(out.size > 4 * PINNED);
    call = call_once(&s, RP_TEST_REVERB "InsertStream", &out);

    assert_int_equal(call->status, RP_OK);
    assert_int_equal(rp_test_confirmed(call), CHUNKS);
    rp_buf_deinit(&out);
    close_stage(&s);
}

RP_TESTS(turn_insert)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_insert_is_done_in_pieces),
        cmocka_unit_test(each_batch_of_a_message_counts_as_work),
        cmocka_unit_test(a_bad_item_ends_a_message_that_is_done_in_pieces),
        cmocka_unit_test(a_call_can_end_between_two_pieces),
        cmocka_unit_test(a_message_of_many_chunks_is_refused_before_they_take_memory),
        cmocka_unit_test(chunks_with_their_items_do_not_count_as_pinned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
