/* SPDX-License-Identifier: Apache-2.0 */
/* Noise of actors: see noise.h. */
#include "agents/box/noise.h"

#include <assert.h>
#include <math.h>

void rp_noise_begin(rp_noise *n, size_t copy)
{
    assert(copy < n->copies);
    for (size_t i = 0; n->memory > 0 && i < n->width; i++)
        n->now[copy * n->width + i] = n->deviation * rp_pcg64_normal(&n->rng);
}

void rp_noise_draw(rp_noise *n)
{
    double fresh = n->deviation * sqrt(1 - n->memory * n->memory);

    assert(n->memory >= 0 && n->memory < 1);
    for (size_t i = 0; i < n->copies * n->width; i++)
        n->now[i] = n->memory * n->now[i] + fresh * rp_pcg64_normal(&n->rng);
}

bool rp_noise_check(const rp_noise *n)
{
    bool good = rp_pcg64_check(&n->rng);

    for (size_t i = 0; i < n->copies * n->width; i++) good = good && isfinite(n->now[i]);
    return good;
}
