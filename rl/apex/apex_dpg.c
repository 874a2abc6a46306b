/* SPDX-License-Identifier: Apache-2.0 */
/* DPG as an algorithm of Ape-X. The noise is alike in all actors. */
#include <assert.h>

#include "apex/own_policy.h"

enum {
    IN_FLIGHT = 64, /* unconfirmed items of a copy */
    MUTATE_FOR = 4, /* updates whose priorities are sent together */
    PREFETCHED = 4, /* batches that wait in the sampler of a learner */
};

static size_t copies(const void *settings)
{
    return (size_t)((const rp_dpg_settings *)settings)->copies;
}

/* The limiter leaves room for a step of every actor, and for what the learner's sampler has
 * drawn and not used. */
static rp_status table(const rp_apex_making *m, rp_table_options *out, rp_error *err)
{
    const rp_dpg_settings *set = m->settings;
    double per_insert = (double)set->batch / (double)set->steps_per_update;
    double items = (double)((m->actors - 1) * set->copies * set->n_step);

    assert(m->actors >= 1);
    return rp_dpg_table(set, m->spec, per_insert * items + (double)(PREFETCHED * set->batch),
                        out, err);
}

static rp_status new_actor(const rp_apex_making *m, rp_wait wait, rp_actor **out, rp_error *err)
{
    const rp_dpg_actor_options options = {.settings = m->settings,
                                          .spec = m->spec,
                                          .client = m->client,
                                          .max_in_flight = IN_FLIGHT,
                                          .rng = m->rng};

    assert(m->index >= 0 && m->index < m->actors);
    return rp_dpg_actor_new(m->alloc, &options, wait, out, err);
}

static rp_status new_learner(const rp_apex_making *m, rp_learner **out, rp_error *err)
{
    const rp_dpg_learner_options options = {.settings = m->settings,
                                            .spec = m->spec,
                                            .client = m->client,
                                            .mutate_for = MUTATE_FOR,
                                            .rng = m->rng};

    return rp_dpg_learner_new(m->alloc, &options, out, err);
}

static rp_status new_policy(const rp_apex_making *m, size_t rows, rp_policy **out,
                            rp_error *err)
{
    return rp_apex_own_policy("dpg", m, rows, out, err);
}

const rp_apex_algorithm *rp_apex_dpg(void)
{
    static const rp_apex_algorithm dpg = {.name = "dpg",
                                          .copies = copies,
                                          .table = table,
                                          .new_actor = new_actor,
                                          .new_learner = new_learner,
                                          .new_policy = new_policy};

    return &dpg;
}
