/* SPDX-License-Identifier: Apache-2.0 */
/* Checks patterns. The error texts are those of Reverb. */
#include <math.h>

#include "client/writer/structured_writer.h"
#include "reprise/structured_writer.h"
#include "util/error.h"

static rp_status check_node(const rp_pattern_node *node, rp_error *err)
{
    if (node->source >= RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "`flat_source_index` must be < %d but got %u",
                       RP_MAX_COLUMNS, node->source);
    if (!node->has_start && !node->has_stop)
        return rp_fail(err, RP_INVALID, "At least one of `start` and `stop` must be specified");
    if (node->has_start && node->start >= 0)
        return rp_fail(err, RP_INVALID, "`start` must be < 0 but got %d", (int)node->start);
    if (node->has_stop && node->stop > 0)
        return rp_fail(err, RP_INVALID, "`stop` must be <= 0 but got %d", (int)node->stop);
    if (node->has_start && node->has_stop && node->start >= node->stop)
        return rp_fail(err, RP_INVALID,
                       "`stop` (%d) must be > `start` (%d) when both are specified",
                       (int)node->stop, (int)node->start);
    if (!node->has_start && node->stop == 0)
        return rp_fail(err, RP_INVALID, "`stop` must be < 0 when `start` isn't set but got %d",
                       (int)node->stop);
    if (!node->has_start && node->step != 0)
        return rp_fail(err, RP_INVALID, "`step` must only be set when `start` is set");
    if (node->step < 0)
        return rp_fail(err, RP_INVALID, "`step` must be > 0 but got %d", (int)node->step);
    if (node->start == INT32_MIN || node->stop == INT32_MIN)
        return rp_fail(err, RP_INVALID, "`start` and `stop` must be > %d", INT32_MIN);
    return RP_OK;
}

static rp_status check_condition(const rp_condition *c, rp_error *err)
{
    if (c->left < RP_LEFT_STEP_INDEX || c->left > RP_LEFT_DATA)
        return rp_fail(err, RP_INVALID, "Conditions must specify a value for `left`");
    if (c->left == RP_LEFT_DATA && c->column >= RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "flat_source_index must be < %d but got %u",
                       RP_MAX_COLUMNS, c->column);
    if (c->compare == RP_COMPARE_MOD_EQ && c->mod <= 0)
        return rp_fail(err, RP_INVALID, "`mod_eq.mod` must be > 0 but got %d", (int)c->mod);
    if (c->compare == RP_COMPARE_MOD_EQ && c->value < 0)
        return rp_fail(err, RP_INVALID, "`mod_eq.eq` must be >= 0 but got %d", (int)c->value);
    if (c->compare < RP_COMPARE_EQ || c->compare > RP_COMPARE_MOD_EQ)
        return rp_fail(err, RP_INVALID, "Conditions must specify a value for `cmp`");
    if (c->left == RP_LEFT_IS_END_EPISODE &&
        (c->compare != RP_COMPARE_EQ || c->value != 1 || c->inverse))
        return rp_fail(err, RP_INVALID,
                       "Condition must use `eq=1` when using `is_end_episode`");
    return RP_OK;
}

static rp_status check_priority(const rp_pattern *p, rp_error *err)
{
    const rp_pattern_priority *priority = &p->priority;

    if (priority->kind == RP_PRIORITY_CONSTANT) {
        if (priority->value >= 0) return RP_OK; /* false of NaN */
        return rp_fail(err, RP_INVALID, "`priority` must be >= 0 but got %f", priority->value);
    }
    if (priority->kind != RP_PRIORITY_TD_ERROR)
        return rp_fail(err, RP_INVALID, "unknown kind of priority %d", (int)priority->kind);
    if (!(priority->max_priority_weight >= 0 && priority->max_priority_weight <= 1))
        return rp_fail(err, RP_INVALID, "`max_priority_weight` must be in [0, 1] but got %f",
                       priority->max_priority_weight);
    for (size_t i = 0; i < p->node_count; i++)
        if (p->nodes[i].source == priority->column) return RP_OK;
    return rp_fail(err, RP_INVALID,
                   "the TD error is that of column %u, which the pattern does not use",
                   priority->column);
}

static rp_status check_pattern(const rp_pattern *p, rp_error *err)
{
    rp_status st = RP_OK;

    if (p->node_count == 0) return rp_fail(err, RP_INVALID, "`flat` must not be empty");
    if (p->node_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "a pattern has at most %d columns, got %zu",
                       RP_MAX_COLUMNS, p->node_count);
    if (p->nodes == NULL)
        return rp_fail(err, RP_INVALID, "`nodes` is NULL, node_count %zu", p->node_count);
    if (p->conditions == NULL && p->condition_count > 0)
        return rp_fail(err, RP_INVALID, "`conditions` is NULL, condition_count %zu",
                       p->condition_count);
    if (p->table == NULL || p->table[0] == '\0')
        return rp_fail(err, RP_INVALID, "`table` must not be empty");
    for (size_t i = 0; st == RP_OK && i < p->node_count; i++)
        st = check_node(&p->nodes[i], err);
    for (size_t i = 0; st == RP_OK && i < p->condition_count; i++)
        st = check_condition(&p->conditions[i], err);
    return st == RP_OK ? check_priority(p, err) : st;
}

rp_status rp_pattern_check(const rp_pattern *patterns, size_t count, rp_error *err)
{
    rp_error why;

    if (count == 0) return rp_fail(err, RP_INVALID, "At least one config must be provided");
    for (size_t i = 0; i < count; i++)
        if (check_pattern(&patterns[i], &why) != RP_OK)
            return rp_fail(err, RP_INVALID, "Invalid configuration at position %zu: %s", i,
                           why.text);
    return RP_OK;
}
