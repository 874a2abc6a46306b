/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: see profile.h.
 *
 * A place is a store with the table "replay". The one of acting stays: its items are those that
 * learners learn from.
 *
 * Counts are those of the table: an item is a step, as for the learner of Ape-X. Learners count
 * their updates themselves.
 *
 * Invariants:
 *   M1  `filled` has at least `fill` items, or no store;
 *   M2  settings of a measurement differ from those of the profile in `learners` only. */
#include "reprise/rl/profile.h"

#include <assert.h>
#include <float.h>
#include <string.h>

#include "error/fail.h"
#include "pal/meter.h"
#include "reprise/rl/env_loop.h"
#include "reprise/rl/variables.h"

enum {
    TIME_MS = 500,
    LEAST_COUNT = 8,    /* steps or updates of a slice */
    LOOK_MS = 2,        /* between looks at a table */
    MOST_MS = 120000,   /* without a step or an update */
    FILL_ITEMS = 5000,  /* that learners learn from, if the replay is as large */
    GROUP_NS = 5000000, /* of updates that an agent makes in one call */
    MOST_GROUP = 4096,  /* updates of it */
};

static const int64_t NEVER = INT64_C(1) << 52; /* more items than any table gets */
static const int64_t MS_NS = 1000000;

typedef struct place {
    rp_store *store;
    rp_client *client;
    rp_table *table; /* a reference */
} place;

struct rp_profile {
    rp_allocator alloc;
    rp_profile_options options; /* with defaults filled in; settings are `settings` */
    rp_agent_settings settings;
    rp_env *env; /* one copy, for its spec */
    place filled;
    int64_t fill; /* items */
};

/* Counts something until the meter has its slices. */
typedef struct gauge {
    rp_profile *profile;
    const char *what; /* "steps", for messages */
    rp_meter meter;
    int64_t counted_ns, count; /* when it last grew */
    int64_t until;             /* the count has to reach this as well */
    bool is_split;             /* counts from the first samples on */
} gauge;

static gauge gauge_of(rp_profile *p, const char *what, int64_t until)
{
    int64_t time_ns = p->options.time_ms * MS_NS;

    assert(time_ns > 0);
    return (gauge){.profile = p,
                   .what = what,
                   .meter = {.warm_ns = time_ns / 4,
                             .slice_ns = time_ns / RP_METER_SLICES,
                             .least = LEAST_COUNT},
                   .counted_ns = rp_now_ns(),
                   .until = until};
}

/* Takes a look. `*done` says whether the rate is known. RP_CANCELLED, RP_DEADLINE. */
static rp_status look(gauge *g, int64_t count, bool counts, bool *done, rp_error *err)
{
    const rp_profile_options *o = &g->profile->options;
    int64_t now_ns = rp_now_ns();

    assert(count >= g->count);
    if (count > g->count) g->counted_ns = now_ns;
    g->count = count;
    *done = rp_meter_look(&g->meter, now_ns, counts ? count : 0) && count >= g->until;
    if (*done) return RP_OK;
    if (o->should_stop != NULL && o->should_stop(o->ctx))
        return rp_rl_fail(err, RP_CANCELLED, "profile: stopped");
    if (now_ns - g->counted_ns > MOST_MS * MS_NS)
        return rp_rl_fail(err, RP_DEADLINE, "profile: no %s for %d s", g->what, MOST_MS / 1000);
    return RP_OK;
}

static void close_place(place *w)
{
    rp_table_unref(w->table);
    rp_client_free(w->client);
    rp_store_free(w->store);
    *w = (place){0};
}

static rp_status open_place(const rp_profile *p, place *out, rp_error *err)
{
    rp_status st = rp_store_new(&(rp_store_options){.seed = p->options.seed}, &out->store, err);

    if (st == RP_OK) st = rp_client_local(out->store, NULL, &out->client, err);
    return st;
}

static rp_table *find(const place *w)
{
    return rp_store_find_table(w->store, (rp_string){"replay", 6});
}

static rp_status find_table(place *w, rp_error *err)
{
    if (w->table == NULL) w->table = find(w);
    if (w->table == NULL) return rp_rl_fail(err, RP_INTERNAL, "profile: no table 'replay'");
    return RP_OK;
}

