/* SPDX-License-Identifier: Apache-2.0 */
/* The learning half of DQN.
 *
 * One update, for a batch of items (o, a, R, D, o'), where R is the sum of up to n discounted
 * rewards and D the product of their discounts (adder.h):
 *
 *   target = R + discount D Q'(o', argmax Q(o', .))      Q' is the target network
 *   error  = target - Q(o, a)
 *   loss   = mean of weight * huber(error)               weight = (size * probability)^-beta
 *   params = Adam(params, gradient of the loss, clipped)
 *   priority of the item = |error| + RP_PRIORITY_FLOOR
 *
 * Several learners share the updates (team_update.h), or, asynchronous, make their own
 * (dqn_async.h).
 *
 * Invariant:
 *   E1  every number that a later update of synchronous learners depends on is in a part of
 *       get_state() or in the table. (Asynchronous ones have gradients under way as well.) */
#include <assert.h>
#include <string.h>

#include "agents/dqn_async.h"
#include "agents/dqn_net.h"
#include "agents/place.h"
#include "agents/team_update.h"
#include "error/fail.h"
#include "reprise/rl/init.h"

typedef struct dqn_learner {
    rp_learner learner; /* first */
    rp_allocator alloc;
    rp_dqn_master master;
    size_t batch, count;    /* rows of a batch; learners that share it */
    rp_team_update *shared; /* NULL: asynchronous */
    rp_dqn_async *async;    /* NULL: synchronous */
    double largest_shown;   /* that the actor reads */
    rp_dqn_rows *rows[RP_TEAM_MAX_SIZE];
    rp_real *grads[RP_TEAM_MAX_SIZE]; /* of `rows` */
    void *block;                      /* parameters and target */
    size_t block_bytes;
} dqn_learner;

/* The gradient of the share of learner `i`. */
static rp_update_found find_gradient(void *ctx, size_t i, rp_slice share, rp_real *errors)
{
    dqn_learner *d = ctx;
    const rp_dqn_share s = {.batch = rp_team_update_batch(d->shared),
                            .first = share.first,
                            .rows = share.count,
                            .all = d->batch,
                            .params = d->master.learning.params,
                            .target_params = d->master.learning.target_params,
                            .errors = errors};
    const rp_update_found found = rp_dqn_rows_forward(d->rows[i], &s);

    (void)rp_dqn_rows_backward(d->rows[i], &s);
    return found;
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_status st;

    if (d->async != NULL) return rp_dqn_async_update(d->async, wait, &d->largest_shown, err);
    st = rp_team_update_run(d->shared, wait, err);
    d->largest_shown = d->master.learning.counts.largest_priority;
    return st;
}

static const rp_real *parameters(const rp_learner *learner)
{
    const dqn_learner *d = (const dqn_learner *)learner;

    return d->async != NULL ? rp_dqn_async_parameters(d->async) : d->master.learning.params;
}

const double *rp_dqn_learner_largest(const rp_learner *learner)
{
    return &((const dqn_learner *)learner)->largest_shown;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const dqn_learner *d = (const dqn_learner *)learner;

    return rp_dqn_new_policy(&d->alloc, d->master.net, &d->master.spec, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    dqn_learner *d = (dqn_learner *)learner;

    if (d->async != NULL)
        rp_dqn_async_metrics(d->async, out);
    else
        rp_team_update_metrics(d->shared, out);
}

static int64_t updates(rp_learner *learner)
{
    dqn_learner *d = (dqn_learner *)learner;

    return d->async != NULL ? rp_dqn_async_updates(d->async)
                            : d->master.learning.counts.updates;
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    dqn_learner *d = (dqn_learner *)learner;

    if (d->async != NULL) rp_dqn_async_open(d->async);
    return rp_learning_get_state(&d->master.learning, parts);
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_status st = rp_learning_restored(&d->master.learning, err);

    d->largest_shown = d->master.learning.counts.largest_priority;
    return st;
}

/* Makes what each of `count` learners that share batches has of its own. On failure the caller
 * frees what there is. */
static rp_status make_rows(const dqn_learner *d, size_t count, rp_dqn_rows **rows,
                           rp_error *err)
{
    size_t most = (d->batch + count - 1) / count;
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < count; i++)
        st = rp_dqn_rows_new(&d->alloc, &d->master, most, &rows[i], err);
    return st;
}

static void take_rows(dqn_learner *d, size_t count, rp_dqn_rows *const *rows)
{
    d->count = count;
    for (size_t i = 0; i < count; i++) {
        d->rows[i] = rows[i];
        d->grads[i] = rp_dqn_rows_grads(rows[i]);
    }
}

