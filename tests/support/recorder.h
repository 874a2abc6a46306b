/* SPDX-License-Identifier: Apache-2.0 */
/* A log of tables that keeps copies of all it is told, to make it again elsewhere.
 *
 * A chunk cannot be in two stores, so trajectories are kept by their number in a pool; the
 * tables that a record is replayed on have a pool of their own with the same contents. */
#ifndef RP_TEST_RECORDER_H
#define RP_TEST_RECORDER_H

#include "table/table_log.h"

typedef struct rp_test_told {
    const rp_table *table;
    rp_log_record change; /* its arrays are copies */
    size_t *pool_index;   /* of the trajectories of an insert; SIZE_MAX: none */
} rp_test_told;

typedef struct rp_test_recorder {
    rp_table_log log; /* first: the calls get this */
    rp_trajectory *const *pool;
    size_t pool_count;
    rp_mutex mu;
    rp_test_told *told;
    size_t count, capacity;
    size_t prepared;                       /* calls */
    uint64_t claimed;                      /* items that were prepared, until unclaimed */
    size_t waits;                          /* calls */
    uint64_t waited;                       /* for this number, last */
    rp_status prepare_status, wait_status; /* what they answer */
    atomic_bool behind;                    /* what is_behind answers */
} rp_test_recorder;

void rp_test_recorder_init(rp_test_recorder *r, rp_trajectory *const *pool, size_t pool_count);
void rp_test_recorder_deinit(rp_test_recorder *r);

/* Makes what `from` was told, in order, on `to`, with trajectories from `pool`. */
rp_status rp_test_recorder_replay(const rp_test_recorder *r, const rp_table *from, rp_table *to,
                                  rp_trajectory *const *pool, rp_error *err);

#endif
