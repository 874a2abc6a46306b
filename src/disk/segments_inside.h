/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the segments (disk/segments.h): a queue of records that are not on stable
 * storage. segments_put.c appends records to the queue; segments_flush.c writes them to files.
 *
 *   entries   | flushed | written, not flushed | queued            |
 *   index     0       flushed                written              count
 *
 * Putting a record appends an entry to the queue. The entry's record gets the location at the
 * tail, which is the first free offset of the newest segment. One thread at a time, the worker,
 * writes entries from index `written` on. When the worker has written all entries that its
 * caller asked for, these entries are flushed: their bytes are in the file, but not necessarily
 * synced. Entries that are written and not flushed can be rewound (see below). An entry keeps
 * its bytes in memory until they are synced. A sync releases the entries before `written`.
 *
 * If the disk is full, the worker rewinds: it truncates the file to the flushed bytes, and the
 * entries that are written and not flushed become queued entries again, with the same
 * locations. If the disk fails in another way, the worker condemns the segment: the segment is
 * not written any more, and all entries get new locations in new segments and are written
 * again. Flushed bytes also stay in the condemned file, since clients possibly rely on them
 * already.
 *
 * Invariants, whenever mu is free (rp_segments_check()):
 *
 *   S1  each entry directly follows the previous entry, or is the first of a segment with a
 *       higher number;
 *   S2  if there is a tail (`tail` is not NULL), it directly follows the last entry;
 *   S3  a chunk that has entries has the location of its last entry, and is not `stored`;
 *   S4  queued_bytes is the size of the entries from `written` on; unsynced_bytes is the size
 *       of the entries before `written`; put_bytes >= queued_bytes + unsynced_bytes; flushed <=
 *       written <= count;
 *   S5  each segment of an entry is held: one of its references is the store's handle (is_held
 *       in disk/segment.h);
 *   S6  while a sync runs beside the worker (`side`), one of two things is true: side.segment
 *       was condemned; or it is the open segment, and the entries with numbers below side.until
 *       are flushed or removed from the queue.
 *
 * The invariants S1 and S2 do not hold while must_replace is set. */
#ifndef RP_DISK_SEGMENTS_INSIDE_H
#define RP_DISK_SEGMENTS_INSIDE_H

#include "disk/segment_writer.h"
#include "disk/store_location.h"

typedef struct rp_segments rp_segments;

typedef enum rp_side_state { RP_SIDE_NONE, RP_SIDE_RUNNING, RP_SIDE_DONE } rp_side_state;

/* A sync on another thread, while the worker writes. */
typedef struct rp_side_sync {
    rp_side_state state;
    rp_segment *segment; /* a reference; NULL: none */
    uint64_t bytes;      /* flushed bytes of its file, which the sync covers */
    uint64_t until;      /* number of the first entry after these bytes */
    rp_status status;    /* `status` and `why` are valid when the sync is done */
    rp_error why;
} rp_side_sync;

struct rp_segments {
    rp_allocator alloc;
    rp_files *files;
    uint64_t segment_bytes;
    rp_store_id store;
    rp_segment_index *index;

    rp_mutex mu;  /* rank 44 */
    rp_cond done; /* signalled when the worker, or the sync beside it, has finished */
    bool is_working RP_GUARDED_BY(mu); /* a thread is the worker */
    rp_side_sync side RP_GUARDED_BY(mu);
    /* A segment was condemned, and so far there was no memory for the segments that replace
     * it. */
    bool must_replace RP_GUARDED_BY(mu);
    bool is_full RP_GUARDED_BY(mu);   /* the last worker failed because the disk is full */
    uint64_t drops RP_GUARDED_BY(mu); /* how often rp_segments_drop_queue() dropped entries */
    uint64_t next_number RP_GUARDED_BY(mu);
    uint64_t generation RP_GUARDED_BY(mu);
    rp_segment *tail RP_GUARDED_BY(mu); /* segment of the next record. Borrowed: the store's
                                           handle is a reference to it */
    uint64_t tail_offset RP_GUARDED_BY(mu);
    uint64_t open_number RP_GUARDED_BY(mu); /* number of the segment being written; 0: none */

    rp_segment_entry *ring RP_GUARDED_BY(mu);
    size_t capacity RP_GUARDED_BY(mu), first RP_GUARDED_BY(mu); /* capacity: a power of two */
    size_t count RP_GUARDED_BY(mu), written RP_GUARDED_BY(mu), flushed RP_GUARDED_BY(mu);
    uint64_t popped RP_GUARDED_BY(mu); /* number of entries removed so far: the entry at index i
                                          has number popped + i */
    uint64_t queued_bytes RP_GUARDED_BY(mu), unsynced_bytes RP_GUARDED_BY(mu);
    uint64_t put_bytes RP_GUARDED_BY(mu); /* bytes queued since the start, less those dropped */

    /* Used only by the worker. */
    rp_segment_writer writer;
    rp_segment_entry *batch; /* NULL until needed */
};

static inline uint64_t rp_entry_bytes(const rp_segment_entry *e)
{
    return RP_RECORD_HEADER_BYTES + (uint64_t)e->size;
}

static inline rp_segment_entry *rp_entry_at(const rp_segments *s, size_t i)
{
    return &s->ring[(s->first + i) & (s->capacity - 1)];
}

/* Gives a new segment the next number, adds it to the index and sets is_held: the caller's
 * reference becomes the store's handle. */
void rp_segments_enter_locked(rp_segments *s, rp_segment *segment) RP_REQUIRES(s->mu);
/* Releases the store's handle (the reference that is_held counts), if is_held is set. */
void rp_segments_unhold_locked(rp_segments *s, rp_segment *segment) RP_REQUIRES(s->mu);
/* Gives all entries new locations after a segment was condemned. On RP_NO_RESOURCE nothing has
 * changed. */
rp_status rp_segments_replace_locked(rp_segments *s) RP_REQUIRES(s->mu);

/* Releases the data and the chunk of an entry. The caller must hold no lock. */
void rp_entry_release(rp_segments *s, rp_segment_entry *e);
void rp_segments_deinit_batch(rp_segments *s);

/* Checks all invariants. Returns the name of an invariant that does not hold, or NULL if all
 * hold. For RP_VERIFY(). */
const char *rp_segments_broken_locked(rp_segments *s) RP_REQUIRES(s->mu);
/* For tests: checks the same invariants. If one does not hold, returns RP_CORRUPT, and the
 * error text names it. */
RP_NODISCARD rp_status rp_segments_check(rp_segments *s, rp_error *err);

#endif
