/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants:
 *   P1  rows 0 .. filled - 1 of the batch are drawn; filled < batch between calls that failed;
 *   P2  changes 0 .. change_count - 1 wait to be sent; there is room for those of a batch;
 *   P3  view.left_out is the number of rows of the batch that are bad;
 *   P4  items are deleted only after the table was found to have `signature`.
 *
 * A sampler stacks items in groups, and does not say which one of a group cannot be decoded.
 * So after such a failure the next batches are decoded item by item. */
#include "agents/replay.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agents/item_check.h"
#include "agents/place.h"
#include "agents/replay_plan.h"
#include "error/fail.h"
#include "error/unfit.h"
#include "reprise/sampler.h"

enum {
    PREFETCH = 4,
    SEND_MS = 5000,
    CAREFUL = 64,            /* batches that are decoded item by item after a failure */
    FEW_ROWS = 8,            /* a batch of fewer does not tell a bad item from divergence */
    NEARLY_ALL = 10,         /* all rows of a batch but one in 10 */
    MOST_BAD_BATCHES = 1000, /* in a row with nearly all rows bad: then the learner ends */
};

/* The columns of an item, in the order of the adder. */
enum { OBSERVATION, ACTION, REWARD, DISCOUNT, NEXT_OBSERVATION, COLUMNS };

struct rp_replay {
    rp_allocator alloc;
    rp_env_spec spec;
    rp_client *client;
    rp_signature *signature; /* of the items that the learner expects */
    rp_table *table;         /* a reference; NULL: draws by a sampler */
    rp_sampler *sampler;     /* NULL: none yet, or the last one failed */
    rp_decoder *decoder;
    size_t batch, prefetch, mutate_for;
    double beta;
    size_t filled;           /* P1 */
    rp_cancel *cancel;       /* of the draw in progress */
    bool is_own;             /* P4: at the last look */
    size_t careful;          /* batches that are still decoded item by item */
    bool *is_bad;            /* P3: of each row */
    uint64_t *bad_keys;      /* room for those of a batch */
    int64_t bad_items;       /* samples left out */
    int64_t bad_batches;     /* in a row, nearly all bad */
    char bad_item[96];       /* the latest */
    rp_update *changes;      /* P2: mutate_for x batch */
    size_t change_count;     /* P2 */
    size_t numbers;          /* of an observation */
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
    r->view = (rp_replay_batch){
        .observations = r->place[OBSERVATION],
        .next_observations = r->place[NEXT_OBSERVATION],
        .actions = r->place[ACTION],
        .rewards = (float *)(void *)r->place[REWARD],
        .discounts = (float *)(void *)r->place[DISCOUNT],
        .weights = rp_place_array(block, &end, r->batch, sizeof(rp_real)),
    };
    r->samples = rp_place_array(block, &end, r->batch, sizeof(rp_sample));
    r->trajectories = rp_place_array(block, &end, r->batch, sizeof r->trajectories[0]);
    r->changes = rp_place_array(block, &end, r->mutate_for * r->batch, sizeof(rp_update));
    r->bad_keys = rp_place_array(block, &end, r->batch, sizeof r->bad_keys[0]);
    r->is_bad = rp_place_array(block, &end, r->batch, sizeof r->is_bad[0]);
    return end;
}

static void set_bytes(rp_replay *r)
{
    const rp_shape *shape = &r->spec.observation_shape;

    r->numbers = 1;
    for (int32_t i = 0; i < shape->rank; i++) r->numbers *= (size_t)shape->dims[i];
    r->bytes[OBSERVATION] = r->bytes[NEXT_OBSERVATION] =
        r->numbers * rp_dtype_size(r->spec.observation_dtype);
    r->bytes[ACTION] = r->spec.action_kind == RP_ACTION_DISCRETE
                           ? sizeof(int32_t)
                           : r->spec.action_size * sizeof(float);
    r->bytes[REWARD] = r->bytes[DISCOUNT] = sizeof(float);
}

