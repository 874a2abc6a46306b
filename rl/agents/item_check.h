/* SPDX-License-Identifier: Apache-2.0 */
/* Checks which rows of a batch a learner can learn from.
 *
 * The signature of the table fixes the columns of an item and their sizes. Any client with the
 * role `write` can insert items with any values, so a learner checks the values. A row is bad
 * if one of these holds:
 *
 *   - its discrete action is one that the environment does not have
 *   - a float32 number is not finite, or its magnitude is over RP_ITEM_BOUND
 *   - its discount is outside [0, 1]
 *
 * All other rows are sound. */
#ifndef RP_AGENTS_ITEM_CHECK_H
#define RP_AGENTS_ITEM_CHECK_H

#include "reprise/rl/env.h"

/* The largest magnitude of an observation, action or reward in a sound row. Rows with smaller
 * numbers can still make a float32 network overflow; rp_replay_refuse() (replay.h) handles such
 * rows. */
#define RP_ITEM_BOUND 1e18F

/* The columns of a batch, with one row per item, and the environment of the items. Borrowed. */
typedef struct rp_item_check {
    const rp_env_spec *spec;
    size_t numbers; /* elements of an observation */
    const void *observations, *next_observations, *actions;
    const float *rewards, *discounts;
} rp_item_check;

/* Returns true if all rows from 0 to `rows` - 1 are sound. */
bool rp_items_are_sound(const rp_item_check *check, size_t rows);

/* Returns true if row number `row` is sound. Otherwise writes the reason to `why`, cut to
 * `size` bytes. */
bool rp_item_is_sound(const rp_item_check *check, size_t row, char *why, size_t size);

#endif
