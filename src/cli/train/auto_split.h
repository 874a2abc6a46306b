/* SPDX-License-Identifier: Apache-2.0 */
/* `--actors auto` and `--learners auto`. A split is how many threads act and how many learn.
 * Before the run, this unit measures for a short time how fast each number of actors and of
 * learners works, as `reprise tune` does, and picks a split. During the run, the split is
 * adjusted to how long the threads wait. */
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
    bool in_turn;             /* the agent acts and learns alternately, in the same threads */
    int64_t cores;            /* cores to split among the threads */
    int64_t actors;           /* as given by the option; 0: auto */
    int64_t learners;         /* as given by the option; 0: auto */
    rp_profile_curves curves; /* measured rates by number of threads */
    rp_split pick;            /* the split with which the run begins */
    rp_rebalance rebalance;   /* adjusts the split during the run; not used if in_turn */
} rp_auto_split;

/* Returns the number of cores that this process may use. */
int64_t rp_own_cores(void);

/* Returns true if the value of an option is "auto". `text` may be NULL. */
bool rp_is_auto(const char *text);

/* Returns true if the given numbers of threads fit into the cores. An actor and a learner need
 * a core each, except one of each on one core. Writes to `out` how many cores they need. */
bool rp_auto_split_fits(const rp_auto_split *split, bool in_turn,
                        char out[RP_SPLIT_LINE_BYTES]);

/* Measures the curves and picks a split. `options` are passed to rp_profile_new(). This
 * function itself sets the cores and the time in them. Returns a status of the profile, or
 * RP_INVALID if no split has the given numbers of threads. */
RP_NODISCARD rp_status rp_auto_split_measure(rp_auto_split *split,
                                             const rp_profile_options *options, rp_error *err);

/* Returns the largest number of actors that the split can have during the run. */
int64_t rp_auto_split_most(const rp_auto_split *split);

/* Write one line without a line feed: the picked split, or a change of the split, each with its
 * reason. Return `out`. */
char *rp_auto_split_line(const rp_auto_split *split, char out[RP_SPLIT_LINE_BYTES]);
char *rp_auto_move_line(const rp_rebalance_move *move, char out[RP_SPLIT_LINE_BYTES]);

/* If the split is on, writes its numbers of threads and its predicted speed to `progress`. */
void rp_auto_split_note(const rp_auto_split *split, rp_run_progress *progress);

#endif
