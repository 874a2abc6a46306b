/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RP_AGENTS_DQN_NET_H
#define RP_AGENTS_DQN_NET_H

#include "reprise/rl/dqn.h"

/* `count` numbers of observations as the network takes them: floats as they are; bytes as parts
 * of 1 in `scratch`, which has room for them, with the planes of images as channels, last. */
const rp_real *rp_dqn_input(const rp_env_spec *spec, const void *observations, size_t count,
                            rp_real *scratch);

#endif
