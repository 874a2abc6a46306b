/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that fill in an rp_error (reprise/status.h). */
#ifndef RP_UTIL_ERROR_H
#define RP_UTIL_ERROR_H

#include "reprise/status.h"

/* Writes code and text to `err` (NULL is fine) and returns `code`, so that a failure is one
 * line: return rp_fail(err, RP_INVALID, "table '%s': ...", name). The text is escaped by
 * rp_printable(), so names and texts of peers and files may be inserted unchanged. */
rp_status rp_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* Reports that an allocation of `bytes` failed. Returns RP_NO_RESOURCE. */
rp_status rp_fail_memory(rp_error *err, size_t bytes);
/* True if `err` was written by rp_fail_memory(): RP_NO_RESOURCE may also mean a limit. */
bool rp_error_is_memory(const rp_error *err);

#endif
