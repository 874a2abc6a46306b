/* SPDX-License-Identifier: Apache-2.0 */
/* A replay buffer: rows in a ring, a sum tree over their slots, frames beside them.
 *
 *   row (row_bytes, all columns together, so that a row is a few neighbouring cache lines):
 *   | values and slots of frames (uint32), by descending alignment | marks of stores (uint32) |
 *
 * Row number n is in slot n mod capacity. Only the low 32 bits of a mark are stored, as far
 * fewer than 2^32 frames are in use.
 *
 * Invariants, whenever mu is free:
 *   B1  the buffer holds the rows with numbers added - size .. added - 1, size <= capacity, and
 *       each of their slots has memory;
 *   B2  a leaf of the tree is > 0 exactly if its slot holds such a row, and the total of the
 *       tree is finite;
 *   B3  every frame slot in such a row refers to a valid frame (F1 to F3);
 *   B4  marks do not descend from a row to the next.
 * rp_replay_buffer_check() tests all of them; debug builds do so after each change.
 *
 * Cost of a row: a copy; O(log size) in the tree; a column with frames is also hashed and
 * compared. */
#include "reprise/replay_buffer.h"

#include <assert.h>
#include <math.h>
#include <stdalign.h>

#include "buffer/replay_buffer_inside.h"
#include "buffer/stream_copy.h"
#include "util/error.h"
#include "util/verify.h"

enum {
    MOST_STREAMED = 2048,           /* largest row in bytes that is assembled on the stack */
    LEAST_RING_STREAMED = 64 << 20, /* bytes of a ring that does not fit the caches */
};

static rp_status check_column(const rp_replay_column *column, size_t index, rp_error *err)
{
    const char *name = column->name != NULL ? column->name : "";

    if (column->bytes == 0)
        return rp_fail(err, RP_INVALID, "column %zu ('%s'): bytes must be >= 1, got 0", index,
                       name);
    if (column->frame_count > RP_REPLAY_MAX_FRAMES ||
        (column->frame_count > 0 && column->bytes % column->frame_count != 0))
        return rp_fail(err, RP_INVALID,
                       "column %zu ('%s'): frame_count must be at most %d and divide its %zu "
                       "bytes, got %u",
                       index, name, RP_REPLAY_MAX_FRAMES, column->bytes, column->frame_count);
    return RP_OK;
}

static rp_status check_options(const rp_replay_options *o, rp_error *err)
{
    size_t frame_count = 0;

    if (o == NULL) return rp_fail(err, RP_INVALID, "no options are given");
    if (o->capacity < 1 || o->capacity > (size_t)1 << 31)
        return rp_fail(err, RP_INVALID, "capacity must be from 1 to 2^31, got %zu",
                       o->capacity);
    if (o->column_count < 1 || o->column_count > RP_REPLAY_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "there must be from 1 to %d columns, got %zu",
                       RP_REPLAY_MAX_COLUMNS, o->column_count);
    if (!isfinite(o->alpha) || o->alpha < 0)
        return rp_fail(err, RP_INVALID, "alpha must be finite and >= 0, got %g", o->alpha);
    if (!isfinite(o->epsilon) || o->epsilon < 0)
        return rp_fail(err, RP_INVALID, "epsilon must be finite and >= 0, got %g", o->epsilon);
    if (o->columns == NULL) return rp_fail(err, RP_INVALID, "no columns are given");
    for (size_t i = 0; i < o->column_count; i++) {
        if (check_column(&o->columns[i], i, err) != RP_OK) return RP_INVALID;
        frame_count += o->columns[i].frame_count;
    }
    if (frame_count > RP_REPLAY_MAX_FRAMES)
        return rp_fail(err, RP_INVALID, "a row must have at most %d frames, got %zu",
                       RP_REPLAY_MAX_FRAMES, frame_count);
    return RP_OK;
}

/* The largest power of two, up to 8, that divides a size. */
static size_t alignment_of(size_t bytes)
{
    size_t low = bytes & (~bytes + 1);
    return low < 8 ? low : 8;
}

