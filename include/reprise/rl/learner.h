/* SPDX-License-Identifier: Apache-2.0 */
/* Learners: the part of an agent that learns.
 *
 * A learner draws batches of items from the replay, which is the table to which actors write,
 * updates the parameters, and writes priorities back. It uses the replay through a client.
 * Actors (actor.h), which may be in other processes, use its parameters.
 *
 * A learner is a struct of functions, so a program can supply a learner of its own: embed
 * rp_learner as the first member of a struct. One thread at a time may use a learner. */
#ifndef REPRISE_RL_LEARNER_H
#define REPRISE_RL_LEARNER_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_learner rp_learner;

typedef struct rp_learner_class {
    const char *name; /* "dqn" */
    /* Makes one update. Waits until the rate limiter of the replay permits a batch. After
     * RP_DEADLINE and RP_CANCELLED no update was made, and the call can be repeated.
     * RP_PRECONDITION means that the run has diverged. The text of the error says how, and
     * every later call returns the same status. Other statuses are those of the replay. After
     * RP_UNAVAILABLE, RP_NOT_FOUND and RP_CANCELLED the parameters are valid, so the owner may
     * call again when the replay is reachable. */
    rp_status (*update)(rp_learner *learner, rp_wait wait, rp_error *err);
    /* Returns the parameters for actors and policies. Borrowed, valid until the next
     * update(). */
    const rp_real *(*parameters)(const rp_learner *learner);
    /* Makes a policy (agent.h) for at most `rows` observations per call. Returns owned. The
     * policy must be freed before the learner. RP_NO_RESOURCE. */
    rp_status (*new_policy)(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err);
    /* Fills in the metrics. The fields epsilon, inserts and item_size become 0, because a
     * learner does not know them. */
    void (*get_metrics)(rp_learner *learner, rp_agent_metrics *out);
    /* Describe and restore the state, as the functions of an agent do (agent.h). */
    size_t (*get_state)(rp_learner *learner, rp_state_part *parts);
    rp_status (*restored)(rp_learner *learner, rp_error *err);
    void (*free)(rp_learner *learner);
    /* Changes the number of threads that compute updates, between two updates. The layout of
     * the state does not depend on this number. NULL: there is always one thread. RP_INVALID,
     * RP_PRECONDITION (the number is fixed), RP_NO_RESOURCE: nothing has changed. */
    rp_status (*set_threads)(rp_learner *learner, size_t count, rp_error *err);
    /* Returns the number of updates that all threads together have made, including those before
     * a snapshot was restored. NULL: each successful update() is one update. */
    int64_t (*updates)(rp_learner *learner);
} rp_learner_class;

struct rp_learner {
    const rp_learner_class *type;
    size_t parameter_count; /* numbers in parameters(); set by the learner */
};

/* Frees a learner with its own function. NULL is fine. */
RP_API void rp_learner_free(rp_learner *learner);

RP_END_DECLS

#endif
