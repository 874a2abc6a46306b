/* SPDX-License-Identifier: Apache-2.0 */
/* The acting half of DPG: the policy's actions with noise, clipped to the bounds.
 *
 * New items get the priority |R + discount D Q(o', p(o')) - Q(o, u)| + RP_PRIORITY_FLOOR, by
 * the actor's own parameters (Horgan et al. 2018, algorithm 1).
 *
 * Invariant:
 *   N1  noise is drawn in the order of the copies, and of the numbers of an action: once a
 * step,
 *       and once more with memory when an episode begins. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/dpg_net.h"
#include "agents/dpg_rating.h"
#include "agents/group_writer.h"
#include "agents/place.h"
#include "agents/replay.h"
#include "error/fail.h"
#include "reprise/rl/random.h"

typedef struct dpg_actor {
    rp_actor actor; /* first */
    rp_allocator alloc;
    rp_dpg_settings set;
    size_t copies;
    rp_dpg_nets nets;
    rp_dpg_rating *rating;
    rp_group_writer *writer;

    rp_pcg64 rng; /* of noise */
    void *block;  /* all arrays below; each has a row for each copy */
    size_t block_bytes;
    double *noise;       /* of the latest step */
    rp_real *now, *next; /* observations as the networks read them */
    rp_real *unit;       /* actions from -1 to 1 */
    rp_real *values, *later;
} dpg_actor;

/* The columns of an item, in the order of the adder. */
enum { OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION };

/* Begins the noise of one copy, at its deviation. */
static void begin_noise(dpg_actor *d, size_t copy)
{
    size_t count = d->nets.action_count;

    for (size_t i = 0; d->set.noise_memory > 0 && i < count; i++)
        d->noise[copy * count + i] = d->set.noise * rp_pcg64_normal(&d->rng); /* N1 */
}

static void draw_noise(dpg_actor *d)
{
    double memory = d->set.noise_memory;
    double fresh = d->set.noise * sqrt(1 - memory * memory);

    for (size_t i = 0; i < d->copies * d->nets.action_count; i++) /* N1 */
        d->noise[i] = memory * d->noise[i] + fresh * rp_pcg64_normal(&d->rng);
}

static void act(rp_actor *actor, const void *observations, void *actions)
{
    dpg_actor *d = (dpg_actor *)actor;
    const rp_real *chosen;

    assert(d->actor.params != NULL);
    rp_box_to_unit(d->nets.observations, observations, d->copies, d->now, d->nets.numbers);
    chosen = rp_dpg_choose(d->rating, d->actor.params, d->now, d->copies);
    draw_noise(d);
    for (size_t i = 0; i < d->copies * d->nets.action_count; i++)
        d->unit[i] = (rp_real)((double)chosen[i] + d->noise[i]);
    rp_box_from_unit(d->nets.actions, d->unit, d->copies, actions); /* clips */
}

/* Rates `count` items from number `first` on. */
static void rate_items(dpg_actor *d, const rp_adder_items *items, size_t first, size_t count,
                       double *priorities)
{
    const rp_dpg_nets *n = &d->nets;
    const float *now = items->columns[OBSERVATION], *next = items->columns[NEXT_OBSERVATION];
    const float *actions = items->columns[ACTION];
    const float *rewards = items->columns[REWARD], *discounts = items->columns[DISCOUNT];

    assert(count >= 1 && count <= d->copies);
    rp_box_to_unit(n->observations, now + first * n->numbers, count, d->now, n->numbers);
    rp_box_to_unit(n->observations, next + first * n->numbers, count, d->next, n->numbers);
    rp_box_to_unit(n->actions, actions + first * n->action_count, count, d->unit,
                   n->action_count);
    rp_dpg_rate(d->rating, d->actor.params, d->now, d->unit, count, d->values);
    rp_dpg_rate(d->rating, d->actor.params, d->next, NULL, count, d->later);
    for (size_t i = 0; i < count; i++)
        priorities[first + i] =
            fabs((double)rewards[first + i] +
                 d->set.discount * (double)discounts[first + i] * (double)d->later[i] -
                 (double)d->values[i]) +
            RP_PRIORITY_FLOOR;
}

static rp_status prioritize(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err)
{
    dpg_actor *d = ctx;

    (void)err;
    for (size_t i = 0; i < items->count; i += d->copies) {
        size_t left = items->count - i;

        rate_items(d, items, i, left < d->copies ? left : d->copies, priorities);
    }
    return RP_OK;
}

