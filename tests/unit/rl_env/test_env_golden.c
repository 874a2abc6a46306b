/* SPDX-License-Identifier: Apache-2.0 */
/* Our classic-control tasks against steps of Gymnasium's: tests/rl/golden/<task>.txt, whose
 * format is in tests/rl/make_golden_envs.py.
 *
 * All comparisons are of bits, if this machine's libm gives the sines, cosines and powers that
 * the file has. With another libm forced steps may differ in the last places, and free runs are
 * not compared, since differences grow. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "env/numpy_math.h"
#include "reprise/rl/env.h"
#include "reprise/rl/random.h"
#include "support/unit.h"

enum { LINE_BYTES = 1024, MOST_VALUES = 32, HEAD = 5, MOST_SETTINGS = 4 };

/* The policy of tests/rl/gymnasium_runs.py. */
typedef struct policy {
    double most; /* of a box */
    double weights[6];
} policy;

typedef struct golden {
    const char *name;
    const rp_env_class *class;
    policy policy;
    FILE *file;
    char line[LINE_BYTES];
    bool same_libm;
    size_t forced, runs, rows;
} golden;

typedef struct golden_run {
    rp_env *env;
    const rp_env_spec *spec;
    rp_pcg64 rng;
    double mix;
    uint64_t seed;
    long steps, beyond, left; /* `left` is -1 until the episode ends */
    uint64_t hash;
    float observation[MOST_VALUES];
    size_t observation_size;
    double row[MOST_VALUES];
    size_t row_size;
} golden_run;

static double parse_bits(const char *text)
{
    uint64_t bits = strtoull(text, NULL, 16);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Reads the numbers of a line after its first word. */
static size_t parse_numbers(const char *line, double *values)
{
    size_t count = 0;

    for (const char *at = strchr(line, ' '); at != NULL; at = strchr(at + 1, ' ')) {
        assert_true(count < MOST_VALUES);
        values[count++] = parse_bits(at + 1);
    }
    return count;
}

static bool next_line(golden *g)
{
    if (fgets(g->line, sizeof g->line, g->file) == NULL) return false;
    g->line[strcspn(g->line, "\n")] = '\0';
    return true;
}

static bool line_is(const golden *g, const char *word)
{
    size_t length = strlen(word);

    return strncmp(g->line, word, length) == 0 && g->line[length] == ' ';
}

static void check_math(golden *g)
{
    double n[MOST_VALUES];
    volatile double two = 2.0;

    assert_int_equal(parse_numbers(g->line, n), 4);
    if (!same_bits(sin(n[0]), n[1]) || !same_bits(cos(n[0]), n[2]) ||
        !same_bits(pow(n[0], two), n[3]))
        g->same_libm = false;
    assert_true(fabs(sin(n[0]) - n[1]) < 1e-15 && fabs(cos(n[0]) - n[2]) < 1e-15);
}

static void check_narrow(const golden *g)
{
    double n[MOST_VALUES];

    assert_int_equal(parse_numbers(g->line, n), 3);
    assert_true(same_bits((double)rp_numpy_sinf((float)n[0]), n[1]));
    assert_true(same_bits((double)rp_numpy_cosf((float)n[0]), n[2]));
}

static void check_values(const golden *g, const double *found, const double *expected,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (same_bits(found[i], expected[i])) continue;
        if (!g->same_libm && fabs(found[i] - expected[i]) <= 1e-12 * (1 + fabs(expected[i])))
            continue;
        fail_msg("%s: value %zu is %.17g, expected %.17g; %s", g->name, i, found[i],
                 expected[i], g->line);
    }
}

/* Steps the only copy and fills the row. */
static void take_step(golden_run *r, double action)
{
    int32_t whole = r->spec->action_kind == RP_ACTION_DISCRETE ? (int32_t)action : 0;
    float real = (float)action;
    bool terminated, truncated;
    double reward;
    rp_env_buffers out = {
        .observations = r->observation,
        .rewards = &reward,
        .terminated = &terminated,
        .truncated = &truncated,
    };
    const void *given = r->spec->action_kind == RP_ACTION_DISCRETE ? (void *)&whole : &real;

    assert_ok(rp_env_step(r->env, given, &out, NULL));
    memcpy(r->row, (double[]){1, action, reward, terminated, truncated}, HEAD * sizeof(double));
    if (r->left > 0)
        r->left--;
    else if (terminated || truncated)
        r->left = r->beyond;
}

