/* SPDX-License-Identifier: Apache-2.0 */
/* Reverb's first writer: a trajectory writer in which every column has a row in every step.
 *
 * Invariants:
 *   X1  column_count is 0 and the arrays are NULL, or the arrays have room for column_count
 *       columns and longest steps;
 *   X2  column_count does not change while the current episode has steps. */
#include "client/writer/step_writer.h"

#include <assert.h>

#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"

enum { DEFAULT_CHUNK = 10 };

struct rp_step_writer {
    rp_trajectory_writer *writer;
    int32_t longest;     /* most steps of an item, >= 1 */
    size_t column_count; /* 0 before the first step */
    rp_value *values;    /* one for each column */
    rp_item_column *item;
    rp_ref *refs; /* column_count x longest */
};

rp_status rp_step_writer_under(const rp_step_writer_options *options,
                               rp_trajectory_writer_options *out, rp_error *err)
{
    int32_t longest = options->max_sequence_length, chunk = options->chunk_length;

    if (longest < 1)
        return rp_fail(err, RP_INVALID, "writer: max_sequence_length must be >= 1, got %d",
                       (int)longest);
    if (chunk < 0 || chunk > longest)
        return rp_fail(err, RP_INVALID,
                       "writer: chunk_length must be in [1, max_sequence_length = %d], got %d",
                       (int)longest, (int)chunk);
    if (chunk == 0) chunk = longest < DEFAULT_CHUNK ? longest : DEFAULT_CHUNK;
    *out = (rp_trajectory_writer_options){.column = {.history = longest,
                                                     .chunk_length = chunk,
                                                     .chunk = {.delta = options->delta}}};
    return RP_OK;
}

rp_status rp_step_writer_open(rp_trajectory_writer *writer,
                              const rp_step_writer_options *options, rp_step_writer **out,
                              rp_error *err)
{
    rp_step_writer *w = rp_alloc_zero(&writer->alloc, sizeof *w);

    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    w->writer = writer;
    w->longest = options->max_sequence_length;
    assert(w->longest >= 1); /* rp_step_writer_under() has checked it */
    *out = w;
    return RP_OK;
}

static void release_columns(rp_step_writer *w, const rp_allocator *alloc, size_t count)
{
    rp_release(alloc, w->values, count * sizeof *w->values);
    rp_release(alloc, w->item, count * sizeof *w->item);
    rp_release(alloc, w->refs, count * (size_t)w->longest * sizeof *w->refs);
    w->values = NULL;
    w->item = NULL;
    w->refs = NULL;
}

void rp_step_writer_free(rp_step_writer *writer)
{
    rp_allocator alloc;

    if (writer == NULL) return;
    alloc = writer->writer->alloc;
    rp_trajectory_writer_free(writer->writer);
    release_columns(writer, &alloc, writer->column_count);
    rp_release(&alloc, writer, sizeof *writer);
}

/* Allocates the arrays for the first step; checks the number of columns of later ones. */
static rp_status set_columns(rp_step_writer *w, size_t count, rp_error *err)
{
    const rp_allocator *alloc = &w->writer->alloc;
    size_t rows;

    if (count < 1 || count > RP_MAX_COLUMNS) {
        (void)rp_fail(err, RP_INVALID, "a step must have 1 to %d columns, got %zu",
                      RP_MAX_COLUMNS, count);
        return RP_INVALID;
    }
    if (w->column_count == count) return RP_OK;
    if (w->column_count > 0) {
        (void)rp_fail(err, RP_INVALID, "steps of this writer have %zu column%s, got %zu",
                      w->column_count, w->column_count == 1 ? "" : "s", count);
        return RP_INVALID;
    }
    assert(w->values == NULL && w->item == NULL && w->refs == NULL); /* X1 */
    w->values = rp_alloc_array(alloc, count, sizeof *w->values);
    w->item = rp_alloc_array(alloc, count, sizeof *w->item);
    rows = count * (size_t)w->longest; /* 4096 x 2^31 at most */
    w->refs = rp_alloc_array(alloc, rows, sizeof *w->refs);
    if (w->values == NULL || w->item == NULL || w->refs == NULL) {
        release_columns(w, alloc, count);
        (void)rp_fail_memory(err, rows * sizeof *w->refs);
        return RP_NO_RESOURCE;
    }
    w->column_count = count;
    return RP_OK;
}

/* Forgets the number of columns after a failed append, unless the episode has steps (X2). */
static void unset_columns(rp_step_writer *w)
{
    if (rp_trajectory_writer_steps(w->writer) > 0) return;
    release_columns(w, &w->writer->alloc, w->column_count);
    w->column_count = 0;
}

static rp_status check_array(const rp_tensor *step, size_t count, rp_error *err)
{
    if (step != NULL || count == 0) return RP_OK;
    return rp_fail(err, RP_INVALID, "append: the step is NULL, with column_count %zu", count);
}

static rp_status append(rp_step_writer *w, const rp_tensor *step, rp_error *err)
{
    rp_status st;

    assert(w->column_count >= 1); /* X1 */
    for (size_t i = 0; i < w->column_count; i++)
        w->values[i] = (rp_value){.column = (uint32_t)i, .tensor = step[i]};
    st = rp_trajectory_writer_append(w->writer, w->values, w->column_count, 0, NULL, err);
    if (st != RP_OK) unset_columns(w);
    return st;
}

