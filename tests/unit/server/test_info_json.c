/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/info_json.h"

#include "server/http/json_out.h"

#include <float.h>
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
static const char *checked(rp_buf *out)
{
    const char *text, *mistake;

    assert_false(out->bad);
    rp_buf_append(out, "", 1);
    text = (const char *)out->data;
    mistake = rp_test_json_mistake(text, out->size - 1);
    if (mistake != NULL) fail_msg("not JSON from here on: %.80s", mistake);
    return text;
}

static const char *render(rp_buf *out)
{
    rp_store_info store;
    rp_table_views views;

    rp_buf_init(out, rp_allocator_default());
    assert_ok(rp_table_views_take(&views, rp_allocator_default(), observed.bed.store));
    rp_store_get_info(observed.bed.store, &store);
    rp_info_json_write(out, &observed.view, &store, views.tables, views.count);
    rp_table_views_deinit(&views);
    return checked(out);
}

static void expect(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) fail_msg("there is no %s in %s", part, text);
}

static void the_server_is_described(void **state)
{
    const char *text;
    rp_buf out;

    (void)state;
    rp_counter_add(&rp_metrics_loop(observed.view.metrics, 1)->connections, 3);
    text = render(&out);
    expect(text, "\"version\":\"1.2.3\"");
    expect(text, "\"health\":\"degraded\"");
    expect(text, "\"why\":\"the disk is full: \\\"\\\\\\n\"");
    expect(text, "\"uptime_seconds\":1.5");
    expect(text, "\"addresses\":[\"127.0.0.1:8000\",\"unix:/tmp/a \\\"b\\\"\"]");
    expect(text, "\"connections\":3");
    expect(text, "\"limits\":{\"connections\":10000,");
    expect(text, "\"stall_ms\":60000");
    expect(text, "\"policy\":\"evict\"");
    assert_null(strstr(text, "seed")); /* which would tell how keys are hashed */
    rp_buf_deinit(&out);
}

static void what_waits_at_rollouts_is_described(void **state)
{
    rp_test_observed_rollouts added;
    const char *text;
    rp_buf out;

    (void)state;
    text = render(&out);
    expect(text, "\"rollouts\":[]");
    rp_buf_deinit(&out);
    rp_test_observed_add_rollouts(&observed, &added);
    text = render(&out);
    expect(text, "\"rollouts\":[{\"name\":\"train\",\"waiting\":{\"inserts\":{\"now\":1,");
    expect(text, "\"samples\":{\"now\":1,");
    expect(text, "{\"client\":null,\"kind\":\"insert\",\"wanted\":1,\"done\":0,");
    expect(text, "3 groups, max_groups is");
    expect(text, "\"kind\":\"sample\",\"wanted\":");
    rp_test_observed_drop_rollouts(&added);
    rp_buf_deinit(&out);
}

static void tables_are_described_in_full(void **state)
{
    const char *text;
    rp_buf out;

    (void)state;
    text = render(&out);
    expect(text, "\"name\":\"replay\",\"path\":\"/v1/tables/"
                 "replay\",\"sampler\":{\"kind\":\"prioritized\",\"exponent\":0.6},"
                 "\"remover\":{\"kind\":\"fifo\"}");
    expect(text, "\"limiter\":{\"samples_per_insert\":2,\"min_size\":2,\"min_diff\":-46,"
                 "\"max_diff\":54,\"cursor\":9}");
    expect(text, "\"size\":5");
    expect(text, "\"inserts\":5,\"samples\":1,\"deletes\":0");
    expect(text, "\"signature\":null");
    expect(text, "\"columns\":[{\"name\":\"obs\",\"dtype\":\"float\",\"shape\":[null,84]},"
                 "{\"name\":\"re\\\"ward\",\"dtype\":\"double\",\"shape\":null}]");
    expect(text, "\"name\":\"a \\\"b\\\"\\\\\\n\\ufffd\xc3\xa4\"");
    rp_buf_deinit(&out);
}

static void waiting_calls_have_their_reason(void **state)
{
    const char *text, *call;
    rp_buf out;

    (void)state;
    text = render(&out);
    expect(text, "\"samples\":{\"now\":1,\"longest_seconds\":");
    call = strstr(text, "\"calls\":[{");
    assert_non_null(call);
    expect(call, "\"kind\":\"sample\",\"wanted\":2,\"done\":0,\"waiting_seconds\":");
    expect(call, "\"deadline_seconds\":null,\"why\":\"");
    assert_non_null(strstr(strstr(call, "\"why\":\""), "size"));
    rp_buf_deinit(&out);
}

