/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes a batch: stacks the columns of many trajectories (items) into arrays, on several
 * threads.
 *
 * The work is divided into units, each of which is a column and a range of items. The caller's
 * thread and workers of the runtime take units one after the other. Since the caller takes
 * units too, the work proceeds even if all workers are busy. */
#ifndef RP_CLIENT_SAMPLER_BATCH_DECODE_H
#define RP_CLIENT_SAMPLER_BATCH_DECODE_H

#include "client/channel/runtime.h"
#include "reprise/trajectory.h"

/* A pool of idle decoders, each with its cache. Pools have reference counts. Any thread may use
 * a pool. */
typedef struct rp_stack_pool rp_stack_pool;

/* Creates a pool; the caller owns the first reference. At most `helpers` workers help with one
 * batch; 0 means all workers of the runtime. The runtime must outlive the pool.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stack_pool_new(const rp_allocator *alloc, rp_runtime *runtime,
                                         size_t helpers, rp_stack_pool **out);
rp_stack_pool *rp_stack_pool_ref(rp_stack_pool *pool);
void rp_stack_pool_unref(rp_stack_pool *pool); /* NULL is fine */

/* A column and its destination. The rows of item i are written to
 *
 *   dst + offsets[i] * row_bytes              if `offsets` is not NULL
 *   dst + i * item_bytes                      otherwise. If `lengths` is not NULL, the bytes
 *                                             after the lengths[i] rows are set to zero */
typedef struct rp_stack_column {
    size_t column; /* index in the trajectories */
    bool strings;  /* the elements are strings: `dst` is an array of rp_string */
    uint8_t *dst;
    size_t item_bytes; /* size of an item. If `offsets` is not NULL, items differ in size; then
                          item_bytes is their mean size and only divides the work into units */
    size_t row_bytes;  /* size of a row; needed with lengths or offsets */
    const int64_t *lengths;
    const int64_t *offsets;
} rp_stack_column;

/* Stacks `count` trajectories. Before that, the caller must check that each trajectory has
 * every column in `columns`, and that the type and size of the column fit the destination.
 *
 * If the trajectories are a whole batch, `all_bytes` must be 0. Workers of the runtime then
 * help if they are idle, and the function waits until their units are done. If the trajectories
 * are only a part of a larger batch, `all_bytes` must be the size of the larger batch in bytes,
 * and the caller's thread does all the work. If `all_bytes` is large, the decoder writes around
 * the CPU's caches (rp_decoder_set_large()).
 *
 * After a failure, the contents of the memory are undefined. Errors: RP_INVALID, RP_CORRUPT,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stack_run(rp_stack_pool *pool,
                                    const rp_trajectory *const *trajectories, size_t count,
                                    const rp_stack_column *columns, size_t column_count,
                                    size_t all_bytes, rp_error *err);

#endif
