/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store on a disk that becomes full: acknowledged items stay, and the store recovers
 * by itself as soon as the items in its tables fit on the disk. */
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/error.h"

enum {
    CHUNK = 8 << 10,
    LIVE = 40,     /* items in the table: 320 KiB */
    BACKLOG = 400, /* items: 3.2 MiB */
    WELL_MS = 30000,
    RESERVE = 64 << 10,
    SMALL_SEGMENT = 64 << 10, /* as on a small disk */
};

typedef struct bench {
    rp_sim *disk;
    rp_files *files;
    rp_store *store;
    rp_durable *durable;
    rp_table *table;
    uint64_t next;
    rp_error err;
} bench;

static void open_tuned(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size,
                       uint64_t segment_bytes, rp_durable_tuning tuning)
{
    rp_store_options store = {.seed = 5};
    rp_durable_options options = {.directory = "bench",
                                  .mode = mode,
                                  .interval_ns = INT64_C(3600) * 1000000000,
                                  .period_ns = RP_FOREVER,
                                  .keep = 1,
                                  .segment_bytes = segment_bytes};
    rp_table_options table = rp_test_options("t", RP_UNIFORM, RP_FIFO, max_size);

    *b = (bench){.disk = disk, .files = rp_sim_mount(disk)};
    assert_ok(rp_store_new(&store, &b->store, NULL));
    assert_ok(rp_store_add_table(b->store, &table, &b->table, NULL));
    assert_ok_err(
        rp_durable_open_tuned(b->files, &options, &tuning, b->store, &b->durable, &b->err),
        &b->err);
}

/* Nothing waits for long: tries come soon, and inserts do not wait for room. */
static void open_with(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size,
                      uint64_t segment_bytes, uint64_t reserve_bytes)
{
    open_tuned(b, disk, mode, max_size, segment_bytes,
               (rp_durable_tuning){.retry_ns = 1000000, .reserve_bytes = reserve_bytes});
}

static void open_on(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size)
{
    open_with(b, disk, mode, max_size, 1 << 20, RESERVE);
}

static void close_bench(bench *b)
{
    rp_status st = rp_durable_close(b->durable, NULL);

    assert_true(st == RP_OK || st == RP_NO_RESOURCE); /* the disk may be full */
    rp_store_free(b->store);
    b->files->ops->free(b->files);
}

static bool is_degraded(const bench *b)
{
    rp_durable_info info;

    rp_durable_get_info(b->durable, &info);
    return info.degraded;
}

static bool insert_within(bench *b, int64_t ms)
{
    rp_insert item = {.key = ++b->next, .priority = 1};
    rp_status st;

    item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), b->next, 1, CHUNK);
    st = rp_table_insert(b->table, &item, 1, rp_wait_ms(ms), NULL, &b->err);
    rp_trajectory_unref(item.trajectory);
    return st == RP_OK && !is_degraded(b);
}

/* True if the insert was acknowledged while the store was well. */
static bool insert(bench *b)
{
    return insert_within(b, 60000);
}

/* The same for a disk that is full: with sync, the insert waits then. */
static void try_insert(bench *b)
{
    (void)insert_within(b, 2);
}

static void add_size(void *ctx, const char *path, uint64_t size)
{
    (void)path;
    *(uint64_t *)ctx += (size + RP_SIM_PAGE - 1) / RP_SIM_PAGE * RP_SIM_PAGE;
}

static uint64_t used(rp_sim *disk)
{
    uint64_t bytes = 0;

    rp_sim_list(disk, add_size, &bytes);
    return bytes;
}

static void show_file(void *ctx, const char *path, uint64_t size)
{
    (void)ctx;
    print_message("%s: %llu bytes\n", path, (unsigned long long)size);
}

