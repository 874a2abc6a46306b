/* SPDX-License-Identifier: Apache-2.0 */
/* Putting, finding and reading records. The invariants are in disk/segments_inside.h. */
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

/* Grows the ring for one more entry, and makes the tail a segment that can take it. */
static rp_status reserve_locked(rp_segments *s) RP_REQUIRES(s->mu)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 64;
        rp_segment_entry *ring = rp_alloc_array(&s->alloc, capacity, sizeof *ring);

        if (ring == NULL) return RP_NO_RESOURCE;
        for (size_t i = 0; i < s->count; i++) ring[i] = *rp_entry_at(s, i);
        rp_release(&s->alloc, s->ring, s->capacity * sizeof *s->ring);
        s->ring = ring;
        s->capacity = capacity;
        s->first = 0;
    }
    if (s->must_replace) {
        rp_status st = rp_segments_replace_locked(s);
        if (st != RP_OK) return st;
    }
    if (s->tail == NULL || s->tail_offset >= s->segment_bytes) {
        rp_segment *tail = s->next_number <= UINT32_MAX ? rp_segment_new(s->index, 0) : NULL;
        if (tail == NULL) return RP_NO_RESOURCE;
        rp_segments_enter_locked(s, tail);
        s->tail = tail;
        s->tail_offset = RP_FILE_HEADER_BYTES;
    }
    return RP_OK;
}

/* Appends an entry, after reserve_locked(). */
static rp_disk_location append_locked(rp_segments *s, rp_segment_entry *e) RP_REQUIRES(s->mu)
{
    assert(s->count < s->capacity && s->tail != NULL && !s->must_replace);
    assert(s->tail_offset <= UINT32_MAX && s->tail->is_held);
    e->segment = s->tail;
    e->offset = (uint32_t)s->tail_offset;
    if (e->chunk != NULL) s->tail->has_chunks = true;
    *rp_entry_at(s, s->count++) = *e;
    s->tail_offset += rp_entry_bytes(e);
    s->queued_bytes += rp_entry_bytes(e);
    s->put_bytes += rp_entry_bytes(e);
    return (rp_disk_location){e->segment->number, e->offset, e->size};
}

rp_status rp_segments_put(rp_segments *s, rp_record_kind kind, uint64_t number,
                          const void *payload, size_t size, rp_disk_location *out)
{
    rp_segment_entry e = {
        .number = number, .size = (uint32_t)size, .kind = (uint16_t)kind, .is_copy = true};
    uint8_t *copy;
    rp_status st;

    if (size > RP_MAX_RECORD_BYTES) return RP_INVALID;
    copy = rp_alloc(&s->alloc, size + 1); /* + 1: an empty record has a copy, too */
    if (copy == NULL) return RP_NO_RESOURCE;
    if (size > 0) memcpy(copy, payload, size);
    e.data = copy;
    rp_mutex_lock(&s->mu);
    st = reserve_locked(s);
    if (st == RP_OK) *out = append_locked(s, &e);
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
    if (st != RP_OK) rp_release(&s->alloc, copy, size + 1);
    return st;
}

/* Frees all locations of a chunk, with the chunk. */
static void locations_free(rp_chunk_location *base)
{
    rp_store_location *current = (rp_store_location *)base, *next;

    for (; current != NULL; current = next) {
        rp_segment *segment = current->segment;

        next = current->next;
        rp_release(&segment->index->alloc, current, sizeof *current);
        rp_segment_unref(segment);
    }
}

/* Allocates a location that is not published yet. NULL if there is no memory. */
static rp_store_location *location_new(rp_segments *s, const rp_chunk *chunk)
{
    rp_store_location *current = rp_alloc_zero(&s->alloc, sizeof *current);

    if (current == NULL) return NULL;
    current->base.free = locations_free;
    current->index = s->index;
    current->size = (uint32_t)chunk->wire_bytes;
    return current;
}

/* Changes a location to `where` in `segment`; takes a reference to the segment. */
static void location_set(rp_store_location *current, rp_segment *segment, uint64_t where,
                         bool stored)
{
    rp_segment *old = current->segment;

    rp_segment_ref(segment);
    current->segment = segment;
    atomic_store_explicit(&current->stored, stored, memory_order_relaxed);
    atomic_store_explicit(&current->where, where, memory_order_release);
    /* Last: the end of a revoked segment is counted, and rp_segments_locate() relies on the new
     * location then. */
    rp_segment_unref(old);
}

/* Adds a location to the list of the chunk. Another store may do the same at the same time. */
static void location_publish(rp_store_location *current, rp_chunk *chunk)
{
    rp_chunk_location *first = atomic_load_explicit(&chunk->home, memory_order_acquire);

    do {
        current->next = (rp_store_location *)first;
    } while (!atomic_compare_exchange_weak_explicit(
        &chunk->home, &first, &current->base, memory_order_acq_rel, memory_order_acquire));
}

bool rp_chunk_locate(const rp_chunk *chunk, rp_disk_location *out)
{
    const rp_store_location *current =
        (const rp_store_location *)atomic_load_explicit(&chunk->home, memory_order_acquire);

    return current != NULL && rp_store_location_find(current, out);
}

/* As rp_store_location_find(), but a location in a revoked segment is none. */
static bool find_locked(const rp_segments *s, const rp_store_location *current,
                        rp_disk_location *out) RP_REQUIRES(s->mu)
{
    (void)s;
    return rp_store_location_find(current, out) && !current->segment->is_revoked;
}