static rp_status set_limiter(place *w, rp_limiter_options limiter, rp_error *err)
{
    const rp_table_alteration change = {.which = RP_ALTER_LIMITER, .limiter = limiter};
    rp_status st = find_table(w, err);

    return st == RP_OK ? rp_table_alter(w->table, &change, err) : st;
}

static rp_table_info info_of(const place *w)
{
    rp_table_info info;

    rp_table_get_info(w->table, &info);
    return info;
}

static double setting_of(const rp_profile *p, const char *name, double otherwise)
{
    const rp_settings_table *table = p->options.kind->settings();
    size_t i = rp_settings_find(table, name);

    return i < table->count ? rp_settings_get(table, &p->settings, i) : otherwise;
}

/* The settings with this many learners (M2). */
static rp_agent_settings with_learners(const rp_profile *p, int64_t learners)
{
    const rp_settings_table *table = p->options.kind->settings();
    size_t i = rp_settings_find(table, "learners");
    rp_agent_settings settings = p->settings;

    assert(i < table->count || learners == 1);
    if (i < table->count) rp_settings_set(table, &settings, i, (double)learners);
    return settings;
}

static rp_apex_making making_of(const rp_profile *p, const place *w,
                                const rp_agent_settings *settings, int64_t actors,
                                rp_pcg64 *rng)
{
    rp_pcg64_seed(rng, p->options.seed);
    return (rp_apex_making){.alloc = &p->alloc,
                            .settings = settings,
                            .spec = rp_env_get_spec(p->env),
                            .client = w->client,
                            .actors = actors,
                            .rng = rng};
}

/* Makes the table of Ape-X whose inserts never wait and that gives no samples. */
static rp_status make_free_table(const rp_profile *p, place *w, int64_t actors, rp_error *err)
{
    rp_pcg64 rng;
    const rp_apex_making making = making_of(p, w, &p->settings, actors, &rng);
    rp_table_options table;
    rp_status st = p->options.algorithm->table(&making, &table, err);

    if (st != RP_OK) return st;
    table.limiter = rp_limiter_min_size(NEVER);
    st = rp_store_add_table(w->store, &table, NULL, err);
    rp_signature_unref(table.signature);
    return st == RP_OK ? find_table(w, err) : st;
}

static rp_status new_learner(const rp_profile *p, const place *w, int64_t learners,
                             rp_learner **out, rp_error *err)
{
    const rp_agent_settings settings = with_learners(p, learners);
    rp_pcg64 rng;
    const rp_apex_making making = making_of(p, w, &settings, 1, &rng);

    return p->options.algorithm->new_learner(&making, out, err);
}

/* Publishes the first parameters of a learner, which actors wait for. */
static rp_status publish(const rp_profile *p, const place *w, rp_error *err)
{
    rp_learner *learner = NULL;
    rp_variable_source *source = NULL;
    int64_t version;
    rp_status st = new_learner(p, w, 1, &learner, err);

    if (st == RP_OK) {
        const rp_variable_options options = {
            .client = w->client, .table = "variables", .count = learner->parameter_count};

        st = rp_variable_source_new(&p->alloc, &options, &source, err);
    }
    if (st == RP_OK)
        st = rp_variable_source_publish(source, learner->type->parameters(learner), 0, &version,
                                        err);
    rp_variable_source_free(source);
    rp_learner_free(learner);
    return st;
}

/* Counts the items that the parts of a program write. */
static rp_status watch(gauge *g, rp_apex *apex, place *w, rp_error *err)
{
    bool done = false, ended = false;
    rp_status st = RP_OK;

    while (st == RP_OK && !done) {
        rp_table_info info = {0};

        st = rp_apex_wait(apex, LOOK_MS, &ended, err);
        if (st == RP_OK && ended)
            st = rp_rl_fail(err, RP_INTERNAL, "profile: the program ended by itself");
        if (w->table == NULL) w->table = find(w); /* a part makes it */
        if (w->table != NULL) rp_table_get_info(w->table, &info);
        if (st == RP_OK)
            st = look(g, info.inserts, !g->is_split || info.samples > 0, &done, err);
    }
    return st;
}

