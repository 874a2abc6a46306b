/* SPDX-License-Identifier: Apache-2.0 */
#include "adder/plan.h"

#include <assert.h>

/* Returns the number of rows from `closed` to the next regular sequence, 0 if it is now. */
static int64_t rows_until_due(const rp_plan *plan, int64_t closed)
{
    int64_t over = closed - plan->length;

    if (over <= 0) return -over;
    return (plan->period - over % plan->period) % plan->period;
}

bool rp_plan_regular(const rp_plan *plan, int64_t closed, rp_plan_rows *out)
{
    assert(closed >= 1 && plan->length >= 1);
    if (plan->kind == RP_ADDER_EPISODE) return false;
    assert(plan->kind == RP_ADDER_SEQUENCE && plan->period >= 1);
    if (closed < plan->length || rows_until_due(plan, closed) != 0) return false;
    *out = (rp_plan_rows){closed - plan->length, plan->length, 0};
    return true;
}

/* Returns the latest `count` of `closed` rows and `padding` rows after them. */
static rp_plan_rows latest(int64_t closed, int64_t count, int64_t padding)
{
    int64_t rows = count - padding;

    if (rows < 0) rows = 0; /* a period longer than the sequence: padding only */
    assert(rows <= closed);
    return (rp_plan_rows){closed - rows, rows, count - rows};
}

static bool sequence_last(const rp_plan *plan, int64_t closed, rp_plan_rows *out)
{
    int64_t delta = rows_until_due(plan, closed);

    switch (plan->end) {
    case RP_ADDER_ZERO_PAD: *out = latest(closed, plan->length, delta); return true;
    case RP_ADDER_TRUNCATE:
        assert(delta < plan->length); /* period <= length */
        *out = latest(closed, plan->length - delta, 0);
        return true;
    case RP_ADDER_WRITE:
        if (closed < plan->length) return false;
        *out = latest(closed, plan->length, 0);
        return true;
    case RP_ADDER_CONTINUE: break;
    }
    assert(plan->end == RP_ADDER_CONTINUE);
    return rp_plan_regular(plan, closed, out);
}

bool rp_plan_last(const rp_plan *plan, int64_t closed, rp_plan_rows *out)
{
    assert(closed >= 2); /* an action, and row T */
    if (plan->kind == RP_ADDER_SEQUENCE) return sequence_last(plan, closed, out);
    assert(plan->kind == RP_ADDER_EPISODE && closed <= plan->length);
    *out = (rp_plan_rows){0, closed, plan->pad ? plan->length - closed : 0};
    return true;
}
