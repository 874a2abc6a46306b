/* SPDX-License-Identifier: Apache-2.0 */
/* Reads journal files: for recovery and the tools. */
#ifndef RP_DISK_JOURNAL_READ_H
#define RP_DISK_JOURNAL_READ_H

#include "disk/record.h"

/* Which checkpoint the journal is read for. */
typedef enum rp_journal_reading {
    RP_JOURNAL_LIVE,    /* the newest one */
    RP_JOURNAL_OLDER,   /* an older one: records that were given up are damage, since only the
                           newest checkpoint contains their changes */
    RP_JOURNAL_SALVAGE, /* any: reads up to the first damage */
} rp_journal_reading;

/* Called for each change, in order of LSNs. Returns RP_NOT_FOUND if the record refers to
 * something that is missing, and then must have changed nothing. Any other status but RP_OK
 * ends the reading. */
typedef rp_status rp_journal_visit(void *ctx, const rp_record *record, rp_error *err);

typedef struct rp_journal_read_options {
    const rp_allocator *alloc;
    rp_files *files;
    const rp_store_id *store;
    uint64_t from; /* the LSN of the checkpoint: changes after it are read */
    rp_journal_reading how;
    rp_journal_visit *each;
    void *ctx;
} rp_journal_read_options;

/* Reads all changes after `from`. `*last` is the last good LSN, at least `from`.
 *
 * A bad record, or one for which `each` returns RP_NOT_FOUND, is a torn tail if its LSN is
 * above the last one known to be synced: reading ends there, and `*torn_bytes` is the number of
 * bytes from there on. Otherwise the record is damage: RP_CORRUPT. A gap in the LSNs is damage
 * unless the next file says that records were given up there; then reading ends there. With
 * RP_JOURNAL_SALVAGE damage ends the reading with RP_OK, and `err` has RP_CORRUPT and the
 * reason. */
RP_NODISCARD rp_status rp_journal_read(const rp_journal_read_options *options, uint64_t *last,
                                       uint64_t *torn_bytes, rp_error *err);

/* The end of the good part of one journal file. */
typedef struct rp_journal_end {
    uint64_t lsn;    /* of the last good change; first - 1 if there is none */
    uint64_t synced; /* the largest LSN known to be synced, also from an RP_RECORD_SYNCED behind
                        a bad record; 0: none */
    uint64_t offset; /* behind the last good record */
    bool is_damaged; /* bytes follow that are no good record */
    bool gave_up;    /* the file begins with RP_RECORD_LOST */
} rp_journal_end;

/* Walks through the bytes of the file whose first LSN is `first` (>= 1). Calls `each` (may be
 * NULL) for changes only; returns its status if that is not RP_OK, with `end` before that
 * record.
 * RP_PRECONDITION (a newer format). */
RP_NODISCARD rp_status rp_journal_walk(rp_bytes file, uint64_t first, const rp_store_id *store,
                                       rp_journal_visit *each, void *ctx, rp_journal_end *end,
                                       rp_error *err);

#endif
