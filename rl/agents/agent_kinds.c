/* SPDX-License-Identifier: Apache-2.0 */
/* The table of agents: each function casts the settings to those of its kind. */
#include "reprise/rl/agent_kinds.h"

#include <assert.h>
#include <string.h>

static rp_status dqn_agent(const rp_allocator *alloc, const rp_agent_options *o, rp_agent **out,
                           rp_error *err)
{
    const rp_dqn_options options = {&o->settings->dqn, o->spec, o->store, o->client, o->seed};

    return rp_dqn_new(alloc, &options, out, err);
}

static rp_status dqn_net(const rp_allocator *alloc, const rp_agent_settings *settings,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    return rp_dqn_new_net(alloc, &settings->dqn, spec, out, err);
}

static rp_status dqn_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_agent_settings *settings, const rp_env_spec *spec,
                            size_t rows, rp_policy **out, rp_error *err)
{
    (void)settings;
    return rp_dqn_new_policy(alloc, net, spec, rows, out, err);
}

static rp_status dqn_onnx(const rp_net *net, const rp_agent_settings *settings,
                          const rp_env_spec *spec, const rp_real *params, const char *path,
                          rp_error *err)
{
    (void)settings;
    return rp_dqn_save_onnx(NULL, net, spec, params, path, err);
}

static rp_status dpg_agent(const rp_allocator *alloc, const rp_agent_options *o, rp_agent **out,
                           rp_error *err)
{
    const rp_dpg_options options = {&o->settings->dpg, o->spec, o->store, o->client, o->seed};

    return rp_dpg_new(alloc, &options, out, err);
}

static rp_status dpg_net(const rp_allocator *alloc, const rp_agent_settings *settings,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    return rp_dpg_new_net(alloc, &settings->dpg, spec, out, err);
}

static rp_status dpg_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_agent_settings *settings, const rp_env_spec *spec,
                            size_t rows, rp_policy **out, rp_error *err)
{
    return rp_dpg_new_policy(alloc, net, &settings->dpg, spec, rows, out, err);
}

static rp_status dpg_onnx(const rp_net *net, const rp_agent_settings *settings,
                          const rp_env_spec *spec, const rp_real *params, const char *path,
                          rp_error *err)
{
    return rp_dpg_save_onnx(NULL, net, &settings->dpg, spec, params, path, err);
}

static rp_status sac_agent(const rp_allocator *alloc, const rp_agent_options *o, rp_agent **out,
                           rp_error *err)
{
    const rp_sac_options options = {&o->settings->sac, o->spec, o->store, o->client, o->seed};

    return rp_sac_new(alloc, &options, out, err);
}

static rp_status sac_net(const rp_allocator *alloc, const rp_agent_settings *settings,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    return rp_sac_new_net(alloc, &settings->sac, spec, out, err);
}

static rp_status sac_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_agent_settings *settings, const rp_env_spec *spec,
                            size_t rows, rp_policy **out, rp_error *err)
{
    return rp_sac_new_policy(alloc, net, &settings->sac, spec, rows, out, err);
}

static rp_status sac_onnx(const rp_net *net, const rp_agent_settings *settings,
                          const rp_env_spec *spec, const rp_real *params, const char *path,
                          rp_error *err)
{
    return rp_sac_save_onnx(NULL, net, &settings->sac, spec, params, path, err);
}

static const rp_agent_kind kinds[] = {
    {"dpg", rp_dpg_settings_table, dpg_agent, dpg_net, dpg_policy, dpg_onnx},
    {"dqn", rp_dqn_settings_table, dqn_agent, dqn_net, dqn_policy, dqn_onnx},
    {"sac", rp_sac_settings_table, sac_agent, sac_net, sac_policy, sac_onnx},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

const rp_agent_kind *rp_agent_kind_at(size_t index)
{
    return index < KINDS ? &kinds[index] : NULL;
}

const rp_agent_kind *rp_agent_find(const char *name)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
    return NULL;
}

int64_t rp_agent_copies(const rp_agent_kind *kind, const rp_agent_settings *settings)
{
    const rp_settings_table *table = kind->settings();
    size_t index = rp_settings_find(table, "copies");

    assert(index < table->count && table->size <= sizeof *settings);
    return (int64_t)rp_settings_get(table, settings, index);
}
