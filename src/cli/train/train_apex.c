/* SPDX-License-Identifier: Apache-2.0 */
/* `reprise train apex-dqn`: actors, a learner and an evaluator as threads of this process on a
 * store of its own, or one of these parts on a replay elsewhere (--role). */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands/commands.h"
#include "cli/commands/remote.h"
#include "cli/text/units.h"
#include "cli/train/train.h"
#include "cli/train/train_apex.h"
#include "cli/train/train_lines.h"
#include "reprise/rl/snapshot.h"

enum {
    ACTORS = 8,
    STEP_MS = 100,     /* between looks at the parts */
    KEEP_S2 = 2,       /* points of the curve a second */
    PLAIN_LINE_S = 10, /* between lines, unless on a terminal */
    LEAST_LINE_S = 1,  /* and between those of a part whose waits come and go */
    RETRY_MS = 100,    /* between attempts to connect */
    PING_MS = 10000,   /* silence after which a server is pinged, and how long it may take */
    TROUBLE_S = 10,    /* between the first two lines about trouble; then twice as long */
    SAVE_S = 5,        /* between checkpoints of the replay of threads */
};

typedef struct apex_run {
    rp_training *t;
    rp_apex_options options;
    int64_t seconds; /* of a task; 0: no limit */
    rp_durable *durable;
    char store_path[RP_RUN_PATH_BYTES + 64];
    rp_client *client;
    rp_client *home; /* of the first shard; NULL: there is one only */
    rp_apex *apex;
    rp_apex_part *parts;
    size_t part_count, part_room;
    rp_real *params;
    rp_run_progress progress, kept, said; /* latest; of the curve; printed */
    int64_t eval_version;                 /* in the curve */
    size_t drawn;                         /* lines on the terminal */
    char said_wait[64];                   /* what the part of a role was waiting for then */
    rp_part_wait wait;                    /* of the part of a role */
    char said_trouble[sizeof((rp_apex_part *)NULL)->trouble];
    double next_trouble_s, trouble_pause_s; /* of the clock of the progress */
} apex_run;

static bool is_interrupted(const apex_run *r)
{
    return atomic_load(&r->t->interrupts.number) != 0;
}

/* Takes a number of actors, if it was given. */
static rp_status take_actors(const rp_training *t, rp_train_option option, bool may_be_auto,
                             int64_t *out, rp_problem *problem)
{
    const char *given = rp_train_get(t, option);
    int64_t count;

    if (given == NULL) return RP_OK;
    if (!rp_parse_integer(given, &count) || count < 1 || count > RP_APEX_MAX_ACTORS)
        return rp_problem_set(problem, NULL,
                              "--%s: expected a whole number from 1 to %d%s, got '%.100s'",
                              rp_train_command.options[option].name, RP_APEX_MAX_ACTORS,
                              may_be_auto ? ", or auto" : "", given);
    *out = count;
    return RP_OK;
}

rp_status rp_train_take_apex(const rp_training *t, rp_apex_options *o, int64_t *seconds,
                             rp_problem *problem)
{
    const rp_setting threshold = {.key = "--threshold",
                                  .text = rp_train_get(t, RP_TRAIN_THRESHOLD)};
    rp_status st;

    *o = (rp_apex_options){.algorithm = rp_apex_find(t->folder.kind->name),
                           .actors = ACTORS,
                           .seed = t->folder.seed,
                           .has_threshold = threshold.text != NULL};
    *seconds = 0;
    st = rp_train_integer(t, RP_TRAIN_STEPS, 1, &o->max_steps, problem);
    if (st == RP_OK) st = rp_train_integer(t, RP_TRAIN_SECONDS, 1, seconds, problem);
    if (st == RP_OK && !rp_is_auto(rp_train_get(t, RP_TRAIN_ACTORS)))
        st = take_actors(t, RP_TRAIN_ACTORS, true, &o->actors, problem);
    if (st == RP_OK) st = take_actors(t, RP_TRAIN_OF, false, &o->actors, problem);
    if (st == RP_OK)
        st = rp_train_integer(t, RP_TRAIN_EVAL_EPISODES, 1, &o->eval_episodes, problem);
    if (st == RP_OK)
        st = rp_train_integer(t, RP_TRAIN_CONFIRM_EPISODES, 1, &o->confirm_episodes, problem);
    if (st == RP_OK && threshold.text != NULL)
        st = rp_setting_number(&threshold, -1e300, 1e300, &o->threshold, problem);
    o->most_actors = o->actors;
    return st;
}

