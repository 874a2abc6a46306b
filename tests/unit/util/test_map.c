/* SPDX-License-Identifier: Apache-2.0 */
#include "support/unit.h"
#include "util/map.h"
#include "util/rng.h"

enum { SLOTS = 600, MOST_SLOTS = 1 << 14 };

/* A map with the keys its owner would keep: keys[slot], 0 for a slot that is not in it. */
typedef struct owner {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_map map;
    uint64_t keys[MOST_SLOTS];
    size_t count;
} owner;

static void owner_init(owner *o, uint64_t seed)
{
    memset(o, 0, sizeof *o);
    atomic_init(&o->oom.left, RP_TEST_OOM_UNLIMITED);
    o->alloc = rp_test_oom_allocator(&o->oom);
    rp_map_init(&o->map, &o->alloc, seed);
}

static void owner_deinit(owner *o)
{
    rp_map_deinit(&o->map);
    assert_int_equal(o->oom.live, 0);
}

static uint32_t look_up(const owner *o, uint64_t key)
{
    uint32_t tag = rp_map_tag(&o->map, key), slot;
    rp_map_cursor at = rp_map_start(&o->map, tag);

    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE) {
        assert_true(slot < MOST_SLOTS);
        if (o->keys[slot] == key) return slot;
    }
    return RP_MAP_NONE;
}

static void add(owner *o, uint64_t key, uint32_t slot)
{
    assert_ok(rp_map_reserve(&o->map, 1));
    rp_map_insert(&o->map, rp_map_tag(&o->map, key), slot);
    o->keys[slot] = key;
    o->count++;
}

static void take(owner *o, uint32_t slot)
{
    rp_map_remove(&o->map, rp_map_tag(&o->map, o->keys[slot]), slot);
    o->keys[slot] = 0;
    o->count--;
}

static void expect_all_found(const owner *o)
{
    assert_int_equal(o->map.count, o->count);
    for (uint32_t i = 0; i < MOST_SLOTS; i++)
        if (o->keys[i] != 0) assert_int_equal(look_up(o, o->keys[i]), i);
}

static void map_without_buckets_finds_nothing(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 1);

    assert_int_equal(look_up(&o, 42), RP_MAP_NONE);

    rp_map_clear(&o.map); /* neither does it mind being cleared */
    owner_deinit(&o);
}

static void map_finds_inserted_entries_and_nothing_else(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 2);

    for (uint32_t i = 0; i < 300; i++) add(&o, 1000 + i, i);

    expect_all_found(&o);
    for (uint64_t key = 2000; key < 3000; key++)
        assert_int_equal(look_up(&o, key), RP_MAP_NONE);
    owner_deinit(&o);
}

static void map_equals_a_plain_array_over_random_operations(void **state)
{
    (void)state;
    owner o;
    rp_rng rng;
    owner_init(&o, 3);
    rp_rng_init(&rng, 4);

    for (int i = 0; i < 60000; i++) {
        uint32_t slot = (uint32_t)rp_rng_below(&rng, SLOTS);
        if (o.keys[slot] != 0)
            take(&o, slot);
        else
            add(&o, 1 + (rp_rng_next(&rng) >> 1), slot);
        if (i % 997 == 0) expect_all_found(&o);
    }

    expect_all_found(&o);
    owner_deinit(&o);
}

static bool has(const rp_map *map, uint32_t tag, uint32_t slot)
{
    rp_map_cursor at = rp_map_start(map, tag);
    uint32_t found;

    do found = rp_map_next(tag, &at);
    while (found != slot && found != RP_MAP_NONE);
    return found == slot;
}

enum { CROWD = 24 };

/* Tags of our choosing: all at home at the very end, so that most spill over to the beginning.
 */
static uint32_t crowded_tag(uint32_t i)
{
    return i % 3 == 2 ? 1 + 2 * i
                      : UINT32_MAX - 2 * (i % 5); /* some do live at the beginning */
}

