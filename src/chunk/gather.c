/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways, of which the first is taken as long as it can be:
 *
 *   by extent   the trajectory says where the row is (J3 of trajectory.h);
 *   by chunk    a software pipeline of four stages. While the rows of item i are copied,
 *                 item i + AT_ROW          its row is being prefetched,
 *                 item i + AT_CHUNK        the header of its chunk, and the entry of the column,
 *                 item i + AT_TRAJECTORY   its trajectory.
 *               A stage reads only what the stage before it has prefetched. */
#include "chunk/gather.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "chunk/chunk.h"
#include "util/mem.h"

enum {
    AT_ROW = 8,
    AT_CHUNK = 16,
    AT_TRAJECTORY = 24,
    MOST_BYTES = 2048, /* of an item: the time to copy more hides the latency */
};

/* What the column of each item must be. */
typedef struct expected {
    size_t column, column_count; /* 0: any number of columns */
    size_t bytes;
    rp_dtype dtype;
    bool squeeze;
    int32_t rank;        /* of a row */
    const int64_t *dims; /* of a row */
} expected;

static void fetch_trajectory(const rp_trajectory *t)
{
    const char *bytes = (const char *)t;

    for (size_t at = 0; at < 4 * (size_t)RP_CACHE_LINE; at += RP_CACHE_LINE)
        __builtin_prefetch(bytes + at);
}

/* The first slice of a column, or NULL if the item has no such column. */
static const rp_chunk_slice *first_slice(const rp_trajectory *t, size_t column)
{
    return column < t->column_count ? rp_trajectory_slices(t, column).slices : NULL;
}

static void fetch_chunk(const rp_trajectory *t, size_t column)
{
    const rp_chunk_slice *s = first_slice(t, column);

    if (s == NULL) return;
    __builtin_prefetch(s->chunk);
    __builtin_prefetch(rp_chunk_column_at(s->chunk, s->column));
    __builtin_prefetch(rp_chunk_column_at(s->chunk, s->column + 1)); /* mostly its place */
}

static void fetch_row(const rp_trajectory *t, size_t column)
{
    const rp_chunk_slice *s = first_slice(t, column);
    const rp_column_place *place;

    if (s == NULL) return;
    place = rp_chunk_place_at(s->chunk, s->column);
    if (place->form == RP_FORM_STORED)
        __builtin_prefetch(s->chunk->wire + place->rows_at + s->offset * place->row_bytes);
}

/* The rows of an item, or NULL if it is not what is expected. */
static inline const uint8_t *rows_of(const rp_trajectory *t, const expected *e)
{
    const rp_chunk_column *c;
    const rp_column_place *place;
    rp_slices slices;
    const rp_chunk_slice *s;

    if (e->column >= t->column_count) return NULL;
    if (e->column_count != 0 && t->column_count != e->column_count) return NULL;
    slices = rp_trajectory_slices(t, e->column);
    s = slices.slices;
    if (slices.slice_count != 1 || slices.squeeze != e->squeeze) return NULL;
    c = rp_chunk_column_at(s->chunk, s->column);
    place = rp_chunk_place_at(s->chunk, s->column);
    if (place->form != RP_FORM_STORED || c->dtype != e->dtype || c->shape.rank != e->rank + 1)
        return NULL;
    for (int32_t i = 0; i < e->rank; i++)
        if (c->shape.dims[i + 1] != e->dims[i]) return NULL;
    if (s->length * place->row_bytes != e->bytes) return NULL;
    assert(s->offset + s->length <= rp_chunk_rows(s->chunk, s->column));
    return s->chunk->wire + place->rows_at + s->offset * place->row_bytes;
}

/* Copies with a size that the compiler knows, where that is a common one. */
static inline void copy(uint8_t *dst, const uint8_t *rows, size_t bytes)
{
    if (dst == NULL) return;
    switch (bytes) {
    case 4: memcpy(dst, rows, 4); break;
    case 8: memcpy(dst, rows, 8); break;
    case 16: memcpy(dst, rows, 16); break;
    case 32: memcpy(dst, rows, 32); break;
    default: memcpy(dst, rows, bytes); break;
    }
}

