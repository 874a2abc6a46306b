/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train/run_report.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands/patience.h"
#include "reprise/runs.h"

enum {
    SEND_MS = 2000,
    EPISODE_MS = 5000,
    BATCH = 16,        /* entries of one report */
    MAX_STATES = 1000, /* of an episode */
    MAX_VARIABLES = 64,
};

typedef struct entry {
    rp_run_progress progress;
    double time_s; /* wall clock */
} entry;

/* An environment and a policy of the thread, to play episodes. */
typedef struct player {
    rp_env *env;
    rp_net *net;
    rp_policy *policy;
    void *observation, *action;
    float *states;
    size_t variable_count, state_count;
    uint64_t next_seed;
} player;

struct rp_run_reporter {
    rp_run_reporter_options options;
    rp_client *client;
    rp_cancel *cancel; /* fired if the last reports take too long */
    player player;
    pthread_t thread;
    bool has_thread;
    pthread_mutex_t mu;
    pthread_cond_t changed;
    /* guarded by mu: */
    entry queue[RP_REPORT_QUEUE];
    size_t first, count; /* Q1 */
    bool closing, has_params, has_actors;
    rp_run_actor actors[RP_REPORT_ACTORS];
    char actor_names[RP_REPORT_ACTORS][32];
    size_t named; /* names that are set */
    size_t actor_count;
    rp_run_reported result;
    int64_t
        failing_ns; /* when the first of the reports began that have failed since; 0: none */
    int64_t say_ns; /* when the next line about them is due */
    /* Q2: */
    rp_real *params;
    /* of the trainer's thread: */
    int64_t next_episode_ns;
};

/* Numbers of the progress by the names of their series. The number is not reported if it is not
 * finite: then it is not known. */
#define AT(field) offsetof(rp_run_progress, field)
static const struct {
    const char *name;
    size_t offset;
    bool is_whole; /* int64_t, not double */
} series[] = {
    {"mean_return", AT(mean_return), false},
    {"mean_length", AT(mean_length), false},
    {"loss", AT(loss), false},
    {"td_error", AT(error), false},
    {"q", AT(value), false},
    {"grad_norm", AT(norm), false},
    {"epsilon", AT(epsilon), false},
    {"learning_rate", AT(rate), false},
    {"steps_per_second", AT(steps_per_second), false},
    {"updates_per_second", AT(updates_per_second), false},
    {"samples_per_insert", AT(samples_per_insert), false},
    {"replay_size", AT(item_size), true},
    {"actors_wait", AT(actor_wait), false},
    {"learner_waits", AT(learner_wait), false},
    {"actors", AT(actors), false},
    {"learners", AT(learners), false},
    {"predicted_steps_per_second", AT(predicted_steps_per_second), false},
};

enum { SERIES = sizeof series / sizeof series[0] };
static_assert(BATCH * (SERIES + 1) <= RP_REPORT_SCALARS, "a batch fits into one report");

static rp_string string_of(const char *text)
{
    return (rp_string){text, strlen(text)};
}

static size_t add_scalars(const entry *e, rp_scalar *out)
{
    const rp_run_progress *p = &e->progress;
    size_t count = 0;

    for (size_t i = 0; i < SERIES; i++) {
        const char *at = (const char *)p + series[i].offset;
        double value = series[i].is_whole ? (double)*(const int64_t *)at : *(const double *)at;

        if (isfinite(value))
            out[count++] = (rp_scalar){string_of(series[i].name), p->steps, e->time_s, value};
    }
    if (isfinite(p->eval_return))
        out[count++] =
            (rp_scalar){string_of("eval_return"), p->eval_steps, e->time_s, p->eval_return};
    return count;
}

/* `*left_out` gets the number of parts that the server has no room for. */
static rp_status send_report(rp_run_reporter *r, const rp_run_report *report, size_t *left_out,
                             rp_error *err)
{
    rp_runs_call call = {.action = RP_RUNS_REPORT, .report = report};
    rp_wait wait = rp_wait_ms(r->options.send_ms);
    rp_status st;

    wait.cancel = r->cancel;
    st = rp_client_runs(r->client, &call, wait, err);
    *left_out = call.dropped;
    return st;
}

