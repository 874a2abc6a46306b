/* SPDX-License-Identifier: Apache-2.0 */
/* The job of a writer: submitted when there is work, run by one thread at a time. A run
 * compresses closed rows that items need, then gives the sink, in order, the items whose rows
 * all have chunks. If work is left, the job is submitted again, so that the writers of a
 * process take turns.
 *
 * Rows that are not compressed need no job: the caller makes chunks of them when an item needs
 * them, which is cheaper than a handover. If no item waits before that item, the caller also
 * gives it to the sink. After every RP_PUSH_ITEMS items the caller makes the sink send them,
 * while they are in the processor's cache.
 *
 * If there is no memory, nothing is lost: the job leaves everything in place, records the error
 * for a waiting caller, and tries again when it is submitted next. */
#include <assert.h>

#include "client/writer/trajectory_writer.h"
#include "util/error.h"
#include "util/mem.h"

enum {
    ROWS_A_RUN = 64,
    BATCH = 128,  /* most items that the sink gets at once */
    BATCHES = 8,  /* a run */
    SETTLED = 64, /* items that are settled at once */
    FIRST_PLACES = 16,
};

static rp_outgoing **place_of(const rp_outgoing_set *set, uint64_t key)
{
    assert(set->capacity > 0 && (set->capacity & (set->capacity - 1)) == 0);
    return &set->places[key & (set->capacity - 1)];
}

bool rp_outgoing_set_reserve(rp_outgoing_set *set, const rp_allocator *alloc)
{
    rp_outgoing_set larger = {.capacity = set->capacity > 0 ? 2 * set->capacity : FIRST_PLACES,
                              .count = set->count,
                              .counter = set->counter};

    if (2 * (set->count + 1) <= set->capacity) return true;
    if (larger.capacity > (size_t)UINT32_MAX + 1) return false;
    larger.places = rp_alloc_array(alloc, larger.capacity, sizeof(rp_outgoing *));
    if (larger.places == NULL) return false;
    for (size_t i = 0; i < set->capacity; i++) /* places that differed still differ */
        if (set->places[i] != NULL) *place_of(&larger, set->places[i]->key) = set->places[i];
    rp_release(alloc, set->places, set->capacity * sizeof(rp_outgoing *));
    *set = larger;
    return true;
}

rp_outgoing *rp_outgoing_set_find(const rp_outgoing_set *set, uint64_t key)
{
    rp_outgoing *item = set->capacity > 0 ? *place_of(set, key) : NULL;

    return item != NULL && item->key == key ? item : NULL;
}

void rp_outgoing_set_add(rp_outgoing_set *set, rp_outgoing *item, uint64_t random)
{
    assert(2 * (set->count + 1) <= set->capacity); /* reserved */
    do set->counter++;
    while (*place_of(set, set->counter) != NULL); /* at least half of them are free */
    item->key = (random & ~(uint64_t)UINT32_MAX) | set->counter;
    *place_of(set, item->key) = item;
    set->count++;
}

void rp_outgoing_set_remove(rp_outgoing_set *set, const rp_outgoing *item)
{
    assert(*place_of(set, item->key) == item && set->count > 0);
    *place_of(set, item->key) = NULL;
    set->count--;
}

void rp_outgoing_free(const rp_allocator *alloc, rp_outgoing *item)
{
    if (item == NULL) return;
    for (uint32_t i = 0; i < item->piece_count; i++) {
        if (item->has_read)
            rp_rows_unref_idle(alloc, item->pieces[i].rows);
        else
            rp_rows_unref(alloc, item->pieces[i].rows);
    }
    rp_trajectory_unref(item->trajectory);
    rp_release(alloc, item, item->size_bytes);
}

/* Removes an item from the set and from all counts. */
static void settle_locked(rp_trajectory_writer *w, rp_outgoing *item) RP_REQUIRES(w->mu)
{
    rp_outgoing_set_remove(&w->set, item);
    for (uint32_t i = 0; i < item->piece_count; i++) {
        rp_rows *rows = item->pieces[i].rows;
        assert(rows->held > 0);
        if (--rows->held > 0) continue;
        assert(w->bytes >= rows->charged);
        w->bytes -= rows->charged; /* W3 */
        rows->charged = 0;
    }
}

