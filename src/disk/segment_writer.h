/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records to the file of one segment and, when it is full, to the next. Private to the
 * implementation of disk/segments.h, whose flush passes all records queued so far to the
 * writer.
 *
 *   | file header | record | record | record | ... | seal |
 *                            ^ synced  ^ mark  ^ written
 *
 * The writer copies small payloads next to their headers, so that one system call writes a few
 * large parts instead of thousands of small ones. It writes large payloads from their own
 * memory. It hashes all bytes that it writes; the hash is part of the seal, the last record of
 * a segment.
 *
 * The mark is the end of the last successful flush. Records of the journal (disk/journal.h)
 * possibly refer to the bytes before the mark, and clients possibly rely on these records
 * already. So the bytes before the mark stay in the file even if a later step fails: if the
 * process is killed, the next process reads them. No record of the journal refers to the bytes
 * after the mark.
 *
 * After a write has failed on a full disk, rp_segment_writer_rewind() returns to the mark and
 * truncates the file there; the writer stays good. After any other failed write, and after a
 * failed sync, the writer is bad. A failed sync has possibly discarded bytes that a later sync
 * would report as synced, so a bad writer never syncs the file again. rp_segment_writer_leave()
 * abandons the file and makes the writer good again. Only one thread at a time may use a
 * writer.
 *
 * Invariants:
 *
 *   W1  synced, started and mark.written are at most `written`;
 *   W2  count <= capacity, and `offsets` has the offset of each of the `count` records written;
 *   W3  a bad writer neither writes nor syncs until rp_segment_writer_leave();
 *   W4  `hash` covers the bytes before `written`; marked_hash covers the bytes before the
 *       mark. */
#ifndef RP_DISK_SEGMENT_WRITER_H
#define RP_DISK_SEGMENT_WRITER_H

#include "chunk/chunk.h"
#include "disk/hash.h"
#include "disk/segment.h"

/* A record to be written to a segment. */
typedef struct rp_segment_entry {
    rp_segment *segment;
    rp_chunk *chunk; /* a reference to the chunk that the record contains; NULL: none */
    const uint8_t *data;
    uint64_t number;
    uint32_t offset; /* offset of the record in the segment */
    uint32_t size;
    uint16_t kind;
    bool is_copy; /* the entry owns `data`, a block of size + 1 bytes (so that `data` is not
                     NULL even if `size` is 0) */
    /* If the entry moves a chunk to a new location: the packed location (disk/location.h) of
     * the record from which this entry was copied. Otherwise 0. */
    uint64_t moved_from;
} rp_segment_entry;

/* A position in the file to which the writer can return. */
typedef struct rp_segment_mark {
    uint64_t written;
    size_t count;
    uint32_t before;
} rp_segment_mark;

typedef struct rp_segment_writer {
    rp_allocator alloc;
    rp_files *files;
    rp_store_id store;
    rp_segment *segment; /* a reference to the segment being written; NULL: none */
    rp_hash *hash, *marked_hash;
    rp_segment_mark mark;
    uint8_t *stage;  /* headers and small payloads for one system call; NULL until needed */
    rp_bytes *parts; /* the parts of one system call */
    uint32_t *offsets;
    size_t count, capacity;   /* number of records written; size of `offsets` */
    uint64_t written, synced; /* in bytes */
    uint64_t started;   /* the kernel has been asked to begin writing the bytes before this
                           offset */
    uint32_t before;    /* header checksum of the last record: `before` of the next one */
    bool is_new;        /* the directory entry of the file is not synced */
    bool has_folder;    /* the directory "seg" exists */
    bool folder_is_new; /* the entry of the directory "seg" is not synced */
    bool is_bad;
    bool is_full; /* the last write failed because the disk is full or has no free inode */
} rp_segment_writer;

void rp_segment_writer_init(rp_segment_writer *w, const rp_allocator *alloc, rp_files *files,
                            const rp_store_id *store);
void rp_segment_writer_deinit(rp_segment_writer *w);

/* Writes as many of the `count` entries, from the first on, as fit into one system call, and
 * sets `*taken` (>= 1) to their number. All entries must be of one segment. Creates the file of
 * a new segment; the previous segment must be sealed. If the call fails and the writer is not
 * bad, the caller must rewind the writer. Errors: RP_NO_RESOURCE, RP_UNAVAILABLE, RP_EXISTS
 * (the file of the new segment exists already; the writer is bad). */
RP_NODISCARD rp_status rp_segment_writer_write(rp_segment_writer *w,
                                               const rp_segment_entry *entries, size_t count,
                                               size_t *taken, rp_error *err);
/* Asks the kernel to begin writing to the disk if some megabytes were written since the last
 * request. */
void rp_segment_writer_start_sync(rp_segment_writer *w);
/* Syncs the file of a segment. If `is_new` is set, also syncs the directory "seg". If
 * `folder_is_new` is set, also syncs the data directory. The function uses no writer, so
 * another thread may write to the file during the call. */
RP_NODISCARD rp_status rp_segment_sync_file(rp_segment *segment, rp_files *files, bool is_new,
                                            bool folder_is_new, rp_error *err);
/* Called after rp_segment_sync_file() has synced the first `bytes` bytes and the
 * directories. */
void rp_segment_writer_note_synced(rp_segment_writer *w, uint64_t bytes);
/* Syncs the file. For a new file, also syncs its directory entry. */
RP_NODISCARD rp_status rp_segment_writer_sync(rp_segment_writer *w, rp_error *err);
/* Sets the mark to `written`. */
void rp_segment_writer_mark(rp_segment_writer *w);
/* Returns to the mark and truncates the file there. If the truncation fails, the writer is
 * bad. */
void rp_segment_writer_rewind(rp_segment_writer *w);
/* Writes the seal and syncs. The writer is then ready for the next segment. */
RP_NODISCARD rp_status rp_segment_writer_seal(rp_segment_writer *w, rp_error *err);
/* Abandons the file and removes it. Nothing may refer to its records. */
void rp_segment_writer_remove(rp_segment_writer *w);
/* Abandons the file: truncates the file at the mark, or removes it if there is no record before
 * the mark. Ignores failures of both steps. The writer is then good again, for the next
 * segment. */
void rp_segment_writer_leave(rp_segment_writer *w);

#endif
