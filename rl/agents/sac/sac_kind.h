/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and constants with which the common code for continuous actions (agents/box)
 * runs SAC. */
#ifndef RP_AGENTS_SAC_SAC_KIND_H
#define RP_AGENTS_SAC_SAC_KIND_H

#include "agents/box/box_agent.h"

extern const rp_box_shape rp_sac_shape;
extern const rp_box_acting rp_sac_acting;
extern const rp_box_learning rp_sac_learning;

#endif