static void refuse_locked(rp_trajectory_writer *w, const rp_outgoing *first, size_t count,
                          rp_status status, const char *text) RP_REQUIRES(w->mu)
{
    if (w->refused == 0) {
        (void)rp_fail(&w->refusal, status, "%s", text);
        w->refusing = first->table;
    }
    w->refused += count;
}

/* Prefetches settled items, then their rows: they were created long ago and are not in the
 * cache. */
static void fetch_locked(const rp_trajectory_writer *w, const uint64_t *keys, size_t count)
    RP_REQUIRES(w->mu)
{
    for (size_t i = 0; i < count; i++) {
        const char *item = (const char *)*place_of(&w->set, keys[i]);
        if (item == NULL) continue;
        __builtin_prefetch(item);
        __builtin_prefetch(item + RP_CACHE_LINE);
    }
    for (size_t i = 0; i < count; i++) {
        const rp_outgoing *item = *place_of(&w->set, keys[i]);
        if (item != NULL) __builtin_prefetch(item->pieces[0].rows);
    }
}

/* Settles up to SETTLED items. Returns the known ones as a list. */
static rp_outgoing *settle_some_locked(rp_trajectory_writer *w, const uint64_t *keys,
                                       size_t count) RP_REQUIRES(w->mu)
{
    rp_outgoing *over = NULL;

    if (w->set.count == 0) return NULL;
    fetch_locked(w, keys, count);
    for (size_t i = 0; i < count; i++) {
        rp_outgoing *item = rp_outgoing_set_find(&w->set, keys[i]);
        if (item == NULL) continue;
        settle_locked(w, item);
        assert(w->sent > 0);
        w->sent--;
        item->next = over;
        over = item;
    }
    return over;
}

static void free_all(const rp_trajectory_writer *w, rp_outgoing *items)
{
    while (items != NULL) {
        rp_outgoing *item = items;
        items = item->next;
        rp_outgoing_free(&w->alloc, item);
    }
}

static void on_settled(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text)
{
    rp_trajectory_writer *w = user;

    for (size_t from = 0, n; from < count; from += n) {
        rp_outgoing *over;
        size_t before;

        n = count - from < SETTLED ? count - from : SETTLED;
        rp_mutex_lock(&w->mu);
        before = w->set.count;
        over = settle_some_locked(w, keys + from, n);
        w->settled += n;
        if (status == RP_OK)
            w->confirmed += before - w->set.count;
        else if (over != NULL)
            refuse_locked(w, over, before - w->set.count, status, text);
        /* Of many reports, one ends the wait of the caller. */
        if (from + n == count &&
            rp_writer_is_room_locked(w, w->awaited_items, w->awaited_bytes))
            rp_writer_wake_locked(w);
        rp_mutex_unlock(&w->mu);
        free_all(w, over);
    }
}

rp_sink_events rp_trajectory_writer_events(rp_trajectory_writer *writer)
{
    return (rp_sink_events){.on_settled = on_settled, .user = writer};
}

void rp_writer_queue_locked(rp_trajectory_writer *w, rp_rows *rows)
{
    assert(rows->closed && rows->chunk == NULL && rows->builder != NULL);
    rows->next = NULL;
    *(w->closed_last == NULL ? &w->closed : w->closed_last) = rows;
    w->closed_last = &rows->next;
}

/* Replaces the first rows of the list with their chunk and removes them from the list. Keeps
 * the builder as a spare. Returns the next rows. */
static rp_rows *publish(rp_trajectory_writer *w, rp_rows *rows, rp_chunk *chunk)
{
    rp_chunk_builder *builder = rows->builder;
    rp_writer_column *c = rows->column;
    rp_rows *next;

    rp_mutex_lock(&w->mu);
    assert(w->closed == rows && rows->chunk == NULL);
    rows->chunk = chunk;
    rows->builder = NULL;
    if (!w->press.is_off) rp_codec_trial_record(&c->trial, chunk);
    rp_chunk_builder_clear(builder); /* under the lock: the caller may have read it */
    if (rows->held > 0) {
        size_t bytes = rp_rows_bytes(rows);
        w->bytes = w->bytes - rows->charged + bytes;
        rows->charged = bytes;
    }
    if (c->spare_count < RP_SPARE_BUILDERS) {
        c->spares[c->spare_count++] = builder;
        builder = NULL;
    }
    next = w->closed = rows->next;
    if (next == NULL) w->closed_last = NULL;
    rp_mutex_unlock(&w->mu);
    rp_chunk_builder_free(builder);
    rp_rows_unref(&w->alloc, rows);
    return next;
}

