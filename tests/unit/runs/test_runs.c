/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <pthread.h>

#include "runs/runs.h"
#include "support/unit.h"
#include "util/rng.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_runs *runs;
static rp_run_view view;
static rp_run_point points[RP_SERIES_POINTS + 1];

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    runs = rp_runs_new(&alloc);
    return runs != NULL ? 0 : 1;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_runs_free(runs);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static rp_status add(const char *run, const char *name, int64_t step, double value)
{
    rp_scalar scalar = {text(name), step, 0, value};
    rp_run_report report = {.run = text(run), .scalars = &scalar, .scalar_count = 1};

    return rp_runs_report(runs, &report, 100, NULL, NULL);
}

static size_t read_all(const char *run, size_t series)
{
    assert_true(rp_runs_find(runs, text(run), &view));
    return rp_runs_read_series(runs, view.id, series, 0, points);
}

static void a_report_makes_a_run_with_series(void **state)
{
    (void)state;
    rp_scalar scalars[] = {{text("loss"), 1, 5, 0.5}, {text("q"), 1, 0, -2}};
    rp_run_report report = {.run = text("a"), .scalars = scalars, .scalar_count = 2};
    size_t dropped = 9;

    assert_int_equal(rp_runs_report(runs, &report, 100, &dropped, NULL), RP_OK);

    assert_int_equal(dropped, 0);
    assert_true(rp_runs_find(runs, text("a"), &view));
    assert_string_equal(view.name.text, "a");
    assert_int_equal(view.series_count, 2);
    assert_int_equal(view.points, 2);
    assert_int_equal(view.last_number, 2);
    assert_true(view.started_s == 100 && view.seen_s == 100);
    assert_int_equal(rp_runs_read_series(runs, view.id, 0, 0, points), 1);
    assert_true(points[0].time_s == 5 && points[0].value == 0.5 && points[0].step == 1);
    assert_int_equal(rp_runs_read_series(runs, view.id, 1, 0, points), 1);
    assert_true(points[0].time_s == 100); /* no time was given: the time of the report */
    assert_int_equal(rp_runs_read_series(runs, view.id, 2, 0, points), 0);
    assert_int_equal(rp_runs_read_series(runs, view.id + 1, 0, 0, points), 0);
    assert_true(rp_runs_check(runs));
}

static void a_million_points_stay_evenly_spaced(void **state)
{
    (void)state;
    const int64_t count = (int64_t)(1e6 * (rp_test_scale() < 1 ? 0.02 : 1));
    rp_scalar scalars[RP_REPORT_SCALARS];
    rp_run_report report = {.run = text("a"), .scalars = scalars};
    size_t got;

    for (int64_t done = 0; done < count;) {
        for (report.scalar_count = 0; report.scalar_count < RP_REPORT_SCALARS && done < count;
             done++)
            scalars[report.scalar_count++] = (rp_scalar){text("x"), done, 1, (double)done};
        assert_int_equal(rp_runs_report(runs, &report, 1, NULL, NULL), RP_OK);
    }

    got = read_all("a", 0);
    assert_in_range(got, RP_SERIES_POINTS / 2, RP_SERIES_POINTS + 1);
    assert_int_equal(view.points, got);
    assert_int_equal(points[0].step, 0);
    for (size_t i = 2; i + 1 < got; i++)
        assert_int_equal(points[i].step - points[i - 1].step, points[1].step);
    assert_int_equal(points[got - 1].step, count - 1); /* the newest point is always there */
    assert_true(rp_runs_check(runs));
}

