/* SPDX-License-Identifier: Apache-2.0 */
/* Exploration noise of an actor for continuous actions. At each step rp_noise_draw() draws one
 * normally distributed number for each dimension of the action of each parallel environment.
 * Each of the parallel environments is called a copy.
 *
 * If `memory` is 0, the noise of each step is independent of earlier steps. Otherwise the noise
 * of an environment is an Ornstein-Uhlenbeck process with the same standard deviation, and
 * restarts in every episode.
 *
 * The owner of an rp_noise fills in all fields, and owns the array `now`. */
#ifndef RP_AGENTS_BOX_NOISE_H
#define RP_AGENTS_BOX_NOISE_H

#include "reprise/rl/random.h"

typedef struct rp_noise {
    rp_pcg64 rng;
    double deviation, memory; /* standard deviation; correlation with the noise of the step
                                 before, in [0, 1) */
    size_t copies, width;     /* number of environments; dimensions of an action */
    double *now;              /* noise of the latest step: copies x width numbers. At first the
                                 owner fills the array with zeros */
} rp_noise;

/* Restarts the noise of copy number `copy`. The caller must call this when the copy begins an
 * episode. Has no effect if `memory` is 0. */
void rp_noise_begin(rp_noise *noise, size_t copy);

/* Draws the noise of the next step of all copies, in the order of their numbers. */
void rp_noise_draw(rp_noise *noise);

/* Checks noise that was read from a snapshot. Returns true if the generator is valid and all
 * numbers of `now` are finite. */
bool rp_noise_check(const rp_noise *noise);

#endif
