/* SPDX-License-Identifier: Apache-2.0 */
/* What a run of `reprise train` writes: the curve, logs, reports, the policy, the result. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands/remote.h"
#include "cli/text/text_buffer.h"
#include "cli/text/units.h"
#include "cli/train/train.h"
#include "cli/train/train_lines.h"
#include "reprise/rl/safetensors.h"

enum {
    PLAIN_LINE_S = 10, /* between two lines of progress, unless on a terminal */
    MAX_POINTS = 1 << 20,
    MOST_ADDRESSES = 4, /* of --serve */
};

static void keep_point(rp_training *t, const rp_run_progress *p)
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
    if (isfinite(p->eval_return)) t->points[t->point_count - 1].thick = p->eval_return;
}

int rp_train_columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 2) return 79;
    return size.ws_col - 1;
}

void rp_train_keep(rp_training *t, const rp_run_progress *progress, const rp_real *params)
{
    rp_run_progress noted = *progress;

    rp_auto_split_note(&t->split, &noted);
    keep_point(t, progress);
    if (t->reporter != NULL) rp_run_reporter_add(t->reporter, &noted, params);
    if (isfinite(progress->eval_return)) t->greedy = progress->eval_return;
}

size_t rp_train_warn_reports(rp_training *t, size_t drawn)
{
    const char *address = rp_train_get(t, RP_TRAIN_REPORT);
    char why[RP_ERROR_TEXT_BYTES];

    if (t->reporter == NULL || address == NULL ||
        !rp_run_reporter_take_trouble(t->reporter, why))
        return drawn;
    rp_part_lines_clear(drawn);
    (void)fprintf(
        stderr,
        "%sreprise train: warning: reports do not reach %s: %s%s; the training goes on\n",
        t->drawn ? "\r\x1b[K" : "", address, why, rp_train_hint(why));
    return 0;
}

/* The live line of a terminal, on standard error; elsewhere a line from time to time. */
void rp_train_progress(rp_training *t, const rp_run_progress *progress, const rp_real *params)
{
    rp_run_progress p = *progress;
    char line[256];

    rp_train_keep(t, progress, params);
    (void)rp_train_warn_reports(t, 0);
    if (t->quiet) return;
    p.eval_return = t->greedy;
    if (t->terminal) {
        (void)fprintf(stderr, "\r%.*s\x1b[K", rp_train_columns(),
                      rp_run_progress_line(&p, line, sizeof line));
        (void)fflush(stderr);
        t->drawn = true;
    } else if (p.seconds - t->shown >= PLAIN_LINE_S) {
        (void)printf("%s\n", rp_run_progress_line(&p, line, sizeof line));
        (void)fflush(stdout);
        t->shown = p.seconds;
    }
}

/* Reads the points of the earlier parts of a run that is resumed, and how long they took. A row
 * without its end is not kept: the process was killed within it. */
static void read_points(rp_training *t, int64_t steps)
{
    char path[RP_RUN_PATH_BYTES + 64], line[1024];
    FILE *file = fopen(rp_run_folder_file(&t->folder, "progress.csv", path), "re");

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        rp_run_progress p = {.mean_return = (double)NAN, .eval_return = (double)NAN};
        char *at = line;

        p.steps = strtoll(line, NULL, 10);
        if (p.steps <= 0 || p.steps > steps || strchr(line, '\n') == NULL) continue;
        for (int column = 0; at != NULL && column <= 7; column++) {
            if (column == 1) t->earlier_seconds = strtod(at, NULL);
            if (column == 2) t->earlier_episodes = strtoll(at, NULL, 10);
            if (column == 4 && *at != ',') p.mean_return = strtod(at, NULL);
            if (column == 7 && *at != ',') p.eval_return = strtod(at, NULL);
            at = strchr(at, ',');
            if (at != NULL) at++;
        }
        keep_point(t, &p);
    }
    if (file != NULL) (void)fclose(file);
}

/* True if the file has a row below its head. */
static bool has_rows(const char *path)
{
    FILE *file = fopen(path, "re");
    char line[1024];
    bool has = file != NULL && fgets(line, sizeof line, file) != NULL &&
               fgets(line, sizeof line, file) != NULL;

    if (file != NULL) (void)fclose(file);
    return has;
}

