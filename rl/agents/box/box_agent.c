/* SPDX-License-Identifier: Apache-2.0 */
/* Agents of continuous actions: see box_agent.h. */
#include "agents/box/box_agent.h"

#include <assert.h>

#include "agents/halves.h"

static rp_replay_plan plan_of(const rp_box_making *m)
{
    return rp_replay_plan_of(m->shape->table(), m->settings, m->spec);
}

rp_status rp_box_table(const rp_box_making *m, double slack, rp_table_options *out,
                       rp_error *err)
{
    const rp_replay_plan plan = plan_of(m);

    return rp_replay_table(&plan, slack, out, err);
}

/* One stream of random numbers makes the first parameters and goes on as the actor's noise. */
static rp_status make_halves(rp_halves *h, const void *options, rp_error *err)
{
    const rp_box_agent_options *o = options;
    rp_pcg64 rng;
    const rp_box_learner_options learner = {.how = o->learning,
                                            .settings = o->settings,
                                            .spec = o->spec,
                                            .client = o->client,
                                            .store = o->store,
                                            .mutate_for = 1,
                                            .rng = &rng};
    const rp_box_actor_options actor = {.acting = o->acting,
                                        .settings = o->settings,
                                        .spec = o->spec,
                                        .client = o->client,
                                        .settled = true,
                                        .rng = &rng,
                                        .noise = o->noise};
    rp_status st;

    rp_pcg64_seed(&rng, o->seed);
    st = rp_box_learner_new(&h->alloc, &learner, &h->learner, err);
    if (st == RP_OK)
        st = rp_box_actor_new(&h->alloc, &actor, rp_wait_forever(), &h->actor, err);
    return st;
}

rp_status rp_box_agent_new(const rp_allocator *alloc, const rp_box_agent_options *o,
                           rp_agent **out, rp_error *err)
{
    const rp_settings_table *table = o->acting->shape->table();
    const rp_box_making making =
        rp_box_making_of(alloc, o->acting->shape, o->settings, o->spec);
    rp_status st = rp_settings_check(table, o->settings, err);
    rp_replay_plan plan;

    if (st == RP_OK) st = rp_box_check_env(&making, err);
    if (st != RP_OK) return st;
    plan = plan_of(&making);
    assert(plan.copies >= 1 && plan.evict_exponent <= 0);
    return rp_halves_new(
        alloc, &(rp_halves_options){table->agent, o->store, &plan, make_halves, o}, out, err);
}
