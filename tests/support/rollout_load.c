/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rollout_load.h"

#include <stdio.h>
#include <string.h>

#include "rollouts/rollouts_image.h"

enum { GROUPS = 60, SIZE = 2, MOST_BYTES = 300 };

static const char *const names[RP_RIG_ROLLOUTS] = {"always", "sometimes"};

static rp_string string_of(const char *text)
{
    return (rp_string){text, strlen(text)};
}

void rp_rollout_load_init(rp_rollout_load *r, uint64_t seed, rp_durability mode)
{
    memset(r, 0, sizeof *r);
    r->seed = seed;
    r->mode = mode;
    r->now_ns = 1;
    rp_rng_init(&r->rng, seed);
}

static void on_event(void *ctx, bool degraded, const char *text)
{
    rp_rollout_load *r = ctx;

    (void)degraded;
    (void)snprintf(r->events, sizeof r->events, "%s", text);
    atomic_fetch_add(&r->event_count, 1);
}

static rp_rollout_options options_of(rp_rng *rng)
{
    static const rp_string needed[] = {{"late", 4}};
    static const rp_rollout_consumer consumers[] = {{{"first", 5}, NULL, 0},
                                                    {{"second", 6}, needed, 1}};
    rp_rollout_options o;

    rp_rollout_options_init(&o);
    o.group_size = SIZE;
    o.max_groups = 10;
    o.full = RP_ROLLOUT_FULL_EVICT;
    o.max_staleness = 3;
    o.order = (rp_rollout_order)rp_rng_below(rng, 3);
    o.consumers = consumers;
    o.consumer_count = rp_rng_below(rng, 2) * 2;
    return o;
}

rp_status rp_rollout_load_apply(rp_store *store, const char *name, const rp_rollout_op *op,
                                rp_rollout_result *result)
{
    rp_rollouts *rollouts = rp_rollout_set_find(rp_store_rollouts(store), string_of(name));
    uint64_t claimed = 0;
    rp_error err;
    rp_status st;

    *result = (rp_rollout_result){0};
    if (rollouts == NULL) return RP_NOT_FOUND;
    st = rp_store_rollouts_admit_wait(store, op, rp_wait_forever(), &claimed, &err);
    if (st == RP_OK) st = rp_rollouts_apply(rollouts, op, result, &err);
    rp_store_rollouts_unclaim(store, claimed);
    if (st == RP_OK) st = rp_store_rollouts_wait(store, result->lsn, rp_wait_forever(), &err);
    rp_rollouts_unref(rollouts);
    return st;
}

static void create(rp_rollout_load *r, size_t which)
{
    rp_rollout_options o = options_of(&r->rng);
    uint64_t lsn = 0;
    rp_error err;
    rp_status st = rp_rollout_set_create(rp_store_rollouts(r->store), string_of(names[which]),
                                         &o, NULL, &lsn, &err);

    assert_ok_err(st, &err);
    r->leases[which] = 0;
    assert_ok_err(rp_store_rollouts_wait(r->store, lsn, rp_wait_forever(), &err), &err);
}

static void drop(rp_rollout_load *r, size_t which)
{
    uint64_t lsn = 0;
    rp_error err;

    assert_ok_err(
        rp_rollout_set_drop(rp_store_rollouts(r->store), string_of(names[which]), &lsn, &err),
        &err);
    assert_ok_err(rp_store_rollouts_wait(r->store, lsn, rp_wait_forever(), &err), &err);
}

/* Makes an operation whose strings and bytes are in the other arguments. */
static rp_rollout_op make_op(rp_rollout_load *r, size_t which, char group[16],
                             uint8_t data[MOST_BYTES], rp_rollout_column *column)
{
    rp_rollout_op op = {.now_ns = r->now_ns += (int64_t)rp_rng_below(&r->rng, 50)};
    size_t bytes = rp_rng_below(&r->rng, MOST_BYTES);

    (void)snprintf(group, 16, "g%u", (unsigned)rp_rng_below(&r->rng, GROUPS));
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)rp_rng_next(&r->rng);
    *column = (rp_rollout_column){{"tokens", 6},
                                  {RP_UINT8, {.rank = 1, .dims = {(int64_t)bytes}}, data}};
    op.group = string_of(group);
    op.ttl_ns = 100 + (int64_t)rp_rng_below(&r->rng, 400);
    op.columns = column;
    op.index = (uint32_t)rp_rng_below(&r->rng, SIZE);
    switch (rp_rng_below(&r->rng, 16)) {
    case 0: op.kind = RP_ROLLOUT_RESERVE; break;
    case 1: op.kind = RP_ROLLOUT_ABORT; break;
    case 2:
        op.kind = RP_ROLLOUT_ADVANCE;
        op.version = (int64_t)(atomic_load(&r->started) / 24);
        break;
    case 3:
    case 4:
        op.kind = RP_ROLLOUT_UPDATE;
        column->name = (rp_string){"late", 4};
        op.column_count = 1;
        op.replace = rp_rng_below(&r->rng, 2) == 0;
        break;
    case 5:
    case 6:
        op.kind = RP_ROLLOUT_DRAW;
        op.groups = 1 + (uint32_t)rp_rng_below(&r->rng, 3);
        if (rp_rng_below(&r->rng, 2) == 0) op.consumer = (rp_string){"first", 5};
        break;
    case 7:
        op.kind = RP_ROLLOUT_ACK;
        op.lease = r->leases[which];
        break;
    case 8:
        op.kind = RP_ROLLOUT_RELEASE;
        op.lease = r->leases[which];
        break;
    case 9: op.kind = RP_ROLLOUT_EXPIRE; break;
    case 10:
        op.kind = RP_ROLLOUT_SET_CURSOR;
        op.cursor = (rp_string){group, 1 + rp_rng_below(&r->rng, 2)};
        op.data = (rp_bytes){data, bytes};
        break;
    default:
        op.kind = RP_ROLLOUT_PUT;
        op.column_count = 1;
        op.first_version = op.last_version = (int64_t)(atomic_load(&r->started) / 24);
    }
    return op;
}

