/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the state of an environment as text. Pure. */
#ifndef RP_CLI_TRAIN_ENV_DRAWING_H
#define RP_CLI_TRAIN_ENV_DRAWING_H

#include "cli/text/text_buffer.h"
#include "reprise/rl/env.h"

/* Adds a drawing of copy 0: CartPole, MountainCar, Acrobot, Pendulum and LunarLander as
 * pictures, small grids as their cells, others as their variables. All drawings of a class have
 * the same number of lines. `observation` is that of the copy. */
void rp_env_draw(rp_text_buffer *out, const rp_env *env, const void *observation);

#endif
