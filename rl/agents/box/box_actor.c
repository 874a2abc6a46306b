/* SPDX-License-Identifier: Apache-2.0 */
/* Actors of continuous actions: see box_actor.h.
 *
 * Invariant:
 *   N1  noise is drawn in the order of the copies, and of the numbers of an action: once a
 *       step, and once more with memory when an episode begins. An agent whose policy draws
 *       actions draws them as well for the priorities of items, in the order of items. */
#include "agents/box/box_actor.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/box/noise.h"
#include "agents/group_writer.h"
#include "agents/place.h"
#include "agents/replay.h"
#include "agents/setting_value.h"
#include "error/fail.h"

typedef struct box_actor {
    rp_actor actor;      /* first; its class is `type` */
    rp_actor_class type; /* with the name of the agent */
    rp_allocator alloc;
    const rp_box_acting *acting;
    double discount;
    size_t copies;
    rp_box_nets nets;
    void *rating;
    rp_group_writer *writer;

    rp_noise noise;
    void *block; /* all arrays below; each has a row for each copy */
    size_t block_bytes;
    rp_real *now, *next; /* observations as the networks read them */
    rp_real *unit;       /* actions from -1 to 1 */
    rp_real *drawn;      /* noise of later actions */
    rp_real *values;     /* of each critic */
    rp_real *later;
} box_actor;

/* The columns of an item, in the order of the adder. */
enum { OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION };

static void act(rp_actor *actor, const void *observations, void *actions)
{
    box_actor *d = (box_actor *)actor;

    assert(d->actor.params != NULL);
    rp_box_to_unit(d->nets.observations, observations, d->copies, d->now, d->nets.numbers);
    rp_noise_draw(&d->noise); /* N1 */
    d->acting->act(d->rating, d->actor.params, d->now, d->noise.now, d->copies, d->unit);
    rp_box_from_unit(d->nets.actions, d->unit, d->copies, actions); /* clips */
    if (d->acting->exploration != NULL)
        d->actor.exploration = d->acting->exploration(&d->nets, d->actor.params);
}

/* The largest TD error of an item, in size, over all critics. */
static double error_of(const box_actor *d, size_t count, size_t i, double target)
{
    double most = 0;

    for (size_t k = 0; k < d->acting->shape->critics; k++) {
        double error = fabs(target - (double)d->values[k * count + i]);

        if (error > most || isnan(error)) most = error;
    }
    return most;
}

/* Rates `count` items from number `first` on. */
static void rate_items(box_actor *d, const rp_adder_items *items, size_t first, size_t count,
                       double *priorities)
{
    const rp_box_nets *n = &d->nets;
    const float *now = items->columns[OBSERVATION], *next = items->columns[NEXT_OBSERVATION];
    const float *actions = items->columns[ACTION];
    const float *rewards = items->columns[REWARD], *discounts = items->columns[DISCOUNT];
    const rp_box_batch batch = {
        .now = d->now, .actions = d->unit, .next = d->next, .next_noise = d->drawn};

    assert(count >= 1 && count <= d->copies);
    rp_box_to_unit(n->observations, now + first * n->numbers, count, d->now, n->numbers);
    rp_box_to_unit(n->observations, next + first * n->numbers, count, d->next, n->numbers);
    rp_box_to_unit(n->actions, actions + first * n->action_count, count, d->unit,
                   n->action_count);
    for (size_t i = 0; d->acting->shape->is_gaussian && i < count * n->action_count; i++)
        d->drawn[i] = (rp_real)rp_pcg64_normal(&d->noise.rng); /* N1 */
    d->acting->rate(d->rating, d->actor.params, &batch, count, d->values, d->later);
    for (size_t i = 0; i < count; i++) {
        double target = (double)rewards[first + i] +
                        d->discount * (double)discounts[first + i] * (double)d->later[i];

        priorities[first + i] = error_of(d, count, i, target) + RP_PRIORITY_FLOOR;
    }
}

static rp_status prioritize(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err)
{
    box_actor *d = ctx;

    (void)err;
    for (size_t i = 0; i < items->count; i += d->copies) {
        size_t left = items->count - i;

        rate_items(d, items, i, left < d->copies ? left : d->copies, priorities);
    }
    return RP_OK;
}

static rp_status begin(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err)
{
    box_actor *d = (box_actor *)actor;
    rp_status st = rp_group_writer_begin(d->writer, observations, wait, err);

    for (size_t i = 0; st == RP_OK && i < d->copies; i++) rp_noise_begin(&d->noise, i);
    return st;
}

static rp_status observe(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err)
{
    box_actor *d = (box_actor *)actor;
    rp_status st = rp_group_writer_add(d->writer, step, wait, err);

    for (size_t i = 0; st == RP_OK && i < d->copies; i++)
        if (step->result->terminated[i] || step->result->truncated[i])
            rp_noise_begin(&d->noise, i);
    return st;
}

