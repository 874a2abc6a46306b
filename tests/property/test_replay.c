/* SPDX-License-Identifier: Apache-2.0 */
/* Random operations on tables with a log, made again on others from what the log was told:
 * afterwards both give the same results for as long as one likes. */
#include "store/store.h"
#include "support/fixture.h"
#include "support/recorder.h"
#include "table/op.h"
#include "table/snapshot/cut.h"
#include "util/rng.h"
#include "util/thread.h"

enum { POOL = 96, TABLES = 2, KEYS = 400, MOST = 700, PARKED = 4 };

typedef enum limits { FREE, OWN_BYTES, EVICT, BLOCK, REJECT, LIMITS } limits;
typedef enum rates { MIN_SIZE, QUEUE, STACK, RATIO, RATES } rates;

typedef struct config {
    rp_selector_kind sampler, remover;
    rates rate;
    limits limit;
    bool extended, counted; /* atomic extensions; max_times_sampled */
} config;

typedef struct parked {
    rp_op op;
    rp_insert items[40];
    rp_sample samples[40];
    rp_sample_options options;
    bool busy;
} parked;

typedef struct side {
    rp_test_bed bed;
    rp_trajectory *pool[POOL];
    rp_table *tables[TABLES];
    parked parked[TABLES][PARKED];
} side;

/* Sets priorities from what it hears: of the item itself, and of another. */
static void on_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    (void)ctx;
    for (size_t i = 0; i < count; i++) {
        uint64_t other = (events[i].key * 7 + (uint64_t)events[i].kind) % KEYS;
        double priority;

        if (events[i].kind == RP_EVENT_SAMPLE)
            (void)rp_view_update(view, events[i].key,
                                 (double)(events[i].key % 5) + events[i].times_sampled);
        if (rp_view_priority(view, other, &priority))
            (void)rp_view_update(view, other, priority < 9 ? priority + 0.5 : 0);
    }
}

/* Some have two chunks, and neighbours share one. */
static void fill_pool(side *s)
{
    rp_chunk *before = NULL;

    for (size_t i = 0; i < POOL; i++) {
        rp_chunk *chunk =
            rp_test_try_blob(&s->bed.alloc, 100 + i, 1000 + i / 5, 40 + 37 * ((i + 1) / 3 % 7));
        rp_chunk *both[2] = {chunk, before};

        assert_non_null(chunk);
        s->pool[i] =
            rp_test_try_join(&s->bed.alloc, both, before != NULL && i % 3 == 0 ? 2 : 1);
        assert_non_null(s->pool[i]);
        rp_chunk_unref(before);
        before = chunk;
    }
    rp_chunk_unref(before);
}

static void side_init(side *s, const config *c)
{
    static const rp_extension extension = {.name = "shaker", .on_events = on_events};
    static const rp_budget_policy policies[LIMITS] = {
        [EVICT] = RP_BUDGET_EVICT, [BLOCK] = RP_BUDGET_BLOCK, [REJECT] = RP_BUDGET_REJECT};
    rp_store_options store = {.policy = policies[c->limit],
                              .max_bytes = c->limit >= EVICT ? 9000 : 0};

    memset(s, 0, sizeof *s);
    rp_test_bed_init(&s->bed, &store);
    fill_pool(s);
    for (size_t i = 0; i < TABLES; i++) {
        rp_table_options o =
            rp_test_options(i == 0 ? "first" : "second", c->sampler, c->remover, 300);

        if (c->limit == OWN_BYTES) o.max_bytes = 6000;
        if (c->counted) o.max_times_sampled = 3;
        o.sampler.exponent = o.remover.exponent = 0.7;
        if (c->rate == QUEUE) o.limiter = rp_limiter_queue(250);
        if (c->rate == STACK) o.limiter = rp_limiter_stack(250);
        if (c->rate == RATIO) o.limiter = rp_limiter_ratio(2, 10, 300);
        if (c->extended) {
            o.extensions = &extension;
            o.extension_count = 1;
        }
        s->tables[i] = rp_test_bed_table(&s->bed, &o);
    }
}

static void side_deinit(side *s)
{
    for (size_t i = 0; i < TABLES; i++) {
        assert_true(rp_table_check(s->tables[i]));
        rp_table_close(s->tables[i]);
        for (size_t j = 0; j < PARKED; j++) {
            parked *p = &s->parked[i][j];
            if (p->op.samples != NULL) rp_samples_release(p->samples, p->op.done);
        }
    }
    for (size_t i = 0; i < POOL; i++) rp_trajectory_unref(s->pool[i]);
    rp_test_bed_deinit(&s->bed);
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
    return hash;
}
#define MIX(hash, value) ((hash) = mix((hash), &(value), sizeof(value)))

