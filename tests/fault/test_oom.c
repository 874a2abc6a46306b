/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of every table operation fails once. Each time the operation says
 * RP_NO_RESOURCE, the table is as it was before, and in the end nothing is left. */
#include "support/fixture.h"
#include "table/op.h"
#include "table/spill.h"
#include "table/table.h"

enum { LOTS = 700 };

typedef struct world {
    rp_test_bed bed;
    rp_table *table, *target;
    rp_insert items[LOTS];
    rp_sample samples[LOTS];
    rp_op op;
    rp_sample_options options;
    int calls;
    size_t told;
} world;

static void count_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)view, (void)events;
    *(size_t *)ctx += count;
}

/* A table of up to 600 items with `count` in it: keys 0, 1, ..., priorities 0, 1, 2, 0, ... */
static void world_init(world *w, rp_selector_kind kind, bool deferred, size_t count)
{
    rp_extension e = {
        .name = "count", .deferred = true, .ctx = &w->told, .on_events = count_events};
    rp_table_options o = rp_test_options("t", kind, kind, 600);

    w->calls = 0;
    w->told = 0;
    rp_test_bed_init(&w->bed, NULL);
    if (deferred) {
        o.extensions = &e;
        o.extension_count = 1;
    }
    w->table = rp_test_bed_table(&w->bed, &o);
    for (size_t i = 0; i < LOTS; i++)
        w->items[i] =
            (rp_insert){.key = i, .priority = (double)(i % 3), .trajectory = w->bed.plain};
    if (count > 0)
        assert_ok(rp_table_insert(w->table, w->items, count, rp_wait_none(), NULL, NULL));
}

/* Runs `act` in new worlds with room for 0, 1, 2, ... allocations until it succeeds, which must
 * take `least_allocations`. Returns how many it took. */
static size_t survive(rp_selector_kind kind, bool deferred, size_t count,
                      rp_status (*act)(world *), size_t least_allocations)
{
    world *w = malloc(sizeof *w);
    size_t room = 0;
    rp_status st = RP_NO_RESOURCE;

    assert_non_null(w);
    for (; st != RP_OK; room++) {
        rp_table_info before;
        world_init(w, kind, deferred, count);
        before = rp_test_info_of(w->table);
        atomic_store(&w->bed.oom.left, room);
        st = act(w);
        atomic_store(&w->bed.oom.left, RP_TEST_OOM_UNLIMITED);
        if (st != RP_OK) {
            assert_int_equal(st, RP_NO_RESOURCE);
            assert_unchanged(w->table, &before);
            for (uint64_t key = 0; key < LOTS; key += 7)
                assert_int_equal(rp_test_has_key(w->table, key), key < count);
        }
        assert_true(rp_table_check(w->table));
        rp_test_bed_deinit(&w->bed);
    }
    assert_true(room > least_allocations);
    free(w);
    return room - 1;
}

static void survive_with_every_kind(bool deferred, size_t count, rp_status (*act)(world *),
                                    size_t least_allocations)
{
    for (int kind = 0; kind < 6; kind++)
        (void)survive((rp_selector_kind)kind, deferred, count, act, least_allocations);
}

static rp_status make_store(const rp_allocator *alloc)
{
    rp_store *s = NULL;
    rp_status st = rp_store_new(&(rp_store_options){.alloc = alloc, .seed = 1}, &s, NULL);

    rp_store_free(s);
    return st;
}

static void store_is_made_or_not(void **state)
{
    (void)state;
    rp_test_survives_oom(make_store);
}

static rp_status add_every_kind(const rp_allocator *alloc)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    rp_store *s = NULL;
    rp_error err = {0};
    rp_status st = rp_store_new(&(rp_store_options){.alloc = alloc, .seed = 1}, &s, NULL);

    for (int kind = 0; st == RP_OK && kind < 6; kind++) {
        rp_table_options o =
            rp_test_options(names[kind], (rp_selector_kind)kind, (rp_selector_kind)kind, 10);
        st = rp_store_add_table(s, &o, NULL, &err);
        if (st != RP_OK) assert_null(rp_test_table(s, names[kind]));
        if (st != RP_OK) assert_int_equal(err.code, RP_NO_RESOURCE);
    }
    rp_store_free(s);
    return st;
}

