/* SPDX-License-Identifier: Apache-2.0 */
/* Items: what they pick, when they are inserted, what becomes of those that cannot be. */
#include <math.h>
#include <pthread.h>
#include <sched.h>

#include "store/store.h"
#include "support/recorder.h"
#include "support/writing.h"

static void setup(rp_test_rig *r, int32_t history, int32_t chunk_length)
{
    rp_writer_options options = rp_test_writing(history, chunk_length);
    rp_test_rig_init(r, &options);
}

/* A store with the one table 'a', made as told, and a writer of chunks of one step. */
static void setup_table(rp_test_rig *r, const rp_table_options *table, size_t max_pending)
{
    rp_writer_options options = rp_test_writing(8, 1);

    options.max_pending = max_pending;
    rp_test_rig_open(r, NULL);
    assert_ok_err(rp_store_add_table(r->store, table, &r->a, &r->err), &r->err);
    assert_ok_err(rp_writer_new(r->store, &options, &r->writer, &r->err), &r->err);
}

/* A queue that holds `size` items until they are sampled. */
static rp_table_options queue(int64_t size)
{
    return (rp_table_options){.name = "a",
                              .sampler = {.kind = RP_FIFO},
                              .remover = {.kind = RP_FIFO},
                              .limiter = rp_limiter_queue(size),
                              .max_size = size,
                              .max_times_sampled = 1};
}

static uint64_t sample_one(rp_test_rig *r, rp_table *table)
{
    rp_sample_options one = {.count = 1};
    rp_sample sample;
    size_t drawn = 0;

    assert_ok_err(rp_table_sample(table, &one, &sample, &drawn, rp_wait_ms(5000), &r->err),
                  &r->err);
    assert_int_equal(drawn, 1);
    rp_samples_release(&sample, 1);
    return sample.key;
}

static void picks_with_any_stride_read_back(void **state)
{
    (void)state;
    for (int32_t length = 1; length <= 7; length++) {
        rp_test_rig r;
        uint64_t every_third, reversed, back_by_two, repeated;
        setup(&r, 12, length);
        rp_test_append(&r, 12);

        every_third = rp_test_item(&r, "a", 1, 4, 3);
        reversed = rp_test_item(&r, "a", 11, 12, -1);
        back_by_two = rp_test_item(&r, "a", 10, 5, -2);
        repeated = rp_test_item(&r, "a", 5, 4, 0);
        rp_test_flush(&r);

        rp_test_expect_item(&r, r.a, every_third, 1, 4, 3);
        rp_test_expect_item(&r, r.a, reversed, 11, 12, -1);
        rp_test_expect_item(&r, r.a, back_by_two, 10, 5, -2);
        rp_test_expect_item(&r, r.a, repeated, 5, 4, 0);
        rp_test_rig_deinit(&r);
    }
}

static void consecutive_rows_of_a_chunk_make_one_slice(void **state)
{
    rp_test_rig r;
    rp_trajectory *forward, *reversed;
    (void)state;
    setup(&r, 12, 4);
    rp_test_append(&r, 12);

    forward = rp_test_peek(&r, r.a, rp_test_item(&r, "a", 2, 8, 1));
    reversed = rp_test_peek(&r, r.a, rp_test_item(&r, "a", 9, 8, -1));

    assert_int_equal(rp_trajectory_get_column(forward, 0).slice_count, 3); /* 2 + 4 + 2 */
    assert_int_equal(rp_trajectory_get_column(reversed, 0).slice_count, 8);
    assert_int_equal(rp_trajectory_chunk_count(reversed), 6);
    rp_trajectory_unref(forward);
    rp_trajectory_unref(reversed);
    rp_test_rig_deinit(&r);
}