rp_status rp_train_take_shards(const rp_training *t, int64_t *out, rp_problem *problem)
{
    rp_status st;

    *out = 1;
    st = rp_train_integer(t, RP_TRAIN_SHARDS, 1, out, problem);
    if (st == RP_OK && *out > RP_TRAIN_MOST_SHARDS)
        st = rp_problem_set(problem, NULL, "--shards: expected 1 to %d, got %lld",
                            RP_TRAIN_MOST_SHARDS, (long long)*out);
    return st;
}

/* Makes the program; its parts are not started. */
static rp_status make_program(apex_run *r, rp_error *err)
{
    rp_status st;

    r->options.settings = &r->t->folder.settings;
    r->options.env_class = r->t->folder.env_class;
    r->options.client = r->client;
    r->options.home = r->home;
    r->options.seed = r->t->folder.seed;
    st = rp_apex_new(NULL, &r->options, &r->apex, err);
    if (st != RP_OK) return st;
    r->part_room = (size_t)r->options.most_actors + 2;
    r->parts = calloc(r->part_room, sizeof *r->parts);
    r->params = calloc(rp_apex_parameter_count(r->apex), sizeof *r->params);
    r->progress = r->kept = r->said = (rp_run_progress){0};
    r->eval_version = 0;
    r->next_trouble_s = r->trouble_pause_s = 0;
    if (r->parts != NULL && r->params != NULL) return RP_OK;
    (void)snprintf(err->text, sizeof err->text, "no memory for the parameters");
    return RP_NO_RESOURCE;
}

static void free_program(apex_run *r)
{
    rp_apex_free(r->apex);
    free(r->parts);
    free(r->params);
    r->apex = NULL;
    r->parts = NULL;
    r->params = NULL;
}

/* A line of the only part, when it begins to wait for something else, and from time to time. */
static void say_part(apex_run *r)
{
    const rp_apex_part *p = &r->parts[0];
    char line[RP_PART_LINE_BYTES], wait[sizeof r->said_wait];
    bool is_new;

    (void)snprintf(wait, sizeof wait, "%.*s", (int)strcspn(p->waits_for, ":"), p->waits_for);
    /* Short waits of the limiter come and go. */
    is_new = strcmp(wait, r->said_wait) != 0 && (p->wait_share > 0.9 || wait[0] == '\0');
    if (r->progress.seconds - r->said.seconds < (is_new ? LEAST_LINE_S : PLAIN_LINE_S)) return;
    (void)snprintf(r->said_wait, sizeof r->said_wait, "%s", wait);
    r->said = r->progress;
    (void)printf("%s\n", rp_part_line(p, rp_apex_get_threshold(r->apex), line));
    (void)fflush(stdout);
}

/* A line about the first part that has other trouble than that of the last line, at growing
 * intervals. */
static void say_trouble(apex_run *r)
{
    const rp_apex_part *p = r->parts, *end = r->parts + r->part_count;
    char name[32];

    while (p < end && p->trouble[0] == '\0') p++;
    if (p == end || strcmp(p->trouble, r->said_trouble) == 0 ||
        r->progress.seconds < r->next_trouble_s)
        return;
    r->trouble_pause_s = r->trouble_pause_s > 0 ? 2 * r->trouble_pause_s : TROUBLE_S;
    r->next_trouble_s = r->progress.seconds + r->trouble_pause_s;
    memcpy(r->said_trouble, p->trouble, sizeof r->said_trouble);
    rp_part_lines_clear(r->drawn);
    r->drawn = 0;
    (void)fprintf(stderr, "reprise train: %s: %s\n", rp_part_name(p, name), p->trouble);
}

static void show(apex_run *r)
{
    double threshold = rp_apex_get_threshold(r->apex);
    char line[256];

    if (r->t->quiet) return;
    if (rp_train_get(r->t, RP_TRAIN_ROLE) != NULL) {
        rp_part_wait_look(&r->wait, &r->parts[0], rp_train_get(r->t, RP_TRAIN_REPLAY),
                          rp_now_ns());
        say_part(r);
    } else if (r->t->terminal) {
        r->drawn = rp_part_lines_draw(r->parts, r->part_count, threshold, r->drawn);
    } else if (r->progress.seconds - r->said.seconds >= PLAIN_LINE_S) {
        r->said = rp_apex_progress(r->apex, r->parts, r->part_count, &r->said);
        (void)printf("%s\n", rp_run_progress_line(&r->said, line, sizeof line));
        (void)fflush(stdout);
    }
}

