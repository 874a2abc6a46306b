/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the learner: updates; and now and then parameters published, the excess of the
 * replay removed, a snapshot.
 *
 * The half that learns lives as long as the loop. A life is the time with one replay: when a
 * server that lost its tables is back, the learner goes on with the parameters that it has. A
 * learner that was restarted goes on with the snapshot in the replay; if that is of no use,
 * with the parameters there; and if there are none, from the beginning.
 *
 * Others may write to the tables. The learner leaves bad items out (agents/replay.h), says so,
 * and publishes its parameters again when the table has others.
 *
 * Invariant:
 *   N1  saved.steps counts each item once: the inserts of a shard above those seen are new; if
 *       there are fewer, its table is another one. saved.inserts is the sum of those seen. */
#include <assert.h>
#include <string.h>

#include "apex/part.h"
#include "error/fail.h"
#include "reprise/rl/snapshot.h"

enum {
    LAST_SAVE_MS = 500,
    SHOW_MS = 30000, /* how long trouble that is over is shown */
};
static const int64_t MOST_STEPS = INT64_C(1) << 53; /* of a snapshot */

/* Saved as it is, beside the state of the learner. */
typedef struct learner_saved {
    int64_t steps, inserts; /* N1 */
} learner_saved;

typedef struct learner_life {
    rp_part *part;
    rp_learner *learner;
    rp_variable_source *source;
    learner_saved saved;
    int64_t *seen; /* N1: inserts of each shard, -1: not seen yet; then those of a look */
    size_t shards;
    int64_t updates;      /* of all threads of the learner, at the last look */
    int64_t version;      /* published last */
    int64_t tended_ns;    /* when the parameters in the replay were looked at */
    int64_t bad_items;    /* that the part has spoken of */
    int64_t said_ns;      /* when trouble that is over was said; 0: none is shown */
    int64_t threads;      /* that were asked for; 0: as the settings have it */
    bool has_no_snapshot; /* and says so */
    bool is_restored;
} learner_life;

static size_t get_state(learner_life *l, rp_state_part parts[RP_SNAPSHOT_MAX_PARTS])
{
    size_t count = l->learner->type->get_state(l->learner, parts);

    parts[count++] = (rp_state_part){"apex", &l->saved, sizeof l->saved};
    assert(count <= RP_SNAPSHOT_MAX_PARTS);
    return count;
}

static rp_status make_learner(learner_life *l, rp_error *err)
{
    rp_pcg64 rng;
    const rp_apex_making making = rp_part_making(l->part, &rng);
    rp_status st;

    rp_learner_free(l->learner);
    l->learner = NULL;
    l->threads = 0;
    rp_pcg64_seed(&rng, rp_apex_seed(l->part->apex, RP_SEED_LEARNER));
    st = l->part->apex->options.algorithm->new_learner(&making, &l->learner, err);
    assert(st != RP_OK || l->learner->parameter_count == l->part->apex->parameter_count);
    return st;
}

/* Takes a snapshot that has arrived. RP_CORRUPT. */
static rp_status take_snapshot(learner_life *l, rp_error *err)
{
    const learner_saved *s = &l->saved;

    if (s->steps < 0 || s->steps > MOST_STEPS || s->inserts < 0 || s->inserts > MOST_STEPS)
        return rp_rl_fail(err, RP_CORRUPT, "snapshot: %lld steps are impossible",
                          (long long)s->steps);
    return l->learner->type->restored(l->learner, err);
}

/* Takes the parameters that an earlier learner has published, if the learner keeps its own in
 * parts with these names. `*found`: there are some. RP_CORRUPT: they are of no use. */
