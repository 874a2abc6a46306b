/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fixture.h"
#include "table/slots.h"

enum { MANY = 100000 };

/* What the table does before it exhumes. */
static void count_out(rp_slots *s)
{
    s->first_uncounted = RP_SLOT_NONE;
}

static void slots_are_taken_in_order_at_first(void **state)
{
    (void)state;
    rp_slots s;
    rp_slots_init(&s, rp_allocator_default());
    assert_ok(rp_slots_reserve(&s, 1000, 1000));

    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(rp_slots_take(&s), i);
        assert_int_equal(rp_slots_at(&s, i)->state, RP_SLOT_LIVE);
    }

    assert_int_equal(s.live, 1000);
    rp_slots_deinit(&s);
}

static void slot_freed_last_is_taken_first(void **state)
{
    (void)state;
    rp_slots s;
    rp_retired out[8];
    rp_slots_init(&s, rp_allocator_default());
    assert_ok(rp_slots_reserve(&s, 8, 8));
    for (int i = 0; i < 8; i++) (void)rp_slots_take(&s);

    rp_slots_retire(&s, 5);
    rp_slots_retire(&s, 2);
    rp_slots_retire(&s, 7);
    count_out(&s);
    assert_int_equal(rp_slots_reclaim(&s, out, 8), 3); /* oldest first: 5, 2, 7 */

    assert_int_equal(rp_slots_take(&s), 7);
    assert_int_equal(rp_slots_take(&s), 2);
    assert_int_equal(rp_slots_take(&s), 5);
    rp_slots_deinit(&s);
}

static void retired_slots_keep_their_trajectories_until_reclaimed(void **state)
{
    (void)state;
    rp_test_bed bed;
    rp_slots s;
    rp_retired out[4];
    rp_test_bed_init(&bed, NULL);
    rp_slots_init(&s, &bed.alloc);
    assert_ok(rp_slots_reserve(&s, 3, 3));
    for (uint32_t i = 0; i < 3; i++) {
        rp_slot *slot = rp_slots_at(&s, rp_slots_take(&s));
        slot->trajectory = rp_trajectory_ref(bed.plain);
        slot->references = 1;
    }

    rp_slots_retire(&s, 1);
    rp_slots_retire(&s, 0);
    assert_int_equal(s.first_uncounted, 1);
    count_out(&s);
    assert_int_equal(rp_slots_at(&s, 1)->state, RP_SLOT_RETIRED);
    assert_true(s.live == 1 && s.retired == 2);

    assert_int_equal(rp_slots_reclaim(&s, out, 1), 1);
    assert_true(out[0].trajectory == bed.plain && out[0].references == 1);
    rp_trajectory_unref(out[0].trajectory);
    assert_int_equal(rp_slots_at(&s, 1)->state, RP_SLOT_FREE);
    assert_int_equal(rp_slots_at(&s, 0)->state, RP_SLOT_RETIRED);
    rp_slots_deinit(&s); /* lets go of the live one and the dead one */
    rp_test_bed_deinit(&bed);
}

static void reclaiming_nothing_is_fine(void **state)
{
    (void)state;
    rp_slots s;
    rp_retired out[1];
    rp_slots_init(&s, rp_allocator_default());

    assert_int_equal(rp_slots_reclaim(&s, out, 1), 0);

    rp_slots_deinit(&s);
}

static void slots_stay_where_they_are_while_the_table_grows(void **state)
{
    (void)state;
    rp_slots s;
    rp_slot *first;
    rp_slots_init(&s, rp_allocator_default());
    assert_ok(rp_slots_reserve(&s, 1, MANY));
    first = rp_slots_at(&s, rp_slots_take(&s));
    first->key = 77;

    for (uint32_t i = 1; i < MANY; i++) {
        assert_ok(rp_slots_reserve(&s, 1, MANY));
        assert_int_equal(rp_slots_take(&s), i);
        rp_slots_at(&s, i)->key = i;
    }

    assert_ptr_equal(rp_slots_at(&s, 0), first);
    assert_int_equal(first->key, 77);
    for (uint32_t i = 1; i < MANY; i++) assert_int_equal(rp_slots_at(&s, i)->key, i);
    rp_slots_deinit(&s);
}

/* The smallest steps that callers take: the largest batch again and again, far beyond `most`.
 */
static void soft_tables_can_grow_beyond_their_bound_for_long(void **state)
{
    (void)state;
    rp_slots s;
    rp_slots_init(&s, rp_allocator_default());

    for (int i = 0; i < 3000; i++) {
        assert_ok(rp_slots_reserve(&s, 256, 10));
        for (int j = 0; j < 256; j++) (void)rp_slots_take(&s);
    }

    assert_int_equal(s.live, 3000 * 256);
    rp_slots_deinit(&s);
}

static void every_slot_is_one_cache_line(void **state)
{
    (void)state;
    rp_slots s;
    rp_slots_init(&s, rp_allocator_default());
    assert_ok(rp_slots_reserve(&s, 700, 700));

    for (uint32_t i = 0; i < 700; i++) assert_int_equal((uintptr_t)rp_slots_at(&s, i) % 64, 0);
    assert_int_equal(sizeof(rp_slot), 64);

    rp_slots_deinit(&s);
}

static rp_status grow(const rp_allocator *alloc)
{
    rp_slots s;
    rp_status st = RP_OK;

    rp_slots_init(&s, alloc);
    for (uint32_t n = 0; st == RP_OK && n < 6000; n++) {
        st = rp_slots_reserve(&s, 1, 100000);
        if (st == RP_OK) assert_int_equal(rp_slots_take(&s), n);
        assert_int_equal(s.live, st == RP_OK ? n + 1 : n);
    }
    rp_slots_deinit(&s);
    return st;
}

static void growth_survives_lack_of_memory(void **state)
{
    (void)state;
    rp_test_survives_oom(grow);
}

static void more_slots_than_there_can_be_are_refused(void **state)
{
    (void)state;
    rp_slots s;
    rp_slots_init(&s, rp_allocator_default());

    assert_int_equal(rp_slots_reserve(&s, ((size_t)1 << 31) + 1, SIZE_MAX / 2), RP_NO_RESOURCE);

    rp_slots_deinit(&s);
}

RP_TESTS(slots)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_taken_in_order_at_first),
        cmocka_unit_test(slot_freed_last_is_taken_first),
        cmocka_unit_test(retired_slots_keep_their_trajectories_until_reclaimed),
        cmocka_unit_test(reclaiming_nothing_is_fine),
        cmocka_unit_test(slots_stay_where_they_are_while_the_table_grows),
        cmocka_unit_test(soft_tables_can_grow_beyond_their_bound_for_long),
        cmocka_unit_test(every_slot_is_one_cache_line),
        cmocka_unit_test(growth_survives_lack_of_memory),
        cmocka_unit_test(more_slots_than_there_can_be_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