static void squeezed_pick_has_no_step_dimension(void **state)
{
    rp_pick picks[] = {{.column = 0, .start = 3, .count = 1, .stride = 1, .squeeze = true},
                       {.column = 0, .start = 3, .count = 1, .stride = 1},
                       {.column = 1, .start = 3, .count = 1, .stride = 1, .squeeze = true}};
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key;
    (void)state;
    setup(&r, 8, 2);
    rp_test_append(&r, 4);

    assert_ok_err(
        rp_writer_create_item(r.writer, "a", 1, picks, 3, rp_wait_none(), &key, &r.err),
        &r.err);

    t = rp_test_peek(&r, r.a, key);
    assert_true(
        rp_shape_equal(&(rp_shape[]){rp_trajectory_get_column(t, 0).shape}[0], &SHAPE(3)));
    assert_true(
        rp_shape_equal(&(rp_shape[]){rp_trajectory_get_column(t, 1).shape}[0], &SHAPE(1, 3)));
    assert_true(
        rp_shape_equal(&(rp_shape[]){rp_trajectory_get_column(t, 2).shape}[0], &SCALAR));
    rp_test_expect_obs(&r, t, 0, 3, 1, 1);
    rp_test_expect_obs(&r, t, 1, 3, 1, 1);
    rp_test_expect_actions(&r, t, 2, 3, 1, 1);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void negative_start_counts_from_the_latest_step(void **state)
{
    rp_test_rig r;
    uint64_t last, window;
    (void)state;
    setup(&r, 5, 3);
    rp_test_append(&r, 14);

    last = rp_test_item(&r, "a", -1, 1, 1);
    window = rp_test_item(&r, "a", -5, 5, 1);
    rp_test_flush(&r);

    rp_test_expect_item(&r, r.a, last, 13, 1, 1);
    rp_test_expect_item(&r, r.a, window, 9, 5, 1);
    rp_test_rig_deinit(&r);
}

static void one_column_may_be_picked_twice(void **state)
{
    rp_pick picks[] = {{.column = 0, .start = 0, .count = 3, .stride = 1},
                       {.column = 0, .start = 1, .count = 3, .stride = 1}};
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key;
    (void)state;
    setup(&r, 8, 8);
    rp_test_append(&r, 4);

    assert_ok(rp_writer_create_item(r.writer, "a", 1, picks, 2, rp_wait_none(), &key, &r.err));
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    rp_test_expect_obs(&r, t, 0, 0, 3, 1);
    rp_test_expect_obs(&r, t, 1, 1, 3, 1);
    assert_int_equal(rp_trajectory_chunk_count(t), 1);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void latest_steps_of_all_columns_make_an_item(void **state)
{
    rp_test_rig r;
    uint64_t key;
    (void)state;
    setup(&r, 8, 4);
    rp_test_append(&r, 6);

    assert_ok(rp_writer_create_latest(r.writer, "b", 2.5, 3, rp_wait_none(), &key, &r.err));
    rp_test_flush(&r);

    rp_test_expect_item(&r, r.b, key, 3, 3, 1);
    assert_int_equal(rp_test_info(r.a).size, 0);
    assert_int_equal(rp_writer_create_latest(r.writer, "b", 1, 7, rp_wait_none(), NULL, &r.err),
                     RP_PRECONDITION);
    assert_int_equal(rp_writer_create_latest(r.writer, "b", 1, 0, rp_wait_none(), NULL, &r.err),
                     RP_INVALID);
    rp_test_rig_deinit(&r);
}

/* Creating this item fails and creates nothing. */
static void expect_refused(rp_test_rig *r, rp_pick pick, rp_status status, const char *part)
{
    uint64_t key = 99;

    assert_fails(
        rp_writer_create_item(r->writer, "a", 1, &pick, 1, rp_wait_none(), &key, &r->err),
        status, &r->err, part);
    assert_int_equal(key, 99);
    assert_int_equal(rp_writer_pending(r->writer), 0);
    assert_int_equal(rp_test_info(r->a).size, 0);
}

static void steps_outside_the_history_are_refused(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 2);

    expect_refused(&r, (rp_pick){.start = -1, .count = 1}, RP_PRECONDITION,
                   "column 0 'obs': step -1 is outside the history, which holds [0, 0)");
    rp_test_append(&r, 10);
    expect_refused(&r, (rp_pick){.start = 5, .count = 1}, RP_PRECONDITION,
                   "step 5 is outside the history, which holds [6, 10)");
    expect_refused(&r, (rp_pick){.start = 10, .count = 1}, RP_PRECONDITION, "step 10");
    expect_refused(&r, (rp_pick){.start = -5, .count = 1}, RP_PRECONDITION, "step 5");
    expect_refused(&r, (rp_pick){.start = 7, .count = 4, .stride = 1}, RP_PRECONDITION,
                   "step 10");
    expect_refused(&r, (rp_pick){.start = 7, .count = 3, .stride = -1}, RP_PRECONDITION,
                   "step 5");
    rp_test_rig_deinit(&r);
}

static void enormous_picks_are_refused(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 2);
    rp_test_append(&r, 4);

    expect_refused(&r, (rp_pick){.start = INT64_MIN, .count = 1}, RP_PRECONDITION, "outside");
    expect_refused(&r, (rp_pick){.start = INT64_MAX, .count = 1}, RP_PRECONDITION, "outside");
    expect_refused(&r, (rp_pick){.start = 0, .count = INT32_MAX, .stride = INT32_MAX},
                   RP_PRECONDITION, "outside");
    expect_refused(&r, (rp_pick){.start = 0, .count = INT32_MAX, .stride = INT32_MIN},
                   RP_PRECONDITION, "outside");
    expect_refused(&r, (rp_pick){.start = 0, .count = INT32_MAX, .stride = 0}, RP_INVALID,
                   "more than 1048576 slices");
    rp_test_rig_deinit(&r);
}

