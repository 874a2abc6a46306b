/* SPDX-License-Identifier: Apache-2.0 */
/* Updates by one or several learners: see team_update.h.
 *
 * Invariants:
 *   U1  one learner makes the same calls on the same numbers, in the same order, as an agent
 *       without a team: its results do not depend on this file;
 *   U2  the additions of several learners are in an order that depends on their number only;
 *   U3  between two meetings a number of parameters, targets or moments is written by one
 *       learner: the owner of its slice. */
#include "agents/team_update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "error/fail.h"

/* What one learner has found. Written by its thread, on a cache line of its own. */
typedef struct found_line {
    rp_update_found found;
    char padding[64 - sizeof(rp_update_found)];
} found_line;

struct rp_team_update {
    rp_allocator alloc;
    rp_team_update_options options;
    size_t rows, most; /* of a batch; learners that there is room for */
    rp_replay *replay;
    rp_team *team;   /* NULL: one learner */
    bool may_refuse; /* the team leaves a batch whose loss is over its bound */
    double norms[RP_LEARNING_NETWORKS]; /* of the latest step of the team */
    rp_real *errors;                    /* of all rows; behind `found` */
    found_line found[];
};

static size_t most_learners(size_t rows)
{
    return rows < RP_TEAM_MAX_SIZE ? rows : RP_TEAM_MAX_SIZE;
}

static size_t update_bytes(size_t rows)
{
    return sizeof(rp_team_update) + most_learners(rows) * sizeof(found_line) +
           rows * sizeof(rp_real);
}

rp_slice rp_share_of(size_t rows, size_t learners, size_t i)
{
    size_t first = rows * i / learners;

    assert(i < learners && learners <= rows);
    return (rp_slice){first, rows * (i + 1) / learners - first};
}

const rp_replay_batch *rp_team_update_batch(const rp_team_update *u)
{
    return rp_replay_get_batch(u->replay);
}

void rp_team_update_metrics(rp_team_update *u, rp_agent_metrics *out)
{
    rp_learning_metrics(u->options.learning, out);
    rp_replay_get_bad(u->replay, out);
}

static void find(rp_team_update *u, size_t i)
{
    const rp_slice share = rp_share_of(u->rows, u->options.learners, i);

    u->found[i].found = u->options.find(u->options.ctx, i, share, u->errors + share.first);
}

/* The sum of what all learners have found. The same for all of them. */
static rp_update_found sum_of(const rp_team_update *u)
{
    rp_update_found sum = u->found[0].found;

    for (size_t i = 1; i < u->options.learners; i++) { /* U2 */
        sum.loss += u->found[i].found.loss;
        sum.value += u->found[i].found.value;
    }
    return sum;
}

static bool is_over_bound(const rp_team_update *u, double loss)
{
    return !(loss <= u->options.learning->max_loss);
}

/* Leaves out the rows of the batch that are to blame for such a loss. Returns whether there
 * were any. */
static bool refuse(rp_team_update *u, rp_cancel *cancel)
{
    return rp_replay_refuse(
        u->replay, u->errors,
        rp_learning_most_error(u->options.learning->max_loss, u->options.huber), cancel);
}

static bool target_is_due(const rp_team_update *u)
{
    return rp_learning_target_is_due(u->options.learning, u->options.target_every);
}

/* The norm of the gradients of several networks. */
static double norm_of(const double *norms, size_t count)
{
    double norm = 0;

    for (size_t i = 0; i < count; i++) norm = hypot(norm, norms[i]);
    return norm;
}

/* One learner: gradients and steps on the caller's thread (U1). */
static void learn_alone(rp_team_update *u, rp_cancel *cancel, rp_learning_step *step)
{
    const rp_learning *l = u->options.learning;
    double norms[RP_LEARNING_NETWORKS];
    size_t first = 0;

    find(u, 0);
    if (is_over_bound(u, u->found[0].found.loss) && refuse(u, cancel)) find(u, 0);
    for (size_t i = 0; i < l->network_count; i++) {
        const rp_learning_network *n = &l->networks[i];

        norms[i] =
            rp_optimizer_step(n->optimizer, l->params + first, u->options.grads[0] + first);
        first += n->count;
    }
    step->loss = u->found[0].found.loss;
    step->value = u->found[0].found.value;
    step->norm = norm_of(norms, l->network_count);
    if (target_is_due(u) && isfinite(step->norm) && !is_over_bound(u, step->loss))
        rp_polyak(l->target_params, l->params, l->count, u->options.target_rate);
}

/* Moves the slices of the targets that are this learner's (U3). */
static void move_targets(const rp_team_update *u, size_t learner)
{
    const rp_learning *l = u->options.learning;
    size_t first = 0;

    for (size_t i = 0; i < l->network_count; i++) {
        const rp_slice slice = rp_team_slice(u->team, l->networks[i].count, learner);

        rp_polyak(l->target_params + first + slice.first, l->params + first + slice.first,
                  slice.count, u->options.target_rate);
        first += l->networks[i].count;
    }
}

