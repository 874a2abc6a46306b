/* SPDX-License-Identifier: Apache-2.0 */
/* A durable store on a simulated disk that becomes full. */
#ifndef RP_TEST_SUPPORT_FULL_DISK_H
#define RP_TEST_SUPPORT_FULL_DISK_H

#include <time.h>

#include "durable/durable_inside.h"
#include "support/fixture.h"
#include "support/sim_files.h"

enum {
    CHUNK = 8 << 10,
    LIVE = 40,     /* items in the table: 320 KiB */
    BACKLOG = 400, /* items: 3.2 MiB */
    WELL_MS = 30000,
    RESERVE = 64 << 10,
    MOST_ITEMS = 10000,
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

static inline void open_tuned(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size,
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
static inline void open_with(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size,
                             uint64_t segment_bytes, uint64_t reserve_bytes)
{
    open_tuned(b, disk, mode, max_size, segment_bytes,
               (rp_durable_tuning){.retry_ns = 1000000, .reserve_bytes = reserve_bytes});
}

static inline void open_on(bench *b, rp_sim *disk, rp_durability mode, int64_t max_size)
{
    open_with(b, disk, mode, max_size, 1 << 20, RESERVE);
}

static inline void close_bench(bench *b)
{
    rp_status st = rp_durable_close(b->durable, NULL);

    assert_true(st == RP_OK || st == RP_NO_RESOURCE); /* the disk may be full */
    rp_store_free(b->store);
    b->files->ops->free(b->files);
}

static inline bool is_degraded(const bench *b)
{
    rp_durable_info info;

    rp_durable_get_info(b->durable, &info);
    return info.degraded;
}

static inline bool insert_within(bench *b, int64_t ms)
{
    rp_insert item = {.key = ++b->next, .priority = 1};
    rp_status st;

    item.trajectory = rp_test_blob_trajectory(rp_allocator_default(), b->next, 1, CHUNK);
    st = rp_table_insert(b->table, &item, 1, rp_wait_ms(ms), NULL, &b->err);
    rp_trajectory_unref(item.trajectory);
    return st == RP_OK && !is_degraded(b);
}

/* True if the insert was acknowledged while the store was well. */
static inline bool insert(bench *b)
{
    return insert_within(b, 60000);
}

/* The same for a disk that is full: with sync, the insert waits then. */
static inline void try_insert(bench *b)
{
    (void)insert_within(b, 2);
}

static inline void add_size(void *ctx, const char *path, uint64_t size)
{
    (void)path;
    *(uint64_t *)ctx += (size + RP_SIM_PAGE - 1) / RP_SIM_PAGE * RP_SIM_PAGE;
}

static inline uint64_t used(rp_sim *disk)
{
    uint64_t bytes = 0;

    rp_sim_list(disk, add_size, &bytes);
    return bytes;
}

static inline void show_file(void *ctx, const char *path, uint64_t size)
{
    (void)ctx;
    print_message("%s: %llu bytes\n", path, (unsigned long long)size);
}

static inline void wait_until_well(const bench *b)
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

/* Asks for a checkpoint where no journal does. */
static inline void settle(const bench *b, rp_durability mode)
{
    rp_status st = RP_OK;

    if (mode == RP_DURABLE_CHECKPOINT)
        st = rp_durable_checkpoint(b->durable, rp_wait_ms(60000), NULL, 0, NULL);
    assert_true(st == RP_OK || st == RP_NO_RESOURCE);
}

#endif