static rp_status fill_in(rp_replay *r, rp_store *store, rp_error *err)
{
    const rp_replay_plan plan = {.spec = r->spec, .copies = 1, .n_step = 1};
    const rp_adder_options adder = rp_replay_adder(&plan);
    rp_status st;

    set_bytes(r);
    r->block_bytes = place_arrays(r, NULL);
    r->block = r->alloc.resize(r->alloc.ctx, NULL, 0, r->block_bytes);
    if (r->block == NULL) return rp_rl_fail_memory(err, r->block_bytes);
    memset(r->block, 0, r->block_bytes);
    (void)place_arrays(r, r->block);
    if (rp_decoder_new(&r->alloc, 0, &r->decoder) != RP_OK)
        return rp_rl_fail_memory(err, sizeof *r);
    st = rp_adder_signature(&adder, &r->signature, err);
    if (st != RP_OK || store == NULL) return st;
    r->table =
        rp_store_find_table(store, (rp_string){RP_REPLAY_TABLE, sizeof RP_REPLAY_TABLE - 1});
    if (r->table == NULL)
        return rp_rl_fail(err, RP_NOT_FOUND, "replay: the store has no table '%s'",
                          RP_REPLAY_TABLE);
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
    rp_signature_unref(r->signature);
    if (r->block != NULL) (void)alloc.resize(alloc.ctx, r->block, r->block_bytes, 0);
    (void)alloc.resize(alloc.ctx, r, sizeof *r, 0);
}

const rp_replay_batch *rp_replay_get_batch(const rp_replay *r)
{
    return &r->view;
}

/* The bytes of the columns and the weights, which are first in the block. */
static size_t rows_bytes(const rp_replay *r)
{
    return (size_t)((uint8_t *)r->samples - (uint8_t *)r->block);
}

/* Marks a row as bad. */
static void set_bad(rp_replay *r, size_t row, const char *why)
{
    assert(!r->is_bad[row]);
    r->is_bad[row] = true;
    r->view.left_out++; /* P3 */
    r->bad_items++;
    (void)snprintf(r->bad_item, sizeof r->bad_item, "item %llu has %.64s",
                   (unsigned long long)r->samples[row].key, why);
}

/* Finds out whether the table is the learner's, so that items may be deleted. RP_PRECONDITION:
 * it is not. Another error: the table is away, so this is not known. */
static rp_status look(rp_replay *r, rp_error *err)
{
    rp_wait wait = rp_wait_ms(SEND_MS);
    rp_status st;

    wait.cancel = r->cancel;
    st = rp_check_tables(r->client, RP_REPLAY_TABLE, r->signature, "this agent", wait,
                         &r->is_own, err);
    assert(st == RP_OK || !r->is_own); /* P4 */
    return st;
}

/* Fails for an item with other columns, unless the table is the learner's, or is away: such an
 * item is left out of the batch. */
static rp_status refuse_unfit(rp_replay *r, const rp_trajectory *item, rp_error *err)
{
    char why[120];
    rp_status st;

    if (!rp_item_differs(item, r->signature, why, sizeof why)) return RP_OK;
    st = look(r, err);
    if (st != RP_OK) return st == RP_PRECONDITION ? st : RP_OK;
    if (r->is_own) return RP_OK;
    return rp_rl_fail(err, RP_PRECONDITION,
                      "table '%s' of %.80s has items that are not of this agent: %s; name "
                      "another server",
                      RP_REPLAY_TABLE, rp_client_shard_address(r->client, 0), why);
}

/* Decodes one item to its row. One that does not fit is marked as bad. RP_NO_RESOURCE,
 * RP_PRECONDITION. */