static void readers_get_the_points_after_a_number(void **state)
{
    (void)state;
    uint64_t after = 0;
    size_t seen = 0;

    for (int64_t i = 0; i < 5000; i++) {
        assert_int_equal(add("a", i % 3 == 0 ? "x" : "y", i, 0), RP_OK);
        if (i % 100 != 0) continue;
        for (size_t s = 0; read_all("a", 0) > 0 && s < view.series_count; s++) {
            size_t count = rp_runs_read_series(runs, view.id, s, after, points);

            for (size_t k = 0; k < count; k++) assert_true(points[k].number > after);
            seen += count;
        }
        after = view.last_number;
    }
    assert_in_range(seen, 4000, 5000);
    assert_int_equal(rp_runs_read_series(runs, view.id, 0, UINT64_MAX, points), 0);
}

static void rows_are_in_order_of_arrival_and_complete(void **state)
{
    (void)state;
    rp_run_row rows[100];
    uint64_t after = 0;
    size_t count, total = 0;

    for (int64_t i = 0; i < 1000; i++)
        assert_int_equal(add("a", i % 7 == 0 ? "x" : i % 2 == 0 ? "y" : "z", i, 0), RP_OK);

    assert_true(rp_runs_find(runs, text("a"), &view));
    while ((count = rp_runs_read_rows(runs, view.id, after, rows, 100)) > 0)
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(rows[i].point.number, after + 1);
            assert_int_equal(rows[i].point.step, (int64_t)after);
            after = rows[i].point.number;
            total++;
        }
    assert_int_equal(total, 1000);
}

static void any_step_and_value_is_kept(void **state)
{
    (void)state;
    assert_int_equal(add("a", "x", INT64_MIN, (double)NAN), RP_OK);
    assert_int_equal(add("a", "x", INT64_MAX, (double)INFINITY), RP_OK);
    assert_int_equal(add("a", "x", 0, -(double)INFINITY), RP_OK);

    assert_int_equal(read_all("a", 0), 3);
    assert_int_equal(points[0].step, INT64_MIN);
    assert_int_equal(points[1].step, INT64_MAX);
    assert_true(isnan(points[0].value) && isinf(points[1].value));
}

static void assert_refused(const rp_run_report *report, const char *why)
{
    rp_error err = {0};

    assert_int_equal(rp_runs_report(runs, report, 1, NULL, &err), RP_INVALID);
    if (strstr(err.text, why) == NULL) fail_msg("'%s' does not name '%s'", err.text, why);
    assert_false(rp_runs_next(runs, 0, &view)); /* nothing was changed */
}

static void malformed_reports_change_nothing(void **state)
{
    (void)state;
    static char long_name[1 << 20];
    rp_scalar scalar = {text("x"), 0, 0, 0};
    rp_run_actor actor = {.name = text("a")};
    float states[4] = {0};
    rp_run_episode episode = {text("e"), states, 1, 0};
    memset(long_name, 'n', sizeof long_name);

    assert_refused(&(rp_run_report){.run = {"", 0}}, "the run is empty");
    assert_refused(&(rp_run_report){.run = {long_name, sizeof long_name}}, "1048576 bytes");
    assert_refused(&(rp_run_report){.run = {"a\0b", 3}}, "UTF-8");
    assert_refused(&(rp_run_report){.run = text("\xff")}, "UTF-8");
    scalar.time_s = (double)NAN;
    assert_refused(&(rp_run_report){text("a"), &scalar, 1, NULL, 0, NULL}, "time");
    scalar.time_s = -1;
    assert_refused(&(rp_run_report){text("a"), &scalar, 1, NULL, 0, NULL}, "time");
    scalar = (rp_scalar){{long_name, 256}, 0, 0, 0};
    assert_refused(&(rp_run_report){text("a"), &scalar, 1, NULL, 0, NULL}, "limit is 255");
    assert_refused(&(rp_run_report){text("a"), &scalar, RP_REPORT_SCALARS + 1, NULL, 0, NULL},
                   "1025 scalars");
    assert_refused(&(rp_run_report){text("a"), NULL, 0, &actor, RP_REPORT_ACTORS + 1, NULL},
                   "257 actors");
    actor.name.size = 0;
    assert_refused(&(rp_run_report){text("a"), NULL, 0, &actor, 1, NULL}, "actor is empty");
    assert_refused(&(rp_run_report){text("a"), NULL, 0, NULL, 0, &episode}, "0 numbers");
    episode.variable_count = 4;
    episode.state_count = RP_EPISODE_NUMBERS / 4 + 1;
    assert_refused(&(rp_run_report){text("a"), NULL, 0, NULL, 0, &episode}, "4097 states");
    episode.state_count = SIZE_MAX / 2;
    assert_refused(&(rp_run_report){text("a"), NULL, 0, NULL, 0, &episode}, "limit");
}

