/* SPDX-License-Identifier: Apache-2.0 */
/* DQN from top to bottom: network, acting, writing, sampling, learning, state.
 *
 * One update, for a batch of items (o, a, R, D, o'), where R is the sum of up to n discounted
 * rewards and D the product of their discounts (adder.h):
 *
 *   target = R + discount D Q'(o', argmax Q(o', .))      Q' is the target network
 *   error  = target - Q(o, a)
 *   loss   = mean of weight * huber(error)               weight = (size * probability)^-beta
 *   params = Adam(params, gradient of the loss, clipped)
 *   priority of the item = |error| + PRIORITY_FLOOR
 *
 * A new item has the largest priority so far, so that it is soon drawn (Schaul et al. 2016,
 * algorithm 1).
 *
 * Invariants:
 *   D1  after learn() has returned RP_OK, the rate limiter allows no further batch;
 *   D2  inserts never wait: the limiter's bounds leave room for the items of one step of the
 *       group, whatever ends in it;
 *   D3  every number that a later call depends on is in a part of get_state() or in the table.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/adder_window.h"
#include "agents/dqn_net.h"
#include "error/fail.h"
#include "reprise/rl/init.h"
#include "reprise/rl/loss.h"
#include "reprise/rl/optimizer.h"

static const char TABLE[] = "replay";
#define PRIORITY_FLOOR 1e-3 /* an item with priority 0 would never be drawn again */
#define LADDER_BASE 0.4     /* Horgan et al. 2018, section 4 */
#define LADDER_POWER 7.0
enum {
    LADDER_RUNGS = 8,   /* from which a lone copy draws, once an episode */
    IN_FLIGHT = 1000,   /* items of a copy that may be unconfirmed */
    PLAIN_BYTES = 8192, /* the adder does not compress observations up to this size */
};

/* The numbers of the state that are not arrays. Saved as they are. */
typedef struct dqn_counts {
    int64_t updates, samples;
    int64_t steps;            /* of all copies together */
    uint64_t optimizer_steps; /* set when the state is read */
    double largest_priority;
    rp_pcg64 rng; /* of exploration */
} dqn_counts;

/* Sums since the last get_metrics(). */
typedef struct dqn_sums {
    int64_t updates;
    double loss, value, error, norm;
} dqn_sums;

typedef struct dqn {
    rp_agent agent; /* first */
    rp_allocator alloc;
    rp_dqn_settings set;
    rp_env_spec spec;
    size_t copies, batch, actions;
    size_t numbers;   /* of one observation */
    size_t row_bytes; /* of one observation */
    rp_client *client;
    rp_table *table; /* a reference */
    rp_adder *adder;
    rp_decoder *decoder;
    rp_net *net;
    rp_tape *acting, *rating, *training;
    rp_optimizer *optimizer;
    bool diverged;

    dqn_counts counts;
    dqn_sums sums;
    void *block; /* all arrays below */
    size_t block_bytes;
    rp_real *params, *target_params, *grads;
    double *epsilons;         /* one a copy */
    double *rewards;          /* one a copy, scaled */
    rp_real *act_input;       /* copies x numbers, only if observations are bytes */
    rp_real *now, *next;      /* batch x numbers */
    uint8_t *bytes;           /* batch observations as stored, only if they are bytes */
    rp_real *online, *grad_q; /* batch x actions */
    float *reward, *discount; /* batch each */
    rp_real *weights, *target, *errors;
    int32_t *taken;
    rp_sample *samples;
    const rp_trajectory **trajectories;
    rp_update *priorities;
    rp_adder_window *window;
} dqn;

/* The columns of an item, in the order of the adder. */
enum { OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION, COLUMNS };

/* Epsilon of copy i, for ever, on the ladder. */
static double rung(int64_t i, int64_t count)
{
    assert(i >= 0 && i < count && count > 1);
    return pow(LADDER_BASE, 1 + LADDER_POWER * (double)i / (double)(count - 1));
}

static void draw_rung(dqn *d)
{
    d->epsilons[0] = rung(rp_pcg64_integers(&d->counts.rng, 0, LADDER_RUNGS), LADDER_RUNGS);
}

