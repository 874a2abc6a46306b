/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a run, and loggers that write it: a line for a terminal, CSV files, event
 * files of TensorBoard.
 *
 * One thread at a time may use a logger. */
#ifndef REPRISE_RL_RUN_LOG_H
#define REPRISE_RL_RUN_LOG_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

/* The state of a run at one moment. A number that is not known is NaN. */
typedef struct rp_run_progress {
    int64_t steps, max_steps; /* of all copies together */
    int64_t episodes, updates;
    double seconds;      /* since the run began, without pauses between resumed parts */
    double left_seconds; /* until max_steps at the present speed */
    double steps_per_second, updates_per_second; /* since the last progress */
    double mean_return, mean_length;             /* of training, which explores */
    double eval_return;  /* of the latest evaluation since the last progress */
    int64_t eval_steps;  /* steps when the evaluated parameters were published */
    double eval_seconds; /* `seconds` when the evaluation was received */
    /* As in rp_agent_metrics (agent.h). */
    double loss, value, error, norm, epsilon, rate;
    double samples_per_insert; /* since the run began */
    int64_t item_size;         /* items in the replay */
    /* The share of time, 0 to 1, that the actors (their mean) and the learner have waited since
     * the last progress. */
    double actor_wait, learner_wait;
    /* For a run that picks its numbers of threads: the threads in use, and the speed that was
     * predicted for them. */
    double actors, learners, predicted_steps_per_second;
} rp_run_progress;

/* Writes one line, "12,345 steps  678 episodes  return 195.0  ...", without a newline, cut to
 * fit `size` >= 1. Returns `text`. */
RP_API char *rp_run_progress_line(const rp_run_progress *progress, char *text, size_t size);

typedef struct rp_run_log rp_run_log;

/* Writes the progress. RP_UNAVAILABLE: the file cannot be written; the text has the reason. */
RP_API RP_NODISCARD rp_status rp_run_log_write(rp_run_log *logger,
                                               const rp_run_progress *progress, rp_error *err);
/* Closes the file. NULL is fine. */
RP_API void rp_run_log_free(rp_run_log *logger);

/* Opens a CSV file, one row for each progress. If `resume` is false, an existing file is
 * replaced. If it is true, the rows with more than `steps` steps are removed, because the
 * resumed run writes them again, and new rows are appended. Returns owned. RP_UNAVAILABLE,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_run_log_open_csv(const rp_allocator *alloc, const char *path,
                                                  bool resume, int64_t steps, rp_run_log **out,
                                                  rp_error *err);

typedef enum rp_log_names {
    RP_NAMES_SB3 = 0, /* rollout/ep_rew_mean, train/loss, time/fps, eval/mean_reward, ... */
    RP_NAMES_CLEANRL, /* charts/episodic_return, losses/td_loss, charts/SPS, ... */
} rp_log_names;

/* Opens an event file of TensorBoard in an existing directory. `wall_seconds` is the time of
 * day, to which the seconds of each progress are added. Returns owned. RP_UNAVAILABLE,
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_run_log_open_events(const rp_allocator *alloc,
                                                     const char *directory, rp_log_names names,
                                                     double wall_seconds, rp_run_log **out,
                                                     rp_error *err);

/* Writes one event, for tests and for loggers of your own. The event is a record with the frame
 * and checksums of TensorBoard (TFRecord). `out` has RP_EVENT_BYTES bytes. Returns the size.
 * `tag` has at most 100 bytes; NULL makes the first record of a file. */
enum { RP_EVENT_BYTES = 192 };
RP_API size_t rp_event_record(double wall_seconds, int64_t step, const char *tag, float value,
                              uint8_t *out);

RP_END_DECLS

#endif
