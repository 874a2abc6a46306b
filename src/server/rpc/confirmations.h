/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of items that are in, on their way to the peer that sent them.
 *
 * In the order in which they were added; with a journal the first `ready` of them are safe and
 * may leave. The others wait behind marks, each of which stands for a run of keys and the
 * number at which all of it is safe. There is room for a few marks only: when they are used up
 * the last one stands for whatever comes. Nothing is allocated for them.
 *
 * Invariants: ready plus the counts of all marks is count; the numbers of marks ascend. */
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

/* Adds the keys of items that are safe at `lsn`; those up to `safe` are already.
 * RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_confirmations_add(rp_confirmations *c, const rp_allocator *alloc,
                                            const rp_insert *items, size_t count, uint64_t lsn,
                                            uint64_t safe);
/* Numbers up to `safe` are safe. */
void rp_confirmations_settle(rp_confirmations *c, uint64_t safe);
/* The number that the first key waits for which is not ready; 0: all are. */
uint64_t rp_confirmations_next(const rp_confirmations *c);
/* The first `ready` keys have left. Memory for many more is given back. */
void rp_confirmations_sent(rp_confirmations *c, const rp_allocator *alloc);
void rp_confirmations_deinit(rp_confirmations *c, const rp_allocator *alloc);

#endif
