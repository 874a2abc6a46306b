/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the state of an environment as text. Pure functions. */
#ifndef RP_CLI_TRAIN_ENV_DRAWING_H
#define RP_CLI_TRAIN_ENV_DRAWING_H

#include "cli/text/text_buffer.h"
#include "reprise/rl/env.h"

/* Appends a drawing of the first of the parallel environments in `env`, whose observation is
 * `observation`. CartPole, MountainCar, Acrobot, Pendulum and LunarLander become pictures;
 * small grids show each cell. For all other environments, the text lists the variables of the
 * state. All drawings of an environment class have the same number of lines. */
void rp_env_draw(rp_text_buffer *out, const rp_env *env, const void *observation);

#endif
