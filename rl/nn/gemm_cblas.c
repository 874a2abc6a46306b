/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix product over a CBLAS. Bias and activation are passes of their own.
 *
 * OpenBLAS has threads of its own, which would compete with the actors of the caller, so they
 * are turned off when this product is selected. That is a setting of the whole process. */
#include "nn/gemm.h"

#if defined(RP_HAVE_CBLAS)

#include <cblas.h>

#include <assert.h>
#include <limits.h>

static void prepare(void)
{
#if defined(OPENBLAS_CONFIG_H)
    openblas_set_num_threads(1);
#endif
}

/* The length of a row in memory. CBLAS wants at least the numbers of a row, also if there is
 * only one row, whose step is then arbitrary. */
static int leading(size_t step, size_t numbers)
{
    size_t length = step > numbers ? step : numbers;

    assert(length <= INT_MAX);
    return (int)length;
}

static void run(const rp_gemm *g)
{
    bool a_turned = g->a_col != 1, b_turned = g->b_col != 1;

    rp_gemm_check(g);
    assert(g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX);
    cblas_sgemm(CblasRowMajor, a_turned ? CblasTrans : CblasNoTrans,
                b_turned ? CblasTrans : CblasNoTrans, (int)g->m, (int)g->n, (int)g->k, 1.0F,
                g->a, a_turned ? leading(g->a_col, g->m) : leading(g->a_row, g->k), g->b,
                b_turned ? leading(g->b_col, g->k) : leading(g->b_row, g->n),
                g->accumulate ? 1.0F : 0.0F, g->c, leading(g->c_row, g->n));
    rp_gemm_finish(g);
}

const rp_gemm_ops rp_gemm_cblas = {.name = "cblas", .prepare = prepare, .run = run};

#endif
