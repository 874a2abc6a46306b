/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping of untrusted text.
 *
 * Names, messages and paths from a peer or a file are escaped before they reach a terminal, a
 * log, a page or an exception. Three kinds of bytes are escaped: control characters, which a
 * terminal would obey; characters that change the direction of text or break lines, because the
 * display would differ from the text; and bytes that are not UTF-8. Other characters stay
 * unchanged. The text that a call writes to an rp_error is already escaped.
 *
 * The functions keep no state and are safe from any thread. */
#ifndef REPRISE_PRINTABLE_H
#define REPRISE_PRINTABLE_H

#include "reprise/status.h"

RP_BEGIN_DECLS

#define RP_NO_CHARACTER UINT32_MAX

/* Decodes the UTF-8 character at the beginning of `text`, which has `size` >= 1 bytes, into
 * `*character`, and returns the character's length, 1 to 4 bytes. If the bytes are not a
 * character in UTF-8 (stray or missing bytes, an overlong form, a surrogate, a number over
 * U+10FFFF), writes RP_NO_CHARACTER and returns 1. */
RP_API size_t rp_utf8_next(const char *text, size_t size, uint32_t *character);

/* Where the escaped text is to appear, which decides the form of the escapes. */
typedef enum rp_spelling {
    RP_SPELL_SHOWN,  /* shown to a person: \n \t \r \x1b \u202e, stray bytes as \xff */
    RP_SPELL_QUOTED, /* in double quotes of YAML or logfmt: the escapes of RP_SPELL_SHOWN, and
                        \" and \\ */
    RP_SPELL_JSON,   /* in a JSON string: stray bytes become U+FFFD */
    RP_SPELL_LABEL,  /* in a label value of Prometheus, which knows only the escapes \" \\ and
                        \n. Any other escape is written with two backslashes (\\x1b), and a
                        backslash of the text as four, so that different texts stay different */
} rp_spelling;

/* Receives a part of an escaped text: `size` bytes without a terminating zero. */
typedef void rp_spell_sink(void *ctx, const char *part, size_t size);

/* Escapes `size` bytes of text and passes the result to `put`, part by part. */
RP_API void rp_spell_text(const char *text, size_t size, rp_spelling how, rp_spell_sink *put,
                          void *ctx);

/* Writes `size` bytes of text to `out`, escaped as RP_SPELL_SHOWN and zero-terminated. If the
 * result does not fit into `capacity` >= 1 bytes, cuts it between two characters. Returns the
 * length of the result. */
RP_API size_t rp_printable(const char *text, size_t size, char *out, size_t capacity);

RP_END_DECLS

#endif
