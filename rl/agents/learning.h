/* SPDX-License-Identifier: Apache-2.0 */
/* What all learners count: updates, means for people, and whether a run has diverged. */
#ifndef RP_AGENTS_LEARNING_H
#define RP_AGENTS_LEARNING_H

#include "reprise/rl/agent.h"

/* The numbers of the state of a learner that are not arrays. Saved as they are. */
typedef struct rp_learning_counts {
    int64_t updates, samples;
    double largest_priority;
} rp_learning_counts;

typedef struct rp_learning {
    const char *agent; /* its name */
    double rate, max_loss;
    bool diverged;
    rp_learning_counts counts;
    /* Sums since the last metrics. */
    int64_t updates;
    double loss, value, error, norm;
} rp_learning;

/* What one update found. */
typedef struct rp_learning_step {
    double loss, value, norm;
    const rp_real *errors; /* TD errors, one a row */
    size_t rows;
} rp_learning_step;

/* RP_PRECONDITION: the run has diverged before. */
RP_NODISCARD rp_status rp_learning_check(const rp_learning *learning, rp_error *err);

/* Counts an update. RP_PRECONDITION: the run has diverged; the text has the numbers. */
RP_NODISCARD rp_status rp_learning_add(rp_learning *learning, const rp_learning_step *step,
                                       rp_error *err);

/* Fills in what a learner knows, and begins new sums. */
void rp_learning_metrics(rp_learning *learning, rp_agent_metrics *out);

/* RP_CORRUPT: the counts, or parameters, that were restored cannot be those of a run. */
RP_NODISCARD rp_status rp_learning_restored(const rp_learning *learning, const rp_real *params,
                                            size_t count, rp_error *err);

#endif
