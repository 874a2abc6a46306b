/* SPDX-License-Identifier: Apache-2.0 */
/* Redo: after a restart, applies the changes of a journal to a store, one record at a time. The
 * LSN (log sequence number) of a record is its number in the journal.
 *
 * Only one thread may use a redo object, and no other code may use the store during the redo.
 * The store's log must not be set yet (rp_store_set_log()); otherwise the tables would log the
 * changes again. */
#ifndef RP_DURABLE_JOURNAL_JOURNAL_REDO_H
#define RP_DURABLE_JOURNAL_JOURNAL_REDO_H

#include "disk/location.h"
#include "durable/format/rollouts_file.h"
#include "store/store.h"

typedef struct rp_redo rp_redo;

typedef struct rp_redo_options {
    const rp_allocator *alloc;
    rp_store *store;
    /* Finds the chunk at a location. `*out` is borrowed until the next call. Errors:
     * RP_NOT_FOUND (the chunk is missing), RP_CORRUPT (the chunk is damaged). */
    rp_status (*chunk)(void *ctx, const rp_disk_location *location, rp_chunk **out,
                       rp_error *err);
    void *ctx;
    /* The rollouts (named buffers of groups of items, reprise/rollouts.h) of the checkpoint.
     * Redo skips the operations that the saved images of the rollouts already contain. If the
     * store does not have the rollouts of an operation, redo skips the operation if its LSN is
     * at most rollouts_lsn (checkpoint_rollouts.c); a larger LSN is an error (RP_CORRUPT). */
    const rp_rollouts_found *rollouts;
    uint64_t rollouts_lsn;
    bool salvage; /* operations on missing rollouts are skipped, whatever their LSN */
} rp_redo_options;

RP_NODISCARD rp_status rp_redo_new(const rp_redo_options *options, rp_redo **out,
                                   rp_error *err);
/* Reclaims the retired slots of all tables (the slots of removed items, table/slots.h), then
 * frees the object. NULL is fine. */
void rp_redo_free(rp_redo *r);
/* Returns how many changes were applied. */
uint64_t rp_redo_count(const rp_redo *r);

/* Applies one record. It is an rp_journal_visit whose `ctx` is the rp_redo. Errors:
 * RP_NOT_FOUND (a chunk is missing; nothing was changed), RP_CORRUPT (the change is impossible;
 * the text names the record), RP_PRECONDITION (the store has a table of the same name with
 * other selectors), RP_NO_RESOURCE, RP_UNAVAILABLE. */
rp_status rp_redo_record(void *ctx, const rp_record *record, rp_error *err);

#endif
