/* SPDX-License-Identifier: Apache-2.0 */
/* Writes networks as ONNX files with inputs and our outputs, for tests/rl/compare_onnx.py.
 *
 *     onnx_driver FOLDER
 *
 * For each case NAME: NAME.onnx, and one file of raw numbers for each input and output of the
 * graph, NAME.observations, NAME.outputs and so on, with ROWS rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/box/box_head.h"
#include "agents/sac/sac_kind.h"
#include "reprise/rl/agent_kinds.h"
#include "reprise/rl/init.h"
#include "reprise/rl/onnx.h"

enum { ROWS = 16, MOST_LAYERS = 6 };

typedef struct net_case {
    const char *name;
    rp_net_shape in;
    rp_net_layer layers[MOST_LAYERS];
    rp_onnx_options options;
} net_case;

#define DENSE(n, a)                                                                            \
    {                                                                                          \
        .kind = RP_NET_DENSE, .out = (n), .activation = (a)                                    \
    }
#define CONV(n, k, s, a)                                                                       \
    {                                                                                          \
        .kind = RP_NET_CONV, .out = (n), .kernel = (k), .stride = (s), .activation = (a)       \
    }

static const net_case cases[] = {
    {"dense",
     {1, 1, 8},
     {DENSE(64, RP_RELU), DENSE(64, RP_TANH), DENSE(3, RP_ELU)},
     {.head = RP_ONNX_OUTPUTS}},
    {"deep",
     {1, 1, 4},
     {DENSE(256, RP_RELU), DENSE(256, RP_RELU), DENSE(2, RP_LINEAR)},
     {.head = RP_ONNX_VALUES}},
    {"norm",
     {1, 1, 5},
     {DENSE(32, RP_LINEAR), {.kind = RP_NET_NORM, .activation = RP_ELU}, DENSE(3, RP_LINEAR)},
     {.head = RP_ONNX_OUTPUTS}},
    {"image",
     {20, 18, 3},
     {CONV(8, 5, 3, RP_RELU), CONV(6, 2, 1, RP_TANH), DENSE(16, RP_RELU), DENSE(4, RP_LINEAR)},
     {.head = RP_ONNX_OUTPUTS}},
    {"image_planes",
     {20, 18, 3},
     {CONV(8, 5, 3, RP_RELU), DENSE(4, RP_LINEAR)},
     {.planes = true}},
    {"image_norm",
     {9, 8, 2},
     {CONV(4, 3, 0, RP_LINEAR),
      {.kind = RP_NET_NORM, .activation = RP_RELU},
      CONV(3, 2, 2, RP_RELU),
      DENSE(5, RP_LINEAR)},
     {.head = RP_ONNX_OUTPUTS}},
    {"image_out", {6, 7, 2}, {CONV(3, 3, 2, RP_RELU)}, {.observation = {1, {84}}}},
    {"atari",
     {84, 84, 4},
     {CONV(32, 8, 4, RP_RELU),
      CONV(64, 4, 2, RP_RELU),
      CONV(64, 3, 1, RP_RELU),
      DENSE(512, RP_RELU),
      {.kind = RP_NET_DUELING, .out = 6, .shared = true}},
     {.head = RP_ONNX_VALUES, .bytes = true, .planes = true}},
    {"dueling",
     {1, 1, 6},
     {DENSE(64, RP_RELU), {.kind = RP_NET_DUELING, .out = 5}},
     {.head = RP_ONNX_VALUES}},
    {"dueling_atoms",
     {1, 1, 6},
     {DENSE(64, RP_RELU), {.kind = RP_NET_DUELING, .out = 3, .atoms = 51, .shared = true}},
     {.head = RP_ONNX_CATEGORICAL, .categorical = {51, -10, 10}}},
    {"quantile",
     {1, 1, 6},
     {DENSE(32, RP_RELU), DENSE(4 * 25, RP_LINEAR)},
     {.head = RP_ONNX_QUANTILE, .quantiles = 25}},
    {"gaussian",
     {1, 1, 7},
     {DENSE(32, RP_TANH), DENSE(6, RP_LINEAR)},
     {.head = RP_ONNX_GAUSSIAN, .gaussian = {3, -0.2, 0.3, true}}},
    {"gaussian_plain",
     {1, 1, 7},
     {DENSE(32, RP_TANH), DENSE(6, RP_LINEAR)},
     {.head = RP_ONNX_GAUSSIAN, .gaussian = {3, -5, 2, false}}},
    {"lstm",
     {1, 1, 5},
     {DENSE(16, RP_RELU), {.kind = RP_NET_LSTM, .out = 24}, DENSE(3, RP_LINEAR)},
     {.head = RP_ONNX_VALUES}},
    {"lstm_two",
     {10, 10, 1},
     {CONV(4, 3, 2, RP_RELU),
      {.kind = RP_NET_LSTM, .out = 8},
      {.kind = RP_NET_LSTM, .out = 12},
      {.kind = RP_NET_DUELING, .out = 4}},
     {.bytes = true}},
};

static const char *folder;
static rp_error err;

static void must(bool done)
{
    if (done) return;
    (void)fprintf(stderr, "onnx_driver: %s\n", err.text);
    exit(1);
}

static char *path_of(const char *name, const char *suffix, char path[512])
{
    (void)snprintf(path, 512, "%s/%s.%s", folder, name, suffix);
    return path;
}

static void write_numbers(const char *name, const char *suffix, const void *numbers,
                          size_t size)
{
    char path[512];
    FILE *file = fopen(path_of(name, suffix, path), "wb");

    must(file != NULL && fwrite(numbers, 1, size, file) == size && fclose(file) == 0);
}

static void *memory(size_t count, size_t size)
{
    void *bytes = calloc(count, size);

    must(bytes != NULL);
    return bytes;
}

static float *uniform(rp_pcg64 *rng, size_t count, double size)
{
    float *x = memory(count, sizeof *x);

    for (size_t i = 0; i < count; i++) x[i] = (float)rp_pcg64_uniform(rng, -size, size);
    return x;
}

/* Initial parameters, all of them moved a little: biases and gains too. */
static float *parameters(const rp_net *net, rp_pcg64 *rng)
{
    float *params = uniform(rng, rp_net_size(net), 0.1);
    float *initial = memory(rp_net_size(net), sizeof *initial);

    must(rp_net_init(rp_allocator_default(), net, RP_INIT_TORCH, rng, initial) == RP_OK);
    for (size_t i = 0; i < rp_net_size(net); i++) params[i] = initial[i] * (1 + params[i]);
    for (size_t i = 0; i < rp_net_parameter_count(net); i++) {
        const rp_net_parameter *p = rp_net_parameter_at(net, i);

        for (size_t j = 0; j < p->size && p->is_bias; j++)
            params[p->offset + j] += (float)rp_pcg64_uniform(rng, -0.1, 0.1);
    }
    free(initial);
    return params;
}

