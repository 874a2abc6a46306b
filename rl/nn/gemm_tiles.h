/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles: blocks of c whose sums stay in registers while the loop over k runs. Part of
 * gemm_lanes.h, which explains the terms and the names that are used here without a
 * definition. */
#ifndef RP_NN_GEMM_TILES_H
#define RP_NN_GEMM_TILES_H

#include <assert.h>

#include "nn/gemm.h"

#define TILE_WIDTH (MOST_VECS * LANES)
#define ROW_WIDTH (ROW_VECS * LANES)

enum { LINE = 16 }; /* numbers in a cache line */

/* One tile, or a strip (a column of tiles), for one panel of b. */
typedef struct strip {
    const float *a, *b;
    size_t a_row, a_col, b_row, k;
    size_t a_tile; /* distance, in numbers, from the first row of a tile to the first row of the
                      next tile, if a is packed. 0: a is not packed, and this distance is a_row
                      times the rows of the tile */
    float *c;
    size_t c_row;
    const float *bias; /* set only for the last panel; otherwise NULL */
    bool resume;       /* true: the sums begin with the old c; false: with 0 */
    bool relu;         /* true: apply ReLU; set only for the last panel */
    size_t last;       /* number of lanes in use in the last vector of a row */

    /* What to prefetch while the tiles are computed: next_rows rows of next_length numbers,
     * next_row numbers apart. next_rows is 0 if there is nothing to prefetch. */
    const float *next;
    size_t next_row, next_rows, next_length;
} strip;

INLINE vec load_end(const float *from, bool partial, mask some)
{
    return partial ? load_some(from, some) : load(from);
}

/* Applies bias and ReLU to one row of sums and stores it. */
INLINE void finish_row(const strip *s, vec *sums, float *c, int vecs, bool partial)
{
    mask some = mask_of(s->last);

    for (int v = 0; v < vecs; v++) {
        bool end = partial && v == vecs - 1;
        vec x = sums[v];

        if (s->bias != NULL) x = add(x, load_end(s->bias + v * LANES, end, some));
        if (s->relu) x = positive(x);
        if (end) {
            store_some(c + v * LANES, some, x);
        } else {
            store(c + v * LANES, x);
        }
    }
}

/* Computes one tile. `partial` means that not all lanes of the last vector are in use. Callers
 * must pass constants as `rows`, `vecs` and `partial`: the compiler then unrolls the loops and
 * keeps `sums` in registers. */
INLINE void tile(const strip *s, int rows, int vecs, bool partial)
{
    vec sums[MOST_ROWS][MOST_VECS];
    const float *a = s->a, *b = s->b;
    size_t a_row = s->a_row, a_col = s->a_col, b_row = s->b_row;
    mask some = mask_of(s->last);

    for (int r = 0; r < rows; r++)
        for (int v = 0; v < vecs; v++)
            sums[r][v] = !s->resume ? zero()
                                    : load_end(s->c + (size_t)r * s->c_row + v * LANES,
                                               partial && v == vecs - 1, some);
    for (size_t p = 0; p < s->k; p++, a += a_col, b += b_row) {
        vec row[MOST_VECS];

        for (int v = 0; v < vecs; v++)
            row[v] = load_end(b + v * LANES, partial && v == vecs - 1, some);
        for (int r = 0; r < rows; r++) {
            vec x = spread(a[(size_t)r * a_row]);
            for (int v = 0; v < vecs; v++) sums[r][v] = fused(x, row[v], sums[r][v]); /* G1 */
        }
    }
    if (s->bias == NULL && !s->relu && !partial) {
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < vecs; v++)
                store(s->c + (size_t)r * s->c_row + v * LANES, sums[r][v]);
        return;
    }
    for (int r = 0; r < rows; r++)
        finish_row(s, sums[r], s->c + (size_t)r * s->c_row, vecs, partial);
}

#define TILE(r, v)                                                                             \
    static void tile_##r##_##v(const strip *s)                                                 \
    {                                                                                          \
        tile(s, r, v, false);                                                                  \
    }                                                                                          \
    static void edge_##r##_##v(const strip *s)                                                 \
    {                                                                                          \
        tile(s, r, v, true);                                                                   \
    }

