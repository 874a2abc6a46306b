/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the five classic control tasks (cart-pole, both mountain cars, pendulum,
 * acrobot), and the functions that they share. */
#ifndef RP_ENV_CONTROL_H
#define RP_ENV_CONTROL_H

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

enum { RP_CONTROL_VARIABLES = 4 };

/* The state of one environment. */
typedef struct rp_control {
    double v[RP_CONTROL_VARIABLES]; /* variables; a task uses the first spec->variable_count */
    rp_pcg64 rng;
    int64_t flag; /* 0 or 1. The .c file of each task says what its flag means */
} rp_control;

/* Checks the settings that bound the random start of an episode of the task `name`. Returns
 * RP_INVALID if `low` > `high`. */
rp_status rp_control_check_reset_bounds(const char *name, double low, double high,
                                        rp_error *err);

/* True if each of `count` values is finite and in the range of a float. */
bool rp_control_values_fit(const double *values, size_t count);

/* The functions of rp_env_class for these tasks. */
void rp_control_seed(const rp_env_context *ctx, void *state, uint64_t value);
/* Writes the variables, as floats. */
void rp_control_observe(const rp_env_context *ctx, const void *states, size_t count,
                        void *observations);
/* True if the variables are finite and in the range of a float, and the generator and the flag
 * are valid. */
bool rp_control_check(const rp_env_context *ctx, const void *state);
void rp_control_get_variables(const rp_env_context *ctx, const void *state, double *values);
/* Sets the flag to 0 as well. */
void rp_control_set_variables(const rp_env_context *ctx, void *state, const double *values);

#endif
