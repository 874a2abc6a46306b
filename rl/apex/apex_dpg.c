/* SPDX-License-Identifier: Apache-2.0 */
/* DPG as an algorithm of Ape-X. The noise is alike in all actors. */
#include "apex/own_policy.h"
#include "apex/own_replay.h"

static size_t copies(const void *settings)
{
    return rp_own_copies(rp_dpg_settings_table(), settings);
}

static rp_status table(const rp_apex_making *m, rp_table_options *out, rp_error *err)
{
    return rp_dpg_table(m->settings, m->spec, rp_own_slack(m, rp_dpg_settings_table()), out,
                        err);
}

static rp_status new_actor(const rp_apex_making *m, rp_wait wait, rp_actor **out, rp_error *err)
{
    const rp_dpg_actor_options options = {.settings = m->settings,
                                          .spec = m->spec,
                                          .client = m->client,
                                          .max_in_flight = RP_OWN_IN_FLIGHT,
                                          .rng = m->rng};

    return rp_dpg_actor_new(m->alloc, &options, wait, out, err);
}

static rp_status new_learner(const rp_apex_making *m, rp_learner **out, rp_error *err)
{
    const rp_dpg_learner_options options = {.settings = m->settings,
                                            .spec = m->spec,
                                            .client = m->client,
                                            .mutate_for = RP_OWN_MUTATE_FOR,
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
