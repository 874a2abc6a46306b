/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of requests that change something. */
#include <stdio.h>

#include "server/http/json_out.h"
#include "server/http/pages.h"

#define UNBOUNDED 1e300 /* as the client's limit: a larger bound is none */

static int http_status_of(rp_status st)
{
    switch (st) {
    case RP_INVALID: return 400;
    case RP_DENIED: return 403;
    case RP_NOT_FOUND: return 404;
    case RP_CANCELLED:
    case RP_PRECONDITION: return 409;
    case RP_NO_RESOURCE: return 429;
    default: return 503;
    }
}

/* A larger max_size has no effect on inserts: max_diff makes them wait before the table has
 * that many items. */
static bool is_full_before(const rp_wire_alter_table *a, const rp_table_info *t)
{
    const rp_limiter_options *l = &t->limiter;
    bool is_queue = l->samples_per_insert == 1 && l->min_diff == 0 && t->max_times_sampled == 1;

    if (!a->has_max_size || a->limiter.has_max_diff) return false;
    if ((double)t->max_size <= l->max_diff) return false;
    return is_queue || (t->inserts - t->deletes >= l->min_size &&
                        t->limiter_diff + l->samples_per_insert > l->max_diff);
}

/* The part of an alteration that has no effect on the limiter as it is now, and what would have
 * one. False: there is no such part. */
static bool warning(const rp_page_host *host, const rp_action *action, char *out, size_t size)
{
    const rp_wire_alter_table *a = &action->alter;
    rp_store *store = rp_page_view(host).store;
    rp_table *table = store != NULL ? rp_store_find_table(store, action->table) : NULL;
    rp_table_info info;
    bool has_min, has_max;

    if (table == NULL) return false;
    rp_table_get_info(table, &info);
    rp_table_unref(table);
    has_min = info.limiter.min_diff > -UNBOUNDED;
    has_max = info.limiter.max_diff < UNBOUNDED;
    if (!has_min && !has_max && (a->limiter.has_samples_per_insert || a->recenter))
        (void)snprintf(out, size,
                       "%s has no effect: the limiter has no bounds; to keep %g sample%s an "
                       "insert, give min_diff and max_diff, with recenter",
                       a->limiter.has_samples_per_insert ? "samples_per_insert" : "recenter",
                       info.limiter.samples_per_insert,
                       info.limiter.samples_per_insert == 1 ? "" : "s");
    else if (a->recenter && (!has_min || !has_max))
        (void)snprintf(out, size,
                       "recenter has no effect: the limiter needs min_diff and "
                       "max_diff for a middle");
    else if (is_full_before(a, &info))
        (void)snprintf(out, size,
                       "max_size %lld has no effect on inserts, which wait because of max_diff "
                       "%g; to change that, give max_diff",
                       (long long)info.max_size, info.limiter.max_diff);
    else
        return false;
    return true;
}

/* Makes the change, and responds with a sentence. `done` begins it: "paused". */
static int act(const rp_page_host *host, const rp_page_ask *ask, rp_action *action,
               const char *done, rp_page_response *answer)
{
    char sentence[512];
    rp_error err = {.code = RP_OK};
    rp_status st;

    action->table = (rp_string){ask->names[0].text, ask->names[0].size};
    if (host->act == NULL) return rp_page_fail(answer, 503, "this server cannot be changed");
    st = host->act(host->ctx, action, &err);
    if (st == RP_NOT_FOUND && rp_page_view(host).store != NULL)
        return rp_page_no_table(rp_page_view(host).store, ask->names[0].text, answer);
    if (st != RP_OK) return rp_page_fail(answer, http_status_of(st), "%s", err.text);
    if (action->kind == RP_ACTION_CHECKPOINT)
        (void)snprintf(sentence, sizeof sentence, "%s",
                       action->is_late ? "a checkpoint is being written" : done);
    else
        (void)snprintf(sentence, sizeof sentence, "table '%.255s' %s%s", ask->names[0].text,
                       done, action->is_late ? "; the journal has not written it yet" : "");
    rp_buf_text(&answer->body, "{");
    rp_out_text(&answer->body, "done", sentence);
    if (action->kind == RP_ACTION_ALTER && warning(host, action, sentence, sizeof sentence))
        rp_out_text(&answer->body, "warning", sentence);
    rp_buf_text(&answer->body, "}\n");
    return 200;
}

static const char *sides_text(uint32_t sides)
{
    if (sides == RP_SIDE_INSERTS) return "inserts";
    return sides == RP_SIDE_SAMPLES ? "samples" : "inserts and samples";
}

static int pause_or_resume(const rp_page_host *host, const rp_page_ask *ask, bool is_pause,
                           rp_page_response *answer)
{
    rp_action action = {.kind = is_pause ? RP_ACTION_PAUSE : RP_ACTION_RESUME};
    char done[64];
    rp_error err;

    if (rp_action_read_sides(ask->body.data, ask->body.size, &action, &err) != RP_OK)
        return rp_page_fail(answer, 400, "%s", err.text);
    (void)snprintf(done, sizeof done, "%s: %s", is_pause ? "is paused" : "is resumed",
                   sides_text(action.sides));
    return act(host, ask, &action, done, answer);
}

int rp_page_pause(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    return pause_or_resume(host, ask, true, answer);
}

int rp_page_resume(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    return pause_or_resume(host, ask, false, answer);
}

int rp_page_reset(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_action action = {.kind = RP_ACTION_RESET};

    return act(host, ask, &action, "is reset: it has no items", answer);
}

int rp_page_alter(const rp_page_host *host, const rp_page_ask *ask, rp_page_response *answer)
{
    rp_action action = {.kind = RP_ACTION_ALTER};
    rp_error err;

    if (rp_action_read_alter(ask->body.data, ask->body.size, &action, &err) != RP_OK)
        return rp_page_fail(answer, 400, "%s", err.text);
    return act(host, ask, &action, "is altered", answer);
}

int rp_page_checkpoint(const rp_page_host *host, const rp_page_ask *ask,
                       rp_page_response *answer)
{
    rp_action action = {.kind = RP_ACTION_CHECKPOINT};

    return act(host, ask, &action, "a checkpoint is written", answer);
}
