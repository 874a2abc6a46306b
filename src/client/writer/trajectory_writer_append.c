/* SPDX-License-Identifier: Apache-2.0 */
/* Appends steps and keeps the history.
 *
 * An append checks all values, then makes room for all, then copies them; only the last step
 * changes the writer. It takes the writer's lock only to open or close rows, never to copy a
 * value.
 *
 * If chunks have one row each and are not compressed, making room builds the chunk, with the
 * value, from the template of its column. So is a value of which the codec is not tried,
 * because the last values could not be compressed (codec_trial.h). */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "chunk/mismatch.h"
#include "client/writer/trajectory_writer.h"
#include "tensor/tensor.h"
#include "util/error.h"
#include "util/mem.h"

enum { FIRST_CELLS = 16, DECODER_BYTES = 1 << 20 };

static rp_writer_cell *place(const rp_writer_column *c, uint64_t cell)
{
    assert(c->capacity > 0 && (c->capacity & (c->capacity - 1)) == 0);
    return &c->ring[cell & (c->capacity - 1)];
}

const rp_writer_cell *rp_writer_cell_of(const rp_writer_column *column, uint64_t cell)
{
    if (cell >= column->cells || column->cells - cell > column->kept) return NULL;
    return place(column, cell);
}

static bool reserve_cell(rp_trajectory_writer *w, rp_writer_column *c)
{
    size_t capacity = c->capacity > 0 ? 2 * c->capacity : FIRST_CELLS;
    rp_writer_cell *ring;

    if (c->kept < c->capacity || c->kept == (size_t)c->options.history) return true;
    ring = rp_alloc_array(&w->alloc, capacity, sizeof *ring);
    if (ring == NULL) return false;
    for (uint64_t cell = c->cells - c->kept; cell < c->cells; cell++)
        ring[cell & (capacity - 1)] = *place(c, cell);
    rp_release(&w->alloc, c->ring, c->capacity * sizeof *ring);
    c->ring = ring;
    c->capacity = capacity;
    return true;
}

static void drop_oldest(rp_trajectory_writer *w, rp_writer_column *c)
{
    rp_writer_cell *cell = place(c, c->cells - c->kept);

    assert(c->kept > 0 && cell->row < cell->rows->count);
    c->kept--;
    if (cell->row + 1 == cell->rows->count) rp_rows_unref(&w->alloc, cell->rows); /* H */
}

void rp_writer_clear_history(rp_trajectory_writer *w, rp_writer_column *column)
{
    while (column->kept > 0) drop_oldest(w, column);
}

/* Replaces the column's number in an error of a builder of one column with its label. */
static rp_status rename_error(rp_status st, uint32_t index, const char *name,
                              const rp_error *why, rp_error *err)
{
    const char *text = strstr(why->text, ": ");
    char label[RP_LABEL_BYTES];

    if (strncmp(why->text, "column ", 7) != 0 || text == NULL)
        return rp_fail(err, st, "%s", why->text);
    return rp_fail(err, st, "%s%s", rp_writer_label(index, name, label), text);
}

/* Gets an empty builder: a spare one, if there is one. */
static rp_status get_builder(rp_trajectory_writer *w, rp_writer_column *c, const rp_spec *spec,
                             rp_chunk_builder **out, rp_error *err)
{
    rp_error why;
    rp_status st;

    *out = c->own_spare;
    c->own_spare = NULL;
    if (*out != NULL) return RP_OK;
    rp_mutex_lock(&w->mu);
    if (c->spare_count > 0) *out = c->spares[--c->spare_count];
    rp_mutex_unlock(&w->mu);
    if (*out != NULL) return RP_OK;
    st = rp_chunk_builder_new(&w->alloc, spec, 1, &c->options.chunk, out, &why);
    return st == RP_OK ? st : rename_error(st, c->index, c->name, &why, err);
}

