/* SPDX-License-Identifier: Apache-2.0 */
/* Actors: the half of an agent that acts.
 *
 * An actor acts in a group of environments with exploration of its own, and writes what it sees
 * to the replay through a client of any kind, with priorities. It has no parameters of its own:
 * the owner points `params` at some, and may point it at others between any two calls. Learners
 * (learner.h) make parameters; they may be in another process.
 *
 * A struct of functions, so a program can bring an actor of its own: embed rp_actor as the
 * first member. One thread at a time may use an actor. */
#ifndef REPRISE_RL_ACTOR_H
#define REPRISE_RL_ACTOR_H

#include "reprise/rl/agent.h"
#include "reprise/wait.h"

RP_BEGIN_DECLS

typedef struct rp_actor rp_actor;

typedef struct rp_actor_class {
    const char *name; /* "dqn" */
    /* Chooses an action for every copy, exploring. */
    void (*act)(rp_actor *actor, const void *observations, void *actions);
    /* Takes the first observations of all copies: before the first step, and whenever all
     * copies begin anew. Episodes that have not ended are dropped; their items are sent. */
    rp_status (*begin)(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err);
    /* Writes one step of every copy to the replay. Waits while too many items are unconfirmed:
     * this is where the rate limiter holds up an actor. After RP_DEADLINE and RP_CANCELLED
     * nothing has been written, and the call can be repeated. Else a status of the replay,
     * after which begin() is needed. */
    rp_status (*observe)(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err);
    /* Sends all items and waits until they are confirmed. */
    rp_status (*flush)(rp_actor *actor, rp_wait wait, rp_error *err);
    /* The items written so far. */
    int64_t (*created)(const rp_actor *actor);
    /* Describe and take the state, as the functions of an agent do (agent.h). */
    size_t (*get_state)(rp_actor *actor, rp_state_part *parts);
    rp_status (*restored)(rp_actor *actor, rp_error *err);
    void (*free)(rp_actor *actor);
    /* The actor is number `index` of `actors` from now on, which may change how it explores.
     * NULL: it does not. */
    void (*set_group)(rp_actor *actor, int64_t index, int64_t actors);
} rp_actor_class;

struct rp_actor {
    const rp_actor_class *type;
    const rp_real *params;  /* of the owner, `parameter_count` numbers; set before act() */
    size_t parameter_count; /* set by the actor */
    double exploration;     /* of the copy that explores most, now: epsilon, or a deviation */
};

/* Frees an actor by its own function. Items that are not confirmed may be lost: flush first.
 * NULL is fine. */
RP_API void rp_actor_free(rp_actor *actor);

RP_END_DECLS

#endif
