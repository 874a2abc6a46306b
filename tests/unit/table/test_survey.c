/* SPDX-License-Identifier: Apache-2.0 */
#include "table/survey.h"

#include <math.h>

#include "support/fixture.h"

enum { MANY = 20000 };

static rp_survey survey;

static void a_small_table_is_surveyed_in_full(void **state)
{
    rp_table_options options = rp_test_options("a", RP_PRIORITIZED, RP_FIFO, 100);
    double sum = 0;
    bool seen[31] = {false};
    rp_test_bed bed;
    rp_table *t;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &options);
    rp_table_survey(t, 1, &survey);
    assert_true(survey.count == 0 && survey.recent_count == 0 && survey.table_size == 0);
    assert_int_equal(rp_table_median_age_ns(t, 1), -1);
    for (uint64_t key = 1; key <= 30; key++) {
        bed.wall_ns = (int64_t)key;
        rp_test_put(t, key, (double)key, bed.plain);
    }
    bed.wall_ns = 100;
    rp_table_survey(t, 1, &survey);
    assert_int_equal(survey.count, 30);
    assert_int_equal(survey.table_size, 30);
    assert_int_equal(survey.wall_ns, 100);
    assert_int_equal(rp_table_median_age_ns(t, 1), 100 - 16); /* inserted at 1 to 30 */
    for (size_t i = 0; i < survey.count; i++) {
        const rp_surveyed *item = &survey.items[i];

        assert_false(seen[item->key]);
        seen[item->key] = true;
        assert_true(item->priority == (double)item->key);
        assert_int_equal(item->inserted_at_ns, item->key);
        sum += item->probability;
    }
    assert_true(fabs(sum - 1) < 1e-9);
    assert_int_equal(survey.recent_count, RP_SURVEY_RECENT);
    for (size_t i = 0; i < survey.recent_count; i++) {
        assert_int_equal(survey.recent[i].key, 30 - i);
        assert_true(survey.recent[i].length >= 1);
        assert_true(survey.recent[i].probability > 0);
    }
    rp_test_bed_deinit(&bed);
}

/* Items that are gone are left out, and their places are filled with older ones. */
static void deleted_items_are_not_recent(void **state)
{
    rp_table_options options = rp_test_options("a", RP_UNIFORM, RP_FIFO, 100);
    const uint64_t gone[] = {30, 29, 20};
    rp_test_bed bed;
    rp_table *t;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &options);
    for (uint64_t key = 1; key <= 30; key++) rp_test_put(t, key, 1, bed.plain);
    assert_ok(rp_table_delete(t, gone, 3, NULL, NULL));
    rp_table_survey(t, 1, &survey);
    assert_int_equal(survey.count, 27);
    assert_int_equal(survey.recent_count, RP_SURVEY_RECENT);
    assert_int_equal(survey.recent[0].key, 28);
    assert_int_equal(survey.recent[8].key, 19);
    assert_int_equal(survey.recent[15].key, 12);
    assert_true(fabs(survey.items[0].probability - 1.0 / 27) < 1e-12);
    assert_ok(rp_table_reset(t, NULL));
    rp_table_survey(t, 1, &survey);
    assert_true(survey.count == 0 && survey.recent_count == 0);
    rp_test_put(t, 7, 1, bed.plain);
    rp_table_survey(t, 1, &survey);
    assert_true(survey.count == 1 && survey.recent_count == 1 && survey.recent[0].key == 7);
    rp_test_bed_deinit(&bed);
}

/* The sample of a large table has its mean: within five standard errors. */
static void a_large_table_is_sampled(void **state)
{
    rp_table_options options = rp_test_options("a", RP_FIFO, RP_FIFO, MANY);
    double sum = 0, error = (double)MANY / sqrt(12.0 * RP_SURVEY_ITEMS);
    rp_test_bed bed;
    rp_table *t;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &options);
    for (uint64_t key = 0; key < MANY; key++) {
        bed.wall_ns = (int64_t)key;
        rp_test_put(t, key, (double)key, bed.plain);
    }
    rp_table_survey(t, 1, &survey);
    assert_int_equal(survey.count, RP_SURVEY_ITEMS);
    assert_in_range(rp_table_median_age_ns(t, 1), MANY / 4, MANY / 4 * 3); /* 4 deviations */
    for (size_t i = 0; i < survey.count; i++) {
        sum += survey.items[i].priority;
        assert_true(isnan(survey.items[i].probability)); /* fifo does not draw at random */
    }
    assert_true(fabs(sum / RP_SURVEY_ITEMS - MANY / 2.0) < 5 * error);
    assert_int_equal(survey.recent[0].key, MANY - 1);
    rp_test_bed_deinit(&bed);
}

/* Random slots of a table that was large, of which most are free. */
static void a_sparse_table_has_fewer_entries(void **state)
{
    rp_table_options options = rp_test_options("a", RP_FIFO, RP_FIFO, MANY);
    static uint64_t keys[MANY];
    rp_test_bed bed;
    rp_table *t;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &options);
    for (uint64_t key = 0; key < MANY; key++) rp_test_put(t, key, 1, bed.plain);
    for (size_t i = 0; i < MANY; i++) keys[i] = i;
    assert_ok(rp_table_delete(t, keys, MANY - RP_SURVEY_ITEMS, NULL, NULL));
    rp_table_survey(t, 1, &survey);
    assert_int_equal(survey.table_size, RP_SURVEY_ITEMS);
    assert_in_range(survey.count, 1, RP_SURVEY_ITEMS / 2);
    rp_test_bed_deinit(&bed);
}

/* Between 1024 items and the bound up to which a table is read from end to end, each item has
 * the same chance. */
static void a_middling_table_is_sampled_without_repetition(void **state)
{
    enum { ITEMS = 3000 };
    static bool seen[ITEMS];
    rp_table_options options = rp_test_options("a", RP_UNIFORM, RP_FIFO, ITEMS);
    size_t in_first_half = 0;
    rp_test_bed bed;
    rp_table *t;

    (void)state;
    memset(seen, 0, sizeof seen);
    rp_test_bed_init(&bed, NULL);
    t = rp_test_bed_table(&bed, &options);
    for (uint64_t key = 0; key < ITEMS; key++) rp_test_put(t, key, 1, bed.plain);
    rp_table_survey(t, 3, &survey);
    assert_int_equal(survey.count, RP_SURVEY_ITEMS);
    for (size_t i = 0; i < survey.count; i++) {
        assert_false(seen[survey.items[i].key]);
        seen[survey.items[i].key] = true;
        in_first_half += survey.items[i].key < ITEMS / 2;
    }
    assert_in_range(in_first_half, RP_SURVEY_ITEMS / 2 - 80, RP_SURVEY_ITEMS / 2 + 80);
    rp_test_bed_deinit(&bed);
}

RP_TESTS(survey)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_table_is_surveyed_in_full),
        cmocka_unit_test(deleted_items_are_not_recent),
        cmocka_unit_test(a_large_table_is_sampled),
        cmocka_unit_test(a_sparse_table_has_fewer_entries),
        cmocka_unit_test(a_middling_table_is_sampled_without_repetition),
    };

    return cmocka_run_group_tests_name("survey", tests, NULL, NULL);
}
