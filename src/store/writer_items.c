/* SPDX-License-Identifier: Apache-2.0 */
/* Items of a writer: from picks to slices, from the queue to the table.
 *
 * An item that its table can never accept is removed from the queue by the call that reports
 * the error. An item that has to wait, or for which there is no memory, stays. A call that
 * reports the failure of an earlier item does nothing else: an append leaves the refused item
 * to the next call, and create_item inserts earlier items before it creates one. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chunk/trajectory.h"
#include "store/writer.h"
#include "table/table.h"
#include "table/table_log.h"
#include "util/error.h"

enum {
    BATCH = 64,       /* items inserted with one call */
    LABEL_BYTES = 96, /* of a column's name in a message */
};

/* Names a column in a message: "column 3 'action'". Returns `text`. */
static const char *label(const rp_writer *w, size_t index, char text[LABEL_BYTES])
{
    const char *name = w->columns[index].spec.name;

    if (name == NULL)
        (void)snprintf(text, LABEL_BYTES, "column %zu", index);
    else
        (void)snprintf(text, LABEL_BYTES, "column %zu '%.64s'", index, name);
    return text;
}

/* Waits until all inserted items are durable. May be called again after a failure. */
static rp_status wait_until_safe(rp_writer *w, rp_wait wait, rp_error *err)
{
    rp_status st;

    if (w->unsafe_table == NULL) return RP_OK;
    st = rp_table_wait_safe(w->unsafe_table, RP_OK, w->unsafe_lsn, wait, err);
    if (st != RP_OK) return st;
    rp_table_unref(w->unsafe_table);
    w->unsafe_table = NULL;
    return RP_OK;
}

/* Remembers the last log record. The tables of a store share one log, so one LSN is enough. */
static void set_unsafe(rp_writer *w, rp_table *table, uint64_t lsn)
{
    if (lsn == 0) return;
    rp_table_unref(w->unsafe_table);
    w->unsafe_table = rp_table_ref(table);
    w->unsafe_lsn = lsn;
}

/* Inserts the oldest items that are complete and go to one table, at most `max`, with one call.
 * Succeeds if there are none. Writes the numbers of items tried and inserted. Ignores errors of
 * the log, which a flush reports. */
static rp_status insert_some(rp_writer *w, size_t max, rp_wait wait, size_t *tried,
                             size_t *inserted, rp_error *err)
{
    rp_insert items[BATCH];
    rp_table *table;
    uint64_t lsn;
    rp_status st;

    *inserted = 0;
    st = rp_pending_gather(&w->pending, items, max < BATCH ? max : BATCH, tried, err);
    if (st != RP_OK || *tried == 0) return st;
    table = rp_pending_head(&w->pending)->table;
    st = rp_table_insert_logged(table, items, *tried, wait, inserted, &lsn, err);
    assert(*inserted <= *tried);
    set_unsafe(w, table, lsn);
    rp_pending_pop(&w->pending, *inserted);
    if (st == RP_OK) (void)wait_until_safe(w, wait, NULL);
    return st;
}

rp_status rp_writer_insert_complete(rp_writer *w, rp_wait wait, rp_error *err)
{
    size_t max = BATCH, tried = 0, inserted = 0;
    rp_status st;

    do {
        st = insert_some(w, max, wait, &tried, &inserted, err);
        if (st == RP_OK) continue;
        if (st == RP_DEADLINE || st == RP_CANCELLED || tried <= inserted + 1) return st;
        max = 1; /* a table refuses a whole batch because of one item: find it */
    } while (tried > 0);
    return RP_OK;
}

/* True if the table can never accept the item at the head of the queue; `st` is the status of
 * its insert. */
static bool is_refused(const rp_writer *w, rp_status st)
{
    const rp_pending_item *item;
    rp_table_info table;
    rp_store_info store;
    uint64_t bytes;

    if (st == RP_OK || st == RP_DEADLINE) return false;
    item = rp_pending_head(&w->pending);
    if (st == RP_CANCELLED) return rp_table_is_dropped(item->table);
    if (st != RP_NO_RESOURCE) return true;
    if (item->trajectory == NULL) return false; /* out of memory: the writer retries */
    bytes = item->trajectory->cost;
    rp_table_get_info(item->table, &table);
    rp_store_get_info(w->store, &store);
    if (table.max_bytes > 0 && bytes > table.max_bytes) return true;
    if (store.max_bytes == 0) return false;
    return bytes > store.max_bytes || store.policy == RP_BUDGET_REJECT;
}

