/* SPDX-License-Identifier: Apache-2.0 */
/* Steps, chunks and episodes. What items do is in test_writer_items.c. */
#include "support/writing.h"

static void setup(rp_test_rig *r, int32_t history, int32_t chunk_length)
{
    rp_writer_options options = rp_test_writing(history, chunk_length);
    rp_test_rig_init(r, &options);
}

/* Appends `steps` steps and, from the third on, an item of the latest three. All must read
 * back. */
static void write_overlapping(rp_test_rig *r, int steps)
{
    uint64_t keys[128];

    assert_true(steps <= (int)COUNT_OF(keys));
    for (int s = 0; s < steps; s++) {
        rp_test_append(r, 1);
        if (s >= 2) keys[s] = rp_test_item(r, "a", s - 2, 3, 1);
    }
    rp_test_flush(r);
    assert_int_equal(rp_test_info(r->a).size, steps - 2);
    for (int s = 2; s < steps; s++) rp_test_expect_item(r, r->a, keys[s], s - 2, 3, 1);
}

static void overlapping_items_read_back_for_every_chunk_length(void **state)
{
    (void)state;
    for (int32_t length = 1; length <= 7; length++) {
        rp_test_rig r;
        setup(&r, 8, length);

        write_overlapping(&r, 40);

        rp_test_rig_deinit(&r);
    }
}

static void overlapping_items_read_back_with_tuned_chunks(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 20, 0);

    write_overlapping(&r, 128);

    rp_test_rig_deinit(&r);
}

static void overlapping_items_read_back_with_every_codec(void **state)
{
    (void)state;
    for (int codec = RP_CODEC_SNAPPY; codec <= RP_CODEC_LZ4; codec++)
        for (int delta = 0; delta < 2; delta++) {
            rp_writer_options options = rp_test_writing(10, 4);
            rp_test_rig r;
            options.chunk = (rp_chunk_options){.codec = (rp_codec)codec, .delta = delta != 0};
            rp_test_rig_init(&r, &options);

            write_overlapping(&r, 30);

            rp_test_rig_deinit(&r);
        }
}

