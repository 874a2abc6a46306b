/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a draw, which has the groups of items that a consumer has received
 * (reprise/rollout_calls.h). A draw from a server is one block of memory, which the reader of
 * the response fills in. A draw from a rollout buffer in this process refers to an
 * rp_rollout_batch (rollouts.h). */
#ifndef RP_ROLLOUTS_ROLLOUT_DRAW_H
#define RP_ROLLOUTS_ROLLOUT_DRAW_H

#include "reprise/rollout_calls.h"
#include "rollouts/rollouts.h"

enum { RP_ROLLOUT_ALIGNMENT = 16 }; /* of the values in a received draw, in bytes */

/* How much a draw contains: numbers of groups, of items per group, and of columns in all items;
 * bytes of all names and of all values. The size of each value is rounded up to a multiple of
 * RP_ROLLOUT_ALIGNMENT. */
typedef struct rp_rollout_draw_size {
    size_t groups, group_size, columns, name_bytes, value_bytes;
} rp_rollout_draw_size;

/* A draw that the reader of a response is filling in. Each pointer after `draw` is the address
 * of the next object to fill in; the reader advances the pointer. */
typedef struct rp_rollout_draw_parts {
    rp_rollouts_draw *draw; /* owned; released by rp_rollouts_draw_free() */
    rp_rollouts_group *groups;
    const rp_rollout_item **places; /* for each group, an array of group_size pointers */
    rp_rollout_item *items;         /* one for each pointer in `places` */
    rp_rollout_column *columns;
    uint8_t *values;
    char *names;
} rp_rollout_draw_parts;

/* Allocates a draw of this size with zeroed groups and items. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_draw_new(const rp_allocator *alloc,
                                           const rp_rollout_draw_size *size,
                                           rp_rollout_draw_parts *out, rp_error *err);

/* Makes a draw that refers to a batch. If this returns RP_OK, the draw owns the batch. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_rollout_draw_of(const rp_allocator *alloc, rp_rollout_batch *batch,
                                          rp_rollouts_draw **out, rp_error *err);

#endif