static void set_epsilons(dqn *d)
{
    double progress = (double)d->counts.steps / (double)d->set.epsilon_steps;
    double now = d->set.epsilon_first +
                 (d->set.epsilon_last - d->set.epsilon_first) * (progress < 1 ? progress : 1);

    if (d->set.ladder)
        return; /* constant; a lone copy draws another one at its episode's end */
    for (size_t i = 0; i < d->copies; i++) d->epsilons[i] = now;
}

static void act(rp_agent *agent, const void *observations, void *actions)
{
    dqn *d = (dqn *)agent;
    const rp_real *input =
        rp_dqn_input(&d->spec, observations, d->copies * d->numbers, d->act_input);
    const rp_real *q = rp_tape_forward(d->acting, d->params, input, d->copies);
    int32_t *out = actions;

    set_epsilons(d);
    for (size_t i = 0; i < d->copies; i++) {
        assert(d->epsilons[i] >= 0 && d->epsilons[i] <= 1);
        if (rp_pcg64_double(&d->counts.rng) < d->epsilons[i])
            out[i] = (int32_t)rp_pcg64_integers(&d->counts.rng, 0, (int64_t)d->actions);
        else
            out[i] = (int32_t)rp_argmax(q + i * d->actions, d->actions);
    }
}

/* New items get the largest priority so far. */
static rp_status prioritize(void *ctx, const rp_adder_items *items, double *priorities,
                            rp_error *err)
{
    const dqn *d = ctx;

    (void)err;
    for (size_t i = 0; i < items->count; i++) priorities[i] = d->counts.largest_priority;
    return RP_OK;
}

static rp_status begin(rp_agent *agent, const void *observations, rp_error *err)
{
    dqn *d = (dqn *)agent;

    assert(d->counts.steps == 0);
    rp_adder_window_begin(d->window, observations);
    return rp_adder_first(d->adder, observations, NULL, err);
}

static rp_status observe(rp_agent *agent, const rp_agent_step *step, rp_error *err)
{
    dqn *d = (dqn *)agent;
    const rp_adder_step add = {
        .actions = step->actions,
        .observations = step->result->observations,
        .last_observations = step->result->last_observations,
        .rewards = d->rewards,
        .terminated = step->result->terminated,
        .truncated = step->result->truncated,
    };
    rp_status st;

    for (size_t i = 0; i < d->copies; i++)
        d->rewards[i] = step->result->rewards[i] * d->set.reward_scale;
    d->counts.steps += (int64_t)d->copies;
    rp_adder_window_add(d->window, &add, step->observations);
    if (d->set.ladder && d->copies == 1 && (add.terminated[0] || add.truncated[0]))
        draw_rung(d);
    st = rp_adder_add(d->adder, &add, rp_wait_forever(), err);
    /* Rows that are not compressed are in the table now. Other threads compress large ones. */
    if (st == RP_OK && d->row_bytes > PLAIN_BYTES)
        st = rp_adder_flush(d->adder, rp_wait_forever(), err);
    return st;
}

/* Decodes one column of the samples. */
static rp_status decode(dqn *d, size_t column, void *out, size_t item_bytes, rp_error *err)
{
    return rp_decoder_stack(d->decoder, d->trajectories, d->batch, column, out,
                            d->batch * item_bytes, err);
}

static rp_status decode_observations(dqn *d, size_t column, rp_real *out, rp_error *err)
{
    bool floats = d->spec.observation_dtype == RP_FLOAT32;
    rp_status st = decode(d, column, floats ? (void *)out : d->bytes, d->row_bytes, err);

    if (st == RP_OK && !floats)
        (void)rp_dqn_input(&d->spec, d->bytes, d->batch * d->numbers, out);
    return st;
}