/* Compresses rows. Those that cannot be compressed now stay first in the list. */
static rp_status compress_some(rp_trajectory_writer *w, rp_rows *rows, rp_error *err)
{
    for (int i = 0; rows != NULL && i < ROWS_A_RUN; i++) {
        rp_chunk *chunk;
        rp_status st;

        w->press.is_off =
            !rp_writer_is_single(rows->column) && rp_codec_trial_skips(&rows->column->trial);
        st = rp_chunk_builder_compress(rows->builder, &w->press, &rows->origin, &chunk, err);
        if (st != RP_OK) return st;
        rows = publish(w, rows, chunk);
    }
    return RP_OK;
}

/* Gives a column's tuner the chunks of the pieces of one column of an item. */
static void update_tuner(rp_writer_column *c, const rp_piece *pieces, size_t count)
{
    size_t bytes = 0, rows = 0, chunks = 0, steps = 0, wire;
    const rp_rows *before = NULL;

    if (c->options.chunk_length > 0) return;
    for (size_t i = 0; i < count; i++) {
        const rp_rows *r = pieces[i].rows;
        steps += pieces[i].length;
        if (r == before) continue;
        before = r;
        (void)rp_chunk_wire(r->chunk, &wire);
        rp_chunk_tuner_on_chunk(&c->tuner, r->origin.key, wire, (int32_t)r->count);
        bytes += wire;
        rows += r->count;
        chunks++;
    }
    rp_chunk_tuner_on_item(&c->tuner, bytes, rows, chunks, steps);
    atomic_store_explicit(&c->length, c->tuner.length, memory_order_relaxed);
}

static void update_tuners(const rp_outgoing *item)
{
    const rp_piece *pieces = item->pieces;

    for (uint32_t i = 0; i < item->column_count; i++) {
        const rp_piece *end = pieces + item->columns[i].piece_count;
        while (pieces < end) { /* a column of an item may use several columns of the writer */
            size_t n = 1;
            while (pieces + n < end && pieces[n].rows->column == pieces->rows->column) n++;
            update_tuner(pieces->rows->column, pieces, n);
            pieces += n;
        }
    }
}

static bool is_complete(const rp_outgoing *item)
{
    for (uint32_t i = 0; i < item->piece_count; i++)
        if (item->pieces[i].rows->chunk == NULL) return false;
    return true;
}

static bool reserve_slices(rp_trajectory_writer *w, size_t count)
{
    size_t capacity = w->slice_capacity > 0 ? w->slice_capacity : 64;

    if (count <= w->slice_capacity) return true;
    while (capacity < count) capacity *= 2;
    if (!rp_resize_array(&w->alloc, &w->slices, w->slice_capacity, capacity, sizeof *w->slices))
        return false;
    w->slice_capacity = capacity;
    return true;
}

/* Makes the trajectory of a complete item. */
static rp_status make_trajectory(rp_trajectory_writer *w, rp_outgoing *item, rp_error *err)
{
    rp_slices few[16], *columns = few;
    rp_chunk_slice *slice;
    rp_status st;

    assert(item->trajectory == NULL && !item->has_read && is_complete(item));
    if (!reserve_slices(w, item->piece_count))
        return rp_fail_memory(err, item->piece_count * sizeof(rp_chunk_slice));
    slice = w->slices;
    if (item->column_count > sizeof few / sizeof few[0])
        columns = rp_alloc(&w->alloc, item->column_count * sizeof *columns);
    if (columns == NULL) return rp_fail_memory(err, item->column_count * sizeof *columns);
    for (uint32_t i = 0; i < item->piece_count; i++)
        w->slices[i] = (rp_chunk_slice){.chunk = item->pieces[i].rows->chunk,
                                        .offset = item->pieces[i].offset,
                                        .length = item->pieces[i].length};
    for (uint32_t i = 0; i < item->column_count; i++) {
        columns[i] = (rp_slices){slice, item->columns[i].piece_count, item->columns[i].squeeze};
        slice += item->columns[i].piece_count;
    }
    assert(slice == w->slices + item->piece_count);
    st = rp_trajectory_new(&w->alloc, columns, item->column_count, &item->trajectory, err);
    if (columns != few) rp_release(&w->alloc, columns, item->column_count * sizeof *columns);
    if (st != RP_OK) return st;
    update_tuners(item);
    for (uint32_t i = 0; i < item->piece_count; i++) rp_rows_let_go(item->pieces[i].rows);
    item->has_read = true;
    return RP_OK;
}

