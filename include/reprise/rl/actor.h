/* SPDX-License-Identifier: Apache-2.0 */
/* Actors: the part of an agent that acts.
 *
 * An actor chooses actions, with exploration, for a group of parallel environments. It writes
 * the steps as items with priorities to the replay, which is the table from which learners draw
 * their batches. The actor reaches the replay through a client of any kind (reprise/client.h).
 * An actor owns no parameters: its owner sets the field `params`, and is allowed to change the
 * field between any two calls. A learner (learner.h), in this process or in another one,
 * computes the parameters.
 *
 * An actor is a struct of functions, so a program can supply an actor of its own: a struct
 * whose first member is an rp_actor. One thread at a time may use an actor. */
#ifndef REPRISE_RL_ACTOR_H
#define REPRISE_RL_ACTOR_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_actor rp_actor;

typedef struct rp_actor_class {
    const char *name; /* name of the algorithm, for example "dqn" */
    /* Chooses an action for every environment, with exploration. */
    void (*act)(rp_actor *actor, const void *observations, void *actions);
    /* Begins an episode in every environment. `observations` are the first observations of
     * these episodes. The owner must call begin() before the first step, and after every reset
     * of all environments. Sends the items written so far. Drops the episodes that have not
     * ended. */
    rp_status (*begin)(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err);
    /* Writes one step of every environment to the replay. First waits while too many items are
     * unconfirmed, that is, not yet accepted by the table. A table whose rate limiter accepts
     * items slowly therefore slows the actor down. After RP_DEADLINE and RP_CANCELLED nothing
     * has been written, and the call can be repeated. Any other error is a status with which a
     * call to the replay failed. After this error the owner must call begin(). */
    rp_status (*observe)(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err);
    /* Sends all items and waits until they are confirmed. */
    rp_status (*flush)(rp_actor *actor, rp_wait wait, rp_error *err);
    /* Returns the number of items written so far. */
    int64_t (*created)(const rp_actor *actor);
    /* Describe and restore the state of the actor for snapshots, as get_state() and restored()
     * of an agent do (agent.h). */
    size_t (*get_state)(rp_actor *actor, rp_state_part *parts);
    rp_status (*restored)(rp_actor *actor, rp_error *err);
    void (*free)(rp_actor *actor);
    /* Sets the number of actors (`actors`) and the index of this actor among them, counted from
     * 0. From this call on, the actor explores as these two numbers require. NULL: exploration
     * does not depend on these numbers. */
    void (*set_group)(rp_actor *actor, int64_t index, int64_t actors);
} rp_actor_class;

struct rp_actor {
    const rp_actor_class *type;
    const rp_real *params;  /* the parameters: `parameter_count` numbers, which belong to the
                               owner. The owner must set the field before act() */
    size_t parameter_count; /* set by the actor */
    double exploration;     /* how much the actor explores now. DQN: the largest epsilon of its
                               environments; DPG: the standard deviation of the noise; SAC: the
                               temperature */
};

/* Frees an actor with its own function. Items that are not confirmed can be lost, so the owner
 * should call flush() first. NULL is fine. */
RP_API void rp_actor_free(rp_actor *actor);

RP_END_DECLS

#endif
