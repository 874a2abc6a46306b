/* SPDX-License-Identifier: Apache-2.0 */
/* The response to an operation on rollouts. A response with groups waits for room, and is made
 * in steps, so that a large one does not delay other calls. Large values are not copied: the
 * message keeps the groups until it has been written.
 *
 * If the message is released before it was written whole, the lease of its groups is released,
 * so that they are drawn again at once.
 *
 * While a response waits for room, its bytes count in the bytes of waiting calls (pinned.h), as
 * its groups may have been removed. It is refused over their limits.
 *
 * Invariants:
 *   P1  made_bytes is counted in connection->making_bytes, and is_making in ->makers;
 *   P2  waiting_bytes is counted in connection->parked_bytes and in the server's pinned_bytes;
 *       it is 0 unless the response waits for room. */
#ifndef RP_SERVER_RPC_ROLLOUT_REPLY_H
#define RP_SERVER_RPC_ROLLOUT_REPLY_H

#include "rollouts/rollout_messages.h"
#include "server/core/task.h"

/* Begins the struct of a call. */
typedef struct rp_rollout_reply {
    rp_task task; /* first */
    bool has_message, is_making, waits_for_room;
    rp_message *message; /* that is being made, or NULL */
    rp_rollout_batch_writer writer;
    size_t bytes; /* that the message will have */
    size_t made_bytes, waiting_bytes;
    uint64_t lsn;
    rp_timer timer; /* while it waits for room */
} rp_rollout_reply;

/* Returns a reference to the rollouts, or NULL, with the call ended, if there are none. */
rp_rollouts *rp_rollouts_of(rp_task *task, rp_string name);

/* False, with the call ended, if the call has had a message. */
RP_NODISCARD bool rp_rollout_take_message(rp_rollout_reply *reply);

/* The units of work of a draw or a peek, without the bytes of its response. */
size_t rp_rollout_batch_work(const rp_rollout_batch *batch);

/* The number of groups, from the first on, whose response takes at most `most` bytes. */
size_t rp_rollout_batch_fit(const rp_rollout_batch *batch, size_t most);
/* Releases the lease of a batch, if it has one, and frees it. NULL is fine. */
void rp_rollout_undraw(rp_rollouts *rollouts, rp_rollout_batch *batch);

/* Responds with a result, whose batch it takes. Adds the work of the batch. */
void rp_rollout_respond(rp_rollout_reply *reply, rp_rollouts *rollouts,
                        const rp_rollout_result *result);

/* The callbacks of the kinds; on_close calls rp_rollout_reply_close(). */
void rp_rollout_half_close(rp_task *task);
void rp_rollout_turn(rp_task *task);
void rp_rollout_room(rp_task *task);
void rp_rollout_reply_close(rp_rollout_reply *reply);

#endif