/* One of several learners: the gradients of its share, the steps of its slices. */
static void learn_share(void *ctx, size_t learner)
{
    rp_team_update *u = ctx;
    const rp_learning *l = u->options.learning;
    rp_team_step steps[RP_LEARNING_NETWORKS];
    double norms[RP_LEARNING_NETWORKS];
    size_t first = 0;
    bool is_over;

    find(u, learner);
    rp_team_meet(u->team, learner);
    is_over = is_over_bound(u, sum_of(u).loss);
    if (is_over && u->may_refuse) return; /* all of them do */
    for (size_t i = 0; i < l->network_count; i++) {
        const rp_learning_network *n = &l->networks[i];

        steps[i] = (rp_team_step){n->optimizer, l->params, u->options.grads, first, n->count};
        first += n->count;
    }
    rp_team_step_slices(u->team, learner, steps, l->network_count, norms);
    for (size_t i = 0; learner == 0 && i < l->network_count; i++) u->norms[i] = norms[i];
    if (target_is_due(u) && isfinite(norm_of(norms, l->network_count)) && !is_over)
        move_targets(u, learner);
}

/* Several learners. A batch that they leave is computed once more, without bad rows. */
static void learn_together(rp_team_update *u, rp_cancel *cancel, rp_learning_step *step)
{
    const rp_learning *l = u->options.learning;
    rp_update_found sum;

    u->may_refuse = true;
    rp_team_run(u->team, learn_share, u);
    sum = sum_of(u);
    if (is_over_bound(u, sum.loss)) {
        (void)refuse(u, cancel);
        u->may_refuse = false;
        rp_team_run(u->team, learn_share, u);
        sum = sum_of(u);
    }
    for (size_t i = 0; i < l->network_count; i++)
        rp_optimizer_end_slices(l->networks[i].optimizer, u->norms[i]);
    step->loss = sum.loss;
    step->value = sum.value;
    step->norm = norm_of(u->norms, l->network_count);
    if (!u->options.is_clipped && isfinite(step->norm)) step->norm = 0; /* as alone */
}

rp_status rp_team_update_run(rp_team_update *u, rp_wait wait, rp_error *err)
{
    const rp_replay_batch *b = rp_replay_get_batch(u->replay);
    rp_learning *l = u->options.learning;
    rp_learning_step step = {.errors = u->errors, .rows = u->rows};
    rp_status st = rp_learning_check(l, err);

    if (st == RP_OK) st = rp_replay_draw(u->replay, wait, err);
    if (st != RP_OK) return st;
    for (size_t i = 0; i < u->rows; i++) b->discounts[i] *= (float)u->options.discount;
    if (u->options.prepare != NULL) u->options.prepare(u->options.ctx);
    if (u->team != NULL)
        learn_together(u, wait.cancel, &step);
    else
        learn_alone(u, wait.cancel, &step);
    st = rp_learning_add(l, &step, err);
    if (st != RP_OK || !u->options.sets_priorities) return st;
    return rp_replay_prioritize(u->replay, u->errors, &l->counts.largest_priority, wait.cancel,
                                err);
}

rp_status rp_team_update_new(const rp_allocator *alloc, const rp_team_update_options *o,
                             rp_team_update **out, rp_error *err)
{
    size_t rows = o->replay->batch, bytes = update_bytes(rows);
    rp_team_update *u = alloc->resize(alloc->ctx, NULL, 0, bytes);
    rp_status st;

    assert(o->learning->network_count >= 1 && o->learning->params != NULL);
    assert(o->learners >= 1 && o->learners <= rows);
    if (u == NULL) return rp_rl_fail_memory(err, bytes);
    memset(u, 0, bytes);
    u->alloc = *alloc;
    u->options = *o;
    u->options.replay = NULL; /* borrowed for this call */
    u->rows = rows;
    u->most = most_learners(rows);
    u->errors = (rp_real *)(u->found + u->most);
    st = rp_replay_new(alloc, o->replay, &u->replay, err);
    if (st == RP_OK && o->learners > 1) st = rp_team_new(alloc, o->learners, &u->team, err);
    if (st != RP_OK) {
        rp_team_update_free(u);
        return st;
    }
    *out = u;
    return RP_OK;
}

rp_status rp_team_update_set_learners(rp_team_update *u, size_t learners, rp_error *err)
{
    rp_team *team = NULL;
    rp_status st = RP_OK;

    if (learners < 1 || learners > u->most)
        return rp_rl_fail(err, RP_INVALID, "%s: learners must be from 1 to %zu, got %zu",
                          u->options.learning->agent, u->most, learners);
    if (learners > 1) st = rp_team_new(&u->alloc, learners, &team, err);
    if (st != RP_OK) return st;
    rp_team_free(u->team);
    u->team = team;
    u->options.learners = learners;
    return RP_OK;
}

void rp_team_update_free(rp_team_update *u)
{
    if (u == NULL) return;
    rp_allocator alloc = u->alloc;
    rp_team_free(u->team);
    rp_replay_free(u->replay);
    (void)alloc.resize(alloc.ctx, u, update_bytes(u->rows), 0);
}
