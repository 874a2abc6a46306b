/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: append-only files of records, each written once and found by its place.
 *
 * Chunks are put here once in their life, by whoever needs them on disk first: the journal, a
 * checkpoint or the disk tier; so are the blocks of a checkpoint. Putting gives a record its
 * place at once and queues it; flushing writes what is queued, in order, straight from the
 * chunks' memory; syncing makes it durable.
 *
 * A segment is a counted object with an open file: a place stays readable as long as somebody
 * has the segment, even when its file has been removed. Safe from any thread. */
#ifndef RP_DISK_SEGMENTS_H
#define RP_DISK_SEGMENTS_H

#include "chunk/chunk.h"
#include "disk/record.h"

typedef struct rp_segments rp_segments;
typedef struct rp_segment rp_segment;

typedef struct rp_place {
    uint64_t segment; /* its number, from 1; 0: nowhere */
    uint64_t offset;  /* of the record's header */
    uint32_t size;    /* of the payload */
} rp_place;

typedef struct rp_segments_options {
    const rp_allocator *alloc;
    rp_files *files; /* borrowed */
    rp_store_id store;
    uint64_t segment_bytes; /* a new segment is begun when one has this many: at most 2 GiB;
                               0: 256 MiB */
    uint64_t next_number;   /* of the next segment, 1 .. 2^32 - 1, above all that are there */
} rp_segments_options;

RP_NODISCARD rp_status rp_segments_new(const rp_segments_options *options, rp_segments **out,
                                       rp_error *err);
/* Nothing may be queued that somebody still wants, and nobody in a call. Closes all files;
 * chunks with places there may live on. */
void rp_segments_free(rp_segments *s); /* NULL is fine */

/* Where a chunk is, or will be when it has been flushed. False if it has not been put there, or
 * was dropped before it was written. */
bool rp_segments_place(const rp_segments *s, const rp_chunk *chunk, rp_place *out);
/* The same where there is but one store that a chunk can be in. */
bool rp_chunk_place(const rp_chunk *chunk, rp_place *out);
/* True if it is there on stable storage: it can be read back, and its bytes in memory are not
 * looked at any more. */
bool rp_segments_has_stored(const rp_segments *s, const rp_chunk *chunk);

/* Gives a chunk a place, if it has none yet, and queues it with a reference. Its bytes must
 * stay until it is stored. Takes a short lock, no I/O.
 * RP_NO_RESOURCE, RP_INVALID (over RP_MAX_RECORD_BYTES). */
RP_NODISCARD rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk, rp_place *out);
/* The same for a chunk that has a place, which it leaves for a new one: for compaction. Reads
 * it from the disk; one that is still on its way there stays where it is. Its new record says
 * where it was first, and while it is there no other chunk can come to that place, since new
 * segments have higher numbers: so that is who it is.
 * RP_NO_RESOURCE, RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_move_chunk(rp_segments *s, rp_chunk *chunk, rp_place *out,
                                              rp_error *err);
/* Queues a copy of any other record. The same statuses. */
RP_NODISCARD rp_status rp_segments_put(rp_segments *s, rp_record_kind kind, uint64_t number,
                                       const void *payload, size_t size, rp_place *out);
/* Tells a chunk that was read from there where it is, and where it was first, or 0: for
 * recovery. The segment must be open. RP_NOT_FOUND, RP_NO_RESOURCE, RP_INVALID (another size).
 */
RP_NODISCARD rp_status rp_segments_adopt(rp_segments *s, rp_chunk *chunk, const rp_place *place,
                                         uint64_t first);

/* Bytes queued and not written. */
uint64_t rp_segments_queued(rp_segments *s);
/* Bytes queued since the start, less those that were dropped; `*queued` of them are not
 * written. */
