/* SPDX-License-Identifier: Apache-2.0 */
/* The records that a log gets, and when calls wait for it; records that redo refuses. That redo
 * gives the same table is tested in tests/property/test_replay.c. */
#include "table/table_log.h"

#include <math.h>

#include "store/store.h"
#include "support/cut_image.h"
#include "support/fixture.h"
#include "support/recorder.h"
#include "table/snapshot/cut.h"

typedef struct world {
    rp_test_bed bed;
    rp_table *t;
    rp_test_recorder recorder;
} world;

static void world_init(world *w, const rp_table_options *options)
{
    rp_table_options plain = rp_test_options("t", RP_FIFO, RP_FIFO, 10);

    rp_test_bed_init(&w->bed, NULL);
    w->t = rp_test_bed_table(&w->bed, options != NULL ? options : &plain);
    rp_test_recorder_init(&w->recorder, &w->bed.plain, 1);
    rp_store_set_log(w->bed.store, &w->recorder.log);
}

static void world_deinit(world *w)
{
    rp_store_set_log(w->bed.store, NULL);
    assert_true(rp_table_check(w->t));
    rp_test_bed_deinit(&w->bed);
    rp_test_recorder_deinit(&w->recorder);
}

static const rp_log_record *last_told(const world *w)
{
    assert_true(w->recorder.count > 0);
    return &w->recorder.told[w->recorder.count - 1].change;
}

static void blocking_calls_wait_for_the_log(void **state)
{
    rp_sample_options one = {.count = 1};
    rp_sample sample;
    uint64_t key = 2;
    size_t n;
    world w;

    (void)state;
    world_init(&w, NULL);
    rp_test_put(w.t, 1, 1, w.bed.plain);
    rp_test_put(w.t, 2, 1, w.bed.plain);
    assert_int_equal(w.recorder.prepared, 2);
    assert_int_equal(w.recorder.waits, 2);
    assert_int_equal(w.recorder.waited, 2);
    assert_ok(rp_table_update(w.t, &(rp_update){1, 3}, 1, NULL, NULL));
    assert_int_equal(w.recorder.waited, 3);
    assert_ok(rp_table_sample(w.t, &one, &sample, &n, rp_wait_none(), NULL));
    rp_samples_release(&sample, n);
    assert_int_equal(w.recorder.count, 4); /* it is told, and not waited for */
    assert_int_equal(w.recorder.waited, 3);
    assert_ok(rp_table_delete(w.t, &key, 1, NULL, NULL));
    assert_int_equal(w.recorder.waited, 5);
    assert_ok(
        rp_table_delete(w.t, &key, 1, NULL, NULL)); /* nothing to tell: as safe as before */
    assert_int_equal(w.recorder.count, 5);
    assert_int_equal(w.recorder.waits, 5);
    assert_ok(rp_table_pause(w.t, RP_SIDE_INSERTS, NULL));
    assert_int_equal(last_told(&w)->paused, RP_SIDE_INSERTS);
    assert_ok(rp_table_resume(w.t, RP_SIDE_INSERTS, NULL));
    assert_int_equal(last_told(&w)->paused, 0);
    assert_int_equal(w.recorder.waited, 7);
    assert_ok(rp_table_alter(
        w.t, &(rp_table_alteration){.which = RP_ALTER_MAX_SIZE, .max_size = 5}, NULL));
    assert_int_equal(w.recorder.waited, 8);
    assert_ok(rp_table_reset(w.t, NULL));
    assert_int_equal(w.recorder.waited, 9);
    assert_int_equal(last_told(&w)->kind, RP_LOGGED_RESET);
    world_deinit(&w);
}

static void a_change_that_is_not_logged_is_an_error(void **state)
{
    world w;

    (void)state;
    world_init(&w, NULL);
    w.recorder.wait_status = RP_UNAVAILABLE;
    assert_fails(rp_test_try_put(w.t, 1, 1, w.bed.plain, &w.bed.err), RP_UNAVAILABLE,
                 &w.bed.err, "cannot write");
    assert_true(rp_test_has_key(w.t, 1)); /* but done */
    w.recorder.wait_status = RP_OK;
    w.recorder.prepare_status = RP_NO_RESOURCE;
    assert_fails(rp_test_try_put(w.t, 2, 1, w.bed.plain, &w.bed.err), RP_NO_RESOURCE,
                 &w.bed.err, "journal has no memory");
    assert_false(rp_test_has_key(w.t, 2));
    world_deinit(&w);
}

