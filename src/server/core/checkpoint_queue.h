/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of Checkpoint calls.
 *
 * Calls that arrive while no checkpoint is being written share the one that is started for
 * them. Calls that arrive while a checkpoint is being written share the next one, because
 * changes that their clients know to be acknowledged may be missing in the current one. So at
 * most one checkpoint is being written and one is waiting, for any number of calls. A few
 * checkpoints may follow each other at once; further ones start checkpoint_spacing_ms apart.
 *
 * Calls arrive on every worker. Checkpoints are started on the first worker's thread, which has
 * the timer. rpc/checkpoint_call.c implements the functions below. */
#ifndef RP_SERVER_CORE_CHECKPOINT_QUEUE_H
#define RP_SERVER_CORE_CHECKPOINT_QUEUE_H

#include "net/loop.h"
#include "server/bounds/bucket.h"

struct rp_server;
typedef struct rp_checkpoint_call rp_checkpoint_call;

typedef struct rp_checkpoint_queue {
    /* The first five fields are used under the server's lock. */
    rp_checkpoint_call *waiting; /* calls that wait for the next checkpoint */
    rp_checkpoint_call *running; /* calls that share the checkpoint being written */
    bool is_busy;                /* a checkpoint is being written */
    bool is_posted;              /* `post` is in the queue of the first worker's loop */
    rp_bucket bucket;
    rp_post post;
    rp_timer timer; /* used by the first worker's thread only */
} rp_checkpoint_queue;

/* Returns whether a checkpoint may begin now; if so, takes it from `bucket`. Takes the server's
 * lock. Any thread. */
RP_NODISCARD bool rp_checkpoint_queue_spend(struct rp_server *server, int64_t now_ns);

/* Call it once, before the workers start. */
void rp_checkpoint_queue_init(rp_checkpoint_queue *queue);

#endif
