/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads do everything to two tables at once. In the end the books must balance. */
#include <pthread.h>
#include <sched.h>

#include "support/fixture.h"
#include "table/op.h"
#include "table/spill.h"
#include "table/table.h"
#include "util/rng.h"

enum {
    THREADS = 8,
    OPERATIONS = 60000, /* of each thread and policy, at scale 1 */
    BLOBS = 64,         /* trajectories that items share */
    KEYS = 300,
    OPS = 4, /* asynchronous ones of a thread */
};

typedef struct world {
    rp_test_bed bed;
    rp_trajectory *blobs[BLOBS];
    rp_table *tables[2];
    rp_table *copies; /* where insert-on-sample copies to */
    rp_extension copier, statistics;
    atomic_size_t told; /* events, by the deferred extension */
    atomic_bool stop;   /* for the thread that fires tokens */
    rp_cancel *token;   /* the one in use; each is fired once */
    pthread_mutex_t token_mu;
    rp_cancel *tokens[2000];
    size_t token_count;
} world;

typedef struct async {
    rp_op op;
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

static void count_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)view, (void)events;
    atomic_fetch_add((atomic_size_t *)ctx, count);
}

static uint64_t below(worker *k, uint64_t n)
{
    return rp_rng_below(&k->rng, n);
}

static rp_table *any_table(worker *k)
{
    return k->w->tables[below(k, 2)];
}

static rp_insert any_item(worker *k)
{
    return (rp_insert){.key = below(k, KEYS),
                       .priority = (double)below(k, 5),
                       .trajectory = k->w->blobs[below(k, BLOBS)],
                       .flags = below(k, 10) == 0 ? RP_INSERT_MAX_PRIORITY : 0};
}

/* None, short, or long but with the token that is fired now and then. */
static rp_wait any_wait(worker *k)
{
    rp_wait wait = rp_wait_none();
    uint64_t n = below(k, 10);

    if (n < 6) return wait;
    wait = rp_wait_ms(n < 9 ? 1 : 1000);
    (void)pthread_mutex_lock(&k->w->token_mu);
    if (n == 9) wait.cancel = k->w->token;
    (void)pthread_mutex_unlock(&k->w->token_mu);
    return wait;
}

static rp_budget_policy policy; /* of the store; set while there is one thread */

static bool is_expected(rp_status st)
{
    if (st == RP_NO_RESOURCE) return policy != RP_BUDGET_BLOCK;
    return st == RP_OK || st == RP_DEADLINE || st == RP_CANCELLED;
}

static void insert(worker *k)
{
    rp_insert items[20];
    size_t count = 1 + below(k, below(k, 10) == 0 ? 20 : 3), inserted;
    rp_status st;

    for (size_t i = 0; i < count; i++) items[i] = any_item(k);
    st = rp_table_insert(any_table(k), items, count, any_wait(k), &inserted, NULL);
    assert_true(is_expected(st));
    assert_true(inserted <= count && (st != RP_OK || inserted == count));
}

static void sample(worker *k)
{
    rp_sample samples[20];
    rp_sample_options o = {.count = 1 + below(k, below(k, 10) == 0 ? 20 : 3),
                           .distinct = below(k, 4) == 0,
                           .beta = 0.5};
    size_t drawn = 0;
    rp_status st;

    o.at_least = below(k, 2) == 0 ? 1 : 0;
    st = rp_table_sample(any_table(k), &o, samples, &drawn, any_wait(k), NULL);
    assert_true(is_expected(st));
    for (size_t i = 0; i < drawn; i++) {
        assert_true(samples[i].probability > 0 && samples[i].weight > 0);
        assert_int_equal(rp_trajectory_column_count(samples[i].trajectory), 1);
    }
    rp_samples_release(samples, drawn);
}

static void update(worker *k)
{
    rp_update updates[10];

    for (size_t i = 0; i < 10; i++)
        updates[i] = (rp_update){below(k, KEYS), (double)below(k, 5)};
    assert_true(is_expected(rp_table_update(any_table(k), updates, 10, NULL, NULL)));
}

