/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation: measures the return of a policy in episodes without exploration and learning.
 *
 * rp_evaluate() runs episodes on the calling thread. An rp_evaluator has a thread of its own.
 * This thread fetches parameters that a learner has published through a table (variables.h),
 * and evaluates them while the learner continues. */
#ifndef REPRISE_RL_EVALUATOR_H
#define REPRISE_RL_EVALUATOR_H

#include "reprise/rl/agent.h"
#include "reprise/rl/variables.h"

RP_BEGIN_DECLS

typedef struct rp_evaluation {
    int64_t episodes;
    double mean_return, deviation; /* mean and standard deviation of the returns */
    double lowest, highest;        /* lowest and highest return */
    double mean_length;
} rp_evaluation;

/* The options of an evaluation. Borrowed for the call, or until the evaluator is freed. */
typedef struct rp_evaluation_options {
    const rp_env_class *env_class;
    rp_env_options env; /* options of the environments; `copies` is ignored, because each
                           episode has an environment of its own */
    rp_policy *policy;  /* at most policy->rows environments are stepped at once */
    int64_t episodes;   /* >= 1 */
    int64_t max_steps;  /* an episode is cut off after this many steps; 0: 1,000,000 */
    uint64_t seed;      /* seed of the environments */
    /* Called every few steps. If should_stop() returns true, the evaluation ends with
     * RP_CANCELLED. May be NULL. */
    bool (*should_stop)(void *ctx);
    void *ctx;
} rp_evaluation_options;

/* Runs options->episodes episodes. The result depends only on the options and the parameters.
 * Errors: those of the environment, RP_INVALID, RP_CANCELLED. */
RP_API RP_NODISCARD rp_status rp_evaluate(const rp_allocator *alloc,
                                          const rp_evaluation_options *options,
                                          const rp_real *params, rp_evaluation *out,
                                          rp_error *err);

/* A verdict: whether parameters solve the task. The evaluation `first` runs some episodes. If
 * its mean return reaches the threshold, the evaluation `confirmed` runs other episodes,
 * usually more. The task is solved if the mean return of `confirmed`, less its standard error,
 * reaches the threshold. This second evaluation is needed because, among many evaluations, some
 * reach the threshold by luck. */
typedef struct rp_verdict {
    int64_t version, note; /* version and note of the parameters (variables.h) */
    rp_evaluation first;
    rp_evaluation confirmed; /* confirmed.episodes is 0 if `confirmed` was not run */
    bool solved;             /* in `confirmed`, mean_return - deviation / sqrt(episodes) >=
                                threshold */
} rp_verdict;

typedef struct rp_verdict_options {
    rp_evaluation_options evaluation; /* options of `first`; the seed is combined with the
                                         version, so each version plays other episodes */
    int64_t confirm_episodes;         /* episodes of `confirmed`, >= 1 */
    double threshold;                 /* mean return; NaN: the task is never solved */
} rp_verdict_options;

/* Judges parameters on the calling thread. The caller must set `version` and `note` in
 * `*in_out`; the function fills in the other fields. The errors are those of rp_evaluate(). */
RP_API RP_NODISCARD rp_status rp_judge(const rp_allocator *alloc,
                                       const rp_verdict_options *options, const rp_real *params,
                                       rp_verdict *in_out, rp_error *err);

typedef struct rp_evaluator rp_evaluator;

/* Makes an evaluator and starts its thread. Until the evaluator is freed, only that thread may
 * use the policy. Returns owned. Errors: RP_NO_RESOURCE, or a status of the variable client. */
RP_API RP_NODISCARD rp_status rp_evaluator_new(const rp_allocator *alloc,
                                               const rp_verdict_options *options,
                                               const rp_variable_options *variables,
                                               rp_evaluator **out, rp_error *err);
/* Ends the thread after the evaluation in progress. NULL is fine. */
RP_API void rp_evaluator_free(rp_evaluator *evaluator);

/* Wakes the evaluator's thread because parameters have been published. If the thread is busy,
 * it finishes its current evaluation first, and then evaluates the latest parameters. Any
 * thread may call this function. */
RP_API void rp_evaluator_wake(rp_evaluator *evaluator);

/* Takes the latest verdict. If `wait` is true, first waits until the evaluator's thread has
 * nothing to do. If there is a verdict that has not been taken before, sets `*has` to true and
 * writes the verdict to `*out`. If the verdict says that the task is solved and `params` is not
 * NULL, also writes the parameters that solved the task to `params`. If an evaluation has
 * failed, returns its status. After a failed evaluation, and after a verdict that the task is
 * solved, the thread evaluates no more. Any thread may call this function. */
RP_API RP_NODISCARD rp_status rp_evaluator_take(rp_evaluator *evaluator, bool wait,
                                                rp_real *params, rp_verdict *out, bool *has,
                                                rp_error *err);

RP_END_DECLS

#endif
