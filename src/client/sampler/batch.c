/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: a group of samples, the shapes of their stacked columns, and their decoding into the
 * caller's memory.
 *
 * Invariants of a batch that rp_sampler_batch() returned:
 *   A1  size == held->count >= 1, and trajectories[i] is that of sample i;
 *   A2  every item has column_count columns, with the dtype of item 0;
 *   A3  layouts[c].numbers is NULL, or has number_count() entries. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "client/sampler/sampler_inside.h"
#include "table/op.h"
#include "util/error.h"
#include "util/mem.h"

#define OTHER_PROGRAM "reset the table if it has items of another program"

enum { MAX_BATCH_SIZE = 1 << 20 };

/* The layout of a column, besides its rp_batch_column. */
typedef struct layout {
    size_t item_bytes, row_bytes;
    int64_t *numbers; /* lengths or offsets; NULL: neither */
} layout;

struct rp_batch {
    rp_allocator alloc;
    rp_stack_pool *pool;
    uint64_t generation; /* of the process that made it */
    rp_ragged ragged;
    size_t size;
    rp_returned *held; /* the samples, in a form that can be returned to the sampler */
    const rp_trajectory **trajectories;
    size_t column_count;
    rp_batch_column *columns;
    layout *layouts;
    rp_stack_column *stacks; /* scratch for decoding */
};

static size_t number_count(const rp_batch *b)
{
    return b->size + (b->ragged == RP_RAGGED_OFFSETS);
}

static int64_t rows_of(const rp_trajectory_column *c)
{
    assert(c->squeeze || c->shape.rank >= 1);
    return c->squeeze ? 1 : c->shape.dims[0];
}

rp_status rp_batch_check_column(size_t index, size_t column, const rp_trajectory_column *own,
                                const rp_trajectory_column *first, rp_error *err)
{
    rp_shape a = own->shape, b = first->shape;
    char own_text[64], first_text[64];

    if (own->dtype != first->dtype)
        return rp_fail(err, RP_INVALID,
                       "item %zu, column %zu: dtype %s but item 0 has %s; " OTHER_PROGRAM,
                       index, column, rp_dtype_name(own->dtype), rp_dtype_name(first->dtype));
    if (!own->squeeze && !first->squeeze) b.dims[0] = a.dims[0];
    if (own->squeeze != first->squeeze || !rp_shape_equal(&a, &b))
        return rp_fail(err, RP_INVALID,
                       "item %zu, column %zu: shape %s but item 0 has %s: only the number of "
                       "rows may vary, with `ragged`; " OTHER_PROGRAM,
                       index, column, rp_shape_text(&own->shape, own_text, sizeof own_text),
                       rp_shape_text(&first->shape, first_text, sizeof first_text));
    return RP_OK;
}

/* The rows of a column over all items. */
typedef struct extent {
    rp_trajectory_column first;
    int64_t longest, total; /* rows */
    bool is_ragged;
} extent;

static rp_status measure(const rp_batch *b, size_t column, extent *out, rp_error *err)
{
    rp_status st = RP_OK;
    int64_t expected;

    assert(b->size >= 1 && column < b->column_count);
    out->first = rp_trajectory_get_column(b->trajectories[0], column);
    expected = out->longest = out->total = rows_of(&out->first);
    out->is_ragged = false;
    for (size_t i = 1; st == RP_OK && i < b->size; i++) {
        rp_trajectory_column own = rp_trajectory_get_column(b->trajectories[i], column);
        int64_t rows = rows_of(&own);

        if (i + 2 < b->size) __builtin_prefetch(b->trajectories[i + 2]);
        st = rp_batch_check_column(i, column, &own, &out->first, err);
        if (st == RP_OK && rows != expected && b->ragged == RP_RAGGED_REFUSE)
            st = rp_fail(err, RP_INVALID,
                         "item %zu, column %zu: %lld row%s but item 0 has %lld: all must have "
                         "one length unless `ragged` is 'pad' or 'offsets'",
                         i, column, (long long)rows, rows == 1 ? "" : "s", (long long)expected);
        out->is_ragged |= rows != expected;
        if (rows > out->longest) out->longest = rows;
        out->total += rows;
    }
    assert(st != RP_OK || out->longest <= out->total);
    return st;
}

