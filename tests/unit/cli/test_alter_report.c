/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/alter_report.h"

#include <float.h>
#include <string.h>

#include "support/unit.h"

static rp_text_buffer buffer;

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

/* A table with 50 items and no samples. */
static rp_table_info table(double ratio, int64_t min_size, double min_diff, double max_diff)
{
    return (rp_table_info){
        .name = "replay",
        .max_size = 1000,
        .size = 50,
        .inserts = 50,
        .limiter = {ratio, min_size, min_diff, max_diff},
        .limiter_diff = 50 * ratio,
    };
}

static const char *changes(const rp_table_info *before, const rp_table_info *after,
                           uint32_t given)
{
    rp_text_buffer_clear(&buffer);
    rp_alter_changes(&buffer, &(rp_alter_report){before, after, given});
    return rp_text_buffer_text(&buffer);
}

static const char *warnings(const rp_table_info *before, const rp_table_info *after,
                            uint32_t given)
{
    rp_text_buffer_clear(&buffer);
    rp_alter_warnings(&buffer, &(rp_alter_report){before, after, given});
    return rp_text_buffer_text(&buffer);
}

static void changed_values_and_their_consequences_are_listed(void **state)
{
    rp_table_info before = table(4, 1000, 3600, 4400), after = table(4, 10, -360, 440);

    (void)state;
    assert_string_equal(changes(&before, &after, RP_ALTERED_MIN_SIZE | RP_ALTERED_ERROR_BUFFER),
                        "  min_size 1000 -> 10\n"
                        "  min_diff 3600 -> -360\n"
                        "  max_diff 4400 -> 440\n"
                        "  inserts may proceed: 60 more until they wait for samples\n"
                        "  samples may proceed: 560 more until they wait for inserts\n");
    assert_string_equal(
        warnings(&before, &after, RP_ALTERED_MIN_SIZE | RP_ALTERED_ERROR_BUFFER), "");
    after = before;
    after.max_size = 40;
    after.evictions = 10;
    after.max_bytes = 1 << 20;
    after.max_times_sampled = 2;
    assert_string_equal(changes(&before, &after, RP_ALTERED_MAX_SIZE),
                        "  max_size 1000 -> 40\n"
                        "  max_bytes no limit -> 1 MiB\n"
                        "  max_times_sampled no limit -> 2\n"
                        "  10 items were evicted\n"
                        "  items that were sampled 2 times or more leave after their next "
                        "sample\n");
    after.max_times_sampled = 1;
    assert_non_null(
        strstr(changes(&before, &after, RP_ALTERED_MAX_SIZE), " sampled 1 time or more leave"));
}

static void a_side_that_waits_says_for_what(void **state)
{
    rp_table_info t = table(4, 100, -8, 8);

    (void)state;
    rp_limiter_waits(&buffer, &t);
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "  samples wait for inserts: 50 items, min_size is 100; 50 more inserts "
        "would release them\n");
    rp_text_buffer_clear(&buffer);
    t.limiter.min_size = 1;
    rp_limiter_waits(&buffer, &t);
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "  inserts wait for samples: with one more, inserts * samples_per_insert - samples is "
        "204, over max_diff 8; 196 more samples would release them\n");
    rp_text_buffer_clear(&buffer);
    t.limiter.min_diff = 198;
    t.limiter.max_diff = 300;
    t.paused = RP_SIDE_INSERTS;
    t.limiter_diff = 198;
    rp_limiter_waits(&buffer, &t);
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "  inserts wait: they are paused; reprise tables resume replay lets them continue\n"
        "  samples wait for inserts: with one more, inserts * samples_per_insert - samples is "
        "197, under min_diff 198; 1 more insert would release them\n");
}