static rp_status take_parameters(learner_life *l, bool *found, rp_error *err)
{
    rp_apex *a = l->part->apex;
    const rp_variable_options options = {
        .client = a->options.home, .table = RP_APEX_VARIABLES, .count = a->parameter_count};
    const size_t bytes = a->parameter_count * sizeof(rp_real);
    rp_real *params = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];
    size_t count = get_state(l, parts);
    rp_variable_client *client = NULL;
    rp_variables got = {0};
    rp_status st;

    if (params == NULL) return rp_rl_fail_memory(err, bytes);
    st = rp_variable_client_new(&a->alloc, &options, &client, err);
    if (st == RP_OK)
        st = rp_variable_client_update(client, params, rp_part_wait(l->part, RP_CALL_MS), &got,
                                       err);
    *found = st == RP_OK && got.changed;
    for (size_t i = 0; *found && i < count; i++)
        if (parts[i].size == bytes &&
            (strcmp(parts[i].name, "params") == 0 || strcmp(parts[i].name, "target") == 0))
            memcpy(parts[i].bytes, params, bytes);
    rp_variable_client_free(client);
    (void)a->alloc.resize(a->alloc.ctx, params, bytes, 0);
    return st;
}

/* Goes on without the snapshot, which is of no use for the reason in `why`. If the parameters
 * are of no use either, they are those of other settings: then *err is *why. */
static rp_status restore_parameters(learner_life *l, rp_status was, const rp_error *why,
                                    rp_error *err)
{
    bool found = false;
    rp_status st;

    l->saved = (learner_saved){0};
    st = make_learner(l, err); /* parts of the snapshot may have been written to it */
    if (st == RP_OK) st = take_parameters(l, &found, err);
    if (st == RP_CORRUPT && was == RP_INVALID) {
        if (err != NULL) *err = *why;
        return was;
    }
    if (st != RP_OK && st != RP_CORRUPT) return st;
    l->said_ns = rp_now_ns();
    rp_part_trouble(l->part, "begins %s: %.100s",
                    found ? "with the parameters in the replay" : "anew", why->text);
    return RP_OK;
}

/* Takes the snapshot of an earlier learner, if there is one. */
static rp_status restore(learner_life *l, rp_error *err)
{
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];
    rp_error why = {0};
    rp_status st;

    if (l->is_restored) return RP_OK;
    st = rp_snapshot_get(&l->part->apex->alloc, l->part->apex->options.home, parts,
                         get_state(l, parts), rp_part_wait(l->part, RP_CALL_MS), &why);
    if (st == RP_OK) st = take_snapshot(l, &why);
    if (st == RP_INVALID || st == RP_CORRUPT)
        st = restore_parameters(l, st, &why, err);
    else if (st != RP_OK && err != NULL)
        *err = why;
    if (st != RP_OK && st != RP_NOT_FOUND) return st;
    l->is_restored = true;
    return RP_OK;
}

static rp_status save(learner_life *l, rp_wait wait, rp_error *err)
{
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];

    return rp_snapshot_put(&l->part->apex->alloc, l->part->apex->options.home, parts,
                           get_state(l, parts), wait, err);
}

static rp_status publish(learner_life *l, rp_error *err)
{
    const rp_real *params = l->learner->type->parameters(l->learner);
    rp_status st =
        rp_variable_source_publish(l->source, params, l->saved.steps, &l->version, err);

    if (st == RP_OK) rp_part_keep(l->part, params, false);
    return st;
}

/* Publishes again if the table has other parameters than those of this learner: actors that
 * have none cannot begin with them. */
static rp_status tend(void *ctx, rp_error *err)
{
    learner_life *l = ctx;
    int64_t now_ns = rp_now_ns();
    bool latest = true;
    rp_status st;

    if (now_ns - l->tended_ns < l->part->apex->options.tend_ms * 1000000) return RP_OK;
    l->tended_ns = now_ns;
    st = rp_variable_source_is_latest(l->source, &latest, err);
    if (rp_part_is_away(st)) return RP_OK; /* the next call to the replay says so */
    if (st != RP_OK || latest) return st;
    l->said_ns = now_ns;
    rp_part_trouble(l->part, "others have written to table '%s': published again",
                    RP_APEX_VARIABLES);
    return publish(l, err);
}