static void wait_until_well(const bench *b)
{
    for (int ms = 0; is_degraded(b); ms++) {
        if (ms == WELL_MS) {
            rp_durable_info info;

            rp_durable_get_info(b->durable, &info);
            rp_sim_list(b->disk, show_file, NULL);
            fail_msg("degraded: %s", info.trouble);
        }
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* The process is killed after the disk has filled up: a new one finds every item that was
 * acknowledged before, though no sync had come yet. */
static void expect_acknowledged(uint64_t room)
{
    bench b, after;
    uint64_t acknowledged = 0;
    rp_sim *disk = rp_sim_new(), *left;

    open_with(&b, disk, RP_DURABLE_INTERVAL, 10000, 1 << 20, 0);
    for (int i = 0; i < 20; i++) acknowledged += insert(&b);
    assert_int_equal(acknowledged, 20);
    rp_sim_set_capacity(disk, used(disk) + room);
    while (insert(&b)) acknowledged++;
    for (int i = 0; i < 5; i++) assert_false(insert(&b));
    left = rp_sim_copy(disk);
    open_with(&after, left, RP_DURABLE_INTERVAL, 10000, 1 << 20, 0);
    assert_true((uint64_t)rp_test_info_of(after.table).size >= acknowledged);
    close_bench(&after);
    rp_sim_free(left);
    close_bench(&b);
    rp_sim_free(disk);
}

static void acknowledged_items_survive_a_full_disk_issue_20(void **state)
{
    (void)state;
    for (uint64_t pages = 0; pages < 24; pages++) expect_acknowledged(pages * RP_SIM_PAGE);
}

/* There is room for the items that are alive and not for all that were inserted meanwhile. */
static void recover(rp_durability mode)
{
    bench b, after;
    rp_sim *disk = rp_sim_new(), *left;
    uint64_t digest;

    open_on(&b, disk, mode, LIVE);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    rp_sim_set_capacity(disk, used(disk) + (uint64_t)4 * CHUNK);
    while (!is_degraded(&b)) try_insert(&b);
    for (int i = 0; i < BACKLOG; i++) try_insert(&b);
    rp_sim_set_capacity(disk, used(disk) + (uint64_t)3 * LIVE * CHUNK);
    wait_until_well(&b);
    while (!insert(&b)) wait_until_well(&b);
    digest = rp_table_digest(b.table);
    left = rp_sim_copy(disk);
    open_on(&after, left, mode, LIVE);
    assert_true(rp_table_digest(after.table) == digest);
    close_bench(&after);
    rp_sim_free(left);
    close_bench(&b);
    rp_sim_free(disk);
}

static void interval_recovers_once_live_data_fits_issue_20(void **state)
{
    (void)state;
    recover(RP_DURABLE_INTERVAL);
}

static void sync_recovers_once_live_data_fits_issue_20(void **state)
{
    (void)state;
    recover(RP_DURABLE_SYNC);
}

/* The store itself fills the disk, with chunks of items that are gone. No other file is
 * removed. */
static void churn(rp_durability mode)
{
    bench b, after;
    rp_sim *disk = rp_sim_new(), *left;
    uint64_t digest;

    /* With `interval`, inserts wait for the checkpoint for so long at most. */
    open_tuned(
        &b, disk, mode, LIVE, SMALL_SEGMENT,
        (rp_durable_tuning){.retry_ns = mode == RP_DURABLE_SYNC ? 200000000 : 30000000000,
                            .reserve_bytes = RESERVE});
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    rp_sim_set_capacity(disk, used(disk) + (uint64_t)2 * LIVE * CHUNK);
    for (int i = 0; i < 20 * LIVE; i++) (void)insert(&b);
    wait_until_well(&b);
    while (!insert(&b)) wait_until_well(&b);
    digest = rp_table_digest(b.table);
    left = rp_sim_copy(disk);
    open_with(&after, left, mode, LIVE, SMALL_SEGMENT, RESERVE);
    assert_true(rp_table_digest(after.table) == digest);
    close_bench(&after);
    rp_sim_free(left);
    close_bench(&b);
    rp_sim_free(disk);
}

static void interval_frees_dead_chunks_on_a_full_disk_issue_20(void **state)
{
    (void)state;
    churn(RP_DURABLE_INTERVAL);
}

static void sync_frees_dead_chunks_on_a_full_disk_issue_20(void **state)
{
    (void)state;
    churn(RP_DURABLE_SYNC);
}

/* It may not be acknowledged: the disk is full. */
static void reset(bench *b)
{
    rp_status st = rp_table_reset(b->table, NULL);

    assert_true(st == RP_OK || st == RP_UNAVAILABLE);
}

/* Others fill the disk to the last byte; then the items go. All that was written is in the open
 * segment. */
static void empty(rp_durability mode)
{
    bench b, after;
    rp_sim *disk = rp_sim_new(), *left;

    open_on(&b, disk, mode, LIVE);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    rp_sim_set_capacity(disk, used(disk));
    reset(&b);
    for (int i = 0; i < LIVE / 2; i++) try_insert(&b);
    reset(&b);
    wait_until_well(&b);
    while (!insert(&b)) wait_until_well(&b);
    assert_true(rp_test_info_of(b.table).size > 0);
    left = rp_sim_copy(disk);
    open_on(&after, left, mode, LIVE);
    assert_true(rp_table_digest(after.table) == rp_table_digest(b.table));
    close_bench(&after);
    rp_sim_free(left);
    close_bench(&b);
    rp_sim_free(disk);
}

static void interval_recovers_without_a_free_byte_issue_20(void **state)
{
    (void)state;
    empty(RP_DURABLE_INTERVAL);
}

static void sync_recovers_without_a_free_byte_issue_20(void **state)
{
    (void)state;
    empty(RP_DURABLE_SYNC);
}

enum {
    DISK = 4 << 20,   /* the fixed part of the reserve is a sixteenth of it: 256 KiB */
    KEEP_ONE_IN = 60, /* items, scattered over all segments */
    MOST_ITEMS = 10000,
    ROUNDS = 4
};

static uint64_t reserve_on(rp_sim *disk)
{
    uint8_t byte;
    uint64_t bytes = 0;

    while (rp_sim_read(disk, RP_RESERVE_PATH, bytes, &byte, 1) == 1) bytes += RP_SIM_PAGE;
    return bytes;
}

/* Asks for a checkpoint where no journal does. */
static void settle(const bench *b, rp_durability mode)
{
    rp_status st = RP_OK;

    if (mode == RP_DURABLE_CHECKPOINT)
        st = rp_durable_checkpoint(b->durable, rp_wait_ms(60000), NULL, 0, NULL);
    assert_true(st == RP_OK || st == RP_NO_RESOURCE);
}

/* Deletes all items but one in KEEP_ONE_IN. It may not be acknowledged: the disk is full. */
static void delete_most(bench *b)
{
    static uint64_t keys[MOST_ITEMS];
    size_t count = 0;
    rp_status st;

    for (uint64_t key = 1; key <= b->next; key++)
        if (key % KEEP_ONE_IN != 1) keys[count++] = key;
    assert_true(count <= MOST_ITEMS);
    st = rp_table_delete(b->table, keys, count, NULL, NULL);
    assert_true(st == RP_OK || st == RP_UNAVAILABLE);
}

/* Live items fill the disk, and `more` are tried behind them. Then most are deleted: no file of
 * anybody else is removed, and the store is well again, with its reserve. */
static void refill(int more)
{
    rp_durability mode = RP_DURABLE_SYNC;
    bench b, after;
    rp_sim *disk = rp_sim_new(), *left;

    rp_sim_set_capacity(disk, DISK);
    open_with(&b, disk, mode, MOST_ITEMS, SMALL_SEGMENT, DISK);
    for (int round = 0; round < ROUNDS; round++) {
        while (!is_degraded(&b)) {
            try_insert(&b);
            if (b.next % 50 == 0) settle(&b, mode);
        }
        for (int i = 0; i < more; i++) {
            try_insert(&b);
            if (i % 10 == 0) settle(&b, mode);
        }
        delete_most(&b);
        settle(&b, mode);
        wait_until_well(&b);
    }
    while (!insert(&b)) wait_until_well(&b);
    settle(&b, mode);
    assert_in_range(reserve_on(disk), DISK / RP_RESERVE_SHARE, DISK / 8); /* and the items */
    left = rp_sim_copy(disk);
    open_with(&after, left, mode, MOST_ITEMS, SMALL_SEGMENT, DISK);
    assert_true(rp_table_digest(after.table) == rp_table_digest(b.table));
    close_bench(&after);
    rp_sim_free(left);
    close_bench(&b);
    rp_sim_free(disk);
}

static void live_data_that_filled_the_disk_is_deleted_issue_20(void **state)
{
    (void)state;
    for (int more = 0; more <= 160; more += 80) refill(more);
}

enum { INODES = 19, LARGE_SEGMENT = 1 << 20 };

/* Files, not bytes, run out. Then all items are deleted, and the checkpoint that frees their
 * files has inodes to be written with. */
static void a_disk_without_inodes(rp_durability mode)
{
    static uint64_t keys[MOST_ITEMS];
    rp_sim *disk = rp_sim_new();
    bench b;

    rp_sim_set_inodes(disk, INODES);
    rp_sim_set_capacity(disk, 64 << 20);
    open_with(&b, disk, mode, MOST_ITEMS, LARGE_SEGMENT, DISK);
    while (!is_degraded(&b) && b.next < 2000) try_insert(&b);
    assert_true(is_degraded(&b));
    for (uint64_t i = 0; i < b.next; i++) keys[i] = i + 1;
    (void)!rp_table_delete(b.table, keys, (size_t)b.next, NULL, NULL);
    wait_until_well(&b);
    assert_true(insert(&b));
    close_bench(&b);
    rp_sim_free(disk);
}

static void a_store_recovers_from_a_disk_without_inodes_issue_20(void **state)
{
    (void)state;
    a_disk_without_inodes(RP_DURABLE_INTERVAL);
    a_disk_without_inodes(RP_DURABLE_SYNC);
}

enum { WRITERS = 64, ROOM = 20 * CHUNK };

static atomic_int done_count;

static void count_done(rp_op *op)
{
    rp_trajectory_unref(op->items->trajectory);
    atomic_fetch_add(&done_count, 1);
}

/* Many inserts come at once, and the disk has not room for all. Those that have none do not
 * enter the table, so every item in it is acknowledged. Once these are deleted the others come
 * in. */
static void inserts_without_disk_space_are_not_made_issue_20(void **state)
{
    static rp_insert items[WRITERS];
    static rp_op ops[WRITERS];
    static uint64_t keys[WRITERS];
    rp_sim *disk = rp_sim_new();
    uint64_t last;
    bench b;

    (void)state;
    atomic_store(&done_count, 0);
    open_on(&b, disk, RP_DURABLE_SYNC, WRITERS);
    assert_true(insert(&b)); /* the files are there */
    rp_sim_set_capacity(disk, used(disk) + ROOM);
    assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err), &b.err);
    assert_true(insert(&b)); /* the journal has seen how much room there is */
    for (int i = 0; i < WRITERS; i++) {
        items[i] = (rp_insert){.key = 100 + (uint64_t)i, .priority = 1};
        keys[i] = items[i].key;
        items[i].trajectory =
            rp_test_blob_trajectory(rp_allocator_default(), items[i].key, 1, CHUNK);
        ops[i] = (rp_op){
            .items = &items[i], .count = 1, .until_ns = RP_FOREVER, .on_done = count_done};
        if (rp_table_start_insert(b.table, &ops[i])) count_done(&ops[i]);
    }
    assert_in_range(atomic_load(&done_count), 1, WRITERS - 1);
    last = rp_journal_last(b.durable->journal); /* all that has entered becomes safe */
    for (int ms = 0; ms < WELL_MS && rp_journal_safe(b.durable->journal) < last; ms++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(rp_journal_safe(b.durable->journal) >= last);
    for (int ms = 0; ms < WELL_MS && atomic_load(&done_count) < WRITERS; ms++) {
        rp_status st = rp_table_delete(b.table, keys, WRITERS, NULL, NULL);

        assert_true(st == RP_OK || st == RP_UNAVAILABLE); /* a checkpoint may be under way */
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_int_equal(atomic_load(&done_count), WRITERS);
    wait_until_well(&b);
    close_bench(&b);
    rp_sim_free(disk);
}

/* An item whose chunks take about so many bytes on the disk. */
static rp_insert make_item(bench *b, uint64_t bytes)
{
    rp_insert item = {.key = 900000 + ++b->next, .priority = 1};

    item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), item.key, 1, bytes);
    return item;
}

