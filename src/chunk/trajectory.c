/* SPDX-License-Identifier: Apache-2.0 */
/* Making and reading trajectories.
 *
 * The list of chunks (J1) must not take quadratic time: a slice mostly has the chunk of the
 * slice before it; otherwise up to FEW chunks are searched linearly, and more are also stored
 * in a hash table. */
#include "chunk/trajectory.h"

#include <assert.h>
#include <inttypes.h>

#include "chunk/chunk.h"
#include "chunk/mismatch.h"
#include "util/error.h"
#include "util/mem.h"

enum { FEW = 16 };

static_assert(sizeof(rp_trajectory) % _Alignof(rp_chunk *) == 0 &&
                  sizeof(rp_chunk *) % _Alignof(rp_extent) == 0 &&
                  sizeof(rp_extent) % _Alignof(rp_chunk_slice) == 0,
              "the arrays of a trajectory follow each other without gaps");
static_assert(RP_ITEM_INDEX_BYTES + sizeof(rp_trajectory) <= (size_t)RP_ITEM_FIXED_BYTES &&
                  sizeof(rp_extent) == 8 && sizeof(rp_chunk_slice) == 24,
              "rp_trajectory_cost() covers the item and is what its header says");

static rp_status check_slice(size_t column, size_t index, const rp_chunk_slice *s,
                             rp_error *err)
{
    size_t rows;

    if (s->chunk == NULL)
        return rp_fail(err, RP_INVALID, "column %zu, slice %zu: no chunk", column, index);
    if (s->column >= s->chunk->column_count)
        return rp_fail(err, RP_INVALID,
                       "column %zu, slice %zu: column %u of chunk %" PRIu64 ", which has %u",
                       column, index, s->column, s->chunk->origin.key, s->chunk->column_count);
    if (s->length == 0)
        return rp_fail(err, RP_INVALID, "column %zu, slice %zu: length must be >= 1, got 0",
                       column, index);
    rows = rp_chunk_rows(s->chunk, s->column);
    if (s->offset > rows || s->length > rows - s->offset)
        return rp_fail(
            err, RP_INVALID,
            "column %zu, slice %zu: rows [%u, %u + %u) of chunk %" PRIu64 ", which has %zu",
            column, index, s->offset, s->offset, s->length, s->chunk->origin.key, rows);
    return RP_OK;
}

/* True if the rows of two chunk columns have the same shape: all dimensions but the first. */
static bool same_rows(const rp_chunk_column *a, const rp_chunk_column *b)
{
    if (a->shape.rank != b->shape.rank) return false;
    for (int32_t i = 1; i < a->shape.rank; i++)
        if (a->shape.dims[i] != b->shape.dims[i]) return false;
    return true;
}

static rp_status fail_mixed(size_t column, size_t index, const rp_chunk_column *got,
                            const rp_chunk_column *first, rp_error *err)
{
    rp_shape got_row = got->shape, first_row = first->shape;
    char a[64], b[64];

    if (got->dtype != first->dtype)
        return rp_fail(err, RP_INVALID,
                       "column %zu, slice %zu: got dtype %s but the column began with %s",
                       column, index, rp_dtype_name(got->dtype), rp_dtype_name(first->dtype));
    got_row.dims[0] = first_row.dims[0] = -1;
    return rp_fail(err, RP_INVALID,
                   "column %zu, slice %zu: got shape %s but the column began with %s", column,
                   index, rp_shape_text(&got_row, a, sizeof a),
                   rp_shape_text(&first_row, b, sizeof b));
}

/* Checks the slices of a column and counts their rows. */
static rp_status check_slices(size_t column, const rp_slices *slices, size_t *rows,
                              rp_error *err)
{
    const rp_chunk_slice *first = &slices->slices[0], *before = NULL;
    size_t total = 0;
    rp_status st;

    for (size_t i = 0; i < slices->slice_count; i++) {
        const rp_chunk_slice *s = &slices->slices[i];
        st = check_slice(column, i, s, err);
        if (st != RP_OK) return st;
        if (i > 0 && (s->chunk != before->chunk || s->column != before->column)) {
            const rp_chunk_column *own = &s->chunk->columns[s->column];
            const rp_chunk_column *other = &first->chunk->columns[first->column];
            if (own->dtype != other->dtype || !same_rows(own, other))
                return fail_mixed(column, i, own, other, err);
        }
        total += s->length; /* at most 2^20 slices of 2^32 rows */
        before = s;
    }
    *rows = total;
    return RP_OK;
}

