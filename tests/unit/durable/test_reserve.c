/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve: on a full disk there is space for the largest checkpoint, whatever the items and
 * tables are, and a checkpoint that fails does not use the space up. */
#include <stdio.h>
#include <time.h>

#include <unistd.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/error.h"

enum {
    DISK = 24 << 20,
    SEGMENT = 512 << 10,
    RESERVE = 256 << 10, /* the fixed part */
    CHUNK = 8 << 10,
    MOST_ITEMS = 10000,
    WIDE = 256,
    COLUMNS = 1000,
    WELL_MS = 30000,
};

typedef struct fixture {
    rp_sim *disk;
    rp_files *files;
    rp_files_ops ops; /* of `files`, to be changed */
    rp_store *store;
    rp_durable *durable;
    rp_table *table, *wide;
    uint64_t next;
    rp_error err;
} fixture;

static void open_on(fixture *f, rp_sim *disk, rp_durability mode)
{
    rp_store_options store = {.seed = 5};
    rp_durable_options options = {.directory = "reserve",
                                  .mode = mode,
                                  .interval_ns = INT64_C(3600) * 1000000000,
                                  .period_ns = RP_FOREVER,
                                  .keep = 1,
                                  .segment_bytes = SEGMENT};
    rp_durable_tuning tuning = {.retry_ns = 1000000, .reserve_bytes = RESERVE};
    rp_table_options table = rp_test_options("t", RP_UNIFORM, RP_FIFO, MOST_ITEMS);
    rp_table_options wide = rp_test_options("w", RP_PRIORITIZED, RP_FIFO, MOST_ITEMS);

    *f = (fixture){.disk = disk, .files = rp_sim_mount(disk)};
    f->ops = *f->files->ops;
    assert_ok(rp_store_new(&store, &f->store, NULL));
    assert_ok(rp_store_add_table(f->store, &table, &f->table, NULL));
    assert_ok(rp_store_add_table(f->store, &wide, &f->wide, NULL));
    assert_ok_err(
        rp_durable_open_tuned(f->files, &options, &tuning, f->store, &f->durable, &f->err),
        &f->err);
}

static void open_new(fixture *f, rp_durability mode)
{
    rp_sim *disk = rp_sim_new();

    rp_sim_set_capacity(disk, DISK);
    open_on(f, disk, mode);
}

static void close_fixture(fixture *f)
{
    rp_status st = rp_durable_close(f->durable, NULL);

    assert_true(st == RP_OK || st == RP_NO_RESOURCE);
    rp_store_free(f->store);
    f->files->ops->free(f->files);
    rp_sim_free(f->disk);
}

static bool is_degraded(const fixture *f)
{
    rp_durable_info info;

    rp_durable_get_info(f->durable, &info);
    return info.degraded;
}

static void show_file(void *ctx, const char *path, uint64_t size)
{
    (void)ctx;
    print_message("%s: %llu bytes\n", path, (unsigned long long)size);
}

static void pause_ms(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void wait_until_well(const fixture *f)
{
    for (int ms = 0; is_degraded(f); ms++) {
        rp_durable_info info;

        if (ms == WELL_MS) {
            rp_durable_get_info(f->durable, &info);
            rp_sim_list(f->disk, show_file, NULL);
            fail_msg("degraded: %s", info.trouble);
        }
        pause_ms();
    }
}

static rp_status insert(fixture *f, int64_t ms)
{
    rp_insert item = {.key = ++f->next, .priority = 1};
    rp_status st;

    item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), item.key, 1, CHUNK);
    st = rp_table_insert(f->table, &item, 1, rp_wait_ms(ms), NULL, &f->err);
    rp_trajectory_unref(item.trajectory);
    return st;
}

static rp_status checkpoint(fixture *f)
{
    return rp_durable_checkpoint(f->durable, rp_wait_ms(60000), NULL, 0, &f->err);
}

