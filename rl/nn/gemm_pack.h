/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: copies parts of a and b to contiguous memory, in the order in which the tiles read
 * them. Part of gemm_lanes.h, which explains the terms and the names that are used here without
 * a definition. */
#ifndef RP_NN_GEMM_PACK_H
#define RP_NN_GEMM_PACK_H

#include <assert.h>
#include <string.h>

#include "nn/gemm.h"

enum {
    PANEL_K = 128,               /* most rows of a panel of b */
    BLOCK_ROWS = 16 * MOST_ROWS, /* most rows of a packed block of the transposed matrix `a` */
};

/* Copies a panel of b, `k` rows of `width` numbers, to rows of TILE_WIDTH numbers. */
static void pack(const rp_gemm *g, const float *b, size_t k, size_t width, float *panel)
{
    assert(k <= PANEL_K && width <= TILE_WIDTH);
    if (g->b_col == 1 && width == TILE_WIDTH) {
        for (size_t p = 0; p < k; p++, b += g->b_row, panel += TILE_WIDTH)
            for (int v = 0; v < MOST_VECS; v++) store(panel + v * LANES, load(b + v * LANES));
        return;
    }
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

/* Copies a block of `rows` x `k` numbers of the transposed matrix `a`. The rows of each tile
 * are stored together, as `k` columns of MOST_ROWS numbers. */
static void pack_rows(const float *a, size_t a_col, size_t k, size_t rows, float *block)
{
    assert(k <= PANEL_K && rows <= BLOCK_ROWS);
    while (rows > 0) {
        size_t now = tile_rows(rows);

        if (now == MOST_ROWS)
            for (size_t p = 0; p < k; p++)
                memcpy(block + p * MOST_ROWS, a + p * a_col, MOST_ROWS * sizeof *a);
        else
            for (size_t p = 0; p < k; p++)
                for (size_t r = 0; r < now; r++) block[p * MOST_ROWS + r] = a[p * a_col + r];
        a += now;
        block += PANEL_K * MOST_ROWS;
        rows -= now;
    }
}

#endif
