/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise train`: trains an agent in one of our environments, in a folder of its own. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/serve/address_check.h"
#include "cli/train/agent_flags.h"
#include "cli/train/train.h"
#include "cli/train/train_program.h"

static const rp_option options[RP_TRAIN_OPTIONS] = {
    [RP_TRAIN_ENV] = {"env", "NAME", "the environment; a resumed run knows it", false, "Run",
                      RP_AGENT_ENVS},
    [RP_TRAIN_STEPS] = {"steps", "N",
                        "the most steps, of all copies together (dqn, dpg, sac: 500,000)",
                        false, NULL, NULL},
    [RP_TRAIN_SEED] = {"seed", "N", "of everything random (1)", false, NULL, NULL},
    [RP_TRAIN_DIR] = {"dir", "DIR", "folder of the run (runs/AGENT-ENV-N, the next N)", false,
                      NULL, NULL},
    [RP_TRAIN_RESUME] = {"resume", NULL,
                         "continue the run in --dir, or the latest one of --env", false, NULL,
                         NULL},
    [RP_TRAIN_KEEP_GOING] = {"keep-going", NULL, "do not stop when the environment is solved",
                             false, NULL, NULL},
    [RP_TRAIN_THRESHOLD] = {"threshold", "X",
                            "mean return that solves it (known for each environment)", false,
                            NULL, NULL},
    [RP_TRAIN_EVAL_EVERY] = {"eval-every", "N", "steps between evaluations (2000)", false, NULL,
                             NULL},
    [RP_TRAIN_EVAL_EPISODES] = {"eval-episodes", "N", "greedy episodes of an evaluation (20)",
                                false, NULL, NULL},
    [RP_TRAIN_CONFIRM_EPISODES] = {"confirm-episodes", "N",
                                   "other episodes that must confirm a passing one (300)",
                                   false, NULL, NULL},
    [RP_TRAIN_ONE_THREAD] = {"one-thread", NULL,
                             "evaluate between steps: runs end reproducibly", false, NULL,
                             NULL},
    [RP_TRAIN_SAVE_EVERY] = {"save-every", "N",
                             "steps between snapshots (20,000; 0: at the end)", false, NULL,
                             NULL},
    [RP_TRAIN_PLOT] = {"plot", "FILE", "draw the curve as an SVG", false, NULL, NULL},
    [RP_TRAIN_LOG] = {"log", "NAMES",
                      "write event files of TensorBoard, named as by sb3 or cleanrl", false,
                      NULL, "sb3 cleanrl"},
    [RP_TRAIN_SERVE] = {"serve", "ADDR",
                        "serve the run here meanwhile: its page, its curves, its replay", false,
                        NULL, NULL},
    [RP_TRAIN_TOKENS] = {"tokens", "FILE",
                         "bearer tokens of that server, as reprise serve --tokens", false, NULL,
                         NULL},
    [RP_TRAIN_TLS_CERT] = {"tls-cert", "FILE", "its certificate chain, PEM: turns TLS on",
                           false, NULL, NULL},
    [RP_TRAIN_TLS_KEY] = {"tls-key", "FILE", "its private key, PEM", false, NULL, NULL},
    [RP_TRAIN_INSECURE] = {"insecure", NULL, "serve any address without credentials", false,
                           NULL, NULL},
    [RP_TRAIN_REPORT] = {"report", "ADDR", "report scalars and episodes to this server", false,
                         NULL, NULL},
    [RP_TRAIN_REPORT_NAME] = {"report-name", "NAME", "name of the run there (the folder's)",
                              false, NULL, NULL},
    [RP_TRAIN_REPORT_CA] = {"report-ca", "FILE", "use TLS there, trust these certificates, PEM",
                            false, NULL, NULL},
    [RP_TRAIN_CORES] = {"cores", "N", "cores that auto splits (those of this process)", false,
                        NULL, NULL},
    [RP_TRAIN_QUIET] = {"quiet", NULL, "no progress", false, NULL, NULL},
    [RP_TRAIN_JSON] = {"json", NULL, "print the result as JSON, for programs; no progress",
                       false, NULL, NULL},
    [RP_TRAIN_ACTORS] = {"actors", "N", "threads or processes that act, or auto (8)", false,
                         "Ape-X", NULL},
    [RP_TRAIN_SECONDS] = {"seconds", "N", "stop after this time, solved or not", false, NULL,
                          NULL},
    [RP_TRAIN_THEN] = {"then", "NAMES", "environments to go on to, separated by commas", false,
                       NULL, NULL},
    [RP_TRAIN_STAY] = {"stay", NULL, "serve on when the training is over, until Ctrl-C", false,
                       NULL, NULL},
    [RP_TRAIN_PROCESSES] = {"processes", NULL,
                            "run each part as a process, and restart those that die", false,
                            NULL, NULL},
    [RP_TRAIN_ROLE] = {"role", "ROLE", "run only one part: actor, evaluator, learner or replay",
                       false, NULL, "actor evaluator learner replay"},
    [RP_TRAIN_INDEX] = {"index", "N", "which actor, or shard of the replay, from 0", false,
                        NULL, NULL},
    [RP_TRAIN_OF] = {"of", "N", "how many actors there are (--actors)", false, NULL, NULL},
    [RP_TRAIN_REPLAY] = {"replay", "ADDR", "the replay of a role: its address, or its shards",
                         false, NULL, NULL},
    [RP_TRAIN_EXPORT] = {"export", "KIND",
                         "write a job file for kubernetes or slurm, and do not train", false,
                         NULL, "kubernetes slurm"},
    [RP_TRAIN_SHARDS] = {"shards", "N",
                         "servers of the replay, with --processes or --export (1)", false, NULL,
                         NULL},
    [RP_TRAIN_IMAGE] = {"image", "NAME", "the container image in it (reprise:VERSION)", false,
                        NULL, NULL},
    [RP_TRAIN_PROGRAM] = {"program", "FILE",
                          "take the options from a file; others given here replace them", false,
                          NULL, NULL},
    [RP_TRAIN_PRINT_PROGRAM] = {"print-program", NULL,
                                "write that file for these options, and do not train", false,
                                NULL, NULL},
    [RP_TRAIN_SETTINGS] = RP_AGENT_OPTIONS};

static const char text[] =
    "dqn, dpg, sac: one agent in one thread. It acts in a group of copies of the environment,\n"
    "writes what it sees into a table of a store in this process, and learns from samples of\n"
    "it. dqn is for discrete actions, dpg and sac for continuous ones. --learners N: that\n"
    "many threads share the updates.\n"
    "--learners auto, and --actors auto of apex-dqn, apex-dpg and apex-sac: how many is\n"
    "measured for a second at the start, and apex moves threads while it runs. Such runs\n"
    "cannot be reproduced.\n"
    "apex-dqn, apex-dpg, apex-sac: actors, a learner and an evaluator at the same time, on "
    "one\n"
    "replay: as threads, as processes, or each started by hand with --role. --copies are "
    "those\n"
    "of one actor. --program FILE describes all of it in one file; --print-program writes "
    "one.\n"
    "Greedy episodes tell whether the environment is solved. With --resume the environment, "
    "the\n"
    "seed and the settings of the agent are those of the run, and so are --steps, --actors "
    "and\n"
    "--keep-going if they are not given again. All other options are not kept, nor is "
    "--actors\n"
    "auto: give those of the evaluation again.\n"
    "\n"
    "dpg has these settings as well, with other defaults than dqn: n-step (3), rate (1e-3),\n"
    "reward-scale (0.1), max-norm (40), huber (0), batch (64), steps-per-update (1), capacity\n"
    "(100000). sac has them too, and of dpg's normalize, policy-rate and noise-memory, with\n"
    "other defaults than dqn: n-step (1), rate (1e-3), max-norm (0), huber (0), batch (100),\n"
    "steps-per-update (1), capacity (100000), prioritized (false), target-every (1), "
    "target-rate\n"
    "(0.005). Some environments have defaults of their own.\n";

static const char *const examples[] = {
    "reprise train dqn --env cartpole",
    "reprise train dqn --env catch --dir catch --plot curve.svg --log sb3",
    "reprise train dqn --dir catch --resume --steps 20000 --keep-going",
    "reprise train dpg --env pendulum",
    "reprise train sac --env pendulum",
    "reprise train apex-dqn --env cartpole --actors 4",
    "reprise train apex-dqn --env catch --actors 2 --processes",
    "reprise train apex-dqn --env catch --actors 2 --print-program",
    NULL,
};

static const char notes[] =
    "Ctrl-C saves the run and stops it, a second one stops at once. The folder has the policy\n"
    "(policy.safetensors), the curve (progress.csv), the replay and the state of the run.\n"
    "Then: reprise eval DIR, reprise play DIR. Reports never slow a run: those that do not "
    "reach\n"
    "the server are dropped and counted. Their token is in the environment, REPRISE_TOKEN.\n";

const char *rp_train_get(const rp_training *t, size_t option)
{
    return rp_flags_get(t->flags, option);
}

bool rp_train_is_on(const rp_training *t, rp_train_option o)
{
    const char *value = rp_flags_get(t->flags, o);

    return value != NULL && strcmp(value, "false") != 0;
}

int rp_train_misuse(const rp_problem *problem)
{
    (void)fprintf(stderr, "reprise train: %s\n", problem->text);
    return RP_TRAIN_MISUSE;
}

int rp_train_failed(const char *reason)
{
    (void)fprintf(stderr, "reprise train: %s\n", reason);
    return EXIT_FAILURE;
}

/* Gets an option as a setting. Returns false if it was not given. */
static bool setting(const rp_training *t, size_t o, char key[64], rp_setting *out)
{
    const char *value = rp_flags_get(t->flags, o);

    (void)snprintf(key, 64, "--%s", options[o].name);
    *out = (rp_setting){.key = key, .text = value};
    return value != NULL;
}

rp_status rp_train_integer(const rp_training *t, rp_train_option o, int64_t low, int64_t *out,
                           rp_problem *problem)
{
    char key[64];
    rp_setting value;

    if (!setting(t, o, key, &value)) return RP_OK;
    return rp_setting_integer(&value, low, INT64_C(1000000000000), out, problem);
}

/* Takes the settings of the agent from the flags. */
static rp_status take_settings(rp_training *t, rp_problem *problem)
{
    return rp_agent_flags_take(&rp_train_command, t->flags, RP_TRAIN_SETTINGS, t->resume,
                               t->folder.kind->settings(), &t->folder.settings, problem);
}

rp_status rp_train_settings(rp_training *t, const char *env, rp_problem *problem)
{
    char key[64];
    rp_setting value;
    rp_status st = RP_OK;

    if (env == NULL)
        return rp_problem_set(problem, NULL, "--env is missing: for example --env cartpole");
    st = rp_run_find_env(env, &t->folder.env_class, problem);
    if (st != RP_OK) return st;
    t->folder.seed = 1;
    if (setting(t, RP_TRAIN_SEED, key, &value))
        st = rp_setting_unsigned(&value, &t->folder.seed, problem);
    rp_settings_init(t->folder.kind->settings(), &t->folder.settings,
                     t->folder.env_class->name);
    return st == RP_OK ? take_settings(t, problem) : st;
}

/* Takes --steps, --actors and --keep-going if they are given. `*changed`: the folder had other
 * values. Their bounds have been checked. --actors auto is not kept. */
static rp_status take_kept(rp_training *t, bool *changed, rp_problem *problem)
{
    const rp_run_folder before = t->folder;
    rp_status st = rp_train_integer(t, RP_TRAIN_STEPS, 1, &t->folder.steps, problem);

    if (rp_is_auto(rp_train_get(t, RP_TRAIN_ACTORS)))
        t->folder.actors = 0;
    else if (st == RP_OK)
        st = rp_train_integer(t, RP_TRAIN_ACTORS, 1, &t->folder.actors, problem);
    if (rp_train_get(t, RP_TRAIN_KEEP_GOING) != NULL)
        t->folder.keep_going = rp_train_is_on(t, RP_TRAIN_KEEP_GOING);
    *changed = before.steps != t->folder.steps || before.actors != t->folder.actors ||
               before.keep_going != t->folder.keep_going;
    return st;
}

/* Reads the folder of a run that is resumed. `class` is that of --env, or NULL. */
static rp_status read_folder(rp_training *t, const rp_env_class *class, rp_problem *problem)
{
    bool changed = false;
    rp_status st;

    if (rp_flags_get(t->flags, RP_TRAIN_SEED) != NULL)
        return rp_problem_set(problem, NULL, "--seed: a resumed run keeps its seed");
    st = rp_run_folder_read(&t->folder, problem);
    if (st == RP_OK && class != NULL && class != t->folder.env_class)
        return rp_problem_set(problem, NULL, "--env: the run in %.200s is of %s",
                              t->folder.path, t->folder.env_class->name);
    if (st == RP_OK) st = take_settings(t, problem);
    if (st == RP_OK) st = take_kept(t, &changed, problem);
    return st == RP_OK && changed ? rp_run_folder_rewrite(&t->folder, problem) : st;
}

rp_status rp_train_folder(rp_training *t, const char *env, rp_problem *problem)
{
    const char *dir = t->dir;
    const rp_env_class *class = NULL;
    bool changed;
    rp_status st = RP_OK;

    if (env == NULL && t->resume && dir == NULL)
        return rp_problem_set(problem, NULL,
                              "--resume: --dir FOLDER is missing: the folder of the run");
    if (env == NULL && !t->resume)
        return rp_problem_set(problem, NULL, "--env is missing: for example --env cartpole");
    if (env != NULL) st = rp_run_find_env(env, &class, problem);
    if (st == RP_OK)
        st = rp_run_folder_choose(&t->folder, dir, class != NULL ? class->name : "", t->resume,
                                  problem);
    if (st != RP_OK) return st;
    if (t->resume) return read_folder(t, class, problem);
    st = rp_train_settings(t, env, problem);
    t->folder.steps = t->folder.actors = 0;
    t->folder.keep_going = false;
    if (st == RP_OK) st = take_kept(t, &changed, problem);
    return st == RP_OK ? rp_run_folder_create(&t->folder, problem) : st;
}

/* RP_INVALID: an option names a task that there is not, or a file that cannot be written. What
 * is wrong with a task that is trained later is found before the first begins. */
static rp_status check_then(const rp_training *t, const char *list, rp_problem *problem)
{
    static rp_training later; /* too large for a stack */
    char name[64];
    rp_problem why;

    while (*list != '\0') {
        size_t length = strcspn(list, ",");

        (void)snprintf(name, sizeof name, "%.*s", (int)length, list);
        list += length + (list[length] == ',');
        if (length == 0)
            return rp_problem_set(problem, NULL,
                                  "--then: expected names of environments, "
                                  "separated by commas");
        later = (rp_training){.flags = t->flags, .folder = t->folder};
        if (rp_train_settings(&later, name, &why) == RP_OK &&
            rp_run_folder_check(&later.folder, &why) == RP_OK)
            continue;
        return rp_problem_set(problem, NULL, "--then: %s",
                              strncmp(why.text, "--env: ", 7) == 0 ? why.text + 7 : why.text);
    }
    return RP_OK;
}

/* RP_INVALID: a value of an option is wrong. */
static rp_status check_values(const rp_training *t, rp_problem *problem)
{
    static const char *const names[] = {"sb3", "cleanrl"};
    const rp_setting log = {.key = "--log", .text = rp_train_get(t, RP_TRAIN_LOG)};
    const char *then = rp_train_get(t, RP_TRAIN_THEN);
    rp_status st = RP_OK;
    int which;

    if (log.text != NULL) st = rp_setting_choice(&log, names, 2, &which, problem);
    return st == RP_OK && then != NULL ? check_then(t, then, problem) : st;
}

/* RP_INVALID: other machines can reach an address of --serve, and anyone may use it. */
static rp_status check_serve(const rp_training *t, rp_problem *problem)
{
    const char *list = rp_train_get(t, RP_TRAIN_SERVE);
    char address[1200], why[128];
    bool is_open;

    if (list == NULL || rp_train_get(t, RP_TRAIN_TOKENS) != NULL ||
        rp_train_is_on(t, RP_TRAIN_INSECURE) || rp_train_get(t, RP_TRAIN_EXPORT) != NULL)
        return RP_OK;
    while (*list != '\0') {
        size_t length = strcspn(list, ",");

        (void)snprintf(address, sizeof address, "%.*s", (int)length, list);
        list += length + (list[length] == ',');
        if (rp_address_check(address, &is_open, why, sizeof why) == RP_OK && is_open)
            return rp_problem_set(
                problem, NULL,
                "--serve: '%.200s' can be reached from elsewhere, and there are no "
                "credentials, so every client would be an administrator: give --tokens, or "
                "--insecure to allow it",
                address);
    }
    return RP_OK;
}

/* RP_INVALID: an option has no effect without another one. */
static rp_status check_needed(const rp_training *t, rp_problem *problem)
{
    static const rp_train_option of_role[] = {RP_TRAIN_REPLAY, RP_TRAIN_INDEX, RP_TRAIN_OF};
    /* With one of these there are reports. A program file may be for runs with and without. */
    static const rp_train_option reports[] = {RP_TRAIN_REPORT,    RP_TRAIN_SERVE,
                                              RP_TRAIN_PROCESSES, RP_TRAIN_ROLE,
                                              RP_TRAIN_EXPORT,    RP_TRAIN_PROGRAM};
    bool has_reports = false;

    if (rp_train_get(t, RP_TRAIN_STAY) != NULL && rp_train_get(t, RP_TRAIN_SERVE) == NULL)
        return rp_problem_set(problem, NULL, "--stay needs --serve ADDR");
    for (size_t i = RP_TRAIN_TOKENS; i <= RP_TRAIN_INSECURE; i++)
        if (rp_train_get(t, i) != NULL && rp_train_get(t, RP_TRAIN_SERVE) == NULL)
            return rp_problem_set(problem, NULL, "--%s needs --serve ADDR", options[i].name);
    if (rp_train_get(t, RP_TRAIN_SHARDS) != NULL && rp_train_get(t, RP_TRAIN_EXPORT) == NULL &&
        !rp_train_is_on(t, RP_TRAIN_PROCESSES))
        return rp_problem_set(problem, NULL, "--shards needs --processes or --export");
    for (size_t i = 0; rp_train_get(t, RP_TRAIN_ROLE) == NULL &&
                       rp_train_get(t, RP_TRAIN_EXPORT) == NULL && /* it has its own refusals */
                       i < sizeof of_role / sizeof of_role[0];
         i++)
        if (rp_train_get(t, of_role[i]) != NULL)
            return rp_problem_set(problem, NULL, "--%s needs --role ROLE",
                                  options[of_role[i]].name);
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++)
        if (rp_train_get(t, reports[i]) != NULL) has_reports = true;
    for (size_t i = RP_TRAIN_REPORT_NAME; !has_reports && i <= RP_TRAIN_REPORT_CA; i++)
        if (rp_train_get(t, i) != NULL)
            return rp_problem_set(problem, NULL, "--%s needs --report ADDR", options[i].name);
    return RP_OK;
}

/* RP_INVALID: an option is of the other agent, or does not go with another one. */
static rp_status check_options(const rp_training *t, bool is_apex, rp_problem *problem)
{
    static const rp_train_option of_one[] = {RP_TRAIN_EVAL_EVERY, RP_TRAIN_ONE_THREAD,
                                             RP_TRAIN_SAVE_EVERY};
    static const rp_train_option alone[] = {RP_TRAIN_THEN, RP_TRAIN_STAY, RP_TRAIN_PLOT,
                                            RP_TRAIN_LOG, RP_TRAIN_JSON};

    for (size_t i = 0; is_apex && i < sizeof of_one / sizeof of_one[0]; i++)
        if (rp_train_get(t, of_one[i]) != NULL)
            return rp_problem_set(problem, NULL, "--%s is an option of dqn, dpg and sac",
                                  options[of_one[i]].name);
    for (size_t i = RP_TRAIN_ACTORS; !is_apex && i < RP_TRAIN_SETTINGS; i++)
        if (rp_train_get(t, i) != NULL)
            return rp_problem_set(
                problem, NULL, "--%s is an option of apex-dqn, apex-dpg and apex-sac%s",
                options[i].name, i == RP_TRAIN_SECONDS ? "; --steps N limits this agent" : "");
    for (size_t i = 0;
         rp_train_is_on(t, RP_TRAIN_PROCESSES) && i < sizeof alone / sizeof alone[0]; i++)
        if (rp_train_get(t, alone[i]) != NULL)
            return rp_problem_set(problem, NULL, "--processes does not go with --%s",
                                  options[alone[i]].name);
    if (check_needed(t, problem) != RP_OK) return RP_INVALID;
    return check_serve(t, problem);
}

const char *rp_train_get_learners(const rp_training *t)
{
    for (size_t o = RP_TRAIN_SETTINGS; o < RP_TRAIN_OPTIONS; o++)
        if (strcmp(options[o].name, "learners") == 0) return rp_train_get(t, o);
    return NULL;
}

/* Takes --actors, --learners and --cores of a run that picks its numbers. A number that is not
 * given is picked as well. RP_INVALID: auto does not go with another option. */
static rp_status take_split(rp_training *t, rp_problem *problem)
{
    static const rp_train_option alone[] = {RP_TRAIN_PROCESSES, RP_TRAIN_ROLE, RP_TRAIN_EXPORT,
                                            RP_TRAIN_PRINT_PROGRAM};
    const char *actors = rp_train_get(t, RP_TRAIN_ACTORS), *learners = rp_train_get_learners(t);
    rp_auto_split *s = &t->split;
    rp_status st = RP_OK;

    s->is_on = rp_is_auto(actors) || rp_is_auto(learners);
    s->cores = rp_own_cores();
    if (!s->is_on && rp_train_get(t, RP_TRAIN_CORES) != NULL)
        return rp_problem_set(problem, NULL, "--cores needs --actors auto or --learners auto");
    for (size_t i = 0; s->is_on && i < sizeof alone / sizeof alone[0]; i++)
        if (rp_train_is_on(t, alone[i]))
            return rp_problem_set(problem, NULL, "--%s auto does not go with --%s",
                                  rp_is_auto(actors) ? "actors" : "learners",
                                  options[alone[i]].name);
    if (s->is_on) st = rp_train_integer(t, RP_TRAIN_CORES, 1, &s->cores, problem);
    if (st == RP_OK && s->cores > RP_SPLIT_MAX_CORES)
        st = rp_problem_set(problem, NULL, "--cores: expected 1 to %d, got %lld",
                            RP_SPLIT_MAX_CORES, (long long)s->cores);
    if (st == RP_OK && s->is_on && actors != NULL && !rp_is_auto(actors))
        st = rp_train_integer(t, RP_TRAIN_ACTORS, 1, &s->actors, problem);
    return st;
}

/* Writes the program to the standard output. */
static int print_program(rp_training *t, const rp_program *program)
{
    rp_text_buffer out = {0};
    rp_problem problem;
    int status = EXIT_SUCCESS;

    if (rp_train_settings(t, rp_train_get(t, RP_TRAIN_ENV), &problem) != RP_OK)
        return rp_train_misuse(&problem);
    rp_program_print(program, &t->folder, t->json, &out);
    if (out.failed) status = rp_train_failed("no memory for the text");
    if (status == EXIT_SUCCESS &&
        (fwrite(out.text, 1, out.size, stdout) != out.size || fflush(stdout) != 0))
        status = rp_train_failed("cannot write to the standard output");
    rp_text_buffer_deinit(&out);
    return status;
}

/* Trains, or prints the program. Its flags are those of the file and of the command line. */
static int train(const rp_program *program)
{
    static rp_training t; /* too large for a stack */
    const rp_flags *flags = &program->flags;
    bool is_apex = strncmp(flags->words[0], "apex-", 5) == 0;
    rp_problem problem;

    t = (rp_training){.flags = flags, .greedy = (double)NAN};
    (void)rp_run_folder_set_agent(&t.folder, flags->words[0]); /* one of the actions */
    t.dir = rp_train_get(&t, RP_TRAIN_DIR);
    t.resume = rp_train_is_on(&t, RP_TRAIN_RESUME);
    t.json = rp_train_is_on(&t, RP_TRAIN_JSON);
    t.quiet = t.json || rp_train_is_on(&t, RP_TRAIN_QUIET);
    t.terminal = isatty(STDERR_FILENO) != 0;
    if (take_split(&t, &problem) != RP_OK) return rp_train_misuse(&problem);
    if (is_apex && rp_train_is_on(&t, RP_TRAIN_PRINT_PROGRAM))
        return print_program(&t, program);
    if (check_options(&t, is_apex, &problem) != RP_OK || check_values(&t, &problem) != RP_OK)
        return rp_train_misuse(&problem);
    return is_apex ? rp_train_apex(&t) : rp_train_agent(&t);
}

/* Takes the agent of a run that is resumed from its folder, if none is given. */
static rp_status add_agent(rp_flags *flags, rp_problem *problem)
{
    static rp_run_folder folder; /* too large for a stack */
    const char *resume = rp_flags_get(flags, RP_TRAIN_RESUME);
    const char *dir = rp_flags_get(flags, RP_TRAIN_DIR);
    rp_status st;

    if (flags->word_count > 0 || resume == NULL || strcmp(resume, "false") == 0 ||
        dir == NULL || rp_flags_get(flags, RP_TRAIN_PROGRAM) != NULL)
        return RP_OK;
    folder = (rp_run_folder){0};
    st = rp_run_folder_choose(&folder, dir, "", true, problem);
    if (st == RP_OK) st = rp_run_folder_read(&folder, problem);
    if (st == RP_OK) flags->words[flags->word_count++] = folder.agent;
    return st;
}

static int run(const rp_flags *given)
{
    static rp_flags flags;     /* too large for a stack */
    static rp_program program; /* too large for a stack */
    const char *file = rp_flags_get(given, RP_TRAIN_PROGRAM);
    rp_problem problem;
    rp_status st;
    int status;

    flags = *given;
    rp_program_init(&program, NULL);
    st = add_agent(&flags, &problem);
    if (st == RP_OK && file != NULL) st = rp_program_read_file(&program, file, &problem);
    if (st == RP_OK) st = rp_program_merge(&program, &flags, &problem);
    status = st == RP_OK ? train(&program) : rp_train_misuse(&problem);
    rp_program_deinit(&program);
    return status;
}

const rp_command rp_train_command = {
    .name = "train",
    .summary = "Trains an agent in one of our environments.",
    .usage = "[AGENT] --env NAME [OPTION...]",
    .text = text,
    .examples = examples,
    .notes = notes,
    .actions = "dqn dpg sac apex-dqn apex-dpg apex-sac",
    .action = "agent",
    .options = options,
    .option_count = RP_TRAIN_OPTIONS,
    .max_words = 1,
    .run = run,
};