static rp_status begin(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err)
{
    dpg_actor *d = (dpg_actor *)actor;
    rp_status st = rp_group_writer_begin(d->writer, observations, wait, err);

    for (size_t i = 0; st == RP_OK && i < d->copies; i++) begin_noise(d, i);
    return st;
}

static rp_status observe(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err)
{
    dpg_actor *d = (dpg_actor *)actor;
    rp_status st = rp_group_writer_add(d->writer, step, wait, err);

    for (size_t i = 0; st == RP_OK && i < d->copies; i++)
        if (step->result->terminated[i] || step->result->truncated[i]) begin_noise(d, i);
    return st;
}

static rp_status flush(rp_actor *actor, rp_wait wait, rp_error *err)
{
    return rp_group_writer_flush(((dpg_actor *)actor)->writer, wait, err);
}

static int64_t created(const rp_actor *actor)
{
    return rp_group_writer_created(((const dpg_actor *)actor)->writer);
}

static size_t noise_bytes(const dpg_actor *d)
{
    return d->copies * d->nets.action_count * sizeof d->noise[0];
}

static size_t get_state(rp_actor *actor, rp_state_part *parts)
{
    dpg_actor *d = (dpg_actor *)actor;
    size_t count = 0;

    parts[count++] = (rp_state_part){"actor", &d->rng, sizeof d->rng};
    parts[count++] = (rp_state_part){"noise", d->noise, noise_bytes(d)};
    parts[count++] = rp_group_writer_state(d->writer);
    return count;
}

static rp_status restored(rp_actor *actor, rp_error *err)
{
    dpg_actor *d = (dpg_actor *)actor;
    bool good = rp_pcg64_check(&d->rng);

    for (size_t i = 0; i < d->copies * d->nets.action_count; i++)
        good = good && isfinite(d->noise[i]);
    if (!good)
        return rp_rl_fail(err, RP_CORRUPT, "dpg: a number of the snapshot is impossible");
    return rp_group_writer_restored(d->writer, err);
}

static void free_actor(rp_actor *actor)
{
    dpg_actor *d = (dpg_actor *)actor;
    rp_allocator alloc = d->alloc;

    rp_group_writer_free(d->writer);
    rp_dpg_rating_free(d->rating);
    rp_dpg_nets_deinit(&d->nets);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_actor_class actor_class = {
    .name = "dpg",
    .act = act,
    .begin = begin,
    .observe = observe,
    .flush = flush,
    .created = created,
    .get_state = get_state,
    .restored = restored,
    .free = free_actor,
};

static size_t place_arrays(dpg_actor *d, uint8_t *block)
{
    size_t seen = d->copies * d->nets.numbers, done = d->copies * d->nets.action_count, end = 0;

    d->noise = rp_place_array(block, &end, done, sizeof(double));
    d->now = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->next = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->unit = rp_place_array(block, &end, done, sizeof(rp_real));
    d->values = rp_place_array(block, &end, d->copies, sizeof(rp_real));
    d->later = rp_place_array(block, &end, d->copies, sizeof(rp_real));
    return end;
}

static rp_status make_parts(dpg_actor *d, const rp_dpg_actor_options *o, rp_wait wait,
                            rp_error *err)
{
    const rp_replay_plan plan = rp_dpg_plan(&d->set, o->spec);
    const rp_group_writer_options writer = {
        .plan = &plan,
        .reward_scale = d->set.reward_scale,
        .client = o->client,
        .max_in_flight = o->max_in_flight,
        .settled = o->settled,
        .prioritize = prioritize,
        .ctx = d,
    };
    rp_status st = rp_dpg_nets_init(&d->alloc, &d->set, o->spec, &d->nets, err);

    if (st != RP_OK) return st;
    d->actor.parameter_count = d->nets.parameter_count;
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_dpg_rating_new(&d->alloc, d->nets.policy, d->nets.critic, d->copies, &d->rating,
                           err);
    if (st == RP_OK) st = rp_group_writer_new(&d->alloc, &writer, wait, &d->writer, err);
    return st;
}

rp_status rp_dpg_actor_new(const rp_allocator *alloc, const rp_dpg_actor_options *o,
                           rp_wait wait, rp_actor **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_dpg_settings_check(o->settings, err);
    dpg_actor *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dpg_actor){.actor = {.type = &actor_class, .exploration = o->settings->noise},
                     .alloc = a,
                     .set = *o->settings,
                     .copies = (size_t)o->settings->copies,
                     .rng = *o->rng};
    st = make_parts(d, o, wait, err);
    if (st != RP_OK) {
        free_actor(&d->actor);
        return st;
    }
    *out = &d->actor;
    return RP_OK;
}
