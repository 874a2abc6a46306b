/* SPDX-License-Identifier: Apache-2.0 */
/* One segment, and the index of all that a process knows: the inside of segments.h.
 *
 * A segment is counted: by the store's own handle, by the homes of the chunks that are in it,
 * and by whoever is reading. When the last lets go it leaves the index. Its file is not closed
 * there and then, for that may take long and nobody knows who is the last, under which locks:
 * it waits for rp_segment_index_bury().
 *
 * Any thread. The index has one lock, rank 92, held for a few list operations. */
#ifndef RP_DISK_SEGMENT_H
#define RP_DISK_SEGMENT_H

#include <stdatomic.h>

#include "disk/segments.h"
#include "util/mutex.h"
#include "util/refcount.h"

enum { RP_SEGMENT_BUCKETS = 256 };

typedef struct rp_segment_index {
    rp_refcount refs; /* its owner and all segments */
    rp_allocator alloc;
    rp_mutex mu;
    rp_segment *buckets[RP_SEGMENT_BUCKETS] RP_GUARDED_BY(mu);
    rp_segment *graves RP_GUARDED_BY(mu); /* that only have to be closed */
} rp_segment_index;

struct rp_segment {
    atomic_uint_fast32_t refs;
    uint64_t number;
    rp_segment_index *index;
    rp_segment *next; /* in its bucket, among the graves, or in a list of the maker's */
    bool is_held;     /* by the store; guarded by the lock of its rp_segments */
    bool is_old;      /* it was there: what is not within its file is damage */
    rp_file *file;    /* NULL until it is made, or once the index is closed */
    /* Bytes of the file that can be read: they are on stable storage. Written last, with
     * release, so that whoever sees them sees the file. */
    atomic_uint_least64_t readable;
};

/* NULL if there is no memory. Returns owned: rp_segment_index_close(). */
rp_segment_index *rp_segment_index_new(const rp_allocator *alloc);
/* Closes all files and lets go. Nobody may read any more; segments stay valid. */
void rp_segment_index_close(rp_segment_index *index);
/* Closes the files of segments that nobody has any more. With no lock held. */
void rp_segment_index_bury(rp_segment_index *index);

/* A new one with no file yet, in no index. NULL if there is no memory. Returns owned. */
rp_segment *rp_segment_new(rp_segment_index *index, uint64_t number);
/* Enters it, unless there is one of that number: then false. */
bool rp_segment_index_add(rp_segment_index *index, rp_segment *segment);
/* With a reference, or NULL. */
rp_segment *rp_segment_index_find(rp_segment_index *index, uint64_t number);
/* One that the store holds, which it does no longer: the reference is the caller's. NULL: there
 * is none left. */
rp_segment *rp_segment_index_take_held(rp_segment_index *index);

void rp_segment_ref(rp_segment *segment);
void rp_segment_unref(rp_segment *segment);

/* Opens its file for reading and checks the header.
 * RP_NOT_FOUND, RP_CORRUPT, RP_PRECONDITION, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_open_file(rp_segment *segment, rp_files *files,
                                            const rp_store_id *store, rp_error *err);

/* Reads the record at `place` and checks it. RP_NOT_FOUND (nothing is written there),
 * RP_CORRUPT, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_segment_read(rp_segment *segment, const rp_place *place,
                                       rp_record_kind kind, void *out, uint64_t *first,
                                       rp_error *err);

enum { RP_SEAL_FIXED_BYTES = 32 };

/* What the last record of a finished segment says: see docs/checkpoint.md. */
typedef struct rp_seal {
    uint64_t count; /* of the records before it */
    uint64_t bytes; /* of the file before it */
    uint8_t hash[16];
    const uint8_t *offsets; /* of the records, 4 bytes each. Borrows */
} rp_seal;

/* Pure. RP_CORRUPT. */
RP_NODISCARD rp_status rp_seal_read(const uint8_t *payload, size_t size, rp_seal *out,
                                    rp_error *err);

#endif
