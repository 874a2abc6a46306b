/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/item_list.h"

#include "chunk/trajectory.h"
#include "support/chunks.h"

static rp_sink_item item_of(uint64_t key)
{
    rp_chunk *chunk = rp_test_ints(key, RP_CODEC_NONE, 1, 1);
    rp_chunk_slice slice = {chunk, 0, 0, 1};
    rp_slices column = {&slice, 1, false};
    rp_sink_item item = {.key = key, .table = "t", .priority = 1.0};

    assert_ok(rp_trajectory_new(rp_allocator_default(), &column, 1, &item.trajectory, NULL));
    rp_chunk_unref(chunk);
    return item;
}

static void append(rp_item_list *list, uint64_t key)
{
    rp_sink_item item = item_of(key);

    assert_true(rp_item_list_reserve(list, 1));
    (void)rp_item_list_append(list, &item);
}

static void take(rp_item_list *list, uint64_t key)
{
    uint32_t slot = rp_item_list_find(list, key);
    rp_sink_item item;

    assert_int_not_equal(slot, RP_MAP_NONE);
    item = rp_item_list_remove(list, slot);
    assert_int_equal(item.key, key);
    rp_trajectory_unref(item.trajectory);
}

/* The keys in order, as a number in base 10. */
static uint64_t order(const rp_item_list *list)
{
    uint64_t keys = 0;
    uint32_t prev = RP_MAP_NONE;

    for (uint32_t i = list->first; i != RP_MAP_NONE; i = list->slots[i].next) {
        assert_int_equal(list->slots[i].prev, prev);
        keys = 10 * keys + list->slots[i].item.key;
        prev = i;
    }
    assert_int_equal(list->last, prev);
    return keys;
}

static void item_list_keeps_the_order(void **state)
{
    rp_item_list list;

    (void)state;
    rp_item_list_init(&list, rp_allocator_default(), 3);
    for (uint64_t key = 1; key <= 5; key++) append(&list, key);
    assert_int_equal(order(&list), 12345);
    rp_item_list_put_first(&list, rp_item_list_find(&list, 5));
    assert_int_equal(order(&list), 51234);
    rp_item_list_put_first(&list, rp_item_list_find(&list, 5));
    rp_item_list_put_first(&list, rp_item_list_find(&list, 1));
    assert_int_equal(order(&list), 15234);
    take(&list, 5);
    append(&list, 5);
    assert_int_equal(order(&list), 12345);
    take(&list, 3);
    assert_int_equal(order(&list), 1245);
    take(&list, 1);
    take(&list, 5);
    assert_int_equal(order(&list), 24);
    append(&list, 6); /* into a slot that was used before */
    append(&list, 7);
    assert_int_equal(order(&list), 2467);
    assert_int_equal(list.used, 5);
    assert_int_equal(rp_item_list_find(&list, 3), RP_MAP_NONE);
    take(&list, 2);
    take(&list, 4);
    take(&list, 6);
    take(&list, 7);
    assert_int_equal(order(&list), 0);
    append(&list, 8);
    assert_int_equal(order(&list), 8);
    rp_item_list_deinit(&list);
}

/* One that stays for ever does not make the list grow. */
static void an_old_item_does_not_grow_the_list(void **state)
{
    rp_item_list list;

    (void)state;
    rp_item_list_init(&list, rp_allocator_default(), 3);
    append(&list, 1);
    for (uint64_t key = 2; key < 10000; key++) {
        append(&list, key);
        if (key > 10) take(&list, key - 8);
    }
    assert_int_equal(list.capacity, 64);
    assert_int_equal(list.slots[list.first].item.key, 1);
    rp_item_list_deinit(&list);
}

static void find_looks_at_the_next_item_first(void **state)
{
    rp_item_list list;

    (void)state;
    rp_item_list_init(&list, rp_allocator_default(), 3);
    for (uint64_t key = 1; key <= 4; key++) append(&list, key);
    take(&list, 1);
    assert_int_equal(list.slots[list.hint].item.key, 2);
    take(&list, 4);
    assert_int_equal(list.hint, RP_MAP_NONE);
    take(&list, 2);
    take(&list, 3);
    assert_int_equal(rp_item_list_find(&list, 3), RP_MAP_NONE);
    rp_item_list_deinit(&list);
}

/* In order and out of it, against keys that are known. */
static void items_are_found_in_random_order(void **state)
{
    enum { KEYS = 300, STEPS = 20000 };
    bool is_there[KEYS] = {false};
    size_t count = 0;
    rp_item_list list;
    rp_rng rng;

    (void)state;
    rp_rng_init(&rng, 17);
    rp_item_list_init(&list, rp_allocator_default(), 3);
    for (size_t i = 0; i < STEPS; i++) {
        uint64_t key = rp_rng_below(&rng, KEYS);
        size_t what = rp_rng_below(&rng, 8);

        if (what < 4 && list.first != RP_MAP_NONE) { /* a run from the front */
            key = list.slots[list.first].item.key;
            is_there[key] = false;
            take(&list, key);
            count--;
        } else if (!is_there[key]) {
            assert_int_equal(what == 7 ? rp_item_list_find(&list, key) : RP_MAP_NONE,
                             RP_MAP_NONE);
            append(&list, key);
            is_there[key] = true;
            count++;
        } else if (what == 4) {
            take(&list, key);
            is_there[key] = false;
            count--;
        } else if (what == 5) {
            rp_item_list_put_first(&list, rp_item_list_find(&list, key));
            assert_int_equal(list.slots[list.first].item.key, key);
        }
        assert_int_equal(list.count, count);
    }
    for (uint64_t key = 0; key < KEYS; key++)
        assert_int_equal(rp_item_list_find(&list, key) != RP_MAP_NONE, is_there[key]);
    rp_item_list_deinit(&list);
}

/* Who is confirmed in order is never hashed. */
static void in_order_removal_needs_no_map(void **state)
{
    rp_item_list list;

    (void)state;
    rp_item_list_init(&list, rp_allocator_default(), 3);
    for (uint64_t key = 0; key < 100; key++) {
        append(&list, key);
        if (key % 7 < 5) continue; /* five wait, then seven are taken: it runs empty too */
        while (list.count > (key % 21 == 20 ? 0 : 2))
            take(&list, list.slots[list.first].item.key);
    }
    assert_int_equal(list.map.count, 0);
    rp_item_list_deinit(&list);
}

static rp_status fills(const rp_allocator *alloc)
{
    rp_item_list list;
    rp_status st = RP_OK;

    rp_item_list_init(&list, alloc, 3);
    for (uint64_t key = 1; st == RP_OK && key <= 200; key++) {
        if (rp_item_list_reserve(&list, 1)) {
            rp_sink_item item = item_of(key);
            (void)rp_item_list_append(&list, &item);
        } else {
            st = RP_NO_RESOURCE;
        }
    }
    rp_item_list_deinit(&list);
    return st;
}

static void survives_oom(void **state)
{
    (void)state;
    rp_test_survives_oom(fills);
}

RP_TESTS(item_list)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(item_list_keeps_the_order),
        cmocka_unit_test(an_old_item_does_not_grow_the_list),
        cmocka_unit_test(find_looks_at_the_next_item_first),
        cmocka_unit_test(items_are_found_in_random_order),
        cmocka_unit_test(in_order_removal_needs_no_map),
        cmocka_unit_test(survives_oom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
