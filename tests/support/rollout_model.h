/* SPDX-License-Identifier: Apache-2.0 */
/* A model of rollouts: arrays and loops, no queue and no heap. Groups have the names g0, g1,
 * ..., columns the names a, b, c, d; a column has `length` rows of uint8 which are all `value`.
 */
#ifndef RP_TEST_ROLLOUT_MODEL_H
#define RP_TEST_ROLLOUT_MODEL_H

#include "rollouts/rollouts.h"

enum {
    MODEL_NAMES = 24,
    MODEL_ITEMS = 3,
    MODEL_COLUMNS = 4,
    MODEL_CONSUMERS = 3,
    MODEL_LEASES = 4096,
};

typedef struct model_column {
    bool is_there;
    uint8_t value;
    int length;
} model_column;

typedef struct model_item {
    bool is_there;
    int64_t first, last;
    model_column columns[MODEL_COLUMNS];
} model_item;

typedef struct model_group {
    bool is_there;
    rp_rollout_fate fate; /* if it is not */
    uint64_t number;
    int64_t ttl, until;
    model_item items[MODEL_ITEMS];
    uint64_t ready[MODEL_CONSUMERS]; /* when it became ready, from 1 */
    uint64_t lease[MODEL_CONSUMERS];
    bool is_done[MODEL_CONSUMERS];
} model_group;

typedef struct model_lease {
    bool is_there, was_acked;
    int consumer, count;
    int64_t until;
    int groups[MODEL_NAMES];
} model_lease;

typedef struct model {
    rp_rollout_options o;
    int consumers;
    bool needs[MODEL_CONSUMERS][MODEL_COLUMNS];
    int64_t version, now;
    uint64_t next_number, next_ready, next_lease;
    model_group groups[MODEL_NAMES];
    model_lease leases[MODEL_LEASES];
    uint64_t acknowledged, stale, evicted, aborted, expired_reservations, expired_leases;
    uint64_t drawn[MODEL_CONSUMERS], acked[MODEL_CONSUMERS];
    uint64_t staleness[RP_ROLLOUT_STALENESS_BUCKETS];
} model;

/* An operation on the model. The same fields as rp_rollout_op, with numbers for names. */
typedef struct model_op {
    rp_rollout_op_kind kind;
    int64_t now, ttl;
    int group, index, consumer;
    int64_t first, last, version;
    model_column columns[MODEL_COLUMNS];
    bool replace;
    uint32_t groups, min_groups;
    int column; /* of a draw; -1: none */
    uint64_t tokens, lease;
} model_op;

typedef struct model_result {
    rp_status status;
    rp_rollout_outcome outcome;
    rp_rollout_limit limit;
    rp_rollout_fate fate;
    bool changed;
    int drawn[MODEL_NAMES], drawn_count;
} model_result;

void model_init(model *m, const rp_rollout_options *o);
model_result model_apply(model *m, const model_op *op);
void model_info(const model *m, rp_rollout_info *out);
rp_rollout_fate model_state(const model *m, int group);

#endif
