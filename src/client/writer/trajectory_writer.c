/* SPDX-License-Identifier: Apache-2.0 */
/* A trajectory writer: create and free, columns, configuration.
 *
 *   append ──► open rows of each column                        history: where each row is
 *                 │ full, or flushed
 *                 ▼
 *              closed ──► compressed by the job (trajectory_writer_send.c)
 *                                  │
 *   create_item ──► item ──────────┴──► when all its rows are chunks: trajectory ──► sink
 *
 * Items go to the sink in the order in which they were created, so an item that waits for open
 * rows delays the items after it.
 *
 * Invariants, when no call is in progress and the lock is free:
 *   W1  rows that an item needs are open, or in the list of rows to compress, or used by the
 *       job, or have a chunk;
 *   W2  an unsettled item is in the set, and in exactly one of: `incoming`, `line`, `held`, the
 *       sink;
 *   W3  `bytes` is the sum of `charged` over the rows that unsettled items use, each once;
 *   W4  a call that fails has neither appended a value nor created an item. It may have closed
 *       rows early, which changes only the number of chunks. */
#include "client/writer/trajectory_writer.h"

#include <assert.h>
#include <stdio.h>

#include "util/error.h"
#include "util/mem.h"

enum { DEFAULT_MAX_ITEMS = 100000, DEFAULT_MAX_BYTES = 1 << 30, FIRST_COLUMNS = 8 };

const char *rp_writer_label(uint32_t index, const char *name, char text[RP_LABEL_BYTES])
{
    if (name == NULL)
        (void)snprintf(text, RP_LABEL_BYTES, "column %u", index);
    else
        (void)snprintf(text, RP_LABEL_BYTES, "column %u '%.64s'", index, name);
    return text;
}

rp_status rp_writer_check_alive(const rp_trajectory_writer *w, rp_error *err)
{
    if (w->generation == rp_runtime_generation()) return RP_OK;
    return rp_fail(err, RP_PRECONDITION,
                   "the writer was made before a fork and belongs to the parent");
}

bool rp_writer_is_single(const rp_writer_column *column)
{
    return column->options.chunk_length == 1 || column->options.history == 1;
}

/* Fills in the defaults of `o`, which come from `writer`. */
static rp_status resolve(rp_column_options *o, const rp_column_options *writer,
                         const char *what, rp_error *err)
{
    if (o->history == 0) o->history = writer->history;
    if (o->history < 1)
        return rp_fail(err, RP_INVALID, "%s: history must be >= 1, got %d", what,
                       (int)o->history);
    if (o->chunk_length < 0 || o->chunk_length > o->history)
        return rp_fail(err, RP_INVALID, "%s: chunk_length must be in [0, history = %d], got %d",
                       what, (int)o->history, (int)o->chunk_length);
    if (rp_codec_name(o->chunk.codec) == NULL)
        return rp_fail(err, RP_INVALID, "%s: unknown codec %d", what, (int)o->chunk.codec);
    if (!rp_codec_level_is_valid(o->chunk.codec, o->chunk.level))
        return rp_fail(err, RP_INVALID, "%s: %d is not a level of %s", what, o->chunk.level,
                       rp_codec_name(o->chunk.codec));
    return RP_OK;
}

static void apply(rp_writer_column *c, const rp_column_options *options)
{
    rp_status st;

    c->options = *options;
    c->template.rows_bytes = 0;
    rp_codec_trial_reset(&c->trial);
    st = rp_chunk_tuner_init(&c->tuner, options->history);
    assert(st == RP_OK); /* resolve() has checked the history */
    (void)st;
    atomic_store_explicit(&c->length,
                          options->chunk_length > 0 ? options->chunk_length : c->tuner.length,
                          memory_order_relaxed);
}

static bool reserve_columns(rp_trajectory_writer *w, uint32_t index)
{
    size_t capacity = w->column_capacity > 0 ? w->column_capacity : FIRST_COLUMNS;

    if (index < w->column_capacity) return true;
    while (capacity <= index) capacity *= 2;
    if (!rp_resize_array(&w->alloc, &w->columns, w->column_capacity, capacity,
                         sizeof(rp_writer_column *)))
        return false;
    w->column_capacity = capacity;
    return true;
}

static bool set_name(rp_trajectory_writer *w, rp_writer_column *c, const char *name)
{
    size_t size;

    if (name == NULL || c->name != NULL) return true;
    size = strlen(name) + 1;
    c->name = rp_alloc(&w->alloc, size);
    if (c->name == NULL) return false;
    memcpy(c->name, name, size);
    c->spec.name = c->name;
    return true;
}

static rp_writer_column *make_column(rp_trajectory_writer *w, uint32_t index)
{
    rp_writer_column *c = rp_alloc_zero(&w->alloc, sizeof *c);

    if (c == NULL) return NULL;
    assert(index < w->column_capacity && w->columns[index] == NULL);
    c->index = index;
    c->last_step = -1;
    apply(c, &w->options.column);
    w->columns[index] = c;
    return c;
}

rp_status rp_writer_get_column(rp_trajectory_writer *w, uint32_t index, const char *name,
                               rp_writer_column **out, rp_error *err)
{
    rp_writer_column *c;

    if (index >= RP_MAX_COLUMNS) {
        (void)rp_fail(err, RP_INVALID, "column %u: columns are numbered from 0 to %d", index,
                      RP_MAX_COLUMNS - 1);
        return RP_INVALID;
    }
    c = rp_writer_column_at(w, index);
    if (c == NULL && reserve_columns(w, index)) c = make_column(w, index);
    if (c == NULL || !set_name(w, c, name)) {
        (void)rp_fail_memory(err, sizeof *c);
        return RP_NO_RESOURCE;
    }
    *out = c;
    return RP_OK;
}

