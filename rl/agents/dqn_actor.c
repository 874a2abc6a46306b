/* SPDX-License-Identifier: Apache-2.0 */
/* The acting half of DQN.
 *
 * One step of the group costs one pass through the network, even if the actor computes
 * priorities. Item (o_f, a_f, R, D, o_l) has the TD error
 *
 *   R + discount D max Q(o_l, .) - Q(o_f, a_f)
 *
 * of the actor's parameters. Q(o_f, a_f) was computed when the actor acted in o_f; the last n
 * of these are kept. Q(o_l, .) is computed when o_l arrives, and the next act() uses it again.
 * Only the last observation of a truncated episode needs a pass of its own.
 *
 * Invariants:
 *   A1  values of step k of an episode are in row k modulo n, if it is one of the latest n;
 *   A2  `q` is NULL, or Q of the observations at `q_of` by the parameters at `q_params`;
 *   A3  nothing changes in observe() before the adder has taken the step, except what a second
 *       call would write again. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/dqn_net.h"
#include "agents/group_writer.h"
#include "agents/place.h"
#include "agents/replay.h"
#include "error/fail.h"
#include "reprise/rl/loss.h"

#define LADDER_BASE 0.4 /* Horgan et al. 2018, section 4 */
#define LADDER_POWER 7.0
enum {
    LADDER_RUNGS = 8, /* from which a lone copy draws, once an episode */
};

/* The numbers of the state that are not arrays. Saved as they are. */
typedef struct actor_counts {
    int64_t steps; /* of all copies together */
    rp_pcg64 rng;  /* of exploration */
} actor_counts;

typedef struct dqn_actor {
    rp_actor actor; /* first */
    rp_allocator alloc;
    rp_dqn_settings set;
    rp_env_spec spec;
    size_t copies, actions, n;
    size_t numbers, row_bytes; /* of one observation */
    bool lone;                 /* draws a rung of the ladder for each episode */
    const double *priority;    /* NULL: the actor's own */
    rp_group_writer *writer;
    rp_net *net;
    rp_tape *acting, *ending;
    const rp_real *q, *q_params; /* A2 */
    const void *q_of;

    actor_counts counts;
    void *block; /* all arrays below */
    size_t block_bytes;
    double *epsilons;     /* one a copy */
    rp_real *input;       /* copies x numbers, only if observations are bytes */
    uint8_t *last;        /* last observations of truncated episodes, one after the other */
    int64_t *ages;        /* one a copy: steps of its episode so far */
    uint32_t *seen;       /* one a copy: items of this call */
    rp_real *chosen;      /* one a copy: Q of the action that act() chose */
    rp_real *next_values; /* one a copy: max Q after the step */
    rp_real *values;      /* n x copies (A1) */
} dqn_actor;

/* The columns of an item that decide its priority, in the order of the adder. */
enum { REWARD = 2, DISCOUNT = 3 };

/* Epsilon of copy i, for ever, on the ladder. */
static double rung(int64_t i, int64_t count)
{
    assert(i >= 0 && i < count && count > 1);
    return pow(LADDER_BASE, 1 + LADDER_POWER * (double)i / (double)(count - 1));
}

static void draw_rung(dqn_actor *d)
{
    d->epsilons[0] = rung(rp_pcg64_integers(&d->counts.rng, 0, LADDER_RUNGS), LADDER_RUNGS);
}

static void set_epsilons(dqn_actor *d)
{
    double progress = (double)d->counts.steps / (double)d->set.epsilon_steps;
    double now = d->set.epsilon_first +
                 (d->set.epsilon_last - d->set.epsilon_first) * (progress < 1 ? progress : 1);

    if (d->set.ladder) return;
    for (size_t i = 0; i < d->copies; i++) d->epsilons[i] = now;
}

/* Q of the observations of all copies, computed unless it is known (A2). */
static const rp_real *rate(dqn_actor *d, const void *observations)
{
    const rp_real *input;

    assert(d->actor.params != NULL);
    if (d->q != NULL && d->q_of == observations && d->q_params == d->actor.params) return d->q;
    input = rp_dqn_input(&d->spec, observations, d->copies * d->numbers, d->input);
    d->q = rp_tape_forward(d->acting, d->actor.params, input, d->copies);
    d->q_of = observations;
    d->q_params = d->actor.params;
    return d->q;
}

static void act(rp_actor *actor, const void *observations, void *actions)
{
    dqn_actor *d = (dqn_actor *)actor;
    const rp_real *q = rate(d, observations);
    int32_t *out = actions;

    set_epsilons(d);
    for (size_t i = 0; i < d->copies; i++) {
        assert(d->epsilons[i] >= 0 && d->epsilons[i] <= 1);
        if (rp_pcg64_double(&d->counts.rng) < d->epsilons[i])
            out[i] = (int32_t)rp_pcg64_integers(&d->counts.rng, 0, (int64_t)d->actions);
        else
            out[i] = (int32_t)rp_argmax(q + i * d->actions, d->actions);
        d->chosen[i] = q[i * d->actions + (size_t)out[i]];
    }
    d->actor.exploration = d->epsilons[0];
    d->q = NULL; /* other observations may follow at the same place */
}

