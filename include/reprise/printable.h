/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping of untrusted text.
 *
 * Names, messages and paths from a peer or a file are escaped before they reach a terminal, a
 * log, a page or an exception. Escaped are: control characters (a terminal obeys them),
 * characters that change the direction of text or break lines (the display would differ from
 * the text), and bytes that are not UTF-8. Other characters stay unchanged. The text of an
 * rp_error has been escaped by rp_printable().
 *
 * Pure functions. */
#ifndef REPRISE_PRINTABLE_H
#define REPRISE_PRINTABLE_H

#include "reprise/status.h"

RP_BEGIN_DECLS

#define RP_NO_CHARACTER UINT32_MAX

/* Decodes the first UTF-8 character of `text`, which has `size` >= 1 bytes, and returns its
 * length, 1 to 4. If the bytes are not valid UTF-8 (stray bytes, cut short, overlong, a
 * surrogate, over 10ffff): writes RP_NO_CHARACTER and returns 1. */
RP_API size_t rp_utf8_next(const char *text, size_t size, uint32_t *character);

/* The syntax of the escapes. */
typedef enum rp_spelling {
    RP_SPELL_SHOWN,  /* for people: \n \t \r \x1b \u202e, stray bytes \xff; nothing else */
    RP_SPELL_QUOTED, /* in double quotes of YAML or logfmt: the same, and \" and \\ */
    RP_SPELL_JSON,   /* in a JSON string: stray bytes become U+FFFD */
    RP_SPELL_LABEL,  /* in a Prometheus label, which knows \" \\ \n only: every other escape
                        starts with \\, and a backslash of the text becomes \\\\, so that
                        different texts stay different */
} rp_spelling;

enum { RP_SPELT_BYTES = 8 };

/* Escapes the first character of `text`, which has `size` >= 1 bytes, into `out`, without a
 * terminator. Returns the number of bytes read; `*spelt` is the number of bytes written. */
RP_API size_t rp_spell(const char *text, size_t size, rp_spelling how, char out[RP_SPELT_BYTES],
                       size_t *spelt);

/* Escapes `size` bytes of text as RP_SPELL_SHOWN into `out`, zero-terminated and cut between
 * characters to fit `capacity` >= 1. Returns the length. Printable text stays unchanged. */
RP_API size_t rp_printable(const char *text, size_t size, char *out, size_t capacity);

RP_END_DECLS

#endif
