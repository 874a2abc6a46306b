/* SPDX-License-Identifier: Apache-2.0 */
/* The byte budget of a store while part of its memory is lost between items. */
#include "budget_fixture.h"

static void lose(world *w, uint64_t blobs)
{
    rp_store_info info;

    rp_budget_set_lost(w->a->account.budget, blobs * w->each);
    rp_store_get_info(w->bed.store, &info);
    assert_int_equal(info.lost_bytes, blobs * w->each);
}

static void items_are_evicted_for_lost_memory(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_EVICT, 6);
    for (uint64_t key = 0; key < 6; key++) assert_ok(put(&w, w.a, key));

    lose(&w, 2);
    assert_int_equal(used(&w), 6); /* nothing happens until somebody inserts */
    assert_ok(put(&w, w.a, 6));
    assert_int_equal(used(&w), 4);
    lose(&w, 5);
    assert_ok(put(&w, w.a, 7));
    assert_int_equal(used(&w), 1);
    lose(&w, 0);
    for (uint64_t key = 8; key < 16; key++) assert_ok(put(&w, w.a, key));
    assert_int_equal(used(&w), 6);
    world_deinit(&w);
}

static void refusal_names_the_lost_memory(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_REJECT, 4);
    assert_ok(put(&w, w.a, 0));
    lose(&w, 2);
    assert_ok(put(&w, w.b, 1));

    assert_fails(put(&w, w.a, 2), RP_NO_RESOURCE, &w.bed.err, "lost in memory between items");
    assert_non_null(strstr(w.bed.err.text, "delete items, or raise max_bytes"));
    take(w.b, 1);
    assert_ok(put(&w, w.a, 2));
    lose(&w, 0);
    assert_ok(put(&w, w.a, 3));
    assert_ok(put(&w, w.a, 4));
    assert_fails(put(&w, w.a, 5), RP_NO_RESOURCE, &w.bed.err, "all tables together take");
    assert_null(strstr(w.bed.err.text, "lost"));
    world_deinit(&w);
}

/* The memory that a checkpoint may keep: all that was removed since it began. */
static void removed_bytes_are_counted_issue_20(void **state)
{
    (void)state;
    world w;
    rp_budget *b;
    uint64_t before;

    world_init(&w, RP_BUDGET_REJECT, 4);
    b = rp_store_budget(w.bed.store);
    assert_ok(put(&w, w.a, 0));
    assert_ok(put(&w, w.b, 1));
    before = rp_budget_used(b);
    assert_int_equal(atomic_load(&b->freed), 0);
    take(w.b, 1);
    assert_int_equal(atomic_load(&b->freed), before - rp_budget_used(b));
    take(w.a, 0);
    assert_int_equal(atomic_load(&b->freed), before);
    world_deinit(&w);
}

static void insert_waits_until_less_memory_is_lost(void **state)
{
    (void)state;
    world w;
    waiter x, y;
    rp_waiting why;
    world_init(&w, RP_BUDGET_BLOCK, 4);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));
    lose(&w, 3);

    assert_false(start(&x, &w, w.a, 5));
    assert_false(start(&y, &w, w.b, 6));
    assert_int_equal(rp_table_waiting(w.a, &why, 1), 1);
    assert_non_null(strstr(why.why, "insert waits for bytes: all tables together take"));
    assert_non_null(strstr(why.why, "lost in memory between items; deletes or Reset"));
    lose(&w, 4);
    lose(&w, 2);
    assert_int_equal(x.calls + y.calls, 0);
    lose(&w, 1);
    assert_int_equal(x.calls + y.calls, 1);
    assert_int_equal(used(&w), 3);
    lose(&w, 0);

    assert_true(x.calls == 1 && y.calls == 1);
    assert_int_equal(used(&w), 4);
    assert_int_equal(waiting_for_bytes(&w), 0);
    world_deinit(&w);
}

/* An insert waits for room. Deleting all items is not enough: it goes on once fewer bytes are
 * lost as well. In a server the memory guard sets that number. */
static void insert_waits_for_both_deletes_and_lost_memory(void **state)
{
    (void)state;
    world w;
    waiter x;
    world_init(&w, RP_BUDGET_BLOCK, 4);
    for (uint64_t key = 0; key < 4; key++) assert_ok(put(&w, w.b, key));
    assert_false(start(&x, &w, w.a, 5));
    lose(&w, 4);
    for (uint64_t key = 0; key < 4; key++) take(w.b, key);

    assert_int_equal(x.calls, 0);
    lose(&w, 3);
    assert_true(x.calls == 1 && x.op.status == RP_OK);
    world_deinit(&w);
}

/* Table a has all items but those that the test adds. */
static void world_with_lost(world *w, uint64_t limit, uint64_t in_a, uint64_t lost)
{
    world_init(w, RP_BUDGET_EVICT, limit);
    for (uint64_t key = 0; key < in_a; key++) assert_ok(put(w, w->a, key));
    lose(w, lost);
}

static void a_table_with_too_little_waits_for_the_largest_one(void **state)
{
    (void)state;
    world w;
    waiter x;
    rp_waiting why;
    world_with_lost(&w, 20, 13, 8);

    assert_false(start(&x, &w, w.b, 21)); /* room for two is missing */
    assert_int_equal(rp_table_waiting(w.b, &why, 1), 1);
    assert_non_null(strstr(why.why, "items of the largest table are being evicted for it"));
    rp_store_relieve(w.bed.store);

    assert_true(x.calls == 1 && x.op.status == RP_OK);
    assert_int_equal(rp_test_info_of(w.a).evictions, 2);
    assert_int_equal(used(&w), 12);
    rp_store_relieve(w.bed.store); /* no insert waits: it changes nothing */
    assert_int_equal(used(&w), 12);
    world_deinit(&w);
}

