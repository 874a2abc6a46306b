/* SPDX-License-Identifier: Apache-2.0 */
#include "store/pending.h"

#include <assert.h>

#include "chunk/chunk.h"
#include "util/error.h"
#include "util/mem.h"

enum { FIRST_CAPACITY = 8 };

static_assert(sizeof(rp_draft) % _Alignof(rp_slices) == 0 &&
                  sizeof(rp_slices) % _Alignof(rp_slice) == 0 &&
                  sizeof(rp_slice) % _Alignof(uint32_t) == 0,
              "the arrays of a draft follow each other without gaps");

rp_draft *rp_draft_new(const rp_allocator *alloc, size_t column_count, size_t slice_count)
{
    /* Both counts are bounded, by RP_MAX_COLUMNS and RP_MAX_SLICES: no overflow. */
    size_t size = sizeof(rp_draft) + column_count * (sizeof(rp_slices) + sizeof(uint32_t)) +
                  slice_count * sizeof(rp_slice);
    rp_draft *draft = rp_alloc_zero(alloc, size);

    if (draft == NULL) return NULL;
    draft->size_bytes = size;
    draft->column_count = column_count;
    draft->columns = (rp_slices *)(draft + 1);
    draft->slices = (rp_slice *)(draft->columns + column_count);
    draft->sources = (uint32_t *)(draft->slices + slice_count);
    return draft;
}

void rp_draft_free(const rp_allocator *alloc, rp_draft *draft)
{
    if (draft == NULL) return;
    for (size_t i = 0; draft->holds && i < draft->column_count; i++)
        for (size_t k = 0; k < draft->columns[i].slice_count; k++)
            rp_chunk_unref(draft->columns[i].slices[k].chunk);
    rp_release(alloc, draft, draft->size_bytes);
}

/* Takes references to the chunks, which the history may drop. */
static void hold(rp_draft *draft)
{
    assert(!draft->holds);
    for (size_t i = 0; i < draft->column_count; i++)
        for (size_t k = 0; k < draft->columns[i].slice_count; k++)
            if (draft->columns[i].slices[k].chunk != NULL)
                (void)rp_chunk_ref(draft->columns[i].slices[k].chunk);
    draft->holds = true;
}

/* Sets the chunk of the slices that wait for it. */
static void resolve(rp_draft *draft, uint32_t source, rp_chunk *chunk)
{
    rp_slice *slice = draft->slices;

    for (size_t i = 0; i < draft->column_count; i++)
        for (size_t k = 0; k < draft->columns[i].slice_count; k++, slice++) {
            if (draft->sources[i] != source || slice->chunk != NULL) continue;
            assert(draft->holds && draft->missing > 0); /* Q1 */
            slice->chunk = rp_chunk_ref(chunk);
            draft->missing--;
        }
}

/* Reports the chunks of one column of an item to the tuner of the column. A pick goes through
 * the steps in one direction, so the slices of a chunk are adjacent. */
static void update_tuner(rp_chunk_tuner *tuner, const rp_slices *column)
{
    size_t bytes = 0, rows = 0, chunks = 0, steps = 0, wire;
    const rp_chunk *before = NULL;

    for (size_t k = 0; k < column->slice_count; k++) {
        const rp_chunk *chunk = column->slices[k].chunk;
        int32_t chunk_rows;
        steps += column->slices[k].length;
        if (chunk == before) continue;
        before = chunk;
        wire = chunk->wire_bytes; /* the bytes themselves may be on disk */
        chunk_rows = (int32_t)rp_chunk_get_column(chunk, 0)->shape.dims[0];
        rp_chunk_tuner_on_chunk(tuner, rp_chunk_get_origin(chunk)->key, wire, chunk_rows);
        bytes += wire;
        rows += (size_t)chunk_rows;
        chunks++;
    }
    rp_chunk_tuner_on_item(tuner, bytes, rows, chunks, steps);
}