static rp_status take_one(rp_replay *r, size_t row, rp_error *err)
{
    const rp_trajectory *item = r->trajectories[row];
    rp_status st = rp_trajectory_column_count(item) == COLUMNS ? RP_OK : RP_INVALID;

    for (size_t i = 0; st == RP_OK && i < COLUMNS; i++)
        st = rp_decoder_stack(r->decoder, &item, 1, i, r->place[i] + row * r->bytes[i],
                              r->bytes[i], err);
    if (st != RP_INVALID && st != RP_CORRUPT) return st;
    if (refuse_unfit(r, item, err) != RP_OK) return RP_PRECONDITION;
    set_bad(r, row, st == RP_INVALID ? "columns of other sizes" : "bytes that do not decode");
    return RP_OK;
}

/* (size * probability)^-beta, over the largest of the batch. A batch may have arrived in parts,
 * so neither the sampler nor the table can do this. */
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

/* Decodes the trajectories of `count` rows from `first` on. */
static rp_status decode(rp_replay *r, size_t first, size_t count, rp_error *err)
{
    rp_status st = RP_OK;

    for (size_t i = first; i < first + count; i++)
        r->trajectories[i] = r->samples[i].trajectory;
    for (size_t i = 0; st == RP_OK && i < COLUMNS; i++)
        st = rp_decoder_stack(r->decoder, r->trajectories + first, count, i,
                              r->place[i] + first * r->bytes[i], count * r->bytes[i], err);
    if (st != RP_INVALID && st != RP_CORRUPT) return st;
    st = RP_OK;
    for (size_t i = first; st == RP_OK && i < first + count; i++) st = take_one(r, i, err);
    return st;
}

static rp_status draw_from_table(rp_replay *r, rp_wait wait, rp_error *err)
{
    const rp_sample_options options = {.count = r->batch - r->filled, .beta = r->beta};
    size_t first = r->filled, drawn = 0;
    rp_status st = rp_table_sample(r->table, &options, r->samples + first, &drawn, wait, err);

    if (st != RP_OK) return st;
    assert(drawn >= 1 && first + drawn <= r->batch);
    st = decode(r, first, drawn, err);
    rp_samples_release(r->samples + first, drawn);
    if (st != RP_OK) return st;
    r->filled += drawn;       /* P1 */
    if (r->filled < r->batch) /* other learners have drawn meanwhile */
        return rp_rl_fail(err, RP_DEADLINE, "table '%s': %zu of %zu items were drawn in time",
                          RP_REPLAY_TABLE, r->filled, r->batch);
    if (drawn < r->batch) set_weights(r);
    for (size_t i = 0; drawn == r->batch && i < r->batch; i++)
        r->view.weights[i] = (rp_real)r->samples[i].weight;
    return RP_OK;
}

/* Decodes as many items as there are, in groups. */
static rp_status fetch_group(rp_replay *r, rp_wait wait, rp_error *err)
{
    rp_stack_place places[COLUMNS];
    const rp_stack to = {places, COLUMNS, r->samples + r->filled, r->batch - r->filled};
    size_t count = 0;
    rp_status st;

    for (size_t i = 0; i < COLUMNS; i++)
        places[i] = (rp_stack_place){r->place[i] + r->filled * r->bytes[i], r->bytes[i]};
    st = rp_sampler_stack(r->sampler, &to, &count, wait, err);
    r->filled += count;
    if (st != RP_INVALID && st != RP_CORRUPT) return st;
    r->careful = CAREFUL;
    return RP_OK;
}

static rp_status fetch_one(rp_replay *r, rp_wait wait, rp_error *err)
{
    rp_sample *sample = &r->samples[r->filled];
    size_t count = 0;
    rp_status st = rp_sampler_next(r->sampler, sample, 1, &count, wait, err);

    if (st != RP_OK) return st;
    assert(count == 1 && !r->is_bad[r->filled]);
    r->trajectories[r->filled] = sample->trajectory;
    st = take_one(r, r->filled, err);
    rp_samples_release(sample, 1);
    if (r->is_bad[r->filled]) r->careful = CAREFUL;
    if (st == RP_OK) r->filled++;
    return st;
}

