/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   P1  rows 0 .. filled - 1 of the batch are drawn; filled < batch between calls that failed;
 *   P2  changes 0 .. change_count - 1 wait to be sent; there is room for those of a batch. */
#include "agents/replay.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "agents/place.h"
#include "error/fail.h"
#include "reprise/sampler.h"

enum { PREFETCH = 4, SEND_MS = 5000 };

/* The columns of an item, in the order of the adder. */
enum { OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION, COLUMNS };

struct rp_replay {
    rp_allocator alloc;
    rp_env_spec spec;
    rp_client *client;
    rp_table *table;     /* a reference; NULL: draws by a sampler */
    rp_sampler *sampler; /* NULL: none yet, or the last one failed */
    rp_decoder *decoder;
    size_t batch, prefetch, mutate_for;
    double beta;
    size_t filled;           /* P1 */
    rp_update *changes;      /* P2: mutate_for x batch */
    size_t change_count;     /* P2 */
    size_t bytes[COLUMNS];   /* of one item, for each column */
    uint8_t *place[COLUMNS]; /* memory of the batch, for each column */
    rp_replay_batch view;
    rp_sample *samples;
    const rp_trajectory **trajectories;
    void *block;
    size_t block_bytes;
};

/* Sets the arrays to their places in `block`, or only counts. Returns the bytes of all. */
static size_t place_arrays(rp_replay *r, uint8_t *block)
{
    size_t end = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        r->place[i] = rp_place_array(block, &end, r->batch, r->bytes[i]);
    r->view = (rp_replay_batch){r->place[OBSERVATION],
                                r->place[NEXT_OBSERVATION],
                                r->place[ACTION],
                                (float *)(void *)r->place[REWARD],
                                (float *)(void *)r->place[DISCOUNT],
                                rp_place_array(block, &end, r->batch, sizeof(rp_real))};
    r->samples = rp_place_array(block, &end, r->batch, sizeof(rp_sample));
    r->trajectories = rp_place_array(block, &end, r->batch, sizeof r->trajectories[0]);
    r->changes = rp_place_array(block, &end, r->mutate_for * r->batch, sizeof(rp_update));
    return end;
}

static void set_bytes(rp_replay *r)
{
    const rp_shape *shape = &r->spec.observation_shape;
    size_t row = rp_dtype_size(r->spec.observation_dtype);

    for (int32_t i = 0; i < shape->rank; i++) row *= (size_t)shape->dims[i];
    r->bytes[OBSERVATION] = r->bytes[NEXT_OBSERVATION] = row;
    r->bytes[ACTION] = r->spec.action_kind == RP_ACTION_DISCRETE
                           ? sizeof(int32_t)
                           : r->spec.action_size * sizeof(float);
    r->bytes[REWARD] = r->bytes[DISCOUNT] = sizeof(float);
}

static rp_status fill_in(rp_replay *r, rp_store *store, rp_error *err)
{
    set_bytes(r);
    r->block_bytes = place_arrays(r, NULL);
    r->block = r->alloc.resize(r->alloc.ctx, NULL, 0, r->block_bytes);
    if (r->block == NULL) return rp_rl_fail_memory(err, r->block_bytes);
    memset(r->block, 0, r->block_bytes);
    (void)place_arrays(r, r->block);
    if (store == NULL) return RP_OK;
    r->table =
        rp_store_find_table(store, (rp_string){RP_REPLAY_TABLE, sizeof RP_REPLAY_TABLE - 1});
    if (r->table == NULL)
        return rp_rl_fail(err, RP_NOT_FOUND, "replay: the store has no table '%s'",
                          RP_REPLAY_TABLE);
    if (rp_decoder_new(&r->alloc, 0, &r->decoder) != RP_OK)
        return rp_rl_fail_memory(err, sizeof *r);
    return RP_OK;
}

rp_status rp_replay_new(const rp_allocator *alloc, const rp_replay_options *options,
                        rp_replay **out, rp_error *err)
{
    const rp_allocator a = alloc != NULL ? *alloc : *rp_allocator_default();
    rp_replay *r = a.resize(a.ctx, NULL, 0, sizeof *r);
    rp_status st;

    if (r == NULL) return rp_rl_fail_memory(err, sizeof *r);
    assert(options->batch >= 1);
    *r = (rp_replay){.alloc = a,
                     .spec = *options->spec,
                     .client = options->client,
                     .batch = options->batch,
                     .prefetch = options->prefetch > 0 ? options->prefetch : PREFETCH,
                     .mutate_for = options->mutate_for > 0 ? options->mutate_for : 1,
                     .beta = options->beta};
    st = fill_in(r, options->store, err);
    if (st != RP_OK) {
        rp_replay_free(r);
        return st;
    }
    *out = r;
    return RP_OK;
}

void rp_replay_free(rp_replay *r)
{
    if (r == NULL) return;
    rp_allocator alloc = r->alloc;
    rp_sampler_free(r->sampler);
    rp_decoder_free(r->decoder);
    rp_table_unref(r->table);
    if (r->block != NULL) (void)alloc.resize(alloc.ctx, r->block, r->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, r, sizeof *r, 0);
}