static void logged_calls_do_not_wait(void **state)
{
    rp_insert item = {.key = 1, .priority = 1};
    uint64_t lsn = 77, key = 1;
    size_t n;
    world w;

    (void)state;
    world_init(&w, NULL);
    item.trajectory = w.bed.plain;
    assert_ok(rp_table_insert_logged(w.t, &item, 1, rp_wait_none(), &n, &lsn, NULL));
    assert_int_equal(lsn, 1);
    assert_ok(rp_table_update_logged(w.t, &(rp_update){1, 3}, 1, NULL, &lsn, NULL));
    assert_int_equal(lsn, 2);
    assert_ok(rp_table_update_logged(w.t, &(rp_update){9, 3}, 1, NULL, &lsn, NULL));
    assert_int_equal(lsn, 2); /* not found, which may be because of what was before */
    assert_ok(rp_table_set_paused_logged(w.t, RP_SIDE_SAMPLES, true, &lsn, NULL));
    assert_int_equal(lsn, 3);
    assert_ok(rp_table_alter_logged(
        w.t, &(rp_table_alteration){.which = RP_ALTER_MAX_SIZE, .max_size = 5}, &lsn, NULL));
    assert_int_equal(lsn, 4);
    assert_ok(rp_table_trim_logged(w.t, NULL, &lsn, NULL));
    assert_int_equal(lsn, 4);
    assert_ok(rp_table_delete_logged(w.t, &key, 1, NULL, &lsn, NULL));
    assert_int_equal(lsn, 5);
    assert_ok(rp_table_reset_logged(w.t, &lsn, NULL));
    assert_int_equal(lsn, 6);
    assert_int_equal(w.recorder.waits, 0);
    rp_store_set_log(w.bed.store, NULL);
    assert_ok(rp_table_reset_logged(w.t, &lsn, NULL));
    assert_int_equal(lsn, 0);
    world_deinit(&w);
}

static void note_done(rp_op *op)
{
    *(bool *)op->user = true;
}

static void operations_have_their_log_sequence_number(void **state)
{
    rp_table_options queue = rp_test_options("q", RP_FIFO, RP_FIFO, 100);
    rp_sample_options two = {.count = 2};
    rp_sample samples[2];
    rp_insert items[4];
    bool over = false;
    rp_op op = {.items = items,
                .count = 4,
                .until_ns = RP_FOREVER,
                .on_done = note_done,
                .user = &over};
    size_t n;
    world w;

    (void)state;
    queue.limiter = rp_limiter_queue(2);
    queue.max_times_sampled = 1;
    world_init(&w, &queue);
    for (size_t i = 0; i < 4; i++)
        items[i] = (rp_insert){.key = i, .priority = 1, .trajectory = w.bed.plain};
    assert_false(rp_table_start_insert(w.t, &op)); /* two go in, two wait */
    assert_int_equal(op.done, 2);
    assert_int_equal(w.recorder.count, 1);
    assert_ok(rp_table_sample(w.t, &two, samples, &n, rp_wait_none(), NULL));
    rp_samples_release(samples, n);
    assert_true(over && op.done == 4);
    assert_int_equal(op.lsn, 3); /* insert, sample, insert */
    assert_int_equal(w.recorder.told[0].change.count, 2);
    assert_int_equal(w.recorder.told[1].change.kind, RP_LOGGED_SAMPLE);
    assert_int_equal(w.recorder.told[1].change.count, 2);
    assert_int_equal(w.recorder.told[2].change.kind, RP_LOGGED_INSERT);
    world_deinit(&w);
}

