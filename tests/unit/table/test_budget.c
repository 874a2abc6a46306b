/* SPDX-License-Identifier: Apache-2.0 */
/* The byte budget that the tables of a store share, and its three policies. Bytes that are lost
 * between items: test_budget_lost.c. */
#include "budget_fixture.h"
#include "util/rng.h"

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

static void full_table_evicts_its_own_items_under_every_policy(void **state)
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

static void refused_insert_does_not_change_later_draws(void **state)
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
                 "delete items, or raise max_bytes of the server (--max-bytes)");
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

static void batch_that_does_not_fit_is_inserted_in_part(void **state)
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

static void full_store_blocks_until_another_table_deletes(void **state)
{
    (void)state;
    world w;
    waiter x;
    rp_waiting why;
    char needs[80];
    world_init(&w, RP_BUDGET_BLOCK, 2);
    for (uint64_t key = 0; key < 2; key++) assert_ok(put(&w, w.b, key));

    assert_false(start(&x, &w, w.a, 5));
    assert_int_equal(rp_table_waiting(w.a, &why, 1), 1);
    assert_non_null(strstr(why.why, "insert waits for bytes: all tables together take"));
    (void)snprintf(needs, sizeof needs, ", and the item needs up to %zu; deletes",
                   x.item.trajectory->cost);
    assert_non_null(strstr(why.why, needs));
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
    assert_false(start_with(&large, w.a, 9, two));

    assert_fails(put(&w, w.a, 5), RP_DEADLINE, &w.bed.err, "1 other waits ahead");
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

static void insert_that_waits_for_the_limiter_counts_the_bytes_of_evicted_items(void **state)
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

static void insert_without_waiting_leaves_no_trace(void **state)
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

enum { CROWD = 60 };

/* Many tables, in each of which one insert waits for bytes. */
typedef struct crowd {
    rp_test_bed bed;
    rp_trajectory *blobs[CROWD];
    rp_table *from, *tables[CROWD];
    waiter waiters[CROWD];
    int64_t looks; /* at the clock, once in each try to insert */
    size_t reports;
} crowd;

static int64_t count_look(void *ctx)
{
    ((crowd *)ctx)->looks++;
    return 1;
}

static void count_report(void *user)
{
    ((crowd *)user)->reports++;
}

static size_t count_admitted(const crowd *c)
{
    size_t n = 0;

    for (int i = 0; i < CROWD; i++) n += (size_t)c->waiters[i].calls;
    return n;
}

/* Fills a budget of `items` blobs, and has an insert wait in each table. */
static void crowd_init(crowd *c, size_t items)
{
    rp_trajectory *probe = rp_test_blob_trajectory(rp_allocator_default(), 1000, 2000, PAYLOAD);
    rp_table_options o = rp_test_options("from", RP_FIFO, RP_FIFO, 1000);
    char name[16];

    memset(c, 0, sizeof *c);
    rp_test_bed_init(&c->bed,
                     &(rp_store_options){.max_bytes = items * rp_trajectory_cost(probe),
                                         .policy = RP_BUDGET_BLOCK});
    rp_trajectory_unref(probe);
    c->from = rp_test_bed_table(&c->bed, &o);
    for (size_t i = 0; i < items; i++) {
        probe = rp_test_blob_trajectory(&c->bed.alloc, 1000 + i, 2000 + i, PAYLOAD);
        rp_test_put(c->from, i, 1, probe);
        rp_trajectory_unref(probe);
    }
    for (size_t i = 0; i < CROWD; i++) {
        (void)snprintf(name, sizeof name, "t%zu", i);
        o = rp_test_options(name, RP_FIFO, RP_FIFO, 10);
        c->tables[i] = rp_test_bed_table(&c->bed, &o);
        c->tables[i]->wall_ns = count_look;
        c->tables[i]->wall_ctx = c;
        c->blobs[i] = rp_test_blob_trajectory(&c->bed.alloc, 3000 + i, 4000 + i, PAYLOAD);
        assert_false(start_with(&c->waiters[i], c->tables[i], 1, c->blobs[i]));
    }
    rp_budget_retry_later(rp_store_budget(c->bed.store), count_report, c);
    c->looks = 0;
}

static void crowd_deinit(crowd *c)
{
    rp_budget_retry_later(rp_store_budget(c->bed.store), NULL, c);
    for (size_t i = 0; i < CROWD; i++) {
        if (c->waiters[i].calls == 0)
            assert_true(rp_op_withdraw(&c->waiters[i].op, RP_CANCELLED));
        rp_trajectory_unref(c->blobs[i]);
    }
    rp_test_bed_deinit(&c->bed);
}

/* Continues as long as there is more to retry. Returns the number of steps. */
static size_t retry_all(crowd *c)
{
    size_t steps = 0;

    for (; c->reports > 0; steps++) {
        assert_int_equal(c->reports, 1); /* A8 */
        c->reports = 0;
        rp_budget_retry(rp_store_budget(c->bed.store));
    }
    return steps;
}

static void freed_bytes_retry_a_few_tables_at_once(void **state)
{
    enum { A_FEW = 8 };
    crowd c;

    (void)state;
    crowd_init(&c, 2);
    /* One blob is freed: the first waiter takes its bytes, the others are retried in vain. */
    take(c.from, 0);
    assert_true(c.looks <= A_FEW);
    assert_int_equal(c.waiters[0].calls, 1);
    assert_int_equal(retry_all(&c), (CROWD + A_FEW - 1) / A_FEW - 1);
    assert_int_equal(c.looks, CROWD); /* each table once */
    assert_int_equal(count_admitted(&c), 1);

    /* While tables are left to be retried, more bytes are freed: the queue goes on in order. */
    c.looks = 0;
    take(c.tables[0], 1);
    assert_int_equal(c.waiters[1].calls, 1);
    c.reports = 0;
    take(c.tables[1], 1);
    assert_true(c.looks <= 2 * A_FEW);
    assert_int_equal(count_admitted(&c), 3);
    (void)retry_all(&c);
    assert_int_equal(c.looks, A_FEW + CROWD - 3 + 1);
    crowd_deinit(&c);
}

static void every_table_that_fits_is_retried_in_the_end(void **state)
{
    crowd c;

    (void)state;
    crowd_init(&c, CROWD);
    assert_ok(rp_table_reset(c.from, NULL)); /* bytes for all of them */
    assert_true(count_admitted(&c) < CROWD);
    (void)retry_all(&c);
    assert_int_equal(count_admitted(&c), CROWD);
    crowd_deinit(&c);
}

static void tables_are_retried_at_once_when_nobody_continues(void **state)
{
    crowd c;

    (void)state;
    crowd_init(&c, CROWD);
    assert_ok(rp_table_reset(c.from, NULL));
    assert_int_equal(c.reports, 1);
    rp_budget_retry_later(rp_store_budget(c.bed.store), NULL, &c);
    assert_int_equal(count_admitted(&c), CROWD);
    crowd_deinit(&c);
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

RP_TESTS(budget)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_store_evicts_from_the_table_that_inserts),
        cmocka_unit_test(insert_fails_when_its_table_has_nothing_left_to_evict),
        cmocka_unit_test(insert_that_cannot_fit_evicts_nothing),
        cmocka_unit_test(full_table_evicts_its_own_items_under_every_policy),
        cmocka_unit_test(full_table_keeps_an_item_whose_chunk_the_new_one_needs),
        cmocka_unit_test(refused_insert_does_not_change_later_draws),
        cmocka_unit_test(full_store_rejects),
        cmocka_unit_test(batch_that_does_not_fit_is_inserted_in_part),
        cmocka_unit_test(item_larger_than_the_budget_is_refused_by_every_policy),
        cmocka_unit_test(full_store_blocks_until_another_table_deletes),
        cmocka_unit_test(everything_that_frees_bytes_wakes_waiters),
        cmocka_unit_test(waiters_of_one_table_are_served_in_order),
        cmocka_unit_test(small_insert_does_not_overtake_a_large_one),
        cmocka_unit_test(delete_in_its_own_table_wakes_a_waiter),
        cmocka_unit_test(insert_that_waits_for_the_limiter_counts_the_bytes_of_evicted_items),
        cmocka_unit_test(insert_without_waiting_leaves_no_trace),
        cmocka_unit_test(withdrawn_waiter_leaves_no_trace),
        cmocka_unit_test(waiters_in_several_tables_all_get_their_turn),
        cmocka_unit_test(freed_bytes_retry_a_few_tables_at_once),
        cmocka_unit_test(every_table_that_fits_is_retried_in_the_end),
        cmocka_unit_test(tables_are_retried_at_once_when_nobody_continues),
        cmocka_unit_test(budget_is_never_exceeded_under_any_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
