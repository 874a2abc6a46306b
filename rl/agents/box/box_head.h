/* SPDX-License-Identifier: Apache-2.0 */
/* The output distribution of a Gaussian policy: a normal distribution that tanh squashes, so
 * that actions are from -1 to 1. */
#ifndef RP_AGENTS_BOX_BOX_HEAD_H
#define RP_AGENTS_BOX_BOX_HEAD_H

#include "reprise/rl/loss.h"

/* Returns the distribution of actions with `action_count` dimensions. The logarithms of the
 * standard deviations are clamped to [-20, 2], as in Haarnoja et al. (2018). */
static inline rp_gaussian rp_box_head(size_t action_count)
{
    return (rp_gaussian){
        .actions = action_count, .log_low = -20, .log_high = 2, .squash = true};
}

#endif
