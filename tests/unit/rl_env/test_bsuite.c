/* SPDX-License-Identifier: Apache-2.0 */
/* Catch, Deep Sea and the memory chain against runs of bsuite: tests/rl/golden/bsuite.txt,
 * whose format is in tests/rl/make_golden_bsuite.py. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reprise/rl/env.h"
#include "reprise/rl/random.h"
#include "support/unit.h"

enum { LINE_BYTES = 512, MOST_ELEMENTS = 1024, MOST_SETTINGS = 4 };

/* One copy with its buffers. */
typedef struct fixture {
    rp_env *env;
    rp_error err;
    float observation[MOST_ELEMENTS], last[MOST_ELEMENTS];
    size_t elements;
    double reward;
    bool terminated, truncated;
} fixture;

static void open_fixture(fixture *f, const char *name, rp_env_options options, uint64_t seed)
{
    memset(f, 0, sizeof *f);
    options.copies = 1;
    assert_ok_err(rp_env_new(NULL, rp_env_find(name), &options, &f->env, &f->err), &f->err);
    f->elements = rp_env_observation_bytes(f->env) / sizeof(float);
    assert_true(f->elements <= MOST_ELEMENTS);
    assert_ok_err(rp_env_reset(f->env, &seed, f->observation, &f->err), &f->err);
}

static void step(fixture *f, int32_t action)
{
    rp_env_buffers out = {f->observation, f->last, &f->reward, &f->terminated, &f->truncated};

    assert_ok_err(rp_env_step(f->env, &action, &out, &f->err), &f->err);
    assert_false(f->truncated);
}

