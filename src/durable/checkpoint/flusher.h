/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that writes the queue of the segments (disk/segments.h) to disk while its owner, the
 * checkpoint thread, fills the queue. The thread exists from the first request until the end of
 * the checkpoint.
 *
 * The thread makes passes: each pass is one rp_segments_flush(). After a failure it makes no
 * more passes, and the owner receives the status from its next request or from
 * rp_flusher_end().
 *
 * Invariants, whenever mu is free:
 *
 *   F1  the thread runs only between the first rp_flusher_request() and rp_flusher_end();
 *   F2  if `status` is not RP_OK, it does not change any more, and no pass begins. */
#ifndef RP_DURABLE_CHECKPOINT_FLUSHER_H
#define RP_DURABLE_CHECKPOINT_FLUSHER_H

#include <pthread.h>

#include "disk/segments.h"
#include "util/mutex.h"

typedef struct rp_flusher {
    rp_segments *segments; /* borrowed */
    pthread_t thread;
    bool has_thread; /* used by the owner only */
    rp_mutex mu;     /* rank 60 */
    rp_cond wanted;  /* wakes the thread */
    rp_cond ended;   /* wakes the owner: a pass has ended */
    bool is_wanted RP_GUARDED_BY(mu);
    bool is_stopping RP_GUARDED_BY(mu);
    uint64_t passes RP_GUARDED_BY(mu);
    rp_status status RP_GUARDED_BY(mu);
    rp_error why RP_GUARDED_BY(mu);
} rp_flusher;

void rp_flusher_init(rp_flusher *f, rp_segments *segments);
/* Requests a pass over the records that are queued now. If there is no thread, starts it; if
 * the system has no resources for a thread, makes the pass on the calling thread. If `wait` is
 * set, waits until a pass has ended. Returns a status of rp_segments_flush(), from this or an
 * earlier pass. */
RP_NODISCARD rp_status rp_flusher_request(rp_flusher *f, bool wait, rp_error *err);
/* Ends the thread and waits for its end. A pass that has not begun is not made. Returns the
 * status of the first pass that failed. After RP_OK the thread can be started again. */
RP_NODISCARD rp_status rp_flusher_end(rp_flusher *f, rp_error *err);
void rp_flusher_deinit(rp_flusher *f); /* after rp_flusher_end() */

#endif
