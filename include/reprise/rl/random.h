/* SPDX-License-Identifier: Apache-2.0 */
/* The random generators of NumPy, equal bit by bit: an environment that draws from them repeats
 * an environment of Gymnasium or bsuite that has the same seed.
 *
 *   rp_pcg64    numpy.random.default_rng(seed): SeedSequence and PCG64
 *   rp_mt19937  numpy.random.RandomState(seed): the Mersenne twister
 *
 * A generator is a plain value: it can be copied, stored and compared as bytes. The functions
 * allocate nothing and cannot fail. The caller serialises the calls on one generator. */
#ifndef REPRISE_RL_RANDOM_H
#define REPRISE_RL_RANDOM_H

#include "reprise/status.h"

RP_BEGIN_DECLS

/* Fills `state` with the words of numpy.random.SeedSequence(entropy).generate_state(count).
 * NumPy splits an integer seed into 32-bit words, the lowest first; the seed 0 is one word.
 * To make many seeds from one seed, generate a word for each of them. */
RP_API void rp_seed_sequence(const uint32_t *entropy, size_t entropy_count, uint32_t *state,
                             size_t state_count);

/* PCG64: O'Neill's 128-bit congruential generator with the XSL-RR output. */
typedef struct rp_pcg64 {
    uint64_t state_high, state_low;
    uint64_t increment_high, increment_low; /* odd as a whole */
    uint32_t spare;                         /* the upper half of 64 bits that were drawn */
    uint32_t has_spare;                     /* 0 or 1 */
} rp_pcg64;

/* Starts the stream of numpy.random.default_rng(seed). */
RP_API void rp_pcg64_seed(rp_pcg64 *rng, uint64_t seed);

/* The next 64 bits. */
RP_API uint64_t rp_pcg64_next(rp_pcg64 *rng);

/* Generator.random(): a double in [0, 1), a multiple of 2^-53. */
RP_API double rp_pcg64_double(rp_pcg64 *rng);

/* Generator.uniform(low, high): low + (high - low) * double. */
RP_API double rp_pcg64_uniform(rp_pcg64 *rng, double low, double high);

/* Generator.integers(low, high): an integer in [low, high). `low` must be below `high`. Draws
 * nothing if only one integer is possible. */
RP_API int64_t rp_pcg64_integers(rp_pcg64 *rng, int64_t low, int64_t high);

/* A number of the standard normal distribution (Box and Muller, 1958). The numbers differ from
 * those of NumPy's Generator.standard_normal(). */
RP_API double rp_pcg64_normal(rp_pcg64 *rng);

/* True if the value can be the state of a generator; for generators that were read from bytes.
 */
RP_API bool rp_pcg64_check(const rp_pcg64 *rng);

enum { RP_MT19937_WORDS = 624 };

/* The Mersenne twister of Matsumoto and Nishimura (1998), with NumPy's legacy functions. */
typedef struct rp_mt19937 {
    uint32_t key[RP_MT19937_WORDS];
    uint32_t position;   /* words of `key` that were used, up to RP_MT19937_WORDS */
    uint32_t has_normal; /* 0 or 1 */
    double normal;       /* the second result of a draw that makes two */
} rp_mt19937;

/* Starts the stream of numpy.random.RandomState(seed). */
RP_API void rp_mt19937_seed(rp_mt19937 *rng, uint32_t seed);

/* The next 32 bits. */
RP_API uint32_t rp_mt19937_next(rp_mt19937 *rng);

/* RandomState.random_sample(): a double in [0, 1), made of two words. */
RP_API double rp_mt19937_double(rp_mt19937 *rng);

/* RandomState.uniform(low, high). */
RP_API double rp_mt19937_uniform(rp_mt19937 *rng, double low, double high);

/* RandomState.randint(bound): an integer in [0, bound). `bound` must be at least 1. Draws
 * nothing if it is 1. */
RP_API uint32_t rp_mt19937_randint(rp_mt19937 *rng, uint32_t bound);

/* RandomState.randn(): a normal deviate, by the polar method. Uses log() and sqrt() of libm. */
RP_API double rp_mt19937_normal(rp_mt19937 *rng);

/* True if the value can be the state of a generator; for generators that were read from bytes.
 */
RP_API bool rp_mt19937_check(const rp_mt19937 *rng);

RP_END_DECLS

#endif
