/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of transitions, scaled as the networks of an agent for continuous actions read
 * them. */
#ifndef RP_AGENTS_BOX_BOX_BATCH_H
#define RP_AGENTS_BOX_BOX_BATCH_H

#include "reprise/rl/nn.h"

/* Arrays with one row per transition (o, u, R, D, o'): an observation, an action, the sum of up
 * to n discounted rewards, the factor by which a target multiplies the value of o', and a later
 * observation. Actions are from -1 to 1. The arrays are borrowed. */
typedef struct rp_box_batch {
    const rp_real *now, *actions, *reward, *discount, *next; /* o, u, R, D, o' */
    const rp_real *weights; /* importance weights; NULL: every weight is 1 */
    /* Standard normal numbers for a stochastic policy. The policy turns `noise` into its action
     * at o, and `next_noise` into its action at o'. A row has one number per dimension of an
     * action. */
    const rp_real *noise, *next_noise;
} rp_box_batch;

#endif
