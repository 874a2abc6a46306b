/* SPDX-License-Identifier: Apache-2.0 */
/* A small random generator: xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64.
 * The same seed gives the same numbers on every machine. A copy of the struct continues with
 * the same numbers as the original. */
#ifndef RP_UTIL_RNG_H
#define RP_UTIL_RNG_H

#include <assert.h>
#include <stdint.h>

#include "util/wide.h"

typedef struct rp_rng {
    uint64_t s[4];
} rp_rng;

/* One step of splitmix64: advances `*state` and returns a well-mixed number. */
static inline uint64_t rp_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline void rp_rng_init(rp_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) rng->s[i] = rp_splitmix64(&seed);
}

static inline uint64_t rp_rng_next(rp_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t sum = s[0] + s[3];
    uint64_t result = ((sum << 23) | (sum >> 41)) + s[0];
    uint64_t t = s[1] << 17;

    assert((s[0] | s[1] | s[2] | s[3]) != 0); /* zero is a fixed point */
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Returns a random multiple of 2^-53, uniform in [0, 1). */
static inline double rp_rng_unit(rp_rng *rng)
{
    return (double)(rp_rng_next(rng) >> 11) * 0x1p-53;
}

/* Returns a random integer, uniform in [0, n), with n >= 1. The result is the high half of a 64
 * x 64 bit product, so its bias is below n / 2^64. */
static inline uint64_t rp_rng_below(rp_rng *rng, uint64_t n)
{
    assert(n >= 1);
    return (uint64_t)(((rp_u128)rp_rng_next(rng) * n) >> 64);
}

#endif
