/* SPDX-License-Identifier: Apache-2.0 */
/* The array that receives the samples of a Sample or Peek call.
 *
 * A call can ask for many samples and wait long for the first one. So the system gives the
 * array memory page by page, as samples are written to it. The budget of queued bytes counts
 * the cost of each drawn item (core/queue_budget.h, Q4). This cost covers the item's entry in
 * the array: the cost includes 192 bytes for the indexes of a table, which a drawn item does
 * not use, and an rp_sample takes fewer bytes. Peek also writes entries for keys without an
 * item, so for Peek the budget counts the whole array.
 *
 * The system bounds the number of memory mappings of a process. So at most 4,096 calls of a
 * server have arrays of more than 1,024 samples. A further call gets an array of 1,024 samples,
 * and its response has at most 1,024 samples. */
#ifndef RP_SERVER_RPC_SAMPLE_ARRAY_H
#define RP_SERVER_RPC_SAMPLE_ARRAY_H

#include "reprise/table.h"
#include "server/bounds/refusal.h"

typedef struct rp_worker rp_worker;

/* A zeroed rp_sample_array has no array. */
typedef struct rp_sample_array {
    rp_sample *samples;
    size_t count;
    size_t counted_bytes; /* bytes counted in the budget of queued bytes */
    bool is_mapped;       /* the array is in pages that were mapped for it */
} rp_sample_array;

/* Makes an array for `count` (>= 1) samples. If `is_whole`, the budget of queued bytes counts
 * the whole array from now on. If not, the array can be smaller than `count`: array->count is
 * its length. Returns RP_NO_RESOURCE if the budget is used up or there is no memory. In this
 * case `*why` receives the reason. */
RP_NODISCARD rp_status rp_sample_array_init(rp_sample_array *array, rp_worker *worker,
                                            size_t count, bool is_whole, rp_refusal *why,
                                            rp_error *err);

/* Drops the references of the first `used` samples and frees the array. */
void rp_sample_array_deinit(rp_sample_array *array, rp_worker *worker, size_t used);

#endif