/* Samples a batch and decodes it. */
static rp_status draw(dqn *d, rp_error *err)
{
    const rp_sample_options options = {.count = d->batch,
                                       .beta = d->set.prioritized ? d->set.weight_exponent : 0};
    size_t drawn = 0;
    rp_status st =
        rp_table_sample(d->table, &options, d->samples, &drawn, rp_wait_forever(), err);

    if (st != RP_OK) return st;
    assert(drawn == d->batch);
    for (size_t i = 0; i < drawn; i++) {
        d->trajectories[i] = d->samples[i].trajectory;
        d->weights[i] = (rp_real)d->samples[i].weight;
        d->priorities[i].key = d->samples[i].key;
    }
    st = decode_observations(d, OBSERVATION, d->now, err);
    if (st == RP_OK) st = decode(d, ACTION, d->taken, sizeof d->taken[0], err);
    if (st == RP_OK) st = decode(d, REWARD, d->reward, sizeof d->reward[0], err);
    if (st == RP_OK) st = decode(d, DISCOUNT, d->discount, sizeof d->discount[0], err);
    if (st == RP_OK) st = decode_observations(d, NEXT_OBSERVATION, d->next, err);
    rp_samples_release(d->samples, drawn);
    d->counts.samples += (int64_t)drawn;
    for (size_t i = 0; st == RP_OK && i < drawn; i++)
        if (d->taken[i] < 0 || d->taken[i] >= d->spec.action_count)
            st = rp_rl_fail(err, RP_CORRUPT, "table '%s': an item has action %d of %d", TABLE,
                            (int)d->taken[i], (int)d->spec.action_count);
    return st;
}

/* The targets of the batch: R + discount D Q'(o', a'). */
static void set_targets(dqn *d)
{
    const rp_real *online = NULL, *target;

    for (size_t i = 0; i < d->batch; i++) d->discount[i] *= (rp_real)d->set.discount;
    if (d->set.double_q) {
        online = rp_tape_forward(d->rating, d->params, d->next, d->batch);
        memcpy(d->online, online, d->batch * d->actions * sizeof *online);
        online = d->online;
    }
    target = rp_tape_forward(d->rating, d->target_params, d->next, d->batch);
    rp_td_target(d->batch, d->actions, d->reward, d->discount, online, target, d->target);
}

static rp_status check_divergence(dqn *d, double loss, double norm, rp_error *err)
{
    if (isfinite(loss) && isfinite(norm) && loss <= d->set.max_loss) return RP_OK;
    d->diverged = true;
    return rp_rl_fail(err, RP_PRECONDITION,
                      "dqn: the run has diverged: at update %lld the loss is %g and the "
                      "gradient norm %g, with a rate of %g and a bound of %g on the loss",
                      (long long)d->counts.updates, loss, norm, d->set.rate, d->set.max_loss);
}

static rp_status set_priorities(dqn *d, rp_error *err)
{
    const rp_mutation mutation = {.updates = d->priorities, .update_count = d->batch};

    for (size_t i = 0; i < d->batch; i++) {
        d->priorities[i].priority = fabs((double)d->errors[i]) + PRIORITY_FLOOR;
        if (d->priorities[i].priority > d->counts.largest_priority)
            d->counts.largest_priority = d->priorities[i].priority;
    }
    return rp_client_mutate(d->client, TABLE, &mutation, rp_wait_forever(), err);
}

/* Adds to the sums of get_metrics(). */
static void count_update(dqn *d, const rp_real *q, double loss, double norm)
{
    double value = 0, error = 0;

    for (size_t i = 0; i < d->batch; i++) {
        value += (double)q[i * d->actions + (size_t)d->taken[i]];
        error += fabs((double)d->errors[i]);
    }
    d->sums.value += value / (double)d->batch;
    d->sums.error += error / (double)d->batch;
    d->sums.loss += loss;
    d->sums.norm += norm;
    d->sums.updates++;
}

static rp_status update(dqn *d, rp_error *err)
{
    const rp_loss_rows rows = {d->batch, d->actions, d->taken,
                               d->set.prioritized ? d->weights : NULL};
    const rp_real *q;
    double loss, norm;
    rp_status st = draw(d, err);

    if (st != RP_OK) return st;
    set_targets(d);
    q = rp_tape_forward(d->training, d->params, d->now, d->batch);
    loss = rp_td_loss(&rows, d->set.huber, q, d->target, d->grad_q, d->errors);
    rp_tape_backward(d->training, d->params, d->grad_q, d->grads, NULL);
    norm = rp_optimizer_step(d->optimizer, d->params, d->grads);
    d->counts.updates++;
    st = check_divergence(d, loss, norm, err);
    if (st != RP_OK) return st;
    if (d->counts.updates % d->set.target_every == 0)
        rp_polyak(d->target_params, d->params, rp_net_size(d->net), d->set.target_rate);
    count_update(d, q, loss, norm);
    return d->set.prioritized ? set_priorities(d, err) : RP_OK;
}

