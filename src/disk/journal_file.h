/* SPDX-License-Identifier: Apache-2.0 */
/* The journal file that is being written. Only the journal thread uses it. The LSN (log
 * sequence number) of a record is its number in the journal.
 *
 * Invariants:
 *
 *   J1  a file holds records with ascending LSNs from `first` on; each record has the checksum
 *       of the previous one (`before` in disk/record.h);
 *   J2  when a file has its final name, one of two things is on stable storage: every record
 *       before `first`, or the file's first record RP_RECORD_LOST, which says that records
 *       before `first` were given up. A file that replaces a condemned file (invariant J3) has
 *       every record of that file, since clients may rely on these records;
 *   J3  a file is bad (`is_bad`) when a sync of it has failed, or when a write has failed for
 *       another reason than a full disk. On a full disk, a file is bad if it is empty or could
 *       not be truncated to the bytes before the write. Nothing is appended to a bad file, and
 *       it is not synced again: it is condemned, which means that it is closed and replaced;
 *   J4  synced data ends at a sector boundary, so that no later write touches a sector that
 *       holds acknowledged data. */
#ifndef RP_DISK_JOURNAL_FILE_H
#define RP_DISK_JOURNAL_FILE_H

#include "disk/journal_options.h"
#include "disk/names.h"

enum { RP_JOURNAL_SECTOR = 512 };

typedef struct rp_journal_file {
    rp_file *handle; /* NULL: no file is open */
    uint64_t first;  /* LSN of the first record */
    uint64_t offset; /* offset of the next write */
    uint32_t crc;    /* header checksum of the last record written */
    uint64_t records;
    bool is_named;  /* its directory entry is synced */
    bool is_hidden; /* it has its temporary name */
    bool is_bad;    /* nothing more may be written (invariant J3) */
    bool is_full;   /* the last write failed because the disk is full or has no free inode */
} rp_journal_file;

/* The bytes of the next write to the file. */
typedef struct rp_journal_piece {
    rp_buf bytes;
    uint32_t crc; /* header checksum of the last record */
    uint64_t records;
    bool says_lost; /* contains RP_RECORD_LOST */
} rp_journal_piece;

/* Starts a piece that continues the file. If no file is open, the piece begins with the header
 * of a file whose first LSN is `first`. Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_journal_piece_begin(rp_journal_piece *piece,
                                              const rp_journal_file *file, uint64_t first,
                                              const rp_store_id *store);
/* Adds a record. o->encode makes its payload from the raw record. Errors: RP_NO_RESOURCE (the
 * piece is then unchanged). */
RP_NODISCARD rp_status rp_journal_piece_add(rp_journal_piece *piece,
                                            const rp_journal_options *o, rp_record_kind kind,
                                            uint64_t number, const void *raw, size_t size);
/* Pads the piece to the next sector boundary (invariant J4). `number` is the last LSN. Errors:
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_journal_piece_pad(rp_journal_piece *piece,
                                            const rp_journal_file *file, uint64_t number);

/* Appends a piece to the file. If no file is open, creates one; if `hide` is set, with the
 * temporary name. After a failure, the caller must condemn the file if it is bad. If it is not
 * bad, it is unchanged. */
RP_NODISCARD rp_status rp_journal_file_write(rp_journal_file *file, const rp_journal_options *o,
                                             uint64_t first, bool hide,
                                             const rp_journal_piece *piece, rp_error *err);
/* Syncs a hidden file and renames it to its final name. */
RP_NODISCARD rp_status rp_journal_file_reveal(rp_journal_file *file,
                                              const rp_journal_options *o, rp_error *err);
/* Syncs a file. If `is_named` is false, also syncs the directory, since the file's entry in it
 * is not synced yet. Another thread may append to the file during the call. */
RP_NODISCARD rp_status rp_journal_handle_sync(rp_file *handle, const rp_journal_options *o,
                                              bool is_named, rp_error *err);
RP_NODISCARD rp_status rp_journal_file_sync(rp_journal_file *file, const rp_journal_options *o,
                                            rp_error *err);
/* Appends the seal (a last record with the number of records, the size and the last LSN of the
 * file), syncs and closes the file. */
RP_NODISCARD rp_status rp_journal_file_seal(rp_journal_file *file, const rp_journal_options *o,
                                            uint64_t last, rp_error *err);
/* Closes a bad file without a sync. The file stays on disk until a file with all of its records
 * replaces it, since clients may already rely on these records. If this process is killed
 * before the replacement, the next process reads the records from the bad file. */
void rp_journal_file_condemn(rp_journal_file *file, const rp_journal_options *o);

#endif
