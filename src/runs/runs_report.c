/* SPDX-License-Identifier: Apache-2.0 */
/* Reports and bounds. runs_inside.h has the invariants.
 *
 * Cost: a report searches a series for each scalar and an entry for each actor, from the one
 * after that which was found last. Programs report the same names in the same order, so the
 * search mostly ends at its first comparison; at worst it compares RP_RUN_SERIES or
 * RP_REPORT_ACTORS names. rp_run_report_work() assumes the worst. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "reprise/printable.h"
#include "runs/runs_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_POINTS = 16, FIRST_SERIES = 8, FIRST_ACTORS = 4 };
/* The work for one scalar and for one actor at worst, in units of server/core/deferral.h, which
 * take about 0.1 us: the longest searches took 1.5 to 2.7 us and 3.2 us. */
enum { SCALAR_WORK = 16, ACTOR_WORK = 32 };

size_t rp_run_report_work(const rp_run_report *report)
{
    return SCALAR_WORK * report->scalar_count + ACTOR_WORK * report->actor_count;
}

bool rp_run_is_name(rp_string name)
{
    uint32_t character;

    if (name.size == 0 || name.size > RP_RUN_NAME_BYTES) return false;
    for (size_t i = 0; i < name.size;) {
        if (name.data[i] == '\0') return false;
        i += rp_utf8_next(name.data + i, name.size - i, &character);
        if (character == RP_NO_CHARACTER) return false;
    }
    return true;
}

static rp_status check_name(rp_string name, const char *what, rp_error *err)
{
    if (name.size == 0) return rp_fail(err, RP_INVALID, "the name of %s is empty", what);
    if (name.data == NULL) return rp_fail(err, RP_INVALID, "the name of %s is NULL", what);
    if (name.size > RP_RUN_NAME_BYTES)
        return rp_fail(err, RP_INVALID, "the name of %s has %zu bytes, the limit is %d", what,
                       name.size, RP_RUN_NAME_BYTES);
    if (!rp_run_is_name(name))
        return rp_fail(err, RP_INVALID, "the name of %s is not UTF-8 text", what);
    return RP_OK;
}

static rp_status check_episode(const rp_run_episode *e, rp_error *err)
{
    rp_status st = check_name(e->env, "the environment", err);

    if (st != RP_OK) return st;
    if (e->variable_count < 1 || e->variable_count > RP_EPISODE_VARIABLES)
        return rp_fail(err, RP_INVALID, "a state of the episode has %zu numbers, not 1 to %d",
                       e->variable_count, RP_EPISODE_VARIABLES);
    if (e->state_count < 1 || e->state_count > RP_EPISODE_NUMBERS / e->variable_count)
        return rp_fail(err, RP_INVALID,
                       "the episode has %zu states of %zu numbers; it needs at least 1 state, "
                       "and the limit is %d numbers: report fewer states",
                       e->state_count, e->variable_count, RP_EPISODE_NUMBERS);
    if (e->states == NULL)
        return rp_fail(err, RP_INVALID, "the states of the episode are NULL");
    return RP_OK;
}

rp_status rp_run_report_check(const rp_run_report *r, rp_error *err)
{
    rp_status st = check_name(r->run, "the run", err);

    if (st != RP_OK) return st;
    if (r->scalar_count > RP_REPORT_SCALARS)
        return rp_fail(err, RP_INVALID,
                       "the report has %zu scalars, the limit is %d: send several reports",
                       r->scalar_count, RP_REPORT_SCALARS);
    if (r->actor_count > RP_REPORT_ACTORS)
        return rp_fail(err, RP_INVALID, "the report has %zu actors, the limit is %d",
                       r->actor_count, RP_REPORT_ACTORS);
    if ((r->scalars == NULL && r->scalar_count > 0) ||
        (r->actors == NULL && r->actor_count > 0))
        return rp_fail(err, RP_INVALID, "the %s of the report are NULL",
                       r->scalars == NULL && r->scalar_count > 0 ? "scalars" : "actors");
    for (size_t i = 0; i < r->scalar_count && st == RP_OK; i++) {
        st = check_name(r->scalars[i].name, "a scalar", err);
        if (st == RP_OK && (!isfinite(r->scalars[i].time_s) || r->scalars[i].time_s < 0))
            st = rp_fail(err, RP_INVALID,
                         "the time of a scalar must be >= 0 and finite, in seconds since 1970, "
                         "got %g",
                         r->scalars[i].time_s);
    }
    for (size_t i = 0; i < r->actor_count && st == RP_OK; i++)
        st = check_name(r->actors[i].name, "an actor", err);
    if (st == RP_OK && r->episode != NULL) st = check_episode(r->episode, err);
    return st;
}

