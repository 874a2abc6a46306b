/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an actor's steps to the replay. An actor acts in a group of parallel environments. An
 * adder (adder.h) turns the steps of all of them into items of the table "replay". The state of
 * the adder can be saved in snapshots (adder_window.h).
 *
 * One thread at a time may use a writer. */
#ifndef RP_AGENTS_GROUP_WRITER_H
#define RP_AGENTS_GROUP_WRITER_H

#include "agents/replay_plan.h"
#include "reprise/client.h"
#include "reprise/rl/agent.h"

typedef struct rp_group_writer rp_group_writer;

typedef struct rp_group_writer_options {
    const rp_replay_plan *plan; /* copied */
    double reward_scale;        /* rewards are multiplied by this */
    rp_client *client;          /* must outlive the writer */
    size_t max_in_flight;       /* rp_group_writer_add() waits while the environments have, on
                                   average, more unconfirmed items (not yet accepted by the
                                   table) than this; 0: 1,000 */
    bool settled;               /* true: the new items are in the table when
                                   rp_group_writer_add() returns. Needs a client of a store in
                                   this process */
    /* Computes the priorities of new items, as prioritize() of rp_adder_table does
     * (adder.h). */
    rp_status (*prioritize)(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err);
    void *ctx;
} rp_group_writer_options;

/* Makes a writer. `wait` limits the wait for the signature of the table. Returns owned.
 * Errors: RP_NO_RESOURCE, or a status of rp_adder_new(). */
RP_NODISCARD rp_status rp_group_writer_new(const rp_allocator *alloc,
                                           const rp_group_writer_options *options, rp_wait wait,
                                           rp_group_writer **out, rp_error *err);
void rp_group_writer_free(rp_group_writer *writer); /* NULL is fine */

/* Begins an episode in every environment. First sends all items of earlier steps and waits
 * until they are confirmed, and drops episodes that have not ended. */
RP_NODISCARD rp_status rp_group_writer_begin(rp_group_writer *writer, const void *observations,
                                             rp_wait wait, rp_error *err);

/* Adds one step of every environment. After RP_DEADLINE and RP_CANCELLED nothing has been
 * added, and the call can be repeated. */
RP_NODISCARD rp_status rp_group_writer_add(rp_group_writer *writer, const rp_agent_step *step,
                                           rp_wait wait, rp_error *err);

/* Sends all items and waits until they are confirmed. */
RP_NODISCARD rp_status rp_group_writer_flush(rp_group_writer *writer, rp_wait wait,
                                             rp_error *err);
/* Returns the number of items created so far. */
int64_t rp_group_writer_created(const rp_group_writer *writer);

/* Returns the state of the adder as one part of an agent's state (rp_state_part in agent.h). */
rp_state_part rp_group_writer_state(rp_group_writer *writer);
/* Restores the adder from a saved state. Before this call, the caller must write the saved
 * state to the bytes of the part that rp_group_writer_state() returned. The writer must be new.
 * Errors: RP_CORRUPT (the bytes are not a valid state), or a status of the adder. */
RP_NODISCARD rp_status rp_group_writer_restored(rp_group_writer *writer, rp_error *err);

#endif
