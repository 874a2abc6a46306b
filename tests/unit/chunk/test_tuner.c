/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chunks.h"

static rp_chunk_tuner make(int32_t max_length)
{
    rp_chunk_tuner tuner;
    assert_ok(rp_chunk_tuner_init(&tuner, max_length));
    return tuner;
}

/* Ten items, each of one new chunk with `rows` rows that cost `bytes_per_row`: enough for a
 * score of 2 * bytes_per_row. */
static void feed(rp_chunk_tuner *tuner, int32_t rows, size_t bytes_per_row)
{
    static uint64_t key;

    for (int i = 0; i < 10; i++) {
        size_t bytes = bytes_per_row * (size_t)rows;
        rp_chunk_tuner_on_chunk(tuner, ++key, bytes, rows);
        rp_chunk_tuner_on_item(tuner, bytes, (size_t)rows, 1, (size_t)rows);
    }
}

static void a_tuner_starts_with_single_rows(void **state)
{
    (void)state;
    assert_int_equal(make(10).length, 1);
}

static void a_bound_below_one_is_refused(void **state)
{
    rp_chunk_tuner tuner;

    (void)state;
    assert_int_equal(rp_chunk_tuner_init(&tuner, 0), RP_INVALID);
    assert_int_equal(rp_chunk_tuner_init(&tuner, -5), RP_INVALID);
}

static void the_first_score_lengthens_by_two(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    assert_int_equal(tuner.length, 3);
}

static void nothing_changes_before_ten_items_and_five_chunks(void **state)
{
    rp_chunk_tuner items = make(10), chunks = make(10);

    (void)state;
    for (uint64_t i = 0; i < 9; i++) {
        rp_chunk_tuner_on_chunk(&items, i, 100, 1);
        rp_chunk_tuner_on_item(&items, 100, 1, 1, 1);
    }
    assert_int_equal(items.length, 1);
    for (uint64_t i = 0; i < 40; i++) {
        rp_chunk_tuner_on_chunk(&chunks, i % 4, 100, 1);
        rp_chunk_tuner_on_item(&chunks, 100, 1, 1, 1);
    }
    assert_int_equal(chunks.length, 1);
    rp_chunk_tuner_on_chunk(&chunks, 4, 100, 1);
    rp_chunk_tuner_on_item(&chunks, 100, 1, 1, 1);
    assert_int_equal(chunks.length, 3);
}

static void cheaper_longer_chunks_lengthen_further(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    feed(&tuner, 3, 90);
    assert_int_equal(tuner.length, 5);
    feed(&tuner, 5, 80);
    assert_int_equal(tuner.length, 7);
}

static void costlier_longer_chunks_shorten(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    feed(&tuner, 3, 110);
    assert_int_equal(tuner.length, 2);
}

static void cheaper_shorter_chunks_shorten_further(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    feed(&tuner, 3, 110);
    feed(&tuner, 2, 105);
    assert_int_equal(tuner.length, 1);
}

static void costlier_shorter_chunks_lengthen(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    feed(&tuner, 3, 110);
    feed(&tuner, 2, 120);
    assert_int_equal(tuner.length, 4);
}

static void the_length_stays_within_its_bounds(void **state)
{
    rp_chunk_tuner top = make(4), one = make(1);

    (void)state;
    feed(&top, 1, 100);
    feed(&top, 3, 90);
    assert_int_equal(top.length, 4);
    feed(&top, 4, 80);
    assert_int_equal(top.length, 4);
    feed(&one, 1, 100);
    feed(&one, 1, 50);
    assert_int_equal(one.length, 1);
}

static void chunks_of_another_length_are_not_judged(void **state)
{
    rp_chunk_tuner tuner = make(10);

    (void)state;
    feed(&tuner, 1, 100);
    feed(&tuner, 2, 10); /* 2 rows on average where 3 were asked for */
    assert_int_equal(tuner.length, 3);
    feed(&tuner, 3, 90); /* compared with the first score, not with the one ignored */
    assert_int_equal(tuner.length, 5);
}

static void empty_reports_are_ignored(void **state)
{
    rp_chunk_tuner tuner = make(10), fresh = make(10);

    (void)state;
    rp_chunk_tuner_on_chunk(&tuner, 1, 100, 0);
    rp_chunk_tuner_on_item(&tuner, 100, 1, 0, 1);
    rp_chunk_tuner_on_item(&tuner, 100, 1, 1, 0);
    assert_memory_equal(&tuner, &fresh, sizeof fresh);
}