/* Discards the item at the head of the queue and reports its key and the error of the table. */
static rp_status drop_refused(rp_writer *w, rp_status st, const rp_error *why, rp_error *err)
{
    if (st == RP_CANCELLED) st = RP_NOT_FOUND; /* the table was dropped */
    (void)rp_fail(err, st, "item %" PRIu64 " was dropped: %s",
                  rp_pending_head(&w->pending)->key, why->text);
    rp_pending_pop(&w->pending, 1);
    return st;
}

rp_status rp_writer_insert_or_drop(rp_writer *w, rp_wait wait, rp_error *err)
{
    rp_error why;
    rp_status st = rp_writer_insert_complete(w, wait, &why);

    if (st == RP_OK) return wait_until_safe(w, wait, err);
    if (is_refused(w, st)) return drop_refused(w, st, &why, err);
    if (err != NULL) *err = why;
    return st;
}

/* The same pick with `start` counted from the beginning of the episode. */
static rp_pick absolute(const rp_writer *w, const rp_pick *pick)
{
    rp_pick p = *pick;

    if (p.start < 0) p.start += w->history.end;
    return p;
}

static rp_status check_pick(const rp_writer *w, size_t index, const rp_pick *pick,
                            size_t *slice_count, rp_error *err)
{
    const rp_history *h = &w->history;
    rp_pick p = absolute(w, pick);
    int64_t step = p.start;
    size_t count;
    char text[LABEL_BYTES];

    if (p.column >= w->column_count)
        return rp_fail(err, RP_INVALID, "pick %zu: column %u of a writer with %zu", index,
                       p.column, w->column_count);
    if (p.count < 1 || (p.squeeze && p.count != 1))
        return rp_fail(err, RP_INVALID, "pick %zu of %s: count must be %s 1, got %d", index,
                       label(w, p.column, text), p.squeeze ? "exactly" : ">=", (int)p.count);
    /* Steps are monotonic, so it suffices to check the first and the last. The last is computed
     * only if the first is in the history: then it cannot overflow. */
    if (step >= h->begin && step < h->end) step += (int64_t)(p.count - 1) * p.stride;
    if (step < h->begin || step >= h->end)
        return rp_fail(err, RP_PRECONDITION,
                       "%s: step %" PRId64 " is outside the history, which holds [%" PRId64
                       ", %" PRId64 ")",
                       label(w, p.column, text), step, h->begin, h->end);
    if (!rp_history_slices(h, &p, RP_MAX_SLICES - *slice_count, NULL, &count, &step))
        return rp_fail(err, RP_PRECONDITION, "%s was left out of step %" PRId64,
                       label(w, p.column, text), step);
    *slice_count += count;
    if (*slice_count > RP_MAX_SLICES)
        return rp_fail(err, RP_INVALID, "the picks make more than %d slices", RP_MAX_SLICES);
    return RP_OK;
}

static rp_status check_picks(const rp_writer *w, const rp_pick *picks, size_t pick_count,
                             size_t *slice_count, rp_error *err)
{
    rp_status st = RP_OK;

    *slice_count = 0;
    if (pick_count < 1 || pick_count > RP_MAX_COLUMNS)
        return rp_fail(err, RP_INVALID, "the number of picks must be in [1, %d], got %zu",
                       RP_MAX_COLUMNS, pick_count);
    for (size_t i = 0; st == RP_OK && i < pick_count; i++)
        st = check_pick(w, i, &picks[i], slice_count, err);
    return st;
}

static rp_status find_table(rp_writer *w, const char *name, rp_error *err)
{
    if (name == NULL) return rp_fail(err, RP_INVALID, "no table was named");
    if (w->table != NULL && strcmp(rp_table_name(w->table), name) == 0 &&
        !rp_table_is_dropped(w->table))
        return RP_OK;
    rp_pending_keep_table(&w->pending, w->table);
    w->table = rp_store_find_table(w->store, (rp_string){name, strlen(name)});
    return w->table != NULL ? RP_OK : rp_fail(err, RP_NOT_FOUND, "no table '%.64s'", name);
}

/* Inserts earlier items until the queue has room for one more. Waits only if the queue is full,
 * for one insert. */
