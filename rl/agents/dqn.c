/* SPDX-License-Identifier: Apache-2.0 */
/* DQN as one agent: both halves on one store, on the caller's thread.
 *
 * A new item has the largest priority so far, so that it is soon drawn (Schaul et al. 2016,
 * algorithm 1).
 *
 * Invariants:
 *   D1  after learn() has returned RP_OK, the rate limiter allows no further batch;
 *   D2  inserts never wait: the limiter's bounds leave room for the items of one step of the
 *       group, whatever ends in it;
 *   D3  every number that a later call depends on is in a part of get_state() or in the table.
 */
#include <assert.h>

#include "agents/dqn_net.h"
#include "agents/replay.h"
#include "error/fail.h"

typedef struct dqn {
    rp_agent agent; /* first */
    rp_allocator alloc;
    int64_t batch;
    rp_table *table; /* a reference */
    rp_actor *actor;
    rp_learner *learner;
} dqn;

static void act(rp_agent *agent, const void *observations, void *actions)
{
    dqn *d = (dqn *)agent;

    d->actor->type->act(d->actor, observations, actions);
}

static rp_status begin(rp_agent *agent, const void *observations, rp_error *err)
{
    dqn *d = (dqn *)agent;

    return d->actor->type->begin(d->actor, observations, rp_wait_forever(), err);
}

static rp_status observe(rp_agent *agent, const rp_agent_step *step, rp_error *err)
{
    dqn *d = (dqn *)agent;

    return d->actor->type->observe(d->actor, step, rp_wait_forever(), err); /* D2 */
}

static rp_status learn(rp_agent *agent, rp_error *err)
{
    dqn *d = (dqn *)agent;
    rp_status st = RP_OK;

    while (st == RP_OK && rp_table_can_sample(d->table, d->batch)) /* D1 */
        st = d->learner->type->update(d->learner, rp_wait_forever(), err);
    return st;
}

static const rp_real *parameters(const rp_agent *agent)
{
    const dqn *d = (const dqn *)agent;

    return d->learner->type->parameters(d->learner);
}

static rp_status new_policy(const rp_agent *agent, size_t rows, rp_policy **out, rp_error *err)
{
    const dqn *d = (const dqn *)agent;

    return d->learner->type->new_policy(d->learner, rows, out, err);
}

static void get_metrics(rp_agent *agent, rp_agent_metrics *out)
{
    dqn *d = (dqn *)agent;
    rp_table_info info;

    rp_table_get_info(d->table, &info);
    d->learner->type->get_metrics(d->learner, out);
    out->epsilon = d->actor->exploration;
    out->inserts = info.inserts;
    out->item_size = info.size;
}

static size_t get_state(rp_agent *agent, rp_state_part *parts)
{
    dqn *d = (dqn *)agent;
    size_t count = d->actor->type->get_state(d->actor, parts);

    count += d->learner->type->get_state(d->learner, parts + count);
    assert(count <= RP_AGENT_MAX_PARTS);
    return count;
}

static rp_status restored(rp_agent *agent, rp_error *err)
{
    dqn *d = (dqn *)agent;
    rp_status st = d->learner->type->restored(d->learner, err);

    return st == RP_OK ? d->actor->type->restored(d->actor, err) : st;
}

static void free_agent(rp_agent *agent)
{
    dqn *d = (dqn *)agent;
    rp_allocator alloc = d->alloc;

    rp_actor_free(d->actor);
    rp_learner_free(d->learner);
    rp_table_unref(d->table);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_agent_class dqn_class = {
    .name = "dqn",
    .act = act,
    .begin = begin,
    .observe = observe,
    .learn = learn,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_agent,
};

rp_status rp_dqn_table(const rp_dqn_settings *set, const rp_env_spec *spec, double slack,
                       rp_table_options *out, rp_error *err)
{
    const rp_adder_table to = {.name = RP_REPLAY_TABLE};
    double per_insert = (double)set->batch / (double)set->steps_per_update;
    double room = per_insert * (double)set->copies * (double)set->n_step + (double)set->batch;
    rp_adder_options adder = rp_dqn_adder(set, spec);

    adder.tables = &to;
    adder.table_count = 1;
    *out = (rp_table_options){
        .name = RP_REPLAY_TABLE,
        .sampler = {.kind = RP_UNIFORM},
        .remover = {.kind = RP_FIFO},
        .limiter = rp_limiter_ratio(per_insert, set->start, room + slack),
        .max_size = set->capacity,
    };
    if (set->prioritized)
        out->sampler = (rp_selector_options){RP_PRIORITIZED, set->priority_exponent};
    return rp_adder_signature(&adder, &out->signature, err);
}

static rp_status make_table(dqn *d, const rp_dqn_options *o, rp_error *err)
{
    const rp_string name = {RP_REPLAY_TABLE, sizeof RP_REPLAY_TABLE - 1};
    rp_table_options table;
    rp_status st;

    d->table = rp_store_find_table(o->store, name); /* from a snapshot */
    if (d->table != NULL) return RP_OK;
    st = rp_dqn_table(o->settings, o->spec, 0, &table, err);
    if (st != RP_OK) return st;
    st = rp_store_add_table(o->store, &table, NULL, err);
    rp_signature_unref(table.signature);
    if (st == RP_OK) d->table = rp_store_find_table(o->store, name);
    assert(st != RP_OK || d->table != NULL);
    return st;
}

static rp_status make_halves(dqn *d, const rp_dqn_options *o, rp_error *err)
{
    rp_pcg64 rng;
    const rp_dqn_learner_options learner = {o->settings, o->spec, o->client, o->store, 1, &rng};
    rp_dqn_actor_options actor = {.settings = o->settings,
                                  .spec = o->spec,
                                  .client = o->client,
                                  .settled = true,
                                  .rng = &rng};
    rp_status st;

    rp_pcg64_seed(&rng, o->seed);
    st = rp_dqn_learner_new(&d->alloc, &learner, &d->learner, err);
    if (st != RP_OK) return st;
    actor.priority = rp_dqn_learner_largest(d->learner);
    st = rp_dqn_actor_new(&d->alloc, &actor, rp_wait_forever(), &d->actor, err);
    if (st != RP_OK) return st;
    d->actor->params = parameters(&d->agent);
    return RP_OK;
}

rp_status rp_dqn_new(const rp_allocator *alloc, const rp_dqn_options *options, rp_agent **out,
                     rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_dqn_settings_check(options->settings, err);
    dqn *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn){.agent = {&dqn_class}, .alloc = a, .batch = options->settings->batch};
    st = rp_dqn_check_env(options->spec, err);
    if (st == RP_OK) st = make_table(d, options, err);
    if (st == RP_OK) st = make_halves(d, options, err);
    if (st != RP_OK) {
        free_agent(&d->agent);
        return st;
    }
    *out = &d->agent;
    return RP_OK;
}
