/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: append-only files of records (disk/record.h). A record is written once and found by
 * its disk location (disk/location.h).
 *
 * The journal (disk/journal.h), a checkpoint or the disk tier (durable/tier/tier.h) puts a
 * chunk here when it first needs the chunk on disk. Checkpoints also put their blocks (slots of
 * tables) here. To put a record is to give it a location and to queue it. To flush is to write
 * the queue to the files in order, directly from the memory of the chunks. To sync is to make
 * the written records durable.
 *
 * A segment is a refcounted object with an open file. The records of a segment stay readable
 * while there is a reference to it, even after its file was removed. Any thread may call these
 * functions. */
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
    uint64_t segment_bytes; /* when a segment has this size, a new one is started; at most 2
                               GiB; 0: 256 MiB */
    uint64_t next_number;   /* of the next segment: 1 .. 2^32 - 1, above all existing numbers */
} rp_segments_options;

RP_NODISCARD rp_status rp_segments_new(const rp_segments_options *options, rp_segments **out,
                                       rp_error *err);
/* Drops the queue and closes all files. The caller must ensure that no other function of this
 * header is running. Chunks that have locations in these segments are allowed to exist longer.
 * `s` may be NULL. */
void rp_segments_free(rp_segments *s);

/* Copies the location at which a chunk is, or will be after the queue has been flushed. Returns
 * false if the chunk was not put, was dropped before it was written, or is in a revoked segment
 * (rp_segments_revoke()). Takes no lock, except for a short time while a revoked segment still
 * has references, and only for chunks in segments up to the highest revoked number. */
bool rp_segments_locate(rp_segments *s, const rp_chunk *chunk, rp_disk_location *out);
/* Copies the location of a chunk, even one in a revoked segment. Takes no lock. If the chunk
 * was put in several durable stores, copies its location in one of them: the store in which its
 * first put came last. Returns false if the chunk has no location in this store. */
bool rp_chunk_locate(const rp_chunk *chunk, rp_disk_location *out);
/* Returns true if the chunk is on stable storage: it can be read back, and rp_segments no
 * longer uses its bytes in memory. */
bool rp_segments_has_stored(const rp_segments *s, const rp_chunk *chunk);

/* Puts a chunk, unless it has a location already. The queue holds a reference to the chunk. The
 * bytes of the chunk must stay in memory until rp_segments_has_stored() returns true for it.
 * Takes a lock for a short time; does no I/O. Errors: RP_NO_RESOURCE, RP_INVALID (the chunk has
 * more than RP_MAX_RECORD_BYTES). */
RP_NODISCARD rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk,
                                             rp_disk_location *out);
/* Does the same as rp_segments_put_chunk() for `count` chunks, under one lock. Sets `*bytes` to
 * the bytes of the records that the call has queued. After a failure, some of the chunks are
 * possibly put. */
RP_NODISCARD rp_status rp_segments_put_chunks(rp_segments *s, rp_chunk *const *chunks,
                                              size_t count, uint64_t *bytes);
/* For compaction: reads a chunk from its location and moves it to a new location. A chunk that
 * is not on stable storage yet keeps its location. The new record contains the first location
 * that the chunk ever had, which identifies the chunk. While the new record exists, no other
 * chunk gets this first location: the segment of the new record has the same or a higher
 * number, and a new segment gets a number above the numbers of all existing segments. Errors:
 * RP_NO_RESOURCE, RP_CORRUPT, RP_NOT_FOUND, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_move_chunk(rp_segments *s, rp_chunk *chunk,
                                              rp_disk_location *out, rp_error *err);
/* Queues a copy of a record that is not a chunk. Errors: RP_NO_RESOURCE, RP_INVALID. */
RP_NODISCARD rp_status rp_segments_put(rp_segments *s, rp_record_kind kind, uint64_t number,
                                       const void *payload, size_t size, rp_disk_location *out);
/* For recovery: attaches to a chunk the location from which the chunk was read. `first` is the
 * packed location (disk/location.h) of the chunk before its first move, or 0 if it was never
 * moved. Errors: RP_NOT_FOUND (the segment is not open), RP_NO_RESOURCE, RP_INVALID (the
 * location has another size). */
RP_NODISCARD rp_status rp_segments_adopt(rp_segments *s, rp_chunk *chunk,
                                         const rp_disk_location *location, uint64_t first);

/* Returns the bytes that are queued and not written. */
uint64_t rp_segments_queued(rp_segments *s);
/* Returns the bytes that were queued since the start, less the bytes that were dropped. Sets
 * `*queued` to the bytes that are queued and not written. */
