/* SPDX-License-Identifier: Apache-2.0 */
#include "kept.h"

#include "sample_arrays.h"

#include <string.h>

enum { DECODED_BYTES = 16 << 20 };

size_t core_kept_fitting(const rp_sample *samples, size_t count)
{
    size_t total = 0;

    for (size_t i = 0; i < count; i++) {
        const rp_trajectory *trajectory = samples[i].trajectory;

        for (size_t c = 0; c < rp_trajectory_column_count(trajectory); c++) {
            size_t bytes = rp_trajectory_get_column(trajectory, c).bytes;

            if (bytes > DECODED_BYTES - total) return i > 0 ? i : 1;
            total += bytes;
        }
    }
    return count;
}

size_t core_kept_count(const core_kept *kept)
{
    assert(kept->first <= kept->count); /* K1 */
    return kept->count - kept->first;
}

int core_kept_add(core_kept *kept, rp_sample *samples, size_t count)
{
    size_t old = core_kept_count(kept);
    rp_sample *all;

    if (count == 0) return 0;
    all = PyMem_Malloc((old + count) * sizeof *all);
    if (all == NULL) {
        rp_samples_release(samples, count);
        PyErr_NoMemory();
        return -1;
    }
    if (old > 0) memcpy(all, kept->samples + kept->first, old * sizeof *all);
    memcpy(all + old, samples, count * sizeof *all);
    PyMem_Free(kept->samples);
    *kept = (core_kept){.samples = all, .count = old + count};
    return 0;
}

size_t core_kept_take(core_kept *kept, rp_sample *out, size_t limit, bool alike)
{
    size_t count = core_kept_count(kept);

    if (count == 0) return 0;
    count = core_kept_fitting(kept->samples + kept->first, count < limit ? count : limit);
    if (alike) count = core_samples_alike(kept->samples + kept->first, count);
    memcpy(out, kept->samples + kept->first, count * sizeof *out);
    kept->first += count;
    return count;
}

void core_kept_clear(core_kept *kept)
{
    size_t count = core_kept_count(kept);

    if (count > 0) rp_samples_release(kept->samples + kept->first, count);
    PyMem_Free(kept->samples);
    *kept = (core_kept){0};
}