/* Random observations as the file takes them, and as the network reads them. */
static float *observations(const net_case *c, rp_pcg64 *rng)
{
    size_t pixels = c->in.height * c->in.width, channels = c->in.channels;
    size_t size = pixels * channels;
    float *rows = uniform(rng, ROWS * size, 1), *given = memory(ROWS * size, sizeof *given);
    uint8_t *bytes = memory(ROWS, size);

    for (size_t i = 0; i < ROWS * size; i++) {
        size_t row = i / size, pixel = i % size / channels, channel = i % channels;
        size_t to = c->options.planes ? row * size + channel * pixels + pixel : i;

        bytes[to] = (uint8_t)rp_pcg64_integers(rng, 0, 256);
        if (c->options.bytes) rows[i] = (float)bytes[to] * (float)(1.0 / 255);
        given[to] = rows[i];
    }
    if (c->options.bytes)
        write_numbers(c->name, "observations", bytes, ROWS * size);
    else
        write_numbers(c->name, "observations", given, ROWS * size * sizeof *given);
    free(given);
    free(bytes);
    return rows;
}

static void write_greedy(const net_case *c, const float *values, size_t actions)
{
    int64_t greedy[ROWS];

    for (size_t i = 0; i < ROWS; i++)
        greedy[i] = (int64_t)rp_argmax(values + i * actions, actions);
    write_numbers(c->name, "actions", greedy, sizeof greedy);
}

