/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of agents of continuous actions: see box_nets.h. */
#include "agents/box/box_nets.h"

#include <assert.h>
#include <math.h>

#include "agents/box/box_head.h"
#include "agents/setting_value.h"
#include "error/fail.h"
#include "error/unfit.h"
#include "reprise/rl/onnx.h"

static_assert(sizeof(rp_real) == sizeof(float), "actions are what the policy computes");

enum { MOST_LAYERS = 16 };

rp_box_making rp_box_making_of(const rp_allocator *alloc, const rp_box_shape *shape,
                               const void *settings, const rp_env_spec *spec)
{
    return (rp_box_making){alloc != NULL ? *alloc : *rp_allocator_default(), shape, settings,
                           spec};
}

static double setting(const rp_box_making *m, const char *name)
{
    return rp_setting_value(m->shape->table(), m->settings, name);
}

/* Checks that the agent can learn the environment, and counts the numbers of an observation. */
static rp_status check_spec(const rp_box_making *m, size_t *numbers, rp_error *err)
{
    const char *agent = m->shape->table()->agent;
    const rp_env_spec *spec = m->spec;
    size_t count = 1;
    char others[128];

    if (spec->action_kind != RP_ACTION_BOX)
        return rp_rl_fail(err, RP_INVALID,
                          "%s: needs continuous actions, and the environment has %d discrete "
                          "ones%s",
                          agent, (int)spec->action_count,
                          rp_envs_text(RP_ACTION_BOX, others, sizeof others));
    for (size_t i = 0; i < spec->action_size; i++)
        if (!isfinite(spec->action_low[i]) || !isfinite(spec->action_high[i]) ||
            spec->action_low[i] >= spec->action_high[i])
            return rp_rl_fail(err, RP_INVALID,
                              "%s: needs finite bounds of actions, and number %zu is from %g "
                              "to %g",
                              agent, i, (double)spec->action_low[i],
                              (double)spec->action_high[i]);
    if (spec->observation_dtype != RP_FLOAT32)
        return rp_rl_fail(err, RP_INVALID,
                          "%s: needs observations of float32, and the environment has %s",
                          agent, rp_dtype_name(spec->observation_dtype));
    assert(spec->observation_shape.rank >= 0 && spec->observation_shape.rank <= RP_MAX_RANK);
    for (int32_t i = 0; i < spec->observation_shape.rank; i++)
        count *= (size_t)spec->observation_shape.dims[i];
    *numbers = count;
    return RP_OK;
}

rp_status rp_box_check_env(const rp_box_making *m, rp_error *err)
{
    size_t numbers;

    return check_spec(m, &numbers, err);
}

/* Hidden layers, then `last`. */
static rp_status new_net(const rp_box_making *m, size_t in, rp_net_layer last, rp_net **out,
                         rp_error *err)
{
    rp_net_layer layers[MOST_LAYERS + 1];
    size_t count = (size_t)setting(m, "layers");

    assert(count <= MOST_LAYERS);
    for (size_t i = 0; i < count; i++)
        layers[i] = (rp_net_layer){
            .kind = RP_NET_DENSE, .out = (size_t)setting(m, "hidden"), .activation = RP_RELU};
    layers[count] = last;
    return rp_net_new(&m->alloc, (rp_net_shape){1, 1, in}, layers, count + 1, out, err);
}

rp_status rp_box_new_policy_net(const rp_box_making *m, rp_net **out, rp_error *err)
{
    bool is_gaussian = m->shape->is_gaussian;
    const rp_net_layer last = {.kind = RP_NET_DENSE,
                               .out = (is_gaussian ? 2 : 1) * m->spec->action_size,
                               .activation = is_gaussian ? RP_LINEAR : RP_TANH};
    size_t numbers = 0;
    rp_status st = rp_settings_check(m->shape->table(), m->settings, err);

    if (st == RP_OK) st = check_spec(m, &numbers, err);
    return st == RP_OK ? new_net(m, numbers, last, out, err) : st;
}

rp_status rp_box_new_critic_net(const rp_box_making *m, rp_net **out, rp_error *err)
{
    const rp_net_layer last = {.kind = RP_NET_DENSE, .out = 1};
    size_t numbers = 0;
    rp_status st = rp_settings_check(m->shape->table(), m->settings, err);

    if (st == RP_OK) st = check_spec(m, &numbers, err);
    return st == RP_OK ? new_net(m, numbers + m->spec->action_size, last, out, err) : st;
}

static rp_status new_boxes(const rp_box_making *m, rp_box **observations, rp_box **actions,
                           rp_error *err)
{
    const rp_env_spec *spec = m->spec;
    rp_box *seen = NULL;
    size_t numbers = 0;
    rp_status st = check_spec(m, &numbers, err);

    if (st == RP_OK)
        st =
            rp_box_new(&m->alloc, numbers, spec->observation_low, spec->observation_high,
                       setting(m, "normalize") != 0 ? spec->observation_bounds : 0, &seen, err);
    if (st == RP_OK)
        st = rp_box_new(&m->alloc, spec->action_size, spec->action_low, spec->action_high,
                        spec->action_size, actions, err);
    if (st != RP_OK) {
        rp_box_free(seen);
        return st;
    }
    *observations = seen;
    return RP_OK;
}

