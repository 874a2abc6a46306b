/* SPDX-License-Identifier: Apache-2.0 */
/* Creates items: turns references into pieces of rows.
 *
 * Everything is checked first, then memory is allocated, then the caller waits for room; the
 * rest cannot fail. A row that does not directly follow the previous one in the same rp_rows
 * starts a new piece, so strided, reversed and repeated rows are read back as given. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "chunk/mismatch.h"
#include "chunk/trajectory.h"
#include "client/writer/item_names.h"
#include "client/writer/trajectory_writer.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    LOOK_UP_MS = 1000,
    PLAIN_BYTES = 8 << 10, /* largest rows that the caller itself copies into a chunk */
};

/* Names a column of an item in a message: "column 1 'obs'". Returns `text`. */
static const char *item_label(const rp_item_column *columns, size_t index,
                              char text[RP_LABEL_BYTES])
{
    return rp_writer_label((uint32_t)index, columns[index].name, text);
}

static rp_writer_table *find_table(rp_trajectory_writer *w, const char *name)
{
    rp_writer_table **at = &w->tables, *table;

    while (*at != NULL && strcmp((*at)->name, name) != 0) at = &(*at)->next;
    table = *at;
    if (table == NULL || table == w->tables) return table;
    *at = table->next; /* to the front: the next item is likely to use the same table */
    table->next = w->tables;
    w->tables = table;
    return table;
}

static rp_writer_table *make_table(rp_trajectory_writer *w, const char *name)
{
    size_t length = strlen(name) + 1, size = sizeof(rp_writer_table) + length;
    rp_writer_table *table = rp_alloc_zero(&w->alloc, size);

    if (table == NULL) return NULL;
    table->size_bytes = size;
    memcpy(table->name, name, length);
    table->next = w->tables;
    w->tables = table;
    return table;
}

/* Asks for the signature of a table, waiting at most LOOK_UP_MS. If it is not known at the
 * moment, `*is_known` is false and the table keeps the signature that it has: the server will
 * check the items. */
static rp_status ask_signature(rp_trajectory_writer *w, rp_writer_table *table, rp_wait wait,
                               bool *is_known, rp_error *err)
{
    rp_signature *found = NULL;
    rp_wait soon = rp_wait_ms(LOOK_UP_MS);
    rp_error why;
    rp_status st;

    if (wait.until_ns < soon.until_ns) soon.until_ns = wait.until_ns;
    soon.cancel = wait.cancel;
    st = w->parts.find(w->parts.find_ctx, table->name, soon, &found, &why);
    *is_known = st == RP_OK;
    if (st == RP_NOT_FOUND || st == RP_UNAUTHENTICATED || st == RP_UNAVAILABLE)
        return rp_fail(err, st, "%s", why.text);
    if (st != RP_OK) return RP_OK;
    rp_signature_unref(table->signature);
    table->signature = found;
    table->looked_up = true;
    return RP_OK;
}

static rp_status look_up(rp_trajectory_writer *w, rp_writer_table *table, rp_wait wait,
                         rp_error *err)
{
    bool is_known;

    if (table->looked_up || w->options.unchecked || w->parts.find == NULL) return RP_OK;
    return ask_signature(w, table, wait, &is_known, err);
}

/* Gets the cell of a row of an item. RP_PRECONDITION if it is not in the history. */
static rp_status check_ref(const rp_trajectory_writer *w, const rp_item_column *columns,
                           size_t index, rp_ref ref, const rp_writer_cell **cell, rp_error *err)
{
    const rp_writer_column *c = rp_writer_column_at(w, ref.column);
    char label[RP_LABEL_BYTES], source[RP_LABEL_BYTES];

    *cell = c != NULL ? rp_writer_cell_of(c, ref.cell) : NULL;
    if (*cell != NULL) return RP_OK;
    if (c == NULL || ref.cell >= c->cells)
        (void)rp_fail(err, RP_PRECONDITION, "%s: there is no row %" PRIu64 " of %s",
                      item_label(columns, index, label), ref.cell,
                      rp_writer_label(ref.column, c != NULL ? c->name : NULL, source));
    else
        (void)rp_fail(err, RP_PRECONDITION,
                      "%s: row %" PRIu64 " of %s is no longer in the history, which holds the "
                      "last %zu",
                      item_label(columns, index, label), ref.cell,
                      rp_writer_label(ref.column, c->name, source), c->kept);
    return RP_PRECONDITION;
}