static rp_status draw_by_sampler(rp_replay *r, rp_wait wait, rp_error *err)
{
    const rp_sampler_options options = {.table = RP_REPLAY_TABLE,
                                        .max_in_flight = r->prefetch * r->batch,
                                        .rate_limiter_timeout_ms = -1,
                                        .direct = true};
    rp_status st = RP_OK;

    if (r->sampler == NULL) st = rp_sampler_new(r->client, &options, &r->sampler, err);
    while (st == RP_OK && r->filled < r->batch)
        st = r->careful > 0 ? fetch_one(r, wait, err) : fetch_group(r, wait, err);
    if (st == RP_OK && r->careful > 0) r->careful--;
    if (st == RP_OK) set_weights(r);
    if (st == RP_OK || st == RP_DEADLINE) return st;
    rp_sampler_free(r->sampler); /* the next call tries another one */
    r->sampler = NULL;
    return st;
}

/* Marks the rows that cannot be learnt from. Those that could not be decoded are marked. */
static void mark_bad(rp_replay *r)
{
    const rp_item_check check = {.spec = &r->spec,
                                 .numbers = r->numbers,
                                 .observations = r->view.observations,
                                 .next_observations = r->view.next_observations,
                                 .actions = r->view.actions,
                                 .rewards = r->view.rewards,
                                 .discounts = r->view.discounts};
    char why[64];

    if (rp_items_are_sound(&check, r->batch)) return;
    for (size_t i = 0; i < r->batch; i++)
        if (!r->is_bad[i] && !rp_item_is_sound(&check, i, why, sizeof why)) set_bad(r, i, why);
}

/* Deletes the bad items of the batch. If the replay is away they stay, and are found again.
 * They stay as well in a table that has not the signature of the learner. */
static rp_status delete_bad(rp_replay *r, rp_cancel *cancel, rp_error *err)
{
    rp_mutation mutation = {.deletes = r->bad_keys};
    rp_wait send = rp_wait_ms(SEND_MS);
    rp_status st;

    for (size_t i = 0; i < r->batch; i++)
        if (r->is_bad[i]) r->bad_keys[mutation.delete_count++] = r->samples[i].key;
    assert(mutation.delete_count == r->view.left_out); /* P3 */
    send.cancel = r->cancel = cancel;
    st = look(r, err);
    if (st == RP_PRECONDITION) return st;
    if (!r->is_own) return RP_OK; /* P4 */
    st = rp_client_mutate(r->client, RP_REPLAY_TABLE, &mutation, send, err);
    return st == RP_UNAVAILABLE || st == RP_DEADLINE || st == RP_NOT_FOUND ? RP_OK : st;
}

/* Makes each bad row a copy of a sound one, with weight 0. Returns false if none is sound. */
static bool stand_in(rp_replay *r)
{
    rp_real largest = 0;
    size_t sound = 0;

    while (sound < r->batch && r->is_bad[sound]) sound++;
    if (sound == r->batch) return false;
    for (size_t i = 0; i < r->batch; i++) {
        if (!r->is_bad[i] && r->view.weights[i] > largest) largest = r->view.weights[i];
        if (!r->is_bad[i]) continue;
        r->view.weights[i] = 0;
        for (size_t c = 0; c < COLUMNS; c++)
            memcpy(r->place[c] + i * r->bytes[c], r->place[c] + sound * r->bytes[c],
                   r->bytes[c]);
    }
    for (size_t i = 0; i < r->batch && largest > 0; i++) r->view.weights[i] /= largest;
    return true;
}

/* Ends a learner that finds hardly anything to learn from. */
static rp_status check_share(rp_replay *r, rp_error *err)
{
    size_t sound = r->batch - r->view.left_out;

    assert(r->view.left_out <= r->batch); /* P3 */
    r->bad_batches = sound * NEARLY_ALL <= r->batch ? r->bad_batches + 1 : 0;
    if (r->bad_batches < MOST_BAD_BATCHES) return RP_OK;
    r->bad_batches = 0;
    return rp_rl_fail(
        err, RP_CORRUPT,
        "table '%s': nearly all items of the last %d batches are bad, the latest: "
        "%s. Find out who else writes to the table, or give all parts the same "
        "settings",
        RP_REPLAY_TABLE, MOST_BAD_BATCHES, r->bad_item);
}

