/* SPDX-License-Identifier: Apache-2.0 */
/* A journal on a simulated disk.
 *
 *   rp_journal_options o = rp_test_journal_options(files, true);
 *   rp_journal *j = rp_test_journal_start(&o);
 *   rp_test_append(j);                       // a record whose contents follow from its number
 *   rp_test_journal_stop(j);                 // fails if memory was not freed
 *   rp_test_expect_all(disk, 0, 1); */
#ifndef RP_TEST_JOURNAL_BED_H
#define RP_TEST_JOURNAL_BED_H

#include <time.h>

#include "disk/journal.h"
#include "disk/journal_read.h"
#include "support/fixture.h"
#include "support/sim_files.h"
#include "util/rng.h"

static const rp_store_id rp_test_store_id = {{1, 2, 3, 4}};

enum { RP_TEST_MOST_BYTES = 600 };

static inline size_t rp_test_fill(uint64_t lsn, uint8_t *out)
{
    rp_rng rng;
    size_t size;

    rp_rng_init(&rng, lsn);
    size = 1 + rp_rng_below(&rng, lsn % 9 == 0 ? RP_TEST_MOST_BYTES - 1 : 40);
    for (size_t i = 0; i < size; i++) out[i] = (uint8_t)rp_rng_next(&rng);
    return size;
}

static inline rp_record_kind rp_test_kind_of(uint64_t lsn)
{
    return (rp_record_kind)(RP_RECORD_INSERT + lsn % 10);
}

static atomic_size_t rp_test_alive; /* raw records that the journal has */

static inline void rp_test_on_release(void *ctx, rp_record_kind kind, const void *raw,
                                      size_t size)
{
    (void)ctx, (void)kind, (void)raw, (void)size;
    (void)atomic_fetch_sub(&rp_test_alive, 1);
}

static inline uint64_t rp_test_append(rp_journal *j)
{
    uint8_t data[RP_TEST_MOST_BYTES];
    uint64_t lsn = rp_journal_last(j) + 1; /* one thread appends */
    size_t size = rp_test_fill(lsn, data);
    rp_bytes parts[2] = {{data, size / 2}, {data + size / 2, size - size / 2}};
    bool is_kept;

    assert_int_equal(rp_journal_append(j, rp_test_kind_of(lsn), parts, 2, &is_kept), lsn);
    if (is_kept) (void)atomic_fetch_add(&rp_test_alive, 1);
    return lsn;
}

typedef struct rp_test_seen {
    uint64_t last;
    size_t count;
} rp_test_seen;

static inline rp_status rp_test_on_record(void *ctx, const rp_record *record, rp_error *err)
{
    rp_test_seen *s = ctx;
    uint8_t data[RP_TEST_MOST_BYTES];
    size_t size = rp_test_fill(record->number, data);

    (void)err;
    assert_int_equal(record->number, s->last + 1);
    assert_int_equal(record->kind, rp_test_kind_of(record->number));
    assert_int_equal(record->size, size);
    assert_memory_equal(record->payload, data, size);
    s->last = record->number;
    s->count++;
    return RP_OK;
}

static inline rp_status rp_test_read_as(rp_files *files, uint64_t from, rp_journal_reading how,
                                        uint64_t *last, uint64_t *torn, rp_error *err)
{
    rp_test_seen s = {.last = from};
    const rp_journal_read_options options = {.alloc = rp_allocator_default(),
                                             .files = files,
                                             .store = &rp_test_store_id,
                                             .from = from,
                                             .how = how,
                                             .each = rp_test_on_record,
                                             .ctx = &s};
    rp_status st = rp_journal_read(&options, last, torn, err);

    assert_int_equal(*last, s.last);
    return st;
}

static inline rp_status rp_test_read_back(rp_files *files, uint64_t from, bool salvage,
                                          uint64_t *last, uint64_t *torn, rp_error *err)
{
    return rp_test_read_as(files, from, salvage ? RP_JOURNAL_SALVAGE : RP_JOURNAL_LIVE, last,
                           torn, err);
}

static inline rp_journal_options rp_test_journal_options(rp_files *files, bool sync)
{
    return (rp_journal_options){.alloc = rp_allocator_default(),
                                .files = files,
                                .store = rp_test_store_id,
                                .next_lsn = 1,
                                .sync = sync,
                                .interval_ns = 2000000,
                                .retry_ns = 500000,
                                .file_bytes = 3000,
                                .release = rp_test_on_release};
}

static inline rp_journal *rp_test_journal_start(const rp_journal_options *o)
{
    rp_journal *j = NULL;
    rp_error err;

    assert_ok_err(rp_journal_start(o, &j, &err), &err);
    return j;
}

static inline void rp_test_journal_stop(rp_journal *j)
{
    rp_error err;

    assert_ok_err(rp_journal_stop(j, &err), &err);
    assert_int_equal(atomic_load(&rp_test_alive), 0);
}

static inline void rp_test_expect_all(rp_sim *disk, uint64_t from, uint64_t to)
{
    rp_files *files = rp_sim_mount(disk);
    uint64_t last, torn;
    rp_error err;

    assert_ok_err(rp_test_read_back(files, from, false, &last, &torn, &err), &err);
    assert_int_equal(last, to);
    assert_int_equal(torn, 0);
    files->ops->free(files);
}

/* Appends `count` records and waits for each. If the journal cannot write, waits until it can.
 */
static inline void rp_test_work_through(rp_journal *j, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t lsn = rp_test_append(j);
        rp_error err;
        rp_status st = RP_UNAVAILABLE;

        for (int tries = 0; st == RP_UNAVAILABLE && tries < 20000; tries++) {
            st = rp_journal_wait(j, lsn, rp_wait_ms(2000), &err);
            if (st == RP_UNAVAILABLE) (void)nanosleep(&(struct timespec){0, 200000}, NULL);
        }
        assert_ok_err(st, &err);
    }
}

/* Syncs, repeatedly if needed, until the journal has retried the disk. */
static inline void rp_test_sync_in_the_end(rp_journal *j)
{
    rp_error err;
    rp_status st = rp_journal_sync(j, rp_wait_forever(), &err);

    for (int i = 0; st == RP_UNAVAILABLE && i < 20000; i++) {
        (void)nanosleep(&(struct timespec){0, 200000}, NULL);
        st = rp_journal_sync(j, rp_wait_forever(), &err);
    }
    assert_ok_err(st, &err);
}

#endif
