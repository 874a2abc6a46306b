/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/metrics_text.h"

#include <math.h>
#include <stdio.h>

#include "support/observed.h"
#include "support/strict.h"

static rp_test_observed observed;

static int set_up(void **state)
{
    (void)state;
    rp_test_observed_init(&observed);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rp_test_observed_deinit(&observed);
    return 0;
}

/* The text, ended by a zero; and it must be right. */
static const char *render(rp_buf *out)
{
    const char *mistake;
    rp_store_info store;
    rp_table_views views;

    rp_buf_init(out, rp_allocator_default());
    assert_ok(rp_table_views_take(&views, rp_allocator_default(), observed.bed.store));
    rp_store_get_info(observed.bed.store, &store);
    rp_metrics_text(out, &observed.view, &store, views.tables, views.count);
    rp_table_views_deinit(&views);
    assert_false(out->bad);
    mistake = rp_test_prometheus_mistake((const char *)out->data, out->size);
    if (mistake != NULL) fail_msg("%s", mistake);
    rp_buf_append(out, "", 1);
    return (const char *)out->data;
}

static void expect(const char *text, const char *series, double expected)
{
    double number = rp_test_prometheus_value(text, series);

    if (number != expected) fail_msg("%s is %g, not %g", series, number, expected);
}

static void rollouts_show_what_waits(void **state)
{
    rp_test_observed_rollouts added;
    const char *text;
    rp_buf out;

    (void)state;
    rp_test_observed_add_rollouts(&observed, &added);
    text = render(&out);
    expect(text, "reprise_rollouts_waiting{rollouts=\"train\",side=\"insert\"}", 1);
    expect(text, "reprise_rollouts_waiting{rollouts=\"train\",side=\"sample\"}", 1);
    rp_test_observed_drop_rollouts(&added);
    rp_buf_deinit(&out);
}

static void the_server_shows_its_counters(void **state)
{
    rp_loop_metrics *one = rp_metrics_loop(observed.view.metrics, 0),
                    *two = rp_metrics_loop(observed.view.metrics, 1);
    const char *text;
    rp_buf out;

    (void)state;
    rp_counter_add(&one->connections_opened, 7);
    rp_counter_add(&two->connections_opened, 8);
    rp_counter_add(&two->bytes_read, UINT64_C(12345678901234567)); /* digits are not lost */
    rp_counter_add(&one->calls[RP_METHOD_SAMPLE_STREAM][4], 3);
    rp_counter_add(&one->refusals[RP_REFUSED_SLOW_MESSAGE], 2);
    rp_counter_add(&one->abuse[RP_ABUSE_PING], 9);
    text = render(&out);

    expect(text, "reprise_build_info{version=\"1.2.3\"}", 1);
    expect(text, "reprise_uptime_seconds", 1.5);
    expect(text, "reprise_health{state=\"degraded\"}", 1);
    expect(text, "reprise_health{state=\"serving\"}", 0);
    expect(text, "reprise_loops", 2);
    expect(text, "reprise_connections_opened_total", 15);
    assert_non_null(strstr(text, "\nreprise_read_bytes_total 12345678901234567\n"));
    expect(text, "reprise_calls_total{method=\"SampleStream\",code=\"4\"}", 3);
    expect(text, "reprise_calls_total{method=\"SampleStream\",code=\"0\"}", 0);
    assert_null(strstr(text, "reprise_calls_total{method=\"SampleStream\",code=\"5\"}"));
    expect(text, "reprise_refusals_total{reason=\"slow_message\"}", 2);
    expect(text, "reprise_refusals_total{reason=\"connections\"}", 0);
    expect(text, "reprise_abuse_events_total{kind=\"ping\"}", 9);
    expect(text, "reprise_limit{name=\"message_bytes\"}", 64 << 20);
    expect(text, "reprise_limit{name=\"stall_ms\"}", 60000);
    expect(text, "reprise_tables", 3);
    rp_buf_deinit(&out);
}

