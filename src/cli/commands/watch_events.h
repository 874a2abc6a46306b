/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what has happened to a table between two snapshots of it. Pure. */
#ifndef RP_CLI_COMMANDS_WATCH_EVENTS_H
#define RP_CLI_COMMANDS_WATCH_EVENTS_H

#include "cli/text/text_buffer.h"
#include "reprise/table.h"

enum { RP_WATCH_LONG_MS = 1000 }; /* shorter waits are part of rate limiting */

/* The sides of a table whose first call has waited for RP_WATCH_LONG_MS: RP_SIDE_... */
uint32_t rp_watch_blocked(const rp_table_info *info);

/* Takes an event: its name ("reset", "paused", "resumed", "altered", "filled", "full",
 * "blocked", "unblocked") and a sentence without a full stop. */
typedef void rp_watch_event(void *ctx, const char *name, const char *text);

/* Reports the events in the order of this list. `why(ctx, side)` is called for a side that has
 * become blocked and returns the reason, or NULL. */
void rp_watch_events(const rp_table_info *before, const rp_table_info *now,
                     const char *(*why)(void *ctx, uint32_t side), rp_watch_event *event,
                     void *ctx);

/* The state of a table, and its rates since the snapshot before, which may be NULL. */
typedef struct rp_watch_rates {
    double inserts, samples, updates, deletes; /* a second */
} rp_watch_rates;

/* Returns false if nothing has been inserted, sampled, updated or deleted. */
bool rp_watch_rates_of(const rp_table_info *before, const rp_table_info *now,
                       int64_t elapsed_ns, rp_watch_rates *rates);
/* "1000 items, 1.2 MiB; 20 inserts/s, 80 samples/s", and updates and deletes if there are any.
 */
void rp_watch_rates_text(rp_text_buffer *out, const rp_table_info *now,
                         const rp_watch_rates *rates);

#endif
