/* SPDX-License-Identifier: Apache-2.0 */
/* What all learners count: updates, means for people, and whether a run has diverged. */
#ifndef RP_AGENTS_LEARNING_H
#define RP_AGENTS_LEARNING_H

#include "reprise/rl/agent.h"
#include "reprise/rl/optimizer.h"

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

/* The error whose loss is `max_loss`; `huber` is that of rp_td_loss(). If the mean of a batch
 * is over max_loss, an error of it is larger; weights are at most 1. */
double rp_learning_most_error(double max_loss, double huber);

/* Fills in what a learner knows, and begins new sums. */
void rp_learning_metrics(rp_learning *learning, rp_agent_metrics *out);

/* Numbers of a state, as they were restored. */
typedef struct rp_restored {
    const rp_real *params, *target; /* `count` each */
    size_t count;
    rp_optimizer_state optimizers[2]; /* of Adam, or of RMSProp with a mean */
    size_t sizes[2];                  /* parameters of each; 0: there is none */
    uint64_t steps;                   /* of the optimizers */
} rp_restored;

/* RP_CORRUPT: the counts, or numbers, that were restored cannot be those of a run. */
RP_NODISCARD rp_status rp_learning_restored(const rp_learning *learning,
                                            const rp_restored *state, rp_error *err);

#endif