static void a_ratio_without_bounds_has_no_effect(void **state)
{
    rp_table_info before = table(1, 1, -DBL_MAX, DBL_MAX),
                  after = table(4, 1, -DBL_MAX, DBL_MAX);

    (void)state;
    assert_string_equal(
        warnings(&before, &after, RP_ALTERED_SAMPLES_PER_INSERT),
        "--samples-per-insert has no effect: the limiter has no bounds; to keep 4 samples an "
        "insert: reprise tables alter replay --samples-per-insert 4 --min-size 1 "
        "--error-buffer 8 --recenter\n");
    assert_string_equal(changes(&before, &after, RP_ALTERED_SAMPLES_PER_INSERT),
                        "  samples_per_insert 1 -> 4\n"
                        "  inserts may proceed\n"
                        "  samples may proceed\n");
    after = table(4, 1, -DBL_MAX, 400);
    assert_non_null(strstr(warnings(&after, &after, RP_ALTERED_RECENTER),
                           "--recenter has no effect: the limiter needs"));
    assert_true(rp_alter_is_same(&(rp_alter_report){&after, &after, RP_ALTERED_RECENTER}));
    assert_null(strstr(warnings(&after, &after, RP_ALTERED_RECENTER), "nothing has changed"));
    after.limiter.min_diff = 0;
    assert_false(rp_alter_is_same(&(rp_alter_report){&after, &after, RP_ALTERED_RECENTER}));
}

static void a_bound_that_still_blocks_is_named_with_what_would_help(void **state)
{
    rp_table_info before = table(4, 1000, 3600, 4400), after = table(4, 10, 3600, 4400);

    (void)state;
    assert_string_equal(
        warnings(&before, &after, RP_ALTERED_MIN_SIZE),
        "samples wait as before, because of min_diff, which this command has not changed; "
        "reprise tables alter replay --samples-per-insert 4 --min-size 10 --error-buffer 400 "
        "would let them proceed\n");
    /* After many samples only --recenter helps. */
    before.limiter_diff = after.limiter_diff = -5000;
    assert_non_null(
        strstr(warnings(&before, &after, RP_ALTERED_MIN_SIZE), " --recenter would"));
    /* Nothing was blocked before: the lines of the limiter say it. */
    before.limiter.min_size = 10;
    before.limiter.min_diff = -6000;
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MIN_SIZE), "");
}

static void a_larger_table_that_is_full_all_the_same_is_a_warning(void **state)
{
    rp_table_info before = table(1, 1, 0, 5), after;

    (void)state;
    before.max_size = before.size = before.inserts = 5;
    before.limiter_diff = 5;
    before.max_times_sampled = 1;
    after = before;
    after.max_size = 50;
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE),
                        "inserts wait as before, because of max_diff 5; reprise tables alter "
                        "replay --max-diff 50 would let them fill the table\n");
    after.limiter_diff = 2; /* a queue that is not full */
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE),
                        "inserts will wait as before, because of max_diff 5; reprise tables "
                        "alter replay --max-diff 50 would let them fill the table\n");
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE | RP_ALTERED_MAX_DIFF),
                        "");
    after.max_size = 4;
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE), "");
    /* Another table whose inserts wait. */
    before = after = table(4, 10, -8, 100);
    after.max_size = 2000;
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE),
                        "inserts wait as before, because of max_diff 100; reprise tables alter "
                        "replay --max-diff 204 would let one proceed\n");
    after.limiter_diff = 0;
    assert_string_equal(warnings(&before, &after, RP_ALTERED_MAX_SIZE), "");
}

static void both_bounds_count_for_a_table_with_few_items(void **state)
{
    rp_table_info before = table(4, 10, 32, 48), after = table(4, 2, 32, 48);

    (void)state;
    before.inserts = after.inserts = before.size = after.size = 0;
    before.limiter_diff = after.limiter_diff = 0;
    rp_limiter_waits(&buffer, &after);
    assert_string_equal(rp_text_buffer_text(&buffer),
                        "  samples wait for inserts: 0 items, min_size is 2, min_diff 32; 9 "
                        "more inserts would release them\n");
    assert_string_equal(
        warnings(&before, &after, RP_ALTERED_MIN_SIZE),
        "samples wait as before, because of min_diff, which this command has not changed; "
        "reprise tables alter replay --samples-per-insert 4 --min-size 2 --error-buffer 8 "
        "would let them proceed after 2 more inserts\n");
    assert_string_equal(warnings(&after, &before, RP_ALTERED_MIN_SIZE), "");
}

