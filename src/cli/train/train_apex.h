/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_CLI_TRAIN_TRAIN_APEX_H
#define RP_CLI_TRAIN_TRAIN_APEX_H

#include "cli/train/train.h"
#include "reprise/rl/apex.h"

/* Takes the options of a program from the flags; `*seconds` gets its time limit, 0: none.
 * RP_INVALID. */
RP_NODISCARD rp_status rp_train_take_apex(const rp_training *t, rp_apex_options *out,
                                          int64_t *seconds, rp_problem *problem);

enum { RP_TRAIN_MOST_SHARDS = 256 };

/* Takes --shards, 1 by default. RP_INVALID. */
RP_NODISCARD rp_status rp_train_take_shards(const rp_training *t, int64_t *out,
                                            rp_problem *problem);

/* Runs `shards` servers of the replay, the learner, the evaluator and `actors` actors as
 * processes of their own, until the task is solved, the learner has seen --steps, or for
 * `seconds` (0: no limit). Starts again what dies, after a time that doubles. Returns the exit
 * status. */
int rp_train_processes(rp_training *t, int64_t actors, int64_t shards, int64_t seconds);

/* Writes the program as a job file of a cluster to the standard output. Returns the exit
 * status. */
int rp_train_export(rp_training *t, int64_t actors, int64_t seconds);

#endif
