/* SPDX-License-Identifier: Apache-2.0 */
/* Trajectory writers over every transport: what they write is what samplers read. */
#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "support/transports.h"

enum { X = 0, PIXELS = 3, WORDS = 4 };

static void append(rp_test_transport *t, rp_trajectory_writer *w, const rp_value *values,
                   size_t count, uint32_t flags, rp_ref *refs)
{
    assert_ok_err(rp_trajectory_writer_append(w, values, count, flags, refs, &t->err), &t->err);
}

static uint64_t create(rp_test_transport *t, rp_trajectory_writer *w, const char *table,
                       const rp_item_column *columns, size_t count)
{
    uint64_t key = 0;

    assert_ok_err(rp_trajectory_writer_create_item(w,
                                                   &(rp_new_item){table, 1.5, columns, count},
                                                   rp_test_soon(), &key, &t->err),
                  &t->err);
    return key;
}

static void columns_of_several_dtypes(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 6, 2);
    float pixels[7][6];
    char letters[7][3];
    rp_string words[7][2];
    rp_ref refs[7][3];
    uint64_t keys[5];
    rp_sample out[5];

    for (size_t i = 0; i < 7; i++) {
        int32_t x = (int32_t)i * 10;
        rp_value values[] = {
            {X, "x", rp_test_int(&x)},
            {PIXELS, "pixels", {RP_FLOAT32, rp_test_shape(2, 2, 3), pixels[i]}},
            {WORDS, "words", {RP_STRING, rp_test_shape(1, 2, 0), words[i]}},
        };

        for (size_t k = 0; k < 6; k++) pixels[i][k] = (float)(i * 6 + k) / 3;
        memset(letters[i], 'a' + (int)i, sizeof letters[i]);
        words[i][0] = (rp_string){letters[i], i % 4};
        words[i][1] = (rp_string){"\0x", 2};
        append(t, w, values, 3, 0, refs[i]);
        if (i < 2) continue;
        rp_ref xs[] = {refs[i - 2][0], refs[i - 1][0], refs[i][0]};
        rp_ref ps[] = {refs[i - 1][1], refs[i][1]};
        rp_item_column columns[] = {{.refs = xs, .count = 3},
                                    {.refs = ps, .count = 2},
                                    {.refs = &refs[i][2], .count = 1, .squeeze = true}};
        keys[i - 2] = create(t, w, bag, columns, 3);
    }
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, keys, 5, out);
    for (size_t i = 0; i < 5; i++) {
        int32_t x = (int32_t)i * 10;

        RP_TEST_EXPECT_INTS(t, &out[i], 0, x, x + 10, x + 20);
        rp_test_expect(t, &out[i], 1, RP_FLOAT32, (rp_shape){3, {2, 2, 3}}, pixels[i + 1]);
        rp_test_expect(t, &out[i], 2, RP_STRING, rp_test_shape(1, 2, 0), words[i + 2]);
        assert_true(out[i].priority == 1.5);
        assert_int_equal(out[i].times_sampled, 1);
    }
    rp_samples_release(out, 5);
    rp_trajectory_writer_free(w);
}

static void partial_steps(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 10, 3);
    int32_t x[] = {1, 2, 3}, y[] = {10, 30};
    rp_value xs[3], ys[2];
    rp_ref found, refs[3];
    uint64_t key;
    rp_sample out;

    for (size_t i = 0; i < 3; i++) xs[i] = (rp_value){0, "x", rp_test_int(&x[i])};
    for (size_t i = 0; i < 2; i++) ys[i] = (rp_value){1, "y", rp_test_int(&y[i])};
    append(t, w, &xs[0], 1, RP_STEP_OPEN, &refs[0]);
    assert_true(rp_trajectory_writer_is_open(w));
    assert_int_equal(rp_trajectory_writer_steps(w), 0);
    assert_fails(rp_trajectory_writer_append(w, &xs[1], 1, 0, NULL, &t->err), RP_INVALID,
                 &t->err, "'x' has a value in this step already");
    append(t, w, &ys[0], 1, 0, NULL);
    append(t, w, &xs[1], 1, 0, &refs[1]); /* no y in this step */
    append(t, w, NULL, 0, RP_STEP_OPEN, NULL);
    append(t, w, &xs[2], 1, RP_STEP_OPEN, &refs[2]);
    append(t, w, &ys[1], 1, RP_STEP_OPEN, NULL);
    append(t, w, NULL, 0, 0, NULL);
    assert_int_equal(rp_trajectory_writer_steps(w), 3);
    assert_false(rp_trajectory_writer_find(w, 1, 1, &found));
    assert_false(rp_trajectory_writer_find(w, 1, -2, &found));
    assert_true(rp_trajectory_writer_find(w, 1, -1, &found));
    rp_item_column columns[] = {{.refs = refs, .count = 3}, {.refs = &found, .count = 1}};
    key = create(t, w, bag, columns, 2);
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, &key, 1, &out);
    RP_TEST_EXPECT_INTS(t, &out, 0, 1, 2, 3);
    RP_TEST_EXPECT_INTS(t, &out, 1, 30);
    rp_samples_release(&out, 1);
    rp_trajectory_writer_free(w);
}

