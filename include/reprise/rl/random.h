/* SPDX-License-Identifier: Apache-2.0 */
/* The random generators of NumPy, with the same bits. An environment that draws from these
 * generators gives the same episodes as the environment of Gymnasium or bsuite with the same
 * seed.
 *
 *   rp_pcg64    numpy.random.default_rng(seed): SeedSequence and PCG64
 *   rp_mt19937  numpy.random.RandomState(seed): the Mersenne twister
 *
 * The comment of a function names the method of NumPy that returns the same numbers. A
 * generator is a struct without pointers, so a program can copy, store and compare it as bytes.
 * The functions allocate nothing and cannot fail. The caller must serialise the calls on one
 * generator. */
#ifndef REPRISE_RL_RANDOM_H
#define REPRISE_RL_RANDOM_H

#include "reprise/status.h"

RP_BEGIN_DECLS

/* Fills `state` with the words of
 * numpy.random.SeedSequence(entropy).generate_state(state_count). NumPy splits an integer seed
 * into 32-bit words of entropy, the lowest word first; the seed 0 is one word. To derive many
 * seeds from one seed, generate as many words, and use each word as a seed. */
RP_API void rp_seed_sequence(const uint32_t *entropy, size_t entropy_count, uint32_t *state,
                             size_t state_count);

/* PCG64: O'Neill's 128-bit congruential generator with the XSL-RR output. */
typedef struct rp_pcg64 {
    uint64_t state_high, state_low;
    uint64_t increment_high, increment_low; /* together an odd 128-bit number */
    uint32_t spare;                         /* upper half of 64 bits of which only the lower
                                               half has been used */
    uint32_t has_spare;                     /* 1 if `spare` is valid, else 0 */
} rp_pcg64;

/* Starts the stream of numpy.random.default_rng(seed). */
RP_API void rp_pcg64_seed(rp_pcg64 *rng, uint64_t seed);

/* Returns the next 64 bits. */
RP_API uint64_t rp_pcg64_next(rp_pcg64 *rng);

/* The same as NumPy's Generator.random(): returns a double in [0, 1), a multiple of 2^-53. */
RP_API double rp_pcg64_double(rp_pcg64 *rng);

/* The same as Generator.uniform(low, high): returns low + (high - low) * rp_pcg64_double(). */
RP_API double rp_pcg64_uniform(rp_pcg64 *rng, double low, double high);

/* The same as Generator.integers(low, high): returns an integer in [low, high). `low` must be
 * below `high`. If only one integer is possible, the generator does not advance. */
RP_API int64_t rp_pcg64_integers(rp_pcg64 *rng, int64_t low, int64_t high);

/* Returns a number of the standard normal distribution (Box and Muller, 1958). These numbers
 * are not those of NumPy's Generator.standard_normal(). */
RP_API double rp_pcg64_normal(rp_pcg64 *rng);

/* Returns true if the struct is a valid state. For generators that were read from bytes. */
RP_API bool rp_pcg64_check(const rp_pcg64 *rng);

enum { RP_MT19937_WORDS = 624 };

/* The Mersenne twister of Matsumoto and Nishimura (1998), with NumPy's legacy functions. */
typedef struct rp_mt19937 {
    uint32_t key[RP_MT19937_WORDS];
    uint32_t position;   /* number of words of `key` used so far, up to RP_MT19937_WORDS */
    uint32_t has_normal; /* 1 if `normal` is valid, else 0 */
    double normal;       /* a normal number that rp_mt19937_normal() has computed and not
                            returned yet */
} rp_mt19937;

/* Starts the stream of numpy.random.RandomState(seed). */
RP_API void rp_mt19937_seed(rp_mt19937 *rng, uint32_t seed);

/* Returns the next 32 bits. */
RP_API uint32_t rp_mt19937_next(rp_mt19937 *rng);

/* The same as NumPy's RandomState.random_sample(): returns a double in [0, 1), made of two
 * words. */
RP_API double rp_mt19937_double(rp_mt19937 *rng);

/* The same as RandomState.uniform(low, high): returns low + (high - low) *
 * rp_mt19937_double(). */
RP_API double rp_mt19937_uniform(rp_mt19937 *rng, double low, double high);

/* The same as RandomState.randint(bound): returns an integer in [0, bound). `bound` must be at
 * least 1. If `bound` is 1, the generator does not advance. */
RP_API uint32_t rp_mt19937_randint(rp_mt19937 *rng, uint32_t bound);

/* The same as RandomState.randn(): returns a standard normal number, computed by the polar
 * method with log() and sqrt() of libm. */
RP_API double rp_mt19937_normal(rp_mt19937 *rng);

/* Returns true if the struct is a valid state. For generators that were read from bytes. */
RP_API bool rp_mt19937_check(const rp_mt19937 *rng);

RP_END_DECLS

#endif
