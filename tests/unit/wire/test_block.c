/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/block.h"

#include "support/unit.h"

static void a_block_lives_until_the_last_reference_is_dropped(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_block *block = rp_block_new(&alloc, 100);

    assert_non_null(block);
    assert_int_equal(block->size, 0);
    assert_int_equal(block->capacity, 100);
    assert_ptr_equal(rp_block_ref(block), block);
    rp_block_unref(block);
    assert_int_equal(oom.live, 1);
    rp_block_unref(block);
    assert_int_equal(oom.live, 0);
    rp_block_unref(NULL);
}

static void growing_keeps_the_bytes_and_never_shrinks(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_block *block = rp_block_new(&alloc, 4);

    assert_non_null(block);
    memcpy(block->data, "abcd", 4);
    block->size = 4;
    block = rp_block_grow(block, 1000);
    assert_non_null(block);
    assert_int_equal(block->capacity, 1000);
    assert_int_equal(block->size, 4);
    assert_memory_equal(block->data, "abcd", 4);
    assert_ptr_equal(rp_block_grow(block, 10), block);
    assert_ptr_equal(rp_block_grow(block, 1000), block);
    assert_int_equal(block->capacity, 1000);
    rp_block_unref(block);
    assert_int_equal(oom.live_bytes, 0);
}

static void an_empty_block_can_be_allocated(void **state)
{
    (void)state;
    rp_block *block = rp_block_new(rp_allocator_default(), 0);

    assert_non_null(block);
    assert_int_equal(block->capacity, 0);
    rp_block_unref(block);
}

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_block *block = rp_block_new(&alloc, 4);

    assert_non_null(block);
    assert_null(rp_block_new(&alloc, 4));
    assert_null(rp_block_grow(block, 5));
    assert_int_equal(block->capacity, 4);
    rp_block_unref(block);
    assert_int_equal(oom.live, 0);
}

static void sizes_that_overflow_give_null(void **state)
{
    (void)state;
    rp_block *block = rp_block_new(rp_allocator_default(), 1);

    assert_null(rp_block_new(rp_allocator_default(), SIZE_MAX));
    assert_null(rp_block_grow(block, SIZE_MAX - 1));
    rp_block_unref(block);
}

static rp_status make_apart(const rp_allocator *alloc)
{
    rp_test_oom other = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator data_alloc = rp_test_oom_allocator(&other);
    rp_block *block = rp_block_new_apart(alloc, &data_alloc, 100), *grown;

    if (block == NULL) {
        assert_int_equal(other.live, 0);
        return RP_NO_RESOURCE;
    }
    assert_int_equal(other.live_bytes, 100); /* its bytes, and nothing else */
    memcpy(block->data, "abcd", 4);
    block->size = 4;
    atomic_store(&other.left, 0);
    assert_null(rp_block_grow(block, 1000));
    assert_int_equal(block->capacity, 100);
    atomic_store(&other.left, RP_TEST_OOM_UNLIMITED);
    grown = rp_block_grow(block, 1000);
    assert_ptr_equal(grown, block);
    assert_int_equal(other.live_bytes, 1000);
    assert_memory_equal(block->data, "abcd", 4);
    rp_block_unref(block);
    assert_int_equal(other.live, 0);
    return RP_OK;
}

static void a_block_may_have_its_bytes_in_another_allocator(void **state)
{
    (void)state;
    rp_test_oom none = RP_TEST_OOM_INIT(0);
    rp_allocator data_alloc = rp_test_oom_allocator(&none);

    rp_test_survives_oom(make_apart);
    assert_null(rp_block_new_apart(rp_allocator_default(), &data_alloc, 10));
}

static void a_pool_reuses_released_blocks(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_block_pool *pool = rp_block_pool_new(&alloc);
    rp_block *small = rp_block_pool_get(pool, &alloc, 100);
    rp_block *block = rp_block_pool_get(pool, &alloc, RP_POOLED_BYTES + 100), *again;

    assert_non_null(small);
    assert_non_null(block);
    block->size = 7;
    rp_block_unref(small);
    rp_block_unref(block);
    assert_int_equal(oom.live, 2); /* the pool, and the large one */
    again = rp_block_pool_get(pool, &alloc, RP_POOLED_BYTES);
    assert_ptr_equal(again, block);
    assert_int_equal(again->size, 0);
    assert_int_equal(again->capacity, RP_POOLED_BYTES + 100);
    rp_block_pool_unref(pool); /* lives as long as the block */
    rp_block_unref(again);
    assert_int_equal(oom.live, 0);
}

static void a_pool_keeps_no_more_than_its_share(void **state)
{
    (void)state;
    enum { MANY = RP_POOL_KEPT_BYTES / RP_POOLED_MOST + 3 };
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_block_pool *pool = rp_block_pool_new(&alloc);
    rp_block *blocks[MANY], *huge = rp_block_pool_get(pool, &alloc, RP_POOLED_MOST + 1);

    for (size_t i = 0; i < MANY; i++)
        assert_non_null(blocks[i] = rp_block_pool_get(pool, &alloc, RP_POOLED_MOST));
    for (size_t i = 0; i < MANY; i++) rp_block_unref(blocks[i]);
    rp_block_unref(huge);
    assert_int_equal(oom.live, 1 + MANY - 3);
    rp_block_pool_unref(pool);
    assert_int_equal(oom.live, 0);
}

RP_TESTS(block)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_may_have_its_bytes_in_another_allocator),
        cmocka_unit_test(a_block_lives_until_the_last_reference_is_dropped),
        cmocka_unit_test(growing_keeps_the_bytes_and_never_shrinks),
        cmocka_unit_test(an_empty_block_can_be_allocated),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(sizes_that_overflow_give_null),
        cmocka_unit_test(a_pool_reuses_released_blocks),
        cmocka_unit_test(a_pool_keeps_no_more_than_its_share),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
