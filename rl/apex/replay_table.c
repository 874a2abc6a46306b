/* SPDX-License-Identifier: Apache-2.0 */
/* The table "replay" as all parts see it.
 *
 * Its limit is soft, as in the paper: it may grow by a fifth beyond the capacity of the
 * settings before it evicts item by item. The learner removes the excess in bulk, by lowering
 * max_size to the capacity and raising it again.
 *
 * Of several shards, each has a rate limiter of its own. Items go to the shards in turns and
 * samples come from them by chance, so that after a while one shard would wait for inserts and
 * another for samples, and the program would stop. Hence the limiters of shards only wait for
 * min_size items. The learner and the actors themselves look at all shards from time to time,
 * and wait when they are ahead:
 *
 *   diff = samples_per_insert * inserts - samples, over all shards that can be reached
 *
 *   the learner waits while diff < samples_per_insert * min_size / 2
 *   actors wait while      diff > max_diff, as a single table would, and no shard has fewer
 *                          items than its limiter's min_size
 *
 * max_diff >= samples_per_insert * min_size, so that never both wait for diff. A shard that
 * came later than the others has fewer items: the learner waits for those that its limiter
 * wants, so actors must not wait meanwhile. */
#include <assert.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "apex/part.h"
#include "error/fail.h"
#include "error/unfit.h"

enum {
    SLACK_SHARE = 5, /* the room beyond the soft limit is a fifth of it */
    CATCH_UP_MS = 5, /* between looks of a part that is ahead */
};

/* The options of the table on one shard. The caller drops the signature. */
static rp_status describe(const rp_part *p, rp_table_options *out, rp_error *err)
{
    const rp_apex_making making = rp_part_table_making(p);
    int64_t shards = (int64_t)rp_client_shard_count(p->apex->options.client);
    rp_status st = p->apex->options.algorithm->table(&making, out, err);

    if (st != RP_OK) return st;
    assert(shards >= 1);
    out->max_size = (out->max_size + shards - 1) / shards;
    out->limiter.min_size = (out->limiter.min_size + shards - 1) / shards;
    if (shards > 1) out->limiter.min_diff = -DBL_MAX;
    if (shards > 1) out->limiter.max_diff = DBL_MAX;
    return RP_OK;
}

static int64_t hard_limit(int64_t soft)
{
    assert(soft >= 1);
    return soft + soft / SLACK_SHARE + 1;
}

/* Checks that the table is of this program: rp_check_tables(). */
static rp_status check_own(const rp_part *p, const rp_signature *signature, bool *is_own,
                           rp_error *err)
{
    const rp_apex_options *o = &p->apex->options;
    char agent[64];

    (void)snprintf(agent, sizeof agent, "apex-%.20s with %.30s", o->algorithm->name,
                   o->env_class->name);
    return rp_check_tables(o->client, RP_APEX_REPLAY, signature, agent,
                           rp_part_wait(p, RP_CALL_MS), is_own, err);
}

rp_status rp_apex_make_table(rp_part *p, rp_error *err)
{
    bool is_own = false;
    rp_table_options table;
    rp_status st = describe(p, &table, err);

    if (st != RP_OK) return st;
    table.max_size = hard_limit(table.max_size);
    st = rp_client_create_table(p->apex->options.client, &table, rp_part_wait(p, RP_CALL_MS),
                                err);
    if (st == RP_EXISTS) st = check_own(p, table.signature, &is_own, err);
    rp_signature_unref(table.signature);
    return st;
}

rp_status rp_apex_look(rp_part *p, rp_replay_view *out, rp_error *err)
{
    rp_client_tables *list = NULL;
    rp_status st =
        rp_client_get_tables(p->apex->options.client, rp_part_wait(p, RP_CALL_MS), &list, err);
    size_t found = 0, shards = rp_client_shard_count(p->apex->options.client);

    *out = (rp_replay_view){.inserts_of = out->inserts_of};
    if (st != RP_OK) return st;
    for (size_t i = 0; out->inserts_of != NULL && i < shards; i++) out->inserts_of[i] = -1;
    for (size_t i = 0; i < list->count; i++) {
        const rp_table_info *info = &list->tables[i].info;

        if (strcmp(info->name, RP_APEX_REPLAY) != 0) continue;
        assert(list->tables[i].shard < shards);
        if (out->inserts_of != NULL) out->inserts_of[list->tables[i].shard] = info->inserts;
        out->size += info->size;
        out->max_size += info->max_size;
        out->inserts += info->inserts;
        out->samples += info->samples;
        out->min_size += info->limiter.min_size;
        out->is_short |= info->size < info->limiter.min_size;
        out->samples_per_insert = info->limiter.samples_per_insert;
        out->paused |= info->paused;
        found++;
    }
    rp_client_tables_free(list);
    if (found == 0)
        return rp_rl_fail(err, RP_NOT_FOUND, "the server has no table '%s'", RP_APEX_REPLAY);
    return RP_OK;
}