static rp_status make_room(rp_writer *w, rp_wait wait, rp_error *err)
{
    size_t tried, inserted;
    rp_error why;
    rp_status st = rp_writer_insert_complete(w, rp_wait_none(), &why);

    if (is_refused(w, st)) return drop_refused(w, st, &why, err);
    if (w->pending.count < w->max_pending) return RP_OK;
    st = rp_writer_complete_awaited(w, err); /* otherwise they might wait for ever */
    if (st != RP_OK) return st;
    st = insert_some(w, 1, wait, &tried, &inserted, &why);
    if (st == RP_OK) return RP_OK;
    if (is_refused(w, st)) return drop_refused(w, st, &why, err);
    if (err != NULL) *err = why;
    return st;
}

/* Makes the draft of picks that have been checked. NULL if there is no memory. */
static rp_draft *make_draft(rp_writer *w, const rp_pick *picks, size_t pick_count,
                            size_t slice_count)
{
    rp_draft *draft = rp_draft_new(&w->alloc, pick_count, slice_count);
    rp_slice *slices;

    if (draft == NULL) return NULL;
    slices = draft->slices;
    for (size_t i = 0; i < pick_count; i++) {
        rp_pick p = absolute(w, &picks[i]);
        size_t count;
        int64_t absent;
        bool found = rp_history_slices(&w->history, &p, slice_count, slices, &count, &absent);
        assert(found && slices + count <= draft->slices + slice_count);
        (void)found;
        draft->columns[i] =
            (rp_slices){.slices = slices, .slice_count = count, .squeeze = p.squeeze};
        draft->sources[i] = p.column;
        for (size_t k = 0; k < count; k++, slices++)
            if (slices->chunk == NULL) draft->missing++;
    }
    return draft;
}

/* Appends a new item to the queue. */
static rp_status push_item(rp_writer *w, rp_pending_item *item, rp_error *err)
{
    const rp_draft *draft = item->draft;
    bool waits = draft->missing > 0;
    rp_status st;

    st = rp_pending_push(&w->pending, item, err);
    if (st != RP_OK || !waits) return st;
    for (size_t i = 0; i < draft->column_count; i++)
        for (size_t k = 0; k < draft->columns[i].slice_count; k++)
            if (draft->columns[i].slices[k].chunk == NULL)
                w->columns[draft->sources[i]].awaited = true; /* W2 */
    return RP_OK;
}

rp_status rp_writer_create_item(rp_writer *writer, const char *table, double priority,
                                const rp_pick *picks, size_t pick_count, rp_wait wait,
                                uint64_t *key, rp_error *err)
{
    rp_pending_item item = {.priority = priority};
    rp_error why;
    size_t slice_count;
    rp_status st;

    if (isnan(priority)) return rp_fail(err, RP_INVALID, "the priority of an item is NaN");
    st = find_table(writer, table, err);
    if (st == RP_OK) st = check_picks(writer, picks, pick_count, &slice_count, err);
    if (st == RP_OK) st = make_room(writer, wait, err);
    if (st != RP_OK) return st;
    item.table = writer->table;
    item.key = rp_store_new_key(writer->store);
    if (rp_pending_reserve(&writer->pending))
        item.draft = make_draft(writer, picks, pick_count, slice_count);
    if (item.draft == NULL) return rp_fail_memory(err, slice_count * sizeof(rp_slice));
    st = push_item(writer, &item, err);
    if (st != RP_OK) {
        rp_draft_free(&writer->alloc, item.draft);
        return st;
    }
    /* If this fails for an earlier item, the next call reports it. */
    st = rp_writer_insert_complete(writer, rp_wait_none(), &why);
    if (writer->pending.count == 1 && is_refused(writer, st))
        return drop_refused(writer, st, &why, err);
    if (key != NULL) *key = item.key;
    return RP_OK;
}

rp_status rp_writer_create_latest(rp_writer *writer, const char *table, double priority,
                                  int32_t steps, rp_wait wait, uint64_t *key, rp_error *err)
{
    for (size_t i = 0; i < writer->column_count; i++) {
        writer->latest[i].start = -(int64_t)steps;
        writer->latest[i].count = steps;
    }
    return rp_writer_create_item(writer, table, priority, writer->latest, writer->column_count,
                                 wait, key, err);
}