/* An item that has room on the disk only if that were empty. */
static rp_insert make_large(bench *b)
{
    return make_item(b, rp_journal_most_space(b->durable->journal) - CHUNK);
}

/* A disk with little room, which the journal has seen. */
static void open_small(bench *b, rp_sim *disk)
{
    open_on(b, disk, RP_DURABLE_SYNC, WRITERS);
    assert_true(insert(b));
    rp_sim_set_capacity(disk, used(disk) + ROOM);
    assert_ok_err(rp_durable_checkpoint(b->durable, rp_wait_ms(60000), NULL, 0, &b->err),
                  &b->err);
    assert_true(insert(b));
}

static void a_timed_out_insert_leaves_the_store_healthy_issue_20(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_insert large;
    bench b;

    (void)state;
    open_small(&b, disk);
    large = make_large(&b);
    assert_int_equal(rp_table_insert(b.table, &large, 1, rp_wait_ms(50), NULL, &b.err),
                     RP_DEADLINE);
    rp_trajectory_unref(large.trajectory);
    wait_until_well(&b);
    assert_true(insert(&b));
    close_bench(&b);
    rp_sim_free(disk);
}

/* An item that is larger than the disk would wait for ever. The error says both sizes. */
static void an_item_larger_than_the_disk_is_refused(void **state)
{
    rp_sim *disk = rp_sim_new();
    uint64_t most;
    rp_insert item;
    char text[32];
    bench b;

    (void)state;
    open_small(&b, disk);
    most = rp_journal_most_space(b.durable->journal);
    assert_true(most < used(disk) + ROOM);
    item = make_item(&b, most + 1);
    assert_int_equal(rp_table_insert(b.table, &item, 1, rp_wait_ms(60000), NULL, &b.err),
                     RP_NO_RESOURCE);
    (void)snprintf(text, sizeof text, "at most %llu", (unsigned long long)most);
    assert_non_null(strstr(b.err.text, text));
    assert_non_null(strstr(b.err.text, "table 't': an item takes"));
    rp_trajectory_unref(item.trajectory);
    wait_until_well(&b);
    while (!insert(&b)) wait_until_well(&b); /* a checkpoint may be under way */
    close_bench(&b);
    rp_sim_free(disk);
}