/* An insert that waited for the largest table has gone: no item is evicted for it. */
static void nothing_is_evicted_for_a_withdrawn_insert(void **state)
{
    (void)state;
    world w;
    waiter x, y;
    world_with_lost(&w, 20, 13, 8);

    assert_false(start(&x, &w, w.b, 21));
    assert_true(rp_op_withdraw(&x.op, RP_CANCELLED));
    rp_store_relieve(w.bed.store);
    assert_int_equal(rp_test_info_of(w.a).evictions, 0);
    assert_false(start(&y, &w, w.b, 21)); /* one that comes now is helped */
    rp_store_relieve(w.bed.store);

    assert_true(y.calls == 1 && y.op.status == RP_OK);
    assert_int_equal(rp_test_info_of(w.a).evictions, 2);
    world_deinit(&w);
}

static void a_small_table_keeps_its_items_when_memory_is_lost(void **state)
{
    (void)state;
    world w;
    waiter x;
    world_with_lost(&w, 200, 18, 181);
    assert_ok(put(&w, w.b, 20));

    assert_false(start(&x, &w, w.b, 21)); /* room for one is missing, and it has one */
    rp_store_relieve(w.bed.store);

    assert_true(x.calls == 1 && x.op.status == RP_OK);
    assert_true(rp_test_has_key(w.b, 20) && rp_test_has_key(w.b, 21));
    assert_int_equal(rp_test_info_of(w.a).evictions, 1);
    world_deinit(&w);
}

/* The store was full of items when memory was lost: the table makes room for its own item. */
static void a_table_pays_for_its_own_item_when_memory_is_lost(void **state)
{
    (void)state;
    world w;
    waiter x;
    world_with_lost(&w, 20, 18, 0);
    for (uint64_t key = 20; key < 22; key++) assert_ok(put(&w, w.b, key));
    lose(&w, 8);

    assert_false(start(&x, &w, w.b, 22));
    assert_int_equal(rp_test_info_of(w.b).evictions, 1);
    rp_store_relieve(w.bed.store);

    assert_true(x.calls == 1 && x.op.status == RP_OK);
    assert_true(rp_test_info_of(w.b).size > 0);
    assert_true(rp_test_info_of(w.a).evictions >= 7);
    world_deinit(&w);
}

static void a_small_table_that_is_full_replaces_items_without_waiting(void **state)
{
    (void)state;
    world w;
    waiter x;
    rp_table_options o = rp_test_options("full", RP_FIFO, RP_FIFO, 1);
    world_with_lost(&w, 200, 18, 181);
    rp_table *full = rp_test_bed_table(&w.bed, &o);
    assert_ok(put(&w, full, 22));

    assert_true(start(&x, &w, full, 23));
    assert_ok(x.op.status);
    assert_true(rp_test_has_key(full, 23));
    world_deinit(&w);
}

static void an_insert_continues_when_less_memory_is_lost_without_eviction(void **state)
{
    (void)state;
    world w;
    waiter x;
    world_with_lost(&w, 20, 13, 8);

    assert_false(start(&x, &w, w.b, 21));
    lose(&w, 7);
    assert_int_equal(x.calls, 0);
    lose(&w, 6);

    assert_true(x.calls == 1 && x.op.status == RP_OK);
    assert_int_equal(rp_test_info_of(w.a).evictions, 0);
    world_deinit(&w);
}

/* It does not wait if it must not, if bytes of items are why there is no room, or if it is so
 * large that evicting everything might not be enough. */
static void other_inserts_are_refused_though_memory_is_lost(void **state)
{
    (void)state;
    world w;
    waiter x;
    rp_trajectory *large;
    world_with_lost(&w, 20, 13, 8);

    assert_fails(put(&w, w.b, 21), RP_NO_RESOURCE, &w.bed.err, "would not make room");
    large = rp_test_blob_trajectory(&w.bed.alloc, 500, 1500, (size_t)(6 * w.each));
    assert_true(start_with(&x, w.b, 22, large));
    assert_int_equal(x.op.status, RP_NO_RESOURCE);
    rp_trajectory_unref(large);
    world_deinit(&w);

    world_with_lost(&w, 16, 15, 1);
    large = rp_test_blob_trajectory(&w.bed.alloc, 500, 1500, (size_t)(3 * w.each));
    assert_true(start_with(&x, w.b, 22, large));
    assert_int_equal(x.op.status, RP_NO_RESOURCE);
    rp_trajectory_unref(large);
    world_deinit(&w);
}

RP_TESTS(budget_lost)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_evicted_for_lost_memory),
        cmocka_unit_test(refusal_names_the_lost_memory),
        cmocka_unit_test(removed_bytes_are_counted_issue_20),
        cmocka_unit_test(insert_waits_until_less_memory_is_lost),
        cmocka_unit_test(insert_waits_for_both_deletes_and_lost_memory),
        cmocka_unit_test(a_table_with_too_little_waits_for_the_largest_one),
        cmocka_unit_test(nothing_is_evicted_for_a_withdrawn_insert),
        cmocka_unit_test(a_small_table_keeps_its_items_when_memory_is_lost),
        cmocka_unit_test(a_table_pays_for_its_own_item_when_memory_is_lost),
        cmocka_unit_test(a_small_table_that_is_full_replaces_items_without_waiting),
        cmocka_unit_test(an_insert_continues_when_less_memory_is_lost_without_eviction),
        cmocka_unit_test(other_inserts_are_refused_though_memory_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