/* Assigns offsets to the columns of this alignment. */
static bool place_columns(rp_replay_buffer *b, size_t alignment)
{
    for (size_t i = 0; i < b->column_count; i++) {
        buffer_column *c = &b->columns[i];
        size_t bytes = c->frame_bytes > 0 ? c->frame_count * sizeof(uint32_t) : c->bytes;

        if ((c->frame_bytes > 0 ? sizeof(uint32_t) : alignment_of(bytes)) != alignment)
            continue;
        c->offset = b->row_bytes;
        if (!rp_size_add(b->row_bytes, bytes, &b->row_bytes)) return false;
    }
    return true;
}

static bool lay_out(rp_replay_buffer *b)
{
    size_t round = 8;

    for (size_t alignment = 8; alignment > 2; alignment /= 2)
        if (!place_columns(b, alignment)) return false;
    for (size_t i = 0; i < b->store_count; i++, b->row_bytes += sizeof(uint32_t))
        b->stores[i].mark_offset = b->row_bytes;
    if (!place_columns(b, 2) || !place_columns(b, 1)) return false;
    if (b->row_bytes >= 512) round = RP_CACHE_LINE; /* whole cache lines */
    if (!rp_size_add(b->row_bytes, round - 1, &b->row_bytes)) return false;
    b->row_bytes -= b->row_bytes % round;
    b->streams = RP_CAN_STREAM && round == RP_CACHE_LINE && b->row_bytes <= MOST_STREAMED &&
                 b->capacity >= LEAST_RING_STREAMED / b->row_bytes;
    return true;
}

/* The index of the store for frames of this size, which is added if necessary. */
static uint32_t find_store(rp_replay_buffer *b, size_t frame_bytes)
{
    for (uint32_t s = 0; s < b->store_count; s++)
        if (b->stores[s].frames.frame_bytes == frame_bytes) return s;
    b->stores[b->store_count].frames.frame_bytes = frame_bytes; /* until make_stores() */
    return (uint32_t)b->store_count++;
}

static void copy_columns(rp_replay_buffer *b, const rp_replay_options *o)
{
    for (size_t i = 0; i < b->column_count; i++) {
        const rp_replay_column *from = &o->columns[i];
        buffer_column *to = &b->columns[i];

        for (size_t n = 0; from->name != NULL && from->name[n] != '\0' && n < 63; n++)
            to->name[n] = from->name[n];
        to->bytes = from->bytes;
        to->frame_count = from->frame_count;
        if (from->frame_count == 0) continue;
        to->frame_bytes = from->bytes / from->frame_count;
        to->store = find_store(b, to->frame_bytes);
        b->stores[to->store].frames_per_row += from->frame_count;
    }
}

static rp_status make_stores(rp_replay_buffer *b)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < b->store_count; i++) {
        buffer_store *s = &b->stores[i];
        size_t frame_bytes = s->frames.frame_bytes;

        memset(&s->frames, 0, sizeof s->frames);
        if (st == RP_OK)
            st = rp_frames_init(&s->frames, &b->alloc, frame_bytes,
                                (b->capacity + 1) * s->frames_per_row);
    }
    return st;
}

static rp_status fill(rp_replay_buffer *b, const rp_replay_options *o)
{
    b->columns = rp_alloc_array(&b->alloc, b->column_count, sizeof *b->columns);
    b->stores = rp_alloc_array(&b->alloc, b->column_count, sizeof *b->stores);
    if (b->columns == NULL || b->stores == NULL) return RP_NO_RESOURCE;
    copy_columns(b, o);
    if (make_stores(b) != RP_OK || !lay_out(b)) return RP_NO_RESOURCE;
    if (rp_sparse_array_init(&b->rows, &b->alloc, b->row_bytes, b->capacity, 64) != RP_OK)
        return RP_NO_RESOURCE;
    if (o->preallocate && rp_sparse_array_fill(&b->rows) != RP_OK) return RP_NO_RESOURCE;
    if (b->alpha == 0) return RP_OK;
    if (rp_sumtree_new(&b->alloc, &b->tree) != RP_OK) return RP_NO_RESOURCE;
    return rp_sumtree_reserve(b->tree, b->capacity);
}