static bool is_name(const rp_run_name *name, size_t size, rp_string other)
{
    return size == other.size && memcmp(name->text, other.data, size) == 0;
}

static size_t set_name(rp_run_name *name, rp_string text)
{
    assert(text.size <= RP_RUN_NAME_BYTES);
    memcpy(name->text, text.data, text.size);
    name->text[text.size] = '\0';
    return text.size;
}

/* The memory of a run. */
static uint64_t measure(const rp_run *run)
{
    uint64_t bytes = sizeof *run + run->series_capacity * sizeof *run->series +
                     run->actor_capacity * sizeof *run->actors +
                     run->state_count * run->variable_count * sizeof *run->states;

    for (size_t i = 0; i < run->series_count; i++)
        bytes += run->series[i].capacity * sizeof(rp_run_point);
    return bytes;
}

static bool is_series_valid(const rp_run *run, const rp_series *s)
{
    if (s->count > s->capacity || s->count > RP_SERIES_POINTS) return false;        /* U3 */
    if (s->stride == 0 || (s->stride & (s->stride - 1)) != 0) return false;         /* U3 */
    if (s->count != s->seen / s->stride + (s->seen % s->stride != 0)) return false; /* U3 */
    if (s->seen > run->last_number) return false; /* U4: each point has a number of its own */
    for (size_t i = 0; i < s->count; i++)
        if (s->points[i].number <= (i > 0 ? s->points[i - 1].number : 0)) return false; /* U4 */
    if (s->count > 0 && s->newest.number < s->points[s->count - 1].number)
        return false;                            /* U4 */
    return s->newest.number <= run->last_number; /* U4 */
}

bool rp_run_is_valid(const rp_run *run)
{
    if (run->series_count > RP_RUN_SERIES || run->series_count > run->series_capacity ||
        run->actor_count > RP_REPORT_ACTORS || run->actor_count > run->actor_capacity ||
        run->state_count * run->variable_count > RP_EPISODE_NUMBERS)
        return false;                                                               /* U1 */
    if (run->episode > run->last_number) return false;                              /* U4 */
    if (run->last_number > RP_RUN_LAST_NUMBER) return false;                        /* U4 */
    if (!rp_run_is_name((rp_string){run->name.text, run->name_size})) return false; /* U2 */
    for (size_t i = 0; i < run->series_count; i++) {
        const rp_series *s = &run->series[i];

        if (!is_series_valid(run, s)) return false;
        if (!rp_run_is_name((rp_string){s->name.text, s->name_size})) return false; /* U2 */
        for (size_t k = 0; k < i; k++)
            if (is_name(&s->name, s->name_size,
                        (rp_string){run->series[k].name.text, run->series[k].name_size}))
                return false; /* U2 */
    }
    for (size_t i = 0; i < run->actor_count; i++)
        for (size_t k = 0; k < i; k++)
            if (is_name(&run->actors[i].view.name, run->actors[i].name_size,
                        (rp_string){run->actors[k].view.name.text, run->actors[k].name_size}))
                return false;          /* U2 */
    return run->bytes == measure(run); /* U5 */
}

