/* SPDX-License-Identifier: Apache-2.0 */
/* The byte budget that the tables of a store share, and its three policies. */
#include "chunk/trajectory.h"
#include "store/store.h"
#include "support/fixture.h"
#include "table/table.h"
#include "util/rng.h"

enum { BLOBS = 24, PAYLOAD = 100 };

typedef struct world {
    rp_test_bed bed;
    rp_trajectory *blobs[BLOBS]; /* all of one size */
    uint64_t each;
    rp_table *a, *b;
} world;

/* A store with room for `blobs` of them, and two fifo tables. */
static void world_init(world *w, rp_budget_policy policy, uint64_t blobs)
{
    rp_trajectory *probe = rp_test_blob_trajectory(rp_allocator_default(), 100, 1000, PAYLOAD);
    rp_table_options a = rp_test_options("a", RP_FIFO, RP_FIFO, 1000);
    rp_table_options b = rp_test_options("b", RP_FIFO, RP_FIFO, 1000);

    w->each = rp_trajectory_cost(probe);
    rp_trajectory_unref(probe);
    rp_test_bed_init(&w->bed,
                     &(rp_store_options){.max_bytes = blobs * w->each, .policy = policy});
    for (size_t i = 0; i < BLOBS; i++) {
        w->blobs[i] = rp_test_blob_trajectory(&w->bed.alloc, 100 + i, 1000 + i, PAYLOAD);
        assert_int_equal(rp_trajectory_cost(w->blobs[i]), w->each);
    }
    w->a = rp_test_bed_table(&w->bed, &a);
    w->b = rp_test_bed_table(&w->bed, &b);
}

static void world_deinit(world *w)
{
    assert_true(rp_table_check(w->a) && rp_table_check(w->b));
    for (size_t i = 0; i < BLOBS; i++) rp_trajectory_unref(w->blobs[i]);
    rp_test_bed_deinit(&w->bed);
}

static uint64_t used(world *w)
{
    rp_store_info info;

    rp_store_get_info(w->bed.store, &info);
    assert_true(info.bytes <= info.max_bytes); /* never above */
    return info.bytes / w->each;
}

/* Inserts blob `key` under that key. */
static rp_status put(world *w, rp_table *t, uint64_t key)
{
    return rp_test_try_put(t, key, 1, w->blobs[key], &w->bed.err);
}

static void take(rp_table *t, uint64_t key)
{
    size_t found;
    assert_ok(rp_table_delete(t, &key, 1, &found, NULL));
    assert_int_equal(found, 1);
}

static void full_store_evicts_from_the_table_that_inserts(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_EVICT, 4);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.a, key));
    for (uint64_t key = 2; key < 4; key++) assert_ok(put(&w, w.b, key));

    for (uint64_t key = 4; key < 10; key++) {
        assert_ok(put(&w, w.a, key));
        assert_int_equal(used(&w), 4);
    }

    assert_true(rp_test_has_key(w.a, 8) && rp_test_has_key(w.a, 9));
    assert_true(rp_test_has_key(w.b, 2) && rp_test_has_key(w.b, 3));
    assert_int_equal(rp_test_info_of(w.a).evictions, 6);
    world_deinit(&w);
}

static void insert_that_cannot_fit_evicts_nothing(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_EVICT, 4);
    for (uint64_t key = 0; key < 3; key++) assert_ok(put(&w, w.b, key));
    assert_ok(put(&w, w.a, 5));

    /* Twice the size: even without its one item, table a would leave room for only one. */
    rp_trajectory *large =
        rp_test_blob_trajectory(&w.bed.alloc, 500, 1500, (size_t)(2 * w.each));
    assert_fails(rp_test_try_put(w.a, 6, 1, large, &w.bed.err), RP_NO_RESOURCE, &w.bed.err,
                 "would not make room");
    rp_trajectory_unref(large);

    assert_true(rp_test_has_key(w.a, 5));
    assert_int_equal(rp_test_info_of(w.a).evictions, 0);
    assert_int_equal(used(&w), 4);
    world_deinit(&w);
}

