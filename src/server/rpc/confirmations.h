/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of inserted items that an insert stream has not confirmed to its client yet. The
 * server confirms an item by sending its key.
 *
 * A key may be sent once its insert is safe, that is, once the journal has written or synced
 * the insert's record (core/safety.h). The record's log sequence number (LSN) identifies it.
 * Keys are in the order in which they were added. The first `ready` keys are safe. The other
 * keys are divided into runs of successive keys. A mark has the length of a run and the LSN at
 * which the whole run is safe. There are at most RP_CONFIRMATION_MARKS marks, so marks need no
 * allocation. If all marks are used, further keys extend the last run.
 *
 * Invariants:
 *   F1  `ready` plus the sum of the marks' counts is `count`, which is at most `capacity`;
 *   F2  the LSNs of marks ascend. */
#ifndef RP_SERVER_RPC_CONFIRMATIONS_H
#define RP_SERVER_RPC_CONFIRMATIONS_H

#include "reprise/alloc.h"
#include "reprise/table.h"

enum { RP_CONFIRMATION_MARKS = 8 };

/* Zero-initialise it. */
typedef struct rp_confirmations {
    uint64_t *keys;
    size_t count, capacity;
    size_t ready;
    struct {
        uint64_t lsn;
        size_t count;
    } marks[RP_CONFIRMATION_MARKS];
    size_t mark_count;
} rp_confirmations;

/* Adds the keys of items that are safe at `lsn`. LSNs up to `safe` are safe already. On
 * RP_NO_RESOURCE nothing has changed. */
RP_NODISCARD rp_status rp_confirmations_add(rp_confirmations *c, const rp_allocator *alloc,
                                            const rp_insert *items, size_t count, uint64_t lsn,
                                            uint64_t safe);
/* Updates `ready`: LSNs up to `safe` are safe now. */
void rp_confirmations_settle(rp_confirmations *c, uint64_t safe);
/* Returns the LSN of the first run whose keys are not ready, or 0 if all keys are ready. */
uint64_t rp_confirmations_next(const rp_confirmations *c);
/* Removes the first `ready` keys, which have been sent. */
void rp_confirmations_sent(rp_confirmations *c, const rp_allocator *alloc);
void rp_confirmations_deinit(rp_confirmations *c, const rp_allocator *alloc);

#endif
