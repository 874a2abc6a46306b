/* SPDX-License-Identifier: Apache-2.0 */
/* Raw records on their way into the journal, in order, in batches of about a megabyte.
 *
 * A plain value; whoever has it serialises. */
#ifndef RP_DISK_JOURNAL_QUEUE_H
#define RP_DISK_JOURNAL_QUEUE_H

#include "disk/record.h"
#include "util/buf.h"

/* In front of each; the payload follows, padded to 8 bytes. */
typedef struct rp_raw {
    uint64_t lsn;
    uint32_t size;
    uint32_t kind;
} rp_raw;

typedef struct rp_raw_batch rp_raw_batch;
struct rp_raw_batch {
    rp_raw_batch *next;
    uint64_t last; /* LSN */
    rp_buf buf;
};

typedef struct rp_raw_queue {
    rp_raw_batch *first, *end;
    uint64_t bytes; /* of all raw records, headers included */
} rp_raw_queue;

static inline const void *rp_raw_payload(const rp_raw *raw)
{
    return raw + 1;
}
static inline size_t rp_raw_bytes(const rp_raw *raw)
{
    return sizeof *raw + ((size_t)raw->size + 7) / 8 * 8;
}

/* Copies a record to the end; `*spare` (may be NULL) is used for a new batch if one is needed.
 * False, with nothing changed, if there is no memory or it is too large. */
RP_NODISCARD bool rp_raw_queue_append(rp_raw_queue *q, const rp_allocator *alloc,
                                      rp_raw_batch **spare, uint64_t lsn, rp_record_kind kind,
                                      const rp_bytes *parts, size_t count);
/* Moves everything of `from` to the end of `to`. */
void rp_raw_queue_move(rp_raw_queue *to, rp_raw_queue *from);
/* Takes out the first batch; NULL if there is none. Returns owned. */
rp_raw_batch *rp_raw_queue_take(rp_raw_queue *q);
void rp_raw_batch_free(rp_raw_batch *batch, const rp_allocator *alloc); /* NULL is fine */

/* A position in a queue. */
typedef struct rp_raw_cursor {
    const rp_raw_batch *batch;
    size_t offset;
} rp_raw_cursor;

/* The first record with a number over `lsn`. */
rp_raw_cursor rp_raw_seek(const rp_raw_queue *q, uint64_t lsn);
/* The record at the cursor, which moves on; NULL at the end. */
const rp_raw *rp_raw_next(rp_raw_cursor *at);

#endif
