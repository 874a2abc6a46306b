/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "disk/record.h"
#include "runs/run_text.h"
#include "support/unit.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_runs *runs;
static rp_buf out;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    rp_buf_init(&out, &alloc);
    runs = rp_runs_new(&alloc);
    return runs != NULL ? 0 : 1;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_buf_deinit(&out);
    rp_runs_free(runs);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

static void add(const char *run, const char *name, int64_t step, double value)
{
    rp_scalar scalar = {text(name), step, 12.5, value};
    rp_run_report report = {.run = text(run), .scalars = &scalar, .scalar_count = 1};

    assert_int_equal(rp_runs_report(runs, &report, 100, NULL, NULL), RP_OK);
}

static void assert_out(const char *wanted)
{
    rp_buf_append(&out, "", 1);
    assert_false(out.bad);
    assert_string_equal((const char *)out.data, wanted);
    rp_buf_clear(&out);
}

static void the_list_names_runs_and_scalars(void **state)
{
    (void)state;
    rp_runs_write_list(runs, &out);
    assert_out("{\"bytes\":0,\"max_bytes\":67108864,\"dropped_runs\":0,\"dropped_scalars\":0,"
               "\"runs\":[],\"scalars_left_out\":0}");
    add("a", "loss", 1, 0.5);
    add("a", "q", 1, 0.5);
    add("b", "x", 1, 0.5);
    rp_runs_write_list(runs, &out);
    rp_buf_append(&out, "", 1);
    assert_non_null(strstr(
        (char *)out.data, "\"runs\":[{\"name\":\"a\",\"started\":100.000,\"last_seen\":100.000,"
                          "\"points\":2,\"next\":2,\"actors\":0,\"episode\":0,"
                          "\"scalars\":[\"loss\",\"q\"]},{\"name\":\"b\","));
}

static void the_list_has_all_runs_however_long_the_names_of_scalars_are(void **state)
{
    (void)state;
    static char names[RP_RUN_SERIES][RP_RUN_NAME_BYTES + 1];
    static rp_scalar scalars[RP_RUN_SERIES];
    rp_run_report report = {.scalars = scalars, .scalar_count = RP_RUN_SERIES};
    const char *at;
    size_t count = 0;

    for (size_t i = 0; i < RP_RUN_SERIES; i++) {
        memset(names[i], 1, RP_RUN_NAME_BYTES); /* six bytes of JSON each */
        names[i][0] = (char)(1 + i % 127);
        names[i][1] = (char)(1 + i / 127);
        scalars[i] = (rp_scalar){.name = text(names[i])};
    }
    for (int i = 0; i < 100; i++) {
        char run[8];

        (void)snprintf(run, sizeof run, "%d", i);
        report.run = text(run);
        assert_int_equal(rp_runs_report(runs, &report, 1, NULL, NULL), RP_OK);
    }
    out.most = 2 << 20;
    rp_runs_write_list(runs, &out);
    assert_false(out.bad);
    out.most = 0;
    rp_buf_append(&out, "", 1);
    for (at = (char *)out.data; (at = strstr(at, "{\"name\":")) != NULL; at++) count++;
    assert_int_equal(count, 100);
    assert_non_null(strstr((char *)out.data, "\"scalars\":[\""));
    assert_non_null(strstr((char *)out.data, "\"scalars\":[]},{"));
    assert_non_null(strstr((char *)out.data, "],\"scalars_left_out\":9"));
}

/* Names of control characters take six bytes each. A page has 64 KiB and the rest of one run.
 */
