/* SPDX-License-Identifier: Apache-2.0 */
/* A table in a disk tier of 1 MiB. */
#ifndef RP_TEST_SUPPORT_TIER_BED_H
#define RP_TEST_SUPPORT_TIER_BED_H

#include "support/tier_rig.h"
#include "table/table.h"

enum { ROW = 4096, MEMORY = 1 << 20, CACHE = 256 << 10 };

static inline rp_table_options fifo(void)
{
    return rp_test_options("t", RP_FIFO, RP_FIFO, 1 << 20);
}

static inline void set_up(rp_tier_rig *rig)
{
    rp_table_options options = fifo();

    rp_tier_rig_init(rig, NULL, &options, MEMORY, CACHE);
}

static inline void peek_and_compare(rp_tier_rig *rig, uint64_t key, size_t row)
{
    rp_sample sample;
    size_t found = 0;

    assert_ok_err(rp_table_peek(rig->table, &key, 1, &sample, &found, &rig->bed.err),
                  &rig->bed.err);
    assert_int_equal(found, 1);
    rp_tier_rig_assert(sample.trajectory, &key, 1, row);
    rp_samples_release(&sample, 1);
}

static inline void fill(rp_tier_rig *rig, uint64_t from, uint64_t to)
{
    for (uint64_t key = from; key < to; key++) assert_ok(rp_tier_rig_put(rig, key, ROW, 20000));
}

static inline rp_status peek(rp_tier_rig *rig, uint64_t key)
{
    rp_sample sample;
    rp_status st = rp_table_peek(rig->table, &key, 1, &sample, NULL, &rig->bed.err);

    if (st == RP_OK) {
        rp_tier_rig_assert(sample.trajectory, &key, 1, ROW);
        rp_samples_release(&sample, 1);
    }
    return st;
}

#endif