/* Says that items were left out; or no longer says what was wrong a while ago. */
static void say_bad(learner_life *l, const rp_agent_metrics *m)
{
    int64_t now_ns = rp_now_ns();

    if (l->said_ns != 0 && now_ns - l->said_ns > SHOW_MS * INT64_C(1000000)) {
        if (!l->has_no_snapshot) rp_part_trouble(l->part, "%s", "");
        l->said_ns = 0;
    }
    if (m->bad_items == l->bad_items) return;
    l->bad_items = m->bad_items;
    l->said_ns = now_ns;
    rp_part_trouble(l->part, "left out bad items: %lld, the latest: %s",
                    (long long)m->bad_items, m->bad_item);
}

/* The items of a look that are new to a learner that has not seen any shard. saved.inserts is
 * that of the snapshot, or 0. */
static int64_t count_first(const learner_life *l, const rp_replay_view *view)
{
    bool is_whole = true;

    for (size_t i = 0; i < l->shards; i++) is_whole = is_whole && view->inserts_of[i] >= 0;
    if (view->inserts >= l->saved.inserts) return view->inserts - l->saved.inserts;
    return is_whole ? view->inserts : 0; /* the tables are others; or a shard is away */
}

/* Counts the items of a look that are new. */
static void count_new(learner_life *l, const rp_replay_view *view)
{
    int64_t more = 0, sum = 0;
    bool is_first = true;

    assert(view->inserts_of != NULL);
    for (size_t i = 0; i < l->shards; i++) is_first = is_first && l->seen[i] < 0;
    if (is_first) more = count_first(l, view);
    for (size_t i = 0; i < l->shards; i++) {
        int64_t now = view->inserts_of[i], *seen = &l->seen[i];

        if (now >= 0 && *seen >= 0) more += now >= *seen ? now - *seen : now;
        if (now >= 0) *seen = now;
        if (*seen > 0) sum += *seen;
    }
    l->saved.steps += more;
    l->saved.inserts = sum; /* N1 */
    assert(more >= 0 && l->saved.steps >= 0);
}

/* Looks at the replay: counts what is new, and removes what is too much. */
static rp_status inspect(learner_life *l, rp_error *err)
{
    rp_replay_view view = {.inserts_of = l->seen + l->shards};
    rp_agent_metrics metrics;
    rp_apex_part *state;
    rp_status st = rp_apex_pace(l->part, &view, 0, err);

    if (st != RP_OK) return st;
    count_new(l, &view);
    l->learner->type->get_metrics(l->learner, &metrics);
    say_bad(l, &metrics);
    state = rp_part_lock(l->part);
    state->metrics = metrics;
    state->metrics.inserts = view.inserts;
    state->metrics.samples = view.samples;
    state->metrics.item_size = view.size;
    state->learner_steps = l->saved.steps;
    state->version = l->version;
    state->shards_away = 0;
    for (size_t i = 0; i < l->shards; i++) state->shards_away += view.inserts_of[i] < 0;
    rp_part_unlock(l->part);
    return rp_apex_trim(l->part, &view, err);
}

/* Takes the number of threads that is wanted now. */
static void take_threads(learner_life *l)
{
    int64_t wanted = atomic_load_explicit(&l->part->apex->learners, memory_order_relaxed);
    rp_error why = {0};
    rp_status st = RP_PRECONDITION;

    if (wanted == l->threads || wanted == 0) return;
    l->threads = wanted;
    if (l->learner->type->set_threads != NULL)
        st = l->learner->type->set_threads(l->learner, (size_t)wanted, &why);
    if (st == RP_OK) {
        rp_part_lock(l->part)->threads = wanted;
        rp_part_unlock(l->part);
        return;
    }
    l->said_ns = rp_now_ns();
    rp_part_trouble(l->part, "keeps its number of threads: %.120s",
                    why.text[0] != '\0' ? why.text : "it has one");
}

static rp_status update(learner_life *l, rp_error *err)
{
    rp_status st;

    take_threads(l);
    st = l->learner->type->update(l->learner, rp_wait_none(), err);

    if (st != RP_DEADLINE) return st;
    rp_part_waits(l->part, "the actors");
    while (st == RP_DEADLINE) {
        st = l->learner->type->update(l->learner, rp_part_wait(l->part, RP_SLICE_MS), err);
        if (st != RP_DEADLINE) break;
        st = tend(l, err);
        if (st == RP_OK) st = rp_apex_explain(l->part, err);
    }
    rp_part_works(l->part);
    return st;
}

