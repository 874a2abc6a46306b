/* SPDX-License-Identifier: Apache-2.0 */
/* The array for the samples of a Sample or Peek call.
 *
 * A call may ask for many samples and wait long for the first one. So the array takes memory
 * page by page, as samples are written. A sample that was drawn is counted with its item (Q4):
 * the cost of an item includes 192 bytes for the indexes of a table, more than a sample has.
 * Peek also writes entries for keys without an item, so its array is counted as a whole.
 *
 * The system bounds the number of mappings of a process. So at most 4,096 calls of a server
 * have arrays of more than 1,024 samples; further calls have arrays of 1,024 samples, and are
 * answered with no more. */
#ifndef RP_SERVER_RPC_SAMPLE_ARRAY_H
#define RP_SERVER_RPC_SAMPLE_ARRAY_H

#include "reprise/table.h"
#include "server/bounds/refusal.h"

typedef struct rp_worker rp_worker;

/* Zero has no array. */
typedef struct rp_sample_array {
    rp_sample *samples;
    size_t count;
    size_t counted_bytes; /* in the budget of queued bytes */
    bool is_mapped;       /* with pages of its own */
} rp_sample_array;

/* Makes an array for `count` (>= 1) samples. If `is_whole`, the budget counts all of it from
 * now on. If not, it is counted with its call, and may have fewer samples: array->count.
 * RP_NO_RESOURCE, with `*why`: the budget is used up, or there is no memory. */
RP_NODISCARD rp_status rp_sample_array_init(rp_sample_array *array, rp_worker *worker,
                                            size_t count, bool is_whole, rp_refusal *why,
                                            rp_error *err);

/* Drops the references of the first `used` samples and frees the array. */
void rp_sample_array_deinit(rp_sample_array *array, rp_worker *worker, size_t used);

#endif
