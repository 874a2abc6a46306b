/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a journal, which is a write-ahead log (disk/journal.h), and the state that it
 * reports. The LSN (log sequence number) of a record is its number in the journal. */
#ifndef RP_DISK_JOURNAL_OPTIONS_H
#define RP_DISK_JOURNAL_OPTIONS_H

#include "disk/journal_space.h"
#include "util/buf.h"

typedef struct rp_journal rp_journal;

typedef struct rp_journal_options {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments; /* NULL: records refer to no disk locations */
    rp_store_id store;
    uint64_t next_lsn; /* >= 1 */
    bool sync;         /* true: sync mode; false: interval mode (disk/journal.h) */
    int64_t interval_ns;
    int64_t retry_ns; /* time between attempts to write after a failure. In interval mode also
                         the longest time for which changes wait while a checkpoint frees a full
                         disk. 0: 1 s */
    uint64_t file_bytes; /* when a file has this size, a new file is started; 0: 64 MiB */
    /* Bound of the backlog: the bytes to be written to the journal and the segments together.
     * At the bound the journal is behind, and changes wait. 0: 64 MiB. */
    uint64_t max_queued;
    /* Returns how much disk space the reserve for checkpoints needs (disk/reserve.h). In sync
     * mode an insert is admitted only if that space remains (disk/journal_space.h). NULL: there
     * is no reserve. */
    rp_reserve_wanted *reserve;
    /* Appends the payload of a record to `out`. Called on the journal thread, possibly several
     * times for one record. NULL: the raw record is the payload. After RP_NO_RESOURCE the
     * journal retries later. */
    rp_status (*encode)(void *ctx, rp_record_kind kind, const void *raw, size_t size,
                        rp_buf *out);
    /* Releases the objects that a record refers to, when the journal no longer needs the
     * record. Called once for each record, on any thread, without a lock. May be NULL. */
    void (*release)(void *ctx, rp_record_kind kind, const void *raw, size_t size);
    /* Called on the journal thread after a batch, when every change up to `lsn` is safe
     * (disk/journal.h): on stable storage in sync mode, handed to the kernel in interval mode.
     * May be NULL. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    /* Called with the reason when the journal cannot write, and with NULL when it can write
     * again. Between these two calls the journal keeps retrying. Also called, with the reason,
     * each time that the journal has given up records: only a checkpoint that begins after the
     * call saves the changes of the given-up records. May be NULL. */
    void (*on_trouble)(void *ctx, const rp_error *why);
    /* Called after each batch and each failed attempt. The owner then retries changes that
     * wait, since the backlog is possibly shorter. May be NULL. */
    void (*on_pass)(void *ctx);
    void *ctx;
} rp_journal_options;

typedef struct rp_journal_info {
    /* `last` is the LSN of the last record. Every change up to the LSN `safe` is safe
     * (on_safe). Every record up to the LSN `synced` is on stable storage. */
    uint64_t last, safe, synced;
    uint64_t queued;               /* bytes of all raw records in memory */
    uint64_t kept;                 /* the part of `queued` that the journal thread has taken out
                                      of the queue */
    uint64_t syncs, writes, bytes; /* counts for the journal files, since the start */
    uint64_t files;
    uint64_t condemned; /* number of files condemned since the start */
    bool in_trouble;    /* the journal cannot write */
    bool is_lost;       /* the journal has given up records and waits for a checkpoint */
    rp_error trouble;
} rp_journal_info;

#endif
