/* SPDX-License-Identifier: Apache-2.0 */
/* The network of DQN, and the policy that takes the action with the largest value. */
#include "agents/dqn_net.h"

#include <assert.h>

#include "error/fail.h"
#include "error/unfit.h"
#include "reprise/rl/onnx.h"

static_assert(sizeof(rp_real) == sizeof(float), "networks take observations as they are");

/* Images are planes of bytes, as Gymnasium stacks them: {planes, height, width}. */
static bool is_image(const rp_env_spec *spec)
{
    const rp_shape *shape = &spec->observation_shape;

    return spec->observation_dtype == RP_UINT8 && shape->rank == 3 && shape->dims[1] >= 36 &&
           shape->dims[2] >= 36;
}

rp_status rp_dqn_check_env(const rp_env_spec *spec, rp_error *err)
{
    char others[160];

    if (spec->action_kind == RP_ACTION_DISCRETE) return RP_OK;
    return rp_rl_fail(
        err, RP_INVALID, "dqn: needs discrete actions, and the environment has a box of %zu%s",
        spec->action_size, rp_envs_text(RP_ACTION_DISCRETE, others, sizeof others));
}

/* The network: three convolutions if observations are images (Mnih et al. 2015), then hidden
 * layers, then one value for each action. */
rp_status rp_dqn_new_net(const rp_allocator *alloc, const rp_dqn_settings *set,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    const rp_shape *shape = &spec->observation_shape;
    rp_net_layer layers[3 + 16 + 1];
    rp_net_shape in = {1, 1, 1};
    size_t count = 0;
    rp_status st = rp_dqn_settings_check(set, err);

    if (st == RP_OK) st = rp_dqn_check_env(spec, err);
    if (st != RP_OK) return st;
    assert(shape->rank >= 0 && shape->rank <= RP_MAX_RANK);
    if (is_image(spec)) {
        in = (rp_net_shape){(size_t)shape->dims[1], (size_t)shape->dims[2],
                            (size_t)shape->dims[0]};
        layers[count++] = (rp_net_layer){
            .kind = RP_NET_CONV, .out = 32, .kernel = 8, .stride = 4, .activation = RP_RELU};
        layers[count++] = (rp_net_layer){
            .kind = RP_NET_CONV, .out = 64, .kernel = 4, .stride = 2, .activation = RP_RELU};
        layers[count++] = (rp_net_layer){
            .kind = RP_NET_CONV, .out = 64, .kernel = 3, .stride = 1, .activation = RP_RELU};
    } else {
        for (int32_t i = 0; i < shape->rank; i++) in.channels *= (size_t)shape->dims[i];
    }
    for (int64_t i = 0; i < set->layers; i++)
        layers[count++] = (rp_net_layer){
            .kind = RP_NET_DENSE, .out = (size_t)set->hidden, .activation = RP_RELU};
    layers[count++] = (rp_net_layer){.kind = set->dueling ? RP_NET_DUELING : RP_NET_DENSE,
                                     .out = (size_t)spec->action_count,
                                     .shared = set->dueling};
    assert(count <= sizeof layers / sizeof layers[0]);
    return rp_net_new(alloc != NULL ? alloc : rp_allocator_default(), in, layers, count, out,
                      err);
}

const rp_real *rp_dqn_input(const rp_env_spec *spec, const void *observations, size_t count,
                            rp_real *scratch)
{
    const rp_real unit = (rp_real)(1.0 / 255);
    const uint8_t *bytes = observations;
    size_t planes = 1, cells = count;

    if (spec->observation_dtype == RP_FLOAT32) return observations;
    assert(spec->observation_dtype == RP_UINT8 && scratch != NULL);
    if (is_image(spec)) {
        planes = (size_t)spec->observation_shape.dims[0];
        cells = (size_t)(spec->observation_shape.dims[1] * spec->observation_shape.dims[2]);
    }
    assert(count % (planes * cells) == 0);
    for (size_t row = 0; row < count; row += planes * cells) /* channels last */
        for (size_t plane = 0; plane < planes; plane++)
            for (size_t i = 0; i < cells; i++)
                scratch[row + i * planes + plane] =
                    (rp_real)bytes[row + plane * cells + i] * unit;
    return scratch;
}

typedef struct dqn_policy {
    rp_policy policy; /* first */
    rp_allocator alloc;
    rp_env_spec spec;
    size_t numbers, actions;
    rp_tape *tape;
    size_t size_bytes;
    rp_real scratch[]; /* rows x numbers, only if observations are bytes */
} dqn_policy;

static void policy_act(rp_policy *policy, const rp_real *params, const void *observations,
                       size_t rows, void *actions)
{
    dqn_policy *p = (dqn_policy *)policy;
    const rp_real *input = rp_dqn_input(&p->spec, observations, rows * p->numbers, p->scratch);
    const rp_real *q = rp_tape_forward(p->tape, params, input, rows);
    int32_t *out = actions;

    assert(rows >= 1 && rows <= policy->rows);
    for (size_t i = 0; i < rows; i++)
        out[i] = (int32_t)rp_argmax(q + i * p->actions, p->actions);
}

static void policy_free(rp_policy *policy)
{
    dqn_policy *p = (dqn_policy *)policy;
    rp_allocator alloc = p->alloc;

    rp_tape_free(p->tape);
    (void)alloc.resize(alloc.ctx, p, p->size_bytes, 0);
}

rp_status rp_dqn_new_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_env_spec *spec, size_t rows, rp_policy **out,
                            rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    size_t numbers = rp_net_in_size(net);
    size_t scratch = spec->observation_dtype == RP_FLOAT32 ? 0 : rows * numbers;
    size_t size = sizeof(dqn_policy) + scratch * sizeof(rp_real);
    dqn_policy *p = a.resize(a.ctx, NULL, 0, size);
    rp_status st;

    if (p == NULL) return rp_rl_fail_memory(err, size);
    *p = (dqn_policy){.policy = {rp_net_size(net), rows, policy_act, policy_free},
                      .alloc = a,
                      .spec = *spec,
                      .numbers = numbers,
                      .actions = (size_t)spec->action_count,
                      .size_bytes = size};
    assert(rp_net_out_size(net) == p->actions);
    st = rp_tape_new(&a, net, (rp_tape_options){.rows = rows}, &p->tape, err);
    if (st != RP_OK) {
        policy_free(&p->policy);
        return st;
    }
    *out = &p->policy;
    return RP_OK;
}

rp_status rp_dqn_save_onnx(const rp_allocator *alloc, const rp_net *net,
                           const rp_env_spec *spec, const rp_real *params, const char *path,
                           rp_error *err)
{
    const rp_onnx_options options = {.observation = spec->observation_shape,
                                     .bytes = spec->observation_dtype == RP_UINT8,
                                     .planes = is_image(spec),
                                     .head = RP_ONNX_VALUES};

    return rp_net_save_onnx(alloc != NULL ? alloc : rp_allocator_default(), net, params,
                            &options, path, err);
}