/* One table waits for room that does not come. Inserts into another that have room go on. */
static void an_insert_without_disk_space_does_not_affect_other_tables_issue_20(void **state)
{
    rp_sim *disk = rp_sim_new();
    rp_table_options options = rp_test_options("u", RP_UNIFORM, RP_FIFO, WRITERS);
    rp_op op = {.count = 1, .until_ns = RP_FOREVER, .on_done = count_done};
    rp_insert large, small = {.priority = 1};
    rp_table *other;
    rp_status st;
    bench b;

    (void)state;
    open_small(&b, disk);
    assert_ok(rp_store_add_table(b.store, &options, &other, NULL));
    large = make_large(&b);
    op.items = &large;
    assert_false(rp_table_start_insert(other, &op));
    for (small.key = 5000; small.key < 5010; small.key++) {
        small.trajectory = rp_test_blob_trajectory(rp_allocator_default(), small.key, 1, 100);
        st = rp_table_insert(b.table, &small, 1, rp_wait_ms(60000), NULL, &b.err);
        assert_true(st == RP_OK || st == RP_UNAVAILABLE); /* it is in, and not safe yet */
        rp_trajectory_unref(small.trajectory);
    }
    assert_true(rp_op_withdraw(&op, RP_CANCELLED));
    rp_trajectory_unref(large.trajectory);
    wait_until_well(&b);
    close_bench(&b);
    rp_sim_free(disk);
}

