/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "table/selector/dense_set.h"

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

/* A set of three blocks and a half, slot i in place i, with a cut of it. */
enum { PLACES = 3 * RP_DENSE_BLOCK + RP_DENSE_BLOCK / 2 };
static uint32_t copies[PLACES];
static atomic_uchar saved[4];

static void cut_set_init(rp_dense_set *d, rp_dense_cut *cut)
{
    *d = (rp_dense_set){0};
    assert_ok(rp_dense_set_reserve(d, rp_allocator_default(), PLACES + 10));
    for (uint32_t i = 0; i < PLACES; i++) rp_dense_set_add(d, i);
    memset(saved, 0, sizeof saved);
    *cut = (rp_dense_cut){.count = PLACES, .copies = copies, .saved = saved};
    d->cut = cut;
}

/* D1 */
static void expect_as_cut(const rp_dense_set *d, const char *blocks)
{
    for (uint32_t i = 0; i < PLACES; i++) {
        bool is_saved = blocks[i / RP_DENSE_BLOCK] == 'x';

        assert_int_equal(saved[i / RP_DENSE_BLOCK], is_saved);
        assert_int_equal(is_saved ? copies[i] : d->slots[i], i);
    }
    assert_true(rp_dense_set_check(d));
}

static void blocks_are_saved_before_they_change(void **state)
{
    (void)state;
    rp_dense_set d;
    rp_dense_cut cut;
    cut_set_init(&d, &cut);

    rp_dense_set_add(&d, PLACES); /* beyond what was there */
    expect_as_cut(&d, "....");
    rp_dense_set_remove(&d, PLACES);
    rp_dense_set_remove(&d, 5); /* the last, of block 3, moves to block 0 */
    expect_as_cut(&d, "x...");
    rp_dense_set_remove(&d, RP_DENSE_BLOCK);
    expect_as_cut(&d, "xx..");
    rp_dense_set_add(&d, 5); /* over what was the last but one */
    expect_as_cut(&d, "xx.x");
    d.count = 0; /* as a selector is cleared */
    rp_dense_set_add(&d, 9);
    expect_as_cut(&d, "xx.x");

    rp_dense_set_deinit(&d, rp_allocator_default());
}

static void growth_keeps_what_a_cut_has_not_saved(void **state)
{
    (void)state;
    rp_dense_set d;
    rp_dense_cut cut;
    cut_set_init(&d, &cut);
    while (d.count > 100) rp_dense_set_remove(&d, d.slots[0]);
    expect_as_cut(&d, "x...");

    assert_ok(rp_dense_set_reserve(&d, rp_allocator_default(), 2 * PLACES));

    expect_as_cut(&d, "x...");
    rp_dense_set_deinit(&d, rp_allocator_default());
}

RP_TESTS(dense_set)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_come_from_the_set_with_their_probability),
        cmocka_unit_test(distinct_draw_is_a_permutation_and_keeps_the_set),
        cmocka_unit_test(removal_moves_the_last_into_the_hole),
        cmocka_unit_test(growth_keeps_the_order),
        cmocka_unit_test(growth_survives_lack_of_memory),
        cmocka_unit_test(blocks_are_saved_before_they_change),
        cmocka_unit_test(growth_keeps_what_a_cut_has_not_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
