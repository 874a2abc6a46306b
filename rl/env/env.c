/* SPDX-License-Identifier: Apache-2.0 */
/* Resets and steps of an environment: checks around the functions of its class.
 *
 * Invariants, whenever no call is running:
 *   E1  a copy that has begun has a random stream, and `waiting` counts those that have not;
 *   E2  0 <= steps, and with automatic resets steps < time_limit, if there is one;
 *   E3  the state of a copy that has begun passes the check of its class;
 *   E4  a call that refuses its arguments has changed nothing.
 * rp_env_verify() tests E1 to E3.
 *
 * Cost of a step: two calls of the class for all copies, and two for each episode that ends. */
#include "reprise/rl/env.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "env/env_inside.h"
#include "error/fail.h"

const rp_env_spec *rp_env_get_spec(const rp_env *env)
{
    return &env->spec;
}

const rp_env_class *rp_env_get_class(const rp_env *env)
{
    return env->class;
}

size_t rp_env_copies(const rp_env *env)
{
    return env->copies;
}

size_t rp_env_observation_bytes(const rp_env *env)
{
    return env->observation_bytes;
}

size_t rp_env_action_bytes(const rp_env *env)
{
    return env->spec.action_size *
           (env->spec.action_kind == RP_ACTION_BOX ? sizeof(float) : sizeof(int32_t));
}

int64_t rp_env_steps(const rp_env *env, size_t copy)
{
    assert(copy < env->copies);
    return env->copy[copy].steps;
}

/* Tests E1 and E2. Assertions leave E3 out: a class comes from outside and may be wrong. */
static bool counts_hold(const rp_env *env)
{
    size_t waiting = 0;

    for (size_t i = 0; i < env->copies; i++) {
        const rp_env_copy *c = &env->copy[i];
        waiting += !c->begun;
        if (c->begun > c->seeded || c->seeded > 1) return false; /* E1 */
        if (c->steps < 0) return false;                          /* E2 */
        if (!env->keep_ended && env->spec.time_limit > 0 && c->steps >= env->spec.time_limit)
            return false;
    }
    return waiting == env->waiting;
}

bool rp_env_verify(const rp_env *env)
{
    for (size_t i = 0; i < env->copies; i++)
        if (env->copy[i].begun && !env->class->check(&env->ctx, rp_env_state(env, i)))
            return false; /* E3 */
    return counts_hold(env);
}

/* Finds a number that is not finite among the observations of one copy. */
static rp_status check_observation(const rp_env *env, size_t copy, const void *row,
                                   rp_error *err)
{
    const float *values = row;

    if (env->spec.observation_dtype != RP_FLOAT32) return RP_OK;
    for (size_t i = 0; i < env->elements; i++)
        if (!isfinite(values[i]))
            return rp_rl_fail(err, RP_CORRUPT,
                              "environment '%s', copy %zu: element %zu of the observation is "
                              "%g, not a finite number",
                              env->class->name, copy, i, (double)values[i]);
    return RP_OK;
}

static rp_status check_seed(const rp_env *env, size_t copy, const uint64_t *seed, rp_error *err)
{
    if (seed == NULL && !env->copy[copy].seeded)
        return rp_rl_fail(err, RP_PRECONDITION,
                          "environment '%s', copy %zu: the first reset needs a seed",
                          env->class->name, copy);
    if (seed != NULL && *seed > env->spec.max_seed)
        return rp_rl_fail(err, RP_INVALID,
                          "environment '%s', copy %zu: the seed must be at most %llu, got %llu",
                          env->class->name, copy, (unsigned long long)env->spec.max_seed,
                          (unsigned long long)*seed);
    return RP_OK;
}

/* Begins an episode and writes its first observation. */
static void begin(rp_env *env, size_t copy, void *row)
{
    void *state = rp_env_state(env, copy);

    assert(env->copy[copy].seeded); /* E1 */
    env->class->reset(&env->ctx, state);
    env->copy[copy].steps = 0;
    env->waiting -= !env->copy[copy].begun;
    env->copy[copy].begun = 1;
    env->class->observe(&env->ctx, state, 1, row);
}

static void begin_seeded(rp_env *env, size_t copy, const uint64_t *seed, void *row)
{
    if (seed != NULL) {
        void *state = rp_env_state(env, copy);
        memset(state, 0, env->spec.state_bytes);
        env->class->seed(&env->ctx, state, *seed);
        env->copy[copy].seeded = 1;
    }
    begin(env, copy, row);
}

/* Every copy needs a reset before the next step. */
static void halt(rp_env *env)
{
    for (size_t i = 0; i < env->copies; i++) {
        env->copy[i].begun = 0;
        env->copy[i].steps = 0;
    }
    env->waiting = env->copies;
}

