/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a cut and of a restore fails once. Each time the call says RP_NO_RESOURCE
 * and the tables are as they were; with a cut open, what the tables do needs no memory for it.
 */
#include "chunk/chunk.h"
#include "support/cut_image.h"

enum { ITEMS = 700, TABLES = 6 };

typedef struct world {
    rp_test_bed bed;
    rp_table *tables[TABLES]; /* one of each kind */
    rp_rng rng;
} world;

static const char *const names[TABLES] = {"a", "b", "c", "d", "e", "f"};

static rp_table_options options_of(int kind)
{
    rp_table_options o = rp_test_options(names[kind], (rp_selector_kind)kind,
                                         (rp_selector_kind)((kind + 1) % TABLES), 2000);

    o.seed = 5;
    return o;
}

static void world_init(world *w)
{
    rp_rng_init(&w->rng, 1);
    rp_test_bed_init(&w->bed, NULL);
    for (int i = 0; i < TABLES; i++) {
        rp_table_options o = options_of(i);

        w->tables[i] = rp_test_bed_table(&w->bed, &o);
        for (uint64_t key = 0; key < ITEMS; key++)
            rp_test_put(w->tables[i], key, (double)(key % 3), w->bed.plain);
        for (uint64_t key = 0; key < ITEMS; key += 9)
            assert_ok(rp_table_delete(w->tables[i], &key, 1, NULL, NULL));
    }
}

static rp_status cut_all(world *w, rp_cut **cut)
{
    rp_status st = rp_cut_new(&w->bed.alloc, w->tables, TABLES, cut, &w->bed.err);

    if (st != RP_OK) return st;
    st = rp_cut_take(*cut, NULL, NULL, NULL, &w->bed.err);
    if (st != RP_OK) {
        rp_cut_free(*cut, false);
        *cut = NULL;
    }
    return st;
}