static void delete_some(worker *k)
{
    uint64_t keys[6];

    for (size_t i = 0; i < 6; i++) keys[i] = below(k, KEYS);
    assert_true(is_expected(rp_table_delete(any_table(k), keys, 6, NULL, NULL)));
}

static void look(worker *k)
{
    rp_table *t = any_table(k);
    uint64_t keys[3] = {below(k, KEYS), below(k, KEYS), below(k, KEYS)};
    rp_sample out[3];
    rp_waiting waiting[4];
    rp_store_info info;
    rp_statistics counts;

    if (rp_table_peek(t, keys, 3, out, NULL, NULL) == RP_OK) rp_samples_release(out, 3);
    (void)rp_table_waiting(t, waiting, 4);
    (void)rp_table_can_insert(t, 1);
    (void)rp_table_can_sample(t, 1);
    assert_true(rp_test_info_of(t).size <= 200);
    rp_store_get_info(k->w->bed.store, &info);
    assert_true(info.bytes <= info.max_bytes);
    rp_statistics_read(&k->w->statistics, &counts);
    assert_true(counts.inserts >= 0);
    if (below(k, 50) == 0) assert_true(rp_table_check(t));
}

static void on_done(rp_op *op)
{
    async *a = op->user;

    assert_true(is_expected(op->status));
    if (!op->is_insert) rp_samples_release(a->samples, op->done);
    atomic_store(&a->busy, false);
}

/* Starts an operation, or ends one that waits. */
static void work_async(worker *k)
{
    async *a = &k->asyncs[below(k, OPS)];
    rp_table *t = any_table(k);
    bool over;

    if (atomic_load(&a->busy)) {
        if (below(k, 2) == 0 && rp_op_withdraw(&a->op, RP_CANCELLED)) {
            if (!a->op.is_insert) rp_samples_release(a->samples, a->op.done);
            atomic_store(&a->busy, false);
        }
        return;
    }
    a->op = (rp_op){.until_ns = below(k, 2) == 0 ? rp_now_ns() + 100000 : RP_FOREVER,
                    .on_done = on_done,
                    .user = a};
    atomic_store(&a->busy, true);
    if (below(k, 2) == 0) {
        for (size_t i = 0; i < 4; i++) a->items[i] = any_item(k);
        a->op.items = a->items;
        a->op.count = 4;
        over = rp_table_start_insert(t, &a->op);
    } else {
        a->options = (rp_sample_options){.count = 4, .at_least = 1 + below(k, 4)};
        a->op.options = &a->options;
        a->op.samples = a->samples;
        over = rp_table_start_sample(t, &a->op);
    }
    if (over) on_done(&a->op);
}

static void one_operation(worker *k)
{
    uint64_t n = below(k, 1000);

    if (n < 300)
        insert(k);
    else if (n < 600)
        sample(k);
    else if (n < 680)
        update(k);
    else if (n < 780)
        delete_some(k);
    else if (n < 860)
        look(k);
    else if (n < 960)
        work_async(k);
    else if (n < 990)
        (void)rp_table_expire(any_table(k), rp_now_ns());
    else if (n < 999)
        assert_true(is_expected(rp_table_trim(any_table(k), NULL, NULL)));
    else
        assert_true(is_expected(rp_table_reset(any_table(k), NULL)));
}

/* Ends what still waits. */
static void finish_asyncs(worker *k)
{
    for (size_t i = 0; i < OPS; i++)
        while (atomic_load(&k->asyncs[i].busy)) {
            async *a = &k->asyncs[i];
            if (rp_op_withdraw(&a->op, RP_CANCELLED)) {
                if (!a->op.is_insert) rp_samples_release(a->samples, a->op.done);
                atomic_store(&a->busy, false);
            }
            (void)sched_yield();
        }
}

static void *work(void *arg)
{
    worker *k = arg;
    size_t count = rp_test_length(rp_test_scaled(OPERATIONS, 500), 1200);

    for (size_t i = 0; i < count; i++) one_operation(k);
    finish_asyncs(k);
    return NULL;
}