static void string_columns_read_back(void **state)
{
    static const char *const words[] = {"north", "", "south-west", "e"};
    rp_spec column = {"command", RP_STRING, SHAPE(2)};
    rp_writer_options options = {
        .columns = &column, .column_count = 1, .history = 4, .chunk_length = 3};
    rp_test_rig r;
    rp_trajectory *t;
    rp_string got[8];
    uint64_t key;
    (void)state;
    rp_test_rig_init(&r, &options);

    for (size_t s = 0; s < 4; s++) {
        rp_string row[] = {{words[s], strlen(words[s])}, {words[3 - s], strlen(words[3 - s])}};
        rp_tensor step = {RP_STRING, SHAPE(2), row};
        assert_ok_err(rp_writer_append(r.writer, &step, &r.err), &r.err);
    }
    assert_ok_err(rp_writer_create_latest(r.writer, "a", 1, 4, rp_wait_none(), &key, &r.err),
                  &r.err);
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    assert_ok_err(rp_decoder_stack_strings(r.decoder, (const rp_trajectory *const *)&t, 1, 0,
                                           got, 8, &r.err),
                  &r.err);
    for (size_t i = 0; i < 8; i++) {
        const char *word = words[i % 2 == 0 ? i / 2 : 3 - i / 2];
        assert_int_equal(got[i].size, strlen(word));
        assert_memory_equal(got[i].data, word, got[i].size);
    }
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void columns_without_elements_read_back(void **state)
{
    rp_spec column = {"nothing", RP_FLOAT32, SHAPE(0)};
    rp_writer_options options = {
        .columns = &column, .column_count = 1, .history = 4, .chunk_length = 2};
    rp_tensor step = {RP_FLOAT32, SHAPE(0), ""};
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key;
    (void)state;
    rp_test_rig_init(&r, &options);

    for (int i = 0; i < 3; i++) assert_ok(rp_writer_append(r.writer, &step, &r.err));
    assert_ok(rp_writer_create_latest(r.writer, "a", 1, 3, rp_wait_none(), &key, &r.err));
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    assert_int_equal(rp_trajectory_get_column(t, 0).shape.dims[0], 3);
    assert_int_equal(rp_trajectory_get_column(t, 0).bytes, 0);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void wrong_dtype_is_refused_by_the_name_of_its_column(void **state)
{
    int32_t obs[3] = {0};
    float action = 0;
    rp_tensor step[] = {{RP_INT32, SHAPE(3), obs}, {RP_FLOAT32, SCALAR, &action}};
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 4);

    assert_fails(rp_writer_append(r.writer, step, &r.err), RP_INVALID, &r.err,
                 "column 1 'action': got dtype float but expected double");

    assert_int_equal(rp_writer_steps(r.writer), 0);
    write_overlapping(&r, 9); /* and 'obs' has no row too many */
    rp_test_rig_deinit(&r);
}

static void wrong_shape_is_refused_by_the_name_of_its_column(void **state)
{
    int32_t obs[4] = {0};
    double action = 0;
    rp_tensor step[] = {{RP_INT32, SHAPE(4), obs}, {RP_FLOAT64, SCALAR, &action}};
    rp_test_rig r;
    (void)state;
    setup(&r, 4, 4);
    rp_test_append(&r, 2);

    assert_fails(rp_writer_append(r.writer, step, &r.err), RP_INVALID, &r.err,
                 "column 0 'obs': got shape [4] but expected [3]");

    assert_int_equal(rp_writer_steps(r.writer), 2);
    rp_test_rig_deinit(&r);
}

/* Appends a step that leaves out the columns whose bit is not set. */
static void append_partly(rp_test_rig *r, unsigned present)
{
    int64_t s = rp_writer_steps(r->writer);
    int32_t obs[] = {(int32_t)(100 * s), (int32_t)(100 * s + 1), (int32_t)(100 * s + 2)};
    double action = (double)s + 0.5;
    rp_tensor step[] = {{RP_INT32, SHAPE(3), present & 1 ? obs : NULL},
                        {RP_FLOAT64, SCALAR, present & 2 ? &action : NULL}};

    assert_ok_err(rp_writer_append(r->writer, step, &r->err), &r->err);
}

static void column_left_out_of_a_step_cannot_be_picked_there(void **state)
{
    rp_pick pick = {.column = 1, .start = 0, .count = 3, .stride = 1};
    rp_test_rig r;
    (void)state;
    setup(&r, 8, 8);
    append_partly(&r, 3);
    append_partly(&r, 1);
    append_partly(&r, 3);

    assert_fails(
        rp_writer_create_item(r.writer, "a", 1, &pick, 1, rp_wait_none(), NULL, &r.err),
        RP_PRECONDITION, &r.err, "column 1 'action' was left out of step 1");

    assert_int_equal(rp_writer_pending(r.writer), 0);
    rp_test_rig_deinit(&r);
}

static void column_left_out_of_steps_reads_back_and_its_chunk_is_sparse(void **state)
{
    rp_pick pick = {.column = 1, .start = 0, .count = 4, .stride = 2};
    const rp_chunk_origin *origin;
    rp_trajectory *t;
    rp_test_rig r;
    uint64_t key;
    (void)state;
    setup(&r, 8, 4);
    for (int i = 0; i < 8; i++) append_partly(&r, i % 2 == 0 ? 3 : 1);

    assert_ok(rp_writer_create_item(r.writer, "a", 1, &pick, 1, rp_wait_none(), &key, &r.err));

    t = rp_test_peek(&r, r.a, key); /* four rows in one chunk: it was full without a flush */
    rp_test_expect_actions(&r, t, 0, 0, 4, 2);
    assert_int_equal(rp_trajectory_get_column(t, 0).slice_count, 1);
    origin = rp_chunk_get_origin(rp_trajectory_get_chunk(t, 0));
    assert_true(origin->sparse);
    assert_int_equal(origin->first_step, 0);
    assert_int_equal(origin->last_step, 6);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void open_rows_may_be_older_than_the_history(void **state)
{
    rp_pick pick = {.column = 1, .start = -1, .count = 1, .stride = 1};
    rp_trajectory *t;
    rp_test_rig r;
    uint64_t key;
    (void)state;
    setup(&r, 4, 4);

    for (int i = 0; i < 31; i++) append_partly(&r, i % 10 == 0 ? 3 : 1);
    assert_ok(rp_writer_create_item(r.writer, "a", 1, &pick, 1, rp_wait_none(), &key, &r.err));
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    rp_test_expect_actions(&r, t, 0, 30, 1, 1);
    assert_int_equal(rp_trajectory_get_slices(t, 0)->offset, 3);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void chunks_carry_their_steps_and_episode(void **state)
{
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key, episode = 0;
    (void)state;
    setup(&r, 6, 2);
    rp_test_append(&r, 6);

    key = rp_test_item(&r, "a", 0, 6, 1);

    t = rp_test_peek(&r, r.a, key);
    assert_int_equal(rp_trajectory_chunk_count(t), 6); /* three of each column */
    for (size_t i = 0; i < 6; i++) {
        const rp_chunk_origin *o = rp_chunk_get_origin(rp_trajectory_get_chunk(t, i));
        if (i == 0) episode = o->episode;
        assert_int_equal(o->first_step, 2 * (i % 3));
        assert_int_equal(o->last_step, 2 * (i % 3) + 1);
        assert_false(o->sparse);
        assert_true(o->episode == episode);
        for (size_t k = 0; k < i; k++)
            assert_true(o->key != rp_chunk_get_origin(rp_trajectory_get_chunk(t, k))->key);
    }
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void append_allocates_nothing_between_chunks(void **state)
{
    rp_test_rig r;
    size_t before;
    (void)state;
    setup(&r, 100, 100);
    rp_test_append(&r, 200); /* every buffer has grown */

    before = r.oom.total;
    rp_test_append(&r, 99);

    assert_int_equal(r.oom.total, before);
    rp_test_rig_deinit(&r);
}

static void memory_does_not_grow_with_the_episode(void **state)
{
    rp_test_rig r;
    size_t before;
    (void)state;
    setup(&r, 16, 4);
    rp_test_append(&r, 64);

    before = r.oom.live_bytes;
    rp_test_append(&r, 4000);

    assert_true(r.oom.live_bytes < before + 512); /* chunks differ by a few bytes */
    rp_test_rig_deinit(&r);
}

static void ending_an_episode_lets_go_of_its_chunks(void **state)
{
    rp_test_rig r;
    size_t before;
    (void)state;
    setup(&r, 64, 4);
    rp_test_append(&r, 64);
    assert_ok(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err));

    before = r.oom.live;
    rp_test_append(&r, 64);
    assert_true(r.oom.live > before);
    assert_ok(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err));

    assert_int_equal(r.oom.live, before);
    rp_test_rig_deinit(&r);
}

static void two_tables_share_the_bytes_of_chunks(void **state)
{
    rp_store_info store;
    rp_test_rig r;
    (void)state;
    setup(&r, 10, 5);
    rp_test_append(&r, 10);

    (void)rp_test_item(&r, "a", 0, 10, 1);
    (void)rp_test_item(&r, "b", 2, 6, 1);

    rp_store_get_info(r.store, &store);
    assert_true(rp_test_info(r.a).bytes > 0);
    assert_true(store.bytes > rp_test_info(r.a).bytes); /* by an item */
    assert_true(store.bytes < rp_test_info(r.a).bytes + 400);
    assert_true(rp_test_info(r.b).bytes > 400);
    rp_test_rig_deinit(&r);
}

static void freeing_a_writer_keeps_what_was_inserted_and_drops_the_rest(void **state)
{
    rp_test_rig r;
    uint64_t in, waiting;
    (void)state;
    setup(&r, 8, 4);
    rp_test_append(&r, 5);
    in = rp_test_item(&r, "a", 0, 4, 1);
    waiting = rp_test_item(&r, "a", 2, 3, 1);

    rp_writer_free(r.writer);
    r.writer = NULL;

    rp_test_expect_item(&r, r.a, in, 0, 4, 1);
    assert_false(rp_test_has(&r, r.a, waiting));
    rp_writer_free(NULL);
    rp_test_rig_deinit(&r);
}

static void tuning_makes_chunks_longer_for_long_items(void **state)
{
    size_t chunks = 0;
    rp_trajectory *t;
    rp_test_rig r;
    uint64_t key = 0;
    (void)state;
    setup(&r, 40, 0);

    for (int s = 0; s < 400; s++) {
        rp_test_append(&r, 1);
        if (s >= 39) key = rp_test_item(&r, "a", -40, 40, 1);
    }
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    rp_test_expect_obs(&r, t, 0, 360, 40, 1);
    for (size_t i = 0; i < rp_trajectory_chunk_count(t); i++)
        chunks += rp_chunk_get_column(rp_trajectory_get_chunk(t, i), 0)->shape.dims[0] > 1;
    assert_true(chunks > 0);
    assert_true(rp_trajectory_chunk_count(t) < 80);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void tuned_chunks_start_with_one_row(void **state)
{
    rp_test_rig r;
    (void)state;
    setup(&r, 8, 0);
    rp_test_append(&r, 1);

    (void)rp_test_item(&r, "a", 0, 1, 1);

    assert_int_equal(rp_writer_pending(r.writer), 0); /* no flush was needed */
    rp_test_rig_deinit(&r);
}

static void ending_an_episode_starts_the_next_at_step_zero(void **state)
{
    rp_test_rig r;
    uint64_t first, second;
    rp_trajectory *t, *u;
    (void)state;
    setup(&r, 8, 3);
    rp_test_append(&r, 5);
    first = rp_test_item(&r, "a", 0, 5, 1);

    assert_ok(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err));
    assert_int_equal(rp_writer_steps(r.writer), 0);
    assert_int_equal(rp_writer_pending(r.writer), 0);
    assert_int_equal(rp_test_try_item(&r, "a", -1, 1, 1, rp_wait_none(), NULL),
                     RP_PRECONDITION);
    rp_test_append(&r, 2);
    second = rp_test_item(&r, "a", 0, 2, 1);
    rp_test_flush(&r);

    rp_test_expect_item(&r, r.a, first, 0, 5, 1);
    rp_test_expect_item(&r, r.a, second, 0, 2, 1);
    t = rp_test_peek(&r, r.a, first);
    u = rp_test_peek(&r, r.a, second);
    assert_true(rp_chunk_get_origin(rp_trajectory_get_chunk(t, 0))->episode !=
                rp_chunk_get_origin(rp_trajectory_get_chunk(u, 0))->episode);
    assert_int_equal(rp_test_info(r.a).episodes, 2);
    rp_trajectory_unref(t);
    rp_trajectory_unref(u);
    rp_test_rig_deinit(&r);
}

static void rows_that_no_item_needs_end_with_their_episode(void **state)
{
    rp_test_rig r;
    rp_trajectory *t;
    uint64_t key;
    (void)state;
    setup(&r, 8, 8);
    rp_test_append(&r, 3);

    assert_ok(rp_writer_end_episode(r.writer, rp_wait_none(), &r.err));
    rp_test_append(&r, 1);
    key = rp_test_item(&r, "a", 0, 1, 1);
    rp_test_flush(&r);

    t = rp_test_peek(&r, r.a, key);
    assert_int_equal(rp_chunk_get_column(rp_trajectory_get_chunk(t, 0), 0)->shape.dims[0], 1);
    rp_trajectory_unref(t);
    rp_test_rig_deinit(&r);
}

static void one_seed_gives_the_same_keys_and_bytes(void **state)
{
    uint64_t keys[2], bytes[2];
    (void)state;

    for (int i = 0; i < 2; i++) {
        rp_test_rig r;
        setup(&r, 8, 3);
        rp_test_append(&r, 8);
        keys[i] = rp_test_item(&r, "a", 1, 6, 1);
        rp_test_flush(&r);
        bytes[i] = rp_test_info(r.a).bytes;
        rp_test_rig_deinit(&r);
    }

    assert_true(keys[0] == keys[1]);
    assert_true(bytes[0] == bytes[1]);
}

static void expect_refused(const rp_writer_options *options, const char *part)
{
    rp_writer *writer = NULL;
    rp_test_rig r;

    rp_test_rig_open(&r, NULL);
    assert_fails(rp_writer_new(r.store, options, &writer, &r.err), RP_INVALID, &r.err, part);
    assert_null(writer);
    rp_test_rig_deinit(&r);
}

static void options_out_of_range_are_refused(void **state)
{
    rp_writer_options no_history = rp_test_writing(0, 0);
    rp_writer_options long_chunks = rp_test_writing(4, 5);
    rp_writer_options negative = rp_test_writing(4, -1);
    rp_writer_options no_columns = {.history = 1};
    rp_writer_options codec = rp_test_writing(4, 4);
    (void)state;
    codec.chunk.codec = (rp_codec)77;

    expect_refused(&no_history, "history must be >= 1, got 0");
    expect_refused(&long_chunks, "chunk_length must be in [0, history = 4], got 5");
    expect_refused(&negative, "got -1");
    expect_refused(&no_columns, "no columns");
    expect_refused(&codec, "unknown codec 77");
}

static void bad_columns_are_refused_by_their_number(void **state)
{
    rp_spec columns[] = {{"x", RP_INT32, SCALAR}, {"y", RP_FLOAT32, SHAPE(-1)}};
    rp_writer_options options = {.columns = columns, .column_count = 2, .history = 4};
    (void)state;

    expect_refused(&options, "column 1: the shape of a row must be known");
    columns[1].shape = SCALAR;
    columns[1].dtype = (rp_dtype)99;
    expect_refused(&options, "column 1: unknown dtype 99");
    options.column_count = 0;
    expect_refused(&options, "number of columns");
}

RP_TESTS(writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlapping_items_read_back_for_every_chunk_length),
        cmocka_unit_test(overlapping_items_read_back_with_tuned_chunks),
        cmocka_unit_test(overlapping_items_read_back_with_every_codec),
        cmocka_unit_test(string_columns_read_back),
        cmocka_unit_test(columns_without_elements_read_back),
        cmocka_unit_test(wrong_dtype_is_refused_by_the_name_of_its_column),
        cmocka_unit_test(wrong_shape_is_refused_by_the_name_of_its_column),
        cmocka_unit_test(column_left_out_of_a_step_cannot_be_picked_there),
        cmocka_unit_test(column_left_out_of_steps_reads_back_and_its_chunk_is_sparse),
        cmocka_unit_test(open_rows_may_be_older_than_the_history),
        cmocka_unit_test(chunks_carry_their_steps_and_episode),
        cmocka_unit_test(append_allocates_nothing_between_chunks),
        cmocka_unit_test(memory_does_not_grow_with_the_episode),
        cmocka_unit_test(ending_an_episode_lets_go_of_its_chunks),
        cmocka_unit_test(two_tables_share_the_bytes_of_chunks),
        cmocka_unit_test(freeing_a_writer_keeps_what_was_inserted_and_drops_the_rest),
        cmocka_unit_test(tuning_makes_chunks_longer_for_long_items),
        cmocka_unit_test(tuned_chunks_start_with_one_row),
        cmocka_unit_test(ending_an_episode_starts_the_next_at_step_zero),
        cmocka_unit_test(rows_that_no_item_needs_end_with_their_episode),
        cmocka_unit_test(one_seed_gives_the_same_keys_and_bytes),
        cmocka_unit_test(options_out_of_range_are_refused),
        cmocka_unit_test(bad_columns_are_refused_by_their_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
