/* SPDX-License-Identifier: Apache-2.0 */
/* DPG for programs: the functions of dpg.h. */
#include "reprise/rl/dpg.h"

#include "agents/dpg/dpg_kind.h"

static rp_box_making making_of(const rp_allocator *alloc, const rp_dpg_settings *set,
                               const rp_env_spec *spec)
{
    return rp_box_making_of(alloc, &rp_dpg_shape, set, spec);
}

rp_status rp_dpg_table(const rp_dpg_settings *set, const rp_env_spec *spec, double slack,
                       rp_table_options *out, rp_error *err)
{
    const rp_box_making making = making_of(NULL, set, spec);

    return rp_box_table(&making, slack, out, err);
}

rp_status rp_dpg_new(const rp_allocator *alloc, const rp_dpg_options *o, rp_agent **out,
                     rp_error *err)
{
    return rp_box_agent_new(alloc,
                            &(rp_box_agent_options){.acting = &rp_dpg_acting,
                                                    .learning = &rp_dpg_learning,
                                                    .settings = o->settings,
                                                    .spec = o->spec,
                                                    .store = o->store,
                                                    .client = o->client,
                                                    .seed = o->seed,
                                                    .noise = o->settings->noise},
                            out, err);
}

rp_status rp_dpg_actor_new(const rp_allocator *alloc, const rp_dpg_actor_options *o,
                           rp_wait wait, rp_actor **out, rp_error *err)
{
    return rp_box_actor_new(alloc,
                            &(rp_box_actor_options){.acting = &rp_dpg_acting,
                                                    .settings = o->settings,
                                                    .spec = o->spec,
                                                    .client = o->client,
                                                    .settled = o->settled,
                                                    .max_in_flight = o->max_in_flight,
                                                    .rng = o->rng,
                                                    .noise = o->settings->noise},
                            wait, out, err);
}

rp_status rp_dpg_learner_new(const rp_allocator *alloc, const rp_dpg_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    return rp_box_learner_new(alloc,
                              &(rp_box_learner_options){.how = &rp_dpg_learning,
                                                        .settings = o->settings,
                                                        .spec = o->spec,
                                                        .client = o->client,
                                                        .store = o->store,
                                                        .mutate_for = o->mutate_for,
                                                        .rng = o->rng},
                              out, err);
}

rp_status rp_dpg_new_net(const rp_allocator *alloc, const rp_dpg_settings *set,
                         const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    const rp_box_making making = making_of(alloc, set, spec);

    return rp_box_new_policy_net(&making, out, err);
}

rp_status rp_dpg_new_critic(const rp_allocator *alloc, const rp_dpg_settings *set,
                            const rp_env_spec *spec, rp_net **out, rp_error *err)
{
    const rp_box_making making = making_of(alloc, set, spec);

    return rp_box_new_critic_net(&making, out, err);
}

rp_status rp_dpg_new_policy(const rp_allocator *alloc, const rp_net *net,
                            const rp_dpg_settings *set, const rp_env_spec *spec, size_t rows,
                            rp_policy **out, rp_error *err)
{
    const rp_box_making making = making_of(alloc, set, spec);

    return rp_box_new_policy(&making, net, rows, out, err);
}

rp_status rp_dpg_save_onnx(const rp_allocator *alloc, const rp_net *net,
                           const rp_dpg_settings *set, const rp_env_spec *spec,
                           const rp_real *params, const char *path, rp_error *err)
{
    const rp_box_making making = making_of(alloc, set, spec);

    return rp_box_save_onnx(&making, net, params, path, err);
}