const rp_replay_batch *rp_replay_get_batch(const rp_replay *r)
{
    return &r->view;
}

static rp_status draw_from_table(rp_replay *r, rp_wait wait, rp_error *err)
{
    const rp_sample_options options = {.count = r->batch, .beta = r->beta};
    size_t drawn = 0;
    rp_status st = rp_table_sample(r->table, &options, r->samples, &drawn, wait, err);

    if (st != RP_OK) return st;
    assert(drawn == r->batch);
    for (size_t i = 0; i < r->batch; i++) {
        r->trajectories[i] = r->samples[i].trajectory;
        r->view.weights[i] = (rp_real)r->samples[i].weight;
    }
    for (size_t i = 0; st == RP_OK && i < COLUMNS; i++)
        st = rp_decoder_stack(r->decoder, r->trajectories, r->batch, i, r->place[i],
                              r->batch * r->bytes[i], err);
    rp_samples_release(r->samples, r->batch);
    return st;
}

/* (size * probability)^-beta, over the largest of the batch. A batch may have arrived in parts,
 * so the sampler cannot do this. */
static void set_weights(rp_replay *r)
{
    double largest = 0;

    for (size_t i = 0; i < r->batch; i++) {
        const rp_sample *s = &r->samples[i];
        double share = (double)s->table_size * s->probability;
        double weight = r->beta > 0 && share > 0 ? pow(share, -r->beta) : 1;

        r->view.weights[i] = (rp_real)weight;
        if (weight > largest) largest = weight;
    }
    for (size_t i = 0; i < r->batch; i++) r->view.weights[i] /= (rp_real)largest;
}

static rp_status draw_by_sampler(rp_replay *r, rp_wait wait, rp_error *err)
{
    const rp_sampler_options options = {.table = RP_REPLAY_TABLE,
                                        .max_in_flight = r->prefetch * r->batch,
                                        .rate_limiter_timeout_ms = -1,
                                        .direct = true};
    rp_status st = RP_OK;

    if (r->sampler == NULL) st = rp_sampler_new(r->client, &options, &r->sampler, err);
    while (st == RP_OK && r->filled < r->batch) {
        rp_stack_place places[COLUMNS];
        const rp_stack to = {places, COLUMNS, r->samples + r->filled, r->batch - r->filled};
        size_t count = 0;

        for (size_t i = 0; i < COLUMNS; i++)
            places[i] = (rp_stack_place){r->place[i] + r->filled * r->bytes[i], r->bytes[i]};
        st = rp_sampler_stack(r->sampler, &to, &count, wait, err);
        r->filled += count;
    }
    if (st == RP_OK) set_weights(r);
    if (st == RP_OK || st == RP_DEADLINE) return st;
    rp_sampler_free(r->sampler); /* the next call tries another one */
    r->sampler = NULL;
    return st;
}

static rp_status check_actions(const rp_replay *r, rp_error *err)
{
    const int32_t *taken = r->view.actions;

    if (r->spec.action_kind != RP_ACTION_DISCRETE) return RP_OK;
    for (size_t i = 0; i < r->batch; i++)
        if (taken[i] < 0 || taken[i] >= r->spec.action_count)
            return rp_rl_fail(err, RP_CORRUPT, "table '%s': an item has action %d of %d",
                              RP_REPLAY_TABLE, (int)taken[i], (int)r->spec.action_count);
    return RP_OK;
}

rp_status rp_replay_draw(rp_replay *r, rp_wait wait, rp_error *err)
{
    rp_status st =
        r->table != NULL ? draw_from_table(r, wait, err) : draw_by_sampler(r, wait, err);

    assert(r->filled <= r->batch); /* P1 */
    if (st != RP_DEADLINE) r->filled = 0;
    return st == RP_OK ? check_actions(r, err) : st;
}

rp_status rp_replay_prioritize(rp_replay *r, const rp_real *errors, double *largest,
                               rp_cancel *cancel, rp_error *err)
{
    rp_mutation mutation = {.updates = r->changes};
    rp_wait send = rp_wait_ms(SEND_MS);
    rp_status st;

    assert(r->change_count + r->batch <= r->mutate_for * r->batch); /* P2 */
    for (size_t i = 0; i < r->batch; i++) {
        rp_update *change = &r->changes[r->change_count++];

        *change = (rp_update){r->samples[i].key, fabs((double)errors[i]) + RP_PRIORITY_FLOOR};
        if (change->priority > *largest) *largest = change->priority;
    }
    if (r->change_count < r->mutate_for * r->batch) return RP_OK;
    mutation.update_count = r->change_count;
    r->change_count = 0;
    send.cancel = cancel;
    st = rp_client_mutate(r->client, RP_REPLAY_TABLE, &mutation, send, err);
    if (st == RP_UNAVAILABLE || st == RP_DEADLINE || st == RP_NOT_FOUND) return RP_OK;
    return st;
}
