/* SPDX-License-Identifier: Apache-2.0 */
/* DQN as one agent: both halves on one store, on the caller's thread.
 *
 * A new item has the largest priority so far, so that it is soon drawn (Schaul et al. 2016,
 * algorithm 1). */
#include <assert.h>

#include "agents/dqn_net.h"
#include "agents/halves.h"

enum { UPDATE_MS = 1 }; /* a wait for a batch, with asynchronous learners */

rp_status rp_dqn_table(const rp_dqn_settings *set, const rp_env_spec *spec, double slack,
                       rp_table_options *out, rp_error *err)
{
    const rp_replay_plan plan = rp_dqn_plan(set, spec);

    return rp_replay_table(&plan, slack, out, err);
}

static rp_status make_halves(rp_halves *h, const void *options, rp_error *err)
{
    const rp_dqn_options *o = options;
    rp_pcg64 rng;
    const rp_dqn_learner_options learner = {o->settings, o->spec, o->client, o->store, 1, &rng};
    rp_dqn_actor_options actor = {.settings = o->settings,
                                  .spec = o->spec,
                                  .client = o->client,
                                  .settled = true,
                                  .rng = &rng};
    rp_status st;

    rp_pcg64_seed(&rng, o->seed);
    st = rp_dqn_learner_new(&h->alloc, &learner, &h->learner, err);
    if (st != RP_OK) return st;
    actor.priority = rp_dqn_learner_largest(h->learner);
    if (o->settings->async_learners && o->settings->learners > 1) h->update_ms = UPDATE_MS;
    st = rp_dqn_actor_new(&h->alloc, &actor, rp_wait_forever(), &h->actor, err);
    return st;
}

rp_status rp_dqn_new(const rp_allocator *alloc, const rp_dqn_options *options, rp_agent **out,
                     rp_error *err)
{
    rp_status st = rp_dqn_settings_check(options->settings, err);
    rp_replay_plan plan;

    if (st == RP_OK) st = rp_dqn_check_env(options->spec, err);
    if (st != RP_OK) return st;
    plan = rp_dqn_plan(options->settings, options->spec);
    assert(plan.copies == options->settings->copies && plan.evict_exponent <= 0);
    return rp_halves_new(
        alloc, &(rp_halves_options){"dqn", options->store, &plan, make_halves, options}, out,
        err);
}