static size_t count_parameters(const rp_box_shape *shape, const rp_net *policy,
                               const rp_net *critic)
{
    return rp_net_size(policy) + shape->critics * rp_net_size(critic) + shape->own;
}

rp_status rp_box_nets_init(const rp_box_making *m, rp_box_nets *nets, rp_error *err)
{
    rp_status st;

    *nets = (rp_box_nets){0};
    st = rp_box_new_policy_net(m, &nets->policy, err);
    if (st == RP_OK) st = rp_box_new_critic_net(m, &nets->critic, err);
    if (st == RP_OK) st = new_boxes(m, &nets->observations, &nets->actions, err);
    if (st != RP_OK) {
        rp_box_nets_deinit(nets);
        return st;
    }
    nets->numbers = nets->observations->size;
    nets->action_count = nets->actions->size;
    nets->parameter_count = count_parameters(m->shape, nets->policy, nets->critic);
    return RP_OK;
}

void rp_box_nets_deinit(rp_box_nets *nets)
{
    rp_net_free(nets->policy);
    rp_net_free(nets->critic);
    rp_box_free(nets->observations);
    rp_box_free(nets->actions);
    *nets = (rp_box_nets){0};
}

typedef struct box_policy {
    rp_policy policy; /* first */
    rp_allocator alloc;
    bool is_gaussian;
    rp_box *observations, *actions;
    rp_tape *tape;
    size_t size_bytes;
    rp_real *modes;    /* rows x actions; of a Gaussian policy, in `scratch` */
    rp_real scratch[]; /* rows x numbers, then `modes` */
} box_policy;

/* Writes the most likely actions of Gaussians, whose means come before their deviations. */
static void take_modes(const box_policy *p, const rp_real *out, size_t rows)
{
    size_t count = p->actions->size;

    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++)
            p->modes[row * count + i] = tanhf(out[row * 2 * count + i]);
}

static void policy_act(rp_policy *policy, const rp_real *params, const void *observations,
                       size_t rows, void *actions)
{
    box_policy *p = (box_policy *)policy;
    const rp_real *unit;

    assert(rows >= 1 && rows <= policy->rows);
    rp_box_to_unit(p->observations, observations, rows, p->scratch, p->observations->size);
    unit = rp_tape_forward(p->tape, params, p->scratch, rows);
    if (p->is_gaussian) take_modes(p, unit, rows);
    rp_box_from_unit(p->actions, p->is_gaussian ? p->modes : unit, rows, actions);
}

static void policy_free(rp_policy *policy)
{
    box_policy *p = (box_policy *)policy;
    rp_allocator alloc = p->alloc;

    rp_tape_free(p->tape);
    rp_box_free(p->observations);
    rp_box_free(p->actions);
    (void)alloc.resize(alloc.ctx, p, p->size_bytes, 0);
}

rp_status rp_box_new_policy(const rp_box_making *m, const rp_net *net, size_t rows,
                            rp_policy **out, rp_error *err)
{
    rp_allocator a = m->alloc;
    size_t numbers = rows * rp_net_in_size(net), modes = rows * m->spec->action_size;
    size_t size = sizeof(box_policy) + (numbers + modes) * sizeof(rp_real);
    rp_net *critic = NULL;
    rp_status st = rp_box_new_critic_net(m, &critic, err);
    box_policy *p = st == RP_OK ? a.resize(a.ctx, NULL, 0, size) : NULL;
    size_t count = st == RP_OK ? count_parameters(m->shape, net, critic) : 0;

    rp_net_free(critic);
    if (st != RP_OK) return st;
    if (p == NULL) return rp_rl_fail_memory(err, size);
    *p = (box_policy){.policy = {count, rows, policy_act, policy_free},
                      .alloc = a,
                      .is_gaussian = m->shape->is_gaussian,
                      .size_bytes = size};
    p->modes = p->scratch + numbers;
    st = new_boxes(m, &p->observations, &p->actions, err);
    if (st == RP_OK) st = rp_tape_new(&a, net, (rp_tape_options){.rows = rows}, &p->tape, err);
    if (st != RP_OK) {
        policy_free(&p->policy);
        return st;
    }
    assert(rp_net_out_size(net) == (p->is_gaussian ? 2 : 1) * p->actions->size);
    *out = &p->policy;
    return RP_OK;
}

rp_status rp_box_save_onnx(const rp_box_making *m, const rp_net *net, const rp_real *params,
                           const char *path, rp_error *err)
{
    rp_box *observations = NULL, *actions = NULL;
    rp_status st = new_boxes(m, &observations, &actions, err);

    if (st == RP_OK) {
        const rp_onnx_options options = {
            .observation = m->spec->observation_shape,
            .input = {observations->middle, observations->inverse},
            .head = m->shape->is_gaussian ? RP_ONNX_GAUSSIAN : RP_ONNX_BOX,
            .gaussian = rp_box_head(m->spec->action_size),
            .box = {actions->middle, actions->half},
        };

        st = rp_net_save_onnx(&m->alloc, net, params, &options, path, err);
    }
    rp_box_free(observations);
    rp_box_free(actions);
    return st;
}
