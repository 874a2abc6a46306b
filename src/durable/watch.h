/* SPDX-License-Identifier: Apache-2.0 */
/* Tells of the progress of something long, not more often than every tenth of a second. */
#ifndef RP_DURABLE_WATCH_H
#define RP_DURABLE_WATCH_H

#include "reprise/durable.h"

typedef struct rp_watch {
    void (*on_progress)(void *ctx, const rp_durable_progress *progress); /* may be NULL */
    void *ctx;
    const char *what;
    uint64_t total;
    int64_t started_ns, told_ns;
} rp_watch;

void rp_watch_start(rp_watch *w,
                    void (*on_progress)(void *ctx, const rp_durable_progress *progress),
                    void *ctx, const char *what, uint64_t total);
/* So much is done now; what is more than the total counts as that. */
void rp_watch_tell(rp_watch *w, uint64_t done);

#endif
