/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one of our environments for a script, which compares it with another.
 *
 *     env_driver forced NAME                      input rows: variables, action
 *     env_driver free NAME SEED BEYOND LIMIT [SETTING=VALUE...]      input: actions
 *
 * Input and output are doubles. An output row is the kind (0 reset, 1 step), the action, the
 * reward, terminated, truncated, the variables and the observation. In a free run an episode
 * goes on for BEYOND steps after its end; then the copy is reset without a seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reprise/rl/env.h"

enum { MOST_SETTINGS = 8, MOST_VALUES = 64 };

typedef struct driver {
    rp_env *env;
    const rp_env_spec *spec;
    size_t observation_size;
    float observation[MOST_VALUES];
    double reward;
    bool terminated, truncated;
    rp_error err;
} driver;

static void must(driver *d, rp_status st)
{
    if (st == RP_OK) return;
    fprintf(stderr, "%s: %s\n", rp_status_name(st), d->err.text);
    exit(1);
}

static void write_row(driver *d, double kind, double action)
{
    double row[5 + 2 * MOST_VALUES] = {kind, action, d->reward, d->terminated, d->truncated};
    size_t count = 5 + d->spec->variable_count;

    rp_env_get_variables(d->env, 0, row + 5);
    for (size_t i = 0; i < d->observation_size; i++) row[count++] = (double)d->observation[i];
    if (fwrite(row, sizeof *row, count, stdout) != count) exit(1);
}

static void step(driver *d, double action)
{
    int32_t whole = d->spec->action_kind == RP_ACTION_DISCRETE ? (int32_t)action : 0;
    float real = (float)action;
    const void *given =
        d->spec->action_kind == RP_ACTION_DISCRETE ? (const void *)&whole : &real;
    rp_env_buffers out = {
        .observations = d->observation,
        .rewards = &d->reward,
        .terminated = &d->terminated,
        .truncated = &d->truncated,
    };

    must(d, rp_env_step(d->env, given, &out, &d->err));
    write_row(d, 1, action);
}

static void reset(driver *d, const uint64_t *seed)
{
    must(d, rp_env_reset_copy(d->env, 0, seed, d->observation, &d->err));
    d->reward = 0;
    d->terminated = d->truncated = false;
}

static void run_free(driver *d, uint64_t seed, long beyond)
{
    double action;
    long left = -1;

    reset(d, &seed);
    write_row(d, 0, 0);
    while (fread(&action, sizeof action, 1, stdin) == 1) {
        if (left == 0) {
            reset(d, NULL);
            write_row(d, 0, 0);
            left = -1;
        }
        step(d, action);
        if (left > 0)
            left--;
        else if (d->terminated || d->truncated)
            left = beyond;
    }
}

static void run_forced(driver *d)
{
    double row[MOST_VALUES];
    size_t count = d->spec->variable_count + 1;
    uint64_t seed = 0;

    reset(d, &seed);
    while (fread(row, sizeof *row, count, stdin) == count) {
        must(d, rp_env_set_variables(d->env, 0, row, &d->err));
        step(d, row[count - 1]);
    }
}

static size_t parse_settings(char **texts, int count, rp_env_setting *settings)
{
    size_t found = 0;

    for (int i = 0; i < count && found < MOST_SETTINGS; i++) {
        char *equals = strchr(texts[i], '=');
        if (equals == NULL) exit(2);
        *equals = '\0';
        settings[found++] = (rp_env_setting){texts[i], strtod(equals + 1, NULL)};
    }
    return found;
}

int main(int argc, char **argv)
{
    rp_env_setting settings[MOST_SETTINGS];
    bool is_free = argc >= 6 && strcmp(argv[1], "free") == 0;
    rp_env_options options = {.copies = 1, .keep_ended = true, .clip_actions = true};
    driver d = {0};

    if (!is_free && !(argc == 3 && strcmp(argv[1], "forced") == 0)) return 2;
    options.time_limit = is_free ? strtol(argv[5], NULL, 10) : -1;
    options.settings = settings;
    options.setting_count = is_free ? parse_settings(argv + 6, argc - 6, settings) : 0;
    must(&d, rp_env_new(NULL, rp_env_find(argv[2]), &options, &d.env, &d.err));
    d.spec = rp_env_get_spec(d.env);
    d.observation_size = rp_env_observation_bytes(d.env) / sizeof(float);
    if (d.observation_size > MOST_VALUES || d.spec->variable_count >= MOST_VALUES ||
        d.spec->observation_dtype != RP_FLOAT32)
        return 2;
    if (is_free)
        run_free(&d, strtoull(argv[3], NULL, 10), strtol(argv[4], NULL, 10));
    else
        run_forced(&d);
    rp_env_free(d.env);
    return fflush(stdout) == 0 ? 0 : 1;
}