/* Keeps why a report was dropped. The cancellation of drain() is no reason: then an earlier one
 * stays, or else the trouble of the connection is one. With mu held. */
static void keep_why(rp_run_reporter *r, rp_status st, const rp_error *err)
{
    if (st != RP_CANCELLED) {
        memcpy(r->result.why, err->text, sizeof r->result.why);
        return;
    }
    if (r->result.why[0] != '\0') return;
    (void)rp_client_why_away(r->client, 0, r->result.why, sizeof r->result.why);
    if (r->result.why[0] == '\0')
        (void)snprintf(r->result.why, sizeof r->result.why,
                       "no response before the training ended");
}

/* Keeps since when all reports fail. With mu held. */
static void keep_failing(rp_run_reporter *r, rp_status st, int64_t begun_ns)
{
    if (st == RP_OK) {
        r->failing_ns = 0;
    } else if (r->failing_ns == 0 && st != RP_CANCELLED) {
        r->failing_ns = begun_ns;
        r->say_ns = begun_ns + RP_PATIENCE_MS * INT64_C(1000000);
    }
}

bool rp_run_reporter_take_trouble(rp_run_reporter *r, char why[RP_ERROR_TEXT_BYTES])
{
    int64_t now_ns = rp_now_ns();
    bool is_due;

    (void)pthread_mutex_lock(&r->mu);
    is_due = r->failing_ns != 0 && now_ns >= r->say_ns;
    if (is_due) {
        r->say_ns = rp_patience_next(r->failing_ns, r->say_ns, now_ns);
        memcpy(why, r->result.why, RP_ERROR_TEXT_BYTES);
    }
    (void)pthread_mutex_unlock(&r->mu);
    return is_due;
}

/* Sends entries as one report. */
static void send_entries(rp_run_reporter *r, const entry *entries, size_t count)
{
    const rp_run_progress *last = &entries[count - 1].progress;
    const rp_run_actor all = {string_of("actors"), last->epsilon, last->mean_return,
                              last->updates, 0};
    rp_run_actor actors[RP_REPORT_ACTORS];
    rp_scalar scalars[BATCH * (SERIES + 1)];
    rp_run_report report = {
        .run = string_of(r->options.run), .scalars = scalars, .actors = &all, .actor_count = 1};
    rp_error err = {0};
    size_t left_out = 0;
    int64_t begun_ns;
    rp_status st;

    for (size_t i = 0; i < count; i++)
        report.scalar_count += add_scalars(&entries[i], scalars + report.scalar_count);
    (void)pthread_mutex_lock(&r->mu);
    if (r->has_actors) { /* their names stay in place */
        memcpy(actors, r->actors, r->actor_count * sizeof actors[0]);
        report.actors = actors;
        report.actor_count = r->actor_count;
    }
    (void)pthread_mutex_unlock(&r->mu);
    begun_ns = rp_now_ns();
    st = send_report(r, &report, &left_out, &err);
    (void)pthread_mutex_lock(&r->mu);
    keep_failing(r, st, begun_ns);
    if (st == RP_OK) {
        r->result.sent += count;
        r->result.left_out += left_out;
    } else {
        r->result.dropped += count;
        keep_why(r, st, &err);
    }
    (void)pthread_mutex_unlock(&r->mu);
}

static void keep_state(player *p)
{
    double values[MAX_VARIABLES];

    rp_env_get_variables(p->env, 0, values);
    for (size_t i = 0; i < p->variable_count; i++)
        p->states[p->state_count * p->variable_count + i] = (float)values[i];
    p->state_count++;
}

