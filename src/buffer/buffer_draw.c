/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing rows and copying them out.
 *
 * Drawn rows are scattered over gigabytes, so the speed depends on the number of cache misses
 * in flight: all slots are drawn first, then rows are prefetched some way ahead of being
 * copied. A frame needs two more dependent loads (row, list of pieces, pieces), so these are
 * prefetched in stages too. */
#include <assert.h>
#include <math.h>

#include "buffer/replay_buffer_inside.h"
#include "util/error.h"

enum {
    ROW_AHEAD = 12,
    LIST_AHEAD = 4,
    PIECES_AHEAD = 1,
    PREFETCH_BYTES = 1536, /* of a row; beyond that the hardware prefetcher takes over */
};

void buffer_copy_row(const rp_replay_buffer *b, const char *row, size_t at,
                     void *const *columns)
{
    for (size_t i = 0; i < b->column_count; i++) {
        const buffer_column *c = &b->columns[i];
        char *out;

        if (columns[i] == NULL) continue;
        out = (char *)columns[i] + at * c->bytes;
        if (c->frame_bytes == 0) {
            buffer_copy_value(out, row + c->offset, c->bytes);
            continue;
        }
        for (uint32_t k = 0; k < c->frame_count; k++) {
            uint32_t slot;
            memcpy(&slot, row + c->offset + k * sizeof slot, sizeof slot);
            rp_frames_copy(&b->stores[c->store].frames, slot, out + k * c->frame_bytes);
        }
    }
}

static inline void prefetch_row(const rp_replay_buffer *b, uint32_t slot)
{
    const char *row = rp_sparse_array_at(&b->rows, slot);
    size_t bytes = b->row_bytes < PREFETCH_BYTES ? b->row_bytes : PREFETCH_BYTES;

    for (size_t at = 0; at < bytes; at += RP_CACHE_LINE) __builtin_prefetch(row + at);
}

static void prefetch_frames(const rp_replay_buffer *b, uint32_t row_slot, bool pieces)
{
    const char *row = rp_sparse_array_at(&b->rows, row_slot);

    for (size_t i = 0; i < b->column_count; i++) {
        const buffer_column *c = &b->columns[i];

        for (uint32_t k = 0; c->frame_bytes > 0 && k < c->frame_count; k++) {
            uint32_t slot;
            memcpy(&slot, row + c->offset + k * sizeof slot, sizeof slot);
            if (pieces)
                rp_frames_prefetch_pieces(&b->stores[c->store].frames, slot);
            else
                rp_frames_prefetch_list(&b->stores[c->store].frames, slot);
        }
    }
}

static void gather(const rp_replay_buffer *b, const uint32_t *slots, size_t count,
                   void *const *columns)
{
    for (size_t i = 0; i < count && i < ROW_AHEAD; i++) prefetch_row(b, slots[i]);
    for (size_t i = 0; i < count; i++) {
        if (i + ROW_AHEAD < count) prefetch_row(b, slots[i + ROW_AHEAD]);
        if (b->store_count > 0) {
            if (i + LIST_AHEAD < count) prefetch_frames(b, slots[i + LIST_AHEAD], false);
            if (i + PIECES_AHEAD < count) prefetch_frames(b, slots[i + PIECES_AHEAD], true);
        }
        buffer_copy_row(b, rp_sparse_array_at(&b->rows, slots[i]), i, columns);
    }
}

/* Makes the scratch buffers large enough for a draw of `count`. */
static bool make_room(rp_replay_buffer *b, size_t count) RP_REQUIRES(b->mu);
static bool make_room(rp_replay_buffer *b, size_t count)
{
    uint32_t *slots;
    double *numbers;

    if (count <= b->room) return true;
    slots = rp_alloc_array(&b->alloc, count, sizeof *slots);
    numbers = rp_alloc_array(&b->alloc, count, 2 * sizeof *numbers);
    if (slots == NULL || numbers == NULL) {
        rp_release(&b->alloc, slots, count * sizeof *slots);
        rp_release(&b->alloc, numbers, 2 * count * sizeof *numbers);
        return false;
    }
    rp_release(&b->alloc, b->slots, b->room * sizeof *b->slots);
    rp_release(&b->alloc, b->numbers, 2 * b->room * sizeof *b->numbers);
    b->slots = slots;
    b->numbers = numbers;
    b->room = count;
    return true;
}

/* Draws slots by priority and reads their weights. Returns the sum of all weights. */
static double draw_by_priority(rp_replay_buffer *b, size_t count, uint32_t *slots,
                               double *weights, double *targets) RP_REQUIRES(b->mu);
static double draw_by_priority(rp_replay_buffer *b, size_t count, uint32_t *slots,
                               double *weights, double *targets)
{
    double total = rp_sumtree_total(b->tree);

    assert(total > 0); /* B2 */
    for (size_t i = 0; i < count; i++) targets[i] = rp_rng_unit(&b->rng) * total;
    rp_sumtree_find(b->tree, targets, count, slots);
    for (size_t i = 0; i < count; i++) weights[i] = rp_sumtree_get(b->tree, slots[i]);
    return total;
}

