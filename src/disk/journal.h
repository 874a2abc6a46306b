/* SPDX-License-Identifier: Apache-2.0 */
/* The journal's files and its thread: records go in, in order, and become safe in batches.
 *
 * Appending gives a record the next number (LSN) and copies it into a buffer, in a raw form of
 * the owner's. The thread takes the buffer whole, first flushes the segments (so that a chunk
 * is there before a record speaks of it), has the raw records turned into bytes, writes them
 * with one call, syncs if the mode says so, and then tells. Chunks of an append must have been
 * put before it. Raw records are kept until they are on stable storage: a file that could not
 * be synced, or written for another reason than a full disk, is condemned, and so is one whose
 * records name places in a condemned segment; all records that are not known to be on stable
 * storage are then made into bytes again, with the places as they are then, and go into a new
 * file. That is why they are kept raw and not as bytes: a place is known for good only when its
 * segment is synced. The condemned file stays until the new one has all its records: they may
 * have been acknowledged.
 *
 *   interval   safe = handed to the kernel; synced at least every `interval_ns`
 *   sync       safe = on stable storage (segments synced, then journal synced)
 *
 * In sync mode chunks are let in only if they have room on the disk (disk/journal_room.h). If
 * some have none, the journal writes what it has, and then gives way to a checkpoint as on a
 * full disk.
 *
 * When it cannot write, sync mode makes nothing safe until it can again. Interval mode goes on
 * without: everything counts as safe at once, as with checkpoints alone, and it says so
 * (on_trouble). The journal gives up the records that wait to be written
 *
 *   - if the disk is full at two tries in a row;
 *   - if there are more than max_queued bytes of them, in interval mode;
 *   - if there was no memory for one.
 *
 * Nothing after them is of use either: it writes no more until rp_journal_cut() tells of a
 * checkpoint that has what is missing; if the disk was full, until rp_journal_resume() says
 * that the checkpoint is complete, which needs the room that there is. Its thread sleeps
 * meanwhile. In sync mode nothing is safe before that.
 *
 * Files are "wal/" and the first LSN in 16 hexadecimal digits. Where two have the same number,
 * the one that begins later has it right. After every sync a RP_RECORD_SYNCED record goes in
 * with the next batch: damage before the last such number is damage, after it a torn tail. A
 * new file has its name only when the records before it are on stable storage, or when it says
 * there that some were given up. */
#ifndef RP_DISK_JOURNAL_H
#define RP_DISK_JOURNAL_H

#include "disk/segments.h"
#include "reprise/wait.h"
#include "util/buf.h"

typedef struct rp_journal rp_journal;

typedef struct rp_journal_options {
    const rp_allocator *alloc;
    rp_files *files;
    rp_segments *segments; /* may be NULL: records speak of no places */
    rp_store_id store;
    uint64_t next_lsn; /* >= 1 */
    bool sync;
    int64_t interval_ns;
    int64_t retry_ns;    /* between tries when it cannot write, and how long changes wait for
                            room at most; 0: a second */
    uint64_t file_bytes; /* a new file is begun when one has this many; 0: 64 MiB */
    uint64_t max_queued; /* bytes, segments' included: from here on it is behind; 0: 64 MiB */
    /* On the journal's thread: appends the payload of a record to `out`; perhaps several times
     * for one record. NULL: raw records are payloads. RP_NO_RESOURCE: tried again later. */
    rp_status (*encode)(void *ctx, rp_record_kind kind, const void *raw, size_t size,
                        rp_buf *out);
    /* On any thread, without a lock: the record is not needed any more, and what it refers to
     * can go. Once for each. May be NULL. */
    void (*release)(void *ctx, rp_record_kind kind, const void *raw, size_t size);
    /* On the journal's thread, after a batch: everything up to `lsn` is safe. */
    void (*on_safe)(void *ctx, uint64_t lsn);
    /* It cannot write (why), or can again (NULL). It goes on trying. Also whenever it has given
     * up records, so that a checkpoint is needed which has not begun yet. */
    void (*on_trouble)(void *ctx, const rp_error *why);
    /* After every batch, and every try: less may be queued than before. May be NULL, like the
     * two above. */
    void (*on_pass)(void *ctx);
    void *ctx;
} rp_journal_options;

/* Everything below next_lsn that is there, segments included, is synced first: it was read and
 * is relied upon. Files from there on are moved to quarantine/. */
RP_NODISCARD rp_status rp_journal_start(const rp_journal_options *options, rp_journal **out,
                                        rp_error *err);
/* Writes and syncs what is there, if that is possible, seals the file and ends the thread.
 * Frees the journal in every case. NULL is fine. */
rp_status rp_journal_stop(rp_journal *j, rp_error *err);

/* Takes the journal's lock (rank 46) for a copy. Never blocks for I/O. `raw` is 8-aligned
 * whenever it is handed back. If there is no memory the journal is in trouble; the number is
 * given all the same, and `*is_kept` (may be NULL) is false: `release` will not be called. */
uint64_t rp_journal_append(rp_journal *j, rp_record_kind kind, const rp_bytes *parts,
                           size_t count, bool *is_kept);
/* The number of a record for which there was no memory to make it. */
uint64_t rp_journal_append_nothing(rp_journal *j);
/* It has given up, and what is appended is of no use for now. */
bool rp_journal_is_lost(rp_journal *j);
/* True if changes have to wait: max_queued bytes are to be written. Also, for changes that take
 * room for chunks, while a checkpoint frees a full disk: in sync mode until it is complete,
 * since they could not be acknowledged before, and the chunks that wait must fit into the
 * reserve; in interval mode for `retry_ns` at most.
 * Any thread, any lock below 44: no lock is taken if there are no segments. */
