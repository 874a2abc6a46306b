/* SPDX-License-Identifier: Apache-2.0 */
/* The state of the five tasks of classic control, and the functions that they share. */
#ifndef RP_ENV_CONTROL_H
#define RP_ENV_CONTROL_H

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

enum { RP_CONTROL_VARIABLES = 4 };

/* A task uses the first spec->variable_count variables. */
typedef struct rp_control {
    double v[RP_CONTROL_VARIABLES];
    rp_pcg64 rng;
    int64_t flag; /* 0 or 1. Each task says what its flag means */
} rp_control;

/* RP_INVALID if the lower bound of a reset is above the upper one. */
rp_status rp_control_check_reset_bounds(const char *name, double low, double high,
                                        rp_error *err);

/* True if each of `count` values is a number that a float can hold. */
bool rp_control_values_fit(const double *values, size_t count);

/* Functions of rp_env_class. */
void rp_control_seed(const rp_env_context *ctx, void *state, uint64_t value);
/* The variables as floats. */
void rp_control_observe(const rp_env_context *ctx, const void *states, size_t count,
                        void *observations);
/* True if floats can hold the variables, and the generator and the flag are valid. */
bool rp_control_check(const rp_env_context *ctx, const void *state);
void rp_control_get_variables(const rp_env_context *ctx, const void *state, double *values);
/* Clears the flag as well. */
void rp_control_set_variables(const rp_env_context *ctx, void *state, const double *values);

#endif