static void full_table_makes_its_own_room_under_every_policy(void **state)
{
    (void)state;
    static const rp_budget_policy policies[] = {RP_BUDGET_EVICT, RP_BUDGET_BLOCK,
                                                RP_BUDGET_REJECT};

    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        world w;
        rp_table_options o = rp_test_options("full", RP_FIFO, RP_FIFO, 2);
        world_init(&w, policies[i], 4);
        rp_table *full = rp_test_bed_table(&w.bed, &o);
        for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));
        for (uint64_t key = 10; key < 12; key++) assert_ok(put(&w, full, key));

        assert_ok(put(&w, full, 12)); /* the oldest has to go anyway, and that makes room */

        assert_false(rp_test_has_key(full, 10));
        assert_true(rp_test_has_key(full, 12));
        assert_int_equal(used(&w), 4);
        world_deinit(&w);
    }
}

/* A trajectory that has the chunk of blob `index` and one of its own. */
static rp_trajectory *blob_and_more(world *w, size_t index)
{
    rp_slices column = rp_trajectory_slices(w->blobs[index], 0);
    rp_chunk *chunks[] = {column.slices[0].chunk,
                          rp_test_try_blob(&w->bed.alloc, 100 + BLOBS, 1000 + BLOBS, PAYLOAD)};
    rp_trajectory *trajectory = rp_test_try_join(&w->bed.alloc, chunks, 2);

    assert_non_null(trajectory);
    rp_chunk_unref(chunks[1]);
    assert_true(rp_trajectory_cost(trajectory) > w->each);
    return trajectory;
}

/* The chunk would leave with one and come back with the other. */
static void full_table_keeps_an_item_whose_chunk_the_new_one_needs(void **state)
{
    (void)state;
    static const rp_budget_policy policies[] = {RP_BUDGET_BLOCK, RP_BUDGET_REJECT};

    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        world w;
        rp_table_options o = rp_test_options("full", RP_FIFO, RP_FIFO, 1);
        world_init(&w, policies[i], 2);
        rp_table *full = rp_test_bed_table(&w.bed, &o);
        rp_trajectory *both = blob_and_more(&w, 1);
        assert_ok(put(&w, full, 1));
        assert_ok(put(&w, w.b, 2));
        rp_table_info before = rp_test_info_of(full);

        rp_status st = rp_test_try_put(full, 3, 1, both, &w.bed.err);

        assert_int_equal(st, policies[i] == RP_BUDGET_BLOCK ? RP_DEADLINE : RP_NO_RESOURCE);
        assert_unchanged(full, &before);
        assert_true(rp_test_has_key(full, 1));
        take(w.b, 2);
        assert_ok(rp_test_try_put(full, 3, 1, both, &w.bed.err));
        assert_true(rp_test_has_key(full, 3) && rp_test_info_of(full).evictions == 1);
        rp_trajectory_unref(both);
        world_deinit(&w);
    }
}

/* Draws from a full table with random choices, after so many inserts that were refused. */
static void draw_after_refusals(rp_budget_policy policy, int refusals, uint64_t *keys,
                                size_t count)
{
    world w;
    rp_table_options o = rp_test_options("full", RP_UNIFORM, RP_UNIFORM, 4);
    o.seed = 5;
    world_init(&w, policy, 4);
    rp_table *full = rp_test_bed_table(&w.bed, &o);
    rp_trajectory *large = rp_test_blob_trajectory(&w.bed.alloc, 500, 1500, 2 * PAYLOAD);
    assert_true(rp_trajectory_cost(large) > w.each);
    for (uint64_t key = 0; key < 4; key++) assert_ok(put(&w, full, key));

    for (int i = 0; i < refusals; i++)
        assert_int_not_equal(rp_test_try_put(full, 9, 1, large, NULL), RP_OK);

    for (size_t i = 0; i < count; i++) keys[i] = rp_test_draw(full).key;
    assert_int_equal(rp_test_info_of(full).evictions, 0);
    rp_trajectory_unref(large);
    world_deinit(&w);
}

static void refused_insert_does_not_change_what_is_drawn_after_it(void **state)
{
    (void)state;
    static const rp_budget_policy policies[] = {RP_BUDGET_BLOCK, RP_BUDGET_REJECT};

    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        uint64_t without[50], with[50];

        draw_after_refusals(policies[i], 0, without, 50);
        draw_after_refusals(policies[i], 3, with, 50);

        assert_memory_equal(without, with, sizeof with);
    }
}