static bool is_valid_locked(const rp_runs *runs) RP_REQUIRES(runs->mu)
{
    uint64_t bytes = 0;

    if (runs->run_count > RP_RUNS) return false; /* U1 */
    for (size_t i = 0; i < runs->run_count; i++) {
        const rp_run *run = runs->runs[i];

        if (!rp_run_is_valid(run)) return false;
        if (i > 0 && run->id <= runs->runs[i - 1]->id) return false; /* U2 */
        if (rp_run_of_name(runs, (rp_string){run->name.text, run->name_size}) != run)
            return false; /* U2 */
        bytes += run->bytes;
    }
    return bytes == runs->bytes && bytes <= runs->most_bytes; /* U5, U6 */
}

bool rp_runs_check(rp_runs *runs)
{
    bool valid;

    rp_mutex_lock(&runs->mu);
    valid = is_valid_locked(runs);
    rp_mutex_unlock(&runs->mu);
    return valid;
}

rp_runs *rp_runs_new(const rp_allocator *alloc)
{
    rp_runs *runs = rp_alloc_zero(alloc, sizeof *runs);

    if (runs == NULL) return NULL;
    runs->alloc = *alloc;
    rp_mutex_init(&runs->mu, RP_RANK_RUNS);
    runs->most_bytes = RP_RUNS_BYTES;
    return runs;
}

void rp_runs_free(rp_runs *runs)
{
    rp_allocator alloc;

    if (runs == NULL) return;
    alloc = runs->alloc;
    rp_mutex_lock(&runs->mu);
    while (runs->run_count > 0) rp_run_drop(runs, runs->runs[runs->run_count - 1]);
    rp_mutex_unlock(&runs->mu);
    rp_mutex_deinit(&runs->mu);
    rp_release(&alloc, runs, sizeof *runs);
}

rp_run *rp_run_of_id(const rp_runs *runs, uint64_t id)
{
    for (size_t i = 0; i < runs->run_count; i++)
        if (runs->runs[i]->id == id) return runs->runs[i];
    return NULL;
}

rp_run *rp_run_of_name(const rp_runs *runs, rp_string name)
{
    for (size_t i = 0; i < runs->run_count; i++)
        if (is_name(&runs->runs[i]->name, runs->runs[i]->name_size, name)) return runs->runs[i];
    return NULL;
}

void rp_run_drop(rp_runs *runs, rp_run *run)
{
    size_t i = 0;

    while (runs->runs[i] != run) i++;
    assert(i < runs->run_count && runs->bytes >= run->bytes); /* U5 */
    runs->run_count--;
    memmove(runs->runs + i, runs->runs + i + 1, (runs->run_count - i) * sizeof *runs->runs);
    runs->bytes -= run->bytes;
    runs->changes++;
    for (size_t s = 0; s < run->series_count; s++)
        rp_release(&runs->alloc, run->series[s].points,
                   run->series[s].capacity * sizeof(rp_run_point));
    rp_release(&runs->alloc, run->series, run->series_capacity * sizeof *run->series);
    rp_release(&runs->alloc, run->actors, run->actor_capacity * sizeof *run->actors);
    rp_release(&runs->alloc, run->states,
               run->state_count * run->variable_count * sizeof *run->states);
    rp_release(&runs->alloc, run, sizeof *run);
}

/* True if `a` was reported to before `b`. */
static bool is_older(const rp_run *a, const rp_run *b)
{
    /* Runs that were loaded, and have had no report since, are in the order of their saved
     * times. */
    return a->touched != b->touched ? a->touched < b->touched : a->seen_s < b->seen_s;
}

/* Drops the run that was reported to longest ago, other than `but`. False if there is none. */
static bool drop_oldest_locked(rp_runs *runs, const rp_run *but) RP_REQUIRES(runs->mu)
{
    rp_run *oldest = NULL;

    for (size_t i = 0; i < runs->run_count; i++)
        if (runs->runs[i] != but && (oldest == NULL || is_older(runs->runs[i], oldest)))
            oldest = runs->runs[i];
    if (oldest == NULL) return false;
    rp_run_drop(runs, oldest);
    runs->dropped_runs++;
    return true;
}

/* Makes room for `more` bytes of `run` (U6). False if there is none, or if it is_loading and
 * another run would be dropped. */
