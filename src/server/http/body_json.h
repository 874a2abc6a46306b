/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259) from the body of a request, value by value, without allocating memory.
 * In strings, bytes that are not ASCII are passed on as they are.
 *
 * The caller asks for the values that it expects. After the first mistake in the body, `what`
 * describes the mistake, and every function returns false.
 *
 *   rp_body_init(&in, text, size);
 *   if (rp_body_open(&in, '{'))
 *       while (rp_body_next_key(&in, &key)) {
 *           if (strcmp(key.text, "max_size") == 0) (void)rp_body_whole(&in, &max_size);
 *           else (void)rp_body_skip(&in);
 *       }
 *   if (!rp_body_end(&in))
 *       return rp_page_fail(answer, 400, "%s at byte %zu", in.what, in.byte);
 */
#ifndef RP_SERVER_HTTP_BODY_JSON_H
#define RP_SERVER_HTTP_BODY_JSON_H

#include "server/http/route.h" /* rp_ask_name */

enum { RP_BODY_DEPTH = 16 };

typedef struct rp_body {
    const char *start, *at, *end;
    const char *what; /* describes the first mistake, static; NULL: no mistake so far */
    size_t byte;      /* offset of the first mistake in the body */
    unsigned depth;   /* number of open objects and arrays */
    bool is_first;    /* no value of the innermost open object or array has been read */
} rp_body;

void rp_body_init(rp_body *in, const void *text, size_t size);

/* Opens an object ('{') or an array ('['). */
bool rp_body_open(rp_body *in, char bracket);
/* Moves to the next value of the open object. `key` receives the value's key, which must have 1
 * to RP_ASK_NAME_BYTES bytes. After the last value, closes the object and returns false. */
bool rp_body_next_key(rp_body *in, rp_ask_name *key);
/* Moves to the next value of the open array. After the last value, closes the array and returns
 * false. */
bool rp_body_next(rp_body *in);

bool rp_body_number(rp_body *in, double *out); /* a finite number */
bool rp_body_whole(rp_body *in, int64_t *out); /* a number without fraction or exponent */
bool rp_body_bool(rp_body *in, bool *out);
/* Reads a string of 1 to RP_ASK_NAME_BYTES bytes, none of them zero. */
bool rp_body_text(rp_body *in, rp_ask_name *out);
/* Returns whether the next value is null. If it is, reads it. */
bool rp_body_null(rp_body *in);
/* Skips one value of any kind. */
bool rp_body_skip(rp_body *in);
/* If there was no mistake before, records a mistake in the value that was read last. `what`
 * must be static. Returns false. */
bool rp_body_fail(rp_body *in, const char *what);
/* Returns whether the whole body was read without a mistake. */
bool rp_body_end(rp_body *in);

#endif
