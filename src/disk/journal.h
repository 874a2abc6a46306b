/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: a write-ahead log of changes, with a thread that writes and syncs it in batches.
 *
 * Appending gives a record the next log sequence number (LSN) and copies it, in a raw form that
 * only the owner understands, into a queue. For each batch the thread
 *
 *   1  takes the whole queue;
 *   2  flushes the segments, so that a chunk is written before a record that refers to it;
 *   3  encodes the raw records and writes them with one call;
 *   4  syncs, if the mode asks for it;
 *   5  reports the LSN up to which everything is safe.
 *
 *   mode       safe means
 *   interval   handed to the kernel. A second thread syncs, so that writing goes on: a sync
 *              begins at most `interval_ns` after the first record that is not synced was
 *              written, or when the sync before it is complete
 *   sync       on stable storage: segments synced first, then the journal
 *
 * The chunks of a record must be put into the segments before the record is appended. If these
 * queue max_queued bytes of chunks, the thread writes them although there is no record yet:
 * they may be of inserts that wait for their tables.
 *
 * Condemned files. If a sync fails, or a write fails for another reason than a full disk, the
 * file is condemned: nothing is appended to it any more. So is a file whose records name
 * locations in a condemned segment. All records that are not known to be on stable storage are
 * encoded again, with the locations that their chunks have then, and go into a new file. For
 * that the thread keeps raw records until they are synced: a location is final only when its
 * segment is synced. The condemned file stays until the new one has all of its records, since
 * these may have been acknowledged.
 *
 * Disk space. In sync mode chunks are admitted only if they fit on the disk
 * (disk/journal_space.h). If an insert does not fit, the journal writes its backlog, then
 * yields to a checkpoint as on a full disk.
 *
 * Failure. While the journal cannot write, sync mode makes nothing safe. Interval mode reports
 * the trouble (on_trouble) and continues without a journal: every change counts as safe at
 * once, as in checkpoint mode. The journal gives up the records that are not written
 *
 *   - if the disk is full at two attempts in a row;
 *   - if they are more than max_queued bytes, in interval mode, or while a checkpoint frees a
 *     full disk: changes without chunks, such as deletes, never wait for that checkpoint;
 *   - if there was no memory for one of them.
 *
 * Records after lost ones are useless, so the journal writes nothing until rp_journal_cut()
 * names a checkpoint that contains the lost changes. On a full disk the journal also waits for
 * rp_journal_resume(), since the checkpoint needs the free space. Meanwhile its thread sleeps,
 * and in sync mode nothing becomes safe.
 *
 * The name of a file is "wal/" and its first LSN in 16 hexadecimal digits. If two files have
 * records with the same LSN, those of the file with the larger first LSN are valid. After each
 * sync the next batch begins with RP_RECORD_SYNCED and the LSN that was synced. A bad record up
 * to that LSN is damage; a bad record after it is a torn tail. A file gets its name only when
 * all records before it are on stable storage, or when its first record says that some were
 * given up. */
#ifndef RP_DISK_JOURNAL_H
#define RP_DISK_JOURNAL_H

#include "disk/journal_options.h"
#include "reprise/wait.h"

/* Starts a journal. First syncs all records below next_lsn in existing files, and all segments,
 * since this process has read them and relies on them. Moves journal files whose first LSN is
 * next_lsn or more to quarantine/. */
RP_NODISCARD rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                                        rp_error *err);
/* Writes and syncs the backlog if possible, seals the file, ends the thread and frees the
 * journal in every case. NULL is fine. */
rp_status rp_journal_stop(rp_journal *j, rp_error *err);

/* Appends a record and returns its LSN. Takes the journal lock (rank 46) for a copy; no I/O.
 * Callbacks get the raw record aligned to 8 bytes. If there is no memory, the record is lost,
 * but its LSN is used; then `*is_kept` (may be NULL) is false and `release` is not called. */
uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count, bool *is_kept);
/* Uses up an LSN for a record that could not be created for lack of memory. */
uint64_t rp_journal_append_nothing(rp_journal *j);
/* True if the journal has given up records: records that are appended now are useless. */
bool rp_journal_is_lost(rp_journal *j);
/* True if changes must wait because the backlog is max_queued bytes or more. Changes that put
 * chunks (`takes_space`) also wait while a checkpoint frees a full disk: in sync mode until it
 * is complete, since they could not be acknowledged before and their chunks must fit into the
 * reserve; in interval mode for `retry_ns` at most. Meanwhile other changes, such as deletes,
 * wait for the backlog of records only.
 * Any thread, any lock below rank 44. Takes no lock if there are no segments. */
bool rp_journal_is_behind(rp_journal *j, bool takes_space);
/* The backlog: bytes of records that are not on stable storage and of chunks that are not
 * written. All of them are in memory. `*most` is max_queued. Locks as rp_journal_is_behind().
 */
uint64_t rp_journal_backlog(rp_journal *j, uint64_t *most);
/* How long the threads have been writing or syncing without an end; 0: they wait for work. */
int64_t rp_journal_stalled_ns(rp_journal *j, int64_t now_ns);
/* In sync mode: claims disk space for `bytes` of items, in addition to the backlog and what the
 * reserve lacks, until rp_journal_release_space(). Returns false if they do not fit: then the
 * insert waits
 * until on_pass is called. The journal checks at once, and every retry_ns, whether `least`
 * bytes fit, and yields to a checkpoint that may free space. In interval mode this always
 * returns true. Any thread, any lock below rank 44. */
RP_NODISCARD bool rp_journal_claim_space(rp_journal *j, uint64_t bytes, uint64_t least);
void rp_journal_release_space(rp_journal *j, uint64_t bytes);
/* The largest claim that could ever be granted, as far as the size of the disk is known. */
uint64_t rp_journal_most_space(const rp_journal *j);
/* True if an insert waits for disk space. */
bool rp_journal_is_space_wanted(const rp_journal *j);
/* For on_pass: makes rp_journal_is_space_wanted() false before waiting inserts are retried; an
 * insert that is refused again makes it true again. */
void rp_journal_clear_space_wanted(rp_journal *j);

/* The last LSN appended. */
uint64_t rp_journal_last(rp_journal *j);
/* Returns the last LSN appended, for a checkpoint that will contain all changes up to that LSN.
 * A journal that has given up records begins anew after it. The caller holds the locks of all
 * tables. */
uint64_t rp_journal_cut(rp_journal *j);
/* The LSN up to which everything is safe. */
uint64_t rp_journal_safe(rp_journal *j);
/* Returns an LSN such that no journal file has, or ever had, a record with a larger one. */
uint64_t rp_journal_reached(rp_journal *j);
/* Waits until `lsn` is safe. Callbacks of delayed operations may run on the journal thread;
 * there it returns RP_OK at once, since the thread would wait for itself.
 * RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (the journal cannot write now). */
RP_NODISCARD rp_status rp_journal_wait(rp_journal *j, uint64_t lsn, rp_wait wait,
                                       rp_error *err);
/* Makes the thread write and sync all records appended so far, and waits for that. Statuses as
 * rp_journal_wait(). */
RP_NODISCARD rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err);
/* Call it when a checkpoint of all changes up to `covered` is complete and the reserve for the
 * next one is held. A journal that gave up records on a full disk then writes again. */
void rp_journal_resume(rp_journal *j, uint64_t covered);
/* Before the reserve is released for a checkpoint: waits for the end of the write that the
 * thread is in, and lets it write nothing more until rp_journal_unpause(). Changes wait once
 * the backlog has max_queued bytes. Does nothing, and returns false, if the journal has given
 * up records: then it writes nothing before rp_journal_resume() anyway, and keeps no backlog.
 */
RP_NODISCARD bool rp_journal_pause(rp_journal *j);
void rp_journal_unpause(rp_journal *j);
/* Removes files whose records are all <= `base`, the LSN of a checkpoint. Returns the status of
 * the first failure. */
RP_NODISCARD rp_status rp_journal_trim(rp_journal *j, uint64_t base, rp_error *err);

void rp_journal_get_info(rp_journal *j, rp_journal_info *out);

#endif
