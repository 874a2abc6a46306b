/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "table/dense_set.h"

enum { SLOTS = 50 };

static void draws_come_from_the_set_with_their_probability(void **state)
{
    (void)state;
    rp_dense_set d = {0};
    rp_rng rng;
    uint32_t slots[100];
    double probabilities[100];
    rp_rng_init(&rng, 1);
    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), SLOTS));
    for (uint32_t i = 0; i < SLOTS; i += 5) rp_dense_set_add(&d, i);

    assert_int_equal(rp_dense_set_pick(&d, &rng, 100, false, slots, probabilities), 100);

    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(slots[i] % 5, 0);
        assert_true(probabilities[i] == 0.1);
    }
    rp_dense_set_deinit(&d, rp_allocator_default());
}

static void distinct_draw_is_a_permutation_and_keeps_the_set(void **state)
{
    (void)state;
    rp_dense_set d = {0};
    rp_rng rng;
    uint32_t slots[SLOTS];
    double probabilities[SLOTS];
    rp_rng_init(&rng, 2);
    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), SLOTS));
    for (uint32_t i = 0; i < 20; i++) rp_dense_set_add(&d, i);

    for (size_t count = 1; count <= SLOTS; count++) {
        bool seen[SLOTS] = {false};
        size_t n = rp_dense_set_pick(&d, &rng, count, true, slots, probabilities);
        assert_int_equal(n, count < 20 ? count : 20);
        for (size_t i = 0; i < n; i++) {
            assert_true(slots[i] < 20 && !seen[slots[i]]);
            seen[slots[i]] = true;
            assert_true(probabilities[i] == 1.0 / (double)(20 - i));
        }
        assert_true(rp_dense_set_check(&d) && d.count == 20);
    }
    rp_dense_set_deinit(&d, rp_allocator_default());
}

static void removal_moves_the_last_into_the_hole(void **state)
{
    (void)state;
    rp_dense_set d = {0};
    const uint32_t expected[] = {0, 4, 2, 3};
    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), SLOTS));
    for (uint32_t i = 0; i < 5; i++) rp_dense_set_add(&d, i);

    rp_dense_set_remove(&d, 1);

    assert_int_equal(d.count, 4);
    assert_memory_equal(d.slots, expected, sizeof expected);
    for (uint32_t i = 0; i < 4; i++) rp_dense_set_remove(&d, expected[i]);
    assert_int_equal(d.count, 0);
    assert_true(rp_dense_set_check(&d));
    rp_dense_set_deinit(&d, rp_allocator_default());
}

static void growth_keeps_the_order(void **state)
{
    (void)state;
    rp_dense_set d = {0};
    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), 8));
    for (uint32_t i = 0; i < 8; i++) rp_dense_set_add(&d, 7 - i);

    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), 8000));

    for (uint32_t i = 0; i < 8; i++) assert_int_equal(d.slots[i], 7 - i);
    assert_true(rp_dense_set_check(&d));
    rp_dense_set_add(&d, 7999);
    rp_dense_set_remove(&d, 7);
    assert_int_equal(d.slots[0], 7999);
    rp_dense_set_deinit(&d, rp_allocator_default());
}

static rp_status grow_twice(const rp_allocator *alloc)
{
    rp_dense_set d = {0};
    rp_status st = rp_dense_set_reserve(&d, alloc, 8);

    if (st == RP_OK) {
        rp_dense_set_add(&d, 3);
        st = rp_dense_set_reserve(&d, alloc, 100);
        assert_true(d.count == 1 && d.slots[0] == 3 && rp_dense_set_check(&d));
    }
    rp_dense_set_deinit(&d, alloc);
    return st;
}

static void growth_survives_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(grow_twice);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_come_from_the_set_with_their_probability),
        cmocka_unit_test(distinct_draw_is_a_permutation_and_keeps_the_set),
        cmocka_unit_test(removal_moves_the_last_into_the_hole),
        cmocka_unit_test(growth_keeps_the_order),
        cmocka_unit_test(growth_survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