static void rows_in_any_order(rp_test_transport *t)
{
    static const size_t picks[][6] = {
        {0, 2, 4, 6, 8, 10},  /* strided */
        {9, 8, 7, 6, 5, 4},   /* reversed */
        {11, 8, 5, 2, 2, 2},  /* both, and repeated */
        {3, 3, 3, 3, 3, 3},   /* the same again and again */
        {11, 0, 6, 1, 10, 5}, /* here and there */
    };
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 12, 5);
    rp_ref refs[12], chosen[6];
    uint64_t keys[COUNT_OF(picks)];
    rp_sample out[COUNT_OF(picks)];

    for (int32_t i = 0; i < 12; i++) refs[i] = rp_test_append(t, w, 100 + i);
    for (size_t i = 0; i < COUNT_OF(picks); i++) {
        for (size_t k = 0; k < 6; k++) chosen[k] = refs[picks[i][k]];
        keys[i] = rp_test_create(t, w, bag, 1, chosen, 6);
    }
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, keys, COUNT_OF(picks), out);
    for (size_t i = 0; i < COUNT_OF(picks); i++) {
        int32_t rows[6];

        for (size_t k = 0; k < 6; k++) rows[k] = 100 + (int32_t)picks[i][k];
        rp_test_expect_ints(t, &out[i], 0, rows, 6);
    }
    rp_samples_release(out, COUNT_OF(picks));
    rp_trajectory_writer_free(w);
}

/* One column of an item may have rows of several columns, and each its own length. */
static void columns_are_mixed_and_ragged(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 9, 4);
    rp_ref a[9], b[9];
    uint64_t key;
    rp_sample out;

    for (int32_t i = 0; i < 9; i++) {
        int32_t x = i, y = -i;
        rp_value values[] = {{0, NULL, rp_test_int(&x)}, {1, NULL, rp_test_int(&y)}};
        rp_ref refs[2];

        append(t, w, values, 2, 0, refs);
        a[i] = refs[0];
        b[i] = refs[1];
    }
    rp_ref mixed[] = {a[8], b[8], a[0], b[3]};
    rp_item_column columns[] = {{.refs = a, .count = 9},
                                {.refs = b + 7, .count = 2},
                                {.refs = mixed, .count = 4},
                                {.refs = &b[5], .count = 1, .squeeze = true}};
    key = create(t, w, bag, columns, 4);
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, &key, 1, &out);
    RP_TEST_EXPECT_INTS(t, &out, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    RP_TEST_EXPECT_INTS(t, &out, 1, -7, -8);
    RP_TEST_EXPECT_INTS(t, &out, 2, 8, -8, 0, -3);
    rp_test_expect(t, &out, 3, RP_INT32, (rp_shape){0}, &(int32_t){-5});
    rp_samples_release(&out, 1);
    rp_trajectory_writer_free(w);
}

