/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as text. Each writer copies one part of a run at a time, and formats it without the lock
 * of the runs.
 *
 * An event file is a TFRecord file, each record a message of protobuf:
 *
 *   u64 length | u32 masked CRC-32C of the length | bytes | u32 masked CRC-32C of the bytes
 *
 *   Event { 1 double wall_time; 2 int64 step; 3 string file_version; 5 Summary summary }
 *   Summary { 1 Value value { 1 string tag; 2 float simple_value } } */
#include "runs/run_text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "disk/record.h" /* rp_crc32c() */
#include "reprise/printable.h"
#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

/* A list that is longer than this has no names of scalars from there on. All runs without these
 * names take less than 500 KiB, and the names of one run less than 200 KiB. */
enum { LIST_NAMES_BYTES = 1 << 20 };

/* A page of lines ends after the run with which it has this many bytes, since it is made on an
 * event loop. */
enum { LINES_BYTES = 64 << 10 };

static void sink(void *ctx, const char *part, size_t size)
{
    rp_buf_append(ctx, part, size);
}

static void put_string(rp_buf *out, const char *text)
{
    rp_buf_append(out, "\"", 1);
    rp_spell_text(text, strlen(text), RP_SPELL_JSON, sink, out);
    rp_buf_append(out, "\"", 1);
}

/* JSON has no infinity and no NaN: both are null. */
static void put_number(rp_buf *out, double value, int digits)
{
    if (isfinite(value))
        rp_buf_format(out, "%.*g", digits, value);
    else
        rp_buf_text(out, "null");
}

/* A time, in seconds with three decimals. */
static void put_time(rp_buf *out, double seconds)
{
    if (isfinite(seconds) && fabs(seconds) < 1e15)
        rp_buf_format(out, "%.3f", seconds);
    else
        put_number(out, seconds, 17);
}

/* A run of the list, with the names of its first `scalars` series. */
static void put_summary(rp_buf *out, const rp_run_view *run, size_t scalars)
{
    rp_buf_text(out, "{\"name\":");
    put_string(out, run->name.text);
    rp_buf_text(out, ",\"started\":");
    put_time(out, run->started_s);
    rp_buf_text(out, ",\"last_seen\":");
    put_time(out, run->seen_s);
    rp_buf_format(out,
                  ",\"points\":%zu,\"next\":%" PRIu64 ",\"actors\":%zu,\"episode\":%" PRIu64,
                  run->points, run->last_number, run->actor_count, run->episode);
    rp_buf_text(out, ",\"scalars\":[");
    for (size_t i = 0; i < scalars; i++) {
        if (i > 0) rp_buf_text(out, ",");
        put_string(out, run->series[i].text);
    }
    rp_buf_text(out, "]}");
}

void rp_runs_write_list(rp_runs *runs, rp_buf *out)
{
    rp_run_view *run = rp_alloc(out->alloc, sizeof *run);
    size_t start = out->size, left_out = 0;
    rp_runs_info info;
    uint64_t after = 0;

    if (run == NULL) {
        out->bad = true;
        return;
    }
    rp_runs_get_info(runs, &info);
    rp_buf_format(out,
                  "{\"bytes\":%" PRIu64 ",\"max_bytes\":%" PRIu64 ",\"dropped_runs\":%" PRIu64
                  ",\"dropped_scalars\":%" PRIu64 ",\"runs\":[",
                  info.bytes, info.most_bytes, info.dropped_runs, info.dropped_scalars);
    while (!out->bad && rp_runs_next(runs, after, run)) {
        bool has_names = out->size - start < LIST_NAMES_BYTES;

        if (after > 0) rp_buf_text(out, ",");
        put_summary(out, run, has_names ? run->series_count : 0);
        left_out += !has_names && run->series_count > 0;
        after = run->id;
    }
    rp_buf_format(out, "],\"scalars_left_out\":%zu}", left_out);
    rp_release(out->alloc, run, sizeof *run);
}

void rp_runs_write_lines(rp_runs *runs, size_t max_runs, uint64_t *after, bool *more,
                         rp_buf *out)
{
    rp_run_view *run = rp_alloc(out->alloc, sizeof *run);
    size_t start = out->size;

    *more = false;
    if (run == NULL) {
        out->bad = true;
        return;
    }
    for (size_t i = 0; i < max_runs && !out->bad && out->size - start < LINES_BYTES; i++) {
        *more = rp_runs_next(runs, *after, run);
        if (!*more) break;
        put_summary(out, run, run->series_count);
        rp_buf_text(out, "\n");
        *after = run->id;
    }
    rp_release(out->alloc, run, sizeof *run);
}

/* Scratch memory of one writer. */
typedef struct scratch {
    rp_run_view run;
    union {
        rp_run_point points[RP_SERIES_POINTS + 1];
        rp_actor_view actors[RP_REPORT_ACTORS];
        rp_episode_view episode;
        rp_run_row rows[RP_RUN_PAGE_ROWS];
    };
} scratch;

