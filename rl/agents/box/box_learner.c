/* SPDX-License-Identifier: Apache-2.0 */
/* Learners of continuous actions: see box_learner.h.
 *
 * Invariants:
 *   L1  every number that a later update depends on is in a part of get_state() or in the
 *       table;
 *   L2  the noise of a batch is drawn by one thread, before learners have their shares: it does
 *       not depend on their number. */
#include "agents/box/box_learner.h"

#include <assert.h>
#include <string.h>

#include "agents/place.h"
#include "agents/setting_value.h"
#include "error/fail.h"
#include "reprise/rl/init.h"

typedef struct box_learner {
    rp_learner learner;    /* first; its class is `type` */
    rp_learner_class type; /* with the name of the agent */
    rp_allocator alloc;
    const rp_box_learning *how;
    void *settings; /* a copy */
    rp_env_spec spec;
    size_t batch, count; /* rows of a batch; learners that share it */
    bool uses_weights;
    rp_box_nets nets;
    rp_learning learning;
    rp_pcg64 rng; /* of noise */
    rp_team_update *shared;
    void *updates[RP_TEAM_MAX_SIZE];  /* the first has the optimizers */
    rp_real *grads[RP_TEAM_MAX_SIZE]; /* of `updates` */

    void *block; /* all arrays below, and the parameters of `learning` */
    size_t block_bytes;
    rp_real *now, *next;         /* batch x numbers */
    rp_real *actions;            /* batch x actions, from -1 to 1 */
    rp_real *noise, *next_noise; /* batch x actions, of a policy that draws its actions */
} box_learner;

static double setting(const box_learner *d, const char *name)
{
    return rp_setting_value(d->how->shape->table(), d->settings, name);
}

/* Makes a share of the batch one for the networks. */
static rp_box_batch take_share(box_learner *d, rp_slice share)
{
    const rp_replay_batch *b = rp_team_update_batch(d->shared);
    const rp_box_nets *n = &d->nets;
    size_t at = share.first * n->numbers, action_at = share.first * n->action_count;

    rp_box_to_unit(n->observations, (const float *)b->observations + at, share.count,
                   d->now + at, n->numbers);
    rp_box_to_unit(n->observations, (const float *)b->next_observations + at, share.count,
                   d->next + at, n->numbers);
    rp_box_to_unit(n->actions, (const float *)b->actions + action_at, share.count,
                   d->actions + action_at, n->action_count);
    return (rp_box_batch){
        .now = d->now + at,
        .actions = d->actions + action_at,
        .reward = b->rewards + share.first,
        .discount = b->discounts + share.first,
        .next = d->next + at,
        .weights = d->uses_weights || b->left_out > 0 ? b->weights + share.first : NULL,
        .noise = d->noise + action_at,
        .next_noise = d->next_noise + action_at};
}

/* Draws the noise of the policy's actions for a batch (L2). */
static void draw_noise(void *ctx)
{
    box_learner *d = ctx;
    size_t count = d->batch * d->nets.action_count;

    for (size_t i = 0; i < count; i++) d->noise[i] = (rp_real)rp_pcg64_normal(&d->rng);
    for (size_t i = 0; i < count; i++) d->next_noise[i] = (rp_real)rp_pcg64_normal(&d->rng);
}

/* The gradients of the share of learner `i`. */
static rp_update_found find_gradients(void *ctx, size_t i, rp_slice share, rp_real *errors)
{
    box_learner *d = ctx;
    const rp_box_batch batch = take_share(d, share);

    return d->how->find(d->updates[i], d->learning.params, d->learning.target_params, &batch,
                        share.count, errors);
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    return rp_team_update_run(((box_learner *)learner)->shared, wait, err);
}