static void insert_fails_when_its_table_has_nothing_left_to_evict(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_EVICT, 2);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));

    assert_fails(put(&w, w.a, 5), RP_NO_RESOURCE, &w.bed.err,
                 "evicting all of this table would not make room");

    assert_int_equal(rp_test_info_of(w.a).inserts, 0);
    assert_int_equal(used(&w), 2);
    world_deinit(&w);
}

static void full_store_rejects(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_REJECT, 3);
    for (uint64_t key = 0; key < 3; key++) assert_ok(put(&w, w.a, key));
    rp_table_info a = rp_test_info_of(w.a), b = rp_test_info_of(w.b);

    assert_fails(put(&w, w.a, 5), RP_NO_RESOURCE, &w.bed.err,
                 "delete items or raise the budget");
    assert_fails(put(&w, w.b, 5), RP_NO_RESOURCE, &w.bed.err, "all tables together take");
    assert_unchanged(w.a, &a);
    assert_unchanged(w.b, &b);
    take(w.a, 0);
    assert_ok(rp_test_try_put(w.b, 1, 1, w.blobs[1], NULL)); /* counts without its chunk */
    assert_fails(put(&w, w.b, 5), RP_NO_RESOURCE, &w.bed.err, "all tables together take");
    take(w.b, 1);
    assert_ok(put(&w, w.b, 5));
    assert_int_equal(used(&w), 3);
    world_deinit(&w);
}

static void batch_that_does_not_fit_goes_in_as_far_as_it_does(void **state)
{
    (void)state;
    world w;
    rp_insert items[6];
    size_t inserted = 0;
    world_init(&w, RP_BUDGET_REJECT, 4);
    for (size_t i = 0; i < 6; i++)
        items[i] = (rp_insert){.key = i, .priority = 1, .trajectory = w.blobs[i]};

    assert_int_equal(rp_table_insert(w.a, items, 6, rp_wait_none(), &inserted, &w.bed.err),
                     RP_NO_RESOURCE);

    assert_int_equal(inserted, 4);
    assert_int_equal(rp_test_info_of(w.a).size, 4);
    world_deinit(&w);
}

static void item_larger_than_the_budget_is_refused_by_every_policy(void **state)
{
    (void)state;
    rp_budget_policy policies[] = {RP_BUDGET_EVICT, RP_BUDGET_BLOCK, RP_BUDGET_REJECT};
    for (size_t i = 0; i < 3; i++) {
        world w;
        world_init(&w, policies[i], 1);
        rp_trajectory *large = rp_test_blob_trajectory(&w.bed.alloc, 1, 1, 2 * PAYLOAD);
        assert_ok(put(&w, w.a, 1));
        rp_table_info before = rp_test_info_of(w.a);

        assert_fails(rp_test_try_put(w.a, 2, 1, large, &w.bed.err), RP_NO_RESOURCE, &w.bed.err,
                     "bytes");
        assert_unchanged(w.a, &before);
        rp_trajectory_unref(large);
        world_deinit(&w);
    }
}

typedef struct waiter {
    rp_op op;
    rp_insert item;
    int calls;
} waiter;

static void count_call(rp_op *op)
{
    ((waiter *)op->user)->calls++;
}

static bool start_with(waiter *x, rp_table *t, uint64_t key, rp_trajectory *trajectory)
{
    *x = (waiter){.item = {.key = key, .priority = 1, .trajectory = trajectory}};
    x->op = (rp_op){.items = &x->item,
                    .count = 1,
                    .until_ns = RP_FOREVER,
                    .on_done = count_call,
                    .user = x};
    return rp_table_start_insert(t, &x->op);
}

static bool start(waiter *x, world *w, rp_table *t, uint64_t key)
{
    return start_with(x, t, key, w->blobs[key]);
}

static uint64_t waiting_for_bytes(world *w)
{
    return atomic_load(&w->a->account.budget->waiting);
}

static void full_store_blocks_until_another_table_deletes(void **state)
{
    (void)state;
    world w;
    waiter x;
    rp_waiting why;
    world_init(&w, RP_BUDGET_BLOCK, 2);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));

    assert_false(start(&x, &w, w.a, 5));
    assert_int_equal(rp_table_waiting(w.a, &why, 1), 1);
    assert_non_null(strstr(why.why, "insert waits for bytes: all tables together take"));
    assert_int_equal(waiting_for_bytes(&w), 1);
    take(w.b, 0);

    assert_true(x.calls == 1 && x.op.status == RP_OK && rp_test_has_key(w.a, 5));
    assert_int_equal(used(&w), 2);
    assert_int_equal(waiting_for_bytes(&w), 0);
    world_deinit(&w);
}