size_t rp_slices_string_bytes(const rp_slices *column)
{
    size_t total = 0;

    for (size_t i = 0; i < column->slice_count; i++) {
        const rp_chunk_slice *s = &column->slices[i];
        if (!rp_size_add(total, s->chunk->columns[s->column].raw_bytes, &total))
            return SIZE_MAX;
    }
    return total;
}

/* Adds the decoded size of a column of `rows` rows to `*total`. False on overflow. */
static inline bool add_decoded(const rp_slices *slices, size_t rows, size_t *total)
{
    const rp_chunk_slice *first = &slices->slices[0];
    const rp_column_place *place = &first->chunk->places[first->column];
    size_t bytes;

    if (!rp_size_mul(rows, place->row_bytes + (place->row_bytes == 0), &bytes) ||
        !rp_size_add(*total, bytes, total))
        return false;
    return place->form < RP_FORM_STRING_LIST ||
           rp_size_add(*total, rp_slices_string_bytes(slices), total);
}

static rp_status fail_decoded(size_t index, const rp_decoded_limit *limit, size_t total,
                              rp_error *err)
{
    return rp_fail(err, RP_NO_RESOURCE,
                   "an item is over the limit of %zu bytes decoded: its columns up to %zu have "
                   "%zu; %s allows more",
                   limit->bytes, index, total, limit->setting);
}

/* Checks a column, and that the decoded size of the columns so far (`*total`) is within the
 * limit. */
static inline rp_status check_column(size_t index, const rp_slices *slices,
                                     const rp_decoded_limit *limit, size_t *total,
                                     rp_error *err)
{
    size_t rows = 0;
    rp_status st = check_slices(index, slices, &rows, err);

    if (st != RP_OK) return st;
    if (slices->squeeze && rows != 1)
        return rp_fail(err, RP_INVALID,
                       "column %zu: a squeezed column must have one row, got %zu", index, rows);
    if (!add_decoded(slices, rows, total))
        return rp_fail(err, RP_INVALID, "column %zu: %zu rows are too large", index, rows);
    if (limit != NULL && *total > limit->bytes) return fail_decoded(index, limit, *total, err);
    return RP_OK;
}

/* The chunks found so far. Up to FEW are stored in `few`; more in `chunks`, a separate array,
 * with a hash table of indexes + 1 (0: free) after it. */
typedef struct chunk_set {
    rp_chunk *few[FEW];
    rp_chunk **chunks;
    size_t count;
    uint32_t *table; /* NULL up to FEW */
    size_t mask;     /* of the table */
    size_t capacity; /* of `chunks`: each slice may have a different chunk */
} chunk_set;

static void set_init(chunk_set *set)
{
    set->chunks = set->few;
    set->count = 0;
    set->table = NULL;
}

static size_t set_bytes(const chunk_set *set)
{
    return set->capacity * sizeof *set->chunks + (set->mask + 1) * sizeof *set->table;
}

static uint32_t *find_slot(const chunk_set *set, const rp_chunk *chunk)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)chunk >> 4) * 0x9e3779b97f4a7c15u;
    size_t at = (size_t)(mixed >> 32) & set->mask;

    while (set->table[at] != 0 && set->chunks[set->table[at] - 1] != chunk)
        at = (at + 1) & set->mask;
    return &set->table[at];
}

/* Moves from `few` to arrays that have room for every slice. */
static bool spread(const rp_allocator *alloc, chunk_set *set, size_t slice_count)
{
    size_t table_size = 64;

    assert(set->table == NULL && set->count <= slice_count);
    while (table_size < 2 * slice_count) table_size *= 2;
    set->capacity = slice_count;
    set->mask = table_size - 1;
    set->chunks = rp_alloc_zero(alloc, set_bytes(set));
    if (set->chunks == NULL) {
        set->chunks = set->few;
        return false;
    }
    set->table = (uint32_t *)(set->chunks + slice_count);
    memcpy(set->chunks, set->few, sizeof set->few);
    for (size_t i = 0; i < set->count; i++) *find_slot(set, set->chunks[i]) = (uint32_t)i + 1;
    return true;
}

