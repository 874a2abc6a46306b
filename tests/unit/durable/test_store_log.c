/* SPDX-License-Identifier: Apache-2.0 */
/* A store with a journal on a simulated disk: redoing the journal from the files alone gives
 * the same tables. */
#include "durable/journal/store_log.h"

#include <stdio.h>

#include "disk/journal_read.h"
#include "durable/journal/journal_redo.h"
#include "durable/recovery/chunk_index.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "table/snapshot/cut.h"
#include "util/rng.h"

enum { MOST_STEPS = 400, KEYS = 60, POOL = 20, SEGMENT_BYTES = 6000 };

static const rp_store_id id = {{9, 8, 7}};

typedef struct world {
    rp_test_bed bed;
    rp_sim *disk;
    rp_files *files;
    rp_segments *segments;
    rp_store_log *log;
    rp_trajectory *pool[POOL]; /* replaced all the time: new chunks */
    uint64_t next_chunk;
    rp_rng rng;
    /* After each step: the number it ended with, and what all tables were then. */
    uint64_t lsns[MOST_STEPS], digests[MOST_STEPS];
    size_t steps;
} world;

static void add_tables(rp_test_bed *bed)
{
    rp_table_options first = rp_test_options("first", RP_PRIORITIZED, RP_FIFO, 40);
    rp_table_options second = rp_test_options("second", RP_UNIFORM, RP_MIN_HEAP, 30);

    first.sampler.exponent = 0.6;
    second.max_times_sampled = 2;
    second.max_bytes = 4000;
    (void)rp_test_bed_table(bed, &first);
    (void)rp_test_bed_table(bed, &second);
}

static uint64_t digest_of(rp_store *store)
{
    rp_table *tables[8];
    size_t count = rp_store_find_tables(store, tables, COUNT_OF(tables));
    uint64_t digest = count;

    for (size_t i = 0; i < count; i++) {
        digest = digest * 0x9e3779b97f4a7c15u + rp_table_digest(tables[i]);
        assert_true(rp_table_check(tables[i]));
        rp_table_unref(tables[i]);
    }
    return digest;
}

static rp_status start_log_with(world *w, bool sync, const rp_allocator *alloc, rp_error *err)
{
    rp_segments_options segments = {.alloc = rp_allocator_default(),
                                    .files = w->files,
                                    .store = id,
                                    .segment_bytes = SEGMENT_BYTES,
                                    .next_number = 1};
    rp_store_log_options o = {.alloc = alloc,
                              .store = w->bed.store,
                              .files = w->files,
                              .id = id,
                              .next_lsn = 1,
                              .sync = sync,
                              .interval_ns = 1000000,
                              .retry_ns = 300000,
                              .file_bytes = 5000,
                              .max_queued = alloc == rp_allocator_default() ? 0 : 3000};
    rp_status st = w->files->ops->make_directory(w->files, "seg", err);

    if (st == RP_OK) st = rp_segments_new(&segments, &w->segments, err);
    o.segments = w->segments;
    if (st == RP_OK) st = rp_store_log_start(&o, &w->log, err);
    return st;
}

static rp_status start_log(world *w, bool sync, rp_error *err)
{
    return start_log_with(w, sync, rp_allocator_default(), err);
}

static void world_init(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    rp_test_bed_init(&w->bed, NULL);
    add_tables(&w->bed);
    w->disk = rp_sim_new();
    w->files = rp_sim_mount(w->disk);
    rp_rng_init(&w->rng, seed);
}

static void world_deinit(world *w)
{
    for (size_t i = 0; i < POOL; i++) rp_trajectory_unref(w->pool[i]);
    rp_store_free(w->bed.store); /* before the segments: they have its chunks' homes */
    w->bed.store = NULL;
    rp_segments_free(w->segments);
    assert_int_equal(rp_sim_open_handles(w->disk), 0);
    w->files->ops->free(w->files);
    rp_sim_free(w->disk);
    rp_trajectory_unref(w->bed.plain);
    assert_int_equal(w->bed.oom.live, 0);
}