static void take_reset(golden_run *r, const uint64_t *seed)
{
    assert_ok(rp_env_reset_copy(r->env, 0, seed, r->observation, NULL));
    memset(r->row, 0, HEAD * sizeof(double));
    r->left = -1;
}

static void finish_row(golden_run *r)
{
    size_t variables = r->spec->variable_count;

    rp_env_get_variables(r->env, 0, r->row + HEAD);
    for (size_t i = 0; i < r->observation_size; i++)
        r->row[HEAD + variables + i] = (double)r->observation[i];
    for (size_t i = 0; i < r->row_size; i++) {
        uint64_t bits;
        memcpy(&bits, &r->row[i], sizeof bits);
        r->hash = (r->hash ^ bits) * 0x100000001b3u;
        r->hash ^= r->hash >> 32;
    }
}

static double choose(const golden *g, golden_run *r)
{
    double most = g->policy.most, sum = 0;
    int32_t actions = r->spec->action_count;
    bool is_box = r->spec->action_kind == RP_ACTION_BOX;

    if (rp_pcg64_double(&r->rng) < r->mix) {
        if (!is_box) return floor(rp_pcg64_double(&r->rng) * actions);
        return (double)(float)rp_pcg64_uniform(&r->rng, -1.25 * most, 1.25 * most);
    }
    for (size_t i = 0; i < r->observation_size; i++)
        sum += g->policy.weights[i] * (double)r->observation[i];
    if (!is_box) return sum >= 0 ? actions - 1 : 0;
    return sum >= 0 ? most : -most;
}

static void open_run(const golden *g, golden_run *r, rp_env_options *options)
{
    rp_error err;

    options->copies = 1;
    options->keep_ended = options->clip_actions = true;
    assert_ok_err(rp_env_new(NULL, g->class, options, &r->env, &err), &err);
    r->spec = rp_env_get_spec(r->env);
    r->observation_size = rp_env_observation_bytes(r->env) / sizeof(float);
    r->row_size = HEAD + r->spec->variable_count + r->observation_size;
    r->hash = 0xcbf29ce484222325u;
    assert_true(r->row_size <= MOST_VALUES);
}

static void check_forced(golden *g)
{
    golden_run r = {0};
    rp_env_options options = {.time_limit = -1};
    double n[MOST_VALUES], found[MOST_VALUES];
    uint64_t seed = 0;

    open_run(g, &r, &options);
    size_t variables = r.spec->variable_count;
    assert_int_equal(parse_numbers(g->line, n), 2 * variables + 3);
    take_reset(&r, &seed);
    assert_ok(rp_env_set_variables(r.env, 0, n, NULL));
    take_step(&r, n[variables]);
    rp_env_get_variables(r.env, 0, found);
    found[variables] = r.row[2];
    found[variables + 1] = r.row[3];

    check_values(g, found, n + variables + 1, variables + 2);
    rp_env_free(r.env);
    g->forced++;
}

/* Reads "run SEED MIX STEPS BEYOND LIMIT NAME=VALUE...". */
static void parse_run(golden *g, golden_run *r)
{
    rp_env_setting settings[MOST_SETTINGS];
    rp_env_options options = {.settings = settings};
    char *word = strtok(g->line, " ");
    char *words[5 + MOST_SETTINGS];
    size_t count = 0;

    while ((word = strtok(NULL, " ")) != NULL && count < COUNT_OF(words)) words[count++] = word;
    assert_true(count >= 5);
    r->seed = strtoull(words[0], NULL, 10);
    r->mix = parse_bits(words[1]);
    r->steps = strtol(words[2], NULL, 10);
    r->beyond = strtol(words[3], NULL, 10);
    options.time_limit = strtol(words[4], NULL, 10);
    for (size_t i = 5; i < count; i++) {
        char *equals = strchr(words[i], '=');
        assert_non_null(equals);
        *equals = '\0';
        settings[options.setting_count++] = (rp_env_setting){words[i], parse_bits(equals + 1)};
    }
    open_run(g, r, &options);
    rp_pcg64_seed(&r->rng, r->seed + 1);
}

