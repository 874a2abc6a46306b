/* SPDX-License-Identifier: Apache-2.0 */
/* The journal: a write-ahead log of changes, with a thread that writes and syncs it in batches.
 *
 * A record describes one change of the store. rp_journal_append() gives a record the next log
 * sequence number (LSN) and copies it into a queue. Queued records are raw: in a format that
 * only the owner of the journal (the durable store) understands. For each batch the thread
 *
 *   1  takes the whole queue;
 *   2  encodes the raw records: calls the owner's `encode` (disk/journal_options.h);
 *   3  flushes the segments, which are files of chunks (disk/segments.h): hands queued chunks
 *      to the kernel. So a chunk is written before each record that refers to it;
 *   4  writes the encoded records, about 4 MiB with each call;
 *   5  syncs, if the mode asks for it;
 *   6  reports the LSN up to which all records are safe (see the table below).
 *
 *   mode       safe means
 *   interval   handed to the kernel. A second thread syncs, so that writing goes on. A sync
 *              begins at most `interval_ns` after the first unsynced record was written, or
 *              when the previous sync is complete, if that is later
 *   sync       on stable storage: the thread syncs the segments first, then the journal
 *
 * The owner must put the chunks of a record into the segments before it appends the record. An
 * insert that waits for its table has chunks in the queue of the segments, but no record yet.
 * So if the queues of journal and segments reach max_queued bytes together, the thread writes
 * the queued chunks without waiting for their records.
 *
 * Condemned files. If a sync fails, or a write fails for another reason than a full disk, the
 * file is condemned: nothing is appended to it any more. A journal file whose records name
 * locations in a condemned segment is condemned as well. All records that are not known to be
 * on stable storage are encoded again, with the current locations of their chunks, and written
 * to a new file. For this purpose the thread keeps raw records until they are synced: the
 * location of a chunk is final only when its segment is synced. The condemned file stays until
 * the new file has all records of the condemned file, since clients may already rely on the
 * changes of these records.
 *
 * Disk space. In sync mode chunks are admitted only if they fit on the disk
 * (disk/journal_space.h). If an insert does not fit, the journal first writes its backlog and
 * then yields to a checkpoint (a snapshot of all tables). The journal also yields when the disk
 * is full at two attempts to write in a row. To yield, the journal gives up (discards) the
 * records that are not written, and waits for the checkpoint, which contains their changes and
 * possibly frees space.
 *
 * Failure. If the journal cannot write, it reports the reason (on_trouble). Until it can write
 * again, no record becomes safe in sync mode. In interval mode every change counts as safe at
 * once until then, as in a store without a journal. In these cases the journal gives up the
 * records that are not written:
 *
 *   - the disk is full at two attempts in a row;
 *   - in sync mode, an insert waits for disk space, as described above;
 *   - in interval mode, after another failure than a full disk: the records that are not
 *     written have reached max_queued bytes;
 *   - while a checkpoint frees a full disk: records that were appended since it began have
 *     reached max_queued bytes. This can happen because changes without chunks, such as
 *     deletes, do not wait for the checkpoint;
 *   - there was no memory for a record.
 *
 * Records after a lost record are useless, since changes can be redone only in order. So the
 * journal writes nothing until rp_journal_cut() names a checkpoint that will contain the lost
 * changes. On a full disk it writes nothing until rp_journal_resume(), which says that this
 * checkpoint is complete, since the checkpoint needs the free space. In sync mode no record
 * becomes safe until rp_journal_resume().
 *
 * The name of a file is "wal/" and its first LSN in 16 hexadecimal digits. If two files have a
 * record with the same LSN, the record in the file with the larger first LSN is valid. After
 * each sync the next batch begins with RP_RECORD_SYNCED and the LSN up to which records are
 * synced. A bad record with at most that LSN is damage. A bad record with a larger LSN is a
 * torn tail, the end of a write that a crash has interrupted. A file gets its final name only
 * when all records before it are on stable storage, or when its first record says that records
 * before it were given up. */
#ifndef RP_DISK_JOURNAL_H
#define RP_DISK_JOURNAL_H

#include "disk/journal_options.h"
#include "reprise/wait.h"

/* Starts a journal. First syncs the existing files with records below next_lsn, and all
 * segments: the process that wrote them possibly has not synced them, and this process relies
 * on what it has read. Moves journal files whose first LSN is at least next_lsn to
 * quarantine/. */
RP_NODISCARD rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                                        rp_error *err);
/* If possible, writes and syncs the backlog and seals the file (appends its last record). In
 * every case ends the threads and frees the journal. `j` may be NULL. */
rp_status rp_journal_stop(rp_journal *j, rp_error *err);

/* Appends a record and returns its LSN. Holds the journal lock (rank 46; ranks: util/mutex.h)
 * for the copy. Does no I/O. The raw record is the concatenation of `parts`; callbacks get it
 * aligned to 8 bytes. If there is no memory, the record is lost, but its LSN is used up. In
 * that case `*is_kept` is set to false, and `release` is not called for the record. `is_kept`
 * may be NULL. */
uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count, bool *is_kept);
/* Uses up an LSN for a record that could not be created because there was no memory. */
uint64_t rp_journal_append_nothing(rp_journal *j);
/* Returns true if the journal has given up records and rp_journal_cut() has not been called
 * since then. Records that are appended now are useless. */
bool rp_journal_is_lost(rp_journal *j);
/* Returns true if changes must wait because the backlog has max_queued bytes or more. In
 * interval mode changes do not wait while the journal cannot write: the journal gives up
 * records instead. `takes_space` says whether the change puts chunks. A change that puts chunks
 * also waits while a checkpoint frees a full disk: in sync mode until the checkpoint is
 * complete, in interval mode at most `retry_ns`. For a change without chunks, such as a delete,
 * only the records count, not the queued chunks. Any thread may call this function, and may
 * hold any lock below rank 44. The function takes no lock if there are no segments. */
bool rp_journal_is_behind(rp_journal *j, bool takes_space);
/* Returns the backlog, which is in memory: the bytes of records that are not on stable storage,
 * and the bytes of chunks that are not written. Sets `*most` to max_queued. The caller may hold
 * the same locks as for rp_journal_is_behind(). */
uint64_t rp_journal_backlog(rp_journal *j, uint64_t *most);
/* Returns for how long the current write or sync has been running. If both threads write or
 * sync, returns the longer time. Returns 0 if both threads wait for work. */
int64_t rp_journal_stalled_ns(rp_journal *j, int64_t now_ns);
/* In sync mode: claims disk space for `bytes` of items until rp_journal_release_space(). The
 * space must be free in addition to the space for the backlog and for the bytes that the
 * reserve for checkpoints (disk/reserve.h) lacks. Returns false if the items do not fit. In
 * that case the caller's insert must wait until on_pass is called (disk/journal_options.h). The
 * journal checks at once, and every retry_ns, whether `least` bytes fit, and yields to a
 * checkpoint that may free space. In interval mode the function always returns true. Any thread
 * may call it, and may hold any lock below rank 44. */
RP_NODISCARD bool rp_journal_claim_space(rp_journal *j, uint64_t bytes, uint64_t least);
void rp_journal_release_space(rp_journal *j, uint64_t bytes);
/* Returns the largest claim that fits on this disk when it is empty; UINT64_MAX if the size of
 * the disk is not known. */
uint64_t rp_journal_most_space(const rp_journal *j);
/* Returns true if an insert waits for disk space. */
bool rp_journal_is_space_wanted(const rp_journal *j);
/* Makes rp_journal_is_space_wanted() return false until an insert is refused again. on_pass
 * calls this function before it retries waiting inserts. */
void rp_journal_clear_space_wanted(rp_journal *j);

/* Returns the LSN that was appended last. */
uint64_t rp_journal_last(rp_journal *j);
/* Tells the journal that a checkpoint will contain all changes so far. Returns the LSN of the
 * last of these changes. A journal that has given up records begins again after this LSN. The
 * caller must hold the locks of all tables. */
uint64_t rp_journal_cut(rp_journal *j);
/* Returns the LSN up to which all records are safe. */
uint64_t rp_journal_safe(rp_journal *j);
/* Returns an upper bound: no journal file has, or ever had, a record with a larger LSN. */
uint64_t rp_journal_reached(rp_journal *j);
/* Waits until `lsn` is safe. On the journal thread itself, which runs callbacks of operations,
 * the function returns RP_OK at once, since the thread would wait for itself. Errors:
 * RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (the journal cannot write now). */
RP_NODISCARD rp_status rp_journal_wait(rp_journal *j, uint64_t lsn, rp_wait wait,
                                       rp_error *err);
/* Makes the thread write and sync all records appended so far, and waits until they are synced.
 * Errors: as for rp_journal_wait(). */
RP_NODISCARD rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err);
/* The owner calls this when a checkpoint of all changes up to `covered` is complete and the
 * reserve for the next checkpoint is held. A journal that gave up records on a full disk then
 * writes again. */
void rp_journal_resume(rp_journal *j, uint64_t covered);
/* Called before the reserve is released for a checkpoint. Waits until the current write of the
 * journal thread has ended, and prevents further writes until rp_journal_unpause(). While the
 * journal is paused, changes wait if the backlog has max_queued bytes. If the journal has given
 * up records and waits for a checkpoint, the function returns false and does not pause: on a
 * full disk such a journal writes nothing before rp_journal_resume() anyway. */
RP_NODISCARD bool rp_journal_pause(rp_journal *j);
void rp_journal_unpause(rp_journal *j);
/* Removes the files in which every LSN is at most `base`, the LSN of a checkpoint. Never
 * removes the newest file. Returns the status of the first failure. */
RP_NODISCARD rp_status rp_journal_trim(rp_journal *j, uint64_t base, rp_error *err);

void rp_journal_get_info(rp_journal *j, rp_journal_info *out);

#endif
