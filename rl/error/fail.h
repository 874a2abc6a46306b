/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in an rp_error. */
#ifndef RP_ERROR_FAIL_H
#define RP_ERROR_FAIL_H

#include "reprise/status.h"

/* Writes code and text to `err` (NULL is fine) and returns `code`. The text is escaped, so
 * names from files may be inserted unchanged. */
rp_status rp_rl_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* Reports that an allocation of `bytes` failed. Returns RP_NO_RESOURCE. */
rp_status rp_rl_fail_memory(rp_error *err, size_t bytes);

#endif