static rp_status run_apex(rp_profile *p, place *w, int64_t actors, int64_t learners, gauge *g,
                          rp_error *err)
{
    const rp_agent_settings settings = with_learners(p, learners > 0 ? learners : 1);
    const rp_apex_options options = {.algorithm = p->options.algorithm,
                                     .settings = &settings,
                                     .env_class = p->options.env_class,
                                     .client = w->client,
                                     .actors = actors,
                                     .seed = p->options.seed};
    rp_apex *apex = NULL;
    rp_status st = rp_apex_new(&p->alloc, &options, &apex, err);

    if (st == RP_OK && learners > 0) st = rp_apex_start(apex, RP_APEX_LEARNER, 0, err);
    for (int64_t i = 0; st == RP_OK && i < actors; i++)
        st = rp_apex_start(apex, RP_APEX_ACTOR, i, err);
    if (st == RP_OK) st = watch(g, apex, w, err);
    rp_apex_free(apex);
    return st;
}

/* Acting alone; `w` gets the items. */
static rp_status act_apex(rp_profile *p, place *w, int64_t actors, gauge *g, rp_error *err)
{
    rp_status st = make_free_table(p, w, actors, err);

    if (st == RP_OK) st = publish(p, w, err);
    return st == RP_OK ? run_apex(p, w, actors, 0, g, err) : st;
}

static int64_t updates_of(rp_learner *learner)
{
    rp_agent_metrics metrics;

    learner->type->get_metrics(learner, &metrics);
    return metrics.updates;
}

/* Updates on this thread, with the sampler of the client. */
static rp_status learn_apex(rp_profile *p, int64_t learners, gauge *g, rp_error *err)
{
    rp_learner *learner = NULL;
    bool done = false;
    rp_status st = set_limiter(&p->filled, rp_limiter_min_size(1), err);

    if (st == RP_OK) st = new_learner(p, &p->filled, learners, &learner, err);
    while (st == RP_OK && !done) {
        st = learner->type->update(learner, rp_wait_ms(LOOK_MS), err);
        if (st == RP_OK || st == RP_DEADLINE)
            st = look(g, updates_of(learner), true, &done, err);
    }
    rp_learner_free(learner);
    return st;
}

/* An agent that acts and learns in turn. */
typedef struct whole {
    rp_agent *agent;
    rp_env *env;
    rp_env_loop *loop;
} whole;

static rp_status open_whole(const rp_profile *p, const place *w, int64_t learners, whole *out,
                            rp_error *err)
{
    const rp_agent_settings settings = with_learners(p, learners);
    const rp_env_options env = {.copies = (size_t)setting_of(p, "copies", 1)};
    const rp_agent_options options = {&settings, rp_env_get_spec(p->env), w->store, w->client,
                                      p->options.seed};
    rp_status st = rp_env_new(&p->alloc, p->options.env_class, &env, &out->env, err);

    if (st == RP_OK) st = p->options.kind->new_agent(&p->alloc, &options, &out->agent, err);
    if (st == RP_OK) st = rp_env_loop_new(&p->alloc, out->env, out->agent, &out->loop, err);
    return st;
}

static void close_whole(whole *a)
{
    rp_env_loop_free(a->loop);
    rp_agent_free(a->agent);
    rp_env_free(a->env);
}

/* Steps of an agent. It learns as well if the gauge is that of a split. */
static rp_status act_whole(rp_profile *p, place *w, int64_t learners, gauge *g, rp_error *err)
{
    whole a = {0};
    bool done = false;
    rp_status st = open_whole(p, w, learners, &a, err);

    if (st == RP_OK && !g->is_split) st = set_limiter(w, rp_limiter_min_size(NEVER), err);
    if (st == RP_OK) st = find_table(w, err);
    if (st == RP_OK) st = rp_env_loop_begin(a.loop, p->options.seed, err);
    while (st == RP_OK && !done) {
        st = rp_env_loop_step(a.loop, err);
        if (st == RP_OK)
            st = look(g, rp_env_loop_get_counts(a.loop).steps,
                      !g->is_split || info_of(w).samples > 0, &done, err);
    }
    close_whole(&a);
    return st;
}

/* Lets the agent draw `updates` batches more, and no other. */
static rp_status allow(rp_profile *p, int64_t updates, rp_error *err)
{
    rp_table_info info = info_of(&p->filled);
    rp_limiter_options limiter = info.limiter;

    limiter.min_size = 1;
    limiter.min_diff = info.limiter_diff - (double)updates * setting_of(p, "batch", 1);
    limiter.max_diff = DBL_MAX;
    return set_limiter(&p->filled, limiter, err);
}