rp_status rp_train_start_again(const rp_training *t, rp_error *err)
{
    char from[RP_RUN_PATH_BYTES + 64], to[RP_RUN_PATH_BYTES + 64], name[32];
    int number = 1;

    (void)rp_run_folder_file(&t->folder, "progress.csv", from);
    if (!has_rows(from)) {
        (void)fprintf(stderr, "reprise train: %s: no snapshot: starts again\n", t->folder.path);
        return RP_OK;
    }
    do (void)snprintf(name, sizeof name, "progress-%d.csv", number++);
    while (access(rp_run_folder_file(&t->folder, name, to), F_OK) == 0);
    if (rename(from, to) != 0) {
        (void)snprintf(err->text, sizeof err->text, "%.200s: %s", to, strerror(errno));
        return RP_UNAVAILABLE;
    }
    (void)fprintf(stderr,
                  "reprise train: %s: no snapshot: starts again; %s is the curve until now\n",
                  t->folder.path, name);
    return RP_OK;
}

rp_status rp_train_open_logs(rp_training *t, int64_t steps, rp_error *err)
{
    char path[RP_RUN_PATH_BYTES + 64];
    const char *names = rp_train_get(t, RP_TRAIN_LOG);
    rp_status st;

    t->earlier_seconds = 0;
    t->earlier_episodes = 0;
    if (t->resume) read_points(t, steps);
    st = rp_run_log_open_csv(NULL, rp_run_folder_file(&t->folder, "progress.csv", path),
                             t->resume, steps, &t->logs[t->log_count], err);
    if (st != RP_OK) return st;
    t->log_count++;
    if (names == NULL) return RP_OK;
    st = rp_run_log_open_events(
        NULL, t->folder.path, strcmp(names, "sb3") == 0 ? RP_NAMES_SB3 : RP_NAMES_CLEANRL,
        (double)time(NULL) - t->earlier_seconds, &t->logs[t->log_count], err);
    if (st == RP_OK) t->log_count++;
    return st;
}

/* The last part of the folder's path. */
static const char *run_name(const rp_training *t)
{
    const char *name = rp_train_get(t, RP_TRAIN_REPORT_NAME);
    const char *slash = strrchr(t->folder.path, '/');

    if (name != NULL) return name;
    return slash != NULL && slash[1] != '\0' ? slash + 1 : t->folder.path;
}

/* A server that is a role of its own has no line of progress, so its trouble is printed. */
static void write_log(void *ctx, rp_log_level level, const char *event, const char *fields)
{
    (void)ctx;
    if (level > RP_LOG_WARNING) return;
    (void)fprintf(stderr, "reprise train: replay: %s %s\n", event, fields);
}

/* Starts a server for the tables of the run. It is for people who look on: one thread is
 * enough.
 */
rp_status rp_train_serve(rp_training *t, rp_error *err)
{
    const char *given = rp_train_get(t, RP_TRAIN_SERVE), *addresses[MOST_ADDRESSES];
    char list[MOST_ADDRESSES][1200];
    rp_server_options o = {
        .addresses = addresses,
        .loops = 1,
        .durable = t->durable,
        .log = {rp_train_get(t, RP_TRAIN_ROLE) != NULL && !t->quiet ? write_log : NULL, NULL},
        .security = {.tokens_file = rp_train_get(t, RP_TRAIN_TOKENS),
                     .certificate_file = rp_train_get(t, RP_TRAIN_TLS_CERT),
                     .key_file = rp_train_get(t, RP_TRAIN_TLS_KEY),
                     .insecure = rp_train_is_on(t, RP_TRAIN_INSECURE)}};
    rp_status st;

    if (given == NULL) return RP_OK;
    while (*given != '\0' && o.address_count < MOST_ADDRESSES) {
        size_t length = strcspn(given, ",");

        (void)snprintf(list[o.address_count], sizeof list[0], "%.*s", (int)length, given);
        addresses[o.address_count] = list[o.address_count];
        o.address_count++;
        given += length + (given[length] == ',');
    }
    st = rp_server_start(t->store, &o, &t->server, err);
    if (st == RP_OK && !t->quiet && rp_server_port(t->server) > 0)
        (void)fprintf(stderr, "reprise train: look at http://localhost:%d/\n",
                      rp_server_port(t->server));
    return st;
}

