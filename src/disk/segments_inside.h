/* SPDX-License-Identifier: Apache-2.0 */
/* The queue before the disk, which segments.c fills and segments_flush.c empties.
 *
 *   entries   | flushed | written, not flushed | queued            |
 *             0       flushed                written              count
 *
 * Putting appends an entry, which has its place from a running tail. One thread at a time, the
 * worker, takes entries from `written` on and writes them; when it has written all that it was
 * asked for, they are flushed. A sync releases the entries before `written`. Until then an
 * entry keeps the bytes in memory.
 *
 * If the disk is full, the worker goes back: what was written and not flushed is queued again
 * at the same places, and its bytes are cut off the file. If the disk fails in another way,
 * everything in the queue gets new places, in new segments, and is written again; what was
 * flushed also stays where it was, for the journal may have acknowledged it.
 *
 * Invariants, whenever mu is free (rp_segments_check()):
 *
 *   S1  entries follow each other: each stands right behind the one before it, or first in a
 *       segment with a higher number
 *   S2  the tail, if there is one, is right behind the last
 *   S3  a chunk's home is where its last entry is, and is not stored
 *   S4  queued_bytes are those from `written` on, unsynced_bytes those before; flushed <=
 *       written; put_bytes are at least both
 *   S5  the segments of entries are held
 *
 * S1 and S2 do not hold while must_replace. */
#ifndef RP_DISK_SEGMENTS_INSIDE_H
#define RP_DISK_SEGMENTS_INSIDE_H

#include "disk/home.h"
#include "disk/segment_writer.h"

struct rp_segments {
    rp_allocator alloc;
    rp_files *files;
    uint64_t segment_bytes;
    rp_store_id store;
    rp_segment_index *index;

    rp_mutex mu;                       /* rank 44 */
    rp_cond done;                      /* the worker has finished */
    bool is_working RP_GUARDED_BY(mu); /* somebody is the worker */
    /* A segment was condemned, and there was no memory for the next ones so far. */
    bool must_replace RP_GUARDED_BY(mu);
    bool is_full RP_GUARDED_BY(mu);   /* the last worker failed for want of space */
    uint64_t drops RP_GUARDED_BY(mu); /* how often the queue was dropped */
    uint64_t next_number RP_GUARDED_BY(mu);
    uint64_t generation RP_GUARDED_BY(mu);
    rp_segment *tail RP_GUARDED_BY(mu); /* where the next record goes. Borrows: it is held */
    uint64_t tail_offset RP_GUARDED_BY(mu);
    uint64_t open_number RP_GUARDED_BY(mu); /* that the worker is writing; 0: none */

    rp_segment_entry *ring RP_GUARDED_BY(mu); /* a power of two of them */
    size_t capacity RP_GUARDED_BY(mu), first RP_GUARDED_BY(mu);
    size_t count RP_GUARDED_BY(mu), written RP_GUARDED_BY(mu), flushed RP_GUARDED_BY(mu);
    uint64_t popped RP_GUARDED_BY(mu); /* entries that have left, so that each has a number */
    uint64_t queued_bytes RP_GUARDED_BY(mu), unsynced_bytes RP_GUARDED_BY(mu);
    uint64_t put_bytes RP_GUARDED_BY(mu); /* queued since the start, less what was dropped */

    /* The worker's. */
    rp_segment_writer writer;
    rp_segment_entry *batch; /* NULL until it is needed */
};

static inline uint64_t rp_entry_bytes(const rp_segment_entry *e)
{
    return RP_RECORD_HEADER_BYTES + (uint64_t)e->size;
}

static inline rp_segment_entry *rp_entry_at(const rp_segments *s, size_t i)
{
    return &s->ring[(s->first + i) & (s->capacity - 1)];
}

/* Gives a new segment the next number and enters it in the index, held by us. */
void rp_segments_enter_locked(rp_segments *s, rp_segment *segment) RP_REQUIRES(s->mu);
/* Lets go of the handle. */
void rp_segments_unhold_locked(rp_segments *s, rp_segment *segment) RP_REQUIRES(s->mu);
/* Gives everything in the queue new places, after a segment was condemned. RP_NO_RESOURCE, with
 * nothing changed. */
rp_status rp_segments_replace_locked(rp_segments *s) RP_REQUIRES(s->mu);

/* Ends an entry: outside of all locks. */
void rp_entry_release(rp_segments *s, rp_segment_entry *e);
void rp_segments_deinit_batch(rp_segments *s);

/* For tests: RP_CORRUPT names the invariant that does not hold. */
RP_NODISCARD rp_status rp_segments_check(rp_segments *s, rp_error *err);

#endif