/* Removes the first item of the line as rejected. */
static void drop_first(rp_trajectory_writer *w, const rp_error *why)
{
    rp_outgoing *item = w->line.first;

    w->line.first = item->next;
    if (w->line.first == NULL) w->line.last = NULL;
    rp_mutex_lock(&w->mu);
    settle_locked(w, item);
    refuse_locked(w, item, 1, why->code, why->text);
    rp_writer_wake_locked(w);
    rp_mutex_unlock(&w->mu);
    rp_outgoing_free(&w->alloc, item);
}

/* Gives the first `count` items of the line to the sink. The sink may settle and so free them
 * before it returns, so they are removed from the line first. */
static rp_status put(rp_trajectory_writer *w, const rp_sink_item *items, size_t count,
                     rp_error *err)
{
    rp_outgoing *first = w->line.first, *item = first, *behind;
    rp_status st;

    assert(count >= 1 && first != NULL);
    for (size_t i = 1; i < count; i++) item = item->next;
    behind = item->next;
    for (item = first; item != behind; item = item->next) item->trajectory = NULL;
    w->line.first = behind;
    rp_mutex_lock(&w->mu);
    w->sent += count;
    rp_mutex_unlock(&w->mu);
    st = w->sink->class->put(w->sink, items, count, err);
    if (st == RP_OK) {
        if (behind == NULL) w->line.last = NULL;
        return RP_OK;
    }
    rp_mutex_lock(&w->mu);
    assert(w->sent >= count);
    w->sent -= count;
    rp_mutex_unlock(&w->mu);
    w->line.first = first; /* none was taken */
    for (size_t i = 0; i < count; i++, first = first->next)
        first->trajectory = items[i].trajectory;
    return st;
}

/* Sends the complete items at the head of the line, at most BATCH. `*count` is their number. */
static rp_status send_some(rp_trajectory_writer *w, size_t *count, rp_error *err)
{
    rp_sink_item items[BATCH];
    rp_outgoing *item = w->line.first;
    rp_error why = {0};
    rp_status st = RP_OK, sent = RP_OK;

    for (*count = 0; item != NULL && *count < BATCH; item = item->next, ++*count) {
        if (item->trajectory == NULL) {
            if (!is_complete(item)) break;
            st = make_trajectory(w, item, &why);
            if (st != RP_OK) break;
        }
        items[*count] =
            (rp_sink_item){item->key, item->table->name, item->priority, item->trajectory};
    }
    if (*count > 0) sent = put(w, items, *count, err);
    if (sent != RP_OK) return sent;
    if (st == RP_OK) return RP_OK;
    if (st == RP_NO_RESOURCE) return rp_fail(err, st, "%s", why.text);
    drop_first(w, &why); /* the failed item is first now */
    ++*count;
    return RP_OK;
}

bool rp_writer_is_idle_locked(const rp_trajectory_writer *w)
{
    return !w->busy && w->line.first == NULL && w->incoming.first == NULL;
}

bool rp_writer_send_now(rp_trajectory_writer *w, rp_outgoing *item)
{
    rp_sink_item out = {item->key, item->table->name, item->priority, NULL};
    rp_error why;

    if (make_trajectory(w, item, &why) != RP_OK) return false;
    out.trajectory = item->trajectory;
    item->trajectory = NULL;
    if (w->options.group > 1 && rp_writer_hold(w, &out)) return true;
    assert(w->held_count == 0);
    if (w->sink->class->put(w->sink, &out, 1, &why) != RP_OK) {
        item->trajectory = out.trajectory;
        return false;
    }
    rp_writer_count_given(w, 1);
    return true;
}

void rp_writer_count_given(rp_trajectory_writer *w, size_t count)
{
    w->unpushed += count;
    if (w->unpushed >= RP_PUSH_ITEMS) rp_writer_push(w, RP_PUSH_ITEMS);
}