static const rp_real *parameters(const rp_learner *learner)
{
    return ((const box_learner *)learner)->learning.params;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const box_learner *d = (const box_learner *)learner;
    const rp_box_making making =
        rp_box_making_of(&d->alloc, d->how->shape, d->settings, &d->spec);

    return rp_box_new_policy(&making, d->nets.policy, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    rp_team_update_metrics(((box_learner *)learner)->shared, out);
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    box_learner *d = (box_learner *)learner;
    size_t count = rp_learning_get_state(&d->learning, parts);

    if (d->how->shape->is_gaussian)
        parts[count++] = (rp_state_part){"learner_rng", &d->rng, sizeof d->rng};
    return count;
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    box_learner *d = (box_learner *)learner;

    if (!rp_pcg64_check(&d->rng))
        return rp_rl_fail(err, RP_CORRUPT, "%s: a number of the snapshot is impossible",
                          d->learning.agent);
    return rp_learning_restored(&d->learning, err);
}

/* Makes what each of `count` learners has of its own; the first has the optimizers, unless all
 * are helpers. On failure the caller frees what there is. */
static rp_status make_updates(const box_learner *d, size_t count, bool are_helpers,
                              void **updates, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < count; i++) {
        const rp_box_update_options o = {.alloc = &d->alloc,
                                         .nets = &d->nets,
                                         .settings = d->settings,
                                         .rows = rp_share_of(d->batch, count, i).count,
                                         .all_rows = d->batch,
                                         .is_helper = are_helpers || i > 0};

        st = d->how->new_update(&o, &updates[i], err);
    }
    return st;
}

static void free_updates(const box_learner *d, size_t count, void *const *updates)
{
    for (size_t i = 0; i < count; i++)
        if (updates[i] != NULL) d->how->free_update(updates[i]);
}

static void take_updates(box_learner *d, size_t count, void *const *updates)
{
    d->count = count;
    for (size_t i = 0; i < count; i++) {
        d->updates[i] = updates[i];
        d->grads[i] = d->how->grads(updates[i]);
    }
}

static rp_status set_threads(rp_learner *learner, size_t count, rp_error *err)
{
    box_learner *d = (box_learner *)learner;
    void *updates[RP_TEAM_MAX_SIZE] = {NULL};
    rp_status st;

    if (count < 1 || count > RP_TEAM_MAX_SIZE || count > d->batch)
        return rp_rl_fail(err, RP_INVALID, "%s: learners must be from 1 to %zu, got %zu",
                          d->learning.agent,
                          d->batch < RP_TEAM_MAX_SIZE ? d->batch : RP_TEAM_MAX_SIZE, count);
    st = make_updates(d, count, true, updates, err);
    if (st == RP_OK) st = rp_team_update_set_learners(d->shared, count, err);
    if (st != RP_OK) {
        free_updates(d, count, updates);
        return st;
    }
    d->how->take_optimizers(updates[0], d->updates[0]);
    free_updates(d, d->count, d->updates);
    take_updates(d, count, updates);
    return RP_OK;
}

