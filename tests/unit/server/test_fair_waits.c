/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for a table with much to do, next to a call that wants one item: the small
 * call waits for one block of the large one, not for all of it. */
#include "turn_fixture.h"

enum {
    ROOM = 10, /* items that the table holds */
    BLOCKS = 4,
    LARGE = BLOCKS * RP_BLOCK,
    SMALL_KEY = 1 << 20,
};

static rp_table *waited; /* the table that both calls wait for */

static bool has_large_insert(stage *s)
{
    (void)s;
    return rp_test_info_of(waited).waiting_inserts == BLOCKS;
}

static bool has_both_inserts(stage *s)
{
    (void)s;
    return rp_test_info_of(waited).waiting_inserts == BLOCKS + 1;
}

static bool has_only_the_small_insert(stage *s)
{
    (void)s;
    return rp_test_info_of(waited).waiting_inserts == 1;
}

static bool has_one_sample(stage *s)
{
    (void)s;
    return rp_test_info_of(waited).waiting_samples == 1;
}

static bool has_both_samples(stage *s)
{
    (void)s;
    return rp_test_info_of(waited).waiting_samples == 2;
}

static bool is_answered(stage *s)
{
    return s->asked->is_over;
}

static void open_queue(stage *s)
{
    rp_table_options options = rp_test_options("w", RP_FIFO, RP_FIFO, 1000);

    open_stage(s, NULL);
    options.limiter = rp_limiter_queue(ROOM);
    options.max_times_sampled = 1;
    waited = rp_test_bed_table(&s->bed, &options);
}

/* Sends a whole call, which will wait. */
static rp_test_stream *begin(rp_test_client *client, const char *path, rp_buf *message)
{
    rp_test_stream *call = rp_test_client_open(client, path);

    rp_test_stream_put(call, message);
    rp_test_stream_end(call);
    rp_buf_clear(message);
    return call;
}

/* Inserts with the keys from 1 on, as one message. */
static rp_test_stream *begin_large_insert(stage *s, rp_buf *out)
{
    rp_test_stream *call;

    rp_test_put_chunk(out, 1, 8);
    for (uint64_t key = 1; key <= LARGE; key++) rp_test_put_item(out, "w", key, 1.0, 1, 0, 1);
    call = begin(s->peer, RP_TEST_REVERB "InsertStream", out);
    run_until(s, has_large_insert);
    return call;
}

static rp_test_stream *begin_small_insert(stage *s, rp_buf *out)
{
    rp_test_stream *call;

    rp_test_put_insert(out, "w", SMALL_KEY, 8);
    call = begin(s->bystander, RP_TEST_REVERB "InsertStream", out);
    run_until(s, has_both_inserts);
    return call;
}

static void an_insert_waits_for_one_batch_of_another_stream(void **state)
{
    rp_test_stream *large, *small;
    uint64_t next = 1;
    rp_buf out;
    stage s;

    (void)state;
    open_queue(&s);
    rp_buf_init(&out, rp_allocator_default());
    large = begin_large_insert(&s, &out);
    small = begin_small_insert(&s, &out);

    for (size_t i = 0; i <= LARGE; i++) {
        uint64_t key = rp_test_draw(waited).key;
        if (i == RP_BLOCK)
            assert_int_equal(key, SMALL_KEY); /* after the first batch */
        else
            assert_int_equal(key, next++); /* the items of a stream stay in order */
        assert_true(rp_table_check(waited));
    }
    s.asked = large;
    run_until(&s, has_ended);

    assert_true(large->is_over && small->is_over);
    assert_int_equal(large->status, RP_OK);
    assert_int_equal(rp_test_confirmed(large), LARGE);
    assert_int_equal(rp_test_confirmed(small), 1);
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static void a_stream_that_ends_withdraws_all_its_batches(void **state)
{
    rp_test_stream *large, *small;
    rp_buf out;
    stage s;

    (void)state;
    open_queue(&s);
    rp_buf_init(&out, rp_allocator_default());
    large = begin_large_insert(&s, &out);
    small = begin_small_insert(&s, &out);
    rp_test_stream_reset(large, NGHTTP2_CANCEL);
    run_until(&s, has_only_the_small_insert);
    assert_true(rp_table_check(waited));

    for (uint64_t key = 1; key <= ROOM; key++) assert_int_equal(rp_test_draw(waited).key, key);
    assert_int_equal(rp_test_draw(waited).key, SMALL_KEY);
    s.asked = small;
    run_until(&s, has_ended);
    assert_int_equal(small->status, RP_OK);
    rp_buf_deinit(&out);
    close_stage(&s);
}

/* Dropping a table ends the batches in the queue and those behind them. */
static void a_dropped_table_ends_all_batches(void **state)
{
    rp_test_stream *large, *small;
    rp_buf out;
    stage s;

    (void)state;
    open_queue(&s);
    rp_buf_init(&out, rp_allocator_default());
    large = begin_large_insert(&s, &out);
    small = begin_small_insert(&s, &out);
    rp_table_close(waited);
    assert_int_equal(rp_test_info_of(waited).waiting_inserts, 0);
    s.asked = small;
    run_until(&s, has_ended);

    assert_int_equal(large->status, RP_CANCELLED);
    assert_int_equal(small->status, RP_CANCELLED);
    assert_int_equal(rp_counter_get(&s.worker->metrics->queued_bytes), 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

static rp_test_stream *begin_sample(rp_test_client *client, rp_buf *out, int64_t count)
{
    rp_wire_put_text(out, 1, "w");
    rp_wire_put_int(out, 2, count);
    return begin(client, "/reprise.v1.Replay/Sample", out);
}

static void put_keys(stage *s, uint64_t first, size_t count)
{
    for (uint64_t key = first; key < first + count; key++)
        rp_test_put(waited, key, 1, s->bed.plain);
}

static void a_sample_waits_for_one_block_of_another_call(void **state)
{
    rp_test_stream *large, *small;
    rp_buf out;
    stage s;

    (void)state;
    open_queue(&s);
    rp_buf_init(&out, rp_allocator_default());
    large = begin_sample(s.peer, &out, LARGE);
    run_until(&s, has_one_sample);
    small = begin_sample(s.bystander, &out, 1);
    run_until(&s, has_both_samples);

    put_keys(&s, 1, RP_BLOCK);
    assert_int_equal(rp_test_info_of(waited).waiting_samples, 2);
    put_keys(&s, RP_BLOCK + 1, 1);
    assert_int_equal(rp_test_info_of(waited).waiting_samples, 1); /* the small one is over */
    s.asked = small;
    run_until(&s, is_answered);
    assert_int_equal(small->status, RP_OK);
    assert_false(large->is_over);
    put_keys(&s, RP_BLOCK + 2, LARGE - RP_BLOCK);
    s.asked = large;
    run_until(&s, has_ended);

    assert_int_equal(large->status, RP_OK);
    assert_int_equal(rp_test_info_of(waited).samples, LARGE + 1);
    assert_int_equal(rp_test_info_of(waited).size, 0);
    rp_buf_deinit(&out);
    close_stage(&s);
}

RP_TESTS(fair_waits)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_insert_waits_for_one_batch_of_another_stream),
        cmocka_unit_test(a_stream_that_ends_withdraws_all_its_batches),
        cmocka_unit_test(a_dropped_table_ends_all_batches),
        cmocka_unit_test(a_sample_waits_for_one_block_of_another_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
