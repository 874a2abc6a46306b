/* SPDX-License-Identifier: Apache-2.0 */
#include "disk/journal_queue.h"

#include <assert.h>

#include "util/mem.h"
#include "util/verify.h"

enum { BATCH_BYTES = 1 << 20 };

#ifndef NDEBUG
static bool is_valid(const rp_raw_queue *q)
{
    const rp_raw_batch *last = NULL;
    uint64_t bytes = 0;

    for (const rp_raw_batch *b = q->first; b != NULL; b = b->next) {
        if (last != NULL && b->last <= last->last) return false; /* Q2 */
        bytes += b->buf.size;
        last = b;
    }
    return q->end == last && q->bytes == bytes; /* Q1, Q3 */
}

/* About how many batches the checker walks. */
static size_t batch_count(const rp_raw_queue *q)
{
    return (size_t)(q->bytes / BATCH_BYTES) + 1;
}
#endif

void rp_raw_batch_free(rp_raw_batch *batch, const rp_allocator *alloc)
{
    if (batch == NULL) return;
    rp_buf_deinit(&batch->buf);
    rp_release(alloc, batch, sizeof *batch);
}

/* Returns the last batch if `size` bytes fit into it, otherwise a new one. NULL: no memory. */
static rp_raw_batch *batch_for(rp_raw_queue *q, const rp_allocator *alloc, rp_raw_batch **spare,
                               size_t size)
{
    rp_raw_batch *batch = q->end;

    if (batch != NULL && batch->buf.size + size <= BATCH_BYTES) return batch;
    batch = *spare;
    *spare = NULL;
    if (batch == NULL) {
        batch = rp_alloc_zero(alloc, sizeof *batch);
        if (batch == NULL) return NULL;
        rp_buf_init(&batch->buf, alloc);
    }
    if (rp_buf_reserve(&batch->buf, size) == NULL) {
        rp_raw_batch_free(batch, alloc);
        return NULL;
    }
    *(q->end == NULL ? &q->first : &q->end->next) = batch;
    q->end = batch;
    return batch;
}

bool rp_raw_queue_append(rp_raw_queue *q, const rp_allocator *alloc, rp_raw_batch **spare,
                         uint64_t lsn, rp_record_kind kind, const rp_bytes *parts, size_t count)
{
    rp_raw raw = {.lsn = lsn, .kind = (uint32_t)kind};
    size_t size = 0, whole;
    rp_raw_batch *batch;
    uint8_t *to;

    for (size_t i = 0; i < count; i++)
        if (!rp_size_add(size, parts[i].size, &size)) return false;
    if (size > RP_MAX_RECORD_BYTES) return false;
    raw.size = (uint32_t)size;
    whole = rp_raw_bytes(&raw);
    batch = batch_for(q, alloc, spare, whole);
    if (batch == NULL) return false;
    to = rp_buf_reserve(&batch->buf, whole);
    if (to == NULL) {
        batch->buf.bad = false; /* its contents are unchanged */
        return false;
    }
    assert(batch->last < lsn && batch->buf.size % 8 == 0);
    memcpy(to, &raw, sizeof raw);
    to += sizeof raw;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size > 0) memcpy(to, parts[i].data, parts[i].size);
        to += parts[i].size;
    }
    batch->buf.size += whole;
    batch->last = lsn;
    q->bytes += whole;
    RP_VERIFY(batch_count(q), is_valid(q));
    return true;
}

void rp_raw_queue_move(rp_raw_queue *to, rp_raw_queue *from)
{
    if (from->first == NULL) return;
    *(to->end == NULL ? &to->first : &to->end->next) = from->first;
    assert(to->end == NULL || to->end->last < from->end->last);
    to->end = from->end;
    to->bytes += from->bytes;
    *from = (rp_raw_queue){0};
    RP_VERIFY(batch_count(to), is_valid(to));
}

rp_raw_batch *rp_raw_queue_take(rp_raw_queue *q)
{
    rp_raw_batch *batch = q->first;

    if (batch == NULL) return NULL;
    q->first = batch->next;
    if (q->first == NULL) q->end = NULL;
    assert(q->bytes >= batch->buf.size);
    q->bytes -= batch->buf.size;
    batch->next = NULL;
    RP_VERIFY(batch_count(q), is_valid(q));
    return batch;
}

rp_raw_cursor rp_raw_seek(const rp_raw_queue *q, uint64_t lsn)
{
    rp_raw_cursor at = {q->first, 0};

    while (at.batch != NULL && at.batch->last <= lsn) at.batch = at.batch->next;
    while (at.batch != NULL) {
        rp_raw_cursor next = at;
        const rp_raw *raw = rp_raw_next(&next);

        if (raw == NULL || raw->lsn > lsn) break;
        at = next;
    }
    return at;
}

const rp_raw *rp_raw_next(rp_raw_cursor *at)
{
    const rp_raw *raw;

    while (at->batch != NULL && at->offset == at->batch->buf.size)
        *at = (rp_raw_cursor){at->batch->next, 0};
    if (at->batch == NULL) return NULL;
    raw = (const rp_raw *)(const void *)(at->batch->buf.data + at->offset);
    at->offset += rp_raw_bytes(raw);
    assert(at->offset <= at->batch->buf.size);
    return raw;
}
