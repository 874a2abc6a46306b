/* SPDX-License-Identifier: Apache-2.0 */
/* Makes 100 updates of SAC and writes what PyTorch needs to repeat them: compare_sac.py.
 *
 *   sac_driver FOLDER
 *
 * Each case writes files of float32 numbers, FOLDER/CASE.NAME: the first parameters of both
 * networks and the temperature, all batches, and after each update the parameters, the loss and
 * the TD errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agents/sac/sac_update.h"
#include "reprise/rl/init.h"

enum { ROWS = 16, NUMBERS = 5, ACTIONS = 3, HIDDEN = 24, STEPS = 100 };

typedef struct sac_case {
    const char *name;
    double max_norm, huber, target_entropy;
    double target_rate;
    bool weighted, tunes;
} sac_case;

/* compare_sac.py has the same list. */
static const sac_case cases[] = {
    {"plain", 0, 0, -3, 0.005, false, true},
    {"clipped", 0.5, 0.5, 1, 0.05, true, true},
    {"untuned", 40, 0, -3, 0.05, true, false},
};

static const char *folder;
static rp_error err;

static void must(bool done)
{
    if (done) return;
    (void)fprintf(stderr, "sac_driver: %s\n", err.text);
    exit(1);
}

static FILE *open_file(const sac_case *c, const char *name)
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

static rp_net *new_net(size_t in, size_t out)
{
    const rp_net_layer layers[] = {
        {.kind = RP_NET_DENSE, .out = HIDDEN, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = HIDDEN, .activation = RP_RELU},
        {.kind = RP_NET_DENSE, .out = out},
    };
    rp_net *net;

    must(rp_net_new(rp_allocator_default(), (rp_net_shape){1, 1, in}, layers, 3, &net, &err) ==
         RP_OK);
    return net;
}

typedef struct batch_data {
    float now[ROWS * NUMBERS], actions[ROWS * ACTIONS], reward[ROWS], discount[ROWS];
    float next[ROWS * NUMBERS], weights[ROWS];
    float noise[ROWS * ACTIONS], next_noise[ROWS * ACTIONS];
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
    for (size_t i = 0; i < ROWS * (size_t)ACTIONS; i++) {
        b->noise[i] = (float)rp_pcg64_normal(rng);
        b->next_noise[i] = (float)rp_pcg64_normal(rng);
    }
}

static void run(const sac_case *c)
{
    const rp_allocator *alloc = rp_allocator_default();
    rp_net *policy = new_net(NUMBERS, 2 * (size_t)ACTIONS);
    rp_net *critic = new_net(NUMBERS + ACTIONS, 1);
    const rp_sac_layout layout = rp_sac_layout_of(policy, critic);
    size_t size = layout.count;
    float *params = calloc(size, sizeof *params), *target = calloc(size, sizeof *target);
    FILE *batches = open_file(c, "batches"), *after = open_file(c, "params");
    FILE *losses = open_file(c, "losses"), *errors = open_file(c, "errors");
    rp_sac_update *update;
    rp_pcg64 rng;

    must(params != NULL && target != NULL);
    rp_pcg64_seed(&rng, 7);
    must(rp_net_init(alloc, policy, RP_INIT_TORCH, &rng, params) == RP_OK);
    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        must(rp_net_init(alloc, critic, RP_INIT_TORCH, &rng, params + layout.critics[k]) ==
             RP_OK);
    memcpy(target, params, size * sizeof *params);
    must(rp_sac_update_new(alloc,
                           &(rp_sac_update_options){.policy = policy,
                                                    .critic = critic,
                                                    .rows = ROWS,
                                                    .rate = 1e-3,
                                                    .policy_rate = 5e-4,
                                                    .adam_epsilon = 1e-8,
                                                    .max_norm = c->max_norm,
                                                    .temperature_rate = 2e-3,
                                                    .target_entropy = c->target_entropy,
                                                    .tunes_temperature = c->tunes,
                                                    .huber = c->huber},
                           &update, &err) == RP_OK);
    put(after, params, size);
    for (int i = 1; i <= STEPS; i++) {
        batch_data b;
        rp_sac_found found;
        float loss;

        draw(&rng, &b);
        put(batches, (const float *)(const void *)&b, sizeof b / sizeof(float));
        rp_sac_step(update, params, target,
                    &(rp_box_batch){b.now, b.actions, b.reward, b.discount, b.next,
                                    c->weighted ? b.weights : NULL, b.noise, b.next_noise},
                    &found);
        rp_polyak(target, params, size, c->target_rate);
        loss = (float)found.loss;
        put(losses, &loss, 1);
        put(errors, found.errors, ROWS);
        put(after, params, size);
    }
    must(fclose(batches) == 0 && fclose(after) == 0 && fclose(losses) == 0 &&
         fclose(errors) == 0);
    rp_sac_update_free(update);
    rp_net_free(policy);
    rp_net_free(critic);
    free(params);
    free(target);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: sac_driver FOLDER\n");
        return 2;
    }
    folder = argv[1];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) run(&cases[i]);
    return 0;
}
