/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks columns of many trajectories into memory, on several threads: the caller's and workers
 * of the runtime.
 *
 * The work is divided into units (column, range of items), which the threads take one after the
 * other. The caller also takes units, so the work proceeds even if all workers are busy. */
#ifndef RP_CLIENT_SAMPLER_BATCH_DECODE_H
#define RP_CLIENT_SAMPLER_BATCH_DECODE_H

#include "client/channel/runtime.h"
#include "reprise/trajectory.h"

/* A pool of idle decoders, each with its cache. Reference-counted; any thread. */
typedef struct rp_stack_pool rp_stack_pool;

/* `helpers` bounds the number of workers that help with one batch; 0: all workers of the
 * runtime. The runtime must outlive the pool. RP_NO_RESOURCE. Returns owned. */
RP_NODISCARD rp_status rp_stack_pool_new(const rp_allocator *alloc, rp_runtime *runtime,
                                         size_t helpers, rp_stack_pool **out);
rp_stack_pool *rp_stack_pool_ref(rp_stack_pool *pool);
void rp_stack_pool_unref(rp_stack_pool *pool); /* NULL is fine */

/* A column and its destination. The rows of item i are written to
 *
 *   dst + offsets[i] * row_bytes              if there are offsets
 *   dst + i * item_bytes                      otherwise; if there are lengths, the bytes after
 *                                             the lengths[i] rows are set to zero */
typedef struct rp_stack_column {
    size_t column;
    bool strings; /* the elements are strings: `dst` gets an rp_string for each */
    uint8_t *dst;
    size_t item_bytes; /* bytes of an item; with offsets, where items differ in size, the mean
                          size, which only serves to divide the work */
    size_t row_bytes;  /* needed with lengths or offsets */
    const int64_t *lengths;
    const int64_t *offsets;
} rp_stack_column;

/* Stacks `count` trajectories. The caller has checked that each of them has the columns, and
 * that their values have the types and sizes for which `columns` has memory. `all_bytes` is 0
 * if the trajectories are a whole batch. If they are one part of a larger batch, `all_bytes` is
 * the size of that batch, which decides how memory is written (rp_decoder_set_large()); then no
 * worker helps, and the caller's thread does the whole part. Otherwise the call waits for the
 * workers that help, so a job of the runtime must not call it if other jobs wait for that job.
 * After a failure the contents of the memory are undefined.
 * RP_INVALID, RP_CORRUPT, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_stack_run(rp_stack_pool *pool,
                                    const rp_trajectory *const *trajectories, size_t count,
                                    const rp_stack_column *columns, size_t column_count,
                                    size_t all_bytes, rp_error *err);

#endif