uint64_t rp_segments_put_bytes(rp_segments *s, uint64_t *queued);
/* Writes everything queued so far; full segments are sealed and synced on the way. One thread
 * at a time does, others wait for it. If the disk is full nothing is written, and the next call
 * tries again. Any other failure condemns the open segment: what of it was not synced is queued
 * anew for the next one, from memory, with new places; who holds places asks again after RP_OK
 * of a later flush. What an earlier flush has written stays in the file.
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_flush(rp_segments *s, rp_error *err);
/* Flushes, then syncs the files and, for new ones, their directory. */
RP_NODISCARD rp_status rp_segments_sync(rp_segments *s, rp_error *err);
/* Drops the records that are not written, if the last flush or sync failed for want of space or
 * if `always`, so that what is put from now on need not wait for them. Their chunks have no
 * place any more and can be put again; chunks that were being moved are where they were. A
 * flush or sync that waits for them fails. For a checkpoint on a full disk: most of a backlog
 * may be of items that are gone. */
void rp_segments_drop_queue(rp_segments *s, bool always);
/* Syncs what is queued and seals the open segment: what is put later goes into a new one. For a
 * disk that is full: only a segment that is not written any more can be removed. */
RP_NODISCARD rp_status rp_segments_end_open(rp_segments *s, rp_error *err);
/* True if the last flush or sync failed for want of space. */
bool rp_segments_is_full(rp_segments *s);
/* Syncs what has been flushed, and writes nothing: for a disk that is full. */
RP_NODISCARD rp_status rp_segments_sync_flushed(rp_segments *s, rp_error *err);
/* Counts how often places have changed, because a segment was condemned or the queue dropped:
 * if it has, places that were written down since must be written again. */
uint64_t rp_segments_generation(rp_segments *s);

/* Reads and checks the record at `place` into `out`, which has room for place->size bytes. What
 * is not on stable storage yet is read from memory. `*first` (may be NULL) is where a chunk
 * that was moved has been first, segment << 32 | offset; otherwise 0. RP_NOT_FOUND also for a
 * place of before a segment was condemned: ask the chunk again. RP_CORRUPT, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_read(rp_segments *s, const rp_place *place,
                                        rp_record_kind kind, void *out, uint64_t *first,
                                        rp_error *err);

/* Opens a segment that is in the directory for reading, if it is not open; `*bytes` are those
 * that can be read. For recovery, and to know how large it has become.
 * RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION (a newer format), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_open(rp_segments *s, uint64_t number, uint64_t *bytes,
                                        rp_error *err);

/* Syncs the file of a segment that was opened: a process before us may have left it to the
 * system, and what was read of it is relied upon from now on.
 * RP_NOT_FOUND (it is not open), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_segments_sync_opened(rp_segments *s, uint64_t number, rp_error *err);

/* Goes through the records of a file one after the other: for recovery and the tools. `each`
 * returns false to stop. A segment's seal is held against the file. `store` may be NULL: any.
 *
 * `*end` is where the last good record ends, and `*header` is the file's: both are also there
 * with RP_CORRUPT from a record, `*end` >= RP_FILE_HEADER_BYTES then. RP_OK where the file
 * ends, if need be within a record that is cut off: compare `*end` with its size. RP_CORRUPT at
 * any other record that is not good: whoever knows how much of the file has been synced can
 * tell a torn tail from damage.
 * RP_NOT_FOUND, RP_PRECONDITION (a newer format), RP_NO_RESOURCE, RP_UNAVAILABLE. */
typedef bool rp_record_visit(void *ctx, uint64_t offset, const rp_record *record);
RP_NODISCARD rp_status rp_records_scan(const rp_allocator *alloc, rp_files *files,
                                       const char *path, rp_file_kind kind,
                                       const rp_store_id *store, rp_record_visit *each,
                                       void *ctx, rp_file_header *header, uint64_t *end,
                                       rp_error *err);

/* Removes a segment's file and our own handle; chunks that are there stay readable. The name is
 * gone for certain only after a sync of the directory "seg".
 * RP_PRECONDITION (it is being written), RP_NOT_FOUND (no such file), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_remove(rp_segments *s, uint64_t number, rp_error *err);

/* The segment that is being written, or will be next: those with lower numbers are not written
 * any more. */
uint64_t rp_segments_writing(rp_segments *s);
/* Whether a chunk in memory has its place there, or somebody reads from it. Once this is false
 * of a segment that is not written any more, it stays so. */
bool rp_segments_in_use(rp_segments *s, uint64_t number);

/* The path of a segment, "seg/" and 16 hexadecimal digits. Returns `out`. */
char *rp_segment_path(char out[32], uint64_t number);

#endif
