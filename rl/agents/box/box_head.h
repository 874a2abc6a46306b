/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a Gaussian policy whose actions are from -1 to 1. */
#ifndef RP_AGENTS_BOX_BOX_HEAD_H
#define RP_AGENTS_BOX_BOX_HEAD_H

#include "reprise/rl/loss.h"

/* With the bounds of Haarnoja et al. for the logarithms of deviations. */
static inline rp_gaussian rp_box_head(size_t action_count)
{
    return (rp_gaussian){
        .actions = action_count, .log_low = -20, .log_high = 2, .squash = true};
}

#endif
