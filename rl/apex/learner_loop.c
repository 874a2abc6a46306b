/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of the learner: updates; and now and then parameters published, the excess of the
 * replay removed, a snapshot.
 *
 * The half that learns lives as long as the loop. A life is the time with one replay: when a
 * server that lost its tables is back, the learner goes on with the parameters that it has. A
 * learner that was restarted goes on with the snapshot in the replay.
 *
 * Invariant:
 *   N1  saved.steps counts each item once: the inserts of a shard above those seen are new; if
 *       there are fewer, its table is another one. saved.inserts is the sum of those seen. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "apex/part.h"
#include "error/fail.h"
#include "reprise/rl/snapshot.h"

enum { LAST_SAVE_MS = 500 };

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
    int64_t updates; /* since the loop began */
    int64_t version; /* published last */
    bool is_restored;
} learner_life;

static size_t get_state(learner_life *l, rp_state_part parts[RP_SNAPSHOT_MAX_PARTS])
{
    size_t count = l->learner->type->get_state(l->learner, parts);

    parts[count++] = (rp_state_part){"apex", &l->saved, sizeof l->saved};
    assert(count <= RP_SNAPSHOT_MAX_PARTS);
    return count;
}

/* Takes the snapshot of an earlier learner, if there is one. */
static rp_status restore(learner_life *l, rp_error *err)
{
    rp_state_part parts[RP_SNAPSHOT_MAX_PARTS];
    rp_status st;

    if (l->is_restored) return RP_OK;
    st = rp_snapshot_get(&l->part->apex->alloc, l->part->apex->options.home, parts,
                         get_state(l, parts), rp_part_wait(l->part, RP_CALL_MS), err);
    if (st == RP_OK) st = l->learner->type->restored(l->learner, err);
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
    rp_apex_part *state;
    rp_status st = rp_apex_pace(l->part, &view, 0, err);

    if (st != RP_OK) return st;
    count_new(l, &view);
    state = rp_part_lock(l->part);
    l->learner->type->get_metrics(l->learner, &state->metrics);
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

static rp_status update(learner_life *l, rp_error *err)
{
    rp_status st = l->learner->type->update(l->learner, rp_wait_none(), err);

    if (st != RP_DEADLINE) return st;
    rp_part_waits(l->part, "the actors");
    while (st == RP_DEADLINE) {
        st = l->learner->type->update(l->learner, rp_part_wait(l->part, RP_SLICE_MS), err);
        if (st == RP_DEADLINE) st = rp_apex_explain(l->part, err);
    }
    rp_part_works(l->part);
    return st;
}

/* Saves from time to time. A replay that has no room for a snapshot does not end the training:
 * the next attempt may succeed. */
static rp_status save_or_say(learner_life *l, rp_error *err)
{
    rp_status st = save(l, rp_part_wait(l->part, RP_CALL_MS), err);
    rp_apex_part *state = rp_part_lock(l->part);
    bool is_full = st == RP_NO_RESOURCE;

    state->trouble[0] = '\0';
    if (is_full && err != NULL)
        (void)snprintf(state->trouble, sizeof state->trouble, "no snapshot: %.140s", err->text);
    rp_part_unlock(l->part);
    return is_full ? RP_OK : st;
}

/* What is due after an update. */
static rp_status after_update(learner_life *l, rp_error *err)
{
    const rp_apex_options *o = &l->part->apex->options;
    rp_status st = RP_OK;

    assert(o->trim_every > 0 && o->publish_every > 0 && o->save_every > 0);
    l->updates++;
    if (l->updates % o->trim_every == 0) st = inspect(l, err);
    if (st == RP_OK && l->updates % o->publish_every == 0) st = publish(l, err);
    if (st == RP_OK && l->updates % o->save_every == 0) st = save_or_say(l, err);
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
    if (st == RP_OK) st = inspect(l, err);
    if (st == RP_OK) rp_part_works(l->part);
    while (st == RP_OK && !is_over(l)) {
        st = update(l, err);
        if (st == RP_OK) st = after_update(l, err);
    }
    if (l->is_restored && (st == RP_OK || rp_part_is_stopping(l->part)))
        st = save(l, rp_wait_ms(LAST_SAVE_MS), err);
    rp_variable_source_free(l->source);
    l->source = NULL;
    return st;
}

rp_status rp_apex_learner_loop(rp_part *p, rp_error *err)
{
    rp_apex *a = p->apex;
    rp_pcg64 rng;
    const rp_apex_making making = rp_part_making(p, &rng);
    learner_life l = {.part = p, .shards = rp_client_shard_count(a->options.client)};
    const size_t bytes = 2 * l.shards * sizeof *l.seen;
    rp_status st;

    l.seen = a->alloc.resize(a->alloc.ctx, NULL, 0, bytes);
    if (l.seen == NULL) return rp_rl_fail_memory(err, bytes);
    for (size_t i = 0; i < 2 * l.shards; i++) l.seen[i] = -1;
    rp_pcg64_seed(&rng, rp_apex_seed(a, RP_SEED_LEARNER));
    st = a->options.algorithm->new_learner(&making, &l.learner, err);
    assert(st != RP_OK || l.learner->parameter_count == a->parameter_count);
    if (st == RP_OK) st = rp_part_outlive(p, live, &l, err);
    rp_learner_free(l.learner);
    (void)a->alloc.resize(a->alloc.ctx, l.seen, bytes, 0);
    return st;
}