static void everything_that_frees_bytes_wakes_waiters(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        world w;
        waiter x;
        size_t inserted;
        world_init(&w, RP_BUDGET_BLOCK, 2);
        rp_table_options o = rp_test_options("c", RP_FIFO, RP_FIFO, 1);
        o.max_times_sampled = 1;
        o.soft_limit = true;
        rp_table *c = rp_test_bed_table(&w.bed, &o);
        for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, c, key));
        assert_false(start(&x, &w, w.a, 5));

        if (how == 0) take(c, 0);
        if (how == 1) assert_ok(rp_table_reset(c, NULL));
        if (how == 2) (void)rp_test_draw(c);
        if (how == 3) assert_ok(rp_table_trim(c, &inserted, NULL));

        assert_true(x.calls == 1 && x.op.status == RP_OK);
        world_deinit(&w);
    }
}

static void waiters_of_one_table_are_served_in_order(void **state)
{
    (void)state;
    world w;
    waiter x[3];
    world_init(&w, RP_BUDGET_BLOCK, 3);
    for (uint64_t key = 0; key < 3; key++) assert_ok(put(&w, w.b, key));
    for (size_t i = 0; i < 3; i++) assert_false(start(&x[i], &w, w.a, 5 + i));

    take(w.b, 0);
    assert_true(x[0].calls == 1 && x[1].calls == 0 && x[2].calls == 0);
    take(w.b, 1);
    assert_true(x[1].calls == 1 && x[2].calls == 0);
    take(w.b, 2);

    assert_true(x[2].calls == 1);
    assert_int_equal(waiting_for_bytes(&w), 0);
    world_deinit(&w);
}

/* There is room for the small one, but the large one was first. */
static void small_insert_does_not_overtake_a_large_one(void **state)
{
    (void)state;
    world w;
    waiter large, small;
    world_init(&w, RP_BUDGET_BLOCK, 3);
    rp_trajectory *two = rp_test_blob_trajectory(&w.bed.alloc, 1, 1, PAYLOAD + PAYLOAD / 2);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));
    large = (waiter){.item = {.key = 9, .priority = 1, .trajectory = two}};
    large.op = (rp_op){.items = &large.item,
                       .count = 1,
                       .until_ns = RP_FOREVER,
                       .on_done = count_call,
                       .user = &large};
    assert_false(rp_table_start_insert(w.a, &large.op));

    assert_fails(put(&w, w.a, 5), RP_DEADLINE, &w.bed.err, "1 others wait ahead");
    assert_false(start(&small, &w, w.a, 6));
    assert_ok(put(&w, w.b, 7)); /* another table is another queue */
    take(w.b, 7);
    take(w.b, 0);

    assert_true(large.calls == 1 && rp_test_has_key(w.a, 9));
    assert_true(small.calls == 0 && rp_op_withdraw(&small.op, RP_CANCELLED));
    rp_trajectory_unref(two);
    world_deinit(&w);
}

static void delete_in_its_own_table_wakes_a_waiter(void **state)
{
    (void)state;
    world w;
    waiter x;
    world_init(&w, RP_BUDGET_BLOCK, 1);
    assert_ok(put(&w, w.a, 0));
    assert_false(start(&x, &w, w.a, 5));

    take(w.a, 0);

    assert_true(x.calls == 1 && x.op.status == RP_OK);
    world_deinit(&w);
}

/* A queue of one, and bytes for one: what goes in needs the bytes of what has just left. */
static void queue_passes_its_bytes_on(rp_budget_policy policy, bool limit_table, bool by_delete)
{
    world w;
    waiter x;
    rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 10);
    world_init(&w, policy, limit_table ? 0 : 1);
    o.limiter = rp_limiter_queue(1);
    o.max_times_sampled = 1;
    o.max_bytes = limit_table ? w.each * 3 / 2 : 0;
    rp_table *q = rp_test_bed_table(&w.bed, &o);
    assert_ok(put(&w, q, 1));
    assert_false(start(&x, &w, q, 2));

    if (by_delete)
        take(q, 1);
    else
        assert_int_equal(rp_test_draw(q).key, 1);

    assert_int_equal(x.calls, 1);
    assert_ok_err(x.op.status, &x.op.error);
    assert_true(rp_test_has_key(q, 2));
    rp_table_info info = rp_test_info_of(q);
    assert_true(info.size == 1 && info.evictions == 0 && info.bytes == w.each);
    assert_true(rp_table_check(q));
    world_deinit(&w);
}

