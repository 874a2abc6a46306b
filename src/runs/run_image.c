/* SPDX-License-Identifier: Apache-2.0 */
/* The image of a run in a checkpoint: a protobuf message. docs/checkpoint.md has the file that
 * images are in. A later version may add fields; readers skip those that they do not know.
 *
 *   run      1 name | 2 double started | 3 double seen | 4 last number | 5 series*
 *            6 actor* | 7 episode | 8 number of the episode
 *   series   1 name | 2 stride | 3 points that arrived | 4 points | 5 the newest point
 *   actor    1 name | 2 double epsilon | 3 double return | 4 version | 5 version lag
 *            6 double seen
 *   episode  1 environment | 2 numbers of a state | 3 states, float32
 *   point    number u64 | step i64 | time double | value double, 32 bytes, little-endian
 *
 * A run may change while its image is made: the lock is held for one series at a time, and the
 * last number is taken after all series, so that it is above the numbers of their points (U4).
 *
 * An image is loaded into a run of its own, which is then checked against the invariants of
 * runs_inside.h, so that no image, however damaged, makes runs that break them. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "chunk/protobuf.h"
#include "runs/runs_inside.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

enum {
    POINT_BYTES = 32,
    /* Upper bounds on the image of a series, and on that of everything else. */
    SERIES_BYTES = (RP_SERIES_POINTS + 1) * POINT_BYTES + RP_RUN_NAME_BYTES + 64,
    REST_BYTES = RP_REPORT_ACTORS * (RP_RUN_NAME_BYTES + 64) +
                 RP_EPISODE_NUMBERS * (int)sizeof(float) + 2 * RP_RUN_NAME_BYTES + 128,
};

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static void put_points(rp_buf *out, uint32_t number, const rp_run_point *points, size_t count)
{
    size_t mark = rp_wire_begin(out, number);
    uint8_t *at = rp_buf_reserve(out, count * POINT_BYTES);

    if (at != NULL) {
        out->size += count * POINT_BYTES;
        for (size_t i = 0; i < count; i++, at += POINT_BYTES) {
            rp_pb_store64(at, points[i].number);
            rp_pb_store64(at + 8, (uint64_t)points[i].step);
            rp_pb_store64(at + 16, bits_of(points[i].time_s));
            rp_pb_store64(at + 24, bits_of(points[i].value));
        }
    }
    rp_wire_end(out, mark);
}

static rp_run_point take_point(const uint8_t *at)
{
    return (rp_run_point){rp_pb_load64(at), (int64_t)rp_pb_load64(at + 8),
                          double_of(rp_pb_load64(at + 16)), double_of(rp_pb_load64(at + 24))};
}

static void put_series(rp_buf *out, const rp_series *s)
{
    size_t mark = rp_wire_begin(out, 5);

    rp_wire_put_bytes(out, 1, s->name.text, s->name_size);
    rp_wire_put_number(out, 2, s->stride);
    rp_wire_put_number(out, 3, s->seen);
    put_points(out, 4, s->points, s->count);
    put_points(out, 5, &s->newest, 1);
    rp_wire_end(out, mark);
}

static void put_actor(rp_buf *out, const rp_actor_view *actor)
{
    size_t mark = rp_wire_begin(out, 6);

    rp_wire_put_text(out, 1, actor->name.text);
    rp_wire_put_double(out, 2, actor->epsilon);
    rp_wire_put_double(out, 3, actor->episode_return);
    rp_wire_put_int(out, 4, actor->version);
    rp_wire_put_int(out, 5, actor->version_lag);
    rp_wire_put_double(out, 6, actor->seen_s);
    rp_wire_end(out, mark);
}

static void put_episode(rp_buf *out, const rp_run *run)
{
    size_t mark;

    if (run->states == NULL) return;
    mark = rp_wire_begin(out, 7);
    rp_wire_put_text(out, 1, run->env.text);
    rp_wire_put_number(out, 2, run->variable_count);
    rp_wire_put_bytes(out, 3, run->states,
                      run->state_count * run->variable_count * sizeof *run->states);
    rp_wire_end(out, mark);
}

/* Everything but the series. */
static void put_rest(rp_buf *out, const rp_run *run)
{
    rp_wire_put_bytes(out, 1, run->name.text, run->name_size);
    rp_wire_put_double(out, 2, run->started_s);
    rp_wire_put_double(out, 3, run->seen_s);
    rp_wire_put_number(out, 4, run->last_number);
    for (size_t i = 0; i < run->actor_count; i++) put_actor(out, &run->actors[i].view);
    put_episode(out, run);
    rp_wire_put_number(out, 8, run->episode);
}

