/* SPDX-License-Identifier: Apache-2.0 */
/* A log of tables that keeps copies of all log records, to redo them on another table.
 *
 * A chunk cannot be in two stores. So trajectories are kept by their index in a pool, and the
 * other store has its own pool with the same contents. */
#ifndef RP_TEST_RECORDER_H
#define RP_TEST_RECORDER_H

#include "table/table_log.h"

typedef struct rp_test_told {
    const rp_table *table;
    rp_log_record change; /* its arrays are copies */
    size_t *pool_index;   /* indices of the trajectories of an insert; SIZE_MAX: none */
} rp_test_told;

typedef struct rp_test_recorder {
    rp_table_log log; /* first: the callbacks get a pointer to it */
    rp_trajectory *const *pool;
    size_t pool_count;
    rp_mutex mu;
    rp_test_told *told;
    size_t count, capacity;
    size_t prepared;                       /* calls of prepare */
    uint64_t claimed;                      /* items that were prepared, until unclaimed */
    size_t waits;                          /* calls of wait */
    uint64_t waited;                       /* the number of the last wait */
    rp_status prepare_status, wait_status; /* what prepare and wait return */
    atomic_bool behind;                    /* what is_behind returns */
} rp_test_recorder;

void rp_test_recorder_init(rp_test_recorder *r, rp_trajectory *const *pool, size_t pool_count);
void rp_test_recorder_deinit(rp_test_recorder *r);

/* Redoes the log records of `from`, in order, on `to`, with trajectories of `pool`. */
rp_status rp_test_recorder_replay(const rp_test_recorder *r, const rp_table *from, rp_table *to,
                                  rp_trajectory *const *pool, rp_error *err);

#endif
