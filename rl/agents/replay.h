/* SPDX-License-Identifier: Apache-2.0 */
/* A learner's access to the replay: draws batches of n-step transitions (adder.h) from the
 * table "replay", and writes priorities back.
 *
 * Batches are drawn in one of two ways:
 *   by a sampler    works with every client; the sampler prefetches on threads of its own
 *   from a table    of a store in this process, on the caller's thread; runs give the same bits
 *
 * Any client with the role `write` can insert items, so some items are possibly bad. An item is
 * bad if it cannot be decoded or fails the checks of item_check.h; all other items are sound.
 * Bad items are counted. They are deleted if the table has the signature of the agent. If the
 * table is not known to have this signature, an item with other columns than the agent's makes
 * rp_replay_draw() fail with RP_PRECONDITION. The row of a bad item is left out of the batch:
 * it is replaced by a copy of a sound row, with weight 0. Batches therefore keep their size.
 *
 * One thread at a time may use an rp_replay. */
#ifndef RP_AGENTS_REPLAY_H
#define RP_AGENTS_REPLAY_H

#include "reprise/client.h"
#include "reprise/rl/agent.h"
#include "reprise/rl/env.h"
#include "reprise/rl/nn.h"

/* Added to every priority, because an item with priority 0 would never be drawn again. */
#define RP_PRIORITY_FLOOR 1e-3

typedef struct rp_replay rp_replay;

typedef struct rp_replay_options {
    const rp_env_spec *spec; /* copied */
    rp_client *client;       /* must outlive the replay */
    rp_store *store;         /* not NULL: draw from the table of this store; NULL: draw by a
                                sampler of `client` */
    size_t batch;            /* items in a batch */
    double beta;             /* exponent of importance weights; 0: all weights are 1 */
    size_t prefetch;         /* batches that the sampler prefetches; 0: 4 */
    size_t mutate_for;       /* number of batches whose priorities are written in one call; 0:
                                1 */
} rp_replay_options;

/* A batch, with one row per item. The arrays belong to the rp_replay, which reuses them for
 * every batch. The learner is allowed to change them. */
typedef struct rp_replay_batch {
    void *observations, *next_observations; /* in the dtype of the environment */
    void *actions;
    float *rewards, *discounts; /* R and D of adder.h */
    rp_real *weights;           /* importance weights; the largest is 1 */
    size_t left_out;            /* number of rows left out; if it is not 0, an update must use
                                   `weights` */
} rp_replay_batch;

/* Makes an rp_replay. If `options->store` is set, the store must have the table "replay"
 * already. Otherwise the table need not exist yet. Returns owned.
 * Errors: RP_NO_RESOURCE, RP_NOT_FOUND (the store has no table "replay"). */
RP_NODISCARD rp_status rp_replay_new(const rp_allocator *alloc,
                                     const rp_replay_options *options, rp_replay **out,
                                     rp_error *err);
void rp_replay_free(rp_replay *replay); /* NULL is fine */

/* Returns the batch. Each rp_replay_draw() replaces its contents. The pointer is valid until
 * the rp_replay is freed. */
const rp_replay_batch *rp_replay_get_batch(const rp_replay *replay);

/* Draws a batch with at least one sound row. After RP_DEADLINE the next call keeps the items
 * drawn so far. After any other failure the next call starts a new batch.
 * Errors: RP_DEADLINE, RP_CANCELLED, RP_CORRUPT (nearly all items of the last 1,000 batches
 * were bad), RP_PRECONDITION (the table has the items of another program), or a status of the
 * sampler or the table. */
RP_NODISCARD rp_status rp_replay_draw(rp_replay *replay, rp_wait wait, rp_error *err);

/* Handles a batch whose loss is over its bound: either some rows are bad, or the parameters
 * have diverged. A row is suspect if its error is not finite, or has a magnitude over `most`.
 * Several rows can be of the same item. The suspect rows are taken to be bad in two cases: they
 * are of at most half of the items of the batch; or they are all of one item, and the batch has
 * 8 rows or more. In these cases the function leaves the suspect rows out, and returns true. If
 * no sound row remains, it sets all columns and weights to 0. After the result true the caller
 * must compute errors and loss again. In all other cases the parameters are taken to have
 * diverged: the batch does not change, and the function returns false. */
bool rp_replay_refuse(rp_replay *replay, const rp_real *errors, double most, rp_cancel *cancel);

/* Fills in the fields bad_items and bad_item. */
void rp_replay_get_bad(const rp_replay *replay, rp_agent_metrics *out);

/* Sets the priority of each item of the batch that was not left out to |error| +
 * RP_PRIORITY_FLOOR. The function collects priorities until it can send the priorities of
 * `mutate_for` batches in one request, which has a timeout of 5 s. If the server or the table
 * cannot be reached, the priorities are dropped without an error, because they are soon out of
 * date; the next rp_replay_draw() reports the failure. If the largest of the priorities is
 * larger than `*largest`, sets `*largest` to it.
 * Errors: RP_CANCELLED, RP_INVALID. */
RP_NODISCARD rp_status rp_replay_prioritize(rp_replay *replay, const rp_real *errors,
                                            double *largest, rp_cancel *cancel, rp_error *err);

#endif
