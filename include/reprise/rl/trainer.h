/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers: a complete training run from one struct of options. A trainer makes the store, the
 * agent and the loop, evaluates the agent, reports progress and saves snapshots.
 *
 *   rp_trainer_new(NULL, &options, &trainer, &err);   begins or resumes the run
 *   rp_trainer_run(trainer, &result, &err);           until it is solved, stopped or over
 *   rp_trainer_free(trainer);
 *
 * Learning runs on the caller's thread and depends only on the options. A run that was killed
 * and resumed continues bit by bit like an uninterrupted run. Evaluations run on a thread of
 * their own, so the step at which a run is found to be solved depends on timing. With
 * `inline_evaluation` it does not.
 *
 * One thread at a time may use a trainer. */
#ifndef REPRISE_RL_TRAINER_H
#define REPRISE_RL_TRAINER_H

#include "reprise/rl/evaluator.h"
#include "reprise/rl/run_log.h"

RP_BEGIN_DECLS

typedef struct rp_trainer rp_trainer;

/* The arguments to make the agent of the run. The pointers are valid until the trainer is
 * freed. */
typedef struct rp_trainer_parts {
    const rp_allocator *alloc;
    const rp_env_spec *spec;
    rp_store *store; /* empty, or with the tables of the run that is resumed */
    rp_client *client;
    uint64_t seed;
} rp_trainer_parts;

/* Zero-initialise the struct. Fields marked * must be set. Strings and classes are borrowed
 * until the trainer is freed. */
typedef struct rp_trainer_options {
    const rp_env_class *env_class; /* * */
    rp_env_options env;            /* * `copies` */
    /* * Makes the agent. Returns owned: the trainer frees the agent. */
    rp_status (*make_agent)(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err);
    void *ctx; /* passed to all functions of this struct */
    uint64_t seed;
    int64_t max_steps; /* * steps of all environments together, after which the run ends */

    int64_t eval_every;       /* steps between two evaluations; 0: 2,000 */
    int64_t eval_episodes;    /* episodes of an evaluation; 0: 20 */
    int64_t confirm_episodes; /* episodes that confirm an evaluation over the threshold; 0:
                                 300 */
    double threshold;         /* mean return at which the task is solved; 0: the environment's
                                 value. NaN: never solved */
    bool keep_going;          /* do not stop when the task is solved */
    bool inline_evaluation;   /* evaluate on the caller's thread */

    const char *directory; /* directory of the store on disk; NULL: no snapshots */
    bool resume;           /* continue the run in the directory */
    int64_t save_every;    /* steps between two snapshots; 0: only one at the end */

    int64_t progress_ns; /* time between two reports of progress; 0: 200 ms */
    /* Called on the caller's thread with every progress. May be NULL. */
    void (*on_progress)(void *ctx, const rp_run_progress *progress);
    /* Called before every step. If it returns true, the run is saved and stops. May be NULL. */
    bool (*should_stop)(void *ctx);
} rp_trainer_options;

/* Opens the directory, makes the agent, and begins or restores the run. Returns owned.
 * RP_INVALID, RP_NOT_FOUND (`resume` is true, and there is no snapshot), RP_EXISTS (`resume` is
 * false, and there is a snapshot), RP_NO_RESOURCE, RP_UNAVAILABLE, RP_CORRUPT, or a status of
 * the agent. */
RP_API RP_NODISCARD rp_status rp_trainer_new(const rp_allocator *alloc,
                                             const rp_trainer_options *options,
                                             rp_trainer **out, rp_error *err);
/* Frees the trainer and its agent. Does not save. NULL is fine. */
RP_API void rp_trainer_free(rp_trainer *trainer);

typedef struct rp_trainer_result {
    rp_run_progress progress; /* progress at the end of the run */
    bool solved, stopped;     /* the task is solved; should_stop() has stopped the run */
    rp_evaluation confirmed;  /* if solved: the evaluation of the parameters that solved it */
    int64_t solved_steps;     /* if solved: steps when these parameters were published */
} rp_trainer_result;

/* Runs until max_steps is reached or should_stop() returns true. If keep_going is false, the
 * run also ends when the task is solved. Then saves a snapshot. If the run fails, saves
 * nothing, and the latest snapshot remains. Writes `result` in every case.
 * RP_PRECONDITION (the run has diverged), or a status of the environment, the replay, the disk
 * or a logger. */
RP_API RP_NODISCARD rp_status rp_trainer_run(rp_trainer *trainer, rp_trainer_result *result,
                                             rp_error *err);

/* Sets the logs to which every progress is written. Borrows them until the trainer is freed. */
RP_API void rp_trainer_set_logs(rp_trainer *trainer, rp_run_log *const *logs, size_t count);

RP_API rp_agent *rp_trainer_get_agent(rp_trainer *trainer); /* borrowed */
/* Returns the parameters that solved the task. If it is not solved, returns the current
 * parameters. Borrowed, valid until the next call. */
RP_API const rp_real *rp_trainer_get_parameters(rp_trainer *trainer);
/* Returns the mean return at which the task is solved; NaN: it is never solved. */
RP_API double rp_trainer_get_threshold(const rp_trainer *trainer);
/* Returns the number of steps done so far, including those before the run was resumed. */
RP_API int64_t rp_trainer_get_steps(const rp_trainer *trainer);

RP_END_DECLS

#endif
