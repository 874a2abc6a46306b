/* SPDX-License-Identifier: Apache-2.0 */
/* Writes records into the file of one segment after the other: the inside of segments.h.
 *
 *   | file header | record | record | record | ... | seal |
 *                            ^ synced  ^ mark  ^ written
 *
 * Small payloads are copied beside their headers, so that a call of the system's is some large
 * parts and not thousands; large ones go from where they are. The hash for the seal is taken of
 * what is written, as it is.
 *
 * The mark is where the last flush ended that succeeded. The journal may have acknowledged
 * what stands before it, so these bytes stay in the file whatever fails later: a process that
 * is killed leaves them to the next one. What stands behind the mark nobody knows of yet.
 *
 * After a write has failed for want of space, rp_segment_writer_rewind() goes back to the mark
 * and gives the space behind it back; the writer stays good. After any other failure of a
 * write, and after every failure of a sync, the writer is bad: nothing of the file that is not
 * synced may be synced again. rp_segment_writer_leave() gives the file up. One thread at a
 * time. */
#ifndef RP_DISK_SEGMENT_WRITER_H
#define RP_DISK_SEGMENT_WRITER_H

#include "disk/hash.h"
#include "disk/segment.h"

/* A record on its way into a segment. */
typedef struct rp_segment_entry {
    rp_segment *segment;
    rp_chunk *chunk; /* whose home tells of it, with a reference; NULL: none's */
    const uint8_t *data;
    uint64_t number;
    uint32_t offset; /* in the segment */
    uint32_t size;
    uint16_t kind;
    bool is_copy; /* the data is the entry's own, and one byte longer */
    /* Of a chunk that is being moved: segment << 32 | offset of its record on stable storage.
     */
    uint64_t moved_from;
} rp_segment_entry;

/* A place in the file to which the writer can go back. */
typedef struct rp_segment_mark {
    uint64_t written;
    size_t count;
    uint32_t before;
} rp_segment_mark;

typedef struct rp_segment_writer {
    rp_allocator alloc;
    rp_files *files;
    rp_store_id store;
    rp_segment *segment;         /* the one being written, with a reference; NULL: none */
    rp_hash *hash, *marked_hash; /* of what is written; of what stands before the mark */
    rp_segment_mark mark;
    uint8_t *stage;  /* headers and small payloads of a call; NULL until it is needed */
    rp_bytes *parts; /* of a call */
    uint32_t *offsets;
    size_t count, capacity; /* of records so far, and room for them */
    uint64_t written, synced;
    uint64_t started;   /* up to here the system has been asked to write it */
    uint32_t before;    /* what the next record has to follow */
    bool is_new;        /* its name is not synced */
    bool has_folder;    /* "seg" is there */
    bool folder_is_new; /* and its name is not synced */
    bool is_bad;
    bool is_full; /* the last write failed for want of space */
} rp_segment_writer;

void rp_segment_writer_init(rp_segment_writer *w, const rp_allocator *alloc, rp_files *files,
                            const rp_store_id *store);
void rp_segment_writer_deinit(rp_segment_writer *w);

/* Writes the first of the entries, all of one segment, as many as go into one call: `*taken` of
 * them, at least 1. Makes the segment's file if it is a new one; the one before must be sealed.
 * After a failure that leaves the writer good, rewind it.
 * RP_NO_RESOURCE, RP_UNAVAILABLE, RP_EXISTS (the writer is bad then). */
RP_NODISCARD rp_status rp_segment_writer_write(rp_segment_writer *w,
                                               const rp_segment_entry *entries, size_t count,
                                               size_t *taken, rp_error *err);
/* Has the system begin with what is written, if that is some megabytes. */
void rp_segment_writer_start_sync(rp_segment_writer *w);
/* Brings what is written to stable storage, and the file's name. */
RP_NODISCARD rp_status rp_segment_writer_sync(rp_segment_writer *w, rp_error *err);
/* Sets the mark behind what is written. */
void rp_segment_writer_mark(rp_segment_writer *w);
/* Goes back to the mark and cuts the file off there. If that fails the writer is bad. */
void rp_segment_writer_rewind(rp_segment_writer *w);
/* Writes the seal, syncs, and is ready for the next segment. */
RP_NODISCARD rp_status rp_segment_writer_seal(rp_segment_writer *w, rp_error *err);
/* Gives the file up: what stands behind the mark is cut off, and a file that has nothing before
 * it is removed, as far as the disk lets us. Good again, for a next segment. */
void rp_segment_writer_leave(rp_segment_writer *w);

#endif
