/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of requests that change something. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Gets the state of the action's table. False: there is no such table. */
static bool table_info(const rp_page_host *host, const rp_action *action, rp_table_info *out)
{
    rp_store *store = rp_page_view(host).store;
    rp_table *table = store != NULL ? rp_store_find_table(store, action->table) : NULL;

    if (table == NULL) return false;
    rp_table_get_info(table, out);
    rp_table_unref(table);
    return true;
}

/* Returns true if the table had all values of the alteration before. */
static bool is_same(const rp_wire_alter_table *a, const rp_table_info *before)
{
    const rp_limiter_options *is = &before->limiter, *l = &a->limiter.value;
    bool has_middle = is->min_diff > -UNBOUNDED && is->max_diff < UNBOUNDED;

    if (a->recenter && has_middle) return false;
    return (!a->has_max_size || a->max_size == before->max_size) &&
           (!a->has_max_bytes || a->max_bytes == before->max_bytes) &&
           (!a->has_max_times_sampled || a->max_times_sampled == before->max_times_sampled) &&
           (!a->limiter.has_samples_per_insert ||
            l->samples_per_insert == is->samples_per_insert) &&
           (!a->limiter.has_min_size || l->min_size == is->min_size) &&
           (!a->limiter.has_min_diff || l->min_diff == is->min_diff) &&
           (!a->limiter.has_max_diff || l->max_diff == is->max_diff);
}

/* Adds a warning after the others. */
static void warn(char *out, size_t size, const char *format, ...) RP_PRINTF(3, 4);

static void warn(char *out, size_t size, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;

    if (used > 0) used += (size_t)snprintf(out + used, size - used, "; ");
    if (used >= size) return;
    va_start(args, format);
    (void)vsnprintf(out + used, size - used, format, args);
    va_end(args);
}

/* Writes the part of an alteration that has no effect on the limiter as it is now, and what
 * would have one. */
static void warn_without_effect(const rp_wire_alter_table *a, const rp_table_info *now,
                                char *out, size_t size)
{
    const rp_limiter_options *l = &now->limiter;
    bool has_min = l->min_diff > -UNBOUNDED, has_max = l->max_diff < UNBOUNDED;

    if (!has_min && !has_max && (a->limiter.has_samples_per_insert || a->recenter))
        warn(out, size,
             "%s has no effect: the limiter has no bounds; to keep %g sample%s an "
             "insert, give min_diff and max_diff, with recenter",
             a->limiter.has_samples_per_insert ? "samples_per_insert" : "recenter",
             l->samples_per_insert, l->samples_per_insert == 1 ? "" : "s");
    else if (a->recenter && (!has_min || !has_max))
        warn(out, size,
             "recenter has no effect: the limiter needs min_diff and max_diff for a middle");
    else if (is_full_before(a, now))
        warn(out, size,
             "max_size %lld has no effect on inserts, which wait because of max_diff "
             "%g; to change that, give max_diff",
             (long long)now->max_size, l->max_diff);
}

/* Writes what the caller possibly did not want: the same cases as `reprise tables alter` warns
 * of. "": nothing. */
static void warnings(const rp_action *action, const rp_table_info *before,
                     const rp_table_info *now, char *out, size_t size)
{
    uint64_t item = before->size > 0 ? before->bytes / (uint64_t)before->size : 0;

    out[0] = '\0';
    warn_without_effect(&action->alter, now, out, size);
    if (now->max_bytes > 0 && item > now->max_bytes)
        warn(out, size,
             "max_bytes %llu is less than an item takes, %llu bytes: the table keeps none",
             (unsigned long long)now->max_bytes, (unsigned long long)item);
    if (!now->soft_limit && now->max_size < now->limiter.min_size)
        warn(out, size,
             "samples will wait for ever: max_size %lld is below min_size %lld; raise max_size "
             "or lower min_size",
             (long long)now->max_size, (long long)now->limiter.min_size);
}

/* Adds to the response what the alteration has changed in items, and warnings. */
static void report_alteration(const rp_page_host *host, const rp_action *action,
                              const rp_table_info *before, rp_buf *out)
{
    char text[768];
    rp_table_info now;

    if (!table_info(host, action, &now)) return;
    rp_out_count(out, "evicted",
                 now.evictions > before->evictions
                     ? (uint64_t)now.evictions - (uint64_t)before->evictions
                     : 0);
    warnings(action, before, &now, text, sizeof text);
    if (text[0] != '\0') rp_out_text(out, "warning", text);
}

/* Makes the change, and responds with a sentence. `done` begins it: "paused". */
static int act(const rp_page_host *host, const rp_page_ask *ask, rp_action *action,
               const char *done, rp_page_response *answer)
{
    char sentence[512];
    rp_error err = {.code = RP_OK};
    rp_table_info before;
    bool is_altered = false;
    rp_status st;

    action->table = (rp_string){ask->names[0].text, ask->names[0].size};
    if (host->act == NULL) return rp_page_fail(answer, 503, "this server cannot be changed");
    if (action->kind == RP_ACTION_ALTER) is_altered = table_info(host, action, &before);
    st = host->act(host->ctx, action, &err);
    if (st == RP_NOT_FOUND && rp_page_view(host).store != NULL)
        return rp_page_no_table(rp_page_view(host).store, ask->names[0].text, answer);
    if (st != RP_OK) return rp_page_fail(answer, http_status_of(st), "%s", err.text);
    if (action->kind == RP_ACTION_CHECKPOINT)
        (void)snprintf(sentence, sizeof sentence, "%s",
                       action->is_late ? "a checkpoint is being written" : done);
    else if (is_altered && is_same(&action->alter, &before))
        (void)snprintf(sentence, sizeof sentence,
                       "table '%.255s' was so already: nothing has changed",
                       ask->names[0].text);
    else
        (void)snprintf(sentence, sizeof sentence, "table '%.255s' %s%s", ask->names[0].text,
                       done, action->is_late ? "; the journal has not written it yet" : "");
    rp_buf_text(&answer->body, "{");
    rp_out_text(&answer->body, "done", sentence);
    if (is_altered) report_alteration(host, action, &before, &answer->body);
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
