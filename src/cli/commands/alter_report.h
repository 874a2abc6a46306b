/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the result of `reprise tables alter`: what has changed, whether inserts and samples
 * can go on, and which options had no effect. For such an option, the report contains a command
 * line that would have the effect. Pure functions. */
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

/* Returns true if no value has changed and the limiter was not recentred. Without both bounds
 * it cannot be. */
bool rp_alter_is_same(const rp_alter_report *report);

/* Writes a line for each value that has changed. If an option of the rate limiter was given,
 * also writes a line about inserts and one about samples: how many may proceed, or what they
 * wait for. */
void rp_alter_changes(rp_text_buffer *out, const rp_alter_report *report);

/* Writes the same as two members of a JSON object: "changes" and "evicted" (the number of
 * items). */
void rp_alter_changes_json(rp_text_buffer *out, const rp_alter_report *report);

/* Writes one-line warnings: for each option without effect, with a command line that would have
 * the effect, and for a rate limiter that makes inserts or samples wait for ever. */
void rp_alter_warnings(rp_text_buffer *out, const rp_alter_report *report);

/* Print these warnings on the standard error stream for a command, or write them as a member of
 * a JSON object: "warnings". */
void rp_alter_warnings_print(const rp_text_buffer *warnings, const char *command);
void rp_alter_warnings_json(rp_text_buffer *out, const rp_text_buffer *warnings);

/* Writes a line for each of inserts and samples that have to wait: what they wait for. */
void rp_limiter_waits(rp_text_buffer *out, const rp_table_info *info);

#endif
