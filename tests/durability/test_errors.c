/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the disk at every call: EIO, ENOSPC, EDQUOT, EROFS, EMFILE and short transfers,
 * once or from that call on, under load and in recovery; a sync that fails and then seems to
 * succeed; a disk that is full.
 *
 * Whatever fails, acknowledged data must be in every image of the disk, and inserts and samples
 * must continue. When the errors stop, the store must recover by itself.
 *
 *   test_errors [checkpoint|interval|sync|recovery|full]
 *
 * With RP_TEST_SCALE below 1, some calls are left out; with 6, every call has every error; with
 * more, there are more seeds. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/durable_rig.h"

enum {
    STEPS = 24,
    WELL_MS = 5000,
    MORE_TRIES = 8,
    MORE_STEPS = 4 * MORE_TRIES,
    MOST_LOOKS = 3
};

static const char *const error_names[RP_SIM_ERRORS] = {"EIO",   "ENOSPC", "EDQUOT",
                                                       "EROFS", "EMFILE", "short"};

typedef struct tally {
    size_t runs, hit, recoveries;
} tally;

typedef struct fault_run {
    rp_rig rig;
    rp_sim *disk;
    rp_sim_fault fault;
    const char *wrong;
    rp_rig_recovered got;
    tally *tally;
    bool hit; /* a call has failed because of the fault */
} fault_run;

static uint64_t first_seed(void)
{
    const char *text = getenv("RP_TEST_SEED");

    return text != NULL ? strtoull(text, NULL, 0) : 1;
}

static void pause_ms(int ms)
{
    const struct timespec moment = {.tv_nsec = ms * 1000000L};

    (void)nanosleep(&moment, NULL);
}

static void on_call(void *ctx, rp_sim *disk, uint64_t number, const char *call,
                    const char *path)
{
    (void)number;
    rp_rig_saw_call(ctx, disk, call, path);
}

/* Disks on which the server is started again. */
enum {
    KILLED = -2,   /* the disk with the system's cache */
    FORGOTTEN,     /* the same, without the pages whose sync has failed */
    POWER_CUT = 0, /* this and higher numbers: the variants of a power cut */
};

static rp_sim *make_image(const fault_run *f, int which)
{
    rp_sim *image = which < POWER_CUT
                        ? rp_sim_copy(f->disk)
                        : rp_sim_after(f->disk, (rp_sim_variant)which, f->fault.call);

    if (which == FORGOTTEN) rp_sim_drop_caches(image);
    return image;
}

/* Checks the state that would be found if the process were killed now, or the power cut. */
static void check_images(fault_run *f)
{
    rp_rig *r = &f->rig;

    for (int which = KILLED; which <= RP_SIM_ALL && f->wrong == NULL; which++) {
        size_t promised = rp_rig_promised(r, which != KILLED);
        size_t started = atomic_load(&r->started);
        rp_sim *image = make_image(f, which);

        rp_rig_recover(r, image, 0, &f->got);
        f->tally->recoveries++;
        if (f->got.status != RP_OK)
            f->wrong = "an image does not open";
        else if (!f->got.sound)
            f->wrong = "tables or bytes of an image are wrong";
        else if (!rp_rig_find(r, f->got.digest, promised, started, NULL))
            f->wrong = which == KILLED ? "a killed process would lose what was acknowledged"
                                       : "an image has not a state that may be there";
        rp_sim_free(image);
    }
}

