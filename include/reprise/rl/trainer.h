/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers: a complete training run from one struct of options. A trainer makes the store, the
 * agent and the environment loop (env_loop.h), evaluates the agent, reports progress and saves
 * snapshots (snapshot.h).
 *
 *   rp_trainer_new(NULL, &options, &trainer, &err);   begins or resumes the run
 *   rp_trainer_run(trainer, &result, &err);           until it is solved, stopped or over
 *   rp_trainer_free(trainer);
 *
 * The trainer calls the agent on the caller's thread. The parameters after a given number of
 * steps depend only on the options. The exception is an agent that itself depends on timing,
 * which is DQN with `async_learners` (dqn.h). Without this exception, a run that is killed and
 * later resumed from its latest snapshot computes the same bits as an uninterrupted run.
 * Evaluations run on a thread of their own, so the step at which the trainer finds the task
 * solved, and ends the run, depends on timing. With `inline_evaluation` this step does not
 * depend on timing.
 *
 * One thread at a time may use a trainer. */
#ifndef REPRISE_RL_TRAINER_H
#define REPRISE_RL_TRAINER_H

#include "reprise/rl/evaluator.h"
#include "reprise/rl/run_log.h"

RP_BEGIN_DECLS

typedef struct rp_trainer rp_trainer;

/* The arguments of make_agent(). The pointers are valid until the trainer is freed. */
typedef struct rp_trainer_parts {
    const rp_allocator *alloc;
    const rp_env_spec *spec;
    rp_store *store; /* the store for the replay. It is empty, or has the tables of the run that
                        is resumed */
    rp_client *client;
    uint64_t seed;
} rp_trainer_parts;

/* Zero-initialise the struct. Fields whose comment begins with * must be set. Strings and
 * classes are borrowed until the trainer is freed. */
typedef struct rp_trainer_options {
    const rp_env_class *env_class; /* * */
    rp_env_options env;            /* * the field `copies` must be set */
    /* * Makes the agent. Returns owned: the trainer frees the agent. */
    rp_status (*make_agent)(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err);
    void *ctx; /* passed to all functions of this struct */
    uint64_t seed;
    int64_t max_steps; /* * the run ends after this many steps of all environments together */

    int64_t eval_every;       /* steps between two evaluations of the current parameters; 0:
                                 2,000 */
    int64_t eval_episodes;    /* episodes of an evaluation; 0: 20 */
    int64_t confirm_episodes; /* episodes of the second evaluation, which confirms a first one
                                 that reached the threshold; 0: 300 */
    double threshold;         /* mean return at which the task is solved. 0 without
                                 has_threshold: the value of the environment; NaN: the task is
                                 never solved */
    bool has_threshold;       /* true: a threshold of 0 is 0 */
    bool keep_going;          /* true: the run does not end when the task is solved */
    bool inline_evaluation;   /* true: evaluate on the caller's thread */

    const char *directory; /* directory of the store on disk; NULL: no snapshots */
    bool resume;           /* true: continue the run whose latest snapshot is in `directory` */
    int64_t save_every;    /* steps between two snapshots; 0: saves only one snapshot, at the
                              end of the run */

    int64_t progress_ns; /* longest time between two reports of progress; a new evaluation is
                            reported at once. 0: 200 ms */
    /* Called on the caller's thread with every progress. May be NULL. */
    void (*on_progress)(void *ctx, const rp_run_progress *progress);
    /* Called before every step. If should_stop() returns true, the run stops, and the trainer
     * saves a snapshot if `directory` is set. May be NULL. */
    bool (*should_stop)(void *ctx);
} rp_trainer_options;

/* Opens the directory, makes the agent, and begins or restores the run. Returns owned.
 * Errors: RP_INVALID, RP_NOT_FOUND (`resume` is true, and there is no snapshot), RP_EXISTS
 * (`resume` is false, and there is a snapshot), RP_NO_RESOURCE, RP_UNAVAILABLE, RP_CORRUPT, or
 * a status of the agent. */
RP_API RP_NODISCARD rp_status rp_trainer_new(const rp_allocator *alloc,
                                             const rp_trainer_options *options,
                                             rp_trainer **out, rp_error *err);
/* Frees the trainer and its agent. Saves no snapshot. NULL is fine. */
RP_API void rp_trainer_free(rp_trainer *trainer);

typedef struct rp_trainer_result {
    rp_run_progress progress; /* progress at the end of the run */
    bool solved, stopped;     /* solved: the task is solved. stopped: should_stop() has stopped
                                 the run */
    rp_evaluation confirmed;  /* if solved: the second evaluation of the parameters that solved
                                 the task */
    int64_t solved_steps;     /* if solved: number of steps of the run when it had these
                                 parameters */
} rp_trainer_result;

/* Runs until max_steps is reached or should_stop() returns true. If keep_going is false, the
 * run also ends when the task is solved. In all these cases, saves a snapshot at the end if
 * `directory` is set. If the run fails, saves nothing, and the latest snapshot remains. Always
 * writes `*result`, even if the run fails.
 * Errors: RP_PRECONDITION (the run has diverged), or a status of the environment, the replay,
 * the store's directory or a logger. */
RP_API RP_NODISCARD rp_status rp_trainer_run(rp_trainer *trainer, rp_trainer_result *result,
                                             rp_error *err);

/* Sets the logs (run_log.h) to which the trainer writes every report of progress. Borrows the
 * array and the logs until the trainer is freed. */
RP_API void rp_trainer_set_logs(rp_trainer *trainer, rp_run_log *const *logs, size_t count);

RP_API rp_agent *rp_trainer_get_agent(rp_trainer *trainer); /* borrowed */
/* Returns the parameters that solved the task. If the task is not solved, returns the current
 * parameters. Borrowed, valid until the next rp_trainer_run() or rp_trainer_free(). */
RP_API const rp_real *rp_trainer_get_parameters(rp_trainer *trainer);
/* Returns the mean return at which the task is solved; NaN: it is never solved. */
RP_API double rp_trainer_get_threshold(const rp_trainer *trainer);
/* Returns the number of steps done so far, including those before the run was resumed. */
RP_API int64_t rp_trainer_get_steps(const rp_trainer *trainer);

RP_END_DECLS

#endif
