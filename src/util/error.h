/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that fill in an rp_error (reprise/status.h). */
#ifndef RP_UTIL_ERROR_H
#define RP_UTIL_ERROR_H

#include "reprise/status.h"

/* Writes the code and the text to `err`, which may be NULL, and returns `code`. So a caller can
 * write: return rp_fail(err, RP_INVALID, "table '%s': ...", name). The text is escaped by
 * rp_printable(), so names and texts from peers and files may be inserted unchanged. */
rp_status rp_fail(rp_error *err, rp_status code, const char *format, ...) RP_PRINTF(3, 4);

/* Reports that an allocation of `bytes` failed. Returns RP_NO_RESOURCE. */
rp_status rp_fail_memory(rp_error *err, size_t bytes);
/* Returns true if `err` was written by rp_fail_memory(). Needed because RP_NO_RESOURCE can also
 * mean that a limit was exceeded. */
bool rp_error_is_memory(const rp_error *err);

#endif