/* Computes lengths or offsets. */
static rp_status fill_numbers(rp_batch *b, size_t column, rp_error *err)
{
    size_t count = number_count(b);
    int64_t *numbers = rp_alloc_array(&b->alloc, count, sizeof *numbers), total = 0;

    if (numbers == NULL) return rp_fail_memory(err, count * sizeof *numbers);
    assert(b->layouts[column].numbers == NULL);
    b->layouts[column].numbers = numbers;
    for (size_t i = 0; i < b->size; i++) {
        rp_trajectory_column own = rp_trajectory_get_column(b->trajectories[i], column);

        numbers[i] = b->ragged == RP_RAGGED_OFFSETS ? total : rows_of(&own);
        total += rows_of(&own);
    }
    if (b->ragged == RP_RAGGED_OFFSETS) numbers[b->size] = total;
    return RP_OK;
}

static rp_status set_bytes(const rp_batch *b, size_t column, size_t a, size_t c, rp_error *err)
{
    if (rp_size_mul(a, c, &b->columns[column].bytes)) return RP_OK;
    return rp_fail(err, RP_INVALID, "column %zu: %zu x %zu bytes are too many", column, a, c);
}

static rp_status describe_column(rp_batch *b, size_t column, rp_error *err)
{
    rp_batch_column *out = &b->columns[column];
    layout *l = &b->layouts[column];
    extent e;
    rp_status st = measure(b, column, &e, err);
    const rp_shape *shape = &e.first.shape;
    bool offsets = b->ragged == RP_RAGGED_OFFSETS && !e.first.squeeze;

    if (st != RP_OK) return st;
    out->dtype = e.first.dtype;
    l->row_bytes = e.first.bytes / (size_t)rows_of(&e.first);
    if (offsets) {
        out->shape = *shape;
        out->shape.dims[0] = e.total;
        l->item_bytes = l->row_bytes * ((size_t)e.total / b->size);
        st = set_bytes(b, column, (size_t)e.total, l->row_bytes, err);
    } else {
        if (shape->rank + 1 > RP_MAX_RANK)
            return rp_fail(
                err, RP_INVALID,
                "column %zu: items have %d dimensions; in a batch at most %d are supported",
                column, (int)shape->rank, RP_MAX_RANK - 1);
        out->shape = (rp_shape){.rank = shape->rank + 1, .dims = {(int64_t)b->size}};
        memcpy(out->shape.dims + 1, shape->dims, (size_t)shape->rank * sizeof shape->dims[0]);
        if (e.is_ragged) out->shape.dims[1] = e.longest;
        if (!rp_size_mul((size_t)e.longest, l->row_bytes, &l->item_bytes))
            return rp_fail(err, RP_INVALID, "column %zu: items are too long", column);
        st = set_bytes(b, column, b->size, l->item_bytes, err);
    }
    if (st == RP_OK && (offsets || e.is_ragged)) st = fill_numbers(b, column, err);
    return st;
}

/* Adds the bytes of a column, and those of its strings, which a reader may copy. */
static size_t add_column_bytes(const rp_batch *b, size_t column, size_t total)
{
    bool ok = rp_size_add(total, b->columns[column].bytes, &total);

    for (size_t i = 0; ok && i < b->size && b->columns[column].dtype == RP_STRING; i++) {
        rp_slices slices = rp_trajectory_slices(b->trajectories[i], column);
        ok = rp_size_add(total, rp_slices_string_bytes(&slices), &total);
    }
    return ok ? total : SIZE_MAX;
}

static rp_status check_bytes(const rp_batch *b, size_t limit, rp_error *err)
{
    size_t total = 0;

    for (size_t i = 0; i < b->column_count; i++) total = add_column_bytes(b, i, total);
    if (limit == 0 || total <= limit) return RP_OK;
    return rp_fail(err, RP_NO_RESOURCE,
                   "a batch of %zu items has %zu bytes decoded, over the limit of %zu; fewer "
                   "items, or the client's option batch_bytes, allow it",
                   b->size, total, limit);
}

rp_status rp_batch_name_table(const rp_sampler *s, rp_status st, rp_error *err)
{
    char text[RP_ERROR_TEXT_BYTES];

    if (err == NULL || st != RP_INVALID || strncmp(err->text, "item ", 5) != 0) return st;
    (void)snprintf(text, sizeof text, "%s", err->text);
    return rp_fail(err, st, "table '%.40s': %.205s", s->table, text);
}

