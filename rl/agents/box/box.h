/* SPDX-License-Identifier: Apache-2.0 */
/* A box: a lower and an upper bound for each component of a vector, such as an action or an
 * observation (Gymnasium's Box space). A linear map takes each component from its bounds to
 * [-1, 1], and back. */
#ifndef RP_AGENTS_BOX_BOX_H
#define RP_AGENTS_BOX_BOX_H

#include "reprise/rl/nn.h"

/* The linear map is unit = (x - middle) / half. A component without finite bounds has middle 0
 * and half 1, so the map does not change it. */
typedef struct rp_box {
    rp_allocator alloc;
    size_t size;             /* components of a vector */
    rp_real *middle;         /* per component: (low + high) / 2 */
    rp_real *half;           /* per component: (high - low) / 2 */
    rp_real *inverse;        /* per component: 1 / half */
    const float *low, *high; /* the bounds, `size` entries each. NULL if the argument `bounds`
                                of rp_box_new() was not `size` */
} rp_box;

/* Makes a box. `bounds` is the number of entries in `low` and in `high`: 0 (no bounds), 1 (one
 * pair of bounds for all components) or `size`. Borrows both arrays until the box is freed.
 * Returns owned.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new(const rp_allocator *alloc, size_t size, const float *low,
                                  const float *high, size_t bounds, rp_box **out,
                                  rp_error *err);
void rp_box_free(rp_box *box); /* NULL is fine */

/* Maps `rows` vectors from their bounds to [-1, 1]. In `in`, the vectors follow each other
 * without gaps. In `out`, the vectors begin `stride` numbers apart. */
void rp_box_to_unit(const rp_box *box, const float *in, size_t rows, rp_real *out,
                    size_t stride);

/* Maps `rows` vectors from [-1, 1] to their bounds, and clips the results to the bounds. In
 * `in` and `out`, the vectors follow each other without gaps. In rp_box_new(), `bounds` must
 * have been `size`. */
void rp_box_from_unit(const rp_box *box, const rp_real *in, size_t rows, float *out);

#endif