static void a_log_that_is_behind_blocks_inserts(void **state)
{
    bool over = false;
    rp_insert item = {.key = 1, .priority = 1};
    rp_op op = {.items = &item,
                .count = 1,
                .until_ns = RP_FOREVER,
                .on_done = note_done,
                .user = &over};
    world w;

    (void)state;
    world_init(&w, NULL);
    item.trajectory = w.bed.plain;
    atomic_store(&w.recorder.behind, true);
    assert_fails(rp_test_try_put(w.t, 2, 1, w.bed.plain, &w.bed.err), RP_DEADLINE, &w.bed.err,
                 "journal is behind");
    assert_false(rp_table_start_insert(w.t, &op));
    rp_table_retry_parked(w.t);
    assert_false(over);
    atomic_store(&w.recorder.behind, false);
    rp_table_retry_parked(w.t);
    assert_true(over);
    assert_int_equal(op.status, RP_OK);
    world_deinit(&w);
}

/* A call that blocks waits for the log before it changes anything, and again within a call with
 * many keys. */
static void a_log_that_is_behind_delays_calls_that_block(void **state)
{
    enum { MANY = 150000 };
    rp_update *updates = calloc(MANY, sizeof *updates);
    uint64_t key = 1;
    size_t found, waits;
    world w;

    (void)state;
    assert_non_null(updates);
    world_init(&w, NULL);
    assert_ok(rp_test_try_put(w.t, 1, 1, w.bed.plain, NULL));
    for (size_t i = 0; i < MANY; i++) updates[i] = (rp_update){i, 2}; /* one of them is there */
    waits = w.recorder.waits;
    assert_ok(rp_table_update(w.t, updates, MANY, &found, NULL));
    assert_int_equal(found, 1);
    assert_int_equal(w.recorder.waits, waits + 1); /* until it is durable */
    atomic_store(&w.recorder.behind, true);
    waits = w.recorder.waits;
    assert_ok(rp_table_update(w.t, updates, MANY, &found, NULL));
    assert_int_equal(w.recorder.waits, waits + 3 + 1);
    assert_ok(rp_table_reset(w.t, NULL));
    assert_ok(rp_table_delete(w.t, &key, 1, &found, NULL));
    assert_ok(rp_table_trim(w.t, &found, NULL));
    assert_ok(rp_table_pause(w.t, RP_SIDE_INSERTS, NULL));
    assert_true(w.recorder.waits >= waits + 4 + 4 + 2);
    world_deinit(&w);
    free(updates);
}

/* What had to go for bytes is told with the item it had to go for, or by itself if that item
 * did not come. */
static void evictions_for_bytes_are_counted(void **state)
{
    rp_table_options small = rp_test_options("s", RP_FIFO, RP_FIFO, 100);
    rp_trajectory *blobs[3], *large;
    world w;

    (void)state;
    small.max_bytes = 3400;
    world_init(&w, &small);
    for (uint64_t i = 0; i < 3; i++) {
        blobs[i] = rp_test_blob_trajectory(&w.bed.alloc, i, 1, 400);
        rp_test_put(w.t, i, 1, blobs[i]);
    }
    large = rp_test_blob_trajectory(&w.bed.alloc, 9, 1, 2600);
    rp_test_put(w.t, 9, 1, large);
    assert_int_equal(last_told(&w)->count, 1);
    assert_int_equal(last_told(&w)->inserted[0].evicted, 3);
    assert_true(last_told(&w)->inserted[0].trajectory == large);
    rp_test_put(w.t, 9, 5, blobs[0]); /* the key is there */
    assert_null(last_told(&w)->inserted[0].trajectory);
    assert_true(last_told(&w)->inserted[0].priority == 5);
    for (size_t i = 0; i < 3; i++) rp_trajectory_unref(blobs[i]);
    rp_trajectory_unref(large);
    world_deinit(&w);
}

/* An empty table gives back its slots and numbers new ones from 0. Which slot an item has
 * decides which one a prioritized remover picks, so a replay has to do the same. */