static void a_table_shows_its_info(void **state)
{
    const char *text;
    rp_buf out;

    (void)state;
    text = render(&out);
    expect(text, "reprise_table_size{table=\"replay\"}", 5);
    expect(text, "reprise_table_max_size{table=\"replay\"}", 100);
    expect(text, "reprise_table_inserts_total{table=\"replay\"}", 5);
    expect(text, "reprise_table_samples_total{table=\"replay\"}", 1);
    expect(text, "reprise_table_unique_samples_total{table=\"replay\"}", 1);
    expect(text, "reprise_table_limiter_cursor{table=\"replay\"}", 5 * 2.0 - 1);
    expect(text, "reprise_table_limiter_min_diff{table=\"replay\"}", 4 - 50.0);
    expect(text, "reprise_table_limiter_max_diff{table=\"replay\"}", 4 + 50.0);
    expect(text, "reprise_table_limiter_max_diff{table=\"empty\"}", INFINITY); /* no bound */
    expect(text, "reprise_table_limiter_min_diff{table=\"empty\"}", -INFINITY);
    expect(text, "reprise_table_waiting_samples{table=\"empty\"}", 1);
    expect(text, "reprise_table_waiting_inserts{table=\"empty\"}", 0);
    assert_true(rp_test_prometheus_value(
                    text, "reprise_table_longest_sample_wait_seconds{table=\"empty\"}") > 0);
    expect(text, "reprise_table_longest_insert_wait_seconds{table=\"empty\"}", 0);
    assert_true(rp_test_prometheus_value(text, "reprise_table_bytes{table=\"replay\"}") > 0);
    expect(text, "reprise_table_sample_waits_total{table=\"empty\"}", 1);
    assert_true(rp_test_prometheus_value(
                    text, "reprise_table_sample_wait_seconds_total{table=\"empty\"}") > 0);
    expect(text, "reprise_table_insert_waits_total{table=\"empty\"}", 0);
    expect(text, "reprise_table_inserts_paused{table=\"replay\"}", 0);
    expect(text, "reprise_table_closed{table=\"replay\"}", 0);
    /* quotes, backslashes and newlines are escaped, what does not show as itself spelt out */
    expect(text, "reprise_table_size{table=\"a \\\"b\\\"\\\\\\\\\\n\\\\xff\xc3\xa4\"}", 0);
    rp_buf_deinit(&out);
}

static void a_paused_table_shows_its_paused_side(void **state)
{
    rp_table *t = rp_test_table(observed.bed.store, "replay");
    const char *text;
    rp_buf out;

    (void)state;
    assert_ok(rp_table_pause(t, RP_SIDE_SAMPLES, NULL));
    text = render(&out);
    expect(text, "reprise_table_inserts_paused{table=\"replay\"}", 0);
    expect(text, "reprise_table_samples_paused{table=\"replay\"}", 1);
    rp_buf_deinit(&out);
}

static void a_table_shows_the_counters_of_the_server(void **state)
{
    rp_table_metrics *t = rp_metrics_table(observed.view.metrics, "replay");
    const char *text;
    rp_buf out;

    (void)state;
    assert_non_null(t);
    for (size_t loop = 0; loop < 2; loop++) {
        rp_table_counters *c = rp_table_metrics_loop(t, loop);

        rp_counter_add(&c->inserted_items, 100);
        rp_counter_add(&c->sampled_bytes, 250000000);
        rp_histogram_record(&c->insert_ns, 1000, 2);
        rp_histogram_record(&c->insert_ns, 3000, 1);
        rp_histogram_record(&c->insert_ns, INT64_C(200000000000), 1);
    }
    rp_table_metrics_unref(t);
    text = render(&out);
    expect(text, "reprise_table_inserted_items_total{table=\"replay\"}", 200);
    expect(text, "reprise_table_sampled_bytes_total{table=\"replay\"}", 5e8);
    expect(text, "reprise_table_insert_seconds_bucket{table=\"replay\",le=\"1.024e-06\"}", 4);
    expect(text, "reprise_table_insert_seconds_bucket{table=\"replay\",le=\"4.096e-06\"}", 6);
    expect(text, "reprise_table_insert_seconds_bucket{table=\"replay\",le=\"68.719476736\"}",
           6);
    expect(text, "reprise_table_insert_seconds_bucket{table=\"replay\",le=\"+Inf\"}", 8);
    expect(text, "reprise_table_insert_seconds_count{table=\"replay\"}", 8);
    expect(text, "reprise_table_insert_seconds_sum{table=\"replay\"}", 400.00001);
    expect(text, "reprise_table_sample_seconds_count{table=\"empty\"}", 0);
    rp_buf_deinit(&out);
}