rp_status rp_step_writer_append(rp_step_writer *writer, const rp_tensor *step,
                                size_t column_count, rp_error *err)
{
    rp_status st = check_array(step, column_count, err);

    if (st == RP_OK) st = set_columns(writer, column_count, err);
    return st == RP_OK ? append(writer, step, err) : st;
}

static rp_status check_sequence(const rp_tensor *steps, size_t count, rp_error *err)
{
    char label[RP_LABEL_BYTES];

    for (size_t i = 0; i < count; i++) {
        if (steps[i].shape.rank < 1 || steps[i].shape.dims[0] < 1)
            return rp_fail(err, RP_INVALID, "column %zu: a sequence must have at least one row",
                           i);
        if (steps[i].shape.rank > RP_MAX_RANK)
            return rp_refuse_rank(rp_writer_label((uint32_t)i, NULL, label),
                                  steps[i].shape.rank, RP_MAX_RANK, err);
        if (steps[i].shape.dims[0] != steps[0].shape.dims[0])
            return rp_fail(
                err, RP_INVALID, "column %zu: a sequence of %lld row%s, but column 0 has %lld",
                i, (long long)steps[i].shape.dims[0], steps[i].shape.dims[0] == 1 ? "" : "s",
                (long long)steps[0].shape.dims[0]);
    }
    return RP_OK;
}

rp_tensor rp_tensor_row(const rp_tensor *tensor, int64_t row)
{
    rp_tensor out = {.dtype = tensor->dtype, .shape.rank = tensor->shape.rank - 1};
    size_t elements = 0;

    assert(tensor->shape.rank >= 1 && row >= 0 && row < tensor->shape.dims[0]);
    memcpy(out.shape.dims, tensor->shape.dims + 1,
           (size_t)out.shape.rank * sizeof out.shape.dims[0]);
    if (rp_shape_elements(&out.shape, &elements) == RP_OK && tensor->data != NULL)
        out.data =
            (const char *)tensor->data + (size_t)row * elements * rp_dtype_size(tensor->dtype);
    return out;
}

rp_status rp_step_writer_append_sequence(rp_step_writer *writer, const rp_tensor *steps,
                                         size_t column_count, rp_error *err)
{
    rp_status st = check_array(steps, column_count, err);

    if (st == RP_OK) st = set_columns(writer, column_count, err);
    if (st != RP_OK) return st;
    st = check_sequence(steps, column_count, err);
    if (st != RP_OK) {
        unset_columns(writer);
        return st;
    }
    for (int64_t row = 0; st == RP_OK && row < steps[0].shape.dims[0]; row++) {
        for (size_t i = 0; i < column_count; i++)
            writer->values[i] =
                (rp_value){.column = (uint32_t)i, .tensor = rp_tensor_row(&steps[i], row)};
        st = rp_trajectory_writer_append(writer->writer, writer->values, column_count, 0, NULL,
                                         err);
    }
    if (st != RP_OK) unset_columns(writer);
    return st;
}

rp_status rp_step_writer_create_item(rp_step_writer *writer, const char *table, int32_t steps,
                                     double priority, rp_wait wait, uint64_t *key,
                                     rp_error *err)
{
    int64_t there = rp_trajectory_writer_steps(writer->writer);
    rp_ref *refs = writer->refs;

    if (steps < 1)
        return rp_fail(err, RP_INVALID, "an item must have at least one step, got %d",
                       (int)steps);
    if (steps > writer->longest)
        return rp_fail(err, RP_INVALID, "an item of %d steps, but max_sequence_length is %d",
                       (int)steps, (int)writer->longest);
    if (steps > there)
        return rp_fail(err, RP_INVALID, "an item of %d step%s, but the episode has %lld",
                       (int)steps, steps == 1 ? "" : "s", (long long)there);
    assert(writer->column_count >= 1); /* X1: there are steps */
    for (size_t i = 0; i < writer->column_count; i++, refs += steps) {
        writer->item[i] = (rp_item_column){.refs = refs, .count = (size_t)steps};
        for (int32_t k = 0; k < steps; k++)
            if (!rp_trajectory_writer_find(writer->writer, (uint32_t)i, k - (int64_t)steps,
                                           &refs[k]))
                return rp_fail(err, RP_INTERNAL, "column %zu lost a step", i);
    }
    return rp_trajectory_writer_create_item(
        writer->writer, &(rp_new_item){table, priority, writer->item, writer->column_count},
        wait, key, err);
}

rp_status rp_step_writer_flush(rp_step_writer *writer, rp_wait wait, rp_error *err)
{
    return rp_trajectory_writer_flush(writer->writer, 0, wait, err);
}

rp_status rp_step_writer_end_episode(rp_step_writer *writer, rp_wait wait, rp_error *err)
{
    return rp_trajectory_writer_end_episode(writer->writer, true, wait, err);
}

size_t rp_step_writer_pending(const rp_step_writer *writer)
{
    return rp_trajectory_writer_pending(writer->writer);
}