static void a_redo_renumbers_slots_like_the_first_run(void **state)
{
    enum { MANY = 3000, FEW = 1000 };
    rp_store_options store = {.max_bytes = 4 << 20};
    rp_table_options options = rp_test_options("t", RP_PRIORITIZED, RP_PRIORITIZED, MANY);
    rp_table_alteration less = {.which = RP_ALTER_MAX_SIZE, .max_size = FEW / 2};
    rp_test_recorder recorder;
    rp_test_bed bed, again;
    rp_table *t, *made_again;
    size_t renumbered = 0;

    (void)state;
    rp_test_bed_init(&bed, &store);
    rp_test_bed_init(&again, &store);
    t = rp_test_bed_table(&bed, &options);
    made_again = rp_test_bed_table(&again, &options);
    rp_test_recorder_init(&recorder, &bed.plain, 1);
    rp_store_set_log(bed.store, &recorder.log);
    for (uint64_t key = 0; key < MANY; key++) rp_test_put(t, key, 1, bed.plain);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t key = i * 7 % MANY; /* so that slots would be taken again in another order */
        assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
    }
    for (uint64_t key = 0; key < FEW; key++) rp_test_put(t, key, (double)(key % 13), bed.plain);
    assert_ok(rp_table_alter(t, &less, NULL));
    assert_ok(rp_table_trim(t, NULL, NULL));
    for (size_t i = 0; i < recorder.count; i++)
        renumbered += recorder.told[i].change.kind == RP_LOGGED_RENUMBER;
    assert_int_equal(renumbered, 1);

    assert_ok_err(rp_test_recorder_replay(&recorder, t, made_again, &again.plain, &again.err),
                  &again.err);

    assert_int_equal(rp_table_digest(made_again), rp_table_digest(t));
    rp_store_set_log(bed.store, NULL);
    rp_test_bed_deinit(&bed);
    rp_test_bed_deinit(&again);
    rp_test_recorder_deinit(&recorder);
}

/* A table that is restored keeps its numbers until its journal has been redone, although the
 * store may have become smaller meanwhile. */
static void restored_slots_keep_their_numbers(void **state)
{
    enum { MANY = 3000, FEW = 1000 };
    rp_store_options large = {.max_bytes = 64 << 20}, small = {.max_bytes = 4 << 20};
    rp_table_options options = rp_test_options("t", RP_PRIORITIZED, RP_PRIORITIZED, MANY);
    rp_table_alteration less = {.which = RP_ALTER_MAX_SIZE, .max_size = FEW / 2};
    rp_test_recorder recorder;
    rp_restore_source source;
    rp_test_image image;
    rp_test_bed bed, again;
    rp_table *t, *restored;

    (void)state;
    rp_test_bed_init(&bed, &large);
    rp_test_bed_init(&again, &small);
    t = rp_test_bed_table(&bed, &options);
    restored = rp_test_bed_table(&again, &options);
    for (uint64_t key = 0; key < MANY; key++) rp_test_put(t, key, 1, bed.plain);
    for (uint64_t i = 0; i < MANY; i++) {
        uint64_t key = i * 7 % MANY;
        assert_ok(rp_table_delete(t, &key, 1, NULL, NULL));
    }
    rp_test_image_of(&image, &bed, t, true);
    rp_test_recorder_init(&recorder, &bed.plain, 1);
    rp_store_set_log(bed.store, &recorder.log);
    for (uint64_t key = 0; key < FEW; key++) rp_test_put(t, key, (double)(key % 13), bed.plain);
    assert_ok(rp_table_alter(t, &less, NULL));
    assert_ok(rp_table_trim(t, NULL, NULL));
    source = rp_test_image_source(&image);

    assert_ok_err(rp_table_restore(restored, &image.state, &source, &again.err), &again.err);
    assert_ok_err(rp_test_recorder_replay(&recorder, t, restored, &again.plain, &again.err),
                  &again.err);

    assert_int_equal(rp_table_digest(restored), rp_table_digest(t));
    rp_store_set_log(bed.store, NULL);
    rp_test_image_deinit(&image);
    rp_test_bed_deinit(&bed);
    rp_test_bed_deinit(&again);
    rp_test_recorder_deinit(&recorder);
}

static void refuse(world *w, const rp_log_record *change, const char *part)
{
    assert_fails(rp_table_redo(w->t, change, &w->bed.err), RP_CORRUPT, &w->bed.err, part);
    assert_true(rp_table_check(w->t));
}

