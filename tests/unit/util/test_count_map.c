/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/count_map.h"
#include "util/rng.h"

enum { KEYS = 200 };

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
    return atomic_load(&oom.live) == 0 ? 0 : 1;
}

static void counts_go_up_and_down(void **state)
{
    (void)state;
    rp_count_map m;
    rp_count_map_init(&m, &alloc, 1);
    assert_ok(rp_count_map_reserve(&m, 2));

    assert_int_equal(rp_count_map_add(&m, 5), 1);
    assert_int_equal(rp_count_map_add(&m, 5), 2);
    assert_int_equal(rp_count_map_add(&m, 0), 1); /* 0 is a key like any other */
    assert_int_equal(rp_count_map_get(&m, 5), 2);
    assert_int_equal(rp_count_map_size(&m), 2);
    assert_int_equal(rp_count_map_sub(&m, 5), 1);
    assert_int_equal(rp_count_map_sub(&m, 5), 0);
    assert_int_equal(rp_count_map_get(&m, 5), 0);
    assert_int_equal(rp_count_map_get(&m, 0), 1);
    assert_int_equal(rp_count_map_size(&m), 1);
    rp_count_map_deinit(&m);
}

static void counts_equal_a_plain_array_over_random_operations(void **state)
{
    (void)state;
    uint32_t counts[KEYS] = {0};
    rp_count_map m;
    rp_rng rng;
    rp_count_map_init(&m, &alloc, 2);
    rp_rng_init(&rng, 3);

    for (int i = 0; i < 60000; i++) {
        size_t key = rp_rng_below(&rng, KEYS), size = 0;
        if (counts[key] > 0 && rp_rng_below(&rng, 2) == 0) {
            assert_int_equal(rp_count_map_sub(&m, key), --counts[key]);
        } else {
            assert_ok(rp_count_map_reserve(&m, 1));
            assert_int_equal(rp_count_map_add(&m, key), ++counts[key]);
        }
        if (i % 500 != 0) continue;
        for (size_t k = 0; k < KEYS; k++) {
            size += counts[k] > 0;
            assert_int_equal(rp_count_map_get(&m, k), counts[k]);
        }
        assert_int_equal(rp_count_map_size(&m), size);
    }
    rp_count_map_deinit(&m);
}

static void slots_are_reused(void **state)
{
    (void)state;
    rp_count_map m;
    rp_count_map_init(&m, &alloc, 4);
    assert_ok(rp_count_map_reserve(&m, 1));
    size_t capacity = m.capacity;

    for (uint64_t key = 0; key < 10000; key++) {
        assert_ok(rp_count_map_reserve(&m, 1));
        (void)rp_count_map_add(&m, key);
        (void)rp_count_map_sub(&m, key);
    }

    assert_int_equal(m.capacity, capacity);
    rp_count_map_deinit(&m);
}

static void reserve_without_memory_changes_nothing(void **state)
{
    (void)state;
    for (size_t room = 0;; room++) {
        rp_count_map m;
        rp_status st;
        rp_count_map_init(&m, &alloc, 6);
        assert_ok(rp_count_map_reserve(&m, 10));
        for (uint64_t key = 0; key < 10; key++) (void)rp_count_map_add(&m, key);

        atomic_store(&oom.left, room);
        st = rp_count_map_reserve(&m, 1000);
        atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);

        for (uint64_t key = 0; key < 10; key++) assert_int_equal(rp_count_map_get(&m, key), 1);
        rp_count_map_deinit(&m);
        if (st == RP_OK) break;
        assert_int_equal(st, RP_NO_RESOURCE);
    }
}

/* With room for every number of allocations: without memory for the smaller map all stays. */
static void trim_gives_memory_back_and_keeps_counts(void **state)
{
    enum { MANY = 5000, LEFT = 300 };
    size_t before, after;

    (void)state;
    for (size_t room = 0; room < 4; room++) {
        rp_count_map m;
        rp_count_map_init(&m, &alloc, 7);
        assert_ok(rp_count_map_reserve(&m, MANY));
        for (uint64_t key = 0; key < MANY; key++) (void)rp_count_map_add(&m, key);
        before = oom.live_bytes;
        rp_count_map_trim(&m);
        assert_int_equal(oom.live_bytes, before); /* all of it is in use */
        for (uint64_t key = LEFT; key < MANY; key++) (void)rp_count_map_sub(&m, key);
        for (uint64_t key = 0; key < LEFT; key += 2) (void)rp_count_map_add(&m, key);

        atomic_store(&oom.left, room);
        rp_count_map_trim(&m);
        atomic_store(&oom.left, RP_TEST_OOM_UNLIMITED);

        after = oom.live_bytes;
        assert_true(room < 2 ? after == before : after < before / 4);
        assert_int_equal(rp_count_map_size(&m), LEFT);
        for (uint64_t key = 0; key < MANY; key++)
            assert_int_equal(rp_count_map_get(&m, key), key < LEFT ? 2 - key % 2 : 0);
        assert_ok(rp_count_map_reserve(&m, MANY));
        for (uint64_t key = 0; key < MANY; key++) (void)rp_count_map_add(&m, key);
        assert_int_equal(rp_count_map_size(&m), MANY);
        rp_count_map_deinit(&m);
    }
}

static void a_key_comes_back_after_its_count_was_0(void **state)
{
    (void)state;
    rp_count_map m;

    rp_count_map_init(&m, &alloc, 5);
    assert_ok(rp_count_map_reserve(&m, 2));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rp_count_map_add(&m, 7), 1);
        assert_int_equal(rp_count_map_get(&m, 7), 1);
        assert_int_equal(rp_count_map_size(&m), 1);
        assert_int_equal(rp_count_map_add(&m, 9), 1);
        assert_int_equal(rp_count_map_add(&m, 7), 2);
        assert_int_equal(rp_count_map_sub(&m, 7), 1);
        assert_int_equal(rp_count_map_sub(&m, 9), 0);
        assert_int_equal(rp_count_map_sub(&m, 7), 0);
        assert_int_equal(rp_count_map_size(&m), 0);
    }
    rp_count_map_deinit(&m);
}

RP_TESTS(count_map)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counts_go_up_and_down, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(counts_equal_a_plain_array_over_random_operations,
                                        set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(slots_are_reused, set_up, nothing_is_left),
        cmocka_unit_test_setup_teardown(a_key_comes_back_after_its_count_was_0, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(reserve_without_memory_changes_nothing, set_up,
                                        nothing_is_left),
        cmocka_unit_test_setup_teardown(trim_gives_memory_back_and_keeps_counts, set_up,
                                        nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
