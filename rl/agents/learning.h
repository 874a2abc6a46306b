/* SPDX-License-Identifier: Apache-2.0 */
/* What all learners have: parameters and their optimizers, counts of updates, means for people,
 * and whether a run has diverged. */
#ifndef RP_AGENTS_LEARNING_H
#define RP_AGENTS_LEARNING_H

#include "reprise/rl/agent.h"
#include "reprise/rl/optimizer.h"

/* The numbers of the state of a learner that are not arrays. Saved as they are. */
typedef struct rp_learning_counts {
    int64_t updates, samples;
    double largest_priority;
} rp_learning_counts;

enum { RP_LEARNING_NETWORKS = 3 };

/* Parameters with an optimizer of their own. */
typedef struct rp_learning_network {
    const char *moments;     /* their name in a state. Static */
    rp_optimizer *optimizer; /* Adam, or RMSProp with a mean. Borrowed */
    size_t count;            /* parameters */
} rp_learning_network;

typedef struct rp_learning {
    const char *agent; /* its name */
    double rate, max_loss;
    bool diverged;
    rp_learning_counts counts;
    rp_real *params,
        *target_params; /* `count` each: those of all networks in order. Borrowed */
    size_t count;
    rp_learning_network networks[RP_LEARNING_NETWORKS];
    size_t network_count;
    uint64_t optimizer_steps; /* of each; set when the state is read */
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

/* True if the next update changes the targets. */
bool rp_learning_target_is_due(const rp_learning *learning, int64_t target_every);

/* Fills in what a learner knows, and begins new sums. */
void rp_learning_metrics(rp_learning *learning, rp_agent_metrics *out);

/* Adds a network, of parameters behind those of the networks before. */
void rp_learning_add_network(rp_learning *learning, const rp_learning_network *network);

/* Describe and take the state, as the functions of a learner do (learner.h): counts,
 * parameters, targets and moments. RP_CORRUPT: the numbers that were restored cannot be those
 * of a run. */
size_t rp_learning_get_state(rp_learning *learning, rp_state_part *parts);
RP_NODISCARD rp_status rp_learning_restored(rp_learning *learning, rp_error *err);

#endif
