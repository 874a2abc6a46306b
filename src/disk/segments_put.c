/* SPDX-License-Identifier: Apache-2.0 */
/* Putting records and chunks, and the locations of chunks. The invariants are in
 * disk/segments_inside.h. */
#include <assert.h>

#include "disk/segments.h"
#include "disk/segments_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

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
static rp_store_location *location_new(rp_segments *s)
{
    rp_store_location *current = rp_alloc_zero(&s->alloc, sizeof *current);

    if (current == NULL) return NULL;
    current->base.free = locations_free;
    current->index = s->index;
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

/* Gives a chunk a location unless it has one, and queues it. A chunk that was never put takes
 * the first of the `fresh` locations. */
static rp_status put_chunk_locked(rp_segments *s, rp_chunk *chunk, rp_store_location **fresh,
                                  rp_disk_location *out) RP_REQUIRES(s->mu)
{
    rp_segment_entry e = {.chunk = chunk,
                          .data = chunk->wire,
                          .number = chunk->origin.key,
                          .size = (uint32_t)chunk->wire_bytes,
                          .kind = RP_RECORD_CHUNK};
    rp_store_location *current = rp_store_location_of(chunk, s->index), *used = *fresh;
    rp_status st;

    if (current != NULL && find_locked(s, current, out)) return RP_OK;
    st = reserve_locked(s);
    if (st != RP_OK) return st;
    if (current != NULL) current->first = 0; /* it is a new record */
    *out = append_locked(s, &e);
    (void)rp_chunk_ref(chunk);
    if (current == NULL) { /* the caller has allocated one: no chunk loses its location */
        assert(used != NULL);
        *fresh = used->next;
        used->size = e.size;
    }
    location_set(current != NULL ? current : used, e.segment,
                 rp_location_pack(out->segment, out->offset), false);
    if (current == NULL) location_publish(used, chunk);
    return RP_OK;
}

static void release_fresh(rp_segments *s, rp_store_location *fresh)
{
    rp_store_location *next;

    for (; fresh != NULL; fresh = next) {
        next = fresh->next;
        rp_release(&s->alloc, fresh, sizeof *fresh);
    }
}

rp_status rp_segments_put_chunk(rp_segments *s, rp_chunk *chunk, rp_disk_location *out)
{
    rp_store_location *fresh = NULL;
    rp_status st;

    if (rp_segments_locate(s, chunk, out)) return RP_OK;
    if (chunk->wire_bytes > RP_MAX_RECORD_BYTES) return RP_INVALID;
    if (rp_store_location_of(chunk, s->index) == NULL) {
        fresh = location_new(s);
        if (fresh == NULL) return RP_NO_RESOURCE;
    }
    rp_mutex_lock(&s->mu);
    st = put_chunk_locked(s, chunk, &fresh, out);
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
    release_fresh(s, fresh);
    return st;
}

/* Allocates a location for each chunk that was never put, in a list. */
static rp_status reserve_locations(rp_segments *s, rp_chunk *const *chunks, size_t count,
                                   rp_store_location **fresh)
{
    for (size_t i = 0; i < count; i++) {
        rp_store_location *current;

        if (chunks[i]->wire_bytes > RP_MAX_RECORD_BYTES) return RP_INVALID;
        if (rp_store_location_of(chunks[i], s->index) != NULL) continue;
        current = location_new(s);
        if (current == NULL) return RP_NO_RESOURCE;
        current->next = *fresh;
        *fresh = current;
    }
    return RP_OK;
}

rp_status rp_segments_put_chunks(rp_segments *s, rp_chunk *const *chunks, size_t count,
                                 uint64_t *bytes)
{
    rp_store_location *fresh = NULL;
    rp_status st = reserve_locations(s, chunks, count, &fresh);
    rp_disk_location ignored;
    uint64_t before;

    rp_mutex_lock(&s->mu);
    before = s->put_bytes;
    for (size_t i = 0; i < count && st == RP_OK; i++)
        st = put_chunk_locked(s, chunks[i], &fresh, &ignored);
    *bytes = s->put_bytes - before;
    RP_VERIFY(s->count, rp_segments_broken_locked(s) == NULL);
    rp_mutex_unlock(&s->mu);
    release_fresh(s, fresh);
    return st;
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
    current = location_new(s);
    if (current == NULL) {
        rp_segment_unref(segment);
        return RP_NO_RESOURCE;
    }
    current->size = location->size;
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
