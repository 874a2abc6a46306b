/* SPDX-License-Identifier: Apache-2.0 */
/* Actors: the part of an agent that acts.
 *
 * An actor acts in a group of parallel environments and explores. It writes the steps as items
 * with priorities to the replay, the table from which learners draw their batches. It may use
 * any kind of client. An actor owns no parameters: its owner sets the field `params`, and may
 * change it between any two calls. Learners (learner.h), which may be in another process,
 * compute the parameters.
 *
 * An actor is a struct of functions, so a program can supply an actor of its own: embed
 * rp_actor as the first member of a struct. One thread at a time may use an actor. */
#ifndef REPRISE_RL_ACTOR_H
#define REPRISE_RL_ACTOR_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_actor rp_actor;

typedef struct rp_actor_class {
    const char *name; /* "dqn" */
    /* Chooses an action for every environment, with exploration. */
    void (*act)(rp_actor *actor, const void *observations, void *actions);
    /* Begins an episode in every environment with these observations. The owner must call it
     * before the first step, and after every reset of all environments. Sends the items written
     * so far. Drops the episodes that have not ended. */
    rp_status (*begin)(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err);
    /* Writes one step of every environment to the replay. Waits while too many items are
     * unconfirmed, that is, not yet accepted by the table; this is where the rate limiter of a
     * table slows an actor down. After
     * RP_DEADLINE and RP_CANCELLED nothing has been written, and the call can be repeated.
     * After another status, which is one of the replay, the owner must call begin(). */
    rp_status (*observe)(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err);
    /* Sends all items and waits until they are confirmed. */
    rp_status (*flush)(rp_actor *actor, rp_wait wait, rp_error *err);
    /* Returns the number of items written so far. */
    int64_t (*created)(const rp_actor *actor);
    /* Describe and restore the state, as the functions of an agent do (agent.h). */
    size_t (*get_state)(rp_actor *actor, rp_state_part *parts);
    rp_status (*restored)(rp_actor *actor, rp_error *err);
    void (*free)(rp_actor *actor);
    /* Says that the actor is now number `index` of `actors`. The actor may explore differently
     * from then on. NULL: exploration does not depend on these numbers. */
    void (*set_group)(rp_actor *actor, int64_t index, int64_t actors);
} rp_actor_class;

struct rp_actor {
    const rp_actor_class *type;
    const rp_real *params;  /* `parameter_count` numbers of the owner, who must set the field
                               before act() */
    size_t parameter_count; /* set by the actor */
    double exploration;     /* current epsilon or standard deviation of the noise, in the
                               environment that explores most; SAC: the temperature */
};

/* Frees an actor with its own function. Unconfirmed items may be lost, so call flush() first.
 * NULL is fine. */
RP_API void rp_actor_free(rp_actor *actor);

RP_END_DECLS

#endif