bool rp_segments_locate(rp_segments *s, const rp_chunk *chunk, rp_disk_location *out)
{
    const rp_store_location *current = rp_store_location_of(chunk, s->index);
    bool found;

    if (current == NULL) return false;
    /* Before the location is read: see location_set(). */
    if (atomic_load_explicit(&s->index->revoked, memory_order_acquire) == 0)
        return rp_store_location_find(current, out);
    if (rp_store_location_find(current, out) &&
        out->segment > atomic_load(&s->index->last_revoked))
        return true; /* no lock for new chunks, while something keeps an old one */
    rp_mutex_lock(&s->mu);
    found = find_locked(s, current, out);
    rp_mutex_unlock(&s->mu);
    return found;
}

bool rp_segments_has_stored(const rp_segments *s, const rp_chunk *chunk)
{
    const rp_store_location *current = rp_store_location_of(chunk, s->index);

    return current != NULL && rp_store_location_is_stored(current);
}

rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk, rp_disk_location *out)
{
    rp_segment_entry e = {.chunk = chunk,
                          .data = chunk->wire,
                          .number = chunk->origin.key,
                          .size = (uint32_t)chunk->wire_bytes,
                          .kind = RP_RECORD_CHUNK};
    rp_store_location *current, *fresh = NULL;
    rp_status st;

    if (rp_segments_locate(s, chunk, out)) return RP_OK;
    if (chunk->wire_bytes > RP_MAX_RECORD_BYTES) return RP_INVALID;
    if (rp_store_location_of(chunk, s->index) == NULL) {
        fresh = location_new(s, chunk);
        if (fresh == NULL) return RP_NO_RESOURCE;
    }
    rp_mutex_lock(&s->mu);
    current = rp_store_location_of(chunk, s->index); /* another thread may have put it */
    st = current != NULL && find_locked(s, current, out) ? RP_EXISTS : reserve_locked(s);
    if (st == RP_OK) {
        if (current != NULL) current->first = 0; /* it is a new record */
        *out = append_locked(s, &e);
        (void)rp_chunk_ref(chunk);
        location_set(current != NULL ? current : fresh, e.segment,
                     rp_location_pack(out->segment, out->offset), false);
        if (current == NULL) {
            location_publish(fresh, chunk);
            fresh = NULL;
        }
    }
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
    if (fresh != NULL) rp_release(&s->alloc, fresh, sizeof *fresh);
    return st == RP_EXISTS ? RP_OK : st;
}

/* Reads the chunk from the disk: its bytes may not be in memory, and a damaged record is found
 * before it is copied. */
rp_status rp_segments_move_chunk(rp_segments *s, rp_chunk *chunk, rp_disk_location *out,
                                 rp_error *err)
{
    rp_segment_entry e = {.chunk = chunk, .kind = RP_RECORD_MOVED, .is_copy = true};
    rp_store_location *current = rp_store_location_of(chunk, s->index);
    rp_disk_location old;
    uint8_t *copy;
    rp_status st;

    if (current == NULL || !rp_store_location_find(current, &old)) {
        st = rp_segments_put_chunk(s, chunk, out);
        return st == RP_OK ? st : rp_fail(err, st, "a chunk could not be queued");
    }
    if (!rp_store_location_is_stored(current)) { /* it is queued for a new segment already */
        *out = old;
        return RP_OK;
    }
    copy = rp_alloc(&s->alloc, (size_t)old.size + 1);
    if (copy == NULL) return rp_fail_memory(err, (size_t)old.size + 1);
    st = rp_segments_read(s, &old, RP_RECORD_CHUNK, copy, NULL, err);
    if (st != RP_OK) {
        rp_release(&s->alloc, copy, (size_t)old.size + 1);
        return st;
    }
    e.data = copy;
    e.size = old.size;
    rp_mutex_lock(&s->mu);
    st = RP_OK;
    if (rp_store_location_is_stored(current)) st = reserve_locked(s);
    if (st == RP_OK && rp_store_location_is_stored(current)) {
        if (current->first == 0) current->first = rp_location_pack(old.segment, old.offset);
        e.number = current->first;
        e.moved_from = rp_location_pack(old.segment, old.offset);
        *out = append_locked(s, &e);
        (void)rp_chunk_ref(chunk);
        location_set(current, e.segment, rp_location_pack(out->segment, out->offset), false);
        copy = NULL;
    } else if (st == RP_OK) { /* another thread has moved it */
        *out = rp_store_location_get(current);
    }
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
    if (copy != NULL) rp_release(&s->alloc, copy, (size_t)old.size + 1);
    return st == RP_OK ? st : rp_fail_memory(err, sizeof e);
}

rp_status rp_segments_adopt(rp_segments *s, rp_chunk *chunk, const rp_disk_location *location,
                            uint64_t first)
{
    rp_segment *segment = rp_segment_index_find(s->index, location->segment);
    rp_store_location *current;

    if (segment == NULL) return RP_NOT_FOUND;
    if (location->size != chunk->wire_bytes || location->offset > UINT32_MAX) {
        rp_segment_unref(segment);
        return RP_INVALID;
    }
    current = location_new(s, chunk);
    if (current == NULL) {
        rp_segment_unref(segment);
        return RP_NO_RESOURCE;
    }
    rp_mutex_lock(&s->mu);
    if (rp_store_location_of(chunk, s->index) == NULL) {
        location_set(current, segment, rp_location_pack(location->segment, location->offset),
                     true);
        current->first = first;
        location_publish(current, chunk);
        current = NULL;
    }
    rp_mutex_unlock(&s->mu);
    rp_segment_unref(segment);
    if (current != NULL) rp_release(&s->alloc, current, sizeof *current);
    return RP_OK;
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