static void pages_of_lines_are_bounded_and_complete(void **state)
{
    enum { ALL = 8, PAGE = 64 << 10, LONGEST = 256 << 10 };
    static char names[RP_RUN_SERIES][RP_RUN_NAME_BYTES + 1];
    static rp_scalar scalars[RP_RUN_SERIES];
    rp_run_report report = {.scalars = scalars, .scalar_count = RP_RUN_SERIES};
    size_t lines = 0, pages = 0;
    uint64_t after = 0;
    bool more = true;

    (void)state;
    for (size_t i = 0; i < RP_RUN_SERIES; i++) {
        memset(names[i], 1, RP_RUN_NAME_BYTES);
        names[i][0] = (char)('!' + i % 64), names[i][1] = (char)('a' + i / 64);
        scalars[i] = (rp_scalar){text(names[i]), 1, 1, 1};
    }
    for (char run[] = "a"; run[0] < 'a' + ALL; run[0]++) {
        report.run = text(run);
        assert_int_equal(rp_runs_report(runs, &report, 100, NULL, NULL), RP_OK);
    }
    for (; more; pages++) {
        rp_runs_write_lines(runs, ALL, &after, &more, &out);
        assert_false(out.bad);
        assert_true(out.size < PAGE + LONGEST);
        for (size_t i = 0; i < out.size; i++) lines += out.data[i] == '\n';
        rp_buf_clear(&out);
    }
    assert_int_equal(lines, ALL);
    assert_int_equal(pages,
                     ALL + 1); /* each run has more than 64 KiB; the last page is empty */
}

static void json_has_the_points_after_a_number(void **state)
{
    (void)state;
    float states[] = {1, 2, (float)NAN, 0.5F};
    rp_run_actor actor = {text("w0"), 0.1, (double)NAN, 7, 2};
    rp_run_episode episode = {text("cartpole"), states, 2, 2};
    rp_run_report report = {text("a"), NULL, 0, &actor, 1, &episode};
    add("a", "loss", 1, 0.5);
    add("a", "q", -1, (double)INFINITY);
    add("a", "loss", 2, (double)NAN);

    assert_int_equal(rp_runs_write_json(runs, text("a"), 1, &out, NULL), RP_OK);
    assert_out(
        "{\"name\":\"a\",\"started\":100.000,\"last_seen\":100.000,\"next\":3,\"series\":{"
        "\"loss\":{\"step\":[2],\"time\":[12.500],\"value\":[null]},"
        "\"q\":{\"step\":[-1],\"time\":[12.500],\"value\":[null]}},"
        "\"actors\":[]}");
    assert_int_equal(rp_runs_report(runs, &report, 200, NULL, NULL), RP_OK);
    assert_int_equal(rp_runs_write_json(runs, text("a"), 3, &out, NULL), RP_OK);
    assert_out(
        "{\"name\":\"a\",\"started\":100.000,\"last_seen\":200.000,\"next\":4,\"series\":{},"
        "\"actors\":[{\"name\":\"w0\",\"epsilon\":0.1,\"return\":null,\"version\":7,"
        "\"version_lag\":2,\"last_seen\":200.000}],\"episode\":{\"number\":4,"
        "\"env\":\"cartpole\",\"states\":[[1,2],[null,0.5]]}}");
    assert_int_equal(rp_runs_write_json(runs, text("b"), 0, &out, NULL), RP_NOT_FOUND);
}

static void hostile_names_stay_within_their_strings(void **state)
{
    (void)state;
    rp_run_page page = {.format = RP_RUN_CSV, .max_rows = 10};
    add("<script>\"\\\n", "=1+1\",\"", 1, 0.5);

    assert_int_equal(rp_runs_write_json(runs, text("<script>\"\\\n"), 0, &out, NULL), RP_OK);
    assert_out("{\"name\":\"<script>\\\"\\\\\\n\",\"started\":100.000,\"last_seen\":100.000,"
               "\"next\":1,\"series\":{\"=1+1\\\",\\\"\":{\"step\":[1],\"time\":[12.500],"
               "\"value\":[0.5]}},\"actors\":[]}");
    assert_int_equal(rp_runs_write_rows(runs, text("<script>\"\\\n"), &page, &out, NULL),
                     RP_OK);
    assert_out("name,step,time,value\n\"=1+1\"\",\"\"\",1,12.500,0.5\n");
}

