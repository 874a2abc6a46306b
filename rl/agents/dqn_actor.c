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

#include "agents/adder_window.h"
#include "agents/dqn_net.h"
#include "agents/replay.h"
#include "error/fail.h"
#include "reprise/rl/loss.h"

#define LADDER_BASE 0.4 /* Horgan et al. 2018, section 4 */
#define LADDER_POWER 7.0
enum {
    LADDER_RUNGS = 8,   /* from which a lone copy draws, once an episode */
    IN_FLIGHT = 1000,   /* items of a copy that may be unconfirmed */
    PLAIN_BYTES = 8192, /* the adder does not compress observations up to this size */
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
    bool settled;
    bool lone;              /* draws a rung of the ladder for each episode */
    const double *priority; /* NULL: the actor's own */
    rp_adder *adder;
    rp_adder_window *window;
    rp_net *net;
    rp_tape *acting, *ending;
    const rp_real *q, *q_params; /* A2 */
    const void *q_of;

    actor_counts counts;
    void *block; /* all arrays below */
    size_t block_bytes;
    double *epsilons;     /* one a copy */
    double *rewards;      /* one a copy, scaled */
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

static rp_status begin(rp_actor *actor, const void *observations, rp_wait wait, rp_error *err)
{
    dqn_actor *d = (dqn_actor *)actor;
    rp_status st = rp_adder_reset(d->adder, NULL, wait, err);

    if (st != RP_OK) return st;
    d->q = NULL;
    memset(d->ages, 0, d->copies * sizeof d->ages[0]);
    rp_adder_window_begin(d->window, observations);
    return rp_adder_first(d->adder, observations, NULL, err);
}

static rp_status observe(rp_actor *actor, const rp_agent_step *step, rp_wait wait,
                         rp_error *err)
{
    dqn_actor *d = (dqn_actor *)actor;
    const rp_env_buffers *result = step->result;
    const rp_adder_step add = {
        .actions = step->actions,
        .observations = result->observations,
        .last_observations = result->last_observations,
        .rewards = d->rewards,
        .terminated = result->terminated,
        .truncated = result->truncated,
    };
    rp_status st;

    for (size_t i = 0; i < d->copies; i++)
        d->rewards[i] = result->rewards[i] * d->set.reward_scale;
    if (d->priority == NULL) rate_step(d, result);
    st = rp_adder_add(d->adder, &add, wait, err); /* A3 */
    if (st != RP_OK) return st;
    d->counts.steps += (int64_t)d->copies;
    rp_adder_window_add(d->window, &add, step->observations);
    for (size_t i = 0; i < d->copies; i++)
        d->ages[i] = add.terminated[i] || add.truncated[i] ? 0 : d->ages[i] + 1;
    if (d->lone && d->ages[0] == 0) draw_rung(d);
    /* Rows that are not compressed are in the table now. Other threads compress large ones. */
    if (d->settled && d->row_bytes > PLAIN_BYTES) st = rp_adder_flush(d->adder, wait, err);
    return st;
}

static rp_status flush(rp_actor *actor, rp_wait wait, rp_error *err)
{
    return rp_adder_flush(((dqn_actor *)actor)->adder, wait, err);
}

static int64_t created(const rp_actor *actor)
{
    return (int64_t)rp_adder_created(((const dqn_actor *)actor)->adder);
}

static size_t get_state(rp_actor *actor, rp_state_part *parts)
{
    dqn_actor *d = (dqn_actor *)actor;
    size_t count = 0;

    parts[count++] = (rp_state_part){"actor", &d->counts, sizeof d->counts};
    parts[count++] =
        (rp_state_part){"epsilons", d->epsilons, d->copies * sizeof d->epsilons[0]};
    parts[count++] = rp_adder_window_state(d->window);
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
    return rp_adder_window_restore(d->window, d->adder, err);
}

static void free_actor(rp_actor *actor)
{
    dqn_actor *d = (dqn_actor *)actor;
    rp_allocator alloc = d->alloc;

    rp_adder_free(d->adder);
    rp_adder_window_free(d->window);
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
};

/* Places an array at `*end` of the block, or counts it if there is no block yet. */
static void *place(uint8_t *block, size_t *end, size_t count, size_t size)
{
    size_t at = *end;

    *end += (count * size + 63) & ~(size_t)63;
    return block != NULL ? block + at : NULL;
}

/* Sets the arrays to their places in `block`. Returns the bytes of all. */
static size_t place_arrays(dqn_actor *d, uint8_t *block)
{
    size_t bytes = d->spec.observation_dtype == RP_FLOAT32 ? 0 : 1, end = 0;

    d->epsilons = place(block, &end, d->copies, sizeof(double));
    d->rewards = place(block, &end, d->copies, sizeof(double));
    d->input = place(block, &end, bytes * d->copies * d->numbers, sizeof(rp_real));
    d->last = place(block, &end, d->copies, d->row_bytes);
    d->ages = place(block, &end, d->copies, sizeof(int64_t));
    d->seen = place(block, &end, d->copies, sizeof(uint32_t));
    d->chosen = place(block, &end, d->copies, sizeof(rp_real));
    d->next_values = place(block, &end, d->copies, sizeof(rp_real));
    d->values = place(block, &end, d->n * d->copies, sizeof(rp_real));
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

rp_adder_options rp_dqn_adder(const rp_dqn_settings *set, const rp_env_spec *spec)
{
    return (rp_adder_options){
        .kind = RP_ADDER_N_STEP,
        .copies = (size_t)set->copies,
        .observation = {NULL, spec->observation_dtype, spec->observation_shape},
        .action = {.dtype = RP_INT32},
        .n = (int32_t)set->n_step,
        .discount = (float)set->discount,
        .max_in_flight = IN_FLIGHT,
    };
}

static rp_status make_adder(dqn_actor *d, const rp_dqn_actor_options *o, rp_wait wait,
                            rp_error *err)
{
    const rp_adder_table to = {RP_REPLAY_TABLE, prioritize, d};
    rp_adder_options adder = rp_dqn_adder(&d->set, &d->spec);
    rp_status st;

    adder.alloc = &d->alloc;
    adder.tables = &to;
    adder.table_count = 1;
    if (o->max_in_flight > 0) adder.max_in_flight = o->max_in_flight;
    st = rp_adder_new(o->client, &adder, wait, &d->adder, err);
    if (st == RP_OK)
        st = rp_adder_window_new(
            &d->alloc,
            (rp_adder_window_shape){d->copies, d->n - 1, d->row_bytes, sizeof(int32_t)},
            &d->window, err);
    return st;
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
                     .settled = o->settled,
                     .lone = o->settings->ladder && all == 1,
                     .priority = o->priority,
                     .counts = {.rng = *o->rng}};
    st = make_network(d, err);
    if (st == RP_OK) st = make_adder(d, o, wait, err);
    if (st != RP_OK) {
        free_actor(&d->actor);
        return st;
    }
    for (int64_t i = 0; d->set.ladder && all > 1 && i < copies; i++)
        d->epsilons[i] = rung(o->first_copy + i, all);
    if (d->lone) draw_rung(d);
    *out = &d->actor;
    return RP_OK;
}