/* Adds the latest progress to the curve, the logs and the reports. */
static rp_status keep(apex_run *r, int64_t eval_version, rp_error *err)
{
    rp_run_progress p = rp_apex_progress(r->apex, r->parts, r->part_count, &r->kept);
    rp_status st = RP_OK;

    if (eval_version == r->eval_version) p.eval_return = (double)NAN;
    r->eval_version = eval_version;
    r->kept = p;
    p.seconds += r->t->earlier_seconds; /* those of the parts begin at 0 in each process */
    p.eval_seconds += r->t->earlier_seconds;
    p.episodes += r->t->earlier_episodes;
    (void)rp_apex_get_parameters(r->apex, r->params, rp_apex_parameter_count(r->apex));
    rp_parts_report(r->t->reporter, r->parts, r->part_count);
    rp_train_keep(r->t, &p, r->params);
    for (size_t i = 0; st == RP_OK && i < r->t->log_count; i++)
        st = rp_run_log_write(r->t->logs[i], &p, err);
    return st;
}

/* The counters of the run. False: there has been no update. */
static bool count(const apex_run *r, rp_rebalance_counts *out)
{
    const rp_settings_table *table = r->t->folder.kind->settings();
    size_t batch = rp_settings_find(table, "batch");
    rp_table *replay = rp_store_find_table(r->t->store, (rp_string){"replay", 6});
    rp_table_info info = {0};

    if (replay != NULL) rp_table_get_info(replay, &info);
    rp_table_unref(replay);
    *out = (rp_rebalance_counts){
        .steps = info.inserts,
        .updates =
            info.samples / (int64_t)rp_settings_get(table, &r->t->folder.settings, batch),
        .actors_wait = isfinite(r->progress.actor_wait) ? r->progress.actor_wait : 0,
        .learner_waits = isfinite(r->progress.learner_wait) ? r->progress.learner_wait : 0};
    return out->updates > 0;
}

static rp_status set_split(apex_run *r, const rp_split *split, rp_error *err)
{
    rp_apex_set_learners(r->apex, split->learners);
    return rp_apex_set_actors(r->apex, split->actors, err);
}

/* Moves threads between acting and learning if that promises more steps a second. */
static void rebalance(apex_run *r)
{
    rp_auto_split *s = &r->t->split;
    char line[RP_SPLIT_LINE_BYTES];
    rp_rebalance_counts counts;
    rp_rebalance_move move;
    rp_error err = {0};

    if (!s->is_on || !count(r, &counts) ||
        !rp_rebalance_look(&s->rebalance, rp_now_ns(), &counts, &move))
        return;
    if (set_split(r, &move.to, &err) != RP_OK) {
        rp_rebalance_stay(&s->rebalance, &move);
        (void)!set_split(r, &move.from, NULL); /* those that there are go on */
    }
    if (r->t->quiet) return;
    rp_part_lines_clear(r->drawn);
    r->drawn = 0;
    (void)fprintf(stderr, "reprise train: %s%s%s\n", rp_auto_move_line(&move, line),
                  err.text[0] != '\0' ? ": this failed: " : "", err.text);
}

/* Looks at the parts, keeps their progress from time to time, and shows it. */
static rp_status look(apex_run *r, bool is_last, rp_error *err)
{
    int64_t version = 0;
    rp_status st = RP_OK;

    r->part_count = rp_apex_get_parts(r->apex, r->parts, r->part_room);
    r->progress = rp_apex_progress(r->apex, r->parts, r->part_count, &r->progress);
    for (size_t i = 0; i < r->part_count; i++)
        if (r->parts[i].role == RP_APEX_EVALUATOR) version = r->parts[i].verdict.version;
    if (!is_last) rebalance(r);
    if (is_last || (r->progress.seconds - r->kept.seconds) * KEEP_S2 >= 1)
        st = keep(r, version, err);
    say_trouble(r);
    r->drawn = rp_train_warn_reports(r->t, r->drawn);
    show(r);
    return st;
}