static rp_status describe(rp_batch *b, size_t limit, rp_error *err)
{
    rp_status st = RP_OK;

    b->column_count = rp_trajectory_column_count(b->trajectories[0]);
    b->columns = rp_alloc_array(&b->alloc, b->column_count, sizeof *b->columns);
    b->layouts = rp_alloc_array(&b->alloc, b->column_count, sizeof *b->layouts);
    b->stacks = rp_alloc_array(&b->alloc, b->column_count, sizeof *b->stacks);
    if (b->columns == NULL || b->layouts == NULL || b->stacks == NULL)
        return rp_fail_memory(err, b->column_count * sizeof *b->layouts);
    for (size_t i = 1; i < b->size; i++)
        if (rp_trajectory_column_count(b->trajectories[i]) != b->column_count)
            return rp_fail(err, RP_INVALID,
                           "item %zu: %zu column%s but item 0 has %zu; " OTHER_PROGRAM, i,
                           rp_trajectory_column_count(b->trajectories[i]),
                           rp_trajectory_column_count(b->trajectories[i]) == 1 ? "" : "s",
                           b->column_count);
    for (size_t i = 0; st == RP_OK && i < b->column_count; i++) st = describe_column(b, i, err);
    return st == RP_OK ? check_bytes(b, limit, err) : st;
}

static size_t held_bytes(size_t capacity)
{
    return sizeof(rp_returned) + capacity * sizeof(rp_sample);
}

void rp_batch_free(rp_batch *b)
{
    rp_allocator alloc;

    if (b == NULL) return;
    alloc = b->alloc;
    if (b->held != NULL) {
        rp_samples_release(b->held->samples, b->held->count);
        rp_release(&alloc, b->held, held_bytes(b->held->capacity));
    }
    for (size_t i = 0; b->layouts != NULL && i < b->column_count; i++)
        rp_release(&alloc, b->layouts[i].numbers, number_count(b) * sizeof(int64_t));
    rp_release(&alloc, b->layouts, b->column_count * sizeof *b->layouts);
    rp_release(&alloc, b->columns, b->column_count * sizeof *b->columns);
    rp_release(&alloc, b->stacks, b->column_count * sizeof *b->stacks);
    rp_release(&alloc, b->trajectories, b->size * sizeof *b->trajectories);
    rp_stack_pool_unref(b->pool);
    rp_release(&alloc, b, sizeof *b);
}

static rp_status make_batch(rp_sampler *s, rp_ragged ragged, size_t size, rp_batch **out,
                            rp_error *err)
{
    rp_batch *b = rp_alloc_zero(&s->alloc, sizeof *b);

    if (b == NULL) return rp_fail_memory(err, sizeof *b);
    b->alloc = s->alloc;
    b->ragged = ragged;
    b->pool = rp_stack_pool_ref(s->pool);
    b->generation = s->generation;
    b->held = rp_alloc(&s->alloc, held_bytes(size));
    if (b->held == NULL) {
        rp_batch_free(b);
        return rp_fail_memory(err, held_bytes(size));
    }
    b->held->capacity = size;
    b->held->first = b->held->count = 0;
    *out = b;
    return RP_OK;
}

/* Computes sizes and layouts of the samples that the batch holds. */
static rp_status fill_batch(rp_sampler *s, rp_batch *b, rp_error *err)
{
    assert(b->held->count >= 1 && b->held->count <= b->held->capacity && b->size == 0);
    b->size = b->held->count;
    b->trajectories = rp_alloc_array(&b->alloc, b->size, sizeof *b->trajectories);
    if (b->trajectories == NULL) return rp_fail_memory(err, b->size * sizeof *b->trajectories);
    for (size_t i = 0; i < b->size; i++) b->trajectories[i] = b->held->samples[i].trajectory;
    if (s->options.beta > 0) rp_samples_weigh(b->held->samples, b->size, s->options.beta);
    return rp_batch_name_table(s, describe(b, s->feed.batch_bytes, err), err);
}

rp_status rp_batch_check_size(const rp_sampler *s, size_t size, rp_error *err)
{
    if (size >= 1 && size <= MAX_BATCH_SIZE) return RP_OK;
    return rp_fail(err, RP_INVALID, "sampler of '%s': a batch has 1 .. %d samples, got %zu",
                   s->table, MAX_BATCH_SIZE, size);
}

