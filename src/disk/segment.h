/* SPDX-License-Identifier: Apache-2.0 */
/* A segment, which is one append-only file of records, and the index of all segments that a
 * process has open. Private to the implementation of disk/segments.h.
 *
 * A segment is reference-counted. References are held by the store's own handle, by the
 * locations of the chunks in it and by readers. When the last reference goes, the segment
 * leaves the index. Its file is not closed then: closing may take long, and the last reference
 * may go under any lock. The segment is retired, and rp_segment_index_reclaim() closes its file
 * later.
 *
 * Invariants, whenever the lock of the index is free:
 *
 *   G1  a segment that rp_segment_index_add() has added is in the bucket of its number, exactly
 *       once, while it has references;
 *   G2  a retired segment has no references and is in no bucket;
 *   G3  the index lives while it has an owner or segments.
 *
 * Any thread. The lock of the index has rank 92 and is held for a few list operations. */
#ifndef RP_DISK_SEGMENT_H
#define RP_DISK_SEGMENT_H

#include <stdatomic.h>

#include "disk/location.h"
#include "util/mutex.h"
#include "util/refcount.h"

enum { RP_SEGMENT_BUCKETS = 256 };

typedef struct rp_segment_index {
    rp_refcount refs; /* of its owner and of all segments */
    rp_allocator alloc;
    rp_mutex mu;
    rp_segment *buckets[RP_SEGMENT_BUCKETS] RP_GUARDED_BY(mu);
    rp_segment *retired RP_GUARDED_BY(mu); /* segments whose files are to be closed */
    atomic_uint_fast32_t revoked;          /* how many segments with references are revoked */
    atomic_uint_fast64_t last_revoked;     /* the highest number of a revoked segment */
} rp_segment_index;

struct rp_segment {
    atomic_uint_fast32_t refs;
    uint64_t number;
    rp_segment_index *index;
    rp_segment *next; /* in its bucket, among the retired, or in a list of its creator */
    bool is_held; /* the store's handle is one of the references; guarded by rp_segments.mu */
    bool has_chunks; /* a chunk was put into it by this process; guarded by rp_segments.mu */
    /* No chunk has its location here any more; guarded by rp_segments.mu. */
    bool is_revoked;
    bool is_old;   /* written by an earlier process: bytes missing in its file are damage */
    rp_file *file; /* NULL before it is created and after the index is closed */
    /* Bytes of the file that can be read: those on stable storage. Stored with release after
     * `file` is set, so that a thread that sees them also sees the file. */
    atomic_uint_least64_t readable;
};

/* NULL if there is no memory. Returns owned: rp_segment_index_close(). */
rp_segment_index *rp_segment_index_new(const rp_allocator *alloc);
/* Closes all files and drops the owner's reference. No thread may read any more; segments stay
 * valid. NULL is fine. */
void rp_segment_index_close(rp_segment_index *index);
/* Closes the files of retired segments and frees the segments. The caller holds no lock. */
void rp_segment_index_reclaim(rp_segment_index *index);

/* Creates a segment that has no file yet and is not in the index yet. NULL if there is no
 * memory. Returns owned. */
rp_segment *rp_segment_new(rp_segment_index *index, uint64_t number);
/* Adds a segment. Returns false if there is one with that number. */
bool rp_segment_index_add(rp_segment_index *index, rp_segment *segment);
/* Returns a new reference to the segment with that number, or NULL. */
rp_segment *rp_segment_index_find(rp_segment_index *index, uint64_t number);
/* Clears `is_held` of one held segment and returns that segment: the store's reference passes
 * to the caller. Returns NULL if no segment is held. */
rp_segment *rp_segment_index_take_held(rp_segment_index *index);

void rp_segment_ref(rp_segment *segment);
void rp_segment_unref(rp_segment *segment); /* NULL is fine */

/* Closes the file of a segment that no thread reads and none will read. */
void rp_segment_close_file(rp_segment *segment);

/* Opens the file of an existing segment for reading and checks its header.
 * RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_open_file(rp_segment *segment, rp_files *files,
                                            const rp_store_id *store, rp_error *err);

/* Reads the record at `location` into `out` (location->size bytes) and checks it. `files` are
 * those that the segment was opened with. If `first` is
 * not NULL, sets `*first` to the packed location at which a moved chunk was first written, or
 * to 0 if the record is not a moved chunk.
 * RP_NOT_FOUND (nothing is written there), RP_CORRUPT, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_read(rp_segment *segment, const rp_files *files,
                                       const rp_disk_location *location, rp_record_kind kind,
                                       void *out, uint64_t *first, rp_error *err);

enum { RP_SEAL_FIXED_BYTES = 32 };

/* The last record of a finished segment: see docs/checkpoint.md. */
typedef struct rp_seal {
    uint64_t count;         /* of the records before it */
    uint64_t bytes;         /* of the file before it */
    uint8_t hash[16];       /* XXH3-128 of those bytes */
    const uint8_t *offsets; /* of the records, 4 bytes each. Borrowed from the payload */
} rp_seal;

/* Parses the payload of a seal. Pure. RP_CORRUPT. */
RP_NODISCARD rp_status rp_seal_read(const uint8_t *payload, size_t size, rp_seal *out,
                                    rp_error *err);

#endif
