/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for escaping text that are not in the public header reprise/printable.h. They have
 * no state. */
#ifndef RP_UTIL_PRINTABLE_H
#define RP_UTIL_PRINTABLE_H

#include "reprise/printable.h"

enum { RP_SPELT_BYTES = 8 };

/* Writes the first character of `text`, escaped as `how` says, to `out`, without a terminating
 * zero. `text` has `size` >= 1 bytes. Returns the number of bytes read from `text`. Sets
 * `*spelt` to the number of bytes written to `out`. */
size_t rp_spell(const char *text, size_t size, rp_spelling how, char out[RP_SPELT_BYTES],
                size_t *spelt);

bool rp_is_utf8(const char *text, size_t size);

/* For a text that was truncated to `length` bytes: returns `length` minus the number of bytes
 * of an incomplete UTF-8 character at the end of `text`. */
size_t rp_utf8_whole(const char *text, size_t length);

#endif
