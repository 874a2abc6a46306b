/* SPDX-License-Identifier: Apache-2.0 */
/* Power cuts. A load runs on a simulated disk. At every call of the disk, eight images of what
 * a power cut may leave are made, and one of what a killed process leaves. Each image is
 * recovered. It must open, its state must be the complete state after one of the steps, and all
 * data that the mode promises must be there. Some recoveries are interrupted by another power
 * cut, and some recovered stores are used further.
 *
 * RP_TEST_SCALE multiplies the 16,000 recoveries; RP_TEST_SEED is the first seed. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/durable_rig.h"

enum {
    RECOVERIES = 16000,
    MAX_IMAGES = 4096, /* calls of one load */
    THREADS = 2,
    STEPS = 36,
    ENOUGH = 10, /* failures, after which the test ends */
};

/* The disk as it was before a call. */
typedef struct moment {
    rp_sim *disk;
    size_t promised[2]; /* steps that must survive a kill, and a power cut */
    size_t started;
    uint64_t call;
    char what[80];
} moment;

typedef struct run {
    rp_rig rig;
    moment moments[MAX_IMAGES];
    size_t count;
    atomic_size_t next; /* the image to be recovered next */
    atomic_size_t recovered, failures;
    size_t room;        /* how many recoveries are left */
    pthread_mutex_t mu; /* guards the output */
} run;

