/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks columns of many trajectories into memory, on several threads: the caller's and the
 * runtime's working ones.
 *
 * The work is cut into units, (column, range of items), which threads take one after the other.
 * The caller takes part, so it goes on even if all others are busy. */
#ifndef RP_CLIENT_SAMPLER_BATCH_DECODE_H
#define RP_CLIENT_SAMPLER_BATCH_DECODE_H

#include "client/channel/runtime.h"
#include "reprise/trajectory.h"

/* Decoders that are not in use, each with its cache. Counted; any thread. */
typedef struct rp_stack_pool rp_stack_pool;

/* `helpers`: how many threads besides the caller's work on one batch, at most; 0: as many as
 * the runtime has. The runtime must outlive it. RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_stack_pool_new(const rp_allocator *alloc, rp_runtime *runtime,
                                         size_t helpers, rp_stack_pool **out);
rp_stack_pool *rp_stack_pool_ref(rp_stack_pool *pool);
void rp_stack_pool_unref(rp_stack_pool *pool); /* NULL is fine */

/* A column, and where it goes. Item i has its rows at
 *
 *   dst + i * item_bytes                      filled up with zeros from lengths[i] rows on,
 *                                             if there are lengths
 *   dst + offsets[i] * row_bytes              if there are offsets */
typedef struct rp_stack_column {
    size_t column;
    bool strings;
    uint8_t *dst;
    size_t item_bytes; /* with offsets: of a mean item, to cut the work by */
    size_t row_bytes;  /* needed with lengths and offsets */
    const int64_t *lengths;
    const int64_t *offsets;
} rp_stack_column;

/* The trajectories must have been found to fit. `all_bytes`: of everything that is stacked in
 * turn, of which this is a part and the caller's alone; 0: this is all. RP_INVALID, RP_CORRUPT,
 * RP_NO_RESOURCE; then what is in the memory is undefined. Not on a working thread's job that
 * others wait for. */
RP_NODISCARD rp_status rp_stack_run(rp_stack_pool *pool,
                                    const rp_trajectory *const *trajectories, size_t count,
                                    const rp_stack_column *columns, size_t column_count,
                                    size_t all_bytes, rp_error *err);

#endif