static void malformed_picks_are_refused(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 2);
    rp_test_append(&r, 4);

    expect_refused(&r, (rp_pick){.column = 2, .count = 1}, RP_INVALID,
                   "column 2 of a writer with 2");
    expect_refused(&r, (rp_pick){.count = 0}, RP_INVALID, "count must be >= 1, got 0");
    expect_refused(&r, (rp_pick){.column = 1, .count = 2, .squeeze = true}, RP_INVALID,
                   "column 1 'action': count must be exactly 1, got 2");
    assert_fails(rp_writer_create_item(r.writer, "a", 1, NULL, 0, rp_wait_none(), NULL, &r.err),
                 RP_INVALID, &r.err, "number of picks");
    rp_test_rig_deinit(&r);
}

static void unknown_table_is_refused(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 1);
    rp_test_append(&r, 1);

    assert_fails(rp_test_try_item(&r, "c", 0, 1, 1, rp_wait_none(), NULL), RP_NOT_FOUND, &r.err,
                 "no table 'c'");
    assert_fails(rp_test_try_item(&r, NULL, 0, 1, 1, rp_wait_none(), NULL), RP_INVALID, &r.err,
                 "no table was named");
    (void)rp_test_item(&r, "a", 0, 1, 1); /* and the right name works after a wrong one */
    rp_test_rig_deinit(&r);
}

static void nan_priority_is_refused_at_once(void **state)
{
    rp_pick pick = {.count = 1};
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 4);
    rp_test_append(&r, 1);

    assert_fails(
        rp_writer_create_item(r.writer, "a", NAN, &pick, 1, rp_wait_none(), NULL, &r.err),
        RP_INVALID, &r.err, "NaN");

    assert_int_equal(rp_writer_pending(r.writer), 0);
    rp_test_rig_deinit(&r);
}

static void item_waits_until_its_chunks_are_full(void **state)
{
    rp_test_rig r;
    uint64_t key;
    (void)state;
    setup(&r, 8, 4);
    rp_test_append(&r, 3);

    key = rp_test_item(&r, "a", 0, 3, 1);
    assert_int_equal(rp_writer_pending(r.writer), 1);
    assert_false(rp_test_has(&r, r.a, key));
    rp_test_append(&r, 1);

    assert_int_equal(rp_writer_pending(r.writer), 0);
    rp_test_expect_item(&r, r.a, key, 0, 3, 1);
    rp_test_rig_deinit(&r);
}

