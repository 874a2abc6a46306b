/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/server_view.h"

#include "support/observed.h"

static void a_view_has_the_table_and_its_first_waiting_calls(void **state)
{
    static rp_test_observed observed;
    static rp_table_view view;

    (void)state;
    rp_test_observed_init(&observed);
    rp_table_view_take(&view, rp_test_table(observed.bed.store, "empty"));
    assert_string_equal(view.info.name, "empty");
    assert_int_equal(view.waiting_count, 1);
    assert_int_equal(rp_table_view_described(&view), 1);
    assert_int_equal(view.waiting[0].wanted, 2);
    assert_true(view.now_ns > 0 && view.now_ns <= rp_now_ns());
    rp_test_observed_deinit(&observed);
}

static void a_view_describes_no_more_calls_than_fit(void **state)
{
    static rp_table_view view = {.waiting_count = RP_VIEW_WAITING};

    (void)state;
    assert_int_equal(rp_table_view_described(&view), RP_VIEW_WAITING);
    view.waiting_count++;
    assert_int_equal(rp_table_view_described(&view), RP_VIEW_WAITING);
    view.waiting_count = 0;
    assert_int_equal(rp_table_view_described(&view), 0);
}

static void views_outlive_their_tables_being_dropped(void **state)
{
    static rp_test_observed observed;
    rp_table_views views;
    rp_error err;

    (void)state;
    rp_test_observed_init(&observed);
    assert_ok(rp_table_views_take(&views, rp_allocator_default(), observed.bed.store));
    assert_ok_err(rp_store_drop_table(observed.bed.store, (rp_string){"replay", 6}, &err),
                  &err);
    assert_string_equal(views.tables[0].info.name, "replay");
    rp_table_views_deinit(&views);
    rp_test_observed_deinit(&observed);
}

static void all_tables_are_taken_in_their_order(void **state)
{
    static rp_test_observed observed;
    rp_table_views views;

    (void)state;
    rp_test_observed_init(&observed);
    assert_ok(rp_table_views_take(&views, rp_allocator_default(), observed.bed.store));
    assert_int_equal(views.count, 3);
    assert_string_equal(views.tables[0].info.name, "replay");
    assert_string_equal(views.tables[1].info.name, "empty");
    rp_table_views_deinit(&views);
    rp_test_observed_deinit(&observed);
}

static void a_store_without_tables_has_no_views(void **state)
{
    rp_table_views views;
    rp_test_bed bed;

    (void)state;
    rp_test_bed_init(&bed, NULL);
    assert_ok(rp_table_views_take(&views, rp_allocator_default(), bed.store));
    assert_int_equal(views.count, 0);
    rp_table_views_deinit(&views);
    rp_test_bed_deinit(&bed);
}

static void states_have_names(void **state)
{
    (void)state;
    assert_string_equal(rp_health_name(RP_HEALTH_LOADING), "loading");
    assert_string_equal(rp_health_name(RP_HEALTH_SERVING), "serving");
    assert_string_equal(rp_health_name(RP_HEALTH_DEGRADED), "degraded");
    assert_string_equal(rp_health_name(RP_HEALTH_DRAINING), "draining");
    assert_string_equal(rp_health_name((rp_health)7), "unknown");
}

/* A limit that is added to the public header must be added to the pages. */
static void every_limit_is_shown(void **state)
{
    size_t count = 0;

    (void)state;
#define COUNT(field) count++;
    RP_LIMITS(COUNT)
#undef COUNT
    assert_int_equal(count * sizeof(size_t), sizeof(rp_server_limits));
}

RP_TESTS(server_view)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_has_the_table_and_its_first_waiting_calls),
        cmocka_unit_test(a_view_describes_no_more_calls_than_fit),
        cmocka_unit_test(views_outlive_their_tables_being_dropped),
        cmocka_unit_test(all_tables_are_taken_in_their_order),
        cmocka_unit_test(a_store_without_tables_has_no_views),
        cmocka_unit_test(states_have_names),
        cmocka_unit_test(every_limit_is_shown),
    };
    return cmocka_run_group_tests_name("server_view", tests, NULL, NULL);
}