static bool add_chunk(const rp_allocator *alloc, chunk_set *set, rp_chunk *chunk,
                      size_t slice_count)
{
    uint32_t *slot;

    if (set->table == NULL) {
        for (size_t i = set->count; i-- > 0;)
            if (set->chunks[i] == chunk) return true;
        if (set->count < FEW) {
            set->chunks[set->count++] = chunk;
            return true;
        }
        if (!spread(alloc, set, slice_count)) return false;
    }
    slot = find_slot(set, chunk);
    if (*slot != 0) return true;
    assert(set->count < set->capacity);
    set->chunks[set->count++] = chunk;
    *slot = (uint32_t)set->count;
    return true;
}

/* Adds the chunks of a column that has been checked. False if there is no memory. */
static inline bool add_chunks(const rp_allocator *alloc, chunk_set *set,
                              const rp_slices *column, size_t slice_count)
{
    const rp_chunk *before = NULL;

    for (size_t i = 0; i < column->slice_count; i++) {
        rp_chunk *chunk = column->slices[i].chunk;
        if (chunk != before && !add_chunk(alloc, set, chunk, slice_count)) return false;
        before = chunk;
    }
    return true;
}

static rp_status count_slices(const rp_slices *columns, size_t column_count,
                              size_t *slice_count, rp_error *err)
{
    size_t total = 0;

    if (column_count == 0 || column_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "the number of columns must be in [1, %d], got %zu",
                       RP_MAX_COLUMNS, column_count);
    for (size_t i = 0; i < column_count; i++) {
        if (columns[i].slice_count == 0)
            return rp_fail(err, RP_INVALID, "column %zu: no slices", i);
        if (columns[i].slice_count > RP_MAX_SLICES - total)
            return rp_fail(err, RP_INVALID, "column %zu: more than %d slices", i,
                           RP_MAX_SLICES);
        total += columns[i].slice_count;
    }
    *slice_count = total;
    return RP_OK;
}

static size_t size_of(size_t chunk_count, size_t column_count, size_t slice_count)
{
    return sizeof(rp_trajectory) + chunk_count * sizeof(rp_chunk *) +
           column_count * sizeof(rp_extent) + slice_count * sizeof(rp_chunk_slice);
}

/* Fits 32 bits: there are at most RP_MAX_COLUMNS columns and RP_MAX_SLICES slices. */
static uint32_t item_cost(size_t chunk_count, size_t column_count, size_t slice_count)
{
    return (uint32_t)(RP_ITEM_FIXED_BYTES - sizeof(rp_trajectory) +
                      size_of(chunk_count, column_count, slice_count));
}

static void release(const rp_allocator *alloc, rp_trajectory *t)
{
    rp_release(alloc, t,
               size_of(t->chunk_count, t->column_count, rp_trajectory_slice_count(t)));
}

/* The size of a number as a varint. */
static uint32_t varint_bytes(uint32_t value)
{
    return (38 - (uint32_t)__builtin_clz(value | 1)) / 7;
}

/* What the slices of a trajectory have in common, for slice_image. A bitwise or is at least as
 * long as each of its operands. */
typedef struct slices_sum {
    uint32_t columns, offsets, lengths; /* the bitwise or of all slices */
    uint32_t switches;                  /* slices of another chunk than the slice before */
} slices_sum;

static uint16_t slice_image(const slices_sum *sum, uint32_t slice_count)
{
    uint32_t each = 1 + varint_bytes(sum->columns) + varint_bytes(sum->offsets) +
                    varint_bytes(sum->lengths);
    uint32_t all = slice_count * each + sum->switches * (RP_IMAGE_INDEX_BYTES - 1);

    return (uint16_t)((RP_IMAGE_PARTS * all + slice_count - 1) / slice_count);
}

/* The extent of a column whose slices begin at `first` (J3). */
static rp_extent extent_of(const rp_slices *column, uint32_t first)
{
    const rp_chunk_slice *s = &column->slices[0];
    rp_extent extent = {.first_slice = first & (2 * RP_MAX_SLICES - 1),
                        .squeeze = column->squeeze,
                        .more = (uint32_t)column->slice_count};
    const rp_chunk_column *c = &s->chunk->columns[s->column];
    const rp_column_place *place = &s->chunk->places[s->column];
    uint32_t kind;
    size_t at;

    if (column->slice_count != 1 || s->length != 1 || place->form != RP_FORM_STORED ||
        s->chunk->apart || s->chunk->adopted || place->row_bytes == 0)
        return extent;
    kind = rp_row_kind(c->dtype, c->shape.rank - 1, c->shape.dims + 1);
    at = (size_t)(s->chunk->wire - (const uint8_t *)s->chunk) + place->rows_at +
         s->offset * place->row_bytes;
    if (kind == 0 || at > UINT16_MAX) return extent;
    extent.is_plain = true;
    extent.more = kind << 16 | (uint32_t)at;
    return extent;
}

