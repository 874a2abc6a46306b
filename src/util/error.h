/* SPDX-License-Identifier: Apache-2.0 */
/* Filling in an rp_error. */
#ifndef RP_UTIL_ERROR_H
#define RP_UTIL_ERROR_H

#include "reprise/status.h"

/* Writes code and sentence to `err` (NULL is fine) and returns `code`, so that a failure is one
 * line: return rp_fail(err, RP_INVALID, "table '%s': ...", name). The sentence is made
 * printable: names and texts of peers and files may go in as they are. */
rp_status rp_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* The one sentence for an allocation that failed. Returns RP_NO_RESOURCE. */
rp_status rp_fail_memory(rp_error *err, size_t bytes);
/* True if `err` came from it, and not from a limit. */
bool rp_error_is_memory(const rp_error *err);

#endif
