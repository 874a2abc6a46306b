/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an environment of a class: resolves the settings, checks the specification, allocates.
 *
 * A class comes from outside the library as well, so a specification that contradicts itself is
 * a status, not an assertion. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "env/env_inside.h"
#include "error/fail.h"

static rp_status apply_setting(rp_env *env, const rp_env_setting *given, rp_error *err)
{
    const rp_env_class *class = env->class;

    for (size_t i = 0; i < class->setting_count; i++) {
        const rp_env_setting_info *info = &class->settings[i];
        if (strcmp(info->name, given->name) != 0) continue;
        if (!(given->value >= info->low && given->value <= info->high))
            return rp_rl_fail(err, RP_INVALID,
                              "environment '%s': setting '%s' must be in [%g, %g], got %g",
                              class->name, info->name, info->low, info->high, given->value);
        if (info->whole && given->value != floor(given->value))
            return rp_rl_fail(err, RP_INVALID,
                              "environment '%s': setting '%s' must be an integer, got %g",
                              class->name, info->name, given->value);
        env->settings[i] = given->value;
        return RP_OK;
    }
    return rp_rl_fail(err, RP_INVALID, "environment '%s' has no setting '%s'", class->name,
                      given->name);
}

static rp_status resolve_settings(rp_env *env, const rp_env_options *options, rp_error *err)
{
    const rp_env_class *class = env->class;

    if (class->setting_count > RP_ENV_MAX_SETTINGS)
        return rp_rl_fail(err, RP_INVALID, "environment '%s' has %zu settings, the bound is %d",
                          class->name, class->setting_count, RP_ENV_MAX_SETTINGS);
    for (size_t i = 0; i < class->setting_count; i++)
        env->settings[i] = class->settings[i].initial;
    for (size_t i = 0; i < options->setting_count; i++) {
        rp_status st = apply_setting(env, &options->settings[i], err);
        if (st != RP_OK) return st;
    }
    return RP_OK;
}

/* Each of `count` lower bounds is at most its upper bound; neither is NaN. */
static bool in_order(const float *low, const float *high, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(low[i] <= high[i])) return false;
    return true;
}

/* Returns what is wrong with the observations of a specification, or NULL. */
static const char *bad_observation(const rp_env_spec *spec, size_t elements)
{
    size_t bounds = spec->observation_bounds;

    if (spec->observation_dtype != RP_FLOAT32 && spec->observation_dtype != RP_UINT8)
        return "observation_dtype is neither RP_FLOAT32 nor RP_UINT8";
    if (elements == 0) return "an observation has no elements";
    if (bounds != 0 && bounds != 1 && bounds != elements)
        return "observation_bounds is neither 0, 1 nor the number of elements";
    if (bounds != 0 && (spec->observation_low == NULL || spec->observation_high == NULL ||
                        !in_order(spec->observation_low, spec->observation_high, bounds)))
        return "the bounds of an observation are missing or not in order";
    return NULL;
}

static const char *bad_action(const rp_env_spec *spec)
{
    switch (spec->action_kind) {
    case RP_ACTION_DISCRETE:
        if (spec->action_count < 1) return "action_count is less than 1";
        if (spec->action_size != 1) return "action_size of discrete actions is not 1";
        return NULL;
    case RP_ACTION_BOX:
        if (spec->action_size < 1 || spec->action_size > INT32_MAX)
            return "action_size is out of range";
        if (spec->action_low == NULL || spec->action_high == NULL ||
            !in_order(spec->action_low, spec->action_high, spec->action_size))
            return "the bounds of an action are missing or not in order";
        return NULL;
    }
    return "action_kind is unknown";
}

static const char *bad_class(const rp_env_class *class, const rp_env_spec *spec)
{
    if (spec->time_limit < 0) return "time_limit is negative";
    if (isinf(spec->solved_return)) return "solved_return is infinite";
    if (spec->state_bytes == 0 || spec->state_bytes % 8 != 0 || spec->state_bytes > INT32_MAX)
        return "state_bytes is not a multiple of 8 between 8 and 2^31";
    if (spec->shared_bytes > 0 && class->prepare == NULL) return "prepare() is missing";
    if (class->seed == NULL || class->reset == NULL || class->step == NULL ||
        class->observe == NULL || class->check == NULL)
        return "one of seed(), reset(), step(), observe(), check() is missing";
    if (spec->variable_count > 0 &&
        (class->get_variables == NULL || class->set_variables == NULL ||
         spec->variable_names == NULL))
        return "the functions or the names of its variables are missing";
    return NULL;
}