/* Checks that the store recovers by itself after the disk has no errors any more. */
static void check_well(fault_run *f)
{
    rp_rig *r = &f->rig;
    rp_durable_info info = {.degraded = true};
    rp_status st = RP_UNAVAILABLE;

    for (int ms = 0; ms < WELL_MS && st != RP_OK; ms++) {
        st = rp_rig_checkpoint(r);
        if (st != RP_OK) pause_ms(1);
    }
    if (st != RP_OK) {
        f->wrong = "no checkpoint after the error is gone";
        return;
    }
    for (int ms = 0; ms < WELL_MS && info.degraded; ms++) {
        rp_durable_get_info(r->durable, &info);
        if (info.degraded) pause_ms(1);
    }
    if (info.degraded) {
        f->wrong = "degraded for ever";
        return;
    }
    /* A thread may still be about to report the error. */
    for (int i = 0; i < MORE_TRIES; i++) {
        r->failed_steps = 0;
        r->options.steps += 4;
        while (rp_rig_step(r))
            ;
        if (r->failed_steps == 0) return;
        pause_ms(5);
    }
    f->wrong = "steps fail after the error is gone";
}

static void go_through(fault_run *f)
{
    rp_rig *r = &f->rig;
    uint64_t digest, seen = 0;
    int looks = 0;
    rp_sim_fault none = {0};

    if (rp_rig_try_open(r, f->disk, &r->err) != RP_OK) {
        f->hit = true;
        rp_sim_fail(f->disk, &none);
        if (rp_rig_try_open(r, f->disk, &r->err) != RP_OK) {
            f->wrong = "it does not open after the error is gone";
            return;
        }
    }
    r->digests[0] = rp_rig_digest(r);
    while (f->wrong == NULL && rp_rig_step(r)) {
        uint64_t failed = rp_sim_failed(f->disk);

        /* Check as soon as a call has failed: later a checkpoint may hide the failure. */
        if (failed == seen || looks == MOST_LOOKS) continue;
        seen = failed;
        looks++;
        check_images(f);
    }
    if (f->wrong != NULL) return;
    (void)rp_rig_checkpoint(r);
    check_images(f);
    f->hit |= rp_sim_failed(f->disk) > 0;
    rp_sim_fail(f->disk, &none);
    if (f->wrong == NULL) check_well(f);
    if (f->wrong != NULL) return;
    digest = rp_rig_digest(r);
    if (rp_rig_close(r) != RP_OK) f->wrong = "it does not close";
    rp_rig_recover(r, f->disk, RP_RIG_GO_ON, &f->got);
    if (f->got.status != RP_OK || !f->got.sound)
        f->wrong = "it does not open at the end";
    else if (r->options.mode == RP_DURABLE_CHECKPOINT
                 ? !rp_rig_find(r, f->got.digest, rp_rig_promised(r, true), r->options.steps,
                                NULL)
                 : f->got.digest != digest)
        f->wrong = "something else is there at the end";
    else if (f->got.stuck != NULL)
        f->wrong = f->got.stuck;
}

static void run_with_fault(tally *t, uint64_t seed, rp_durability mode, rp_sim_fault fault)
{
    rp_rig_options options = {.seed = seed,
                              .mode = mode,
                              .steps = STEPS,
                              .checkpoint_every = 8,
                              .segment_bytes = 1200,
                              .journal_bytes = 700};
    fault_run f = {.fault = fault, .tally = t};
    options.steps = STEPS + MORE_STEPS; /* the later steps are for check_well() */
    rp_rig_init(&f.rig, &options);
    f.rig.options.steps = STEPS;
    f.disk = rp_sim_new();
    rp_sim_on_call(f.disk, on_call, &f.rig);
    rp_sim_fail(f.disk, &fault);
    go_through(&f);
    if (f.wrong != NULL) {
        print_error("seed %llu mode %d, %s %s call %llu: %s; %s %s; last error '%s'\n",
                    (unsigned long long)seed, (int)mode, error_names[fault.error],
                    fault.for_good ? "from" : "at", (unsigned long long)fault.call, f.wrong,
                    rp_status_name(f.got.status), f.got.err.text, f.rig.err.text);
        fail();
    }
    rp_rig_deinit(&f.rig);
    assert_int_equal(rp_sim_open_handles(f.disk), 0);
    rp_sim_free(f.disk);
    t->runs++;
    t->hit += f.hit;
}

