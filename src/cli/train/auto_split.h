/* SPDX-License-Identifier: Apache-2.0 */
/* `--actors auto` and `--learners auto`: measures the curves as `reprise tune` does, shortly,
 * uses the split that it picks, and moves threads while the run goes on. */
#ifndef RP_CLI_TRAIN_AUTO_SPLIT_H
#define RP_CLI_TRAIN_AUTO_SPLIT_H

#include "cli/text/problem.h"
#include "reprise/rl/profile.h"
#include "reprise/rl/rebalance.h"
#include "reprise/rl/run_log.h"

enum { RP_SPLIT_LINE_BYTES = 400 };

/* Zero-initialise it. */
typedef struct rp_auto_split {
    bool is_on;     /* a number is auto */
    bool in_turn;   /* the agent acts and learns in turn */
    int64_t cores;  /* to split */
    int64_t actors; /* given; 0: auto */
    int64_t learners;
    rp_profile_curves curves;
    rp_split pick;          /* the first one */
    rp_rebalance rebalance; /* unless the agent acts and learns in turn */
} rp_auto_split;

/* The cores that this process may use. */
int64_t rp_own_cores(void);

/* True if the text of an option is "auto". NULL is fine. */
bool rp_is_auto(const char *text);

/* Measures and picks. `options` are those of the profile; its cores and time are set here. A
 * status of the profile, or RP_INVALID: no split has the numbers that are given. */
RP_NODISCARD rp_status rp_auto_split_measure(rp_auto_split *split,
                                             const rp_profile_options *options, rp_error *err);

/* The most actors that the split can come to. */
int64_t rp_auto_split_most(const rp_auto_split *split);

/* Write a line without its end: the pick and why; a move and why. Return `out`. */
char *rp_auto_split_line(const rp_auto_split *split, char out[RP_SPLIT_LINE_BYTES]);
char *rp_auto_move_line(const rp_rebalance_move *move, char out[RP_SPLIT_LINE_BYTES]);

/* Sets what the progress of a run says of its threads, if they are picked. */
void rp_auto_split_note(const rp_auto_split *split, rp_run_progress *progress);

#endif
