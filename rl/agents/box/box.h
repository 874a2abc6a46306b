/* SPDX-License-Identifier: Apache-2.0 */
/* A box of bounds, and the map between numbers within the bounds and numbers from -1 to 1. */
#ifndef RP_AGENTS_BOX_BOX_H
#define RP_AGENTS_BOX_BOX_H

#include "reprise/rl/nn.h"

/* A number without finite bounds has middle 0 and half 1: the map leaves it as it is. */
typedef struct rp_box {
    rp_allocator alloc;
    size_t size;             /* numbers of a row */
    rp_real *middle;         /* of the bounds */
    rp_real *half;           /* from the middle to a bound */
    rp_real *inverse;        /* 1 / half */
    const float *low, *high; /* `size` each, or NULL */
} rp_box;

/* Makes a box. `bounds` is the number of entries of `low` and `high`: 0 (no bounds), 1 (for all
 * numbers) or `size`. Borrows both arrays until the box is freed. Returns owned.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new(const rp_allocator *alloc, size_t size, const float *low,
                                  const float *high, size_t bounds, rp_box **out,
                                  rp_error *err);
void rp_box_free(rp_box *box); /* NULL is fine */

/* Writes `rows` rows of `size` numbers as numbers from -1 to 1. Rows of `out` begin `stride`
 * numbers apart. */
void rp_box_to_unit(const rp_box *box, const float *in, size_t rows, rp_real *out,
                    size_t stride);

/* The reverse; `in` and `out` have `size` numbers a row. Results are within the bounds. */
void rp_box_from_unit(const rp_box *box, const rp_real *in, size_t rows, float *out);

#endif
