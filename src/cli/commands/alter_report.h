/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the result of `reprise tables alter`: what has changed, whether inserts and samples
 * can go on, and which options had no effect. For an option without effect, the report contains
 * a command line that does what the user wanted. Pure functions. */
#ifndef RP_CLI_COMMANDS_ALTER_REPORT_H
#define RP_CLI_COMMANDS_ALTER_REPORT_H

#include <stdbool.h>

#include "cli/text/text_buffer.h"
#include "reprise/table.h"

/* The options that the user gave. */
typedef enum rp_alter_option {
    RP_ALTERED_MAX_SIZE = 1,
    RP_ALTERED_MAX_BYTES = 2,
    RP_ALTERED_MAX_TIMES_SAMPLED = 4,
    RP_ALTERED_SAMPLES_PER_INSERT = 8,
    RP_ALTERED_MIN_SIZE = 16,
    RP_ALTERED_ERROR_BUFFER = 32,
    RP_ALTERED_MIN_DIFF = 64,
    RP_ALTERED_MAX_DIFF = 128,
    RP_ALTERED_RECENTER = 256,
} rp_alter_option;

/* A table before and after the alteration. */
typedef struct rp_alter_report {
    const rp_table_info *before, *after;
    uint32_t given; /* flags of rp_alter_option */
} rp_alter_report;

/* Returns true if no value has changed and the rate limiter was not recentred. (--recenter does
 * not recentre a rate limiter that lacks one of the bounds min_diff and max_diff.) */
bool rp_alter_is_same(const rp_alter_report *report);

/* Writes a line for each value that has changed. If an option of the rate limiter was given,
 * also writes a line about inserts and one about samples: how many can go ahead now, or what
 * they wait for. */
void rp_alter_changes(rp_text_buffer *out, const rp_alter_report *report);

/* Writes the changes as two members of a JSON object: "changes", and "evicted" (the number of
 * items that the alteration has evicted). */
void rp_alter_changes_json(rp_text_buffer *out, const rp_alter_report *report);

/* Writes warnings of one line each. There is one for each option without effect, with a command
 * line that does what the user wanted. If the rate limiter makes inserts or samples wait for
 * ever, there is one more. */
void rp_alter_warnings(rp_text_buffer *out, const rp_alter_report *report);

/* Print the text of rp_alter_warnings() on the standard error stream, each line after the name
 * of the command; or write it as the member "warnings" of a JSON object. */
void rp_alter_warnings_print(const rp_text_buffer *warnings, const char *command);
void rp_alter_warnings_json(rp_text_buffer *out, const rp_text_buffer *warnings);

/* If inserts of the table have to wait, writes a line about what they wait for. Does the same
 * for samples. */
void rp_limiter_waits(rp_text_buffer *out, const rp_table_info *info);

#endif