/* Runs the parts until the program has ended. */
static rp_status run_parts(apex_run *r, rp_trainer_result *result, rp_error *err)
{
    int64_t began_ns = rp_now_ns();
    bool done = false;
    rp_status st = RP_OK;

    while (st == RP_OK && !done) {
        st = rp_apex_wait(r->apex, STEP_MS, &done, err);
        if (st == RP_OK) st = look(r, done, err);
        result->stopped = is_interrupted(r);
        if (result->stopped ||
            (r->seconds > 0 && rp_now_ns() - began_ns > r->seconds * INT64_C(1000000000)))
            break;
    }
    rp_apex_stop(r->apex);
    rp_part_lines_clear(r->drawn);
    r->drawn = 0;
    result->progress = r->progress;
    for (size_t i = 0; i < r->part_count; i++) {
        const rp_apex_part *p = &r->parts[i];

        if (p->role != RP_APEX_EVALUATOR || !p->is_solved) continue;
        result->solved = true;
        result->confirmed = p->solution.confirmed;
        result->solved_steps = p->solution.note;
    }
    return st;
}

/* Puts the folder of the replay before the reason why it cannot be used. */
static void name_folder(const char *path, rp_error *err)
{
    rp_error why = *err;

    if (strncmp(why.text, path, strlen(path)) == 0) return; /* it does so already */
    (void)snprintf(err->text, sizeof err->text, "%.100s: %.150s", path, why.text);
}

/* Storage has trouble, or works again. */
static void on_storage(void *ctx, bool degraded, const char *text)
{
    (void)fprintf(stderr, "reprise train: %s: %s%s\n", (const char *)ctx, text,
                  degraded ? "; training goes on, and the replay keeps trying to save it" : "");
}

static rp_status open_store(apex_run *r, rp_error *err)
{
    rp_training *t = r->t;
    char *path = r->store_path;
    const rp_durable_options durable = {.directory =
                                            rp_run_folder_file(&t->folder, "replay", path),
                                        .mode = RP_DURABLE_CHECKPOINT,
                                        .period_ns = SAVE_S * INT64_C(1000000000),
                                        .keep = 1,
                                        .checkpoint_at_end = true,
                                        .on_event = on_storage,
                                        .ctx = path};
    rp_status st = rp_store_new(NULL, &t->store, err);

    if (st == RP_OK && !t->is_brief) {
        st = rp_durable_open(&durable, t->store, &r->durable, err);
        if (st != RP_OK) name_folder(path, err);
    }
    if (st == RP_OK) st = rp_train_serve(t, err);
    return st;
}

/* Removes the tables of the task before. */
static void drop_tables(apex_run *r)
{
    static const char *const names[] = {"replay", "variables", "snapshot"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)!rp_store_drop_table(r->t->store, (rp_string){names[i], strlen(names[i])}, NULL);
}

/* Opens the logs. If the run is resumed and the store has a snapshot, they continue with the
 * steps that the store has; if it has none, they begin again. */
static rp_status open_logs(apex_run *r, rp_error *err)
{
    rp_training *t = r->t;
    rp_table *replay = rp_store_find_table(t->store, (rp_string){"replay", 6});
    rp_table_info info = {0};
    rp_status st = RP_OK;

    if (replay != NULL && rp_snapshot_exists(t->store))
        rp_table_get_info(replay, &info);
    else if (t->resume)
        st = rp_train_start_again(t, err);
    rp_table_unref(replay);
    t->first_steps = info.inserts;
    r->progress.steps = r->kept.steps = r->said.steps = info.inserts; /* for speeds */
    return st == RP_OK ? rp_train_open_logs(t, info.inserts, err) : st;
}

static rp_status start_parts(apex_run *r, rp_error *err)
{
    rp_status st = rp_apex_start(r->apex, RP_APEX_LEARNER, 0, err);

    for (int64_t i = 0; st == RP_OK && i < r->options.actors; i++)
        st = rp_apex_start(r->apex, RP_APEX_ACTOR, i, err);
    if (st == RP_OK) st = rp_apex_start(r->apex, RP_APEX_EVALUATOR, 0, err);
    return st;
}