static void items_may_refer_to_rows_of_the_history_only(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 3, 2);
    rp_ref refs[5];
    rp_item_column column = {.refs = &refs[1], .count = 1, .name = "back"};
    rp_sample out;
    uint64_t key;

    for (int32_t i = 0; i < 5; i++) refs[i] = rp_test_append(t, w, i);
    assert_false(rp_trajectory_writer_has(w, refs[1]));
    assert_true(rp_trajectory_writer_has(w, refs[2]));
    assert_fails(rp_trajectory_writer_create_item(w, &(rp_new_item){bag, 1, &column, 1},
                                                  rp_test_soon(), &key, &t->err),
                 RP_PRECONDITION, &t->err, "'back'");
    key = rp_test_create(t, w, bag, 1, &refs[2], 3);
    /* Rows that an item has may leave the history. */
    for (int32_t i = 5; i < 9; i++) (void)rp_test_append(t, w, i);
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, &key, 1, &out);
    RP_TEST_EXPECT_INTS(t, &out, 0, 2, 3, 4);
    rp_samples_release(&out, 1);
    rp_trajectory_writer_free(w);
}

static void every_column_has_its_options(rp_test_transport *t)
{
    static const rp_column_options options[] = {
        {.history = 20, .chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}},
        {.history = 20, .chunk_length = 7, .chunk = {.codec = RP_CODEC_ZSTD, .level = 9}},
        {.history = 30, .chunk_length = 20, .chunk = {.codec = RP_CODEC_LZ4, .delta = true}},
        {.history = 40, .chunk = {.codec = RP_CODEC_SNAPPY, .delta = true}},
    };
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 20, 5);
    rp_item_column columns[COUNT_OF(options)];
    rp_ref refs[COUNT_OF(options)][20];
    int16_t rows[COUNT_OF(options)][20][8];
    uint64_t key;
    rp_sample out;

    for (uint32_t c = 0; c < COUNT_OF(options); c++)
        assert_ok_err(rp_trajectory_writer_configure(w, c, "c", &options[c], &t->err), &t->err);
    for (size_t i = 0; i < 20; i++)
        for (uint32_t c = 0; c < COUNT_OF(options); c++) {
            rp_value value = {c, NULL, {RP_INT16, rp_test_shape(1, 8, 0), rows[c][i]}};

            for (size_t k = 0; k < 8; k++) rows[c][i][k] = (int16_t)(i * k * (c + 77) - 9999);
            append(t, w, &value, 1, c + 1 < COUNT_OF(options) ? RP_STEP_OPEN : 0, &refs[c][i]);
        }
    for (size_t c = 0; c < COUNT_OF(options); c++)
        columns[c] = (rp_item_column){.refs = refs[c], .count = 20};
    assert_fails(rp_trajectory_writer_configure(w, 1, "c", &options[0], &t->err),
                 RP_PRECONDITION, &t->err, "has rows already");
    key = create(t, w, bag, columns, COUNT_OF(options));
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, &key, 1, &out);
    for (size_t c = 0; c < COUNT_OF(options); c++)
        rp_test_expect(t, &out, c, RP_INT16, rp_test_shape(2, 20, 8), rows[c]);
    assert_int_equal(rp_trajectory_get_column(out.trajectory, 0).slice_count, 20);
    assert_int_equal(rp_trajectory_get_column(out.trajectory, 1).slice_count, 3);
    assert_int_equal(rp_trajectory_get_column(out.trajectory, 2).slice_count, 1);
    rp_samples_release(&out, 1);
    rp_trajectory_writer_free(w);
}

static void items_of_many_megabytes(rp_test_transport *t)
{
    enum { BYTES = 3 << 20, ROWS = 4 };
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, ROWS, 1);
    uint8_t *rows = malloc((size_t)ROWS * BYTES);
    rp_ref refs[ROWS];
    uint64_t state = 5, keys[2];
    rp_sample out[2];

    assert_non_null(rows);
    for (size_t i = 0; i < (size_t)ROWS * BYTES; i += sizeof state) {
        state = (state ^ state >> 32) * 6364136223846793005u + 1442695040888963407u;
        memcpy(rows + i, &state, sizeof state);
    }
    for (size_t i = 0; i < ROWS; i++) {
        rp_value value = {
            0, NULL, {RP_UINT8, rp_test_shape(1, BYTES, 0), rows + i * (size_t)BYTES}};

        append(t, w, &value, 1, 0, &refs[i]);
    }
    keys[0] = rp_test_create(t, w, bag, 1, refs, ROWS);
    keys[1] = rp_test_create(t, w, bag, 1, refs + 1, 2);
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, keys, 2, out);
    rp_test_expect(t, &out[0], 0, RP_UINT8, rp_test_shape(2, ROWS, BYTES), rows);
    rp_test_expect(t, &out[1], 0, RP_UINT8, rp_test_shape(2, 2, BYTES), rows + BYTES);
    rp_samples_release(out, 2);
    rp_trajectory_writer_free(w);
    free(rows);
}

