/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of DPG share: the networks, and the boxes of observations and actions. */
#ifndef RP_AGENTS_DPG_NET_H
#define RP_AGENTS_DPG_NET_H

#include "agents/box.h"
#include "agents/replay_plan.h"
#include "reprise/rl/dpg.h"

typedef struct rp_dpg_nets {
    rp_net *policy, *critic;
    rp_box *observations; /* as the networks read them */
    rp_box *actions;
    size_t numbers, action_count; /* of one row */
    size_t parameter_count;       /* of both networks */
} rp_dpg_nets;

/* Makes the boxes of an environment. The statuses are those of rp_dpg_new_net(). */
RP_NODISCARD rp_status rp_dpg_boxes_new(const rp_allocator *alloc,
                                        const rp_dpg_settings *settings,
                                        const rp_env_spec *spec, rp_box **observations,
                                        rp_box **actions, rp_error *err);

/* Makes networks and boxes. On failure nothing is left. */
RP_NODISCARD rp_status rp_dpg_nets_init(const rp_allocator *alloc,
                                        const rp_dpg_settings *settings,
                                        const rp_env_spec *spec, rp_dpg_nets *nets,
                                        rp_error *err);
void rp_dpg_nets_deinit(rp_dpg_nets *nets);

/* RP_INVALID: DPG cannot learn the environment, as rp_dpg_new_net() says. */
RP_NODISCARD rp_status rp_dpg_check_env(const rp_env_spec *spec, rp_error *err);

/* The plan of the replay of these settings. */
rp_replay_plan rp_dpg_plan(const rp_dpg_settings *settings, const rp_env_spec *spec);

#endif