#if MOST_VECS == 4
#define TILES(r) TILE(r, 1) TILE(r, 2) TILE(r, 3) TILE(r, 4)
#define ROW_OF(kind, r)                                                                        \
    {                                                                                          \
        kind##_##r##_1, kind##_##r##_2, kind##_##r##_3, kind##_##r##_4                         \
    }
#else
#define TILES(r) TILE(r, 1) TILE(r, 2)
#define ROW_OF(kind, r)                                                                        \
    {                                                                                          \
        kind##_##r##_1, kind##_##r##_2                                                         \
    }
#endif

TILES(1)
TILES(2)
TILES(3)
TILES(4)
#if MOST_ROWS == 6
TILES(5)
TILES(6)
#define ALL_ROWS(kind)                                                                         \
    {                                                                                          \
        ROW_OF(kind, 1), ROW_OF(kind, 2), ROW_OF(kind, 3), ROW_OF(kind, 4), ROW_OF(kind, 5),   \
            ROW_OF(kind, 6)                                                                    \
    }
#else
#define ALL_ROWS(kind)                                                                         \
    {                                                                                          \
        ROW_OF(kind, 1), ROW_OF(kind, 2), ROW_OF(kind, 3), ROW_OF(kind, 4)                     \
    }
#endif

typedef void tile_fn(const strip *s);

/* The functions. The indices are `partial`, number of rows - 1, and number of vectors - 1. */
static tile_fn *const tiles[2][MOST_ROWS][MOST_VECS] = {ALL_ROWS(tile), ALL_ROWS(edge)};

/* Computes a tile of one row and ROW_WIDTH columns. A product of one row is bound by memory
 * bandwidth. A tile of one row is wider than other tiles, so that b is read almost in the order
 * of memory. */
static void tile_row(const strip *s)
{
    vec sums[ROW_VECS];
    const float *a = s->a, *b = s->b;

    for (int v = 0; v < ROW_VECS; v++) sums[v] = s->resume ? load(s->c + v * LANES) : zero();
    for (size_t p = 0; p < s->k; p++, a += s->a_col, b += s->b_row) {
        vec x = spread(*a);
        for (int v = 0; v < ROW_VECS; v++) sums[v] = fused(x, load(b + v * LANES), sums[v]);
    }
    finish_row(s, sums, s->c, ROW_VECS, false);
}

/* Called before a tile of `done` rows is computed, when the strip has `rows` rows left,
 * including those of the tile. s->next_rows rows remain to be prefetched. Prefetches the
 * fraction done / rows of them. */
static void fetch(strip *s, size_t done, size_t rows)
{
    size_t count = s->next_rows * done / rows;

    for (size_t i = 0; i < count; i++, s->next += s->next_row)
        for (size_t q = 0; q < s->next_length; q += LINE) __builtin_prefetch(s->next + q);
    s->next_rows -= count;
}

/* Returns the number of rows of the next tile if `rows` rows are left. A last tile of one or
 * two rows would leave the processor's pipeline half empty. In this case the last two tiles
 * divide their rows evenly. */
static size_t tile_rows(size_t rows)
{
    if (rows <= MOST_ROWS) return rows;
    return rows >= MOST_ROWS + 3 ? MOST_ROWS : (rows + 1) / 2;
}

/* Computes `rows` rows of a strip that is `width` numbers wide, tile by tile. */
static void run_strip(strip s, size_t rows, size_t width)
{
    size_t vecs = (width + LANES - 1) / LANES;
    bool partial = width % LANES != 0;

    assert(vecs >= 1 && vecs <= MOST_VECS);
    s.last = width - (vecs - 1) * LANES; /* G3 */
    while (rows > 0) {
        size_t now = tile_rows(rows);

        if (s.next_rows > 0) fetch(&s, now, rows);
        tiles[partial][now - 1][vecs - 1](&s);
        s.a += s.a_tile > 0 ? s.a_tile : now * s.a_row;
        s.c += now * s.c_row;
        rows -= now;
    }
}

#endif
