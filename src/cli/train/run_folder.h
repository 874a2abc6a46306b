/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a training run:
 *
 *   settings.txt         agent, environment, seed and every setting: "name value" lines
 *   replay/              the store with the replay and the snapshot (durable.h)
 *   policy.safetensors   the parameters, when the run has ended or was stopped
 *   progress.csv         the curve
 *   events.out...        the same for TensorBoard, with --log */
#ifndef RP_CLI_TRAIN_RUN_FOLDER_H
#define RP_CLI_TRAIN_RUN_FOLDER_H

#include "cli/text/problem.h"
#include "reprise/rl/agent_kinds.h"

enum { RP_RUN_PATH_BYTES = 1024 };

typedef struct rp_run_folder {
    char path[RP_RUN_PATH_BYTES];
    const char *agent;         /* "dqn", "apex-dqn" and so on: static */
    const rp_agent_kind *kind; /* of the agent */
    const rp_env_class *env_class;
    uint64_t seed;
    rp_agent_settings settings;
    size_t made; /* folders of `path`, from its end, that rp_run_folder_create() has made */
} rp_run_folder;

/* Writes the path of a file of the folder to `out` and returns it. */
char *rp_run_folder_file(const rp_run_folder *folder, const char *name,
                         char out[RP_RUN_PATH_BYTES + 64]);

/* Finds the environment by its name. RP_INVALID: names the nearest one. */
RP_NODISCARD rp_status rp_run_find_env(const char *name, const rp_env_class **out,
                                       rp_problem *problem);

/* Sets `agent` and `kind` by the name of the agent. Returns false if there is none. */
bool rp_run_folder_set_agent(rp_run_folder *folder, const char *name);

/* Sets `path`: `given`, or if that is NULL, runs/AGENT-ENV-N with the first N that is free, or
 * with `latest` the last that has settings.txt. RP_INVALID: too long, or there is none. */
RP_NODISCARD rp_status rp_run_folder_choose(rp_run_folder *folder, const char *given,
                                            const char *env, bool latest, rp_problem *problem);

/* Creates the folder, and those above it, unless they exist. RP_INVALID. */
RP_NODISCARD rp_status rp_run_folder_make(rp_run_folder *folder, rp_problem *problem);

/* RP_INVALID: the agent cannot learn the environment. */
RP_NODISCARD rp_status rp_run_folder_check(const rp_run_folder *folder, rp_problem *problem);

/* Creates the folder, and those above it, and writes settings.txt. RP_INVALID: names the file
 * and the reason, or there is a run already. */
RP_NODISCARD rp_status rp_run_folder_create(rp_run_folder *folder, rp_problem *problem);

/* Removes the folder of a run that was refused before it began, and those above it, as far as
 * rp_run_folder_create() has made them. A folder that was there before keeps everything but
 * settings.txt and progress.csv. */
void rp_run_folder_undo(rp_run_folder *folder);

/* Reads settings.txt. RP_INVALID: names the file, the line and the reason. */
RP_NODISCARD rp_status rp_run_folder_read(rp_run_folder *folder, rp_problem *problem);

/* A policy of a run: what `eval` and `play` load. */
typedef struct rp_run_policy {
    rp_env *env; /* with `rows` copies */
    rp_net *net;
    rp_policy *policy;
    rp_real *params;
} rp_run_policy;

/* Loads the policy of the folder, after rp_run_folder_read(). RP_INVALID. */
RP_NODISCARD rp_status rp_run_policy_open(rp_run_policy *run, const rp_run_folder *folder,
                                          size_t rows, rp_problem *problem);
void rp_run_policy_close(rp_run_policy *run);

#endif
