/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of DPG: see dpg_update.h.
 *
 * Invariants:
 *   U1  the slope that reaches the policy is within +- max_slope / all_rows in each number, if
 *       max_slope > 0;
 *   U2  the sums of what shares of a batch find are what is found for the whole; one share of
 *       all rows has the bits of it. */
#include "agents/dpg/dpg_update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/box/critic.h"
#include "agents/dpg/dpg_rating.h"
#include "agents/place.h"
#include "error/fail.h"

struct rp_dpg_update {
    rp_allocator alloc;
    rp_dpg_update_options options;
    size_t all_rows; /* of the batch */
    size_t actions;
    size_t policy_size, critic_size; /* parameters */
    rp_dpg_rating *rating;
    rp_tape *policy;
    rp_critic *critic;
    rp_optimizer *policy_optimizer, *critic_optimizer;
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *grads;         /* of policy and critic */
    rp_real *slopes;        /* rows x actions */
    rp_real *target, *ones; /* rows */
};

static size_t place_arrays(rp_dpg_update *u, uint8_t *block)
{
    size_t rows = u->options.rows, end = 0;

    u->grads = rp_place_array(block, &end, u->policy_size + u->critic_size, sizeof(rp_real));
    u->slopes = rp_place_array(block, &end, rows * u->actions, sizeof(rp_real));
    u->target = rp_place_array(block, &end, rows, sizeof(rp_real));
    u->ones = rp_place_array(block, &end, rows, sizeof(rp_real));
    return end;
}

static rp_status make_arrays(rp_dpg_update *u, rp_error *err)
{
    u->block_bytes = place_arrays(u, NULL);
    u->block = u->alloc.resize(u->alloc.ctx, NULL, 0, u->block_bytes);
    if (u->block == NULL) return rp_rl_fail_memory(err, u->block_bytes);
    memset(u->block, 0, u->block_bytes);
    (void)place_arrays(u, u->block);
    for (size_t i = 0; i < u->options.rows; i++) u->ones[i] = 1;
    return RP_OK;
}

static rp_status make_tapes(rp_dpg_update *u, rp_error *err)
{
    const rp_dpg_update_options *o = &u->options;
    const rp_tape_options training = {.rows = o->rows, .train = true};
    const rp_critic_options critic = {.net = o->critic,
                                      .numbers = rp_net_in_size(o->policy),
                                      .actions = u->actions,
                                      .rows = o->rows,
                                      .all_rows = u->all_rows,
                                      .huber = o->huber};
    rp_optimizer_options adam = {.kind = RP_ADAM,
                                 .rate = o->policy_rate,
                                 .epsilon = o->adam_epsilon,
                                 .max_norm = o->max_norm};
    rp_status st = rp_dpg_rating_new(&u->alloc, o->policy, o->critic, o->rows, &u->rating, err);

    if (st == RP_OK) st = rp_tape_new(&u->alloc, o->policy, training, &u->policy, err);
    if (st == RP_OK) st = rp_critic_new(&u->alloc, &critic, &u->critic, err);
    if (st != RP_OK || o->is_helper) return st;
    st = rp_optimizer_new(&u->alloc, u->policy_size, &adam, &u->policy_optimizer, err);
    adam.rate = o->rate;
    if (st == RP_OK)
        st = rp_optimizer_new(&u->alloc, u->critic_size, &adam, &u->critic_optimizer, err);
    return st;
}

rp_status rp_dpg_update_new(const rp_allocator *alloc, const rp_dpg_update_options *options,
                            rp_dpg_update **out, rp_error *err)
{
    rp_dpg_update *u = alloc->resize(alloc->ctx, NULL, 0, sizeof *u);
    rp_status st;

    assert(options->rows >= 1);
    if (u == NULL) return rp_rl_fail_memory(err, sizeof *u);
    *u = (rp_dpg_update){.alloc = *alloc,
                         .options = *options,
                         .all_rows = options->all_rows > 0 ? options->all_rows : options->rows,
                         .actions = rp_net_out_size(options->policy),
                         .policy_size = rp_net_size(options->policy),
                         .critic_size = rp_net_size(options->critic)};
    st = make_tapes(u, err);
    if (st == RP_OK) st = make_arrays(u, err);
    if (st != RP_OK) {
        rp_dpg_update_free(u);
        return st;
    }
    *out = u;
    return RP_OK;
}

