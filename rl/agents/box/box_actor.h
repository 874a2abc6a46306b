/* SPDX-License-Identifier: Apache-2.0 */
/* The acting half of an agent of continuous actions: actions with noise, clipped to the bounds,
 * and items with priorities.
 *
 * The priority of a new item is |R + discount * D * V(o') - Q(o, u)| + RP_PRIORITY_FLOOR, where
 * R and D are of the item (adder.h), and V and Q are computed with the actor's own parameters
 * (Horgan et al. 2018, algorithm 1). If there are several critics, the largest |...| counts. */
#ifndef RP_AGENTS_BOX_BOX_ACTOR_H
#define RP_AGENTS_BOX_BOX_ACTOR_H

#include "agents/box/box_batch.h"
#include "agents/box/box_nets.h"
#include "reprise/client.h"
#include "reprise/rl/actor.h"
#include "reprise/rl/random.h"

/* How the networks of an agent are run. Static. */
typedef struct rp_box_acting {
    const rp_box_shape *shape;
    /* Makes a rating, which runs the networks forward on up to `rows` rows. Returns owned. */
    rp_status (*new_rating)(const rp_allocator *alloc, const rp_box_nets *nets, size_t rows,
                            void **out, rp_error *err);
    void (*free_rating)(void *rating);
    /* Writes an action for each of `rows` observations. Its numbers should be from -1 to 1; the
     * caller clips those that are not. `noise` has as many numbers as `actions`. */
    void (*act)(void *rating, const rp_real *params, const rp_real *now, const double *noise,
                size_t rows, rp_real *actions);
    /* Writes the values of the actions of `rows` items by each critic, one critic after the
     * other, and the values of their later observations. Only now, actions, next and
     * next_noise of `items` are set. */
    void (*rate)(void *rating, const rp_real *params, const rp_box_batch *items, size_t rows,
                 rp_real *values, rp_real *later);
    /* Returns what the actor reports as rp_actor.exploration. If it is NULL, the actor reports
     * the deviation of the noise. */
    double (*exploration)(const rp_box_nets *nets, const rp_real *params);
} rp_box_acting;

/* What an actor works with. The pointers are borrowed; the client must outlive the actor. */
typedef struct rp_box_actor_options {
    const rp_box_acting *acting;
    const void *settings; /* of the agent; checked and copied */
    const rp_env_spec *spec;
    rp_client *client;
    bool settled;
    size_t max_in_flight;
    const rp_pcg64 *rng; /* copied: the stream of noise */
    double noise;        /* its deviation */
} rp_box_actor_options;

/* Makes an actor. `alloc` NULL is rp_allocator_default(). Returns owned. RP_INVALID,
 * RP_NO_RESOURCE, or a status of the client. */
RP_NODISCARD rp_status rp_box_actor_new(const rp_allocator *alloc,
                                        const rp_box_actor_options *options, rp_wait wait,
                                        rp_actor **out, rp_error *err);

#endif