static void csv_is_made_page_by_page(void **state)
{
    (void)state;
    rp_run_page page = {.format = RP_RUN_CSV, .max_rows = 1000, .more = true};
    size_t lines = 0, pages = 0;
    for (int64_t i = 0; i < 2500; i++) add("a", i % 2 == 0 ? "x" : "y", i, 1.0 / 3);

    for (; page.more; pages++) {
        assert_int_equal(rp_runs_write_rows(runs, text("a"), &page, &out, NULL), RP_OK);
        for (size_t i = 0; i < out.size; i++) lines += out.data[i] == '\n';
        rp_buf_clear(&out);
    }
    assert_int_equal(lines, 2501); /* with the head */
    assert_int_equal(pages, 3);
    assert_int_equal(rp_runs_write_rows(runs, text("b"), &page, &out, NULL), RP_NOT_FOUND);
}

static uint32_t masked(const uint8_t *data, size_t size)
{
    uint32_t crc = rp_crc32c(0, data, size);

    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

static void event_files_are_records_with_checksums(void **state)
{
    (void)state;
    rp_run_page page = {.format = RP_RUN_EVENTS, .max_rows = 1000};
    uint64_t length = 0;
    uint32_t check;
    size_t at = 0, records = 0;
    static const uint8_t last[] = {
        0x09, 0,    0,   0,   0,    0,   0, 0x29, 0x40, /* wall_time 12.5 */
        0x10, 0x07,                                     /* step 7 */
        0x2a, 0x0d,                                     /* summary */
        0x0a, 0x0b,                                     /* value */
        0x0a, 0x04, 'l', 'o', 's',  's',                /* tag */
        0x15, 0,    0,   0,   0x3f,                     /* simple_value 0.5 */
    };
    add("a", "x", 0, (double)NAN);
    add("a", "loss", 7, 0.5);

    assert_int_equal(rp_runs_write_rows(runs, text("a"), &page, &out, NULL), RP_OK);

    while (at < out.size) {
        memcpy(&length, out.data + at, 8);
        memcpy(&check, out.data + at + 8, 4);
        assert_int_equal(check, masked(out.data + at, 8));
        assert_true(at + 16 + length <= out.size);
        memcpy(&check, out.data + at + 12 + length, 4);
        assert_int_equal(check, masked(out.data + at + 12, (size_t)length));
        if (records == 0)
            assert_memory_equal(out.data + at + 12 + 9,
                                "\x1a\x0d"
                                "brain.Event:2",
                                15);
        at += 16 + (size_t)length;
        records++;
    }
    assert_int_equal(records, 3);
    assert_int_equal(length, sizeof last);
    assert_memory_equal(out.data + out.size - 4 - sizeof last, last, sizeof last);
}

static void without_memory_the_buffer_is_bad(void **state)
{
    (void)state;
    rp_run_page page = {.format = RP_RUN_CSV, .max_rows = 10};
    add("a", "x", 0, 1);

    atomic_store(&oom.left, 0);
    rp_runs_write_list(runs, &out);
    assert_true(out.bad);
    rp_buf_clear(&out);
    assert_int_equal(rp_runs_write_json(runs, text("a"), 0, &out, NULL), RP_NO_RESOURCE);
    assert_int_equal(rp_runs_write_rows(runs, text("a"), &page, &out, NULL), RP_NO_RESOURCE);
    atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(run_text)
{
    const struct CMUnitTest tests[] = {
        TEST(the_list_names_runs_and_scalars),
        TEST(the_list_has_all_runs_however_long_the_names_of_scalars_are),
        TEST(pages_of_lines_are_bounded_and_complete),
        TEST(json_has_the_points_after_a_number),
        TEST(hostile_names_stay_within_their_strings),
        TEST(csv_is_made_page_by_page),
        TEST(event_files_are_records_with_checksums),
        TEST(without_memory_the_buffer_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