/* The disk before every call on it, as the end of a process or of power leaves it. */
enum { MOST_CALLS = 4096 };

typedef struct film {
    rp_sim *disks[MOST_CALLS];
    size_t count;
    uint64_t switched; /* the number of the last call that renames to CURRENT */
} film;

static film the_film;

static void record_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                        const char *path)
{
    film *f = ctx;

    assert_true(f->count < MOST_CALLS);
    f->disks[f->count++] = rp_sim_copy(disk);
    if (strcmp(call, "rename") == 0 && strcmp(path, "CURRENT.tmp") == 0) f->switched = number;
}

static void begin_film(rp_sim *disk)
{
    the_film.count = 0;
    rp_sim_on_call(disk, record_call, &the_film);
}

static void expect_items(rp_sim *disk, rp_durability mode, int64_t max_size, int64_t least)
{
    bench b;

    open_on(&b, disk, mode, max_size);
    assert_true(rp_test_info_of(b.table).size >= least);
    close_bench(&b);
    rp_sim_free(disk);
}

/* Whatever was being done when the process or power ended, a new process finds at least so many
 * items. */
static void end_film(rp_sim *disk, rp_durability mode, int64_t max_size, int64_t least)
{
    rp_sim_on_call(disk, NULL, NULL);
    assert_true(the_film.count > 0);
    for (size_t i = 0, checked = 0; i < the_film.count; i++) {
        rp_sim_variant variant = (rp_sim_variant)(checked % RP_SIM_VARIANTS);

        if (!rp_test_chosen(the_film.count - 1 - i, 4)) {
            rp_sim_free(the_film.disks[i]);
            continue;
        }
        checked++;
        expect_items(rp_sim_after(the_film.disks[i], variant, i), mode, max_size, least);
        expect_items(the_film.disks[i], mode, max_size, least);
    }
}

