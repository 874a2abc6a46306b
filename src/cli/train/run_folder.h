/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a training run:
 *
 *   settings.txt         lines "name value": agent, environment, seed, the options --steps,
 *                        --actors and --keep-going if they were given, and every setting
 *   replay/              the data directory of the store: replay and snapshot (durable.h)
 *   policy.safetensors   the parameters, once the run has ended or was stopped
 *   progress.csv         the learning curve
 *   progress-1.csv...    the curves of earlier attempts, which ended without a snapshot
 *   events.out...        the learning curve for TensorBoard, with --log */
#ifndef RP_CLI_TRAIN_RUN_FOLDER_H
#define RP_CLI_TRAIN_RUN_FOLDER_H

#include "cli/text/problem.h"
#include "reprise/rl/agent_kinds.h"

enum { RP_RUN_PATH_BYTES = 1024 };

typedef struct rp_run_folder {
    char path[RP_RUN_PATH_BYTES];
    const char *agent;         /* name, such as "dqn" or "apex-dqn"; a static string */
    const rp_agent_kind *kind; /* kind of that agent */
    const rp_env_class *env_class;
    uint64_t seed;
    int64_t steps, actors; /* --steps and --actors of the run; 0: not given */
    bool keep_going;       /* --keep-going of the run */
    rp_agent_settings settings;
    size_t made; /* how many folders of `path`, counted from its end, did not exist and were
                    created */
} rp_run_folder;

/* Writes the path of the file `name` in the folder to `out`, and returns `out`. */
char *rp_run_folder_file(const rp_run_folder *folder, const char *name,
                         char out[RP_RUN_PATH_BYTES + 64]);

/* Finds an environment by its name. If there is none, returns RP_INVALID with the most similar
 * name. */
RP_NODISCARD rp_status rp_run_find_env(const char *name, const rp_env_class **out,
                                       rp_problem *problem);

/* Sets `agent` and `kind` for the agent with this name. Returns false if there is no such
 * agent. */
bool rp_run_folder_set_agent(rp_run_folder *folder, const char *name);

/* Sets `path` to `given`. If `given` is NULL, sets `path` to runs/AGENT-ENV-N. If `latest` is
 * true, N is the largest number whose folder contains settings.txt; otherwise, N is the first
 * unused number. Returns RP_INVALID if the path is too long, or if `latest` is true and there
 * is no such folder. */
RP_NODISCARD rp_status rp_run_folder_choose(rp_run_folder *folder, const char *given,
                                            const char *env, bool latest, rp_problem *problem);

/* Creates the folder and its parents, unless they exist. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_run_folder_make(rp_run_folder *folder, rp_problem *problem);

/* Returns RP_INVALID if the agent cannot learn this environment. */
RP_NODISCARD rp_status rp_run_folder_check(const rp_run_folder *folder, rp_problem *problem);

/* Creates the folder and its parents, and writes settings.txt. Returns RP_INVALID if the folder
 * contains a run already, or if a file cannot be written; the error names the file and the
 * reason. */
RP_NODISCARD rp_status rp_run_folder_create(rp_run_folder *folder, rp_problem *problem);

/* Replaces settings.txt by one with the values of `folder`. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_run_folder_rewrite(const rp_run_folder *folder, rp_problem *problem);

/* Undoes rp_run_folder_create() for a run that failed before it began: deletes settings.txt and
 * progress.csv, and the folders that were created. Does not delete other files. */
void rp_run_folder_undo(rp_run_folder *folder);

/* Reads settings.txt. On an error, returns RP_INVALID, and the problem has the file, the line
 * and the reason. */
RP_NODISCARD rp_status rp_run_folder_read(rp_run_folder *folder, rp_problem *problem);

/* The policy of a run, with what is needed to use it. `reprise eval` and `reprise play` load
 * it. */
typedef struct rp_run_policy {
    rp_env *env; /* `rows` parallel environments */
    rp_net *net;
    rp_policy *policy;
    rp_real *params;
} rp_run_policy;

/* Loads the policy of the folder for `rows` environments. The caller must call
 * rp_run_folder_read() first. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_run_policy_open(rp_run_policy *run, const rp_run_folder *folder,
                                          size_t rows, rp_problem *problem);
void rp_run_policy_close(rp_run_policy *run);

#endif
