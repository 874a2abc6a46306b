/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product with vector instructions (SIMD). gemm_avx2.c and gemm_avx512.c include
 * this header after they have defined:
 *
 *   LANES          numbers in a vector register
 *   MOST_ROWS      most rows of a tile, 4 or 6
 *   MOST_VECS      most vectors in a row of a tile, 2 or 4
 *   ROW_VECS       vectors in a tile of one row
 *   vec, mask      types of a vector, and of a selection of its lanes
 *   mask_of(n)     selects the first n lanes, 0 <= n <= LANES
 *   keep           makes the compiler hold a vector in a register
 *   load, load_some, store, store_some, spread, fused, add, zero, positive
 *                  operations on vectors: load_some and store_some access only the selected
 *                  lanes, spread copies a number to all lanes, fused(a, b, sum) is a b + sum,
 *                  and positive(x) is max(x, 0)
 *   sum_lanes      sums the lanes of each of four vectors, by adding the upper half of the
 *                  lanes to the lower half until one number is left; the four sums are the
 *                  first four lanes of the result
 *   turn           transposes a block of LANES x LANES numbers
 *
 * The product is c = a b, where a is m x k, b is k x n and c is m x n (gemm.h). A tile is a
 * block of c of up to MOST_ROWS rows and MOST_VECS vectors. Its sums stay in registers while
 * the loop over k runs. A strip is a column of tiles, and TILE_WIDTH is its width.
 *
 * b is cut into panels, which are as wide as a tile and PANEL_K rows deep. "Packing" copies a
 * panel to contiguous memory, so that the panel stays in the level 1 cache while all rows of a
 * block of a are multiplied by it. During this time the next panel is prefetched. A transposed
 * a is also packed: BLOCK_ROWS rows at a time, in the order in which the tiles read them. If a
 * has few rows or b is small, b is not packed. The rows of a are processed in blocks that stay
 * in the level 2 cache.
 *
 *         k            n                       n
 *     +-------+    +--[===]--+           +----[###]---+
 *   m |=======|  k |  [===]  |   =>    m |    [###]   |     # a tile of c
 *     +-------+    +--[===]--+           +------------+     = its row of a and its panel of b
 *
 * If c has few columns, a tile would leave most lanes (the positions in a vector) idle. For
 * such products, gemm_narrow.h uses the lanes for different terms of one sum. If is_narrow() of
 * gemm_narrow.h returns false and c has at least LANES rows, run_turned() computes the
 * transposed product, whose rows are the columns of c.
 *
 * Invariants:
 *   G1  outside gemm_narrow.h, an element of c starts as its old value or 0, and its terms are
 *       added in ascending order of k, each by one fused multiply-add. Between panels the sum
 *       is stored and reloaded unchanged. So a row of c does not depend on the number of rows;
 *   G2  bias and activation are applied once, after the last panel;
 *   G3  no column beyond n is read from b, bias or c, or written to c. */
#ifndef RP_NN_GEMM_LANES_H
#define RP_NN_GEMM_LANES_H

#include <assert.h>

#include "nn/activation.h"
#include "nn/gemm.h"

#define INLINE static inline __attribute__((always_inline))

#include "nn/gemm_narrow.h"
#include "nn/gemm_tiles.h"

/* Must come after gemm_tiles.h. */
#include "nn/gemm_pack.h"

enum {
    MOST_BLOCK_ROWS = 384,     /* rows of a block of a, which stays in the level 2 cache */
    TURNED_N = LANES / 2,      /* a c of at most this many columns is computed transposed */
    PACK_STRIPS = 8,           /* with fewer strips, packing a takes more time than it saves */
    PACK_ROWS = 2 * MOST_ROWS, /* with fewer rows of a, packing b takes more time than it
                                  saves */
    SMALL_B = 4096,            /* a b of up to this many numbers stays in the level 1 cache */
    LARGE_B = 32768,           /* a larger b does not stay in the level 2 cache */
};

/* How a product is cut into blocks and panels, and which matrices are packed. */
typedef struct packing {
    bool pack_a, pack_b;
    bool fetch;   /* true: prefetch panels of b, because b is larger than the level 2 cache */
    size_t depth; /* rows of a panel of b */
    size_t rows;  /* rows of a block of a */
} packing;

static packing packing_of(const rp_gemm *g)
{
    packing plan = {
        .pack_a = g->a_col != 1 && g->b_col == 1 && g->m > MOST_ROWS &&
                  g->n >= PACK_STRIPS * TILE_WIDTH,
        .pack_b = g->b_col != 1 ||
                  (g->m >= PACK_ROWS && g->b_row > TILE_WIDTH && g->k * g->b_row > SMALL_B),
    };

    plan.fetch = plan.pack_b && g->k * g->n > LARGE_B;
    plan.depth = plan.pack_b || g->a_col != 1 ? PANEL_K : g->k;
    plan.rows = plan.pack_a ? BLOCK_ROWS : g->m < 2 * MOST_BLOCK_ROWS ? g->m : MOST_BLOCK_ROWS;
    return plan;
}

/* The part of a product that is being computed: rows i .. i + rows - 1, and terms p .. p + k -
 * 1 of each sum. */
typedef struct place {
    size_t i, rows;
    size_t p, k;
} place;

/* Sets the memory that the tiles of the strip at column j prefetch. If b is transposed, it is
 * the next panel, which also comes next in memory. Otherwise all panels that begin at the next
 * p lie side by side in memory, and each strip prefetches its part of their rows. */
static void fetch_next(const rp_gemm *g, const place *at, size_t j, strip *s)
{
    size_t p = at->p + at->k, strips = (g->n + TILE_WIDTH - 1) / TILE_WIDTH, share;

    if (g->b_col != 1) {
        if (p == g->k) {
            p = 0;
            j += TILE_WIDTH;
        }
        if (j >= g->n) return;
        s->next = g->b + p + j * g->b_col;
        s->next_row = g->b_col;
        s->next_rows = g->n - j < TILE_WIDTH ? g->n - j : TILE_WIDTH;
        s->next_length = g->k - p < PANEL_K ? g->k - p : PANEL_K;
        return;
    }
    share = (PANEL_K + strips - 1) / strips;
    p += j / TILE_WIDTH * share;
    if (p >= g->k) return;
    s->next = g->b + p * g->b_row;
    s->next_row = g->b_row;
    s->next_rows = g->k - p < share ? g->k - p : share;
    s->next_length = g->n;
}

/* Computes one strip of a block, for one panel. */
static void run_panel(const rp_gemm *g, const packing *plan, const place *at,
                      const float *block, size_t j)
{
    _Alignas(64) float panel[PANEL_K * TILE_WIDTH];
    size_t width = g->n - j < TILE_WIDTH ? g->n - j : TILE_WIDTH;
    const float *b = g->b + at->p * g->b_row + j * g->b_col;
    bool is_last = at->p + at->k == g->k;
    strip s = {
        .a = plan->pack_a ? block : g->a + at->i * g->a_row + at->p * g->a_col,
        .b = plan->pack_b ? panel : b,
        .a_row = plan->pack_a ? 1 : g->a_row,
        .a_col = plan->pack_a ? MOST_ROWS : g->a_col,
        .a_tile = plan->pack_a ? PANEL_K * MOST_ROWS : 0,
        .b_row = plan->pack_b ? TILE_WIDTH : g->b_row,
        .k = at->k,
        .c = g->c + at->i * g->c_row + j,
        .c_row = g->c_row,
        .bias = is_last && g->bias != NULL ? g->bias + j : NULL, /* G2 */
        .resume = g->accumulate || at->p > 0,
        .relu = is_last && g->activation == RP_RELU,
    };

    if (plan->pack_b) pack(g, b, at->k, width, panel);
    if (plan->fetch) fetch_next(g, at, j, &s);
    run_strip(s, at->rows, width);
}

/* Makes `at` describe the panels that begin at row p of b. */
static void set_panel(const rp_gemm *g, const packing *plan, place *at, size_t p)
{
    at->p = p;
    at->k = g->k - p < plan->depth ? g->k - p : plan->depth;
}

/* Computes all strips of a block. If b is not transposed, uses only the panel at row at.p for
 * each strip. If b is transposed, uses all panels of a strip before it begins the next strip,
 * so that b is read in the order of memory. */
static void run_block(const rp_gemm *g, const packing *plan, place at)
{
    _Alignas(64) float block[PANEL_K * (BLOCK_ROWS + MOST_ROWS)];
    size_t end = g->b_col == 1 ? at.p + at.k : g->k;

    if (plan->pack_a) pack_rows(g->a + at.i + at.p * g->a_col, g->a_col, at.k, at.rows, block);
    for (size_t j = 0; j < g->n; j += TILE_WIDTH) {
        for (size_t p = at.p; p < end; p += plan->depth) {
            set_panel(g, plan, &at, p);
            run_panel(g, plan, &at, block, j);
        }
        if (g->b_col != 1) set_panel(g, plan, &at, 0);
    }
}

static void run_tiles(const rp_gemm *g)
{
    packing plan = packing_of(g);
    size_t depth = g->b_col == 1 ? plan.depth : g->k; /* if b is transposed, run_block() loops
                                                         over the panels */
    place at;

    for (size_t p = 0; p < g->k; p += depth) {
        set_panel(g, &plan, &at, p);
        for (at.i = 0; at.i < g->m; at.i += plan.rows) {
            at.rows = g->m - at.i < plan.rows ? g->m - at.i : plan.rows;
            run_block(g, &plan, at);
        }
    }
}

/* Computes a product of one row. */
static void run_row(const rp_gemm *g)
{
    strip s = {
        .a = g->a,
        .b = g->b,
        .a_row = g->a_row,
        .a_col = g->a_col,
        .b_row = g->b_row,
        .k = g->k,
        .c = g->c,
        .c_row = g->c_row,
        .bias = g->bias,
        .resume = g->accumulate,
        .relu = g->activation == RP_RELU,
    };

    for (size_t j = 0; j < g->n;) {
        size_t left = g->n - j, width = left < TILE_WIDTH ? left : TILE_WIDTH;

        if (left >= ROW_WIDTH) {
            width = ROW_WIDTH;
            tile_row(&s);
        } else {
            run_strip(s, 1, width);
        }
        j += width;
        s.b += width;
        s.c += width;
        if (s.bias != NULL) s.bias += width;
    }
}

/* Computes `count` <= TILE_WIDTH rows of c, from row `i` on, as the transposed product. c must
 * have at most TURNED_N columns. */
static void run_turned(const rp_gemm *g, size_t i, size_t count)
{
    _Alignas(64) float turned[TURNED_N * TILE_WIDTH];
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

    assert(g->n <= TURNED_N && count <= TILE_WIDTH);
    if (g->accumulate)
        for (size_t r = 0; r < count; r++)
            for (size_t j = 0; j < g->n; j++) turned[j * TILE_WIDTH + r] = c[r * g->c_row + j];
    run_tiles(&t);
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
    if (is_narrow(g)) {
        run_narrow(g);
    } else if (g->n <= TURNED_N && g->m >= LANES) {
        for (size_t i = 0; i < g->m; i += step)
            run_turned(g, i, g->m - i < step ? g->m - i : step);
    } else if (g->m == 1 && g->b_col == 1) {
        run_row(g);
    } else {
        run_tiles(g);
    }
    if (g->activation == RP_LINEAR || g->activation == RP_RELU) return;
    for (size_t i = 0; i < g->m; i++) rp_activate(g->activation, g->c + i * g->c_row, g->n);
}

#endif
