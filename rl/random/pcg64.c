/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's SeedSequence and PCG64.
 *
 * Invariant:
 *   G1  the increment is odd, so that the generator has the full period of 2^128.
 *
 * SeedSequence (a design of O'Neill): a pool of four words takes up the entropy word by word;
 * each word is hashed with a multiplier that changes from word to word, and mixed into every
 * word of the pool. The output hashes the pool again, with other multipliers.
 *
 * PCG64 (O'Neill 2014): state = state * multiplier + increment (mod 2^128), then the output is
 * the exclusive or of the two halves, rotated by the top six bits. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "reprise/rl/random.h"

__extension__ typedef unsigned __int128 wide;

enum { POOL_WORDS = 4, PCG64_WORDS = 8 };

/* One hash in a row of hashes: `factor` changes from call to call by `step`. */
typedef struct hasher {
    uint32_t factor, step;
} hasher;

static uint32_t hash_word(hasher *h, uint32_t word)
{
    word ^= h->factor;
    h->factor *= h->step;
    word *= h->factor;
    return word ^ word >> 16;
}

static uint32_t mix_words(uint32_t x, uint32_t y)
{
    uint32_t mixed = 0xca01f9ddu * x - 0x4973f715u * y;

    return mixed ^ mixed >> 16;
}

void rp_seed_sequence(const uint32_t *entropy, size_t entropy_count, uint32_t *state,
                      size_t state_count)
{
    uint32_t pool[POOL_WORDS];
    hasher in = {.factor = 0x43b0d7e5u, .step = 0x931e8875u};
    hasher out = {.factor = 0x8b51f9ddu, .step = 0x58f38dedu};

    assert(entropy_count > 0);
    for (size_t i = 0; i < POOL_WORDS; i++)
        pool[i] = hash_word(&in, i < entropy_count ? entropy[i] : 0);
    for (size_t from = 0; from < POOL_WORDS; from++)
        for (size_t to = 0; to < POOL_WORDS; to++)
            if (from != to) pool[to] = mix_words(pool[to], hash_word(&in, pool[from]));
    for (size_t from = POOL_WORDS; from < entropy_count; from++)
        for (size_t to = 0; to < POOL_WORDS; to++)
            pool[to] = mix_words(pool[to], hash_word(&in, entropy[from]));
    for (size_t i = 0; i < state_count; i++) state[i] = hash_word(&out, pool[i % POOL_WORDS]);
}

static wide wide_of(uint64_t high, uint64_t low)
{
    return (wide)high << 64 | low;
}

static void advance(rp_pcg64 *rng)
{
    wide state = wide_of(rng->state_high, rng->state_low);

    state = state * wide_of(0x2360ed051fc65da4u, 0x4385df649fccf645u) +
            wide_of(rng->increment_high, rng->increment_low);
    rng->state_high = (uint64_t)(state >> 64);
    rng->state_low = (uint64_t)state;
}

void rp_pcg64_seed(rp_pcg64 *rng, uint64_t seed)
{
    uint32_t entropy[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t words[PCG64_WORDS];
    uint64_t w[PCG64_WORDS / 2];
    wide start, increment;

    rp_seed_sequence(entropy, entropy[1] != 0 ? 2 : 1, words, PCG64_WORDS);
    for (size_t i = 0; i < PCG64_WORDS / 2; i++)
        w[i] = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
    increment = wide_of(w[2], w[3]) << 1 | 1;
    memset(rng, 0, sizeof *rng);
    rng->increment_high = (uint64_t)(increment >> 64);
    rng->increment_low = (uint64_t)increment;
    advance(rng);
    start = wide_of(rng->state_high, rng->state_low) + wide_of(w[0], w[1]);
    rng->state_high = (uint64_t)(start >> 64);
    rng->state_low = (uint64_t)start;
    advance(rng);
    assert(rp_pcg64_check(rng));
}

uint64_t rp_pcg64_next(rp_pcg64 *rng)
{
    uint64_t mixed;
    unsigned turn;

    advance(rng);
    mixed = rng->state_high ^ rng->state_low;
    turn = (unsigned)(rng->state_high >> 58);
    return mixed >> turn | mixed << (-turn & 63);
}

/* 32 bits: the lower half of 64 first, then the upper one. */
static uint32_t next_word(rp_pcg64 *rng)
{
    uint64_t bits;

    if (rng->has_spare) {
        rng->has_spare = 0;
        return rng->spare;
    }
    bits = rp_pcg64_next(rng);
    rng->has_spare = 1;
    rng->spare = (uint32_t)(bits >> 32);
    return (uint32_t)bits;
}

double rp_pcg64_double(rp_pcg64 *rng)
{
    return (double)(rp_pcg64_next(rng) >> 11) * 0x1p-53;
}

double rp_pcg64_uniform(rp_pcg64 *rng, double low, double high)
{
    return low + (high - low) * rp_pcg64_double(rng);
}

/* Lemire (2019): the upper half of bits * bound, redrawn where the lower half shows that the
 * result would be favoured. */
static uint32_t bounded_32(rp_pcg64 *rng, uint32_t bound)
{
    uint32_t threshold = -bound % bound;
    uint64_t product;

    assert(bound > 0);
    do {
        product = (uint64_t)next_word(rng) * bound;
    } while ((uint32_t)product < threshold);
    return (uint32_t)(product >> 32);
}

static uint64_t bounded_64(rp_pcg64 *rng, uint64_t bound)
{
    uint64_t threshold = -bound % bound;
    wide product;

    assert(bound > 0);
    do {
        product = (wide)rp_pcg64_next(rng) * bound;
    } while ((uint64_t)product < threshold);
    return (uint64_t)(product >> 64);
}

int64_t rp_pcg64_integers(rp_pcg64 *rng, int64_t low, int64_t high)
{
    uint64_t range = (uint64_t)high - (uint64_t)low - 1; /* the largest result, less low */
    uint64_t above;

    assert(low < high);
    if (range == 0) {
        above = 0;
    } else if (range == UINT32_MAX) {
        above = next_word(rng);
    } else if (range < UINT32_MAX) {
        above = bounded_32(rng, (uint32_t)range + 1);
    } else {
        above = bounded_64(rng, range + 1);
    }
    return (int64_t)((uint64_t)low + above);
}

bool rp_pcg64_check(const rp_pcg64 *rng)
{
    return (rng->increment_low & 1) == 1 && rng->has_spare <= 1; /* G1 */
}

double rp_pcg64_normal(rp_pcg64 *rng)
{
    double radius = sqrt(-2 * log(1 - rp_pcg64_double(rng))); /* log of a number > 0 */

    return radius * cos(6.283185307179586 * rp_pcg64_double(rng));
}
