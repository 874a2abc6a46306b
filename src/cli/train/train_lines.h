/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of text about the parts of an Ape-X program (learner, evaluator, actors), as a user
 * sees them. */
#ifndef RP_CLI_TRAIN_TRAIN_LINES_H
#define RP_CLI_TRAIN_TRAIN_LINES_H

#include "cli/train/run_report.h"
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
/* What the only part of a process waits for without any progress. All zero: nothing yet. */
typedef struct rp_part_wait {
    char what[sizeof((rp_apex_part *)NULL)->waits_for];
    int64_t since_ns, next_ns; /* when it began, and when the next line is due; 0: no wait */
} rp_part_wait;

/* Says on the standard error stream what a part waits for, once nothing has changed for two
 * seconds; and again after 6, 18 and 54 seconds, and so on. `address` is that of the replay. To
 * be called again and again. */
void rp_part_wait_look(rp_part_wait *wait, const rp_apex_part *part, const char *address,
                       int64_t now_ns);

/* Passes the actors among the parts to a reporter, which may be NULL. */
void rp_parts_report(rp_run_reporter *reporter, const rp_apex_part *parts, size_t count);

/* Removes the `drawn` lines from the screen. */
void rp_part_lines_clear(size_t drawn);

#endif