/* Fires one token after the other. */
static void *fire(void *arg)
{
    world *w = arg;

    while (!atomic_load(&w->stop)) {
        rp_cancel *fresh = NULL, *old;
        if (w->token_count == COUNT_OF(w->tokens)) break;
        assert_ok(rp_cancel_new(&fresh));
        (void)pthread_mutex_lock(&w->token_mu);
        old = w->token;
        w->token = fresh;
        w->tokens[w->token_count++] = fresh;
        (void)pthread_mutex_unlock(&w->token_mu);
        if (old != NULL) rp_cancel_fire(old);
        for (int i = 0; i < 200; i++) (void)sched_yield();
    }
    (void)pthread_mutex_lock(&w->token_mu);
    if (w->token != NULL) rp_cancel_fire(w->token); /* nobody waits long from here on */
    (void)pthread_mutex_unlock(&w->token_mu);
    return NULL;
}

static void world_init(world *w)
{
    rp_table_options o = rp_test_options("copies", RP_UNIFORM, RP_FIFO, 50);
    rp_extension of_first[2], of_second[2];
    uint64_t each;

    memset(w, 0, sizeof *w);
    (void)pthread_mutex_init(&w->token_mu, NULL);
    rp_test_bed_init(&w->bed, &(rp_store_options){.max_bytes = 16000, .policy = policy});
    for (size_t i = 0; i < BLOBS; i++)
        w->blobs[i] = rp_test_blob_trajectory(&w->bed.alloc, 10 + i, i / 4, 200);
    each = rp_trajectory_cost(w->blobs[0]);
    assert_true(16000 / each < BLOBS); /* or the budget does not matter */
    w->copies = rp_test_bed_table(&w->bed, &o);
    assert_ok(rp_statistics_extension(&w->bed.alloc, &w->statistics));
    assert_ok(rp_insert_on_sample_extension(&w->bed.alloc, w->copies, 0, &w->copier, NULL));
    of_first[0] = w->statistics;
    of_first[1] = w->copier;
    assert_ok(rp_diffusion_extension(&w->bed.alloc, 2, 0.5, &of_second[0], NULL));
    of_second[1] = (rp_extension){
        .name = "count", .deferred = true, .ctx = &w->told, .on_events = count_events};

    o = rp_test_options("first", RP_PRIORITIZED, RP_FIFO, 100);
    o.limiter = rp_limiter_ratio(2, 5, 60);
    o.max_times_sampled = 5;
    o.extensions = of_first;
    o.extension_count = 2;
    w->tables[0] = rp_test_bed_table(&w->bed, &o);
    o = rp_test_options("second", RP_UNIFORM, RP_PRIORITIZED, 100);
    o.limiter = rp_limiter_queue(30);
    o.max_bytes = 4000;
    o.extensions = of_second;
    o.extension_count = 2;
    w->tables[1] = rp_test_bed_table(&w->bed, &o);
}

static void world_deinit(world *w)
{
    for (size_t i = 0; i < BLOBS; i++) rp_trajectory_unref(w->blobs[i]);
    for (size_t i = 0; i < w->token_count; i++) rp_cancel_free(w->tokens[i]);
    (void)pthread_mutex_destroy(&w->token_mu);
    rp_test_bed_deinit(&w->bed); /* every reference is gone */
}

static void expect_balance(rp_table *t)
{
    rp_table_info info = rp_test_info_of(t);

    assert_true(rp_table_check(t));
    assert_int_equal(info.inserts - info.deletes, info.size);
    assert_true(info.evictions <= info.deletes);
    assert_true(info.waiting_inserts == 0 && info.waiting_samples == 0);
}

