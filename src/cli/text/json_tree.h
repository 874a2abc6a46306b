/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON parser (RFC 8259). The text must be one value with nothing after it, in valid
 * UTF-8, and no object may have a key twice. Memory and time are bounded by the length of the
 * text. */
#ifndef RP_CLI_TEXT_JSON_TREE_H
#define RP_CLI_TEXT_JSON_TREE_H

#include "cli/text/arena.h"
#include "cli/text/text_buffer.h"

enum { RP_JSON_MAX_DEPTH = 64, RP_JSON_MAX_KEYS = 4096, RP_UTF8_BYTES = 4 };

typedef enum rp_json_kind {
    RP_JSON_NULL,
    RP_JSON_FALSE,
    RP_JSON_TRUE,
    RP_JSON_INTEGER,  /* no fraction, no exponent, fits an int64_t */
    RP_JSON_UNSIGNED, /* no fraction, no exponent, above INT64_MAX, fits a uint64_t */
    RP_JSON_NUMBER,   /* any other number, finite */
    RP_JSON_STRING,
    RP_JSON_ARRAY,
    RP_JSON_OBJECT,
} rp_json_kind;

/* A value. Children are a linked list. */
typedef struct rp_json {
    struct rp_json *next;  /* the next value in the same array or object */
    struct rp_json *child; /* the first value of an array or object */
    const char *key;       /* in an object; zero-terminated, no other zero byte in it */
    union {
        int64_t integer;
        uint64_t number_unsigned;
        double number;
        struct {
            const char *text; /* zero-terminated, may have zero bytes in it */
            size_t size;      /* without the terminating zero byte */
        } string;
        size_t count; /* values of an array or object */
    } u;
    size_t offset; /* of the value's first byte in the text */
    rp_json_kind kind;
} rp_json;

/* The first error. */
typedef struct rp_json_error {
    size_t offset;    /* of the byte in the text */
    const char *what; /* static */
} rp_json_error;

/* Parses `text`. Nodes and strings are allocated in the arena. RP_INVALID (`error` says what
 * and where), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_json_parse(rp_arena *arena, const char *text, size_t size,
                                     rp_json **out, rp_json_error *error);

/* Returns the value of a key of an object, or NULL. */
const rp_json *rp_json_find(const rp_json *object, const char *key);

/* Adds a value to a text of JSON (text_buffer.h), with control characters escaped. */
void rp_json_put_tree(rp_text_buffer *out, const rp_json *value);

/* Returns "a number", "an array" and so on. Static. */
const char *rp_json_kind_text(rp_json_kind kind);

/* Writes a character, at most 10ffff, as UTF-8. Returns the number of bytes. */
size_t rp_utf8_encode(uint32_t character, char out[RP_UTF8_BYTES]);

#endif