static rp_status flush(rp_actor *actor, rp_wait wait, rp_error *err)
{
    return rp_group_writer_flush(((box_actor *)actor)->writer, wait, err);
}

static int64_t created(const rp_actor *actor)
{
    return rp_group_writer_created(((const box_actor *)actor)->writer);
}

static size_t get_state(rp_actor *actor, rp_state_part *parts)
{
    box_actor *d = (box_actor *)actor;
    size_t count = 0, bytes = d->copies * d->nets.action_count * sizeof d->noise.now[0];

    parts[count++] = (rp_state_part){"actor", &d->noise.rng, sizeof d->noise.rng};
    parts[count++] = (rp_state_part){"noise", d->noise.now, bytes};
    parts[count++] = rp_group_writer_state(d->writer);
    return count;
}

static rp_status restored(rp_actor *actor, rp_error *err)
{
    box_actor *d = (box_actor *)actor;

    if (!rp_noise_check(&d->noise))
        return rp_rl_fail(err, RP_CORRUPT, "%s: a number of the snapshot is impossible",
                          d->acting->shape->table()->agent);
    return rp_group_writer_restored(d->writer, err);
}

static void free_actor(rp_actor *actor)
{
    box_actor *d = (box_actor *)actor;
    rp_allocator alloc = d->alloc;

    rp_group_writer_free(d->writer);
    if (d->rating != NULL) d->acting->free_rating(d->rating);
    rp_box_nets_deinit(&d->nets);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_actor_class actor_class = {
    .act = act,
    .begin = begin,
    .observe = observe,
    .flush = flush,
    .created = created,
    .get_state = get_state,
    .restored = restored,
    .free = free_actor,
};

static size_t place_arrays(box_actor *d, uint8_t *block)
{
    size_t seen = d->copies * d->nets.numbers, done = d->copies * d->nets.action_count, end = 0;

    d->noise.now = rp_place_array(block, &end, done, sizeof(double));
    d->now = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->next = rp_place_array(block, &end, seen, sizeof(rp_real));
    d->unit = rp_place_array(block, &end, done, sizeof(rp_real));
    d->drawn = rp_place_array(block, &end, done, sizeof(rp_real));
    d->values =
        rp_place_array(block, &end, d->acting->shape->critics * d->copies, sizeof(rp_real));
    d->later = rp_place_array(block, &end, d->copies, sizeof(rp_real));
    return end;
}

static rp_status make_parts(box_actor *d, const rp_box_actor_options *o, rp_wait wait,
                            rp_error *err)
{
    const rp_settings_table *table = o->acting->shape->table();
    const rp_box_making making =
        rp_box_making_of(&d->alloc, o->acting->shape, o->settings, o->spec);
    const rp_replay_plan plan = rp_replay_plan_of(table, o->settings, o->spec);
    const rp_group_writer_options writer = {
        .plan = &plan,
        .reward_scale = rp_setting_value(table, o->settings, "reward-scale"),
        .client = o->client,
        .max_in_flight = o->max_in_flight,
        .settled = o->settled,
        .prioritize = prioritize,
        .ctx = d,
    };
    rp_status st = rp_box_nets_init(&making, &d->nets, err);

    if (st != RP_OK) return st;
    d->actor.parameter_count = d->nets.parameter_count;
    d->noise.width = d->nets.action_count;
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = d->acting->new_rating(&d->alloc, &d->nets, d->copies, &d->rating, err);
    if (st == RP_OK) st = rp_group_writer_new(&d->alloc, &writer, wait, &d->writer, err);
    return st;
}

rp_status rp_box_actor_new(const rp_allocator *alloc, const rp_box_actor_options *o,
                           rp_wait wait, rp_actor **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    const rp_settings_table *table = o->acting->shape->table();
    rp_status st = rp_settings_check(table, o->settings, err);
    size_t copies;
    box_actor *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    copies = (size_t)rp_setting_value(table, o->settings, "copies");
    *d = (box_actor){.actor = {.type = &d->type, .exploration = o->noise},
                     .type = actor_class,
                     .alloc = a,
                     .acting = o->acting,
                     .discount = rp_setting_value(table, o->settings, "discount"),
                     .copies = copies,
                     .noise = {.rng = *o->rng,
                               .deviation = o->noise,
                               .memory = rp_setting_value(table, o->settings, "noise-memory"),
                               .copies = copies}};
    d->type.name = table->agent;
    st = make_parts(d, o, wait, err);
    if (st != RP_OK) {
        free_actor(&d->actor);
        return st;
    }
    *out = &d->actor;
    return RP_OK;
}