rp_status rp_replay_buffer_new(const rp_allocator *alloc, const rp_replay_options *options,
                               rp_replay_buffer **out, rp_error *err)
{
    rp_replay_buffer *b;

    if (check_options(options, err) != RP_OK) return RP_INVALID;
    if (alloc == NULL) alloc = rp_allocator_default();
    b = rp_alloc_zero(alloc, sizeof *b);
    if (b == NULL) return rp_fail_memory(err, sizeof *b);
    b->alloc = *alloc;
    b->capacity = options->capacity;
    b->alpha = options->alpha;
    b->epsilon = options->epsilon;
    b->column_count = options->column_count;
    b->power = rp_power_best();
    b->largest = 1;
    rp_rng_init(&b->rng, options->seed);
    rp_mutex_init(&b->mu, RP_RANK_BUFFER);
    if (fill(b, options) != RP_OK) {
        rp_replay_buffer_free(b);
        return rp_fail(err, RP_NO_RESOURCE, "no memory for a buffer of %zu rows",
                       options->capacity);
    }
    *out = b;
    return RP_OK;
}

void rp_replay_buffer_free(rp_replay_buffer *b)
{
    rp_allocator alloc;

    if (b == NULL) return;
    alloc = b->alloc;
    for (size_t i = 0; i < b->store_count; i++) rp_frames_deinit(&b->stores[i].frames);
    rp_sparse_array_deinit(&b->rows);
    rp_sumtree_free(b->tree);
    rp_release(&alloc, b->slots, b->room * sizeof *b->slots);
    rp_release(&alloc, b->numbers, 2 * b->room * sizeof *b->numbers);
    rp_release(&alloc, b->stores, b->column_count * sizeof *b->stores);
    rp_release(&alloc, b->columns, b->column_count * sizeof *b->columns);
    rp_mutex_deinit(&b->mu);
    rp_release(&alloc, b, sizeof *b);
}

size_t rp_replay_buffer_size(rp_replay_buffer *b)
{
    size_t size;

    rp_mutex_lock(&b->mu);
    size = b->size;
    rp_mutex_unlock(&b->mu);
    return size;
}

uint64_t rp_replay_buffer_added(rp_replay_buffer *b)
{
    uint64_t added;

    rp_mutex_lock(&b->mu);
    added = b->added;
    rp_mutex_unlock(&b->mu);
    return added;
}

size_t rp_replay_buffer_memory(rp_replay_buffer *b)
{
    size_t bytes = sizeof *b + b->column_count * (sizeof *b->columns + sizeof *b->stores);

    rp_mutex_lock(&b->mu);
    bytes += rp_sparse_array_memory(&b->rows);
    bytes += b->room * (sizeof *b->slots + 2 * sizeof *b->numbers);
    for (size_t i = 0; i < b->store_count; i++) bytes += rp_frames_memory(&b->stores[i].frames);
    if (b->tree != NULL) /* 8 bytes a leaf; each level above has an eighth */
        bytes += rp_sumtree_capacity(b->tree) * 8 / 7 * sizeof(double);
    rp_mutex_unlock(&b->mu);
    return bytes;
}

void rp_replay_buffer_state(rp_replay_buffer *b, rp_replay_state *state)
{
    rp_mutex_lock(&b->mu);
    state->next = b->added;
    state->largest_priority = b->largest;
    memcpy(state->rng, b->rng.s, sizeof state->rng);
    rp_mutex_unlock(&b->mu);
}

