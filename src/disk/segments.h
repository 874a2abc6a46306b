/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: append-only files of records. A record is written once and found by its location.
 *
 * The journal, a checkpoint or the disk tier puts a chunk here when it first needs the chunk on
 * disk; checkpoints also put their blocks here. Putting gives a record its location at once and
 * queues it. Flushing writes the queue in order, straight from the memory of the chunks.
 * Syncing makes it durable.
 *
 * A segment is a reference-counted object with an open file: a location stays readable while
 * something refers to the segment, even after its file was removed. Safe from any thread. */
#ifndef RP_DISK_SEGMENTS_H
#define RP_DISK_SEGMENTS_H

#include "chunk/chunk.h"
#include "disk/location.h"
#include "disk/names.h"

typedef struct rp_segments rp_segments;

typedef struct rp_segments_options {
    const rp_allocator *alloc;
    rp_files *files; /* borrowed */
    rp_store_id store;
    uint64_t segment_bytes; /* size from which a new segment is started, at most 2 GiB;
                               0: 256 MiB */
    uint64_t next_number;   /* of the next segment, 1 .. 2^32 - 1, above all existing ones */
} rp_segments_options;

RP_NODISCARD rp_status rp_segments_new(const rp_segments_options *options, rp_segments **out,
                                       rp_error *err);
/* Drops the queue and closes all files. No thread may be in a call. Chunks with locations there
 * may live on. NULL is fine. */
void rp_segments_free(rp_segments *s);

/* Copies the location at which a chunk is, or will be once the queue is flushed. Returns false
 * if the chunk has not been put, was dropped before it was written, or is in a segment that was
 * revoked. Takes a short lock for chunks in such segments, and in older ones. */
bool rp_segments_locate(rp_segments *s, const rp_chunk *chunk, rp_disk_location *out);
/* As rp_segments_locate(), for a chunk that can be in one store only. */
bool rp_chunk_locate(const rp_chunk *chunk, rp_disk_location *out);
/* True if the chunk is on stable storage: it can be read back, and its bytes in memory are not
 * used here any more. */
bool rp_segments_has_stored(const rp_segments *s, const rp_chunk *chunk);

/* Gives a chunk a location unless it has one, and queues it with a reference. Its bytes must
 * stay in memory until it is stored. Takes a short lock, no I/O.
 * RP_NO_RESOURCE, RP_INVALID (over RP_MAX_RECORD_BYTES). */
RP_NODISCARD rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk,
                                             rp_disk_location *out);
/* As rp_segments_put_chunk() for each of `count` chunks, with one lock for all of them. Sets
 * `*bytes` to the bytes of the records that it has queued. After a failure a part of the chunks
 * has been put. */
RP_NODISCARD rp_status rp_segments_put_chunks(rp_segments *s, rp_chunk *const *chunks,
                                              size_t count, uint64_t *bytes);
/* Moves a chunk to a new location: for compaction. Reads the chunk from its old location. If
 * the chunk is still queued, it keeps its location. The new record names the first location of
 * the chunk. Since new segments have higher numbers, no other chunk can get that location while
 * the record exists, so it identifies the chunk.
 * RP_NO_RESOURCE, RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_move_chunk(rp_segments *s, rp_chunk *chunk,
                                              rp_disk_location *out, rp_error *err);
/* Queues a copy of a record that is no chunk. RP_NO_RESOURCE, RP_INVALID. */
RP_NODISCARD rp_status rp_segments_put(rp_segments *s, rp_record_kind kind, uint64_t number,
                                       const void *payload, size_t size, rp_disk_location *out);
/* For recovery: attaches to a chunk the location that it was read from. `first` is the packed
 * location of the chunk before its first move; 0: it was never moved. The segment must be open.
 * RP_NOT_FOUND, RP_NO_RESOURCE, RP_INVALID (another size). */
RP_NODISCARD rp_status rp_segments_adopt(rp_segments *s, rp_chunk *chunk,
                                         const rp_disk_location *location, uint64_t first);

/* Bytes queued and not written. */
uint64_t rp_segments_queued(rp_segments *s);
/* Bytes queued since the start, less those that were dropped. `*queued` of them are not
 * written. */
