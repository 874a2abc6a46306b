/* SPDX-License-Identifier: Apache-2.0 */
/* The data for pages about a server: its description, metrics of two loops, and a store with
 * unusual tables. */
#ifndef RP_TEST_OBSERVED_H
#define RP_TEST_OBSERVED_H

#include <stdio.h>

#include "rollouts/rollout_set.h"
#include "server/http/server_view.h"
#include "store/store.h"
#include "support/fixture.h"
#include "table/op.h"

typedef struct rp_test_observed {
    rp_test_bed bed;
    rp_server_view view;
    rp_op parked; /* a sample that waits for the table 'empty' */
    rp_sample_options wanted;
    rp_sample samples[2];
} rp_test_observed;

static inline void rp_test_ignore(rp_op *op)
{
    (void)op;
}

static inline rp_server_view rp_test_server_view(rp_metrics *metrics, rp_store *store)
{
    static const char *const addresses[] = {"127.0.0.1:8000", "unix:/tmp/a \"b\""};

    return (rp_server_view){
        .version = "1.2.3",
        .health = RP_HEALTH_DEGRADED,
        .why = "the disk is full: \"\\\n",
        .uptime_ns = 1500000000,
        .addresses = addresses,
        .address_count = 2,
        .limits = {.connections = 10000, .message_bytes = 64 << 20, .stall_ms = 60000},
        .metrics = metrics,
        .store = store,
    };
}

/* Makes three tables: 'replay' with items, 'empty' with a sample that waits, and one whose name
 * must be escaped. */
static inline void rp_test_observed_init(rp_test_observed *o)
{
    static const rp_spec columns[] = {{"obs", RP_FLOAT32, {2, {-1, 84}}},
                                      {"re\"ward", RP_FLOAT64, {-1, {0}}}};
    rp_table_options replay = rp_test_options("replay", RP_PRIORITIZED, RP_FIFO, 100),
                     empty = rp_test_options("empty", RP_FIFO, RP_FIFO, 10),
                     odd = rp_test_options("a \"b\"\\\n\xff\xc3\xa4", RP_LIFO, RP_FIFO, 10);
    rp_metrics *metrics = NULL;
    rp_table *t;

    memset(o, 0, sizeof *o);
    rp_test_bed_init(&o->bed, NULL);
    replay.limiter = rp_limiter_ratio(2.0, 2, 50.0);
    replay.sampler.exponent = 0.6;
    t = rp_test_bed_table(&o->bed, &replay);
    for (uint64_t key = 1; key <= 5; key++) rp_test_put(t, key, 1.0, o->bed.plain);
    (void)rp_test_draw(t);
    assert_ok_err(rp_signature_flat(&o->bed.alloc, columns, 2, &empty.signature, &o->bed.err),
                  &o->bed.err);
    t = rp_test_bed_table(&o->bed, &empty);
    rp_signature_unref(empty.signature);
    o->wanted = (rp_sample_options){.count = 2};
    o->parked = (rp_op){.options = &o->wanted,
                        .samples = o->samples,
                        .until_ns = RP_FOREVER,
                        .on_done = rp_test_ignore};
    assert_false(rp_table_start_sample(t, &o->parked));
    (void)rp_test_bed_table(&o->bed, &odd);
    assert_ok(rp_metrics_new(&o->bed.alloc, 2, &metrics));
    o->view = rp_test_server_view(metrics, o->bed.store);
}

/* Adds tables whose names are as long on a page as names can be: 255 control characters. */
static inline void rp_test_observed_add_long(rp_test_observed *o, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[280];
        rp_table_options options = rp_test_options(name, RP_FIFO, RP_FIFO, 10);

        memset(name, 1, 249);
        (void)snprintf(name + 249, sizeof name - 249, "%06zu", i); /* fewer than a million */
        (void)rp_test_bed_table(&o->bed, &options);
    }
}

/* Adds the rollouts 'train', with an operation that waits for room since 5 s and one draw. */
typedef struct rp_test_observed_rollouts {
    rp_rollouts *rollouts;
    rp_rollout_parked put, draw;
} rp_test_observed_rollouts;

static inline void rp_test_observed_add_rollouts(rp_test_observed *o,
                                                 rp_test_observed_rollouts *added)
{
    const rp_string name = {"train", 5};
    const rp_rollout_op put = {.kind = RP_ROLLOUT_PUT, .waited_ns = INT64_C(5000000000)};
    const rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW, .groups = 2};
    rp_rollout_set *set = rp_store_rollouts(o->bed.store);
    rp_rollout_options options;
    uint64_t lsn;

    rp_rollout_options_init(&options);
    assert_ok_err(rp_rollout_set_create(set, name, &options, NULL, &lsn, &o->bed.err),
                  &o->bed.err);
    *added = (rp_test_observed_rollouts){.rollouts = rp_rollout_set_find(set, name)};
    added->put =
        (rp_rollout_parked){.client = 7, .waiting = {.limit = RP_ROLLOUT_BY_GROUPS, .have = 3}};
    rp_rollouts_park(added->rollouts, &added->put, &put, RP_FOREVER);
    rp_rollouts_park(added->rollouts, &added->draw, &draw, RP_FOREVER);
}

static inline void rp_test_observed_drop_rollouts(rp_test_observed_rollouts *added)
{
    rp_rollouts_unpark(added->rollouts, &added->put);
    rp_rollouts_unpark(added->rollouts, &added->draw);
    rp_rollouts_unref(added->rollouts);
}

static inline void rp_test_observed_deinit(rp_test_observed *o)
{
    assert_true(rp_op_withdraw(&o->parked, RP_CANCELLED));
    rp_metrics_free(o->view.metrics);
    rp_test_bed_deinit(&o->bed);
}

#endif