static rp_status set_threads(rp_learner *learner, size_t count, rp_error *err)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_dqn_rows *rows[RP_TEAM_MAX_SIZE] = {NULL}, **unused = d->rows;
    size_t before = d->count;
    rp_status st;

    if (d->async != NULL)
        return rp_rl_fail(err, RP_PRECONDITION,
                          "dqn: the number of asynchronous learners does not change");
    if (count < 1 || count > RP_TEAM_MAX_SIZE || count > d->batch)
        return rp_rl_fail(err, RP_INVALID, "dqn: learners must be from 1 to %zu, got %zu",
                          d->batch < RP_TEAM_MAX_SIZE ? d->batch : RP_TEAM_MAX_SIZE, count);
    st = make_rows(d, count, rows, err);
    if (st == RP_OK) st = rp_team_update_set_learners(d->shared, count, err);
    if (st != RP_OK) {
        unused = rows;
        before = count;
    }
    for (size_t i = 0; i < before; i++) rp_dqn_rows_free(unused[i]);
    if (st == RP_OK) take_rows(d, count, rows);
    return st;
}

static void free_learner(rp_learner *learner)
{
    dqn_learner *d = (dqn_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_dqn_async_free(d->async); /* threads first */
    rp_team_update_free(d->shared);
    for (size_t i = 0; i < d->count; i++) rp_dqn_rows_free(d->rows[i]);
    rp_optimizer_free(d->master.optimizer);
    rp_net_free(d->master.net);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_learner_class learner_class = {
    .name = "dqn",
    .update = update,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_learner,
    .set_threads = set_threads,
    .updates = updates,
};

/* Sets the arrays to their places in `block`. Returns the bytes of all. */
static size_t place_arrays(dqn_learner *d, uint8_t *block)
{
    size_t p = rp_net_size(d->master.net), end = 0;

    d->master.learning.params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->master.learning.target_params = rp_place_array(block, &end, p, sizeof(rp_real));
    return end;
}

static rp_status make_networks(dqn_learner *d, rp_pcg64 *rng, rp_error *err)
{
    rp_dqn_master *m = &d->master;
    rp_learning *l = &m->learning;
    const rp_optimizer_options optimizer = {.kind = m->set.rmsprop ? RP_RMSPROP : RP_ADAM,
                                            .rate = m->set.rate,
                                            .beta2 = m->set.rmsprop ? 0.95 : 0,
                                            .epsilon = m->set.adam_epsilon,
                                            .centred = m->set.rmsprop,
                                            .max_norm = m->set.max_norm};
    rp_status st = rp_dqn_new_net(&d->alloc, &m->set, &m->spec, &m->net, err);

    if (st != RP_OK) return st;
    d->learner.parameter_count = rp_net_size(m->net);
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_optimizer_new(&d->alloc, rp_net_size(m->net), &optimizer, &m->optimizer, err);
    if (st != RP_OK) return st;
    rp_learning_add_network(
        l, &(rp_learning_network){"moments", m->optimizer, rp_net_size(m->net)});
    st = rp_net_init(&d->alloc, m->net, RP_INIT_TORCH, rng, l->params);
    if (st != RP_OK) return rp_rl_fail(err, st, "dqn: the network cannot be initialised");
    memcpy(l->target_params, l->params, l->count * sizeof(rp_real));
    return RP_OK;
}

/* Makes the learners that share batches. */
static rp_status make_learners(dqn_learner *d, const rp_replay_options *replay, rp_error *err)
{
    const rp_dqn_settings *set = &d->master.set;
    const rp_team_update_options options = {
        .learning = &d->master.learning,
        .replay = replay,
        .learners = d->count,
        .discount = set->discount,
        .huber = set->huber,
        .is_clipped = set->max_norm > 0,
        .sets_priorities = set->prioritized,
        .target_every = set->target_every,
        .target_rate = set->target_rate,
        .grads = d->grads,
        .find = find_gradient,
        .ctx = d,
    };
    rp_status st = make_rows(d, d->count, d->rows, err);

    if (st == RP_OK) take_rows(d, d->count, d->rows);
    return st == RP_OK ? rp_team_update_new(&d->alloc, &options, &d->shared, err) : st;
}

rp_status rp_dqn_learner_new(const rp_allocator *alloc, const rp_dqn_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_dqn_settings *set = o->settings;
    const rp_replay_options replay = {
        .spec = o->spec,
        .client = o->client,
        .store = o->store,
        .batch = (size_t)set->batch,
        .beta = set->prioritized ? set->weight_exponent : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    rp_status st = rp_dqn_settings_check(set, err);
    dqn_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn_learner){.learner = {.type = &learner_class},
                       .alloc = a,
                       .master = {.set = *set,
                                  .spec = *o->spec,
                                  .learning = {.agent = "dqn",
                                               .rate = set->rate,
                                               .max_loss = set->max_loss,
                                               .counts = {.largest_priority = 1}}},
                       .batch = (size_t)set->batch,
                       .count = (size_t)set->learners,
                       .largest_shown = 1};
    st = make_networks(d, o->rng, err);
    if (st == RP_OK)
        st = set->async_learners && d->count > 1
                 ? rp_dqn_async_new(&a, &d->master, &replay, d->count, &d->async, err)
                 : make_learners(d, &replay, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    assert(d->learner.parameter_count > 0);
    *out = &d->learner;
    return RP_OK;
}