/* An item with many columns, all of them slices of one chunk. */
static rp_trajectory *make_wide(size_t columns)
{
    static rp_slices views[RP_MAX_COLUMNS];
    rp_trajectory *one = rp_test_blob_trajectory(rp_allocator_default(), 1, 1, 16), *wide;
    rp_chunk_slice slice = {.chunk = rp_trajectory_get_chunk(one, 0), .length = 1};

    assert_true(columns <= RP_MAX_COLUMNS);
    for (size_t i = 0; i < columns; i++) views[i] = (rp_slices){&slice, 1, false};
    assert_ok(rp_trajectory_new(rp_allocator_default(), views, columns, &wide, NULL));
    rp_trajectory_unref(one);
    return wide;
}

static void insert_wide(fixture *f)
{
    rp_insert item = {.priority = 1, .trajectory = make_wide(COLUMNS)};

    for (item.key = 1; item.key <= WIDE; item.key++)
        assert_ok_err(rp_table_insert(f->wide, &item, 1, rp_wait_ms(60000), NULL, &f->err),
                      &f->err);
    rp_trajectory_unref(item.trajectory);
}

/* Changes every block of the wide items. With sync it is not acknowledged on a full disk. */
static void update_wide(fixture *f, double priority)
{
    static rp_update updates[WIDE];
    rp_status st;

    for (size_t i = 0; i < WIDE; i++) updates[i] = (rp_update){i + 1, priority};
    st = rp_table_update(f->wide, updates, WIDE, NULL, &f->err);
    assert_true(st == RP_OK || st == RP_UNAVAILABLE);
}

static void fill(fixture *f)
{
    for (int i = 0; i < 4000 && !is_degraded(f); i++) (void)insert(f, 2);
    assert_true(is_degraded(f));
}

/* It is not acknowledged before a checkpoint is complete. */
static void delete_all(fixture *f)
{
    static uint64_t keys[MOST_ITEMS];
    rp_status st;

    assert_true(f->next <= MOST_ITEMS);
    for (uint64_t i = 0; i < f->next; i++) keys[i] = i + 1;
    st = rp_table_delete(f->table, keys, (size_t)f->next, NULL, NULL);
    assert_true(st == RP_OK || st == RP_UNAVAILABLE);
}

static void expect_recovery(fixture *f)
{
    delete_all(f);
    wait_until_well(f);
    assert_ok_err(insert(f, 60000), &f->err);
    wait_until_well(f);
}

/* A checkpoint of wide items takes far more than 64 bytes for each. */
static void wide_items_fit_into_the_reserve_issue_20(void **state)
{
    fixture f;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    insert_wide(&f);
    assert_ok_err(checkpoint(&f), &f.err);
    assert_ok_err(checkpoint(&f), &f.err);
    fill(&f);
    update_wide(&f, 2);
    expect_recovery(&f);
    close_fixture(&f);
}

/* Inserts wide items, with keys from item->key, until the disk is full and one does not enter
 * the table. On a slow machine the wait for a sync can end first: such an item is in the table.
 */
static void insert_until_full(fixture *f, rp_insert *item)
{
    bool is_full = false;

    for (; !is_full && item->key < MOST_ITEMS; item->key++) {
        int64_t size = rp_test_info_of(f->wide).size;
        rp_status st = rp_table_insert(f->wide, item, 1, rp_wait_ms(200), NULL, &f->err);

        assert_true(st == RP_OK || st == RP_DEADLINE);
        is_full = st == RP_DEADLINE && is_degraded(f) && rp_test_info_of(f->wide).size == size;
    }
    assert_true(is_full);
}

/* Wide items fill the disk, with few chunks. Those for which the reserve cannot grow do not
 * enter the table, so all that are in it fit into a checkpoint. */
static void wide_items_wait_before_they_enter_issue_20(void **state)
{
    rp_insert item = {.key = 1, .priority = 1, .trajectory = make_wide(RP_MAX_COLUMNS)};
    rp_status st;
    fixture f;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    insert_until_full(&f, &item);
    assert_in_range(rp_test_info_of(f.wide).size, 100, MOST_ITEMS);
    for (size_t i = 0; i < rp_test_length(4, 2); i++) {
        update_wide(&f, 2 + (int)i);
        assert_ok_err(checkpoint(&f), &f.err);
    }
    st = rp_table_reset(f.wide, &f.err);
    assert_true(st == RP_OK || st == RP_UNAVAILABLE);
    wait_until_well(&f);
    assert_ok_err(rp_table_insert(f.wide, &item, 1, rp_wait_ms(60000), NULL, &f.err), &f.err);
    rp_trajectory_unref(item.trajectory);
    close_fixture(&f);
}

