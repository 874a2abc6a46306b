/* SPDX-License-Identifier: Apache-2.0 */
/* What the halves of DQN share. */
#ifndef RP_AGENTS_DQN_NET_H
#define RP_AGENTS_DQN_NET_H

#include "agents/replay_plan.h"
#include "reprise/rl/dqn.h"

/* `count` numbers of observations as the network takes them: floats as they are; bytes as parts
 * of 1 in `scratch`, which has room for them, with the planes of images as channels, last. */
const rp_real *rp_dqn_input(const rp_env_spec *spec, const void *observations, size_t count,
                            rp_real *scratch);

/* RP_INVALID: the actions of the environment are not discrete. */
RP_NODISCARD rp_status rp_dqn_check_env(const rp_env_spec *spec, rp_error *err);

/* The plan of the replay of these settings. */
rp_replay_plan rp_dqn_plan(const rp_dqn_settings *settings, const rp_env_spec *spec);

/* The largest priority that a learner has set, 1 at first. Valid as long as the learner. */
const double *rp_dqn_learner_largest(const rp_learner *learner);

#endif