/* Returns owned. */
static rp_trajectory *any_trajectory(world *w)
{
    size_t at = rp_rng_below(&w->rng, POOL);

    if (w->pool[at] == NULL || rp_rng_below(&w->rng, 3) == 0) {
        rp_trajectory_unref(w->pool[at]);
        w->next_chunk++;
        w->pool[at] = rp_test_blob_trajectory(&w->bed.alloc, w->next_chunk, w->next_chunk / 3,
                                              20 + rp_rng_below(&w->rng, 300));
    }
    return rp_trajectory_ref(w->pool[at]);
}

/* The number that the last step ended with. A journal that cannot write says so: what was done
 * is done. */
static uint64_t step(world *w, bool *was_safe)
{
    rp_table *t =
        rp_test_table(w->bed.store, rp_rng_below(&w->rng, 2) == 0 ? "first" : "second");
    uint64_t dice = rp_rng_below(&w->rng, 20), key = rp_rng_below(&w->rng, KEYS);
    rp_status st = RP_OK;

    w->bed.wall_ns += 5;
    if (dice < 10) {
        rp_insert items[12];
        size_t count = 1 + rp_rng_below(&w->rng, 12), inserted;

        for (size_t i = 0; i < count; i++)
            items[i] = (rp_insert){.key = rp_rng_below(&w->rng, KEYS),
                                   .priority = (double)rp_rng_below(&w->rng, 9),
                                   .trajectory = any_trajectory(w)};
        st = rp_table_insert(t, items, count, rp_wait_none(), &inserted, NULL);
        for (size_t i = 0; i < count; i++) rp_trajectory_unref(items[i].trajectory);
    } else if (dice < 14) {
        rp_sample samples[10];
        size_t drawn = 0;
        rp_sample_options o = {.count = 10, .at_least = 1, .distinct = dice == 12};

        st = rp_table_sample(t, &o, samples, &drawn, rp_wait_none(), NULL);
        if (st == RP_OK) rp_samples_release(samples, drawn);
    } else if (dice < 16) {
        st = rp_table_update(t, &(rp_update){key, 2.5}, 1, NULL, NULL);
    } else if (dice < 18) {
        st = rp_table_delete(t, &key, 1, NULL, NULL);
    } else if (rp_test_table(w->bed.store, "third") == NULL) {
        rp_table_options third = rp_test_options("third", RP_LIFO, RP_UNIFORM, 10);
        rp_trajectory *trajectory = any_trajectory(w);

        st = rp_store_add_table(w->bed.store, &third, &t, NULL);
        if (st == RP_OK || st == RP_UNAVAILABLE)
            st =
                rp_test_try_put(rp_test_table(w->bed.store, "third"), key, 1, trajectory, NULL);
        rp_trajectory_unref(trajectory);
    } else {
        st = rp_store_drop_table(w->bed.store, (rp_string){"third", 5}, NULL);
    }
    *was_safe = st == RP_OK;
    assert_true(st == RP_OK || st == RP_DEADLINE || st == RP_UNAVAILABLE);
    w->lsns[w->steps] = rp_journal_last(rp_store_log_journal(w->log));
    w->digests[w->steps] = digest_of(w->bed.store);
    return w->lsns[w->steps++];
}

typedef struct resolver {
    rp_segments *segments;
    rp_chunk_index index;
} resolver;

static rp_status find_chunk(void *ctx, const rp_disk_location *location, rp_chunk **out,
                            rp_error *err)
{
    resolver *r = ctx;
    uint64_t bytes;
    rp_status st = rp_segments_open(r->segments, location->segment, &bytes, err);

    if (st == RP_OK) st = rp_chunk_index_want(&r->index, location, err);
    if (st == RP_OK) st = rp_chunk_index_get(&r->index, r->segments, location, out, err);
    return st;
}