static bool make_room_locked(rp_runs *runs, const rp_run *run, uint64_t more)
    RP_REQUIRES(runs->mu)
{
    while (runs->bytes > runs->most_bytes || more > runs->most_bytes - runs->bytes)
        if (runs->is_loading || !drop_oldest_locked(runs, run)) return false;
    return true;
}

/* Counts bytes that were allocated for a run; `more` may be negative. */
static void count_locked(rp_runs *runs, rp_run *run, int64_t more) RP_REQUIRES(runs->mu)
{
    run->bytes += (uint64_t)more;
    runs->bytes += (uint64_t)more;
    assert(run->bytes <= runs->bytes && runs->bytes <= runs->most_bytes); /* U5, U6 */
}

void rp_runs_set_most_bytes(rp_runs *runs, uint64_t most_bytes)
{
    rp_mutex_lock(&runs->mu);
    runs->most_bytes = most_bytes;
    (void)make_room_locked(runs, NULL, 0);
    RP_VERIFY(runs->bytes / sizeof(rp_run_point), is_valid_locked(runs));
    rp_mutex_unlock(&runs->mu);
}

rp_run *rp_run_add(rp_runs *runs, rp_string name, double now_s)
{
    rp_run *run;

    if (runs->run_count == RP_RUNS) (void)drop_oldest_locked(runs, NULL);
    if (!make_room_locked(runs, NULL, sizeof *run)) return NULL;
    run = rp_alloc_zero(&runs->alloc, sizeof *run);
    if (run == NULL) return NULL;
    run->id = ++runs->next_id;
    run->touched = ++runs->clock;
    run->name_size = set_name(&run->name, name);
    run->started_s = run->seen_s = now_s;
    assert(runs->run_count < RP_RUNS); /* U1 */
    runs->runs[runs->run_count++] = run;
    count_locked(runs, run, (int64_t)sizeof *run);
    return run;
}

/* Resizes an array of a run from `*capacity` to `more` elements, if the bounds allow it. */
static rp_run_room grow_locked(rp_runs *runs, rp_run *run, void *array, size_t *capacity,
                               size_t more, size_t element_size) RP_REQUIRES(runs->mu)
{
    uint64_t bytes = (uint64_t)(more - *capacity) * element_size;

    assert(more > *capacity);
    if (!make_room_locked(runs, run, bytes)) return RP_NO_ROOM;
    if (!rp_resize_array(&runs->alloc, array, *capacity, more, element_size))
        return RP_NO_MEMORY;
    *capacity = more;
    count_locked(runs, run, (int64_t)bytes);
    return RP_ROOM;
}

rp_series *rp_run_add_series(rp_runs *runs, rp_run *run, rp_string name)
{
    size_t more = run->series_capacity > 0 ? 2 * run->series_capacity : FIRST_SERIES;
    rp_series *s;

    if (run->series_count == RP_RUN_SERIES) return NULL;
    if (run->series_count == run->series_capacity &&
        grow_locked(runs, run, &run->series, &run->series_capacity, more,
                    sizeof *run->series) != RP_ROOM)
        return NULL;
    assert(run->series_count < run->series_capacity); /* U1 */
    s = &run->series[run->series_count++];
    *s = (rp_series){.stride = 1};
    s->name_size = set_name(&s->name, name);
    return s;
}

bool rp_series_grow(rp_runs *runs, rp_run *run, rp_series *series, size_t capacity)
{
    assert(capacity <= RP_SERIES_POINTS);
    if (capacity <= series->capacity) return true;
    return grow_locked(runs, run, &series->points, &series->capacity, capacity,
                       sizeof *series->points) == RP_ROOM;
}

/* Drops every second point (U3). */
static void halve(rp_series *s)
{
    assert(s->count % 2 == 0 && s->stride <= UINT64_MAX / 2);
    for (size_t i = 0; 2 * i < s->count; i++) s->points[i] = s->points[2 * i];
    s->count = (s->count + 1) / 2;
    s->stride *= 2;
}

