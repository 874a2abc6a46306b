/* SPDX-License-Identifier: Apache-2.0 */
/* Writes an actor's steps to the replay. The actor has a group of copies of its environment.
 * An adder (adder.h) turns the steps of all copies into items of the table "replay". The state
 * of the adder can be saved (adder_window.h).
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
    size_t max_in_flight;       /* unconfirmed items of one copy of the environment, above
                                   which add() waits; 0: 1,000 */
    bool settled;               /* items are in the table when add() returns */
    /* Computes the priorities of new items, as in rp_adder_table. */
    rp_status (*prioritize)(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err);
    void *ctx;
} rp_group_writer_options;

/* Makes a writer. Waits as `wait` says for the signature of the table. Returns owned.
 * RP_NO_RESOURCE, or a status of rp_adder_new(). */
RP_NODISCARD rp_status rp_group_writer_new(const rp_allocator *alloc,
                                           const rp_group_writer_options *options, rp_wait wait,
                                           rp_group_writer **out, rp_error *err);
void rp_group_writer_free(rp_group_writer *writer); /* NULL is fine */

/* Begins an episode in every copy. Episodes that have not ended are dropped. */
RP_NODISCARD rp_status rp_group_writer_begin(rp_group_writer *writer, const void *observations,
                                             rp_wait wait, rp_error *err);

/* Adds one step of every copy. After RP_DEADLINE and RP_CANCELLED nothing has been added, and
 * the call can be repeated. */
RP_NODISCARD rp_status rp_group_writer_add(rp_group_writer *writer, const rp_agent_step *step,
                                           rp_wait wait, rp_error *err);

RP_NODISCARD rp_status rp_group_writer_flush(rp_group_writer *writer, rp_wait wait,
                                             rp_error *err);
int64_t rp_group_writer_created(const rp_group_writer *writer); /* items */

/* The state of the adder, as one part of a state. */
rp_state_part rp_group_writer_state(rp_group_writer *writer);
/* Takes the state that was written to that part. The writer is new. RP_CORRUPT (the bytes
 * cannot be a state), or a status of the adder. */
RP_NODISCARD rp_status rp_group_writer_restored(rp_group_writer *writer, rp_error *err);

#endif