static void tables_of_every_kind_are_added_or_not(void **state)
{
    (void)state;
    rp_test_survives_oom(add_every_kind);
}

static rp_status add_with_extensions(const rp_allocator *alloc)
{
    rp_store *s = NULL;
    rp_table *target = NULL;
    rp_extension e[3] = {{0}};
    rp_table_options o = rp_test_options("target", RP_FIFO, RP_FIFO, 10);
    rp_status st = rp_store_new(&(rp_store_options){.alloc = alloc, .seed = 1}, &s, NULL);

    if (st == RP_OK) st = rp_store_add_table(s, &o, &target, NULL);
    if (st == RP_OK) st = rp_statistics_extension(alloc, &e[0]);
    if (st == RP_OK) st = rp_diffusion_extension(alloc, 3, 0.5, &e[1], NULL);
    if (st == RP_OK) st = rp_insert_on_sample_extension(alloc, target, 0, &e[2], NULL);
    o = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 10);
    o.extensions = e;
    o.extension_count = 3;
    if (st == RP_OK) st = rp_store_add_table(s, &o, NULL, NULL);
    if (st != RP_OK) /* they are still ours */
        for (size_t i = 0; i < 3; i++) rp_extension_discard(&e[i]);
    rp_store_free(s);
    return st;
}

static void table_with_extensions_is_added_or_not(void **state)
{
    (void)state;
    rp_test_survives_oom(add_with_extensions);
}

static rp_status insert_one(world *w)
{
    size_t inserted = 9;
    rp_insert item = w->items[0];
    rp_status st;

    item.key = 100000;
    st = rp_table_insert(w->table, &item, 1, rp_wait_none(), &inserted, &w->bed.err);
    assert_int_equal(inserted, st == RP_OK);
    return st;
}

static void first_insert_happens_or_not(void **state)
{
    (void)state;
    survive_with_every_kind(false, 0, insert_one, 4);
    survive_with_every_kind(true, 0, insert_one, 5);
}

static void insert_that_grows_the_table_happens_or_not(void **state)
{
    (void)state;
    for (int kind = 0; kind < 6; kind++) {
        size_t needed = 0;
        for (size_t count = 32; count < 600; count += 32) /* one of these is a full one */
            needed += survive((rp_selector_kind)kind, kind % 2 == 0, count, insert_one, 0);
        assert_true(needed > 3);
    }
}

static void insert_that_evicts_happens_or_not(void **state)
{
    (void)state;
    survive_with_every_kind(true, 600, insert_one, 0);
}

