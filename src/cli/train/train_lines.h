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

/* Draws a line for each part that has not left, at most 20 lines, on the terminal of the
 * standard error stream. Overwrites the `drawn` lines of the previous drawing; `drawn` is the
 * result of the previous call, or 0. Returns the number of lines on the screen. */
size_t rp_part_lines_draw(const rp_apex_part *parts, size_t count, double threshold,
                          size_t drawn);
/* What a part waits for without progress. A process that runs a single part uses it. The owner
 * zero-initialises the struct. */
typedef struct rp_part_wait {
    char what[sizeof((rp_apex_part *)NULL)->waits_for];
    int64_t since_ns, next_ns; /* since_ns: when the wait began, or 0 if there is no wait;
                                  next_ns: when the next line is due */
} rp_part_wait;

/* Prints on the standard error stream what a part waits for, if the part has waited for the
 * same thing for 2 seconds, and again after 6, 18 and 54 seconds, and so on. `address` is that
 * of the replay. The caller must call this function regularly. */
void rp_part_wait_look(rp_part_wait *wait, const rp_apex_part *part, const char *address,
                       int64_t now_ns);

/* Returns what to do if the replay or the server of --report cannot be reached for the reason
 * `text`, with "; " before it; "": nothing more than `text` says. Static. */
const char *rp_train_hint(const char *text);

/* Passes the actors among the parts to a reporter, which may be NULL. */
void rp_parts_report(rp_run_reporter *reporter, const rp_apex_part *parts, size_t count);

/* Removes the `drawn` lines from the screen. */
void rp_part_lines_clear(size_t drawn);

#endif