static rp_status check_same(const rp_item_column *columns, size_t index, const rp_spec *first,
                            const rp_spec *other, rp_error *err)
{
    rp_spec expected = *first;

    if (first == other) return RP_OK;
    expected.name = columns[index].name != NULL ? columns[index].name : first->name;
    return rp_column_match(index, other->dtype, &other->shape, &expected, err);
}

/* Checks a column and adds the number of its pieces to `*pieces`. */
static rp_status check_column(const rp_trajectory_writer *w, const rp_item_column *columns,
                              size_t index, size_t *pieces, rp_error *err)
{
    const rp_item_column *column = &columns[index];
    const rp_writer_cell *before = NULL, *cell;
    const rp_spec *spec = NULL;
    char label[RP_LABEL_BYTES];
    rp_status st;

    if (column->count < 1)
        return rp_fail(err, RP_INVALID, "%s has no rows", item_label(columns, index, label));
    if (column->refs == NULL)
        return rp_fail(err, RP_INVALID, "%s: `refs` is NULL, count %zu",
                       item_label(columns, index, label), column->count);
    if (column->squeeze && column->count != 1)
        return rp_fail(err, RP_INVALID, "%s is squeezed: it must have exactly one row, got %zu",
                       item_label(columns, index, label), column->count);
    for (size_t i = 0; i < column->count; i++, before = cell) {
        st = check_ref(w, columns, index, column->refs[i], &cell, err);
        if (st != RP_OK) return st;
        assert(cell != NULL);
        if (spec == NULL) spec = &cell->rows->column->spec;
        st = check_same(columns, index, spec, &cell->rows->column->spec, err);
        if (st != RP_OK) return st;
        if (before == NULL || before->rows != cell->rows || before->row + 1 != cell->row)
            ++*pieces;
        if (*pieces > RP_MAX_SLICES)
            return rp_fail(err, RP_INVALID, "the rows make more than %d slices", RP_MAX_SLICES);
    }
    return RP_OK;
}

/* Checks a column by Reverb's rule for trajectories, with Reverb's message. */
static rp_status check_exactly(size_t index, const rp_trajectory_column *column,
                               const rp_spec *spec, rp_error *err)
{
    char wanted[128], got[128], label[RP_LABEL_BYTES];

    if (column->dtype == spec->dtype && rp_shape_fits(&column->shape, &spec->shape))
        return RP_OK;
    return rp_fail(
        err, RP_INVALID, "The table expects %s to be a %s %s tensor but got a %s %s tensor",
        rp_writer_label((uint32_t)index, spec->name, label), rp_dtype_name(spec->dtype),
        rp_shape_text(&spec->shape, wanted, sizeof wanted), rp_dtype_name(column->dtype),
        rp_shape_text(&column->shape, got, sizeof got));
}

/* The item has another number of columns than the signature: lists those of the signature. */
static rp_status refuse_count(const rp_writer_table *table, size_t count, rp_error *err)
{
    char names[RP_NAME_LIST_BYTES];

    (void)rp_item_names_list(table->signature, names);
    return rp_fail(err, RP_INVALID,
                   "table '%.64s': the item has %zu column%s but the signature has %zu%s%s",
                   table->name, count, count == 1 ? "" : "s",
                   rp_signature_column_count(table->signature), names[0] == '\0' ? "" : ": ",
                   names);
}