static uint64_t mix_samples(uint64_t hash, const rp_sample *samples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        MIX(hash, samples[i].key);
        MIX(hash, samples[i].priority);
        MIX(hash, samples[i].probability);
        MIX(hash, samples[i].table_size);
        MIX(hash, samples[i].times_sampled);
        MIX(hash, samples[i].inserted_at_ns);
    }
    return hash;
}

static uint64_t mix_info(uint64_t hash, rp_table *t)
{
    rp_table_info i = rp_test_info_of(t);

    MIX(hash, i.size);
    MIX(hash, i.bytes);
    MIX(hash, i.inserts);
    MIX(hash, i.samples);
    MIX(hash, i.deletes);
    MIX(hash, i.updates);
    MIX(hash, i.evictions);
    MIX(hash, i.episodes);
    MIX(hash, i.deleted_episodes);
    MIX(hash, i.unique_samples);
    MIX(hash, i.max_priority);
    MIX(hash, i.total_weight);
    MIX(hash, i.limiter_diff);
    MIX(hash, i.paused);
    MIX(hash, i.max_size);
    MIX(hash, i.max_bytes);
    MIX(hash, i.max_times_sampled);
    return hash;
}

static void fill_items(side *s, rp_rng *rng, rp_insert *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        items[i] = (rp_insert){.key = rp_rng_below(rng, KEYS),
                               .priority = (double)rp_rng_below(rng, 12) / 4,
                               .flags = rp_rng_below(rng, 6) == 0 ? RP_INSERT_MAX_PRIORITY : 0,
                               .times_sampled = (int32_t)rp_rng_below(rng, 2),
                               .trajectory = s->pool[rp_rng_below(rng, POOL)]};
}

static uint64_t do_insert(side *s, rp_table *t, rp_rng *rng, uint64_t hash)
{
    rp_insert items[MOST];
    size_t count =
        rp_rng_below(rng, 8) == 0 ? 1 + rp_rng_below(rng, MOST - 1) : 1 + rp_rng_below(rng, 9);
    size_t inserted = 0;
    rp_status st;

    fill_items(s, rng, items, count);
    st = rp_table_insert(t, items, count, rp_wait_none(), &inserted, NULL);
    MIX(hash, st);
    MIX(hash, inserted);
    return hash;
}

static uint64_t do_sample(rp_table *t, rp_rng *rng, uint64_t hash)
{
    rp_sample samples[MOST];
    rp_sample_options o = {.count = rp_rng_below(rng, 6) == 0 ? 1 + rp_rng_below(rng, MOST - 1)
                                                              : 1 + rp_rng_below(rng, 20),
                           .distinct = rp_rng_below(rng, 3) == 0,
                           .at_least = 1};
    size_t drawn = 0;
    rp_status st = rp_table_sample(t, &o, samples, &drawn, rp_wait_none(), NULL);

    MIX(hash, st);
    hash = mix_samples(hash, samples, drawn);
    rp_samples_release(samples, drawn);
    return hash;
}

static uint64_t do_update(rp_table *t, rp_rng *rng, uint64_t hash)
{
    rp_update updates[300];
    size_t count = 1 + rp_rng_below(rng, rp_rng_below(rng, 5) == 0 ? 300 : 20), found = 0;
    rp_status st;

    for (size_t i = 0; i < count; i++)
        updates[i] = (rp_update){rp_rng_below(rng, KEYS), (double)rp_rng_below(rng, 40) / 8};
    st = rp_table_update(t, updates, count, &found, NULL);
    MIX(hash, st);
    MIX(hash, found);
    return hash;
}

static uint64_t do_delete(rp_table *t, rp_rng *rng, uint64_t hash)
{
    uint64_t keys[300];
    size_t count = 1 + rp_rng_below(rng, rp_rng_below(rng, 9) == 0 ? 300 : 8), found = 0;
    rp_status st;

    for (size_t i = 0; i < count; i++) keys[i] = rp_rng_below(rng, KEYS);
    st = rp_table_delete(t, keys, count, &found, NULL);
    MIX(hash, st);
    MIX(hash, found);
    return hash;
}