/* Opens rows, with a builder or without. Returns false without memory. */
static bool start_rows(rp_trajectory_writer *w, rp_writer_column *c, rp_chunk_builder *builder)
{
    rp_rows *rows = rp_rows_new(&w->alloc, builder);

    if (rows == NULL) return false;
    assert(c->open == NULL);
    rows->column = c;
    rows->origin.key = rp_rng_next(&w->rng);
    rows->origin.episode = w->episode;
    c->open = rows;
    return true;
}

static rp_status open_rows(rp_trajectory_writer *w, rp_writer_column *c, const rp_spec *spec,
                           rp_error *err)
{
    rp_chunk_builder *builder;
    rp_status st;

    if (c->open != NULL) return RP_OK;
    st = get_builder(w, c, spec, &builder, err);
    if (st != RP_OK) return st;
    if (start_rows(w, c, builder)) return RP_OK;
    rp_chunk_builder_free(builder);
    (void)rp_fail_memory(err, sizeof(rp_rows));
    return RP_NO_RESOURCE;
}

/* Drops open rows without a row. */
static void drop_open_rows(rp_trajectory_writer *w, rp_writer_column *c)
{
    assert(c->open != NULL && c->open->count == 0);
    rp_rows_unref(&w->alloc, c->open); /* H */
    c->open = NULL;
}

void rp_writer_close_rows(rp_trajectory_writer *w, rp_writer_column *column)
{
    rp_rows *rows = column->open;

    if (rows == NULL) return;
    assert(!rows->closed && rows->column == column);
    column->open = NULL;
    rows->closed = true;
    if (!rows->wanted) {
        if (rows->count == 0) rp_rows_unref(&w->alloc, rows); /* H */
        return;
    }
    rp_mutex_lock(&w->mu);
    if (rows->held > 0) {
        size_t bytes = rp_rows_bytes(rows);
        assert(bytes >= rows->charged && w->bytes >= rows->charged);
        w->bytes += bytes - rows->charged; /* W3: the rows have grown */
        rows->charged = bytes;
    }
    rp_writer_queue_locked(w, rp_rows_ref(rows));
    rp_mutex_unlock(&w->mu);
    rp_writer_kick(w);
}

void rp_writer_close_wanted(rp_trajectory_writer *w, uint64_t items)
{
    for (size_t i = 0; i < w->column_capacity; i++) {
        rp_writer_column *c = w->columns[i];
        if (c != NULL && c->open != NULL && c->open->wanted && c->open->first_item < items)
            rp_writer_close_rows(w, c);
    }
}

static bool is_full(const rp_writer_column *c)
{
    int32_t length = atomic_load_explicit(&c->length, memory_order_relaxed);

    return c->open != NULL && c->open->count >= (uint32_t)length;
}

/* Checks the first value of a column, which gives it its dtype and shape. */
static rp_status check_first(const rp_writer_column *c, const rp_tensor *t, rp_error *err)
{
    size_t elements;
    char label[RP_LABEL_BYTES], value[RP_LABEL_BYTES + 16], shape[64];

    if (rp_dtype_size(t->dtype) == 0)
        return rp_refuse_dtype(rp_writer_label(c->index, c->name, label), t->dtype, err);
    if (t->shape.rank < 0 || t->shape.rank >= RP_MAX_RANK) {
        (void)snprintf(value, sizeof value, "a value of %s",
                       rp_writer_label(c->index, c->name, label));
        return rp_refuse_rank(value, t->shape.rank, RP_MAX_RANK - 1, err);
    }
    if (rp_shape_elements(&t->shape, &elements) != RP_OK)
        return rp_fail(err, RP_INVALID, "%s: %s is not the shape of a value",
                       rp_writer_label(c->index, c->name, label),
                       rp_shape_text(&t->shape, shape, sizeof shape));
    return RP_OK;
}

static rp_status check_value(rp_trajectory_writer *w, const rp_value *value, rp_error *err)
{
    rp_writer_column *c;
    char label[RP_LABEL_BYTES];
    rp_status st = rp_writer_get_column(w, value->column, value->name, &c, err);

    if (st != RP_OK) return st;
    if (c->serial == w->serial || (w->open && c->last_step == w->base + w->steps))
        return rp_fail(err, RP_INVALID, "%s has a value in this step already",
                       rp_writer_label(c->index, c->name, label));
    c->serial = w->serial;
    if (!c->known) return check_first(c, &value->tensor, err);
    return rp_column_match(c->index, value->tensor.dtype, &value->tensor.shape, &c->spec, err);
}

