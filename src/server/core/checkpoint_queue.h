/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of Checkpoint calls, by which clients make the server write a checkpoint.
 *
 * If no checkpoint is being written, a call starts one. Calls that arrive while a checkpoint is
 * being written share the next one, because the current checkpoint can lack changes that the
 * server has already acknowledged to these clients. So for any number of calls, at most one
 * checkpoint is being written and one is waiting. A few checkpoints are allowed to follow each
 * other without a pause. After these, checkpoints start at least checkpoint_spacing_ms (a limit
 * of the server) apart.
 *
 * Calls arrive on every worker. The first worker's thread starts the checkpoints and owns the
 * timer, which delays a checkpoint that must not start yet. rpc/checkpoint_call.c implements
 * the functions below. */
#ifndef RP_SERVER_CORE_CHECKPOINT_QUEUE_H
#define RP_SERVER_CORE_CHECKPOINT_QUEUE_H

#include "net/loop.h"
#include "server/bounds/bucket.h"

struct rp_server;
typedef struct rp_checkpoint_call rp_checkpoint_call;

typedef struct rp_checkpoint_queue {
    /* The server's lock guards the first five fields. */
    rp_checkpoint_call *waiting; /* list of the calls that wait for the next checkpoint */
    rp_checkpoint_call *running; /* list of the calls that share the checkpoint being written */
    bool is_busy;                /* a checkpoint is being written */
    bool is_posted;              /* `post` is in the queue of the first worker's loop */
    rp_bucket bucket;
    rp_post post;
    rp_timer timer; /* used by the first worker's thread only */
} rp_checkpoint_queue;

/* Returns whether a checkpoint is allowed to begin now. If true, takes a token from `bucket`,
 * the token bucket that limits the rate of checkpoints. Takes the server's lock. Any thread may
 * call it. */
RP_NODISCARD bool rp_checkpoint_queue_spend(struct rp_server *server, int64_t now_ns);

/* Must be called once, before the workers start. */
void rp_checkpoint_queue_init(rp_checkpoint_queue *queue);

#endif
