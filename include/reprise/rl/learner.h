/* SPDX-License-Identifier: Apache-2.0 */
/* Learners: the part of an agent that learns.
 *
 * A learner draws batches of items from the replay, which is the table to which actors write.
 * With each batch it updates the parameters, and then it writes new priorities of the items to
 * the replay. It uses the replay through a client (reprise/client.h). Actors (actor.h), in this
 * process or in others, use its parameters.
 *
 * A learner is a struct of functions, so a program can supply a learner of its own: a struct
 * whose first member is an rp_learner. One thread at a time may use a learner. */
#ifndef REPRISE_RL_LEARNER_H
#define REPRISE_RL_LEARNER_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_learner rp_learner;

typedef struct rp_learner_class {
    const char *name; /* name of the algorithm, for example "dqn" */
    /* Makes one update. Waits until the rate limiter of the replay permits a batch. After
     * RP_DEADLINE no update was made, and the call can be repeated. RP_PRECONDITION means that
     * the run has diverged, or that the table has the items of another program; the text of the
     * error says which. After a divergence every later call fails with RP_PRECONDITION. Other
     * errors are statuses of the replay. After RP_UNAVAILABLE, RP_NOT_FOUND and RP_CANCELLED
     * the parameters are valid, so the owner can call update() again when the replay can be
     * reached. */
    rp_status (*update)(rp_learner *learner, rp_wait wait, rp_error *err);
    /* Returns the parameters for actors and policies. Borrowed, valid until the next
     * update(). */
    const rp_real *(*parameters)(const rp_learner *learner);
    /* Makes a policy (agent.h) for at most `rows` observations per call. Returns owned. The
     * policy must be freed before the learner. Errors: RP_NO_RESOURCE. */
    rp_status (*new_policy)(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err);
    /* Fills in the metrics. Sets the fields epsilon, inserts and item_size to 0, because a
     * learner does not know them. */
    void (*get_metrics)(rp_learner *learner, rp_agent_metrics *out);
    /* Describe and restore the state of the learner for snapshots, as get_state() and
     * restored() of an agent do (agent.h). */
    size_t (*get_state)(rp_learner *learner, rp_state_part *parts);
    rp_status (*restored)(rp_learner *learner, rp_error *err);
    void (*free)(rp_learner *learner);
    /* Changes the number of threads that compute updates. The owner is allowed to call
     * set_threads() between two updates. The layout of the state does not depend on this
     * number. NULL: the learner always has one thread. Errors: RP_INVALID, RP_PRECONDITION (the
     * number is fixed), RP_NO_RESOURCE. After an error nothing has changed. */
    rp_status (*set_threads)(rp_learner *learner, size_t count, rp_error *err);
    /* Returns the number of updates that all threads together have made, including those before
     * a snapshot was restored. NULL: each successful update() is one update. */
    int64_t (*updates)(rp_learner *learner);
} rp_learner_class;

struct rp_learner {
    const rp_learner_class *type;
    size_t parameter_count; /* number of parameters; set by the learner */
};

/* Frees a learner with its own function. NULL is fine. */
RP_API void rp_learner_free(rp_learner *learner);

RP_END_DECLS

#endif
