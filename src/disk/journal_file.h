/* SPDX-License-Identifier: Apache-2.0 */
/* The journal file that is being written. For one thread.
 *
 *   J1  a file holds records with ascending numbers from `first` on, each chained to the one
 *       before;
 *   J2  when a file has its name, every record before its first is on stable storage, or the
 *       file's RP_RECORD_LOST is; and it has every record that a condemned file has which it
 *       takes the place of, since these may have been acknowledged;
 *   J6  what is synced ends with a sector: no later write touches a sector that has something
 *       that was promised;
 *   J3  nothing is appended to a file after a sync of it has failed, or a write for another
 *       reason than a full disk. */
#ifndef RP_DISK_JOURNAL_FILE_H
#define RP_DISK_JOURNAL_FILE_H

#include "disk/journal.h"

typedef struct rp_journal_file {
    rp_file *handle; /* NULL: none is open */
    uint64_t first;  /* LSN */
    uint64_t offset; /* where the next write goes */
    uint32_t crc;    /* of the last record written */
    uint64_t records;
    bool is_named;  /* its directory has been synced */
    bool is_hidden; /* it has its temporary name */
    bool is_bad;    /* to be condemned: J3 */
    bool is_full;   /* the last write failed for want of space */
} rp_journal_file;

/* A piece of a file in the making: what the next write will write. */
typedef struct rp_journal_piece {
    rp_buf bytes;
    uint32_t crc;
    uint64_t records;
    bool says_lost; /* has RP_RECORD_LOST */
} rp_journal_piece;

/* Begins a piece at the end of the file; if none is open, with the header of one that will
 * begin with `first`. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_journal_piece_begin(rp_journal_piece *piece,
                                              const rp_journal_file *file, uint64_t first,
                                              const rp_store_id *store);
/* Adds a record whose payload `encode` makes. RP_NO_RESOURCE, with the piece as it was. */
RP_NODISCARD rp_status rp_journal_piece_add(rp_journal_piece *piece,
                                            const rp_journal_options *o, rp_record_kind kind,
                                            uint64_t number, const void *raw, size_t size);

/* Adds what is missing to a whole sector, if anything is, after the record `number`.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_journal_piece_pad(rp_journal_piece *piece,
                                            const rp_journal_file *file, uint64_t number);

/* Writes a piece; if no file is open, into a new one. A new file is hidden if that is asked
 * for. After a failure: condemn it if it is bad. Otherwise the disk was full, and the file is
 * as before. */
RP_NODISCARD rp_status rp_journal_file_write(rp_journal_file *file, const rp_journal_options *o,
                                             uint64_t first, bool hide,
                                             const rp_journal_piece *piece, rp_error *err);
/* Syncs a hidden file and gives it its name. */
RP_NODISCARD rp_status rp_journal_file_reveal(rp_journal_file *file,
                                              const rp_journal_options *o, rp_error *err);
RP_NODISCARD rp_status rp_journal_file_sync(rp_journal_file *file, const rp_journal_options *o,
                                            rp_error *err);
/* Writes the last record, syncs, closes. */
RP_NODISCARD rp_status rp_journal_file_seal(rp_journal_file *file, const rp_journal_options *o,
                                            uint64_t last, rp_error *err);
/* Gives it up. What is there stays until a file that has all of it takes its place: the records
 * may have been acknowledged, and a process that is killed before that leaves them to the next
 * one. */
void rp_journal_file_condemn(rp_journal_file *file, const rp_journal_options *o);

/* Syncs the journal files that are there and have records below o->next_lsn, and with them all
 * segments, since a process before us may have left them to the system. Moves the other journal
 * files to quarantine/. `*firsts` are the first numbers of those that stay, ascending: an array
 * of `*capacity` that the caller releases in every case. */
RP_NODISCARD rp_status rp_journal_take_over(const rp_journal_options *o, uint64_t **firsts,
                                            size_t *count, size_t *capacity, rp_error *err);

#endif
