/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a disk tier gives what one without gives: the same random operations on both,
 * with one seed, and every sample compared, its bytes too. And the same tier under threads that
 * insert, sample, look up and delete at once: every sample has the bytes of its key. */
#include "support/tier_rig.h"
#include "table/table.h"
#include "util/thread.h"

enum { MEMORY = 1 << 20, CACHE = 128 << 10, ROW = 1500, LONG = 6 };

typedef struct twins {
    rp_tier_rig tiered, plain;
    rp_rng rng;
    uint64_t next_key;
    rp_chunk *recent[2][LONG]; /* the last chunks of each store, to be shared by items */
    uint64_t recent_keys[LONG];
    size_t recent_count;
} twins;

static rp_tier_rig *rig_of(twins *w, int which)
{
    return which == 0 ? &w->tiered : &w->plain;
}

/* An item of the last few chunks, some of which other items have too. Its key says which they
 * are: the last of them, times eight, and how many. */
static void insert(twins *w)
{
    size_t count, fresh = 1 + rp_rng_below(&w->rng, 2);
    double priority = 0.5 + rp_rng_unit(&w->rng);
    uint64_t key;

    for (size_t i = 0; i < fresh; i++) {
        if (w->recent_count == LONG) {
            for (int which = 0; which < 2; which++) {
                rp_chunk_unref(w->recent[which][0]);
                memmove(w->recent[which], w->recent[which] + 1,
                        (LONG - 1) * sizeof(rp_chunk *));
            }
            w->recent_count--;
        }
        w->next_key++;
        for (int which = 0; which < 2; which++)
            w->recent[which][w->recent_count] =
                rp_tier_rig_chunk(&rig_of(w, which)->bed.alloc, w->next_key, ROW);
        w->recent_count++;
    }
    count = 1 + rp_rng_below(&w->rng, w->recent_count);
    key = w->next_key * 8 + count;
    for (int which = 0; which < 2; which++) {
        rp_tier_rig *rig = rig_of(w, which);
        rp_chunk *some[LONG];
        rp_insert item = {.key = key, .priority = priority};

        for (size_t i = 0; i < count; i++)
            some[i] = rp_chunk_ref(w->recent[which][w->recent_count - count + i]);
        item.trajectory = rp_tier_rig_join(&rig->bed.alloc, some, count);
        assert_ok(
            rp_table_insert(rig->table, &item, 1, rp_wait_ms(20000), NULL, &rig->bed.err));
        rp_trajectory_unref(item.trajectory);
    }
}

static void assert_bytes(const rp_sample *sample)
{
    uint64_t keys[LONG], last = sample->key / 8;
    size_t count = sample->key % 8;

    for (size_t i = 0; i < count; i++) keys[i] = last + 1 - count + i;
    rp_tier_rig_assert(sample->trajectory, keys, count, ROW);
}

static void compare(rp_sample *a, rp_sample *b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(a[i].key, b[i].key);
        assert_true(a[i].priority == b[i].priority && a[i].probability == b[i].probability);
        assert_int_equal(a[i].times_sampled, b[i].times_sampled);
        assert_int_equal(a[i].table_size, b[i].table_size);
        assert_int_equal(a[i].trajectory != NULL, b[i].trajectory != NULL);
        if (a[i].trajectory == NULL) continue;
        assert_bytes(&a[i]);
        assert_bytes(&b[i]);
        assert_int_equal(a[i].trajectory->bytes, b[i].trajectory->bytes);
    }
    rp_samples_release(a, count);
    rp_samples_release(b, count);
}

static void sample(twins *w)
{
    rp_sample_options options = {.count = 1 + rp_rng_below(&w->rng, 24), .at_least = 1};
    rp_sample a[24], b[24];
    size_t drawn[2] = {0, 0};
    rp_status st;

    st = rp_table_sample(w->tiered.table, &options, a, &drawn[0], rp_wait_none(), NULL);
    assert_int_equal(
        rp_table_sample(w->plain.table, &options, b, &drawn[1], rp_wait_none(), NULL), st);
    if (st != RP_OK) return;
    assert_int_equal(drawn[0], drawn[1]);
    compare(a, b, drawn[0]);
}

/* Keys of which some are there. */
static size_t some_keys(twins *w, uint64_t keys[16])
{
    size_t count = 1 + rp_rng_below(&w->rng, 16);

    for (size_t i = 0; i < count; i++) keys[i] = rp_rng_below(&w->rng, w->next_key * 8 + 8);
    return count;
}

static void by_key(twins *w, unsigned what)
{
    uint64_t keys[16];
    size_t count = some_keys(w, keys), found[2] = {0, 0};
    rp_sample a[16], b[16];
    rp_update updates[16];

    for (size_t i = 0; i < count; i++) updates[i] = (rp_update){keys[i], rp_rng_unit(&w->rng)};
    if (what == 0) {
        assert_ok(rp_table_peek(w->tiered.table, keys, count, a, &found[0], NULL));
        assert_ok(rp_table_peek(w->plain.table, keys, count, b, &found[1], NULL));
        compare(a, b, count);
    } else if (what == 1) {
        assert_ok(rp_table_update(w->tiered.table, updates, count, &found[0], NULL));
        assert_ok(rp_table_update(w->plain.table, updates, count, &found[1], NULL));
    } else {
        assert_ok(rp_table_delete(w->tiered.table, keys, count, &found[0], NULL));
        assert_ok(rp_table_delete(w->plain.table, keys, count, &found[1], NULL));
    }
    assert_int_equal(found[0], found[1]);
}