static uint64_t do_alter(rp_table *t, rp_rng *rng, uint64_t hash)
{
    rp_table_info info = rp_test_info_of(t);
    rp_table_alteration change = {.which = 1u << rp_rng_below(rng, 3)};
    rp_status st;

    if (rp_rng_below(rng, 4) == 0) change.which |= RP_ALTER_RECENTER;
    change.max_size = 20 + (int64_t)rp_rng_below(rng, 380);
    change.max_bytes = info.max_bytes == 0 ? 0 : 1000 + rp_rng_below(rng, 8000);
    change.max_times_sampled = (int32_t)rp_rng_below(rng, 5);
    st = rp_table_alter(t, &change, NULL);
    MIX(hash, st);
    return hash;
}

static void note_done(rp_op *op)
{
    ((parked *)op->user)->busy = false;
}

/* Leaves an operation waiting, if there is room for one more. */
static uint64_t do_park(side *s, size_t table, rp_rng *rng, uint64_t hash)
{
    bool is_insert = rp_rng_below(rng, 2) == 0;
    size_t at = rp_rng_below(rng, PARKED), count = 1 + rp_rng_below(rng, 39);
    parked *p = &s->parked[table][at];
    bool over;

    MIX(hash, p->busy);
    if (p->busy) return hash;
    if (p->op.samples != NULL) {
        hash = mix_samples(hash, p->samples, p->op.done);
        rp_samples_release(p->samples, p->op.done);
    }
    memset(&p->op, 0, sizeof p->op);
    p->op.until_ns = RP_FOREVER;
    p->op.on_done = note_done;
    p->op.user = p;
    p->busy = true;
    if (is_insert) {
        fill_items(s, rng, p->items, count);
        p->op.items = p->items;
        p->op.count = count;
        over = rp_table_start_insert(s->tables[table], &p->op);
    } else {
        p->options = (rp_sample_options){.count = count, .distinct = rp_rng_below(rng, 3) == 0};
        p->op.options = &p->options;
        p->op.samples = p->samples;
        over = rp_table_start_sample(s->tables[table], &p->op);
    }
    if (over) p->busy = false;
    MIX(hash, over);
    MIX(hash, p->op.done);
    return hash;
}

/* `alone`: no other thread is at it. */
static uint64_t step(side *s, rp_rng *rng, bool alone, uint64_t hash)
{
    size_t which = rp_rng_below(rng, TABLES);
    rp_table *t = s->tables[which];
    uint64_t dice = rp_rng_below(rng, 100);
    rp_status st = RP_OK;

    if (alone) s->bed.wall_ns += 3;
    if (dice < 38)
        hash = do_insert(s, t, rng, hash);
    else if (dice < 64)
        hash = do_sample(t, rng, hash);
    else if (dice < 76)
        hash = do_update(t, rng, hash);
    else if (dice < 86)
        hash = do_delete(t, rng, hash);
    else if (dice < 92 && alone)
        hash = do_park(s, which, rng, hash);
    else if (dice < 94)
        st = rp_table_trim(t, NULL, NULL);
    else if (dice < 96)
        hash = do_alter(t, rng, hash);
    else if (dice < 97)
        st = rp_table_pause(t, 1 + (uint32_t)rp_rng_below(rng, 3), NULL);
    else if (dice < 99)
        st = rp_table_resume(t, RP_SIDE_INSERTS | RP_SIDE_SAMPLES, NULL);
    else if (rp_rng_below(rng, 4) == 0)
        st = rp_table_reset(t, NULL);
    MIX(hash, st);
    return hash;
}

/* Takes back what is left waiting: the other side has nobody waiting. */
static void withdraw(side *s)
{
    for (size_t i = 0; i < TABLES; i++)
        for (size_t j = 0; j < PARKED; j++) {
            parked *p = &s->parked[i][j];

            if (p->busy) (void)rp_op_withdraw(&p->op, RP_CANCELLED);
            if (p->op.samples != NULL) rp_samples_release(p->samples, p->op.done);
            memset(p, 0, sizeof *p);
        }
}

