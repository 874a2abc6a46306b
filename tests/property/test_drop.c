/* SPDX-License-Identifier: Apache-2.0 */
/* Threads use tables that other threads alter, drop and make again. */
#include <pthread.h>
#include <sched.h>

#include "support/fixture.h"
#include "table/op.h"
#include "table/table.h"
#include "util/rng.h"

enum {
    THREADS = 8,
    OPERATIONS = 40000, /* of each thread and policy, at scale 1 */
    BLOBS = 32,
    KEYS = 100,
    NAMES = 3,
    OPS = 3, /* asynchronous ones of a thread */
};

static const char *const names[NAMES] = {"a", "b", "c"};

typedef struct world {
    rp_test_bed bed;
    rp_trajectory *blobs[BLOBS];
    atomic_size_t drops, cancelled;
} world;

/* Holds a reference to its table as long as it is busy. */
typedef struct async {
    rp_op op;
    world *w;
    rp_table *table;
    rp_insert items[4];
    rp_sample_options options;
    rp_sample samples[4];
    atomic_bool busy;
} async;

typedef struct worker {
    world *w;
    pthread_t thread;
    rp_rng rng;
    async asyncs[OPS];
} worker;

static uint64_t below(worker *k, uint64_t n)
{
    return rp_rng_below(&k->rng, n);
}

static rp_string any_name(worker *k)
{
    return (rp_string){names[below(k, NAMES)], 1};
}

static rp_insert any_item(worker *k)
{
    return (rp_insert){.key = below(k, KEYS),
                       .priority = (double)below(k, 5),
                       .trajectory = k->w->blobs[below(k, BLOBS)]};
}

static void expect(world *w, rp_status st)
{
    if (st == RP_CANCELLED) atomic_fetch_add(&w->cancelled, 1);
    assert_true(st == RP_OK || st == RP_DEADLINE || st == RP_CANCELLED || st == RP_NO_RESOURCE);
}

/* Queues, so that both sides wait now and then, for each other and for bytes. */
static void make_table(worker *k)
{
    rp_string name = any_name(k);
    rp_table_options o = rp_test_options(name.data, RP_PRIORITIZED, RP_FIFO, 40);
    rp_extension copier;
    rp_table *target;
    rp_status st;

    o.limiter = rp_limiter_queue(30);
    o.max_times_sampled = 2;
    target =
        name.data[0] == 'a' ? rp_store_find_table(k->w->bed.store, (rp_string){"b", 1}) : NULL;
    if (target != NULL) {
        assert_ok(rp_insert_on_sample_extension(&k->w->bed.alloc, target, 0, &copier, NULL));
        rp_table_unref(target);
        o.extensions = &copier;
        o.extension_count = 1;
    }
    st = rp_store_add_table(k->w->bed.store, &o, NULL, NULL);
    assert_true(st == RP_OK || st == RP_EXISTS);
    if (st != RP_OK && target != NULL) rp_extension_discard(&copier);
}

static void drop_table(world *w, rp_string name)
{
    rp_status st = rp_store_drop_table(w->bed.store, name, NULL);

    assert_true(st == RP_OK || st == RP_NOT_FOUND);
    if (st == RP_OK) atomic_fetch_add(&w->drops, 1);
}

static void insert(worker *k, rp_table *t)
{
    rp_insert items[8];
    size_t count = 1 + below(k, 8);

    for (size_t i = 0; i < count; i++) items[i] = any_item(k);
    expect(k->w,
           rp_table_insert(t, items, count, rp_wait_ms((int64_t)below(k, 3)), NULL, NULL));
}

static void sample(worker *k, rp_table *t)
{
    rp_sample samples[8];
    rp_sample_options o = {.count = 1 + below(k, 8), .at_least = 1};
    size_t drawn = 0;

    expect(k->w,
           rp_table_sample(t, &o, samples, &drawn, rp_wait_ms((int64_t)below(k, 3)), NULL));
    rp_samples_release(samples, drawn);
}