/* Checkpoints on a full disk follow one another. None leaves too little space for the next. */
static void checkpoints_on_a_full_disk_follow_one_another_issue_20(void **state)
{
    fixture f;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    insert_wide(&f);
    assert_ok_err(checkpoint(&f), &f.err);
    fill(&f);
    for (size_t i = 0; i < rp_test_length(12, 5); i++) {
        update_wide(&f, 2 + (int)i);
        assert_ok_err(checkpoint(&f), &f.err);
    }
    expect_recovery(&f);
    close_fixture(&f);
}

/* A table with a signature of about 100 bytes for each of its columns. */
static rp_status add_table(fixture *f, int number, size_t columns)
{
    static char names[RP_MAX_COLUMNS][96];
    static rp_spec specs[RP_MAX_COLUMNS];
    char name[16] = "s";
    rp_table_options options = rp_test_options(name, RP_UNIFORM, RP_FIFO, 9);
    rp_status st;

    (void)snprintf(name, sizeof name, "s%d", number);
    for (size_t i = 0; i < columns; i++) {
        (void)snprintf(names[i], sizeof names[i], "%080zu", i);
        specs[i] = (rp_spec){.name = names[i], .dtype = RP_FLOAT32, .shape = {.rank = 0}};
    }
    assert_ok_err(
        rp_signature_flat(rp_allocator_default(), specs, columns, &options.signature, &f->err),
        &f->err);
    st = rp_store_add_table(f->store, &options, NULL, &f->err);
    rp_signature_unref(options.signature);
    return st;
}

enum { SIGNED_TABLES = 8, SIGNED_COLUMNS = 1000 };

static void expect_signatures_fit(rp_durability mode)
{
    fixture f;

    open_new(&f, mode);
    for (int i = 0; i < SIGNED_TABLES; i++)
        assert_ok_err(add_table(&f, i, SIGNED_COLUMNS), &f.err);
    assert_ok_err(checkpoint(&f), &f.err);
    assert_ok_err(checkpoint(&f), &f.err);
    fill(&f);
    expect_recovery(&f);
    close_fixture(&f);
}

/* The manifest has the signatures of all tables. */
static void signatures_fit_into_the_reserve_issue_20(void **state)
{
    (void)state;
    expect_signatures_fit(RP_DURABLE_SYNC);
    expect_signatures_fit(RP_DURABLE_INTERVAL);
}

/* A table for which the reserve cannot grow is refused, and the store recovers as before. */
static void a_table_without_room_is_refused_issue_20(void **state)
{
    rp_status st = RP_OK;
    int number = 0;
    fixture f;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    assert_ok_err(checkpoint(&f), &f.err);
    fill(&f);
    for (; st == RP_OK || st == RP_UNAVAILABLE; number++) {
        assert_true(number < 20);
        st = add_table(&f, number, SIGNED_COLUMNS);
    }
    assert_int_equal(st, RP_NO_RESOURCE);
    assert_non_null(strstr(f.err.text, "the disk is full: a checkpoint takes"));
    expect_recovery(&f);
    /* The journal may need a moment more than the health of the store says. */
    for (int tries = 0; st != RP_OK && tries < 2000; tries++) {
        st = add_table(&f, number++, SIGNED_COLUMNS);
        if (st != RP_OK) (void)usleep(10000);
    }
    assert_ok_err(st, &f.err);
    close_fixture(&f);
}

/* What wide items needed is free again when they are gone. */
static void the_reserve_shrinks_issue_20(void **state)
{
    uint64_t held, small, large;
    fixture f;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    assert_ok_err(checkpoint(&f), &f.err);
    small = rp_durable_reserve_wanted(f.durable, &held);
    assert_int_equal(held, small);
    insert_wide(&f);
    large = rp_durable_reserve_wanted(f.durable, &held);
    assert_in_range(large, small + WIDE * COLUMNS * 4, small + WIDE * COLUMNS * 20);
    assert_ok_err(checkpoint(&f), &f.err);
    (void)rp_durable_reserve_wanted(f.durable, &held);
    assert_in_range(held, large, large + 4096); /* the number of segments counts, too */
    assert_ok_err(rp_table_reset(f.wide, &f.err), &f.err);
    assert_ok_err(checkpoint(&f), &f.err);
    (void)rp_durable_reserve_wanted(f.durable, &held);
    assert_in_range(held, small, small + 8192);
    close_fixture(&f);
}