static void put_series(rp_buf *out, const rp_run_point *points, size_t count)
{
    rp_buf_text(out, ":{\"step\":[");
    for (size_t i = 0; i < count; i++)
        rp_buf_format(out, "%s%" PRId64, i > 0 ? "," : "", points[i].step);
    rp_buf_text(out, "],\"time\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) rp_buf_text(out, ",");
        put_time(out, points[i].time_s);
    }
    rp_buf_text(out, "],\"value\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) rp_buf_text(out, ",");
        put_number(out, points[i].value, 9);
    }
    rp_buf_text(out, "]}");
}

/* Writes the series that have points after `after`. */
static void put_all_series(rp_runs *runs, scratch *s, uint64_t after, rp_buf *out)
{
    bool is_first = true;

    for (size_t i = 0; i < s->run.series_count && !out->bad; i++) {
        size_t count = rp_runs_read_series(runs, s->run.id, i, after, s->points);

        /* Points that arrived after the view belong to the next page. */
        while (count > 0 && s->points[count - 1].number > s->run.last_number) count--;
        if (count == 0) continue;
        if (!is_first) rp_buf_text(out, ",");
        is_first = false;
        put_string(out, s->run.series[i].text);
        put_series(out, s->points, count);
    }
}

static void put_actors(rp_runs *runs, scratch *s, rp_buf *out)
{
    size_t count = rp_runs_read_actors(runs, s->run.id, s->actors);

    for (size_t i = 0; i < count; i++) {
        const rp_actor_view *actor = &s->actors[i];

        rp_buf_text(out, i > 0 ? ",{\"name\":" : "{\"name\":");
        put_string(out, actor->name.text);
        rp_buf_text(out, ",\"epsilon\":");
        put_number(out, actor->epsilon, 9);
        rp_buf_text(out, ",\"return\":");
        put_number(out, actor->episode_return, 9);
        rp_buf_format(out,
                      ",\"version\":%" PRId64 ",\"version_lag\":%" PRId64 ",\"last_seen\":",
                      actor->version, actor->version_lag);
        put_time(out, actor->seen_s);
        rp_buf_text(out, "}");
    }
}

/* Writes the episode, if the reader does not have it. */
static void put_episode(rp_runs *runs, scratch *s, uint64_t after, rp_buf *out)
{
    const rp_episode_view *e = &s->episode;

    if (s->run.episode <= after || !rp_runs_read_episode(runs, s->run.id, &s->episode)) return;
    rp_buf_format(out, ",\"episode\":{\"number\":%" PRIu64 ",\"env\":", s->run.episode);
    put_string(out, e->env.text);
    rp_buf_text(out, ",\"states\":[");
    for (size_t i = 0; i < e->state_count; i++) {
        rp_buf_text(out, i > 0 ? ",[" : "[");
        for (size_t k = 0; k < e->variable_count; k++) {
            if (k > 0) rp_buf_text(out, ",");
            put_number(out, (double)e->states[i * e->variable_count + k], 6);
        }
        rp_buf_text(out, "]");
    }
    rp_buf_text(out, "]}");
}

/* Names the runs that there are, as many as fit. Overwrites `run`. */
static rp_status not_found(rp_runs *runs, rp_string name, rp_run_view *run, rp_error *err)
{
    char names[128] = "";
    uint64_t after = 0;
    size_t used = 0;

    while (used + 1 < sizeof names && rp_runs_next(runs, after, run)) {
        (void)snprintf(names + used, sizeof names - used, "%s%.40s",
                       after > 0 ? ", " : "; the runs are: ", run->name.text);
        used = strlen(names);
        after = run->id;
    }
    return rp_fail(err, RP_NOT_FOUND, "there is no run '%.*s'%s",
                   (int)(name.size < 100 ? name.size : 100), name.data, names);
}

rp_status rp_runs_write_json(rp_runs *runs, rp_string name, uint64_t after, rp_buf *out,
                             rp_error *err)
{
    scratch *s = rp_alloc(out->alloc, sizeof *s);

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    if (!rp_runs_find(runs, name, &s->run)) {
        rp_status st = not_found(runs, name, &s->run, err);

        rp_release(out->alloc, s, sizeof *s);
        return st;
    }
    rp_buf_text(out, "{\"name\":");
    put_string(out, s->run.name.text);
    rp_buf_text(out, ",\"started\":");
    put_time(out, s->run.started_s);
    rp_buf_text(out, ",\"last_seen\":");
    put_time(out, s->run.seen_s);
    rp_buf_format(out, ",\"next\":%" PRIu64 ",\"series\":{", s->run.last_number);
    put_all_series(runs, s, after, out);
    rp_buf_text(out, "},\"actors\":[");
    put_actors(runs, s, out);
    rp_buf_text(out, "]");
    put_episode(runs, s, after, out);
    rp_buf_text(out, "}");
    rp_release(out->alloc, s, sizeof *s);
    return RP_OK;
}

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) at[i] = (uint8_t)(value >> 8 * i);
}