static rp_status check_batch(const rp_sampler *s, size_t size, rp_ragged ragged, rp_error *err)
{
    if (ragged != RP_RAGGED_REFUSE && ragged != RP_RAGGED_PAD && ragged != RP_RAGGED_OFFSETS)
        return rp_fail(err, RP_INVALID,
                       "sampler of '%s': ragged must be RP_RAGGED_REFUSE, RP_RAGGED_PAD or "
                       "RP_RAGGED_OFFSETS, got %d",
                       s->table, (int)ragged);
    return rp_batch_check_size(s, size, err);
}

/* Fetches the samples of a batch that has none. */
static rp_status fetch_batch(rp_sampler *s, rp_batch *b, size_t size, bool whole, rp_wait wait,
                             rp_error *err)
{
    rp_status st;

    assert(b != NULL && b->held != NULL);
    st = rp_sampler_fetch(s, b->held->samples, size, size, &b->held->count, wait, err);

    if (st != RP_OK && b->held->count > 0) {
        if (!whole && rp_sampler_is_over(s)) {
            st = RP_OK; /* the last batch */
        } else {
            rp_sampler_return(s, b->held);
            b->held = NULL;
        }
    }
    return st == RP_OK ? fill_batch(s, b, err) : st;
}

rp_status rp_sampler_batch(rp_sampler *s, size_t size, rp_ragged ragged, bool whole,
                           rp_wait wait, rp_batch **out, rp_error *err)
{
    rp_batch *b = NULL;
    rp_status st = check_batch(s, size, ragged, err);

    if (st == RP_OK && out == NULL)
        st = rp_fail(err, RP_INVALID, "sampler of '%s': no `out`", s->table);
    if (st == RP_OK) st = rp_sampler_begin_call(s, err);
    if (st != RP_OK) return st;
    st = make_batch(s, ragged, size, &b, err);
    if (st == RP_OK) st = fetch_batch(s, b, size, whole, wait, err);
    rp_sampler_end_call(s);
    if (st != RP_OK) {
        rp_batch_free(b);
        return st;
    }
    *out = b;
    return RP_OK;
}

size_t rp_batch_size(const rp_batch *b)
{
    return b->size;
}

const rp_sample *rp_batch_samples(const rp_batch *b)
{
    return b->held->samples;
}

size_t rp_batch_column_count(const rp_batch *b)
{
    return b->column_count;
}

const rp_batch_column *rp_batch_get_column(const rp_batch *b, size_t column)
{
    return &b->columns[column];
}

const int64_t *rp_batch_lengths(const rp_batch *b, size_t column)
{
    return b->layouts[column].numbers;
}

rp_status rp_batch_decode(rp_batch *b, void *const *dst, const size_t *dst_bytes, rp_error *err)
{
    size_t count = 0;

    if (b->generation != rp_runtime_generation())
        return rp_fail(err, RP_PRECONDITION, "the batch belongs to the parent process");
    if (b->column_count > 0 && (dst == NULL || dst_bytes == NULL))
        return rp_fail(err, RP_INVALID, "`%s` is NULL, and the batch has %zu column%s",
                       dst == NULL ? "dst" : "dst_bytes", b->column_count,
                       b->column_count == 1 ? "" : "s");
    for (size_t i = 0; i < b->column_count; i++) {
        const layout *l = &b->layouts[i];

        if (dst[i] == NULL) continue;
        if (dst_bytes[i] != b->columns[i].bytes)
            return rp_fail(err, RP_INVALID,
                           "column %zu: the batch has %zu bytes, got room for %zu", i,
                           b->columns[i].bytes, dst_bytes[i]);
        b->stacks[count++] = (rp_stack_column){
            .column = i,
            .strings = b->columns[i].dtype == RP_STRING,
            .dst = dst[i],
            .item_bytes = l->item_bytes,
            .row_bytes = l->row_bytes,
            .lengths = b->ragged == RP_RAGGED_PAD ? l->numbers : NULL,
            .offsets = b->ragged == RP_RAGGED_OFFSETS ? l->numbers : NULL,
        };
    }
    return rp_stack_run(b->pool, b->trajectories, b->size, b->stacks, count, 0, err);
}
