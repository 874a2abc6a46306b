/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, reading and removing segments. The invariants are in disk/segments_inside.h. */
#include "disk/segments.h"

#include <assert.h>
#include <inttypes.h>

#include "disk/segments_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum { DEFAULT_SEGMENT_BYTES = 256 << 20 };
/* The last record begins below this, so that its offset fits into 32 bits. */
#define MAX_SEGMENT_BYTES ((uint64_t)2 << 30)

rp_status rp_segments_new(const rp_segments_options *options, rp_segments **out, rp_error *err)
{
    uint64_t bytes =
        options->segment_bytes != 0 ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
    rp_segments *s;

    if (bytes > MAX_SEGMENT_BYTES)
        return rp_fail(err, RP_INVALID,
                       "segment_bytes must be at most %" PRIu64 ", got %" PRIu64,
                       MAX_SEGMENT_BYTES, bytes);
    if (options->next_number == 0 || options->next_number > UINT32_MAX)
        return rp_fail(err, RP_INVALID,
                       "next_number must be within 1 and 2^32 - 1, got %" PRIu64,
                       options->next_number);
    s = rp_alloc_zero(options->alloc, sizeof *s);
    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    s->index = rp_segment_index_new(options->alloc);
    if (s->index == NULL) {
        rp_release(options->alloc, s, sizeof *s);
        return rp_fail_memory(err, sizeof *s->index);
    }
    s->alloc = *options->alloc;
    s->files = options->files;
    s->store = options->store;
    s->segment_bytes = bytes;
    s->next_number = options->next_number;
    rp_mutex_init(&s->mu, RP_RANK_SEGMENTS);
    rp_cond_init(&s->done);
    rp_segment_writer_init(&s->writer, options->alloc, options->files, &options->store);
    *out = s;
    return RP_OK;
}

void rp_entry_release(rp_segments *s, rp_segment_entry *e)
{
    if (e->is_copy) rp_release(&s->alloc, (void *)e->data, (size_t)e->size + 1);
    rp_chunk_unref(e->chunk);
}

void rp_segments_free(rp_segments *s)
{
    rp_segment *held;
    rp_allocator alloc;

    if (s == NULL) return;
    for (size_t i = 0; i < s->count; i++) rp_entry_release(s, rp_entry_at(s, i));
    rp_segment_writer_deinit(&s->writer);
    rp_segments_deinit_batch(s);
    while ((held = rp_segment_index_take_held(s->index)) != NULL) rp_segment_unref(held);
    rp_segment_index_close(s->index);
    rp_release(&s->alloc, s->ring, s->capacity * sizeof *s->ring);
    rp_cond_deinit(&s->done);
    rp_mutex_deinit(&s->mu);
    alloc = s->alloc;
    rp_release(&alloc, s, sizeof *s);
}

void rp_segments_enter_locked(rp_segments *s, rp_segment *segment)
{
    assert(!segment->is_held);
    segment->is_held = true;
    do {
        segment->number = s->next_number++;
    } while (!rp_segment_index_add(s->index, segment));
}

void rp_segments_unhold_locked(rp_segments *s, rp_segment *segment)
{
    (void)s;
    if (!segment->is_held) return;
    segment->is_held = false;
    rp_segment_unref(segment);
}

/* Finds the entry at `location` by binary search (S1). SIZE_MAX: it is not in the queue. */
static size_t find_entry_locked(const rp_segments *s, const rp_disk_location *location)
    RP_REQUIRES(s->mu)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const rp_segment_entry *e = rp_entry_at(s, middle);

        if (e->segment->number < location->segment ||
            (e->segment->number == location->segment && e->offset < location->offset))
            low = middle + 1;
        else
            high = middle;
    }
    if (low < s->count) {
        const rp_segment_entry *e = rp_entry_at(s, low);
        if (e->segment->number == location->segment && e->offset == location->offset)
            return low;
    }
    return SIZE_MAX;
}

/* Reads a record that is still in the queue. Returns false if it is not there; otherwise `*st`
 * is the result. */
