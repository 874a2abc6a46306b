/* SPDX-License-Identifier: Apache-2.0 */
#include "chunk/chunk.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "chunk/chunk_wire.h"
#include "util/error.h"
#include "util/mem.h"

static_assert(sizeof(rp_chunk) % _Alignof(rp_chunk_column) == 0 &&
                  sizeof(rp_chunk_column) % _Alignof(rp_column_place) == 0 &&
                  sizeof(rp_column_place) % _Alignof(rp_chunk_owner) == 0,
              "the arrays of a chunk follow each other without gaps");
static_assert(sizeof(rp_chunk) <= (size_t)RP_CHUNK_FIXED_BYTES &&
                  sizeof(rp_chunk_column) + sizeof(rp_column_place) <= RP_CHUNK_COLUMN_BYTES,
              "the cost of a chunk covers its block");
static_assert(offsetof(rp_chunk, apart) < 2 * (size_t)RP_CACHE_LINE,
              "an insert prefetches two lines of each chunk that it evicts: "
              "rp_chunk_unref() must not read a third");

rp_chunk_limits rp_chunk_limits_default(void)
{
    return (rp_chunk_limits){.max_wire_bytes = (size_t)64 << 20,
                             .max_raw_bytes = (size_t)1 << 30,
                             .max_columns = RP_MAX_COLUMNS};
}

rp_chunk *rp_chunk_alloc(const rp_allocator *alloc, size_t column_count, size_t wire_bytes,
                         uint8_t **wire)
{
    size_t per_column = sizeof(rp_chunk_column) + sizeof(rp_column_place), size;
    bool is_apart = wire_bytes >= RP_CHUNK_APART_BYTES;
    rp_chunk *chunk;

    assert(column_count >= 1); /* K3 */
    if (!rp_size_mul(column_count, per_column, &size) ||
        !rp_size_add(size, sizeof *chunk, &size) ||
        !rp_size_add(size, is_apart ? 0 : wire_bytes, &size))
        return NULL;
    chunk = rp_alloc(alloc, size);
    if (chunk == NULL) return NULL;
    *wire = is_apart ? rp_alloc(alloc, wire_bytes) : NULL;
    if (is_apart && *wire == NULL) {
        rp_release(alloc, chunk, size);
        return NULL;
    }
    *chunk = (rp_chunk){.wire_bytes = wire_bytes,
                        .alloc = *alloc,
                        .size_bytes = size,
                        .column_count = (uint32_t)column_count,
                        .apart = is_apart};
    rp_refcount_init(&chunk->refs);
    chunk->columns = (rp_chunk_column *)(chunk + 1);
    chunk->places = (rp_column_place *)(chunk->columns + column_count);
    if (!is_apart) *wire = (uint8_t *)(chunk->places + column_count);
    chunk->wire = *wire;
    return chunk;
}

/* The owner of an adopted chunk, which is stored at the end of the block. */
static rp_chunk_owner owner_of(const rp_chunk *chunk)
{
    rp_chunk_owner owner;

    assert(chunk->adopted && !chunk->apart); /* K1 */
    memcpy(&owner, (const char *)chunk + chunk->size_bytes - sizeof owner, sizeof owner);
    return owner;
}

/* Parses a message, copying it unless it has an owner. */
static rp_status parse(const rp_allocator *alloc, const uint8_t *wire, size_t size,
                       const rp_chunk_limits *limits, const rp_chunk_owner *owner,
                       rp_chunk **out, rp_error *err)
{
    size_t tail_bytes = owner != NULL ? sizeof *owner : size;
    rp_chunk_outline outline;
    rp_chunk *chunk;
    uint8_t *tail;
    rp_status st;

    if (size > limits->max_wire_bytes)
        return rp_fail(err, RP_NO_RESOURCE, "chunk: %zu bytes are over the limit of %zu", size,
                       limits->max_wire_bytes);
    st = rp_chunk_wire_outline(wire, size, limits, &outline, err);
    if (st != RP_OK) return st;
    chunk = rp_chunk_alloc(alloc, outline.column_count, tail_bytes, &tail);
    if (chunk == NULL) return rp_fail_memory(err, tail_bytes);
    if (owner != NULL) {
        chunk->wire = wire;
        chunk->wire_bytes = size;
    } else {
        memcpy(tail, wire, size);
    }
    chunk->origin = outline.origin;
    chunk->codec = outline.codec;
    chunk->delta = outline.delta;
    /* Reads the original, which is in the cache, rather than the copy. */
    st =
        rp_chunk_wire_columns(wire, size, limits, &outline, chunk->columns, chunk->places, err);
    if (st != RP_OK) {
        rp_chunk_unref(chunk);
        return st;
    }
    if (owner != NULL) { /* last: from here on the chunk releases the bytes */
        memcpy(tail, owner, sizeof *owner);
        chunk->adopted = true;
    }
    *out = chunk;
    return RP_OK;
}

rp_status rp_chunk_parse(const rp_allocator *alloc, const uint8_t *wire, size_t size,
                         const rp_chunk_limits *limits, rp_chunk **out, rp_error *err)
{
    rp_chunk_limits defaults = rp_chunk_limits_default();

    return parse(alloc, wire, size, limits != NULL ? limits : &defaults, NULL, out, err);
}

rp_status rp_chunk_adopt(const rp_allocator *alloc, const uint8_t *wire, size_t size,
                         const rp_chunk_limits *limits, const rp_chunk_owner *owner,
                         rp_chunk **out, rp_error *err)
{
    rp_chunk_limits defaults = rp_chunk_limits_default();

    return parse(alloc, wire, size, limits != NULL ? limits : &defaults, owner, out, err);
}