/* Trains in the environment of the folder. Returns the exit status. */
static int train_task(apex_run *r)
{
    rp_training *t = r->t;
    rp_trainer_result result = {0};
    rp_error err = {0};
    int status = rp_train_pick(t, r->options.algorithm);
    rp_status st;

    t->is_refused = status != 0;
    if (status != 0) return status;
    if (t->split.is_on) {
        r->options.actors = t->split.pick.actors;
        r->options.most_actors = rp_auto_split_most(&t->split);
    }
    st = rp_client_local(t->store, NULL, &r->client, &err);
    if (st == RP_OK) st = make_program(r, &err);
    if (st == RP_OK) st = open_logs(r, &err);
    if (st == RP_OK) st = rp_train_open_reporter(t, &err);
    if (st == RP_OK) st = rp_train_check_plot(t, &err);
    t->is_refused = st != RP_OK;
    if (st == RP_OK) st = start_parts(r, &err);
    if (st == RP_OK) st = run_parts(r, &result, &err);
    rp_train_close_reporter(t);
    if (t->is_refused)
        status = rp_train_refused(t, err.text);
    else if (st != RP_OK)
        status = rp_train_failed(err.text);
    if (!t->is_refused &&
        r->params != NULL && /* a run that failed leaves the latest policy as well */
        rp_apex_get_parameters(r->apex, r->params, rp_apex_parameter_count(r->apex)) &&
        rp_train_save_policy(t, r->params, &err) != RP_OK) {
        st = RP_UNAVAILABLE;
        status = rp_train_failed(err.text);
    }
    if (st == RP_OK) rp_train_print(t, &result);
    if (st == RP_OK) status = rp_train_draw(t, rp_apex_get_threshold(r->apex));
    (void)fflush(stdout);
    free_program(r);
    rp_client_free(r->client); /* it knows the signatures of these tables */
    r->client = NULL;
    rp_train_close_run(t);
    if (status == 0 && result.stopped)
        status = RP_TRAIN_SIGNAL + atomic_load(&t->interrupts.number);
    return status;
}

