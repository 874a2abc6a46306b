/* SPDX-License-Identifier: Apache-2.0 */
/* A store that set_up() makes for each test; tables and items in it. No call waits. */
#ifndef RP_TEST_OPERATION_FIXTURE_H
#define RP_TEST_OPERATION_FIXTURE_H

#include "support/fixture.h"

static rp_test_bed bed;

static inline int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    rp_test_bed_deinit(&bed);
    return 0;
}

static inline rp_table *make(rp_selector_kind sampler, rp_selector_kind remover,
                             int64_t max_size)
{
    rp_table_options o = rp_test_options("t", sampler, remover, max_size);
    return rp_test_bed_table(&bed, &o);
}

static inline void put(rp_table *t, uint64_t key, double priority)
{
    rp_test_put(t, key, priority, bed.plain);
}

static inline void insert_all(rp_table *t, const rp_insert *items, size_t count)
{
    size_t inserted = 0;

    assert_ok_err(rp_table_insert(t, items, count, rp_wait_none(), &inserted, &bed.err),
                  &bed.err);
    assert_int_equal(inserted, count);
}

#endif
