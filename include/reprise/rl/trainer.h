/* SPDX-License-Identifier: Apache-2.0 */
/* A training run: a store, a loop, evaluation, progress, snapshots, from one struct of options.
 *
 *   rp_trainer_new(NULL, &options, &trainer, &err);   resumes the run in its directory, if
 * asked
 *   rp_trainer_run(trainer, &result, &err);           until it is solved, stopped or over
 *   rp_trainer_free(trainer);
 *
 * The learning is on the caller's thread and depends on the options only: a run that was killed
 * and resumed continues bit by bit as one that was not. Evaluations are in a thread of their
 * own, so when a run counts as solved depends on time; with `inline_evaluation` it does not.
 *
 * One thread at a time may use a trainer. */
#ifndef REPRISE_RL_TRAINER_H
#define REPRISE_RL_TRAINER_H

#include "reprise/rl/evaluator.h"
#include "reprise/rl/run_log.h"

RP_BEGIN_DECLS

typedef struct rp_trainer rp_trainer;

/* What an agent of the run works with. Borrowed until the trainer is freed. */
typedef struct rp_trainer_parts {
    const rp_allocator *alloc;
    const rp_env_spec *spec;
    rp_store *store; /* new, or with the tables of the run that is resumed */
    rp_client *client;
    uint64_t seed;
} rp_trainer_parts;

/* Zero-initialise it; fields marked * must be set. Strings and classes are borrowed until the
 * trainer is freed. */
typedef struct rp_trainer_options {
    const rp_env_class *env_class; /* * */
    rp_env_options env;            /* * `copies` */
    /* * Makes the agent. Returns owned: the trainer frees it. */
    rp_status (*make_agent)(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err);
    void *ctx; /* of all functions here */
    uint64_t seed;
    int64_t max_steps; /* * of all copies together */

    int64_t eval_every;       /* steps between evaluations; 0: 2,000 */
    int64_t eval_episodes;    /* 0: 20 */
    int64_t confirm_episodes; /* of parameters that pass; 0: 300 */
    double threshold;         /* mean return at which the task is solved; 0: that of the
                                 environment. NaN: none */
    bool keep_going;          /* do not stop when it is solved */
    bool inline_evaluation;   /* evaluate on the caller's thread */

    const char *directory; /* of the store on disk; NULL: no snapshots */
    bool resume;           /* continue the run in the directory */
    int64_t save_every;    /* steps between snapshots; 0: at the end only */

    int64_t progress_ns; /* between reports; 0: 200 ms */
    /* Called on the caller's thread with every progress; may be NULL. */
    void (*on_progress)(void *ctx, const rp_run_progress *progress);
    /* Asked before every step: true stops the run, which is saved. May be NULL. */
    bool (*should_stop)(void *ctx);
} rp_trainer_options;

/* Opens the directory, makes the agent and begins or restores the run. Returns owned.
 * RP_INVALID, RP_NOT_FOUND (resume, and there is no snapshot), RP_EXISTS (not resume, and there
 * is one), RP_NO_RESOURCE, RP_UNAVAILABLE, RP_CORRUPT, or a status of the agent. */
RP_API RP_NODISCARD rp_status rp_trainer_new(const rp_allocator *alloc,
                                             const rp_trainer_options *options,
                                             rp_trainer **out, rp_error *err);
/* Frees the trainer and its agent. Does not save. NULL is fine. */
RP_API void rp_trainer_free(rp_trainer *trainer);

typedef struct rp_trainer_result {
    rp_run_progress progress; /* at the end */
    bool solved, stopped;
    rp_evaluation confirmed; /* if it is solved: of the parameters of the policy */
    int64_t solved_steps;    /* if it is solved: when the parameters were published */
} rp_trainer_result;

/* Runs until max_steps, until it is solved or until should_stop(), and saves a snapshot. A run
 * that fails is not saved: its latest snapshot stays. Writes `result` in every case.
 * RP_PRECONDITION (the run has diverged), or a status of environment, replay, disk or logger.
 */
RP_API RP_NODISCARD rp_status rp_trainer_run(rp_trainer *trainer, rp_trainer_result *result,
                                             rp_error *err);

/* Sets the logs that every progress is written to. Borrows them until the trainer is freed. */
RP_API void rp_trainer_set_logs(rp_trainer *trainer, rp_run_log *const *logs, size_t count);

RP_API rp_agent *rp_trainer_get_agent(rp_trainer *trainer); /* borrowed */
/* The parameters to use: those that were confirmed, or the present ones. Borrowed, valid until
 * the next call. */
RP_API const rp_real *rp_trainer_get_parameters(rp_trainer *trainer);
/* The mean return at which the task counts as solved; NaN: none. */
RP_API double rp_trainer_get_threshold(const rp_trainer *trainer);
/* The steps done so far, in all parts of the run. */
RP_API int64_t rp_trainer_get_steps(const rp_trainer *trainer);

RP_END_DECLS

#endif
