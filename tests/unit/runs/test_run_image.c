/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "runs/run_text.h"
#include "support/hex.h"
#include "support/unit.h"
#include "util/rng.h"

static rp_test_oom oom;
static rp_allocator alloc;
static rp_runs *runs, *loaded;
static rp_run_view view;
static rp_buf image;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    rp_buf_init(&image, &alloc);
    runs = rp_runs_new(&alloc);
    loaded = rp_runs_new(&alloc);
    return runs != NULL && loaded != NULL ? 0 : 1;
}

static int nothing_is_left(void **state)
{
    (void)state;
    rp_buf_deinit(&image);
    rp_runs_free(runs);
    rp_runs_free(loaded);
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static rp_string text(const char *name)
{
    return (rp_string){name, strlen(name)};
}

/* A run with a series that was halved, one that was not, actors and an episode. */
static void fill(int64_t count)
{
    float states[] = {1, 2, -3, 4};
    rp_run_actor actors[] = {{text("one"), 0.5, (double)NAN, 3, 1}, {text("two"), 0, 1, -1, 0}};
    rp_run_episode episode = {text("cartpole"), states, 2, 2};

    for (int64_t i = 0; i < count; i++) {
        rp_scalar scalars[] = {{text("loss"), i, 1, (double)NAN}, {text("q \"<&"), i, 0, 0.25}};
        rp_run_report report = {text("a run"), scalars, i % 50 == 0 ? 2 : 1,
                                actors,        2,       i % 100 == 0 ? &episode : NULL};
        assert_int_equal(rp_runs_report(runs, &report, 100 + (double)i, NULL, NULL), RP_OK);
    }
}

static void save(void)
{
    rp_buf_clear(&image);
    assert_true(rp_runs_find(runs, text("a run"), &view));
    rp_runs_save(runs, view.id, &image);
    assert_false(image.bad);
}

static void an_image_is_loaded_as_it_was_saved(void **state)
{
    (void)state;
    rp_runs *first;
    rp_buf before, after;
    rp_run_page page = {.format = RP_RUN_CSV, .max_rows = 10};
    rp_buf_init(&before, &alloc);
    rp_buf_init(&after, &alloc);
    fill(2999);
    save();

    assert_int_equal(rp_runs_load(loaded, image.data, image.size, NULL), RP_OK);

    assert_true(rp_runs_check(loaded));
    assert_int_equal(rp_runs_write_json(runs, text("a run"), 0, &before, NULL), RP_OK);
    assert_int_equal(rp_runs_write_json(loaded, text("a run"), 0, &after, NULL), RP_OK);
    assert_int_equal(before.size, after.size);
    assert_memory_equal(before.data, after.data, before.size);
    /* It goes on as the first one does. */
    first = runs;
    runs = loaded;
    loaded = first;
    fill(1500);
    assert_true(rp_runs_check(runs));
    assert_int_equal(rp_runs_write_rows(runs, text("a run"), &page, &after, NULL), RP_OK);
    rp_buf_deinit(&before);
    rp_buf_deinit(&after);
}

static void a_run_of_the_same_name_is_not_replaced(void **state)
{
    (void)state;
    fill(10);
    save();

    assert_int_equal(rp_runs_load(runs, image.data, image.size, NULL), RP_EXISTS);
    assert_true(rp_runs_check(runs));
}

static void scalar_at(rp_runs *to, const char *name, double now_s)
{
    rp_scalar scalar = {text("x"), 0, 0, 0};
    rp_run_report report = {.run = text(name), .scalars = &scalar, .scalar_count = 1};

    assert_int_equal(rp_runs_report(to, &report, now_s, NULL, NULL), RP_OK);
}

static void loading_drops_no_run(void **state)
{
    (void)state;
    rp_runs_info info;
    fill(2999);
    save();
    scalar_at(loaded, "b", 1);
    rp_runs_get_info(loaded, &info);

    for (uint64_t more = 0; more < 131072; more += 4096) {
        rp_runs_set_most_bytes(loaded, info.bytes + more);
        if (rp_runs_load(loaded, image.data, image.size, NULL) == RP_OK) break;
        assert_true(rp_runs_find(loaded, text("b"), &view));
        assert_false(rp_runs_find(loaded, text("a run"), &view));
        assert_true(rp_runs_check(loaded));
    }
    assert_true(rp_runs_find(loaded, text("b"), &view));
    assert_true(rp_runs_find(loaded, text("a run"), &view));
    assert_true(rp_runs_check(loaded));
}

static void a_loaded_run_is_as_old_as_it_was(void **state)
{
    (void)state;
    rp_runs_info info;
    fill(100); /* the last report is at 199 s */
    save();
    assert_int_equal(rp_runs_load(loaded, image.data, image.size, NULL), RP_OK);
    scalar_at(runs, "ended long ago", 50);
    assert_true(rp_runs_find(runs, text("ended long ago"), &view));
    rp_buf_clear(&image);
    rp_runs_save(runs, view.id, &image);
    assert_int_equal(rp_runs_load(loaded, image.data, image.size, NULL), RP_OK);

    rp_runs_get_info(loaded, &info);
    rp_runs_set_most_bytes(loaded, info.bytes - 1);
    assert_true(rp_runs_find(loaded, text("a run"), &view));
    assert_false(rp_runs_find(loaded, text("ended long ago"), &view));
}

/* Numbers so high that the next ones would begin at 0 again. */
static void numbers_at_the_end_of_their_range_are_refused(void **state)
{
    (void)state;
    rp_test_bytes last =
        rp_test_bytes_of("0a0372756e 11000000000000f03f 190000000000000040 20ffffffffffffffff"
                         "ff01");

    assert_int_equal(rp_runs_load(loaded, last.data, last.size, NULL), RP_CORRUPT);
    assert_false(rp_runs_next(loaded, 0, &view));
}

/* An allocator that reports to a run whenever memory is asked for, and counts these reports. */
static rp_allocator plain;
static size_t reports_meanwhile;

static void *report_and_resize(void *ctx, void *block, size_t old_size, size_t new_size)
{
    rp_scalar scalar = {text("loss"), 0, 0, 0};
    rp_run_report report = {.run = text("a run"), .scalars = &scalar, .scalar_count = 1};

    (void)ctx;
    if (new_size > 0) {
        assert_int_equal(rp_runs_report(runs, &report, 1, NULL, NULL), RP_OK);
        reports_meanwhile++;
    }
    return plain.resize(plain.ctx, block, old_size, new_size);
}

static void a_run_changes_while_its_image_is_made(void **state)
{
    (void)state;
    static char names[RP_RUN_SERIES][8];
    static rp_scalar scalars[RP_RUN_SERIES];
    rp_run_report report = {.run = text("a run"), .scalars = scalars};
    rp_allocator busy;
    rp_buf out;

    fill(3000);
    for (size_t i = 0; i < RP_RUN_SERIES - 2; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        scalars[report.scalar_count++] = (rp_scalar){text(names[i]), 0, 0, 0};
    }
    for (int i = 0; i < 300; i++)
        assert_int_equal(rp_runs_report(runs, &report, 1, NULL, NULL), RP_OK);
    plain = alloc;
    busy = alloc;
    busy.resize = report_and_resize;
    reports_meanwhile = 0;
    rp_buf_init(&out, &busy);
    assert_true(rp_runs_find(runs, text("a run"), &view));

    rp_runs_save(runs, view.id, &out);

    assert_false(out.bad);
    assert_true(reports_meanwhile > 3); /* the lock was free between series */
    assert_int_equal(rp_runs_load(loaded, out.data, out.size, NULL), RP_OK);
    assert_true(rp_runs_check(loaded));
    assert_true(rp_runs_find(loaded, text("a run"), &view));
    assert_int_equal(view.series_count, RP_RUN_SERIES);
    rp_buf_deinit(&out);
}

static void damaged_images_are_refused_or_make_valid_runs(void **state)
{
    (void)state;
    const int rounds = (int)(3000 * (rp_test_scale() < 1 ? 0.2 : 1));
    rp_rng rng;
    rp_rng_init(&rng, 5);
    fill(70);
    save();

    for (int i = 0; i < rounds; i++) {
        size_t at = rp_rng_below(&rng, image.size);
        uint8_t was = image.data[at];
        rp_status st;

        image.data[at] ^= (uint8_t)(1 + rp_rng_below(&rng, 255));
        st = rp_runs_load(loaded, image.data, i % 4 == 0 ? at : image.size, NULL);
        assert_true(st == RP_OK || st == RP_CORRUPT || st == RP_NO_RESOURCE);
        assert_true(rp_runs_check(loaded));
        image.data[at] = was;
        rp_runs_set_most_bytes(loaded, 0);
        rp_runs_set_most_bytes(loaded, RP_RUNS_BYTES);
    }
}

static void a_failed_allocation_loads_nothing(void **state)
{
    (void)state;
    rp_status st = RP_NO_RESOURCE;
    fill(70);
    save();

    for (size_t room = 0; st != RP_OK; room++) {
        atomic_store(&oom.left, room);
        st = rp_runs_load(loaded, image.data, image.size, NULL);
        atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_true(rp_runs_check(loaded));
        if (st != RP_OK) assert_false(rp_runs_next(loaded, 0, &view));
    }
}

/* An image of the first version of the format: later versions must read it. */
static void an_image_of_the_first_version_is_read(void **state)
{
    (void)state;
    rp_test_bytes b = rp_test_bytes_of(
        "0a0372756e 11000000000000f03f 190000000000000040 2005"
        "2a6b 0a0178 1002 1804"
        "2240 0100000000000000 0000000000000000 000000000000f03f 000000000000f03f"
        "     0300000000000000 0200000000000000 000000000000f03f 000000000000f03f"
        "2a20 0400000000000000 0300000000000000 000000000000f03f 000000000000f03f"
        "3215 0a0161 11000000000000e03f 310000000000000840"
        "3a1e 0a08636172 74706f6c65 1002 1a10 0000803f 00000040 00004040 00008040"
        "4005");

    assert_int_equal(rp_runs_load(loaded, b.data, b.size, NULL), RP_OK);
    assert_int_equal(rp_runs_write_json(loaded, text("run"), 0, &image, NULL), RP_OK);
    rp_buf_append(&image, "", 1);
    assert_string_equal(
        (const char *)image.data,
        "{\"name\":\"run\",\"started\":1.000,\"last_seen\":2.000,\"next\":5,\"series\":{"
        "\"x\":{\"step\":[0,2,3],\"time\":[1.000,1.000,1.000],\"value\":[1,1,1]}},"
        "\"actors\":[{\"name\":\"a\",\"epsilon\":0.5,\"return\":0,\"version\":0,"
        "\"version_lag\":0,\"last_seen\":3.000}],\"episode\":{\"number\":5,"
        "\"env\":\"cartpole\",\"states\":[[1,2],[3,4]]}}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_is_left)

RP_TESTS(run_image)
{
    const struct CMUnitTest tests[] = {
        TEST(an_image_is_loaded_as_it_was_saved),
        TEST(a_run_of_the_same_name_is_not_replaced),
        TEST(loading_drops_no_run),
        TEST(a_loaded_run_is_as_old_as_it_was),
        TEST(numbers_at_the_end_of_their_range_are_refused),
        TEST(a_run_changes_while_its_image_is_made),
        TEST(damaged_images_are_refused_or_make_valid_runs),
        TEST(a_failed_allocation_loads_nothing),
        TEST(an_image_of_the_first_version_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