static void change(worker *k, rp_table *t)
{
    uint64_t keys[4] = {below(k, KEYS), below(k, KEYS), below(k, KEYS), below(k, KEYS)};
    rp_update update = {below(k, KEYS), 3};
    rp_table_alteration altered = {(uint32_t)below(k, 32), (int32_t)below(k, 3),
                                   1 + (int64_t)below(k, 40), below(k, 2) * 2000,
                                   rp_limiter_queue(1 + (int64_t)below(k, 40))};

    switch (below(k, 7)) {
    case 6: expect(k->w, rp_table_pause(t, 1 + (uint32_t)below(k, 3), NULL)); break;
    case 5: expect(k->w, rp_table_resume(t, 1 + (uint32_t)below(k, 3), NULL)); break;
    case 4: expect(k->w, rp_table_alter(t, &altered, NULL)); break;
    case 0: expect(k->w, rp_table_delete(t, keys, 4, NULL, NULL)); break;
    case 1: expect(k->w, rp_table_update(t, &update, 1, NULL, NULL)); break;
    case 2: (void)rp_table_expire(t, rp_now_ns()); break;
    default: assert_true(rp_table_check(t)); break;
    }
}

static void on_done(rp_op *op)
{
    async *a = op->user;
    rp_table *t = a->table;

    expect(a->w, op->status);
    if (!op->is_insert) rp_samples_release(a->samples, op->done);
    atomic_store(&a->busy, false);
    rp_table_unref(t);
}

/* Takes a reference for the call and one for the operation: the call goes on for a moment after
 * on_done has dropped that one. */
static void start(worker *k, async *a, rp_table *t)
{
    a->w = k->w;
    a->table = rp_table_ref(t);
    a->op = (rp_op){.until_ns = RP_FOREVER, .on_done = on_done, .user = a};
    atomic_store(&a->busy, true);
    if (below(k, 2) == 0) {
        for (size_t i = 0; i < 4; i++) a->items[i] = any_item(k);
        a->op.items = a->items;
        a->op.count = 4;
        if (rp_table_start_insert(t, &a->op)) on_done(&a->op);
    } else {
        a->options = (rp_sample_options){.count = 4};
        a->op.options = &a->options;
        a->op.samples = a->samples;
        if (rp_table_start_sample(t, &a->op)) on_done(&a->op);
    }
}

static void one_operation(worker *k)
{
    uint64_t n = below(k, 100);
    rp_table *t;

    if (n < 3) {
        drop_table(k->w, any_name(k));
        return;
    }
    t = rp_store_find_table(k->w->bed.store, any_name(k));
    if (t == NULL) {
        make_table(k);
        return;
    }
    if (n < 40)
        insert(k, t);
    else if (n < 75)
        sample(k, t);
    else if (n < 85)
        change(k, t);
    else if (!atomic_load(&k->asyncs[n % OPS].busy))
        start(k, &k->asyncs[n % OPS], t);
    rp_table_unref(t);
}

static void *work(void *arg)
{
    worker *k = arg;
    size_t count = rp_test_length(rp_test_scaled(OPERATIONS, 400), 800);

    for (size_t i = 0; i < count; i++) one_operation(k);
    return NULL;
}

static void threads_use_what_others_drop(rp_budget_policy policy)
{
    world *w = calloc(1, sizeof *w);
    worker *workers = calloc(THREADS, sizeof *workers);
    rp_store_info info;
    assert_true(w != NULL && workers != NULL);
    rp_test_bed_init(&w->bed, &(rp_store_options){.max_bytes = 6000, .policy = policy});
    for (size_t i = 0; i < BLOBS; i++)
        w->blobs[i] = rp_test_blob_trajectory(&w->bed.alloc, 10 + i, i / 4, 200);

    for (size_t i = 0; i < THREADS; i++) {
        workers[i].w = w;
        rp_rng_init(&workers[i].rng, 5 + i);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);

    assert_true(w->drops > 0 && w->cancelled > 0);
    for (size_t i = 0; i < NAMES; i++) drop_table(w, (rp_string){names[i], 1});
    for (size_t i = 0; i < THREADS; i++)
        for (size_t j = 0; j < OPS; j++) assert_false(workers[i].asyncs[j].busy);
    rp_store_get_info(w->bed.store, &info);
    assert_int_equal(info.bytes, 0);
    for (size_t i = 0; i < BLOBS; i++) rp_trajectory_unref(w->blobs[i]);
    rp_test_bed_deinit(&w->bed); /* every reference is gone */
    free(workers);
    free(w);
}

static void drops_are_safe_under_threads_with_a_budget_that_blocks(void **state)
{
    (void)state;
    threads_use_what_others_drop(RP_BUDGET_BLOCK);
}

static void drops_are_safe_under_threads_with_a_budget_that_evicts(void **state)
{
    (void)state;
    threads_use_what_others_drop(RP_BUDGET_EVICT);
}

RP_TESTS(drop)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_are_safe_under_threads_with_a_budget_that_blocks),
        cmocka_unit_test(drops_are_safe_under_threads_with_a_budget_that_evicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