/* Makes a store from a disk. Returns the last number; `*digest` is what it is then. */
static uint64_t recover(rp_sim *disk, uint64_t *digest)
{
    rp_files *files = rp_sim_mount(disk);
    rp_segments_options segments = {.alloc = rp_allocator_default(),
                                    .files = files,
                                    .store = id,
                                    .segment_bytes = SEGMENT_BYTES,
                                    .next_number = 1 << 20};
    rp_test_bed bed;
    resolver r = {0};
    rp_redo *redo = NULL;
    rp_redo_options o = {.alloc = rp_allocator_default(), .chunk = find_chunk, .ctx = &r};
    uint64_t last = 0, torn;
    rp_error err = {.text = ""};

    rp_test_bed_init(&bed, NULL);
    add_tables(&bed);
    o.store = bed.store;
    assert_ok_err(rp_segments_new(&segments, &r.segments, &err), &err);
    rp_chunk_index_init(&r.index, rp_allocator_default());
    assert_ok_err(rp_redo_new(&o, &redo, &err), &err);
    assert_ok_err(rp_journal_read(&(rp_journal_read_options){.alloc = rp_allocator_default(),
                                                             .files = files,
                                                             .store = &id,
                                                             .how = RP_JOURNAL_LIVE,
                                                             .each = rp_redo_record,
                                                             .ctx = redo},
                                  &last, &torn, &err),
                  &err);
    assert_int_equal(rp_redo_count(redo), last);
    rp_redo_free(redo);
    *digest = digest_of(bed.store);
    rp_chunk_index_deinit(&r.index);
    rp_test_bed_deinit(&bed);
    rp_segments_free(r.segments);
    files->ops->free(files);
    return last;
}

/* The store on a disk has all that was promised, and is what the first one was at that number.
 */
static void check_disk(const world *w, rp_sim *disk, uint64_t least)
{
    uint64_t digest, last = recover(disk, &digest);

    assert_true(last >= least);
    for (size_t i = 0; i < w->steps; i++) /* a step may end between two others' numbers */
        if (w->lsns[i] == last && (i + 1 == w->steps || w->lsns[i + 1] != last))
            assert_true(w->digests[i] == digest);
    rp_sim_free(disk);
}

static void a_store_is_redone_from_its_log(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++)
        for (uint64_t seed = 1; seed < rp_test_length(6, 3); seed++) {
            world w;
            rp_error err;
            bool was_safe;

            world_init(&w, seed);
            assert_ok_err(start_log(&w, sync, &err), &err);
            for (size_t i = 0; i < rp_test_length(200, 101); i++) {
                (void)step(&w, &was_safe);
                if (i % 50 == 0) check_disk(&w, rp_sim_copy(w.disk), 0);
            }
            assert_ok_err(rp_store_log_stop(w.log, &err), &err);
            check_disk(&w, rp_sim_after(w.disk, RP_SIM_NONE, 1), w.lsns[w.steps - 1]);
            world_deinit(&w);
        }
}

typedef struct cutter {
    world *w;
    bool sync;
    rp_rng rng;
    atomic_uint_fast64_t promised;
    struct image {
        rp_sim *disk;
        uint64_t least;
    } images[4000];
    size_t count;
} cutter;

/* Images are looked at when the store is at rest: another thread writes its digests. */
static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    cutter *c = ctx;
    uint64_t safe = atomic_load(&c->promised);

    (void)number, (void)call, (void)path;
    for (int i = 0; i < 2 && c->count < COUNT_OF(c->images); i++)
        c->images[c->count++] = (struct image){
            rp_sim_after(disk, (rp_sim_variant)rp_rng_below(&c->rng, RP_SIM_VARIANTS),
                         rp_rng_next(&c->rng)),
            c->sync ? safe : 0};
    if (c->count < COUNT_OF(c->images)) /* a killed process */
        c->images[c->count++] = (struct image){rp_sim_copy(disk), safe};
}

static void power_cuts_lose_no_acknowledged_change(void **state)
{
    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        static cutter c;
        world w;
        rp_error err;
        bool was_safe;

        memset(&c, 0, sizeof c);
        world_init(&w, 77);
        c.w = &w;
        c.sync = sync;
        rp_rng_init(&c.rng, 3);
        rp_sim_on_call(w.disk, on_call, &c);
        assert_ok_err(start_log(&w, sync, &err), &err);
        for (size_t i = 0; i < rp_test_scaled(60, rp_test_length(20, 12)); i++) {
            uint64_t lsn = step(&w, &was_safe);
            if (was_safe && rp_journal_safe(rp_store_log_journal(w.log)) >= lsn)
                atomic_store(&c.promised, lsn);
        }
        assert_ok_err(rp_store_log_stop(w.log, &err), &err);
        rp_sim_on_call(w.disk, NULL, NULL);
        assert_true(c.count > 100);
        for (size_t i = 0; i < c.count; i++)
            check_disk(&w, c.images[i].disk, c.images[i].least);
        world_deinit(&w);
    }
}