rp_chunk *rp_chunk_ref(rp_chunk *chunk)
{
    rp_refcount_inc(&chunk->refs);
    return chunk;
}

void rp_chunk_unref(rp_chunk *chunk)
{
    rp_chunk_location *home;
    rp_chunk_tier_state *stay;
    rp_chunk_owner owner = {NULL, NULL};
    bool has_bytes;
    rp_allocator alloc;

    if (chunk == NULL || !rp_refcount_dec(&chunk->refs)) return;
    home = atomic_load_explicit(&chunk->home, memory_order_relaxed);
    if (home != NULL) home->free(home);
    stay = atomic_load_explicit(&chunk->stay, memory_order_relaxed);
    if (stay != NULL) stay->free(stay);
    has_bytes = atomic_load_explicit(&chunk->pins, memory_order_relaxed) >= 0;
    alloc = chunk->alloc;
    if (has_bytes && chunk->adopted) owner = owner_of(chunk);
    if (has_bytes && chunk->apart)
        rp_release(&alloc, (void *)(uintptr_t)chunk->wire, chunk->wire_bytes);
    rp_release(&alloc, chunk, chunk->size_bytes);
    if (owner.release != NULL) owner.release(owner.ctx);
}

bool rp_chunk_pin(rp_chunk *chunk)
{
    int_least32_t pins = atomic_load_explicit(&chunk->pins, memory_order_relaxed);

    assert(pins >= -1 && pins < INT32_MAX); /* K2 */
    do
        if (pins < 0) return false;
    while (!atomic_compare_exchange_weak_explicit(&chunk->pins, &pins, pins + 1,
                                                  memory_order_acquire, memory_order_relaxed));
    return true;
}

void rp_chunk_unpin(rp_chunk *chunk)
{
    int_least32_t before = atomic_fetch_sub_explicit(&chunk->pins, 1, memory_order_release);

    assert(before > 0);
    (void)before;
}

bool rp_chunk_claim_bytes(rp_chunk *chunk)
{
    int_least32_t none = 0;

    assert(rp_chunk_can_spill(chunk));
    return atomic_compare_exchange_strong_explicit(&chunk->pins, &none, -1,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

void rp_chunk_free_bytes(rp_chunk *chunk)
{
    void *wire = (void *)(uintptr_t)chunk->wire;
    rp_chunk_owner owner;

    assert(atomic_load_explicit(&chunk->pins, memory_order_relaxed) < 0);
    /* The pointer stays: other threads may compare it, but must not follow it. */
    if (chunk->apart) {
        rp_release(&chunk->alloc, wire, chunk->wire_bytes);
    } else {
        owner = owner_of(chunk);
        owner.release(owner.ctx);
    }
}

static void release_view(void *ctx)
{
    rp_chunk_unpin(ctx);
    rp_chunk_unref(ctx);
}

/* The chunk whose bytes a view of `chunk` shares: for a view, the original, so that views do
 * not form a chain. */
static rp_chunk *viewed_by(rp_chunk *chunk)
{
    rp_chunk_owner owner;

    if (!chunk->adopted) return chunk;
    owner = owner_of(chunk);
    return owner.release == release_view ? owner.ctx : chunk;
}

rp_chunk *rp_chunk_view(const rp_allocator *alloc, rp_chunk *chunk)
{
    rp_chunk_owner owner = {release_view, viewed_by(chunk)};
    size_t count = chunk->column_count;
    uint8_t *tail;
    rp_chunk *view = rp_chunk_alloc(alloc, count, sizeof owner, &tail);

    assert(atomic_load_explicit(&chunk->pins, memory_order_relaxed) > 0);
    if (view == NULL) return NULL;
    memcpy(tail, &owner, sizeof owner);
    memcpy(view->columns, chunk->columns, count * sizeof *chunk->columns);
    memcpy(view->places, chunk->places, count * sizeof *chunk->places);
    view->wire = chunk->wire;
    view->wire_bytes = chunk->wire_bytes;
    view->origin = chunk->origin;
    view->codec = chunk->codec;
    view->delta = chunk->delta;
    view->adopted = true;
    (void)rp_chunk_ref(owner.ctx);
    if (owner.ctx != chunk) {
        bool pinned = rp_chunk_pin(owner.ctx); /* `chunk` keeps it pinned */
        assert(pinned);
        (void)pinned;
        rp_chunk_unpin(chunk);
    }
    return view;
}

const rp_chunk_origin *rp_chunk_get_origin(const rp_chunk *chunk)
{
    return &chunk->origin;
}

size_t rp_chunk_column_count(const rp_chunk *chunk)
{
    return chunk->column_count;
}

const rp_chunk_column *rp_chunk_get_column(const rp_chunk *chunk, size_t index)
{
    assert(index < chunk->column_count);
    return &chunk->columns[index];
}

rp_codec rp_chunk_codec(const rp_chunk *chunk)
{
    return chunk->codec;
}

bool rp_chunk_is_delta(const rp_chunk *chunk)
{
    return chunk->delta;
}

const uint8_t *rp_chunk_wire(const rp_chunk *chunk, size_t *size)
{
    *size = chunk->wire_bytes;
    return atomic_load_explicit(&chunk->pins, memory_order_relaxed) >= 0 ? chunk->wire : NULL;
}
