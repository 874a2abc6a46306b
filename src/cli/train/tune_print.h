/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of `reprise tune` as text, JSON and SVG. A split is how many threads act
 * and how many learn. The command measures two curves: the rates of acting and of learning over
 * the number of threads (reprise/rl/profile.h). */
#ifndef RP_CLI_TRAIN_TUNE_PRINT_H
#define RP_CLI_TRAIN_TUNE_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/rl/profile.h"

/* A split with its speed in steps per second. `model` is the speed computed from the two
 * curves. `measured` is the speed of a run with this split; NaN: there was no such run. */
typedef struct rp_tune_row {
    int64_t actors, learners;
    double model, measured;
} rp_tune_row;

/* The data to print, all borrowed. */
typedef struct rp_tune_report {
    const char *agent, *env;
    const rp_profile_curves *curves;
    rp_split_options problem; /* both curves, the number of cores and other options, from which
                                 the split was picked */
    rp_split pick;
    rp_tune_row *rows; /* all splits that fit the number of cores */
    size_t row_count;
    const char *command; /* command line that trains with the split `pick` */
} rp_tune_report;

/* Writes the splits that fit the number of cores, at most `capacity` of them, with `measured`
 * set to NaN. Returns the number of splits that it has written. */
size_t rp_tune_rows(const rp_split_options *problem, rp_tune_row *out, size_t capacity);

/* Sorts rows by speed, the fastest first: first the rows that were measured, by `measured`,
 * then the others, by `model`. */
void rp_tune_sort(rp_tune_row *rows, size_t count);

/* Returns the row with the highest measured speed. Sets `*share` to the measured speed of the
 * split `pick` divided by this highest speed. If `pick` was not measured, returns NULL. */
const rp_tune_row *rp_tune_best(const rp_tune_report *report, double *share);

/* Append the report to `out`. The text contains the curves as bars, the first `most` rows and
 * the command. The SVG shows the curves in steps per second. */
void rp_tune_text(rp_text_buffer *out, const rp_tune_report *report, size_t most);
void rp_tune_json(rp_text_buffer *out, const rp_tune_report *report);
void rp_tune_svg(rp_text_buffer *out, const rp_tune_report *report);

#endif
