/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `reprise tune` as text, JSON and SVG. Pure. */
#ifndef RP_CLI_TRAIN_TUNE_PRINT_H
#define RP_CLI_TRAIN_TUNE_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/rl/profile.h"

/* A split; steps a second by the curves, and measured as a whole (NaN: not measured). */
typedef struct rp_tune_row {
    int64_t actors, learners;
    double model, measured;
} rp_tune_row;

/* Borrows everything. */
typedef struct rp_tune_report {
    const char *agent, *env;
    const rp_profile_curves *curves;
    rp_split_options problem; /* of these curves */
    rp_split pick;
    rp_tune_row *rows; /* all that fit */
    size_t row_count;
    const char *command; /* to train with the pick */
} rp_tune_report;

/* Writes all splits that fit, at most `capacity`, without measurements, and returns their
 * number. */
size_t rp_tune_rows(const rp_split_options *problem, rp_tune_row *out, size_t capacity);

/* Sorts rows, the best first: measured ones by what was measured, then others by the curves. */
void rp_tune_sort(rp_tune_row *rows, size_t count);

/* Returns the row that was measured best, and the share of its rate that the pick made, 0 to 1.
 * NULL if the pick or all others were not measured. */
const rp_tune_row *rp_tune_best(const rp_tune_report *report, double *share);

/* Write the report. The text has the curves with bars as a plot, at most `most` of the splits,
 * the best first, and the command. The SVG has the curves in steps a second. */
void rp_tune_text(rp_text_buffer *out, const rp_tune_report *report, size_t most);
void rp_tune_json(rp_text_buffer *out, const rp_tune_report *report);
void rp_tune_svg(rp_text_buffer *out, const rp_tune_report *report);

#endif