rp_status rp_apex_max_diff(const rp_part *p, double *out, rp_error *err)
{
    const rp_apex_making making = rp_part_table_making(p);
    rp_table_options table;
    double least;
    rp_status st = p->apex->options.algorithm->table(&making, &table, err);

    if (st != RP_OK) return st;
    rp_signature_unref(table.signature);
    least = table.limiter.samples_per_insert * (double)table.limiter.min_size;
    *out = table.limiter.max_diff > least ? table.limiter.max_diff : least;
    return RP_OK;
}

bool rp_apex_is_ahead(const rp_part *p, const rp_replay_view *view, double max_diff)
{
    double diff = view->samples_per_insert * (double)view->inserts - (double)view->samples;

    if (rp_client_shard_count(p->apex->options.client) == 1) return false; /* the limiter */
    if (p->role == RP_APEX_ACTOR) return diff > max_diff && !view->is_short;
    return diff < view->samples_per_insert * (double)view->min_size / 2;
}

/* The parts that hold this one up. */
static const char *others_of(const rp_part *p)
{
    return p->role == RP_APEX_ACTOR ? "the learner" : "the actors";
}

rp_status rp_apex_pace(rp_part *p, rp_replay_view *view, double max_diff, rp_error *err)
{
    rp_status st = rp_apex_look(p, view, err);

    if (st != RP_OK || !rp_apex_is_ahead(p, view, max_diff)) return st;
    while (st == RP_OK && rp_apex_is_ahead(p, view, max_diff) && !rp_part_is_stopping(p)) {
        rp_part_waits(p, "%s: %lld items for %lld samples", others_of(p),
                      (long long)view->inserts, (long long)view->samples);
        rp_part_sleep(p, CATCH_UP_MS);
        if (p->tend != NULL) st = p->tend(p->tend_ctx, err);
        if (st == RP_OK) st = rp_apex_look(p, view, err);
    }
    rp_part_works(p);
    return st;
}

rp_status rp_apex_explain(rp_part *p, rp_error *err)
{
    const char *others = others_of(p);
    rp_replay_view view = {0};
    rp_status st = rp_apex_look(p, &view, err);

    if (st == RP_NOT_FOUND || st == RP_CANCELLED) return st;
    if (st != RP_OK) {
        rp_part_waits(p, "the replay: %s", err->text);
        return rp_part_is_patient(p) ? RP_DEADLINE : RP_UNAVAILABLE;
    }
    p->worked_ns = rp_now_ns(); /* the replay is there: others are slow */
    if (view.paused != 0) /* by an administrator: the other parts can do nothing about it */
        rp_part_waits(p, "an administrator, who has paused the %s of table '%s'",
                      view.paused == RP_SIDE_INSERTS   ? "inserts"
                      : view.paused == RP_SIDE_SAMPLES ? "samples"
                                                       : "inserts and samples",
                      RP_APEX_REPLAY);
    else if (p->role == RP_APEX_LEARNER && view.size < view.min_size)
        rp_part_waits(p, "%s: %lld of the first %lld items", others, (long long)view.size,
                      (long long)view.min_size);
    else
        rp_part_waits(p, "%s: %lld items for %lld samples", others, (long long)view.inserts,
                      (long long)view.samples);
    return RP_DEADLINE;
}

rp_status rp_apex_trim(rp_part *p, const rp_replay_view *view, rp_error *err)
{
    rp_table_options table;
    rp_status st = describe(p, &table, err);
    int64_t soft;
    bool is_own = false;

    if (st != RP_OK) return st;
    soft = table.max_size;
    if (view->size > soft * (int64_t)rp_client_shard_count(p->apex->options.client))
        st = check_own(p, table.signature, &is_own, err);
    rp_signature_unref(table.signature);
    for (int i = 0; st == RP_OK && is_own && i < 2; i++) {
        const rp_table_alteration change = {.which = RP_ALTER_MAX_SIZE,
                                            .max_size = i == 0 ? soft : hard_limit(soft)};

        st = rp_client_alter_table(p->apex->options.client, RP_APEX_REPLAY, &change,
                                   rp_part_wait(p, RP_CALL_MS), err);
    }
    return st;
}