void buffer_weigh(const rp_replay_buffer *b, const double *priorities, size_t count,
                  double *weights)
{
    double raised[BUFFER_BLOCK];

    assert(count <= BUFFER_BLOCK);
    raised[0] = 0; /* gcc cannot see that power() reads `count` of them */
    for (size_t i = 0; i < count; i++) {
        raised[i] = priorities[i] + b->epsilon;
        raised[i] = raised[i] < 0x1p1000 ? raised[i] : 0x1p1000;
    }
    b->power(raised, b->alpha, weights, count);
    for (size_t i = 0; i < count; i++) { /* sums of 2^31 weights are finite (B2) */
        weights[i] = weights[i] > 0x1p-1000 ? weights[i] : 0x1p-1000;
        weights[i] = weights[i] < 0x1p900 ? weights[i] : 0x1p900;
    }
}

static rp_status check_priorities(const double *priorities, size_t count, rp_error *err)
{
    bool good = true;

    for (size_t i = 0; i < count; i++) good &= priorities[i] >= 0 && priorities[i] <= 0x1p1023;
    for (size_t i = 0; !good && i < count; i++)
        if (!(priorities[i] >= 0 && priorities[i] <= 0x1p1023))
            return rp_fail(err, RP_INVALID,
                           "priorities must be finite and >= 0, got %g at place %zu",
                           priorities[i], i);
    return RP_OK;
}

static uint64_t mark_of(const buffer_store *s, const char *row)
{
    uint64_t next = rp_frames_mark(&s->frames);
    uint32_t low;

    memcpy(&low, row + s->mark_offset, sizeof low);
    return next - (uint32_t)((uint32_t)next - low);
}

/* Adds the frames of one row and writes their slots in the order of the columns. On failure
 * nothing has changed. */
static rp_status put_frames(rp_replay_buffer *b, const void *const *columns, size_t at,
                            uint32_t *slots, uint64_t *marks) RP_REQUIRES(b->mu);
static rp_status put_frames(rp_replay_buffer *b, const void *const *columns, size_t at,
                            uint32_t *slots, uint64_t *marks)
{
    uint64_t piece_marks[RP_REPLAY_MAX_COLUMNS];

    for (size_t s = 0; s < b->store_count; s++) {
        marks[s] = rp_frames_mark(&b->stores[s].frames);
        piece_marks[s] = b->stores[s].frames.pieces.next;
    }
    for (size_t i = 0; i < b->column_count; i++) {
        const buffer_column *c = &b->columns[i];
        const char *value = (const char *)columns[i] + at * c->bytes;

        for (uint32_t k = 0; c->frame_bytes > 0 && k < c->frame_count; k++) {
            rp_frames *frames = &b->stores[c->store].frames;
            if (rp_frames_put(frames, value + k * c->frame_bytes, slots++) == RP_OK) continue;
            for (size_t s = 0; s < b->store_count; s++)
                rp_frames_undo(&b->stores[s].frames, marks[s], piece_marks[s]);
            return RP_NO_RESOURCE;
        }
    }
    return RP_OK;
}

/* Releases the frames that only rows before `number` contain. */
static void release_frames(rp_replay_buffer *b, uint64_t lap, uint64_t number)
    RP_REQUIRES(b->mu);
static void release_frames(rp_replay_buffer *b, uint64_t lap, uint64_t number)
{
    const char *row = rp_sparse_array_at(&b->rows, buffer_slot(b, lap, number));

    for (size_t s = 0; s < b->store_count; s++)
        rp_frames_release(&b->stores[s].frames, mark_of(&b->stores[s], row));
}

static rp_status add_row(rp_replay_buffer *b, const void *const *columns, size_t at,
                         uint32_t slot) RP_REQUIRES(b->mu);
