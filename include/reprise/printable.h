/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a peer or a file, made safe to show.
 *
 * Names, messages and paths that somebody else wrote never reach a terminal, a log, a page or
 * an exception as they are. What shows as itself stays; everything else is spelt as an escape:
 * control characters (a terminal obeys them), characters that turn the direction of text or
 * break lines (what a person reads would not be what is there), and bytes that are no UTF-8.
 * Every text of an rp_error has been through rp_printable().
 *
 * Pure functions. */
#ifndef REPRISE_PRINTABLE_H
#define REPRISE_PRINTABLE_H

#include "reprise/status.h"

RP_BEGIN_DECLS

#define RP_NO_CHARACTER UINT32_MAX

/* Reads the UTF-8 character at `text`, of which there are `size` >= 1 bytes, and returns its
 * bytes, 1 to 4. If there is none (stray bytes, cut short, overlong, a surrogate, over 10ffff):
 * writes RP_NO_CHARACTER and returns 1. */
RP_API size_t rp_utf8_next(const char *text, size_t size, uint32_t *character);

/* Where the escapes are to be read. */
typedef enum rp_spelling {
    RP_SPELL_SHOWN,  /* by a person: \n \t \r \x1b \u202e, stray bytes \xff; nothing else */
    RP_SPELL_QUOTED, /* within double quotes of YAML or logfmt: the same, and \" and \\ */
    RP_SPELL_JSON,   /* within a JSON string: stray bytes are U+FFFD */
    RP_SPELL_LABEL,  /* within a label of Prometheus, which knows \" \\ \n only: a backslash of
                        the text, and one that begins an escape, is one for Prometheus. Two
                        texts stay two */
} rp_spelling;

enum { RP_SPELT_BYTES = 8 };

/* Spells the character at `text`, of which there are `size` >= 1 bytes, into `out`, without a
 * terminator. Returns how many bytes of `text` that were; `*spelt` is how many of `out`. */
RP_API size_t rp_spell(const char *text, size_t size, rp_spelling how, char out[RP_SPELT_BYTES],
                       size_t *spelt);

/* Writes `size` bytes of text as RP_SPELL_SHOWN to `out`, terminated, cut between characters to
 * fit `capacity` >= 1; returns the length. Text that is printable already stays as it is. */
RP_API size_t rp_printable(const char *text, size_t size, char *out, size_t capacity);

RP_END_DECLS

#endif
