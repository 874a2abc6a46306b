/* SPDX-License-Identifier: Apache-2.0 */
/* The learner (learner.h) of an agent for continuous actions. It draws batches from the replay,
 * updates the parameters and the target networks, and writes new priorities back.
 *
 * Several learner threads can work on one batch (team_update.h): each computes the gradients of
 * its share, which is a range of the batch's rows. Each thread owns an "update" object for this
 * work: tapes (nn.h), gradients and, for the first thread only, the optimizers. An update
 * object without optimizers is called a helper. */
#ifndef RP_AGENTS_BOX_BOX_LEARNER_H
#define RP_AGENTS_BOX_BOX_LEARNER_H

#include "agents/box/box_batch.h"
#include "agents/box/box_nets.h"
#include "agents/team_update.h"
#include "reprise/client.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"

/* The arguments of new_update(). Borrowed for the call of new_update(), except `nets`. */
typedef struct rp_box_update_options {
    const rp_allocator *alloc;
    const rp_box_nets *nets; /* borrowed until the update object is freed */
    const void *settings;    /* the agent's settings struct */
    size_t rows;             /* rows in this thread's share */
    size_t all_rows;         /* rows in the whole batch */
    bool is_helper;          /* true: make a helper, which has no optimizers */
} rp_box_update_options;

/* How one kind of agent (DPG or SAC) learns. Only these functions know the type of the update
 * objects. All pointers in this struct are static. */
typedef struct rp_box_learning {
    const rp_box_shape *shape;
    /* Makes an update object. Returns owned. */
    rp_status (*new_update)(const rp_box_update_options *options, void **out, rp_error *err);
    void (*free_update)(void *update);
    /* Returns the array of the gradients, in the layout of the parameters. The address of the
     * array does not change until the update object is freed. */
    rp_real *(*grads)(void *update);
    /* Computes the gradients of a share, as rp_update_find specifies (team_update.h). `errors`
     * receives the TD error of each row. */
    rp_update_found (*find)(void *update, const rp_real *params, const rp_real *target_params,
                            const rp_box_batch *batch, size_t rows, rp_real *errors);
    /* Describes the parts of the parameters, each of which has an optimizer of its own
     * (rp_learning_network in learning.h), in the order of the parameters. Returns the number
     * of parts, at most RP_LEARNING_NETWORKS. */
    size_t (*networks)(void *update, const rp_box_nets *nets, rp_learning_network *out);
    /* Moves the optimizers of `from` to `update`, which must be a helper for the same networks.
     * After the call `from` is a helper. */
    void (*take_optimizers)(void *update, void *from);
    /* Writes the initial values of the parameters that are in no network (rp_box_shape.own).
     * NULL: there are no such parameters. */
    void (*init_own)(const void *settings, rp_real *own);
} rp_box_learning;

/* The arguments of rp_box_learner_new(). `how`, `client` and the arrays of bounds in `spec`
 * must outlive the learner. The other pointers are borrowed for the call. */
typedef struct rp_box_learner_options {
    const rp_box_learning *how;
    const void *settings;    /* the agent's settings struct; checked and copied */
    const rp_env_spec *spec; /* copied */
    rp_client *client;
    rp_store *store;   /* see rp_replay_options (replay.h); may be NULL */
    size_t mutate_for; /* see rp_replay_options; has no effect if `store` is set */
    rp_pcg64 *rng;     /* the generator of the initial parameters; rp_box_learner_new() advances
                          it */
} rp_box_learner_options;

/* Makes a learner. `alloc` NULL means rp_allocator_default(). Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_NODISCARD rp_status rp_box_learner_new(const rp_allocator *alloc,
                                          const rp_box_learner_options *options,
                                          rp_learner **out, rp_error *err);

#endif