static rp_real largest(const rp_real *q, size_t actions)
{
    return q[rp_argmax(q, actions)];
}

/* Values of the last observations of truncated episodes. */
static void rate_ends(dqn_actor *d, const rp_env_buffers *result)
{
    const uint8_t *rows = result->last_observations;
    const rp_real *q;
    size_t count = 0;

    for (size_t i = 0; i < d->copies; i++)
        if (result->truncated[i] && !result->terminated[i])
            memcpy(d->last + count++ * d->row_bytes, rows + i * d->row_bytes, d->row_bytes);
    if (count == 0) return;
    q = rp_tape_forward(d->ending, d->actor.params,
                        rp_dqn_input(&d->spec, d->last, count * d->numbers, d->input), count);
    for (size_t i = d->copies; i-- > 0;)
        if (result->truncated[i] && !result->terminated[i])
            d->next_values[i] = largest(q + --count * d->actions, d->actions);
    assert(count == 0);
}

/* Gets ready for prioritize(): what each copy did, and the value of where that led. */
static void rate_step(dqn_actor *d, const rp_env_buffers *result)
{
    const rp_real *q = rate(d, result->observations);

    for (size_t i = 0; i < d->copies; i++) {
        d->values[(size_t)d->ages[i] % d->n * d->copies + i] = d->chosen[i]; /* A1 */
        d->next_values[i] = largest(q + i * d->actions, d->actions);
        d->seen[i] = 0;
    }
    rate_ends(d, result);
}

/* Item k of a copy in one call begins k steps after the oldest that can be (adder.h). */
static rp_status prioritize(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err)
{
    dqn_actor *d = ctx;
    const float *rewards = items->columns[REWARD], *discounts = items->columns[DISCOUNT];

    (void)err;
    for (size_t k = 0; k < items->count; k++) {
        size_t i = items->copies[k];
        int64_t age = d->ages[i] + 1, oldest = age > (int64_t)d->n ? age - (int64_t)d->n : 0;
        size_t from = (size_t)oldest + d->seen[i]++;
        double target = (double)rewards[k] +
                        d->set.discount * (double)discounts[k] * (double)d->next_values[i];

        assert(d->priority != NULL || from < (size_t)age);
        priorities[k] = d->priority != NULL
                            ? *d->priority
                            : fabs(target - (double)d->values[from % d->n * d->copies + i]) +
                                  RP_PRIORITY_FLOOR;
    }
    return RP_OK;
}

/* Places the copies on the ladder of all copies of all actors. */
static void climb(dqn_actor *d, int64_t first, int64_t all)
{
    d->lone = d->set.ladder && all == 1;
    for (size_t i = 0; d->set.ladder && all > 1 && i < d->copies; i++)
        d->epsilons[i] = rung(first + (int64_t)i, all);
    if (d->lone) draw_rung(d);
}

static void set_group(rp_actor *actor, int64_t index, int64_t actors)
{
    dqn_actor *d = (dqn_actor *)actor;
    int64_t copies = (int64_t)d->copies;

    assert(index >= 0 && index < actors);
    climb(d, index * copies, actors * copies);
}

static rp_status begin(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err)
{
    dqn_actor *d = (dqn_actor *)actor;
    rp_status st = rp_group_writer_begin(d->writer, observations, wait, err);

    if (st != RP_OK) return st;
    d->q = NULL;
    memset(d->ages, 0, d->copies * sizeof d->ages[0]);
    return RP_OK;
}

static rp_status observe(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err)
{
    dqn_actor *d = (dqn_actor *)actor;
    const rp_env_buffers *result = step->result;
    rp_status st;

    if (d->priority == NULL) rate_step(d, result);
    st = rp_group_writer_add(d->writer, step, wait, err); /* A3 */
    if (st != RP_OK) return st;
    d->counts.steps += (int64_t)d->copies;
    for (size_t i = 0; i < d->copies; i++)
        d->ages[i] = result->terminated[i] || result->truncated[i] ? 0 : d->ages[i] + 1;
    if (d->lone && d->ages[0] == 0) draw_rung(d);
    return RP_OK;
}

static rp_status flush(rp_actor *actor, rp_wait wait, rp_error *err)
{
    return rp_group_writer_flush(((dqn_actor *)actor)->writer, wait, err);
}

static int64_t created(const rp_actor *actor)
{
    return rp_group_writer_created(((const dqn_actor *)actor)->writer);
}

static size_t get_state(rp_actor *actor, rp_state_part *parts)
{
    dqn_actor *d = (dqn_actor *)actor;
    size_t count = 0;

    parts[count++] = (rp_state_part){"actor", &d->counts, sizeof d->counts};
    parts[count++] =
        (rp_state_part){"epsilons", d->epsilons, d->copies * sizeof d->epsilons[0]};
    parts[count++] = rp_group_writer_state(d->writer);
    if (d->priority != NULL) return count;
    parts[count++] = (rp_state_part){"ages", d->ages, d->copies * sizeof d->ages[0]};
    parts[count++] =
        (rp_state_part){"values", d->values, d->n * d->copies * sizeof d->values[0]};
    return count;
}