static void pending_item_outlives_the_history(void **state)
{
    rp_table_options table = queue(1);
    rp_test_rig r;
    uint64_t second;
    (void)state;
    setup_table(&r, &table, 0);
    rp_test_append(&r, 3);
    (void)rp_test_item(&r, "a", 0, 1, 1);
    second = rp_test_item(&r, "a", 0, 3, 1);

    rp_test_append(&r, 50); /* steps 0 to 2 are long gone */
    (void)sample_one(&r, r.a);
    rp_test_flush(&r);

    rp_test_expect_item(&r, r.a, second, 0, 3, 1);
    rp_test_rig_deinit(&r);
}

static void flush_completes_only_chunks_that_items_wait_for(void **state)
{
    rp_pick actions = {.column = 1, .start = 0, .count = 2, .stride = 1};
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key;
    (void)state;
    setup(&r, 8, 4);
    rp_test_append(&r, 2);
    assert_ok(
        rp_writer_create_item(r.writer, "a", 1, &actions, 1, rp_wait_none(), NULL, &r.err));

    rp_test_flush(&r);
    rp_test_append(&r, 2);
    key = rp_test_item(&r, "a", 0, 4, 1);
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    assert_int_equal(rp_trajectory_get_column(t, 0).slice_count, 1); /* obs went on */
    assert_int_equal(rp_trajectory_get_column(t, 1).slice_count, 2); /* actions were cut */
    rp_test_expect_obs(&r, t, 0, 0, 4, 1);
    rp_test_expect_actions(&r, t, 1, 0, 4, 1);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void items_are_inserted_in_the_order_of_their_creation(void **state)
{
    rp_table_options table = queue(100);
    uint64_t keys[40];
    rp_test_rig r;
    (void)state;
    setup_table(&r, &table, 0);

    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        rp_test_append(&r, 1);
        keys[i] = rp_test_item(&r, "a", -1, 1, 1);
    }

    for (size_t i = 0; i < COUNT_OF(keys); i++) assert_true(sample_one(&r, r.a) == keys[i]);
    rp_test_rig_deinit(&r);
}

static void items_of_two_tables_take_turns(void **state)
{
    uint64_t keys[20];
    rp_test_rig r;
    (void)state;
    setup(&r, 30, 30);
    rp_test_append(&r, 20);

    for (int i = 0; i < 20; i++) keys[i] = rp_test_item(&r, i % 3 == 0 ? "b" : "a", i, 1, 1);
    assert_int_equal(rp_writer_pending(r.writer), 20);
    rp_test_flush(&r);

    for (int i = 0; i < 20; i++)
        rp_test_expect_item(&r, i % 3 == 0 ? r.b : r.a, keys[i], i, 1, 1);
    rp_test_rig_deinit(&r);
}

static void full_table_leaves_items_pending_until_there_is_room(void **state)
{
    rp_table_options table = queue(2);
    rp_test_rig r;
    uint64_t third;
    (void)state;
    setup_table(&r, &table, 0);
    rp_test_append(&r, 4);
    (void)rp_test_item(&r, "a", 0, 1, 1);
    (void)rp_test_item(&r, "a", 1, 1, 1);

    third = rp_test_item(&r, "a", 2, 1, 1); /* does not wait */
    assert_int_equal(rp_writer_pending(r.writer), 1);
    assert_int_equal(rp_writer_flush(r.writer, rp_wait_none(), &r.err), RP_DEADLINE);
    assert_int_equal(rp_writer_flush(r.writer, rp_wait_ms(5), &r.err), RP_DEADLINE);
    assert_int_equal(rp_writer_pending(r.writer), 1);
    (void)sample_one(&r, r.a);
    rp_test_append(&r, 1); /* an append tries again by itself */

    assert_int_equal(rp_writer_pending(r.writer), 0);
    rp_test_expect_item(&r, r.a, third, 2, 1, 1);
    rp_test_rig_deinit(&r);
}