/* slice_image() of one slice. Its numbers mostly take a byte each. */
static inline uint16_t image_of_one(const rp_chunk_slice *slice)
{
    slices_sum sum = {slice->column, slice->offset, slice->length, 1};

    if (__builtin_expect((sum.columns | sum.offsets | sum.lengths) < 1 << 7, 1))
        return RP_IMAGE_PARTS * (1 + 3 + RP_IMAGE_INDEX_BYTES - 1);
    return slice_image(&sum, 1);
}

/* Allocates a trajectory and copies the columns. Takes no references. */
static rp_trajectory *make(const rp_allocator *alloc, size_t chunk_count,
                           const rp_slices *columns, size_t column_count, size_t slice_count)
{
    rp_trajectory *t = rp_alloc(alloc, size_of(chunk_count, column_count, slice_count));
    rp_extent *extent;
    rp_chunk_slice *slices;
    slices_sum sum = {0};
    const rp_chunk *before = NULL;
    uint32_t at = 0;

    if (t == NULL) return NULL;
    *t = (rp_trajectory){.chunk_count = (uint32_t)chunk_count,
                         .column_count = (uint16_t)column_count,
                         .item_cost = item_cost(chunk_count, column_count, slice_count),
                         .alloc = *alloc};
    t->cost = t->item_cost;
    rp_refcount_init(&t->refs);
    extent = (rp_extent *)(void *)(t->chunks + chunk_count);
    slices = (rp_chunk_slice *)(void *)(extent + column_count);
    for (size_t i = 0; i < column_count; i++) {
        uint32_t count = (uint32_t)columns[i].slice_count;

        extent[i] = extent_of(&columns[i], at);
        for (uint32_t k = 0; k < count; k++) { /* mostly one */
            const rp_chunk_slice *slice = &columns[i].slices[k];

            sum.columns |= slice->column;
            sum.offsets |= slice->offset;
            sum.lengths |= slice->length;
            sum.switches += slice->chunk != before;
            before = slice->chunk;
            slices[at++] = *slice;
        }
    }
    assert(at == slice_count); /* J2 */
    t->slice_image = slice_image(&sum, at);
    return t;
}

static void put_chunks(rp_trajectory *t, const chunk_set *set)
{
    assert(set->count == t->chunk_count);
    for (size_t i = 0; i < set->count; i++) {
        t->chunks[i] = set->chunks[i];
        t->bytes += set->chunks[i]->wire_bytes;
        t->cost += rp_chunk_memory(set->chunks[i]);
    }
}

/* A fast path for one column of one slice, the most common small trajectory. */
static rp_status new_of_one(const rp_allocator *alloc, const rp_slices *column,
                            const rp_decoded_limit *limit, rp_trajectory **out, rp_error *err)
{
    const rp_chunk_slice *slice = &column->slices[0];
    rp_chunk *chunk = slice->chunk;
    size_t decoded = 0;
    rp_status st = check_column(0, column, limit, &decoded, err);
    rp_extent *extent;
    rp_trajectory *t;

    if (st != RP_OK) return st;
    t = rp_alloc(alloc, size_of(1, 1, 1));
    if (t == NULL) return rp_fail_memory(err, size_of(1, 1, 1));
    *t = (rp_trajectory){.chunk_count = 1,
                         .column_count = 1,
                         .slice_image = image_of_one(slice),
                         .item_cost = item_cost(1, 1, 1),
                         .cost = item_cost(1, 1, 1) + rp_chunk_memory(chunk),
                         .bytes = chunk->wire_bytes,
                         .alloc = *alloc};
    rp_refcount_init(&t->refs);
    t->chunks[0] = chunk;
    extent = (rp_extent *)(void *)(t->chunks + 1);
    *extent = extent_of(column, 0);
    *(rp_chunk_slice *)(void *)(extent + 1) = *slice;
    *out = t;
    return RP_OK;
}

