/* SPDX-License-Identifier: Apache-2.0 */
/* Transitions as the networks of an agent of continuous actions read them. */
#ifndef RP_AGENTS_BOX_BOX_BATCH_H
#define RP_AGENTS_BOX_BOX_BATCH_H

#include "reprise/rl/nn.h"

/* Arrays of one row a transition (o, u, R, D, o'): R is the sum of up to n discounted rewards,
 * D what the value of o' is multiplied by. Actions are from -1 to 1. Borrowed. */
typedef struct rp_box_batch {
    const rp_real *now, *actions, *reward, *discount, *next;
    const rp_real *weights; /* NULL: 1 */
    /* Standard normal numbers, from which a stochastic policy draws its actions: those at o
     * from `noise`, those at o' from `next_noise`. A row has the size of an action. */
    const rp_real *noise, *next_noise;
} rp_box_batch;

#endif