/* Compares an item, whose columns have been checked, with a signature. */
static rp_status check_signature(const rp_trajectory_writer *w, const rp_writer_table *table,
                                 const rp_item_column *columns, size_t count, rp_error *err)
{
    rp_error why;
    rp_status st = RP_OK;

    if (table->signature == NULL) return RP_OK;
    if (count != rp_signature_column_count(table->signature))
        return refuse_count(table, count, err);
    st = rp_item_names_check(table->signature, columns, &why);
    for (size_t i = 0; st == RP_OK && i < count; i++) {
        const rp_spec *row = &w->columns[columns[i].refs[0].column]->spec;
        rp_trajectory_column c = {.dtype = row->dtype, .squeeze = columns[i].squeeze};
        if (c.squeeze) {
            c.shape = row->shape;
        } else {
            c.shape.rank = row->shape.rank + 1;
            c.shape.dims[0] = (int64_t)columns[i].count;
            memcpy(c.shape.dims + 1, row->shape.dims,
                   (size_t)row->shape.rank * sizeof row->shape.dims[0]);
        }
        const rp_spec *spec = rp_signature_column(table->signature, i);
        st = w->options.exact ? check_exactly(i, &c, spec, &why)
                              : rp_trajectory_column_check(i, &c, spec, &why);
    }
    return st == RP_OK ? st : rp_fail(err, st, "table '%.64s': %s", table->name, why.text);
}

/* Compares an item with the signature of its table. If it does not fit, another process may
 * have created the table anew: the servers are asked once more before the item is refused. */
static rp_status check_fits(rp_trajectory_writer *w, rp_writer_table *table,
                            const rp_new_item *new, rp_wait wait, rp_error *err)
{
    rp_status st = look_up(w, table, wait, err);
    bool is_known = false;
    rp_error why;

    if (st != RP_OK) return st;
    st = check_signature(w, table, new->columns, new->column_count, &why);
    if (st == RP_OK) return st;
    if (w->parts.forget == NULL) return rp_fail(err, st, "%s", why.text);
    w->parts.forget(w->parts.find_ctx, table->name);
    st = ask_signature(w, table, wait, &is_known, err);
    if (st != RP_OK) return st;
    if (!is_known)
        return rp_fail(err, RP_INVALID, "%.185s; %s", why.text, rp_item_names_old(wait));
    return check_signature(w, table, new->columns, new->column_count, err);
}

static rp_status check_item(rp_trajectory_writer *w, const rp_new_item *new, size_t *pieces,
                            rp_error *err)
{
    rp_status st = rp_writer_check_alive(w, err);

    *pieces = 0;
    if (st != RP_OK) return st;
    if (new == NULL) return rp_fail(err, RP_INVALID, "no item is given");
    if (new->table == NULL) return rp_fail(err, RP_INVALID, "no table was named");
    if (isnan(new->priority))
        return rp_fail(err, RP_INVALID,
                       "table '%s': the priority of an item must be a number, got NaN",
                       new->table);
    if (new->column_count < 1 || new->column_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID,
                       "the number of columns of an item must be in [1, %d], got %zu",
                       RP_MAX_COLUMNS, new->column_count);
    if (new->columns == NULL)
        return rp_fail(err, RP_INVALID, "table '%s': `columns` is NULL, column_count %zu",
                       new->table, new->column_count);
    for (size_t i = 0; st == RP_OK && i < new->column_count; i++)
        st = check_column(w, new->columns, i, pieces, err);
    return st;
}

/* Returns the number of items that wait for open rows: the first one that needs them and all
 * after it. */
static size_t waiting_for_rows(const rp_trajectory_writer *w)
{
    uint64_t first = w->created;

    for (size_t i = 0; i < w->column_capacity; i++) {
        const rp_writer_column *c = w->columns[i];
        if (c != NULL && c->open != NULL && c->open->wanted && c->open->first_item < first)
            first = c->open->first_item;
    }
    assert(first <= w->created);
    return (size_t)(w->created - first);
}

rp_status rp_writer_make_room(rp_trajectory_writer *w, rp_wait wait, rp_error *err)
{
    size_t max_items = w->options.max_items, max_bytes = w->options.max_bytes;
    rp_status st;

    if (w->parts.max_in_flight > 0) {
        size_t allowed = w->parts.max_in_flight + waiting_for_rows(w);
        st = rp_writer_await(w, allowed, SIZE_MAX, wait, err);
        if (st != RP_OK) return st;
    }
    if (rp_writer_await(w, max_items, max_bytes, rp_wait_none(), NULL) == RP_OK) return RP_OK;
    rp_writer_hand_over(w);
    rp_writer_close_wanted(w, w->created); /* otherwise the items would wait for ever */
    rp_writer_kick(w);                     /* the job may have stopped for lack of memory */
    return rp_writer_await(w, max_items, max_bytes, wait, err);
}