bool rp_journal_is_behind(rp_journal *j, bool takes_room);
/* In sync mode: claims room on the disk for `bytes` of chunks, behind all that is queued, until
 * rp_journal_release_room(). False if there is none: the insert waits until on_pass. The
 * journal looks at once, and every retry_ns, for room for `least` bytes, and yields to a
 * checkpoint that may free some. In interval mode there is always room. Any thread, any lock
 * below 44. */
RP_NODISCARD bool rp_journal_claim_room(rp_journal *j, uint64_t bytes, uint64_t least);
void rp_journal_release_room(rp_journal *j, uint64_t bytes);
/* The largest claim that could ever be granted, as far as the size of the disk is known. */
uint64_t rp_journal_most_room(const rp_journal *j);
/* An insert waits for room. */
bool rp_journal_is_short(const rp_journal *j);
/* In on_pass, before inserts that wait are tried: those that are refused again claim again. */
void rp_journal_forget_short(rp_journal *j);
uint64_t rp_journal_last(rp_journal *j); /* LSN appended */
/* The same for a checkpoint, while all tables' locks are held: from here on the journal will do
 * if the checkpoint comes off. */
uint64_t rp_journal_cut(rp_journal *j);
uint64_t rp_journal_safe(rp_journal *j);
/* No journal file has, or ever had, a record with a number over this. */
uint64_t rp_journal_reached(rp_journal *j);
/* RP_DEADLINE, RP_CANCELLED, RP_UNAVAILABLE (it cannot write now). On the journal's own thread,
 * where callbacks of operations may run that were held up, RP_OK at once: it would wait for
 * itself. */
RP_NODISCARD rp_status rp_journal_wait(rp_journal *j, uint64_t lsn, rp_wait wait,
                                       rp_error *err);
/* Has everything up to now written, synced. The same statuses. */
RP_NODISCARD rp_status rp_journal_sync(rp_journal *j, rp_wait wait, rp_error *err);
/* A checkpoint that has everything up to `covered` is complete, and the room that the next one
 * needs is kept: a journal that gave up on a full disk writes again. */
void rp_journal_resume(rp_journal *j, uint64_t covered);
/* Removes files whose records are all <= `base`, which a checkpoint has. The first failure is
 * the status. */
RP_NODISCARD rp_status rp_journal_trim(rp_journal *j, uint64_t base, rp_error *err);

typedef struct rp_journal_info {
    uint64_t last, safe, synced;   /* numbers */
    uint64_t queued;               /* bytes of raw records to be written */
    uint64_t kept;                 /* bytes of raw records that are not on stable storage */
    uint64_t syncs, writes, bytes; /* of journal files, since the start */
    uint64_t files;
    uint64_t condemned;       /* files, since the start */
    bool in_trouble, is_lost; /* it cannot write; it waits for a checkpoint */
    rp_error trouble;
} rp_journal_info;

void rp_journal_get_info(rp_journal *j, rp_journal_info *out);

/* What the journal is read for. */
typedef enum rp_journal_reading {
    RP_JOURNAL_LIVE,    /* the newest checkpoint */
    RP_JOURNAL_OLDER,   /* one before: what was given up, the newest had, so it is damage */
    RP_JOURNAL_SALVAGE, /* whatever can be read */
} rp_journal_reading;

/* Reads all journal files from `from` (exclusive) on, in order, and hands on every change.
 * `*last` is the last good number, at least `from`. Damage after the last known synced number
 * is a torn tail: cut there, with `*torn_bytes`; so is a record after it that `each` finds to
 * speak of something that is not there (RP_NOT_FOUND; nothing may have been changed then).
 * Before it RP_CORRUPT, unless it is salvaged: then what can be read up to the damage is, and
 * `err` has RP_CORRUPT and why, though the status is RP_OK. A gap in the numbers is damage,
 * unless the journal says itself that it gave up there: then it ends there. Any other status of
 * `each` ends it. */
typedef rp_status rp_journal_visit(void *ctx, const rp_record *record, rp_error *err);
RP_NODISCARD rp_status rp_journal_read(const rp_allocator *alloc, rp_files *files,
                                       const rp_store_id *store, uint64_t from,
                                       rp_journal_reading how, rp_journal_visit *each,
                                       void *ctx, uint64_t *last, uint64_t *torn_bytes,
                                       rp_error *err);

enum { RP_JOURNAL_PATH_BYTES = 32, RP_JOURNAL_SECTOR = 512 };

/* A file that has not got its name yet. Whoever reads leaves it alone. */
#define RP_JOURNAL_TEMPORARY "wal/next.tmp"

/* "wal/" and 16 hexadecimal digits. Returns `out`. */
char *rp_journal_path(char out[RP_JOURNAL_PATH_BYTES], uint64_t first);

/* The end of a journal file's good part. */
typedef struct rp_journal_end {
    uint64_t lsn;    /* of the last good change; the one before the first if there is none */
    uint64_t synced; /* the largest number known to be synced, also from behind the damage; 0:
                        none */
    uint64_t offset; /* behind the last good record */
    bool is_damaged; /* there is something else behind it */
    bool gave_up;    /* it begins with RP_RECORD_LOST */
} rp_journal_end;

/* Goes through the bytes of the file that begins with `first`. `each` (may be NULL) is called
 * for changes alone; its status, if not RP_OK, is returned, with `end` at the record before. */
RP_NODISCARD rp_status rp_journal_walk(const uint8_t *data, size_t size, uint64_t first,
                                       const rp_store_id *store, rp_journal_visit *each,
                                       void *ctx, rp_journal_end *end, rp_error *err);

#endif
