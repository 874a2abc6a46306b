/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of calls of Checkpoint.
 *
 * Calls that arrive while no checkpoint is being written share the one that is started for
 * them. Calls that arrive while one is being written share the next: changes that were
 * acknowledged to them may not be in the current one. So at most two are under way, for any
 * number of calls. A few checkpoints may follow each other at once; further ones start
 * checkpoint_spacing_ms apart.
 *
 * Calls arrive on every worker; checkpoints are started on the first worker's thread, which has
 * the timer. rpc/checkpoint_call.c has the functions. */
#ifndef RP_SERVER_CORE_CHECKPOINT_QUEUE_H
#define RP_SERVER_CORE_CHECKPOINT_QUEUE_H

#include "net/loop.h"
#include "server/bounds/bucket.h"

typedef struct rp_checkpoint_call rp_checkpoint_call;

typedef struct rp_checkpoint_queue {
    rp_checkpoint_call *waiting; /* for the next; under the server's lock, as the next four */
    rp_checkpoint_call *running; /* that share the one being written */
    bool is_busy;                /* one is being written */
    bool is_posted;              /* the post is in the queue of the first worker's loop */
    rp_bucket bucket;
    rp_post post;
    rp_timer timer; /* the first worker's thread */
} rp_checkpoint_queue;

/* Once, before the workers start. */
void rp_checkpoint_queue_init(rp_checkpoint_queue *queue);

#endif