/* Draws slots uniformly. The slots in use are contiguous in the ring, from the oldest row on.
 */
static void draw_uniformly(rp_replay_buffer *b, size_t count, uint32_t *slots)
    RP_REQUIRES(b->mu);
static void draw_uniformly(rp_replay_buffer *b, size_t count, uint32_t *slots)
{
    uint64_t oldest = b->added - b->size, lap = buffer_lap(b);

    for (size_t i = 0; i < count; i++)
        slots[i] = buffer_slot(b, lap, oldest + rp_rng_below(&b->rng, b->size));
}

static void write_indices(const rp_replay_buffer *b, const uint32_t *slots, size_t count,
                          int64_t *indices)
{
    uint64_t lap = buffer_lap(b), newest_slot = b->added - lap; /* lower slots: this lap */

    for (size_t i = 0; i < count; i++)
        indices[i] =
            (int64_t)(slots[i] < newest_slot ? lap + slots[i] : lap + slots[i] - b->capacity);
}

/* Computes (p / p_min)^-beta. `relative` is proportional to p, and is overwritten. */
static void write_weights(const rp_replay_buffer *b, double *relative, double *powers,
                          size_t count, double beta, float *out)
{
    double least = relative[0];

    for (size_t i = 1; i < count; i++) least = relative[i] < least ? relative[i] : least;
    for (size_t i = 0; i < count; i++) {
        relative[i] /= least;
        relative[i] = relative[i] < 0x1p1000 ? relative[i] : 0x1p1000;
    }
    b->power(relative, -beta, powers, count);
    for (size_t i = 0; i < count; i++) out[i] = (float)powers[i];
}

static void sample_locked(rp_replay_buffer *b, size_t count, double beta,
                          const rp_replay_sample *out) RP_REQUIRES(b->mu);
static void sample_locked(rp_replay_buffer *b, size_t count, double beta,
                          const rp_replay_sample *out)
{
    uint32_t *slots = b->slots;
    double *weights = b->numbers, *side = b->numbers + count, total;

    assert(rp_mutex_is_held(&b->mu) && b->size > 0 && count <= b->room);
    if (b->tree == NULL) {
        draw_uniformly(b, count, slots);
        for (size_t i = 0; out->probabilities != NULL && i < count; i++)
            out->probabilities[i] = 1.0 / (double)b->size;
        for (size_t i = 0; out->weights != NULL && i < count; i++) out->weights[i] = 1;
    } else {
        total = draw_by_priority(b, count, slots, weights, side);
        for (size_t i = 0; out->probabilities != NULL && i < count; i++)
            out->probabilities[i] = weights[i] / total;
        if (out->weights != NULL) write_weights(b, weights, side, count, beta, out->weights);
    }
    if (out->indices != NULL) write_indices(b, slots, count, out->indices);
    if (out->columns != NULL) gather(b, slots, count, out->columns);
}

rp_status rp_replay_buffer_sample(rp_replay_buffer *b, size_t count, double beta,
                                  const rp_replay_sample *out, rp_error *err)
{
    rp_status st = RP_OK;

    if (!isfinite(beta) || beta < 0)
        return rp_fail(err, RP_INVALID, "beta must be finite and >= 0, got %g", beta);
    if (count == 0) return RP_OK;
    if (out == NULL) return rp_fail(err, RP_INVALID, "no output arrays are given");
    rp_mutex_lock(&b->mu);
    if (b->size == 0)
        st = rp_fail(err, RP_PRECONDITION, "the buffer is empty: there is nothing to sample");
    else if (!make_room(b, count))
        st = rp_fail(err, RP_NO_RESOURCE, "no memory to draw %zu rows", count);
    else
        sample_locked(b, count, beta, out);
    rp_mutex_unlock(&b->mu);
    return st;
}

rp_status rp_replay_buffer_read(rp_replay_buffer *b, uint64_t first, size_t count,
                                void *const *columns, double *weights, rp_error *err)
{
    rp_status st = RP_OK;
    uint64_t oldest, lap;

    if (columns == NULL && count > 0) return rp_fail(err, RP_INVALID, "no columns are given");
    rp_mutex_lock(&b->mu);
    oldest = b->added - b->size;
    lap = buffer_lap(b);
    if (first < oldest || first > b->added || count > b->added - first)
        st = rp_fail(err, RP_NOT_FOUND,
                     "rows %llu and %zu on: the buffer has %llu to %llu, exclusively",
                     (unsigned long long)first, count, (unsigned long long)oldest,
                     (unsigned long long)b->added);
    for (size_t i = 0; i < count && st == RP_OK; i++) {
        uint32_t slot = buffer_slot(b, lap, first + i);

        buffer_copy_row(b, rp_sparse_array_at(&b->rows, slot), i, columns);
        if (weights != NULL) weights[i] = b->tree != NULL ? rp_sumtree_get(b->tree, slot) : 1;
    }
    rp_mutex_unlock(&b->mu);
    return st;
}
