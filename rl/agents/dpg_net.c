/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of DPG, and the policy without noise. */
#include "agents/dpg_net.h"

#include <assert.h>
#include <math.h>

#include "error/fail.h"
#include "reprise/rl/onnx.h"

static_assert(sizeof(rp_real) == sizeof(float), "actions are what the policy computes");

/* Checks that DPG can learn the environment, and counts the numbers of an observation. */
static rp_status check_spec(const rp_env_spec *spec, size_t *numbers, rp_error *err)
{
    size_t count = 1;

    if (spec->action_kind != RP_ACTION_BOX)
        return rp_rl_fail(err, RP_INVALID,
                          "dpg: needs continuous actions, and the environment has %d discrete "
                          "ones",
                          (int)spec->action_count);
    for (size_t i = 0; i < spec->action_size; i++)
        if (!isfinite(spec->action_low[i]) || !isfinite(spec->action_high[i]) ||
            spec->action_low[i] >= spec->action_high[i])
            return rp_rl_fail(err, RP_INVALID,
                              "dpg: needs finite bounds of actions, and number %zu is from %g "
                              "to %g",
                              i, (double)spec->action_low[i], (double)spec->action_high[i]);
    if (spec->observation_dtype != RP_FLOAT32)
        return rp_rl_fail(err, RP_INVALID,
                          "dpg: needs observations of float32, and the environment has %s",
                          rp_dtype_name(spec->observation_dtype));
    assert(spec->observation_shape.rank >= 0 && spec->observation_shape.rank <= RP_MAX_RANK);
    for (int32_t i = 0; i < spec->observation_shape.rank; i++)
        count *= (size_t)spec->observation_shape.dims[i];
    *numbers = count;
    return RP_OK;
}

rp_status rp_dpg_check_env(const rp_env_spec *spec, rp_error *err)
{
    size_t numbers;

    return check_spec(spec, &numbers, err);
}

/* Hidden layers, then `last`. */
static rp_status new_net(const rp_allocator *alloc, const rp_dpg_settings *set, size_t in,
                         rp_net_layer last, rp_net **out, rp_error *err)
{
    rp_net_layer layers[16 + 1];
    size_t count = 0;

    assert(set->layers >= 0 && set->layers <= 16);
    for (int64_t i = 0; i < set->layers; i++)
        layers[count++] = (rp_net_layer){
            .kind = RP_NET_DENSE, .out = (size_t)set->hidden, .activation = RP_RELU};
    layers[count++] = last;
    return rp_net_new(alloc != NULL ? alloc : rp_allocator_default(), (rp_net_shape){1, 1, in},
                      layers, count, out, err);
}

rp_status rp_dpg_new_net(const rp_allocator *alloc, const rp_dpg_settings *set,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    const rp_net_layer last = {
        .kind = RP_NET_DENSE, .out = spec->action_size, .activation = RP_TANH};
    size_t numbers = 0;
    rp_status st = rp_dpg_settings_check(set, err);

    if (st == RP_OK) st = check_spec(spec, &numbers, err);
    return st == RP_OK ? new_net(alloc, set, numbers, last, out, err) : st;
}

rp_status rp_dpg_new_critic(const rp_allocator *alloc, const rp_dpg_settings *set,
                            const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    const rp_net_layer last = {.kind = RP_NET_DENSE, .out = 1};
    size_t numbers = 0;
    rp_status st = rp_dpg_settings_check(set, err);

    if (st == RP_OK) st = check_spec(spec, &numbers, err);
    return st == RP_OK ? new_net(alloc, set, numbers + spec->action_size, last, out, err) : st;
}

rp_status rp_dpg_boxes_new(const rp_allocator *alloc, const rp_dpg_settings *set,
                           const rp_env_spec *spec, rp_box **observations, rp_box **actions,
                           rp_error *err)
{
    rp_box *seen = NULL;
    size_t numbers = 0;
    rp_status st = check_spec(spec, &numbers, err);

    if (st == RP_OK)
        st = rp_box_new(alloc, numbers, spec->observation_low, spec->observation_high,
                        set->normalize ? spec->observation_bounds : 0, &seen, err);
    if (st == RP_OK)
        st = rp_box_new(alloc, spec->action_size, spec->action_low, spec->action_high,
                        spec->action_size, actions, err);
    if (st != RP_OK) {
        rp_box_free(seen);
        return st;
    }
    *observations = seen;
    return RP_OK;
}

