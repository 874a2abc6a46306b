/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: steps go into a chunk builder per column, items wait in a queue for their chunks.
 *
 *   append ──► builders (an incomplete chunk per column)      history: location of each row
 *                 │ full, or flushed
 *                 ▼
 *              chunk ──► cells of the history, and slices of pending items that wait for it
 *                             │ nothing missing
 *                             ▼
 *                          rp_table_insert(), in the order of creation, in batches
 *
 * Invariants between calls:
 *   W1  row r of a builder is the row of the history cell (chunk NULL, row r) of its column,
 *       unless the step has left the history;
 *   W2  a column is awaited if and only if a draft has slices of its incomplete chunk;
 *   W3  a call that fails has neither appended a step nor created an item. It may have
 *       completed chunks early, which changes only the number of chunks.
 *
 * Full chunks are completed at the end of an append. If there is no memory for that, the append
 * still succeeds, and the next one tries again before it adds a row.
 *
 * Cost: an append copies its rows and, in the long run, allocates nothing but chunks. */
#include <assert.h>

#include "chunk/builder.h"
#include "chunk/mismatch.h"
#include "store/store.h"
#include "store/writer.h"
#include "util/error.h"
#include "util/mem.h"

enum { DEFAULT_MAX_PENDING = 64 };

static_assert(sizeof(rp_writer) % _Alignof(rp_writer_column) == 0 &&
                  sizeof(rp_writer_column) % _Alignof(rp_chunk_tuner) == 0 &&
                  sizeof(rp_chunk_tuner) % _Alignof(rp_pick) == 0,
              "the arrays of a writer follow each other without gaps");

static rp_status check_options(const rp_allocator *alloc, const rp_writer_options *o,
                               rp_error *err)
{
    rp_chunk_builder *all = NULL;
    rp_status st;

    if (o->history < 1)
        return rp_fail(err, RP_INVALID, "writer: history must be >= 1, got %d",
                       (int)o->history);
    if (o->chunk_length < 0 || o->chunk_length > o->history)
        return rp_fail(err, RP_INVALID,
                       "writer: chunk_length must be in [0, history = %d], got %d",
                       (int)o->history, (int)o->chunk_length);
    if (o->columns == NULL) return rp_fail(err, RP_INVALID, "writer: no columns");
    /* One builder of all columns checks them, each under its own number. */
    st = rp_chunk_builder_new(alloc, o->columns, o->column_count, &o->chunk, &all, err);
    rp_chunk_builder_free(all);
    return st;
}

/* Allocates a writer with its arrays and names in place. */
static rp_writer *allocate(const rp_allocator *alloc, const rp_writer_options *o)
{
    size_t size = sizeof(rp_writer);
    rp_writer *w;
    char *names;

    size +=
        o->column_count * (sizeof(rp_writer_column) + sizeof(rp_chunk_tuner) + sizeof(rp_pick));
    for (size_t i = 0; i < o->column_count; i++)
        if (o->columns[i].name != NULL) size += strlen(o->columns[i].name) + 1;
    w = rp_alloc_zero(alloc, size);
    if (w == NULL) return NULL;
    w->alloc = *alloc;
    w->size_bytes = size;
    w->column_count = o->column_count;
    w->columns = (rp_writer_column *)(w + 1);
    w->tuners = (rp_chunk_tuner *)(w->columns + w->column_count);
    w->latest = (rp_pick *)(w->tuners + w->column_count);
    names = (char *)(w->latest + w->column_count);
    for (size_t i = 0; i < w->column_count; i++) {
        const char *name = o->columns[i].name;
        w->columns[i].spec = o->columns[i];
        if (name == NULL) continue;
        w->columns[i].spec.name = names;
        names = stpcpy(names, name) + 1;
    }
    return w;
}

rp_status rp_writer_new(rp_store *store, const rp_writer_options *options, rp_writer **out,
                        rp_error *err)
{
    const rp_allocator *alloc = rp_store_allocator(store);
    rp_status st = check_options(alloc, options, err);
    rp_writer *w;

    if (st != RP_OK) return st;
    w = allocate(alloc, options);
    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    w->store = store;
    w->chunk_length = options->chunk_length;
    w->max_pending = options->max_pending > 0 ? options->max_pending : DEFAULT_MAX_PENDING;
    rp_history_init(&w->history, alloc, w->column_count, options->history);
    rp_pending_init(&w->pending, alloc, w->chunk_length == 0 ? w->tuners : NULL);
    for (size_t i = 0; st == RP_OK && i < w->column_count; i++) {
        w->latest[i] = (rp_pick){.column = (uint32_t)i, .stride = 1};
        st = rp_chunk_tuner_init(&w->tuners[i], options->history);
        if (st == RP_OK)
            st = rp_chunk_builder_new(alloc, &w->columns[i].spec, 1, &options->chunk,
                                      &w->columns[i].builder, err);
    }
    if (st != RP_OK) {
        rp_writer_free(w);
        return st;
    }
    w->episode = rp_store_new_key(store);
    *out = w;
    return RP_OK;
}

