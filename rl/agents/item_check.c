/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of items: see item_check.h. The loops have no early exit, so that compilers make
 * vectors of them. */
#include "agents/item_check.h"

#include <assert.h>
#include <stdio.h>

/* NaN is not within any bounds. */
static bool is_within(const float *numbers, size_t count, float low, float high)
{
    int outside = 0;

    for (size_t i = 0; i < count; i++) outside |= !(numbers[i] >= low && numbers[i] <= high);
    return outside == 0;
}

static bool is_within_bound(const float *numbers, size_t count)
{
    return is_within(numbers, count, -RP_ITEM_BOUND, RP_ITEM_BOUND);
}

static bool are_actions(const int32_t *actions, size_t count, int32_t kinds)
{
    int outside = 0;

    assert(kinds >= 1);
    for (size_t i = 0; i < count; i++) outside |= (uint32_t)actions[i] >= (uint32_t)kinds;
    return outside == 0;
}

static const char AN_ACTION[] = "an action";

/* Checks `rows` rows from `row` on, column by column. Returns the name of the first column that
 * is not sound, or NULL. */
static const char *find_unsound(const rp_item_check *c, size_t row, size_t rows)
{
    const rp_env_spec *spec = c->spec;
    size_t from = row * c->numbers, count = rows * c->numbers;

    assert(c->numbers >= 1);
    if (spec->observation_dtype == RP_FLOAT32) {
        if (!is_within_bound((const float *)c->observations + from, count))
            return "an observation";
        if (!is_within_bound((const float *)c->next_observations + from, count))
            return "a next observation";
    }
    if (spec->action_kind == RP_ACTION_DISCRETE) {
        if (!are_actions((const int32_t *)c->actions + row, rows, spec->action_count))
            return AN_ACTION;
    } else if (!is_within_bound((const float *)c->actions + row * spec->action_size,
                                rows * spec->action_size)) {
        return AN_ACTION;
    }
    if (!is_within_bound(c->rewards + row, rows)) return "a reward";
    if (!is_within(c->discounts + row, rows, 0, 1)) return "a discount";
    return NULL;
}

bool rp_items_are_sound(const rp_item_check *c, size_t rows)
{
    return find_unsound(c, 0, rows) == NULL;
}

bool rp_item_is_sound(const rp_item_check *c, size_t row, char *why, size_t size)
{
    const char *column = find_unsound(c, row, 1);

    if (column == NULL) return true;
    assert(size > 0);
    if (column == AN_ACTION && c->spec->action_kind == RP_ACTION_DISCRETE)
        (void)snprintf(why, size, "action %d of %d", (int)((const int32_t *)c->actions)[row],
                       (int)c->spec->action_count);
    else
        (void)snprintf(why, size, "%s that is not finite, or out of bounds", column);
    return false;
}
