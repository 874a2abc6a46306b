/* SPDX-License-Identifier: Apache-2.0 */
/* Reads journal files. Used by recovery and the offline tools. */
#ifndef RP_DISK_JOURNAL_READ_H
#define RP_DISK_JOURNAL_READ_H

#include "disk/record.h"

/* Which checkpoint the caller has loaded. The journal is read from this checkpoint on. */
typedef enum rp_journal_reading {
    RP_JOURNAL_LIVE,    /* the newest checkpoint */
    RP_JOURNAL_OLDER,   /* an older checkpoint. A gap of records that the journal gave up (never
                           wrote, because the disk was full or failed for too long) counts as
                           damage, since only the newest checkpoint contains their changes */
    RP_JOURNAL_SALVAGE, /* any checkpoint: reads up to the first damage */
} rp_journal_reading;

/* Called for each change, in order of log sequence numbers (LSNs). If the record refers to a
 * chunk that is missing, the function must change nothing and return RP_NOT_FOUND. A status
 * other than RP_OK and RP_NOT_FOUND ends the reading, which returns this status. */
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

/* Reads all changes after options->from. Sets `*last` to the LSN of the last good record, or to
 * options->from if there is none.
 *
 * A record is bad if it cannot be read, or if `each` returns RP_NOT_FOUND. If the LSN of a bad
 * record is above the last LSN known to be synced, the record begins a torn tail: reading ends
 * before the record, and `*torn_bytes` is the number of bytes from the record on. Otherwise the
 * bad record is damage, and the function returns RP_CORRUPT. A gap in the LSNs is damage, with
 * one exception: if the next file says that the missing records were given up, reading ends
 * before the gap. With RP_JOURNAL_OLDER the exception does not hold. With RP_JOURNAL_SALVAGE
 * damage ends the reading with RP_OK, and `err` has RP_CORRUPT and the reason. */
RP_NODISCARD rp_status rp_journal_read(const rp_journal_read_options *options, uint64_t *last,
                                       uint64_t *torn_bytes, rp_error *err);

/* The end of the good part of one journal file. */
typedef struct rp_journal_end {
    uint64_t lsn;    /* LSN of the last good change; first - 1 if there is none */
    uint64_t synced; /* the largest LSN known to be synced, even if the RP_RECORD_SYNCED that
                        says so is after a bad record; 0: none */
    uint64_t offset; /* offset of the first byte after the last good record */
    bool is_damaged; /* bytes follow that are not a good record */
    bool gave_up;    /* the file begins with RP_RECORD_LOST */
} rp_journal_end;

/* Reads the bytes of the file whose first LSN is `first` (>= 1). Calls `each` (may be NULL)
 * only for records of changes, not for RP_RECORD_SYNCED, RP_RECORD_LOST, padding and the seal.
 * If `each` returns a status other than RP_OK, returns this status, and `*end` describes the
 * file up to the record before. Errors: RP_PRECONDITION (a newer format). */
RP_NODISCARD rp_status rp_journal_walk(rp_bytes file, uint64_t first, const rp_store_id *store,
                                       rp_journal_visit *each, void *ctx, rp_journal_end *end,
                                       rp_error *err);

#endif
