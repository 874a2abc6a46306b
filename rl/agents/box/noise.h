/* SPDX-License-Identifier: Apache-2.0 */
/* Noise of an actor: at each step, a normally distributed number for each number of the action
 * of each environment. The environments of a group are its copies.
 *
 * Without memory the noise of a step is independent of all before. With memory it is an
 * Ornstein-Uhlenbeck process with the same deviation, new in every episode. A plain value. */
#ifndef RP_AGENTS_BOX_NOISE_H
#define RP_AGENTS_BOX_NOISE_H

#include "reprise/rl/random.h"

typedef struct rp_noise {
    rp_pcg64 rng;
    double deviation, memory; /* memory: correlation with the noise of the step before */
    size_t copies, width;     /* width: numbers of an action */
    double *now;              /* of the latest step: copies x width. Borrowed */
} rp_noise;

/* Begins the noise of an episode of one copy. Without memory this changes nothing. */
void rp_noise_begin(rp_noise *noise, size_t copy);

/* Draws the noise of the next step of all copies, in their order. */
void rp_noise_draw(rp_noise *noise);

/* Checks noise that was read from a snapshot: true if the generator is valid and all numbers
 * are finite. */
bool rp_noise_check(const rp_noise *noise);

#endif
