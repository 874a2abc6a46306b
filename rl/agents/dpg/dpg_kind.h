/* SPDX-License-Identifier: Apache-2.0 */
/* The functions and constants with which the common code for continuous actions (agents/box)
 * runs DPG. */
#ifndef RP_AGENTS_DPG_DPG_KIND_H
#define RP_AGENTS_DPG_DPG_KIND_H

#include "agents/box/box_agent.h"

extern const rp_box_shape rp_dpg_shape;
extern const rp_box_acting rp_dpg_acting;
extern const rp_box_learning rp_dpg_learning;

#endif
