/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that fill in an rp_error, for all files of rl/. */
#ifndef RP_ERROR_FAIL_H
#define RP_ERROR_FAIL_H

#include "reprise/status.h"

/* Writes the code and the formatted text to `err`, which may be NULL, and returns `code`.
 * Escapes unprintable characters of the text, so callers can insert names from files into the
 * text as they are. */
rp_status rp_rl_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* Reports in `err` that an allocation of `bytes` bytes failed. Returns RP_NO_RESOURCE. */
rp_status rp_rl_fail_memory(rp_error *err, size_t bytes);

#endif
