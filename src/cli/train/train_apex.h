/* SPDX-License-Identifier: Apache-2.0 */
/* Ape-X programs of `reprise train`, as processes on this machine or as job files for clusters.
 * An Ape-X program consists of servers of the replay, a learner, an evaluator and actors
 * (reprise/rl/apex.h). */
#ifndef RP_CLI_TRAIN_TRAIN_APEX_H
#define RP_CLI_TRAIN_TRAIN_APEX_H

#include "cli/train/train.h"
#include "reprise/rl/apex.h"

/* Reads the options of the program from the flags. Sets `*seconds` to the program's time limit,
 * or to 0 if there is none. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_train_take_apex(const rp_training *t, rp_apex_options *out,
                                          int64_t *seconds, rp_problem *problem);

enum { RP_TRAIN_MOST_SHARDS = 256 };

/* Reads the number of shards from --shards; the default is 1. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_train_take_shards(const rp_training *t, int64_t *out,
                                            rp_problem *problem);

/* Runs the program with each part as its own process: `shards` servers of the replay, the
 * learner, the evaluator and `actors` actors. The program ends when the task is solved, when
 * the learner has seen --steps steps, or after `seconds` seconds (0: no limit). A process that
 * fails is restarted, after a pause that doubles each time. Returns the exit status. */
int rp_train_processes(rp_training *t, int64_t actors, int64_t shards, int64_t seconds);

/* Writes a job file that runs the program on a cluster (cluster_files.h) to the standard
 * output. Returns the exit status. */
int rp_train_export(rp_training *t, int64_t actors, int64_t seconds);

#endif
