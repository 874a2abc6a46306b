/* SPDX-License-Identifier: Apache-2.0 */
#include "store/history.h"

#include <assert.h>

#include "util/mem.h"

enum { FIRST_CAPACITY = 16 };

void rp_history_init(rp_history *h, const rp_allocator *alloc, size_t column_count,
                     int64_t limit)
{
    assert(limit >= 1 && column_count >= 1);
    *h = (rp_history){.alloc = *alloc, .column_count = column_count, .limit = limit};
}

void rp_history_deinit(rp_history *h)
{
    rp_history_clear(h);
    rp_release(&h->alloc, h->cells, h->capacity * h->column_count * sizeof *h->cells);
}

/* The index of the first cell of a step. */
static size_t place(const rp_history *h, size_t capacity, int64_t step)
{
    assert(capacity > 0 && (capacity & (capacity - 1)) == 0);
    return ((size_t)step & (capacity - 1)) * h->column_count;
}

static rp_cell *line(const rp_history *h, int64_t step)
{
    assert(step >= h->begin && step < h->end);
    return h->cells + place(h, h->capacity, step);
}

bool rp_history_reserve(rp_history *h)
{
    size_t capacity = h->capacity > 0 ? 2 * h->capacity : FIRST_CAPACITY, count;
    rp_cell *cells;

    if (h->end - h->begin < (int64_t)h->capacity || h->end - h->begin == h->limit) return true;
    if (!rp_size_mul(capacity, h->column_count, &count)) return false;
    cells = rp_alloc_array(&h->alloc, count, sizeof *cells);
    if (cells == NULL) return false;
    for (int64_t step = h->begin; step < h->end; step++)
        memcpy(cells + place(h, capacity, step), line(h, step),
               h->column_count * sizeof *cells);
    rp_release(&h->alloc, h->cells, h->capacity * h->column_count * sizeof *cells);
    h->cells = cells;
    h->capacity = capacity;
    assert(h->end - h->begin < (int64_t)capacity);
    return true;
}

static void drop_oldest(rp_history *h)
{
    rp_cell *cells = line(h, h->begin);

    for (size_t c = 0; c < h->column_count; c++) {
        rp_chunk *chunk = cells[c].chunk;
        if (chunk == NULL) continue;
        if (cells[c].row + 1 == rp_chunk_get_column(chunk, 0)->shape.dims[0])
            rp_chunk_unref(chunk); /* H3 */
    }
    h->begin++;
}

rp_cell *rp_history_push(rp_history *h)
{
    rp_cell *cells;

    if (h->end - h->begin == h->limit) drop_oldest(h); /* H1 */
    h->end++;
    assert(h->end - h->begin <= h->limit && h->end - h->begin <= (int64_t)h->capacity); /* H1 */
    cells = line(h, h->end - 1);
    for (size_t c = 0; c < h->column_count; c++) cells[c] = (rp_cell){NULL, RP_ROW_ABSENT};
    return cells;
}

void rp_history_complete(rp_history *h, size_t column, int64_t first_step, rp_chunk *chunk)
{
    bool found = false;

    for (int64_t s = first_step > h->begin ? first_step : h->begin; s < h->end; s++) {
        rp_cell *cell = &line(h, s)[column];
        if (cell->row == RP_ROW_ABSENT) continue;
        assert(cell->chunk == NULL);
        cell->chunk = chunk;
        found = true;
    }
    if (found) (void)rp_chunk_ref(chunk); /* H3: if it has any row, it has the last (H2) */
}

bool rp_history_slices(const rp_history *h, const rp_pick *pick, size_t max, rp_slice *out,
                       size_t *count, int64_t *absent)
{
    rp_slice now = {0};
    int64_t step = pick->start;

    *count = 0;
    for (int32_t i = 0; i < pick->count && *count <= max; i++, step += pick->stride) {
        const rp_cell *cell = &line(h, step)[pick->column];
        if (cell->row == RP_ROW_ABSENT) {
            *absent = step;
            return false;
        }
        if (i > 0 && cell->chunk == now.chunk && cell->row == now.offset + now.length) {
            now.length++;
        } else {
            now = (rp_slice){.chunk = cell->chunk, .offset = cell->row, .length = 1};
            (*count)++;
        }
        if (out != NULL) out[*count - 1] = now;
    }
    return true;
}

void rp_history_clear(rp_history *h)
{
    while (h->begin < h->end) drop_oldest(h);
    h->begin = h->end = 0;
}