/* Adds a point. False if there is no room or no memory for it. */
static bool add_point_locked(rp_runs *runs, rp_run *run, rp_series *s, const rp_scalar *scalar,
                             double now_s) RP_REQUIRES(runs->mu)
{
    rp_run_point point = {run->last_number + 1, scalar->step,
                          scalar->time_s > 0 ? scalar->time_s : now_s, scalar->value};

    if (s->seen % s->stride == 0) {
        if (s->count == RP_SERIES_POINTS) halve(s);
        if (s->count == s->capacity) {
            size_t more = s->capacity > 0 ? 2 * s->capacity : FIRST_POINTS;

            if (more > RP_SERIES_POINTS) more = RP_SERIES_POINTS; /* it was loaded */
            if (!rp_series_grow(runs, run, s, more)) return false;
        }
        /* RP_SERIES_POINTS is even, so after halve() the stride still divides `seen`. */
        assert(s->seen % s->stride == 0 && s->count < s->capacity);
        s->points[s->count++] = point;
    }
    s->seen++;
    s->newest = point;
    run->last_number++;
    return true;
}

/* Finds a series, first at `*hint`, and sets `*hint` to the series after it. NULL if it does
 * not exist. */
static rp_series *find_series(const rp_run *run, rp_string name, size_t *hint)
{
    for (size_t i = 0; i < run->series_count; i++) {
        size_t at = (*hint + i) % run->series_count;

        if (!is_name(&run->series[at].name, run->series[at].name_size, name)) continue;
        *hint = at + 1;
        return &run->series[at];
    }
    return NULL;
}

static size_t add_scalars_locked(rp_runs *runs, rp_run *run, const rp_run_report *report,
                                 double now_s) RP_REQUIRES(runs->mu)
{
    size_t hint = 0, dropped = 0;

    for (size_t i = 0; i < report->scalar_count; i++) {
        rp_series *s = find_series(run, report->scalars[i].name, &hint);

        if (s == NULL) s = rp_run_add_series(runs, run, report->scalars[i].name);
        if (s == NULL || !add_point_locked(runs, run, s, &report->scalars[i], now_s)) dropped++;
    }
    return dropped;
}

/* Finds the entry of an actor, first at `*hint`, and sets `*hint` to the entry after it. NULL
 * if it does not exist. */
static rp_actor *find_actor(const rp_run *run, rp_string name, size_t *hint)
{
    for (size_t i = 0; i < run->actor_count; i++) {
        size_t at = (*hint + i) % run->actor_count;

        if (!is_name(&run->actors[at].view.name, run->actors[at].name_size, name)) continue;
        *hint = at + 1;
        return &run->actors[at];
    }
    return NULL;
}

/* A new entry, or that of the actor that was seen longest ago. */
static rp_run_room take_actor_locked(rp_runs *runs, rp_run *run, rp_actor **out)
    RP_REQUIRES(runs->mu)
{
    size_t more = run->actor_capacity > 0 ? 2 * run->actor_capacity : FIRST_ACTORS;

    if (run->actor_count == RP_REPORT_ACTORS) {
        *out = run->actors;
        for (size_t i = 1; i < run->actor_count; i++)
            if (run->actors[i].view.seen_s < (*out)->view.seen_s) *out = &run->actors[i];
        return RP_ROOM;
    }
    if (run->actor_count == run->actor_capacity) {
        rp_run_room room = grow_locked(runs, run, &run->actors, &run->actor_capacity, more,
                                       sizeof *run->actors);

        if (room != RP_ROOM) return room;
    }
    assert(run->actor_count < run->actor_capacity); /* U1 */
    *out = &run->actors[run->actor_count++];
    return RP_ROOM;
}

rp_run_room rp_run_set_actor(rp_runs *runs, rp_run *run, const rp_run_actor *actor,
                             double now_s, size_t *hint)
{
    rp_actor *entry = find_actor(run, actor->name, hint);

    if (entry == NULL) {
        rp_run_room room = take_actor_locked(runs, run, &entry);

        if (room != RP_ROOM) return room;
    }
    entry->view = (rp_actor_view){.epsilon = actor->epsilon,
                                  .episode_return = actor->episode_return,
                                  .seen_s = now_s,
                                  .version = actor->version,
                                  .version_lag = actor->version_lag};
    entry->name_size = set_name(&entry->view.name, actor->name);
    return RP_ROOM;
}