static rp_status add_row(rp_replay_buffer *b, const void *const *columns, size_t at,
                         uint32_t slot)
{
    uint32_t frames[RP_REPLAY_MAX_FRAMES], *next = frames;
    uint64_t marks[RP_REPLAY_MAX_COLUMNS];
    alignas(RP_CACHE_LINE) char made[MOST_STREAMED];
    char *row;

    if (rp_sparse_array_need(&b->rows, slot) != RP_OK) return RP_NO_RESOURCE;
    if (b->store_count > 0 && put_frames(b, columns, at, frames, marks) != RP_OK)
        return RP_NO_RESOURCE;
    row = b->streams ? made : rp_sparse_array_at(&b->rows, slot);
    for (size_t i = 0; i < b->column_count; i++) {
        const buffer_column *c = &b->columns[i];

        if (c->frame_bytes > 0) {
            memcpy(row + c->offset, next, c->frame_count * sizeof *next);
            next += c->frame_count;
        } else {
            buffer_copy_value(row + c->offset, (const char *)columns[i] + at * c->bytes,
                              c->bytes);
        }
    }
    for (size_t s = 0; s < b->store_count; s++) {
        uint32_t low = (uint32_t)marks[s];
        memcpy(row + b->stores[s].mark_offset, &low, sizeof low);
    }
    if (b->streams) rp_stream_copy(rp_sparse_array_at(&b->rows, slot), made, b->row_bytes);
    return RP_OK;
}

/* Adds up to BUFFER_BLOCK rows, from index `at` of the columns, with these weights. */
static rp_status add_block(rp_replay_buffer *b, const void *const *columns, size_t at,
                           size_t count, const double *weights) RP_REQUIRES(b->mu);
static rp_status add_block(rp_replay_buffer *b, const void *const *columns, size_t at,
                           size_t count, const double *weights)
{
    uint32_t slots[BUFFER_BLOCK], slot = (uint32_t)(b->added % b->capacity);
    rp_status st = RP_OK;
    size_t n;

    assert(rp_mutex_is_held(&b->mu) && count <= BUFFER_BLOCK);
    for (n = 0; n < count; n++) {
        st = add_row(b, columns, at + n, slot);
        if (st != RP_OK) break;
        slots[n] = slot;
        slot = slot + 1 == b->capacity ? 0 : slot + 1;
        b->added++;
        if (b->size < b->capacity) b->size++;
        if (b->store_count > 0) release_frames(b, buffer_lap(b), b->added - b->size);
    }
    if (b->streams) rp_stream_end();
    if (b->tree != NULL) rp_sumtree_set(b->tree, slots, weights, n);
    return st;
}

static bool check_locked(rp_replay_buffer *b) RP_REQUIRES(b->mu);

#ifndef NDEBUG
/* The parts that check_locked() walks: rows, leaves of the tree, frames and their pieces. */
static size_t check_parts(const rp_replay_buffer *b)
{
    size_t parts = 4; /* of a row, and of the sum tree above it */

    for (size_t s = 0; s < b->store_count; s++)
        parts += (size_t)b->stores[s].frames_per_row * (1 + b->stores[s].frames.piece_count);
    return b->capacity * parts;
}
#endif

/* Adds rows with priorities, with weights, or with neither. */
static rp_status check_columns(const rp_replay_buffer *b, const void *const *columns,
                               size_t count, rp_error *err)
{
    if (count == 0) return RP_OK;
    if (columns == NULL) return rp_fail(err, RP_INVALID, "no columns are given");
    for (size_t i = 0; i < b->column_count; i++)
        if (columns[i] == NULL)
            return rp_fail(err, RP_INVALID, "column %zu ('%s') is NULL", i, b->columns[i].name);
    return RP_OK;
}

static rp_status add(rp_replay_buffer *b, const void *const *columns, size_t count,
                     const double *priorities, const double *weights, rp_error *err)
{
    size_t at = 0;
    double weighed[BUFFER_BLOCK];
    rp_status st = RP_OK;

    rp_mutex_lock(&b->mu);
    if (count > b->capacity) { /* the first rows would be overwritten by the last */
        at = count - b->capacity;
        b->added += at;
        b->size = 0; /* all present rows would be overwritten */
        if (b->tree != NULL) rp_sumtree_clear(b->tree);
    }
    if (priorities == NULL && b->tree != NULL && weights == NULL) {
        buffer_weigh(b, &b->largest, 1, weighed);
        for (size_t i = 1; i < BUFFER_BLOCK; i++) weighed[i] = weighed[0];
    }
    while (at < count && st == RP_OK) {
        size_t n = count - at < BUFFER_BLOCK ? count - at : BUFFER_BLOCK;

        if (priorities != NULL && b->tree != NULL) {
            buffer_weigh(b, priorities + at, n, weighed);
            for (size_t i = 0; i < n; i++)
                if (priorities[at + i] > b->largest) b->largest = priorities[at + i];
        }
        st = add_block(b, columns, at, n, weights != NULL ? weights + at : weighed);
        at += n;
    }
    RP_VERIFY(check_parts(b), check_locked(b));
    rp_mutex_unlock(&b->mu);
    if (st != RP_OK) (void)rp_fail(err, st, "no memory for another row of %zu", b->capacity);
    return st;
}

