/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of a training run, as one line for a terminal, in a CSV file or in an event file
 * of TensorBoard. A logger (rp_run_log) writes one CSV file or one event file.
 *
 * One thread at a time may use a logger. */
#ifndef REPRISE_RL_RUN_LOG_H
#define REPRISE_RL_RUN_LOG_H

#include "reprise/alloc.h"

RP_BEGIN_DECLS

/* The state of a run at one moment. A `double` that is not known is NaN. */
typedef struct rp_run_progress {
    int64_t steps, max_steps; /* steps of all environments together; the number at which the run
                                 ends */
    int64_t episodes, updates;
    double seconds;      /* running time; the time between a stop of the run and its resumption
                            does not count */
    double left_seconds; /* time until max_steps is reached at the current speed */
    double steps_per_second, updates_per_second; /* since the previous progress */
    double mean_return, mean_length;             /* means over the latest training episodes, in
                                                    which the agent explores */
    double eval_return;  /* mean return of the latest evaluation since the previous progress */
    int64_t eval_steps;  /* the value of `steps` at which the evaluated parameters were
                            published */
    double eval_seconds; /* the value of `seconds` at which the evaluation was received */
    /* The next six have the meaning of the fields of rp_agent_metrics (agent.h). */
    double loss, value, error, norm, epsilon, rate;
    double samples_per_insert; /* mean since the run began */
    int64_t item_size;         /* items in the replay */
    /* The fraction of the time since the previous progress, 0 to 1, during which the actors
     * (the mean over all actors) and the learner have waited. */
    double actor_wait, learner_wait;
    /* Only for a run that chooses its numbers of threads itself (split.h): the numbers of
     * threads in use, and the speed that was predicted for these numbers. */
    double actors, learners, predicted_steps_per_second;
} rp_run_progress;

/* Writes the progress as one line to `text`, without a newline and cut to `size` >= 1 bytes,
 * for example "12,345 steps  678 episodes  return 195.0  ...". Returns `text`. */
RP_API char *rp_run_progress_line(const rp_run_progress *progress, char *text, size_t size);

typedef struct rp_run_log rp_run_log;

/* Writes the progress to the file. Errors: RP_UNAVAILABLE (the file cannot be written; the text
 * of the error gives the reason). */
RP_API RP_NODISCARD rp_status rp_run_log_write(rp_run_log *logger,
                                               const rp_run_progress *progress, rp_error *err);
/* Closes the file. NULL is fine. */
RP_API void rp_run_log_free(rp_run_log *logger);

/* Opens a CSV file, which gets one row for each progress. If `resume` is false, replaces an
 * existing file. If `resume` is true, first removes the rows with more than `steps` steps,
 * because the resumed run writes them again, and then appends new rows. Returns owned.
 * Errors: RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_run_log_open_csv(const rp_allocator *alloc, const char *path,
                                                  bool resume, int64_t steps, rp_run_log **out,
                                                  rp_error *err);

typedef enum rp_log_names {
    RP_NAMES_SB3 = 0, /* rollout/ep_rew_mean, train/loss, time/fps, eval/mean_reward, ... */
    RP_NAMES_CLEANRL, /* charts/episodic_return, losses/td_loss, charts/SPS, ... */
} rp_log_names;

/* Opens a new event file of TensorBoard in an existing directory. `names` selects the names of
 * the curves. `wall_seconds` is a Unix time; the time of an event is `wall_seconds` plus the
 * `seconds` of its progress. Returns owned.
 * Errors: RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_run_log_open_events(const rp_allocator *alloc,
                                                     const char *directory, rp_log_names names,
                                                     double wall_seconds, rp_run_log **out,
                                                     rp_error *err);

/* Encodes one event of TensorBoard as a TFRecord, with its length and checksums. Tests use this
 * function, and programs that implement a logger of their own. `out` must have room for
 * RP_EVENT_BYTES bytes. `tag` has at most 100 bytes. If `tag` is NULL, encodes the record with
 * which every event file begins. Returns the size of the record in bytes. */
enum { RP_EVENT_BYTES = 192 };
RP_API size_t rp_event_record(double wall_seconds, int64_t step, const char *tag, float value,
                              uint8_t *out);

RP_END_DECLS

#endif
