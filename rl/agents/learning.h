/* SPDX-License-Identifier: Apache-2.0 */
/* The state that every learner has: parameters with their optimizers, counts of updates, means
 * for the metrics, and whether the run has diverged. A run has diverged when the loss of an
 * update is over its bound, or the loss or a gradient norm is not finite. */
#ifndef RP_AGENTS_LEARNING_H
#define RP_AGENTS_LEARNING_H

#include "reprise/rl/agent.h"
#include "reprise/rl/optimizer.h"

/* The numbers of a learner's state that are not in arrays. A snapshot contains the bytes of
 * this struct. */
typedef struct rp_learning_counts {
    int64_t updates, samples;
    double largest_priority;
} rp_learning_counts;

enum { RP_LEARNING_NETWORKS = 3 };

/* A range of the parameters that has an optimizer of its own. The range is usually a network,
 * but can also be several networks with one optimizer, or a single parameter such as SAC's
 * temperature. This file calls each such range a network. */
typedef struct rp_learning_network {
    const char *moments;     /* name of the optimizer's moments in a state (agent.h). Static */
    rp_optimizer *optimizer; /* Adam or centred RMSProp, which keep two moments for each
                                parameter. Borrowed */
    size_t count;            /* number of parameters */
} rp_learning_network;

typedef struct rp_learning {
    const char *agent;     /* name of the agent, for texts of errors */
    double rate, max_loss; /* learning rate, only for the metrics; bound of the loss */
    bool diverged;
    rp_learning_counts counts;
    rp_real *params, *target_params; /* `count` numbers each, network after network. Borrowed */
    size_t count;                    /* parameters of all networks */
    rp_learning_network networks[RP_LEARNING_NETWORKS];
    size_t network_count;
    uint64_t optimizer_steps; /* number of steps of each optimizer; valid only in a saved
                                 state */
    /* The number of updates since the last rp_learning_metrics(), and sums over these
     * updates. */
    int64_t updates;
    double loss, value, error, norm;
} rp_learning;

/* The measurements of one update. */
typedef struct rp_learning_step {
    double loss, value, norm;
    const rp_real *errors; /* TD errors, one per row */
    size_t rows;
} rp_learning_step;

/* Returns RP_PRECONDITION if the run has diverged in an earlier update. */
RP_NODISCARD rp_status rp_learning_check(const rp_learning *learning, rp_error *err);

/* Counts an update and adds its measurements to the sums. Returns RP_PRECONDITION if the run
 * has diverged in this update; the text of the error gives the numbers. */
RP_NODISCARD rp_status rp_learning_add(rp_learning *learning, const rp_learning_step *step,
                                       rp_error *err);

/* Returns the absolute TD error whose loss is `max_loss`. `huber` is the argument `delta` of
 * rp_td_loss(). If the mean loss of a batch is over `max_loss`, at least one of its errors is
 * larger than the result, because importance weights are at most 1. */
double rp_learning_most_error(double max_loss, double huber);

/* Returns true if the next update must move the target networks. `target_every` is the number
 * of updates between two moves. */
bool rp_learning_target_is_due(const rp_learning *learning, int64_t target_every);

/* Fills in the metrics of the learner and restarts the sums. */
void rp_learning_metrics(rp_learning *learning, rp_agent_metrics *out);

/* Adds a network. Its parameters follow those of the networks added before. */
void rp_learning_add_network(rp_learning *learning, const rp_learning_network *network);

/* Describe and restore the state, as get_state() and restored() of a learner do (learner.h).
 * The state is the counts, parameters, target parameters and moments. Errors: RP_CORRUPT (the
 * restored numbers cannot come from a run). */
size_t rp_learning_get_state(rp_learning *learning, rp_state_part *parts);
RP_NODISCARD rp_status rp_learning_restored(rp_learning *learning, rp_error *err);

#endif