rp_status rp_replay_buffer_add(rp_replay_buffer *b, const void *const *columns, size_t count,
                               const double *priorities, rp_error *err)
{
    if (check_columns(b, columns, count, err) != RP_OK) return RP_INVALID;
    if (priorities != NULL && check_priorities(priorities, count, err) != RP_OK)
        return RP_INVALID;
    return add(b, columns, count, priorities, NULL, err);
}

rp_status rp_replay_buffer_put_back(rp_replay_buffer *b, const void *const *columns,
                                    size_t count, const double *weights, rp_error *err)
{
    if (check_columns(b, columns, count, err) != RP_OK) return RP_INVALID;
    if (weights == NULL && count > 0) return rp_fail(err, RP_INVALID, "no weights are given");
    for (size_t i = 0; i < count; i++)
        if (!(weights[i] >= 0x1p-1000 && weights[i] <= 0x1p900))
            return rp_fail(err, RP_INVALID, "weights must be from 2^-1000 to 2^900, got %g",
                           weights[i]);
    return add(b, columns, count, NULL, weights, err);
}

/* Sets the weights of the rows that are still in the buffer. Returns their number. */
static size_t update_block(rp_replay_buffer *b, const int64_t *indices, const double *weights,
                           size_t count) RP_REQUIRES(b->mu);
static size_t update_block(rp_replay_buffer *b, const int64_t *indices, const double *weights,
                           size_t count)
{
    uint64_t oldest = b->added - b->size, lap = buffer_lap(b);
    uint32_t leaves[BUFFER_BLOCK];
    double kept[BUFFER_BLOCK];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t number = (uint64_t)indices[i];
        bool there = number >= oldest;

        leaves[n] = there ? buffer_slot(b, lap, number) : 0;
        kept[n] = weights[i];
        n += there;
    }
    assert(n <= count);
    rp_sumtree_set(b->tree, leaves, kept, n);
    return n;
}

rp_status rp_replay_buffer_update(rp_replay_buffer *b, const int64_t *indices,
                                  const double *priorities, size_t count, size_t *updated,
                                  rp_error *err)
{
    double weights[BUFFER_BLOCK];
    rp_status st = RP_OK;
    size_t sum = 0;

    if (b->alpha == 0)
        return rp_fail(err, RP_PRECONDITION, "a uniform buffer (alpha 0) has no priorities");
    if (count > 0 && (indices == NULL || priorities == NULL))
        return rp_fail(err, RP_INVALID, "no %s are given",
                       indices == NULL ? "indices" : "priorities");
    if (check_priorities(priorities, count, err) != RP_OK) return RP_INVALID;
    rp_mutex_lock(&b->mu);
    for (size_t i = 0; i < count; i++) {
        if ((uint64_t)indices[i] < b->added) continue; /* negative ones become huge */
        st = rp_fail(err, RP_INVALID, "no row has the number %lld; the next will be %llu",
                     (long long)indices[i], (unsigned long long)b->added);
        break;
    }
    for (size_t at = 0; at < count && st == RP_OK; at += BUFFER_BLOCK) {
        size_t n = count - at < BUFFER_BLOCK ? count - at : BUFFER_BLOCK;

        buffer_weigh(b, priorities + at, n, weights);
        for (size_t i = 0; i < n; i++)
            if (priorities[at + i] > b->largest) b->largest = priorities[at + i];
        sum += update_block(b, indices + at, weights, n);
    }
    RP_VERIFY(check_parts(b), check_locked(b));
    rp_mutex_unlock(&b->mu);
    if (st == RP_OK && updated != NULL) *updated = sum;
    return st;
}

