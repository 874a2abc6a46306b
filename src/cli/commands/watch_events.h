/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what has happened to a table between two snapshots of its state. Used by `reprise
 * watch`. Pure functions. */
#ifndef RP_CLI_COMMANDS_WATCH_EVENTS_H
#define RP_CLI_COMMANDS_WATCH_EVENTS_H

#include "cli/text/text_buffer.h"
#include "reprise/table.h"

enum { RP_WATCH_LONG_MS = 1000 }; /* shorter waits are normal rate limiting */

/* Returns the blocked sides of the table: the flag RP_SIDE_INSERTS if an insert has waited for
 * at least RP_WATCH_LONG_MS, and RP_SIDE_SAMPLES if a sample has. */
uint32_t rp_watch_blocked(const rp_table_info *info);

/* Receives an event: its name and a sentence without a full stop. The names are "reset",
 * "paused", "resumed", "altered", "filled", "full", "blocked" and "unblocked". */
typedef void rp_watch_event(void *ctx, const char *name, const char *text);

/* Calls event(ctx, ...) for each event, in the order of the names above. If a side (inserts or
 * samples) has become blocked, calls why(ctx, side) first, which returns the reason or NULL. */
void rp_watch_events(const rp_table_info *before, const rp_table_info *now,
                     const char *(*why)(void *ctx, uint32_t side), rp_watch_event *event,
                     void *ctx);

/* How fast a table was used between two snapshots. */
typedef struct rp_watch_rates {
    double inserts, samples, updates, deletes; /* per second */
} rp_watch_rates;

/* Computes the rates since the snapshot `before`; if `before` is NULL, the rates are 0. Returns
 * false if nothing has been inserted, sampled, updated or deleted. */
bool rp_watch_rates_of(const rp_table_info *before, const rp_table_info *now,
                       int64_t elapsed_ns, rp_watch_rates *rates);
/* Writes a text such as "1000 items, 1.2 MiB; 20 inserts/s, 80 samples/s". Updates and deletes
 * follow if there are any. */
void rp_watch_rates_text(rp_text_buffer *out, const rp_table_info *now,
                         const rp_watch_rates *rates);

#endif
