/* SPDX-License-Identifier: Apache-2.0 */
/* Formats numbers and names for the pages of the HTTP server (page.h). */
#ifndef RP_SERVER_HTTP_TEXT_H
#define RP_SERVER_HTTP_TEXT_H

#include "reprise/printable.h"
#include "util/buf.h"

enum { RP_NUMBER_TEXT_BYTES = 32 };

/* Appends a whole number in decimal. */
void rp_put_whole(rp_buf *out, uint64_t number);

/* Formats a finite number with at most 17 significant digits, so that parsing the text gives
 * the same double. The decimal separator is a point in every locale. Returns `text`. */
char *rp_number_text(double number, char text[RP_NUMBER_TEXT_BYTES]);

/* Appends text, escaped for the output format `how`. */
void rp_put_spelt(rp_buf *out, const char *text, rp_spelling how);

#endif
