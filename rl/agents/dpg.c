/* SPDX-License-Identifier: Apache-2.0 */
/* DPG as one agent: both halves on one store. */
#include <assert.h>

#include "agents/dpg_net.h"
#include "agents/halves.h"

rp_status rp_dpg_table(const rp_dpg_settings *set, const rp_env_spec *spec, double slack,
                       rp_table_options *out, rp_error *err)
{
    const rp_replay_plan plan = rp_dpg_plan(set, spec);

    return rp_replay_table(&plan, slack, out, err);
}

static rp_status make_halves(rp_halves *h, const void *options, rp_error *err)
{
    const rp_dpg_options *o = options;
    rp_pcg64 rng;
    const rp_dpg_learner_options learner = {o->settings, o->spec, o->client, o->store, 1, &rng};
    const rp_dpg_actor_options actor = {.settings = o->settings,
                                        .spec = o->spec,
                                        .client = o->client,
                                        .settled = true,
                                        .rng = &rng};
    rp_status st;

    rp_pcg64_seed(&rng, o->seed);
    st = rp_dpg_learner_new(&h->alloc, &learner, &h->learner, err);
    if (st == RP_OK)
        st = rp_dpg_actor_new(&h->alloc, &actor, rp_wait_forever(), &h->actor, err);
    return st;
}

rp_status rp_dpg_new(const rp_allocator *alloc, const rp_dpg_options *options, rp_agent **out,
                     rp_error *err)
{
    rp_status st = rp_dpg_settings_check(options->settings, err);
    rp_replay_plan plan;

    if (st == RP_OK) st = rp_dpg_check_env(options->spec, err);
    if (st != RP_OK) return st;
    plan = rp_dpg_plan(options->settings, options->spec);
    assert(plan.copies == options->settings->copies && plan.evict_exponent <= 0);
    return rp_halves_new(
        alloc, &(rp_halves_options){"dpg", options->store, &plan, make_halves, options}, out,
        err);
}
