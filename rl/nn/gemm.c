/* SPDX-License-Identifier: Apache-2.0 */
/* Selection of the matrix product, and the one in plain C.
 *
 * The plain product adds a row of b, scaled, to a row of c: the inner loop is contiguous, and
 * the compiler makes vectors of it on every machine. */
#include "nn/gemm.h"

#include <assert.h>
#include <string.h>

#include "nn/activation.h"

static bool is_supported(const char *name)
{
#if defined(RP_GEMM_X86)
    __builtin_cpu_init();
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return strcmp(name, "plain") == 0 || strcmp(name, "cblas") == 0;
}

/* The fastest first. */
static const rp_gemm_ops *const implementations[] = {
#if defined(RP_GEMM_X86)
    &rp_gemm_avx512,
    &rp_gemm_avx2,
#endif
#if defined(RP_HAVE_CBLAS)
    &rp_gemm_cblas,
#endif
    &rp_gemm_plain,
};

enum { COUNT = sizeof implementations / sizeof implementations[0] };

static const rp_gemm_ops *prepared(const rp_gemm_ops *ops)
{
    if (ops->prepare != NULL) ops->prepare();
    return ops;
}

const rp_gemm_ops *rp_gemm_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(implementations[i]->name, name) == 0)
            return is_supported(name) ? prepared(implementations[i]) : NULL;
    return NULL;
}

const rp_gemm_ops *rp_gemm_best(void)
{
    for (size_t i = 0; i < COUNT; i++)
        if (is_supported(implementations[i]->name)) return prepared(implementations[i]);
    return &rp_gemm_plain;
}

void rp_gemm_check(const rp_gemm *g)
{
    assert(g->m >= 1 && g->n >= 1 && g->k >= 1);
    assert(g->a_row == 1 || g->a_col == 1);
    assert(g->b_row == 1 || g->b_col == 1);
    assert(g->c_row >= g->n);
    assert(!g->accumulate || (g->bias == NULL && g->activation == RP_LINEAR));
    (void)g;
}

void rp_gemm_finish(const rp_gemm *g)
{
    if (g->bias == NULL && g->activation == RP_LINEAR) return;
    for (size_t i = 0; i < g->m; i++) {
        rp_real *c = g->c + i * g->c_row;

        if (g->bias != NULL)
            for (size_t j = 0; j < g->n; j++) c[j] += g->bias[j];
        rp_activate(g->activation, c, g->n);
    }
}

enum { BLOCK = 64 }; /* rows and columns of a transposed block of b */

/* Adds a times a block of b, `k` x `n` from row p, to columns of c that begin at `c`. */
static void add_block(const rp_gemm *g, size_t p, size_t k, const rp_real *b, size_t b_row,
                      size_t n, rp_real *c_first)
{
    for (size_t i = 0; i < g->m; i++) {
        rp_real *restrict c = c_first + i * g->c_row;

        for (size_t q = 0; q < k; q++) {
            rp_real factor = g->a[i * g->a_row + (p + q) * g->a_col];
            const rp_real *restrict row = b + q * b_row;
            for (size_t j = 0; j < n; j++) c[j] += factor * row[j];
        }
    }
}

/* Adds the product with a transposed b, block by block. */
static void add_turned(const rp_gemm *g)
{
    rp_real block[BLOCK * BLOCK];

    for (size_t j = 0; j < g->n; j += BLOCK) {
        size_t n = g->n - j < BLOCK ? g->n - j : BLOCK;

        for (size_t p = 0; p < g->k; p += BLOCK) {
            size_t k = g->k - p < BLOCK ? g->k - p : BLOCK;

            for (size_t c = 0; c < n; c++)
                for (size_t q = 0; q < k; q++)
                    block[q * BLOCK + c] = g->b[(p + q) * g->b_row + (j + c) * g->b_col];
            add_block(g, p, k, block, BLOCK, n, g->c + j);
        }
    }
}

static void run(const rp_gemm *g)
{
    rp_gemm_check(g);
    if (!g->accumulate)
        for (size_t i = 0; i < g->m; i++) memset(g->c + i * g->c_row, 0, g->n * sizeof *g->c);
    if (g->b_col == 1) {
        add_block(g, 0, g->k, g->b, g->b_row, g->n, g->c);
    } else {
        add_turned(g);
    }
    rp_gemm_finish(g);
}

const rp_gemm_ops rp_gemm_plain = {.name = "plain", .run = run};
