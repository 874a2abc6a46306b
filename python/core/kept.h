/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that have arrived and are not decoded yet, in their order.
 *
 * Invariant K1: samples [first, count) are kept, with a reference each.
 *
 * All functions need the GIL. */
#ifndef REPRISE_PYTHON_KEPT_H
#define REPRISE_PYTHON_KEPT_H

#include "core.h"

typedef struct core_kept { /* zero-initialise it */
    rp_sample *samples;
    size_t first, count;
} core_kept;

/* Returns how many of the first samples are decoded together: their arrays have at most 16 MiB,
 * or belong to one sample. 0 if `count` is. */
size_t core_kept_fitting(const rp_sample *samples, size_t count);

size_t core_kept_count(const core_kept *kept);
/* Adds samples at the end and takes their references. Returns -1 with MemoryError after it has
 * released them. */
int core_kept_add(core_kept *kept, rp_sample *samples, size_t count);
/* Moves up to `limit` samples to `out`, no more than are decoded together, or with `alike` than
 * can be stacked. Returns their number. */
size_t core_kept_take(core_kept *kept, rp_sample *out, size_t limit, bool alike);
void core_kept_clear(core_kept *kept);

#endif