rp_status rp_trajectory_new_unheld(const rp_allocator *alloc, const rp_slices *columns,
                                   size_t column_count, const rp_decoded_limit *limit,
                                   rp_trajectory **out, rp_error *err)
{
    chunk_set set;
    rp_trajectory *t = NULL;
    size_t slice_count = 0, decoded = 0;
    bool has_memory = true;
    rp_status st;

    if (column_count == 1 && columns[0].slice_count == 1)
        return new_of_one(alloc, &columns[0], limit, out, err);
    st = count_slices(columns, column_count, &slice_count, err);
    set_init(&set);
    for (size_t i = 0; st == RP_OK && has_memory && i < column_count; i++) {
        st = check_column(i, &columns[i], limit, &decoded, err);
        if (st == RP_OK) has_memory = add_chunks(alloc, &set, &columns[i], slice_count);
    }
    if (st == RP_OK && has_memory)
        t = make(alloc, set.count, columns, column_count, slice_count);
    if (t != NULL) {
        put_chunks(t, &set);
        *out = t;
    } else if (st == RP_OK) {
        st = rp_fail_memory(err, slice_count * sizeof(rp_chunk_slice));
    }
    if (set.table != NULL) rp_release(alloc, set.chunks, set_bytes(&set));
    return st;
}

void rp_trajectory_hold(rp_trajectory *trajectory)
{
    for (uint32_t i = 0; i < trajectory->chunk_count; i++) rp_chunk_ref(trajectory->chunks[i]);
}

rp_status rp_trajectory_new(const rp_allocator *alloc, const rp_slices *columns,
                            size_t column_count, rp_trajectory **out, rp_error *err)
{
    rp_status st = rp_trajectory_new_unheld(alloc, columns, column_count, NULL, out, err);

    if (st == RP_OK) rp_trajectory_hold(*out);
    return st;
}

/* The index of the chunk of a slice: mostly that of the slice before. */
static size_t position_of(const rp_trajectory *t, const chunk_set *set, const rp_chunk *chunk,
                          size_t before)
{
    if (t->chunks[before] == chunk) return before;
    if (set->table != NULL) return *find_slot(set, chunk) - 1;
    for (size_t i = 0;; i++) {
        assert(i < t->chunk_count); /* J1 */
        if (t->chunks[i] == chunk) return i;
    }
}

/* Sets the extents of a copy of a trajectory to those of its own chunks. */
static void renew_extents(rp_trajectory *t)
{
    rp_extent *extent = (rp_extent *)(void *)(t->chunks + t->chunk_count);

    for (size_t i = 0; i < t->column_count; i++) {
        const rp_slices column = rp_trajectory_slices(t, i);

        extent[i] = extent_of(&column, extent[i].first_slice);
    }
}

rp_trajectory *rp_trajectory_over(const rp_allocator *alloc, const rp_trajectory *trajectory,
                                  rp_chunk *const *chunks)
{
    const rp_extent *last = rp_trajectory_extents(trajectory) + trajectory->column_count - 1;
    size_t slice_count = last->first_slice + rp_extent_slices(last), at = 0;
    size_t size = size_of(trajectory->chunk_count, trajectory->column_count, slice_count);
    chunk_set set;
    rp_trajectory *t;
    rp_chunk_slice *slices;

    set_init(&set);
    for (uint32_t i = 0; trajectory->chunk_count > FEW && i < trajectory->chunk_count; i++)
        if (!add_chunk(alloc, &set, trajectory->chunks[i], trajectory->chunk_count))
            return NULL; /* only the move from `few` allocates, so nothing to free */
    t = rp_alloc(alloc, size);
    if (t != NULL) {
        *t = (rp_trajectory){.chunk_count = trajectory->chunk_count,
                             .column_count = trajectory->column_count,
                             .slice_image = trajectory->slice_image,
                             .item_cost = trajectory->item_cost,
                             .cost = trajectory->cost,
                             .bytes = trajectory->bytes,
                             .alloc = *alloc};
        rp_refcount_init(&t->refs);
        memcpy(t->chunks, trajectory->chunks, size - sizeof *t);
        for (uint32_t i = 0; i < t->chunk_count; i++) t->chunks[i] = rp_chunk_ref(chunks[i]);
        slices = (rp_chunk_slice *)(uintptr_t)rp_trajectory_slices(t, 0).slices;
        for (size_t i = 0; i < slice_count; i++) {
            at = position_of(trajectory, &set, slices[i].chunk, at);
            slices[i].chunk = chunks[at];
        }
        renew_extents(t);
    }
    if (set.table != NULL) rp_release(alloc, set.chunks, set_bytes(&set));
    return t;
}

