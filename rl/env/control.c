/* SPDX-License-Identifier: Apache-2.0 */
#include "env/control.h"

#include <assert.h>
#include <float.h>
#include <math.h>

#include "error/fail.h"

rp_status rp_control_check_reset_bounds(const char *name, double low, double high,
                                        rp_error *err)
{
    if (low <= high) return RP_OK;
    return rp_rl_fail(err, RP_INVALID,
                      "environment '%s': reset_low must be at most reset_high, got %g and %g",
                      name, low, high);
}

bool rp_control_values_fit(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(values[i]) <= (double)FLT_MAX)) return false;
    return true;
}

void rp_control_seed(const rp_env_context *ctx, void *state, uint64_t value)
{
    (void)ctx;
    rp_pcg64_seed(&((rp_control *)state)->rng, value);
}

void rp_control_observe(const rp_env_context *ctx, const void *states, size_t count,
                        void *observations)
{
    const rp_control *s = states;
    float *out = observations;

    assert(ctx->spec->variable_count <= RP_CONTROL_VARIABLES);
    for (size_t i = 0; i < count; i++, s++)
        for (size_t k = 0; k < ctx->spec->variable_count; k++) *out++ = (float)s->v[k];
}

bool rp_control_check(const rp_env_context *ctx, const void *state)
{
    const rp_control *s = state;

    return rp_control_values_fit(s->v, ctx->spec->variable_count) && rp_pcg64_check(&s->rng) &&
           (s->flag == 0 || s->flag == 1);
}

void rp_control_get_variables(const rp_env_context *ctx, const void *state, double *values)
{
    for (size_t i = 0; i < ctx->spec->variable_count; i++)
        values[i] = ((const rp_control *)state)->v[i];
}

void rp_control_set_variables(const rp_env_context *ctx, void *state, const double *values)
{
    rp_control *s = state;

    assert(ctx->spec->variable_count <= RP_CONTROL_VARIABLES);
    for (size_t i = 0; i < ctx->spec->variable_count; i++) s->v[i] = values[i];
    s->flag = 0;
}