static void insert_that_waits_for_the_limiter_has_the_bytes_of_what_leaves(void **state)
{
    (void)state;
    static const rp_budget_policy policies[] = {RP_BUDGET_EVICT, RP_BUDGET_BLOCK,
                                                RP_BUDGET_REJECT};

    for (int by_delete = 0; by_delete < 2; by_delete++) {
        queue_passes_its_bytes_on(RP_BUDGET_EVICT, true, by_delete == 1);
        for (size_t i = 0; i < COUNT_OF(policies); i++)
            queue_passes_its_bytes_on(policies[i], false, by_delete == 1);
    }
}

static void insert_that_will_not_wait_leaves_no_trace(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_BLOCK, 1);
    assert_ok(put(&w, w.b, 0));
    rp_table_info before = rp_test_info_of(w.a);

    assert_fails(put(&w, w.a, 5), RP_DEADLINE, &w.bed.err, "insert waits for bytes");

    assert_unchanged(w.a, &before);
    assert_int_equal(waiting_for_bytes(&w), 0); /* or every delete would look for it */
    assert_false(w.a->waits_for_bytes);
    world_deinit(&w);
}

static void withdrawn_waiter_leaves_no_trace(void **state)
{
    (void)state;
    world w;
    waiter x, y;
    world_init(&w, RP_BUDGET_BLOCK, 1);
    assert_ok(put(&w, w.b, 0));
    assert_false(start(&x, &w, w.a, 5));
    assert_false(start(&y, &w, w.a, 6));

    assert_true(rp_op_withdraw(&x.op, RP_CANCELLED));
    assert_int_equal(waiting_for_bytes(&w), 1); /* the second one */
    take(w.b, 0);
    assert_true(y.calls == 1 && y.op.status == RP_OK);
    assert_int_equal(waiting_for_bytes(&w), 0);
    assert_false(start(&x, &w, w.b, 7));
    assert_true(rp_op_withdraw(&x.op, RP_CANCELLED));
    assert_int_equal(waiting_for_bytes(&w), 0);
    world_deinit(&w);
}

/* One waits in each table: what is freed goes to one of them, and then on. */
static void waiters_in_several_tables_all_get_their_turn(void **state)
{
    (void)state;
    world w;
    waiter x, y;
    world_init(&w, RP_BUDGET_BLOCK, 2);
    rp_table_options o = rp_test_options("c", RP_FIFO, RP_FIFO, 10);
    rp_table *c = rp_test_bed_table(&w.bed, &o);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, c, key));
    assert_false(start(&x, &w, w.a, 5));
    assert_false(start(&y, &w, w.b, 6));
    assert_int_equal(waiting_for_bytes(&w), 2);

    take(c, 0);
    assert_int_equal(x.calls + y.calls, 1);
    take(c, 1);

    assert_true(x.calls == 1 && y.calls == 1);
    assert_int_equal(used(&w), 2);
    assert_int_equal(waiting_for_bytes(&w), 0);
    world_deinit(&w);
}

static void budget_is_never_exceeded_under_any_policy(void **state)
{
    (void)state;
    rp_budget_policy policies[] = {RP_BUDGET_EVICT, RP_BUDGET_BLOCK, RP_BUDGET_REJECT};
    for (size_t p = 0; p < 3; p++) {
        world w;
        rp_rng rng;
        world_init(&w, policies[p], 7);
        rp_rng_init(&rng, 5 + p);

        for (int i = 0; i < 4000; i++) {
            rp_table *t = rp_rng_below(&rng, 2) == 0 ? w.a : w.b;
            uint64_t key = rp_rng_below(&rng, BLOBS);
            if (rp_rng_below(&rng, 3) == 0)
                assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
            else
                (void)put(&w, t, key);
            (void)used(&w); /* looks */
        }
        world_deinit(&w);
    }
}

