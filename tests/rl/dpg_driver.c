/* SPDX-License-Identifier: Apache-2.0 */
/* Makes 100 updates of DPG and writes what PyTorch needs to repeat them: compare_dpg.py.
 *
 *   dpg_driver FOLDER
 *
 * Each case writes files of float32 numbers, FOLDER/CASE.NAME: the first parameters of both
 * networks, all batches, and after each update the parameters, the loss and the TD errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/dpg/dpg_update.h"
#include "reprise/rl/init.h"

enum { ROWS = 16, NUMBERS = 5, ACTIONS = 3, HIDDEN = 24, STEPS = 100 };

typedef struct dpg_case {
    const char *name;
    double max_slope, max_norm, huber;
    int target_every;
    double target_rate;
    bool weighted;
} dpg_case;

/* compare_dpg.py has the same list. */
static const dpg_case cases[] = {
    {"plain", 0, 0, 0, 10, 1, false},
    {"clipped", 0.05, 0.5, 0, 10, 1, true},
    {"moved", 1, 40, 0.5, 1, 0.05, true},
};

static const char *folder;
static rp_error err;

static void must(bool done)
{
    if (done) return;
    (void)fprintf(stderr, "dpg_driver: %s\n", err.text);
    exit(1);
}

static FILE *open_file(const dpg_case *c, const char *name)
{
    char path[512];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s.%s", folder, c->name, name);
    file = fopen(path, "wb");
    must(file != NULL);
    return file;
}

static void put(FILE *file, const float *numbers, size_t count)
{
    must(fwrite(numbers, sizeof *numbers, count, file) == count);
}

static rp_net *new_net(size_t in, size_t out, rp_activation last)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = HIDDEN, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = HIDDEN, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = out, .activation = last},
    };
    rp_net *net;

    must(rp_net_new(rp_allocator_default(), (rp_net_shape){1, 1, in}, layers, 3, &net, &err) ==
         RP_OK);
    return net;
}

typedef struct batch_data {
    float now[ROWS * NUMBERS], actions[ROWS * ACTIONS], reward[ROWS], discount[ROWS];
    float next[ROWS * NUMBERS], weights[ROWS];
} batch_data;

static void fill(rp_pcg64 *rng, float *numbers, size_t count, double low, double high)
{
    for (size_t i = 0; i < count; i++) numbers[i] = (float)rp_pcg64_uniform(rng, low, high);
}

static void draw(rp_pcg64 *rng, batch_data *b)
{
    fill(rng, b->now, ROWS * (size_t)NUMBERS, -1, 1);
    fill(rng, b->actions, ROWS * (size_t)ACTIONS, -1, 1);
    fill(rng, b->reward, ROWS, -2, 2);
    fill(rng, b->discount, ROWS, 0.8, 1);
    fill(rng, b->next, ROWS * (size_t)NUMBERS, -1, 1);
    fill(rng, b->weights, ROWS, 0.1, 1);
    b->discount[3] = 0; /* a termination */
}

static void run(const dpg_case *c)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_net *policy = new_net(NUMBERS, ACTIONS, RP_TANH);
    rp_net *critic = new_net(NUMBERS + ACTIONS, 1, RP_LINEAR);
    size_t first = rp_net_size(policy), size = first + rp_net_size(critic);
    float *params = calloc(size, sizeof *params), *target = calloc(size, sizeof *target);
    FILE *batches = open_file(c, "batches"), *after = open_file(c, "params");
    FILE *losses = open_file(c, "losses"), *errors = open_file(c, "errors");
    rp_dpg_update *update;
    rp_pcg64 rng;

    must(params != NULL && target != NULL);
    rp_pcg64_seed(&rng, 7);
    must(rp_net_init(alloc, policy, RP_INIT_TORCH, &rng, params) == RP_OK);
    must(rp_net_init(alloc, critic, RP_INIT_TORCH, &rng, params + first) == RP_OK);
    memcpy(target, params, size * sizeof *params);
    must(rp_dpg_update_new(alloc,
                           &(rp_dpg_update_options){.policy = policy,
                                                    .critic = critic,
                                                    .rows = ROWS,
                                                    .rate = 1e-3,
                                                    .policy_rate = 5e-4,
                                                    .adam_epsilon = 1e-8,
                                                    .max_norm = c->max_norm,
                                                    .max_slope = c->max_slope,
                                                    .huber = c->huber},
                           &update, &err) == RP_OK);
    put(after, params, size);
    for (int i = 1; i <= STEPS; i++) {
        batch_data b;
        rp_dpg_found found;
        float loss;

        draw(&rng, &b);
        put(batches, (const float *)(const void *)&b, sizeof b / sizeof(float));
        rp_dpg_step(update, params, target,
                    &(rp_box_batch){b.now, b.actions, b.reward, b.discount, b.next,
                                    c->weighted ? b.weights : NULL, NULL, NULL},
                    &found);
        if (i % c->target_every == 0) rp_polyak(target, params, size, c->target_rate);
        loss = (float)found.loss;
        put(losses, &loss, 1);
        put(errors, found.errors, ROWS);
        put(after, params, size);
    }
    must(fclose(batches) == 0 && fclose(after) == 0 && fclose(losses) == 0 &&
         fclose(errors) == 0);
    rp_dpg_update_free(update);
    rp_net_free(policy);
    rp_net_free(critic);
    free(params);
    free(target);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: dpg_driver FOLDER\n");
        return 2;
    }
    folder = argv[1];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) run(&cases[i]);
    return 0;
}
