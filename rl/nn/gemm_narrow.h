/* SPDX-License-Identifier: Apache-2.0 */
/* Products whose result c has few columns, such as the values of a few actions. Part of
 * gemm_lanes.h, which explains the names that are used here without a definition.
 *
 * With few columns a tile would leave most lanes idle. Here the lanes hold different terms of
 * the same sum: lane l adds up the terms l, l + LANES, l + 2 LANES, and so on. At the end the
 * upper half of the lanes is added to the lower half, until one number is left. The old c is
 * added last.
 *
 * Vectors along k need contiguous columns of b. If the columns of b are not contiguous, they
 * are copied first. For a product of at most IN_PLACE_ROWS rows the copy takes more time than
 * it saves, so run_in_place() reads b in place. The other functions have one vector of sums for
 * each element of c, and lane l adds up the terms named above. run_in_place() has LANES vectors
 * instead: the vector sums[l] adds up these terms for all columns of c, one column in each
 * lane. With and without the copy, the same additions are made in the same order, so a row of c
 * does not depend on the number of rows. */
#ifndef RP_NN_GEMM_NARROW_H
#define RP_NN_GEMM_NARROW_H

#include <assert.h>

#include "nn/gemm.h"

/* Unrolls a loop with constant bounds. All loops over sums must be unrolled, so that the sums
 * stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum {
    NARROW_N = LANES / 2, /* most columns of c */
    NARROW_K = 1024,      /* most rows of b; bounds the size of the copy of b */
    NARROW_ROWS = 4,      /* rows computed at a time */
    NARROW_COLUMNS = 4,   /* columns computed at a time */
    IN_PLACE_ROWS = 4,    /* if c has at most this many rows, b is not copied */
};

/* Adds the old c and the bias to the sums of one row, applies ReLU, and stores them. */
INLINE void finish_sums(const rp_gemm *g, size_t i, size_t j, vec sums, mask some)
{
    float *c = g->c + i * g->c_row + j;

    if (g->accumulate) sums = add(sums, load_some(c, some));
    if (g->bias != NULL) sums = add(sums, load_some(g->bias + j, some));
    if (g->activation == RP_RELU) sums = positive(sums);
    store_some(c, some, sums);
}

/* Does the same as finish_sums(), but for the sums of NARROW_ROWS rows of one column. */
INLINE void finish_column(const rp_gemm *g, size_t i, size_t j, vec sums)
{
    float out[LANES], *c = g->c + i * g->c_row + j;
    size_t c_row = g->c_row;

    if (g->bias != NULL) sums = add(sums, spread(g->bias[j]));
    if (g->activation == RP_RELU) sums = positive(sums);
    store(out, sums);
    if (g->accumulate)
        for (size_t r = 0; r < NARROW_ROWS; r++) out[r] += c[r * c_row];
    for (size_t r = 0; r < NARROW_ROWS; r++) c[r * c_row] = out[r];
}

/* A block of c to compute: it begins at row i and column j, and has up to NARROW_COLUMNS
 * columns. `b` points to column j of b, and columns begin `b_col` numbers apart. */
typedef struct dots {
    const rp_gemm *g;
    size_t i, j;
    const float *b;
    size_t b_col;
} dots;

/* Where to load the next LANES terms of each sum: `a` points into the first row of the block,
 * `b` into its first column. Rows begin `a_row` numbers apart, columns `b_col`. */
typedef struct lanes_of_k {
    const float *a, *b;
    size_t a_row, b_col;
    const mask *some; /* the lanes in use; NULL: all */
} lanes_of_k;

INLINE vec load_lanes(const float *from, const mask *some)
{
    return some != NULL ? load_some(from, *some) : load(from);
}

/* Adds to each sum the product of one vector of a row and one vector of a column. */
INLINE void add_products(vec sums[][NARROW_COLUMNS], lanes_of_k at, int rows, int columns)
{
    vec column[NARROW_COLUMNS];

    UNROLL
    for (int c = 0; c < columns; c++) {
        column[c] = load_lanes(at.b + (size_t)c * at.b_col, at.some);
        keep(column[c]);
    }
    UNROLL
    for (int r = 0; r < rows; r++) {
        const float *from = at.a + (size_t)r * at.a_row;
        vec x = load_lanes(from, at.some);

        keep(x);
        if (at.some == NULL) __builtin_prefetch(from + (size_t)rows * at.a_row);
        UNROLL
        for (int c = 0; c < columns; c++) sums[r][c] = fused(x, column[c], sums[r][c]);
    }
}

