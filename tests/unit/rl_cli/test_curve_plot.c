/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/curve_plot.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++) n++;
    return n;
}

static const rp_curve_labels labels = {"dqn", "steps", "training", "greedy"};

static void a_curve_has_both_returns_and_the_threshold(void **state)
{
    (void)state;
    const rp_curve_point points[] = {{1000, 20, (double)NAN}, {2000, 40, 100}, {3000, 80, 475}};
    rp_text_buffer out = {0};

    rp_curve_svg(&out, &labels, points, 3, 475);
    assert_int_equal(count(out.text, "<polyline"), 2);
    assert_int_equal(count(out.text, "stroke-dasharray"), 1);
    assert_non_null(strstr(out.text, ">greedy<"));
    assert_non_null(strstr(out.text, ">training<"));
    assert_null(strstr(out.text, "nan"));
    assert_string_equal(out.text + out.size - 7, "</svg>\n");
    rp_text_buffer_deinit(&out);
}

static void large_numbers_are_short(void **state)
{
    (void)state;
    const rp_curve_point points[] = {{1, 50000, 20000}, {2, 100000, 80000}};
    rp_text_buffer out = {0};

    rp_curve_svg(&out, &labels, points, 2, (double)NAN);
    assert_non_null(strstr(out.text, ">100k<"));
    assert_null(strstr(out.text, "e+05"));
    rp_text_buffer_deinit(&out);
}

static void whole_numbers_have_whole_ticks(void **state)
{
    (void)state;
    const rp_curve_point points[] = {{1, 5, 2}, {2, 10, 8}}; /* threads */
    rp_text_buffer out = {0};

    rp_curve_svg(&out, &labels, points, 2, (double)NAN);
    assert_int_equal(count(out.text, "class=\"along\">1</text>"), 1);
    assert_int_equal(count(out.text, "class=\"along\">2</text>"), 1);
    assert_int_equal(count(out.text, ".5</text>"), 0);
    rp_text_buffer_deinit(&out);
}

static void a_run_without_numbers_can_be_drawn(void **state)
{
    (void)state;
    const rp_curve_point nothing = {0, (double)NAN, (double)NAN}, flat = {10, -3, -3};
    rp_text_buffer out = {0};

    rp_curve_svg(&out, &labels, NULL, 0, (double)NAN);
    rp_curve_svg(&out, &labels, &nothing, 1, (double)NAN);
    rp_curve_svg(&out, &labels, &flat, 1, (double)NAN);
    assert_int_equal(count(out.text, "</svg>"), 3);
    assert_null(strstr(out.text, "nan"));
    assert_null(strstr(out.text, "inf"));
    rp_text_buffer_deinit(&out);
}

RP_TESTS(curve_plot)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_has_both_returns_and_the_threshold),
        cmocka_unit_test(large_numbers_are_short),
        cmocka_unit_test(whole_numbers_have_whole_ticks),
        cmocka_unit_test(a_run_without_numbers_can_be_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
