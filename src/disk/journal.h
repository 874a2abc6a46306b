/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's files and its thread: records go in, in order, and become safe in batches.
 *
 * Appending gives a record the next number (LSN) and copies it into a buffer. The thread takes
 * the buffer whole, first flushes the segments (so that a chunk is there before a record speaks
 * of it), writes the records with one call, syncs if the mode says so, and then tells. Chunks
 * of an append must have been put before it.
 *
 *   interval   safe = handed to the kernel; synced at least every `interval_ns`
 *   sync       safe = on stable storage (segments synced, then journal synced)
 *
 * After every sync a RP_RECORD_SYNCED record goes in with the next batch: damage before the
 * last such number is damage, after it a torn tail. A file that could not be written or synced
 * is condemned: all records that are not known to be on stable storage go again into a new
 * file. */
#ifndef RP_DISK_JOURNAL_H
#define RP_DISK_JOURNAL_H

#include "disk/segments.h"
#include "reprise/wait.h"

typedef struct rp_journal rp_journal;

typedef struct rp_journal_options {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments;
    rp_store_id store;
    uint64_t next_lsn; /* >= 1 */
    bool sync;
    int64_t interval_ns;
    uint64_t file_bytes; /* a new file is begun when one has this many: 64 MiB */
    uint64_t max_queued; /* bytes, segments' included: from here on it is behind: 64 MiB */
    /* On the journal's thread, after a batch: everything up to `lsn` is safe. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    /* It cannot write (why), or can again (NULL). It goes on trying, once a second. */
    void (*on_trouble)(void *ctx, const rp_error *why);
    void *ctx;
} rp_journal_options;

RP_NODISCARD rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                                        rp_error *err);
/* Writes and syncs what is there, if that is possible, seals the file and ends the thread. */
rp_status rp_journal_stop(rp_journal *j, rp_error *err);

/* Takes the journal's lock (rank 46) for a copy. Never blocks for I/O. If there is no memory
 * the journal is in trouble, and the number is given all the same. */
uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count);
bool rp_journal_is_behind(rp_journal *j);
uint64_t rp_journal_last(rp_journal *j); /* LSN appended */
uint64_t rp_journal_safe(rp_journal *j);
RP_NODISCARD rp_status rp_journal_wait(rp_journal *j, uint64_t lsn, rp_wait wait,
                                       rp_error *err);
/* Has everything up to now written, synced. */
RP_NODISCARD rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err);
/* Removes files whose records are all <= lsn. */
RP_NODISCARD rp_status rp_journal_trim(rp_journal *j, uint64_t lsn, rp_error *err);

/* Reads all journal files from `from` (exclusive) on, in order. `*last` is the last good
 * number. Damage after the last known synced number is a torn tail: cut there, with
 * `*torn_bytes`; before it RP_CORRUPT, unless `salvage`: then what can be read up to the damage
 * is. A gap in the numbers is damage. */
typedef rp_status rp_journal_visit(void *ctx, const rp_record *record, rp_error *err);
RP_NODISCARD rp_status rp_journal_read(const rp_allocator *alloc, rp_files *files,
                                       const rp_store_id *store, uint64_t from, bool salvage,
                                       rp_journal_visit *each, void *ctx, uint64_t *last,
                                       uint64_t *torn_bytes, rp_error *err);

#endif
