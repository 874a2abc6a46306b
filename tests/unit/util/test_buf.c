/* SPDX-License-Identifier: Apache-2.0 */
#include "util/buf.h"

#include "support/unit.h"

static void appending_keeps_every_byte_in_order(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_buf buf;

    rp_buf_init(&buf, &alloc);
    for (size_t i = 0; i < 3000; i++) rp_buf_append(&buf, &(uint8_t){(uint8_t)(i * 7)}, 1);

    assert_false(buf.bad);
    assert_int_equal(buf.size, 3000);
    for (size_t i = 0; i < 3000; i++) assert_int_equal(buf.data[i], (uint8_t)(i * 7));
    assert_int_equal(oom.live, 1);
    rp_buf_deinit(&buf);
    assert_int_equal(oom.live, 0);
    assert_null(buf.data);
    assert_int_equal(buf.capacity, 0);
}

static void empty_appends_allocate_nothing(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(0);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_buf buf;

    rp_buf_init(&buf, &alloc);
    rp_buf_append(&buf, NULL, 0);
    rp_buf_text(&buf, "");
    assert_false(buf.bad);
    assert_int_equal(oom.failed, 0);
    rp_buf_deinit(&buf);
}

static void a_clear_forgets_the_bytes_and_keeps_the_memory(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_buf buf;

    rp_buf_init(&buf, &alloc);
    rp_buf_text(&buf, "one");
    rp_buf_clear(&buf);
    rp_buf_text(&buf, "other");

    assert_int_equal(buf.size, 5);
    assert_memory_equal(buf.data, "other", 5);
    assert_int_equal(oom.total, 1);
    rp_buf_deinit(&buf);
}

static void a_failed_append_marks_the_buffer_bad_and_keeps_its_bytes(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    uint8_t much[1024] = {0};
    rp_buf buf;

    rp_buf_init(&buf, &alloc);
    rp_buf_text(&buf, "kept");
    rp_buf_append(&buf, much, sizeof much);
    assert_true(buf.bad);
    atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);
    rp_buf_text(&buf, "ignored, though it would fit");
    rp_buf_format(&buf, "%d", 7);

    assert_int_equal(buf.size, 4);
    assert_memory_equal(buf.data, "kept", 4);
    assert_null(rp_buf_reserve(&buf, 1));
    rp_buf_clear(&buf);
    assert_false(buf.bad);
    rp_buf_text(&buf, "again");
    assert_memory_equal(buf.data, "again", 5);
    rp_buf_deinit(&buf);
}

static void sizes_that_overflow_mark_the_buffer_bad(void **state)
{
    (void)state;
    rp_buf buf;

    rp_buf_init(&buf, rp_allocator_default());
    rp_buf_text(&buf, "x");
    assert_null(rp_buf_reserve(&buf, SIZE_MAX));
    assert_true(buf.bad);
    rp_buf_clear(&buf);
    assert_null(rp_buf_reserve(&buf, SIZE_MAX / 2 + 1));
    assert_true(buf.bad);
    rp_buf_deinit(&buf);
}

static void formatted_text_is_appended_whole_and_without_its_zero(void **state)
{
    (void)state;
    rp_buf buf;
    char expected[600];

    rp_buf_init(&buf, rp_allocator_default());
    memset(expected, 'x', 500);
    expected[500] = '\0';
    rp_buf_format(&buf, "%s", "");
    assert_int_equal(buf.size, 0);
    rp_buf_format(&buf, "%d:", 42);
    rp_buf_format(&buf, "%s", expected);

    assert_int_equal(buf.size, 503);
    assert_memory_equal(buf.data, "42:xxx", 6);
    assert_int_equal(buf.data[502], 'x');
    rp_buf_deinit(&buf);
}

static void reserved_bytes_are_written_directly(void **state)
{
    (void)state;
    rp_buf buf;
    uint8_t *at;

    rp_buf_init(&buf, rp_allocator_default());
    at = rp_buf_reserve(&buf, 1000);
    assert_non_null(at);
    memset(at, 5, 1000);
    buf.size += 1000;
    at = rp_buf_reserve(&buf, 1);

    assert_ptr_equal(at, buf.data + 1000);
    assert_true(buf.capacity > 1000);
    assert_int_equal(buf.data[999], 5);
    rp_buf_deinit(&buf);
}

static rp_status write_much(const rp_allocator *alloc)
{
    rp_buf buf;
    bool bad;

    rp_buf_init(&buf, alloc);
    for (int i = 0; i < 400; i++) rp_buf_format(&buf, "%d,", i);
    bad = buf.bad;
    rp_buf_deinit(&buf);
    return bad ? RP_NO_RESOURCE : RP_OK;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    rp_test_survives_oom(write_much);
}

static void a_bounded_buffer_never_exceeds_its_bound(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_buf buf;

    rp_buf_init(&buf, &alloc);
    buf.most = 1000;
    for (size_t i = 0; i < 1000; i++) rp_buf_append(&buf, "x", 1);
    assert_false(buf.bad || buf.full);
    assert_int_equal(buf.size, 1000);
    rp_buf_append(&buf, "x", 1);
    assert_true(buf.bad && buf.full);
    assert_int_equal(buf.size, 1000);
    assert_true(atomic_load(&oom.live_bytes) < 1100); /* not the next power of two */
    rp_buf_clear(&buf);
    for (size_t i = 0; i < 2000; i++) rp_buf_append(&buf, "x", 1); /* the bound is gone */
    assert_false(buf.bad || buf.full);
    rp_buf_deinit(&buf);
}

RP_TESTS(buf)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appending_keeps_every_byte_in_order),
        cmocka_unit_test(empty_appends_allocate_nothing),
        cmocka_unit_test(a_clear_forgets_the_bytes_and_keeps_the_memory),
        cmocka_unit_test(a_failed_append_marks_the_buffer_bad_and_keeps_its_bytes),
        cmocka_unit_test(sizes_that_overflow_mark_the_buffer_bad),
        cmocka_unit_test(formatted_text_is_appended_whole_and_without_its_zero),
        cmocka_unit_test(reserved_bytes_are_written_directly),
        cmocka_unit_test(a_bounded_buffer_never_exceeds_its_bound),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