void rp_writer_push(rp_trajectory_writer *w, size_t least)
{
    w->unpushed = 0;
    rp_writer_hand_over(w);
    if (w->sink->class->push != NULL) w->sink->class->push(w->sink, least);
}

/* Calls push() of the sink if the caller waits for confirmations. */
static void push_if_awaited(rp_trajectory_writer *w)
{
    bool is_awaited;

    if (w->sink->class->push == NULL) return;
    rp_mutex_lock(&w->mu);
    is_awaited = w->waiting;
    rp_mutex_unlock(&w->mu);
    if (is_awaited) w->sink->class->push(w->sink, 1);
}

void rp_writer_kick(rp_trajectory_writer *w)
{
    bool submit;

    rp_mutex_lock(&w->mu);
    submit = !w->busy && (w->closed != NULL || !rp_writer_is_idle_locked(w));
    if (w->busy || submit) w->busy = w->kicked = true;
    w->trouble.code = RP_OK;
    rp_mutex_unlock(&w->mu);
    if (submit) rp_runtime_submit(w->parts.runtime, &w->job);
}

/* Moves the incoming items to the end of the line. Returns the list of rows to compress, which
 * includes the closed rows that these items need. */
static rp_rows *take_incoming(rp_trajectory_writer *w)
{
    rp_rows *rows;

    rp_mutex_lock(&w->mu);
    assert(w->busy);
    w->kicked = false;
    if (w->incoming.first != NULL) {
        *(w->line.last == NULL ? &w->line.first : w->line.last) = w->incoming.first;
        w->line.last = w->incoming.last;
        w->incoming = (rp_outgoing_list){0};
    }
    rows = w->closed;
    rp_mutex_unlock(&w->mu);
    return rows;
}

static void run_job(rp_job *job)
{
    rp_trajectory_writer *w =
        (rp_trajectory_writer *)(void *)((char *)job - offsetof(rp_trajectory_writer, job));
    rp_error why = {0};
    size_t sent = BATCH;
    bool again;
    rp_status st = compress_some(w, take_incoming(w), &why);
    for (int i = 0; st == RP_OK && sent >= BATCH && i < BATCHES; i++)
        st = send_some(w, &sent, &why);
    push_if_awaited(w);
    rp_mutex_lock(&w->mu);
    again = w->kicked || (st == RP_OK && (sent >= BATCH || w->closed != NULL));
    if (st != RP_OK && !again) w->trouble = why; /* otherwise the job runs again at once */
    w->busy = again;
    rp_writer_wake_locked(w);
    rp_mutex_unlock(&w->mu); /* unless `again`, the writer may be freed now */
    if (again) rp_runtime_submit(w->parts.runtime, job);
}

void rp_writer_send_init(rp_trajectory_writer *w)
{
    w->job.run = run_job;
}

static void free_list(rp_trajectory_writer *w, rp_outgoing_list *list)
{
    while (list->first != NULL) {
        rp_outgoing *item = list->first;
        list->first = item->next;
        rp_outgoing_set_remove(&w->set, item);
        rp_outgoing_free(&w->alloc, item);
    }
}

void rp_writer_send_deinit(rp_trajectory_writer *w)
{
    if (w->is_over) return;
    w->is_over = true;
    rp_mutex_lock(&w->mu);
    w->waiting = true;
    while (w->busy) (void)rp_cond_wait(&w->cv, &w->mu, RP_FOREVER);
    rp_mutex_unlock(&w->mu);
    if (w->sink != NULL) w->sink->class->close(w->sink);
    rp_writer_drop_held(w);
    free_list(w, &w->line);
    free_list(w, &w->incoming);
    assert(w->line.first == NULL && w->incoming.first == NULL);
    for (size_t i = 0; i < w->set.capacity; i++) /* items of the sink */
        rp_outgoing_free(&w->alloc, w->set.places[i]);
    rp_release(&w->alloc, w->set.places, w->set.capacity * sizeof(rp_outgoing *));
    while (w->closed != NULL) {
        rp_rows *rows = w->closed;
        w->closed = rows->next;
        rp_rows_unref(&w->alloc, rows);
    }
    rp_release(&w->alloc, w->slices, w->slice_capacity * sizeof *w->slices);
}