static void a_run_has_a_bounded_number_of_series(void **state)
{
    (void)state;
    rp_scalar scalars[RP_RUN_SERIES + 5];
    char names[RP_RUN_SERIES + 5][8];
    rp_run_report report = {.run = text("a"), .scalars = scalars};
    rp_runs_info info;
    size_t dropped;

    for (size_t i = 0; i < RP_RUN_SERIES + 5; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        scalars[report.scalar_count++] = (rp_scalar){text(names[i]), 0, 0, 0};
    }
    assert_int_equal(rp_runs_report(runs, &report, 1, &dropped, NULL), RP_OK);

    assert_int_equal(dropped, 5);
    rp_runs_get_info(runs, &info);
    assert_int_equal(info.dropped_scalars, 5);
    assert_true(rp_runs_find(runs, text("a"), &view));
    assert_int_equal(view.series_count, RP_RUN_SERIES);
    assert_true(rp_runs_check(runs));
}

static void the_run_reported_to_longest_ago_is_dropped(void **state)
{
    (void)state;
    char name[8];
    rp_runs_info info;

    for (size_t i = 0; i < RP_RUNS; i++) {
        (void)snprintf(name, sizeof name, "%zu", i);
        assert_int_equal(add(name, "x", 0, 0), RP_OK);
    }
    assert_int_equal(add("0", "x", 1, 0), RP_OK); /* now 1 is the oldest */
    assert_int_equal(add("new", "x", 0, 0), RP_OK);

    assert_true(rp_runs_find(runs, text("0"), &view));
    assert_false(rp_runs_find(runs, text("1"), &view));
    assert_true(rp_runs_find(runs, text("2"), &view));
    rp_runs_get_info(runs, &info);
    assert_int_equal(info.count, RP_RUNS);
    assert_int_equal(info.dropped_runs, 1);
    assert_true(rp_runs_check(runs));
}

static void bytes_stay_below_the_bound(void **state)
{
    (void)state;
    rp_runs_info info;
    char name[16];

    rp_runs_set_most_bytes(runs, 200000);
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof name, "series %d", i % 50);
        assert_int_equal(add(i < 1500 ? "first" : "second", name, i, 0), RP_OK);
        rp_runs_get_info(runs, &info);
        assert_true(info.bytes <= 200000);
    }
    assert_true(rp_runs_find(runs, text("second"), &view));

    rp_runs_set_most_bytes(runs, 65536);
    rp_runs_get_info(runs, &info);
    assert_true(info.bytes <= 65536 && rp_runs_check(runs));
    rp_runs_set_most_bytes(runs, 0); /* not even a run without series fits */
    assert_int_equal(add("a", "x", 0, 0), RP_NO_RESOURCE);
    assert_false(rp_runs_next(runs, 0, &view));
}

static void an_episode_without_room_is_counted(void **state)
{
    (void)state;
    static float states[RP_EPISODE_NUMBERS];
    rp_run_episode episode = {text("e"), states, 1024, 16};
    rp_run_report report = {.run = text("a"), .episode = &episode};
    size_t dropped = 0;

    rp_runs_set_most_bytes(runs, 32768);
    assert_int_equal(rp_runs_report(runs, &report, 1, &dropped, NULL), RP_OK);
    assert_int_equal(dropped, 1);
}