/* Plays an episode with the parameters. False if the environment failed. */
static bool play(rp_run_reporter *r)
{
    player *p = &r->player;
    double reward = 0;
    bool terminated = false, truncated = false;
    const rp_env_buffers buffers = {p->observation, NULL, &reward, &terminated, &truncated};

    p->state_count = 0;
    if (rp_env_reset(p->env, &p->next_seed, p->observation, NULL) != RP_OK) return false;
    p->next_seed++;
    keep_state(p);
    while (p->state_count < MAX_STATES) {
        p->policy->act(p->policy, r->params, p->observation, 1, p->action);
        if (rp_env_step(p->env, p->action, &buffers, NULL) != RP_OK) return false;
        /* An environment that has ended is at the start of its next episode. */
        if (terminated || truncated) break;
        keep_state(p);
    }
    return true;
}

static void send_episode(rp_run_reporter *r)
{
    bool is_sent = false;
    size_t left_out = 0;

    if (play(r)) {
        const rp_run_episode episode = {string_of(r->options.env_class->name), r->player.states,
                                        r->player.state_count, r->player.variable_count};
        const rp_run_report report = {.run = string_of(r->options.run), .episode = &episode};

        is_sent = send_report(r, &report, &left_out, NULL) == RP_OK;
    }
    (void)pthread_mutex_lock(&r->mu);
    r->result.episodes += is_sent && left_out == 0;
    if (is_sent) r->result.left_out += left_out;
    r->has_params = false; /* Q2 */
    (void)pthread_mutex_unlock(&r->mu);
}

static void *run(void *ctx)
{
    rp_run_reporter *r = ctx;
    entry batch[BATCH];

    (void)pthread_mutex_lock(&r->mu);
    for (;;) {
        size_t count = r->count < BATCH ? r->count : BATCH;
        bool plays = r->has_params && !r->closing;

        if (count == 0 && !plays && r->closing) break;
        if (count == 0 && !plays) {
            (void)pthread_cond_wait(&r->changed, &r->mu);
            continue;
        }
        for (size_t i = 0; i < count; i++)
            batch[i] = r->queue[(r->first + i) % RP_REPORT_QUEUE];
        r->first = (r->first + count) % RP_REPORT_QUEUE;
        r->count -= count;
        (void)pthread_mutex_unlock(&r->mu);
        if (count > 0) send_entries(r, batch, count);
        if (plays) send_episode(r);
        (void)pthread_mutex_lock(&r->mu);
    }
    (void)pthread_mutex_unlock(&r->mu);
    return NULL;
}

static rp_status no_resource(rp_error *err, const char *what)
{
    if (err != NULL)
        (void)snprintf(err->text, sizeof err->text, "there is no %s for the reports", what);
    return RP_NO_RESOURCE;
}

static void free_player(player *p)
{
    rp_policy_free(p->policy);
    rp_net_free(p->net);
    rp_env_free(p->env);
    free(p->observation);
    free(p->action);
    free(p->states);
    *p = (player){0};
}

/* Makes what is needed to play. An environment without variables has no drawing, and is not an
 * error. */
static rp_status make_player(rp_run_reporter *r, rp_error *err)
{
    player *p = &r->player;
    const rp_env_spec *spec;
    rp_status st =
        rp_env_new(NULL, r->options.env_class, &(rp_env_options){.copies = 1}, &p->env, err);

    if (st != RP_OK) return st;
    spec = rp_env_get_spec(p->env);
    p->variable_count = spec->variable_count;
    p->next_seed = r->options.seed % 1000000;
    if (p->variable_count == 0 || p->variable_count > MAX_VARIABLES ||
        p->variable_count * MAX_STATES > RP_EPISODE_NUMBERS) {
        free_player(p);
        return RP_OK;
    }
    st = r->options.kind->new_net(NULL, r->options.settings, spec, &p->net, err);
    if (st == RP_OK)
        st = r->options.kind->new_policy(NULL, p->net, r->options.settings, spec, 1, &p->policy,
                                         err);
    if (st != RP_OK) return st;
    p->observation = calloc(1, rp_env_observation_bytes(p->env));
    p->action = calloc(1, rp_env_action_bytes(p->env));
    p->states = calloc(MAX_STATES * p->variable_count, sizeof *p->states);
    r->params = calloc(p->policy->parameter_count, sizeof *r->params);
    if (p->observation != NULL && p->action != NULL && p->states != NULL && r->params != NULL)
        return RP_OK;
    return no_resource(err, "memory");
}

