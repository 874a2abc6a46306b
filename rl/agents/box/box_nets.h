/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of an agent for continuous actions (DPG or SAC), and its policy without
 * exploration.
 *
 * All parameters are in one array: first the policy's, then those of each critic, then those
 * that are in no network, such as the logarithm of SAC's temperature. All critics have the same
 * layers. */
#ifndef RP_AGENTS_BOX_BOX_NETS_H
#define RP_AGENTS_BOX_BOX_NETS_H

#include "agents/box/box.h"
#include "reprise/rl/agent.h"
#include "reprise/rl/settings.h"

/* How the networks of one kind of agent differ from those of another. Static. */
typedef struct rp_box_shape {
    const rp_settings_table *(*table)(void); /* returns the table of the agent's settings, which
                                                also has the agent's name */
    bool is_gaussian; /* true: for each dimension of an action the policy has two linear
                         outputs, which define a squashed Gaussian (box_head.h). false: for each
                         dimension the policy has one output with tanh, which is the action */
    size_t critics;   /* number of critics */
    size_t own;       /* number of parameters that are in no network */
} rp_box_shape;

/* The common arguments of the functions below. They are borrowed for one call, with one
 * exception: the made boxes (agents/box/box.h) borrow the arrays of bounds in `spec` until they
 * are freed. */
typedef struct rp_box_making {
    rp_allocator alloc;
    const rp_box_shape *shape;
    const void *settings; /* the agent's settings struct; checked */
    const rp_env_spec *spec;
} rp_box_making;

/* Puts the arguments into a struct. `alloc` NULL means rp_allocator_default(). */
rp_box_making rp_box_making_of(const rp_allocator *alloc, const rp_box_shape *shape,
                               const void *settings, const rp_env_spec *spec);

typedef struct rp_box_nets {
    rp_net *policy, *critic;
    rp_box *observations;   /* maps observations to the range that the networks read */
    rp_box *actions;        /* maps actions to and from [-1, 1] */
    size_t numbers;         /* elements of an observation */
    size_t action_count;    /* dimensions of an action */
    size_t parameter_count; /* number of all parameters, including those that are in no
                               network */
} rp_box_nets;

/* Makes the networks and boxes. On failure `nets` owns nothing. The errors are those of
 * rp_box_new_policy_net(). */
RP_NODISCARD rp_status rp_box_nets_init(const rp_box_making *making, rp_box_nets *nets,
                                        rp_error *err);
void rp_box_nets_deinit(rp_box_nets *nets);

/* Make the policy or the critic network. Return owned.
 * Errors: RP_INVALID (a bad setting; an environment whose actions are not continuous with
 * finite bounds, or whose observations are not float32), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new_policy_net(const rp_box_making *making, rp_net **out,
                                             rp_error *err);
RP_NODISCARD rp_status rp_box_new_critic_net(const rp_box_making *making, rp_net **out,
                                             rp_error *err);

/* Checks that the agent can learn the environment. Errors: RP_INVALID (for the reasons in the
 * comment on rp_box_new_policy_net()). */
RP_NODISCARD rp_status rp_box_check_env(const rp_box_making *making, rp_error *err);

/* Makes a policy (agent.h) that runs the policy network `net` on at most `rows` rows. Borrows
 * `net` until the policy is freed. Returns owned.
 * Errors: RP_INVALID (as rp_box_new_policy_net()), RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_box_new_policy(const rp_box_making *making, const rp_net *net,
                                         size_t rows, rp_policy **out, rp_error *err);

/* Writes the policy network and its parameters to an ONNX file. The file's model reads
 * observations and returns actions in the scale of the environment.
 * Errors: RP_INVALID, RP_NO_RESOURCE, RP_UNAVAILABLE. */
RP_NODISCARD rp_status rp_box_save_onnx(const rp_box_making *making, const rp_net *net,
                                        const rp_real *params, const char *path, rp_error *err);

#endif
