/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the progress of a long operation to a callback. Only one thread may use a meter. */
#ifndef RP_DURABLE_CHECKPOINT_PROGRESS_H
#define RP_DURABLE_CHECKPOINT_PROGRESS_H

#include "reprise/durable.h"

typedef struct rp_progress_meter {
    void (*on_progress)(void *ctx, const rp_durable_progress *progress); /* may be NULL */
    void *ctx;
    rp_durable_progress now;
    int64_t started_ns, reported_ns;
} rp_progress_meter;

/* Starts an operation of `total` bytes (0: not known). `what` is the name of the operation; the
 * string must never be freed. */
void rp_progress_begin(rp_progress_meter *m, const char *what, uint64_t total);
/* Adds `done` bytes to the progress. Calls on_progress at most ten times a second, and when all
 * bytes are done. */
void rp_progress_add(rp_progress_meter *m, uint64_t done);
/* Like rp_progress_add(), but `done` is the sum of all bytes done so far. Ignores a sum that is
 * smaller than the previous one. */
static inline void rp_progress_reach(rp_progress_meter *m, uint64_t done)
{
    if (done > m->now.done) rp_progress_add(m, done - m->now.done);
}
/* Ends the operation: calls on_progress with a progress whose `what` is NULL. */
void rp_progress_end(rp_progress_meter *m);

#endif