static void free_learner(rp_learner *learner)
{
    box_learner *d = (box_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_team_update_free(d->shared);
    free_updates(d, d->count, d->updates);
    rp_box_nets_deinit(&d->nets);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    if (d->settings != NULL)
        (void)alloc.resize(alloc.ctx, d->settings, d->how->shape->table()->size, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_learner_class learner_class = {
    .update = update,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_learner,
    .set_threads = set_threads,
};

static size_t place_arrays(box_learner *d, uint8_t *block)
{
    size_t p = d->nets.parameter_count, seen = d->batch * d->nets.numbers, end = 0;
    size_t done = d->batch * d->nets.action_count;

    d->learning.params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->learning.target_params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->now = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->next = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->actions = rp_place_array(block, &end, done, sizeof(rp_real));
    d->noise = rp_place_array(block, &end, done, sizeof(rp_real));
    d->next_noise = rp_place_array(block, &end, done, sizeof(rp_real));
    return end;
}

static rp_status make_arrays(box_learner *d, rp_error *err)
{
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    return RP_OK;
}

/* The first parameters, of all networks and the agent's own; the targets equal them. */
static rp_status init_params(box_learner *d, rp_pcg64 *rng, rp_error *err)
{
    const rp_box_shape *shape = d->how->shape;
    rp_real *at = d->learning.params;
    rp_status st = rp_net_init(&d->alloc, d->nets.policy, RP_INIT_TORCH, rng, at);

    at += rp_net_size(d->nets.policy);
    for (size_t k = 0; st == RP_OK && k < shape->critics; k++) {
        st = rp_net_init(&d->alloc, d->nets.critic, RP_INIT_TORCH, rng, at);
        at += rp_net_size(d->nets.critic);
    }
    if (st != RP_OK)
        return rp_rl_fail(err, st, "%s: the networks cannot be initialised", d->learning.agent);
    if (d->how->init_own != NULL) d->how->init_own(d->settings, at);
    memcpy(d->learning.target_params, d->learning.params,
           d->nets.parameter_count * sizeof(rp_real));
    if (shape->is_gaussian) rp_pcg64_seed(&d->rng, rp_pcg64_next(rng));
    return RP_OK;
}

/* Makes the learners, and tells `learning` of their optimizers. */
static rp_status make_learners(box_learner *d, rp_error *err)
{
    rp_learning_network networks[RP_LEARNING_NETWORKS];
    rp_status st = make_updates(d, d->count, false, d->updates, err);
    size_t count;

    if (st != RP_OK) return st;
    take_updates(d, d->count, d->updates);
    count = d->how->networks(d->updates[0], &d->nets, networks);
    for (size_t i = 0; i < count; i++) rp_learning_add_network(&d->learning, &networks[i]);
    assert(d->learning.count == d->nets.parameter_count);
    return RP_OK;
}

static rp_status make_shared(box_learner *d, const rp_box_learner_options *o, rp_error *err)
{
    const rp_replay_options replay = {
        .spec = &d->spec,
        .client = o->client,
        .store = o->store,
        .batch = d->batch,
        .beta = d->uses_weights ? setting(d, "weight-exponent") : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    const rp_team_update_options shared = {
        .learning = &d->learning,
        .replay = &replay,
        .learners = d->count,
        .discount = setting(d, "discount"),
        .huber = setting(d, "huber"),
        .is_clipped = setting(d, "max-norm") > 0,
        .sets_priorities = d->uses_weights || setting(d, "evict-exponent") != 0,
        .target_every = (int64_t)setting(d, "target-every"),
        .target_rate = setting(d, "target-rate"),
        .grads = d->grads,
        .prepare = d->how->shape->is_gaussian ? draw_noise : NULL,
        .find = find_gradients,
        .ctx = d,
    };

    return rp_team_update_new(&d->alloc, &shared, &d->shared, err);
}

static rp_status make_parts(box_learner *d, const rp_box_learner_options *o, rp_error *err)
{
    const rp_settings_table *table = d->how->shape->table();
    rp_box_making making;
    rp_status st;

    d->settings = d->alloc.resize(d->alloc.ctx, NULL, 0, table->size);
    if (d->settings == NULL) return rp_rl_fail_memory(err, table->size);
    memcpy(d->settings, o->settings, table->size);
    d->batch = (size_t)setting(d, "batch");
    d->count = (size_t)setting(d, "learners");
    d->uses_weights = setting(d, "prioritized") != 0;
    d->learning = (rp_learning){.agent = table->agent,
                                .rate = setting(d, "rate"),
                                .max_loss = setting(d, "max-loss"),
                                .counts = {.largest_priority = 1}};
    making = rp_box_making_of(&d->alloc, d->how->shape, d->settings, &d->spec);
    st = rp_box_nets_init(&making, &d->nets, err);
    if (st != RP_OK) return st;
    d->learner.parameter_count = d->nets.parameter_count;
    st = make_arrays(d, err);
    if (st == RP_OK) st = init_params(d, o->rng, err);
    if (st == RP_OK) st = make_learners(d, err);
    if (st == RP_OK) st = make_shared(d, o, err);
    return st;
}

rp_status rp_box_learner_new(const rp_allocator *alloc, const rp_box_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_settings_check(o->how->shape->table(), o->settings, err);
    box_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (box_learner){.learner = {.type = &d->type},
                       .type = learner_class,
                       .alloc = a,
                       .how = o->how,
                       .spec = *o->spec};
    d->type.name = d->how->shape->table()->agent;
    rp_pcg64_seed(&d->rng, 0);
    st = make_parts(d, o, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    *out = &d->learner;
    return RP_OK;
}