static uint64_t add_to_hash(uint64_t hash, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static uint64_t add_row(uint64_t hash, const float *row, size_t count)
{
    for (size_t i = 0; i < count; i++) hash = add_to_hash(hash, (double)row[i]);
    return hash;
}

static size_t parse_settings(char *text, rp_env_setting *settings)
{
    size_t count = 0;

    for (char *word = strtok(text, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        char *equals = strchr(word, '=');
        assert_true(equals != NULL && count < MOST_SETTINGS);
        *equals = '\0';
        settings[count++] = (rp_env_setting){word, strtod(equals + 1, NULL)};
    }
    return count;
}

/* Plays the run of one line and compares what the line says. */
static void check_run(char *line)
{
    rp_env_setting settings[MOST_SETTINGS];
    char name[32];
    unsigned long long seed, sum, expected;
    long steps, ends, found_ends = 0;
    int used = 0;
    uint64_t hash = 0xcbf29ce484222325u;
    double total = 0, expected_total;
    rp_pcg64 rng;
    fixture f;

    assert_int_equal(sscanf(line, "%31s %llu %ld %ld %llx %llx%n", name, &seed, &steps, &ends,
                            &sum, &expected, &used),
                     6);
    memcpy(&expected_total, &sum, sizeof sum);
    size_t setting_count = parse_settings(line + used, settings);
    open_fixture(&f, name,
                 (rp_env_options){.settings = settings, .setting_count = setting_count}, seed);
    rp_pcg64_seed(&rng, seed + 1);
    hash = add_row(hash, f.observation, f.elements);
    for (long i = 0; i < steps; i++) {
        int32_t count = rp_env_get_spec(f.env)->action_count;
        step(&f, (int32_t)rp_pcg64_integers(&rng, 0, count));
        hash = add_to_hash(add_to_hash(hash, f.reward), f.terminated);
        if (f.terminated) hash = add_row(hash, f.last, f.elements);
        hash = add_row(hash, f.observation, f.elements);
        total += f.reward;
        found_ends += f.terminated;
    }

    assert_int_equal(found_ends, ends);
    assert_true(fabs(total - expected_total) < 1e-9);
    if (hash != expected) fail_msg("%s, seed %llu: the run differs", name, seed);
    rp_env_free(f.env);
}

static void runs_equal_those_of_bsuite(void **state)
{
    (void)state;
    FILE *file = fopen(RP_TEST_RL "/bsuite.txt", "r");
    char line[LINE_BYTES];
    size_t count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        check_run(line);
        count++;
    }
    fclose(file);

    assert_int_equal(count, 13);
}

static void following_the_ball_catches_it(void **state)
{
    (void)state;
    double total = 0, v[3];
    fixture f;

    open_fixture(&f, "catch", (rp_env_options){0}, 1);
    for (int i = 0; i < 90; i++) {
        rp_env_get_variables(f.env, 0, v);
        step(&f, v[1] > v[2] ? 2 : v[1] < v[2] ? 0 : 1);
        total += f.reward;
    }

    assert_true(total == 10);
    rp_env_free(f.env);
}

static void always_right_finds_the_treasure(void **state)
{
    (void)state;
    rp_env_setting settings[] = {{"size", 12}, {"randomize", 0}};
    double total = 0;
    fixture f;

    open_fixture(&f, "deep_sea", (rp_env_options){.settings = settings, .setting_count = 2}, 1);
    for (int i = 0; i < 12; i++) {
        step(&f, 1);
        total += f.reward;
    }

    assert_true(f.terminated && fabs(total - 0.99) < 1e-12);
    for (size_t i = 0; i < f.elements; i++) assert_true(f.last[i] == 0);
    rp_env_free(f.env);
}

static void remembered_bit_is_worth_1(void **state)
{
    (void)state;
    fixture f;

    open_fixture(&f, "memory_chain", (rp_env_options){0}, 1);
    for (int episode = 0; episode < 20; episode++) {
        int32_t bit = f.observation[2] > 0;
        for (int i = 0; i < 11; i++) {
            assert_false(i > 0 && f.terminated);
            if (i > 1) assert_true(f.observation[2] == 0);
            step(&f, bit);
        }
        assert_true(f.terminated && f.reward == 1);
    }
    rp_env_free(f.env);
}

static void steps_after_the_end_change_nothing(void **state)
{
    (void)state;
    const char *names[] = {"catch", "deep_sea", "memory_chain"};
    fixture f;

    for (size_t k = 0; k < COUNT_OF(names); k++) {
        float ended[MOST_ELEMENTS];
        open_fixture(&f, names[k], (rp_env_options){.keep_ended = true}, 1);
        do {
            step(&f, 0);
        } while (!f.terminated);
        memcpy(ended, f.observation, sizeof ended);
        for (int i = 0; i < 30; i++) {
            step(&f, 1);
            assert_true(f.terminated && f.reward == 0);
            assert_memory_equal(f.observation, ended, f.elements * sizeof *ended);
        }
        assert_true(rp_env_verify(f.env));
        rp_env_free(f.env);
    }
}

static void cells_off_the_board_are_refused(void **state)
{
    (void)state;
    fixture f;

    open_fixture(&f, "catch", (rp_env_options){0}, 1);
    assert_fails(rp_env_set_variables(f.env, 0, (double[]){10, 0, 0}, &f.err), RP_INVALID,
                 &f.err, "cannot be in such a state");
    assert_fails(rp_env_set_variables(f.env, 0, (double[]){0, NAN, 0}, &f.err), RP_INVALID,
                 &f.err, "cannot be in such a state");
    rp_env_free(f.env);
    open_fixture(&f, "deep_sea", (rp_env_options){0}, 1);
    assert_fails(rp_env_set_variables(f.env, 0, (double[]){0, 10}, &f.err), RP_INVALID, &f.err,
                 "cannot be in such a state");
    rp_env_free(f.env);
    open_fixture(&f, "memory_chain", (rp_env_options){0}, 1);
    assert_fails(rp_env_set_variables(f.env, 0, (double[]){0, 1}, &f.err), RP_INVALID, &f.err,
                 "cannot be in such a state");
    rp_env_free(f.env);
}

static void seeds_of_more_than_32_bits_are_refused(void **state)
{
    (void)state;
    uint64_t seed = (uint64_t)1 << 32;
    fixture f;

    open_fixture(&f, "catch", (rp_env_options){0}, 1);
    assert_fails(rp_env_reset(f.env, &seed, f.observation, &f.err), RP_INVALID, &f.err,
                 "the seed must be at most 4294967295, got 4294967296");
    rp_env_free(f.env);
}

RP_TESTS(bsuite)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_equal_those_of_bsuite),
        cmocka_unit_test(following_the_ball_catches_it),
        cmocka_unit_test(always_right_finds_the_treasure),
        cmocka_unit_test(remembered_bit_is_worth_1),
        cmocka_unit_test(steps_after_the_end_change_nothing),
        cmocka_unit_test(cells_off_the_board_are_refused),
        cmocka_unit_test(seeds_of_more_than_32_bits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