static void apply(rp_rollout_load *r, size_t which)
{
    char group[16];
    uint8_t data[MOST_BYTES];
    rp_rollout_column column;
    rp_rollout_op op = make_op(r, which, group, data, &column);
    rp_rollout_result result;
    rp_status st = rp_rollout_load_apply(r->store, names[which], &op, &result);

    assert_true(st != RP_UNAVAILABLE && st != RP_NO_RESOURCE);
    if (result.batch != NULL) r->leases[which] = result.batch->lease;
    rp_rollout_batch_free(result.batch);
    atomic_fetch_add(&r->changed, result.changed);
}

bool rp_rollout_load_digest(rp_store *store, uint64_t out[RP_RIG_ROLLOUTS])
{
    bool is_sound = true;

    for (size_t k = 0; k < RP_RIG_ROLLOUTS; k++) {
        rp_rollouts *rollouts =
            rp_rollout_set_find(rp_store_rollouts(store), string_of(names[k]));

        out[k] = 0;
        if (rollouts == NULL) continue;
        is_sound = is_sound && rp_rollouts_check(rollouts) &&
                   rp_rollouts_digest(rollouts, &out[k]) == RP_OK;
        rp_rollouts_unref(rollouts);
    }
    return is_sound;
}

void rp_rollout_load_step(rp_rollout_load *r)
{
    size_t step = atomic_load(&r->started) + 1;
    size_t which = rp_rng_below(&r->rng, RP_RIG_ROLLOUTS);
    bool is_there = r->digests[step - 1][which] != 0;

    assert_true(step <= RP_RIG_STEPS);
    atomic_store(&r->started, step);
    if (!is_there)
        create(r, which);
    else if (which == 1 && rp_rng_below(&r->rng, 12) == 0)
        drop(r, which);
    else
        apply(r, which);
    assert_true(rp_rollout_load_digest(r->store, r->digests[step]));
    atomic_store(&r->acked, step);
}

void rp_rollout_load_checkpoint(rp_rollout_load *r)
{
    size_t step = atomic_load(&r->started);
    rp_error err = {0};

    assert_ok_err(rp_durable_checkpoint(r->durable, rp_wait_forever(), NULL, 0, &err), &err);
    atomic_store(&r->checkpointed, step);
}

bool rp_rollout_load_knows(const rp_rollout_load *r, const uint64_t digests[RP_RIG_ROLLOUTS],
                           size_t from, size_t to)
{
    for (size_t k = 0; k < RP_RIG_ROLLOUTS; k++) {
        bool found = false;

        for (size_t i = from; i <= to && !found; i++) found = r->digests[i][k] == digests[k];
        if (!found) return false;
    }
    return true;
}

rp_status rp_rollout_load_try_open(rp_rollout_load *r, rp_files *files, rp_error *err)
{
    const rp_durable_options options = {.directory = "rollouts",
                                        .mode = r->mode,
                                        .period_ns = RP_FOREVER,
                                        .interval_ns =
                                            r->seed % 2 == 0 ? 1000 * 1000 : 1000 * 1000 * 1000,
                                        .keep = 1 + (int32_t)(r->seed % 3),
                                        .on_event = on_event,
                                        .ctx = r};
    const rp_durable_tuning tuning = {.journal_bytes = 600 + 700 * (r->seed % 7)};
    const rp_store_options store = {.seed = r->seed + 1};
    rp_status st = rp_store_new(&store, &r->store, err);

    if (st != RP_OK) return st;
    st = rp_durable_open_tuned(files, &options, &tuning, r->store, &r->durable, err);
    if (st != RP_OK) {
        rp_store_free(r->store);
        r->store = NULL;
    }
    return st;
}

void rp_rollout_load_open(rp_rollout_load *r, rp_files *files)
{
    rp_error err = {0};

    assert_ok_err(rp_rollout_load_try_open(r, files, &err), &err);
}

rp_status rp_rollout_load_close(rp_rollout_load *r)
{
    rp_status st = rp_durable_close(r->durable, NULL);

    rp_store_free(r->store);
    r->store = NULL;
    r->durable = NULL;
    return st;
}