static uint64_t first_seed(void)
{
    const char *text = getenv("RP_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    run *r = ctx;
    moment *m = &r->moments[r->count];

    rp_rig_saw_call(&r->rig, disk, call, path);
    if (strcmp(call, "read") == 0 || strcmp(call, "size") == 0 || strcmp(call, "list") == 0)
        return; /* such calls change nothing: the image equals that of the next call */
    assert_true(r->count < MAX_IMAGES);
    r->count++;
    m->promised[0] = rp_rig_promised(&r->rig, false);
    m->promised[1] = rp_rig_promised(&r->rig, true);
    m->started = atomic_load(&r->rig.started);
    m->disk = rp_sim_copy(disk);
    m->call = number;
    /* A real disk is slower; so steps run in between. */
    if (strncmp(path, "wal/", 4) != 0) (void)usleep(30);
    (void)snprintf(m->what, sizeof m->what, "%s %s", call, path);
}

static void load(run *r, uint64_t seed, rp_durability mode)
{
    rp_rig_options options = {.seed = seed,
                              .mode = mode,
                              .steps = STEPS,
                              .checkpoint_every = 4 + seed % 12,
                              .keep = 1 + (int32_t)((seed + 2) % 3),
                              .beside = true,
                              .segment_bytes = 700 + 400 * (seed % 9),
                              .journal_bytes = 600 + 2500 * (seed % 4)};
    rp_sim *disk = rp_sim_new();

    rp_rig_init(&r->rig, &options);
    r->count = 0;
    rp_sim_on_call(disk, on_call, r);
    rp_rig_open(&r->rig, disk);
    while (rp_rig_step(&r->rig))
        ;
    (void)rp_rig_checkpoint(&r->rig);
    assert_int_equal(r->rig.failed_steps, 0);
    assert_int_equal(r->rig.failed_checkpoints, 0);
    assert_ok_err(rp_rig_close(&r->rig), &r->rig.err);
    rp_sim_on_call(disk, NULL, NULL);
    assert_int_equal(rp_sim_open_handles(disk), 0);
    rp_sim_free(disk);
}

static void complain(run *r, const moment *m, int variant, uint64_t seed, const char *what,
                     const rp_rig_recovered *got)
{
    size_t step = 0;
    bool known = rp_rig_find(&r->rig, got->digest, 0, r->rig.options.steps, &step);

    (void)pthread_mutex_lock(&r->mu);
    if (atomic_fetch_add(&r->failures, 1) < ENOUGH)
        print_error("seed %llu mode %d, before call %llu (%s), variant %d of seed %llu: %s; "
                    "%s %s; promised %zu, started %zu, found %s %zu\n",
                    (unsigned long long)r->rig.options.seed, (int)r->rig.options.mode,
                    (unsigned long long)m->call, m->what, variant, (unsigned long long)seed,
                    what, rp_status_name(got->status), got->err.text, m->promised[variant >= 0],
                    m->started, known ? "step" : "no step", step);
    (void)pthread_mutex_unlock(&r->mu);
}

static void recover(run *r, const moment *m, int variant, uint64_t seed, rp_rng *rng)
{
    rp_sim *image = variant < 0 ? rp_sim_copy(m->disk)
                                : rp_sim_after(m->disk, (rp_sim_variant)variant, seed);
    int how = rp_rng_below(rng, 8) == 0 ? RP_RIG_GO_ON : 0;
    size_t promised = m->promised[variant >= 0];
    const char *wrong = NULL;
    rp_rig_recovered got;

    if (rp_rng_below(rng, 8) == 0) { /* another power cut, during the recovery */
        rp_sim *second;

        promised = m->promised[1];

        rp_sim_cut(image, 1 + rp_rng_below(rng, 40));
        rp_rig_recover(&r->rig, image, 0, &got);
        second = rp_sim_after(image, (rp_sim_variant)rp_rng_below(rng, RP_SIM_VARIANTS), seed);
        rp_sim_free(image);
        image = second;
    }
    rp_rig_recover(&r->rig, image, how, &got);
    if (got.status != RP_OK)
        wrong = "it does not open";
    else if (!got.sound)
        wrong = "tables or bytes are wrong";
    else if (!rp_rig_find(&r->rig, got.digest, promised, m->started, NULL))
        wrong = "not a state that may be there";
    else if (got.stuck != NULL)
        wrong = got.stuck;
    if (wrong != NULL) complain(r, m, variant, seed, wrong, &got);
    atomic_fetch_add(&r->recovered, 1);
    rp_sim_free(image);
}

static void *recover_some(void *ctx)
{
    run *r = ctx;

    for (;;) {
        size_t i = atomic_fetch_add(&r->next, 1);
        rp_rng rng;

        if (i >= r->count || atomic_load(&r->recovered) >= r->room ||
            atomic_load(&r->failures) >= ENOUGH)
            return NULL;
        rp_rng_init(&rng, r->rig.options.seed * 10007 + i);
        for (int v = -1; v < RP_SIM_VARIANTS; v++)
            recover(r, &r->moments[i], v, rp_rng_next(&rng), &rng);
    }
}

static void campaign(rp_durability mode)
{
    run *r = calloc(1, sizeof *r);
    size_t loads = 0, calls = 0;

    assert_non_null(r);
    assert_int_equal(pthread_mutex_init(&r->mu, NULL), 0);
    r->room = rp_test_scaled(RECOVERIES / 3, 200);
    for (uint64_t seed = first_seed(); atomic_load(&r->recovered) < r->room; seed++) {
        pthread_t threads[THREADS];

        load(r, seed, mode);
        loads++;
        calls += r->count;
        atomic_store(&r->next, 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, recover_some, r), 0);
        for (size_t i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (size_t i = 0; i < r->count; i++) rp_sim_free(r->moments[i].disk);
        rp_rig_deinit(&r->rig);
        if (atomic_load(&r->failures) > 0) break;
    }
    print_message("# %zu recoveries after %zu calls of %zu loads\n", atomic_load(&r->recovered),
                  calls, loads);
    assert_int_equal(atomic_load(&r->failures), 0);
    assert_true(calls >= 50);
    (void)pthread_mutex_destroy(&r->mu);
    free(r);
}

static void power_cuts_are_survived_in_checkpoint_mode(void **state)
{
    (void)state;
    campaign(RP_DURABLE_CHECKPOINT);
}

static void power_cuts_are_survived_in_interval_mode(void **state)
{
    (void)state;
    campaign(RP_DURABLE_INTERVAL);
}

static void power_cuts_are_survived_in_sync_mode(void **state)
{
    (void)state;
    campaign(RP_DURABLE_SYNC);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_cuts_are_survived_in_checkpoint_mode),
        cmocka_unit_test(power_cuts_are_survived_in_interval_mode),
        cmocka_unit_test(power_cuts_are_survived_in_sync_mode),
    };

    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
