/* SPDX-License-Identifier: Apache-2.0 */
/* The learning half of DPG: batches of the replay to updates (dpg_update.h), priorities back,
 * targets moved. Several learners share the updates (team_update.h).
 *
 * Invariant:
 *   L1  every number that a later update depends on is in a part of get_state() or in the
 *       table. */
#include <assert.h>
#include <string.h>

#include "agents/dpg_net.h"
#include "agents/dpg_update.h"
#include "agents/place.h"
#include "agents/team_update.h"
#include "error/fail.h"
#include "reprise/rl/init.h"

typedef struct dpg_learner {
    rp_learner learner; /* first */
    rp_allocator alloc;
    rp_dpg_settings set;
    rp_env_spec spec;
    size_t batch, count; /* rows of a batch; learners that share it */
    rp_dpg_nets nets;
    rp_learning learning;
    rp_team_update *shared;
    rp_dpg_update *updates[RP_TEAM_MAX_SIZE]; /* the first has the optimizers */
    rp_real *grads[RP_TEAM_MAX_SIZE];         /* of `updates` */

    void *block; /* all arrays below, and the parameters of `learning`: the policy's, then the
                    critic's */
    size_t block_bytes;
    rp_real *now, *next; /* batch x numbers */
    rp_real *actions;    /* batch x actions, from -1 to 1 */
} dpg_learner;

/* Makes a share of the batch one for the networks. */
static rp_dpg_batch take_share(dpg_learner *d, rp_slice share)
{
    const rp_replay_batch *b = rp_team_update_batch(d->shared);
    const rp_dpg_nets *n = &d->nets;
    size_t at = share.first * n->numbers, action_at = share.first * n->action_count;

    rp_box_to_unit(n->observations, (const float *)b->observations + at, share.count,
                   d->now + at, n->numbers);
    rp_box_to_unit(n->observations, (const float *)b->next_observations + at, share.count,
                   d->next + at, n->numbers);
    rp_box_to_unit(n->actions, (const float *)b->actions + action_at, share.count,
                   d->actions + action_at, n->action_count);
    return (rp_dpg_batch){
        .now = d->now + at,
        .actions = d->actions + action_at,
        .reward = b->rewards + share.first,
        .discount = b->discounts + share.first,
        .next = d->next + at,
        .weights = d->set.prioritized || b->left_out > 0 ? b->weights + share.first : NULL};
}

/* The gradients of the share of learner `i`. */
static rp_update_found find_gradients(void *ctx, size_t i, rp_slice share, rp_real *errors)
{
    dpg_learner *d = ctx;
    const rp_dpg_batch batch = take_share(d, share);
    rp_dpg_found found;

    (void)rp_dpg_gradients(d->updates[i], d->learning.params, d->learning.target_params, &batch,
                           &found);
    memcpy(errors, found.errors, share.count * sizeof *errors);
    return (rp_update_found){found.loss, found.value};
}

static rp_status update(rp_learner *learner, rp_wait wait, rp_error *err)
{
    return rp_team_update_run(((dpg_learner *)learner)->shared, wait, err);
}

static const rp_real *parameters(const rp_learner *learner)
{
    return ((const dpg_learner *)learner)->learning.params;
}

static rp_status new_policy(const rp_learner *learner, size_t rows, rp_policy **out,
                            rp_error *err)
{
    const dpg_learner *d = (const dpg_learner *)learner;

    return rp_dpg_new_policy(&d->alloc, d->nets.policy, &d->set, &d->spec, rows, out, err);
}

static void get_metrics(rp_learner *learner, rp_agent_metrics *out)
{
    rp_team_update_metrics(((dpg_learner *)learner)->shared, out);
}

static size_t get_state(rp_learner *learner, rp_state_part *parts)
{
    return rp_learning_get_state(&((dpg_learner *)learner)->learning, parts);
}

static rp_status restored(rp_learner *learner, rp_error *err)
{
    return rp_learning_restored(&((dpg_learner *)learner)->learning, err);
}

/* Makes what each of `count` learners has of its own; the first has the optimizers, unless all
 * are helpers. On failure the caller frees what there is. */
static rp_status make_updates(const dpg_learner *d, size_t count, bool are_helpers,
                              rp_dpg_update **updates, rp_error *err)
{
    rp_dpg_update_options o = {
        .policy = d->nets.policy,
        .critic = d->nets.critic,
        .all_rows = d->batch,
        .rate = d->set.rate,
        .policy_rate = d->set.policy_rate,
        .adam_epsilon = d->set.adam_epsilon,
        .max_norm = d->set.max_norm,
        .max_slope = d->set.max_slope,
        .huber = d->set.huber,
    };
    rp_status st = RP_OK;

    for (size_t i = 0; st == RP_OK && i < count; i++) {
        o.rows = rp_share_of(d->batch, count, i).count;
        o.is_helper = are_helpers || i > 0;
        st = rp_dpg_update_new(&d->alloc, &o, &updates[i], err);
    }
    return st;
}

static void take_updates(dpg_learner *d, size_t count, rp_dpg_update *const *updates)
{
    d->count = count;
    for (size_t i = 0; i < count; i++) {
        d->updates[i] = updates[i];
        d->grads[i] = rp_dpg_grads(updates[i]);
    }
}