static void actors_and_the_episode_are_replaced(void **state)
{
    (void)state;
    static rp_actor_view actors[RP_REPORT_ACTORS];
    static rp_episode_view got;
    rp_run_actor actor = {text("actor"), 0.1, 5, 7, 2};
    float states[] = {1, 2, 3, 4, 5, 6};
    rp_run_episode episode = {text("cartpole"), states, 3, 2};
    rp_run_report report = {text("a"), NULL, 0, &actor, 1, &episode};
    char name[16];

    assert_int_equal(rp_runs_report(runs, &report, 1, NULL, NULL), RP_OK);
    actor.version = 8;
    episode = (rp_run_episode){text("catch"), states, 1, 4};
    assert_int_equal(rp_runs_report(runs, &report, 2, NULL, NULL), RP_OK);
    assert_true(rp_runs_find(runs, text("a"), &view));
    assert_int_equal(rp_runs_read_actors(runs, view.id, actors), 1);
    assert_int_equal(actors[0].version, 8);
    assert_true(actors[0].seen_s == 2);
    assert_true(rp_runs_read_episode(runs, view.id, &got));
    assert_string_equal(got.env.text, "catch");
    assert_int_equal(got.variable_count, 4);
    assert_int_equal(view.episode, 2);

    for (int i = 0; i < RP_REPORT_ACTORS + 9; i++) { /* the oldest ones make room */
        (void)snprintf(name, sizeof name, "a%d", i);
        actor.name = text(name);
        assert_int_equal(rp_runs_report(runs, &report, 3 + i, NULL, NULL), RP_OK);
    }
    assert_int_equal(rp_runs_read_actors(runs, view.id, actors), RP_REPORT_ACTORS);
    for (int i = 0; i < RP_REPORT_ACTORS; i++)
        assert_string_not_equal(actors[i].name.text, "actor");
    assert_true(rp_runs_check(runs));
}

/* A slow model: every point of every series, in plain arrays. */
enum { MODEL_RUNS = 4, MODEL_SERIES = 3, MODEL_POINTS = 9000 };
static int64_t model[MODEL_RUNS][MODEL_SERIES][MODEL_POINTS];
static size_t model_counts[MODEL_RUNS][MODEL_SERIES];

static void compare_with_model(size_t run, size_t series)
{
    char name[8] = {(char)('a' + run), '\0'}, wanted[8] = {(char)('x' + series), '\0'};
    size_t count = model_counts[run][series], stride = 1, got, index = 0;

    if (!rp_runs_find(runs, text(name), &view)) {
        assert_int_equal(count, 0);
        return;
    }
    while (index < view.series_count && strcmp(view.series[index].text, wanted) != 0) index++;
    got = rp_runs_read_series(runs, view.id, index, 0, points);
    if (count == 0) {
        assert_int_equal(got, 0);
        return;
    }
    while ((count + stride - 1) / stride > RP_SERIES_POINTS) stride *= 2;
    for (size_t i = 0; i * stride < count; i++)
        assert_int_equal(points[i].step, model[run][series][i * stride]);
    assert_int_equal(points[got - 1].step, model[run][series][count - 1]);
}

static void random_reports_agree_with_a_model(void **state)
{
    (void)state;
    const int rounds = (int)(4000 * (rp_test_scale() < 1 ? 0.2 : 1));
    rp_rng rng;
    rp_rng_init(&rng, 23);
    memset(model_counts, 0, sizeof model_counts);

    for (int round = 0; round < rounds; round++) {
        rp_scalar scalars[40];
        size_t run = rp_rng_below(&rng, MODEL_RUNS);
        char name[8] = {(char)('a' + run), '\0'};
        rp_run_report report = {.run = text(name), .scalars = scalars};
        static const char *const names[MODEL_SERIES] = {"x", "y", "z"};

        for (size_t n = rp_rng_below(&rng, 40); n > 0; n--) {
            size_t series = rp_rng_below(&rng, MODEL_SERIES);
            int64_t step = (int64_t)rp_rng_below(&rng, 1000);

            if (model_counts[run][series] == MODEL_POINTS) continue;
            model[run][series][model_counts[run][series]++] = step;
            scalars[report.scalar_count++] = (rp_scalar){text(names[series]), step, 0, 0};
        }
        assert_int_equal(rp_runs_report(runs, &report, round, NULL, NULL), RP_OK);
        if (round % 200 == 0) {
            assert_true(rp_runs_check(runs));
            for (size_t s = 0; s < MODEL_SERIES; s++) compare_with_model(run, s);
        }
    }
    for (size_t r = 0; r < MODEL_RUNS; r++)
        for (size_t s = 0; s < MODEL_SERIES; s++) compare_with_model(r, s);
}

