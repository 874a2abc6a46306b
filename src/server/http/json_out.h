/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to a buffer. What is written is always valid: bytes of texts that are not UTF-8
 * become U+FFFD, and numbers that are not finite become null.
 *
 * The functions with a `name` write a key of an object first, with a comma before it unless it
 * is the first of its object. */
#ifndef RP_SERVER_HTTP_JSON_OUT_H
#define RP_SERVER_HTTP_JSON_OUT_H

#include "util/buf.h"

/* Appends `text` as a string, quotes included; NULL becomes null. */
void rp_out_string(rp_buf *out, const char *text);
/* Appends the shortest text that reads back as the same number; null if it is not finite. */
void rp_out_double(rp_buf *out, double number);

/* Appends a key and its colon. `name` needs no escapes. */
void rp_out_key(rp_buf *out, const char *name);
void rp_out_text(rp_buf *out, const char *name, const char *text);
void rp_out_number(rp_buf *out, const char *name, double number);
void rp_out_whole(rp_buf *out, const char *name, int64_t number);
void rp_out_count(rp_buf *out, const char *name, uint64_t number);
void rp_out_bool(rp_buf *out, const char *name, bool yes);
void rp_out_seconds(rp_buf *out, const char *name, int64_t ns);
void rp_out_null(rp_buf *out, const char *name);
void rp_out_open(rp_buf *out, const char *name); /* an object, to be closed: */
void rp_out_close(rp_buf *out);

#endif
