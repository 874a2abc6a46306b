/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of an agent of continuous actions, and its policy without exploration.
 *
 * Parameters are one array: those of the policy, then those of each critic, then those that are
 * in no network, such as the logarithm of SAC's temperature. All critics have the same
 * layers. */
#ifndef RP_AGENTS_BOX_BOX_NETS_H
#define RP_AGENTS_BOX_BOX_NETS_H

#include "agents/box/box.h"
#include "reprise/rl/agent.h"
#include "reprise/rl/settings.h"

/* How the networks of one agent differ from those of another. Static. */
typedef struct rp_box_shape {
    const rp_settings_table *(*table)(void); /* the settings and the name of the agent */
    bool is_gaussian; /* the policy has two linear outputs for each number of an action, which
                         define a squashed Gaussian; otherwise one, the number, by a tanh */
    size_t critics;
    size_t own; /* parameters that are in no network */
} rp_box_shape;

/* The arguments of the functions below. Borrowed for one call, except for the bounds in `spec`:
 * a box (agents/box/box.h) borrows these until it is freed. */
typedef struct rp_box_making {
    rp_allocator alloc;
    const rp_box_shape *shape;
    const void *settings; /* of the agent; checked */
    const rp_env_spec *spec;
} rp_box_making;

/* `alloc` NULL is rp_allocator_default(). */
rp_box_making rp_box_making_of(const rp_allocator *alloc, const rp_box_shape *shape,
                               const void *settings, const rp_env_spec *spec);

typedef struct rp_box_nets {
    rp_net *policy, *critic;
    rp_box *observations; /* as the networks read them */
    rp_box *actions;
    size_t numbers;         /* of an observation */
    size_t action_count;    /* numbers of an action */
    size_t parameter_count; /* of all networks, and the agent's own */
} rp_box_nets;

/* Makes networks and boxes. On failure nothing is left. The statuses are those of
 * rp_box_new_policy_net(). */
RP_NODISCARD rp_status rp_box_nets_init(const rp_box_making *making, rp_box_nets *nets,
                                        rp_error *err);
void rp_box_nets_deinit(rp_box_nets *nets);

/* Make one of the networks. Return owned. RP_INVALID (a setting; an environment whose actions
 * are not a box with finite bounds, or whose observations are not floats), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new_policy_net(const rp_box_making *making, rp_net **out,
                                             rp_error *err);
RP_NODISCARD rp_status rp_box_new_critic_net(const rp_box_making *making, rp_net **out,
                                             rp_error *err);

/* RP_INVALID: the agent cannot learn the environment, as rp_box_new_policy_net() says. */
RP_NODISCARD rp_status rp_box_check_env(const rp_box_making *making, rp_error *err);

/* Makes a policy of the policy network `net` for at most `rows` rows. Borrows `net` until it is
 * freed. Returns owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new_policy(const rp_box_making *making, const rp_net *net,
                                         size_t rows, rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file whose observations and actions
 * are those of the environment. RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_box_save_onnx(const rp_box_making *making, const rp_net *net,
                                        const rp_real *params, const char *path, rp_error *err);

#endif
