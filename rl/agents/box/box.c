/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes: see box.h.
 *
 * Invariants:
 *   X1  half > 0 and finite, so the map can be reversed;
 *   X2  middle, half and inverse lie side by side in one block, middle first. */
#include "agents/box/box.h"

#include <assert.h>
#include <math.h>

#include "error/fail.h"

enum { ARRAYS = 3 };

static void set_bounds(rp_box *box, size_t i, double low, double high)
{
    bool has = isfinite(low) && isfinite(high) && high > low;

    box->middle[i] = (rp_real)(has ? (low + high) / 2 : 0);
    box->half[i] = (rp_real)(has ? (high - low) / 2 : 1);
    box->inverse[i] = 1 / box->half[i];
    assert(box->half[i] > 0 && isfinite(box->half[i])); /* X1 */
}

rp_status rp_box_new(const rp_allocator *alloc, size_t size, const float *low,
                     const float *high, size_t bounds, rp_box **out, rp_error *err)
{
    size_t bytes = sizeof(rp_box) + ARRAYS * size * sizeof(rp_real);
    rp_box *box = alloc->resize(alloc->ctx, NULL, 0, bytes);

    assert(bounds == 0 || bounds == 1 || bounds == size);
    if (box == NULL) return rp_rl_fail_memory(err, bytes);
    *box = (rp_box){.alloc = *alloc, .size = size, .middle = (rp_real *)(box + 1)};
    box->half = box->middle + size; /* X2 */
    box->inverse = box->half + size;
    if (bounds == size) {
        box->low = low;
        box->high = high;
    }
    for (size_t i = 0; i < size; i++) {
        size_t at = bounds == 1 ? 0 : i;

        set_bounds(box, i, bounds > 0 ? (double)low[at] : -INFINITY,
                   bounds > 0 ? (double)high[at] : INFINITY);
    }
    *out = box;
    return RP_OK;
}

void rp_box_free(rp_box *box)
{
    rp_allocator alloc;

    if (box == NULL) return;
    alloc = box->alloc;
    (void)alloc.resize(alloc.ctx, box, sizeof *box + ARRAYS * box->size * sizeof(rp_real), 0);
}

void rp_box_to_unit(const rp_box *box, const float *in, size_t rows, rp_real *out,
                    size_t stride)
{
    assert(stride >= box->size);
    for (size_t row = 0; row < rows; row++, in += box->size, out += stride)
        for (size_t i = 0; i < box->size; i++)
            out[i] = ((rp_real)in[i] - box->middle[i]) * box->inverse[i];
}

void rp_box_from_unit(const rp_box *box, const rp_real *in, size_t rows, float *out)
{
    assert(box->low != NULL && box->high != NULL);
    for (size_t row = 0; row < rows; row++, in += box->size, out += box->size)
        for (size_t i = 0; i < box->size; i++) {
            float x = (float)(box->middle[i] + box->half[i] * in[i]);

            out[i] = x < box->low[i] ? box->low[i] : x > box->high[i] ? box->high[i] : x;
        }
}
