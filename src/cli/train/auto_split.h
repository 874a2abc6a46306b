/* SPDX-License-Identifier: Apache-2.0 */
/* Implements `--actors auto` and `--learners auto`. A split is how many threads act and how
 * many learn. Before the run, `reprise train` measures for a short time how fast different
 * numbers of actors and of learners are, as `reprise tune` does, and picks a split. During the
 * run, it adjusts the split according to how long the threads wait for each other. */
#ifndef RP_CLI_TRAIN_AUTO_SPLIT_H
#define RP_CLI_TRAIN_AUTO_SPLIT_H

#include "cli/text/problem.h"
#include "reprise/rl/profile.h"
#include "reprise/rl/rebalance.h"
#include "reprise/rl/run_log.h"

enum { RP_SPLIT_LINE_BYTES = 400 };

/* Zero-initialise it. */
typedef struct rp_auto_split {
    bool is_on;               /* at least one of the two options is auto */
    bool in_turn;             /* each thread of the agent acts and learns alternately */
    int64_t cores;            /* cores to split among the threads */
    int64_t actors;           /* as given by the option; 0: auto */
    int64_t learners;         /* as given by the option; 0: auto */
    rp_profile_curves curves; /* measured rates by number of threads */
    rp_split pick;            /* the split with which the run begins */
    rp_rebalance rebalance;   /* adjusts the split during the run; not used if in_turn */
} rp_auto_split;

/* Returns the number of cores that this process is allowed to use. */
int64_t rp_own_cores(void);

/* Returns true if the value of an option is "auto". `text` may be NULL. */
bool rp_is_auto(const char *text);

/* Returns true if the numbers of threads that the options give fit into the cores. Each actor
 * and each learner needs a core. There are two exceptions: one actor and one learner can share
 * a single core, and if `in_turn` is true, only the learners count. Writes to `out` a sentence
 * that says how many cores are needed. */
bool rp_auto_split_fits(const rp_auto_split *split, bool in_turn,
                        char out[RP_SPLIT_LINE_BYTES]);

/* Measures the curves and picks a split. Passes a copy of `options` to rp_profile_new(), after
 * setting the cores and the time in this copy. Returns RP_INVALID if no split has the numbers
 * of threads that the options give. Other errors: those of reprise/rl/profile.h. */
RP_NODISCARD rp_status rp_auto_split_measure(rp_auto_split *split,
                                             const rp_profile_options *options, rp_error *err);

/* Returns the largest number of actors that the split can have during the run. */
int64_t rp_auto_split_most(const rp_auto_split *split);

/* Write one line without a line feed: the picked split, or a change of the split, each with its
 * reason. Return `out`. */
char *rp_auto_split_line(const rp_auto_split *split, char out[RP_SPLIT_LINE_BYTES]);
char *rp_auto_move_line(const rp_rebalance_move *move, char out[RP_SPLIT_LINE_BYTES]);

/* If split->is_on, writes the split's present numbers of threads and predicted speed to
 * `progress`. */
void rp_auto_split_note(const rp_auto_split *split, rp_run_progress *progress);

#endif
