/* SPDX-License-Identifier: Apache-2.0 */
/* The actor (actor.h) of an agent for continuous actions. It chooses actions with exploration
 * noise, clips them to the bounds of the environment, and writes items to the replay with their
 * initial priorities.
 *
 * An item is a transition (o, u, R, D, o'): observation, action, n-step reward, n-step discount
 * and later observation, as adder.h defines them. Its initial priority is
 *
 *   |R + discount * D * V(o') - Q(o, u)| + RP_PRIORITY_FLOOR
 *
 * where Q is the value by the critic and V(o') is the value of an action of the policy at o'
 * (for SAC, the soft value of sac_rating.h), both with the actor's current parameters (Horgan
 * et al. 2018, algorithm 1). RP_PRIORITY_FLOOR is a small constant (replay.h). If there are
 * several critics, the priority is computed from the largest of the absolute values. */
#ifndef RP_AGENTS_BOX_BOX_ACTOR_H
#define RP_AGENTS_BOX_BOX_ACTOR_H

#include "agents/box/box_batch.h"
#include "agents/box/box_nets.h"
#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/random.h"

/* How the actor of one kind of agent (DPG or SAC) runs its networks. A "rating" is the object
 * that runs the networks forward; only these functions know its type. All pointers in this
 * struct are static. Actions are from -1 to 1, as rp_box_to_unit() writes them
 * (agents/box/box.h). */
typedef struct rp_box_acting {
    const rp_box_shape *shape;
    /* Makes a rating for batches of at most `rows` rows. Returns owned. */
    rp_status (*new_rating)(const rp_allocator *alloc, const rp_box_nets *nets, size_t rows,
                            void **out, rp_error *err);
    void (*free_rating)(void *rating);
    /* Writes an action for each of the `rows` observations in `now`. The components can be out
     * of [-1, 1], because the caller clips them. `noise` has as many numbers as `actions`. */
    void (*act)(void *rating, const rp_real *params, const rp_real *now, const double *noise,
                size_t rows, rp_real *actions);
    /* Writes Q(o, u) of `rows` items to `values`: the values of all rows by the first critic,
     * then those by the next critic. Writes V(o') of each item to `later`. Of `items`, only the
     * fields now, actions, next and next_noise are set. */
    void (*rate)(void *rating, const rp_real *params, const rp_box_batch *items, size_t rows,
                 rp_real *values, rp_real *later);
    /* Returns the number that the actor stores in rp_actor.exploration. If this function is
     * NULL, the actor stores the standard deviation of the noise in rp_actor.exploration. */
    double (*exploration)(const rp_box_nets *nets, const rp_real *params);
} rp_box_acting;

/* The arguments of rp_box_actor_new(). `acting`, `client` and the arrays of bounds in `spec`
 * must outlive the actor. The other pointers are borrowed for the call. */
typedef struct rp_box_actor_options {
    const rp_box_acting *acting;
    const void *settings; /* the agent's settings struct; checked */
    const rp_env_spec *spec;
    rp_client *client;
    bool settled;         /* see rp_group_writer_options (group_writer.h) */
    size_t max_in_flight; /* see rp_group_writer_options */
    const rp_pcg64 *rng;  /* the random stream of the noise; copied */
    double noise;         /* the standard deviation of the noise */
} rp_box_actor_options;

/* Makes an actor. `wait` limits the wait for the signature of the table "replay". `alloc` NULL
 * means rp_allocator_default(). Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, or a status of the client. */
RP_NODISCARD rp_status rp_box_actor_new(const rp_allocator *alloc,
                                        const rp_box_actor_options *options, rp_wait wait,
                                        rp_actor **out, rp_error *err);

#endif
