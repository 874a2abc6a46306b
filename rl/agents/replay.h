/* SPDX-License-Identifier: Apache-2.0 */
/* A learner's end of the replay: batches of n-step transitions (adder.h) out, priorities in.
 *
 * Batches are drawn in one of two ways:
 *   by a sampler    of a client of any kind, which prefetches on threads of its own
 *   from a table    of a store of this process, on the caller's thread: bit by bit reproducible
 *
 * Any client with the role `write` can insert items. One that is bad (item_check.h), or cannot
 * be decoded, is left out of its batch, deleted from the table, and counted. Its
 * row is then a copy of a sound row, with weight 0, so that batches keep their size.
 *
 * One thread at a time may use a replay. */
#ifndef RP_AGENTS_REPLAY_H
#define RP_AGENTS_REPLAY_H

#include "reprise/client.h"
#include "reprise/rl/agent.h"
#include "reprise/rl/env.h"
#include "reprise/rl/nn.h"

/* The name of the table of every agent. */
#define RP_REPLAY_TABLE "replay"
/* Added to every priority: an item with priority 0 would never be drawn again. */
#define RP_PRIORITY_FLOOR 1e-3

typedef struct rp_replay rp_replay;

typedef struct rp_replay_options {
    const rp_env_spec *spec; /* copied */
    rp_client *client;       /* must outlive the replay */
    rp_store *store;         /* draw from its table; NULL: by a sampler of the client */
    size_t batch;
    double beta;       /* exponent of importance weights; 0: all weights are 1 */
    size_t prefetch;   /* batches that the sampler holds; 0: 4 */
    size_t mutate_for; /* batches whose priorities are written in one call; 0: 1 */
} rp_replay_options;

/* A batch, one row an item. The memory is the replay's, the same for all batches; the learner
 * may write to it. */
typedef struct rp_replay_batch {
    void *observations, *next_observations; /* as the environment gives them */
    void *actions;
    float *rewards, *discounts; /* R and D of adder.h */
    rp_real *weights;
    size_t left_out; /* rows of weight 0; if not 0, an update must use `weights` */
} rp_replay_batch;

/* Makes a replay. The table need not exist yet, unless it is drawn from directly. Returns
 * owned. RP_NO_RESOURCE, RP_NOT_FOUND. */
RP_NODISCARD rp_status rp_replay_new(const rp_allocator *alloc,
                                     const rp_replay_options *options, rp_replay **out,
                                     rp_error *err);
void rp_replay_free(rp_replay *replay); /* NULL is fine */

/* The memory of the batches. */
const rp_replay_batch *rp_replay_get_batch(const rp_replay *replay);

/* Draws a batch with at least one sound row. After RP_DEADLINE the next call goes on where this
 * one stopped; after any other failure it begins anew. RP_DEADLINE, RP_CANCELLED, RP_CORRUPT
 * (nearly all items have been bad for long), or a status of the sampler. */
RP_NODISCARD rp_status rp_replay_draw(rp_replay *replay, rp_wait wait, rp_error *err);

/* After a loss over its bound: leaves out the rows whose error is not finite, or larger than
 * `most` in size, if they are of one item, or of no more than half of the items of the batch;
 * otherwise the parameters have diverged. If no row is sound, all rows become 0, with weight 0.
 * Returns whether the batch has changed; then the caller computes errors and loss anew. */
bool rp_replay_refuse(rp_replay *replay, const rp_real *errors, double most, rp_cancel *cancel);

/* Fills in bad_items and bad_item. */
void rp_replay_get_bad(const rp_replay *replay, rp_agent_metrics *out);

/* Sets the priority of each item of the batch that was not left out: |error| +
 * RP_PRIORITY_FLOOR. They are sent with those of other batches, within 5 s. If the replay is
 * away they are dropped, since they are soon out of date: the next draw fails. Writes the
 * largest to `*largest` if that is smaller.
 * RP_CANCELLED, RP_INVALID. */
RP_NODISCARD rp_status rp_replay_prioritize(rp_replay *replay, const rp_real *errors,
                                            double *largest, rp_cancel *cancel, rp_error *err);

#endif