rp_status rp_dpg_nets_init(const rp_allocator *alloc, const rp_dpg_settings *set,
                           const rp_env_spec *spec, rp_dpg_nets *nets, rp_error *err)
{
    rp_status st;

    *nets = (rp_dpg_nets){0};
    st = rp_dpg_new_net(alloc, set, spec, &nets->policy, err);
    if (st == RP_OK) st = rp_dpg_new_critic(alloc, set, spec, &nets->critic, err);
    if (st == RP_OK)
        st = rp_dpg_boxes_new(alloc, set, spec, &nets->observations, &nets->actions, err);
    if (st != RP_OK) {
        rp_dpg_nets_deinit(nets);
        return st;
    }
    nets->numbers = nets->observations->size;
    nets->action_count = nets->actions->size;
    nets->parameter_count = rp_net_size(nets->policy) + rp_net_size(nets->critic);
    return RP_OK;
}

void rp_dpg_nets_deinit(rp_dpg_nets *nets)
{
    rp_net_free(nets->policy);
    rp_net_free(nets->critic);
    rp_box_free(nets->observations);
    rp_box_free(nets->actions);
    *nets = (rp_dpg_nets){0};
}

typedef struct dpg_policy {
    rp_policy policy; /* first */
    rp_allocator alloc;
    rp_box *observations, *actions;
    rp_tape *tape;
    size_t size_bytes;
    rp_real scratch[]; /* rows x numbers */
} dpg_policy;

static void policy_act(rp_policy *policy, const rp_real *params, const void *observations,
                       size_t rows, void *actions)
{
    dpg_policy *p = (dpg_policy *)policy;
    const rp_real *unit;

    assert(rows >= 1 && rows <= policy->rows);
    rp_box_to_unit(p->observations, observations, rows, p->scratch, p->observations->size);
    unit = rp_tape_forward(p->tape, params, p->scratch, rows);
    rp_box_from_unit(p->actions, unit, rows, actions);
}

static void policy_free(rp_policy *policy)
{
    dpg_policy *p = (dpg_policy *)policy;
    rp_allocator alloc = p->alloc;

    rp_tape_free(p->tape);
    rp_box_free(p->observations);
    rp_box_free(p->actions);
    (void)alloc.resize(alloc.ctx, p, p->size_bytes, 0);
}

rp_status rp_dpg_new_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_dpg_settings *set, const rp_env_spec *spec, size_t rows,
                            rp_policy **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    size_t size = sizeof(dpg_policy) + rows * rp_net_in_size(net) * sizeof(rp_real);
    rp_net *critic = NULL;
    rp_status st = rp_dpg_new_critic(&a, set, spec, &critic, err);
    dpg_policy *p = st == RP_OK ? a.resize(a.ctx, NULL, 0, size) : NULL;
    size_t count = st == RP_OK ? rp_net_size(net) + rp_net_size(critic) : 0;

    rp_net_free(critic);
    if (st != RP_OK) return st;
    if (p == NULL) return rp_rl_fail_memory(err, size);
    *p = (dpg_policy){
        .policy = {count, rows, policy_act, policy_free}, .alloc = a, .size_bytes = size};
    st = rp_dpg_boxes_new(&a, set, spec, &p->observations, &p->actions, err);
    if (st == RP_OK) st = rp_tape_new(&a, net, (rp_tape_options){.rows = rows}, &p->tape, err);
    if (st != RP_OK) {
        policy_free(&p->policy);
        return st;
    }
    assert(rp_net_out_size(net) == p->actions->size);
    *out = &p->policy;
    return RP_OK;
}

rp_status rp_dpg_save_onnx(const rp_allocator *alloc, const rp_net *net,
                           const rp_dpg_settings *set, const rp_env_spec *spec,
                           const rp_real *params, const char *path, rp_error *err)
{
    const rp_allocator *a = alloc != NULL ? alloc : rp_allocator_default();
    rp_box *observations = NULL, *actions = NULL;
    rp_status st = rp_dpg_boxes_new(a, set, spec, &observations, &actions, err);

    if (st == RP_OK) {
        const rp_onnx_options options = {
            .observation = spec->observation_shape,
            .input = {observations->middle, observations->inverse},
            .head = RP_ONNX_BOX,
            .box = {actions->middle, actions->half},
        };

        st = rp_net_save_onnx(a, net, params, &options, path, err);
    }
    rp_box_free(observations);
    rp_box_free(actions);
    return st;
}
