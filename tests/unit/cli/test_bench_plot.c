/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/bench_plot.h"

#include <string.h>

#include "support/unit.h"

static rp_text_buffer buffer;

static int empty_buffer(void **state)
{
    (void)state;
    rp_text_buffer_deinit(&buffer);
    return 0;
}

static size_t count_of(const char *part)
{
    size_t count = 0;

    for (const char *at = rp_text_buffer_text(&buffer); (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

static void rows_are_csv_or_json(void **state)
{
    const rp_bench_row row = {6, 400, 1, 25, 1234.5678};

    (void)state;
    rp_bench_csv_head(&buffer);
    rp_bench_csv(&buffer, &row);
    assert_string_equal(rp_text_buffer_text(&buffer),
                        "figure,kind,payload_bytes,tables,clients,items_per_s,bytes_per_s\n"
                        "6,sample,400,1,25,1235,493827\n");
    rp_text_buffer_clear(&buffer);
    rp_bench_json(&buffer, &row);
    assert_string_equal(rp_text_buffer_text(&buffer),
                        "{\"figure\":6,\"kind\":\"sample\",\"payload_bytes\":400,\"tables\":1,"
                        "\"clients\":25,\"items_per_s\":1235,\"bytes_per_s\":493827}\n");
}

static void each_figure_has_its_panels_and_curves(void **state)
{
    const rp_bench_row rows[] = {
        {5, 400, 1, 1, 1e5},   {5, 400, 1, 10, 5e5},  {5, 4000, 1, 1, 1e4},
        {5, 4000, 1, 10, 9e4}, {7, 400, 1, 1, 1000},  {7, 400, 1, 10, 2000},
        {7, 400, 8, 1, 3000},  {7, 400, 8, 10, 4000},
    };

    (void)state;
    rp_bench_svg(&buffer, rows, COUNT_OF(rows));
    assert_int_equal(count_of("<svg "), 1);
    assert_int_equal(count_of("</svg>\n"), 1);
    assert_int_equal(count_of("class=\"title\""), 3); /* 5a, 5b, 7 */
    assert_int_equal(count_of("<polyline "), 6);
    assert_int_equal(count_of("<circle "), 12);
    assert_int_equal(count_of(">400B</text>"), 2);
    assert_int_equal(count_of(">4kB</text>"), 2);
    assert_int_equal(count_of(">1 table</text>"), 1);
    assert_int_equal(count_of(">8 tables</text>"), 1);
    assert_int_equal(count_of("nan") + count_of("inf"), 0);
    assert_int_equal(count_of("class=\"along\">0</text>"),
                     0); /* beside that of the other axis */
    /* 5a from 10 k to 1 M: the first point, 100 k at 1 of 10 clients, is half-way up. */
    assert_non_null(strstr(rp_text_buffer_text(&buffer), "points=\"90.6,145.0 "));
    /* 7 lies within one power of ten: from 0 to 4 k, in thousands. So does 5b, but not 5a. */
    assert_int_equal(count_of(">3k</text>"), 1);
    assert_int_equal(count_of(">3.5k</text>"), 0);
    assert_int_equal(count_of("/s, logarithmic axis</text>"), 1);
}

/* There were 19 of them for 9.5 k items (issue 26). */
static void linear_axes_have_few_grid_lines(void **state)
{
    (void)state;
    for (double most = 1000; most <= 10000; most += 50) {
        const rp_bench_row rows[] = {{7, 400, 1, 1, most}};

        rp_text_buffer_clear(&buffer);
        rp_bench_svg(&buffer, rows, 1);
        assert_in_range(count_of("class=\"grid\""), 3, 8);
        assert_int_equal(count_of("logarithmic"), 0);
    }
}

/* There were nine of them, as a rate of 0 was drawn as 1. */
static void logarithmic_axes_have_few_grid_lines(void **state)
{
    (void)state;
    for (double most = 1000; most <= 1e12; most *= 3) {
        const rp_bench_row rows[] = {
            {7, 400, 1, 1, 2}, {7, 400, 1, 2, 0}, {7, 400, 1, 3, most}};

        rp_text_buffer_clear(&buffer);
        rp_bench_svg(&buffer, rows, 3);
        assert_in_range(count_of("class=\"grid\""), 3, 8);
        assert_int_equal(count_of("<circle "), 2);
    }
}

static void empty_and_zero_results_can_be_drawn(void **state)
{
    const rp_bench_row rows[] = {{6, 4, 1, 1, 0}};

    (void)state;
    rp_bench_svg(&buffer, NULL, 0);
    assert_int_equal(count_of("<polyline "), 0);
    rp_text_buffer_clear(&buffer);
    rp_bench_svg(&buffer, rows, 1);
    assert_int_equal(count_of("<polyline "), 0); /* nothing was measured */
    assert_int_equal(count_of("nan") + count_of("inf"), 0);
}

RP_TESTS(bench_plot)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_are_csv_or_json, empty_buffer),
        cmocka_unit_test_teardown(each_figure_has_its_panels_and_curves, empty_buffer),
        cmocka_unit_test_teardown(logarithmic_axes_have_few_grid_lines, empty_buffer),
        cmocka_unit_test_teardown(linear_axes_have_few_grid_lines, empty_buffer),
        cmocka_unit_test_teardown(empty_and_zero_results_can_be_drawn, empty_buffer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