static void threads_do_everything_at_once(void)
{
    world *w = malloc(sizeof *w);
    worker *workers = calloc(THREADS, sizeof *workers);
    pthread_t firer;
    rp_store_info info;
    assert_true(w != NULL && workers != NULL);
    world_init(w);

    for (size_t i = 0; i < THREADS; i++) {
        workers[i].w = w;
        rp_rng_init(&workers[i].rng, 77 + i);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    assert_int_equal(pthread_create(&firer, NULL, fire, w), 0);
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    atomic_store(&w->stop, true);
    assert_int_equal(pthread_join(firer, NULL), 0);

    for (int i = 0; i < 2; i++) expect_balance(w->tables[i]);
    expect_balance(w->copies);
    rp_store_get_info(w->bed.store, &info);
    assert_true(info.bytes <= info.max_bytes);
    for (int i = 0; i < 2; i++) assert_ok(rp_table_reset(w->tables[i], NULL));
    assert_ok(rp_table_reset(w->copies, NULL));
    rp_store_get_info(w->bed.store, &info);
    assert_int_equal(info.bytes, 0);
    world_deinit(w);
    free(workers);
    free(w);
}

static void accounts_balance_after_threads_with_a_budget_that_blocks(void **state)
{
    (void)state;
    policy = RP_BUDGET_BLOCK;
    threads_do_everything_at_once();
}

static void accounts_balance_after_threads_with_a_budget_that_evicts(void **state)
{
    (void)state;
    policy = RP_BUDGET_EVICT;
    threads_do_everything_at_once();
}

static void accounts_balance_after_threads_with_a_budget_that_rejects(void **state)
{
    (void)state;
    policy = RP_BUDGET_REJECT;
    threads_do_everything_at_once();
}

typedef struct victim {
    rp_table *table;
    rp_trajectory *trajectory;
    bool inserts;
    atomic_size_t *ended;
    rp_rng rng;
    pthread_t thread;
} victim;

/* Goes on until the table is closed under it. */
static void *go_on(void *arg)
{
    victim *v = arg;
    rp_status st = RP_OK;

    while (st == RP_OK || st == RP_DEADLINE) {
        rp_sample s;
        rp_sample_options one = {.count = 1};
        rp_insert item = {
            .key = rp_rng_next(&v->rng), .priority = 1, .trajectory = v->trajectory};
        size_t n = 0;

        if (v->inserts) {
            st = rp_table_insert(v->table, &item, 1, rp_wait_forever(), &n, NULL);
        } else {
            st = rp_table_sample(v->table, &one, &s, &n, rp_wait_forever(), NULL);
            rp_samples_release(&s, st == RP_OK ? n : 0);
        }
    }
    assert_int_equal(st, RP_CANCELLED);
    atomic_fetch_add(v->ended, 1);
    return NULL;
}

static void close_wakes_all_threads_in_any_call(void **state)
{
    (void)state;
    size_t rounds = rp_test_scaled(100, 10);

    for (size_t round = 0; round < rounds; round++) {
        rp_test_bed bed;
        rp_table_options o = rp_test_options("q", RP_FIFO, RP_FIFO, 100);
        victim victims[THREADS];
        atomic_size_t ended;
        rp_test_bed_init(&bed, NULL);
        o.limiter = rp_limiter_queue(2);
        o.max_times_sampled = 1;
        rp_table *t = rp_test_bed_table(&bed, &o);
        atomic_init(&ended, 0);
        for (size_t i = 0; i < THREADS; i++) {
            victims[i] = (victim){t, bed.plain, i % 3 != 0, &ended, {{0}}, 0};
            rp_rng_init(&victims[i].rng, 100 * round + i);
            assert_int_equal(pthread_create(&victims[i].thread, NULL, go_on, &victims[i]), 0);
        }
        for (size_t i = 0; i < 50 * (round % 8); i++) (void)sched_yield();

        rp_store_close(bed.store);

        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(victims[i].thread, NULL), 0);
        assert_int_equal(ended, THREADS);
        expect_balance(t);
        rp_test_bed_deinit(&bed);
    }
}

RP_TESTS(threads)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accounts_balance_after_threads_with_a_budget_that_blocks),
        cmocka_unit_test(accounts_balance_after_threads_with_a_budget_that_evicts),
        cmocka_unit_test(accounts_balance_after_threads_with_a_budget_that_rejects),
        cmocka_unit_test(close_wakes_all_threads_in_any_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