/* Updates of an agent in groups that are long enough to be timed. */
static rp_status learn_whole(rp_profile *p, int64_t learners, gauge *g, rp_error *err)
{
    whole a = {0};
    bool done = false;
    int64_t group = 1;
    rp_status st = open_whole(p, &p->filled, learners, &a, err);

    while (st == RP_OK && !done) {
        int64_t began_ns = rp_now_ns();
        rp_agent_metrics metrics = {0};

        st = allow(p, group, err);
        if (st == RP_OK) st = a.agent->type->learn(a.agent, err);
        if (rp_now_ns() - began_ns < GROUP_NS && group < MOST_GROUP) group *= 2;
        a.agent->type->get_metrics(a.agent, &metrics);
        if (st == RP_OK) st = look(g, metrics.updates, true, &done, err);
    }
    close_whole(&a);
    return st;
}

/* Acts in a new place, which is kept if it has enough items for learners. */
static rp_status act(rp_profile *p, int64_t actors, gauge *g, rp_error *err)
{
    place w = {0};
    rp_status st = open_place(p, &w, err);

    if (st == RP_OK)
        st = p->options.algorithm != NULL ? act_apex(p, &w, actors, g, err)
                                          : act_whole(p, &w, 1, g, err);
    if (st == RP_OK && p->filled.store == NULL && info_of(&w).size >= p->fill) {
        p->filled = w; /* M1 */
        return RP_OK;
    }
    close_place(&w);
    return st;
}

/* Makes `filled` if acting has not. */
static rp_status fill(rp_profile *p, rp_error *err)
{
    double unsent = setting_of(p, "copies", 1) * setting_of(p, "n-step", 1);
    gauge g = gauge_of(p, "steps", p->fill + (int64_t)unsent);
    rp_status st = p->filled.store == NULL ? act(p, 1, &g, err) : RP_OK;

    if (st == RP_OK && p->filled.store == NULL)
        st = rp_rl_fail(err, RP_INTERNAL, "profile: the replay has too few items");
    return st;
}

static rp_status check_threads(const rp_profile *p, rp_profile_what what, int64_t threads,
                               rp_error *err)
{
    if (threads >= 1 && threads <= rp_profile_most(p, what)) return RP_OK;
    return rp_rl_fail(err, RP_INVALID, "profile: expected 1 to %lld %s, got %lld",
                      (long long)rp_profile_most(p, what),
                      what == RP_PROFILE_ACTING ? "actors" : "learners", (long long)threads);
}

rp_status rp_profile_rate(rp_profile *p, rp_profile_what what, int64_t threads, double *out,
                          rp_error *err)
{
    gauge g;
    rp_status st = check_threads(p, what, threads, err);

    if (st == RP_OK && what == RP_PROFILE_LEARNING) st = fill(p, err);
    if (st != RP_OK) return st;
    if (what == RP_PROFILE_ACTING) {
        g = gauge_of(p, "steps", 0);
        st = act(p, threads, &g, err);
    } else {
        g = gauge_of(p, "updates", 0);
        assert(info_of(&p->filled).size >= p->fill); /* M1 */
        st = p->options.algorithm != NULL ? learn_apex(p, threads, &g, err)
                                          : learn_whole(p, threads, &g, err);
    }
    if (st == RP_OK) *out = rp_meter_rate(&g.meter);
    return st;
}

rp_status rp_profile_split(rp_profile *p, int64_t actors, int64_t learners, double *out,
                           rp_error *err)
{
    gauge g = gauge_of(p, "steps", 0);
    place w = {0};
    rp_status st = check_threads(p, RP_PROFILE_ACTING, actors, err);

    if (st == RP_OK) st = check_threads(p, RP_PROFILE_LEARNING, learners, err);
    if (st == RP_OK) st = open_place(p, &w, err);
    g.is_split = true;
    if (st == RP_OK)
        st = p->options.algorithm != NULL ? run_apex(p, &w, actors, learners, &g, err)
                                          : act_whole(p, &w, learners, &g, err);
    if (st == RP_OK) *out = rp_meter_rate(&g.meter);
    close_place(&w);
    return st;
}

int64_t rp_profile_most(const rp_profile *p, rp_profile_what what)
{
    const rp_settings_table *table = p->options.kind->settings();
    size_t i = rp_settings_find(table, "learners");
    bool in_turn = p->options.algorithm == NULL;
    int64_t cores = p->options.cores, most = in_turn || cores == 1 ? cores : cores - 1, bound;

    if (what == RP_PROFILE_ACTING) return in_turn ? 1 : most;
    if (i == table->count) return 1;
    bound = (int64_t)table->list[i].high;
    if (bound > (int64_t)setting_of(p, "batch", 1)) bound = (int64_t)setting_of(p, "batch", 1);
    assert(most >= 1 && bound >= 1);
    return most < bound ? most : bound;
}