static void of_many_waiting_calls_the_first_16_are_shown(void **state)
{
    enum { CALLS = RP_VIEW_WAITING + 1 };
    static rp_op ops[CALLS];
    rp_table *t = rp_test_table(observed.bed.store, "empty");
    size_t shown = 0;
    const char *text;
    rp_buf out;

    (void)state;
    for (size_t i = 1; i < CALLS; i++) { /* one waits already */
        ops[i] = observed.parked;
        assert_false(rp_table_start_sample(t, &ops[i]));
    }
    text = render(&out);
    expect(text, "\"samples\":{\"now\":17,");
    for (const char *at = text; (at = strstr(at, "\"deadline_seconds\"")) != NULL; at++)
        shown++;
    assert_int_equal(shown, RP_VIEW_WAITING);
    for (size_t i = 1; i < CALLS; i++) assert_true(rp_op_withdraw(&ops[i], RP_CANCELLED));
    rp_buf_deinit(&out);
}

/* Numbers that no JSON has, and the largest there are. */
static void odd_numbers_become_null_or_stay_exact(void **state)
{
    rp_table_view view = {.info = {.name = "t"}};
    rp_store_info store = {.bytes = UINT64_MAX, .max_bytes = UINT64_MAX};
    const char *text;
    rp_buf out;

    (void)state;
    view.info.limiter = (rp_limiter_options){NAN, INT64_MIN, -INFINITY, DBL_MAX};
    view.info.max_priority = INFINITY;
    view.median_age_ns = -1;
    view.info.limiter_diff = NAN;
    view.info.paused = RP_SIDE_INSERTS;
    view.info.max_bytes = UINT64_MAX;
    view.info.size = INT64_MAX;
    view.info.sampler.kind = (rp_selector_kind)99;
    rp_buf_init(&out, rp_allocator_default());
    rp_info_json_write(&out, &observed.view, &store, &view, 1);
    text = checked(&out);
    expect(text, "\"samples_per_insert\":null,\"min_size\":-9223372036854775808,"
                 "\"min_diff\":null,\"max_diff\":null,\"cursor\":null");
    expect(text, "\"max_priority\":null,\"median_age_seconds\":null");
    expect(text, "\"inserts_paused\":true,\"samples_paused\":false");
    expect(text, "\"size\":9223372036854775807");
    expect(text, "\"bytes\":18446744073709551615");
    expect(text, "\"sampler\":{\"kind\":null}");
    rp_buf_deinit(&out);
}

static void every_byte_can_be_in_a_string(void **state)
{
    char all[256], pairs[3] = "";
    const char *text;
    rp_buf out;

    (void)state;
    for (int i = 1; i < 256; i++) all[i - 1] = (char)i;
    all[255] = '\0';
    rp_buf_init(&out, rp_allocator_default());
    rp_out_string(&out, all);
    text = checked(&out);
    expect(text, "\"\\u0001\\u0002");
    for (int a = 1; a < 256; a++) {
        rp_buf_clear(&out);
        rp_buf_text(&out, "[null");
        for (int b = 1; b < 256; b++) {
            pairs[0] = (char)a;
            pairs[1] = (char)b;
            rp_buf_text(&out, ",");
            rp_out_string(&out, pairs);
        }
        rp_buf_text(&out, "]");
        (void)checked(&out);
    }
    rp_buf_clear(&out);
    rp_out_string(&out, NULL);
    assert_string_equal(checked(&out), "null");
    rp_buf_deinit(&out);
}

