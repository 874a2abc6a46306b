/* SPDX-License-Identifier: Apache-2.0 */
/* A report is read in two passes: the first counts, so that the arrays are allocated once, the
 * second fills them in. */
#include "wire/run_messages.h"

#include <assert.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"
#include "wire/fields.h"

static const char report_name[] = "LogScalarsRequest";

/* Adds the number of floats in a field of `repeated float`, packed or not. False if the bytes
 * are not floats. */
static bool count_floats(const rp_pb_field *f, size_t *count)
{
    if (f->type == RP_PB_FIXED32) *count += 1;
    if (f->type == RP_PB_BYTES) *count += f->size / 4;
    return f->type != RP_PB_BYTES || f->size % 4 == 0;
}

static float *copy_floats(const rp_pb_field *f, float *out)
{
    uint32_t bits = (uint32_t)f->value;

    if (f->type == RP_PB_FIXED32) {
        memcpy(out++, &bits, sizeof bits);
    } else if (f->type == RP_PB_BYTES && f->size > 0) {
        memcpy(out, f->data, f->size);
        out += f->size / 4;
    }
    return out;
}

/* Counts the states of an Episode and reads its other fields. */
static rp_status count_episode(const rp_pb_field *message, rp_wire_report *r, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    rp_pb_field f;
    rp_pb_step step;

    r->report.episode = &r->episode;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the name of the environment", &r->episode.env, err);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) r->episode.variable_count = (uint32_t)f.value;
        if (f.number == 3 && !count_floats(&f, &r->state_numbers))
            return rp_wire_malformed(err, report_name);
        if (r->state_numbers > RP_EPISODE_NUMBERS)
            return rp_fail(err, RP_INVALID,
                           "the states of the episode have more than %d numbers: report fewer "
                           "states",
                           RP_EPISODE_NUMBERS);
    }
    if (st != RP_OK) return st;
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, report_name);
}

static rp_status count_field(const rp_pb_field *f, rp_wire_report *r, rp_error *err)
{
    if (f->type != RP_PB_BYTES) return RP_OK;
    switch (f->number) {
    case 1: return rp_wire_read_text(f, "the name of the run", &r->report.run, err);
    case 2:
        if (++r->report.scalar_count <= RP_REPORT_SCALARS) return RP_OK;
        return rp_fail(err, RP_INVALID,
                       "the report has more than %d scalars: send several reports",
                       RP_REPORT_SCALARS);
    case 3:
        if (++r->report.actor_count <= RP_REPORT_ACTORS) return RP_OK;
        return rp_fail(err, RP_INVALID, "the report has more than %d actors", RP_REPORT_ACTORS);
    case 4: return count_episode(f, r, err);
    default: return RP_OK;
    }
}

static rp_status read_scalar(const rp_pb_field *message, rp_scalar *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    rp_pb_field f;
    rp_pb_step step;

    out->name = (rp_string){"", 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the name of a scalar", &out->name, err);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) out->step = (int64_t)f.value;
        if (rp_pb_is(&f, 3, RP_PB_FIXED64)) out->time_s = rp_wire_double(&f);
        if (rp_pb_is(&f, 4, RP_PB_FIXED64)) out->value = rp_wire_double(&f);
    }
    if (st != RP_OK) return st;
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, report_name);
}

static rp_status read_actor(const rp_pb_field *message, rp_run_actor *out, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_status st = RP_OK;
    rp_pb_field f;
    rp_pb_step step;

    out->name = (rp_string){"", 0};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the name of an actor", &out->name, err);
        if (rp_pb_is(&f, 2, RP_PB_FIXED64)) out->epsilon = rp_wire_double(&f);
        if (rp_pb_is(&f, 3, RP_PB_FIXED64)) out->episode_return = rp_wire_double(&f);
        if (rp_pb_is(&f, 4, RP_PB_VARINT)) out->version = (int64_t)f.value;
        if (rp_pb_is(&f, 5, RP_PB_VARINT)) out->version_lag = (int64_t)f.value;
    }
    if (st != RP_OK) return st;
    return step == RP_PB_END ? RP_OK : rp_wire_malformed(err, report_name);
}

