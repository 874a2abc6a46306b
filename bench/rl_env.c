/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of our environments in a second, on one thread: random actions, automatic resets,
 * observations of all copies written at every step.
 *
 * With --serve it reads lines "NAME COPIES STEPS" and answers each with the seconds that so
 * many steps of all copies took: bench/rl_env.py compares them with Gymnasium's, turn by turn.
 */
#include "bench.h"
#include "reprise/rl/env.h"
#include "reprise/rl/random.h"

enum { ACTION_SETS = 61 };

typedef struct bed {
    rp_env *env;
    size_t copies, action_bytes;
    char *actions; /* ACTION_SETS rows for each copy */
    uint64_t *seeds;
    rp_env_buffers out;
} bed;

static void fill_actions(bed *b)
{
    const rp_env_spec *spec = rp_env_get_spec(b->env);
    size_t count = ACTION_SETS * b->copies * spec->action_size;
    rp_pcg64 rng;

    rp_pcg64_seed(&rng, 1);
    for (size_t i = 0; i < count; i++) {
        if (spec->action_kind == RP_ACTION_BOX)
            ((float *)(void *)b->actions)[i] =
                (float)rp_pcg64_uniform(&rng, (double)spec->action_low[i % spec->action_size],
                                        (double)spec->action_high[i % spec->action_size]);
        else
            ((int32_t *)(void *)b->actions)[i] =
                (int32_t)rp_pcg64_integers(&rng, 0, spec->action_count);
    }
}

static void bed_init(bed *b, const char *name, size_t copies)
{
    rp_env_options options = {.copies = copies};
    rp_error err;

    *b = (bed){.copies = copies};
    bench_check(rp_env_new(NULL, rp_env_find(name), &options, &b->env, &err), &err);
    b->action_bytes = rp_env_action_bytes(b->env);
    b->actions = bench_array(ACTION_SETS * copies, b->action_bytes);
    b->seeds = bench_array(copies, sizeof *b->seeds);
    b->out.observations = bench_array(copies, rp_env_observation_bytes(b->env));
    b->out.last_observations = bench_array(copies, rp_env_observation_bytes(b->env));
    b->out.rewards = bench_array(copies, sizeof(double));
    b->out.terminated = bench_array(copies, sizeof(bool));
    b->out.truncated = bench_array(copies, sizeof(bool));
    for (size_t i = 0; i < copies; i++) b->seeds[i] = i;
    fill_actions(b);
    bench_check(rp_env_reset(b->env, b->seeds, b->out.observations, &err), &err);
}

static void bed_deinit(bed *b)
{
    rp_env_free(b->env);
    free(b->actions);
    free(b->seeds);
    free(b->out.observations);
    free(b->out.last_observations);
    free(b->out.rewards);
    free(b->out.terminated);
    free(b->out.truncated);
}

/* The CPU time of this thread: both sides only compute, so other load on the machine does not
 * count. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Returns the seconds of `steps` steps of all copies. */
static double play(bed *b, size_t steps)
{
    double started = cpu_seconds();
    rp_error err;

    for (size_t i = 0; i < steps; i++) {
        const char *actions = b->actions + i % ACTION_SETS * b->copies * b->action_bytes;
        bench_check(rp_env_step(b->env, actions, &b->out, &err), &err);
    }
    return cpu_seconds() - started;
}

static int serve(void)
{
    char name[64];
    unsigned long copies, steps;

    while (scanf("%63s %lu %lu", name, &copies, &steps) == 3) {
        bench_best best = {0};
        bed b;
        if (rp_env_find(name) == NULL || copies == 0 || steps == 0) return 2;
        bed_init(&b, name, copies);
        for (int round = 0; round < 10; round++) bench_keep_seconds(&best, play(&b, steps));
        printf("%.9f\n", best.seconds);
        (void)fflush(stdout);
        bed_deinit(&b);
    }
    return 0;
}

/* Rounds are short, to fit between two interruptions; the best one counts. */
static void show(const char *name, size_t copies, bool quick)
{
    bench_best best = {0};
    size_t steps = 1000 / copies + 1;
    bed b;

    bed_init(&b, name, copies);
    for (int round = 0; round < (quick ? 50 : 500); round++)
        bench_keep_seconds(&best, play(&b, steps));
    printf("%-24s %4zu copies %8.1f ns a step\n", name, copies, bench_ns(best, steps * copies));
    bed_deinit(&b);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--serve") == 0) return serve();
    bench_options options = bench_parse(argc, argv, "steps of our environments");

    for (size_t i = 0; rp_env_class_at(i) != NULL; i++) {
        show(rp_env_class_at(i)->name, 1, options.quick);
        show(rp_env_class_at(i)->name, 32, options.quick);
    }
    return 0;
}
