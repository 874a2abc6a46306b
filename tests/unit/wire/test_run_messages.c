/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/run_messages.h"

#include <math.h>

#include "support/hex.h"
#include "support/unit.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_buf out;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    rp_buf_init(&out, &alloc);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_buf_deinit(&out);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static bool is_same(rp_string a, const char *b)
{
    return a.size == strlen(b) && memcmp(a.data, b, a.size) == 0;
}

static void a_report_is_read_as_it_was_written(void **state)
{
    (void)state;
    float states[] = {1, 2, 3, 4, 5, 6};
    rp_scalar scalars[] = {{text("loss"), INT64_MIN, 5, 0.5},
                           {text("q"), INT64_MAX, 0, (double)NAN}};
    rp_run_actor actors[] = {{text("a"), 0.1, 5, -7, 2}};
    rp_run_episode episode = {text("cartpole"), states, 3, 2};
    rp_run_report report = {text("run"), scalars, 2, actors, 1, &episode};
    rp_wire_report got;

    rp_wire_write_report(&out, &report);
    assert_int_equal(rp_wire_read_report(&alloc, out.data, out.size, &got, NULL), RP_OK);

    assert_true(is_same(got.report.run, "run"));
    assert_int_equal(got.report.scalar_count, 2);
    assert_true(is_same(got.scalars[0].name, "loss"));
    assert_int_equal(got.scalars[0].step, INT64_MIN);
    assert_true(got.scalars[0].time_s == 5 && got.scalars[0].value == 0.5);
    assert_int_equal(got.scalars[1].step, INT64_MAX);
    assert_true(isnan(got.scalars[1].value));
    assert_int_equal(got.report.actor_count, 1);
    assert_int_equal(got.actors[0].version, -7);
    assert_ptr_equal(got.report.episode, &got.episode);
    assert_int_equal(got.episode.state_count, 3);
    assert_int_equal(got.episode.variable_count, 2);
    assert_memory_equal(got.states, states, sizeof states);
    rp_wire_report_deinit(&got, &alloc);
}

static rp_status read_hex(const char *hex, rp_wire_report *got, rp_error *err)
{
    rp_test_bytes b = rp_test_bytes_of(hex);

    *err = (rp_error){0};
    return rp_wire_read_report(&alloc, b.data, b.size, got, err);
}

static void states_may_be_packed_or_not(void **state)
{
    (void)state;
    rp_wire_report got;
    rp_error err;

    /* variables 1, one packed state and two others */
    assert_int_equal(read_hex("2212 1001 1a04 0000803f 1d00000040 1d00004040", &got, &err),
                     RP_OK);
    assert_int_equal(got.episode.state_count, 3);
    assert_true(got.states[0] == 1 && got.states[1] == 2 && got.states[2] == 3);
    rp_wire_report_deinit(&got, &alloc);
}

static void malformed_reports_are_refused(void **state)
{
    (void)state;
    rp_wire_report got;
    rp_error err;

    assert_int_equal(read_hex("0a05 61", &got, &err), RP_INVALID);          /* cut off */
    assert_int_equal(read_hex("0a02 6100", &got, &err), RP_INVALID);        /* a zero byte */
    assert_int_equal(read_hex("0a01 ff", &got, &err), RP_INVALID);          /* not UTF-8 */
    assert_int_equal(read_hex("1203 0a02 61", &got, &err), RP_INVALID);     /* of a scalar */
    assert_int_equal(read_hex("1a03 0a02 61", &got, &err), RP_INVALID);     /* of an actor */
    assert_int_equal(read_hex("2205 1a03 000000", &got, &err), RP_INVALID); /* no floats */
    assert_int_equal(read_hex("220e 1003 1a0a 0000000000000000 0000", &got, &err), RP_INVALID);
    assert_int_equal(read_hex("220c 1003 1a08 0000000000000000", &got, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "2 numbers, not a multiple of its 3 variables"));
}

static void counts_are_bounded_before_memory_is_taken(void **state)
{
    (void)state;
    rp_wire_report got;
    rp_error err = {0};
    size_t total;

    for (size_t i = 0; i <= RP_REPORT_SCALARS; i++) rp_buf_append(&out, "\x12\0", 2);
    total = atomic_load(&oom.total);
    assert_int_equal(rp_wire_read_report(&alloc, out.data, out.size, &got, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "1024 scalars"));
    rp_buf_clear(&out);
    for (size_t i = 0; i <= RP_REPORT_ACTORS; i++) rp_buf_append(&out, "\x1a\0", 2);
    assert_int_equal(rp_wire_read_report(&alloc, out.data, out.size, &got, &err), RP_INVALID);
    assert_non_null(strstr(err.text, "256 actors"));
    assert_int_equal(atomic_load(&oom.total), total);
}

static void a_failed_allocation_leaves_nothing(void **state)
{
    (void)state;
    rp_wire_report got;
    rp_error err = {0};
    rp_status st = RP_NO_RESOURCE;

    for (size_t room = 0; st != RP_OK; room++) {
        atomic_store(&oom.left, room);
        st = read_hex("0a0161 1203 0a0161 1a03 0a0161 2208 1001 1a04 0000803f", &got, &err);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
    }
    atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
    rp_wire_report_deinit(&got, &alloc);
}

static void requests_and_pages_are_read_as_they_were_written(void **state)
{
    (void)state;
    const rp_wire_read_runs request = {text("a"), RP_WIRE_RUN_EVENTS, 77};
    rp_wire_read_runs got;
    rp_wire_runs_page page;
    uint64_t dropped = 0;
    rp_error err = {0};
    size_t mark;

    rp_wire_write_runs_request(&out, &request);
    assert_int_equal(rp_wire_read_runs_request(out.data, out.size, &got, NULL), RP_OK);
    assert_true(is_same(got.run, "a") && got.format == RP_WIRE_RUN_EVENTS && got.after == 77);
    rp_buf_clear(&out);
    mark = rp_wire_begin_runs(&out);
    rp_buf_text(&out, "name,step");
    rp_wire_end_runs(&out, mark, 9, true);
    assert_int_equal(rp_wire_read_runs_page(out.data, out.size, &page, NULL), RP_OK);
    assert_true(is_same(page.data, "name,step") && page.after == 9 && page.more);
    rp_buf_clear(&out);
    rp_wire_write_report_response(&out, 5);
    assert_int_equal(rp_wire_read_report_response(out.data, out.size, &dropped, NULL), RP_OK);
    assert_int_equal(dropped, 5);

    assert_int_equal(rp_wire_read_runs_request((const uint8_t *)"\x10\x03", 2, &got, &err),
                     RP_INVALID);
    assert_non_null(strstr(err.text, "no format 3"));
    assert_int_equal(rp_wire_read_runs_page((const uint8_t *)"\x0a\x03", 2, &page, NULL),
                     RP_CORRUPT);
    assert_int_equal(rp_wire_read_report_response((const uint8_t *)"\x08", 1, &dropped, NULL),
                     RP_CORRUPT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(run_messages)
{
    const struct CMUnitTest tests[] = {
        TEST(a_report_is_read_as_it_was_written),
        TEST(states_may_be_packed_or_not),
        TEST(malformed_reports_are_refused),
        TEST(counts_are_bounded_before_memory_is_taken),
        TEST(a_failed_allocation_leaves_nothing),
        TEST(requests_and_pages_are_read_as_they_were_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