static void a_failed_allocation_keeps_the_invariants(void **state)
{
    (void)state;
    for (size_t room = 0; room < 40; room++) {
        float states[8] = {0};
        rp_scalar scalars[] = {{text("x"), 1, 0, 0}, {text("y"), 1, 0, 0}};
        rp_run_actor actor = {.name = text("a")};
        rp_run_episode episode = {text("e"), states, 2, 4};
        rp_run_report report = {text("a"), scalars, 2, &actor, 1, &episode};
        rp_status st;

        atomic_store(&oom.left, room);
        st = rp_runs_report(runs, &report, 1, NULL, NULL);
        atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_true(rp_runs_check(runs));
        rp_runs_set_most_bytes(runs, 0); /* drops the run */
        rp_runs_set_most_bytes(runs, RP_RUNS_BYTES);
    }
}

enum { THREADS = 4, ROUNDS = 300 };

/* Reports to runs that other threads report to as well. */
static void *report_much(void *ctx)
{
    const char *name = ctx;
    char run[16];

    for (int i = 0; i < ROUNDS; i++) {
        (void)snprintf(run, sizeof run, "run %d", i % 20);
        (void)!add(run, name, i, 0);
    }
    return NULL;
}

static void *read_much(void *ctx)
{
    static _Thread_local rp_run_view seen;
    static _Thread_local rp_run_row rows[100];
    size_t *wrong = ctx;

    for (int i = 0; i < ROUNDS / 10; i++)
        for (uint64_t after = 0; rp_runs_next(runs, after, &seen); after = seen.id) {
            size_t count = rp_runs_read_rows(runs, seen.id, 0, rows, 100);

            for (size_t k = 1; k < count; k++)
                *wrong += rows[k].point.number <= rows[k - 1].point.number;
        }
    return NULL;
}

static void threads_report_and_read_at_once(void **state)
{
    (void)state;
    static char *const names[THREADS] = {"w", "x", "y", "z"};
    pthread_t writers[THREADS], reader;
    size_t wrong = 0;

    rp_runs_set_most_bytes(runs, 100000); /* runs are dropped meanwhile */
    assert_int_equal(pthread_create(&reader, NULL, read_much, &wrong), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, report_much, names[i]), 0);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(pthread_join(writers[i], NULL), 0);
    assert_int_equal(pthread_join(reader, NULL), 0);

    assert_int_equal(wrong, 0);
    assert_true(rp_runs_check(runs));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(runs)
{
    const struct CMUnitTest tests[] = {
        TEST(a_report_makes_a_run_with_series),
        TEST(a_million_points_stay_evenly_spaced),
        TEST(readers_get_the_points_after_a_number),
        TEST(rows_are_in_order_of_arrival_and_complete),
        TEST(any_step_and_value_is_kept),
        TEST(malformed_reports_change_nothing),
        TEST(a_run_has_a_bounded_number_of_series),
        TEST(the_run_reported_to_longest_ago_is_dropped),
        TEST(bytes_stay_below_the_bound),
        TEST(an_episode_without_room_is_counted),
        TEST(actors_and_the_episode_are_replaced),
        TEST(random_reports_agree_with_a_model),
        TEST(a_failed_allocation_keeps_the_invariants),
        TEST(threads_report_and_read_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
