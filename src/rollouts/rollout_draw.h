/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a draw (reprise/rollout_calls.h): one block, whose parts a reader of a response
 * fills in, or a view of a batch of this process. */
#ifndef RP_ROLLOUTS_ROLLOUT_DRAW_H
#define RP_ROLLOUTS_ROLLOUT_DRAW_H

#include "reprise/rollout_calls.h"
#include "rollouts/rollouts.h"

enum { RP_ROLLOUT_ALIGNMENT = 16 }; /* of the values of a draw that was received */

/* How many of each a draw has, and the bytes of its names and of its values. Each value counts
 * as a multiple of RP_ROLLOUT_ALIGNMENT. */
typedef struct rp_rollout_draw_size {
    size_t groups, group_size, columns, name_bytes, value_bytes;
} rp_rollout_draw_size;

/* The parts of a draw that is being made. Each pointer moves on as its part is filled in. */
typedef struct rp_rollout_draw_parts {
    rp_rollouts_draw *draw; /* owned: rp_rollouts_draw_free() */
    rp_rollouts_group *groups;
    const rp_rollout_item **places; /* group_size of them for each group */
    rp_rollout_item *items;         /* one for each place */
    rp_rollout_column *columns;
    uint8_t *values;
    char *names;
} rp_rollout_draw_parts;

/* Allocates a draw with zeroed groups and items. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_draw_new(const rp_allocator *alloc,
                                           const rp_rollout_draw_size *size,
                                           rp_rollout_draw_parts *out, rp_error *err);

/* Makes a draw of a batch, which it takes if the result is RP_OK. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_draw_of(const rp_allocator *alloc, rp_rollout_batch *batch,
                                          rp_rollouts_draw **out, rp_error *err);

#endif