static void a_server_without_tables_is_fine(void **state)
{
    rp_store_info store = {0};
    rp_buf out;

    (void)state;
    rp_buf_init(&out, rp_allocator_default());
    observed.view.version = NULL;
    rp_metrics_text(&out, &observed.view, &store, NULL, 0);
    assert_false(out.bad);
    assert_null(rp_test_prometheus_mistake((const char *)out.data, out.size));
    rp_buf_deinit(&out);
}

static void tables_that_do_not_fit_are_left_out(void **state)
{
    enum { LONG = 60, ALL = LONG + 3 };
    double left_out;
    const char *text;
    rp_buf out;

    (void)state;
    text = render(&out);
    expect(text, "reprise_page_tables_left_out", 0);
    rp_buf_deinit(&out);
    rp_test_observed_add_long(&observed, LONG);
    text = render(&out);
    assert_true(out.size <= rp_page_most_bytes(ALL));
    assert_true(out.size > rp_page_most_bytes(ALL) / 2);
    left_out = rp_test_prometheus_value(text, "reprise_page_tables_left_out");
    assert_true(left_out > 0 && left_out < LONG);
    expect(text, "reprise_tables", ALL);
    expect(text, "reprise_table_size{table=\"replay\"}", 5); /* the oldest are there */
    rp_buf_deinit(&out);
}

static rp_status render_once(const rp_allocator *alloc)
{
    rp_store_info store = {0};
    rp_table_views views;
    rp_status st = rp_table_views_take(&views, alloc, observed.bed.store);
    rp_buf out;

    if (st != RP_OK) return st;
    rp_buf_init(&out, alloc);
    rp_metrics_text(&out, &observed.view, &store, views.tables, views.count);
    if (out.bad) st = RP_NO_RESOURCE;
    rp_buf_deinit(&out);
    rp_table_views_deinit(&views);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(render_once);
}

/* The checker must be able to say no. */
static void the_checker_sees_mistakes(void **state)
{
    static const char *const wrong[] = {
        "",
        "x",
        "x 1\n",
        "# HELP x y\nx 1\n",
        "# HELP x y\n# TYPE x gauge\nx 1",
        "# HELP x y\n# TYPE x gauge\nx one\n",
        "# HELP x y\n# TYPE x gauge\nx inf\n",
        "# HELP x y\n# TYPE x gauge\nx 1\nx 2\n",
        "# HELP x y\n# TYPE x gauge\ny 1\n",
        "# HELP x y\n# TYPE x counter\nx 1\n",
        "# HELP x_total y\n# TYPE x_total gauge\nx_total 1\n",
        "# HELP x_total y\n# TYPE x_total counter\nx_total -1\n",
        "# HELP x y\n# TYPE x gauge\nx{a=\"b} 1\n",
        "# HELP x y\n# TYPE x gauge\nx{a=\"\\x\"} 1\n",
        "# HELP x y\n# TYPE x gauge\nx{a=\"\xff\"} 1\n",
        "# HELP x y\n# TYPE x gauge\nx{1=\"b\"} 1\n",
        "# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 1\nx_count 1\n",
        "# HELP x y\n# TYPE x histogram\nx_bucket{le=\"1\"} 2\nx_bucket{le=\"+Inf\"} 1\n",
        "# HELP x y\n# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\nx_count 2\n",
        "# HELP x y\n# TYPE x gauge\nx 1\n# HELP x y\n# TYPE x gauge\n",
    };
    static const char right[] = "# HELP x y\n# TYPE x histogram\nx_bucket{le=\"+Inf\"} 1\n"
                                "x_sum 3\nx_count 1\n";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (rp_test_prometheus_mistake(wrong[i], strlen(wrong[i])) == NULL)
            fail_msg("it takes %s", wrong[i]);
    assert_null(rp_test_prometheus_mistake(right, strlen(right)));
}

RP_TESTS(metrics_text)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rollouts_show_what_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_server_shows_its_counters, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_table_shows_its_info, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_paused_table_shows_its_paused_side, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_table_shows_the_counters_of_the_server, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_server_without_tables_is_fine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_that_do_not_fit_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
        cmocka_unit_test(the_checker_sees_mistakes),
    };
    return cmocka_run_group_tests_name("metrics_text", tests, NULL, NULL);
}