static rp_status learn(rp_agent *agent, rp_error *err)
{
    dqn *d = (dqn *)agent;
    rp_status st = RP_OK;

    if (d->diverged)
        return rp_rl_fail(err, RP_PRECONDITION, "dqn: the run has diverged at update %lld",
                          (long long)d->counts.updates);
    while (st == RP_OK && rp_table_can_sample(d->table, (int64_t)d->batch)) /* D1 */
        st = update(d, err);
    return st;
}

static const rp_real *parameters(const rp_agent *agent)
{
    return ((const dqn *)agent)->params;
}

static rp_status new_policy(const rp_agent *agent, size_t rows, rp_policy **out, rp_error *err)
{
    const dqn *d = (const dqn *)agent;

    return rp_dqn_new_policy(&d->alloc, d->net, &d->spec, rows, out, err);
}

static void get_metrics(rp_agent *agent, rp_agent_metrics *out)
{
    dqn *d = (dqn *)agent;
    double count = d->sums.updates > 0 ? (double)d->sums.updates : (double)NAN;
    rp_table_info info;

    rp_table_get_info(d->table, &info);
    *out = (rp_agent_metrics){
        .updates = d->counts.updates,
        .loss = d->sums.loss / count,
        .value = d->sums.value / count,
        .error = d->sums.error / count,
        .norm = d->sums.norm / count,
        .epsilon = d->epsilons[0],
        .rate = d->set.rate,
        .inserts = info.inserts,
        .samples = d->counts.samples,
        .item_size = info.size,
    };
    d->sums = (dqn_sums){0};
}

static size_t get_state(rp_agent *agent, rp_state_part *parts)
{
    dqn *d = (dqn *)agent;
    rp_optimizer_state optimizer = rp_optimizer_get_state(d->optimizer);
    size_t size = rp_net_size(d->net) * sizeof(rp_real), count = 0;

    d->counts.optimizer_steps = optimizer.steps;
    parts[count++] = (rp_state_part){"counts", &d->counts, sizeof d->counts};
    parts[count++] = (rp_state_part){"params", d->params, size};
    parts[count++] = (rp_state_part){"target", d->target_params, size};
    parts[count++] =
        (rp_state_part){"moments", optimizer.moments, size * optimizer.moment_count};
    parts[count++] =
        (rp_state_part){"epsilons", d->epsilons, d->copies * sizeof d->epsilons[0]};
    parts[count++] = rp_adder_window_state(d->window);
    assert(count <= RP_AGENT_MAX_PARTS);
    return count;
}

static rp_status restored(rp_agent *agent, rp_error *err)
{
    dqn *d = (dqn *)agent;
    bool good = rp_pcg64_check(&d->counts.rng) && d->counts.updates >= 0 &&
                d->counts.steps >= 0 && isfinite(d->counts.largest_priority) &&
                isfinite(rp_global_norm(d->params, rp_net_size(d->net)));

    for (size_t i = 0; i < d->copies; i++)
        good = good && d->epsilons[i] >= 0 && d->epsilons[i] <= 1;
    if (!good)
        return rp_rl_fail(err, RP_CORRUPT, "dqn: a number of the snapshot is impossible");
    rp_optimizer_set_steps(d->optimizer, d->counts.optimizer_steps);
    return rp_adder_window_restore(d->window, d->adder, err);
}

static void free_agent(rp_agent *agent)
{
    dqn *d = (dqn *)agent;
    rp_allocator alloc = d->alloc;

    rp_adder_free(d->adder);
    rp_adder_window_free(d->window);
    rp_decoder_free(d->decoder);
    rp_table_unref(d->table);
    rp_optimizer_free(d->optimizer);
    rp_tape_free(d->acting);
    rp_tape_free(d->rating);
    rp_tape_free(d->training);
    rp_net_free(d->net);
    if (d->block != NULL) (void)alloc.resize(alloc.ctx, d->block, d->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, d, sizeof *d, 0);
}