static rp_status restored(rp_actor *actor, rp_error *err)
{
    dqn_actor *d = (dqn_actor *)actor;
    bool good = rp_pcg64_check(&d->counts.rng) && d->counts.steps >= 0;

    for (size_t i = 0; i < d->copies; i++)
        good = good && d->epsilons[i] >= 0 && d->epsilons[i] <= 1 && d->ages[i] >= 0;
    if (!good)
        return rp_rl_fail(err, RP_CORRUPT, "dqn: a number of the snapshot is impossible");
    return rp_group_writer_restored(d->writer, err);
}

static void free_actor(rp_actor *actor)
{
    dqn_actor *d = (dqn_actor *)actor;
    rp_allocator alloc = d->alloc;

    rp_group_writer_free(d->writer);
    rp_tape_free(d->acting);
    rp_tape_free(d->ending);
    rp_net_free(d->net);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_actor_class actor_class = {
    .name = "dqn",
    .act = act,
    .begin = begin,
    .observe = observe,
    .flush = flush,
    .created = created,
    .get_state = get_state,
    .restored = restored,
    .free = free_actor,
    .set_group = set_group,
};

/* Sets the arrays to their places in `block`. Returns the bytes of all. */
static size_t place_arrays(dqn_actor *d, uint8_t *block)
{
    size_t bytes = d->spec.observation_dtype == RP_FLOAT32 ? 0 : 1, end = 0;

    d->epsilons = rp_place_array(block, &end, d->copies, sizeof(double));
    d->input = rp_place_array(block, &end, bytes * d->copies * d->numbers, sizeof(rp_real));
    d->last = rp_place_array(block, &end, d->copies, d->row_bytes);
    d->ages = rp_place_array(block, &end, d->copies, sizeof(int64_t));
    d->seen = rp_place_array(block, &end, d->copies, sizeof(uint32_t));
    d->chosen = rp_place_array(block, &end, d->copies, sizeof(rp_real));
    d->next_values = rp_place_array(block, &end, d->copies, sizeof(rp_real));
    d->values = rp_place_array(block, &end, d->n * d->copies, sizeof(rp_real));
    return end;
}

static rp_status make_network(dqn_actor *d, rp_error *err)
{
    const rp_tape_options rows = {.rows = d->copies};
    rp_status st = rp_dqn_new_net(&d->alloc, &d->set, &d->spec, &d->net, err);

    if (st != RP_OK) return st;
    d->actor.parameter_count = rp_net_size(d->net);
    d->numbers = rp_net_in_size(d->net);
    d->row_bytes = d->numbers * rp_dtype_size(d->spec.observation_dtype);
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_tape_new(&d->alloc, d->net, rows, &d->acting, err);
    if (st == RP_OK && d->priority == NULL)
        st = rp_tape_new(&d->alloc, d->net, rows, &d->ending, err);
    return st;
}

static rp_status make_writer(dqn_actor *d, const rp_dqn_actor_options *o, rp_wait wait,
                             rp_error *err)
{
    const rp_replay_plan plan = rp_dqn_plan(&d->set, &d->spec);
    const rp_group_writer_options writer = {
        .plan = &plan,
        .reward_scale = d->set.reward_scale,
        .client = o->client,
        .max_in_flight = o->max_in_flight,
        .settled = o->settled,
        .prioritize = prioritize,
        .ctx = d,
    };

    return rp_group_writer_new(&d->alloc, &writer, wait, &d->writer, err);
}

rp_status rp_dqn_actor_new(const rp_allocator *alloc, const rp_dqn_actor_options *o,
                           rp_wait wait, rp_actor **out, rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    int64_t copies = o->settings->copies, all = o->all_copies > 0 ? o->all_copies : copies;
    rp_status st = rp_dqn_settings_check(o->settings, err);
    dqn_actor *d;

    if (st != RP_OK) return st;
    if (o->first_copy < 0 || o->first_copy > all - copies)
        return rp_rl_fail(err, RP_INVALID, "dqn: copies %lld to %lld of %lld",
                          (long long)o->first_copy, (long long)(o->first_copy + copies - 1),
                          (long long)all);
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn_actor){.actor = {.type = &actor_class},
                     .alloc = a,
                     .set = *o->settings,
                     .spec = *o->spec,
                     .copies = (size_t)copies,
                     .actions = (size_t)o->spec->action_count,
                     .n = (size_t)o->settings->n_step,
                     .priority = o->priority,
                     .counts = {.rng = *o->rng}};
    st = make_network(d, err);
    if (st == RP_OK) st = make_writer(d, o, wait, err);
    if (st != RP_OK) {
        free_actor(&d->actor);
        return st;
    }
    climb(d, o->first_copy, all);
    *out = &d->actor;
    return RP_OK;
}