rp_status rp_env_reset_copy(rp_env *env, size_t copy, const uint64_t *seed, void *observation,
                            rp_error *err)
{
    rp_status st;

    assert(copy < env->copies);
    st = check_seed(env, copy, seed, err);
    if (st != RP_OK) return st;
    begin_seeded(env, copy, seed, observation);
    st = check_observation(env, copy, observation, err);
    if (st != RP_OK) halt(env);
    return st;
}

rp_status rp_env_reset(rp_env *env, const uint64_t *seeds, void *observations, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; i < env->copies && st == RP_OK; i++)
        st = check_seed(env, i, seeds != NULL ? &seeds[i] : NULL, err);
    if (st != RP_OK) return st; /* E4 */
    for (size_t i = 0; i < env->copies && st == RP_OK; i++) {
        void *row = (char *)observations + i * env->observation_bytes;
        begin_seeded(env, i, seeds != NULL ? &seeds[i] : NULL, row);
        st = check_observation(env, i, row, err);
    }
    if (st != RP_OK) halt(env);
    assert(counts_hold(env));
    return st;
}

static rp_status check_discrete(const rp_env *env, const int32_t *actions, rp_error *err)
{
    for (size_t i = 0; i < env->copies; i++)
        if (actions[i] < 0 || actions[i] >= env->spec.action_count)
            return rp_rl_fail(err, RP_INVALID,
                              "environment '%s', copy %zu: the action must be in [0, %d], got "
                              "%d",
                              env->class->name, i, (int)env->spec.action_count - 1,
                              (int)actions[i]);
    return RP_OK;
}

static rp_status check_box(const rp_env *env, const float *actions, rp_error *err)
{
    size_t size = env->spec.action_size;

    for (size_t i = 0; i < env->copies * size; i++) {
        float low = env->spec.action_low[i % size], high = env->spec.action_high[i % size];
        if (!isfinite(actions[i]))
            return rp_rl_fail(err, RP_INVALID,
                              "environment '%s', copy %zu: element %zu of the action is %g, "
                              "not a finite number",
                              env->class->name, i / size, i % size, (double)actions[i]);
        if (!env->clip_actions && (actions[i] < low || actions[i] > high))
            return rp_rl_fail(err, RP_INVALID,
                              "environment '%s', copy %zu: element %zu of the action must be "
                              "in [%g, %g], got %g",
                              env->class->name, i / size, i % size, (double)low, (double)high,
                              (double)actions[i]);
    }
    return RP_OK;
}

static rp_status check_actions(const rp_env *env, const void *actions, rp_error *err)
{
    if (env->waiting > 0)
        return rp_rl_fail(err, RP_PRECONDITION,
                          "environment '%s': %zu of %zu copies need a reset before a step",
                          env->class->name, env->waiting, env->copies);
    return env->spec.action_kind == RP_ACTION_BOX ? check_box(env, actions, err)
                                                  : check_discrete(env, actions, err);
}

/* Counts the step of a copy, applies the time limit, and begins the next episode if this one
 * has ended. */
static rp_status finish(rp_env *env, size_t copy, const rp_env_buffers *out, rp_error *err)
{
    size_t offset = copy * env->observation_bytes;
    char *row = (char *)out->observations + offset;
    int64_t limit = env->spec.time_limit;
    rp_status st;

    env->copy[copy].steps++;
    if (limit > 0 && env->copy[copy].steps >= limit) out->truncated[copy] = true;
    if (!isfinite(out->rewards[copy]))
        return rp_rl_fail(err, RP_CORRUPT,
                          "environment '%s', copy %zu: the reward is %g, not a finite number",
                          env->class->name, copy, out->rewards[copy]);
    st = check_observation(env, copy, row, err);
    if (st != RP_OK) return st;
    if (!out->terminated[copy] && !out->truncated[copy]) return RP_OK;
    if (out->last_observations != NULL)
        memcpy((char *)out->last_observations + offset, row, env->observation_bytes);
    if (env->keep_ended) return RP_OK;
    begin(env, copy, row);
    return check_observation(env, copy, row, err);
}

rp_status rp_env_step(rp_env *env, const void *actions, const rp_env_buffers *out,
                      rp_error *err)
{
    rp_status st = check_actions(env, actions, err);

    if (st != RP_OK) return st; /* E4 */
    memset(out->truncated, 0, env->copies * sizeof *out->truncated);
    st = env->class->step(&env->ctx, env->states, env->copies, actions, out->rewards,
                          out->terminated, out->truncated);
    if (st != RP_OK)
        (void)rp_rl_fail(err, st, "environment '%s': a step failed", env->class->name);
    else
        env->class->observe(&env->ctx, env->states, env->copies, out->observations);
    for (size_t i = 0; i < env->copies && st == RP_OK; i++) st = finish(env, i, out, err);
    if (st != RP_OK) halt(env);
    assert(env->copies > 64 || counts_hold(env));
    return st;
}
