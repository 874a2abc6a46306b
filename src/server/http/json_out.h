/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to a buffer. The JSON is always valid: bytes of texts that are not UTF-8 become
 * U+FFFD, and numbers that are not finite become null.
 *
 * A function with a parameter `name` first writes this name as a key of the open object, after
 * a comma if it is not the first key of the object. */
#ifndef RP_SERVER_HTTP_JSON_OUT_H
#define RP_SERVER_HTTP_JSON_OUT_H

#include "util/buf.h"

/* Appends `text` as a JSON string with its quotes. If `text` is NULL, appends null. */
void rp_out_string(rp_buf *out, const char *text);
/* Appends the shortest text that reads back as the same number. If the number is not finite,
 * appends null. */
void rp_out_double(rp_buf *out, double number);

/* Appends a key and its colon. `name` must need no escapes. */
void rp_out_key(rp_buf *out, const char *name);
void rp_out_text(rp_buf *out, const char *name, const char *text);
void rp_out_number(rp_buf *out, const char *name, double number);
void rp_out_whole(rp_buf *out, const char *name, int64_t number);
void rp_out_count(rp_buf *out, const char *name, uint64_t number);
void rp_out_bool(rp_buf *out, const char *name, bool yes);
void rp_out_seconds(rp_buf *out, const char *name, int64_t ns);
void rp_out_null(rp_buf *out, const char *name);
void rp_out_open(rp_buf *out, const char *name); /* begins an object */
void rp_out_close(rp_buf *out);

#endif
