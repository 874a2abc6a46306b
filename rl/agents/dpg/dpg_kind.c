/* SPDX-License-Identifier: Apache-2.0 */
/* DPG's acting and learning (dpg_rating.h, dpg_update.h) as an agent of continuous actions. */
#include "agents/dpg/dpg_kind.h"

#include <assert.h>
#include <string.h>

#include "agents/dpg/dpg_rating.h"
#include "agents/dpg/dpg_update.h"
#include "reprise/rl/dpg.h"

const rp_box_shape rp_dpg_shape = {.table = rp_dpg_settings_table, .critics = 1};

static rp_status new_rating(const rp_allocator *alloc, const rp_box_nets *nets, size_t rows,
                            void **out, rp_error *err)
{
    rp_dpg_rating *rating = NULL;
    rp_status st = rp_dpg_rating_new(alloc, nets->policy, nets->critic, rows, &rating, err);

    *out = rating;
    return st;
}

static void free_rating(void *rating)
{
    rp_dpg_rating_free(rating);
}

/* The policy's actions and noise. */
static void act(void *rating, const rp_real *params, const rp_real *now, const double *noise,
                size_t rows, rp_real *actions)
{
    const rp_real *chosen = rp_dpg_choose(rating, params, now, rows);
    size_t count = rows * rp_dpg_action_count(rating);

    for (size_t i = 0; i < count; i++) actions[i] = (rp_real)((double)chosen[i] + noise[i]);
}

static void rate(void *rating, const rp_real *params, const rp_box_batch *items, size_t rows,
                 rp_real *values, rp_real *later)
{
    rp_dpg_rate(rating, params, items->now, items->actions, rows, values);
    rp_dpg_rate(rating, params, items->next, NULL, rows, later);
}

const rp_box_acting rp_dpg_acting = {
    .shape = &rp_dpg_shape,
    .new_rating = new_rating,
    .free_rating = free_rating,
    .act = act,
    .rate = rate,
};

static rp_status new_update(const rp_box_update_options *o, void **out, rp_error *err)
{
    const rp_dpg_settings *set = o->settings;
    const rp_dpg_update_options options = {
        .policy = o->nets->policy,
        .critic = o->nets->critic,
        .rows = o->rows,
        .all_rows = o->all_rows,
        .is_helper = o->is_helper,
        .rate = set->rate,
        .policy_rate = set->policy_rate,
        .adam_epsilon = set->adam_epsilon,
        .max_norm = set->max_norm,
        .max_slope = set->max_slope,
        .huber = set->huber,
    };
    rp_dpg_update *update = NULL;
    rp_status st = rp_dpg_update_new(o->alloc, &options, &update, err);

    *out = update;
    return st;
}

static void free_update(void *update)
{
    rp_dpg_update_free(update);
}

static rp_real *grads(void *update)
{
    return rp_dpg_grads(update);
}

static rp_update_found find(void *update, const rp_real *params, const rp_real *target_params,
                            const rp_box_batch *batch, size_t rows, rp_real *errors)
{
    rp_dpg_found found;

    (void)rp_dpg_gradients(update, params, target_params, batch, &found);
    memcpy(errors, found.errors, rows * sizeof *errors);
    return (rp_update_found){found.loss, found.value};
}

static size_t networks(void *update, const rp_box_nets *nets, rp_learning_network *out)
{
    static_assert(RP_LEARNING_NETWORKS >= 2, "a policy and a critic");
    out[0] = (rp_learning_network){"policy_moments", rp_dpg_policy_optimizer(update),
                                   rp_net_size(nets->policy)};
    out[1] = (rp_learning_network){"critic_moments", rp_dpg_critic_optimizer(update),
                                   rp_net_size(nets->critic)};
    return 2;
}

static void take_optimizers(void *update, void *from)
{
    rp_dpg_take_optimizers(update, from);
}

const rp_box_learning rp_dpg_learning = {
    .shape = &rp_dpg_shape,
    .new_update = new_update,
    .free_update = free_update,
    .grads = grads,
    .take_optimizers = take_optimizers,
    .find = find,
    .networks = networks,
};