static rp_status reserve_in_builder(rp_writer_column *c, const rp_tensor *tensor, rp_error *err)
{
    rp_error why;
    rp_status st;

    assert(c->open != NULL);
    st = rp_chunk_builder_reserve(c->open->builder, tensor, &why);
    return st == RP_OK ? st : rename_error(st, c->index, c->name, &why, err);
}

/* Returns true if the column has a template. If the job has learned one, takes it. */
static bool find_template(rp_trajectory_writer *w, rp_writer_column *c)
{
    if (c->template.rows_bytes > 0) return true;
    if (!rp_codec_trial_has_template(&c->trial)) return false;
    rp_mutex_lock(&w->mu);
    c->template = c->trial.template;
    rp_mutex_unlock(&w->mu);
    return c->template.rows_bytes > 0;
}

/* Returns true if the value, which has the column's shape, becomes a chunk of its own. */
static bool is_chunk(rp_trajectory_writer *w, rp_writer_column *c, const rp_tensor *tensor)
{
    if (!rp_writer_is_single(c) || c->open != NULL || tensor->data == NULL) return false;
    return find_template(w, c) &&
           (c->options.chunk.codec == RP_CODEC_NONE || rp_codec_trial_skips(&c->trial));
}

static rp_status instantiate_value(rp_trajectory_writer *w, rp_writer_column *c,
                                   const rp_tensor *tensor, rp_error *err)
{
    if (!start_rows(w, c, NULL)) return rp_fail_memory(err, sizeof(rp_rows));
    c->open->origin.first_step = c->open->origin.last_step = (int32_t)w->steps;
    c->open->chunk =
        rp_chunk_template_make(&c->template, &w->alloc, &c->open->origin, tensor->data);
    if (c->open->chunk != NULL) return RP_OK;
    drop_open_rows(w, c);
    return rp_fail_memory(err, c->template.rows_bytes);
}

/* Makes room for a value. If the open rows cannot take its bytes, they are closed first. */
static rp_status make_room(rp_trajectory_writer *w, rp_writer_column *c,
                           const rp_tensor *tensor, rp_error *err)
{
    rp_spec spec = {c->name, tensor->dtype, tensor->shape};
    rp_status st = open_rows(w, c, &spec, err);

    if (st == RP_OK) st = reserve_in_builder(c, tensor, err);
    if (st == RP_NO_RESOURCE && c->open != NULL && c->open->count > 0) {
        rp_writer_close_rows(w, c);
        st = open_rows(w, c, &spec, err);
        if (st == RP_OK) st = reserve_in_builder(c, tensor, err);
    }
    return st;
}

static rp_status reserve_value(rp_trajectory_writer *w, const rp_value *value, rp_error *err)
{
    rp_writer_column *c = w->columns[value->column];
    rp_status st = is_chunk(w, c, &value->tensor) ? instantiate_value(w, c, &value->tensor, err)
                                                  : make_room(w, c, &value->tensor, err);

    if (st != RP_OK) return st;
    if (!reserve_cell(w, c)) return rp_fail_memory(err, 2 * c->capacity * sizeof *c->ring);
    return RP_OK;
}

/* Drops the open rows of columns without a value, and chunks that were built for this append.
 */
static void unreserve(rp_trajectory_writer *w, const rp_value *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rp_writer_column *c = rp_writer_column_at(w, values[i].column);
        if (c == NULL || c->open == NULL || c->open->count > 0) continue;
        if (!c->known || c->open->builder == NULL) drop_open_rows(w, c);
    }
}

