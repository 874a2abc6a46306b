/* SPDX-License-Identifier: Apache-2.0 */
/* Threads do everything to three tables while cut after cut of them is taken and read by two
 * readers at once. What a cut says must agree with itself, however often it is read, and make
 * tables whose invariants hold; a sum over two tables that is changed under one hand must be
 * the same in every cut. */
#include <pthread.h>
#include <sched.h>

#include "support/cut_image.h"

enum { THREADS = 4, TABLES = 3, CUTS = 400, BLOBS = 32, KEYS = 3000 };

typedef struct world {
    rp_test_bed bed;
    rp_trajectory *blobs[BLOBS];
    rp_table *tables[TABLES];
    rp_table *pair[2]; /* one thread inserts into the first, then the second */
    atomic_bool stop;
} world;

typedef struct worker {
    world *w;
    pthread_t thread;
    rp_rng rng;
} worker;

static uint64_t below(worker *k, uint64_t n)
{
    return rp_rng_below(&k->rng, n);
}

static void one_operation(worker *k)
{
    rp_table *t = k->w->tables[below(k, TABLES)];
    rp_insert items[40];
    rp_update updates[20];
    uint64_t keys[10], n = below(k, 1000);
    rp_sample samples[20];
    rp_sample_options o = {.count = 20, .distinct = n % 2 == 0, .at_least = 1};
    size_t drawn = 0;

    if (n < 400) {
        for (size_t i = 0; i < 40; i++)
            items[i] = (rp_insert){.key = below(k, KEYS),
                                   .priority = (double)below(k, 4),
                                   .trajectory = k->w->blobs[below(k, BLOBS)]};
        assert_ok(rp_table_insert(t, items, 40, rp_wait_none(), NULL, NULL));
    } else if (n < 700) {
        if (rp_table_sample(t, &o, samples, &drawn, rp_wait_none(), NULL) == RP_OK)
            rp_samples_release(samples, drawn);
    } else if (n < 850) {
        for (size_t i = 0; i < 20; i++)
            updates[i] = (rp_update){below(k, KEYS), (double)below(k, 4)};
        assert_ok(rp_table_update(t, updates, 20, NULL, NULL));
    } else if (n < 995) {
        for (size_t i = 0; i < 10; i++) keys[i] = below(k, KEYS);
        assert_ok(rp_table_delete(t, keys, 10, NULL, NULL));
    } else {
        assert_ok(rp_table_reset(t, NULL));
    }
}

static void *work(void *arg)
{
    worker *k = arg;

    while (!atomic_load(&k->w->stop)) one_operation(k);
    return NULL;
}

/* The first of the pair is never behind the second, nor ahead by more than one. */
static void *walk(void *arg)
{
    worker *k = arg;

    for (uint64_t key = 0; !atomic_load(&k->w->stop); key++) {
        rp_test_put(k->w->pair[0], key, 1, k->w->blobs[0]);
        rp_test_put(k->w->pair[1], key, 1, k->w->blobs[1]);
    }
    return NULL;
}

typedef struct reader {
    rp_cut *cut;
    rp_test_image images[TABLES];
    uint64_t seed;
} reader;

static void *read_all(void *arg)
{
    reader *r = arg;
    rp_rng rng;

    rp_rng_init(&rng, r->seed);
    for (size_t i = 0; i < TABLES; i++) {
        rp_test_image_init(&r->images[i], r->cut, i);
        rp_test_image_read(&r->images[i], r->cut, i, &rng);
    }
    return NULL;
}

static void expect_restored(world *w, rp_test_image *image)
{
    rp_restore_source source = rp_test_image_source(image);
    rp_table_options o = image->state.options;
    rp_error err = {0};
    rp_table *t;

    o.name = "restored";
    t = rp_test_bed_table(&w->bed, &o);
    assert_ok_err(rp_table_restore(t, &image->state, &source, &err), &err);
    assert_true(rp_table_check(t));
    assert_int_equal(rp_test_info_of(t).size, image->state.live);
    assert_ok(rp_store_drop_table(w->bed.store, (rp_string){"restored", 8}, NULL));
}

