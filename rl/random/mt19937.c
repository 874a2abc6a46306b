/* SPDX-License-Identifier: Apache-2.0 */
/* The Mersenne twister and NumPy's legacy functions on it.
 *
 * Invariant:
 *   M1  0 <= position <= 624; the words of `key` from `position` on were not used yet.
 *
 * The recurrence (Matsumoto and Nishimura 1998): word k+624 is word k+397, exclusive or a
 * matrix times the top bit of word k and the lower bits of word k+1. It runs in place over the
 * whole key once all words were used. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "reprise/rl/random.h"

enum { WORDS = RP_MT19937_WORDS, SHIFT = 397 };

void rp_mt19937_seed(rp_mt19937 *rng, uint32_t seed)
{
    memset(rng, 0, sizeof *rng);
    rng->key[0] = seed;
    for (uint32_t i = 1; i < WORDS; i++) {
        uint32_t last = rng->key[i - 1];
        rng->key[i] = 1812433253u * (last ^ last >> 30) + i;
    }
    rng->position = WORDS;
    assert(rp_mt19937_check(rng));
}

static void renew(rp_mt19937 *rng)
{
    uint32_t *key = rng->key;

    for (size_t i = 0; i < WORDS; i++) {
        uint32_t joined = (key[i] & 0x80000000u) | (key[(i + 1) % WORDS] & 0x7fffffffu);
        uint32_t matrix = (joined & 1) != 0 ? 0x9908b0dfu : 0;
        key[i] = key[(i + SHIFT) % WORDS] ^ joined >> 1 ^ matrix;
    }
    rng->position = 0;
}

uint32_t rp_mt19937_next(rp_mt19937 *rng)
{
    uint32_t word;

    assert(rng->position <= WORDS); /* M1 */
    if (rng->position == WORDS) renew(rng);
    word = rng->key[rng->position++];
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
}

double rp_mt19937_double(rp_mt19937 *rng)
{
    uint32_t high = rp_mt19937_next(rng) >> 5; /* 27 bits */
    uint32_t low = rp_mt19937_next(rng) >> 6;  /* 26 bits */

    return (high * 0x1p26 + low) / 0x1p53;
}

double rp_mt19937_uniform(rp_mt19937 *rng, double low, double high)
{
    return low + (high - low) * rp_mt19937_double(rng);
}

uint32_t rp_mt19937_randint(rp_mt19937 *rng, uint32_t bound)
{
    uint32_t most = bound - 1, mask = most, drawn;

    assert(bound > 0);
    if (most == 0) return 0;
    for (unsigned shift = 1; shift < 32; shift *= 2) mask |= mask >> shift;
    do {
        drawn = rp_mt19937_next(rng) & mask;
    } while (drawn > most);
    return drawn;
}

double rp_mt19937_normal(rp_mt19937 *rng)
{
    double x, y, square, factor;

    if (rng->has_normal) {
        double kept = rng->normal;
        rng->has_normal = 0;
        rng->normal = 0;
        return kept;
    }
    do {
        x = 2.0 * rp_mt19937_double(rng) - 1.0;
        y = 2.0 * rp_mt19937_double(rng) - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square == 0.0);
    factor = sqrt(-2.0 * log(square) / square);
    rng->normal = factor * x;
    rng->has_normal = 1;
    return factor * y;
}

bool rp_mt19937_check(const rp_mt19937 *rng)
{
    return rng->position <= WORDS && rng->has_normal <= 1 && isfinite(rng->normal); /* M1 */
}