/* Appends a series. False if there is none, or no such run, or no memory. */
static bool save_series(rp_runs *runs, uint64_t id, size_t series, rp_buf *out)
{
    const rp_run *run;
    bool found;

    /* Memory is taken before the lock, which is then held for one copy. */
    if (rp_buf_reserve(out, SERIES_BYTES) == NULL) return false;
    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    found = run != NULL && series < run->series_count;
    if (found) put_series(out, &run->series[series]);
    rp_mutex_unlock(&runs->mu);
    return found;
}

void rp_runs_save(rp_runs *runs, uint64_t id, rp_buf *out)
{
    size_t start = out->size;
    const rp_run *run;

    for (size_t i = 0; save_series(runs, id, i, out); i++) continue;
    if (rp_buf_reserve(out, REST_BYTES) == NULL) return;
    rp_mutex_lock(&runs->mu);
    run = rp_run_of_id(runs, id);
    if (run != NULL) put_rest(out, run);
    rp_mutex_unlock(&runs->mu);
    if (run == NULL) out->size = start; /* it was dropped meanwhile */
}

static rp_string text_of(const rp_pb_field *f)
{
    return (rp_string){(const char *)f->data, f->size};
}

/* Finds the name of a submessage, which is its field 1. False if it has none that is valid. */
static bool find_name(const rp_pb_field *message, rp_string *name)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_field f;
    rp_pb_step step;

    *name = (rp_string){"", 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) *name = text_of(&f);
    return step == RP_PB_END && rp_run_is_name(*name);
}

/* Each load_ function returns RP_OK, RP_CORRUPT or RP_NO_RESOURCE. */
static rp_status load_points(rp_runs *runs, rp_run *run, rp_series *s, const rp_pb_field *f)
    RP_REQUIRES(runs->mu)
{
    size_t count = f->size / POINT_BYTES;

    if (f->size % POINT_BYTES != 0 || count > RP_SERIES_POINTS || s->count > 0)
        return RP_CORRUPT;
    if (count == 0) return RP_OK;
    if (!rp_series_grow(runs, run, s, count)) return RP_NO_RESOURCE;
    for (size_t i = 0; i < count; i++) s->points[i] = take_point(f->data + i * POINT_BYTES);
    s->count = count;
    return RP_OK;
}

static rp_status load_series(rp_runs *runs, rp_run *run, const rp_pb_field *message)
    RP_REQUIRES(runs->mu)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    rp_series *s;
    rp_string name;
    rp_pb_field f;

    if (!find_name(message, &name) || run->series_count == RP_RUN_SERIES) return RP_CORRUPT;
    s = rp_run_add_series(runs, run, name);
    if (s == NULL) return RP_NO_RESOURCE;
    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) s->stride = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) s->seen = f.value;
        if (rp_pb_is(&f, 4, RP_PB_BYTES)) st = load_points(runs, run, s, &f);
        if (rp_pb_is(&f, 5, RP_PB_BYTES) && f.size == POINT_BYTES)
            s->newest = take_point(f.data);
    }
    return st;
}

static rp_status load_actor(rp_runs *runs, rp_run *run, const rp_pb_field *message)
    RP_REQUIRES(runs->mu)
{
    size_t hint = run->actor_count > 0 ? run->actor_count - 1 : 0;
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_run_actor actor = {0};
    double seen_s = 0;
    rp_pb_field f;

    if (!find_name(message, &actor.name)) return RP_CORRUPT;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) actor.epsilon = double_of(f.value);
        if (rp_pb_is(&f, 3, RP_PB_FIXED64)) actor.episode_return = double_of(f.value);
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) actor.version = (int64_t)f.value;
        if (rp_pb_is(&f, 5, RP_PB_VARINT)) actor.version_lag = (int64_t)f.value;
        if (rp_pb_is(&f, 6, RP_PB_FIXED64)) seen_s = double_of(f.value);
    }
    return rp_run_set_actor(runs, run, &actor, seen_s, &hint) == RP_ROOM ? RP_OK
                                                                         : RP_NO_RESOURCE;
}

