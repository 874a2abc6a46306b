/* SPDX-License-Identifier: Apache-2.0 */
/* Agents of two halves: see halves.h.
 *
 * Invariants:
 *   H1  after learn() has returned RP_OK, the rate limiter allows no further batch;
 *   H2  inserts never wait: the limiter's bounds leave room for the items of one step of the
 *       group, whatever ends in it;
 *   H3  every number that a later call depends on is in a part of get_state() or in the table.
 */
#include "agents/halves.h"

#include <assert.h>

#include "error/fail.h"

static void act(rp_agent *agent, const void *observations, void *actions)
{
    rp_halves *h = (rp_halves *)agent;

    h->actor->type->act(h->actor, observations, actions);
}

static rp_status begin(rp_agent *agent, const void *observations, rp_error *err)
{
    rp_halves *h = (rp_halves *)agent;

    return h->actor->type->begin(h->actor, observations, rp_wait_forever(), err);
}

static rp_status observe(rp_agent *agent, const rp_agent_step *step, rp_error *err)
{
    rp_halves *h = (rp_halves *)agent;

    return h->actor->type->observe(h->actor, step, rp_wait_forever(), err); /* H2 */
}

static rp_status update(rp_halves *h, rp_wait wait, rp_error *err)
{
    rp_status st = h->learner->type->update(h->learner, wait, err);

    return st == RP_DEADLINE && h->update_ms > 0 ? RP_OK : st; /* another learner was faster */
}

static rp_status learn(rp_agent *agent, rp_error *err)
{
    rp_halves *h = (rp_halves *)agent;
    rp_wait wait = h->update_ms > 0 ? rp_wait_ms(h->update_ms) : rp_wait_forever();
    rp_status st = RP_OK;

    /* The others may have drawn all that the limiter allows: their parameters and failures are
     * known after a call of update() only. */
    if (h->update_ms > 0) st = update(h, rp_wait_none(), err);
    while (st == RP_OK && rp_table_can_sample(h->table, h->batch)) /* H1 */
        st = update(h, wait, err);
    return st;
}

static const rp_real *parameters(const rp_agent *agent)
{
    const rp_halves *h = (const rp_halves *)agent;

    return h->learner->type->parameters(h->learner);
}

static rp_status new_policy(const rp_agent *agent, size_t rows, rp_policy **out, rp_error *err)
{
    const rp_halves *h = (const rp_halves *)agent;

    return h->learner->type->new_policy(h->learner, rows, out, err);
}

static void get_metrics(rp_agent *agent, rp_agent_metrics *out)
{
    rp_halves *h = (rp_halves *)agent;
    rp_table_info info;

    rp_table_get_info(h->table, &info);
    h->learner->type->get_metrics(h->learner, out);
    out->epsilon = h->actor->exploration;
    out->inserts = info.inserts;
    out->item_size = info.size;
}

static size_t get_state(rp_agent *agent, rp_state_part *parts)
{
    rp_halves *h = (rp_halves *)agent;
    size_t count = h->actor->type->get_state(h->actor, parts);

    count += h->learner->type->get_state(h->learner, parts + count);
    assert(count <= RP_AGENT_MAX_PARTS);
    return count;
}

static rp_status restored(rp_agent *agent, rp_error *err)
{
    rp_halves *h = (rp_halves *)agent;
    rp_status st = h->learner->type->restored(h->learner, err);

    return st == RP_OK ? h->actor->type->restored(h->actor, err) : st;
}

static void free_agent(rp_agent *agent)
{
    rp_halves *h = (rp_halves *)agent;
    rp_allocator alloc = h->alloc;

    rp_actor_free(h->actor);
    rp_learner_free(h->learner);
    rp_table_unref(h->table);
    (void)alloc.resize(alloc.ctx, h, sizeof *h, 0);
}

static const rp_agent_class halves_class = {
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

rp_status rp_halves_new(const rp_allocator *alloc, const rp_halves_options *o, rp_agent **out,
                        rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_halves *h = a.resize(a.ctx, NULL, 0, sizeof *h);
    rp_status st;

    if (h == NULL) return rp_rl_fail_memory(err, sizeof *h);
    *h = (rp_halves){
        .agent = {&h->type}, .type = halves_class, .alloc = a, .batch = o->plan->batch};
    h->type.name = o->name;
    st = rp_replay_table_in(o->store, o->plan, &h->table, err);
    if (st == RP_OK) st = o->make(h, o->options, err);
    if (st != RP_OK) {
        free_agent(&h->agent);
        return st;
    }
    assert(h->actor->parameter_count == h->learner->parameter_count);
    h->actor->params = parameters(&h->agent);
    *out = &h->agent;
    return RP_OK;
}