static bool read_queued(rp_segments *s, const rp_disk_location *location, rp_record_kind kind,
                        void *out, uint64_t *first, rp_status *st, rp_error *err)
{
    rp_chunk *chunk = NULL;
    rp_segment_entry e;
    size_t i;

    rp_mutex_lock(&s->mu);
    i = find_entry_locked(s, location);
    if (i == SIZE_MAX) {
        rp_mutex_unlock(&s->mu);
        return false;
    }
    e = *rp_entry_at(s, i);
    *st = RP_OK;
    if (first != NULL) *first = rp_record_first((rp_record_kind)e.kind, e.number);
    if (!rp_record_is((rp_record_kind)e.kind, kind) || e.size != location->size)
        *st =
            rp_fail(err, RP_CORRUPT,
                    "segment %" PRIu64 ", offset %" PRIu64 ": a record of kind %d with %" PRIu32
                    " bytes, not of kind %d with %" PRIu32,
                    location->segment, location->offset, (int)e.kind, e.size, (int)kind,
                    location->size);
    else if (e.is_copy && e.size > 0) /* under the lock: the entry owns the copy */
        memcpy(out, e.data, e.size);
    else if (!e.is_copy)
        chunk = rp_chunk_ref(e.chunk);
    rp_mutex_unlock(&s->mu);
    if (chunk != NULL) {
        memcpy(out, e.data, e.size);
        rp_chunk_unref(chunk);
    }
    return true;
}

rp_status rp_segments_read(rp_segments *s, const rp_disk_location *location,
                           rp_record_kind kind, void *out, uint64_t *first, rp_error *err)
{
    rp_segment *segment;
    rp_status st;

    if (read_queued(s, location, kind, out, first, &st, err)) return st;
    segment = rp_segment_index_find(s->index, location->segment);
    if (segment == NULL)
        return rp_fail(err, RP_NOT_FOUND, "there is no segment %" PRIu64, location->segment);
    st = rp_segment_read(segment, s->files, location, kind, out, first, err);
    rp_segment_unref(segment);
    return st;
}

rp_status rp_segments_open(rp_segments *s, uint64_t number, uint64_t *bytes, rp_error *err)
{
    rp_segment *segment = rp_segment_index_find(s->index, number);
    rp_status st = RP_OK;

    if (segment == NULL) {
        segment = rp_segment_new(s->index, number);
        if (segment == NULL) return rp_fail_memory(err, sizeof *segment);
        st = rp_segment_open_file(segment, s->files, &s->store, err);
        segment->is_held = st == RP_OK;
        if (st == RP_OK && !rp_segment_index_add(s->index, segment)) {
            segment->is_held = false; /* another thread has opened it */
            rp_segment_unref(segment);
            return rp_segments_open(s, number, bytes, err);
        }
        if (st == RP_OK) rp_segment_ref(segment); /* one for the handle, one for this call */
    }
    if (st == RP_OK) {
        uint64_t readable = atomic_load_explicit(&segment->readable, memory_order_acquire);
        if (readable == 0)
            st = rp_fail(err, RP_NOT_FOUND, "segment %" PRIu64 " is not written yet", number);
        else
            *bytes = readable;
    }
    rp_segment_unref(segment);
    return st;
}

rp_status rp_segments_sync_opened(rp_segments *s, uint64_t number, rp_error *err)
{
    rp_segment *segment = rp_segment_index_find(s->index, number);
    rp_status st;

    if (segment == NULL || !segment->is_old)
        st = rp_fail(err, RP_NOT_FOUND, "segment %" PRIu64 " was not opened", number);
    else
        st = s->files->ops->sync(segment->file, err);
    rp_segment_unref(segment);
    return st;
}

uint64_t rp_segments_queued(rp_segments *s)
{
    uint64_t bytes;

    rp_mutex_lock(&s->mu);
    bytes = s->queued_bytes;
    rp_mutex_unlock(&s->mu);
    return bytes;
}

uint64_t rp_segments_put_bytes(rp_segments *s, uint64_t *queued)
{
    uint64_t bytes;

    rp_mutex_lock(&s->mu);
    bytes = s->put_bytes;
    *queued = s->queued_bytes;
    rp_mutex_unlock(&s->mu);
    return bytes;
}

bool rp_segments_is_full(rp_segments *s)
{
    bool is_full;

    rp_mutex_lock(&s->mu);
    is_full = s->is_full;
    rp_mutex_unlock(&s->mu);
    return is_full;
}

uint64_t rp_segments_generation(rp_segments *s)
{
    uint64_t generation;

    rp_mutex_lock(&s->mu);
    generation = s->generation;
    rp_mutex_unlock(&s->mu);
    return generation;
}

uint64_t rp_segments_next(rp_segments *s)
{
    uint64_t number;

    rp_mutex_lock(&s->mu);
    number = s->next_number;
    rp_mutex_unlock(&s->mu);
    return number;
}

static uint64_t writing_locked(const rp_segments *s) RP_REQUIRES(s->mu)
{
    uint64_t number = s->next_number;

    if (s->tail != NULL && s->tail->number < number) number = s->tail->number;
    if (s->open_number != 0 && s->open_number < number) number = s->open_number;
    if (s->count > 0 && rp_entry_at(s, 0)->segment->number < number)
        number = rp_entry_at(s, 0)->segment->number;
    return number;
}