/* Compares the row with the next line, if that is a row. */
static void check_row(golden *g, golden_run *r, bool *has_rows)
{
    double n[MOST_VALUES];

    finish_row(r);
    if (!*has_rows) return;
    assert_true(next_line(g));
    if (!line_is(g, "row")) {
        *has_rows = false;
        return;
    }
    assert_int_equal(parse_numbers(g->line, n), r->row_size);
    check_values(g, r->row, n, r->row_size);
    g->rows++;
}

/* Runs freely: every row is hashed, the first ones are compared. */
static void check_run(golden *g)
{
    golden_run r = {.left = -1};
    bool has_rows = true;

    parse_run(g, &r);
    take_reset(&r, &r.seed);
    check_row(g, &r, &has_rows);
    for (long i = 0; i < r.steps; i++) {
        if (r.left == 0) {
            take_reset(&r, NULL);
            check_row(g, &r, &has_rows);
        }
        take_step(&r, choose(g, &r));
        check_row(g, &r, &has_rows);
    }
    assert_true(line_is(g, "hash"));
    if (g->same_libm && r.hash != strtoull(g->line + 5, NULL, 16))
        fail_msg("%s: the run of seed %llu differs", g->name, (unsigned long long)r.seed);
    assert_true(rp_env_verify(r.env));
    rp_env_free(r.env);
    g->runs++;
}

/* Every second run, in an emulator. */
static void pass_run(golden *g)
{
    do assert_true(next_line(g));
    while (!line_is(g, "hash"));
    g->runs++;
}

/* Passes over the rows of a run whose differences would grow. */
static void check_line(golden *g)
{
    if (line_is(g, "math")) {
        check_math(g);
    } else if (line_is(g, "narrow")) {
        check_narrow(g);
    } else if (line_is(g, "forced")) {
        check_forced(g);
    } else if (line_is(g, "run") && g->same_libm) {
        if (rp_test_scale() < 0.02 && g->runs % 2 == 1)
            pass_run(g);
        else
            check_run(g);
    } else {
        assert_true(g->line[0] == '#' || !g->same_libm);
    }
}

static void check_task(const char *name, policy chosen)
{
    golden g = {.name = name, .policy = chosen, .same_libm = true};
    char path[512];

    g.class = rp_env_find(name);
    assert_non_null(g.class);
    (void)snprintf(path, sizeof path, "%s/%s.txt", RP_TEST_RL, name);
    g.file = fopen(path, "r");
    assert_non_null(g.file);
    while (next_line(&g)) check_line(&g);
    fclose(g.file);

    assert_int_equal(g.forced, 120);
    if (g.same_libm) assert_true(g.runs >= 4 && g.rows >= (rp_test_scale() < 0.02 ? 100 : 200));
}

static void cartpole_equals_gymnasiums(void **state)
{
    (void)state;
    check_task("cartpole", (policy){.weights = {0, 0, 1, 1}});
}

static void mountain_car_equals_gymnasiums(void **state)
{
    (void)state;
    check_task("mountain_car", (policy){.weights = {0, 1}});
}

static void mountain_car_continuous_equals_gymnasiums(void **state)
{
    (void)state;
    check_task("mountain_car_continuous", (policy){.most = 1, .weights = {0, 1}});
}

static void acrobot_equals_gymnasiums(void **state)
{
    (void)state;
    check_task("acrobot", (policy){.weights = {0, 0, 0, 0, 0, 1}});
}

static void pendulum_equals_gymnasiums(void **state)
{
    (void)state;
    check_task("pendulum", (policy){.most = 2, .weights = {0, -2, -1}});
}

RP_TESTS(env_golden)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cartpole_equals_gymnasiums),
        cmocka_unit_test(mountain_car_equals_gymnasiums),
        cmocka_unit_test(mountain_car_continuous_equals_gymnasiums),
        cmocka_unit_test(acrobot_equals_gymnasiums),
        cmocka_unit_test(pendulum_equals_gymnasiums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
