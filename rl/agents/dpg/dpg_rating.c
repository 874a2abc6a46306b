/* SPDX-License-Identifier: Apache-2.0 */
/* Ratings: see dpg_rating.h.
 *
 * Invariant:
 *   V1  the critic reads the numbers of an observation and then those of an action, which are
 *       the input and the output of the policy; it has one output. */
#include "agents/dpg/dpg_rating.h"

#include <assert.h>
#include <string.h>

#include "agents/box/critic.h"
#include "error/fail.h"

struct rp_dpg_rating {
    rp_allocator alloc;
    size_t numbers, actions, rows;
    size_t policy_size; /* parameters */
    rp_tape *policy, *critic;
    size_t bytes;     /* of this block */
    rp_real joined[]; /* rows x (numbers + actions) */
};

rp_status rp_dpg_rating_new(const rp_allocator *alloc, const rp_net *policy,
                            const rp_net *critic, size_t rows, rp_dpg_rating **out,
                            rp_error *err)
{
    size_t numbers = rp_net_in_size(policy), actions = rp_net_out_size(policy);
    size_t bytes = sizeof(rp_dpg_rating) + rows * (numbers + actions) * sizeof(rp_real);
    rp_status st = rp_critic_check(critic, numbers, actions, err); /* V1 */
    rp_dpg_rating *r;

    if (st != RP_OK) return st;
    r = alloc->resize(alloc->ctx, NULL, 0, bytes);
    if (r == NULL) return rp_rl_fail_memory(err, bytes);
    *r = (rp_dpg_rating){.alloc = *alloc,
                         .numbers = numbers,
                         .actions = actions,
                         .rows = rows,
                         .policy_size = rp_net_size(policy),
                         .bytes = bytes};
    st = rp_tape_new(alloc, policy, (rp_tape_options){.rows = rows}, &r->policy, err);
    if (st == RP_OK)
        st = rp_tape_new(alloc, critic, (rp_tape_options){.rows = rows}, &r->critic, err);
    if (st != RP_OK) {
        rp_dpg_rating_free(r);
        return st;
    }
    *out = r;
    return RP_OK;
}

void rp_dpg_rating_free(rp_dpg_rating *r)
{
    rp_allocator alloc;

    if (r == NULL) return;
    alloc = r->alloc;
    rp_tape_free(r->policy);
    rp_tape_free(r->critic);
    (void)alloc.resize(alloc.ctx, r, r->bytes, 0);
}

const rp_real *rp_dpg_choose(rp_dpg_rating *r, const rp_real *params,
                             const rp_real *observations, size_t rows)
{
    assert(rows >= 1 && rows <= r->rows);
    return rp_tape_forward(r->policy, params, observations, rows);
}

void rp_dpg_rate(rp_dpg_rating *r, const rp_real *params, const rp_real *observations,
                 const rp_real *actions, size_t rows, rp_real *values)
{
    const rp_real *q;

    assert(rows >= 1 && rows <= r->rows);
    if (actions == NULL) actions = rp_dpg_choose(r, params, observations, rows);
    rp_critic_join(observations, r->numbers, actions, r->actions, rows, r->joined);
    q = rp_tape_forward(r->critic, params + r->policy_size, r->joined, rows);
    memcpy(values, q, rows * sizeof *q);
}

size_t rp_dpg_action_count(const rp_dpg_rating *r)
{
    return r->actions;
}