static void commit_value(rp_trajectory_writer *w, const rp_value *value, rp_ref *ref)
{
    rp_writer_column *c = w->columns[value->column];
    rp_rows *rows = c->open;
    int32_t step = (int32_t)w->steps;

    assert(rows != NULL && !rows->closed);
    if (!c->known) {
        c->spec = (rp_spec){c->name, value->tensor.dtype, value->tensor.shape};
        c->known = true;
    }
    if (c->kept == (size_t)c->options.history) drop_oldest(w, c);
    if (rows->builder != NULL) rp_chunk_builder_commit(rows->builder, &value->tensor);
    if (rows->count == 0) {
        rows->origin.first_step = step; /* the reference now belongs to the history: H */
    } else if (step != rows->origin.last_step + 1) {
        rows->origin.sparse = true;
    }
    rows->origin.last_step = step;
    c->last_step = w->base + w->steps;
    *place(c, c->cells) = (rp_writer_cell){rows, rows->count, c->last_step};
    if (ref != NULL) *ref = (rp_ref){c->index, c->cells};
    rows->count++;
    c->cells++;
    c->kept++;
    assert(c->kept <= c->cells && c->kept <= c->capacity &&
           c->kept <= (size_t)c->options.history); /* H2 */
}

rp_status rp_trajectory_writer_append(rp_trajectory_writer *writer, const rp_value *values,
                                      size_t count, uint32_t flags, rp_ref *refs, rp_error *err)
{
    rp_status st = rp_writer_check_alive(writer, err);

    if (st != RP_OK) return st;
    if (values == NULL && count > 0)
        return rp_fail(err, RP_INVALID, "append: `values` is NULL, count %zu", count);
    if ((flags & ~(uint32_t)RP_STEP_OPEN) != 0)
        return rp_fail(err, RP_INVALID, "append: flags must be 0 or RP_STEP_OPEN (%d), got %u",
                       RP_STEP_OPEN, flags);
    if (writer->steps == INT32_MAX)
        return rp_fail(err, RP_NO_RESOURCE, "an episode has at most %d steps", INT32_MAX);
    writer->serial++;
    for (size_t i = 0; st == RP_OK && i < count; i++) st = check_value(writer, &values[i], err);
    for (size_t i = 0; st == RP_OK && i < count; i++)
        st = reserve_value(writer, &values[i], err);
    if (st != RP_OK) {
        unreserve(writer, values, count);
        return st;
    }
    for (size_t i = 0; i < count; i++)
        commit_value(writer, &values[i], refs != NULL ? &refs[i] : NULL);
    writer->open = (flags & RP_STEP_OPEN) != 0;
    if (!writer->open) writer->steps++;
    for (size_t i = 0; i < count; i++)
        if (is_full(writer->columns[values[i].column]))
            rp_writer_close_rows(writer, writer->columns[values[i].column]);
    return RP_OK;
}

int64_t rp_trajectory_writer_steps(const rp_trajectory_writer *writer)
{
    return writer->steps;
}

bool rp_trajectory_writer_is_open(const rp_trajectory_writer *writer)
{
    return writer->open;
}