static const rp_agent_class dqn_class = {
    .name = "dqn",
    .act = act,
    .begin = begin,
    .observe = observe,
    .learn = learn,
    .parameters = parameters,
    .new_policy = new_policy,
    .get_metrics = get_metrics,
    .get_state = get_state,
    .restored = restored,
    .free = free_agent,
};

/* Places an array at `*end` of the block, or counts it if there is no block yet. */
static void *place(uint8_t *block, size_t *end, size_t count, size_t size)
{
    size_t at = *end;

    *end += (count * size + 63) & ~(size_t)63;
    return block != NULL ? block + at : NULL;
}

/* Sets the arrays to their places in `block`. Returns the bytes of all. */
static size_t place_arrays(dqn *d, uint8_t *block)
{
    size_t p = rp_net_size(d->net), in = d->batch * d->numbers, q = d->batch * d->actions;
    size_t bytes = d->spec.observation_dtype == RP_FLOAT32 ? 0 : 1, end = 0;

    d->params = place(block, &end, p, sizeof(rp_real));
    d->target_params = place(block, &end, p, sizeof(rp_real));
    d->grads = place(block, &end, p, sizeof(rp_real));
    d->epsilons = place(block, &end, d->copies, sizeof(double));
    d->rewards = place(block, &end, d->copies, sizeof(double));
    d->act_input = place(block, &end, bytes * d->copies * d->numbers, sizeof(rp_real));
    d->now = place(block, &end, in, sizeof(rp_real));
    d->next = place(block, &end, in, sizeof(rp_real));
    d->bytes = place(block, &end, bytes * in, 1);
    d->online = place(block, &end, q, sizeof(rp_real));
    d->grad_q = place(block, &end, q, sizeof(rp_real));
    d->reward = place(block, &end, d->batch, sizeof(float));
    d->discount = place(block, &end, d->batch, sizeof(float));
    d->weights = place(block, &end, d->batch, sizeof(rp_real));
    d->target = place(block, &end, d->batch, sizeof(rp_real));
    d->errors = place(block, &end, d->batch, sizeof(rp_real));
    d->taken = place(block, &end, d->batch, sizeof(int32_t));
    d->samples = place(block, &end, d->batch, sizeof(rp_sample));
    d->trajectories = place(block, &end, d->batch, sizeof d->trajectories[0]);
    d->priorities = place(block, &end, d->batch, sizeof(rp_update));
    return end;
}

static rp_status make_networks(dqn *d, uint64_t seed, rp_error *err)
{
    const rp_optimizer_options adam = {.kind = RP_ADAM,
                                       .rate = d->set.rate,
                                       .epsilon = d->set.adam_epsilon,
                                       .max_norm = d->set.max_norm};
    rp_status st = rp_dqn_new_net(&d->alloc, &d->set, &d->spec, &d->net, err);

    if (st != RP_OK) return st;
    d->numbers = rp_net_in_size(d->net);
    d->row_bytes = d->numbers * rp_dtype_size(d->spec.observation_dtype);
    d->block_bytes = place_arrays(d, NULL);
    d->block = d->alloc.resize(d->alloc.ctx, NULL, 0, d->block_bytes);
    if (d->block == NULL) return rp_rl_fail_memory(err, d->block_bytes);
    memset(d->block, 0, d->block_bytes);
    (void)place_arrays(d, d->block);
    st = rp_tape_new(&d->alloc, d->net, (rp_tape_options){.rows = d->copies}, &d->acting, err);
    if (st == RP_OK)
        st = rp_tape_new(&d->alloc, d->net, (rp_tape_options){.rows = d->batch}, &d->rating,
                         err);
    if (st == RP_OK)
        st = rp_tape_new(&d->alloc, d->net, (rp_tape_options){.rows = d->batch, .train = true},
                         &d->training, err);
    if (st == RP_OK)
        st = rp_optimizer_new(&d->alloc, rp_net_size(d->net), &adam, &d->optimizer, err);
    if (st != RP_OK) return st;
    rp_pcg64_seed(&d->counts.rng, seed);
    st = rp_net_init(&d->alloc, d->net, RP_INIT_TORCH, &d->counts.rng, d->params);
    if (st != RP_OK) return rp_rl_fail(err, st, "dqn: the network cannot be initialised");
    memcpy(d->target_params, d->params, rp_net_size(d->net) * sizeof(rp_real));
    return RP_OK;
}