/* Saves from time to time. A replay that has no room for a snapshot does not end the training:
 * the next attempt may succeed. */
static rp_status save_or_say(learner_life *l, rp_error *err)
{
    rp_status st = save(l, rp_part_wait(l->part, RP_CALL_MS), err);
    bool is_full = st == RP_NO_RESOURCE;

    if (is_full)
        rp_part_trouble(l->part, "no snapshot: %.140s", err != NULL ? err->text : "no room");
    else if (l->has_no_snapshot)
        rp_part_trouble(l->part, "%s", "");
    l->has_no_snapshot = is_full;
    return is_full ? RP_OK : st;
}

/* Asynchronous learners make several updates in one call. */
static int64_t count_updates(const learner_life *l, int64_t otherwise)
{
    rp_learner *learner = l->learner;

    return learner->type->updates != NULL ? learner->type->updates(learner) : otherwise;
}

static bool is_due(int64_t before, int64_t now, int64_t every)
{
    return now / every > before / every;
}

/* What is due after an update. */
static rp_status after_update(learner_life *l, rp_error *err)
{
    const rp_apex_options *o = &l->part->apex->options;
    const int64_t was = l->updates, now = count_updates(l, was + 1);
    rp_status st = RP_OK;

    assert(o->trim_every > 0 && o->publish_every > 0 && o->save_every > 0);
    l->updates = now;
    if (is_due(was, now, o->trim_every)) st = inspect(l, err);
    if (st == RP_OK && is_due(was, now, o->trim_every)) st = tend(l, err);
    if (st == RP_OK && is_due(was, now, o->publish_every)) st = publish(l, err);
    if (st == RP_OK && is_due(was, now, o->save_every)) st = save_or_say(l, err);
    return st;
}

static bool is_over(const learner_life *l)
{
    int64_t most = l->part->apex->options.max_steps;

    return rp_part_is_stopping(l->part) || (most > 0 && l->saved.steps >= most);
}

static rp_status live(void *ctx, rp_error *err)
{
    learner_life *l = ctx;
    rp_apex *a = l->part->apex;
    const rp_variable_options variables = {.client = a->options.home,
                                           .table = RP_APEX_VARIABLES,
                                           .count = a->parameter_count,
                                           .timeout_ms = RP_CALL_MS,
                                           .cancel = a->cancel};
    rp_status st = rp_apex_make_table(l->part, err);

    if (st == RP_OK) st = restore(l, err);
    if (st == RP_OK) st = rp_variable_source_new(&a->alloc, &variables, &l->source, err);
    if (st == RP_OK) st = publish(l, err);
    l->part->tend = st == RP_OK ? tend : NULL;
    l->part->tend_ctx = l;
    if (st == RP_OK) st = inspect(l, err);
    if (st == RP_OK) l->updates = count_updates(l, l->updates);
    if (st == RP_OK) rp_part_works(l->part);
    while (st == RP_OK && !is_over(l)) {
        st = update(l, err);
        if (st == RP_OK) st = after_update(l, err);
    }
    if (l->is_restored && (st == RP_OK || rp_part_is_stopping(l->part)))
        st = save(l, rp_wait_ms(LAST_SAVE_MS), err);
    l->part->tend = NULL;
    rp_variable_source_free(l->source);
    l->source = NULL;
    return st;
}

rp_status rp_apex_learner_loop(rp_part *p, rp_error *err)
{
    rp_apex *a = p->apex;
    learner_life l = {.part = p, .shards = rp_client_shard_count(a->options.client)};
    const size_t bytes = 2 * l.shards * sizeof *l.seen;
    rp_status st;

    l.seen = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
    if (l.seen == NULL) return rp_rl_fail_memory(err, bytes);
    for (size_t i = 0; i < 2 * l.shards; i++) l.seen[i] = -1;
    st = make_learner(&l, err);
    if (st == RP_OK) st = rp_part_outlive(p, live, &l, err);
    rp_learner_free(l.learner);
    (void)a->alloc.resize(a->alloc.ctx, l.seen, bytes, 0);
    return st;
}
