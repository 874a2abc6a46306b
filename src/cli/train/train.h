/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `reprise train` share: the options, the run, its outputs. */
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
    RP_TRAIN_SETTINGS, /* the first setting of dqn; those that dqn has not follow */
    RP_TRAIN_OPTIONS = RP_TRAIN_SETTINGS + RP_AGENT_FLAGS,
} rp_train_option;

/* A run of the command. */
typedef struct rp_training {
    const rp_flags *flags;
    rp_run_folder folder;
    rp_trainer_options options;
    rp_interrupts interrupts;
    rp_run_log *logs[2];
    size_t log_count;
    rp_trainer *trainer;
    const char *dir;           /* --dir, or NULL */
    rp_store *store;           /* of the trainer */
    rp_durable *durable;       /* of the server of --serve; NULL: none */
    rp_server *server;         /* of --serve, or NULL */
    rp_run_reporter *reporter; /* NULL: none */
    bool resume, quiet, json, terminal, drawn;
    bool is_refused; /* it has not begun, and will not */
    bool is_brief;   /* the replay is not saved: the run cannot be resumed */
    double shown;    /* seconds of the run when the latest plain line was printed */
    double greedy;   /* the latest evaluation */
    rp_curve_point *points;
    size_t point_count, point_capacity;
    rp_auto_split split; /* of --actors auto and --learners auto */
} rp_training;

/* The value of an option, if it was given; a switch is on unless it is "false". */
const char *rp_train_get(const rp_training *t, size_t option);
bool rp_train_is_on(const rp_training *t, rp_train_option option);

/* Sets `*out` to the value of an option, a whole number >= `low`; leaves `*out` unchanged if
 * the option was not given. RP_INVALID. */
RP_NODISCARD rp_status rp_train_integer(const rp_training *t, rp_train_option option,
                                        int64_t low, int64_t *out, rp_problem *problem);

/* Decides on folder, environment, seed and settings, and creates the folder of a new run; `env`
 * may be NULL if the run is resumed. RP_INVALID. */
RP_NODISCARD rp_status rp_train_folder(rp_training *t, const char *env, rp_problem *problem);

/* Decides on environment, seed and settings only. RP_INVALID. */
RP_NODISCARD rp_status rp_train_settings(rp_training *t, const char *env, rp_problem *problem);

/* The value of the setting --learners; NULL: it was not given. */
const char *rp_train_get_learners(const rp_training *t);

/* If a number of threads is auto: picks the numbers, prints them and why, and sets the number
 * of learners. Otherwise does nothing. `algorithm` is NULL if the agent acts and learns in
 * turn. Returns the exit status. */
int rp_train_pick(rp_training *t, const rp_apex_algorithm *algorithm);

/* Print a reason on the standard error stream, and return the exit status. */
int rp_train_misuse(const rp_problem *problem);
int rp_train_failed(const char *reason);

/* The kinds of runs. They return the exit status. */
int rp_train_agent(rp_training *t);
int rp_train_apex(rp_training *t);

/* Keeps a point of the curve, reports the progress, and shows it; `params` are the latest. */
void rp_train_progress(rp_training *t, const rp_run_progress *progress, const rp_real *params);
/* Keeps a point of the curve and reports the progress. */
void rp_train_keep(rp_training *t, const rp_run_progress *progress, const rp_real *params);
/* Opens the CSV file and the event file; a run that is resumed has done `steps`. */
RP_NODISCARD rp_status rp_train_open_logs(rp_training *t, int64_t steps, rp_error *err);
/* Starts the server of --serve, addresses separated by commas, for `t->store`. */
RP_NODISCARD rp_status rp_train_serve(rp_training *t, rp_error *err);
/* Opens the reporter to --report, or else to the server of --serve, and closes it. */
RP_NODISCARD rp_status rp_train_open_reporter(rp_training *t, rp_error *err);
void rp_train_close_reporter(rp_training *t);
/* Writes the parameters to the folder. */
RP_NODISCARD rp_status rp_train_save_policy(const rp_training *t, const rp_real *params,
                                            rp_error *err);
/* Prints why a run is refused that has not begun: rp_train_forget() will remove its folder.
 * Returns the exit status. */
int rp_train_refused(rp_training *t, const char *reason);
/* Removes the folder that a refused run has made, unless the run is resumed. Call it when all
 * files of the run are closed. */
void rp_train_forget(rp_training *t);
/* RP_INVALID: the file of --plot could not be written. The folder of the run exists. */
RP_NODISCARD rp_status rp_train_check_plot(const rp_training *t, rp_error *err);
/* Draws the curve of --plot. Returns the exit status. */
int rp_train_draw(const rp_training *t, double threshold);
/* Prints that a run is solved. */
void rp_train_print_solved(const rp_trainer_result *result);
/* Prints the result of a run. */
void rp_train_print(const rp_training *t, const rp_trainer_result *result);
/* The most columns that a line on the standard error stream may have without wrapping. */
int rp_train_columns(void);
/* Frees logs, reporter and points. */
void rp_train_close_run(rp_training *t);
/* Frees everything, the server included. */
void rp_train_close(rp_training *t);

#endif