static void crowd(owner *o, uint64_t seed)
{
    owner_init(o, seed);
    assert_ok(rp_map_reserve(&o->map, CROWD));
    for (uint32_t i = 0; i < CROWD; i++) rp_map_insert(&o->map, crowded_tag(i), i);
}

static void entries_that_spill_over_are_found(void **state)
{
    (void)state;
    owner o;
    crowd(&o, 5);

    for (uint32_t i = 0; i < CROWD; i++) {
        assert_true(has(&o.map, crowded_tag(i), i));
        assert_false(has(&o.map, crowded_tag(i), CROWD + i));
    }
    rp_map_deinit(&o.map);
}

static void removal_from_full_buckets_hides_no_other_entry(void **state)
{
    (void)state;
    rp_rng rng;
    rp_rng_init(&rng, 6);

    for (int round = 0; round < 200; round++) {
        owner o;
        bool there[CROWD];
        crowd(&o, 6);
        memset(there, true, sizeof there);
        for (int step = 0; step < 60; step++) { /* remove and put back in any order */
            uint32_t one = (uint32_t)rp_rng_below(&rng, CROWD);
            if (there[one])
                rp_map_remove(&o.map, crowded_tag(one), one);
            else
                rp_map_insert(&o.map, crowded_tag(one), one);
            there[one] = !there[one];
            for (uint32_t i = 0; i < CROWD; i++)
                assert_int_equal(has(&o.map, crowded_tag(i), i), there[i]);
        }
        rp_map_deinit(&o.map);
    }
}

static void emptied_map_has_no_overflow_counts(void **state)
{
    (void)state;
    owner o;
    crowd(&o, 7);

    for (uint32_t i = 0; i < CROWD; i++) rp_map_remove(&o.map, crowded_tag(i), i);

    assert_int_equal(o.map.count, 0);
    for (size_t i = 0; i < (size_t)1 << o.map.now.bits; i++)
        assert_int_equal(o.map.now.buckets[i].passed, 0);
    rp_map_deinit(&o.map);
}

static void growth_keeps_every_entry(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 8);
    for (uint32_t i = 0; i < 30; i++) add(&o, 1 + i, i);

    for (size_t more = 1; more <= 1 << 14; more *= 4) {
        assert_ok(rp_map_reserve(&o.map, more));
        expect_all_found(&o);
    }

    owner_deinit(&o);
}

/* A full map of many entries moves a few of them with each reserve, and finds all meanwhile,
 * also after some were removed. */
static void growth_takes_many_steps(void **state)
{
    (void)state;
    enum { FULL = 3 << 12 }; /* of 2^12 buckets */
    owner o;
    rp_rng rng;
    uint32_t slot = 0, steps = 0;
    owner_init(&o, 14);
    rp_rng_init(&rng, 15);
    assert_ok(rp_map_reserve(&o.map, FULL));
    for (; slot < FULL; slot++) add(&o, 1 + slot, slot);
    assert_null(o.map.old.buckets);

    for (; steps == 0 || o.map.old.buckets != NULL; steps++, slot++) {
        uint32_t gone = (uint32_t)rp_rng_below(&rng, slot);
        add(&o, 1 + slot, slot); /* reserves room for one */
        if (o.keys[gone] != 0) take(&o, gone);
        if (steps % 8 == 0) expect_all_found(&o);
    }

    assert_in_range(steps, 32, 128); /* of 64 homes or a few more */
    expect_all_found(&o);
    owner_deinit(&o);
}

static void map_is_cleared_while_it_grows(void **state)
{
    (void)state;
    enum { FULL = 3 << 12 };
    owner o;
    owner_init(&o, 16);
    assert_ok(rp_map_reserve(&o.map, FULL));
    for (uint32_t slot = 0; slot < FULL; slot++) add(&o, 1 + slot, slot);
    assert_ok(rp_map_reserve(&o.map, 1));
    assert_non_null(o.map.old.buckets);

    rp_map_clear(&o.map);

    assert_int_equal(o.map.count, 0);
    for (uint64_t key = 1; key <= FULL; key++) assert_int_equal(look_up(&o, key), RP_MAP_NONE);
    memset(o.keys, 0, sizeof o.keys);
    o.count = 0;
    add(&o, 1, 1);
    expect_all_found(&o);
    owner_deinit(&o);
}

