/* SPDX-License-Identifier: Apache-2.0 */
/* Ratings: see sac_rating.h.
 *
 * Invariant:
 *   V1  the policy has a mean and a logarithm of a deviation for each number of an action; a
 *       critic reads the numbers of an observation and then those of an action. */
#include "agents/sac/sac_rating.h"

#include <assert.h>
#include <math.h>

#include "agents/box/box_head.h"
#include "agents/box/critic.h"
#include "agents/place.h"
#include "error/fail.h"

struct rp_sac_rating {
    rp_allocator alloc;
    rp_sac_layout layout;
    rp_gaussian head;
    size_t numbers, actions, rows;
    rp_tape *policy, *critic;
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *joined;          /* rows x (numbers + actions) */
    rp_real *drawn;           /* rows x actions */
    rp_real *density, *other; /* rows */
};

rp_sac_layout rp_sac_layout_of(const rp_net *policy, const rp_net *critic)
{
    rp_sac_layout l = {.policy_size = rp_net_size(policy), .critic_size = rp_net_size(critic)};

    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        l.critics[k] = l.policy_size + k * l.critic_size;
    l.temperature = l.policy_size + RP_SAC_CRITICS * l.critic_size;
    l.count = l.temperature + 1;
    return l;
}

rp_real rp_sac_temperature(const rp_sac_layout *l, const rp_real *params)
{
    return (rp_real)exp((double)params[l->temperature]);
}

static size_t place_arrays(rp_sac_rating *r, uint8_t *block)
{
    size_t end = 0;

    r->joined =
        rp_place_array(block, &end, r->rows * (r->numbers + r->actions), sizeof(rp_real));
    r->drawn = rp_place_array(block, &end, r->rows * r->actions, sizeof(rp_real));
    r->density = rp_place_array(block, &end, r->rows, sizeof(rp_real));
    r->other = rp_place_array(block, &end, r->rows, sizeof(rp_real));
    return end;
}

static rp_status make_parts(rp_sac_rating *r, const rp_net *policy, const rp_net *critic,
                            rp_error *err)
{
    const rp_tape_options options = {.rows = r->rows};
    rp_status st = rp_critic_check(critic, r->numbers, r->actions, err); /* V1 */

    if (st == RP_OK) st = rp_tape_new(&r->alloc, policy, options, &r->policy, err);
    if (st == RP_OK) st = rp_tape_new(&r->alloc, critic, options, &r->critic, err);
    if (st != RP_OK) return st;
    r->block_bytes = place_arrays(r, NULL);
    r->block = r->alloc.resize(r->alloc.ctx, NULL, 0, r->block_bytes);
    if (r->block == NULL) return rp_rl_fail_memory(err, r->block_bytes);
    (void)place_arrays(r, r->block);
    return RP_OK;
}

rp_status rp_sac_rating_new(const rp_allocator *alloc, const rp_net *policy,
                            const rp_net *critic, size_t rows, rp_sac_rating **out,
                            rp_error *err)
{
    size_t actions = rp_net_out_size(policy) / 2;
    rp_sac_rating *r = alloc->resize(alloc->ctx, NULL, 0, sizeof *r);
    rp_status st;

    if (r == NULL) return rp_rl_fail_memory(err, sizeof *r);
    *r = (rp_sac_rating){.alloc = *alloc,
                         .layout = rp_sac_layout_of(policy, critic),
                         .head = rp_box_head(actions),
                         .numbers = rp_net_in_size(policy),
                         .actions = actions,
                         .rows = rows};
    st = make_parts(r, policy, critic, err);
    if (st != RP_OK) {
        rp_sac_rating_free(r);
        return st;
    }
    *out = r;
    return RP_OK;
}

void rp_sac_rating_free(rp_sac_rating *r)
{
    rp_allocator alloc;

    if (r == NULL) return;
    alloc = r->alloc;
    rp_tape_free(r->policy);
    rp_tape_free(r->critic);
    if (r->block != NULL) (void)alloc.resize(alloc.ctx, r->block, r->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, r, sizeof *r, 0);
}

size_t rp_sac_action_count(const rp_sac_rating *r)
{
    return r->actions;
}

const rp_real *rp_sac_draw(rp_sac_rating *r, const rp_real *params, const rp_real *observations,
                           const rp_real *noise, size_t rows, rp_real *actions)
{
    const rp_real *out;

    assert(rows >= 1 && rows <= r->rows);
    out = rp_tape_forward(r->policy, params, observations, rows);
    rp_gaussian_sample(&r->head, out, noise, rows, actions, r->density);
    return r->density;
}

void rp_sac_rate(rp_sac_rating *r, const rp_real *params, size_t critic,
                 const rp_real *observations, const rp_real *actions, size_t rows,
                 rp_real *values)
{
    const rp_real *q;

    assert(critic < RP_SAC_CRITICS && rows >= 1 && rows <= r->rows);
    rp_critic_join(observations, r->numbers, actions, r->actions, rows, r->joined);
    q = rp_tape_forward(r->critic, params + r->layout.critics[critic], r->joined, rows);
    for (size_t i = 0; i < rows; i++) values[i] = q[i];
}

void rp_sac_soft_values(rp_sac_rating *r, const rp_real *params, const rp_real *critic_params,
                        const rp_real *observations, const rp_real *noise, size_t rows,
                        rp_real *values)
{
    const rp_real *density = rp_sac_draw(r, params, observations, noise, rows, r->drawn);
    rp_real temperature = rp_sac_temperature(&r->layout, params);

    rp_sac_rate(r, critic_params, 0, observations, r->drawn, rows, values);
    rp_sac_rate(r, critic_params, 1, observations, r->drawn, rows, r->other);
    for (size_t i = 0; i < rows; i++) {
        rp_real least = values[i] <= r->other[i] ? values[i] : r->other[i];

        values[i] = least - temperature * density[i];
    }
}
