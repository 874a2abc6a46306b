/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of raw records for the journal, in order of log sequence numbers (LSNs), in batches
 * of about a megabyte. A raw record is a record before the journal encodes it.
 *
 * A queue has no lock: its owner must serialise the calls. Invariants:
 *
 *   Q1  `end` is the last batch of the list that begins with `first`; both are NULL if the
 *       queue is empty;
 *   Q2  the LSNs of batches ascend;
 *   Q3  `bytes` is the sum of the bytes of all batches. */
#ifndef RP_DISK_JOURNAL_QUEUE_H
#define RP_DISK_JOURNAL_QUEUE_H

#include "disk/record.h"
#include "util/buf.h"

/* The head of a raw record; the payload follows, padded to 8 bytes. */
typedef struct rp_raw {
    uint64_t lsn;
    uint32_t size;
    uint32_t kind;
} rp_raw;

typedef struct rp_raw_batch rp_raw_batch;
struct rp_raw_batch {
    rp_raw_batch *next;
    uint64_t last; /* LSN of its last record */
    rp_buf buf;
};

typedef struct rp_raw_queue {
    rp_raw_batch *first, *end;
    uint64_t bytes; /* total size of the raw records with their heads */
} rp_raw_queue;

static inline const void *rp_raw_payload(const rp_raw *raw)
{
    return raw + 1;
}
static inline size_t rp_raw_bytes(const rp_raw *raw)
{
    return sizeof *raw + ((size_t)raw->size + 7) / 8 * 8;
}

/* Copies a record to the end. The payload is the concatenation of `parts`. If a new batch is
 * needed, takes `*spare` unless it is NULL, and otherwise allocates one. Returns false, with
 * the queue unchanged, if there is no memory or the record is too large. */
RP_NODISCARD bool rp_raw_queue_append(rp_raw_queue *q, const rp_allocator *alloc,
                                      rp_raw_batch **spare, uint64_t lsn, rp_record_kind kind,
                                      const rp_bytes *parts, size_t count);
/* Moves all records of `from` to the end of `to`. */
void rp_raw_queue_move(rp_raw_queue *to, rp_raw_queue *from);
/* Removes the first batch and returns it; the caller owns it. Returns NULL if the queue is
 * empty. */
rp_raw_batch *rp_raw_queue_take(rp_raw_queue *q);
void rp_raw_batch_free(rp_raw_batch *batch, const rp_allocator *alloc); /* NULL is fine */

/* A position in a queue. */
typedef struct rp_raw_cursor {
    const rp_raw_batch *batch;
    size_t offset;
} rp_raw_cursor;

/* Finds the first record with an LSN above `lsn`. */
rp_raw_cursor rp_raw_seek(const rp_raw_queue *q, uint64_t lsn);
/* Returns the record at the cursor and advances it; NULL at the end. */
const rp_raw *rp_raw_next(rp_raw_cursor *at);

#endif
