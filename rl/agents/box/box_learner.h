/* SPDX-License-Identifier: Apache-2.0 */
/* The learning half of an agent of continuous actions: batches of the replay to updates,
 * priorities back, targets moved. Several learners share the updates (team_update.h). */
#ifndef RP_AGENTS_BOX_BOX_LEARNER_H
#define RP_AGENTS_BOX_BOX_LEARNER_H

#include "agents/box/box_batch.h"
#include "agents/box/box_nets.h"
#include "agents/team_update.h"
#include "reprise/client.h"
#include "reprise/rl/learner.h"
#include "reprise/rl/random.h"

/* What the gradients of one learner are made of. Borrowed for one call. */
typedef struct rp_box_update_options {
    const rp_allocator *alloc;
    const rp_box_nets *nets; /* borrowed until the update is freed */
    const void *settings;    /* of the agent */
    size_t rows;             /* of this learner's share of a batch */
    size_t all_rows;         /* of the batch */
    bool is_helper;          /* has no optimizers: the first learner has them */
} rp_box_update_options;

/* How an agent learns. An update is what one learner has: tapes, gradients, optimizers. Static.
 */
typedef struct rp_box_learning {
    const rp_box_shape *shape;
    /* Makes an update. Returns owned. */
    rp_status (*new_update)(const rp_box_update_options *options, void **out, rp_error *err);
    void (*free_update)(void *update);
    rp_real *(*grads)(void *update); /* always the same array, as the parameters */
    /* Computes the gradients of a share, as rp_update_find does (team_update.h). */
    rp_update_found (*find)(void *update, const rp_real *params, const rp_real *target_params,
                            const rp_box_batch *batch, size_t rows, rp_real *errors);
    /* Writes the parameters that have an optimizer of their own, in order. Returns their
     * number, at most RP_LEARNING_NETWORKS. */
    size_t (*networks)(void *update, const rp_box_nets *nets, rp_learning_network *out);
    /* Moves the optimizers of another update to this one, a helper of the same networks. Then
     * the other one is a helper. */
    void (*take_optimizers)(void *update, void *from);
    /* Writes the first values of the agent's own parameters. NULL: it has none. */
    void (*init_own)(const void *settings, rp_real *own);
} rp_box_learning;

/* What a learner works with. The pointers are borrowed; the client must outlive the learner. */
typedef struct rp_box_learner_options {
    const rp_box_learning *how;
    const void *settings;    /* of the agent; checked and copied */
    const rp_env_spec *spec; /* copied */
    rp_client *client;
    rp_store *store;
    size_t mutate_for;
    rp_pcg64 *rng; /* of the first parameters; goes on */
} rp_box_learner_options;

/* Makes a learner. `alloc` NULL is rp_allocator_default(). Returns owned. RP_INVALID,
 * RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_NODISCARD rp_status rp_box_learner_new(const rp_allocator *alloc,
                                          const rp_box_learner_options *options,
                                          rp_learner **out, rp_error *err);

#endif