static void write_gaussian(const net_case *c, const float *out)
{
    rp_gaussian head = c->options.gaussian;
    size_t count = ROWS * head.actions;
    float *noise = memory(count, sizeof *noise), *action = memory(count, sizeof *action);
    float *mean = memory(count, sizeof *mean), density[ROWS];

    rp_gaussian_sample(&head, out, noise, ROWS, action, density);
    write_numbers(c->name, "actions", action, count * sizeof *action);
    head.squash = false; /* with noise 1, an action is the mean and the deviation */
    rp_gaussian_sample(&head, out, noise, ROWS, mean, density);
    for (size_t i = 0; i < count; i++) noise[i] = 1;
    rp_gaussian_sample(&head, out, noise, ROWS, action, density);
    for (size_t i = 0; i < count; i++) action[i] -= mean[i];
    write_numbers(c->name, "deviations", action, count * sizeof *action);
    free(noise);
    free(action);
    free(mean);
}

static void write_head(const net_case *c, const float *out, size_t out_size)
{
    const rp_quantile quantile = {c->options.quantiles, 1, 1};
    bool categorical = c->options.head == RP_ONNX_CATEGORICAL;
    size_t each = categorical ? c->options.categorical.atoms : c->options.quantiles;
    size_t actions = each == 0 ? out_size : out_size / each;
    float *values = memory(ROWS * out_size, sizeof *values);

    if (c->options.head == RP_ONNX_VALUES) write_greedy(c, out, out_size);
    if (c->options.head == RP_ONNX_GAUSSIAN) write_gaussian(c, out);
    if (categorical)
        rp_categorical_values(&c->options.categorical, out, ROWS * actions, values);
    if (c->options.head == RP_ONNX_QUANTILE)
        rp_quantile_values(&quantile, out, ROWS * actions, values);
    if (each != 0) {
        write_numbers(c->name, "values", values, ROWS * actions * sizeof *values);
        write_greedy(c, values, actions);
    }
    free(values);
}

static void run_case(const net_case *c, uint64_t seed)
{
    const rp_allocator *alloc = rp_allocator_default();
    size_t count = 0, states;
    rp_net *net;
    rp_tape *tape;
    rp_pcg64 rng;
    float *params, *rows, *state, *after;
    const float *out;
    char path[512];

    rp_pcg64_seed(&rng, seed);
    while (count < MOST_LAYERS && c->layers[count].kind != 0) count++;
    must(rp_net_new(alloc, c->in, c->layers, count, &net, &err) == RP_OK);
    must(rp_tape_new(alloc, net, (rp_tape_options){.rows = ROWS}, &tape, &err) == RP_OK);
    params = parameters(net, &rng);
    rows = observations(c, &rng);
    states = ROWS * rp_net_state_size(net);
    state = uniform(&rng, states + 1, 0.5);
    after = memory(states + 1, sizeof *after);
    if (states > 0) write_numbers(c->name, "state", state, states * sizeof *state);
    out = rp_tape_forward_sequence(
        tape, params, rows, ROWS,
        &(rp_tape_sequence){.steps = 1, .state = state, .state_out = after});
    if (states > 0) write_numbers(c->name, "state_after", after, states * sizeof *after);
    write_numbers(c->name, "outputs", out, ROWS * rp_net_out_size(net) * sizeof *out);
    write_head(c, out, rp_net_out_size(net));
    must(rp_net_save_onnx(alloc, net, params, &c->options, path_of(c->name, "onnx", path),
                          &err) == RP_OK);
    free(params);
    free(rows);
    free(state);
    free(after);
    rp_tape_free(tape);
    rp_net_free(net);
}

/* Multiplies the weights, so that the actions depend on the observations more than on biases.
 */
static void sharpen(const rp_net *net, float *params)
{
    for (size_t i = 0; i < rp_net_parameter_count(net); i++) {
        const rp_net_parameter *p = rp_net_parameter_at(net, i);

        for (size_t j = 0; j < p->size && !p->is_bias; j++) params[p->offset + j] *= 4;
    }
}