/* All items are in the journal alone. The store is opened in a mode that has none, on a full
 * disk: the journal stays until a checkpoint has them. */
static void an_old_journal_is_kept_until_a_checkpoint_covers_it_issue_20(void **state)
{
    bench b;
    rp_sim *disk = rp_sim_new();

    (void)state;
    open_on(&b, disk, RP_DURABLE_SYNC, MOST_ITEMS);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    close_bench(&b);
    rp_sim_set_capacity(disk, used(disk));
    begin_film(disk);
    open_on(&b, disk, RP_DURABLE_CHECKPOINT, MOST_ITEMS);
    end_film(disk, RP_DURABLE_SYNC, MOST_ITEMS, LIVE);
    close_bench(&b);
    rp_sim_free(disk);
}

/* A checkpoint is complete but for CURRENT, which still names the one before: that one stays
 * until CURRENT names another. */
static uint64_t fail_to_switch(uint64_t call)
{
    bench b;
    rp_sim *disk = rp_sim_new();

    open_on(&b, disk, RP_DURABLE_CHECKPOINT, MOST_ITEMS);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    settle(&b, RP_DURABLE_CHECKPOINT);
    assert_true(insert(&b));
    rp_sim_set_capacity(disk, used(disk) + (uint64_t)8 * CHUNK);
    rp_sim_fail(disk, &(rp_sim_fault){.call = call, .error = RP_SIM_ENOSPC});
    begin_film(disk);
    settle(&b, RP_DURABLE_CHECKPOINT);
    end_film(disk, RP_DURABLE_CHECKPOINT, MOST_ITEMS, LIVE);
    assert_int_equal(rp_sim_failed(disk), call != 0);
    close_bench(&b);
    rp_sim_free(disk);
    return the_film.switched;
}

static void the_current_checkpoint_is_kept_issue_20(void **state)
{
    uint64_t call;

    (void)state;
    call = fail_to_switch(0);
    (void)fail_to_switch(call);
}

/* Since the last checkpoint the table has been filled three times. So the journal begins with
 * items that are gone, and their segments are dead: these stay until a checkpoint is complete.
 */
static void dead_segments_named_by_the_journal_are_kept_issue_20(void **state)
{
    bench b;
    rp_sim *disk = rp_sim_new();

    (void)state;
    open_with(&b, disk, RP_DURABLE_SYNC, LIVE, SMALL_SEGMENT, RESERVE);
    for (int i = 0; i < 3 * LIVE; i++) assert_true(insert(&b));
    rp_sim_set_capacity(disk, used(disk));
    begin_film(disk);
    assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err), &b.err);
    end_film(disk, RP_DURABLE_SYNC, LIVE, LIVE);
    close_bench(&b);
    rp_sim_free(disk);
}

enum { SCATTERED = 200, ONE_IN = 8, NEW = 80 };

/* A checkpoint has emptied segments, which stay for one more. Then new items need more room
 * than the reserve has: the emptied segments go before they are written, and nothing else. */
static void emptied_segments_are_removed_before_new_items_are_written_issue_20(void **state)
{
    bench b;
    rp_sim *disk = rp_sim_new();
    uint64_t keys[SCATTERED];
    size_t count = 0;

    (void)state;
    open_with(&b, disk, RP_DURABLE_CHECKPOINT, MOST_ITEMS, SMALL_SEGMENT, RESERVE);
    for (int i = 0; i < SCATTERED; i++) assert_true(insert(&b));
    settle(&b, RP_DURABLE_CHECKPOINT);
    for (uint64_t key = 1; key <= SCATTERED; key++)
        if (key % ONE_IN != 0) keys[count++] = key;
    assert_ok(rp_table_delete(b.table, keys, count, NULL, NULL));
    settle(&b, RP_DURABLE_CHECKPOINT); /* says what is dead; the next one empties segments */
    settle(&b, RP_DURABLE_CHECKPOINT);
    rp_sim_set_capacity(disk, used(disk));
    for (int i = 0; i < NEW; i++) assert_true(insert(&b));
    begin_film(disk);
    assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err), &b.err);
    end_film(disk, RP_DURABLE_CHECKPOINT, MOST_ITEMS, SCATTERED / ONE_IN);
    close_bench(&b);
    rp_sim_free(disk);
}