static void lose(world *w, uint64_t blobs)
{
    rp_store_info info;

    rp_budget_set_lost(w->a->account.budget, blobs * w->each);
    rp_store_get_info(w->bed.store, &info);
    assert_int_equal(info.lost_bytes, blobs * w->each);
}

static void items_are_evicted_for_what_is_lost(void **state)
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

static void refusal_names_what_is_lost(void **state)
{
    (void)state;
    world w;
    world_init(&w, RP_BUDGET_REJECT, 4);
    assert_ok(put(&w, w.a, 0));
    lose(&w, 2);
    assert_ok(put(&w, w.b, 1));

    assert_fails(put(&w, w.a, 2), RP_NO_RESOURCE, &w.bed.err, "lost in memory between items");
    assert_non_null(strstr(w.bed.err.text, "delete items or raise the budget"));
    take(w.b, 1);
    assert_ok(put(&w, w.a, 2));
    lose(&w, 0);
    assert_ok(put(&w, w.a, 3));
    assert_ok(put(&w, w.a, 4));
    assert_fails(put(&w, w.a, 5), RP_NO_RESOURCE, &w.bed.err, "all tables together take");
    assert_null(strstr(w.bed.err.text, "lost"));
    world_deinit(&w);
}

static void insert_waits_until_less_is_lost(void **state)
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
static void insert_waits_for_both_deletes_and_what_is_lost(void **state)
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
    rp_store_relieve(w.bed.store); /* nobody waits: nothing happens */
    assert_int_equal(used(&w), 12);
    world_deinit(&w);
}

/* An insert that waited for the largest table has gone: no item is evicted for it. */
static void nothing_is_evicted_for_an_insert_that_has_gone(void **state)
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

static void an_insert_goes_on_when_less_is_lost_and_nothing_is_evicted(void **state)
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

RP_TESTS(budget)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_evicted_for_what_is_lost),
        cmocka_unit_test(refusal_names_what_is_lost),
        cmocka_unit_test(insert_waits_until_less_is_lost),
        cmocka_unit_test(insert_waits_for_both_deletes_and_what_is_lost),
        cmocka_unit_test(a_table_with_too_little_waits_for_the_largest_one),
        cmocka_unit_test(nothing_is_evicted_for_an_insert_that_has_gone),
        cmocka_unit_test(a_small_table_keeps_its_items_when_memory_is_lost),
        cmocka_unit_test(a_table_pays_for_its_own_item_when_memory_is_lost),
        cmocka_unit_test(a_small_table_that_is_full_replaces_items_without_waiting),
        cmocka_unit_test(an_insert_goes_on_when_less_is_lost_and_nothing_is_evicted),
        cmocka_unit_test(other_inserts_are_refused_though_memory_is_lost),
        cmocka_unit_test(full_store_evicts_from_the_table_that_inserts),
        cmocka_unit_test(insert_fails_when_its_table_has_nothing_left_to_evict),
        cmocka_unit_test(insert_that_cannot_fit_evicts_nothing),
        cmocka_unit_test(full_table_makes_its_own_room_under_every_policy),
        cmocka_unit_test(full_table_keeps_an_item_whose_chunk_the_new_one_needs),
        cmocka_unit_test(refused_insert_does_not_change_what_is_drawn_after_it),
        cmocka_unit_test(full_store_rejects),
        cmocka_unit_test(batch_that_does_not_fit_goes_in_as_far_as_it_does),
        cmocka_unit_test(item_larger_than_the_budget_is_refused_by_every_policy),
        cmocka_unit_test(full_store_blocks_until_another_table_deletes),
        cmocka_unit_test(everything_that_frees_bytes_wakes_waiters),
        cmocka_unit_test(waiters_of_one_table_are_served_in_order),
        cmocka_unit_test(small_insert_does_not_overtake_a_large_one),
        cmocka_unit_test(delete_in_its_own_table_wakes_a_waiter),
        cmocka_unit_test(insert_that_waits_for_the_limiter_has_the_bytes_of_what_leaves),
        cmocka_unit_test(insert_that_will_not_wait_leaves_no_trace),
        cmocka_unit_test(withdrawn_waiter_leaves_no_trace),
        cmocka_unit_test(waiters_in_several_tables_all_get_their_turn),
        cmocka_unit_test(budget_is_never_exceeded_under_any_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