/* Copies rows of one kind to which extents lead. Returns how many trajectories have one. */
static size_t copy_by_extent(const rp_trajectory *const *trajectories, size_t count,
                             const expected *e, uint8_t *dst)
{
    uint32_t kind = rp_row_kind(e->dtype, e->rank, e->dims);

    if (kind == 0) return 0;
    for (size_t i = 0; i < count; i++) {
        const rp_trajectory *t = trajectories[i];
        const rp_extent *extents = rp_trajectory_extents(t), *x = &extents[e->column];
        const rp_chunk_slice *slices;

        if (e->column >= t->column_count) return i;
        if (e->column_count != 0 && t->column_count != e->column_count) return i;
        if (!x->is_plain || x->squeeze != e->squeeze || x->more >> 16 != kind) return i;
        slices = (const rp_chunk_slice *)(const void *)(extents + t->column_count);
        copy(dst != NULL ? dst + i * e->bytes : NULL,
             (const uint8_t *)slices[x->first_slice].chunk + (uint16_t)x->more, e->bytes);
    }
    return count;
}

static size_t copy_by_chunk(const rp_trajectory *const *trajectories, size_t count,
                            const expected *e, uint8_t *dst)
{
    size_t column = e->column;

    for (size_t i = 0; i < AT_TRAJECTORY && i < count; i++) fetch_trajectory(trajectories[i]);
    for (size_t i = 0; i < AT_CHUNK && i < count; i++) fetch_chunk(trajectories[i], column);
    for (size_t i = 0; i < AT_ROW && i < count; i++) fetch_row(trajectories[i], column);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *rows = rows_of(trajectories[i], e);

        if (rows == NULL) return i;
        if (i + AT_TRAJECTORY < count) fetch_trajectory(trajectories[i + AT_TRAJECTORY]);
        if (i + AT_CHUNK < count) fetch_chunk(trajectories[i + AT_CHUNK], column);
        if (i + AT_ROW < count) fetch_row(trajectories[i + AT_ROW], column);
        copy(dst != NULL ? dst + i * e->bytes : NULL, rows, e->bytes);
    }
    return count;
}

/* Prefetching has no result to wait for, so all of it is under way at the same time. The fence
 * costs nothing. Without it, GCC takes the function for one without effects, and with link-time
 * optimization removes calls of it. */
void rp_gather_fetch(const rp_trajectory *const *trajectories, size_t count)
{
    for (size_t i = 0; i < count; i++) fetch_trajectory(trajectories[i]);
    for (size_t i = 0; i < count; i++) {
        const rp_trajectory *t = trajectories[i];
        const rp_extent *extents = rp_trajectory_extents(t);
        const rp_chunk_slice *slices =
            (const rp_chunk_slice *)(const void *)(extents + t->column_count);

        for (size_t c = 0; c < t->column_count && extents[c].is_plain; c++)
            __builtin_prefetch((const char *)slices[extents[c].first_slice].chunk +
                               (uint16_t)extents[c].more);
    }
    atomic_signal_fence(memory_order_seq_cst);
}

size_t rp_gather_plain(const rp_trajectory *const *trajectories, size_t count, size_t column,
                       size_t column_count, const rp_trajectory_column *like, uint8_t *dst)
{
    const expected e = {.column = column,
                        .column_count = column_count,
                        .bytes = like->bytes,
                        .dtype = like->dtype,
                        .squeeze = like->squeeze,
                        .rank = like->shape.rank - !like->squeeze,
                        .dims = like->shape.dims + !like->squeeze};
    bool is_row = like->squeeze || like->shape.dims[0] == 1;
    size_t done = 0;

    if (e.bytes < 1 || e.bytes > MOST_BYTES || e.dtype == RP_STRING) return 0;
    assert(e.rank >= 0);
    if (is_row) done = copy_by_extent(trajectories, count, &e, dst);
    if (done == count) return count;
    return done + copy_by_chunk(trajectories + done, count - done, &e,
                                dst != NULL ? dst + done * e.bytes : NULL);
}