static void a_redo_refuses_inconsistent_records(void **state)
{
    rp_table_options options = rp_test_options("t", RP_PRIORITIZED, RP_FIFO, 10);
    rp_inserted again = {.key = 1, .priority = 1}, other = {.key = 2, .priority = 1};
    rp_inserted many = {.key = 3, .priority = 1, .evicted = 2}, bad = {.key = 3};
    rp_update update = {2, 1}, nan = {1, NAN};
    uint64_t key = 2;
    world w;

    (void)state;
    world_init(&w, &options);
    rp_test_put(w.t, 1, 1, w.bed.plain);
    rp_store_set_log(w.bed.store, NULL);
    again.trajectory = many.trajectory = bad.trajectory = w.bed.plain;
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &again, .count = 1},
           "there already");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &other, .count = 1},
           "not there");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &many, .count = 1},
           "evicts 2");
    bad.priority = -1;
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &bad, .count = 1},
           "key 3");
    bad.priority = 1;
    bad.times_sampled = -1;
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &bad, .count = 1}, "-1");
    refuse(
        &w,
        &(rp_log_record){.kind = RP_LOGGED_INSERT, .inserted = &other, .count = 1, .dead = 5},
        "fewer");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_UPDATE, .updates = &update, .count = 1},
           "not there");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_UPDATE, .updates = &nan, .count = 1},
           "key 1");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_DELETE, .keys = &key, .count = 1},
           "not there");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_EVICT, .count = 2}, "2 evictions");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_SAMPLE, .count = 0}, "sample of 0");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_SAMPLE, .count = 2, .distinct = true},
           "sample of 2");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_PAUSE, .paused = 8}, "sides");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_ALTER, .alter = {.which = 64}}, "unknown");
    refuse(&w,
           &(rp_log_record){.kind = RP_LOGGED_ALTER,
                            .alter = {.which = RP_ALTER_MAX_SIZE, .max_size = 0}},
           "max_size");
    refuse(&w, &(rp_log_record){.kind = RP_LOGGED_RENUMBER}, "1 items");
    refuse(&w, &(rp_log_record){.kind = (rp_log_record_kind)99}, "no change 99");
    world_deinit(&w);
}

static rp_status replay_some(const rp_allocator *alloc)
{
    rp_table_options options = rp_test_options("t", RP_PRIORITIZED, RP_UNIFORM, 10);
    rp_store *store = NULL;
    rp_table *t = NULL;
    rp_trajectory *trajectory = NULL;
    rp_chunk *chunk = rp_test_try_blob(alloc, 1, 1, 50);
    rp_inserted in[20];
    rp_log_record insert = {.kind = RP_LOGGED_INSERT, .inserted = in, .count = 20};
    rp_log_record sample = {.kind = RP_LOGGED_SAMPLE, .count = 300};
    rp_status st = chunk != NULL ? RP_OK : RP_NO_RESOURCE;

    if (st == RP_OK) trajectory = rp_test_try_join(alloc, &chunk, 1);
    if (trajectory == NULL) st = RP_NO_RESOURCE;
    if (st == RP_OK)
        st = rp_store_new(&(rp_store_options){.alloc = alloc, .seed = 3}, &store, NULL);
    if (st == RP_OK) st = rp_store_add_table(store, &options, &t, NULL);
    for (size_t i = 0; i < 20; i++)
        in[i] = (rp_inserted){.key = i, .priority = 1, .trajectory = trajectory};
    if (st == RP_OK) st = rp_table_redo(t, &insert, NULL);
    if (st == RP_OK) st = rp_table_redo(t, &sample, NULL);
    if (t != NULL) {
        assert_true(rp_table_check(t));
        rp_table_redo_end(t);
    }
    rp_store_free(store);
    rp_trajectory_unref(trajectory);
    rp_chunk_unref(chunk);
    return st;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    rp_test_survives_oom(replay_some);
}

RP_TESTS(table_log)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocking_calls_wait_for_the_log),
        cmocka_unit_test(a_change_that_is_not_logged_is_an_error),
        cmocka_unit_test(logged_calls_do_not_wait),
        cmocka_unit_test(operations_have_their_log_sequence_number),
        cmocka_unit_test(a_log_that_is_behind_blocks_inserts),
        cmocka_unit_test(a_log_that_is_behind_delays_calls_that_block),
        cmocka_unit_test(evictions_for_bytes_are_counted),
        cmocka_unit_test(a_redo_renumbers_slots_like_the_first_run),
        cmocka_unit_test(restored_slots_keep_their_numbers),
        cmocka_unit_test(a_redo_refuses_inconsistent_records),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