uint64_t rp_segments_put_bytes(rp_segments *s, uint64_t *queued);
/* Writes everything queued so far; seals and syncs segments that become full. One thread at a
 * time writes, others wait for it. If the disk is full, nothing is written and the next call
 * retries. Any other failure condemns the open segment: its records that are not synced get new
 * locations in the next segment and are written again, from memory. Callers that hold locations
 * must look them up again after RP_OK of a later flush. Bytes that an earlier flush wrote stay
 * in the file. Does not wait for a sync, unless a segment is full or 64 MiB are not synced.
 * RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_flush(rp_segments *s, rp_error *err);
/* Flushes, then syncs the files and, for new ones, their directory. */
RP_NODISCARD rp_status rp_segments_sync(rp_segments *s, rp_error *err);
/* Drops the records that are not written, if the last flush or sync failed on a full disk, or
 * if `always`. Their chunks lose their location and can be put again; chunks that were being
 * moved get their old location back. A flush or sync that waits for dropped records fails. For
 * a checkpoint on a full disk: most of the backlog may belong to deleted items. */
void rp_segments_drop_queue(rp_segments *s, bool always);
/* Drops the queue and removes the segments from `first` on that have no chunk. For a checkpoint
 * that failed on a full disk: only its manifest would refer to its blocks. Segments with chunks
 * stay, since the journal may refer to those. */
void rp_segments_discard(rp_segments *s, uint64_t first);
/* Makes later records go into a new segment. Takes no I/O. */
void rp_segments_end_tail(rp_segments *s);
/* Syncs the queue and seals the open segment: later records go into a new one. For a full disk:
 * only a segment that is no longer written can be removed. If there is no space for the seal,
 * the segment has none. */
RP_NODISCARD rp_status rp_segments_end_open(rp_segments *s, rp_error *err);
/* True if the last flush or sync failed because the disk is full. */
bool rp_segments_is_full(rp_segments *s);
/* Syncs the records that are flushed and writes nothing: for a full disk. */
RP_NODISCARD rp_status rp_segments_sync_flushed(rp_segments *s, rp_error *err);
/* Takes their location from the chunks of a segment that is no longer written: they can be put
 * again. For a full disk, where chunks that are in no table would keep the segment. The bytes
 * of its chunks must be in memory, and no thread may read from it. */
void rp_segments_revoke(rp_segments *s, uint64_t number);
/* Returns how often locations have changed because a segment was condemned or revoked or the
 * queue dropped. A caller that has recorded locations must record them again if this number has
 * changed since. */
uint64_t rp_segments_generation(rp_segments *s);

/* Reads and checks the record at `location` into `out`, which has space for location->size
 * bytes. A record that is not on stable storage yet is read from memory. If `first` is not
 * NULL, sets `*first` to the packed location of a moved chunk before its first move, or to 0.
 * If the location is outdated because a segment was condemned, returns RP_NOT_FOUND: then look
 * the chunk up again.
 * RP_NOT_FOUND, RP_CORRUPT, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_read(rp_segments *s, const rp_disk_location *location,
                                        rp_record_kind kind, void *out, uint64_t *first,
                                        rp_error *err);

/* Opens an existing segment for reading, unless it is open. Sets `*bytes` to the number of its
 * bytes that can be read. For recovery, and to learn the size of a segment.
 * RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION (a newer format), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_open(rp_segments *s, uint64_t number, uint64_t *bytes,
                                        rp_error *err);

/* Syncs the file of a segment that rp_segments_open() opened. An earlier process may have left
 * the file unsynced, and this process relies on the data that it has read.
 * RP_NOT_FOUND (it is not open), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_segments_sync_opened(rp_segments *s, uint64_t number, rp_error *err);

/* Removes the file of a segment and releases the store's handle. Chunks in it stay readable.
 * The removal is durable only after a sync of the directory "seg".
 * RP_PRECONDITION (it is being written), RP_NOT_FOUND (no such file), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_remove(rp_segments *s, uint64_t number, rp_error *err);

/* The number that the next new segment gets. */
uint64_t rp_segments_next(rp_segments *s);
/* The segment that is being written, or will be next. Segments with lower numbers are no longer
 * written. */
uint64_t rp_segments_writing(rp_segments *s);
/* True if a chunk in memory has its location in the segment, or a thread reads from it. Once
 * false for a segment that is no longer written, it stays false. */
bool rp_segments_in_use(rp_segments *s, uint64_t number);

#endif