/* One call fails: places move, files are condemned, and everything comes back. */
static bool survives(uint64_t number, rp_sim_error error, bool sync)
{
    rp_sim_fault fault = {.call = number, .error = error, .seed = number};
    world w;
    rp_error err;
    bool was_safe = false, was_reached;
    rp_status st;

    world_init(&w, number);
    rp_sim_fail(w.disk, &fault);
    st = start_log(&w, sync, &err);
    if (st == RP_OK) {
        for (size_t i = 0; i < 20; i++) (void)step(&w, &was_safe);
        for (int i = 0; i < 20000; i++) {
            st = rp_journal_sync(rp_store_log_journal(w.log), rp_wait_forever(), &err);
            if (st == RP_OK) break;
            (void)nanosleep(&(struct timespec){0, 300000}, NULL);
        }
        assert_ok_err(st, &err);
        rp_sim_drop_caches(w.disk);
        check_disk(&w, rp_sim_after(w.disk, RP_SIM_NONE, 1), w.lsns[w.steps - 1]);
        st = rp_store_log_stop(w.log, &err);
        (void)st; /* the call may be one of the last */
    }
    was_reached = rp_sim_calls(w.disk) >= number;
    world_deinit(&w);
    return was_reached;
}

static void every_call_may_fail(void **state)
{
    uint64_t stride = rp_test_length(rp_test_step(1, 5), 23);

    (void)state;
    for (int sync = 0; sync < 2; sync++)
        for (int error = 0; error < RP_SIM_ERRORS; error++)
            for (uint64_t number = 1; survives(number, (rp_sim_error)error, sync);)
                number += stride;
}

/* Inserts wait when the disk does not keep up, and go on when it does. */
static void inserts_continue_when_the_log_catches_up(void **state)
{
    rp_sim_fault away = {.error = RP_SIM_EIO, .for_good = true};
    world w;
    rp_error err;
    rp_store_log_options o;
    rp_insert item;
    size_t inserted;
    rp_status st = RP_OK;

    (void)state;
    world_init(&w, 4);
    assert_ok_err(start_log(&w, true, &err), &err);
    assert_ok(rp_store_log_stop(w.log, &err));
    o = (rp_store_log_options){.alloc = rp_allocator_default(),
                               .store = w.bed.store,
                               .files = w.files,
                               .segments = w.segments,
                               .id = id,
                               .next_lsn = 1,
                               .sync = true,
                               .retry_ns = 1000000,
                               .max_queued = 3000};
    assert_ok_err(rp_store_log_start(&o, &w.log, &err), &err);
    away.call = rp_sim_calls(w.disk) + 1;
    rp_sim_fail(w.disk, &away);
    for (int i = 0; i < 1000 && st != RP_DEADLINE; i++) {
        item = (rp_insert){.key = (uint64_t)i, .priority = 1, .trajectory = any_trajectory(&w)};
        st = rp_table_insert(rp_test_table(w.bed.store, "first"), &item, 1, rp_wait_none(),
                             &inserted, &err);
        assert_true(st == RP_UNAVAILABLE || st == RP_DEADLINE);
        if (st != RP_DEADLINE) rp_trajectory_unref(item.trajectory);
    }
    assert_fails(st, RP_DEADLINE, &err, "journal is behind");
    rp_sim_fail(w.disk, &(rp_sim_fault){0});
    item.key = 5000;
    for (int i = 0; i < 100 && st != RP_OK; i++)
        st = rp_table_insert(rp_test_table(w.bed.store, "first"), &item, 1, rp_wait_ms(5000),
                             &inserted, &err);
    assert_ok_err(st, &err);
    rp_trajectory_unref(item.trajectory);
    assert_ok_err(rp_store_log_stop(w.log, &err), &err);
    world_deinit(&w);
}