static void of_many_columns_the_first_256_are_shown(void **state)
{
    enum { COLUMNS = 300 };
    static rp_spec columns[COLUMNS];
    static char names[COLUMNS][8];
    rp_table_view view = {.info = {.name = "t"}};
    rp_store_info store = {0};
    const char *text;
    rp_buf out;

    (void)state;
    for (int i = 0; i < COLUMNS; i++) {
        (void)snprintf(names[i], sizeof names[i], "c%03d", i);
        columns[i] = (rp_spec){names[i], RP_UINT8, {0, {0}}};
    }
    assert_ok(rp_signature_flat(rp_allocator_default(), columns, COLUMNS, &view.info.signature,
                                NULL));
    rp_buf_init(&out, rp_allocator_default());
    rp_info_json_write(&out, &observed.view, &store, &view, 1);
    text = checked(&out);
    expect(text, "\"column_count\":300");
    expect(text, "\"name\":\"c255\",\"dtype\":\"uint8\",\"shape\":[]");
    assert_null(strstr(text, "c256"));
    rp_signature_unref(view.info.signature);
    rp_buf_deinit(&out);
}

/* Adds a table with so many columns, whose names are `bytes` control characters and a number.
 */
static void add_wide(const char *name, size_t columns, size_t bytes)
{
    rp_table_options options = rp_test_options(name, RP_FIFO, RP_FIFO, 10);
    rp_spec *specs = calloc(columns, sizeof *specs);
    size_t room = bytes + 24;
    char *names = calloc(columns, room);

    assert_non_null(specs);
    assert_non_null(names);
    for (size_t i = 0; i < columns; i++) {
        char *text = names + i * room;

        memset(text, 1, bytes);
        (void)snprintf(text + bytes, room - bytes, "%zu", i);
        specs[i] = (rp_spec){text, RP_FLOAT32, {0, {0}}};
    }
    assert_ok_err(rp_signature_flat(&observed.bed.alloc, specs, columns, &options.signature,
                                    &observed.bed.err),
                  &observed.bed.err);
    (void)rp_test_bed_table(&observed.bed, &options);
    rp_signature_unref(options.signature);
    free(names);
    free(specs);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void names_of_columns_do_not_make_a_page_large(void **state)
{
    const char *text;
    rp_buf out;

    (void)state;
    add_wide("wide", 256, 100);
    add_wide("long", 200, 4000);
    add_wide("last", 1, 1);
    text = render(&out);
    assert_true(out.size < 256 << 10);
    expect(text, "\"signature\":{\"column_count\":256,");
    expect(text, "\"signature\":{\"column_count\":200,");
    expect(text, "\"name\":\"last\"");
    expect(text, "\"tables_left_out\":0}");
    rp_buf_deinit(&out);
}

static void tables_that_do_not_fit_are_left_out(void **state)
{
    enum { WIDE = 60, ALL = WIDE + 3 };
    char left_out[64];
    size_t shown;
    const char *text;
    rp_buf out;

    (void)state;
    for (size_t i = 0; i < WIDE; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "wide %zu", i);
        add_wide(name, 256, 100);
    }
    text = render(&out);
    assert_true(out.size <= rp_page_most_bytes(ALL));
    assert_true(out.size > rp_page_most_bytes(ALL) / 2);
    shown = count_of(text, "\"sampler\":");
    assert_true(shown > 3 && shown < ALL);
    (void)snprintf(left_out, sizeof left_out, "],\"tables_left_out\":%zu}", ALL - shown);
    expect(text, left_out);
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
    rp_info_json_write(&out, &observed.view, &store, views.tables, views.count);
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
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{\"a\":1 \"b\":2}",
        "01",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "-",
        "nul",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\xff\"",
        "1 2",
        "[1}",
        "{1:2}",
        "\"a",
        "{\"a\":1,\"a\":2}",
        "\"\\",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        if (rp_test_json_mistake(wrong[i], strlen(wrong[i])) == NULL)
            fail_msg("it takes %s", wrong[i]);
    assert_null(rp_test_json_mistake(" {\"a\":[-1.5e+3,true,\"\\u00e4\",{}]} ", 34));
}

RP_TESTS(info_json)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_server_is_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_waits_at_rollouts_is_described, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tables_are_described_in_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(waiting_calls_have_their_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_many_waiting_calls_the_first_16_are_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(odd_numbers_become_null_or_stay_exact, set_up,
                                        tear_down),
        cmocka_unit_test(every_byte_can_be_in_a_string),
        cmocka_unit_test_setup_teardown(of_many_columns_the_first_256_are_shown, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(names_of_columns_do_not_make_a_page_large, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(tables_that_do_not_fit_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, set_up, tear_down),
        cmocka_unit_test(the_checker_sees_mistakes),
    };
    return cmocka_run_group_tests_name("info_json", tests, NULL, NULL);
}