/* The checksum of TFRecord files. */
static uint32_t masked(const uint8_t *data, size_t size)
{
    uint32_t crc = rp_crc32c(0, data, size);

    return (crc >> 15 | crc << 17) + UINT32_C(0xa282ead8);
}

/* Appends a field of type float, also if it is 0. */
static void put_float(rp_buf *out, uint32_t number, float value)
{
    uint8_t *at = rp_buf_reserve(out, 5);
    uint32_t bits;

    if (at == NULL) return;
    memcpy(&bits, &value, sizeof bits);
    at[0] = (uint8_t)rp_pb_tag(number, RP_PB_FIXED32);
    put32(at + 1, bits);
    out->size += 5;
}

static void put_event(rp_buf *out, double wall_s, int64_t step, rp_string tag, float value)
{
    static const char version[] = "brain.Event:2";
    size_t summary, inner;

    rp_wire_put_double(out, 1, wall_s);
    if (tag.data == NULL) {
        rp_wire_put_bytes(out, 3, version, sizeof version - 1);
        return;
    }
    rp_wire_put_int(out, 2, step);
    summary = rp_wire_begin(out, 5);
    inner = rp_wire_begin(out, 1);
    rp_wire_put_bytes(out, 1, tag.data, tag.size);
    put_float(out, 2, value);
    rp_wire_end(out, inner);
    rp_wire_end(out, summary);
}

void rp_run_event(rp_buf *out, double wall_s, int64_t step, rp_string tag, float value)
{
    size_t start = out->size, length;
    uint8_t *head, *tail;

    if (rp_buf_reserve(out, 12) == NULL) return;
    out->size += 12;
    put_event(out, wall_s, step, tag, value);
    tail = rp_buf_reserve(out, 4);
    if (tail == NULL) return;
    head = out->data + start;
    assert(out->size >= start + 12);
    length = out->size - start - 12;
    put32(tail, masked(head + 12, length));
    out->size += 4;
    rp_pb_store64(head, length);
    put32(head + 8, masked(head, 8));
}

static void put_csv_number(rp_buf *out, double value, int digits)
{
    if (isfinite(value))
        rp_buf_format(out, "%.*g", digits, value);
    else
        rp_buf_text(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* A line of CSV (RFC 4180): the name is quoted, and its quotes are doubled. */
static void put_csv(rp_buf *out, const char *name, const rp_run_point *point)
{
    rp_buf_text(out, "\"");
    for (const char *quote; (quote = strchr(name, '"')) != NULL; name = quote + 1) {
        rp_buf_append(out, name, (size_t)(quote - name));
        rp_buf_text(out, "\"\"");
    }
    rp_buf_format(out, "%s\",%" PRId64 ",", name, point->step);
    put_time(out, point->time_s);
    rp_buf_text(out, ",");
    put_csv_number(out, point->value, 17);
    rp_buf_text(out, "\n");
}

static void put_row(rp_buf *out, rp_run_format format, const rp_run_view *run,
                    const rp_run_row *row)
{
    const char *name = run->series[row->series].text;
    rp_string tag = {name, strlen(name)};

    if (format == RP_RUN_CSV)
        put_csv(out, name, &row->point);
    else
        rp_run_event(out, row->point.time_s, row->point.step, tag, (float)row->point.value);
}

static void put_head(rp_buf *out, rp_run_format format, const rp_run_view *run)
{
    if (format == RP_RUN_CSV)
        rp_buf_text(out, "name,step,time,value\n");
    else
        rp_run_event(out, run->started_s, 0, (rp_string){NULL, 0}, 0);
}

rp_status rp_runs_write_rows(rp_runs *runs, rp_string name, rp_run_page *page, rp_buf *out,
                             rp_error *err)
{
    scratch *s = rp_alloc(out->alloc, sizeof *s);
    size_t count;

    if (s == NULL) return rp_fail_memory(err, sizeof *s);
    if (!rp_runs_find(runs, name, &s->run)) {
        rp_status st = not_found(runs, name, &s->run, err);

        rp_release(out->alloc, s, sizeof *s);
        return st;
    }
    if (page->after == 0) put_head(out, page->format, &s->run);
    page->more = true;
    for (size_t done = 0; page->more && done < page->max_rows; done += count) {
        count = rp_runs_read_rows(runs, s->run.id, page->after, s->rows, page->max_rows - done);
        assert(count <= page->max_rows - done);
        /* A series that began after the view was taken has no name here: it ends the page. */
        for (size_t i = 0; i < count; i++)
            if (s->rows[i].series >= s->run.series_count) count = i;
        for (size_t i = 0; i < count; i++) put_row(out, page->format, &s->run, &s->rows[i]);
        page->more = count > 0 && !out->bad;
        if (count > 0) page->after = s->rows[count - 1].point.number;
    }
    rp_release(out->alloc, s, sizeof *s);
    return out->bad ? rp_fail_memory(err, out->size) : RP_OK;
}