/* Writes the values of the actions: observations as the network reads them, through a tape. */
static void write_values(const char *name, const rp_env_spec *spec, const rp_net *net,
                         const float *params, const void *seen)
{
    const int64_t *dims = spec->observation_shape.dims;
    bool image = spec->observation_shape.rank == 3;
    size_t size = rp_net_in_size(net), planes = image ? (size_t)dims[0] : 1;
    size_t pixels = size / planes;
    float *rows = memory(ROWS * size, sizeof *rows);
    rp_tape *tape;

    for (size_t i = 0; i < ROWS * size; i++) {
        size_t plane = i % size / pixels, to = i / size * size + i % pixels * planes + plane;

        rows[to] = spec->observation_dtype == RP_UINT8
                       ? (float)((const uint8_t *)seen)[i] * (float)(1.0 / 255)
                       : ((const float *)seen)[i];
    }
    must(rp_tape_new(rp_allocator_default(), net, (rp_tape_options){.rows = ROWS}, &tape,
                     &err) == RP_OK);
    write_numbers(name, "outputs", rp_tape_forward(tape, params, rows, ROWS),
                  ROWS * rp_net_out_size(net) * sizeof(float));
    rp_tape_free(tape);
    free(rows);
}

/* The policy of DQN on observations of an environment, after some random steps. */
static void run_dqn(const char *env_name, uint64_t seed)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_env *env;
    rp_net *net;
    rp_policy *policy;
    rp_dqn_settings settings;
    rp_pcg64 rng;
    uint64_t seeds[ROWS];
    double rewards[ROWS];
    bool terminated[ROWS], truncated[ROWS];
    int32_t actions[ROWS];
    int64_t greedy[ROWS];
    float *params;
    void *seen, *last;
    char name[64], path[512];
    size_t size;

    (void)snprintf(name, sizeof name, "dqn_%s", env_name);
    rp_pcg64_seed(&rng, seed);
    for (size_t i = 0; i < ROWS; i++) seeds[i] = i;
    must(rp_env_new(NULL, rp_env_find(env_name), &(rp_env_options){.copies = ROWS}, &env,
                    &err) == RP_OK);
    size = ROWS * rp_env_observation_bytes(env);
    seen = memory(1, size);
    last = memory(1, size);
    must(rp_env_reset(env, seeds, seen, &err) == RP_OK);
    for (int step = 0; step < 8; step++) {
        for (size_t i = 0; i < ROWS; i++)
            actions[i] =
                (int32_t)rp_pcg64_integers(&rng, 0, rp_env_get_spec(env)->action_count);
        must(rp_env_step(env, actions,
                         &(rp_env_buffers){seen, last, rewards, terminated, truncated},
                         &err) == RP_OK);
    }
    rp_dqn_settings_init(&settings, env_name);
    must(rp_dqn_new_net(NULL, &settings, rp_env_get_spec(env), &net, &err) == RP_OK);
    must(rp_dqn_new_policy(NULL, net, rp_env_get_spec(env), ROWS, &policy, &err) == RP_OK);
    params = parameters(net, &rng);
    if (rp_env_get_spec(env)->observation_shape.rank != 3) sharpen(net, params);
    policy->act(policy, params, seen, ROWS, actions);
    for (size_t i = 0; i < ROWS; i++) greedy[i] = actions[i];
    write_numbers(name, "observations", seen, size);
    write_numbers(name, "actions", greedy, sizeof greedy);
    write_values(name, rp_env_get_spec(env), net, params, seen);
    must(rp_dqn_save_onnx(alloc, net, rp_env_get_spec(env), params, path_of(name, "onnx", path),
                          &err) == RP_OK);
    free(params);
    free(seen);
    free(last);
    rp_policy_free(policy);
    rp_net_free(net);
    rp_env_free(env);
}

/* What a Gaussian policy has beside actions: means with logarithms of deviations, and
 * deviations. */