static void run_twins(rp_selector_kind sampler, int32_t max_times_sampled, uint64_t seed)
{
    rp_table_options options = rp_test_options("t", sampler, RP_FIFO, 900);
    size_t steps = rp_test_scaled(6000, rp_test_length(1500, 700));
    twins *w = calloc(1, sizeof *w);

    assert_non_null(w);
    options.max_times_sampled = max_times_sampled;
    rp_rng_init(&w->rng, seed);
    rp_tier_rig_init(&w->tiered, NULL, &options, MEMORY, CACHE);
    rp_tier_rig_init(&w->plain, NULL, &options, 0, 0);
    for (size_t i = 0; i < steps; i++) {
        uint64_t dice = rp_rng_below(&w->rng, 100);

        if (dice < 55)
            insert(w);
        else if (dice < 85)
            sample(w);
        else
            by_key(w, dice < 92 ? 0 : dice < 97 ? 1 : 2);
    }
    assert_true(rp_table_check(w->tiered.table) && rp_table_check(w->plain.table));
    assert_true(rp_tier_rig_info(&w->tiered).loads > 0);
    for (int which = 0; which < 2; which++)
        for (size_t i = 0; i < w->recent_count; i++) rp_chunk_unref(w->recent[which][i]);
    rp_tier_rig_deinit(&w->tiered);
    rp_tier_rig_deinit(&w->plain);
    free(w);
}

static void test_samples_are_the_same(void **state)
{
    (void)state;
    run_twins(RP_UNIFORM, 0, 1);
    run_twins(RP_PRIORITIZED, 0, 2);
    run_twins(RP_FIFO, 12, 3);
    run_twins(RP_MAX_HEAP, 0, 4);
}

typedef struct crowd {
    rp_tier_rig rig;
    rp_table *second;
    atomic_uint_fast64_t last; /* key inserted */
    atomic_bool stop;
} crowd;

static void put_into(crowd *c, rp_table *table, uint64_t key)
{
    rp_insert item = {.key = key * 8 + 1, .priority = 1};

    item.trajectory = rp_tier_rig_item(rp_allocator_default(), key, ROW);
    assert_ok(rp_table_insert(table, &item, 1, rp_wait_ms(20000), NULL, NULL));
    if (table == c->rig.table) /* and into the other, so that they share it for a while */
        assert_ok(rp_table_insert(c->second, &item, 1, rp_wait_ms(20000), NULL, NULL));
    rp_trajectory_unref(item.trajectory);
}

static void *insert_all(void *arg)
{
    crowd *c = arg;
    size_t count = rp_test_scaled(6000, 1000);

    for (uint64_t i = 1; i <= count; i++) {
        put_into(c, c->rig.table, i);
        atomic_store(&c->last, i);
    }
    atomic_store(&c->stop, true);
    return NULL;
}

static void *sample_all(void *arg)
{
    crowd *c = arg;
    rp_sample_options options = {.count = 16, .at_least = 1};
    rp_sample samples[16];
    size_t drawn;

    for (uint64_t i = 0; !atomic_load(&c->stop); i++) {
        rp_table *table = i % 2 == 0 ? c->rig.table : c->second;
        if (rp_table_sample(table, &options, samples, &drawn, rp_wait_ms(10), NULL) != RP_OK)
            continue;
        for (size_t k = 0; k < drawn; k++) assert_bytes(&samples[k]);
        rp_samples_release(samples, drawn);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    crowd *c = arg;
    uint64_t last = 0;
    rp_rng rng;

    rp_rng_init(&rng, 5);
    while (!atomic_load(&c->stop)) {
        uint64_t now = atomic_load(&c->last), key;
        rp_sample sample;

        if (now == last) {
            rp_tier_rig_nap();
            continue;
        }
        last = now;
        key = (1 + rp_rng_below(&rng, now)) * 8 + 1;
        assert_ok(rp_table_peek(c->second, &key, 1, &sample, NULL, NULL));
        if (sample.trajectory != NULL) assert_bytes(&sample);
        rp_samples_release(&sample, 1);
        assert_ok(rp_table_delete(c->rig.table, &key, 1, NULL, NULL));
        if (rp_rng_below(&rng, 500) == 0) assert_ok(rp_table_reset(c->rig.table, NULL));
        assert_true(rp_tier_check(c->rig.tier));
    }
    return NULL;
}

static void test_threads_see_the_right_bytes(void **state)
{
    void *(*const work[])(void *) = {insert_all, sample_all, sample_all, disturb};
    rp_table_options options = rp_test_options("t", RP_UNIFORM, RP_FIFO, 500);
    rp_table_options second = rp_test_options("second", RP_UNIFORM, RP_FIFO, 400);
    pthread_t threads[COUNT_OF(work)];
    crowd *c = calloc(1, sizeof *c);

    (void)state;
    assert_non_null(c);
    rp_tier_rig_init(&c->rig, NULL, &options, MEMORY, CACHE);
    c->second = rp_test_bed_table(&c->rig.bed, &second);
    for (size_t i = 0; i < COUNT_OF(work); i++)
        assert_true(rp_thread_start(&threads[i], "test", work[i], c));
    for (size_t i = 0; i < COUNT_OF(work); i++) pthread_join(threads[i], NULL);
    assert_true(rp_tier_rig_info(&c->rig).loads > 0);
    assert_true(rp_table_check(c->rig.table) && rp_table_check(c->second));
    rp_tier_rig_deinit(&c->rig);
    free(c);
}

RP_TESTS(tier)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_are_the_same),
        cmocka_unit_test(test_threads_see_the_right_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
