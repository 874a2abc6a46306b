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
    uint64_t segment_bytes; /* a new segment is begun when one has this many */
    uint64_t next_number;   /* of the next segment */
} rp_segments_options;

RP_NODISCARD rp_status rp_segments_new(const rp_segments_options *options, rp_segments **out,
                                       rp_error *err);
/* Nothing may be queued that somebody still wants. References to segments stay valid. */
void rp_segments_free(rp_segments *s); /* NULL is fine */

/* --- a chunk's home ---------------------------------------------------------------------------------- */

/* Where a chunk is, or will be when it has been flushed. False if it has never been put. */
bool rp_chunk_place(const rp_chunk *chunk, rp_place *out);

/* Gives a chunk a place, if it has none yet, and queues it with a reference. Takes a short
 * lock, no I/O.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk, rp_place *out);
/* The same for a chunk that has a place, which it leaves for a new one: for compaction. */
RP_NODISCARD rp_status rp_segments_move_chunk(rp_segments *s, rp_chunk *chunk, rp_place *out,
                                              rp_error *err);
/* Queues a copy of any other record. */
RP_NODISCARD rp_status rp_segments_put(rp_segments *s, rp_record_kind kind, uint64_t number,
                                       const void *payload, size_t size, rp_place *out);
/* Tells a chunk that was read from there where it is: for recovery. */
RP_NODISCARD rp_status rp_segments_adopt(rp_segments *s, rp_chunk *chunk,
                                         const rp_place *place);

/* --- writing ------------------------------------------------------------------------------------------ */

/* Bytes queued and not written. */
uint64_t rp_segments_queued(rp_segments *s);
/* Writes everything queued so far; full segments are sealed and synced on the way. One thread
 * at a time does, others wait for it. A failure condemns the open segment: what of it was not
 * synced is queued anew for the next one, from memory, with new places; who holds places asks
 * again after RP_OK of a later flush.
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_flush(rp_segments *s, rp_error *err);
/* Flushes, then syncs the files and, for new ones, their directory. */
RP_NODISCARD rp_status rp_segments_sync(rp_segments *s, rp_error *err);
/* Counts how often places have changed because a segment was condemned: if it has, places that
 * were written down since must be written again. */
uint64_t rp_segments_generation(rp_segments *s);

/* --- reading ------------------------------------------------------------------------------------------- */

/* Reads and checks the record at `place` into `out`, which has room for place->size bytes. What
 * is still queued is read from memory. RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_read(rp_segments *s, const rp_place *place,
                                        rp_record_kind kind, void *out, rp_error *err);

/* Opens the segment files of a directory for reading; for recovery. Idempotent. RP_CORRUPT. */
RP_NODISCARD rp_status rp_segments_open(rp_segments *s, uint64_t number, uint64_t *bytes,
                                        rp_error *err);

/* Goes through the records of a file one after the other: for recovery and the tools. `each`
 * returns false to stop.
 * `*end` is where the last good record ends. RP_CORRUPT at a bad record that is not the end of
 * the file. */
typedef bool rp_record_visit(void *ctx, uint64_t offset, const rp_record *record);
RP_NODISCARD rp_status rp_records_scan(const rp_allocator *alloc, rp_files *files,
                                       const char *path, rp_file_kind kind,
                                       const rp_store_id *store, rp_record_visit *each,
                                       void *ctx, rp_file_header *header, uint64_t *end,
                                       rp_error *err);

/* Drops our own handle of the segment and removes its file; chunks that are there stay
 * readable. */
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
