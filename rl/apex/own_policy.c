/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of their own: see own_policy.h. */
#include "apex/own_policy.h"

#include <assert.h>
#include <string.h>

#include "error/fail.h"

typedef struct owning_policy {
    rp_policy policy; /* first */
    rp_allocator alloc;
    rp_net *net;
    rp_policy *inner;
} owning_policy;

static void policy_act(rp_policy *policy, const rp_real *params, const void *observations,
                       size_t rows, void *actions)
{
    rp_policy *inner = ((owning_policy *)policy)->inner;

    assert(rows >= 1 && rows <= policy->rows);
    inner->act(inner, params, observations, rows, actions);
}

static void policy_free(rp_policy *policy)
{
    owning_policy *p = (owning_policy *)policy;
    rp_allocator alloc = p->alloc;

    rp_policy_free(p->inner);
    rp_net_free(p->net);
    (void)alloc.resize(alloc.ctx, p, sizeof *p, 0);
}

rp_status rp_apex_own_policy(const char *name, const rp_apex_making *m, size_t rows,
                             rp_policy **out, rp_error *err)
{
    const rp_allocator a = m->alloc != NULL ? *m->alloc : *rp_allocator_default();
    const rp_agent_kind *kind = rp_agent_find(name);
    owning_policy *p = a.resize(a.ctx, NULL, 0, sizeof *p);
    rp_status st;

    assert(kind != NULL);
    if (p == NULL) return rp_rl_fail_memory(err, sizeof *p);
    *p = (owning_policy){.policy = {0, rows, policy_act, policy_free}, .alloc = a};
    st = kind->new_net(&a, m->settings, m->spec, &p->net, err);
    if (st == RP_OK)
        st = kind->new_policy(&a, p->net, m->settings, m->spec, rows, &p->inner, err);
    if (st != RP_OK) {
        policy_free(&p->policy);
        return st;
    }
    p->policy.parameter_count = p->inner->parameter_count;
    assert(p->policy.parameter_count > 0);
    *out = &p->policy;
    return RP_OK;
}

const rp_apex_algorithm *rp_apex_find(const char *name)
{
    const rp_apex_algorithm *const all[] = {rp_apex_dpg(), rp_apex_dqn(), rp_apex_sac()};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
