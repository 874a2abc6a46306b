/* SPDX-License-Identifier: Apache-2.0 */
#include "buffer/sparse_array.h"
#include "support/unit.h"

static void elements_keep_what_is_written_to_them(void **state)
{
    (void)state;
    rp_sparse_array s;

    assert_ok(rp_sparse_array_init(&s, rp_allocator_default(), 24, 100000, 16));
    for (size_t i = 0; i < 100000; i += 7) {
        assert_ok(rp_sparse_array_need(&s, i));
        memcpy(rp_sparse_array_at(&s, i), &i, sizeof i);
    }

    for (size_t i = 0; i < 100000; i += 7) {
        assert_true(rp_sparse_array_has(&s, i));
        assert_memory_equal(rp_sparse_array_at(&s, i), &i, sizeof i);
    }
    assert_true(rp_sparse_array_memory(&s) >= 100000 * 24);
    rp_sparse_array_deinit(&s);
}

static void a_segment_that_was_dropped_is_used_again(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_sparse_array s;
    size_t length, made;

    assert_ok(rp_sparse_array_init(&s, &alloc, 1000, 100000, 16));
    length = rp_sparse_array_length(&s);
    assert_ok(rp_sparse_array_need(&s, 0));
    made = oom.total;
    for (size_t at = 0; at + length < 100000; at += length) {
        rp_sparse_array_drop(&s, at);
        assert_false(rp_sparse_array_has(&s, at));
        assert_ok(rp_sparse_array_need(&s, at + length));
    }

    assert_int_equal(oom.total, made);
    rp_sparse_array_deinit(&s);
    assert_int_equal(oom.live, 0);
}

static void large_elements_have_segments_of_their_own(void **state)
{
    (void)state;
    rp_sparse_array s;

    assert_ok(rp_sparse_array_init(&s, rp_allocator_default(), 40 << 20, 3, 16));
    assert_int_equal(rp_sparse_array_length(&s), 1);
    assert_ok(rp_sparse_array_need(&s, 2));
    assert_false(rp_sparse_array_has(&s, 1));
    rp_sparse_array_deinit(&s);
}

static void a_filled_array_has_all_segments(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_sparse_array s;
    size_t made;

    assert_ok(rp_sparse_array_init(&s, &alloc, 704, 40000, 64));
    assert_ok(rp_sparse_array_need(&s, 20000));
    memset(rp_sparse_array_at(&s, 20000), 7, 704);
    assert_ok(rp_sparse_array_fill(&s));
    made = oom.total;
    for (size_t i = 0; i < 40000; i++) assert_ok(rp_sparse_array_need(&s, i));

    assert_int_equal(oom.total, made);
    assert_true(rp_test_is_all(rp_sparse_array_at(&s, 20000), 7, 704));
    assert_true(rp_sparse_array_memory(&s) >= (size_t)40000 * 704);
    rp_sparse_array_deinit(&s);
    assert_int_equal(oom.live, 0);
}

static rp_status fill(const rp_allocator *alloc)
{
    rp_sparse_array s;
    rp_status st = rp_sparse_array_init(&s, alloc, 100, 5000, 16);

    if (st != RP_OK) return st;
    st = rp_sparse_array_fill(&s);
    for (size_t i = 0; i < 5000 && st == RP_OK; i++) st = rp_sparse_array_need(&s, i);
    rp_sparse_array_deinit(&s);
    return st;
}

static void out_of_memory_is_a_status(void **state)
{
    (void)state;
    rp_test_survives_oom(fill);
}

RP_TESTS(sparse_array)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_keep_what_is_written_to_them),
        cmocka_unit_test(a_segment_that_was_dropped_is_used_again),
        cmocka_unit_test(large_elements_have_segments_of_their_own),
        cmocka_unit_test(a_filled_array_has_all_segments),
        cmocka_unit_test(out_of_memory_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