uint64_t rp_segments_put_bytes(rp_segments *s, uint64_t *queued);
/* Writes everything queued so far. A segment that becomes full is sealed (its last record, the
 * seal, has a hash of it) and synced. One thread at a time writes; other callers wait for it.
 * If the disk is full, the records that are not written stay queued, and the next call retries.
 * Any other failure condemns the open segment: the segment is not written any more, and its
 * unsynced records get new locations in the next segment, to which a later flush writes them
 * from memory. After a segment was condemned, callers that hold locations must look them up
 * again (rp_segments_generation()). After both kinds of failure, the bytes of earlier flushes
 * that returned RP_OK stay in their file, since clients possibly rely on them already. Waits
 * for a sync only if a segment is full, or if 64 MiB are not synced. Errors: RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_flush(rp_segments *s, rp_error *err);
/* Flushes, then syncs the files. For new files, also syncs their directory. */
RP_NODISCARD rp_status rp_segments_sync(rp_segments *s, rp_error *err);
/* Drops the records that are not written. Does nothing unless the last flush or sync failed on
 * a full disk or `always` is set. Chunks whose records are dropped lose their location and can
 * be put again; a chunk that was being moved gets its old location back. A flush or sync that
 * waits for dropped records fails. This function is for a checkpoint on a full disk, where most
 * of the queued records often belong to deleted items. */
void rp_segments_drop_queue(rp_segments *s, bool always);
/* Drops the queue, and removes the segments with number `first` or higher in which this process
 * has put no chunk. This function is for a checkpoint that failed on a full disk: the blocks
 * that it has put are useless, since only its manifest would have referred to them. Segments
 * with chunks stay, since records of the journal possibly refer to the chunks. */
void rp_segments_discard(rp_segments *s, uint64_t first);
/* Ends the segment into which records are put now: later records are put into a new segment.
 * Does no I/O. */
void rp_segments_end_tail(rp_segments *s);
/* Writes and syncs the queue and seals the open segment: later records are put into a new
 * segment. This function is for a full disk, since only a segment that is no longer written can
 * be removed. If there is no space for the seal, the segment stays without a seal. */
RP_NODISCARD rp_status rp_segments_end_open(rp_segments *s, rp_error *err);
/* Returns true if the last flush or sync failed because the disk is full. */
bool rp_segments_is_full(rp_segments *s);
/* For a full disk: syncs the records that are written, and writes no others. */
RP_NODISCARD rp_status rp_segments_sync_flushed(rp_segments *s, rp_error *err);
/* Revokes a segment that is no longer written: its chunks lose their location and can be put
 * again. This function is for a full disk: chunks in memory that are in no table would
 * otherwise prevent the removal of the segment. The bytes of the segment's chunks must be in
 * memory, and no thread may be reading from the segment. */
void rp_segments_revoke(rp_segments *s, uint64_t number);
/* Returns how often locations have changed because a segment was condemned, a segment was
 * revoked, or the queue was dropped. A caller that has recorded locations must record them
 * again when this number has changed. */
uint64_t rp_segments_generation(rp_segments *s);

/* Reads and checks the record at `location` into `out`, which has space for location->size
 * bytes. A record that is not on stable storage yet is read from memory. If `first` is not
 * NULL, sets `*first` to the packed location of a moved chunk before its first move, or to 0.
 * Errors: RP_NOT_FOUND, RP_CORRUPT, RP_UNAVAILABLE. RP_NOT_FOUND can mean that the location is
 * outdated because a segment was condemned: the caller must look up the chunk again. */
RP_NODISCARD rp_status rp_segments_read(rp_segments *s, const rp_disk_location *location,
                                        rp_record_kind kind, void *out, uint64_t *first,
                                        rp_error *err);

/* Opens an existing segment for reading, if it is not open already. Sets `*bytes` to the number
 * of bytes of the segment that can be read. Used by recovery, and to find out the size of a
 * segment. Errors: RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION (a newer format),
 * RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_open(rp_segments *s, uint64_t number, uint64_t *bytes,
                                        rp_error *err);

/* Syncs the file of a segment that rp_segments_open() opened. An earlier process has possibly
 * not synced the file, and this process relies on the data that it has read from the file.
 * Errors: RP_NOT_FOUND (the segment is not open), RP_UNAVAILABLE, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_segments_sync_opened(rp_segments *s, uint64_t number, rp_error *err);

/* Removes the file of a segment and releases the reference of rp_segments itself (the store's
 * handle). Chunks in the segment stay readable, unless the segment is revoked. The removal is
 * durable only after a sync of the directory "seg". Errors: RP_PRECONDITION (the segment is
 * being written), RP_NOT_FOUND (no such file), RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segments_remove(rp_segments *s, uint64_t number, rp_error *err);

/* Returns the number that the next new segment will get. */
uint64_t rp_segments_next(rp_segments *s);
/* Returns the number of the segment that is being written, or that will be written next.
 * Segments with lower numbers are no longer written. */
uint64_t rp_segments_writing(rp_segments *s);
/* Returns true if a chunk in memory has its location in the segment, or if a thread reads from
 * the segment. For a segment that is no longer written, the result never changes from false to
 * true. */
bool rp_segments_in_use(rp_segments *s, uint64_t number);

#endif
