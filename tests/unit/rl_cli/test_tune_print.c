/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/tune_print.h"

#include <math.h>
#include <string.h>

#include "support/unit.h"

enum { MOST = 64 };

/* Four cores: actors double, learners do not. */
typedef struct fixture {
    rp_profile_curves curves;
    rp_tune_row rows[MOST];
    rp_tune_report report;
    rp_text_buffer out;
} fixture;

static fixture f;

static void prepare(void)
{
    const rp_rate_point acting[] = {{1, 1000}, {2, 2000}, {3, 3000}};
    const rp_rate_point learning[] = {{1, 600}, {3, 700}};
    rp_error err;

    f = (fixture){0};
    memcpy(f.curves.points[RP_PROFILE_ACTING], acting, sizeof acting);
    memcpy(f.curves.points[RP_PROFILE_LEARNING], learning, sizeof learning);
    f.curves.point_count[RP_PROFILE_ACTING] = 3;
    f.curves.point_count[RP_PROFILE_LEARNING] = 2;
    assert_ok(rp_rate_curve_fill(&f.curves.acting, acting, 3, 3, &err));
    assert_ok(rp_rate_curve_fill(&f.curves.learning, learning, 2, 3, &err));
    f.report = (rp_tune_report){
        .agent = "apex-dqn",
        .env = "catch",
        .curves = &f.curves,
        .problem = {.acting = &f.curves.acting,
                    .learning = &f.curves.learning,
                    .interval = 4,
                    .cores = 4},
        .rows = f.rows,
        .command = "reprise train apex-dqn --env catch --actors 3 --learners 1",
    };
    assert_ok(rp_split_pick(&f.report.problem, &f.report.pick, &err));
    f.report.row_count = rp_tune_rows(&f.report.problem, f.rows, MOST);
    rp_tune_sort(f.rows, f.report.row_count);
}

static void rows_are_all_splits_and_the_best_comes_first(void **state)
{
    (void)state;
    prepare();

    assert_int_equal(f.report.row_count, 6); /* a + l <= 4 */
    assert_int_equal(f.report.pick.actors, 3);
    assert_int_equal(f.rows[0].actors, 3);
    assert_int_equal(f.rows[0].learners, 1);
    for (size_t i = 1; i < f.report.row_count; i++)
        assert_true(f.rows[i].model <= f.rows[i - 1].model);
}

static void text_has_both_curves_all_splits_and_the_command(void **state)
{
    (void)state;
    prepare();

    rp_tune_text(&f.out, &f.report, 24);

    assert_non_null(
        strstr(f.out.text, "apex-dqn in catch on 4 cores, 4 steps for each update"));
    assert_non_null(strstr(f.out.text, "~672")); /* not measured */
    assert_non_null(strstr(f.out.text, "<- pick"));
    assert_non_null(strstr(f.out.text, "\nreprise train apex-dqn --env catch --actors 3"));
    assert_null(strstr(f.out.text, "of the best split"));
    assert_null(strstr(f.out.text, "nan"));
    rp_text_buffer_deinit(&f.out);
}

static void measured_splits_are_compared_with_the_pick(void **state)
{
    (void)state;
    double share = 0;
    prepare();

    assert_null(rp_tune_best(&f.report, &share));
    for (size_t i = 0; i < f.report.row_count; i++)
        f.rows[i].measured = f.rows[i].actors == 2 && f.rows[i].learners == 2 ? 2500 : 2000;
    rp_tune_sort(f.rows, f.report.row_count);
    assert_int_equal(rp_tune_best(&f.report, &share)->actors, 2);
    assert_true(fabs(share - 0.8) < 1e-12);
    rp_tune_text(&f.out, &f.report, 24);

    assert_non_null(strstr(f.out.text, "The pick made 80.0 % of the steps of the best split, "
                                       "2 actors and 2 learners.\n"));
    rp_text_buffer_deinit(&f.out);
}

static void a_large_machine_shows_its_best_splits_and_the_pick(void **state)
{
    (void)state;
    size_t lines = 0;
    prepare();
    f.report.pick.actors = 1; /* the worst: it is shown although it is the last */
    f.report.pick.learners = 1;

    rp_tune_text(&f.out, &f.report, 2);

    assert_non_null(strstr(f.out.text, "The best of 6 splits; --json has all.\n"));
    assert_non_null(strstr(f.out.text, "<- pick"));
    for (const char *at = f.out.text; *at != '\0'; at++) lines += *at == '\n';
    assert_true(lines < 20);
    rp_text_buffer_deinit(&f.out);
}

static void a_single_split_is_not_called_the_best(void **state)
{
    (void)state;
    prepare();
    f.report.problem.cores = 2;
    f.report.pick = (rp_split){1, 1, 1000};
    f.report.row_count = rp_tune_rows(&f.report.problem, f.rows, MOST);
    f.rows[0].measured = 900;

    rp_tune_text(&f.out, &f.report, 24);

    assert_int_equal(f.report.row_count, 1);
    assert_non_null(strstr(f.out.text, "There is no other split of these cores.\n"));
    assert_null(strstr(f.out.text, "of the best split"));
    rp_text_buffer_deinit(&f.out);
}

static void json_has_all_of_it(void **state)
{
    (void)state;
    prepare();
    f.rows[0].measured = 2900;

    rp_tune_json(&f.out, &f.report);

    assert_non_null(strstr(f.out.text, "\"cores\":4,\"steps_per_update\":4,\"in_turn\":false"));
    assert_non_null(strstr(f.out.text, "{\"threads\":3,\"per_second\":700,\"measured\":true}"));
    assert_non_null(strstr(f.out.text, "\"pick\":{\"actors\":3,\"learners\":1"));
    assert_non_null(strstr(f.out.text, "\"share_of_best\":1"));
    assert_string_equal(f.out.text + f.out.size - 2, "}\n");
    rp_text_buffer_deinit(&f.out);
}

static void svg_has_both_curves_and_the_rate_of_the_pick(void **state)
{
    (void)state;
    prepare();

    rp_tune_svg(&f.out, &f.report);

    assert_non_null(strstr(f.out.text, ">actors<"));
    assert_non_null(strstr(f.out.text, ">learners<"));
    assert_non_null(strstr(f.out.text, "stroke-dasharray"));
    assert_null(strstr(f.out.text, "nan"));
    rp_text_buffer_deinit(&f.out);
}

RP_TESTS(tune_print)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_all_splits_and_the_best_comes_first),
        cmocka_unit_test(text_has_both_curves_all_splits_and_the_command),
        cmocka_unit_test(measured_splits_are_compared_with_the_pick),
        cmocka_unit_test(a_large_machine_shows_its_best_splits_and_the_pick),
        cmocka_unit_test(a_single_split_is_not_called_the_best),
        cmocka_unit_test(json_has_all_of_it),
        cmocka_unit_test(svg_has_both_curves_and_the_rate_of_the_pick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
