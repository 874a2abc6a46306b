/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the actor and the learner of DQN share: they compute the input of the network
 * and the plan of the replay (replay_plan.h). */
#ifndef RP_AGENTS_DQN_NET_H
#define RP_AGENTS_DQN_NET_H

#include "agents/replay_plan.h"
#include "reprise/rl/dqn.h"

/* Returns observations in the form that the network reads. `count` is the number of elements in
 * all observations together. float32 observations are returned as they are. Observations of
 * bytes are divided by 255 and written to `scratch`, which must have room for `count` numbers.
 * An image of bytes with the shape {planes, height, width} is written as {height, width,
 * planes}. */
const rp_real *rp_dqn_input(const rp_env_spec *spec, const void *observations, size_t count,
                            rp_real *scratch);

/* Checks that the actions of the environment are discrete. Errors: RP_INVALID. */
RP_NODISCARD rp_status rp_dqn_check_env(const rp_env_spec *spec, rp_error *err);

/* Returns the plan of the replay (replay_plan.h) for these settings. */
rp_replay_plan rp_dqn_plan(const rp_dqn_settings *settings, const rp_env_spec *spec);

/* Returns the address of a number that is always the largest priority that the learner has set
 * so far. At first the number is 1. Valid until the learner is freed. */
const double *rp_dqn_learner_largest(const rp_learner *learner);

#endif