static float *copy_states(const rp_pb_field *message, float *out)
{
    rp_pb_reader reader = rp_pb_open(message->data, message->size);
    rp_pb_field f;

    while (rp_pb_next(&reader, &f) == RP_PB_FIELD)
        if (f.number == 3) out = copy_floats(&f, out);
    return out;
}

static rp_status fill_arrays(rp_wire_report *r, const uint8_t *data, size_t size, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_scalar *scalar = r->scalars;
    rp_run_actor *actor = r->actors;
    float *states = r->states;
    rp_status st = RP_OK;
    rp_pb_field f;

    while (st == RP_OK && rp_pb_next(&reader, &f) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 2, RP_PB_BYTES)) st = read_scalar(&f, scalar++, err);
        if (rp_pb_is(&f, 3, RP_PB_BYTES)) st = read_actor(&f, actor++, err);
        if (rp_pb_is(&f, 4, RP_PB_BYTES)) states = copy_states(&f, states);
    }
    assert(st != RP_OK || r->scalars == NULL ||
           (size_t)(scalar - r->scalars) == r->report.scalar_count);
    return st;
}

static rp_status allocate(rp_wire_report *r, const rp_allocator *alloc, rp_error *err)
{
    size_t scalars = r->report.scalar_count, actors = r->report.actor_count;

    if (scalars > 0) r->scalars = rp_alloc_array(alloc, scalars, sizeof *r->scalars);
    if (actors > 0) r->actors = rp_alloc_array(alloc, actors, sizeof *r->actors);
    if (r->state_numbers > 0)
        r->states = rp_alloc_array(alloc, r->state_numbers, sizeof *r->states);
    r->report.scalars = r->scalars;
    r->report.actors = r->actors;
    r->episode.states = r->states;
    if ((scalars > 0 && r->scalars == NULL) || (actors > 0 && r->actors == NULL) ||
        (r->state_numbers > 0 && r->states == NULL))
        return rp_fail_memory(err, scalars * sizeof *r->scalars);
    return RP_OK;
}

rp_status rp_wire_read_report(const rp_allocator *alloc, const uint8_t *data, size_t size,
                              rp_wire_report *r, rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    rp_pb_field f;
    rp_pb_step step;

    *r = (rp_wire_report){.report = {.run = {"", 0}}, .episode = {.env = {"", 0}}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK)
        st = count_field(&f, r, err);
    if (st == RP_OK && step != RP_PB_END) st = rp_wire_malformed(err, report_name);
    if (st == RP_OK && r->report.episode != NULL && r->episode.variable_count > 0) {
        r->episode.state_count = r->state_numbers / r->episode.variable_count;
        if (r->state_numbers % r->episode.variable_count != 0)
            st = rp_fail(err, RP_INVALID,
                         "the episode has %zu numbers, not a multiple of its %zu variables",
                         r->state_numbers, r->episode.variable_count);
    }
    if (st != RP_OK) return st;
    st = allocate(r, alloc, err);
    if (st == RP_OK) st = fill_arrays(r, data, size, err);
    if (st != RP_OK) rp_wire_report_deinit(r, alloc);
    return st;
}

void rp_wire_report_deinit(rp_wire_report *r, const rp_allocator *alloc)
{
    rp_release(alloc, r->scalars, r->report.scalar_count * sizeof *r->scalars);
    rp_release(alloc, r->actors, r->report.actor_count * sizeof *r->actors);
    rp_release(alloc, r->states, r->state_numbers * sizeof *r->states);
    *r = (rp_wire_report){0};
}

static void put_episode(rp_buf *out, const rp_run_episode *e)
{
    size_t mark = rp_wire_begin(out, 4);

    rp_wire_put_bytes(out, 1, e->env.data, e->env.size);
    rp_wire_put_number(out, 2, e->variable_count);
    rp_wire_put_bytes(out, 3, e->states, e->state_count * e->variable_count * sizeof(float));
    rp_wire_end(out, mark);
}

