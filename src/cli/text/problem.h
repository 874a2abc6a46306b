/* SPDX-License-Identifier: Apache-2.0 */
/* Settings with the place they came from, and errors about them. An error is a sentence with
 * the place, the setting, its value and the allowed values. */
#ifndef RP_CLI_TEXT_PROBLEM_H
#define RP_CLI_TEXT_PROBLEM_H

#include "reprise/status.h"

/* A place in a file. `file` is NULL for the command line. Borrows the name. */
typedef struct rp_place {
    const char *file;
    size_t line, column; /* from 1 */
} rp_place;

typedef struct rp_problem {
    char text[1024]; /* printable, without a full stop, cut to fit */
} rp_problem;

/* Writes "file:line:column: " (if `place` is in a file; it may be NULL) and the sentence, made
 * printable (reprise/printable.h). Returns RP_INVALID, for the caller to return. */
rp_status rp_problem_set(rp_problem *problem, const rp_place *place, const char *format, ...)
    RP_PRINTF(3, 4);

/* Writes that there is no memory. Returns RP_NO_RESOURCE. */
rp_status rp_problem_memory(rp_problem *problem);

/* A value as it was written. Borrows its texts. */
typedef struct rp_setting {
    const char *key; /* as the user knows it: "--port", "tables.replay.max_size" */
    const char *text;
    bool quoted; /* a string in quotes in a file: neither a number nor a boolean */
    rp_place place;
} rp_setting;

/* Parse a value of the named type, within inclusive bounds. RP_INVALID, naming the key, the
 * value and the bounds; then nothing is written. */
RP_NODISCARD rp_status rp_setting_integer(const rp_setting *value, int64_t low, int64_t high,
                                          int64_t *out, rp_problem *problem);
RP_NODISCARD rp_status rp_setting_unsigned(const rp_setting *value, uint64_t *out,
                                           rp_problem *problem);
RP_NODISCARD rp_status rp_setting_number(const rp_setting *value, double low, double high,
                                         double *out, rp_problem *problem);
RP_NODISCARD rp_status rp_setting_boolean(const rp_setting *value, bool *out,
                                          rp_problem *problem);
/* Parses a size in bytes. `whole` is 100 %; 0: percentages are not allowed. */
RP_NODISCARD rp_status rp_setting_size(const rp_setting *value, uint64_t whole, uint64_t *out,
                                       rp_problem *problem);
/* Parses a time of at most `high_ms` milliseconds. `unit_ms` is the unit of a plain number. */
RP_NODISCARD rp_status rp_setting_duration(const rp_setting *value, int64_t unit_ms,
                                           int64_t high_ms, int64_t *ms, rp_problem *problem);
/* Gets a text that is not empty and has at most 4,095 bytes. */
RP_NODISCARD rp_status rp_setting_text(const rp_setting *value, const char **out,
                                       rp_problem *problem);
/* Gets the index of one of `count` words. */
RP_NODISCARD rp_status rp_setting_choice(const rp_setting *value, const char *const *words,
                                         size_t count, int *out, rp_problem *problem);

#endif