static void free_spares(rp_writer_column *c)
{
    rp_chunk_builder_free(c->own_spare);
    c->own_spare = NULL;
    while (c->spare_count > 0) rp_chunk_builder_free(c->spares[--c->spare_count]);
}

rp_status rp_trajectory_writer_configure(rp_trajectory_writer *writer, uint32_t column,
                                         const char *name, const rp_column_options *options,
                                         rp_error *err)
{
    rp_column_options o;
    rp_writer_column *c = NULL;
    char label[RP_LABEL_BYTES];
    rp_status st = rp_writer_check_alive(writer, err);

    if (st != RP_OK) return st;
    if (options == NULL)
        return rp_fail(err, RP_INVALID, "%s: no options are given",
                       rp_writer_label(column, name, label));
    o = *options;
    st = resolve(&o, &writer->options.column, rp_writer_label(column, name, label), err);
    if (st == RP_OK) st = rp_writer_get_column(writer, column, name, &c, err);
    if (st != RP_OK) return st;
    assert(c != NULL);
    if (c->kept > 0 || c->open != NULL)
        return rp_fail(err, RP_PRECONDITION,
                       "%s has rows already: it can be configured only while it has none",
                       rp_writer_label(column, c->name, label));
    /* A column without rows has no items that the job could use. Spare builders have the old
     * codec. */
    rp_mutex_lock(&writer->mu);
    free_spares(c);
    rp_mutex_unlock(&writer->mu);
    apply(c, &o);
    return RP_OK;
}

/* Frees a column that no item and no job uses. */
static void free_column(rp_trajectory_writer *w, rp_writer_column *c)
{
    if (c == NULL) return;
    if (c->open != NULL && c->open->count == 0) rp_rows_unref(&w->alloc, c->open); /* H */
    rp_writer_clear_history(w, c);
    rp_release(&w->alloc, c->ring, c->capacity * sizeof *c->ring);
    free_spares(c);
    if (c->name != NULL) rp_release(&w->alloc, c->name, strlen(c->name) + 1);
    rp_release(&w->alloc, c, sizeof *c);
}

rp_status rp_trajectory_writer_open(const rp_writer_parts *parts,
                                    const rp_trajectory_writer_options *options,
                                    rp_trajectory_writer **out, rp_error *err)
{
    rp_trajectory_writer_options o = *options;
    rp_trajectory_writer *w;
    rp_status st = resolve(&o.column, &o.column, "writer", err);

    if (st != RP_OK) return st;
    if (o.max_items == 0) o.max_items = DEFAULT_MAX_ITEMS;
    if (o.max_bytes == 0) o.max_bytes = DEFAULT_MAX_BYTES;
    if (o.group == 0) o.group = 1;
    if (o.group > RP_PUSH_ITEMS)
        return rp_fail(err, RP_INVALID, "writer: group must be in [0, %d], got %zu",
                       RP_PUSH_ITEMS, o.group);
    w = rp_alloc_zero(parts->alloc, sizeof *w);
    if (w == NULL) return rp_fail_memory(err, sizeof *w);
    w->alloc = *parts->alloc;
    w->options = o;
    w->parts = *parts;
    w->generation = rp_runtime_generation();
    rp_rng_init(&w->rng, parts->seed);
    w->episode = rp_rng_next(&w->rng);
    w->set.counter = (uint32_t)rp_rng_next(&w->rng);
    rp_chunk_compressor_init(&w->press, &w->alloc);
    rp_mutex_init(&w->mu, RP_RANK_WRITER);
    rp_cond_init(&w->cv);
    rp_writer_send_init(w);
    *out = w;
    return RP_OK;
}

void rp_trajectory_writer_attach(rp_trajectory_writer *writer, rp_sink *sink)
{
    assert(writer->sink == NULL && sink != NULL);
    writer->sink = sink;
}

static void free_tables(rp_trajectory_writer *w)
{
    while (w->tables != NULL) {
        rp_writer_table *table = w->tables;
        w->tables = table->next;
        rp_signature_unref(table->signature);
        rp_release(&w->alloc, table, table->size_bytes);
    }
}

void rp_writer_stop(rp_trajectory_writer *w)
{
    if (rp_writer_check_alive(w, NULL) == RP_OK) rp_writer_send_deinit(w);
}

void rp_trajectory_writer_free(rp_trajectory_writer *writer)
{
    rp_allocator alloc;

    /* In the child of a fork the writer may be in any state, since the threads that used it do
     * not exist: leak it. */
    if (writer == NULL || rp_writer_check_alive(writer, NULL) != RP_OK) return;
    alloc = writer->alloc;
    rp_writer_send_deinit(writer);
    for (size_t i = 0; i < writer->column_capacity; i++)
        free_column(writer, writer->columns[i]);
    rp_release(&alloc, writer->columns, writer->column_capacity * sizeof *writer->columns);
    free_tables(writer);
    rp_decoder_free(writer->decoder);
    rp_chunk_compressor_deinit(&writer->press);
    if (writer->parts.find_free != NULL) writer->parts.find_free(writer->parts.find_ctx);
    rp_runtime_put(writer->parts.runtime);
    rp_cond_deinit(&writer->cv);
    rp_mutex_deinit(&writer->mu);
    rp_release(&alloc, writer, sizeof *writer);
}
