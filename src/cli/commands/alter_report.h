/* SPDX-License-Identifier: Apache-2.0 */
/* Says what an alteration of a table has changed and what follows from it, warns about options
 * without effect, and offers a command line that has the effect. Pure. */
#ifndef RP_CLI_COMMANDS_ALTER_REPORT_H
#define RP_CLI_COMMANDS_ALTER_REPORT_H

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
    uint32_t given; /* rp_alter_option */
} rp_alter_report;

/* Writes a line for each value that has changed, and, if the alteration concerns the limiter,
 * the lines of rp_limiter_state(). */
void rp_alter_changes(rp_text_buffer *out, const rp_alter_report *report);

/* Writes the members "changes" and "evicted" of a JSON object. */
void rp_alter_changes_json(rp_text_buffer *out, const rp_alter_report *report);

/* Writes a warning of one line for each option that has no effect, with a command line that
 * has, and for limiters that let one side wait for ever. */
void rp_alter_warnings(rp_text_buffer *out, const rp_alter_report *report);

/* Writes two lines: whether inserts and samples may proceed, how many, or what they wait for.
 */
void rp_limiter_state(rp_text_buffer *out, const rp_table_info *info);
/* The same, but only the lines of sides that have to wait. */
void rp_limiter_waits(rp_text_buffer *out, const rp_table_info *info);

#endif
