/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows of a batch a learner can learn from.
 *
 * The signature of the table fixes the columns of an item and their sizes. Any client with the
 * role `write` chooses the values, so a learner checks them. A row is bad if its action is one
 * that the environment does not have, a number is not finite or beyond RP_ITEM_BOUND, or the
 * discount is outside [0, 1]. */
#ifndef RP_AGENTS_ITEM_CHECK_H
#define RP_AGENTS_ITEM_CHECK_H

#include "reprise/rl/env.h"

/* No observation, action or reward of a sound item is larger in size. Networks of float32 may
 * overflow with less: see rp_replay_refuse(). */
#define RP_ITEM_BOUND 1e18F

/* Columns of items, one row an item, and the environment that they are of. Borrowed. */
typedef struct rp_item_check {
    const rp_env_spec *spec;
    size_t numbers; /* of an observation */
    const void *observations, *next_observations, *actions;
    const float *rewards, *discounts;
} rp_item_check;

/* True if rows 0 .. rows - 1 are all sound. */
bool rp_items_are_sound(const rp_item_check *check, size_t rows);

/* True if one row is sound. Otherwise writes the reason, cut to fit `size`. */
bool rp_item_is_sound(const rp_item_check *check, size_t row, char *why, size_t size);

#endif
