/* SPDX-License-Identifier: Apache-2.0 */
/* A strict JSON parser (RFC 8259), which makes a tree of values. The text must be a single
 * value in valid UTF-8. In addition, the parser rejects an object that has a key twice or has
 * more than RP_JSON_MAX_KEYS keys, a key with a zero byte, and more than RP_JSON_MAX_DEPTH
 * nested levels. Memory and time are bounded by the length of the text. */
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

/* A value. The values of an array or object are a linked list. */
typedef struct rp_json {
    struct rp_json *next;  /* the next value in the same array or object */
    struct rp_json *child; /* the first value of an array or object */
    const char *key;       /* key of this value in its object, zero-terminated; NULL if it is
                              not in an object */
    union {
        int64_t integer;
        uint64_t number_unsigned;
        double number;
        struct {
            const char *text; /* zero-terminated; can also contain zero bytes */
            size_t size;      /* without the terminating zero byte */
        } string;
        size_t count; /* values of an array or object */
    } u;
    size_t offset; /* position of the value's first byte in the text */
    rp_json_kind kind;
} rp_json;

/* The first error. */
typedef struct rp_json_error {
    size_t offset;    /* position of the wrong byte in the text */
    const char *what; /* valid as long as the arena */
} rp_json_error;

/* Parses `text`. Allocates values and strings in the arena. Errors: RP_INVALID, after which
 * `error` says what is wrong and where; RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_json_parse(rp_arena *arena, const char *text, size_t size,
                                     rp_json **out, rp_json_error *error);

/* Returns the value of `key` in an object, or NULL if the object has no such key. */
const rp_json *rp_json_find(const rp_json *object, const char *key);

/* Appends a value to the JSON text in `out` (text_buffer.h), with control characters
 * escaped. */
void rp_json_put_tree(rp_text_buffer *out, const rp_json *value);

/* Returns a name of the kind for error texts, as a static string: "a number", "an array". */
const char *rp_json_kind_text(rp_json_kind kind);

/* Writes a character, at most U+10FFFF, as UTF-8. Returns the number of bytes. */
size_t rp_utf8_encode(uint32_t character, char out[RP_UTF8_BYTES]);

#endif