/* Makes the trajectory of an item whose draft is complete. */
static rp_status make_trajectory(rp_pending *q, rp_pending_item *item, rp_error *err)
{
    rp_draft *draft = item->draft;
    rp_status st = rp_trajectory_new(&q->alloc, draft->columns, draft->column_count,
                                     &item->trajectory, err);

    if (st != RP_OK) return st;
    for (size_t i = 0; q->tuners != NULL && i < draft->column_count; i++)
        update_tuner(&q->tuners[draft->sources[i]], &draft->columns[i]);
    rp_draft_free(&q->alloc, draft);
    item->draft = NULL;
    return RP_OK;
}

static rp_pending_item *at(const rp_pending *q, size_t index)
{
    assert(index < q->capacity); /* Q3 */
    return &q->items[(q->head + index) & (q->capacity - 1)];
}

void rp_pending_init(rp_pending *q, const rp_allocator *alloc, rp_chunk_tuner *tuners)
{
    *q = (rp_pending){.alloc = *alloc, .tuners = tuners};
}

void rp_pending_deinit(rp_pending *q)
{
    rp_pending_pop(q, q->count);
    rp_release(&q->alloc, q->items, q->capacity * sizeof *q->items);
}

bool rp_pending_reserve(rp_pending *q)
{
    size_t capacity = q->capacity > 0 ? 2 * q->capacity : FIRST_CAPACITY;
    rp_pending_item *items;

    if (q->count < q->capacity) return true;
    items = rp_alloc_array(&q->alloc, capacity, sizeof *items);
    if (items == NULL) return false;
    for (size_t i = 0; i < q->count; i++) items[i] = *at(q, i);
    rp_release(&q->alloc, q->items, q->capacity * sizeof *items);
    q->items = items;
    q->capacity = capacity;
    q->head = 0;
    return true;
}

rp_status rp_pending_push(rp_pending *q, const rp_pending_item *item, rp_error *err)
{
    rp_pending_item added = *item;
    rp_status st;

    assert(q->count < q->capacity);
    if (added.draft->missing == 0) {
        st = make_trajectory(q, &added, err);
        if (st != RP_OK) return st;
    } else {
        hold(added.draft);
    }
    assert((added.draft == NULL) == (added.trajectory != NULL)); /* Q2 */
    *at(q, q->count) = added;
    q->count++;
    return RP_OK;
}

void rp_pending_complete(rp_pending *q, uint32_t source, rp_chunk *chunk)
{
    for (size_t i = 0; i < q->count; i++) {
        rp_pending_item *item = at(q, i);
        if (item->draft == NULL || item->draft->missing == 0) continue;
        resolve(item->draft, source, chunk);
        if (item->draft->missing == 0) (void)make_trajectory(q, item, NULL);
    }
}

void rp_pending_keep_table(rp_pending *q, rp_table *table)
{
    size_t i = q->count;

    while (i > 0 && at(q, i - 1)->table != table) i--;
    if (i == 0 || at(q, i - 1)->holds_table)
        rp_table_unref(table);
    else
        at(q, i - 1)->holds_table = true;
}

const rp_pending_item *rp_pending_head(const rp_pending *q)
{
    assert(q->count > 0);
    return at(q, 0);
}

rp_status rp_pending_gather(rp_pending *q, rp_insert *out, size_t max, size_t *count,
                            rp_error *err)
{
    rp_table *table = q->count > 0 ? at(q, 0)->table : NULL;

    for (*count = 0; *count < max && *count < q->count; (*count)++) {
        rp_pending_item *item = at(q, *count);
        if (item->table != table) break;
        if (item->trajectory == NULL) {
            rp_status st;
            if (item->draft->missing > 0) break;
            st = make_trajectory(q, item, *count > 0 ? NULL : err);
            if (st != RP_OK) return *count > 0 ? RP_OK : st;
        }
        out[*count] = (rp_insert){
            .key = item->key, .priority = item->priority, .trajectory = item->trajectory};
    }
    return RP_OK;
}

void rp_pending_pop(rp_pending *q, size_t count)
{
    assert(count <= q->count);
    for (size_t i = 0; i < count; i++) {
        rp_pending_item *item = at(q, i);
        rp_draft_free(&q->alloc, item->draft);
        rp_trajectory_unref(item->trajectory);
        if (item->holds_table) rp_table_unref(item->table);
    }
    q->count -= count;
    q->head = q->capacity > 0 ? (q->head + count) & (q->capacity - 1) : 0;
}