static rp_status check_spec(rp_env *env, rp_error *err)
{
    const char *wrong = NULL;

    if (rp_shape_elements(&env->spec.observation_shape, &env->elements) != RP_OK ||
        env->elements > INT32_MAX)
        wrong = "observation_shape is no shape";
    if (wrong == NULL) wrong = bad_observation(&env->spec, env->elements);
    if (wrong == NULL) wrong = bad_action(&env->spec);
    if (wrong == NULL) wrong = bad_class(env->class, &env->spec);
    if (wrong != NULL)
        return rp_rl_fail(err, RP_INVALID, "environment '%s': %s", env->class->name, wrong);
    env->observation_bytes = env->elements * rp_dtype_size(env->spec.observation_dtype);
    return RP_OK;
}

static void *take_memory(const rp_env *env, size_t count, size_t size)
{
    void *memory;

    if (size == 0) return NULL;
    if (count > SIZE_MAX / size) return NULL;
    memory = env->alloc.resize(env->alloc.ctx, NULL, 0, count * size);
    if (memory != NULL) memset(memory, 0, count * size);
    return memory;
}

static void give_memory(const rp_env *env, void *memory, size_t size)
{
    if (memory != NULL) (void)env->alloc.resize(env->alloc.ctx, memory, size, 0);
}

static rp_status allocate(rp_env *env, rp_error *err)
{
    env->copy = take_memory(env, env->copies, sizeof *env->copy);
    env->states = take_memory(env, env->copies, env->spec.state_bytes);
    env->shared = take_memory(env, 1, env->spec.shared_bytes);
    if (env->copy == NULL || env->states == NULL ||
        (env->shared == NULL && env->spec.shared_bytes > 0))
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for %zu copies of '%s'", env->copies,
                          env->class->name);
    return RP_OK;
}

static rp_status fill(rp_env *env, const rp_env_options *options, rp_error *err)
{
    rp_status st = resolve_settings(env, options, err);

    if (st != RP_OK) return st;
    st = env->class->describe(env->settings, &env->spec, err);
    if (st != RP_OK) return st;
    if (options->time_limit != 0)
        env->spec.time_limit = options->time_limit == -1 ? 0 : options->time_limit;
    st = check_spec(env, err);
    if (st != RP_OK) return st;
    st = allocate(env, err);
    if (st != RP_OK) return st;
    env->ctx = (rp_env_context){&env->spec, env->settings, env->shared};
    if (env->spec.shared_bytes > 0) env->class->prepare(&env->ctx, env->shared);
    return RP_OK;
}

rp_status rp_env_new(const rp_allocator *alloc, const rp_env_class *env_class,
                     const rp_env_options *options, rp_env **out, rp_error *err)
{
    rp_env *env = NULL;
    rp_status st;

    if (env_class == NULL)
        return rp_rl_fail(err, RP_INVALID, "the class of the environment is NULL");
    if (env_class->name == NULL || env_class->describe == NULL)
        return rp_rl_fail(err, RP_INVALID, "the class has no name or no describe()");
    if (options->copies < 1 || options->copies > RP_ENV_MAX_COPIES)
        return rp_rl_fail(err, RP_INVALID,
                          "environment '%s': copies must be in [1, %d], got %zu",
                          env_class->name, RP_ENV_MAX_COPIES, options->copies);
    if (alloc == NULL) alloc = rp_allocator_default();
    env = alloc->resize(alloc->ctx, NULL, 0, sizeof *env);
    if (env == NULL)
        return rp_rl_fail(err, RP_NO_RESOURCE, "no memory for '%s'", env_class->name);
    memset(env, 0, sizeof *env);
    env->alloc = *alloc;
    env->class = env_class;
    env->copies = env->waiting = options->copies;
    env->keep_ended = options->keep_ended;
    env->clip_actions = options->clip_actions;
    st = fill(env, options, err);
    if (st != RP_OK) {
        rp_env_free(env);
        return st;
    }
    assert(rp_env_verify(env)); /* no copy has begun: the class is not asked */
    *out = env;
    return RP_OK;
}

void rp_env_free(rp_env *env)
{
    if (env == NULL) return;
    rp_allocator alloc = env->alloc;

    if (env->ctx.shared != NULL && env->class->release != NULL)
        env->class->release(env->shared);
    give_memory(env, env->shared, env->spec.shared_bytes);
    give_memory(env, env->states, env->copies * env->spec.state_bytes);
    give_memory(env, env->copy, env->copies * sizeof *env->copy);
    (void)alloc.resize(alloc.ctx, env, sizeof *env, 0);
}