static rp_status load_episode(rp_runs *runs, rp_run *run, const rp_pb_field *message)
    RP_REQUIRES(runs->mu)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_run_episode episode = {0};
    uint64_t variables = 0;
    rp_status st = RP_OK;
    size_t bytes = 0;
    float *states;
    rp_pb_field f;

    if (!find_name(message, &episode.env)) return RP_CORRUPT;
    states = rp_alloc_zero(&runs->alloc, RP_EPISODE_NUMBERS * sizeof *states);
    if (states == NULL) return RP_NO_RESOURCE;
    while (rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) variables = f.value;
        if (rp_pb_is(&f, 3, RP_PB_BYTES) && f.size <= RP_EPISODE_NUMBERS * sizeof *states) {
            bytes = f.size;
            memcpy(states, f.data, bytes);
        }
    }
    if (variables < 1 || variables > RP_EPISODE_VARIABLES || bytes == 0 ||
        bytes % (variables * sizeof *states) != 0)
        st = RP_CORRUPT;
    if (st == RP_OK) {
        episode.states = states;
        episode.variable_count = (size_t)variables;
        episode.state_count = bytes / ((size_t)variables * sizeof *states);
        if (rp_run_set_episode(runs, run, &episode) != RP_ROOM) st = RP_NO_RESOURCE;
    }
    rp_release(&runs->alloc, states, RP_EPISODE_NUMBERS * sizeof *states);
    return st;
}

static rp_status load_fields(rp_runs *runs, rp_run *run, const rp_pb_field *image)
    RP_REQUIRES(runs->mu)
{
    rp_pb_reader reader = rp_pb_open(image->data, image->size);
    rp_status st = RP_OK;
    uint64_t last_number = 0, episode = 0;
    rp_pb_field f;

    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) run->started_s = double_of(f.value);
        if (rp_pb_is(&f, 3, RP_PB_FIXED64)) run->seen_s = double_of(f.value);
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) last_number = f.value;
        if (rp_pb_is(&f, 5, RP_PB_BYTES)) st = load_series(runs, run, &f);
        if (rp_pb_is(&f, 6, RP_PB_BYTES)) st = load_actor(runs, run, &f);
        if (rp_pb_is(&f, 7, RP_PB_BYTES)) st = load_episode(runs, run, &f);
        if (rp_pb_is(&f, 8, RP_PB_VARINT)) episode = f.value;
    }
    run->last_number = last_number; /* loading the episode has changed it */
    run->episode = episode;
    /* The numbers of later points stay within the range of U4. */
    if (last_number > RP_RUN_LAST_NUMBER / 2) st = RP_CORRUPT;
    if (st == RP_OK && !(isfinite(run->seen_s) && rp_run_is_valid(run))) st = RP_CORRUPT;
    return st;
}

static rp_status load_locked(rp_runs *runs, rp_string name, const rp_pb_field *image)
    RP_REQUIRES(runs->mu)
{
    rp_run *run;
    rp_status st;

    if (rp_run_of_name(runs, name) != NULL) return RP_EXISTS;
    if (runs->run_count == RP_RUNS) return RP_NO_RESOURCE;
    runs->is_loading = true;
    run = rp_run_add(runs, name, 0);
    st = run != NULL ? load_fields(runs, run, image) : RP_NO_RESOURCE;
    if (run != NULL) run->touched = 0;
    if (run != NULL && st != RP_OK) rp_run_drop(runs, run);
    runs->is_loading = false;
    return st;
}

rp_status rp_runs_load(rp_runs *runs, const uint8_t *data, size_t size, rp_error *err)
{
    rp_pb_field image = {.data = data, .size = size};
    rp_string name;
    rp_status st;

    if (!find_name(&image, &name))
        return rp_fail(err, RP_CORRUPT, "the image of a run has no valid name");
    rp_mutex_lock(&runs->mu);
    st = load_locked(runs, name, &image);
    rp_mutex_unlock(&runs->mu);
    if (st == RP_CORRUPT)
        return rp_fail(err, st, "the image of run '%.*s' is malformed", (int)name.size,
                       name.data);
    if (st == RP_EXISTS)
        return rp_fail(err, st, "there is a run '%.*s' already", (int)name.size, name.data);
    if (st == RP_NO_RESOURCE)
        return rp_fail(err, st,
                       "there is no memory for run '%.*s', or no room: raise the limit "
                       "run_bytes",
                       (int)name.size, name.data);
    return st;
}
