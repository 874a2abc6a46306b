/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and names as the pages write them. */
#ifndef RP_SERVER_HTTP_TEXT_H
#define RP_SERVER_HTTP_TEXT_H

#include "reprise/printable.h"
#include "util/buf.h"

enum { RP_NUMBER_TEXT_BYTES = 32 };

/* Appends a whole number. */
void rp_put_whole(rp_buf *out, uint64_t number);

/* Writes a finite number so that it reads back as the same, in 17 digits at most, with a point
 * whatever the locale says. Returns `text`. */
char *rp_number_text(double number, char text[RP_NUMBER_TEXT_BYTES]);

/* How many bytes from `text` on are ASCII that needs no escape in any of our formats:
 * printable, and neither a quote nor a backslash. */
size_t rp_plain_bytes(const char *text);

/* Appends text of anybody's, spelt so that it can be read there. */
void rp_put_spelt(rp_buf *out, const char *text, rp_spelling how);

#endif
