/* SPDX-License-Identifier: Apache-2.0 */
/* A segment, which is one append-only file of records, and the index of the open segments of
 * one store. Private to the implementation of disk/segments.h.
 *
 * A segment is refcounted. The following hold references: the rp_segments of the store (this
 * reference is the store's handle; is_held says that it exists), the locations of the chunks in
 * the segment, and threads that read from it. When the last reference is dropped, the segment
 * is removed from the index and retired: rp_segment_index_reclaim() closes its file later. The
 * file is not closed at once, since closing can take long, and the last reference can be
 * dropped under any lock.
 *
 * Invariants, whenever the lock of the index is free:
 *
 *   G1  a segment that rp_segment_index_add() has added is in the bucket of its number exactly
 *       once, as long as it has references;
 *   G2  a retired segment has no references and is in no bucket;
 *   G3  the index exists while it has an owner or segments.
 *
 * Any thread may call these functions. The lock of the index has rank 92 (util/mutex.h) and is
 * held for a few list operations. */
#ifndef RP_DISK_SEGMENT_H
#define RP_DISK_SEGMENT_H

#include <stdatomic.h>

#include "disk/location.h"
#include "util/mutex.h"
#include "util/refcount.h"

enum { RP_SEGMENT_BUCKETS = 256 };

typedef struct rp_segment_index {
    rp_refcount refs; /* references of its owner and of all segments */
    rp_allocator alloc;
    rp_mutex mu;
    rp_segment *buckets[RP_SEGMENT_BUCKETS] RP_GUARDED_BY(mu);
    rp_segment *retired RP_GUARDED_BY(mu); /* segments whose files are to be closed */
    atomic_uint_fast32_t revoked;          /* number of revoked segments that have references */
    atomic_uint_fast64_t last_revoked;     /* the highest number of a revoked segment */
} rp_segment_index;

struct rp_segment {
    atomic_uint_fast32_t refs;
    uint64_t number;
    rp_segment_index *index;
    rp_segment *next; /* next in the bucket, in `retired`, or in a list of its creator */
    bool is_held;    /* the store's handle is one of the references; rp_segments.mu guards it */
    bool has_chunks; /* this process has put a chunk into it; rp_segments.mu guards it */
    /* The chunks of the segment have lost their locations (rp_segments_revoke()).
     * rp_segments.mu guards this field. */
    bool is_revoked;
    bool is_old;   /* written by an earlier process: bytes missing in its file are damage */
    rp_file *file; /* NULL before it is created and after the index is closed */
    /* How many bytes of the file can be read: the bytes on stable storage. The number is stored
     * with release order after `file` is set, so that a thread that sees the number also sees
     * `file`. */
    atomic_uint_least64_t readable;
};

/* Makes an index, which the caller owns and releases with rp_segment_index_close(). Returns
 * NULL if there is no memory. */
rp_segment_index *rp_segment_index_new(const rp_allocator *alloc);
/* Closes all files and drops the owner's reference. From now on no thread may read from a
 * segment. Segments stay valid. NULL is fine. */
void rp_segment_index_close(rp_segment_index *index);
/* Closes the files of retired segments and frees the segments. The caller must hold no lock. */
void rp_segment_index_reclaim(rp_segment_index *index);

/* Makes a segment without a file, and does not add it to the index. The caller owns the result.
 * Returns NULL if there is no memory. */
rp_segment *rp_segment_new(rp_segment_index *index, uint64_t number);
/* Adds a segment. Returns false if the index has a segment with that number. */
bool rp_segment_index_add(rp_segment_index *index, rp_segment *segment);
/* Returns a new reference to the segment with that number, or NULL. */
rp_segment *rp_segment_index_find(rp_segment_index *index, uint64_t number);
/* Clears `is_held` of one held segment and returns the segment. The caller takes over the
 * reference of the store's handle. Returns NULL if no segment is held. */
rp_segment *rp_segment_index_take_held(rp_segment_index *index);

void rp_segment_ref(rp_segment *segment);
void rp_segment_unref(rp_segment *segment); /* NULL is fine */

/* Closes the file of a segment. The caller ensures that no thread reads from the segment now or
 * later. */
void rp_segment_close_file(rp_segment *segment);

/* Opens the file of an existing segment for reading and checks its header. Errors:
 * RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_open_file(rp_segment *segment, rp_files *files,
                                            const rp_store_id *store, rp_error *err);

/* Reads the record at `location` into `out` (location->size bytes) and checks it. `files` must
 * be those with which the segment was opened. If `first` is not NULL, sets `*first` to the
 * packed location at which a moved chunk was first written, or to 0 if the record is not a
 * moved chunk. Errors: RP_NOT_FOUND (nothing is written there), RP_CORRUPT, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_read(rp_segment *segment, const rp_files *files,
                                       const rp_disk_location *location, rp_record_kind kind,
                                       void *out, uint64_t *first, rp_error *err);

enum { RP_SEAL_FIXED_BYTES = 32 };

/* The last record of a finished segment: see docs/checkpoint.md. */
typedef struct rp_seal {
    uint64_t count;         /* number of records before it */
    uint64_t bytes;         /* number of bytes of the file before it */
    uint8_t hash[16];       /* hash (XXH3-128) of these bytes */
    const uint8_t *offsets; /* of these records, 4 bytes each. Borrowed from the payload */
} rp_seal;

/* Parses the payload of a seal. Pure. Errors: RP_CORRUPT. */
RP_NODISCARD rp_status rp_seal_read(const uint8_t *payload, size_t size, rp_seal *out,
                                    rp_error *err);

#endif
