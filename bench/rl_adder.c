/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that an adder adds in a second of processor time to a table of this process, on one
 * thread: CartPole, 3-step transitions, sequences or episodes. A group of 32 copies in one call
 * against 32 adders of one copy each. The steps are recorded first, so the environment is not
 * measured. */
#include "bench.h"
#include "reprise/rl/adder.h"

enum { COPIES = 32, CALLS = 512, OBSERVATION = 4 };

/* The recorded steps of all copies. */
typedef struct record {
    float first[COPIES][OBSERVATION];
    float observations[CALLS][COPIES][OBSERVATION], last[CALLS][COPIES][OBSERVATION];
    int32_t actions[CALLS][COPIES];
    double rewards[CALLS][COPIES];
    bool terminated[CALLS][COPIES], truncated[CALLS][COPIES];
} record;

static void make_record(record *r)
{
    uint64_t seeds[COPIES];
    rp_env *env;
    rp_error err;

    for (size_t k = 0; k < COPIES; k++) seeds[k] = k;
    bench_check(rp_env_new(NULL, rp_env_find("cartpole"), &(rp_env_options){.copies = COPIES},
                           &env, &err),
                &err);
    bench_check(rp_env_reset(env, seeds, r->first, &err), &err);
    for (size_t i = 0; i < CALLS; i++) {
        rp_env_buffers out = {r->observations[i], r->last[i], r->rewards[i], r->terminated[i],
                              r->truncated[i]};
        for (size_t k = 0; k < COPIES; k++) r->actions[i][k] = (i * 7 + k * 3) % 5 < 2;
        bench_check(rp_env_step(env, r->actions[i], &out, &err), &err);
    }
    rp_env_free(env);
}

/* Processor time of all threads: other load on the machine does not count. */
static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds the recorded steps with `count` adders of COPIES / count copies each. Returns
 * seconds of processor time. */
static double add_all(const record *r, rp_adder_options options, size_t count)
{
    size_t each = COPIES / count;
    rp_adder_table table = {.name = "replay"};
    rp_table_options made = {.name = "replay",
                             .sampler = {RP_UNIFORM, 0},
                             .remover = {RP_FIFO, 0},
                             .limiter = rp_limiter_min_size(1),
                             .max_size = 10000};
    rp_adder *adders[COPIES];
    rp_store *store;
    rp_client *client;
    rp_error err;
    double started;

    options.copies = each;
    options.observation = (rp_spec){NULL, RP_FLOAT32, {1, {OBSERVATION}}};
    options.action = (rp_spec){NULL, RP_INT32, {0}};
    options.tables = &table;
    options.table_count = 1;
    bench_check(rp_store_new(NULL, &store, &err), &err);
    bench_check(rp_adder_signature(&options, &made.signature, &err), &err);
    bench_check(rp_store_add_table(store, &made, NULL, &err), &err);
    rp_signature_unref(made.signature);
    bench_check(rp_client_local(store, NULL, &client, &err), &err);
    for (size_t a = 0; a < count; a++) {
        bench_check(rp_adder_new(client, &options, rp_wait_forever(), &adders[a], &err), &err);
        bench_check(rp_adder_first(adders[a], r->first[a * each], NULL, &err), &err);
    }
    started = cpu_seconds();
    for (size_t i = 0; i < CALLS; i++) {
        for (size_t a = 0; a < count; a++) {
            size_t k = a * each;
            rp_adder_step step = {.actions = &r->actions[i][k],
                                  .observations = r->observations[i][k],
                                  .last_observations = r->last[i][k],
                                  .rewards = &r->rewards[i][k],
                                  .terminated = &r->terminated[i][k],
                                  .truncated = &r->truncated[i][k]};
            bench_check(rp_adder_add(adders[a], &step, rp_wait_forever(), &err), &err);
        }
    }
    for (size_t a = 0; a < count; a++)
        bench_check(rp_adder_flush(adders[a], rp_wait_forever(), &err), &err);
    started = cpu_seconds() - started;
    for (size_t a = 0; a < count; a++) rp_adder_free(adders[a]);
    rp_client_free(client);
    rp_store_free(store);
    return started;
}

static void compare(const record *r, const char *name, rp_adder_options options, size_t rounds)
{
    bench_best group = {0}, alone = {0};
    double steps = (double)CALLS * COPIES;

    for (size_t i = 0; i < rounds; i++) {
        bench_keep_seconds(&group, add_all(r, options, 1));
        bench_keep_seconds(&alone, add_all(r, options, COPIES));
    }
    printf("ratio rl.adder.%s %.2f (ours %.0f vs one_by_one %.0f steps/s)\n", name,
           alone.seconds / group.seconds, steps / group.seconds, steps / alone.seconds);
}

int main(int argc, char **argv)
{
    bench_options o = bench_parse(argc, argv, "adders: 32 copies in one call");
    size_t rounds = o.quick ? 3 : 20;
    record *r = bench_array(1, sizeof *r);

    make_record(r);
    compare(r, "n_step", (rp_adder_options){.kind = RP_ADDER_N_STEP, .n = 3, .discount = 0.99F},
            rounds);
    compare(r, "sequence",
            (rp_adder_options){.kind = RP_ADDER_SEQUENCE, .length = 20, .period = 10}, rounds);
    compare(r, "episode", (rp_adder_options){.kind = RP_ADDER_EPISODE, .length = 501}, rounds);
    free(r);
    return 0;
}