static void clear_locked(rp_replay_buffer *b) RP_REQUIRES(b->mu);
static void clear_locked(rp_replay_buffer *b)
{
    b->size = 0;
    if (b->tree != NULL) rp_sumtree_clear(b->tree);
    for (size_t s = 0; s < b->store_count; s++) rp_frames_clear(&b->stores[s].frames);
}

void rp_replay_buffer_clear(rp_replay_buffer *b)
{
    rp_mutex_lock(&b->mu);
    clear_locked(b);
    rp_mutex_unlock(&b->mu);
}

rp_status rp_replay_buffer_set_state(rp_replay_buffer *b, const rp_replay_state *state,
                                     rp_error *err)
{
    const uint64_t *rng;

    if (state == NULL) return rp_fail(err, RP_INVALID, "no state is given");
    rng = state->rng;
    if (check_priorities(&state->largest_priority, 1, err) != RP_OK) return RP_INVALID;
    if ((rng[0] | rng[1] | rng[2] | rng[3]) == 0)
        return rp_fail(err, RP_INVALID, "the state of the random generator is all zeros");
    if (state->next > INT64_MAX)
        return rp_fail(err, RP_INVALID, "the next row's number is too large");
    rp_mutex_lock(&b->mu);
    clear_locked(b);
    b->added = state->next;
    b->largest = state->largest_priority;
    memcpy(b->rng.s, rng, sizeof b->rng.s);
    RP_VERIFY(check_parts(b), check_locked(b));
    rp_mutex_unlock(&b->mu);
    return RP_OK;
}

static bool check_row(const rp_replay_buffer *b, const char *row, const char *previous)
{
    for (size_t i = 0; i < b->column_count; i++) {
        const buffer_column *c = &b->columns[i];

        for (uint32_t k = 0; c->frame_bytes > 0 && k < c->frame_count; k++) {
            uint32_t slot;
            memcpy(&slot, row + c->offset + k * sizeof slot, sizeof slot);
            if (!rp_frames_check(&b->stores[c->store].frames, slot)) return false; /* B3 */
        }
    }
    for (size_t s = 0; previous != NULL && s < b->store_count; s++) /* B4 */
        if (mark_of(&b->stores[s], row) < mark_of(&b->stores[s], previous)) return false;
    return true;
}

static bool check_locked(rp_replay_buffer *b)
{
    const char *previous = NULL;
    uint64_t lap = buffer_lap(b);
    size_t weighty = 0;

    if (b->size > b->capacity || b->size > b->added) return false; /* B1 */
    for (uint64_t number = b->added - b->size; number < b->added; number++) {
        uint32_t slot = buffer_slot(b, lap, number);
        const char *row;

        if (slot != number % b->capacity || !rp_sparse_array_has(&b->rows, slot)) return false;
        if (b->tree != NULL && !(rp_sumtree_get(b->tree, slot) > 0)) return false; /* B2 */
        row = rp_sparse_array_at(&b->rows, slot);
        if (!check_row(b, row, previous)) return false;
        previous = row;
    }
    if (b->tree == NULL) return true;
    for (uint32_t leaf = 0; leaf < rp_sumtree_capacity(b->tree); leaf++)
        weighty += rp_sumtree_get(b->tree, leaf) > 0;
    return weighty == b->size && isfinite(rp_sumtree_total(b->tree)) &&
           rp_sumtree_check(b->tree);
}

bool rp_replay_buffer_check(rp_replay_buffer *b)
{
    bool good;

    rp_mutex_lock(&b->mu);
    good = check_locked(b);
    rp_mutex_unlock(&b->mu);
    return good;
}
