/* SPDX-License-Identifier: Apache-2.0 */
/* The response to an operation on rollouts, a named buffer of groups of items
 * (reprise/rollouts.h). A response with groups first waits until the connection has room for it
 * (core/connection_room.h). When there is room, the response is made in steps, so that a large
 * response does not delay other calls. Large values are not copied: the message keeps the
 * groups until it has been written.
 *
 * A draw leases its groups to a consumer. If the message is released before all of it was
 * written, this lease is released, so that the groups can be drawn again at once.
 *
 * While a response waits for room, it keeps its groups in memory, even if they are removed from
 * the rollouts, which then no longer count their bytes. So the bytes of a waiting response
 * count as parked bytes (core/pinned.h). If the parked bytes exceed their limits, the response
 * is refused.
 *
 * Invariants:
 *   P1  connection->making_bytes includes made_bytes, the bytes of this response so far. If
 *       is_making, the response takes several steps, and connection->makers counts the call;
 *   P2  connection->parked_bytes and the server's pinned_bytes include waiting_bytes, which is
 *       0 unless the response waits for room. */
#ifndef RP_SERVER_RPC_ROLLOUT_REPLY_H
#define RP_SERVER_RPC_ROLLOUT_REPLY_H

#include "rollouts/rollout_messages.h"
#include "server/core/task.h"

/* The state of a response. It must be the first member of the struct of the call. */
typedef struct rp_rollout_reply {
    rp_task task; /* must be the first member */
    bool has_message, is_making, waits_for_room;
    rp_message *message; /* the message that is being made, or NULL */
    rp_rollout_batch_writer writer;
    size_t bytes; /* size that the message will have */
    size_t made_bytes, waiting_bytes;
    uint64_t lsn; /* the operation's log sequence number: the response is sent once the journal
                     has made it safe (core/safety.h) */
    rp_timer timer; /* armed while the response waits for room */
} rp_rollout_reply;

/* Returns a reference to the rollouts with this name. If there are none, ends the call and
 * returns NULL. */
rp_rollouts *rp_rollouts_of(rp_task *task, rp_string name);

/* Called for each request message of a call. Returns true for the first message. For a further
 * message, ends the call and returns false. */
RP_NODISCARD bool rp_rollout_take_message(rp_rollout_reply *reply);

/* Returns the units of work (core/deferral.h) of a draw or a peek. The units for the bytes of
 * the response are not included. */
size_t rp_rollout_batch_work(const rp_rollout_batch *batch);

/* Returns how many groups, from the first on, fit into a response of `most` bytes. */
size_t rp_rollout_batch_fit(const rp_rollout_batch *batch, size_t most);
/* Releases the lease of a batch, if it has one, and frees it. NULL is fine. */
void rp_rollout_undraw(rp_rollouts *rollouts, rp_rollout_batch *batch);

/* Responds with `result`, and takes ownership of its batch. Adds rp_rollout_batch_work() of the
 * batch to the work that this turn (iteration) of the worker's loop has done (core/deferral.h).
 */
void rp_rollout_respond(rp_rollout_reply *reply, rp_rollouts *rollouts,
                        const rp_rollout_result *result);

/* For the task kinds (core/task.h) of ApplyRollouts and PeekRollouts. The first three functions
 * are their callbacks on_half_close, on_turn and on_room. Their callbacks on_end and on_close
 * call rp_rollout_reply_close(). */
void rp_rollout_half_close(rp_task *task);
void rp_rollout_turn(rp_task *task);
void rp_rollout_room(rp_task *task);
void rp_rollout_reply_close(rp_rollout_reply *reply);

#endif