typedef struct parked {
    rp_op op;
    rp_insert item;
    bool is_done;
} parked;

static void set_done(rp_op *op)
{
    ((parked *)op->user)->is_done = true;
}

/* Starts an insert. False if it waits. */
static bool start_insert(world *w, parked *p, uint64_t key)
{
    *p = (parked){.item = {.key = key, .priority = 1, .trajectory = any_trajectory(w)}};
    p->op = (rp_op){
        .items = &p->item, .count = 1, .until_ns = RP_FOREVER, .on_done = set_done, .user = p};
    return rp_table_start_insert(rp_test_table(w->bed.store, "first"), &p->op);
}

/* An insert that waits for the log goes on when that stops, though there is no memory. */
static void stopping_the_log_wakes_waiting_inserts_without_memory(void **state)
{
    rp_sim_fault away = {.error = RP_SIM_EIO, .for_good = true};
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_error err;
    rp_status st;
    parked last;
    world w;

    (void)state;
    world_init(&w, 5);
    assert_ok_err(start_log_with(&w, true, &alloc, &err), &err);
    away.call = rp_sim_calls(w.disk) + 1;
    rp_sim_fail(w.disk, &away);
    for (uint64_t key = 0; start_insert(&w, &last, key); key++) {
        assert_true(key < 100000);
        rp_trajectory_unref(last.item.trajectory);
    }
    assert_false(last.is_done);
    atomic_store(&oom.left, 0);
    st = rp_store_log_stop(w.log, &err);

    assert_true(last.is_done);
    assert_int_not_equal(st, RP_OK); /* the disk is away */
    rp_trajectory_unref(last.item.trajectory);
    assert_int_equal(oom.live, 0);
    world_deinit(&w);
}

/* Inserts that wait for a paused table have their chunks in the queue of the disk. They do not
 * hold up the inserts of another table, though no change is logged that would write them. */
static void inserts_of_a_paused_table_hold_up_no_other_issue_20(void **state)
{
    enum { WAITING = 40 };
    static parked waiting[WAITING];
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_insert item;
    size_t inserted;
    rp_error err;
    world w;

    (void)state;
    for (int sync = 0; sync < 2; sync++) {
        world_init(&w, 6);
        assert_ok_err(start_log_with(&w, sync, &alloc, &err), &err);
        assert_ok(rp_table_pause(rp_test_table(w.bed.store, "first"), RP_SIDE_INSERTS, &err));
        assert_ok(rp_journal_sync(rp_store_log_journal(w.log), rp_wait_forever(), &err));
        for (uint64_t i = 0; i < WAITING; i++) {
            rp_trajectory_unref(w.pool[i % POOL]); /* all chunks are new */
            w.pool[i % POOL] = NULL;
            assert_false(start_insert(&w, &waiting[i], i));
        }
        item = (rp_insert){.key = 1, .priority = 1, .trajectory = any_trajectory(&w)};
        assert_ok_err(rp_table_insert(rp_test_table(w.bed.store, "second"), &item, 1,
                                      rp_wait_ms(10000), &inserted, &err),
                      &err);
        rp_trajectory_unref(item.trajectory);
        assert_ok(rp_table_resume(rp_test_table(w.bed.store, "first"), RP_SIDE_INSERTS, &err));
        assert_ok_err(rp_store_log_stop(w.log, &err), &err);
        for (size_t i = 0; i < WAITING; i++) {
            assert_true(waiting[i].is_done);
            rp_trajectory_unref(waiting[i].item.trajectory);
        }
        assert_int_equal(oom.live, 0);
        world_deinit(&w);
    }
}

RP_TESTS(store_log)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_redone_from_its_log),
        cmocka_unit_test(power_cuts_lose_no_acknowledged_change),
        cmocka_unit_test(every_call_may_fail),
        cmocka_unit_test(inserts_of_a_paused_table_hold_up_no_other_issue_20),
        cmocka_unit_test(inserts_continue_when_the_log_catches_up),
        cmocka_unit_test(stopping_the_log_wakes_waiting_inserts_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