static void expect_alike(side *a, side *b, uint64_t seed, size_t steps)
{
    rp_rng rng_a, rng_b;
    uint64_t hash_a = 1, hash_b = 1;

    for (size_t i = 0; i < TABLES; i++) {
        assert_true(rp_table_check(b->tables[i]));
        assert_true(rp_table_digest(a->tables[i]) == rp_table_digest(b->tables[i]));
        assert_true(mix_info(1, a->tables[i]) == mix_info(1, b->tables[i]));
    }
    rp_rng_init(&rng_a, seed);
    rp_rng_init(&rng_b, seed);
    b->bed.wall_ns = a->bed.wall_ns;
    for (size_t i = 0; i < steps; i++) {
        hash_a = step(a, &rng_a, true, hash_a);
        hash_b = step(b, &rng_b, true, hash_b);
        assert_true(hash_a == hash_b);
    }
    for (size_t i = 0; i < TABLES; i++)
        assert_true(mix_info(1, a->tables[i]) == mix_info(1, b->tables[i]));
}

static void run(const config *c, uint64_t seed, size_t steps)
{
    side a, b;
    rp_test_recorder recorder;
    rp_rng rng;
    rp_error err = {.text = ""};

    side_init(&a, c);
    side_init(&b, c);
    rp_test_recorder_init(&recorder, a.pool, POOL);
    rp_store_set_log(a.bed.store, &recorder.log);
    rp_rng_init(&rng, seed);
    for (size_t i = 0; i < steps; i++) (void)step(&a, &rng, true, 0);
    withdraw(&a);
    rp_store_set_log(a.bed.store, NULL);
    for (size_t i = 0; i < TABLES; i++)
        assert_ok_err(
            rp_test_recorder_replay(&recorder, a.tables[i], b.tables[i], b.pool, &err), &err);
    expect_alike(&a, &b, seed + 1, steps);
    rp_test_recorder_deinit(&recorder);
    side_deinit(&a);
    side_deinit(&b);
}

static void redo_gives_the_same_table(void **state)
{
    static const rp_selector_kind kinds[] = {RP_FIFO,     RP_LIFO,     RP_UNIFORM,
                                             RP_MIN_HEAP, RP_MAX_HEAP, RP_PRIORITIZED};
    size_t steps = rp_test_scaled(400, 60);
    uint64_t n = 0;

    (void)state;
    for (size_t s = 0; s < COUNT_OF(kinds); s++)
        for (size_t r = 0; r < COUNT_OF(kinds); r++)
            for (int rate = 0; rate < RATES; rate++, n++) {
                config c = {kinds[s],         kinds[r],
                            (rates)rate,      (limits)((n + n / LIMITS) % LIMITS),
                            (n / 3) % 2 == 0, (n / 2) % 3 == 0};
                if (rp_test_chosen(n + r, 3)) run(&c, 1000 + n, steps);
            }
}

typedef struct worker {
    side *s;
    uint64_t seed;
    size_t steps;
    pthread_t thread;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    rp_rng rng;

    rp_rng_init(&rng, w->seed);
    for (size_t i = 0; i < w->steps; i++) (void)step(w->s, &rng, false, 0);
    return NULL;
}

static void changes_of_threads_are_logged_in_order(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 6; n++) {
        config c = {n % 2 == 0 ? RP_PRIORITIZED : RP_UNIFORM,
                    n % 3 == 0 ? RP_PRIORITIZED : RP_FIFO,
                    n == 3 ? QUEUE : MIN_SIZE,
                    (limits)(n % LIMITS),
                    n % 2 == 1,
                    n % 3 == 1};
        side a, b;
        rp_test_recorder recorder;
        worker workers[4];
        rp_error err = {.text = ""};

        side_init(&a, &c);
        side_init(&b, &c);
        rp_test_recorder_init(&recorder, a.pool, POOL);
        rp_store_set_log(a.bed.store, &recorder.log);
        for (size_t i = 0; i < COUNT_OF(workers); i++) {
            workers[i] = (worker){&a, 50 * n + i, rp_test_scaled(2000, 100), 0};
            assert_true(rp_thread_start(&workers[i].thread, "worker", work, &workers[i]));
        }
        for (size_t i = 0; i < COUNT_OF(workers); i++)
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        rp_store_set_log(a.bed.store, NULL);
        for (size_t i = 0; i < TABLES; i++)
            assert_ok_err(
                rp_test_recorder_replay(&recorder, a.tables[i], b.tables[i], b.pool, &err),
                &err);
        expect_alike(&a, &b, 77, rp_test_scaled(1000, 100));
        rp_test_recorder_deinit(&recorder);
        side_deinit(&a);
        side_deinit(&b);
    }
}

RP_TESTS(replay)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(redo_gives_the_same_table),
        cmocka_unit_test(changes_of_threads_are_logged_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