/* The procedure once more, with lists and without clearing up. */
typedef struct model {
    int length, max_length;
    double last_score, last_length;
    struct {
        double bytes_per_step, rows;
        uint64_t key;
    } items[1000], chunks[1000];
    size_t item_end, item_begin, chunk_end, chunk_begin;
} model;

static void model_item(model *m, const uint64_t *keys, size_t bytes, int rows, size_t steps)
{
    double cost = 0, length = 0, step;

    m->items[m->item_end].bytes_per_step = 2.0 * (double)bytes / (double)steps;
    m->items[m->item_end++].rows = rows;
    for (int k = 0; k < 2; k++) {
        bool known = false;
        for (size_t i = m->chunk_begin; i < m->chunk_end; i++)
            known = known || m->chunks[i].key == keys[k];
        if (known) continue;
        m->chunks[m->chunk_end].key = keys[k];
        m->chunks[m->chunk_end].rows = rows;
        m->chunks[m->chunk_end++].bytes_per_step = (double)bytes / rows;
        if (m->chunk_end - m->chunk_begin > 5) m->chunk_begin++;
    }
    if (m->item_end - m->item_begin > 10) m->item_begin++;
    if (m->item_end - m->item_begin < 10 || m->chunk_end - m->chunk_begin < 5) return;
    for (size_t i = m->item_begin; i < m->item_end; i++) {
        cost += m->items[i].bytes_per_step / 10;
        length += m->items[i].rows / 15;
    }
    for (size_t i = m->chunk_begin; i < m->chunk_end; i++) {
        cost += m->chunks[i].bytes_per_step / 5;
        length += m->chunks[i].rows / 15;
    }
    m->item_begin = m->item_end;
    m->chunk_begin = m->chunk_end;
    if (m->last_score < 0) {
        step = 2;
    } else {
        if (length < m->length - 0.25 || length > m->length + 0.25) return;
        step = (cost < m->last_score) == (length > m->last_length) ? 2 : -1;
        if (m->length + step < 1 || (m->length == m->max_length && step > 0)) return;
    }
    m->last_score = cost;
    m->last_length = length;
    m->length += (int)step;
    if (m->length > m->max_length) m->length = m->max_length;
}

static void random_runs_agree_with_a_model(void **state)
{
    int moves = 0;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 31);
    for (int run = 0; run < 50; run++) {
        rp_chunk_tuner tuner = make(2 + run % 9);
        static model m;
        m = (model){.length = 1, .max_length = 2 + run % 9, .last_score = -1};
        for (uint64_t i = 0; i < 450; i++) {
            uint64_t keys[2] = {i / 2, i / 2 + 1};
            int32_t rows = tuner.length;
            size_t bytes = 1 + (size_t)rows * (10 + rp_rng_below(&rng, i / 10 % 2 ? 50 : 500));
            int32_t before = tuner.length;
            model_item(&m, keys, bytes, rows, (size_t)rows + 1);
            rp_chunk_tuner_on_chunk(&tuner, keys[0], bytes, rows);
            rp_chunk_tuner_on_chunk(&tuner, keys[1], bytes, rows);
            rp_chunk_tuner_on_item(&tuner, 2 * bytes, 2 * (size_t)rows, 2, (size_t)rows + 1);
            assert_int_equal(tuner.length, m.length);
            moves += tuner.length != before;
        }
    }
    assert_true(moves > 200);
}

RP_TESTS(tuner)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tuner_starts_with_single_rows),
        cmocka_unit_test(a_bound_below_one_is_refused),
        cmocka_unit_test(the_first_score_lengthens_by_two),
        cmocka_unit_test(nothing_changes_before_ten_items_and_five_chunks),
        cmocka_unit_test(cheaper_longer_chunks_lengthen_further),
        cmocka_unit_test(costlier_longer_chunks_shorten),
        cmocka_unit_test(cheaper_shorter_chunks_shorten_further),
        cmocka_unit_test(costlier_shorter_chunks_lengthen),
        cmocka_unit_test(the_length_stays_within_its_bounds),
        cmocka_unit_test(chunks_of_another_length_are_not_judged),
        cmocka_unit_test(empty_reports_are_ignored),
        cmocka_unit_test(random_runs_agree_with_a_model),
    };
    return cmocka_run_group_tests_name("tuner", tests, NULL, NULL);
}