/* The limiter: batch / steps_per_update samples for each item. The room on both sides of that
 * is the items of one step of the group and one batch (D2). */
static rp_limiter_options limiter(const dqn *d)
{
    double per_insert = (double)d->batch / (double)d->set.steps_per_update;
    double items = (double)d->copies * (double)d->set.n_step;

    return rp_limiter_ratio(per_insert, d->set.start, per_insert * items + (double)d->batch);
}

static rp_status make_table(dqn *d, rp_store *store, const rp_adder_options *adder,
                            rp_error *err)
{
    const rp_string name = {TABLE, sizeof TABLE - 1};
    rp_table_options options = {
        .name = TABLE,
        .sampler = {d->set.prioritized ? RP_PRIORITIZED : RP_UNIFORM, d->set.priority_exponent},
        .remover = {.kind = RP_FIFO},
        .limiter = limiter(d),
        .max_size = d->set.capacity,
    };
    rp_status st = RP_OK;

    if (!d->set.prioritized) options.sampler.exponent = 0;
    d->table = rp_store_find_table(store, name); /* from a snapshot */
    if (d->table != NULL) return RP_OK;
    st = rp_adder_signature(adder, &options.signature, err);
    if (st == RP_OK) st = rp_store_add_table(store, &options, NULL, err);
    rp_signature_unref(options.signature);
    if (st == RP_OK) d->table = rp_store_find_table(store, name);
    assert(st != RP_OK || d->table != NULL);
    return st;
}

static rp_status make_replay(dqn *d, rp_store *store, rp_error *err)
{
    const rp_adder_table to = {TABLE, prioritize, d};
    const rp_adder_options adder = {
        .alloc = &d->alloc,
        .kind = RP_ADDER_N_STEP,
        .copies = d->copies,
        .observation = {NULL, d->spec.observation_dtype, d->spec.observation_shape},
        .action = {.dtype = RP_INT32},
        .tables = &to,
        .table_count = 1,
        .n = (int32_t)d->set.n_step,
        .discount = (float)d->set.discount,
        .max_in_flight = IN_FLIGHT,
    };
    rp_status st = make_table(d, store, &adder, err);

    if (st == RP_OK) st = rp_adder_new(d->client, &adder, rp_wait_forever(), &d->adder, err);
    if (st == RP_OK)
        st = rp_adder_window_new(&d->alloc,
                                 (rp_adder_window_shape){d->copies, (size_t)d->set.n_step - 1,
                                                         d->row_bytes, sizeof(int32_t)},
                                 &d->window, err);
    if (st == RP_OK && rp_decoder_new(&d->alloc, 0, &d->decoder) != RP_OK)
        st = rp_rl_fail_memory(err, sizeof *d);
    return st;
}

rp_status rp_dqn_new(const rp_allocator *alloc, const rp_dqn_options *options, rp_agent **out,
                     rp_error *err)
{
    rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_status st = rp_dqn_settings_check(options->settings, err);
    dqn *d;

    if (st != RP_OK) return st;
    d = a.resize(a.ctx, NULL, 0, sizeof *d);
    if (d == NULL) return rp_rl_fail_memory(err, sizeof *d);
    *d = (dqn){.agent = {&dqn_class},
               .alloc = a,
               .set = *options->settings,
               .spec = *options->spec,
               .copies = (size_t)options->settings->copies,
               .batch = (size_t)options->settings->batch,
               .actions = (size_t)options->spec->action_count,
               .client = options->client,
               .counts = {.largest_priority = 1}};
    st = make_networks(d, options->seed, err);
    if (st == RP_OK) st = make_replay(d, options->store, err);
    if (st != RP_OK) {
        free_agent(&d->agent);
        return st;
    }
    for (size_t i = 0; d->set.ladder && d->copies > 1 && i < d->copies; i++)
        d->epsilons[i] = rung((int64_t)i, (int64_t)d->copies);
    if (d->set.ladder && d->copies == 1) draw_rung(d);
    *out = &d->agent;
    return RP_OK;
}