static void create_item_waits_only_at_max_pending(void **state)
{
    rp_table_options table = queue(1);
    rp_test_rig r;
    uint64_t key = 99;
    (void)state;
    setup_table(&r, &table, 3);
    rp_test_append(&r, 1);
    for (int i = 0; i < 4; i++) (void)rp_test_item(&r, "a", 0, 1, 1); /* one in, three wait */

    assert_int_equal(rp_test_try_item(&r, "a", 0, 1, 1, rp_wait_none(), &key), RP_DEADLINE);
    assert_int_equal(rp_test_try_item(&r, "a", 0, 1, 1, rp_wait_ms(5), &key), RP_DEADLINE);
    assert_int_equal(key, 99);
    assert_int_equal(rp_writer_pending(r.writer), 3);
    (void)sample_one(&r, r.a);
    (void)rp_test_item(&r, "a", 0, 1, 1);

    assert_int_equal(rp_writer_pending(r.writer), 3);
    rp_test_rig_deinit(&r);
}

static void create_item_at_max_pending_completes_chunks_early(void **state)
{
    rp_writer_options options = rp_test_writing(50, 50);
    rp_test_rig r;
    (void)state;
    options.max_pending = 4;
    rp_test_rig_init(&r, &options);
    rp_test_append(&r, 10);

    for (int i = 0; i < 5; i++) (void)rp_test_item(&r, "a", i, 2, 1);

    assert_int_equal(rp_writer_pending(r.writer), 0); /* the cut chunk has them all */
    assert_int_equal(rp_test_info(r.a).size, 5);
    rp_test_rig_deinit(&r);
}

/* Samples ten items from the table, as they come. */
static void *consume_ten(void *arg)
{
    rp_sample_options one = {.count = 1};

    for (int i = 0; i < 10; i++) {
        rp_sample sample;
        size_t drawn = 0;
        if (rp_table_sample(arg, &one, &sample, &drawn, rp_wait_ms(20000), NULL) != RP_OK)
            return arg;
        rp_samples_release(&sample, drawn);
    }
    return NULL;
}

static void create_item_goes_on_when_a_consumer_makes_room(void **state)
{
    rp_table_options table = queue(1);
    pthread_t consumer;
    void *failed;
    rp_test_rig r;
    (void)state;
    setup_table(&r, &table, 1);
    rp_test_append(&r, 1);

    assert_int_equal(pthread_create(&consumer, NULL, consume_ten, r.a), 0);
    for (int i = 0; i < 10; i++)
        assert_ok_err(rp_test_try_item(&r, "a", 0, 1, 1, rp_wait_ms(20000), NULL), &r.err);
    assert_ok_err(rp_writer_flush(r.writer, rp_wait_ms(20000), &r.err), &r.err);
    assert_int_equal(pthread_join(consumer, &failed), 0);

    assert_null(failed);
    assert_int_equal(rp_test_info(r.a).samples, 10);
    rp_test_rig_deinit(&r);
}

/* Samples one item as soon as an insert waits. */
static void *consume_one_when_asked(void *arg)
{
    rp_sample_options one = {.count = 1};
    rp_sample sample;
    size_t drawn = 0;

    while (rp_test_info(arg).waiting_inserts == 0) (void)sched_yield();
    if (rp_table_sample(arg, &one, &sample, &drawn, rp_wait_none(), NULL) != RP_OK) return arg;
    rp_samples_release(&sample, drawn);
    return NULL;
}

static void create_item_waits_for_one_place_only(void **state)
{
    rp_table_options table = queue(1);
    pthread_t consumer;
    void *failed;
    rp_test_rig r;
    (void)state;
    setup_table(&r, &table, 3);
    rp_test_append(&r, 1);
    for (int i = 0; i < 4; i++) (void)rp_test_item(&r, "a", 0, 1, 1); /* one in, three wait */

    assert_int_equal(pthread_create(&consumer, NULL, consume_one_when_asked, r.a), 0);
    assert_ok_err(rp_test_try_item(&r, "a", 0, 1, 1, rp_wait_ms(5000), NULL), &r.err);
    assert_int_equal(pthread_join(consumer, &failed), 0);

    assert_null(failed);
    assert_int_equal(rp_writer_pending(r.writer), 3);
    rp_test_rig_deinit(&r);
}

