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
    double v[RP_CONTROL_VARIABLES]; /* the variables of the task, such as positions and speeds.
                                       A task uses the first spec->variable_count of them */
    rp_pcg64 rng;
    int64_t flag; /* 0 or 1. The .c file of each task says what its flag means */
} rp_control;

/* Checks the settings reset_low and reset_high of the task `name`, which bound the random start
 * of an episode. Returns RP_INVALID if `low` > `high`. */
rp_status rp_control_check_reset_bounds(const char *name, double low, double high,
                                        rp_error *err);

/* Returns true if each of `count` values is finite and in the range of a float. */
bool rp_control_values_fit(const double *values, size_t count);

/* The functions seed(), observe(), check(), get_variables() and set_variables() of rp_env_class
 * (reprise/rl/env.h) for the control tasks. */
void rp_control_seed(const rp_env_context *ctx, void *state, uint64_t value);
/* For tasks whose observation is their variables: writes the variables as floats. */
void rp_control_observe(const rp_env_context *ctx, const void *states, size_t count,
                        void *observations);
/* Returns true if the variables are finite and in the range of a float, and the generator and
 * the flag are valid. */
bool rp_control_check(const rp_env_context *ctx, const void *state);
void rp_control_get_variables(const rp_env_context *ctx, const void *state, double *values);
/* Sets the variables, and sets the flag to 0. */
void rp_control_set_variables(const rp_env_context *ctx, void *state, const double *values);

#endif
