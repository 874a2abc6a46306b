/* SPDX-License-Identifier: Apache-2.0 */
#include "table/selector/selector.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "util/error.h"

/* The largest weight: the sum of 2^31 of them is finite. */
static const double max_weight = DBL_MAX / 0x1p32;

bool rp_selector_options_equal(const rp_selector_options *a, const rp_selector_options *b)
{
    return a->kind == b->kind && (a->kind != RP_PRIORITIZED || a->exponent == b->exponent);
}

const char *rp_selector_name(rp_selector_kind kind)
{
    switch (kind) {
    case RP_FIFO: return "fifo";
    case RP_LIFO: return "lifo";
    case RP_UNIFORM: return "uniform";
    case RP_PRIORITIZED: return "prioritized";
    case RP_MIN_HEAP: return "min_heap";
    case RP_MAX_HEAP: return "max_heap";
    }
    return NULL;
}

rp_status rp_selector_new(const rp_allocator *alloc, const rp_selector_options *options,
                          rp_selector **out, rp_error *err)
{
    rp_selector *s = NULL;

    if (rp_selector_name(options->kind) == NULL)
        return rp_fail(err, RP_INVALID,
                       "there is no kind %d; the kinds are fifo (%d), lifo (%d), uniform (%d), "
                       "prioritized (%d), min_heap (%d) and max_heap (%d)",
                       (int)options->kind, RP_FIFO, RP_LIFO, RP_UNIFORM, RP_PRIORITIZED,
                       RP_MIN_HEAP, RP_MAX_HEAP);
    if (options->kind == RP_PRIORITIZED && !(fabs(options->exponent) <= RP_MAX_EXPONENT))
        return rp_fail(err, RP_INVALID, "exponent must be in %g .. %g, got %g",
                       -RP_MAX_EXPONENT, RP_MAX_EXPONENT, options->exponent);
    switch (options->kind) {
    case RP_FIFO:
    case RP_LIFO: s = rp_selector_order_new(alloc); break;
    case RP_UNIFORM: s = rp_selector_uniform_new(alloc); break;
    case RP_PRIORITIZED: s = rp_selector_prioritized_new(alloc); break;
    case RP_MIN_HEAP:
    case RP_MAX_HEAP: s = rp_selector_heap_new(alloc); break;
    }
    if (s == NULL) return rp_fail(err, RP_NO_RESOURCE, "selector: out of memory");
    s->options = *options;
    s->alloc = *alloc;
    s->power = rp_power_best();
    *out = s;
    return RP_OK;
}

void rp_selector_free(rp_selector *s)
{
    if (s != NULL) s->ops->free(s);
}

static bool weigh_all(const rp_selector *s, const double *priorities, double *values,
                      size_t count)
{
    double exponent = s->options.exponent;
    bool ok = true;

    for (size_t i = 0; i < count; i++) ok &= priorities[i] >= 0 && priorities[i] <= DBL_MAX;
    if (!ok) return false;
    if (exponent == 1)
        memcpy(values, priorities, count * sizeof *values);
    else
        s->power(priorities, exponent, values, count);
    for (size_t i = 0; i < count; i++) ok &= values[i] <= max_weight;
    return ok;
}

bool rp_selector_values(const rp_selector *s, const double *priorities, double *values,
                        size_t count)
{
    bool ok = true;

    if (s->options.kind == RP_PRIORITIZED) return weigh_all(s, priorities, values, count);
    memcpy(values, priorities, count * sizeof *values);
    for (size_t i = 0; i < count; i++) ok &= !isnan(priorities[i]);
    return ok;
}

rp_status rp_selector_weigh(const rp_selector *s, double priority, double *value, rp_error *err)
{
    if (rp_selector_values(s, &priority, value, 1)) return RP_OK;
    if (isnan(priority)) return rp_fail(err, RP_INVALID, "priority must be a number, got NaN");
    if (priority < 0 || isinf(priority))
        return rp_fail(err, RP_INVALID,
                       "priority must be finite and >= 0 for a prioritized selector, got %g",
                       priority);
    return rp_fail(err, RP_INVALID, "priority %g to the power %g is over the largest weight %g",
                   priority, s->options.exponent, max_weight);
}
