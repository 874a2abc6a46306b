/* SPDX-License-Identifier: Apache-2.0 */
/* The array that a Sample or a Peek has its samples written to.
 *
 * A call may ask for many samples and wait long for the first. So an array takes memory page by
 * page, as samples are written. A sample that was drawn is counted with its item (Q4): the cost
 * of an item includes its place in the indexes of a table, 192 bytes, which is more than a
 * sample has. Peek writes also where it finds no item: its array counts as a whole.
 *
 * The system bounds how many mappings a process has. So 4,096 calls of a server may have arrays
 * of more than 1,024 samples before these are drawn; the next call has one of 1,024, and is
 * answered with as many at most. */
#ifndef RP_SERVER_RPC_SAMPLE_ROOM_H
#define RP_SERVER_RPC_SAMPLE_ROOM_H

#include "reprise/table.h"
#include "server/bounds/refusal.h"

typedef struct rp_worker rp_worker;

/* Zero has no array. */
typedef struct rp_sample_room {
    rp_sample *samples;
    size_t count;
    size_t counted_bytes; /* in the budget of queued bytes */
    bool is_mapped;       /* with pages of its own */
} rp_sample_room;

/* Makes an array for `count` (>= 1) samples. If `is_whole` it counts as a whole from now on; if
 * not, it counts as part of its call, and may have fewer samples: room->count. RP_NO_RESOURCE,
 * with
 * `*why`: others use the budget, or there is no memory. */
RP_NODISCARD rp_status rp_sample_room_init(rp_sample_room *room, rp_worker *worker,
                                           size_t count, bool is_whole, rp_refusal *why,
                                           rp_error *err);

/* Drops the references of the first `used` samples and gives the room back. */
void rp_sample_room_deinit(rp_sample_room *room, rp_worker *worker, size_t used);

#endif