/* A part of a program reports to its replay. */
static const char *report_address(const rp_training *t)
{
    const char *given = rp_train_get(t, RP_TRAIN_REPORT);

    return given != NULL ? given : rp_train_get(t, RP_TRAIN_REPLAY);
}

/* Reports to --report, or else to the server of --serve. */
rp_status rp_train_open_reporter(rp_training *t, rp_error *err)
{
    const char *given = report_address(t), *served = rp_train_get(t, RP_TRAIN_SERVE);
    char own[128];
    const rp_run_reporter_options o = {
        .address = given != NULL       ? given
                   : t->server != NULL ? own
                                       : NULL,
        .run = run_name(t),
        .client = {.token = rp_environment_token(),
                   .ca_file = rp_train_get(t, RP_TRAIN_REPORT_CA)},
        .env_class = t->folder.env_class,
        .kind = t->folder.kind,
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
void rp_train_close_reporter(rp_training *t)
{
    rp_run_reported done = {0};
    const char *given = report_address(t),
               *where = given != NULL ? given : rp_train_get(t, RP_TRAIN_SERVE);

    rp_run_reporter_free(t->reporter, &done);
    t->reporter = NULL;
    if (done.dropped > 0)
        (void)fprintf(stderr, "reprise train: %zu of %zu reports did not reach %s%s%s%s\n",
                      done.dropped, done.dropped + done.sent, where,
                      done.why[0] != '\0' ? ": " : "", done.why, rp_train_hint(done.why));
    if (done.left_out > 0)
        (void)fprintf(
            stderr,
            "reprise train: %s had no room for %zu scalars, actors or episodes: raise "
            "its limit run_bytes\n",
            where, done.left_out);
}

rp_status rp_train_save_policy(const rp_training *t, const rp_real *params, rp_error *err)
{
    char path[RP_RUN_PATH_BYTES + 64];
    rp_env *env = NULL;
    rp_net *net = NULL;
    rp_status st =
        rp_env_new(NULL, t->folder.env_class, &(rp_env_options){.copies = 1}, &env, err);

    if (st == RP_OK)
        st =
            t->folder.kind->new_net(NULL, &t->folder.settings, rp_env_get_spec(env), &net, err);
    if (st == RP_OK)
        st = rp_net_save(rp_allocator_default(), net, params,
                         rp_run_folder_file(&t->folder, "policy.safetensors", path), err);
    rp_net_free(net);
    rp_env_free(env);
    return st;
}

rp_status rp_train_check_plot(const rp_training *t, rp_error *err)
{
    const char *path = rp_train_get(t, RP_TRAIN_PLOT);
    bool is_new = path != NULL && access(path, F_OK) != 0;
    FILE *file = path != NULL ? fopen(path, "ae") : NULL;

    if (path == NULL) return RP_OK;
    if (file == NULL) {
        (void)snprintf(err->text, sizeof err->text, "--plot: %.200s: %s", path,
                       strerror(errno));
        return RP_INVALID;
    }
    (void)fclose(file);
    if (is_new) (void)remove(path);
    return RP_OK;
}

int rp_train_refused(rp_training *t, const char *reason)
{
    t->is_refused = true;
    return rp_train_failed(reason);
}

void rp_train_forget(rp_training *t)
{
    if (t->is_refused && !t->resume) rp_run_folder_undo(&t->folder);
}

int rp_train_draw(const rp_training *t, double threshold)
{
    const char *path = rp_train_get(t, RP_TRAIN_PLOT);
    rp_text_buffer buffer = {0};
    char title[128], reason[600];
    const rp_curve_labels labels = {title, "steps", "training", "greedy"};
    bool bad = true;
    FILE *file;

    if (path == NULL) return 0;
    (void)snprintf(title, sizeof title, "%s on %s, seed %llu", t->folder.agent,
                   t->folder.env_class->name, (unsigned long long)t->folder.seed);
    rp_curve_svg(&buffer, &labels, t->points, t->point_count, threshold);
    file = fopen(path, "we");
    if (file != NULL && !buffer.failed) bad = fputs(rp_text_buffer_text(&buffer), file) < 0;
    rp_text_buffer_deinit(&buffer);
    if (file != NULL && fclose(file) == 0 && !bad) return 0;
    (void)snprintf(reason, sizeof reason, "%.500s: %s", path, strerror(errno));
    return rp_train_failed(reason);
}

static void print_json(const rp_training *t, const rp_trainer_result *r)
{
    /* Other agents count on by themselves. */
    bool begins_at_0 = t->first_steps > 0;
    double seconds = r->progress.seconds + (begins_at_0 ? t->earlier_seconds : 0);
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
    rp_json_put_integer(&out, r->progress.episodes + (begins_at_0 ? t->earlier_episodes : 0));
    rp_json_key(&out, "updates");
    rp_json_put_integer(&out, r->progress.updates);
    rp_json_key(&out, "seconds");
    rp_json_put_number(&out, round(seconds * 1e3) / 1e3);
    if (t->split.is_on) {
        rp_run_progress noted = {0};

        rp_auto_split_note(&t->split, &noted);
        rp_json_key(&out, "actors");
        rp_json_put_integer(&out, t->split.in_turn ? 1 : (int64_t)noted.actors);
        rp_json_key(&out, "learners");
        rp_json_put_integer(&out, (int64_t)noted.learners);
    }
    rp_json_close(&out, '}');
    (void)printf("%s\n", rp_text_buffer_text(&out));
    rp_text_buffer_deinit(&out);
}

void rp_train_print_solved(const rp_trainer_result *r)
{
    (void)printf("solved: the mean return of %lld fresh episodes is %.4g, with the "
                 "parameters of step %lld\n",
                 (long long)r->confirmed.episodes, r->confirmed.mean_return,
                 (long long)r->solved_steps);
}

void rp_train_print(const rp_training *t, const rp_trainer_result *r)
{
    const rp_run_progress *p = &r->progress;

    if (t->json) {
        print_json(t, r);
        return;
    }
    if (r->solved)
        rp_train_print_solved(r);
    else if (r->stopped && t->is_brief)
        (void)printf("stopped; the policy is saved\n");
    else if (r->stopped)
        (void)printf("stopped and saved; reprise train %s --dir %s --resume continues\n",
                     t->folder.agent, t->folder.path);
    else
        (void)printf("not solved in %lld step%s\n", (long long)p->steps,
                     rp_plural((uint64_t)p->steps));
    if (t->first_steps > 0)
        (void)printf(
            "%lld steps and %lld update%s in all; %lld step%s and %lld episode%s since it "
            "was resumed, in %.1f s (%.0f steps/s)\n%s\n",
            (long long)p->steps, (long long)p->updates, rp_plural((uint64_t)p->updates),
            (long long)(p->steps - t->first_steps),
            rp_plural((uint64_t)(p->steps - t->first_steps)), (long long)p->episodes,
            rp_plural((uint64_t)p->episodes), p->seconds,
            (double)(p->steps - t->first_steps) / p->seconds, t->folder.path);
    else
        (void)printf(
            "%lld step%s, %lld episode%s, %lld update%s in %.1f s (%.0f steps/s)\n%s\n",
            (long long)p->steps, rp_plural((uint64_t)p->steps), (long long)p->episodes,
            rp_plural((uint64_t)p->episodes), (long long)p->updates,
            rp_plural((uint64_t)p->updates), p->seconds, (double)p->steps / p->seconds,
            t->folder.path);
}

void rp_train_close_run(rp_training *t)
{
    for (size_t i = 0; i < t->log_count; i++) rp_run_log_free(t->logs[i]);
    t->log_count = 0;
    rp_run_reporter_free(t->reporter, NULL);
    t->reporter = NULL;
    free(t->points);
    t->points = NULL;
    t->point_count = t->point_capacity = 0;
    t->greedy = (double)NAN;
}

void rp_train_close(rp_training *t)
{
    rp_train_close_run(t);
    rp_server_free(t->server);
    t->server = NULL;
}