rp_status rp_replay_draw(rp_replay *r, rp_wait wait, rp_error *err)
{
    r->cancel = wait.cancel;
    for (;;) {
        rp_status st;

        if (r->filled == 0) memset(r->is_bad, 0, r->batch * sizeof r->is_bad[0]);
        if (r->filled == 0) r->view.left_out = 0;
        st = r->table != NULL ? draw_from_table(r, wait, err) : draw_by_sampler(r, wait, err);
        assert(r->filled <= r->batch); /* P1 */
        if (st != RP_DEADLINE) r->filled = 0;
        if (st != RP_OK) return st;
        mark_bad(r);
        st = check_share(r, err);
        if (st == RP_OK && r->view.left_out > 0) st = delete_bad(r, wait.cancel, err);
        if (st != RP_OK || r->view.left_out == 0 || stand_in(r)) return st;
    }
}

/* Counts the items of the batch, or only those whose error is not within `most`. An item may
 * have several rows. */
static size_t count_items(const rp_replay *r, const rp_real *errors, double most)
{
    size_t count = 0;

    for (size_t i = 0; i < r->batch; i++) {
        bool is_first = !(fabs((double)errors[i]) <= most);

        for (size_t k = 0; is_first && k < i; k++)
            is_first = r->samples[k].key != r->samples[i].key;
        count += is_first;
    }
    return count;
}

bool rp_replay_refuse(rp_replay *r, const rp_real *errors, double most, rp_cancel *cancel)
{
    size_t large = count_items(r, errors, most), all = count_items(r, errors, -1);
    char why[64];

    assert(large <= all);
    if (large == 0 || (2 * large > all && (large > 1 || r->batch < FEW_ROWS))) return false;
    for (size_t i = 0; i < r->batch; i++) {
        if (r->is_bad[i] || fabs((double)errors[i]) <= most) continue;
        (void)snprintf(why, sizeof why, "an error of %g", (double)errors[i]);
        set_bad(r, i, why);
    }
    (void)!delete_bad(r, cancel, NULL); /* if it fails, the next draw does as well */
    if (!stand_in(r)) memset(r->block, 0, rows_bytes(r));
    return true;
}

void rp_replay_get_bad(const rp_replay *r, rp_agent_metrics *out)
{
    out->bad_items = r->bad_items;
    memcpy(out->bad_item, r->bad_item, sizeof out->bad_item);
}

rp_status rp_replay_prioritize(rp_replay *r, const rp_real *errors, double *largest,
                               rp_cancel *cancel, rp_error *err)
{
    rp_mutation mutation = {.updates = r->changes};
    rp_wait send = rp_wait_ms(SEND_MS);
    rp_status st;

    assert(r->change_count + r->batch <= r->mutate_for * r->batch); /* P2 */
    for (size_t i = 0; i < r->batch; i++) {
        rp_update *change = &r->changes[r->change_count];

        if (r->is_bad[i]) continue;
        r->change_count++;
        *change = (rp_update){r->samples[i].key, fabs((double)errors[i]) + RP_PRIORITY_FLOOR};
        if (change->priority > *largest) *largest = change->priority;
    }
    if (r->change_count + r->batch <= r->mutate_for * r->batch) return RP_OK; /* P2 */
    mutation.update_count = r->change_count;
    r->change_count = 0;
    send.cancel = cancel;
    st = rp_client_mutate(r->client, RP_REPLAY_TABLE, &mutation, send, err);
    if (st == RP_UNAVAILABLE || st == RP_DEADLINE || st == RP_NOT_FOUND) return RP_OK;
    return st;
}