static void samples_that_wait_for_ever_are_explained_once(void **state)
{
    rp_table_info before = table(4, 1, -8, 800), after = table(4, 5000, -8, 800);

    (void)state;
    assert_null(strstr(changes(&before, &after, RP_ALTERED_MIN_SIZE), "is below min_size"));
    assert_non_null(strstr(warnings(&before, &after, RP_ALTERED_MIN_SIZE),
                           "max_size 1000 is below min_size 5000"));
}

static void an_alteration_to_the_same_values_is_a_warning(void **state)
{
    rp_table_info t = table(4, 10, -8, 800);

    (void)state;
    assert_string_equal(
        warnings(&t, &t, RP_ALTERED_MAX_SIZE | RP_ALTERED_MAX_BYTES),
        "nothing has changed: max_size was 1000 already, max_bytes was no limit "
        "already\n");
    t.max_size = 5;
    assert_non_null(strstr(warnings(&t, &t, RP_ALTERED_MIN_SIZE),
                           "samples will wait for ever: max_size 5 is below min_size 10"));
}

/* They overflowed; a ratio of 0 was a divisor (issue 26). */
static void numbers_of_a_hostile_server_do_no_harm(void **state)
{
    rp_table_info before = table(0, INT64_MAX, -1, 1), after;

    (void)state;
    before.max_size = INT64_MAX;
    after = before;
    before.evictions = before.deletes = after.inserts = INT64_MIN;
    after.evictions = INT64_MAX;
    assert_string_equal(
        changes(&before, &after, RP_ALTERED_MIN_SIZE),
        "  18446744073709551615 items were evicted\n"
        "  inserts may proceed\n"
        "  samples wait for inserts: 0 items, min_size is 9223372036854775807\n");
    before.inserts = INT64_MAX;
    before.limiter.min_size = INT64_MIN;
    before.limiter_diff = -9;
    before.name = "$(x) 'y'";
    assert_non_null(
        strstr(changes(&before, &before, RP_ALTERED_MIN_SIZE), "is -10, under min_diff -1\n"));
    before.paused = RP_SIDE_INSERTS;
    assert_non_null(strstr(changes(&before, &before, RP_ALTERED_MIN_SIZE),
                           "; reprise tables resume '$(x) '\\''y'\\''' lets"));
}

static void changes_are_json(void **state)
{
    rp_table_info before = table(4, 10, -DBL_MAX, 8), after = table(4, 20, -DBL_MAX, 8);

    (void)state;
    rp_json_open(&buffer, '{');
    rp_alter_changes_json(&buffer, &(rp_alter_report){&before, &after, RP_ALTERED_MIN_SIZE});
    rp_json_close(&buffer, '}');
    assert_string_equal(
        rp_text_buffer_text(&buffer),
        "{\"changes\":[{\"option\":\"min_size\",\"before\":\"10\",\"after\":\"20\"}]"
        ",\"evicted\":0}");
}

RP_TESTS(alter_report)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(changed_values_and_their_consequences_are_listed,
                                  empty_buffer),
        cmocka_unit_test_teardown(a_side_that_waits_says_for_what, empty_buffer),
        cmocka_unit_test_teardown(a_ratio_without_bounds_has_no_effect, empty_buffer),
        cmocka_unit_test_teardown(a_bound_that_still_blocks_is_named_with_what_would_help,
                                  empty_buffer),
        cmocka_unit_test_teardown(a_larger_table_that_is_full_all_the_same_is_a_warning,
                                  empty_buffer),
        cmocka_unit_test_teardown(both_bounds_count_for_a_table_with_few_items, empty_buffer),
        cmocka_unit_test_teardown(samples_that_wait_for_ever_are_explained_once, empty_buffer),
        cmocka_unit_test_teardown(an_alteration_to_the_same_values_is_a_warning, empty_buffer),
        cmocka_unit_test_teardown(numbers_of_a_hostile_server_do_no_harm, empty_buffer),
        cmocka_unit_test_teardown(changes_are_json, empty_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
