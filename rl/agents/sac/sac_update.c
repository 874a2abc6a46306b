/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of SAC: see sac_update.h.
 *
 * Invariants:
 *   U1  in each row one critic, that of the smaller value, has the slope of the policy's loss
 * by
 *       the value, and the other 0;
 *   U2  the sums of what shares of a batch find are what is found for the whole; one share of
 *       all rows has the bits of it. */
#include "agents/sac/sac_update.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/box/box_head.h"
#include "agents/box/critic.h"
#include "agents/place.h"
#include "error/fail.h"

struct rp_sac_update {
    rp_allocator alloc;
    rp_sac_update_options options;
    size_t all_rows; /* of the batch */
    rp_sac_layout layout;
    rp_gaussian head;
    rp_sac_rating *rating;
    rp_tape *policy;
    rp_critic *critics[RP_SAC_CRITICS];
    rp_optimizer *optimizers[RP_SAC_PARTS];
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *grads;                    /* as the parameters */
    rp_real *chosen;                   /* the policy's actions: rows x actions */
    rp_real *by_action;                /* gradients by `chosen` */
    rp_real *by_out;                   /* and by the policy's output: rows x 2 actions */
    rp_real *target, *errors;          /* rows */
    rp_real *density, *by_density;     /* rows */
    rp_real *by_value[RP_SAC_CRITICS]; /* rows */
};

static size_t place_arrays(rp_sac_update *u, uint8_t *block)
{
    size_t rows = u->options.rows, wide = rows * u->head.actions, end = 0;

    u->grads = rp_place_array(block, &end, u->layout.count, sizeof(rp_real));
    u->chosen = rp_place_array(block, &end, wide, sizeof(rp_real));
    u->by_action = rp_place_array(block, &end, wide, sizeof(rp_real));
    u->by_out = rp_place_array(block, &end, 2 * wide, sizeof(rp_real));
    u->target = rp_place_array(block, &end, rows, sizeof(rp_real));
    u->errors = rp_place_array(block, &end, rows, sizeof(rp_real));
    u->density = rp_place_array(block, &end, rows, sizeof(rp_real));
    u->by_density = rp_place_array(block, &end, rows, sizeof(rp_real));
    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        u->by_value[k] = rp_place_array(block, &end, rows, sizeof(rp_real));
    return end;
}

static rp_status make_arrays(rp_sac_update *u, rp_error *err)
{
    u->block_bytes = place_arrays(u, NULL);
    u->block = u->alloc.resize(u->alloc.ctx, NULL, 0, u->block_bytes);
    if (u->block == NULL) return rp_rl_fail_memory(err, u->block_bytes);
    memset(u->block, 0, u->block_bytes);
    (void)place_arrays(u, u->block);
    return RP_OK;
}

static rp_status make_tapes(rp_sac_update *u, rp_error *err)
{
    const rp_sac_update_options *o = &u->options;
    const rp_tape_options training = {.rows = o->rows, .train = true};
    const rp_critic_options critic = {.net = o->critic,
                                      .numbers = rp_net_in_size(o->policy),
                                      .actions = u->head.actions,
                                      .rows = o->rows,
                                      .all_rows = u->all_rows,
                                      .huber = o->huber};
    rp_status st = rp_sac_rating_new(&u->alloc, o->policy, o->critic, o->rows, &u->rating, err);

    if (st == RP_OK) st = rp_tape_new(&u->alloc, o->policy, training, &u->policy, err);
    for (size_t k = 0; st == RP_OK && k < RP_SAC_CRITICS; k++)
        st = rp_critic_new(&u->alloc, &critic, &u->critics[k], err);
    return st;
}

static rp_status make_optimizers(rp_sac_update *u, rp_error *err)
{
    const rp_sac_update_options *o = &u->options;
    const double rates[RP_SAC_PARTS] = {o->policy_rate, o->rate, o->temperature_rate};
    rp_optimizer_options adam = {
        .kind = RP_ADAM, .epsilon = o->adam_epsilon, .max_norm = o->max_norm};
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < RP_SAC_PARTS; i++) {
        adam.rate = rates[i];
        st = rp_optimizer_new(&u->alloc, rp_sac_part_size(&u->layout, i), &adam,
                              &u->optimizers[i], err);
    }
    return st;
}

rp_status rp_sac_update_new(const rp_allocator *alloc, const rp_sac_update_options *options,
                            rp_sac_update **out, rp_error *err)
{
    rp_sac_update *u = alloc->resize(alloc->ctx, NULL, 0, sizeof *u);
    rp_status st;

    assert(options->rows >= 1);
    if (u == NULL) return rp_rl_fail_memory(err, sizeof *u);
    *u = (rp_sac_update){.alloc = *alloc,
                         .options = *options,
                         .all_rows = options->all_rows > 0 ? options->all_rows : options->rows,
                         .layout = rp_sac_layout_of(options->policy, options->critic),
                         .head = rp_box_head(rp_net_out_size(options->policy) / 2)};
    st = make_tapes(u, err);
    if (st == RP_OK && !options->is_helper) st = make_optimizers(u, err);
    if (st == RP_OK) st = make_arrays(u, err);
    if (st != RP_OK) {
        rp_sac_update_free(u);
        return st;
    }
    *out = u;
    return RP_OK;
}