static void write_gaussians(const char *name, const rp_box_making *making,
                            const rp_real *params, const float *seen)
{
    rp_box_nets nets;
    rp_tape *tape;
    float *unit, *deviations;
    const rp_real *out;
    rp_gaussian head;
    size_t n;

    must(rp_box_nets_init(making, &nets, &err) == RP_OK);
    n = nets.action_count;
    head = rp_box_head(n);
    unit = memory(ROWS * nets.numbers, sizeof *unit);
    deviations = memory(ROWS * n, sizeof *deviations);
    must(rp_tape_new(rp_allocator_default(), nets.policy, (rp_tape_options){.rows = ROWS},
                     &tape, &err) == RP_OK);
    rp_box_to_unit(nets.observations, seen, ROWS, unit, nets.numbers);
    out = rp_tape_forward(tape, params, unit, ROWS);
    for (size_t i = 0; i < ROWS * n; i++) {
        double log_deviation = (double)out[(2 * (i / n) + 1) * n + i % n];

        deviations[i] = (float)exp(fmax(head.log_low, fmin(head.log_high, log_deviation)));
    }
    write_numbers(name, "outputs", out, ROWS * 2 * n * sizeof *out);
    write_numbers(name, "deviations", deviations, ROWS * n * sizeof *deviations);
    rp_tape_free(tape);
    rp_box_nets_deinit(&nets);
    free(unit);
    free(deviations);
}

/* The policy of DPG or SAC on the first observations of an environment. */
static void run_box(const char *agent, const char *env_name, uint64_t seed)
{
    const rp_agent_kind *kind = rp_agent_find(agent);
    rp_env *env;
    rp_net *net;
    rp_policy *policy;
    rp_agent_settings settings;
    rp_pcg64 rng;
    uint64_t seeds[ROWS];
    float *params, *seen, *actions, *outputs;
    char name[64], path[512];
    const rp_env_spec *spec;
    size_t size, count;

    (void)snprintf(name, sizeof name, "%s_%s", agent, env_name);
    rp_pcg64_seed(&rng, seed);
    for (size_t i = 0; i < ROWS; i++) seeds[i] = i;
    must(rp_env_new(NULL, rp_env_find(env_name), &(rp_env_options){.copies = ROWS}, &env,
                    &err) == RP_OK);
    spec = rp_env_get_spec(env);
    size = ROWS * rp_env_observation_bytes(env);
    count = ROWS * spec->action_size;
    seen = memory(1, size);
    actions = memory(count, sizeof *actions);
    outputs = memory(count, sizeof *outputs);
    must(rp_env_reset(env, seeds, seen, &err) == RP_OK);
    rp_settings_init(kind->settings(), &settings, env_name);
    must(kind->new_net(NULL, &settings, spec, &net, &err) == RP_OK);
    must(kind->new_policy(NULL, net, &settings, spec, ROWS, &policy, &err) == RP_OK);
    params = parameters(net, &rng);
    policy->act(policy, params, seen, ROWS, actions);
    for (size_t i = 0; i < count; i++) { /* the bounds are -high and high */
        float high = spec->action_high[i % spec->action_size];

        must(spec->action_low[i % spec->action_size] == -high);
        outputs[i] = actions[i] / high;
    }
    write_numbers(name, "observations", seen, size);
    write_numbers(name, "actions", actions, count * sizeof *actions);
    if (strcmp(agent, "sac") == 0) {
        const rp_box_making making = rp_box_making_of(NULL, &rp_sac_shape, &settings, spec);

        write_gaussians(name, &making, params, seen);
    } else {
        write_numbers(name, "outputs", outputs, count * sizeof *outputs);
    }
    must(kind->save_onnx(net, &settings, spec, params, path_of(name, "onnx", path), &err) ==
         RP_OK);
    free(params);
    free(seen);
    free(actions);
    free(outputs);
    rp_policy_free(policy);
    rp_net_free(net);
    rp_env_free(env);
}

int main(int argc, char **argv)
{
    static const char *const envs[] = {"cartpole", "acrobot", "catch", "deep_sea", "bricks"};
    static const char *const boxes[] = {"pendulum", "mountain_car_continuous"};

    if (argc != 2) {
        (void)fprintf(stderr, "usage: onnx_driver FOLDER\n");
        return 2;
    }
    folder = argv[1];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) run_case(&cases[i], i);
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) run_dqn(envs[i], i);
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        run_box("dpg", boxes[i], i);
        run_box("sac", boxes[i], i);
    }
    return 0;
}