static atomic_bool is_record_lost;

/* When a checkpoint has its manifest, the journal loses a record, and says so. */
static void lose_a_record(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                          const char *path)
{
    const bench *b = ctx;
    rp_journal_info info = {0};

    (void)disk, (void)number;
    if (atomic_load(&is_record_lost) || strcmp(call, "rename") != 0 ||
        strcmp(path, "CURRENT.tmp") != 0)
        return;
    (void)rp_journal_append_nothing(b->durable->journal);
    for (int ms = 0; ms < WELL_MS && !info.in_trouble; ms++) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        rp_journal_get_info(b->durable->journal, &info);
    }
    atomic_store(&is_record_lost, true);
}

/* A checkpoint has failed, and is tried again. The journal gives up after the cut of that one:
 * so one more is written, though none is due. */
static void a_journal_that_gives_up_after_the_cut_gets_a_checkpoint_issue_20(void **state)
{
    bench b;
    rp_sim *disk = rp_sim_new();

    (void)state;
    open_on(&b, disk, RP_DURABLE_SYNC, LIVE);
    rp_sim_on_call(disk, lose_a_record, &b);
    rp_sim_fail(disk, &(rp_sim_fault){.call = 1, .error = RP_SIM_EIO, .for_good = true});
    assert_int_equal(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, NULL),
                     RP_UNAVAILABLE);
    rp_sim_fail(disk, &(rp_sim_fault){0});
    for (int ms = 0; ms < WELL_MS && !atomic_load(&is_record_lost); ms++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    rp_sim_on_call(disk, NULL, NULL);
    wait_until_well(&b);
    assert_true(insert(&b));
    close_bench(&b);
    rp_sim_free(disk);
}

static rp_status refuse_to_allocate(rp_file *file, uint64_t size, rp_error *err)
{
    (void)file, (void)size;
    return rp_fail(err, RP_NO_RESOURCE, "Disk quota exceeded");
}

/* There is no room for the reserve, though the file system has enough: a checkpoint may fit. */
static void a_checkpoint_is_tried_without_a_reserve_issue_20(void **state)
{
    bench b;
    rp_sim *disk = rp_sim_new();
    rp_files_ops ops;

    (void)state;
    open_on(&b, disk, RP_DURABLE_CHECKPOINT, LIVE);
    ops = *b.files->ops;
    ops.allocate = refuse_to_allocate;
    b.files->ops = &ops;
    assert_true(insert(&b));
    assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err), &b.err);
    close_bench(&b);
    rp_sim_free(disk);
}

RP_TESTS(full_disk)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledged_items_survive_a_full_disk_issue_20),
        cmocka_unit_test(interval_recovers_once_live_data_fits_issue_20),
        cmocka_unit_test(sync_recovers_once_live_data_fits_issue_20),
        cmocka_unit_test(interval_frees_dead_chunks_on_a_full_disk_issue_20),
        cmocka_unit_test(sync_frees_dead_chunks_on_a_full_disk_issue_20),
        cmocka_unit_test(interval_recovers_without_a_free_byte_issue_20),
        cmocka_unit_test(sync_recovers_without_a_free_byte_issue_20),
        cmocka_unit_test(a_store_recovers_from_a_disk_without_inodes_issue_20),
        cmocka_unit_test(live_data_that_filled_the_disk_is_deleted_issue_20),
        cmocka_unit_test(inserts_without_disk_space_are_not_made_issue_20),
        cmocka_unit_test(a_timed_out_insert_leaves_the_store_healthy_issue_20),
        cmocka_unit_test(an_item_larger_than_the_disk_is_refused),
        cmocka_unit_test(an_insert_without_disk_space_does_not_affect_other_tables_issue_20),
        cmocka_unit_test(an_old_journal_is_kept_until_a_checkpoint_covers_it_issue_20),
        cmocka_unit_test(the_current_checkpoint_is_kept_issue_20),
        cmocka_unit_test(dead_segments_named_by_the_journal_are_kept_issue_20),
        cmocka_unit_test(emptied_segments_are_removed_before_new_items_are_written_issue_20),
        cmocka_unit_test(a_journal_that_gives_up_after_the_cut_gets_a_checkpoint_issue_20),
        cmocka_unit_test(a_checkpoint_is_tried_without_a_reserve_issue_20),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
