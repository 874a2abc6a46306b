/* SPDX-License-Identifier: Apache-2.0 */
/* Escapes text for output. These functions, in addition to reprise/printable.h, are for the
 * library only. They have no state. */
#ifndef RP_UTIL_PRINTABLE_H
#define RP_UTIL_PRINTABLE_H

#include "reprise/printable.h"

enum { RP_SPELT_BYTES = 8 };

/* Escapes the first character of `text` and writes it to `out`, without a terminating zero.
 * `text` has `size` >= 1 bytes. Returns the number of bytes read from `text`. Sets `*spelt` to
 * the number of bytes written to `out`. */
size_t rp_spell(const char *text, size_t size, rp_spelling how, char out[RP_SPELT_BYTES],
                size_t *spelt);

bool rp_is_utf8(const char *text, size_t size);

/* For a text that was truncated to `length` bytes: returns `length` minus the number of bytes
 * of an incomplete UTF-8 character at the end of `text`. */
size_t rp_utf8_whole(const char *text, size_t length);

#endif