rp_trajectory *rp_trajectory_ref(rp_trajectory *trajectory)
{
    rp_refcount_inc(&trajectory->refs);
    return trajectory;
}

void rp_trajectory_unref_many(rp_trajectory *trajectory, uint32_t count)
{
    rp_allocator alloc;

    if (trajectory == NULL || !rp_refcount_sub(&trajectory->refs, count)) return;
    for (uint32_t i = 0; i < trajectory->chunk_count; i++)
        rp_chunk_unref(trajectory->chunks[i]);
    alloc = trajectory->alloc;
    release(&alloc, trajectory);
}

void rp_trajectory_unref(rp_trajectory *trajectory)
{
    rp_trajectory_unref_many(trajectory, 1);
}

size_t rp_trajectory_column_count(const rp_trajectory *trajectory)
{
    return trajectory->column_count;
}

rp_trajectory_column rp_trajectory_get_column(const rp_trajectory *trajectory, size_t index)
{
    rp_slices slices = rp_trajectory_slices(trajectory, index);
    const rp_chunk_slice *first = &slices.slices[0];
    const rp_chunk_column *source = &first->chunk->columns[first->column];
    rp_trajectory_column column = {.dtype = source->dtype,
                                   .squeeze = slices.squeeze,
                                   .slice_count = (uint32_t)slices.slice_count,
                                   .shape = source->shape};
    size_t rows = 0;

    for (size_t i = 0; i < slices.slice_count; i++) rows += slices.slices[i].length;
    column.bytes = rows * first->chunk->places[first->column].row_bytes;
    column.shape.dims[0] = (int64_t)rows;
    if (!slices.squeeze) return column;
    column.shape.rank--;
    memmove(column.shape.dims, column.shape.dims + 1,
            (size_t)column.shape.rank * sizeof column.shape.dims[0]);
    return column;
}

size_t rp_trajectory_chunk_count(const rp_trajectory *trajectory)
{
    return trajectory->chunk_count;
}

rp_chunk *rp_trajectory_get_chunk(const rp_trajectory *trajectory, size_t index)
{
    assert(index < trajectory->chunk_count);
    return trajectory->chunks[index];
}

size_t rp_trajectory_cost(const rp_trajectory *trajectory)
{
    return trajectory->cost;
}

/* Returns the shape to compare with the spec: that of a row if the spec has the rank of a step,
 * otherwise that of the column. */
static rp_shape compared_shape(const rp_trajectory_column *column, const rp_spec *spec)
{
    rp_shape step = {.rank = column->shape.rank - 1};

    if (column->squeeze || spec->shape.rank != step.rank) return column->shape;
    for (int32_t i = 0; i < step.rank; i++) step.dims[i] = column->shape.dims[i + 1];
    return step;
}

rp_status rp_trajectory_column_check(size_t index, const rp_trajectory_column *column,
                                     const rp_spec *spec, rp_error *err)
{
    rp_shape shape = compared_shape(column, spec);

    return rp_column_match(index, column->dtype, &shape, spec, err);
}

/* True if a column is one plain row, squeezed, of exactly the dtype and shape of the spec. */
static bool is_plain_of(const rp_trajectory *t, size_t index, const rp_spec *spec)
{
    const rp_extent *extent = &rp_trajectory_extents(t)[index];
    uint32_t kind = rp_row_kind(spec->dtype, spec->shape.rank, spec->shape.dims);

    return kind != 0 && extent->is_plain && extent->squeeze && extent->more >> 16 == kind;
}

rp_status rp_trajectory_check(const rp_trajectory *trajectory, const rp_signature *signature,
                              rp_error *err)
{
    size_t expected = rp_signature_column_count(signature);
    rp_status st;

    if (trajectory->column_count != expected)
        return rp_fail(
            err, RP_INVALID, "the trajectory has %u column%s but the signature has %zu",
            trajectory->column_count, trajectory->column_count == 1 ? "" : "s", expected);
    for (size_t i = 0; i < expected; i++) {
        rp_trajectory_column c;

        if (is_plain_of(trajectory, i, rp_signature_column(signature, i))) continue;
        c = rp_trajectory_get_column(trajectory, i);
        st = rp_trajectory_column_check(i, &c, rp_signature_column(signature, i), err);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}