void rp_dpg_update_free(rp_dpg_update *u)
{
    rp_allocator alloc;

    if (u == NULL) return;
    alloc = u->alloc;
    rp_dpg_rating_free(u->rating);
    rp_tape_free(u->policy);
    rp_critic_free(u->critic);
    rp_optimizer_free(u->policy_optimizer);
    rp_optimizer_free(u->critic_optimizer);
    if (u->block != NULL) (void)alloc.resize(alloc.ctx, u->block, u->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, u, sizeof *u, 0);
}

/* The critic: targets, loss, gradient. */
static void learn_values(rp_dpg_update *u, const rp_real *params, const rp_real *target_params,
                         const rp_box_batch *batch, rp_dpg_found *found)
{
    size_t rows = u->options.rows;
    rp_critic_found values;

    rp_dpg_rate(u->rating, target_params, batch->next, NULL, rows, u->target);
    for (size_t i = 0; i < rows; i++)
        u->target[i] = batch->reward[i] + batch->discount[i] * u->target[i];
    values = rp_critic_learn(u->critic, params + u->policy_size, batch, u->target,
                             u->grads + u->policy_size);
    found->loss = values.loss;
    found->value = values.value;
    found->errors = values.errors;
}

/* A slope as the policy's loss has it: clipped (U1), with the sign of a loss, divided by the
 * rows of the batch. */
static rp_real slope_of(const rp_dpg_update *u, rp_real slope)
{
    rp_real most = (rp_real)u->options.max_slope;

    if (most > 0 && slope > most) slope = most;
    if (most > 0 && slope < -most) slope = -most;
    return -slope / (rp_real)u->all_rows;
}

/* The policy: its actions, the critic's slopes there, gradient. */
static void learn_actions(rp_dpg_update *u, const rp_real *params, const rp_box_batch *batch)
{
    size_t rows = u->options.rows;
    const rp_real *critic = params + u->policy_size;
    const rp_real *actions = rp_tape_forward(u->policy, params, batch->now, rows);

    (void)rp_critic_values(u->critic, critic, batch->now, actions);
    rp_critic_slopes(u->critic, critic, u->ones, false, u->slopes);
    for (size_t i = 0; i < rows * u->actions; i++) u->slopes[i] = slope_of(u, u->slopes[i]);
    rp_tape_backward(u->policy, params, u->slopes, u->grads, NULL);
}

rp_real *rp_dpg_gradients(rp_dpg_update *u, const rp_real *params, const rp_real *target_params,
                          const rp_box_batch *batch, rp_dpg_found *found)
{
    *found = (rp_dpg_found){0};
    learn_values(u, params, target_params, batch, found);
    learn_actions(u, params, batch);
    return u->grads;
}

rp_real *rp_dpg_grads(rp_dpg_update *u)
{
    return u->grads;
}

void rp_dpg_step(rp_dpg_update *u, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_dpg_found *found)
{
    assert(!u->options.is_helper && u->options.rows == u->all_rows);
    (void)rp_dpg_gradients(u, params, target_params, batch, found);
    found->policy_norm = rp_optimizer_step(u->policy_optimizer, params, u->grads);
    found->norm = rp_optimizer_step(u->critic_optimizer, params + u->policy_size,
                                    u->grads + u->policy_size);
    assert(found->norm >= 0 || isnan(found->norm));
}

void rp_dpg_take_optimizers(rp_dpg_update *u, rp_dpg_update *from)
{
    assert(u->options.is_helper && !from->options.is_helper);
    u->policy_optimizer = from->policy_optimizer;
    u->critic_optimizer = from->critic_optimizer;
    u->options.is_helper = false;
    from->policy_optimizer = from->critic_optimizer = NULL;
    from->options.is_helper = true;
}

rp_optimizer *rp_dpg_policy_optimizer(rp_dpg_update *u)
{
    return u->policy_optimizer;
}

rp_optimizer *rp_dpg_critic_optimizer(rp_dpg_update *u)
{
    return u->critic_optimizer;
}
