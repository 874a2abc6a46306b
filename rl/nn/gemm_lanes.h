/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product in vectors. The file that includes this header has defined:
 *
 *   LANES          numbers in a vector
 *   MOST_ROWS      rows of a tile, 4 or 6; MOST_ROWS * MOST_VECS sums stay in registers
 *   MOST_VECS      vectors in a row of a tile, 2 or 4
 *   vec, mask      types; mask_of(n) selects the first n lanes, 1 .. LANES
 *   load, load_some, store, store_some, spread, fused, add, zero, positive
 *   turn           transposes a block of LANES x LANES
 *
 * A tile of c, some rows of some vectors, is held in registers while k goes by. b is cut into
 * panels that are as wide as a tile and PANEL_K deep, and copied so that a panel is contiguous
 * and stays in the cache of level 1 while all rows of a go over it. A product of a few rows, or
 * of a b that is no wider than a tile, reads b in place. If c has a few columns only, most
 * lanes would be idle: then the transposed product is computed, whose rows are the columns of
 * c. That changes no bit.
 *
 *         k            n                       n
 *     +-------+    +--[===]--+           +----[###]---+
 *   m |=======|  k |  [===]  |   =>    m |    [###]   |     # a tile of c
 *     +-------+    +--[===]--+           +------------+     = its row of a and its panel of b
 *
 * Invariants:
 *   G1  a number of c is the sum over k in ascending order, one fused step each, begun with the
 *       old c or with 0; cutting k into panels stores and reloads it unchanged;
 *   G2  bias and activation are applied once, after the last panel;
 *   G3  nothing beyond n is read from b, bias or c, or written to c. */
#ifndef RP_NN_GEMM_LANES_H
#define RP_NN_GEMM_LANES_H

#include <assert.h>
#include <string.h>

#include "nn/activation.h"
#include "nn/gemm.h"

enum {
    TILE_WIDTH = MOST_VECS * LANES,
    PANEL_K = 128,
    NARROW = LANES / 2,        /* a c of at most so many columns is computed transposed */
    PACK_ROWS = 2 * MOST_ROWS, /* with fewer rows, copying b costs more than it saves */
};

/* One tile, or one column of tiles. */
typedef struct strip {
    const float *a, *b;
    size_t a_row, a_col, b_row, k;
    float *c;
    size_t c_row;
    const float *bias; /* NULL except with the last panel */
    bool resume;       /* begin with the old c */
    bool relu;
    size_t last; /* lanes of the last vector in use */
} strip;

#define INLINE static inline __attribute__((always_inline))

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

/* `rows`, `vecs` and `partial` are constants where this is called, so the loops over them
 * disappear and `sums` becomes registers. */
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

/* By partial, rows - 1, vectors - 1. */
static tile_fn *const tiles[2][MOST_ROWS][MOST_VECS] = {ALL_ROWS(tile), ALL_ROWS(edge)};

/* Copies a panel of b, `k` x `width`, to rows of TILE_WIDTH numbers. */
static void pack(const rp_gemm *g, const float *b, size_t k, size_t width, float *panel)
{
    assert(k <= PANEL_K && width <= TILE_WIDTH);
    if (g->b_col == 1) {
        for (size_t p = 0; p < k; p++)
            memcpy(panel + p * TILE_WIDTH, b + p * g->b_row, width * sizeof *b);
        return;
    }
    for (size_t j = 0; j < width; j += LANES) {
        const float *columns = b + j * g->b_col;
        size_t count = width - j < LANES ? width - j : LANES, p = 0;

        if (count == LANES)
            for (; p + LANES <= k; p += LANES)
                turn(columns + p, g->b_col, panel + p * TILE_WIDTH + j, TILE_WIDTH);
        for (size_t c = 0; c < count; c++)
            for (size_t q = p; q < k; q++)
                panel[q * TILE_WIDTH + j + c] = columns[c * g->b_col + q];
    }
}

/* Computes all rows of one column of tiles, for one panel. */
static void run_strip(const rp_gemm *g, strip s, size_t width)
{
    size_t vecs = (width + LANES - 1) / LANES;
    bool partial = width % LANES != 0;

    assert(vecs >= 1 && vecs <= MOST_VECS);
    s.last = width - (vecs - 1) * LANES; /* G3 */
    for (size_t i = 0; i < g->m;) {
        size_t rows = g->m - i < MOST_ROWS ? g->m - i : MOST_ROWS;

        tiles[partial][rows - 1][vecs - 1](&s);
        s.a += rows * s.a_row;
        s.c += rows * s.c_row;
        i += rows;
    }
}

/* Computes one column of tiles. */
static void run_column(const rp_gemm *g, size_t j, size_t width)
{
    _Alignas(64) float panel[PANEL_K * TILE_WIDTH];
    bool packed = g->b_col != 1 || (g->m >= PACK_ROWS && g->b_row > TILE_WIDTH);
    size_t depth = packed ? PANEL_K : g->k;

    for (size_t p = 0; p < g->k; p += depth) {
        size_t k = g->k - p < depth ? g->k - p : depth;
        bool is_last = p + k == g->k;
        const float *b = g->b + p * g->b_row + j * g->b_col;
        strip s = {
            .a = g->a + p * g->a_col,
            .b = packed ? panel : b,
            .a_row = g->a_row,
            .a_col = g->a_col,
            .b_row = packed ? TILE_WIDTH : g->b_row,
            .k = k,
            .c = g->c + j,
            .c_row = g->c_row,
            .bias = is_last && g->bias != NULL ? g->bias + j : NULL, /* G2 */
            .resume = g->accumulate || p > 0,
            .relu = is_last && g->activation == RP_RELU,
        };

        if (packed) pack(g, b, k, width, panel);
        run_strip(g, s, width);
    }
}

/* Computes `count` <= TILE_WIDTH rows of a narrow c, from row `i`, through the transposed
 * product. */
static void run_narrow(const rp_gemm *g, size_t i, size_t count)
{
    _Alignas(64) float turned[NARROW * TILE_WIDTH];
    float *c = g->c + i * g->c_row;
    rp_gemm t = {
        .m = g->n,
        .n = count,
        .k = g->k,
        .a = g->b,
        .a_row = g->b_col,
        .a_col = g->b_row,
        .b = g->a + i * g->a_row,
        .b_row = g->a_col,
        .b_col = g->a_row,
        .c = turned,
        .c_row = TILE_WIDTH,
        .accumulate = g->accumulate,
    };

    assert(g->n <= NARROW && count <= TILE_WIDTH);
    if (g->accumulate)
        for (size_t r = 0; r < count; r++)
            for (size_t j = 0; j < g->n; j++) turned[j * TILE_WIDTH + r] = c[r * g->c_row + j];
    run_column(&t, 0, count);
    for (size_t r = 0; r < count; r++) {
        for (size_t j = 0; j < g->n; j++) {
            float x = turned[j * TILE_WIDTH + r];

            if (g->bias != NULL) x += g->bias[j];
            c[r * g->c_row + j] = g->activation == RP_RELU && x < 0 ? 0 : x;
        }
    }
}

static void run(const rp_gemm *g)
{
    size_t step = TILE_WIDTH;

    rp_gemm_check(g);
    if (g->n <= NARROW && g->m >= LANES) {
        for (size_t i = 0; i < g->m; i += step)
            run_narrow(g, i, g->m - i < step ? g->m - i : step);
    } else {
        for (size_t j = 0; j < g->n; j += step)
            run_column(g, j, g->n - j < step ? g->n - j : step);
    }
    if (g->activation == RP_LINEAR || g->activation == RP_RELU) return;
    for (size_t i = 0; i < g->m; i++) rp_activate(g->activation, g->c + i * g->c_row, g->n);
}

#endif
