/* SPDX-License-Identifier: Apache-2.0 */
/* Where calls of Checkpoint wait for one to be written.
 *
 * Those that come while none is being written begin one, which all of them share. Those that
 * come while one is share the next: what they have seen acknowledged may not be in the one that
 * runs. So there are never more than two under way, however many ask. A few may follow each
 * other at once; after that they begin checkpoint_spacing_ms apart.
 *
 * Requests come from every worker; checkpoints are begun on the first worker's thread, which
 * has the timer. The lists are under the server's lock. */
#ifndef RP_SERVER_CORE_CHECKPOINT_DESK_H
#define RP_SERVER_CORE_CHECKPOINT_DESK_H

#include "net/loop.h"
#include "server/bounds/bucket.h"

typedef struct rp_checkpoint_call rp_checkpoint_call;

typedef struct rp_checkpoint_desk {
    rp_checkpoint_call *waiting; /* for the next; under the server's lock, as the next four */
    rp_checkpoint_call *running; /* who share the one being written */
    bool is_busy;                /* one is being written */
    bool is_nudged;              /* the post is on its way to the first worker */
    rp_bucket bucket;
    rp_post nudge;
    rp_timer timer; /* the first worker's thread */
} rp_checkpoint_desk;

/* Once, before the workers start. */
void rp_checkpoint_desk_init(rp_checkpoint_desk *desk);

#endif
