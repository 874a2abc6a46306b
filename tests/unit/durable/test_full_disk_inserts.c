/* SPDX-License-Identifier: Apache-2.0 */
/* Inserts on a full disk: those that have no space wait, and the others go on. */
#include <stdatomic.h>
#include <stdio.h>

#include "support/full_disk.h"

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

/* Inserts an item, also if the journal is in trouble for a moment, as it is until it sees that
 * deleted items have made room. */
static void insert_in_time(bench *b, rp_insert *item)
{
    rp_status st;

    while ((st = rp_table_insert(b->table, item, 1, rp_wait_ms(WELL_MS), NULL, &b->err)) ==
           RP_UNAVAILABLE)
        wait_until_well(b);
    assert_ok_err(st, &b->err);
}

/* A client keeps the chunks of its items in memory while the items fill the disk and are
 * deleted. The chunks do not keep their segments, and are written again for a new item with
 * them. */
static void chunks_without_items_do_not_fill_the_disk_issue_20(void **state)
{
    enum { KEPT = 64, DISK_BYTES = 40 * CHUNK };
    static uint64_t keys[KEPT];
    rp_trajectory *kept[KEPT];
    rp_sim *disk = rp_sim_new(), *left;
    bench b, after;
    bool is_full = false;
    int count = 0;

    (void)state;
    rp_sim_set_capacity(disk, DISK_BYTES);
    open_with(&b, disk, RP_DURABLE_SYNC, KEPT, SMALL_SEGMENT, RESERVE);
    for (; !is_full; count++) {
        rp_status st;
        rp_insert item = {.key = (uint64_t)count + 1, .priority = 1};

        assert_true(count < KEPT);
        keys[count] = item.key;
        kept[count] = rp_test_blob_trajectory(rp_allocator_default(), item.key, 1, CHUNK);
        item.trajectory = kept[count];
        st = rp_table_insert(b.table, &item, 1, rp_wait_ms(200), NULL, &b.err);
        /* On a slow machine, the disk may have room for an insert that is late. */
        is_full = st != RP_OK && is_degraded(&b);
    }
    assert_true(count > 5);
    while (rp_table_delete(b.table, keys, (size_t)count, NULL, NULL) == RP_UNAVAILABLE)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    for (int i = 0; i < count / 2; i++) {
        rp_insert item = {.key = 1000 + (uint64_t)i, .priority = 1};

        item.trajectory =
            i % 2 != 0 ? rp_trajectory_ref(kept[i])
                       : rp_test_blob_trajectory(rp_allocator_default(), item.key, 1, CHUNK);
        insert_in_time(&b, &item);
        rp_trajectory_unref(item.trajectory);
    }
    left = rp_sim_copy(disk);
    open_with(&after, left, RP_DURABLE_SYNC, KEPT, SMALL_SEGMENT, RESERVE);
    assert_true(rp_table_digest(after.table) == rp_table_digest(b.table));
    close_bench(&after);
    rp_sim_free(left);
    for (int i = 0; i < count; i++) rp_trajectory_unref(kept[i]);
    close_bench(&b);
    rp_sim_free(disk);
}

static void put_all(bench *b, rp_trajectory *const *kept, int count, uint64_t key)
{
    for (int i = 0; i < count; i++) {
        rp_insert item = {.key = key + (uint64_t)i, .priority = 1, .trajectory = kept[i]};

        insert_in_time(b, &item);
    }
}

/* Chunks that the last checkpoint did not need are in a table again when the disk becomes full.
 * They keep their segments: there would be no space to write them again. */
static void chunks_in_tables_are_not_written_again_issue_20(void **state)
{
    enum { KEPT = 48 };
    uint64_t keys[KEPT];
    rp_trajectory *kept[KEPT];
    rp_sim *disk = rp_sim_new(), *left;
    bench b, after;

    (void)state;
    open_with(&b, disk, RP_DURABLE_SYNC, 2 * KEPT, SMALL_SEGMENT, RESERVE);
    for (int i = 0; i < KEPT; i++) {
        keys[i] = (uint64_t)i + 1;
        kept[i] = rp_test_blob_trajectory(rp_allocator_default(), keys[i], 1, CHUNK);
    }
    put_all(&b, kept, KEPT, 1);
    assert_ok(rp_table_delete(b.table, keys, KEPT, NULL, NULL));
    for (int i = 0; i < 2; i++)
        assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err),
                      &b.err);
    put_all(&b, kept, KEPT, 1000);
    /* Another program takes the space that the reserve may give back. */
    rp_sim_set_capacity(disk, used(disk) - RESERVE / 2);
    assert_ok_err(rp_durable_checkpoint(b.durable, rp_wait_ms(60000), NULL, 0, &b.err), &b.err);
    rp_sim_set_capacity(disk, 0);
    wait_until_well(&b);
    left = rp_sim_copy(disk);
    open_with(&after, left, RP_DURABLE_SYNC, 2 * KEPT, SMALL_SEGMENT, RESERVE);
    assert_true(rp_table_digest(after.table) == rp_table_digest(b.table));
    close_bench(&after);
    rp_sim_free(left);
    for (int i = 0; i < KEPT; i++) rp_trajectory_unref(kept[i]);
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

RP_TESTS(full_disk_inserts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserts_without_disk_space_are_not_made_issue_20),
        cmocka_unit_test(chunks_without_items_do_not_fill_the_disk_issue_20),
        cmocka_unit_test(chunks_in_tables_are_not_written_again_issue_20),
        cmocka_unit_test(a_timed_out_insert_leaves_the_store_healthy_issue_20),
        cmocka_unit_test(an_item_larger_than_the_disk_is_refused),
        cmocka_unit_test(an_insert_without_disk_space_does_not_affect_other_tables_issue_20),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