void rp_wire_write_report(rp_buf *out, const rp_run_report *report)
{
    size_t mark;

    rp_wire_put_bytes(out, 1, report->run.data, report->run.size);
    for (size_t i = 0; i < report->scalar_count; i++) {
        mark = rp_wire_begin(out, 2);
        rp_wire_put_bytes(out, 1, report->scalars[i].name.data, report->scalars[i].name.size);
        rp_wire_put_int(out, 2, report->scalars[i].step);
        rp_wire_put_double(out, 3, report->scalars[i].time_s);
        rp_wire_put_double(out, 4, report->scalars[i].value);
        rp_wire_end(out, mark);
    }
    for (size_t i = 0; i < report->actor_count; i++) {
        mark = rp_wire_begin(out, 3);
        rp_wire_put_bytes(out, 1, report->actors[i].name.data, report->actors[i].name.size);
        rp_wire_put_double(out, 2, report->actors[i].epsilon);
        rp_wire_put_double(out, 3, report->actors[i].episode_return);
        rp_wire_put_int(out, 4, report->actors[i].version);
        rp_wire_put_int(out, 5, report->actors[i].version_lag);
        rp_wire_end(out, mark);
    }
    if (report->episode != NULL) put_episode(out, report->episode);
}

void rp_wire_write_report_response(rp_buf *out, uint64_t dropped)
{
    rp_wire_put_number(out, 1, dropped);
}

rp_status rp_wire_read_report_response(const uint8_t *data, size_t size, uint64_t *dropped,
                                       rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;

    *dropped = 0;
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD)
        if (rp_pb_is(&f, 1, RP_PB_VARINT)) *dropped = f.value;
    if (step == RP_PB_END) return RP_OK;
    return rp_wire_blame_peer(rp_wire_malformed(err, "LogScalarsResponse"), err);
}

rp_status rp_wire_read_runs_request(const uint8_t *data, size_t size, rp_wire_read_runs *out,
                                    rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_status st = RP_OK;
    uint64_t format = 0;
    rp_pb_field f;
    rp_pb_step step;

    *out = (rp_wire_read_runs){.run = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD && st == RP_OK) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES))
            st = rp_wire_read_text(&f, "the name of the run", &out->run, err);
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) format = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) out->after = f.value;
    }
    if (st != RP_OK) return st;
    if (step != RP_PB_END) return rp_wire_malformed(err, "ReadRunsRequest");
    if (format > RP_WIRE_RUN_EVENTS)
        return rp_fail(err, RP_INVALID, "there is no format %llu; the highest is %d",
                       (unsigned long long)format, (int)RP_WIRE_RUN_EVENTS);
    out->format = (rp_wire_run_format)format;
    return RP_OK;
}

void rp_wire_write_runs_request(rp_buf *out, const rp_wire_read_runs *request)
{
    rp_wire_put_bytes(out, 1, request->run.data, request->run.size);
    rp_wire_put_number(out, 2, request->format);
    rp_wire_put_number(out, 3, request->after);
}

size_t rp_wire_begin_runs(rp_buf *out)
{
    return rp_wire_begin(out, 1);
}

void rp_wire_end_runs(rp_buf *out, size_t mark, uint64_t after, bool more)
{
    rp_wire_end(out, mark);
    rp_wire_put_number(out, 2, after);
    rp_wire_put_number(out, 3, more);
}

rp_status rp_wire_read_runs_page(const uint8_t *data, size_t size, rp_wire_runs_page *out,
                                 rp_error *err)
{
    rp_pb_reader reader = rp_pb_open(data, size);
    rp_pb_field f;
    rp_pb_step step;

    *out = (rp_wire_runs_page){.data = {"", 0}};
    while ((step = rp_pb_next(&reader, &f)) == RP_PB_FIELD) {
        if (rp_pb_is(&f, 1, RP_PB_BYTES)) out->data = (rp_string){(const char *)f.data, f.size};
        if (rp_pb_is(&f, 2, RP_PB_VARINT)) out->after = f.value;
        if (rp_pb_is(&f, 3, RP_PB_VARINT)) out->more = f.value != 0;
    }
    if (step == RP_PB_END) return RP_OK;
    return rp_wire_blame_peer(rp_wire_malformed(err, "ReadRunsResponse"), err);
}