/* The next name of a list with commas, NULL at its end. */
static const char *next_name(const char **list, char out[64])
{
    size_t length = *list != NULL ? strcspn(*list, ",") : 0;

    if (length == 0) return NULL;
    (void)snprintf(out, 64, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return out;
}

/* All tasks, one after the other. */
static int train_tasks(apex_run *r)
{
    rp_training *t = r->t;
    const char *then = rp_train_get(t, RP_TRAIN_THEN);
    char name[64];
    rp_problem problem;
    rp_error err = {0};
    int status = 0;

    t->is_brief = then != NULL; /* the tables of one task give way to those of the next */
    if (open_store(r, &err) != RP_OK) return rp_train_refused(t, err.text);
    status = train_task(r);
    while (status == 0 && next_name(&then, name) != NULL) {
        t->dir = NULL;
        if (rp_train_folder(t, name, &problem) != RP_OK) return rp_train_misuse(&problem);
        drop_tables(r);
        status = train_task(r);
    }
    if (status != 0 || !rp_train_is_on(t, RP_TRAIN_STAY) || t->server == NULL) return status;
    if (!t->quiet) (void)fprintf(stderr, "reprise train: serving until Ctrl-C\n");
    while (!is_interrupted(r)) (void)usleep(STEP_MS * 1000);
    return 0;
}

static int run_threads(apex_run *r)
{
    int status;
    rp_error err = {0};

    status = train_tasks(r);
    rp_train_close(r->t);
    if (rp_durable_close(r->durable, &err) != RP_OK && status == 0)
        status = rp_train_failed(err.text);
    rp_store_free(r->t->store);
    rp_train_forget(r->t);
    return status;
}

/* The role "replay": a server with a store, in the folder if there is one. */
static int run_replay(apex_run *r, int64_t shard)
{
    rp_training *t = r->t;
    char name[64] = "replay", path[RP_RUN_PATH_BYTES + 64];
    const rp_durable_options durable = {.directory = path,
                                        .mode = RP_DURABLE_INTERVAL,
                                        .keep = 1,
                                        .on_event = on_storage,
                                        .ctx = path};
    rp_error err = {0};
    rp_status st = rp_store_new(NULL, &t->store, &err);
    bool is_saved = false; /* by an earlier process */
    bool is_refused;

    if (shard > 0) (void)snprintf(name, sizeof name, "replay-%lld", (long long)shard);
    (void)rp_run_folder_file(&t->folder, name, path);
    if (t->dir != NULL) is_saved = access(path, F_OK) == 0;
    if (st == RP_OK && t->dir != NULL)
        st = rp_durable_open(&durable, t->store, &r->durable, &err);
    if (st != RP_OK) {
        name_folder(path, &err);
        rp_store_free(t->store);
        return rp_train_failed(err.text);
    }
    t->durable = r->durable;
    if (is_saved && shard == 0 && !rp_snapshot_exists(t->store)) /* other shards have none */
        (void)fprintf(
            stderr, "reprise train: %s: no snapshot: a learner that starts now begins again\n",
            path);
    st = rp_train_serve(t, &err);
    /* In a run by processes, another attempt cannot help: the run has to end. */
    is_refused = st == RP_INVALID || st == RP_NOT_FOUND || /* of --serve, --tokens */
                 (st == RP_UNAVAILABLE && rp_train_is_on(t, RP_TRAIN_PROCESSES));
    while (st == RP_OK && !is_interrupted(r)) (void)usleep(STEP_MS * 1000);
    rp_server_free(t->server);
    t->server = NULL;
    if (rp_durable_close(r->durable, st == RP_OK ? &err : NULL) != RP_OK && st == RP_OK)
        st = RP_UNAVAILABLE;
    rp_store_free(t->store);
    if (st != RP_OK) (void)rp_train_failed(err.text);
    if (is_refused) return RP_TRAIN_MISUSE;
    return st == RP_OK ? 0 : EXIT_FAILURE;
}

/* Prints why a part has ended. Returns the exit status. */
static int part_failed(const rp_training *t, rp_status st, const rp_error *err)
{
    char reason[sizeof err->text + 200];

    if ((st != RP_UNAUTHENTICATED && st != RP_DENIED) ||
        strstr(err->text, "too many wrong tokens") != NULL) {
        (void)snprintf(reason, sizeof reason, "%s%s", err->text, rp_train_hint(err->text));
        return rp_train_failed(reason);
    }
    (void)snprintf(
        reason, sizeof reason,
        "%s: %.60s refuses the token in the environment, REPRISE_TOKEN, which is %s. "
        "The parts need one with the role admin",
        err->text, rp_train_get(t, RP_TRAIN_REPLAY),
        rp_environment_token() != NULL ? "set" : "not set");
    return rp_train_failed(reason);
}

/* RP_UNAVAILABLE: the part of a role has ended without one response of its replay. */
static rp_status check_reached(const apex_run *r, rp_error *err)
{
    static const char away[] = "the replay: "; /* that the part waits for */
    const rp_apex_part *p = r->parts;

    if (r->part_count == 0 || p->version != 0 || p->steps != 0 ||
        strncmp(p->waits_for, away, sizeof away - 1) != 0)
        return RP_OK;
    (void)snprintf(err->text, sizeof err->text, "%s: the replay was not reached in %lld s: %s",
                   rp_apex_role_name(p->role), (long long)r->progress.seconds,
                   p->waits_for + sizeof away - 1);
    return RP_UNAVAILABLE;
}

/* Another role, on the replay elsewhere. */
static int run_part(apex_run *r, rp_apex_role role, int64_t index)
{
    rp_training *t = r->t;
    const rp_client_options client = {.retry_max_ms = RETRY_MS,
                                      .ping_ms = PING_MS,
                                      .ping_timeout_ms = PING_MS,
                                      .token = rp_environment_token(),
                                      .ca_file = rp_train_get(t, RP_TRAIN_REPORT_CA)};
    rp_trainer_result result = {0};
    rp_error err = {0};
    rp_status st = rp_client_new(rp_train_get(t, RP_TRAIN_REPLAY), &client, &r->client, &err);

    if (st == RP_OK && rp_client_shard_count(r->client) > 1)
        st = rp_client_new(rp_client_shard_address(r->client, 0), &client, &r->home, &err);
    if (st == RP_OK) st = make_program(r, &err);
    if (st == RP_OK) st = rp_train_open_reporter(t, &err);
    t->is_refused = st == RP_INVALID; /* an option is wrong */
    if (st == RP_OK) st = rp_apex_start(r->apex, role, index, &err);
    if (st == RP_OK) st = run_parts(r, &result, &err);
    if (st == RP_OK && !result.stopped) st = check_reached(r, &err);
    if (role == RP_APEX_EVALUATOR && t->dir != NULL && r->apex != NULL &&
        rp_apex_get_parameters(r->apex, r->params, rp_apex_parameter_count(r->apex))) {
        rp_status saved = rp_train_save_policy(t, r->params, st == RP_OK ? &err : NULL);

        if (st == RP_OK) st = saved;
    }
    if (st == RP_OK && result.solved) rp_train_print_solved(&result);
    free_program(r);
    rp_train_close(t);
    rp_client_free(r->home);
    rp_client_free(r->client);
    if (st != RP_OK && t->is_refused) {
        (void)rp_train_failed(err.text);
        return RP_TRAIN_MISUSE;
    }
    if (st != RP_OK) return part_failed(t, st, &err);
    return result.stopped ? RP_TRAIN_SIGNAL + atomic_load(&t->interrupts.number) : 0;
}

/* Makes the folder of a part, if it has one. */
static bool make_folder(rp_training *t, rp_problem *problem)
{
    return t->dir == NULL || rp_run_folder_make(&t->folder, problem) == RP_OK;
}

static int run_role(apex_run *r, const char *name, rp_problem *problem)
{
    rp_training *t = r->t;
    int64_t index = 0;
    rp_apex_role role = RP_APEX_LEARNER;

    while (role < RP_APEX_EVALUATOR && strcmp(name, rp_apex_role_name(role)) != 0) role++;
    if (strcmp(name, rp_apex_role_name(role)) != 0 && strcmp(name, "replay") != 0) {
        (void)rp_problem_set(
            problem, NULL, "--role: expected actor, evaluator, learner or replay, got '%.40s'",
            name);
        return rp_train_misuse(problem);
    }
    if (rp_train_settings(t, rp_train_get(t, RP_TRAIN_ENV), problem) != RP_OK)
        return rp_train_misuse(problem);
    (void)snprintf(t->folder.path, sizeof t->folder.path, "%s",
                   t->dir != NULL ? t->dir : t->folder.agent);
    if (rp_train_integer(t, RP_TRAIN_INDEX, 0, &index, problem) != RP_OK)
        return rp_train_misuse(problem);
    if (strcmp(name, "replay") == 0) {
        if (rp_train_get(t, RP_TRAIN_SERVE) == NULL)
            (void)rp_problem_set(problem, NULL, "--role replay needs --serve ADDR");
        else if (make_folder(t, problem))
            return run_replay(r, index);
        return rp_train_misuse(problem);
    }
    if (rp_train_get(t, RP_TRAIN_REPLAY) == NULL)
        (void)rp_problem_set(problem, NULL, "--role %s needs --replay ADDR", name);
    else if (role != RP_APEX_ACTOR && index > 0)
        (void)rp_problem_set(problem, NULL,
                             "--index: there is one %s, which takes no index: leave it out",
                             name);
    else if (role == RP_APEX_ACTOR && index >= r->options.actors)
        (void)rp_problem_set(problem, NULL, "--index: there %s %lld actor%s, from 0",
                             r->options.actors == 1 ? "is" : "are",
                             (long long)r->options.actors,
                             rp_plural((uint64_t)r->options.actors));
    else if (make_folder(t, problem))
        return run_part(r, role, index);
    return rp_train_misuse(problem);
}

int rp_train_apex(rp_training *t)
{
    static apex_run r; /* interrupts are not its only thread */
    const char *role = rp_train_get(t, RP_TRAIN_ROLE);
    rp_problem problem;
    int64_t shards = 1;
    int status;

    r = (apex_run){.t = t};
    if (rp_train_take_apex(t, &r.options, &r.seconds, &problem) != RP_OK ||
        rp_train_take_shards(t, &shards, &problem) != RP_OK)
        return rp_train_misuse(&problem);
    if (rp_train_get(t, RP_TRAIN_EXPORT) != NULL)
        return rp_train_export(t, r.options.actors, r.seconds);
    if (role == NULL && rp_train_folder(t, rp_train_get(t, RP_TRAIN_ENV), &problem) != RP_OK)
        return rp_train_misuse(&problem);
    if (t->folder.steps > 0) r.options.max_steps = t->folder.steps;
    r.options.keep_going = t->folder.keep_going || rp_train_is_on(t, RP_TRAIN_KEEP_GOING);
    if (t->folder.actors > 0) r.options.actors = r.options.most_actors = t->folder.actors;
    if (rp_interrupts_start(&t->interrupts) != RP_OK)
        return rp_train_failed("no thread for signals");
    if (role != NULL)
        status = run_role(&r, role, &problem);
    else if (rp_train_is_on(t, RP_TRAIN_PROCESSES))
        status = rp_train_processes(t, r.options.actors, shards, r.seconds);
    else
        status = run_threads(&r);
    rp_interrupts_stop(&t->interrupts);
    return status;
}
