/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise tune`: how many threads should act, and how many should learn, on this machine. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/interrupts.h"
#include "cli/train/agent_flags.h"
#include "cli/train/auto_split.h"
#include "cli/train/run_folder.h"
#include "cli/train/tune_print.h"

enum {
    EXIT_MISUSE = 2,
    EXIT_SIGNAL = 128,
    MOST_ROWS = 24,       /* of the text */
    MOST_SECONDS = 3600,  /* of a measurement */
    COMMAND_BYTES = 4096, /* of the command to use */
};

typedef enum option {
    ENV,
    AGENT,
    CORES,
    ALL,
    SECONDS,
    SEED,
    PLOT,
    QUIET,
    JSON,
    SETTINGS,
    OPTIONS = SETTINGS + RP_AGENT_FLAGS,
} option;

static const rp_option options[OPTIONS] = {
    [ENV] = {"env", "NAME", "the environment", false, "Measurements", RP_AGENT_ENVS},
    [AGENT] = {"agent", "NAME", "the agent (apex-dqn)", false, NULL,
               "dqn dpg sac apex-dqn apex-dpg apex-sac"},
    [CORES] = {"cores", "N", "cores to split (those of this process)", false, NULL, NULL},
    [ALL] = {"all", NULL, "measure every split as well, and compare the pick with the best",
             false, NULL, NULL},
    [SECONDS] = {"seconds", "X", "time of each measurement (0.5)", false, NULL, NULL},
    [SEED] = {"seed", "N", "of everything random (1)", false, NULL, NULL},
    [PLOT] = {"plot", "FILE", "draw both curves as an SVG", false, NULL, NULL},
    [QUIET] = {"quiet", NULL, "no progress", false, NULL, NULL},
    [JSON] = {"json", NULL, "print JSON, for programs; no progress", false, NULL, NULL},
    [SETTINGS] = RP_AGENT_OPTIONS};

static const char text[] =
    "Measures steps a second of 1, 2, 4, ... threads that act and updates a second of as many\n"
    "that learn, and picks the split of the cores that makes the most steps with one update\n"
    "for every --steps-per-update of them. The last line is the command to train with.\n"
    "dqn, dpg and sac act and learn in turn: only their learners are counted. --learners is "
    "what\n"
    "is found here; all other settings are those of reprise train.\n";

static const char *const examples[] = {
    "reprise tune --env cartpole --agent apex-dqn --seconds 0.1",
    "reprise tune --env catch --agent dqn --hidden 128 --seconds 0.1 --plot curves.svg",
    "reprise tune --env catch --cores 2 --all --seconds 0.1 --json",
    NULL,
};

static const char notes[] =
    "Other programs on the machine make the numbers wrong. Ctrl-C stops the measurements;\n"
    "nothing is printed then.\n";

typedef struct tuning {
    const rp_flags *flags;
    rp_run_folder folder; /* agent, environment, seed, settings */
    rp_profile_options options;
    rp_interrupts interrupts;
    bool is_shown; /* progress */
    rp_profile *profile;
    rp_profile_curves curves;
    rp_tune_report report;
    char command[COMMAND_BYTES];
} tuning;

static int misuse(const rp_problem *problem)
{
    (void)fprintf(stderr, "reprise tune: %s\n", problem->text);
    return EXIT_MISUSE;
}

static int failed(const char *reason)
{
    (void)fprintf(stderr, "reprise tune: %s\n", reason);
    return EXIT_FAILURE;
}

static bool is_on(const rp_flags *flags, option o)
{
    const char *value = rp_flags_get(flags, o);

    return value != NULL && strcmp(value, "false") != 0;
}

static rp_status take_numbers(tuning *t, rp_problem *problem)
{
    rp_setting value = {.key = "--cores", .text = rp_flags_get(t->flags, CORES)};
    rp_status st = RP_OK;

    t->options.cores = rp_own_cores();
    if (value.text != NULL)
        st = rp_setting_integer(&value, 1, RP_SPLIT_MAX_CORES, &t->options.cores, problem);
    value = (rp_setting){.key = "--seconds", .text = rp_flags_get(t->flags, SECONDS)};
    if (st == RP_OK && value.text != NULL) {
        st = rp_setting_duration(&value, 1000, MOST_SECONDS * 1000, &t->options.time_ms,
                                 problem);
        if (st == RP_OK && t->options.time_ms < 1)
            st = rp_problem_set(problem, NULL, "--seconds: expected at least 0.001");
    }
    t->folder.seed = 1;
    value = (rp_setting){.key = "--seed", .text = rp_flags_get(t->flags, SEED)};
    if (st == RP_OK && value.text != NULL)
        st = rp_setting_unsigned(&value, &t->folder.seed, problem);
    return st;
}

/* Asynchronous learners of an agent of one thread learn while it acts: the curves and the
 * formula of a split in turn are of another program. */
static rp_status check_async(const tuning *t, rp_problem *problem)
{
    const rp_settings_table *table = t->folder.kind->settings();
    size_t i = rp_settings_find(table, "async-learners");

    if (strncmp(t->folder.agent, "apex-", 5) == 0 || i == table->count ||
        rp_settings_get(table, &t->folder.settings, i) == 0)
        return RP_OK;
    return rp_problem_set(problem, NULL,
                          "--async-learners: %s acts and learns at the same time then, which "
                          "tune cannot measure; leave it out, or use --agent apex-%s",
                          t->folder.agent, t->folder.agent);
}

static rp_status take_agent(tuning *t, rp_problem *problem)
{
    const char *agent = rp_flags_get(t->flags, AGENT), *env = rp_flags_get(t->flags, ENV);
    rp_status st;

    if (env == NULL)
        return rp_problem_set(problem, NULL, "--env is missing: for example --env cartpole");
    if (agent == NULL) agent = "apex-dqn";
    if (!rp_run_folder_set_agent(&t->folder, agent))
        return rp_problem_set(
            problem, NULL,
            "--agent: expected dqn, dpg, sac, apex-dqn, apex-dpg or apex-sac, "
            "got '%.40s'",
            agent);
    st = rp_run_find_env(env, &t->folder.env_class, problem);
    if (st != RP_OK) return st;
    for (size_t o = SETTINGS; o < OPTIONS; o++)
        if (strcmp(options[o].name, "learners") == 0 && rp_flags_get(t->flags, o) != NULL)
            return rp_problem_set(problem, NULL,
                                  "--learners: tune finds their number; --cores N bounds it");
    rp_settings_init(t->folder.kind->settings(), &t->folder.settings,
                     t->folder.env_class->name);
    st = rp_agent_flags_take(&rp_tune_command, t->flags, SETTINGS, false,
                             t->folder.kind->settings(), &t->folder.settings, problem);
    return st == RP_OK ? check_async(t, problem) : st;
}

static bool should_stop(void *ctx)
{
    return atomic_load(&((tuning *)ctx)->interrupts.number) != 0;
}

static void on_point(void *ctx, rp_profile_what what, rp_rate_point point)
{
    const tuning *t = ctx;

    if (!t->is_shown) return;
    (void)fprintf(stderr, "%lld %s%s: %.0f %s/s\n", (long long)point.threads,
                  what == RP_PROFILE_ACTING ? "actor" : "learner",
                  point.threads == 1 ? "" : "s", point.rate,
                  what == RP_PROFILE_ACTING ? "steps" : "updates");
}

/* Measures all splits. */
static rp_status measure_rows(tuning *t, rp_error *err)
{
    rp_tune_report *r = &t->report;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < r->row_count; i++) {
        rp_tune_row *row = &r->rows[i];

        st = rp_profile_split(t->profile, row->actors, row->learners, &row->measured, err);
        if (st == RP_OK && t->is_shown)
            (void)fprintf(stderr, "%lld + %lld threads: %.0f steps/s\n", (long long)row->actors,
                          (long long)row->learners, row->measured);
    }
    return st;
}

static rp_status measure(tuning *t, rp_error *err)
{
    rp_tune_report *r = &t->report;
    size_t most;
    rp_status st = rp_profile_new(NULL, &t->options, &t->profile, err);

    if (st == RP_OK) st = rp_profile_measure(t->profile, &t->curves, err);
    if (st != RP_OK) return st;
    *r = (rp_tune_report){.agent = t->folder.agent,
                          .env = t->folder.env_class->name,
                          .curves = &t->curves,
                          .problem = rp_profile_problem(t->profile, &t->curves),
                          .command = t->command};
    st = rp_split_pick(&r->problem, &r->pick, err);
    if (st != RP_OK) return st;
    most = (size_t)(t->curves.acting.count * t->curves.learning.count);
    r->rows = calloc(most, sizeof *r->rows);
    if (r->rows == NULL) {
        (void)snprintf(err->text, sizeof err->text, "no memory for %zu splits", most);
        return RP_NO_RESOURCE;
    }
    r->row_count = rp_tune_rows(&r->problem, r->rows, most);
    assert(r->row_count > 0);
    if (is_on(t->flags, ALL)) st = measure_rows(t, err);
    rp_tune_sort(r->rows, r->row_count);
    return st;
}

/* Writes the command line that trains with the pick. */
static void write_command(tuning *t)
{
    const rp_settings_table *table = t->folder.kind->settings();
    const rp_split *pick = &t->report.pick;
    size_t room = sizeof t->command, at;

    at = (size_t)snprintf(t->command, room, "reprise train %s --env %s", t->folder.agent,
                          t->folder.env_class->name);
    if (t->options.algorithm != NULL && at < room)
        at += (size_t)snprintf(t->command + at, room - at, " --actors %lld",
                               (long long)pick->actors);
    if (rp_settings_find(table, "learners") < table->count && at < room)
        at += (size_t)snprintf(t->command + at, room - at, " --learners %lld",
                               (long long)pick->learners);
    for (size_t o = SETTINGS; o < OPTIONS && at < room; o++) {
        const char *value = rp_flags_get(t->flags, o);

        if (value == NULL) continue;
        at += (size_t)snprintf(t->command + at, room - at, " --%s %s", options[o].name, value);
    }
}

static int write_plot(const tuning *t)
{
    const char *path = rp_flags_get(t->flags, PLOT);
    rp_text_buffer buffer = {0};
    char reason[600];
    bool bad = true;
    FILE *file;

    if (path == NULL) return 0;
    rp_tune_svg(&buffer, &t->report);
    if (buffer.failed) {
        rp_text_buffer_deinit(&buffer);
        return failed("no memory for the plot");
    }
    file = fopen(path, "we");
    if (file != NULL) bad = fputs(rp_text_buffer_text(&buffer), file) < 0;
    rp_text_buffer_deinit(&buffer);
    if (file != NULL && fclose(file) == 0 && !bad) return 0;
    (void)snprintf(reason, sizeof reason, "%.500s: %s", path, strerror(errno));
    return failed(reason);
}

static int print(tuning *t)
{
    rp_text_buffer buffer = {0};
    int status = write_plot(t);

    if (is_on(t->flags, JSON))
        rp_tune_json(&buffer, &t->report);
    else
        rp_tune_text(&buffer, &t->report, MOST_ROWS);
    if (buffer.failed)
        status = failed("no memory for the text");
    else
        (void)fputs(rp_text_buffer_text(&buffer), stdout);
    rp_text_buffer_deinit(&buffer);
    return status;
}

static int tune(tuning *t)
{
    bool is_apex = strncmp(t->folder.agent, "apex-", 5) == 0;
    rp_error err = {0};
    rp_status st;
    int status;

    t->options.kind = t->folder.kind;
    t->options.settings = &t->folder.settings;
    t->options.env_class = t->folder.env_class;
    t->options.seed = t->folder.seed;
    t->options.should_stop = should_stop;
    t->options.on_point = on_point;
    t->options.ctx = t;
    if (is_apex) t->options.algorithm = rp_apex_find(t->folder.kind->name);
    t->is_shown =
        isatty(STDERR_FILENO) != 0 && !is_on(t->flags, QUIET) && !is_on(t->flags, JSON);
    st = measure(t, &err);
    if (st == RP_OK) {
        write_command(t);
        status = print(t);
    } else if (should_stop(t)) {
        status = EXIT_SIGNAL + atomic_load(&t->interrupts.number);
    } else {
        status = failed(err.text);
    }
    rp_profile_free(t->profile);
    free(t->report.rows);
    return status;
}

static int run(const rp_flags *flags)
{
    static tuning t; /* too large for a stack */
    rp_problem problem;
    int status;

    t = (tuning){.flags = flags};
    if (take_agent(&t, &problem) != RP_OK || take_numbers(&t, &problem) != RP_OK)
        return misuse(&problem);
    if (rp_interrupts_start(&t.interrupts) != RP_OK) return failed("no thread for signals");
    status = tune(&t);
    rp_interrupts_stop(&t.interrupts);
    return status;
}

const rp_command rp_tune_command = {
    .name = "tune",
    .summary = "Finds how many threads should act and how many should learn.",
    .usage = "--env NAME [OPTION...]",
    .text = text,
    .examples = examples,
    .notes = notes,
    .options = options,
    .option_count = OPTIONS,
    .run = run,
};