void rp_sac_update_free(rp_sac_update *u)
{
    rp_allocator alloc;

    if (u == NULL) return;
    alloc = u->alloc;
    rp_sac_rating_free(u->rating);
    rp_tape_free(u->policy);
    for (size_t k = 0; k < RP_SAC_CRITICS; k++) rp_critic_free(u->critics[k]);
    for (size_t i = 0; i < RP_SAC_PARTS; i++) rp_optimizer_free(u->optimizers[i]);
    if (u->block != NULL) (void)alloc.resize(alloc.ctx, u->block, u->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, u, sizeof *u, 0);
}

/* Keeps the errors that are larger in size. */
static void take_larger(rp_real *errors, const rp_real *others, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        if (!(fabs((double)others[i]) <= fabs((double)errors[i]))) errors[i] = others[i];
}

/* The critics: targets, losses, gradients. */
static void learn_values(rp_sac_update *u, const rp_real *params, const rp_real *target_params,
                         const rp_box_batch *batch, rp_sac_found *found)
{
    size_t rows = u->options.rows;

    rp_sac_soft_values(u->rating, params, target_params, batch->next, batch->next_noise, rows,
                       u->target);
    for (size_t i = 0; i < rows; i++)
        u->target[i] = batch->reward[i] + batch->discount[i] * u->target[i];
    memset(u->errors, 0, rows * sizeof *u->errors);
    for (size_t k = 0; k < RP_SAC_CRITICS; k++) {
        size_t at = u->layout.critics[k];
        rp_critic_found values =
            rp_critic_learn(u->critics[k], params + at, batch, u->target, u->grads + at);

        found->loss += values.loss / RP_SAC_CRITICS;
        found->value += values.value / RP_SAC_CRITICS;
        take_larger(u->errors, values.errors, rows);
    }
    found->errors = u->errors;
}

/* Writes the gradients of the policy's loss by its actions: up the smaller value (U1). */
static void climb_values(rp_sac_update *u, const rp_real *params, const rp_box_batch *batch)
{
    const rp_real *values[RP_SAC_CRITICS], slope = -1 / (rp_real)u->all_rows;

    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        values[k] = rp_critic_values(u->critics[k], params + u->layout.critics[k], batch->now,
                                     u->chosen);
    for (size_t i = 0; i < u->options.rows; i++) {
        bool is_first = values[0][i] <= values[1][i];

        u->by_value[0][i] = is_first ? slope : 0;
        u->by_value[1][i] = is_first ? 0 : slope;
    }
    for (size_t k = 0; k < RP_SAC_CRITICS; k++)
        rp_critic_slopes(u->critics[k], params + u->layout.critics[k], u->by_value[k], k > 0,
                         u->by_action);
}

/* The policy and the temperature: actions, values and densities there, gradients. */
static void learn_actions(rp_sac_update *u, const rp_real *params, const rp_box_batch *batch,
                          rp_sac_found *found)
{
    size_t rows = u->options.rows;
    const rp_real *out = rp_tape_forward(u->policy, params, batch->now, rows);
    rp_real by_density = rp_sac_temperature(&u->layout, params) / (rp_real)u->all_rows;
    double excess = 0; /* of the entropy over its target */

    rp_gaussian_sample(&u->head, out, batch->noise, rows, u->chosen, u->density);
    climb_values(u, params, batch);
    for (size_t i = 0; i < rows; i++) {
        u->by_density[i] = by_density;
        found->entropy -= (double)u->density[i] / (double)u->all_rows;
        excess -= (double)u->density[i] + u->options.target_entropy;
    }
    rp_gaussian_backward(&u->head, out, batch->noise, rows, u->by_action, u->by_density,
                         u->by_out);
    rp_tape_backward(u->policy, params, u->by_out, u->grads, NULL);
    u->grads[u->layout.temperature] =
        u->options.tunes_temperature ? (rp_real)(excess / (double)u->all_rows) : 0;
}

rp_real *rp_sac_gradients(rp_sac_update *u, const rp_real *params, const rp_real *target_params,
                          const rp_box_batch *batch, rp_sac_found *found)
{
    assert(batch->noise != NULL && batch->next_noise != NULL);
    *found = (rp_sac_found){0};
    learn_values(u, params, target_params, batch, found);
    learn_actions(u, params, batch, found);
    return u->grads;
}

rp_real *rp_sac_grads(rp_sac_update *u)
{
    return u->grads;
}

rp_optimizer *rp_sac_optimizer(rp_sac_update *u, size_t part)
{
    assert(part < RP_SAC_PARTS && !u->options.is_helper);
    return u->optimizers[part];
}

void rp_sac_take_optimizers(rp_sac_update *u, rp_sac_update *from)
{
    assert(u->options.is_helper && !from->options.is_helper);
    memcpy(u->optimizers, from->optimizers, sizeof u->optimizers);
    u->options.is_helper = false;
    memset(from->optimizers, 0, sizeof from->optimizers);
    from->options.is_helper = true;
}

size_t rp_sac_part_size(const rp_sac_layout *l, size_t part)
{
    switch (part) {
    case RP_SAC_POLICY: return l->policy_size;
    case RP_SAC_BOTH_CRITICS: return RP_SAC_CRITICS * l->critic_size;
    default: return l->count - l->temperature;
    }
}

void rp_sac_step(rp_sac_update *u, rp_real *params, const rp_real *target_params,
                 const rp_box_batch *batch, rp_sac_found *found)
{
    size_t at = 0;

    assert(!u->options.is_helper && u->options.rows == u->all_rows);
    (void)rp_sac_gradients(u, params, target_params, batch, found);
    for (size_t i = 0; i < RP_SAC_PARTS; i++) {
        (void)rp_optimizer_step(u->optimizers[i], params + at, u->grads + at);
        at += rp_sac_part_size(&u->layout, i);
    }
}