/* Returns the number of calls of a run without errors. */
static uint64_t count_calls(uint64_t seed, rp_durability mode)
{
    rp_rig_options options = {.seed = seed,
                              .mode = mode,
                              .steps = STEPS,
                              .checkpoint_every = 8,
                              .segment_bytes = 1200,
                              .journal_bytes = 700};
    rp_sim *disk = rp_sim_new();
    uint64_t calls;
    rp_rig r;

    rp_rig_init(&r, &options);
    rp_rig_open(&r, disk);
    while (rp_rig_step(&r))
        ;
    assert_ok(rp_rig_checkpoint(&r));
    assert_ok(rp_rig_close(&r));
    calls = rp_sim_calls(disk);
    rp_rig_deinit(&r);
    rp_sim_free(disk);
    return calls;
}

static rp_sim_fault fault_of(uint64_t call, int kind)
{
    return (rp_sim_fault){.call = call,
                          .error = (rp_sim_error)(kind / 2),
                          .for_good = kind % 2 == 1,
                          .seed = call};
}

/* Returns true if this call is tested with this error. Every call fails once, and for good. The
 * error changes from call to call, unless the scale is so large that all are tested. */
static bool is_due(double scale, uint64_t call, int kind)
{
    return scale >= RP_SIM_ERRORS || (call + (uint64_t)kind / 2) % RP_SIM_ERRORS == 0;
}

static void every_call(rp_durability mode)
{
    double scale = rp_test_scale();
    size_t seeds = scale > RP_SIM_ERRORS ? (size_t)(scale / RP_SIM_ERRORS) : 1;
    uint64_t stride = scale < 1 ? (uint64_t)(1 / scale) : 1;
    tally t = {0};

    for (uint64_t seed = first_seed(); seeds > 0; seed++, seeds--) {
        uint64_t calls = count_calls(seed, mode);

        for (int kind = 0; kind < 2 * RP_SIM_ERRORS; kind++)
            for (uint64_t call = 1 + (uint64_t)kind % stride; call <= calls; call += stride)
                if (is_due(scale, call, kind))
                    run_with_fault(&t, seed, mode, fault_of(call, kind));
    }
    print_message("# %zu runs, %zu with an error, %zu recoveries\n", t.runs, t.hit,
                  t.recoveries);
    assert_true(t.hit > t.runs / 8);
}

static void under_load_checkpoint(void **state)
{
    (void)state;
    every_call(RP_DURABLE_CHECKPOINT);
}

static void under_load_interval(void **state)
{
    (void)state;
    every_call(RP_DURABLE_INTERVAL);
}

static void under_load_sync(void **state)
{
    (void)state;
    every_call(RP_DURABLE_SYNC);
}

static void fail_recovery(const rp_rig *r, rp_sim *disk, size_t promised, rp_sim_fault fault,
                          tally *t)
{
    rp_sim *image = rp_sim_copy(disk);
    rp_sim_fault none = {0};
    rp_rig_recovered got;

    rp_sim_fail(image, &fault);
    rp_rig_recover(r, image, 0, &got);
    t->hit += rp_sim_failed(image) > 0;
    if (got.status == RP_OK) {
        assert_true(got.sound);
        assert_true(rp_rig_find(r, got.digest, promised, r->options.steps, NULL));
    } else if (got.status != RP_UNAVAILABLE && got.status != RP_NO_RESOURCE) {
        print_error("%s at call %llu: %s %s\n", error_names[fault.error],
                    (unsigned long long)fault.call, rp_status_name(got.status), got.err.text);
        fail();
    }
    rp_sim_fail(image, &none);
    rp_rig_recover(r, image, RP_RIG_GO_ON, &got);
    if (got.status != RP_OK || !got.sound || got.stuck != NULL ||
        !rp_rig_find(r, got.digest, promised, r->options.steps, NULL)) {
        print_error("after %s %s call %llu of recovery: %s %s, sound %d, %s\n",
                    error_names[fault.error], fault.for_good ? "from" : "at",
                    (unsigned long long)fault.call, rp_status_name(got.status), got.err.text,
                    got.sound, got.stuck != NULL ? got.stuck : "");
        fail();
    }
    t->runs++;
    rp_sim_free(image);
}

