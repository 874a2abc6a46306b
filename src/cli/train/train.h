/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `reprise train` share: the options of the command, the state of a run, and
 * functions for its output. */
#ifndef RP_CLI_TRAIN_TRAIN_H
#define RP_CLI_TRAIN_TRAIN_H

#include "cli/commands/interrupts.h"
#include "cli/help/flags.h"
#include "cli/text/curve_plot.h"
#include "cli/train/agent_flags.h"
#include "cli/train/auto_split.h"
#include "cli/train/run_folder.h"
#include "cli/train/run_report.h"
#include "reprise/rl/trainer.h"
#include "reprise/server.h"

enum { RP_TRAIN_MISUSE = 2, RP_TRAIN_SIGNAL = 128 }; /* exit statuses */

typedef enum rp_train_option {
    RP_TRAIN_ENV,
    RP_TRAIN_STEPS,
    RP_TRAIN_SEED,
    RP_TRAIN_DIR,
    RP_TRAIN_RESUME,
    RP_TRAIN_KEEP_GOING,
    RP_TRAIN_THRESHOLD,
    RP_TRAIN_EVAL_EVERY,
    RP_TRAIN_EVAL_EPISODES,
    RP_TRAIN_CONFIRM_EPISODES,
    RP_TRAIN_ONE_THREAD,
    RP_TRAIN_SAVE_EVERY,
    RP_TRAIN_PLOT,
    RP_TRAIN_LOG,
    RP_TRAIN_SERVE,
    RP_TRAIN_TOKENS,
    RP_TRAIN_TLS_CERT,
    RP_TRAIN_TLS_KEY,
    RP_TRAIN_INSECURE,
    RP_TRAIN_REPORT,
    RP_TRAIN_REPORT_NAME,
    RP_TRAIN_REPORT_CA,
    RP_TRAIN_CORES,
    RP_TRAIN_QUIET,
    RP_TRAIN_JSON,
    RP_TRAIN_ACTORS,
    RP_TRAIN_SECONDS,
    RP_TRAIN_THEN,
    RP_TRAIN_STAY,
    RP_TRAIN_PROCESSES,
    RP_TRAIN_ROLE,
    RP_TRAIN_INDEX,
    RP_TRAIN_OF,
    RP_TRAIN_REPLAY,
    RP_TRAIN_EXPORT,
    RP_TRAIN_SHARDS,
    RP_TRAIN_IMAGE,
    RP_TRAIN_PROGRAM,
    RP_TRAIN_PRINT_PROGRAM,
    RP_TRAIN_SETTINGS, /* the first of the settings in agent_flags.h */
    RP_TRAIN_OPTIONS = RP_TRAIN_SETTINGS + RP_AGENT_FLAGS,
} rp_train_option;

/* The state of a training run. */
typedef struct rp_training {
    const rp_flags *flags;
    rp_run_folder folder;
    rp_trainer_options options;
    rp_interrupts interrupts;
    rp_run_log *logs[2];
    size_t log_count;
    rp_trainer *trainer;
    const char *dir;           /* value of --dir; NULL: not given */
    rp_store *store;           /* the store of the trainer */
    rp_durable *durable;       /* the data directory for which the server reports the state;
                                  NULL: none */
    rp_server *server;         /* the server of --serve; NULL: none */
    rp_run_reporter *reporter; /* NULL: none */
    bool resume, quiet, json, terminal, drawn; /* drawn: a progress line is on the screen */
    bool is_refused;                           /* the run failed before it began */
    bool is_brief;          /* the replay is not saved, so the run cannot be resumed */
    int64_t first_steps;    /* in a resumed run of Ape-X: number of steps that earlier processes
                               have made */
    double earlier_seconds; /* earlier_seconds, earlier_episodes: in a resumed run, values of
                               the last row of progress.csv that the run keeps */
    int64_t earlier_episodes;
    double shown;  /* if standard error is not a terminal: when the last line was printed, in
                      seconds since the run began */
    double greedy; /* mean return of the latest evaluation, with the greedy policy */
    rp_curve_point *points; /* of the learning curve */
    size_t point_count, point_capacity;
    rp_auto_split split; /* of --actors auto and --learners auto */
} rp_training;

/* rp_train_get() returns the value of an option, or NULL if it was not given. rp_train_is_on()
 * returns true if a switch was given, and not as "--name=false". */
const char *rp_train_get(const rp_training *t, size_t option);
bool rp_train_is_on(const rp_training *t, rp_train_option option);

