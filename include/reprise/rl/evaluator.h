/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation: episodes of a policy that does not explore and does not learn.
 *
 * rp_evaluate() runs episodes on the calling thread. An rp_evaluator has a thread of its own,
 * which fetches parameters from a variable source (variables.h) and evaluates them while the
 * learner goes on. */
#ifndef REPRISE_RL_EVALUATOR_H
#define REPRISE_RL_EVALUATOR_H

#include "reprise/rl/agent.h"
#include "reprise/rl/variables.h"

RP_BEGIN_DECLS

typedef struct rp_evaluation {
    int64_t episodes;
    double mean_return, deviation; /* of the returns */
    double lowest, highest;
    double mean_length;
} rp_evaluation;

/* What is evaluated, and how. Borrowed for the call, or until the evaluator is freed. */
typedef struct rp_evaluation_options {
    const rp_env_class *env_class;
    rp_env_options env; /* `copies` is ignored: each episode has a copy of its own */
    rp_policy *policy;  /* its rows are the most copies that are stepped at once */
    int64_t episodes;   /* >= 1 */
    int64_t max_steps;  /* after which an episode is cut off; 0: 1,000,000 */
    uint64_t seed;      /* of the environments */
    /* Asked every few steps: true ends the evaluation with RP_CANCELLED. May be NULL. */
    bool (*should_stop)(void *ctx);
    void *ctx;
} rp_evaluation_options;

/* Runs options->episodes episodes from fresh resets. The result depends on the options and the
 * parameters only. The statuses are those of the environment, RP_INVALID, and RP_CANCELLED. */
RP_API RP_NODISCARD rp_status rp_evaluate(const rp_allocator *alloc,
                                          const rp_evaluation_options *options,
                                          const rp_real *params, rp_evaluation *out,
                                          rp_error *err);

/* Whether parameters solve their task. `first` evaluates some episodes. If its mean reaches the
 * threshold, `confirmed` evaluates more, other episodes, whose mean has to exceed the threshold
 * by its standard error. The second test is needed because one of many evaluations passes the
 * first test by luck. */
typedef struct rp_verdict {
    int64_t version, note; /* of the parameters (variables.h) */
    rp_evaluation first;
    rp_evaluation confirmed; /* episodes is 0 if it was not run */
    bool solved;             /* confirmed: mean - deviation / sqrt(episodes) >= threshold */
} rp_verdict;

typedef struct rp_verdict_options {
    rp_evaluation_options evaluation; /* of `first`; the seed is varied by the version */
    int64_t confirm_episodes;         /* >= 1 */
    double threshold;                 /* NaN: nothing is ever solved */
} rp_verdict_options;

/* Evaluates parameters of this version on the calling thread. The statuses are those of
 * rp_evaluate(). */
RP_API RP_NODISCARD rp_status rp_judge(const rp_allocator *alloc,
                                       const rp_verdict_options *options, const rp_real *params,
                                       rp_verdict *in_out, rp_error *err);

typedef struct rp_evaluator rp_evaluator;

/* Makes an evaluator and starts its thread. The policy belongs to that thread until the
 * evaluator is freed. Returns owned. RP_NO_RESOURCE, or a status of the variable client. */
RP_API RP_NODISCARD rp_status rp_evaluator_new(const rp_allocator *alloc,
                                               const rp_verdict_options *options,
                                               const rp_variable_options *variables,
                                               rp_evaluator **out, rp_error *err);
/* Ends the thread after the evaluation in progress. NULL is fine. */
RP_API void rp_evaluator_free(rp_evaluator *evaluator);

/* Says that parameters have been published. If the thread is busy, it evaluates the latest ones
 * afterwards. Safe from any thread. */
RP_API void rp_evaluator_wake(rp_evaluator *evaluator);

/* Takes the latest verdict, if there is one that has not been taken: `*has` is true then. If it
 * is solved and `params` is not NULL, writes its parameters to `params`. The thread makes
 * no verdict after one that is solved. `wait` true waits until the thread has nothing to do.
 * Returns the status of an evaluation that failed. Safe from any thread. */
RP_API RP_NODISCARD rp_status rp_evaluator_take(rp_evaluator *evaluator, bool wait,
                                                rp_real *params, rp_verdict *out, bool *has,
                                                rp_error *err);

RP_END_DECLS

#endif
