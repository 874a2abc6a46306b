/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts of the environments. */
#ifndef RP_ENV_ENV_FAIL_H
#define RP_ENV_ENV_FAIL_H

#include "reprise/status.h"

/* Writes the code and the text to `err`, which may be NULL, and returns the code. The text is
 * escaped where it is not printable, and cut to fit. */
rp_status rp_env_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* RP_INVALID if the lower bound of a reset is above the upper one. */
rp_status rp_env_check_reset_bounds(const char *name, double low, double high, rp_error *err);

/* True if each of `count` values is a number that a float can hold. */
bool rp_env_values_fit(const double *values, size_t count);

#endif
