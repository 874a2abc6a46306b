/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns, in the order of operations of Acme's NStepTransitionAdder: every product and
 * sum is rounded to float32.
 *
 * Invariants, between calls:
 *   N1  lengths[k] <= n and <= calls: the ring has the rows of the episode that items need;
 *   N2  item_count <= copies * n;
 *   N3  each item has 1 <= steps <= n. */
#include "adder/n_step.h"

#include <assert.h>
#include <string.h>

static const float *ring_row(const rp_n_step *s, const float *ring, size_t size, uint64_t call,
                             size_t copy)
{
    return ring + ((size_t)(call % s->n) * s->copies + copy) * size;
}

/* Computes the return and discount over the latest `steps` calls of a copy. */
static void accumulate(const rp_n_step *s, size_t copy, uint32_t steps, float *ret,
                       float *total)
{
    uint64_t call = s->calls - steps;
    const float *r = ring_row(s, s->rewards, s->reward_size, call, copy);
    const float *d = ring_row(s, s->discounts, s->discount_size, call, copy);

    assert(steps >= 1 && steps <= s->n && steps <= s->calls); /* N1, N3 */
    for (size_t k = 0; k < s->return_size; k++) ret[k] = r[s->reward_of[k]];
    for (size_t k = 0; k < s->discount_size; k++) total[k] = d[k];
    for (call++; call < s->calls; call++) {
        r = ring_row(s, s->rewards, s->reward_size, call, copy);
        d = ring_row(s, s->discounts, s->discount_size, call, copy);
        for (size_t k = 0; k < s->discount_size; k++) total[k] *= s->discount;
        for (size_t k = 0; k < s->return_size; k++)
            ret[k] += r[s->reward_of[k]] * total[s->discount_of[k]];
        for (size_t k = 0; k < s->discount_size; k++) total[k] *= d[k];
    }
}

static void list_item(rp_n_step *s, size_t copy, uint32_t steps, bool is_end)
{
    size_t at = s->item_count++;

    assert(at < s->copies * s->n); /* N2 */
    s->items[at] = (rp_n_step_item){(uint32_t)copy, steps, is_end};
    accumulate(s, copy, steps, s->returns + at * s->return_size,
               s->totals + at * s->discount_size);
}

void rp_n_step_add(rp_n_step *s, const double *rewards, const float *discounts,
                   const bool *ended)
{
    size_t at = (size_t)(s->calls % s->n) * s->copies;
    float *r = s->rewards + at * s->reward_size;

    for (size_t i = 0; i < s->copies * s->reward_size; i++) r[i] = (float)rewards[i];
    memcpy(s->discounts + at * s->discount_size, discounts,
           s->copies * s->discount_size * sizeof *discounts);
    s->calls++;
    s->item_count = 0;
    for (size_t k = 0; k < s->copies; k++) {
        if (s->lengths[k] < s->n) s->lengths[k]++;
        list_item(s, k, s->lengths[k], false);
        if (!ended[k]) continue;
        for (uint32_t steps = s->lengths[k] - 1; steps >= 1; steps--)
            list_item(s, k, steps, true);
        s->lengths[k] = 0;
    }
    assert(s->item_count >= s->copies);
}

void rp_n_step_broadcast(const rp_shape *part, const rp_shape *whole, uint32_t *element_of)
{
    size_t count = 1;

    assert(part->rank <= whole->rank);
    for (int32_t i = 0; i < whole->rank; i++) count *= (size_t)whole->dims[i];
    for (size_t k = 0; k < count; k++) {
        size_t rest = k, stride = 1, element = 0;
        for (int32_t i = 1; i <= part->rank; i++) { /* from the innermost dimension */
            size_t size = (size_t)whole->dims[whole->rank - i];
            size_t own = (size_t)part->dims[part->rank - i];
            assert(own == size || own == 1);
            if (own != 1) element += rest % size * stride;
            stride *= own;
            rest /= size;
        }
        element_of[k] = (uint32_t)element;
    }
}

void rp_n_step_forget(rp_n_step *s, size_t copy)
{
    assert(copy < s->copies);
    s->lengths[copy] = 0;
}

bool rp_n_step_verify(const rp_n_step *s)
{
    if (s->n < 1 || s->item_count > s->copies * s->n) return false; /* N2 */
    for (size_t k = 0; k < s->copies; k++)
        if (s->lengths[k] > s->n || s->lengths[k] > s->calls) return false; /* N1 */
    for (size_t i = 0; i < s->item_count; i++)
        if (s->items[i].steps < 1 || s->items[i].steps > s->n) return false; /* N3 */
    return true;
}