static void a_flush_may_leave_some_items_pending(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 100, 100);
    uint64_t keys[10];
    rp_sample out[10];

    for (int32_t i = 0; i < 10; i++) {
        rp_ref ref;

        /* The last five have a chunk of their own, which stays open. */
        if (i == 5)
            assert_ok_err(rp_trajectory_writer_flush(w, 2, rp_test_soon(), &t->err), &t->err);
        ref = rp_test_append(t, w, i);
        keys[i] = rp_test_create(t, w, bag, 1, &ref, 1);
    }
    assert_true(rp_trajectory_writer_pending(w) >= 5);
    assert_ok_err(rp_trajectory_writer_flush(w, 5, rp_test_soon(), &t->err), &t->err);
    assert_int_equal(rp_trajectory_writer_pending(w), 5);
    assert_int_equal(rp_test_table_sum(t, bag).info.size, 5);
    assert_ok_err(rp_trajectory_writer_flush(w, 4, rp_test_soon(), &t->err), &t->err);
    assert_true(rp_trajectory_writer_pending(w) <= 4);
    rp_test_flush(t, w);
    rp_test_take_keys(t, bag, keys, 10, out);
    for (int32_t i = 0; i < 10; i++) RP_TEST_EXPECT_INTS(t, &out[i], 0, i);
    rp_samples_release(out, 10);
    rp_trajectory_writer_free(w);
}