void rp_writer_free(rp_writer *writer)
{
    rp_allocator alloc;

    if (writer == NULL) return;
    alloc = writer->alloc;
    rp_pending_deinit(&writer->pending);
    rp_table_unref(writer->table);
    rp_table_unref(writer->unsafe_table);
    rp_history_deinit(&writer->history);
    for (size_t i = 0; i < writer->column_count; i++)
        rp_chunk_builder_free(writer->columns[i].builder);
    rp_release(&alloc, writer, writer->size_bytes);
}

int64_t rp_writer_steps(const rp_writer *writer)
{
    return writer->history.end;
}

size_t rp_writer_pending(const rp_writer *writer)
{
    return writer->pending.count;
}

/* Completes the chunk of a column, which has rows, and sets it in the history and in pending
 * items. */
static rp_status complete_chunk(rp_writer *w, size_t index, rp_error *err)
{
    rp_writer_column *c = &w->columns[index];
    int64_t span = (int64_t)c->last_step - c->first_step + 1;
    rp_chunk_origin origin = {.key = rp_store_new_key(w->store),
                              .episode = w->episode,
                              .first_step = c->first_step,
                              .last_step = c->last_step,
                              .sparse = (size_t)span != rp_chunk_builder_rows(c->builder)};
    rp_chunk *chunk;
    rp_status st = rp_chunk_builder_finish(c->builder, &origin, &chunk, err);

    assert(c->first_step >= 0 && span >= 1);
    if (st != RP_OK) return st;
    rp_history_complete(&w->history, index, c->first_step, chunk);
    if (c->awaited) rp_pending_complete(&w->pending, (uint32_t)index, chunk);
    c->awaited = false;
    rp_chunk_unref(chunk);
    return RP_OK;
}

static bool is_full(const rp_writer *w, size_t index)
{
    int32_t length = w->chunk_length > 0 ? w->chunk_length : w->tuners[index].length;
    return rp_chunk_builder_rows(w->columns[index].builder) >= (size_t)length;
}

rp_status rp_writer_complete_awaited(rp_writer *w, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < w->column_count; i++)
        if (w->columns[i].awaited) st = complete_chunk(w, i, err);
    return st;
}

static rp_status check_step(const rp_writer *w, const rp_tensor *step, rp_error *err)
{
    rp_status st = RP_OK;

    if (w->history.end == INT32_MAX)
        return rp_fail(err, RP_NO_RESOURCE, "an episode has at most %d steps", INT32_MAX);
    for (size_t i = 0; st == RP_OK && i < w->column_count; i++)
        if (step[i].data != NULL)
            st = rp_column_match(i, step[i].dtype, &step[i].shape, &w->columns[i].spec, err);
    return st;
}

/* Makes room for a row. If the chunk is full or the row does not fit, completes it first. */
static rp_status reserve_row(rp_writer *w, size_t index, const rp_tensor *row, rp_error *err)
{
    rp_chunk_builder *builder = w->columns[index].builder;
    rp_status st = RP_OK;

    if (is_full(w, index)) st = complete_chunk(w, index, err);
    if (st == RP_OK) st = rp_chunk_builder_reserve(builder, row, err);
    if (st != RP_NO_RESOURCE || rp_chunk_builder_rows(builder) == 0) return st;
    st = complete_chunk(w, index, err);
    return st == RP_OK ? rp_chunk_builder_reserve(builder, row, err) : st;
}

static void commit_step(rp_writer *w, const rp_tensor *step)
{
    int32_t number = (int32_t)w->history.end;
    rp_cell *cells = rp_history_push(&w->history);

    for (size_t i = 0; i < w->column_count; i++) {
        rp_writer_column *c = &w->columns[i];
        size_t rows = rp_chunk_builder_rows(c->builder);
        if (step[i].data == NULL) continue;
        assert(rows == 0 || c->last_step < number);
        cells[i].row = (uint32_t)rows; /* W1 */
        if (rows == 0) c->first_step = number;
        c->last_step = number;
        rp_chunk_builder_commit(c->builder, &step[i]);
    }
}

rp_status rp_writer_append(rp_writer *writer, const rp_tensor *step, rp_error *err)
{
    rp_status st = check_step(writer, step, err);

    for (size_t i = 0; st == RP_OK && i < writer->column_count; i++)
        if (step[i].data != NULL) st = reserve_row(writer, i, &step[i], err);
    if (st != RP_OK) return st;
    if (!rp_history_reserve(&writer->history))
        return rp_fail_memory(err, writer->column_count * sizeof(rp_cell));
    commit_step(writer, step);

    /* The step is appended. The next call retries what fails from here on. */
    for (size_t i = 0; i < writer->column_count; i++)
        if (is_full(writer, i)) (void)complete_chunk(writer, i, NULL);
    (void)rp_writer_insert_complete(writer, rp_wait_none(), NULL);
    return RP_OK;
}

rp_status rp_writer_flush(rp_writer *writer, rp_wait wait, rp_error *err)
{
    rp_status st = rp_writer_complete_awaited(writer, err);

    return st == RP_OK ? rp_writer_insert_or_drop(writer, wait, err) : st;
}

rp_status rp_writer_end_episode(rp_writer *writer, rp_wait wait, rp_error *err)
{
    rp_status st = rp_writer_flush(writer, wait, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; i < writer->column_count; i++)
        rp_chunk_builder_clear(writer->columns[i].builder);
    rp_history_clear(&writer->history);
    writer->episode = rp_store_new_key(writer->store);
    return RP_OK;
}