rp_run_room rp_run_set_episode(rp_runs *runs, rp_run *run, const rp_run_episode *episode)
{
    size_t old = run->state_count * run->variable_count;
    size_t now = episode->state_count * episode->variable_count;
    float *states;

    if (now > old && !make_room_locked(runs, run, (now - old) * sizeof *states))
        return RP_NO_ROOM;
    states = rp_alloc(&runs->alloc, now * sizeof *states);
    if (states == NULL) return RP_NO_MEMORY;
    memcpy(states, episode->states, now * sizeof *states);
    rp_release(&runs->alloc, run->states, old * sizeof *states);
    count_locked(runs, run, ((int64_t)now - (int64_t)old) * (int64_t)sizeof *states);
    run->states = states;
    run->state_count = episode->state_count;
    run->variable_count = episode->variable_count;
    run->episode = ++run->last_number;
    (void)set_name(&run->env, episode->env);
    return RP_ROOM;
}

/* Adds the actors and the episode. Counts in `*dropped` what there is no room for. */
static rp_status add_others_locked(rp_runs *runs, rp_run *run, const rp_run_report *report,
                                   double now_s, size_t *dropped) RP_REQUIRES(runs->mu)
{
    rp_run_room room = RP_ROOM;
    size_t hint = 0;

    for (size_t i = 0; i < report->actor_count; i++)
        *dropped += rp_run_set_actor(runs, run, &report->actors[i], now_s, &hint) != RP_ROOM;
    if (report->episode != NULL) room = rp_run_set_episode(runs, run, report->episode);
    *dropped += room != RP_ROOM;
    return room != RP_NO_MEMORY ? RP_OK : RP_NO_RESOURCE;
}

static rp_status report_locked(rp_runs *runs, const rp_run_report *report, double now_s,
                               size_t *dropped) RP_REQUIRES(runs->mu)
{
    rp_run *run = rp_run_of_name(runs, report->run);

    *dropped = report->scalar_count + report->actor_count + (report->episode != NULL);
    if (run == NULL) run = rp_run_add(runs, report->run, now_s);
    if (run == NULL) return RP_NO_RESOURCE;
    run->touched = ++runs->clock;
    if (now_s > run->seen_s) run->seen_s = now_s;
    *dropped = add_scalars_locked(runs, run, report, now_s);
    runs->dropped_scalars += *dropped;
    runs->changes++;
    return add_others_locked(runs, run, report, now_s, dropped);
}

rp_status rp_runs_report(rp_runs *runs, const rp_run_report *report, double now_s,
                         size_t *dropped, rp_error *err)
{
    rp_status st = rp_run_report_check(report, err);
    size_t lost = 0;

    if (st != RP_OK) return st;
    rp_mutex_lock(&runs->mu);
    st = report_locked(runs, report, now_s, &lost);
    RP_VERIFY(runs->bytes / sizeof(rp_run_point), is_valid_locked(runs));
    rp_mutex_unlock(&runs->mu);
    if (dropped != NULL) *dropped = lost;
    if (st == RP_OK) return RP_OK;
    return rp_fail(err, st,
                   "there is no memory for the report of run '%.*s', or the limit run_bytes is "
                   "too low",
                   (int)report->run.size, report->run.data);
}

void rp_runs_get_info(rp_runs *runs, rp_runs_info *out)
{
    rp_mutex_lock(&runs->mu);
    *out = (rp_runs_info){.count = runs->run_count,
                          .bytes = runs->bytes,
                          .most_bytes = runs->most_bytes,
                          .dropped_runs = runs->dropped_runs,
                          .dropped_scalars = runs->dropped_scalars,
                          .changes = runs->changes};
    rp_mutex_unlock(&runs->mu);
}