static void expect_sound(world *w, reader readers[2], bool restored)
{
    for (size_t i = 0; i < TABLES; i++) {
        rp_test_image *a = &readers[0].images[i], *b = &readers[1].images[i];

        assert_true(rp_test_image_check(a));
        for (size_t block = 0; block < a->block_count; block++)
            assert_true(rp_test_image_same_block(a, b, block));
        for (int which = 0; which < 2; which++)
            assert_memory_equal(a->sets[which], b->sets[which],
                                a->set_room[which] * sizeof *a->sets[which]);
        if (restored) expect_restored(w, a);
        rp_test_image_deinit(a);
        rp_test_image_deinit(b);
    }
}

static void one_cut(world *w, size_t round)
{
    rp_table *tables[TABLES + 2] = {w->tables[0], w->tables[1], w->tables[2], w->pair[0],
                                    w->pair[1]};
    reader readers[2] = {{.seed = round}, {.seed = round + 1000}};
    pthread_t second;
    rp_cut *cut = NULL;
    rp_error err = {0};
    uint64_t ahead;

    assert_ok_err(rp_cut_new(&w->bed.alloc, tables, TABLES + 2, &cut, &err), &err);
    assert_ok_err(rp_cut_take(cut, NULL, NULL, NULL, &err), &err);
    ahead = rp_cut_state(cut, TABLES)->next_sequence;
    ahead -= rp_cut_state(cut, TABLES + 1)->next_sequence;
    assert_true(ahead <= 1);
    readers[0].cut = readers[1].cut = cut;
    assert_int_equal(pthread_create(&second, NULL, read_all, &readers[1]), 0);
    (void)read_all(&readers[0]);
    assert_int_equal(pthread_join(second, NULL), 0);
    expect_sound(w, readers, round % 4 == 0);
    for (size_t i = 0; i < TABLES && round % 16 == 0; i++)
        assert_true(rp_table_check(w->tables[i]));
    rp_cut_free(cut, round % 3 != 0);
}

static void world_init(world *w)
{
    rp_table_options o;

    memset(w, 0, sizeof *w);
    rp_test_bed_init(&w->bed, NULL);
    for (size_t i = 0; i < BLOBS; i++)
        w->blobs[i] = rp_test_blob_trajectory(&w->bed.alloc, 10 + i, i / 4, 200);
    o = rp_test_options("uniform", RP_UNIFORM, RP_PRIORITIZED, 5000);
    w->tables[0] = rp_test_bed_table(&w->bed, &o);
    o = rp_test_options("prioritized", RP_PRIORITIZED, RP_FIFO, 1500);
    o.max_times_sampled = 7;
    w->tables[1] = rp_test_bed_table(&w->bed, &o);
    o = rp_test_options("heap", RP_MAX_HEAP, RP_UNIFORM, 700);
    w->tables[2] = rp_test_bed_table(&w->bed, &o);
    o = rp_test_options("first", RP_FIFO, RP_FIFO, 300);
    w->pair[0] = rp_test_bed_table(&w->bed, &o);
    o = rp_test_options("second", RP_FIFO, RP_LIFO, 300);
    w->pair[1] = rp_test_bed_table(&w->bed, &o);
}

static void cuts_are_consistent_under_concurrent_changes(void **state)
{
    (void)state;
    world w;
    worker workers[THREADS + 1];
    size_t cuts = rp_test_length(rp_test_scaled(CUTS, 20), 8);
    world_init(&w);

    for (size_t i = 0; i <= THREADS; i++) {
        workers[i].w = &w;
        rp_rng_init(&workers[i].rng, i);
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, i < THREADS ? work : walk, &workers[i]),
            0);
    }
    for (size_t i = 0; i < cuts; i++) {
        one_cut(&w, i);
        (void)sched_yield();
    }
    atomic_store(&w.stop, true);
    for (size_t i = 0; i <= THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);

    for (size_t i = 0; i < TABLES; i++) assert_true(rp_table_check(w.tables[i]));
    for (size_t i = 0; i < BLOBS; i++) rp_trajectory_unref(w.blobs[i]);
    rp_test_bed_deinit(&w.bed);
}

RP_TESTS(cut_threads)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cuts_are_consistent_under_concurrent_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