static rp_status measure_curve(rp_profile *p, rp_profile_what what, rp_profile_curves *out,
                               rp_error *err)
{
    int64_t most = rp_profile_most(p, what), threads = 1;
    rp_rate_point *points = out->points[what];
    size_t *count = &out->point_count[what];
    rp_status st = RP_OK;

    *count = 0;
    while (st == RP_OK) {
        rp_rate_point *point = &points[*count];

        assert(*count < RP_PROFILE_POINTS);
        point->threads = threads;
        st = rp_profile_rate(p, what, threads, &point->rate, err);
        if (st != RP_OK) break;
        (*count)++;
        if (p->options.on_point != NULL) p->options.on_point(p->options.ctx, what, *point);
        if (threads == most) break;
        threads = 2 * threads < most ? 2 * threads : most;
    }
    if (st != RP_OK) return st;
    return rp_rate_curve_fill(what == RP_PROFILE_ACTING ? &out->acting : &out->learning, points,
                              *count, most, err);
}

rp_status rp_profile_measure(rp_profile *p, rp_profile_curves *out, rp_error *err)
{
    rp_status st = measure_curve(p, RP_PROFILE_ACTING, out, err);

    return st == RP_OK ? measure_curve(p, RP_PROFILE_LEARNING, out, err) : st;
}

rp_split_options rp_profile_problem(const rp_profile *p, const rp_profile_curves *curves)
{
    return (rp_split_options){.acting = &curves->acting,
                              .learning = &curves->learning,
                              .interval = setting_of(p, "steps-per-update", 1),
                              .cores = p->options.cores,
                              .in_turn = p->options.algorithm == NULL};
}

static rp_status check(const rp_profile_options *o, rp_error *err)
{
    if (o->cores < 1 || o->cores > RP_SPLIT_MAX_CORES)
        return rp_rl_fail(err, RP_INVALID, "profile: cores must be 1 to %d, got %lld",
                          RP_SPLIT_MAX_CORES, (long long)o->cores);
    if (o->time_ms < 0 || o->time_ms > 3600000)
        return rp_rl_fail(err, RP_INVALID, "profile: time_ms must be 0 to 3600000, got %lld",
                          (long long)o->time_ms);
    return rp_settings_check(o->kind->settings(), o->settings, err);
}

/* Makes what depends on the environment, and a policy: the agent must fit it. */
static rp_status fit_env(rp_profile *p, rp_error *err)
{
    const rp_env_options one = {.copies = 1};
    rp_net *net = NULL;
    rp_status st = rp_env_new(&p->alloc, p->options.env_class, &one, &p->env, err);

    if (st == RP_OK)
        st = p->options.kind->new_net(&p->alloc, &p->settings, rp_env_get_spec(p->env), &net,
                                      err);
    rp_net_free(net);
    return st;
}

rp_status rp_profile_new(const rp_allocator *alloc, const rp_profile_options *o,
                         rp_profile **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    int64_t capacity;
    rp_profile *p;
    rp_status st = check(o, err);

    if (st != RP_OK) return st;
    p = a.resize(a.ctx, NULL, 0, sizeof *p);
    if (p == NULL) return rp_rl_fail_memory(err, sizeof *p);
    *p = (rp_profile){.alloc = a, .options = *o};
    memcpy(&p->settings, o->settings, o->kind->settings()->size);
    p->options.settings = &p->settings;
    if (p->options.time_ms == 0) p->options.time_ms = TIME_MS;
    capacity = (int64_t)setting_of(p, "capacity", FILL_ITEMS);
    p->fill = capacity < FILL_ITEMS ? capacity : FILL_ITEMS;
    st = fit_env(p, err);
    if (st != RP_OK) {
        rp_profile_free(p);
        return st;
    }
    *out = p;
    return RP_OK;
}

void rp_profile_free(rp_profile *p)
{
    if (p == NULL) return;
    rp_allocator alloc = p->alloc;

    close_place(&p->filled);
    rp_env_free(p->env);
    (void)alloc.resize(alloc.ctx, p, sizeof *p, 0);
}
