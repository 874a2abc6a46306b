/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a journal and the state that it reports (disk/journal.h). */
#ifndef RP_DISK_JOURNAL_OPTIONS_H
#define RP_DISK_JOURNAL_OPTIONS_H

#include "disk/journal_space.h"
#include "util/buf.h"

typedef struct rp_journal rp_journal;

typedef struct rp_journal_options {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments; /* may be NULL: records refer to no disk locations */
    rp_store_id store;
    uint64_t next_lsn; /* >= 1 */
    bool sync;         /* sync mode; otherwise interval mode */
    int64_t interval_ns;
    int64_t retry_ns;    /* between attempts to write after a failure, and the longest time that
                            changes wait for disk space in interval mode; 0: 1 s */
    uint64_t file_bytes; /* size from which a new file is started; 0: 64 MiB */
    uint64_t max_queued; /* if so many bytes wait to be written, to the journal and the segments
                            together, the journal is behind and changes wait; 0: 64 MiB */
    /* Tells how much disk space the reserve needs. In sync mode an insert is admitted only if
     * that space remains (disk/journal_space.h). NULL: there is no reserve. */
    rp_reserve_wanted *reserve;
    /* Appends the payload of a record to `out`. Called on the journal thread, possibly several
     * times for one record. NULL: the raw record is the payload. After RP_NO_RESOURCE the
     * journal retries later. */
    rp_status (*encode)(void *ctx, rp_record_kind kind, const void *raw, size_t size,
                        rp_buf *out);
    /* Releases the objects that a record refers to, when the journal no longer needs the
     * record. Called once for each record, on any thread, without a lock. May be NULL. */
    void (*release)(void *ctx, rp_record_kind kind, const void *raw, size_t size);
    /* Called on the journal thread after a batch, when every change up to `lsn` is as safe as
     * the mode promises (disk/journal.h): in sync mode on stable storage, in interval mode
     * written. May be NULL. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    /* Called with the reason when the journal cannot write, and with NULL when it can again;
     * meanwhile the journal keeps retrying. Also called with the reason each time that the
     * journal has discarded records: only a checkpoint that begins after this call saves their
     * changes. May be NULL. */
    void (*on_trouble)(void *ctx, const rp_error *why);
    /* Called after each batch and each attempt: the backlog may be shorter now. May be NULL. */
    void (*on_pass)(void *ctx);
    void *ctx;
} rp_journal_options;

typedef struct rp_journal_info {
    /* LSNs: of the last record; up to which every change is as safe as the mode promises
     * (on_safe); up to which every record is on stable storage. */
    uint64_t last, safe, synced;
    uint64_t queued;               /* bytes of raw records in memory: `kept`, and new ones */
    uint64_t kept;                 /* bytes of raw records that are not on stable storage */
    uint64_t syncs, writes, bytes; /* of journal files, since the start */
    uint64_t files;
    uint64_t condemned; /* files abandoned since the start, after a failed write or sync */
    bool in_trouble;    /* the journal cannot write */
    bool is_lost;       /* the journal has given up records and waits for a checkpoint */
    rp_error trouble;
} rp_journal_info;

#endif