static rp_outgoing *make_item(rp_trajectory_writer *w, const rp_item_column *columns,
                              size_t column_count, size_t piece_count)
{
    /* Both counts are bounded, by RP_MAX_COLUMNS and RP_MAX_SLICES: no overflow. */
    size_t size = sizeof(rp_outgoing) + piece_count * sizeof(rp_piece) +
                  column_count * sizeof(rp_outgoing_column);
    rp_outgoing *item = rp_alloc(&w->alloc, size);
    rp_piece *piece;

    if (item == NULL) return NULL;
    *item = (rp_outgoing){.size_bytes = size,
                          .piece_count = (uint32_t)piece_count,
                          .column_count = (uint32_t)column_count};
    item->columns = (rp_outgoing_column *)(void *)(item->pieces + piece_count);
    piece = item->pieces - 1;
    for (size_t i = 0; i < column_count; i++) {
        rp_piece *first = piece + 1;
        for (size_t k = 0; k < columns[i].count; k++) {
            rp_ref ref = columns[i].refs[k];
            const rp_writer_cell *cell = rp_writer_cell_of(w->columns[ref.column], ref.cell);
            if (piece >= first && piece->rows == cell->rows &&
                piece->offset + piece->length == cell->row)
                piece->length++;
            else
                *++piece = (rp_piece){rp_rows_ref(cell->rows), cell->row, 1};
        }
        item->columns[i] =
            (rp_outgoing_column){(uint32_t)(piece + 1 - first), columns[i].squeeze};
    }
    assert(piece + 1 == item->pieces + piece_count);
    return item;
}

/* Makes a chunk of closed rows that no item has needed so far, if that is only a copy. If there
 * is no memory, the job does it later. */
static void make_plain_chunk(rp_rows *rows)
{
    rp_writer_column *c = rows->column;
    rp_chunk_builder *builder;
    rp_error why;

    if (rows->wanted) return; /* the job may use it */
    builder = rows->builder;
    if (!rows->closed || rows->chunk != NULL) return;
    if (c->options.chunk.codec != RP_CODEC_NONE || c->options.chunk.delta) return;
    if (rp_chunk_builder_bytes(builder) > PLAIN_BYTES) return;
    if (rp_chunk_builder_finish(builder, &rows->origin, &rows->chunk, &why) != RP_OK) return;
    rows->builder = NULL;
    if (rp_writer_is_single(c) && c->template.rows_bytes == 0)
        rp_chunk_template_set(&c->template, rows->chunk);
    if (c->own_spare != NULL) {
        rp_chunk_builder_free(builder);
        return;
    }
    c->own_spare = builder;
}

/* The state of the rows of an item. */
typedef struct progress {
    bool has_chunks; /* all rows have chunks */
    bool kicks;      /* the job has work */
} progress;

/* Counts the rows that the item holds, and queues closed rows that no item has needed so far
 * for the job. */
static progress hold_locked(rp_trajectory_writer *w, rp_outgoing *item) RP_REQUIRES(w->mu)
{
    bool complete = true, queued = false, has_chunks = true;

    for (uint32_t i = 0; i < item->piece_count; i++) {
        rp_rows *rows = item->pieces[i].rows;
        if (!rows->wanted) {
            rows->wanted = true;
            rows->first_item = w->created;
            if (rows->closed && rows->chunk == NULL) {
                rp_writer_queue_locked(w, rp_rows_ref(rows)); /* W1 */
                queued = true;
            }
        }
        if (!rows->closed) complete = false;
        if (rows->chunk == NULL) has_chunks = false;
        if (rows->held++ > 0) continue;
        assert(rows->charged == 0);
        rows->charged = rp_rows_bytes(rows); /* W3 */
        w->bytes += rows->charged;
    }
    return (progress){has_chunks, complete || queued};
}

