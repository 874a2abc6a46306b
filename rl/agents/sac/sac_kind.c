/* SPDX-License-Identifier: Apache-2.0 */
/* SAC's acting and learning (sac_rating.h, sac_update.h) as an agent of continuous actions. */
#include "agents/sac/sac_kind.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/sac/sac_update.h"
#include "reprise/rl/sac.h"

const rp_box_shape rp_sac_shape = {.table = rp_sac_settings_table,
                                   .is_gaussian = true,
                                   .critics = RP_SAC_CRITICS,
                                   .own = 1}; /* the logarithm of the temperature */

static rp_status new_rating(const rp_allocator *alloc, const rp_box_nets *nets, size_t rows,
                            void **out, rp_error *err)
{
    rp_sac_rating *rating = NULL;
    rp_status st = rp_sac_rating_new(alloc, nets->policy, nets->critic, rows, &rating, err);

    *out = rating;
    return st;
}

static void free_rating(void *rating)
{
    rp_sac_rating_free(rating);
}

/* Actions that the noise draws. */
static void act(void *rating, const rp_real *params, const rp_real *now, const double *noise,
                size_t rows, rp_real *actions)
{
    size_t count = rows * rp_sac_action_count(rating);

    for (size_t i = 0; i < count; i++) actions[i] = (rp_real)noise[i];
    (void)rp_sac_draw(rating, params, now, actions, rows, actions);
}

static void rate(void *rating, const rp_real *params, const rp_box_batch *items, size_t rows,
                 rp_real *values, rp_real *later)
{
    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        rp_sac_rate(rating, params, k, items->now, items->actions, rows, values + k * rows);
    rp_sac_soft_values(rating, params, params, items->next, items->next_noise, rows, later);
}

static double exploration(const rp_box_nets *nets, const rp_real *params)
{
    const rp_sac_layout layout = rp_sac_layout_of(nets->policy, nets->critic);

    return (double)rp_sac_temperature(&layout, params);
}

const rp_box_acting rp_sac_acting = {
    .shape = &rp_sac_shape,
    .new_rating = new_rating,
    .free_rating = free_rating,
    .act = act,
    .rate = rate,
    .exploration = exploration,
};

static rp_status new_update(const rp_box_update_options *o, void **out, rp_error *err)
{
    const rp_sac_settings *set = o->settings;
    const rp_sac_update_options options = {
        .policy = o->nets->policy,
        .critic = o->nets->critic,
        .rows = o->rows,
        .all_rows = o->all_rows,
        .is_helper = o->is_helper,
        .rate = set->rate,
        .policy_rate = set->policy_rate,
        .temperature_rate = set->temperature_rate,
        .adam_epsilon = set->adam_epsilon,
        .max_norm = set->max_norm,
        .huber = set->huber,
        .target_entropy = set->target_entropy * (double)o->nets->action_count,
        .tunes_temperature = set->tune_temperature,
    };
    rp_sac_update *update = NULL;
    rp_status st = rp_sac_update_new(o->alloc, &options, &update, err);

    *out = update;
    return st;
}

static void free_update(void *update)
{
    rp_sac_update_free(update);
}

static rp_real *grads(void *update)
{
    return rp_sac_grads(update);
}

static rp_update_found find(void *update, const rp_real *params, const rp_real *target_params,
                            const rp_box_batch *batch, size_t rows, rp_real *errors)
{
    rp_sac_found found;

    (void)rp_sac_gradients(update, params, target_params, batch, &found);
    memcpy(errors, found.errors, rows * sizeof *errors);
    return (rp_update_found){found.loss, found.value};
}

static size_t networks(void *update, const rp_box_nets *nets, rp_learning_network *out)
{
    static const char *const names[RP_SAC_PARTS] = {"policy_moments", "critic_moments",
                                                    "temperature_moments"};
    const rp_sac_layout layout = rp_sac_layout_of(nets->policy, nets->critic);

    static_assert((int)RP_LEARNING_NETWORKS >= (int)RP_SAC_PARTS,
                  "each part has its optimizer");
    for (size_t i = 0; i < RP_SAC_PARTS; i++)
        out[i] = (rp_learning_network){names[i], rp_sac_optimizer(update, i),
                                       rp_sac_part_size(&layout, i)};
    return RP_SAC_PARTS;
}

static void init_own(const void *settings, rp_real *own)
{
    own[0] = (rp_real)log(((const rp_sac_settings *)settings)->temperature);
}

static void take_optimizers(void *update, void *from)
{
    rp_sac_take_optimizers(update, from);
}

const rp_box_learning rp_sac_learning = {
    .shape = &rp_sac_shape,
    .new_update = new_update,
    .free_update = free_update,
    .grads = grads,
    .take_optimizers = take_optimizers,
    .find = find,
    .networks = networks,
    .init_own = init_own,
};
