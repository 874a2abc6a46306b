/* SPDX-License-Identifier: Apache-2.0 */
#include "env/env_fail.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "reprise/printable.h"

rp_status rp_env_fail(rp_error *err, rp_status code, const char *format, ...)
{
    char text[2 * RP_ERROR_TEXT_BYTES];
    va_list args;

    assert(code != RP_OK);
    if (err == NULL) return code;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    err->code = code;
    (void)rp_printable(text, strlen(text), err->text, sizeof err->text);
    return code;
}

rp_status rp_env_check_reset_bounds(const char *name, double low, double high, rp_error *err)
{
    if (low <= high) return RP_OK;
    return rp_env_fail(err, RP_INVALID,
                       "environment '%s': reset_low must be at most reset_high, got %g and %g",
                       name, low, high);
}

bool rp_env_values_fit(const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabs(values[i]) <= (double)FLT_MAX)) return false;
    return true;
}
