/* SPDX-License-Identifier: Apache-2.0 */
/* Rollouts for unit tests, with short calls for the operations. */
#ifndef RP_TEST_ROLLOUT_RIG_H
#define RP_TEST_ROLLOUT_RIG_H

#include "rollouts/rollouts_image.h"
#include "support/unit.h"

typedef struct rp_test_rollouts {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_rollouts *r;
    rp_rollout_result result; /* of the last operation */
    rp_error err;
} rp_test_rollouts;

static inline rp_string rp_test_text(const char *text)
{
    return (rp_string){text, strlen(text)};
}

/* Options with `group_size` and no limits. */
static inline rp_rollout_options rp_test_rollout_options(uint32_t group_size)
{
    rp_rollout_options o;

    rp_rollout_options_init(&o);
    o.group_size = group_size;
    return o;
}

static inline void rp_test_rollouts_init(rp_test_rollouts *t, const rp_rollout_options *o)
{
    *t = (rp_test_rollouts){.r = NULL};
    atomic_init(&t->oom.left, RP_TEST_OOM_UNLIMITED);
    t->alloc = rp_test_oom_allocator(&t->oom);
    assert_ok_err(rp_rollouts_new(&t->alloc, 1, rp_test_text("r"), o, &t->r, &t->err), &t->err);
}

/* Frees everything; nothing may be left. */
static inline void rp_test_rollouts_deinit(rp_test_rollouts *t)
{
    rp_rollout_batch_free(t->result.batch);
    rp_rollouts_unref(t->r);
    assert_int_equal(atomic_load(&t->oom.live), 0);
}

static inline rp_status rp_test_rollout(rp_test_rollouts *t, rp_rollout_op op)
{
    rp_status st;

    rp_rollout_batch_free(t->result.batch);
    st = rp_rollouts_apply(t->r, &op, &t->result, &t->err);
    assert_true(rp_rollouts_check(t->r));
    return st;
}

static inline rp_status rp_test_reserve(rp_test_rollouts *t, const char *group, int64_t ttl_ns)
{
    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_RESERVE,
                                              .group = rp_test_text(group),
                                              .ttl_ns = ttl_ns});
}

/* Puts an item with one column of `length` tokens, all of them `token`. NULL: no column. */
static inline rp_status rp_test_put(rp_test_rollouts *t, const char *group, uint32_t index,
                                    int64_t version, int64_t length)
{
    int32_t tokens[64] = {(int32_t)index, 7};
    rp_rollout_column column = {{"tokens", 6},
                                {RP_INT32, {.rank = 1, .dims = {length}}, tokens}};

    assert_true(length <= (int64_t)COUNT_OF(tokens));
    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_PUT,
                                              .group = rp_test_text(group),
                                              .index = index,
                                              .first_version = version,
                                              .last_version = version,
                                              .columns = &column,
                                              .column_count = length > 0});
}

/* Adds a scalar of float32. */
static inline rp_status rp_test_update(rp_test_rollouts *t, const char *group, uint32_t index,
                                       const char *name, float value, bool replace)
{
    rp_rollout_column column = {rp_test_text(name), {RP_FLOAT32, {.rank = 0}, &value}};

    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_UPDATE,
                                              .group = rp_test_text(group),
                                              .index = index,
                                              .columns = &column,
                                              .column_count = 1,
                                              .replace = replace});
}

static inline rp_status rp_test_draw(rp_test_rollouts *t, const char *consumer, uint32_t groups,
                                     int64_t ttl_ns)
{
    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_DRAW,
                                              .consumer = rp_test_text(consumer),
                                              .groups = groups,
                                              .ttl_ns = ttl_ns});
}

/* Acknowledges, releases: operations on a lease. */
static inline rp_status rp_test_lease(rp_test_rollouts *t, rp_rollout_op_kind kind,
                                      uint64_t lease)
{
    return rp_test_rollout(t, (rp_rollout_op){.kind = kind, .lease = lease, .ttl_ns = 100});
}

static inline rp_status rp_test_advance(rp_test_rollouts *t, int64_t version)
{
    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_ADVANCE, .version = version});
}

static inline rp_status rp_test_expire(rp_test_rollouts *t, int64_t now_ns)
{
    return rp_test_rollout(t, (rp_rollout_op){.kind = RP_ROLLOUT_EXPIRE, .now_ns = now_ns});
}

static inline rp_rollout_fate rp_test_fate(rp_test_rollouts *t, const char *group)
{
    rp_rollout_fate fate;

    assert_ok(rp_rollouts_peek(t->r, rp_test_text(group), &fate, NULL));
    return fate;
}

static inline rp_rollout_info rp_test_rollout_info(rp_test_rollouts *t)
{
    static rp_rollout_info info;

    rp_rollouts_get_info(t->r, &info);
    return info;
}

#endif