static uint64_t reserve_on(rp_sim *disk)
{
    uint8_t byte;
    uint64_t bytes = 0;

    while (rp_sim_read(disk, RP_RESERVE_PATH, bytes, &byte, 1) == 1) bytes += RP_SIM_PAGE;
    return bytes;
}

/* Waits until the file has so many bytes: while a checkpoint is written, there is none. */
static uint64_t wait_for_reserve(rp_sim *disk, uint64_t least)
{
    uint64_t bytes = reserve_on(disk);

    for (int ms = 0; ms < WELL_MS && bytes < least; ms++) {
        pause_ms();
        bytes = reserve_on(disk);
    }
    assert_true(bytes >= least);
    return bytes;
}

static rp_sim *full_disk, *left_behind; /* as it was when a manifest was to be written */
static rp_status (*real_open)(rp_files *, const char *, rp_open_how, rp_file **, rp_error *);

/* The disk has no space for a manifest. */
static rp_status refuse_manifest(rp_files *fs, const char *path, rp_open_how how, rp_file **out,
                                 rp_error *err)
{
    if (how == RP_OPEN_CREATE && strncmp(path, "manifest/", 9) == 0) {
        if (left_behind == NULL) left_behind = rp_sim_copy(full_disk);
        return rp_fail(err, RP_NO_RESOURCE, "%s: No space left on device", path);
    }
    return real_open(fs, path, how, out, err);
}

static void refuse_manifests(fixture *f)
{
    full_disk = f->disk;
    left_behind = NULL;
    real_open = f->files->ops->open;
    f->ops.open = refuse_manifest;
    f->files->ops = &f->ops;
}

/* A checkpoint on a full disk fails after its blocks are written: they are removed again. */
static void a_failed_checkpoint_leaves_the_reserve_issue_20(void **state)
{
    fixture f, after;
    uint64_t reserve;

    (void)state;
    open_new(&f, RP_DURABLE_SYNC);
    insert_wide(&f);
    assert_ok_err(checkpoint(&f), &f.err);
    fill(&f);
    update_wide(&f, 2);
    assert_ok_err(checkpoint(&f), &f.err); /* the next one has nothing to vacate */
    assert_ok_err(checkpoint(&f), &f.err);
    /* The journal may use a part of the fixed part. */
    reserve = wait_for_reserve(f.disk, WIDE * COLUMNS * 4) - RESERVE;
    refuse_manifests(&f);
    for (size_t i = 0; i < rp_test_length(8, 3); i++) {
        update_wide(&f, 3 + (int)i);
        assert_int_equal(checkpoint(&f), RP_NO_RESOURCE);
    }
    (void)wait_for_reserve(f.disk, reserve);
    f.ops.open = real_open;
    expect_recovery(&f);
    close_fixture(&f);
    /* The process was killed instead: the next one removes them. */
    open_on(&after, left_behind, RP_DURABLE_SYNC);
    (void)wait_for_reserve(after.disk, reserve); /* a checkpoint may be under way */
    assert_ok_err(checkpoint(&after), &after.err);
    close_fixture(&after);
}

RP_TESTS(reserve)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wide_items_fit_into_the_reserve_issue_20),
        cmocka_unit_test(wide_items_wait_before_they_enter_issue_20),
        cmocka_unit_test(checkpoints_on_a_full_disk_follow_one_another_issue_20),
        cmocka_unit_test(signatures_fit_into_the_reserve_issue_20),
        cmocka_unit_test(a_table_without_room_is_refused_issue_20),
        cmocka_unit_test(the_reserve_shrinks_issue_20),
        cmocka_unit_test(a_failed_checkpoint_leaves_the_reserve_issue_20),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
