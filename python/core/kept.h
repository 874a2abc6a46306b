/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of samples that have arrived and are not decoded yet, in order of arrival.
 *
 * Invariant K1: the elements samples[first] to samples[count - 1] are in the queue, and the
 * queue holds a reference to each.
 *
 * The caller must hold the GIL for all functions. */
#ifndef REPRISE_PYTHON_KEPT_H
#define REPRISE_PYTHON_KEPT_H

#include "core.h"

typedef struct core_kept { /* zero-initialise it */
    rp_sample *samples;
    size_t first, count;
} core_kept;

/* Returns how many of the samples, from the first on, the caller is allowed to decode together:
 * so many that their arrays have at most 16 MiB in total, but at least 1. Returns 0 if `count`
 * is 0. */
size_t core_kept_fitting(const rp_sample *samples, size_t count);

size_t core_kept_count(const core_kept *kept);
/* Adds samples at the end and takes over their references. On failure, releases the samples and
 * returns -1 with MemoryError. */
int core_kept_add(core_kept *kept, rp_sample *samples, size_t count);
/* Moves samples from the front of the queue to `out`: at most `limit`, and at most as many as
 * core_kept_fitting() allows. If `alike` is true, also at most as many as can be stacked
 * (core_samples_alike()). Returns the number of samples moved. */
size_t core_kept_take(core_kept *kept, rp_sample *out, size_t limit, bool alike);
void core_kept_clear(core_kept *kept);

#endif
