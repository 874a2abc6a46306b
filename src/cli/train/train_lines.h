/* SPDX-License-Identifier: Apache-2.0 */
/* Lines about the parts of an Ape-X program, for people. */
#ifndef RP_CLI_TRAIN_TRAIN_LINES_H
#define RP_CLI_TRAIN_TRAIN_LINES_H

#include "reprise/rl/apex.h"

enum { RP_PART_LINE_BYTES = 512 };

/* Writes the name of a part, such as "actor 3", to `out` and returns `out`. */
char *rp_part_name(const rp_apex_part *part, char out[32]);

/* Writes one line about a part to `out`, without a newline, and returns `out`. */
char *rp_part_line(const rp_apex_part *part, double threshold, char out[RP_PART_LINE_BYTES]);

/* Draws a line for each part on the terminal of the standard error stream, over the `drawn`
 * lines of the last call. Returns the number of lines. */
size_t rp_part_lines_draw(const rp_apex_part *parts, size_t count, double threshold,
                          size_t drawn);
/* Removes the lines that were drawn. */
void rp_part_lines_clear(size_t drawn);

#endif
