/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise train`: trains an agent in one of our environments, in a folder of its own. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/curve_plot.h"
#include "cli/commands/interrupts.h"
#include "cli/commands/run_folder.h"
#include "cli/commands/run_report.h"
#include "cli/text/text_buffer.h"
#include "reprise/rl/safetensors.h"
#include "reprise/rl/trainer.h"
#include "reprise/server.h"

enum {
    EXIT_MISUSE = 2,
    EXIT_SIGNAL = 128,
    LINE_NS = 200000000, /* between two lines of progress on a terminal */
    PLAIN_LINE_S = 10,   /* elsewhere */
    MAX_POINTS = 1 << 20,
};

typedef enum option {
    ENV,
    STEPS,
    SEED,
    DIR,
    RESUME,
    KEEP_GOING,
    THRESHOLD,
    EVAL_EVERY,
    EVAL_EPISODES,
    CONFIRM_EPISODES,
    ONE_THREAD,
    SAVE_EVERY,
    PLOT,
    LOG,
    SERVE,
    REPORT,
    REPORT_NAME,
    REPORT_CA,
    QUIET,
    JSON,
    SETTINGS, /* the first setting of the agent */
    OPTIONS = SETTINGS + RP_DQN_SETTINGS,
} option;

#define ARGUMENT_INTEGER "N"
#define ARGUMENT_NUMBER "X"
#define ARGUMENT_SWITCH "BOOL"
#define WORDS_INTEGER NULL
#define WORDS_NUMBER NULL
#define WORDS_SWITCH "true false"
#define GROUP(field) (offsetof(rp_dqn_settings, field) == 0 ? "Settings of dqn" : NULL)
#define OPTION(kind, field, name, initial, low, high, about)                                   \
    {name, ARGUMENT_##kind, about " (" #initial ")", false, GROUP(field), WORDS_##kind},

static const rp_option options[OPTIONS] = {
    [ENV] = {"env", "NAME", "the environment; a resumed run knows it", false, "Run",
             "acrobot bricks cartpole catch deep_sea lunarlander memory_chain mountain_car"},
    [STEPS] = {"steps", "N", "the most steps, of all copies together (500,000)", false, NULL,
               NULL},
    [SEED] = {"seed", "N", "of everything random (1)", false, NULL, NULL},
    [DIR] = {"dir", "DIR", "folder of the run (runs/dqn-ENV-N, the next N)", false, NULL, NULL},
    [RESUME] = {"resume", NULL, "continue the run in --dir, or the latest one of --env", false,
                NULL, NULL},
    [KEEP_GOING] = {"keep-going", NULL, "do not stop when the environment is solved", false,
                    NULL, NULL},
    [THRESHOLD] = {"threshold", "X", "mean return that solves it (known for each environment)",
                   false, NULL, NULL},
    [EVAL_EVERY] = {"eval-every", "N", "steps between evaluations (2000)", false, NULL, NULL},
    [EVAL_EPISODES] = {"eval-episodes", "N", "greedy episodes of an evaluation (20)", false,
                       NULL, NULL},
    [CONFIRM_EPISODES] = {"confirm-episodes", "N",
                          "other episodes that must confirm a passing one (300)", false, NULL,
                          NULL},
    [ONE_THREAD] = {"one-thread", NULL, "evaluate between steps: runs end reproducibly", false,
                    NULL, NULL},
    [SAVE_EVERY] = {"save-every", "N", "steps between snapshots (20,000; 0: at the end)", false,
                    NULL, NULL},
    [PLOT] = {"plot", "FILE", "draw the curve as an SVG", false, NULL, NULL},
    [LOG] = {"log", "NAMES", "write event files of TensorBoard, with names as", false, NULL,
             "sb3 cleanrl"},
    [SERVE] = {"serve", "ADDR",
               "serve the run here meanwhile: its page, its curves, its replay", false, NULL,
               NULL},
    [REPORT] = {"report", "ADDR", "report scalars and episodes to this server (docs/runs.md)",
                false, NULL, NULL},
    [REPORT_NAME] = {"report-name", "NAME", "name of the run there (the folder's)", false, NULL,
                     NULL},
    [REPORT_CA] = {"report-ca", "FILE", "use TLS there, trust these certificates, PEM", false,
                   NULL, NULL},
    [QUIET] = {"quiet", NULL, "no progress", false, NULL, NULL},
    [JSON] = {"json", NULL, "print the result as JSON, for programs; no progress", false, NULL,
              NULL},
    [SETTINGS] = RP_DQN_SETTING_LIST(OPTION)};

static const char text[] =
    "The agent acts in a group of copies of the environment, writes what it sees into a table\n"
    "of a store in this process, and learns from samples of it. Greedy episodes in a thread "
    "of\n"
    "their own tell whether the environment is solved. Some environments have other defaults\n"
    "(docs/agents/dqn.md). With --resume the settings are those of the run.\n";

static const char *const examples[] = {
    "reprise train dqn --env cartpole",
    "reprise train dqn --env catch --dir catch --plot curve.svg --log sb3",
    "reprise train dqn --dir catch --resume --steps 20000 --keep-going",
    NULL,
};

static const char notes[] =
    "Ctrl-C saves the run and stops it, a second one stops at once. The folder has the policy\n"
    "(policy.safetensors), the curve (progress.csv), the replay and the state of the run.\n"
    "Then: reprise eval DIR, reprise play DIR. Reports never slow a run: those that do not "
    "reach\n"
    "the server are dropped and counted. Their token is in the environment, REPRISE_TOKEN.\n";

typedef struct training {
    const rp_flags *flags;
    rp_run_folder folder;
    rp_trainer_options options;
    rp_interrupts interrupts;
    rp_run_log *logs[2];
    size_t log_count;
    rp_trainer *trainer;
    rp_store *store;           /* of the trainer */
    rp_server *server;         /* of --serve, or NULL */
    rp_run_reporter *reporter; /* NULL: none */
    bool resume, quiet, json, terminal, drawn;
    double shown;  /* seconds of the run when a plain line was printed */
    double greedy; /* the latest evaluation */
    rp_curve_point *points;
    size_t point_count, point_capacity;
} training;

static bool is_on(const training *t, option o)
{
    const char *value = rp_flags_get(t->flags, o);

    return value != NULL && strcmp(value, "false") != 0;
}

static int misuse(const rp_problem *problem)
{
    (void)fprintf(stderr, "reprise train: %s\n", problem->text);
    return EXIT_MISUSE;
}

static int failed(const char *reason)
{
    (void)fprintf(stderr, "reprise train: %s\n", reason);
    return EXIT_FAILURE;
}

/* Gets an option as a setting. Returns false if it was not given. */
static bool setting(const training *t, size_t o, char key[64], rp_setting *out)
{
    const char *value = rp_flags_get(t->flags, o);

    (void)snprintf(key, 64, "--%s", options[o].name);
    *out = (rp_setting){.key = key, .text = value};
    return value != NULL;
}

static rp_status take_integer(const training *t, option o, int64_t low, int64_t *out,
                              rp_problem *problem)
{
    char key[64];
    rp_setting value;

    if (!setting(t, o, key, &value)) return RP_OK;
    return rp_setting_integer(&value, low, INT64_C(1000000000000), out, problem);
}

static rp_status take_run_options(training *t, rp_problem *problem)
{
    rp_trainer_options *o = &t->options;
    char key[64];
    rp_setting value;
    rp_status st;

    o->max_steps = 500000;
    o->save_every = 20000;
    st = take_integer(t, STEPS, 1, &o->max_steps, problem);
    if (st == RP_OK) st = take_integer(t, EVAL_EVERY, 1, &o->eval_every, problem);
    if (st == RP_OK) st = take_integer(t, EVAL_EPISODES, 1, &o->eval_episodes, problem);
    if (st == RP_OK) st = take_integer(t, CONFIRM_EPISODES, 1, &o->confirm_episodes, problem);
    if (st == RP_OK) st = take_integer(t, SAVE_EVERY, 0, &o->save_every, problem);
    if (st == RP_OK && setting(t, THRESHOLD, key, &value))
        st = rp_setting_number(&value, -1e300, 1e300, &o->threshold, problem);
    o->keep_going = is_on(t, KEEP_GOING);
    o->inline_evaluation = is_on(t, ONE_THREAD);
    return st;
}

/* Takes the settings of the agent from the flags. */
static rp_status take_settings(training *t, rp_problem *problem)
{
    rp_error err;

    for (size_t i = 0; i < RP_DQN_SETTINGS; i++) {
        const rp_setting_info *info = rp_dqn_setting_at(i);
        double number = 0;
        int64_t whole = 0;
        bool on = false;
        char key[64];
        rp_setting value;
        rp_status st;

        if (!setting(t, SETTINGS + i, key, &value)) continue;
        if (t->resume)
            return rp_problem_set(problem, NULL, "%s: a resumed run keeps its settings", key);
        if (info->kind == RP_SETTING_SWITCH)
            st = rp_setting_boolean(&value, &on, problem);
        else if (info->kind == RP_SETTING_INTEGER)
            st = rp_setting_integer(&value, (int64_t)info->low, (int64_t)info->high, &whole,
                                    problem);
        else
            st = rp_setting_number(&value, info->low, info->high, &number, problem);
        if (st != RP_OK) return st;
        rp_dqn_setting_set(&t->folder.settings, i,
                           info->kind == RP_SETTING_SWITCH    ? (double)on
                           : info->kind == RP_SETTING_INTEGER ? (double)whole
                                                              : number);
    }
    if (rp_dqn_settings_check(&t->folder.settings, &err) != RP_OK)
        return rp_problem_set(problem, NULL, "%s", err.text);
    return RP_OK;
}

/* Decides on folder, environment, seed and settings, and creates the folder of a new run. */
static rp_status take_folder(training *t, rp_problem *problem)
{
    const char *env = rp_flags_get(t->flags, ENV), *dir = rp_flags_get(t->flags, DIR);
    const rp_env_class *class = NULL;
    char key[64];
    rp_setting value;
    rp_status st = RP_OK;

    if (env == NULL && !(t->resume && dir != NULL))
        return rp_problem_set(problem, NULL, "--env is missing: for example --env cartpole");
    if (env != NULL) st = rp_run_find_env(env, &class, problem);
    if (st == RP_OK)
        st = rp_run_folder_choose(&t->folder, dir, class != NULL ? class->name : "", t->resume,
                                  problem);
    if (st != RP_OK) return st;
    if (t->resume) {
        if (rp_flags_get(t->flags, SEED) != NULL)
            return rp_problem_set(problem, NULL, "--seed: a resumed run keeps its seed");
        st = rp_run_folder_read(&t->folder, problem);
        if (st == RP_OK && class != NULL && class != t->folder.env_class)
            return rp_problem_set(problem, NULL, "--env: the run in %.200s is of %s",
                                  t->folder.path, t->folder.env_class->name);
        return st == RP_OK ? take_settings(t, problem) : st;
    }
    t->folder.env_class = class;
    t->folder.seed = 1;
    if (setting(t, SEED, key, &value))
        st = rp_setting_unsigned(&value, &t->folder.seed, problem);
    rp_dqn_settings_init(&t->folder.settings, class->name);
    if (st == RP_OK) st = take_settings(t, problem);
    return st == RP_OK ? rp_run_folder_create(&t->folder, problem) : st;
}

static rp_status make_agent(void *ctx, const rp_trainer_parts *parts, rp_agent **out,
                            rp_error *err)
{
    training *t = ctx;
    const rp_dqn_options dqn = {&t->folder.settings, parts->spec, parts->store, parts->client,
                                parts->seed};

    t->store = parts->store;
    return rp_dqn_new(parts->alloc, &dqn, out, err);
}

static bool should_stop(void *ctx)
{
    training *t = ctx;

    return atomic_load(&t->interrupts.number) != 0;
}

static void keep_point(training *t, const rp_run_progress *p)
{
    rp_curve_point *more;

    if (t->point_count == t->point_capacity) {
        size_t capacity = t->point_capacity > 0 ? 2 * t->point_capacity : 256;
        more = capacity <= MAX_POINTS ? realloc(t->points, capacity * sizeof *more) : NULL;
        if (more == NULL) return; /* the curve ends here */
        t->points = more;
        t->point_capacity = capacity;
    }
    t->points[t->point_count++] =
        (rp_curve_point){(double)p->steps, p->mean_return, (double)NAN};
    if (isfinite(p->eval_return)) t->points[t->point_count - 1].greedy = p->eval_return;
}

/* The columns of a line that does not wrap. */
static int columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
    return size.ws_col - 1;
}

/* The live line of a terminal, on standard error; elsewhere a line from time to time. */
static void on_progress(void *ctx, const rp_run_progress *progress)
{
    training *t = ctx;
    rp_run_progress p = *progress;
    char line[256];

    keep_point(t, progress);
    if (t->reporter != NULL)
        rp_run_reporter_add(t->reporter, progress, rp_trainer_get_parameters(t->trainer));
    if (isfinite(p.eval_return)) t->greedy = p.eval_return;
    if (t->quiet) return;
    p.eval_return = t->greedy;
    if (t->terminal) {
        (void)fprintf(stderr, "\r%.*s\x1b[K", columns(),
                      rp_run_progress_line(&p, line, sizeof line));
        (void)fflush(stderr);
        t->drawn = true;
    } else if (p.seconds - t->shown >= PLAIN_LINE_S) {
        (void)printf("%s\n", rp_run_progress_line(&p, line, sizeof line));
        (void)fflush(stdout);
        t->shown = p.seconds;
    }
}

/* Reads the points of the earlier parts of a run that is resumed. */
static void read_points(training *t, int64_t steps)
{
    char path[RP_RUN_PATH_BYTES + 64], line[1024];
    FILE *file = fopen(rp_run_folder_file(&t->folder, "progress.csv", path), "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        rp_run_progress p = {.mean_return = (double)NAN, .eval_return = (double)NAN};
        char *at = line;

        p.steps = strtoll(line, NULL, 10);
        if (p.steps <= 0 || p.steps > steps) continue;
        for (int column = 0; at != NULL && column <= 7; column++) {
            if (column == 4 && *at != ',') p.mean_return = strtod(at, NULL);
            if (column == 7 && *at != ',') p.eval_return = strtod(at, NULL);
            at = strchr(at, ',');
            if (at != NULL) at++;
        }
        keep_point(t, &p);
    }
    if (file != NULL) (void)fclose(file);
}

static rp_status open_logs(training *t, rp_error *err)
{
    char path[RP_RUN_PATH_BYTES + 64];
    const char *names = rp_flags_get(t->flags, LOG);
    int64_t steps = rp_trainer_get_steps(t->trainer);
    rp_status st;

    if (t->resume) read_points(t, steps);
    st = rp_run_log_open_csv(NULL, rp_run_folder_file(&t->folder, "progress.csv", path),
                             t->resume, steps, &t->logs[t->log_count], err);
    if (st != RP_OK) return st;
    t->log_count++;
    if (names == NULL) return RP_OK;
    st = rp_run_log_open_events(NULL, t->folder.path,
                                strcmp(names, "sb3") == 0 ? RP_NAMES_SB3 : RP_NAMES_CLEANRL,
                                (double)time(NULL), &t->logs[t->log_count], err);
    if (st == RP_OK) t->log_count++;
    return st;
}

/* The last part of the folder's path. */
static const char *run_name(const training *t)
{
    const char *name = rp_flags_get(t->flags, REPORT_NAME);
    const char *slash = strrchr(t->folder.path, '/');

    if (name != NULL) return name;
    return slash != NULL && slash[1] != '\0' ? slash + 1 : t->folder.path;
}

/* Starts a server for the tables of the run. It is for people who look on: one thread is
 * enough.
 */
static rp_status start_server(training *t, rp_error *err)
{
    const char *address = rp_flags_get(t->flags, SERVE);
    const rp_server_options o = {.addresses = &address, .address_count = 1, .loops = 1};
    rp_status st;

    if (address == NULL) return RP_OK;
    st = rp_server_start(t->store, &o, &t->server, err);
    if (st == RP_OK && !t->quiet && rp_server_port(t->server) > 0)
        (void)fprintf(stderr, "reprise train: look at http://localhost:%d/\n",
                      rp_server_port(t->server));
    return st;
}

/* Reports to --report, or else to the server of --serve. */
static rp_status open_reporter(training *t, rp_error *err)
{
    const char *given = rp_flags_get(t->flags, REPORT), *served = rp_flags_get(t->flags, SERVE);
    char own[128];
    const rp_run_reporter_options o = {
        .address = given != NULL       ? given
                   : t->server != NULL ? own
                                       : NULL,
        .run = run_name(t),
        .client = {.token = getenv("REPRISE_TOKEN"),
                   .ca_file = rp_flags_get(t->flags, REPORT_CA)},
        .env_class = t->folder.env_class,
        .settings = &t->folder.settings,
        .seed = t->folder.seed,
    };

    if (o.address == NULL) return RP_OK;
    if (served != NULL && strncmp(served, "unix:", 5) == 0)
        (void)snprintf(own, sizeof own, "%s", served);
    else
        (void)snprintf(own, sizeof own, "localhost:%d",
                       t->server != NULL ? rp_server_port(t->server) : 0);
    return rp_run_reporter_new(&o, &t->reporter, err);
}

/* Sends the last reports, and says on the standard error stream which did not arrive, or were
 * not kept. */
static void close_reporter(training *t)
{
    rp_run_reported done = {0};

    const char *where =
        rp_flags_get(t->flags, rp_flags_get(t->flags, REPORT) != NULL ? REPORT : SERVE);

    rp_run_reporter_free(t->reporter, &done);
    t->reporter = NULL;
    if (done.dropped > 0)
        (void)fprintf(stderr, "reprise train: %zu of %zu reports did not reach %s%s%s\n",
                      done.dropped, done.dropped + done.sent, where,
                      done.why[0] != '\0' ? ": " : "", done.why);
    if (done.left_out > 0)
        (void)fprintf(
            stderr,
            "reprise train: %s had no room for %zu scalars, actors or episodes: raise "
            "its limit run_bytes\n",
            where, done.left_out);
}

static rp_status save_policy(training *t, rp_error *err)
{
    char path[RP_RUN_PATH_BYTES + 64];
    rp_env *env = NULL;
    rp_net *net = NULL;
    rp_status st =
        rp_env_new(NULL, t->folder.env_class, &(rp_env_options){.copies = 1}, &env, err);

    if (st == RP_OK)
        st = rp_dqn_new_net(NULL, &t->folder.settings, rp_env_get_spec(env), &net, err);
    if (st == RP_OK)
        st = rp_net_save(rp_allocator_default(), net, rp_trainer_get_parameters(t->trainer),
                         rp_run_folder_file(&t->folder, "policy.safetensors", path), err);
    rp_net_free(net);
    rp_env_free(env);
    return st;
}

static int draw(const training *t)
{
    const char *path = rp_flags_get(t->flags, PLOT);
    rp_text_buffer buffer = {0};
    char title[128], reason[600];
    bool bad = true;
    FILE *file;

    if (path == NULL) return 0;
    (void)snprintf(title, sizeof title, "dqn on %s, seed %llu", t->folder.env_class->name,
                   (unsigned long long)t->folder.seed);
    rp_curve_svg(&buffer, title, t->points, t->point_count,
                 rp_trainer_get_threshold(t->trainer));
    file = fopen(path, "we");
    if (file != NULL && !buffer.failed) bad = fputs(rp_text_buffer_text(&buffer), file) < 0;
    rp_text_buffer_deinit(&buffer);
    if (file != NULL && fclose(file) == 0 && !bad) return 0;
    (void)snprintf(reason, sizeof reason, "%.500s: %s", path, strerror(errno));
    return failed(reason);
}

static void print_json(const training *t, const rp_trainer_result *r)
{
    rp_text_buffer out = {0};

    rp_json_open(&out, '{');
    rp_json_key(&out, "dir");
    rp_json_put_text(&out, t->folder.path);
    rp_json_key(&out, "env");
    rp_json_put_text(&out, t->folder.env_class->name);
    rp_json_key(&out, "seed");
    rp_json_put_unsigned(&out, t->folder.seed);
    rp_json_key(&out, "solved");
    rp_json_put_boolean(&out, r->solved);
    rp_json_key(&out, "mean_return");
    if (r->solved)
        rp_json_put_number(&out, r->confirmed.mean_return);
    else
        rp_json_put_raw(&out, "null");
    rp_json_key(&out, "solved_steps");
    rp_json_put_integer(&out, r->solved_steps);
    rp_json_key(&out, "steps");
    rp_json_put_integer(&out, r->progress.steps);
    rp_json_key(&out, "episodes");
    rp_json_put_integer(&out, r->progress.episodes);
    rp_json_key(&out, "updates");
    rp_json_put_integer(&out, r->progress.updates);
    rp_json_key(&out, "seconds");
    rp_json_put_number(&out, round(r->progress.seconds * 1e3) / 1e3);
    rp_json_close(&out, '}');
    (void)printf("%s\n", rp_text_buffer_text(&out));
    rp_text_buffer_deinit(&out);
}

static void print_result(const training *t, const rp_trainer_result *r)
{
    const rp_run_progress *p = &r->progress;

    if (t->json) {
        print_json(t, r);
        return;
    }
    if (r->solved)
        (void)printf("solved: the mean return of %lld fresh episodes is %.4g, with the "
                     "parameters of step %lld\n",
                     (long long)r->confirmed.episodes, r->confirmed.mean_return,
                     (long long)r->solved_steps);
    else if (r->stopped)
        (void)printf("stopped and saved; reprise train dqn --dir %s --resume continues\n",
                     t->folder.path);
    else
        (void)printf("not solved in %lld steps\n", (long long)p->steps);
    (void)printf("%lld steps, %lld episodes, %lld updates in %.1f s (%.0f steps/s)\n%s\n",
                 (long long)p->steps, (long long)p->episodes, (long long)p->updates, p->seconds,
                 (double)p->steps / p->seconds, t->folder.path);
}

static int train(training *t)
{
    char path[RP_RUN_PATH_BYTES + 64];
    rp_trainer_result result = {0};
    rp_error err = {0}, later = {0};
    rp_status st;
    int status = 0;

    t->options.env_class = t->folder.env_class;
    t->options.env.copies = (size_t)t->folder.settings.copies;
    t->options.make_agent = make_agent;
    t->options.ctx = t;
    t->options.seed = t->folder.seed;
    t->options.directory = rp_run_folder_file(&t->folder, "replay", path);
    t->options.resume = t->resume;
    t->options.progress_ns = LINE_NS;
    t->options.on_progress = on_progress;
    t->options.should_stop = should_stop;
    st = rp_trainer_new(NULL, &t->options, &t->trainer, &err);
    if (st == RP_NOT_FOUND && t->resume) { /* stopped before its first snapshot: begins again */
        t->options.resume = false;
        st = rp_trainer_new(NULL, &t->options, &t->trainer, &err);
    }
    if (st == RP_OK) st = open_logs(t, &err);
    if (st == RP_OK) st = start_server(t, &err);
    if (st == RP_OK) st = open_reporter(t, &err);
    if (st != RP_OK) return failed(err.text);
    rp_trainer_set_logs(t->trainer, t->logs, t->log_count);
    st = rp_trainer_run(t->trainer, &result, &err);
    if (t->drawn) (void)fputs("\r\x1b[K", stderr);
    close_reporter(t);
    if (st != RP_OK) status = failed(err.text);
    if (st == RP_OK && save_policy(t, &later) != RP_OK) status = failed(later.text);
    if (status == 0) print_result(t, &result);
    if (status == 0) status = draw(t);
    if (status == 0 && result.stopped)
        status = EXIT_SIGNAL + atomic_load(&t->interrupts.number);
    return status;
}

static int run(const rp_flags *flags)
{
    static training t; /* too large for a stack */
    rp_problem problem;
    int status;

    t = (training){.flags = flags, .greedy = (double)NAN, .resume = false};
    t.resume = is_on(&t, RESUME);
    t.json = is_on(&t, JSON);
    t.quiet = t.json || is_on(&t, QUIET);
    t.terminal = isatty(STDERR_FILENO) != 0;
    if (take_run_options(&t, &problem) != RP_OK || take_folder(&t, &problem) != RP_OK)
        return misuse(&problem);
    if (rp_interrupts_start(&t.interrupts) != RP_OK) return failed("no thread for signals");
    status = train(&t);
    for (size_t i = 0; i < t.log_count; i++) rp_run_log_free(t.logs[i]);
    rp_run_reporter_free(t.reporter, NULL);
    rp_server_free(t.server);
    rp_trainer_free(t.trainer);
    rp_interrupts_stop(&t.interrupts);
    free(t.points);
    return status;
}

const rp_command rp_train_command = {
    .name = "train",
    .summary = "Trains an agent in one of our environments.",
    .usage = "dqn --env NAME [OPTION...]",
    .text = text,
    .examples = examples,
    .notes = notes,
    .actions = "dqn",
    .options = options,
    .option_count = OPTIONS,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
