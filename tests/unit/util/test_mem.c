/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/mem.h"

static rp_test_oom oom;
static rp_allocator alloc;

static int set_up(void **state)
{
    (void)state;
    memset(&oom, 0, sizeof oom);
    atomic_init(&oom.left, RP_TEST_OOM_UNLIMITED);
    alloc = rp_test_oom_allocator(&oom);
    return 0;
}

static int nothing_is_left(void **state)
{
    (void)state;
    return atomic_load(&oom.live) == 0 && atomic_load(&oom.live_bytes) == 0 ? 0 : 1;
}

static bool is_zero(const void *ptr, size_t size)
{
    const char *bytes = ptr;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0) return false;
    return true;
}

static void sums_and_products_report_overflow(void **state)
{
    (void)state;
    size_t out = 0;

    assert_true(rp_size_add(SIZE_MAX - 1, 1, &out));
    assert_int_equal(out, SIZE_MAX);
    assert_false(rp_size_add(SIZE_MAX, 1, &out));
    assert_true(rp_size_mul((size_t)1 << 32, ((size_t)1 << 32) - 1, &out));
    assert_int_equal(out, 0xffffffff00000000u);
    assert_false(rp_size_mul((size_t)1 << 32, (size_t)1 << 32, &out));
}

static void zeroed_memory_is_zero(void **state)
{
    (void)state;
    void *a = rp_alloc_zero(&alloc, 1000), *b = rp_alloc_array(&alloc, 10, 16);

    assert_true(is_zero(a, 1000));
    assert_true(is_zero(b, 160));

    rp_release(&alloc, a, 1000);
    rp_release(&alloc, b, 160);
    rp_release(&alloc, NULL, 0);
}

static void array_whose_size_overflows_is_refused(void **state)
{
    (void)state;
    int *array = NULL;

    assert_null(rp_alloc_array(&alloc, SIZE_MAX / 8 + 1, 8));
    assert_null(rp_alloc_array(&alloc, 0, 8));
    assert_false(rp_resize_array(&alloc, &array, 0, SIZE_MAX / 2, sizeof *array));
    assert_null(array);
    assert_int_equal(oom.total, 0);
}

static void resized_array_keeps_its_elements_and_zeroes_new_ones(void **state)
{
    (void)state;
    int *array = NULL;

    assert_true(rp_resize_array(&alloc, &array, 0, 4, sizeof *array));
    for (int i = 0; i < 4; i++) array[i] = i + 1;
    assert_true(rp_resize_array(&alloc, &array, 4, 100, sizeof *array));

    for (int i = 0; i < 4; i++) assert_int_equal(array[i], i + 1);
    assert_true(is_zero(array + 4, 96 * sizeof *array));
    assert_true(rp_resize_array(&alloc, &array, 100, 2, sizeof *array));
    assert_int_equal(array[1], 2);
    rp_release(&alloc, array, 2 * sizeof *array);
}

static void array_that_cannot_grow_stays_as_it_was(void **state)
{
    (void)state;
    int *array = NULL, *before;
    assert_true(rp_resize_array(&alloc, &array, 0, 4, sizeof *array));
    array[3] = 42;
    before = array;
    atomic_store(&oom.left, 0);

    assert_false(rp_resize_array(&alloc, &array, 4, 8, sizeof *array));

    assert_ptr_equal(array, before);
    assert_int_equal(array[3], 42);
    rp_release(&alloc, array, 4 * sizeof *array);
}

static void aligned_memory_starts_at_a_cache_line_and_is_zero(void **state)
{
    (void)state;
    for (size_t size = 1; size < 3000; size = size * 3 / 2 + 1) {
        void *ptr = rp_alloc_aligned(&alloc, size);
        assert_int_equal((uintptr_t)ptr % RP_CACHE_LINE, 0);
        assert_true(is_zero(ptr, size));
        memset(ptr, 0xff, size); /* all of it is ours */
        rp_release_aligned(&alloc, ptr, size);
    }
    rp_release_aligned(&alloc, NULL, 5);
}

