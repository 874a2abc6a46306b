/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text about the parts of an Ape-X program (learner, evaluator, actors), as a user
 * sees them. */
#ifndef RP_CLI_TRAIN_TRAIN_LINES_H
#define RP_CLI_TRAIN_TRAIN_LINES_H

#include "reprise/rl/apex.h"

enum { RP_PART_LINE_BYTES = 512 };

/* Writes the name of a part, such as "actor 3", to `out` and returns `out`. */
char *rp_part_name(const rp_apex_part *part, char out[32]);

/* Writes one line about a part to `out`, without a line feed, and returns `out`. `threshold` is
 * the mean return at which the task is solved. */
char *rp_part_line(const rp_apex_part *part, double threshold, char out[RP_PART_LINE_BYTES]);

/* Draws a line for each part on the terminal of the standard error stream. Overwrites the lines
 * of the previous call, which returned `drawn`. Returns the number of lines. */
size_t rp_part_lines_draw(const rp_apex_part *parts, size_t count, double threshold,
                          size_t drawn);
/* Removes the `drawn` lines from the screen. */
void rp_part_lines_clear(size_t drawn);

#endif