static void in_recovery(void **state)
{
    double scale = rp_test_scale();
    size_t seeds = scale > 1 ? (size_t)(4 * scale) : 4;
    tally t = {0};

    (void)state;
    if (scale < 1) seeds = 1;
    for (uint64_t seed = first_seed(); seeds > 0; seed++, seeds--) {
        rp_rig_options options = {.seed = seed,
                                  .mode = (rp_durability)(seed % 3),
                                  .steps = STEPS + seed % 5,
                                  .checkpoint_every = 8,
                                  .segment_bytes = 1200,
                                  .journal_bytes = 700};
        rp_sim *disk = rp_sim_new(), *image, *copy;
        rp_rig_recovered got;
        size_t promised;
        uint64_t calls;
        rp_rig r;

        rp_rig_init(&r, &options);
        rp_rig_open(&r, disk);
        while (rp_rig_step(&r))
            ;
        promised = rp_rig_promised(&r, true);
        image = rp_sim_after(disk, seed % 2 == 0 ? RP_SIM_ALL : RP_SIM_TORN, seed);
        copy = rp_sim_copy(image);
        rp_rig_recover(&r, copy, 0, &got);
        calls = rp_sim_calls(copy);
        rp_sim_free(copy);
        for (int kind = 0; kind < 2 * RP_SIM_ERRORS; kind++)
            for (uint64_t call = 1; call <= calls; call++)
                if (is_due(scale, call, kind))
                    fail_recovery(&r, image, promised, fault_of(call, kind), &t);
        rp_sim_free(image);
        rp_rig_deinit(&r);
        rp_sim_free(disk);
    }
    print_message("# %zu recoveries with an error, %zu of them met\n", t.runs, t.hit);
}

/* The disk has space for some bytes, and later for more. Until it has enough, checkpoints fail
 * and the old one stays. */
static void full(void **state)
{
    (void)state;
    for (int mode = 0; mode < 3; mode++)
        for (uint64_t pages = 4; pages < 40; pages += 3) {
            rp_rig_options options = {.seed = pages,
                                      .mode = (rp_durability)mode,
                                      .steps = 2 * STEPS + MORE_STEPS,
                                      .checkpoint_every = 8};
            tally t = {0};
            fault_run f = {.tally = &t};

            rp_rig_init(&f.rig, &options);
            f.rig.options.steps = 2 * STEPS;
            f.disk = rp_sim_new();
            rp_sim_on_call(f.disk, on_call, &f.rig);
            rp_rig_open(&f.rig, f.disk);
            rp_sim_set_capacity(f.disk, pages * RP_SIM_PAGE);
            while (rp_rig_step(&f.rig))
                ;
            (void)rp_rig_checkpoint(&f.rig);
            check_images(&f);
            rp_sim_set_capacity(f.disk, 0);
            if (f.wrong == NULL) check_well(&f);
            if (f.wrong != NULL)
                print_error("mode %d, %llu pages: %s; %s %s; last error '%s'\n", mode,
                            (unsigned long long)pages, f.wrong, rp_status_name(f.got.status),
                            f.got.err.text, f.rig.err.text);
            assert_null(f.wrong);
            assert_ok_err(rp_rig_close(&f.rig), &f.rig.err);
            rp_rig_deinit(&f.rig);
            rp_sim_free(f.disk);
        }
}

int main(int argc, char **argv)
{
    static char pattern[64];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(under_load_checkpoint),
        cmocka_unit_test(under_load_interval),
        cmocka_unit_test(under_load_sync),
        cmocka_unit_test(in_recovery),
        cmocka_unit_test(full),
    };

    if (argc > 1) {
        (void)snprintf(pattern, sizeof pattern, "*%s", argv[1]);
        cmocka_set_test_filter(pattern);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