static void cancelled_flush_keeps_the_items(void **state)
{
    rp_table_options table = queue(1);
    rp_wait wait = rp_wait_forever();
    rp_test_rig r;
    (void)state;
    setup_table(&r, &table, 0);
    rp_test_append(&r, 1);
    for (int i = 0; i < 3; i++) (void)rp_test_item(&r, "a", 0, 1, 1);
    assert_ok(rp_cancel_new(&wait.cancel));

    rp_cancel_fire(wait.cancel);
    assert_int_equal(rp_writer_flush(r.writer, wait, &r.err), RP_CANCELLED);

    assert_int_equal(rp_writer_pending(r.writer), 2);
    rp_cancel_free(wait.cancel);
    rp_test_rig_deinit(&r);
}

static void closed_table_ends_flushes_and_keeps_the_items(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 1);
    rp_test_append(&r, 1);
    rp_table_close(r.a);

    (void)rp_test_item(&r, "a", 0, 1, 1);

    assert_fails(rp_writer_flush(r.writer, rp_wait_forever(), &r.err), RP_CANCELLED, &r.err,
                 "closed");
    assert_int_equal(rp_writer_pending(r.writer), 1);
    rp_test_rig_deinit(&r);
}

static void episode_goes_on_when_its_end_fails(void **state)
{
    rp_table_options table = queue(1);
    rp_test_rig r;
    (void)state;
    setup_table(&r, &table, 0);
    rp_test_append(&r, 3);
    for (int i = 0; i < 2; i++) (void)rp_test_item(&r, "a", 0, 1, 1);

    assert_int_equal(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err), RP_DEADLINE);
    assert_int_equal(rp_writer_steps(r.writer), 3);
    (void)sample_one(&r, r.a);
    assert_ok(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err));

    assert_int_equal(rp_writer_steps(r.writer), 0);
    rp_test_rig_deinit(&r);
}

/* A table whose items must be two steps of both columns. */
static void setup_signature(rp_test_rig *r, int32_t chunk_length)
{
    rp_spec columns[] = {{NULL, RP_INT32, SHAPE(2, 3)}, {NULL, RP_FLOAT64, SHAPE(2)}};
    rp_table_options table = rp_test_open_table("a");
    rp_writer_options options = rp_test_writing(8, chunk_length);

    rp_test_rig_open(r, NULL);
    assert_ok(rp_signature_flat(&r->alloc, columns, 2, &table.signature, NULL));
    assert_ok_err(rp_store_add_table(r->store, &table, &r->a, &r->err), &r->err);
    rp_signature_unref(table.signature);
    assert_ok_err(rp_writer_new(r->store, &options, &r->writer, &r->err), &r->err);
}

static void item_that_is_refused_is_not_created(void **state)
{
    rp_test_rig r;
    (void)state;
    setup_signature(&r, 1);
    rp_test_append(&r, 4);

    assert_fails(rp_test_try_item(&r, "a", 0, 3, 1, rp_wait_none(), NULL), RP_INVALID, &r.err,
                 "got shape [3,3] but expected [2,3]");

    assert_int_equal(rp_writer_pending(r.writer), 0);
    (void)rp_test_item(&r, "a", 0, 2, 1);
    assert_int_equal(rp_test_info(r.a).size, 1);
    rp_test_rig_deinit(&r);
}

static void flush_drops_and_names_what_is_refused_and_nothing_else(void **state)
{
    uint64_t keys[6];
    char name[32];
    rp_test_rig r;
    (void)state;
    setup_signature(&r, 8);
    rp_test_append(&r, 6);
    for (int i = 0; i < 6; i++) keys[i] = rp_test_item(&r, "a", 0, i == 2 || i == 4 ? 3 : 2, 1);
    assert_int_equal(rp_writer_pending(r.writer), 6);

    (void)snprintf(name, sizeof name, "item %llu was", (unsigned long long)keys[2]);
    assert_fails(rp_writer_flush(r.writer, rp_wait_none(), &r.err), RP_INVALID, &r.err, name);
    assert_int_equal(rp_writer_pending(r.writer), 3);
    (void)snprintf(name, sizeof name, "item %llu was", (unsigned long long)keys[4]);
    assert_fails(rp_writer_flush(r.writer, rp_wait_none(), &r.err), RP_INVALID, &r.err, name);
    rp_test_flush(&r);

    for (int i = 0; i < 6; i++)
        assert_int_equal(rp_test_has(&r, r.a, keys[i]), i != 2 && i != 4);
    rp_test_rig_deinit(&r);
}