/* Some blocks of a large batch may be in when memory ends: then the call says how many. */
static void large_batch_is_inserted_as_far_as_it_reports(void **state)
{
    (void)state;
    world *w = malloc(sizeof *w);
    rp_status st = RP_NO_RESOURCE;
    assert_non_null(w);
    for (size_t room = 0; st != RP_OK; room++) {
        size_t inserted = 9999;
        world_init(w, RP_PRIORITIZED, room % 2 == 0, 0);
        atomic_store(&w->bed.oom.left, room);
        st = rp_table_insert(w->table, w->items, LOTS, rp_wait_none(), &inserted, &w->bed.err);
        atomic_store(&w->bed.oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_int_equal(rp_test_info_of(w->table).inserts, inserted);
        if (st == RP_OK) assert_int_equal(inserted, LOTS);
        assert_true(rp_table_check(w->table));
        rp_test_bed_deinit(&w->bed);
    }
    free(w);
}

static rp_status sample(world *w, size_t count, bool distinct)
{
    rp_sample_options o = {.count = count, .distinct = distinct};
    size_t drawn = 0;
    rp_status st =
        rp_table_sample(w->table, &o, w->samples, &drawn, rp_wait_none(), &w->bed.err);

    assert_int_equal(drawn, st == RP_OK ? count : 0);
    rp_samples_release(w->samples, drawn);
    return st;
}

static rp_status sample_one(world *w)
{
    return sample(w, 1, false);
}

static rp_status sample_many(world *w)
{
    return sample(w, LOTS, false);
}

static rp_status sample_distinct(world *w)
{
    return sample(w, 300, true);
}

static void samples_are_drawn_or_not(void **state)
{
    (void)state;
    survive_with_every_kind(false, 300, sample_one, 1);
    survive_with_every_kind(false, 300, sample_many, 1);
    survive_with_every_kind(false, 300, sample_distinct, 1);
    survive_with_every_kind(true, 300, sample_many, 2);
}

static rp_status update_some(world *w)
{
    rp_update updates[100];

    for (uint64_t i = 0; i < 100; i++) updates[i] = (rp_update){2 * i, 5};
    return rp_table_update(w->table, updates, 100, NULL, &w->bed.err);
}

static rp_status delete_some(world *w)
{
    uint64_t keys[100];

    for (uint64_t i = 0; i < 100; i++) keys[i] = 2 * i;
    return rp_table_delete(w->table, keys, 100, NULL, &w->bed.err);
}

static rp_status reset(world *w)
{
    return rp_table_reset(w->table, &w->bed.err);
}

static void calls_that_only_notify_extensions_happen_or_not(void **state)
{
    (void)state;
    (void)survive(RP_PRIORITIZED, true, 20, update_some, 1);
    (void)survive(RP_UNIFORM, true, 20, delete_some, 1);
    (void)survive(RP_MIN_HEAP, true, 20, reset, 1);
}

static void calls_that_need_no_memory_work_without(void **state)
{
    (void)state;
    world *w = malloc(sizeof *w);
    uint64_t key = 5;
    rp_waiting waiting;
    size_t found = 0;
    assert_non_null(w);
    world_init(w, RP_PRIORITIZED, false, 300);
    atomic_store(&w->bed.oom.left, 0);

    assert_ok(update_some(w));
    assert_ok(rp_table_peek(w->table, &key, 1, w->samples, &found, NULL));
    assert_int_equal(found, 1);
    rp_samples_release(w->samples, 1);
    assert_ok(delete_some(w));
    assert_ok(rp_table_trim(w->table, NULL, NULL));
    assert_int_equal(rp_table_waiting(w->table, &waiting, 1), 0);
    assert_ok(reset(w));

    rp_test_bed_deinit(&w->bed);
    free(w);
}

static void trim_of_a_soft_table_happens_or_not(void **state)
{
    (void)state;
    rp_status st = RP_NO_RESOURCE;
    for (size_t room = 0; st != RP_OK; room++) {
        rp_test_bed bed;
        size_t told = 0, removed = 0;
        rp_extension e = {.deferred = true, .ctx = &told, .on_events = count_events};
        rp_table_options o = rp_test_options("t", RP_FIFO, RP_UNIFORM, 10);
        o.soft_limit = true;
        o.extensions = &e;
        o.extension_count = 1;
        rp_test_bed_init(&bed, NULL);
        rp_table *t = rp_test_bed_table(&bed, &o);
        for (uint64_t key = 0; key < 50; key++) rp_test_put(t, key, 1, bed.plain);
        rp_table_info before = rp_test_info_of(t);

        atomic_store(&bed.oom.left, room);
        st = rp_table_trim(t, &removed, &bed.err);
        atomic_store(&bed.oom.left, RP_TEST_OOM_UNLIMITED);

        if (st != RP_OK) assert_int_equal(st, RP_NO_RESOURCE);
        if (st != RP_OK) assert_unchanged(t, &before);
        assert_int_equal(removed, st == RP_OK ? 40 : 0);
        rp_test_bed_deinit(&bed);
    }
}

static void count_call(rp_op *op)
{
    ((world *)op->user)->calls++;
}

/* A sample for many waits; an insert of one comes, and memory ends at either of them. */
static void waiting_sample_ends_cleanly_when_it_is_resumed_without_memory(void **state)
{
    (void)state;
    world *w = malloc(sizeof *w);
    rp_status st = RP_NO_RESOURCE;
    assert_non_null(w);
    for (size_t room = 0; st != RP_OK; room++) {
        rp_status insert_st;
        world_init(w, RP_PRIORITIZED, true, 0);
        w->options = (rp_sample_options){.count = LOTS};
        w->op = (rp_op){.options = &w->options,
                        .samples = w->samples,
                        .until_ns = RP_FOREVER,
                        .on_done = count_call,
                        .user = w};
        assert_false(rp_table_start_sample(w->table, &w->op));

        atomic_store(&w->bed.oom.left, room);
        insert_st = insert_one(w);
        atomic_store(&w->bed.oom.left, RP_TEST_OOM_UNLIMITED);

        assert_true(insert_st == RP_OK || insert_st == RP_NO_RESOURCE);
        assert_int_equal(w->calls, insert_st == RP_OK); /* or it is still waiting */
        if (w->calls == 0) assert_true(rp_op_withdraw(&w->op, RP_NO_RESOURCE));
        st = w->op.status;
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        assert_int_equal(w->op.done, st == RP_OK ? LOTS : 0);
        rp_samples_release(w->samples, w->op.done);
        assert_true(rp_table_check(w->table));
        rp_test_bed_deinit(&w->bed);
    }
    free(w);
}

static void waiting_insert_ends_cleanly_when_it_is_resumed_without_memory(void **state)
{
    (void)state;
    world *w = malloc(sizeof *w);
    rp_status st = RP_NO_RESOURCE;
    assert_non_null(w);
    for (size_t room = 0; st != RP_OK; room++) {
        rp_table_options o = rp_test_options("q", RP_UNIFORM, RP_PRIORITIZED, 600);
        size_t in_table;
        o.limiter = rp_limiter_queue(1);
        world_init(w, RP_FIFO, false, 0);
        rp_table *q = rp_test_bed_table(&w->bed, &o);
        w->op = (rp_op){.items = w->items,
                        .count = 40,
                        .until_ns = RP_FOREVER,
                        .on_done = count_call,
                        .user = w};
        assert_false(rp_table_start_insert(q, &w->op)); /* the first goes in */
        assert_int_equal(rp_test_draw(q).key, 0);       /* and the second */
        assert_ok(rp_table_reset(q, NULL));             /* and the third; now grow the rest */

        atomic_store(&w->bed.oom.left, room);
        for (int i = 0; i < 60 && w->calls == 0; i++) {
            rp_sample_options one = {.count = 1};
            size_t drawn = 0;
            if (rp_table_sample(q, &one, w->samples, &drawn, rp_wait_none(), NULL) != RP_OK)
                break;
            rp_samples_release(w->samples, drawn);
        }
        atomic_store(&w->bed.oom.left, RP_TEST_OOM_UNLIMITED);

        if (w->calls == 0) assert_true(rp_op_withdraw(&w->op, RP_NO_RESOURCE));
        st = w->op.status;
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        if (st == RP_OK) assert_int_equal(w->op.done, 40);
        in_table = (size_t)rp_test_info_of(q).inserts;
        assert_true(in_table <= w->op.done);
        assert_true(rp_table_check(q));
        rp_test_bed_deinit(&w->bed);
    }
    free(w);
}

RP_TESTS(oom)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_is_made_or_not),
        cmocka_unit_test(tables_of_every_kind_are_added_or_not),
        cmocka_unit_test(table_with_extensions_is_added_or_not),
        cmocka_unit_test(first_insert_happens_or_not),
        cmocka_unit_test(insert_that_grows_the_table_happens_or_not),
        cmocka_unit_test(insert_that_evicts_happens_or_not),
        cmocka_unit_test(large_batch_is_inserted_as_far_as_it_reports),
        cmocka_unit_test(samples_are_drawn_or_not),
        cmocka_unit_test(calls_that_only_notify_extensions_happen_or_not),
        cmocka_unit_test(calls_that_need_no_memory_work_without),
        cmocka_unit_test(trim_of_a_soft_table_happens_or_not),
        cmocka_unit_test(waiting_sample_ends_cleanly_when_it_is_resumed_without_memory),
        cmocka_unit_test(waiting_insert_ends_cleanly_when_it_is_resumed_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
