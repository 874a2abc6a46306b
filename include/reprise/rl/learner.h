/* SPDX-License-Identifier: Apache-2.0 */
/* Learners: the half of an agent that learns.
 *
 * A learner draws batches from the replay through a client, makes updates, writes priorities
 * back, and offers parameters to actors (actor.h), who may be in other processes.
 *
 * A struct of functions, so a program can bring a learner of its own: embed rp_learner as the
 * first member. One thread at a time may use a learner. */
#ifndef REPRISE_RL_LEARNER_H
#define REPRISE_RL_LEARNER_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_learner rp_learner;

typedef struct rp_learner_class {
    const char *name; /* "dqn" */
    /* Makes one update. Waits for a batch: the rate limiter of the replay decides when there is
     * one. After RP_DEADLINE and RP_CANCELLED no update was made, and the call can be repeated.
     * RP_PRECONDITION (the run has diverged; the text says how; every later call returns it),
     * or a status of the replay. After RP_UNAVAILABLE, RP_NOT_FOUND and RP_CANCELLED the
     * parameters are sound: the owner may call again once the replay is back. */
    rp_status (*update)(rp_learner *learner, rp_wait wait, rp_error *err);
    /* The parameters for actors and policies. Borrowed, valid until the next update(). */
    const rp_real *(*parameters)(const rp_learner *learner);
    /* Makes a policy for at most `rows` rows. Returns owned. It must be freed before the
     * learner. RP_NO_RESOURCE. */
    rp_status (*new_policy)(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err);
    /* Fills in what a learner knows: not epsilon, inserts and item_size, which are 0. */
    void (*get_metrics)(rp_learner *learner, rp_agent_metrics *out);
    /* Describe and take the state, as the functions of an agent do (agent.h). */
    size_t (*get_state)(rp_learner *learner, rp_state_part *parts);
    rp_status (*restored)(rp_learner *learner, rp_error *err);
    void (*free)(rp_learner *learner);
    /* Changes the number of threads that share the updates, between two of them; the state does
     * not depend on it. NULL: there is one thread. RP_INVALID, RP_PRECONDITION (it is fixed),
     * RP_NO_RESOURCE: nothing has changed. */
    rp_status (*set_threads)(rp_learner *learner, size_t count, rp_error *err);
    /* The updates that all threads have made, those before a snapshot counted. NULL: one in
     * each successful update(). */
    int64_t (*updates)(rp_learner *learner);
} rp_learner_class;

struct rp_learner {
    const rp_learner_class *type;
    size_t parameter_count; /* of parameters(); set by the learner */
};

/* Frees a learner by its own function. NULL is fine. */
RP_API void rp_learner_free(rp_learner *learner);

RP_END_DECLS

#endif