uint64_t rp_segments_writing(rp_segments *s)
{
    uint64_t number;

    rp_mutex_lock(&s->mu);
    number = writing_locked(s);
    rp_mutex_unlock(&s->mu);
    return number;
}

void rp_segments_revoke(rp_segments *s, uint64_t number)
{
    rp_segment *segment = rp_segment_index_find(s->index, number);

    if (segment == NULL) return;
    rp_mutex_lock(&s->mu);
    assert(number < writing_locked(s));
    if (!segment->is_revoked) {
        segment->is_revoked = true;
        if (number > atomic_load(&s->index->last_revoked))
            atomic_store(&s->index->last_revoked, number);
        (void)atomic_fetch_add(&s->index->revoked, 1);
        s->generation++;
    }
    rp_mutex_unlock(&s->mu);
    rp_segment_unref(segment);
}

bool rp_segments_in_use(rp_segments *s, uint64_t number)
{
    rp_segment *segment = rp_segment_index_find(s->index, number);
    bool in_use;

    if (segment == NULL) return false;
    rp_mutex_lock(&s->mu);
    /* More references than this call's and the handle's. A thread without a reference can take
     * one only by number, for a read, and releases it again. */
    in_use = atomic_load_explicit(&segment->refs, memory_order_acquire) >
             1 + (uint_fast32_t)segment->is_held;
    rp_mutex_unlock(&s->mu);
    rp_segment_unref(segment);
    return in_use;
}

rp_status rp_segments_remove(rp_segments *s, uint64_t number, rp_error *err)
{
    rp_segment *segment;
    char path[32];
    bool is_revoked;
    rp_status st;

    rp_mutex_lock(&s->mu);
    st = number >= writing_locked(s) ? RP_PRECONDITION : RP_OK;
    rp_mutex_unlock(&s->mu);
    if (st != RP_OK) return rp_fail(err, st, "segment %" PRIu64 " is being written", number);
    st = s->files->ops->remove(s->files, rp_segment_path(path, number), err);
    if (st == RP_OK || st == RP_NOT_FOUND) {
        segment = rp_segment_index_find(s->index, number);
        rp_mutex_lock(&s->mu);
        if (segment != NULL) rp_segments_unhold_locked(s, segment);
        is_revoked = segment != NULL && segment->is_revoked;
        rp_mutex_unlock(&s->mu);
        /* Chunks keep a revoked segment, and an open file would keep its space. */
        if (is_revoked) rp_segment_close_file(segment);
        rp_segment_unref(segment);
    }
    rp_segment_index_reclaim(s->index);
    return st;
}

const char *rp_segments_broken_locked(rp_segments *s)
{
    uint64_t queued = 0, unsynced = 0;
    const rp_segment_entry *last = NULL;

    for (size_t i = 0; i < s->count; i++) {
        const rp_segment_entry *e = rp_entry_at(s, i);
        bool follows = last != NULL && e->segment == last->segment &&
                       e->offset == last->offset + rp_entry_bytes(last);
        bool begins = e->offset == RP_FILE_HEADER_BYTES &&
                      (last == NULL || e->segment->number > last->segment->number);

        if (last != NULL && !follows && !begins) return "S1";
        if (!e->segment->is_held) return "S5";
        if (e->chunk != NULL) {
            const rp_store_location *current = rp_store_location_of(e->chunk, s->index);
            rp_disk_location location;
            if (current == NULL || rp_store_location_is_stored(current)) return "S3";
            location = rp_store_location_get(current);
            if (location.segment != e->segment->number || location.offset != e->offset ||
                current->segment != e->segment)
                return "S3";
        }
        *(i < s->written ? &unsynced : &queued) += rp_entry_bytes(e);
        last = e;
    }
    if (last != NULL && s->tail != NULL && !s->must_replace &&
        (s->tail != last->segment || s->tail_offset != last->offset + rp_entry_bytes(last)))
        return "S2";
    if (queued != s->queued_bytes || unsynced != s->unsynced_bytes || s->flushed > s->written ||
        s->written > s->count || s->put_bytes < queued + unsynced)
        return "S4";
    return NULL;
}

rp_status rp_segments_check(rp_segments *s, rp_error *err)
{
    const char *broken;

    rp_mutex_lock(&s->mu);
    broken = rp_segments_broken_locked(s);
    rp_mutex_unlock(&s->mu);
    return broken == NULL ? RP_OK
                          : rp_fail(err, RP_CORRUPT, "segments: %s does not hold", broken);
}