/* Sets `*out` to the value of an option, which must be a whole number >= `low`. If the option
 * was not given, leaves `*out` unchanged. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_train_integer(const rp_training *t, rp_train_option option,
                                        int64_t low, int64_t *out, rp_problem *problem);

/* Sets the folder, environment, seed and settings of the run. Creates the folder if the run is
 * new. `env` may be NULL if the run is resumed. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_train_folder(rp_training *t, const char *env, rp_problem *problem);

/* Sets only the environment, seed and settings, without a folder. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_train_settings(rp_training *t, const char *env, rp_problem *problem);

/* Returns the value of the setting --learners, or NULL if it was not given. */
const char *rp_train_get_learners(const rp_training *t);

/* If --actors or --learners is auto, picks both numbers of threads, prints them with the
 * reason, and sets the number of learners in the settings. Otherwise does nothing. `algorithm`
 * is NULL if the agent acts and learns alternately. Returns the exit status. */
int rp_train_pick(rp_training *t, const rp_apex_algorithm *algorithm);

/* Print an error on the standard error stream and return the exit status: rp_train_misuse() for
 * wrong options, rp_train_failed() for a failed run. */
int rp_train_misuse(const rp_problem *problem);
int rp_train_failed(const char *reason);

/* Run a single-process agent, or an Ape-X program. Return the exit status. */
int rp_train_agent(rp_training *t);
int rp_train_apex(rp_training *t);

/* Shows the progress to the user, and does what rp_train_keep() does. `params` are the latest
 * parameters. */
void rp_train_progress(rp_training *t, const rp_run_progress *progress, const rp_real *params);
/* Adds a point to the learning curve and passes the progress to the reporter. */
void rp_train_keep(rp_training *t, const rp_run_progress *progress, const rp_real *params);
/* Opens the CSV file and the event file. `steps` is the number of steps that a resumed run has
 * already made. */
RP_NODISCARD rp_status rp_train_open_logs(rp_training *t, int64_t steps, rp_error *err);
/* For a run that is resumed but has no snapshot: prints on the standard error stream that the
 * run starts again, and renames the existing progress.csv, so that none of its rows is lost.
 * The caller must call it before rp_train_open_logs(). Errors: RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_train_start_again(const rp_training *t, rp_error *err);
/* Starts the server of --serve for `t->store`. The value of --serve is a list of addresses,
 * separated by commas. */
RP_NODISCARD rp_status rp_train_serve(rp_training *t, rp_error *err);
/* Opens a reporter to the server of --report, or, if that is not given, to the server of
 * --serve. */
RP_NODISCARD rp_status rp_train_open_reporter(rp_training *t, rp_error *err);
void rp_train_close_reporter(rp_training *t);

/* Warns at growing intervals if reports do not reach the server of --report. `drawn` is the
 * number of progress lines on the screen. Before a warning, removes these lines. Returns the
 * number of lines that are still on the screen: 0 after a warning, otherwise `drawn`. */
size_t rp_train_warn_reports(rp_training *t, size_t drawn);
/* Writes the parameters to policy.safetensors in the folder. */
RP_NODISCARD rp_status rp_train_save_policy(const rp_training *t, const rp_real *params,
                                            rp_error *err);
/* Prints why the run cannot begin, and sets is_refused, so that rp_train_forget() later removes
 * the folder. Returns the exit status. */
int rp_train_refused(rp_training *t, const char *reason);
/* If is_refused is set and the run is not resumed, removes the folder that the run has made.
 * The caller must close all files of the run first. */
void rp_train_forget(rp_training *t);
/* Returns RP_INVALID if the file of --plot could not be written later. The folder of the run
 * must exist. */
RP_NODISCARD rp_status rp_train_check_plot(const rp_training *t, rp_error *err);
/* Writes the learning curve to the file of --plot. Returns the exit status. */
int rp_train_draw(const rp_training *t, double threshold);
/* Prints that the run has solved its task. */
void rp_train_print_solved(const rp_trainer_result *result);
/* Prints the result of a run. */
void rp_train_print(const rp_training *t, const rp_trainer_result *result);
/* Returns how many columns a line on the standard error stream can have without wrapping. */
int rp_train_columns(void);
/* Frees the logs, the reporter and the points of the curve. */
void rp_train_close_run(rp_training *t);
/* Frees everything, including the server. */
void rp_train_close(rp_training *t);

#endif
