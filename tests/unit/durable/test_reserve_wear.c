/* SPDX-License-Identifier: Apache-2.0 */
/* The reserve does not wear down: a process that is killed on a full disk leaves the next one
 * enough for a checkpoint after deletes, however often that happens. */
#include "support/full_disk.h"
#include "util/rng.h"

enum {
    WEAR_DISK = 8 << 20, /* the fixed part of the reserve is a sixteenth of it: 512 KiB */
    WEAR_SEGMENT = 256 << 10,
    WEAR_CHUNK = 16 << 10, /* at most */
    MORE = 20,             /* items after the disk is full */
    CYCLES = 5,
};

/* Inserts an item of random size. */
static void insert_some(bench *b, rp_rng *rng)
{
    rp_insert item = {.key = ++b->next, .priority = 1};
    size_t size = 1 + (size_t)(rp_rng_next(rng) % WEAR_CHUNK);

    item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), b->next, 1, size);
    (void)!rp_table_insert(b->table, &item, 1, rp_wait_ms(2), NULL, &b->err);
    rp_trajectory_unref(item.trajectory);
}

/* Deletes so many items of a hundred, at random. */
static void delete_some(bench *b, rp_rng *rng, uint64_t percent)
{
    static uint64_t keys[MOST_ITEMS];
    size_t count = 0;

    assert_true(b->next <= MOST_ITEMS);
    for (uint64_t key = 1; key <= b->next; key++)
        if (rp_rng_next(rng) % 100 < percent) keys[count++] = key;
    (void)!rp_table_delete(b->table, keys, count, NULL, NULL);
}

static void try_checkpoints(bench *b, int count)
{
    for (int i = 0; i < count; i++)
        (void)!rp_durable_checkpoint(b->durable, rp_wait_ms(60000), NULL, 0, &b->err);
}

/* The process is killed: the next one finds the disk as it is. */
static void kill_and_open(bench *b, rp_durability mode)
{
    rp_sim *left = rp_sim_copy(b->disk), *disk = b->disk;
    uint64_t next = b->next;

    rp_sim_set_capacity(left, WEAR_DISK);
    close_bench(b);
    rp_sim_free(disk);
    open_with(b, left, mode, MOST_ITEMS, WEAR_SEGMENT, WEAR_DISK);
    b->next = next;
}

/* Waits until the reserve has so many bytes: while a checkpoint is written, it has none. */
static void expect_reserve(const bench *b, uint64_t least)
{
    uint64_t held = 0;

    for (int ms = 0; ms < WELL_MS; ms++) {
        (void)rp_durable_reserve_wanted(b->durable, &held);
        if (held >= least) return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    fail_msg("the reserve has %llu bytes of %llu", (unsigned long long)held,
             (unsigned long long)least);
}

static void wear_down(rp_durability mode, uint64_t seed)
{
    rp_sim *disk = rp_sim_new();
    rp_rng rng;
    bench b;

    rp_rng_init(&rng, seed);
    rp_sim_set_capacity(disk, WEAR_DISK);
    open_with(&b, disk, mode, MOST_ITEMS, WEAR_SEGMENT, WEAR_DISK);
    for (int cycle = 0; cycle < (int)rp_test_length(CYCLES, CYCLES / 2); cycle++) {
        bool is_full = false; /* it may be well again soon */

        for (int i = 0; i < 4000 && !is_full; i++) {
            insert_some(&b, &rng);
            is_full = is_degraded(&b);
            if (i % (mode == RP_DURABLE_CHECKPOINT ? 10 : 100) == 0) try_checkpoints(&b, 1);
        }
        assert_true(is_full);
        for (int i = 0; i < MORE; i++) insert_some(&b, &rng);
        try_checkpoints(&b, (int)(rp_rng_next(&rng) % 3));
        kill_and_open(&b, mode);
        expect_reserve(&b, WEAR_DISK / RP_RESERVE_SHARE / 4 +
                               rp_reserve_one(rp_durable_largest(b.durable)));
        delete_some(&b, &rng, 20);
        try_checkpoints(&b, (int)(rp_rng_next(&rng) % 3));
    }
    kill_and_open(&b, mode);
    delete_some(&b, &rng, 50);
    try_checkpoints(&b, 20);
    wait_until_well(&b);
    expect_reserve(&b, rp_durable_least_reserve(b.durable));
    close_bench(&b);
    rp_sim_free(b.disk);
}

static void the_reserve_does_not_wear_down(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= rp_test_length(4, 1); seed++)
        wear_down(RP_DURABLE_INTERVAL, seed);
    wear_down(RP_DURABLE_SYNC, 1);
    wear_down(RP_DURABLE_CHECKPOINT, 1);
}

/* Others have filled the disk while no process had it, and the reserve is gone: the store says
 * how much is missing, and is well when there is space again. */
static void a_missing_reserve_is_reported(void **state)
{
    static const uint8_t others[WEAR_DISK];
    rp_sim *disk = rp_sim_new();
    rp_durable_info info;
    bench b;

    (void)state;
    rp_sim_set_capacity(disk, WEAR_DISK);
    open_with(&b, disk, RP_DURABLE_INTERVAL, LIVE, WEAR_SEGMENT, WEAR_DISK);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    close_bench(&b);
    assert_true(rp_sim_delete(disk, RP_RESERVE_PATH));
    assert_true(rp_sim_put(disk, "other", others, WEAR_DISK - used(disk) - WEAR_SEGMENT / 4));
    open_with(&b, disk, RP_DURABLE_INTERVAL, LIVE, WEAR_SEGMENT, WEAR_DISK);
    rp_durable_get_info(b.durable, &info);
    assert_true(info.degraded);
    assert_non_null(strstr(info.trouble, "are missing"));
    assert_true(rp_sim_delete(disk, "other"));
    try_checkpoints(&b, 1);
    assert_false(is_degraded(&b));
    close_bench(&b);
    rp_sim_free(disk);
}

/* A checkpoint on a full disk fails again and again, and soon the space that it needs stays the
 * same: numbers of segments that were never written take none. */
static void failed_checkpoints_need_no_more_space(void **state)
{
    rp_sim *disk = rp_sim_new();
    int same = 0;
    bench b;

    (void)state;
    rp_sim_set_capacity(disk, WEAR_DISK);
    open_with(&b, disk, RP_DURABLE_INTERVAL, MOST_ITEMS, WEAR_SEGMENT, WEAR_DISK);
    for (int i = 0; i < LIVE; i++) assert_true(insert(&b));
    try_checkpoints(&b, 1);
    assert_true(insert(&b)); /* a restart needs the journal: it keeps its segments */
    rp_sim_set_capacity(disk, used(disk));
    for (int i = 0; i < BACKLOG; i++) try_insert(&b);
    try_checkpoints(&b, 2);
    assert_true(is_degraded(&b));
    /* The journal may still write what was inserted: it ends, since the disk is full. */
    for (int i = 0; i < 200 && same < 8; i++) {
        uint64_t counted = atomic_load(&b.durable->counted_bytes);

        try_checkpoints(&b, 1);
        same = counted == atomic_load(&b.durable->counted_bytes) ? same + 1 : 0;
    }
    assert_int_equal(same, 8);
    assert_true(is_degraded(&b));
    close_bench(&b);
    rp_sim_free(disk);
}

RP_TESTS(reserve_wear)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reserve_does_not_wear_down),
        cmocka_unit_test(a_missing_reserve_is_reported),
        cmocka_unit_test(failed_checkpoints_need_no_more_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