rp_status rp_run_reporter_new(const rp_run_reporter_options *options, rp_run_reporter **out,
                              rp_error *err)
{
    rp_run_reporter *r = calloc(1, sizeof *r);
    rp_status st;

    if (r == NULL) return no_resource(err, "memory");
    r->options = *options;
    if (r->options.send_ms == 0) r->options.send_ms = SEND_MS;
    if (r->options.episode_ms == 0) r->options.episode_ms = EPISODE_MS;
    (void)pthread_mutex_init(&r->mu, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    st = rp_cancel_new(&r->cancel);
    if (st != RP_OK) (void)no_resource(err, "memory");
    if (st == RP_OK) st = rp_client_new(options->address, &options->client, &r->client, err);
    if (st == RP_OK) st = make_player(r, err);
    if (st == RP_OK) {
        r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
        if (!r->has_thread) st = no_resource(err, "thread");
    }
    if (st != RP_OK) {
        rp_run_reporter_free(r, NULL);
        return st;
    }
    *out = r;
    return RP_OK;
}

static double wall_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void rp_run_reporter_add(rp_run_reporter *r, const rp_run_progress *progress,
                         const rp_real *params)
{
    const entry e = {*progress, wall_seconds()};
    int64_t now_ns = rp_now_ns();
    bool is_due = r->params != NULL && now_ns >= r->next_episode_ns;

    (void)pthread_mutex_lock(&r->mu);
    if (is_due && !r->has_params) {
        memcpy(r->params, params, r->player.policy->parameter_count * sizeof *params);
        r->has_params = true;
        r->next_episode_ns = now_ns + r->options.episode_ms * 1000000;
    }
    if (r->count == RP_REPORT_QUEUE)
        r->result.dropped++;
    else
        r->queue[(r->first + r->count++) % RP_REPORT_QUEUE] = e;
    assert(r->count <= RP_REPORT_QUEUE); /* Q1 */
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->mu);
}

void rp_run_reporter_set_actors(rp_run_reporter *r, const rp_run_actor *actors, size_t count)
{
    assert(count <= RP_REPORT_ACTORS);
    (void)pthread_mutex_lock(&r->mu);
    for (size_t i = 0; i < count; i++) {
        size_t size = actors[i].name.size < 31 ? actors[i].name.size : 31;

        r->actors[i] = actors[i];
        if (i < r->named) { /* a name is set once: reports use it */
            r->actors[i].name = (rp_string){r->actor_names[i], strlen(r->actor_names[i])};
            continue;
        }
        memcpy(r->actor_names[i], actors[i].name.data, size);
        r->actors[i].name = (rp_string){r->actor_names[i], size};
        r->named = i + 1;
    }
    r->actor_count = count;
    r->has_actors = true;
    (void)pthread_mutex_unlock(&r->mu);
}

/* Waits until the queue is empty, at most send_ms. Does not wait for a server that was never
 * reached. */
static void drain(rp_run_reporter *r)
{
    struct timespec until;
    bool is_hopeless, is_over = false;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += r->options.send_ms / 1000 + 1;
    (void)pthread_mutex_lock(&r->mu);
    r->closing = true;
    is_hopeless = r->result.sent == 0 && r->result.why[0] != '\0';
    (void)pthread_cond_signal(&r->changed);
    (void)pthread_mutex_unlock(&r->mu);
    is_over = !is_hopeless && pthread_timedjoin_np(r->thread, NULL, &until) == 0;
    if (is_over) return;
    rp_cancel_fire(r->cancel); /* each report that is left fails at once */
    (void)pthread_join(r->thread, NULL);
}

void rp_run_reporter_free(rp_run_reporter *r, rp_run_reported *out)
{
    if (r == NULL) return;
    if (r->has_thread) drain(r);
    if (out != NULL) *out = r->result;
    rp_client_free(r->client);
    rp_cancel_free(r->cancel);
    free_player(&r->player);
    free(r->params);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->mu);
    free(r);
}