static void append_leaves_a_refused_item_for_the_next_call_to_report(void **state)
{
    rp_test_rig r;
    uint64_t bad, key = 99;
    char name[32];
    (void)state;
    setup_signature(&r, 4);
    rp_test_append(&r, 3);
    bad = rp_test_item(&r, "a", 0, 3, 1);

    rp_test_append(&r, 1); /* the chunk is full, the item goes to the table and is refused */
    assert_int_equal(rp_writer_pending(r.writer), 1);
    (void)snprintf(name, sizeof name, "item %llu was", (unsigned long long)bad);
    assert_fails(rp_test_try_item(&r, "a", 0, 2, 1, rp_wait_none(), &key), RP_INVALID, &r.err,
                 name);
    assert_int_equal(key, 99);
    assert_int_equal(rp_writer_pending(r.writer), 0);
    assert_int_equal(rp_test_info(r.a).size, 0);

    (void)rp_test_item(&r, "a", 0, 2, 1);
    assert_int_equal(rp_test_info(r.a).size, 1);
    rp_test_rig_deinit(&r);
}

static void item_larger_than_its_table_is_dropped(void **state)
{
    rp_table_options table = rp_test_open_table("a");
    rp_test_rig r;
    (void)state;
    table.max_bytes = 1200;
    setup_table(&r, &table, 0);
    rp_test_append(&r, 8);

    assert_int_equal(rp_test_try_item(&r, "a", 0, 8, 1, rp_wait_none(), NULL), RP_NO_RESOURCE);

    assert_non_null(strstr(r.err.text, "was dropped"));
    assert_int_equal(rp_writer_pending(r.writer), 0);
    (void)rp_test_item(&r, "a", 0, 1, 1);
    assert_int_equal(rp_test_info(r.a).size, 1);
    rp_test_rig_deinit(&r);
}

static void item_is_dropped_by_a_store_that_rejects_when_full(void **state)
{
    rp_store_options store = {.max_bytes = 4000, .policy = RP_BUDGET_REJECT};
    rp_table_options table = rp_test_open_table("a");
    rp_writer_options options = rp_test_writing(8, 1);
    rp_test_rig r;
    rp_status st = RP_OK;
    (void)state;
    rp_test_rig_open(&r, &store);
    assert_ok_err(rp_store_add_table(r.store, &table, &r.a, &r.err), &r.err);
    assert_ok_err(rp_writer_new(r.store, &options, &r.writer, &r.err), &r.err);

    for (int i = 0; st == RP_OK && i < 100; i++) {
        rp_test_append(&r, 1);
        st = rp_test_try_item(&r, "a", -1, 1, 1, rp_wait_none(), NULL);
    }

    assert_int_equal(st, RP_NO_RESOURCE);
    assert_int_equal(rp_writer_pending(r.writer), 0);
    assert_true(rp_test_info(r.a).size >= 1);
    rp_test_rig_deinit(&r);
}

static void store_that_blocks_when_full_keeps_items_pending(void **state)
{
    rp_store_options store = {.max_bytes = 4000, .policy = RP_BUDGET_BLOCK};
    rp_table_options table = rp_test_open_table("a");
    rp_writer_options options = rp_test_writing(8, 1);
    rp_test_rig r;
    uint64_t first = 0;
    (void)state;
    rp_test_rig_open(&r, &store);
    assert_ok_err(rp_store_add_table(r.store, &table, &r.a, &r.err), &r.err);
    assert_ok_err(rp_writer_new(r.store, &options, &r.writer, &r.err), &r.err);

    for (int i = 0; rp_writer_pending(r.writer) == 0; i++) {
        uint64_t key;
        assert_true(i < 100);
        rp_test_append(&r, 1);
        key = rp_test_item(&r, "a", -1, 1, 1);
        if (i == 0) first = key;
    }
    assert_int_equal(rp_writer_flush(r.writer, rp_wait_none(), &r.err), RP_DEADLINE);
    assert_ok(rp_table_delete(r.a, &first, 1, NULL, &r.err));

    rp_test_flush(&r);
    rp_test_rig_deinit(&r);
}

