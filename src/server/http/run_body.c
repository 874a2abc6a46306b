/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/run_body.h"

#include <math.h>
#include <string.h>

/* Reads a name into out->names. A name takes no more bytes than its text in the body. */
static bool read_name(rp_body *in, rp_run_body *out, rp_string *name)
{
    rp_ask_name text;

    if (!rp_body_text(in, &text)) return false;
    if (text.size > sizeof out->names - out->names_used)
        return rp_body_fail(in, "names are too long");
    *name = (rp_string){out->names + out->names_used, text.size};
    memcpy(out->names + out->names_used, text.text, text.size);
    out->names_used += text.size;
    return true;
}

/* null is NaN. */
static bool read_number(rp_body *in, double *out)
{
    if (!rp_body_null(in)) return rp_body_number(in, out);
    *out = (double)NAN;
    return true;
}

static bool read_scalar(rp_body *in, rp_run_body *out)
{
    rp_scalar *scalar;
    rp_ask_name key;
    bool ok = true;

    if (out->report.scalar_count == RP_REPORT_SCALARS)
        return rp_body_fail(in, "there are more than 1024 scalars");
    scalar = &out->scalars[out->report.scalar_count++];
    *scalar = (rp_scalar){.name = {"", 0}};
    if (!rp_body_open(in, '{')) return false;
    while (ok && rp_body_next_key(in, &key)) {
        if (strcmp(key.text, "name") == 0)
            ok = read_name(in, out, &scalar->name);
        else if (strcmp(key.text, "step") == 0)
            ok = rp_body_whole(in, &scalar->step);
        else if (strcmp(key.text, "time") == 0)
            ok = rp_body_number(in, &scalar->time_s);
        else if (strcmp(key.text, "value") == 0)
            ok = read_number(in, &scalar->value);
        else
            ok = rp_body_skip(in);
    }
    return ok && in->what == NULL;
}

static bool read_actor(rp_body *in, rp_run_body *out)
{
    rp_run_actor *actor;
    rp_ask_name key;
    bool ok = true;

    if (out->report.actor_count == RP_REPORT_ACTORS)
        return rp_body_fail(in, "there are more than 256 actors");
    actor = &out->actors[out->report.actor_count++];
    *actor =
        (rp_run_actor){.name = {"", 0}, .epsilon = (double)NAN, .episode_return = (double)NAN};
    if (!rp_body_open(in, '{')) return false;
    while (ok && rp_body_next_key(in, &key)) {
        if (strcmp(key.text, "name") == 0)
            ok = read_name(in, out, &actor->name);
        else if (strcmp(key.text, "epsilon") == 0)
            ok = read_number(in, &actor->epsilon);
        else if (strcmp(key.text, "return") == 0)
            ok = read_number(in, &actor->episode_return);
        else if (strcmp(key.text, "version") == 0)
            ok = rp_body_whole(in, &actor->version);
        else if (strcmp(key.text, "version_lag") == 0)
            ok = rp_body_whole(in, &actor->version_lag);
        else
            ok = rp_body_skip(in);
    }
    return ok && in->what == NULL;
}

/* Reads one state. All states of an episode have the same number of variables. */
static bool read_state(rp_body *in, rp_run_body *out, size_t *used)
{
    size_t count = 0;
    double number;

    if (!rp_body_open(in, '[')) return false;
    while (rp_body_next(in)) {
        if (*used == RP_EPISODE_NUMBERS)
            return rp_body_fail(in, "the states have more than 16384 numbers");
        if (!read_number(in, &number)) return false;
        out->states[(*used)++] = (float)number;
        count++;
    }
    if (out->episode.state_count++ == 0) out->episode.variable_count = count;
    if (count != out->episode.variable_count)
        return rp_body_fail(in, "the states have different lengths");
    return in->what == NULL;
}

static bool read_episode(rp_body *in, rp_run_body *out)
{
    rp_ask_name key;
    size_t used = 0;
    bool ok = true;

    out->episode = (rp_run_episode){.env = {"", 0}, .states = out->states};
    out->report.episode = &out->episode;
    if (!rp_body_open(in, '{')) return false;
    while (ok && rp_body_next_key(in, &key)) {
        if (strcmp(key.text, "env") == 0)
            ok = read_name(in, out, &out->episode.env);
        else if (strcmp(key.text, "states") == 0 && used == 0) {
            ok = rp_body_open(in, '[');
            while (ok && rp_body_next(in)) ok = read_state(in, out, &used);
        } else
            ok = rp_body_skip(in);
    }
    return ok && in->what == NULL;
}

bool rp_run_body_read(rp_body *in, rp_string run, rp_run_body *out)
{
    rp_ask_name key;
    bool ok;

    out->report = (rp_run_report){.run = run, .scalars = out->scalars, .actors = out->actors};
    out->names_used = 0;
    ok = rp_body_open(in, '{');
    while (ok && rp_body_next_key(in, &key)) {
        if (strcmp(key.text, "scalars") == 0) {
            ok = rp_body_open(in, '[');
            while (ok && rp_body_next(in)) ok = read_scalar(in, out);
        } else if (strcmp(key.text, "actors") == 0) {
            ok = rp_body_open(in, '[');
            while (ok && rp_body_next(in)) ok = read_actor(in, out);
        } else if (strcmp(key.text, "episode") == 0 && out->report.episode == NULL) {
            ok = read_episode(in, out);
        } else {
            ok = rp_body_skip(in);
        }
    }
    return rp_body_end(in) && ok;
}