bool rp_trajectory_writer_find(const rp_trajectory_writer *writer, uint32_t column,
                               int64_t step, rp_ref *ref)
{
    const rp_writer_column *c = rp_writer_column_at(writer, column);
    int64_t end = writer->base + writer->steps + (writer->open ? 1 : 0);
    uint64_t low, high;

    if (c == NULL || c->kept == 0) return false;
    if (step < -end) return false;
    step += step < 0 ? end : writer->base;
    if (step > c->last_step) return false;
    /* Steps grow by at least 1 from cell to cell, so the cell is not before the place that it
     * would have in a column with a row in every step. */
    low = c->cells - c->kept;
    high = c->cells; /* exclusive */
    if ((uint64_t)(c->last_step - step) < c->kept)
        low = c->cells - 1 - (uint64_t)(c->last_step - step);
    while (low < high) {
        uint64_t middle = place(c, low)->step == step ? low : low + (high - low) / 2;
        int64_t found = place(c, middle)->step;
        if (found == step) {
            *ref = (rp_ref){column, middle};
            return true;
        }
        if (found < step)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool rp_trajectory_writer_has(const rp_trajectory_writer *writer, rp_ref ref)
{
    const rp_writer_column *c = rp_writer_column_at(writer, ref.column);

    return c != NULL && rp_writer_cell_of(c, ref.cell) != NULL;
}

bool rp_trajectory_writer_spec(const rp_trajectory_writer *writer, uint32_t column,
                               rp_spec *spec)
{
    const rp_writer_column *c = rp_writer_column_at(writer, column);

    if (c == NULL || !c->known) return false;
    *spec = c->spec;
    return true;
}

static rp_status check_copy(const rp_trajectory_writer *w, rp_ref ref, size_t bytes,
                            const rp_writer_cell **cell, rp_error *err)
{
    const rp_writer_column *c = rp_writer_column_at(w, ref.column);
    size_t elements = 0, row_bytes;
    char label[RP_LABEL_BYTES];

    *cell = c != NULL ? rp_writer_cell_of(c, ref.cell) : NULL;
    if (*cell == NULL) {
        (void)rp_fail(err, RP_PRECONDITION, "%s: row %" PRIu64 " is not in the history",
                      rp_writer_label(ref.column, c != NULL ? c->name : NULL, label), ref.cell);
        return RP_PRECONDITION;
    }
    if (c->spec.dtype == RP_STRING)
        return rp_fail(err, RP_INVALID, "%s holds strings",
                       rp_writer_label(c->index, c->name, label));
    if (rp_shape_elements(&c->spec.shape, &elements) != RP_OK) return RP_INTERNAL;
    row_bytes = elements * rp_dtype_size(c->spec.dtype);
    if (bytes != row_bytes)
        return rp_fail(err, RP_INVALID, "%s: a row has %zu bytes, got room for %zu",
                       rp_writer_label(c->index, c->name, label), row_bytes, bytes);
    return RP_OK;
}

rp_status rp_trajectory_writer_copy(rp_trajectory_writer *writer, rp_ref ref, void *dst,
                                    size_t bytes, rp_error *err)
{
    const rp_writer_cell *cell;
    rp_chunk *chunk;
    rp_status st = rp_writer_check_alive(writer, err);

    if (st == RP_OK) st = check_copy(writer, ref, bytes, &cell, err);
    if (st == RP_OK && dst == NULL && bytes > 0)
        st = rp_fail(err, RP_INVALID, "`dst` is NULL, bytes %zu", bytes);
    if (st != RP_OK) return st;
    assert(cell != NULL);
    rp_mutex_lock(&writer->mu);
    chunk = cell->rows->chunk;
    if (chunk == NULL) /* not compressed: the lock keeps the builder */
        st = rp_chunk_builder_rows_copy(cell->rows->builder, 0, cell->row, 1, dst, bytes, err);
    rp_mutex_unlock(&writer->mu);
    if (chunk == NULL) return st;
    /* The history holds the rows, and the rows hold the chunk. */
    if (writer->decoder == NULL) {
        st = rp_decoder_new(&writer->alloc, DECODER_BYTES, &writer->decoder);
        if (st != RP_OK) return rp_fail_memory(err, sizeof(void *));
    }
    return rp_decoder_rows(writer->decoder, chunk, (rp_row_range){0, cell->row, 1}, dst, bytes,
                           err);
}

void rp_writer_begin_episode(rp_trajectory_writer *w, bool clear)
{
    for (size_t i = 0; i < w->column_capacity; i++) {
        rp_writer_column *c = w->columns[i];
        if (c == NULL) continue;
        rp_writer_close_rows(w, c);
        if (!clear) continue;
        rp_writer_clear_history(w, c);
        c->last_step = -1;
    }
    if (w->decoder != NULL && clear) rp_decoder_clear(w->decoder);
    w->base = clear ? 0 : w->base + w->steps + (w->open ? 1 : 0);
    w->steps = 0;
    w->open = false;
    w->episode = rp_rng_next(&w->rng);
}

rp_status rp_trajectory_writer_end_episode(rp_trajectory_writer *writer, bool clear,
                                           rp_wait wait, rp_error *err)
{
    rp_status st = rp_trajectory_writer_flush(writer, 0, wait, err);

    if (st == RP_OK) rp_writer_begin_episode(writer, clear);
    return st;
}
