/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the values of settings, and reports errors about them. A setting comes from a file or
 * from the command line. An error text contains the position in the file, the setting, its
 * value and the allowed values. */
#ifndef RP_CLI_TEXT_PROBLEM_H
#define RP_CLI_TEXT_PROBLEM_H

#include "reprise/status.h"

/* A position in a file. Borrows the name `file`, which is NULL for the command line. */
typedef struct rp_place {
    const char *file;
    size_t line, column; /* counted from 1 */
} rp_place;

/* The text of an error. */
typedef struct rp_problem {
    char text[1024]; /* printable, without a full stop, cut to fit */
} rp_problem;

/* Writes the formatted sentence to the problem, with unprintable bytes escaped
 * (reprise/printable.h). If `place` is not NULL and in a file, writes "file:line:column: "
 * before the sentence. Returns RP_INVALID, so callers can return the result. */
rp_status rp_problem_set(rp_problem *problem, const rp_place *place, const char *format, ...)
    RP_PRINTF(3, 4);

/* Writes that memory ran out. Returns RP_NO_RESOURCE. */
rp_status rp_problem_memory(rp_problem *problem);

/* A setting with its value as the user wrote it. Borrows its texts. */
typedef struct rp_setting {
    const char *key;  /* name for error texts: "--port", "tables.replay.max_size" */
    const char *text; /* the value */
    bool quoted; /* the value is in quotes in its file: a string, never a number or boolean */
    rp_place place;
} rp_setting;

/* Parse a value of the type in the function's name, which must be from `low` to `high`. On an
 * error, return RP_INVALID, leave *out unchanged, and write a problem with the key, the value
 * and the bounds. */
RP_NODISCARD rp_status rp_setting_integer(const rp_setting *value, int64_t low, int64_t high,
                                          int64_t *out, rp_problem *problem);
RP_NODISCARD rp_status rp_setting_unsigned(const rp_setting *value, uint64_t *out,
                                           rp_problem *problem);
RP_NODISCARD rp_status rp_setting_number(const rp_setting *value, double low, double high,
                                         double *out, rp_problem *problem);
RP_NODISCARD rp_status rp_setting_boolean(const rp_setting *value, bool *out,
                                          rp_problem *problem);
/* Parses a size in bytes. "80%" means 80% of `whole` bytes. If `whole` is 0, a percentage is an
 * error. */
RP_NODISCARD rp_status rp_setting_size(const rp_setting *value, uint64_t whole, uint64_t *out,
                                       rp_problem *problem);
/* Parses a time of at most `high_ms` milliseconds. A number without a unit is multiplied by
 * `unit_ms` milliseconds. */
RP_NODISCARD rp_status rp_setting_duration(const rp_setting *value, int64_t unit_ms,
                                           int64_t high_ms, int64_t *ms, rp_problem *problem);
/* Returns the text itself, which must have 1 to 4,095 bytes. */
RP_NODISCARD rp_status rp_setting_text(const rp_setting *value, const char **out,
                                       rp_problem *problem);
/* Finds the text among `count` words and writes its index to *out. */
RP_NODISCARD rp_status rp_setting_choice(const rp_setting *value, const char *const *words,
                                         size_t count, int *out, rp_problem *problem);

#endif
