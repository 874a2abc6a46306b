/* SPDX-License-Identifier: Apache-2.0 */
/* The environment classes of this library. env_registry.c lists them by name. */
#ifndef RP_ENV_ENV_CLASSES_H
#define RP_ENV_ENV_CLASSES_H

#include "reprise/rl/env.h"

extern const rp_env_class rp_env_acrobot;
extern const rp_env_class rp_env_bricks;
extern const rp_env_class rp_env_cartpole;
extern const rp_env_class rp_env_catch;
extern const rp_env_class rp_env_deep_sea;
extern const rp_env_class rp_env_lunar_lander; /* only in builds with Box2D */
extern const rp_env_class rp_env_memory_chain;
extern const rp_env_class rp_env_mountain_car;
extern const rp_env_class rp_env_mountain_car_continuous;
extern const rp_env_class rp_env_pendulum;

#endif
