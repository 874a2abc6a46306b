/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/inbox.h"

#include "support/oom.h"
#include "support/streams.h"

static bool put(rp_inbox *box, uint64_t key, size_t bytes)
{
    rp_sink_item item = rp_test_sink_item("t", key, bytes);
    bool wakes;

    assert_true(rp_inbox_put(box, &item, 1, &wakes));
    return wakes;
}

/* Takes all, which are items first, first + 1, ... */
static void expect(rp_inbox *box, uint64_t first, size_t count)
{
    const rp_sink_item *items;

    assert_int_equal(rp_inbox_take(box, &items), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(items[i].key, first + i);
        rp_trajectory_unref(items[i].trajectory);
    }
    rp_inbox_done(box);
}

static void put_wakes_once_until_the_post_arrives(void **state)
{
    rp_inbox box;

    (void)state;
    rp_inbox_init(&box, rp_allocator_default());
    assert_false(rp_inbox_claim(&box, 0)); /* for nothing nobody is woken */
    assert_true(put(&box, 0, 8));
    assert_false(put(&box, 1, 8));
    assert_false(rp_inbox_claim(&box, 1));
    assert_true(rp_inbox_is_posted(&box));
    rp_inbox_on_posted(&box);
    assert_false(rp_inbox_is_posted(&box));
    expect(&box, 0, 2);
    expect(&box, 2, 0);
    assert_true(put(&box, 2, 8)); /* is let go of at the end */
    rp_inbox_deinit(&box);
}

static void a_near_reader_is_woken_for_many_or_large_items(void **state)
{
    rp_inbox box;
    uint64_t key = 0;

    (void)state;
    rp_inbox_init(&box, rp_allocator_default());
    assert_false(rp_inbox_set_near(&box, true));
    while (!put(&box, key, 8)) key++;
    assert_int_equal(key + 1, 256);
    rp_inbox_on_posted(&box);
    expect(&box, 0, 256);
    assert_false(put(&box, 0, 100000));
    assert_true(put(&box, 1, 100000)); /* or for large ones */
    rp_inbox_on_posted(&box);
    expect(&box, 0, 2);
    assert_false(put(&box, 0, 8));
    assert_false(rp_inbox_claim(&box, 2));
    assert_true(rp_inbox_claim(&box, 1)); /* or when somebody asks for it */
    rp_inbox_on_posted(&box);
    assert_true(rp_inbox_set_near(&box, false)); /* what waits is not left alone: B1 */
    rp_inbox_deinit(&box);
}

static void taken_items_stay_until_released(void **state)
{
    const rp_sink_item *items;
    rp_inbox box;

    (void)state;
    rp_inbox_init(&box, rp_allocator_default());
    (void)put(&box, 0, 8);
    assert_int_equal(rp_inbox_take(&box, &items), 1);
    rp_inbox_on_posted(&box);
    (void)put(&box, 1, 8);
    assert_int_equal(rp_inbox_take(&box, &items), 1);
    assert_int_equal(items[0].key, 0);
    rp_inbox_on_posted(&box);
    assert_false(rp_inbox_set_near(&box, false)); /* it comes back for them anyway */
    expect(&box, 0, 1);
    expect(&box, 1, 1);
    rp_inbox_deinit(&box);
}

/* Room that was made for one is not taken by another, even if there is no more memory. */
static void reserved_slots_are_kept_for_their_reserver(void **state)
{
    enum { MANY = 16 }; /* fill the first array */
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_sink_item items[MANY], one = rp_test_sink_item("t", 100, 8);
    const rp_sink_item *taken;
    rp_inbox box;
    bool wakes;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) items[i] = rp_test_sink_item("t", i, 8);
    rp_inbox_init(&box, &alloc);
    assert_true(rp_inbox_reserve(&box, MANY));
    oom.left = 0;
    assert_false(rp_inbox_put(&box, &one, 1, &wakes));
    assert_false(wakes);
    oom.left = RP_TEST_OOM_UNLIMITED;
    assert_true(rp_inbox_put(&box, &one, 1, &wakes));
    assert_true(wakes);
    rp_inbox_on_posted(&box);
    assert_int_equal(rp_inbox_take(&box, &taken), 0); /* not while room is kept */
    assert_false(rp_inbox_claim(&box, 1));
    oom.left = 0;
    assert_true(rp_inbox_put_reserved(&box, items, MANY));
    oom.left = RP_TEST_OOM_UNLIMITED;
    rp_inbox_on_posted(&box);
    assert_int_equal(rp_inbox_take(&box, &taken), 1 + MANY);
    assert_int_equal(taken[0].key, 100);
    for (uint64_t i = 0; i < MANY; i++) assert_int_equal(taken[1 + i].key, i);
    rp_inbox_deinit(&box);
    assert_int_equal(oom.live, 0);
}

static void releasing_a_reservation_wakes_for_other_items(void **state)
{
    rp_inbox box;

    (void)state;
    rp_inbox_init(&box, rp_allocator_default());
    assert_true(rp_inbox_reserve(&box, 3));
    assert_false(rp_inbox_put_reserved(&box, NULL, 0));
    assert_true(rp_inbox_reserve(&box, 3));
    assert_true(put(&box, 0, 8));
    rp_inbox_on_posted(&box); /* and could not take it */
    assert_true(rp_inbox_put_reserved(&box, NULL, 0));
    expect(&box, 0, 1);
    rp_inbox_deinit(&box);
}

RP_TESTS(inbox)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_wakes_once_until_the_post_arrives),
        cmocka_unit_test(a_near_reader_is_woken_for_many_or_large_items),
        cmocka_unit_test(taken_items_stay_until_released),
        cmocka_unit_test(reserved_slots_are_kept_for_their_reserver),
        cmocka_unit_test(releasing_a_reservation_wakes_for_other_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