static rp_status set_threads(rp_learner *learner, size_t count, rp_error *err)
{
    dpg_learner *d = (dpg_learner *)learner;
    rp_dpg_update *updates[RP_TEAM_MAX_SIZE] = {NULL}, **unused = d->updates;
    size_t before = d->count;
    rp_status st;

    if (count < 1 || count > RP_TEAM_MAX_SIZE || count > d->batch)
        return rp_rl_fail(err, RP_INVALID, "dpg: learners must be from 1 to %zu, got %zu",
                          d->batch < RP_TEAM_MAX_SIZE ? d->batch : RP_TEAM_MAX_SIZE, count);
    st = make_updates(d, count, true, updates, err);
    if (st == RP_OK) st = rp_team_update_set_learners(d->shared, count, err);
    if (st == RP_OK) {
        rp_dpg_take_optimizers(updates[0], d->updates[0]);
    } else {
        unused = updates;
        before = count;
    }
    for (size_t i = 0; i < before; i++) rp_dpg_update_free(unused[i]);
    if (st == RP_OK) take_updates(d, count, updates);
    return st;
}

static void free_learner(rp_learner *learner)
{
    dpg_learner *d = (dpg_learner *)learner;
    rp_allocator alloc = d->alloc;

    rp_team_update_free(d->shared);
    for (size_t i = 0; i < d->count; i++) rp_dpg_update_free(d->updates[i]);
    rp_dpg_nets_deinit(&d->nets);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_learner_class learner_class = {
    .name = "dpg",
    .update = update,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_learner,
    .set_threads = set_threads,
};

static size_t place_arrays(dpg_learner *d, uint8_t *block)
{
    size_t p = d->nets.parameter_count, seen = d->batch * d->nets.numbers, end = 0;

    d->learning.params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->learning.target_params = rp_place_array(block, &end, p, sizeof(rp_real));
    d->now = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->next = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->actions = rp_place_array(block, &end, d->batch * d->nets.action_count, sizeof(rp_real));
    return end;
}

static rp_status make_arrays(dpg_learner *d, rp_error *err)
{
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    return RP_OK;
}

/* The first parameters, of both networks; the targets equal them. */
static rp_status init_params(dpg_learner *d, rp_pcg64 *rng, rp_error *err)
{
    rp_real *params = d->learning.params, *critic = params + rp_net_size(d->nets.policy);
    rp_status st = rp_net_init(&d->alloc, d->nets.policy, RP_INIT_TORCH, rng, params);

    if (st == RP_OK) st = rp_net_init(&d->alloc, d->nets.critic, RP_INIT_TORCH, rng, critic);
    if (st != RP_OK) return rp_rl_fail(err, st, "dpg: the networks cannot be initialised");
    memcpy(d->learning.target_params, params, d->nets.parameter_count * sizeof(rp_real));
    return RP_OK;
}

/* Makes the learners, and tells `learning` of their optimizers. */
static rp_status make_learners(dpg_learner *d, rp_error *err)
{
    rp_status st = make_updates(d, d->count, false, d->updates, err);

    if (st != RP_OK) return st;
    take_updates(d, d->count, d->updates);
    rp_learning_add_network(&d->learning,
                            &(rp_learning_network){"policy_moments",
                                                   rp_dpg_policy_optimizer(d->updates[0]),
                                                   rp_net_size(d->nets.policy)});
    rp_learning_add_network(&d->learning,
                            &(rp_learning_network){"critic_moments",
                                                   rp_dpg_critic_optimizer(d->updates[0]),
                                                   rp_net_size(d->nets.critic)});
    assert(d->learning.count == d->nets.parameter_count);
    return RP_OK;
}

static rp_status make_parts(dpg_learner *d, const rp_dpg_learner_options *o, rp_error *err)
{
    const rp_dpg_settings *set = &d->set;
    const rp_replay_options replay = {
        .spec = &d->spec,
        .client = o->client,
        .store = o->store,
        .batch = d->batch,
        .beta = set->prioritized ? set->weight_exponent : 0,
        .mutate_for = o->store != NULL ? 1 : o->mutate_for,
    };
    const rp_team_update_options shared = {
        .learning = &d->learning,
        .replay = &replay,
        .learners = d->count,
        .discount = set->discount,
        .huber = set->huber,
        .is_clipped = set->max_norm > 0,
        .sets_priorities = set->prioritized || set->evict_exponent != 0,
        .target_every = set->target_every,
        .target_rate = set->target_rate,
        .grads = d->grads,
        .find = find_gradients,
        .ctx = d,
    };
    rp_status st = rp_dpg_nets_init(&d->alloc, set, &d->spec, &d->nets, err);

    if (st != RP_OK) return st;
    d->learner.parameter_count = d->nets.parameter_count;
    st = make_arrays(d, err);
    if (st == RP_OK) st = init_params(d, o->rng, err);
    if (st == RP_OK) st = make_learners(d, err);
    if (st == RP_OK) st = rp_team_update_new(&d->alloc, &shared, &d->shared, err);
    return st;
}

rp_status rp_dpg_learner_new(const rp_allocator *alloc, const rp_dpg_learner_options *o,
                             rp_learner **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_dpg_settings_check(o->settings, err);
    dpg_learner *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dpg_learner){.learner = {.type = &learner_class},
                       .alloc = a,
                       .set = *o->settings,
                       .spec = *o->spec,
                       .batch = (size_t)o->settings->batch,
                       .count = (size_t)o->settings->learners,
                       .learning = {.agent = "dpg",
                                    .rate = o->settings->rate,
                                    .max_loss = o->settings->max_loss,
                                    .counts = {.largest_priority = 1}}};
    st = make_parts(d, o, err);
    if (st != RP_OK) {
        free_learner(&d->learner);
        return st;
    }
    *out = &d->learner;
    return RP_OK;
}
