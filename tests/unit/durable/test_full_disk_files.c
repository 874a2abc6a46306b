/* SPDX-License-Identifier: Apache-2.0 */
/* Files on a full disk: those that a restart needs are kept, and the others are removed. */
#include <stdatomic.h>

#include "support/full_disk.h"
#include "util/error.h"

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

        if (!rp_test_chosen(the_film.count - 1 - i, 9)) {
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

RP_TESTS(full_disk_files)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_old_journal_is_kept_until_a_checkpoint_covers_it_issue_20),
        cmocka_unit_test(the_current_checkpoint_is_kept_issue_20),
        cmocka_unit_test(dead_segments_named_by_the_journal_are_kept_issue_20),
        cmocka_unit_test(emptied_segments_are_removed_before_new_items_are_written_issue_20),
        cmocka_unit_test(a_journal_that_gives_up_after_the_cut_gets_a_checkpoint_issue_20),
        cmocka_unit_test(a_checkpoint_is_tried_without_a_reserve_issue_20),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