/* The log of the tables fails: what is in stays in, and a flush says so until it is safe. */
static void items_that_are_not_safe_are_told_of_by_a_flush(void **state)
{
    static const rp_status statuses[] = {RP_UNAVAILABLE, RP_CANCELLED, RP_DEADLINE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        rp_writer_options options = rp_test_writing(8, 1);
        rp_test_recorder recorder;
        rp_test_rig r;

        rp_test_rig_init(&r, &options);
        rp_test_recorder_init(&recorder, NULL, 0);
        rp_store_set_log(r.store, &recorder.log);
        recorder.wait_status = statuses[i];
        rp_test_append(&r, 1);
        (void)rp_test_item(&r, "a", -1, 1, 1);
        rp_test_append(&r, 1);
        (void)rp_test_item(&r, "b", -1, 1, 1);
        assert_int_equal(rp_writer_pending(r.writer), 0);
        for (int k = 0; k < 2; k++)
            assert_fails(rp_writer_flush(r.writer, rp_wait_forever(), &r.err), statuses[i],
                         &r.err, "the recorder cannot write");
        assert_int_equal(rp_test_info(r.a).size, 1);
        assert_int_equal(rp_test_info(r.b).size, 1);
        recorder.wait_status = RP_OK;
        rp_test_flush(&r);
        assert_int_equal(recorder.waited, 2);
        rp_store_set_log(r.store, NULL);
        rp_test_rig_deinit(&r);
        rp_test_recorder_deinit(&recorder);
    }
}

RP_TESTS(writer_items)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(picks_with_any_stride_read_back),
        cmocka_unit_test(consecutive_rows_of_a_chunk_make_one_slice),
        cmocka_unit_test(squeezed_pick_has_no_step_dimension),
        cmocka_unit_test(negative_start_counts_from_the_latest_step),
        cmocka_unit_test(one_column_may_be_picked_twice),
        cmocka_unit_test(latest_steps_of_all_columns_make_an_item),
        cmocka_unit_test(steps_outside_the_history_are_refused),
        cmocka_unit_test(enormous_picks_are_refused),
        cmocka_unit_test(malformed_picks_are_refused),
        cmocka_unit_test(unknown_table_is_refused),
        cmocka_unit_test(nan_priority_is_refused_at_once),
        cmocka_unit_test(item_waits_until_its_chunks_are_full),
        cmocka_unit_test(pending_item_outlives_the_history),
        cmocka_unit_test(flush_completes_only_chunks_that_items_wait_for),
        cmocka_unit_test(items_are_inserted_in_the_order_of_their_creation),
        cmocka_unit_test(items_of_two_tables_take_turns),
        cmocka_unit_test(full_table_leaves_items_pending_until_there_is_room),
        cmocka_unit_test(create_item_waits_only_at_max_pending),
        cmocka_unit_test(create_item_at_max_pending_completes_chunks_early),
        cmocka_unit_test(create_item_goes_on_when_a_consumer_makes_room),
        cmocka_unit_test(create_item_waits_for_one_place_only),
        cmocka_unit_test(cancelled_flush_keeps_the_items),
        cmocka_unit_test(closed_table_ends_flushes_and_keeps_the_items),
        cmocka_unit_test(episode_goes_on_when_its_end_fails),
        cmocka_unit_test(item_that_is_refused_is_not_created),
        cmocka_unit_test(flush_drops_and_names_what_is_refused_and_nothing_else),
        cmocka_unit_test(append_leaves_a_refused_item_for_the_next_call_to_report),
        cmocka_unit_test(item_larger_than_its_table_is_dropped),
        cmocka_unit_test(item_is_dropped_by_a_store_that_rejects_when_full),
        cmocka_unit_test(store_that_blocks_when_full_keeps_items_pending),
        cmocka_unit_test(items_that_are_not_safe_are_told_of_by_a_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