void rp_writer_queue_item_locked(rp_trajectory_writer *w, rp_outgoing *item)
{
    rp_outgoing_list *in = &w->incoming;

    assert(item->next == NULL);
    *(in->last == NULL ? &in->first : in->last) = item;
    in->last = &item->next;
}

/* Adds an item for which there is room. Cannot fail. Called with the lock held, which it
 * releases. Returns the key; the item may have been freed by then. */
static uint64_t add_item(rp_trajectory_writer *w, rp_outgoing *item) RP_RELEASE(w->mu)
{
    uint64_t key;
    bool at_once;
    progress p;

    rp_outgoing_set_add(&w->set, item, rp_rng_next(&w->rng));
    key = item->key;
    p = hold_locked(w, item);
    at_once = p.has_chunks && rp_writer_is_idle_locked(w);
    if (!at_once && w->held_count > 0) { /* these come first */
        rp_mutex_unlock(&w->mu);
        rp_writer_hand_over(w);
        rp_mutex_lock(&w->mu);
    }
    if (at_once)
        w->sent++;
    else
        rp_writer_queue_item_locked(w, item);
    rp_mutex_unlock(&w->mu);
    w->created++;
    if (at_once && !rp_writer_send_now(w, item)) {
        rp_mutex_lock(&w->mu);
        assert(w->sent > 0);
        w->sent--;
        rp_writer_queue_item_locked(w, item);
        rp_mutex_unlock(&w->mu);
        at_once = false;
    }
    if (p.kicks && !at_once) rp_writer_kick(w);
    return key;
}

/* Adds an item once there is room for it; with a NULL `wait`, at once. On failure the caller
 * still owns the item. */
static rp_status add_when_room(rp_trajectory_writer *w, rp_outgoing *item, const rp_wait *wait,
                               uint64_t *key, rp_error *err)
{
    bool is_bounded = wait != NULL && w->parts.max_in_flight > 0;
    rp_status st = is_bounded ? rp_writer_make_room(w, *wait, err) : RP_OK;

    if (st != RP_OK) return st;
    rp_mutex_lock(&w->mu);
    if (wait != NULL && !is_bounded &&
        !rp_writer_is_room_locked(w, w->options.max_items, w->options.max_bytes)) {
        rp_mutex_unlock(&w->mu);
        st = rp_writer_make_room(w, *wait, err);
        if (st != RP_OK) return st;
        rp_mutex_lock(&w->mu); /* no other thread adds items: the room is still there */
    }
    if (!rp_outgoing_set_reserve(&w->set, &w->alloc)) {
        rp_mutex_unlock(&w->mu);
        return rp_fail_memory(err, 2 * w->set.capacity * sizeof(rp_outgoing *));
    }
    *key = add_item(w, item);
    return RP_OK;
}

rp_status rp_writer_create(rp_trajectory_writer *w, const rp_new_item *new, const rp_wait *wait,
                           uint64_t *key, rp_error *err)
{
    rp_writer_table *to;
    rp_outgoing *item;
    uint64_t given = 0;
    size_t pieces;
    rp_status st = check_item(w, new, &pieces, err);

    if (st != RP_OK) return st;
    to = find_table(w, new->table);
    if (to == NULL) to = make_table(w, new->table);
    if (to == NULL) return rp_fail_memory(err, sizeof *to);
    st = check_fits(w, to, new, wait != NULL ? *wait : rp_wait_none(), err);
    if (st != RP_OK) return st;
    item = make_item(w, new->columns, new->column_count, pieces);
    if (item == NULL) return rp_fail_memory(err, pieces * sizeof(rp_piece));
    item->table = to;
    item->priority = new->priority;
    for (size_t i = 0; i < pieces; i++) make_plain_chunk(item->pieces[i].rows);
    st = add_when_room(w, item, wait, &given, err);
    if (st != RP_OK)
        rp_outgoing_free(&w->alloc, item);
    else if (key != NULL)
        *key = given;
    return st;
}

rp_status rp_trajectory_writer_create_item(rp_trajectory_writer *writer,
                                           const rp_new_item *item, rp_wait wait, uint64_t *key,
                                           rp_error *err)
{
    return rp_writer_create(writer, item, &wait, key, err);
}