static void a_flush_ends_at_its_deadline(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    rp_ref ref;
    int64_t before_ns;
    char why[512];

    assert_ok_err(
        rp_client_pause_table(t->client, bag, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    ref = rp_test_append(t, w, 7);
    (void)rp_test_create(t, w, bag, 1, &ref, 1);
    before_ns = rp_now_ns();
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_ms(80), &t->err), RP_DEADLINE);
    assert_true(rp_now_ns() - before_ns >= 79000000);
    assert_int_equal(rp_trajectory_writer_flush(w, 0, rp_wait_none(), &t->err), RP_DEADLINE);
    assert_int_equal(rp_trajectory_writer_end_episode(w, true, rp_wait_ms(20), &t->err),
                     RP_DEADLINE);
    assert_int_equal(rp_trajectory_writer_steps(w), 1); /* the episode goes on */
    assert_int_equal(rp_trajectory_writer_pending(w), 1);
    rp_trajectory_writer_why(w, why, sizeof why);
    assert_non_null(strstr(why, "1 item is unconfirmed"));
    assert_ok_err(
        rp_client_resume_table(t->client, bag, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    rp_test_flush(t, w);
    assert_int_equal(rp_test_table_sum(t, bag).info.size, 1);
    rp_trajectory_writer_free(w);
}

static void an_episode_ends_with_or_without_its_history(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer *w = rp_test_writer(t, 6, 4);
    rp_ref refs[6], found;
    uint64_t keys[2];
    rp_sample out[2];

    for (int32_t i = 0; i < 3; i++) refs[i] = rp_test_append(t, w, i);
    keys[0] = rp_test_create(t, w, bag, 1, refs, 3);
    assert_ok_err(rp_trajectory_writer_end_episode(w, false, rp_test_soon(), &t->err), &t->err);
    assert_int_equal(rp_test_table_sum(t, bag).info.size, 1); /* it has flushed */
    assert_int_equal(rp_trajectory_writer_steps(w), 0);
    assert_false(rp_trajectory_writer_find(w, 0, 0, &found));
    assert_true(rp_trajectory_writer_has(w, refs[0]));
    for (int32_t i = 3; i < 6; i++) refs[i] = rp_test_append(t, w, i);
    assert_true(rp_trajectory_writer_find(w, 0, 0, &found));
    assert_int_equal(found.cell, refs[3].cell);
    keys[1] = rp_test_create(t, w, bag, 1, refs, 6); /* over the border */
    assert_ok_err(rp_trajectory_writer_end_episode(w, true, rp_test_soon(), &t->err), &t->err);
    assert_false(rp_trajectory_writer_has(w, refs[5]));
    rp_test_take_keys(t, bag, keys, 2, out);
    RP_TEST_EXPECT_INTS(t, &out[0], 0, 0, 1, 2);
    RP_TEST_EXPECT_INTS(t, &out[1], 0, 0, 1, 2, 3, 4, 5);
    {
        const rp_chunk_slice *s = rp_trajectory_slices(out[1].trajectory, 0).slices;
        size_t last = rp_trajectory_get_column(out[1].trajectory, 0).slice_count - 1;
        const rp_chunk_origin *a = rp_chunk_get_origin(s[0].chunk);
        const rp_chunk_origin *b = rp_chunk_get_origin(s[last].chunk);

        assert_true(a->episode != b->episode);
        assert_int_equal(b->first_step, 0);
    }
    rp_samples_release(out, 2);
    rp_trajectory_writer_free(w);
}

static void a_full_writer_blocks_new_items(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer_options options = {.column = {.history = 4, .chunk_length = 1},
                                            .max_items = 3};
    rp_trajectory_writer *w = NULL;
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};
    int64_t before_ns;

    assert_ok_err(rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &w, &t->err),
                  &t->err);
    assert_ok_err(
        rp_client_pause_table(t->client, bag, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    for (int32_t i = 0; i < 3; i++) {
        ref = rp_test_append(t, w, i);
        (void)rp_test_create(t, w, bag, 1, &ref, 1);
    }
    ref = rp_test_append(t, w, 3);
    before_ns = rp_now_ns();
    assert_int_equal(rp_trajectory_writer_create_item(w, &(rp_new_item){bag, 1, &column, 1},
                                                      rp_wait_ms(50), NULL, &t->err),
                     RP_DEADLINE);
    assert_true(rp_now_ns() - before_ns >= 49000000);
    assert_int_equal(rp_trajectory_writer_pending(w), 3);
    assert_ok_err(
        rp_client_resume_table(t->client, bag, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    (void)rp_test_create(t, w, bag, 1, &ref, 1);
    rp_test_flush(t, w);
    assert_int_equal(rp_test_table_sum(t, bag).info.size, 4);
    rp_trajectory_writer_free(w);
}

static const char *make_strict(rp_test_transport *t)
{
    const rp_spec columns[] = {
        {"action", RP_INT32, {1, {-1}}},
        {"observation", RP_FLOAT32, {3, {-1, 2, 3}}},
    };
    rp_table_options options = {.limiter = rp_limiter_min_size(1),
                                .sampler = {.kind = RP_PRIORITIZED, .exponent = 1},
                                .max_size = 100};
    const char *name;

    assert_ok_err(
        rp_signature_flat(rp_allocator_default(), columns, 2, &options.signature, &t->err),
        &t->err);
    name = rp_test_make_table(t, &options);
    rp_signature_unref(options.signature);
    return name;
}

static rp_status try_item(rp_test_transport *t, rp_trajectory_writer *w, const char *table,
                          const rp_tensor *second)
{
    static const int32_t x = 1;
    rp_value values[] = {{0, "action", rp_test_int(&x)}, {1, "observation", *second}};
    rp_ref refs[2];
    rp_item_column columns[] = {{.refs = &refs[0], .count = 1}, {.refs = &refs[1], .count = 1}};
    rp_status st = rp_trajectory_writer_append(w, values, 2, 0, refs, &t->err);

    if (st != RP_OK) return st;
    return rp_trajectory_writer_create_item(w, &(rp_new_item){table, 1, columns, 2},
                                            rp_test_soon(), NULL, &t->err);
}

static void a_signature_error_names_the_column(rp_test_transport *t)
{
    const char *strict = make_strict(t);
    float values[12] = {0};
    double wide[6] = {0};
    const rp_tensor right = {RP_FLOAT32, rp_test_shape(2, 2, 3), values};
    const rp_tensor wrong_shape = {RP_FLOAT32, rp_test_shape(2, 3, 2), values};
    const rp_tensor wrong_dtype = {RP_FLOAT64, rp_test_shape(2, 2, 3), wide};
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    rp_ref ref;

    assert_ok_err(try_item(t, w, strict, &right), &t->err);
    /* Within a writer a column keeps its dtype and shape. */
    assert_fails(try_item(t, w, strict, &wrong_shape), RP_INVALID, &t->err, "'observation'");
    assert_non_null(strstr(t->err.text, "[3,2]"));
    assert_non_null(strstr(t->err.text, "[2,3]"));
    assert_true(rp_trajectory_writer_find(w, 0, -1, &ref));
    assert_fails(rp_trajectory_writer_create_item(
                     w, &(rp_new_item){strict, 1, &(rp_item_column){&ref, 1, false, NULL}, 1},
                     rp_test_soon(), NULL, &t->err),
                 RP_INVALID, &t->err, "1 column but the signature has 2");
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
    w = rp_test_writer(t, 4, 1);
    assert_fails(try_item(t, w, strict, &wrong_shape), RP_INVALID, &t->err, "'observation'");
    assert_non_null(strstr(t->err.text, strict));
    rp_trajectory_writer_free(w);
    w = rp_test_writer(t, 4, 1);
    assert_fails(try_item(t, w, strict, &wrong_dtype), RP_INVALID, &t->err, "'observation'");
    assert_non_null(strstr(t->err.text, "float64"));
    rp_test_flush(t, w); /* nothing was created */
    rp_trajectory_writer_free(w);
    assert_int_equal(rp_test_table_sum(t, strict).info.size, 1);
}

/* Who does not check is told by the server, at the flush. */
static void a_refused_item_is_reported_once(rp_test_transport *t)
{
    const char *strict = make_strict(t);
    rp_trajectory_writer_options options = {.column = {.history = 4, .chunk_length = 1},
                                            .unchecked = true};
    double wide[6] = {0};
    const rp_tensor wrong_dtype = {RP_FLOAT64, rp_test_shape(2, 2, 3), wide};
    rp_trajectory_writer *w = NULL;

    assert_ok_err(rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &w, &t->err),
                  &t->err);
    assert_ok_err(try_item(t, w, strict, &wrong_dtype), &t->err);
    assert_fails(rp_trajectory_writer_flush(w, 0, rp_test_soon(), &t->err), RP_INVALID, &t->err,
                 "observation");
    assert_non_null(strstr(t->err.text, "1 item was refused"));
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
    assert_int_equal(rp_test_table_sum(t, strict).info.size, 0);
}

static void an_unknown_table_is_not_found(rp_test_transport *t)
{
    rp_trajectory_writer *w = rp_test_writer(t, 4, 1);
    rp_ref ref = rp_test_append(t, w, 1);
    rp_item_column column = {.refs = &ref, .count = 1};

    assert_fails(rp_trajectory_writer_create_item(w, &(rp_new_item){"nowhere", 1, &column, 1},
                                                  rp_test_soon(), NULL, &t->err),
                 RP_NOT_FOUND, &t->err, "nowhere");
    assert_fails(
        rp_trajectory_writer_create_item(w, &(rp_new_item){"nowhere", (double)NAN, &column, 1},
                                         rp_test_soon(), NULL, &t->err),
        RP_INVALID, &t->err, "NaN");
    rp_test_flush(t, w);
    rp_trajectory_writer_free(w);
}

enum { WRITERS = 4, ITEMS = 300 };

typedef struct writing {
    rp_test_transport *transport;
    const char *table;
    int32_t first;
    uint64_t keys[ITEMS];
    pthread_t thread;
} writing;

static void *write_some(void *user)
{
    writing *one = user;

    rp_test_fill_table(one->transport, one->table, one->first, ITEMS, one->keys);
    return NULL;
}

static void several_writers_at_once(rp_test_transport *t)
{
    static writing writings[WRITERS];
    static rp_sample out[WRITERS * ITEMS];
    static uint64_t keys[WRITERS * ITEMS];
    const char *bag = rp_test_bag(t);

    for (int32_t i = 0; i < WRITERS; i++) {
        writings[i] = (writing){.transport = t, .table = bag, .first = i * ITEMS};
        assert_int_equal(pthread_create(&writings[i].thread, NULL, write_some, &writings[i]),
                         0);
    }
    for (size_t i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(writings[i].thread, NULL), 0);
        memcpy(keys + i * ITEMS, writings[i].keys, sizeof writings[i].keys);
    }
    rp_test_take_keys(t, bag, keys, COUNT_OF(keys), out);
    for (size_t i = 0; i < COUNT_OF(keys); i++) RP_TEST_EXPECT_INTS(t, &out[i], 0, (int32_t)i);
    rp_samples_release(out, COUNT_OF(keys));
    assert_int_equal(rp_test_table_sum(t, bag).info.inserts, WRITERS * ITEMS);
}

static void *fire(void *cancel)
{
    (void)usleep(30000);
    rp_cancel_fire(cancel);
    return NULL;
}

/* Ends each of the calls that wait, from another thread. */
static void waits_can_be_cancelled(rp_test_transport *t)
{
    const char *bag = rp_test_bag(t);
    rp_trajectory_writer_options options = {.column = {.history = 4, .chunk_length = 1},
                                            .max_items = 1};
    rp_trajectory_writer *w = NULL;
    rp_ref ref;
    rp_item_column column = {.refs = &ref, .count = 1};

    assert_ok_err(rp_trajectory_writer_new(t->client, &options, rp_test_soon(), &w, &t->err),
                  &t->err);
    assert_ok_err(
        rp_client_pause_table(t->client, bag, RP_SIDE_INSERTS, rp_test_soon(), &t->err),
        &t->err);
    ref = rp_test_append(t, w, 1);
    (void)rp_test_create(t, w, bag, 1, &ref, 1);
    for (int i = 0; i < 3; i++) {
        rp_wait wait = {RP_FOREVER, NULL};
        pthread_t thread;
        rp_status st;

        assert_ok(rp_cancel_new(&wait.cancel));
        assert_int_equal(pthread_create(&thread, NULL, fire, wait.cancel), 0);
        if (i == 0)
            st = rp_trajectory_writer_flush(w, 0, wait, &t->err);
        else if (i == 1)
            st = rp_trajectory_writer_end_episode(w, true, wait, &t->err);
        else
            st = rp_trajectory_writer_create_item(w, &(rp_new_item){bag, 1, &column, 1}, wait,
                                                  NULL, &t->err);
        assert_int_equal(st, RP_CANCELLED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        rp_cancel_free(wait.cancel);
    }
    assert_int_equal(rp_trajectory_writer_pending(w), 1);
    rp_trajectory_writer_free(w); /* drops what is not in */
}

RP_TESTS(writer)
{
    static const rp_test_case cases[] = {
        RP_TEST_CASE(columns_of_several_dtypes),
        RP_TEST_CASE(partial_steps),
        RP_TEST_CASE(rows_in_any_order),
        RP_TEST_CASE(columns_are_mixed_and_ragged),
        RP_TEST_CASE(items_may_refer_to_rows_of_the_history_only),
        RP_TEST_CASE(every_column_has_its_options),
        RP_TEST_CASE(items_of_many_megabytes),
        RP_TEST_CASE(a_flush_may_leave_some_items_pending),
        RP_TEST_CASE(a_flush_ends_at_its_deadline),
        RP_TEST_CASE(an_episode_ends_with_or_without_its_history),
        RP_TEST_CASE(a_full_writer_blocks_new_items),
        RP_TEST_CASE(a_signature_error_names_the_column),
        RP_TEST_CASE(a_refused_item_is_reported_once),
        RP_TEST_CASE(an_unknown_table_is_not_found),
        RP_TEST_CASE(several_writers_at_once),
        RP_TEST_CASE(waits_can_be_cancelled),
    };
    return rp_test_over_transports(RP_TEST_REPRISE, cases, COUNT_OF(cases));
}