static void cut_without_memory_is_taken_or_fails_cleanly(void **state)
{
    (void)state;
    world w;
    uint64_t digests[TABLES];
    rp_cut *cut = NULL;
    rp_status st = RP_NO_RESOURCE;
    size_t room = 0;
    world_init(&w);
    for (int i = 0; i < TABLES; i++) digests[i] = rp_table_digest(w.tables[i]);

    for (; st != RP_OK; room++) {
        atomic_store(&w.bed.oom.left, room);
        st = cut_all(&w, &cut);
        atomic_store(&w.bed.oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(st == RP_OK || (st == RP_NO_RESOURCE && w.bed.err.code == st));
        for (int i = 0; i < TABLES; i++) {
            assert_true(rp_table_digest(w.tables[i]) == digests[i]);
            assert_true(rp_table_check(w.tables[i]));
        }
    }

    assert_true(room > 4 * TABLES);
    rp_cut_free(cut, true);
    rp_test_bed_deinit(&w.bed);
}

/* Whatever comes of it. */
static void try_everything(world *w, rp_table *t)
{
    rp_sample samples[40];
    rp_sample_options o = {.count = 40, .distinct = true};
    size_t drawn = 0, done = 0;

    for (uint64_t key = 0; key < 60; key++) {
        rp_update update = {5 * key, (double)(key % 2)};
        uint64_t gone = 7 * key;

        if (rp_table_update(t, &update, 1, NULL, NULL) == RP_OK &&
            rp_table_delete(t, &gone, 1, NULL, NULL) == RP_OK)
            done++;
        (void)rp_test_try_put(t, 10000 + key, 1, w->bed.plain, NULL);
    }
    if (rp_table_sample(t, &o, samples, &drawn, rp_wait_none(), NULL) == RP_OK)
        rp_samples_release(samples, drawn);
    assert_true(done > 0);
    assert_ok(rp_table_reset(t, NULL));
    assert_true(rp_table_check(t));
}

static void open_cut_needs_no_more_memory(void **state)
{
    (void)state;
    world w;
    uint64_t digests[TABLES];
    rp_cut *cut = NULL;
    world_init(&w);
    for (int i = 0; i < TABLES; i++) digests[i] = rp_table_digest(w.tables[i]);
    assert_ok(cut_all(&w, &cut));

    atomic_store(&w.bed.oom.left, 0);
    for (int i = 0; i < TABLES; i++) try_everything(&w, w.tables[i]);
    atomic_store(&w.bed.oom.left, RP_TEST_OOM_UNLIMITED);

    for (size_t i = 0; i < TABLES; i++) {
        rp_test_image image;
        rp_restore_source source = rp_test_image_source(&image);
        rp_table_options o = options_of((int)i);
        rp_table *t;

        o.name = "restored";
        rp_test_image_init(&image, cut, i);
        rp_test_image_read(&image, cut, i, &w.rng);
        t = rp_test_bed_table(&w.bed, &o);
        assert_ok_err(rp_table_restore(t, &image.state, &source, &w.bed.err), &w.bed.err);
        assert_true(rp_table_digest(t) == digests[i]);
        rp_test_image_deinit(&image);
        assert_ok(rp_store_drop_table(w.bed.store, (rp_string){"restored", 8}, NULL));
    }
    rp_cut_free(cut, true);
    rp_test_bed_deinit(&w.bed);
}

static void restore_one(world *w, int kind)
{
    rp_test_image image;
    rp_restore_source source = rp_test_image_source(&image);
    rp_table_options o = options_of(kind);
    uint64_t digest = rp_table_digest(w->tables[kind]), empty;
    rp_status st = RP_NO_RESOURCE;
    size_t room = 0;
    rp_table *t;

    rp_test_image_of(&image, &w->bed, w->tables[kind], true);
    o.name = "restored";
    t = rp_test_bed_table(&w->bed, &o);
    empty = rp_table_digest(t);
    for (; st != RP_OK; room++) {
        atomic_store(&w->bed.oom.left, room);
        st = rp_table_restore(t, &image.state, &source, &w->bed.err);
        atomic_store(&w->bed.oom.left, RP_TEST_OOM_UNLIMITED);
        assert_true(rp_table_check(t));
        if (st == RP_OK) break;
        assert_true(st == RP_NO_RESOURCE && w->bed.err.code == st);
        assert_true(rp_table_digest(t) == empty);
    }
    assert_true(room >= 5);
    assert_true(rp_table_digest(t) == digest);
    rp_test_image_deinit(&image);
    assert_ok(rp_store_drop_table(w->bed.store, (rp_string){"restored", 8}, NULL));
}

static void restore_without_memory_gives_the_table_or_an_empty_one(void **state)
{
    (void)state;
    world w;
    world_init(&w);

    for (int kind = 0; kind < TABLES; kind++) restore_one(&w, kind);

    rp_test_bed_deinit(&w.bed);
}

static rp_table *bereaved;
static world *where;
static int deaths;

/* Called without the lock, while most of the slots are dead and none is free. A cut needs
 * memory to free them, and an insert does for the selectors of a table that was reset: without,
 * neither changes anything. */
static void one_died(void *ctx)
{
    rp_cut *cut = NULL;

    (void)ctx;
    if (++deaths != 1) return;
    assert_ok(rp_cut_new(&where->bed.alloc, &bereaved, 1, &cut, NULL));
    atomic_store(&where->bed.oom.left, 0);
    assert_int_equal(rp_cut_take(cut, NULL, NULL, NULL, NULL), RP_NO_RESOURCE);
    assert_int_equal(rp_test_try_put(bereaved, 1, 1, where->bed.plain, NULL), RP_NO_RESOURCE);
    atomic_store(&where->bed.oom.left, RP_TEST_OOM_UNLIMITED);
    rp_test_put(bereaved, 1, 1, where->bed.plain);
    rp_cut_free(cut, false);
    assert_true(rp_table_check(bereaved));
    rp_test_put(bereaved, 2, 1, where->bed.plain);
}

static void retired_slots_are_reclaimed_or_stay(void **state)
{
    (void)state;
    world w;
    rp_chunk_owner owner = {.release = one_died};
    rp_chunk_limits limits = rp_chunk_limits_default();
    rp_chunk *blob;
    const uint8_t *wire;
    size_t bytes;
    world_init(&w);
    where = &w;
    bereaved = w.tables[RP_UNIFORM];
    assert_ok(rp_table_reset(bereaved, NULL));
    blob = rp_test_try_blob(&w.bed.alloc, 3, 3, 8);
    assert_non_null(blob);
    wire = rp_chunk_wire(blob, &bytes);
    for (uint64_t i = 0; i < ITEMS; i++) {
        rp_chunk *chunk = NULL;
        rp_trajectory *t;

        assert_ok(rp_chunk_adopt(&w.bed.alloc, wire, bytes, &limits, &owner, &chunk, NULL));
        t = rp_test_try_join(&w.bed.alloc, &chunk, 1);
        assert_non_null(t);
        rp_chunk_unref(chunk);
        rp_test_put(bereaved, i, 1, t);
        rp_trajectory_unref(t);
    }
    deaths = 0;

    assert_ok(rp_table_reset(bereaved, NULL));

    assert_int_equal(deaths, ITEMS);
    assert_int_equal(rp_test_info_of(bereaved).size, 2);
    assert_true(rp_table_check(bereaved));
    rp_chunk_unref(blob);
    rp_test_bed_deinit(&w.bed);
}

RP_TESTS(cut)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_without_memory_is_taken_or_fails_cleanly),
        cmocka_unit_test(open_cut_needs_no_more_memory),
        cmocka_unit_test(restore_without_memory_gives_the_table_or_an_empty_one),
        cmocka_unit_test(retired_slots_are_reclaimed_or_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