static void reserve_without_memory_changes_nothing(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 9);
    for (uint32_t i = 0; i < 32; i++) add(&o, 1 + i, i);
    atomic_store(&o.oom.left, 0);

    assert_int_equal(rp_map_reserve(&o.map, 1000), RP_NO_RESOURCE);

    expect_all_found(&o);
    owner_deinit(&o);
}

static void reserve_refuses_more_than_there_can_be(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 10);

    assert_int_equal(rp_map_reserve(&o.map, SIZE_MAX), RP_NO_RESOURCE);
    assert_int_equal(rp_map_reserve(&o.map, ((size_t)1 << 31) + 1), RP_NO_RESOURCE);

    owner_deinit(&o);
}

static void clear_forgets_entries_and_keeps_the_buckets(void **state)
{
    (void)state;
    owner o;
    owner_init(&o, 11);
    for (uint32_t i = 0; i < 100; i++) add(&o, 1 + i, i);
    uint32_t bits = o.map.now.bits;

    rp_map_clear(&o.map);

    for (uint64_t key = 1; key <= 100; key++) assert_int_equal(look_up(&o, key), RP_MAP_NONE);
    assert_int_equal(o.map.now.bits, bits);
    assert_int_equal(o.map.count, 0);
    owner_deinit(&o);
}

static void tags_depend_on_the_seed_and_spread(void **state)
{
    (void)state;
    owner a, b;
    size_t same = 0, buckets[64] = {0};
    owner_init(&a, 12);
    owner_init(&b, 13);

    for (uint64_t key = 0; key < 6400; key++) {
        same += rp_map_tag(&a.map, key) == rp_map_tag(&b.map, key);
        buckets[rp_map_tag(&a.map, key) >> 26]++;
    }

    assert_true(same < 5);
    for (int i = 0; i < 64; i++) assert_in_range(buckets[i], 30, 300); /* 100 expected */
    owner_deinit(&a);
    owner_deinit(&b);
}

static void entries_can_be_moved_in_with_their_buckets(void **state)
{
    (void)state;
    owner o;
    rp_map built;
    owner_init(&o, 5);
    add(&o, 77, 1); /* some room of its own, which goes */
    take(&o, 1);
    rp_map_init_like(&built, &o.map);
    assert_ok(rp_map_reserve(&built, 200));
    for (uint32_t slot = 0; slot < 200; slot++) {
        o.keys[slot] = 1000 + slot;
        rp_map_insert(&built, rp_map_tag(&o.map, 1000 + slot), slot);
    }

    rp_map_take(&o.map, &built);

    o.count = 200;
    expect_all_found(&o);
    assert_int_equal(built.count, 0);
    rp_map_deinit(&built);
    owner_deinit(&o);
}

RP_TESTS(map)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map_without_buckets_finds_nothing),
        cmocka_unit_test(map_finds_inserted_entries_and_nothing_else),
        cmocka_unit_test(map_equals_a_plain_array_over_random_operations),
        cmocka_unit_test(entries_that_spill_over_are_found),
        cmocka_unit_test(removal_from_full_buckets_hides_no_other_entry),
        cmocka_unit_test(emptied_map_has_no_overflow_counts),
        cmocka_unit_test(growth_keeps_every_entry),
        cmocka_unit_test(growth_takes_many_steps),
        cmocka_unit_test(map_is_cleared_while_it_grows),
        cmocka_unit_test(reserve_without_memory_changes_nothing),
        cmocka_unit_test(reserve_refuses_more_than_there_can_be),
        cmocka_unit_test(clear_forgets_entries_and_keeps_the_buckets),
        cmocka_unit_test(entries_can_be_moved_in_with_their_buckets),
        cmocka_unit_test(tags_depend_on_the_seed_and_spread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