/* Computes one block of c. Callers must pass constants as `rows` and `columns`. */
INLINE void sum_dots(const dots *d, int rows, int columns)
{
    vec sums[NARROW_ROWS][NARROW_COLUMNS];
    lanes_of_k at = {
        .a = d->g->a + d->i * d->g->a_row, .b = d->b, .a_row = d->g->a_row, .b_col = d->b_col};
    size_t left = d->g->k;

    UNROLL
    for (int r = 0; r < rows; r++) UNROLL
    for (int c = 0; c < NARROW_COLUMNS; c++) sums[r][c] = zero();
    for (; left >= LANES; left -= LANES, at.a += LANES, at.b += LANES)
        add_products(sums, at, rows, columns);
    if (left > 0) {
        mask some = mask_of(left);

        at.some = &some;
        add_products(sums, at, rows, columns);
    }
    if (rows == 1) {
        finish_sums(d->g, d->i, d->j, sum_lanes(sums[0][0], sums[0][1], sums[0][2], sums[0][3]),
                    mask_of((size_t)columns));
        return;
    }
    UNROLL
    for (int c = 0; c < columns; c++)
        finish_column(d->g, d->i, d->j + (size_t)c,
                      sum_lanes(sums[0][c], sums[1][c], sums[2][c], sums[3][c]));
}

#define DOTS(rows, columns)                                                                    \
    static void dots_##rows##_##columns(const dots *d)                                         \
    {                                                                                          \
        sum_dots(d, rows, columns);                                                            \
    }

DOTS(1, 1)
DOTS(1, 2)
DOTS(1, 3)
DOTS(1, 4)
DOTS(4, 1)
DOTS(4, 2)
DOTS(4, 3)
DOTS(4, 4)

typedef void dots_fn(const dots *d);

/* The functions for 1 row, then those for NARROW_ROWS rows. The second index is the number of
 * columns - 1. */
static dots_fn *const all_dots[2][NARROW_COLUMNS] = {{dots_1_1, dots_1_2, dots_1_3, dots_1_4},
                                                     {dots_4_1, dots_4_2, dots_4_3, dots_4_4}};

static void run_dots(const rp_gemm *g, const float *b, size_t b_col)
{
    dots d = {.g = g, .b_col = b_col};

    while (d.i < g->m) {
        bool many = g->m - d.i >= NARROW_ROWS;

        for (d.j = 0; d.j < g->n; d.j += NARROW_COLUMNS) {
            size_t left = g->n - d.j, columns = left < NARROW_COLUMNS ? left : NARROW_COLUMNS;

            d.b = b + d.j * b_col;
            all_dots[many][columns - 1](&d);
        }
        d.i += many ? NARROW_ROWS : 1;
    }
}

/* Computes row i of c, without a copy of b. */
static void run_in_place(const rp_gemm *g, size_t i)
{
    const float *a = g->a + i * g->a_row, *b = g->b;
    mask some = mask_of(g->n);
    vec sums[LANES];
    size_t p = 0;

    for (int l = 0; l < LANES; l++) sums[l] = zero();
    for (; p + LANES <= g->k; p += LANES)
        for (int l = 0; l < LANES; l++, b += g->b_row)
            sums[l] = fused(spread(a[p + (size_t)l]), load_some(b, some), sums[l]);
    for (int l = 0; l < LANES; l++, b += g->b_row) {
        if (p + (size_t)l >= g->k) break;
        sums[l] = fused(spread(a[p + (size_t)l]), load_some(b, some), sums[l]);
    }
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sums[l] = add(sums[l], sums[l + half]);
    finish_sums(g, i, 0, sums[0], some);
}

/* Returns true if run_narrow() can compute the product. The condition must not use the number
 * of rows m, because the bits of a row of c must not depend on m. */
static bool is_narrow(const rp_gemm *g)
{
    return g->n <= NARROW_N && g->k <= NARROW_K && g->a_col == 1;
}

static void run_narrow(const rp_gemm *g)
{
    _Alignas(64) float columns[NARROW_N * NARROW_K];

    assert(is_narrow(g));
    if (g->b_row == 1) {
        run_dots(g, g->b, g->b_col == 1 ? g->k : g->b_col);
    } else if (g->m <= IN_PLACE_ROWS) {
        for (size_t i = 0; i < g->m; i++) run_in_place(g, i);
    } else {
        for (size_t p = 0; p < g->k; p++)
            for (size_t j = 0; j < g->n; j++) columns[j * g->k + p] = g->b[p * g->b_row + j];
        run_dots(g, columns, g->k);
    }
}

#endif