static void large_aligned_memory_starts_at_a_huge_page(void **state)
{
    (void)state;
    size_t huge = (size_t)2 << 20;

    for (size_t size = huge - 1; size <= huge + 1; size++) {
        void *ptr = rp_alloc_aligned(&alloc, size);
        assert_int_equal((uintptr_t)ptr % (size >= huge ? huge : RP_CACHE_LINE), 0);
        assert_true(is_zero(ptr, size));
        memset(ptr, 0xff, size);
        rp_release_aligned(&alloc, ptr, size);
    }
}

static void failed_aligned_allocation_is_null(void **state)
{
    (void)state;
    assert_null(rp_alloc_aligned(&alloc, SIZE_MAX));
    assert_null(rp_alloc_aligned(&alloc, SIZE_MAX - 100));
    atomic_store(&oom.left, 0);
    assert_null(rp_alloc_aligned(&alloc, 64));
}

static void default_allocator_allocates_resizes_and_frees(void **state)
{
    (void)state;
    const rp_allocator *a = rp_allocator_default();
    char *ptr = rp_alloc(a, 10);

    memcpy(ptr, "123456789", 10);
    ptr = a->resize(a->ctx, ptr, 10, 10000);
    assert_string_equal(ptr, "123456789");
    rp_release(a, ptr, 10000);
    assert_null(rp_alloc(a, 0)); /* which nobody should ask for: no block is so small */
    assert_ptr_equal(a, rp_allocator_default());
}

/* Across the bound between the pool and the C library, either way. */
static void default_allocator_keeps_contents_when_it_resizes(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,    15,   16,   17,   100,  255, 257,
                                   1000, 1025, 2047, 2048, 2049, 9000};
    const rp_allocator *a = rp_allocator_default();

    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t k = 0; k < COUNT_OF(sizes); k++) {
            size_t less = sizes[i] < sizes[k] ? sizes[i] : sizes[k];
            uint8_t *ptr = rp_alloc(a, sizes[i]);
            assert_non_null(ptr);
            memset(ptr, 7, sizes[i]);
            ptr = a->resize(a->ctx, ptr, sizes[i], sizes[k]);
            assert_non_null(ptr);
            assert_int_equal((uintptr_t)ptr % 16, 0);
            for (size_t j = 0; j < less; j++) assert_int_equal(ptr[j], 7);
            memset(ptr, 8, sizes[k]);
            rp_release(a, ptr, sizes[k]);
        }
    rp_release(a, NULL, 0);
    assert_null(a->resize(a->ctx, NULL, 0, 0));
}

static void touching_memory_changes_none_of_it(void **state)
{
    (void)state;
    enum { BYTES = 100000 };
    uint8_t *bytes = rp_alloc(rp_allocator_default(), BYTES);
    assert_non_null(bytes);
    memset(bytes, 7, BYTES);

    rp_touch(bytes, BYTES);
    rp_touch(bytes + 5, 3);
    rp_touch(bytes, 0);

    for (size_t i = 0; i < BYTES; i++) assert_int_equal(bytes[i], 7);
    rp_release(rp_allocator_default(), bytes, BYTES);
}

RP_TESTS(mem)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_and_products_report_overflow),
        cmocka_unit_test_setup_teardown(zeroed_memory_is_zero, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(array_whose_size_overflows_is_refused, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(resized_array_keeps_its_elements_and_zeroes_new_ones,
                                        set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(array_that_cannot_grow_stays_as_it_was, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(aligned_memory_starts_at_a_cache_line_and_is_zero,
                                        set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(large_aligned_memory_starts_at_a_huge_page, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(failed_aligned_allocation_is_null, set_up,
                                        nothing_is_left),
        cmocka_unit_test(default_allocator_allocates_resizes_and_frees),
        cmocka_unit_test(default_allocator_keeps_contents_when_it_resizes),
        cmocka_unit_test(touching_memory_changes_none_of_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
