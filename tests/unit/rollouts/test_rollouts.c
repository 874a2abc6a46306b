/* SPDX-License-Identifier: Apache-2.0 */
#include "support/rollout_rig.h"

static rp_test_rollouts t;

static void start(const rp_rollout_options *o)
{
    rp_test_rollouts_init(&t, o);
}

static int end(void **state)
{
    (void)state;
    rp_test_rollouts_deinit(&t);
    return 0;
}

static rp_status abort_group(const char *group)
{
    return rp_test_rollout(
        &t, (rp_rollout_op){.kind = RP_ROLLOUT_ABORT, .group = rp_test_text(group)});
}

static void a_group_is_drawn_when_it_is_complete(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(2);
    start(&o);

    assert_ok(rp_test_put(&t, "g", 1, 0, 3));
    assert_fails(rp_test_draw(&t, "", 1, 10), RP_DEADLINE, &t.err, "0 groups are ready");
    assert_int_equal(t.result.waiting.limit, RP_ROLLOUT_BY_READY);
    assert_false(t.result.changed);
    assert_ok(rp_test_put(&t, "g", 0, 0, 5));
    assert_true(t.result.releases);
    assert_fails(rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_DRAW,
                                                     .groups = 2,
                                                     .min_groups = 2,
                                                     .ttl_ns = 10}),
                 RP_DEADLINE, &t.err, "1 group is ready for consumer '', the draw needs 2");
    assert_ok(rp_test_draw(&t, "", 1, 10));

    assert_int_equal(t.result.batch->count, 1);
    assert_int_equal(t.result.batch->groups[0].items[0]->columns[0].tensor.shape.dims[0], 5);
    assert_int_equal(t.result.batch->groups[0].items[1]->columns[0].tensor.shape.dims[0], 3);
    assert_int_equal(rp_test_fate(&t, "g"), RP_ROLLOUT_LEASED);
}

static void a_repeated_put_changes_nothing(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);
    assert_ok(rp_test_put(&t, "g", 0, 0, 3));

    assert_ok(rp_test_put(&t, "g", 0, 0, 3));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_false(t.result.changed);
    assert_fails(rp_test_put(&t, "g", 0, 0, 4), RP_EXISTS, &t.err,
                 "'tokens' with other values");

    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_ok(rp_test_put(&t, "g", 0, 0, 3)); /* the response to the first put was lost */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_GONE);
    assert_int_equal(t.result.fate, RP_ROLLOUT_ACKNOWLEDGED);
    assert_int_equal(rp_test_rollout_info(&t).groups, 0);
}

static void the_limiter_counts_reserved_and_accepted_groups(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    o.max_staleness = 1;
    o.staleness = RP_ROLLOUT_WAIT;
    o.groups_per_version = 2;
    o.first_version = 10;
    start(&o);

    /* (1 + 10 - 10 + 1) * 2 groups may begin at version 10 */
    assert_ok(rp_test_reserve(&t, "a", 10));
    assert_ok(rp_test_put(&t, "b", 0, 10, 1));
    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_ok(rp_test_reserve(&t, "c", 10));
    assert_ok(rp_test_reserve(&t, "d", 10));
    assert_fails(rp_test_put(&t, "e", 0, 10, 1), RP_DEADLINE, &t.err,
                 "may begin at version 11, now 10: 4 groups have begun");
    assert_int_equal(t.result.waiting.limit, RP_ROLLOUT_BY_VERSION);
    assert_int_equal(t.result.waiting.have, 4);
    assert_int_equal(t.result.waiting.bound, 4);
    assert_int_equal(t.result.waiting.needs_version, 11);
    /* a group that is aborted makes room, and so does a version */
    assert_ok(abort_group("d"));
    assert_ok(rp_test_put(&t, "e", 0, 10, 1));
    assert_int_equal(rp_test_reserve(&t, "f", 10), RP_DEADLINE);
    assert_ok(rp_test_advance(&t, 11));
    assert_true(t.result.releases);
    assert_ok(rp_test_reserve(&t, "f", 10));
    assert_int_equal(rp_test_rollout_info(&t).may_begin, 6);
}

static void stale_groups_are_dropped_unless_they_are_leased(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    o.max_staleness = 1;
    start(&o);
    assert_ok(rp_test_put(&t, "leased", 0, 0, 1));
    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_ok(rp_test_put(&t, "old", 0, 0, 1));
    assert_ok(rp_test_put(&t, "new", 0, 1, 1));

    assert_ok(rp_test_advance(&t, 2));

    assert_int_equal(t.result.stale, 1);
    assert_int_equal(rp_test_fate(&t, "old"), RP_ROLLOUT_STALE);
    assert_int_equal(rp_test_fate(&t, "leased"), RP_ROLLOUT_LEASED);
    assert_int_equal(rp_test_fate(&t, "new"), RP_ROLLOUT_COMPLETE);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_RELEASE, 1));
    assert_int_equal(rp_test_fate(&t, "leased"), RP_ROLLOUT_STALE);
    assert_ok(rp_test_put(&t, "late", 0, 0, 1));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_GONE);
    assert_int_equal(rp_test_rollout_info(&t).stale, 3);
    assert_ok(rp_test_advance(&t, 1)); /* came late: it does not go back */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_int_equal(t.result.version, 2);
    assert_false(t.result.changed);
}

static void a_consumer_waits_for_its_columns_and_draws_a_group_once(void **state)
{
    (void)state;
    const rp_string reward = {"reward", 6};
    const rp_rollout_consumer consumers[] = {{{"judge", 5}, NULL, 0},
                                             {{"train", 5}, &reward, 1}};
    rp_rollout_options o = rp_test_rollout_options(1);
    o.consumers = consumers;
    o.consumer_count = 2;
    start(&o);
    assert_ok(rp_test_put(&t, "g", 0, 0, 1));

    assert_int_equal(rp_test_draw(&t, "train", 1, 10), RP_DEADLINE);
    assert_ok(rp_test_draw(&t, "judge", 1, 10));
    assert_ok(rp_test_update(&t, "g", 0, "reward", 1, false)); /* while it is leased */
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_int_equal(rp_test_draw(&t, "judge", 1, 10), RP_DEADLINE);
    assert_ok(rp_test_draw(&t, "train", 1, 10));
    assert_int_equal(t.result.batch->groups[0].items[0]->column_count, 2);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 2));

    assert_int_equal(rp_test_fate(&t, "g"), RP_ROLLOUT_ACKNOWLEDGED);
    assert_int_equal(rp_test_draw(&t, "nobody", 1, 10), RP_NOT_FOUND);
}

static void an_existing_column_is_replaced_only_on_request(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    const rp_rollout_batch *before;
    start(&o);
    assert_ok(rp_test_put(&t, "g", 0, 0, 1));
    assert_ok(rp_test_update(&t, "g", 0, "x", 1, false));
    assert_int_equal(rp_test_update(&t, "g", 0, "x", 2, false), RP_EXISTS);
    assert_ok(rp_test_update(&t, "g", 0, "x", 1, false));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_ok(rp_test_draw(&t, "", 1, 10));
    before = t.result.batch;
    t.result.batch = NULL;

    assert_ok(rp_test_update(&t, "g", 0, "x", 2, true));
    assert_false(t.result.releases); /* as large as before */

    assert_true(*(const float *)before->groups[0].items[0]->columns[1].tensor.data == 1);
    rp_rollout_batch_free((rp_rollout_batch *)(uintptr_t)before);
    assert_int_equal(rp_test_update(&t, "g", 1, "x", 2, true), RP_INVALID);
    assert_int_equal(rp_test_update(&t, "h", 0, "x", 2, true), RP_NOT_FOUND);
}

static void an_expired_lease_returns_its_groups(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_ok(rp_test_put(&t, "b", 0, 0, 1));
    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_int_equal(rp_rollouts_next_expiry(t.r), 10);

    assert_ok(rp_test_expire(&t, 9));
    assert_false(t.result.changed);
    assert_ok(rp_test_expire(&t, 10));
    assert_int_equal(t.result.expired_leases, 1);

    assert_fails(rp_test_lease(&t, RP_ROLLOUT_ACK, 1), RP_NOT_FOUND, &t.err, "has expired");
    assert_ok(rp_test_draw(&t, "", 2, 10));
    assert_memory_equal(rp_rollout_name_text(t.result.batch->groups[0].name).data, "a", 1);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_RENEW, 2)); /* until 0 + 100 */
    assert_ok(rp_test_expire(&t, 99));
    assert_int_equal(t.result.expired_leases, 0);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 2));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 2));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_int_equal(rp_test_lease(&t, RP_ROLLOUT_RELEASE, 2), RP_PRECONDITION);
}

static rp_status draw_at(int64_t now_ns)
{
    return rp_test_rollout(
        &t,
        (rp_rollout_op){.kind = RP_ROLLOUT_DRAW, .now_ns = now_ns, .groups = 1, .ttl_ns = 10});
}

static void a_clock_that_was_ahead_does_not_stop_the_time(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_ok(rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_ADVANCE,
                                                  .now_ns = RP_ROLLOUT_MOST_NOW_NS,
                                                  .version = 1}));

    assert_ok(draw_at(100));
    assert_int_equal(t.result.batch->expires_ns, 110);
    assert_ok(rp_test_expire(&t, 110));
    assert_int_equal(t.result.expired_leases, 1);
}

static void the_numbers_of_leases_grow_with_the_time(void **state)
{
    (void)state;
    static const int64_t times[] = {5000000, 5000001, 4000000, 5002000, 5002000};
    static const uint64_t numbers[] = {5000, 5001, 5002, 5003, 5004};
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        char name[] = {(char)('a' + i), '\0'};

        assert_ok(rp_test_put(&t, name, 0, 0, 1));
        assert_ok(draw_at(times[i]));
        assert_int_equal(t.result.batch->lease, numbers[i]);
    }
    rp_test_rollouts_deinit(&t);

    start(&o); /* others of the same name: an old number is none of theirs */
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_ok(draw_at(6000000));
    assert_int_equal(t.result.batch->lease, 6000);
    assert_int_equal(rp_test_lease(&t, RP_ROLLOUT_ACK, 5004), RP_NOT_FOUND);
}

static void a_reservation_expires_unless_items_come(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(2);
    start(&o);
    assert_ok(rp_test_reserve(&t, "a", 10));
    assert_ok(rp_test_reserve(&t, "b", 10));
    assert_ok(rp_test_reserve(&t, "b", 20)); /* renews it */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_ok(rp_test_put(&t, "b", 0, 0, 1));

    assert_ok(rp_test_expire(&t, 15));

    assert_int_equal(t.result.expired, 1);
    assert_int_equal(rp_test_fate(&t, "a"), RP_ROLLOUT_EXPIRED);
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_GONE);
    assert_ok(rp_test_reserve(&t, "a", 10)); /* begins anew */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_DONE);
    assert_ok(rp_test_put(&t, "b", 1, 0, 1)); /* complete: no time ends it any more */
    assert_ok(rp_test_expire(&t, 1000));
    assert_int_equal(rp_test_fate(&t, "b"), RP_ROLLOUT_COMPLETE);
    assert_int_equal(rp_test_reserve(&t, "b", 10), RP_EXISTS);
}

static void a_group_that_nobody_completes_or_draws_can_be_removed(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(2);
    o.max_staleness = 0;
    o.staleness = RP_ROLLOUT_WAIT;
    o.groups_per_version = 3;
    start(&o);
    assert_ok(rp_test_put(&t, "late", 0, 0, 1));
    assert_ok(rp_test_put(&t, "partial", 0, 0, 1));
    for (uint32_t i = 0; i < 2; i++) assert_ok(rp_test_put(&t, "complete", i, 0, 1));
    assert_int_equal(rp_test_reserve(&t, "next", 10), RP_DEADLINE);

    assert_ok(rp_test_reserve(&t, "late", 10)); /* it has an item, and can expire now */
    assert_int_equal(t.result.outcome, RP_ROLLOUT_DONE);
    assert_int_equal(t.result.fate, RP_ROLLOUT_PARTIAL);
    assert_ok(rp_test_reserve(&t, "late", 10));
    assert_int_equal(t.result.outcome, RP_ROLLOUT_REPEATED);
    assert_ok(rp_test_expire(&t, 10));
    assert_int_equal(rp_test_fate(&t, "late"), RP_ROLLOUT_EXPIRED);
    assert_ok(abort_group("partial"));
    assert_true(t.result.releases);
    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_fails(abort_group("complete"), RP_PRECONDITION, &t.err, "'complete' is leased");
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_RELEASE, 1));
    assert_ok(abort_group("complete"));
    assert_int_equal(t.result.fate, RP_ROLLOUT_ABORTED);

    assert_int_equal(rp_test_rollout_info(&t).aborted, 2);
    assert_int_equal(rp_test_rollout_info(&t).begun, 0);
    assert_int_equal(rp_test_draw(&t, "", 1, 10), RP_DEADLINE);
    assert_int_equal(abort_group("unknown"), RP_NOT_FOUND);
}

static void full_rollouts_wait_or_evict_the_oldest(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    o.max_groups = 2;
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_ok(rp_test_put(&t, "b", 0, 0, 1));
    assert_fails(rp_test_put(&t, "c", 0, 0, 1), RP_DEADLINE, &t.err, "max_groups is 2");

    o.full = RP_ROLLOUT_FULL_EVICT;
    assert_ok(
        rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_CONFIGURE, .options = &o}));
    assert_ok(rp_test_draw(&t, "", 1, 10)); /* a */
    assert_ok(rp_test_put(&t, "c", 0, 0, 1));
    assert_int_equal(rp_test_fate(&t, "b"), RP_ROLLOUT_EVICTED);
    assert_ok(rp_test_draw(&t, "", 1, 10)); /* c: all are leased */
    assert_int_equal(rp_test_put(&t, "d", 0, 0, 1), RP_DEADLINE);
    assert_int_equal(t.result.waiting.limit, RP_ROLLOUT_BY_GROUPS);
}

static void a_group_begins_below_three_quarters_of_the_bytes(void **state)
{
    (void)state;
    const uint64_t base = 1024 + 64 + 2 * 16, item = 128 + 256 + 6 + 4; /* one int32 */
    rp_rollout_options o = rp_test_rollout_options(2);
    o.max_bytes = 4 * (base + item);
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 1));
    assert_ok(rp_test_put(&t, "b", 0, 0, 1));
    assert_ok(rp_test_put(&t, "c", 0, 0, 1));
    assert_int_equal(rp_test_rollout_info(&t).bytes, 3 * (base + item));

    assert_fails(rp_test_put(&t, "d", 0, 0, 1), RP_DEADLINE, &t.err, "0 are complete");
    assert_int_equal(t.result.waiting.limit, RP_ROLLOUT_BY_BYTES);
    assert_ok(rp_test_put(&t, "a", 1, 0, 1)); /* items of groups that have begun fit */
    assert_ok(rp_test_put(&t, "b", 1, 0, 1));
    o.max_bytes = base + item;
    assert_ok(
        rp_test_rollout(&t, (rp_rollout_op){.kind = RP_ROLLOUT_CONFIGURE, .options = &o}));
    assert_int_equal(rp_test_put(&t, "c", 1, 0, 1), RP_NO_RESOURCE); /* it can never fit */
}

static void a_group_has_at_most_the_bytes_that_can_be_drawn(void **state)
{
    (void)state;
    const uint64_t costs = 1024 + 64 + 2 * 16 + 2 * (128 + 256 + 1);
    const size_t half = RP_ROLLOUT_GROUP_BYTES / 2;
    uint8_t *data = test_calloc(half, 1);
    rp_rollout_column column = {{"x", 1}, {RP_UINT8, {.rank = 1}, data}};
    rp_rollout_op op = {
        .kind = RP_ROLLOUT_PUT, .group = {"g", 1}, .columns = &column, .column_count = 1};
    rp_rollout_options o = rp_test_rollout_options(2);
    o.max_bytes = (uint64_t)100 << 20;
    start(&o);
    column.tensor.shape.dims[0] = (int64_t)half;
    assert_ok(rp_test_rollout(&t, op));

    op.index = 1;
    column.tensor.shape.dims[0] = (int64_t)(half - costs) + 1;
    assert_fails(rp_test_rollout(&t, op), RP_INVALID, &t.err,
                 "'g' would have 62914561 bytes, the limit is 62914560");
    column.tensor.shape.dims[0]--;
    assert_ok(rp_test_rollout(&t, op));
    assert_fails(rp_test_update(&t, "g", 0, "reward", 1, false), RP_INVALID, &t.err, "limit");
    op.kind = RP_ROLLOUT_UPDATE;
    op.replace = true;
    column.tensor.shape.dims[0] -= 1000; /* smaller: there is room for others */
    assert_ok(rp_test_rollout(&t, op));
    assert_true(t.result.releases);
    assert_ok(rp_test_update(&t, "g", 0, "reward", 1, false));
    test_free(data);
}

static void a_draw_by_tokens_ends_before_the_budget(void **state)
{
    (void)state;
    rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW,
                          .groups = 8,
                          .column = {"tokens", 6},
                          .tokens = 12,
                          .ttl_ns = 10};
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 5));
    assert_ok(rp_test_put(&t, "b", 0, 0, 6));
    assert_ok(rp_test_put(&t, "c", 0, 0, 2));

    assert_ok(rp_test_rollout(&t, draw));
    assert_int_equal(t.result.batch->count, 2);
    draw.tokens = 1;
    assert_fails(rp_test_rollout(&t, draw), RP_PRECONDITION, &t.err, "has 2 rows");
    draw.column = rp_test_text("logprob");
    assert_fails(rp_test_rollout(&t, draw), RP_NOT_FOUND, &t.err, "no column 'logprob'");
    draw.column.size = 0;
    draw.min_groups = 2;
    assert_int_equal(rp_test_rollout(&t, draw), RP_DEADLINE);
    assert_int_equal(rp_test_rollout_info(&t).staleness[0], 2);
}

static void a_draw_that_waits_needs_no_memory(void **state)
{
    (void)state;
    rp_rollout_op draw = {.kind = RP_ROLLOUT_DRAW, .groups = 3, .min_groups = 3, .ttl_ns = 10};
    rp_rollout_options o = rp_test_rollout_options(1);
    o.max_groups = 4;
    start(&o);
    assert_ok(rp_test_put(&t, "a", 0, 0, 5));
    assert_ok(rp_test_put(&t, "b", 0, 0, 6));

    for (int i = 0; i < 2; i++) {
        atomic_store(&t.oom.left, 0);
        assert_fails(rp_test_rollout(&t, draw), RP_DEADLINE, &t.err, "the draw needs 3");
        assert_int_equal(t.result.waiting.have, 2);
        assert_int_equal(t.result.waiting.need, 1);
        draw.column = rp_test_text("tokens");
        draw.tokens = 5; /* "a" has as many, and the draw waits for groups all the same */
    }
    atomic_store(&t.oom.left, RP_TEST_OOM_UNLIMITED);
    assert_ok(rp_test_put(&t, "c", 0, 0, 1));
    assert_ok(rp_test_rollout(&t, draw));
    assert_int_equal(t.result.batch->count, 1);
    draw.groups = draw.min_groups = 5;
    assert_fails(rp_test_rollout(&t, draw), RP_INVALID, &t.err, "more than max_groups 4");
}

static void groups_are_drawn_in_the_order_of_the_options(void **state)
{
    (void)state;
    static const char *const expected[] = {"abc", "cba", "bca"};
    static const int64_t versions[] = {1, 9, 5};

    for (int order = RP_ROLLOUT_FIFO; order <= RP_ROLLOUT_FRESHEST; order++) {
        rp_rollout_options o = rp_test_rollout_options(1);
        o.order = (rp_rollout_order)order;
        start(&o);
        for (uint32_t i = 0; i < 3; i++)
            assert_ok(rp_test_put(&t, i == 0 ? "a" : i == 1 ? "b" : "c", 0, versions[i], 1));
        assert_ok(rp_test_draw(&t, "", 3, 10));
        for (int i = 0; i < 3; i++)
            assert_int_equal(rp_rollout_name_text(t.result.batch->groups[i].name).data[0],
                             expected[order][i]);
        if (order < RP_ROLLOUT_FRESHEST) rp_test_rollouts_deinit(&t);
    }
}

static void removed_groups_are_forgotten_one_day(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    o.max_groups = 1;
    o.full = RP_ROLLOUT_FULL_EVICT;
    start(&o);
    for (int i = 0; i < RP_ROLLOUT_REMEMBERED + 2; i++) {
        rp_rollout_result result;
        char name[16];
        rp_rollout_op op = {.kind = RP_ROLLOUT_PUT};

        (void)snprintf(name, sizeof name, "%d", i);
        op.group = rp_test_text(name);
        assert_ok(rp_rollouts_apply(t.r, &op, &result, NULL));
    }

    assert_true(rp_rollouts_check(t.r));
    assert_int_equal(rp_test_fate(&t, "0"), RP_ROLLOUT_UNKNOWN);
    assert_int_equal(rp_test_fate(&t, "1"), RP_ROLLOUT_EVICTED);
}

static void cursors_are_kept_by_name(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    rp_rollout_op op = {.kind = RP_ROLLOUT_SET_CURSOR, .data = {"epoch 3", 7}};
    char name[RP_ROLLOUT_NAME_BYTES + 1];
    rp_buf out;
    start(&o);
    rp_buf_init(&out, &t.alloc);
    for (int i = 0; i < RP_ROLLOUT_CURSORS; i++) {
        (void)snprintf(name, sizeof name, "%c", 'z' - i);
        op.cursor = rp_test_text(name);
        assert_ok(rp_test_rollout(&t, op));
    }

    op.cursor = rp_test_text("one more");
    assert_int_equal(rp_test_rollout(&t, op), RP_NO_RESOURCE);
    op.cursor = rp_test_text("z");
    op.data = (rp_bytes){"4", 1};
    assert_ok(rp_test_rollout(&t, op));
    assert_ok(rp_rollouts_read_cursor(t.r, op.cursor, &out));
    assert_int_equal(out.size, 1);
    assert_true(rp_rollouts_cursor_name(t.r, 0, name));
    assert_string_equal(name, "k");
    op.data = (rp_bytes){NULL, 0};
    assert_ok(rp_test_rollout(&t, op));
    assert_int_equal(rp_rollouts_read_cursor(t.r, op.cursor, &out), RP_NOT_FOUND);
    assert_false(rp_rollouts_cursor_name(t.r, RP_ROLLOUT_CURSORS - 1, name));
    rp_buf_deinit(&out);
}

static void consumers_change_only_without_groups(void **state)
{
    (void)state;
    const rp_rollout_consumer consumer = {{"c", 1}, NULL, 0};
    rp_rollout_options o = rp_test_rollout_options(1), other = o;
    rp_rollout_op op = {.kind = RP_ROLLOUT_CONFIGURE, .options = &other};
    start(&o);
    other.consumers = &consumer;
    other.consumer_count = 1;
    assert_ok(rp_test_put(&t, "g", 0, 0, 1));

    assert_fails(rp_test_rollout(&t, op), RP_PRECONDITION, &t.err, "consumers cannot change");
    assert_ok(rp_test_draw(&t, "", 1, 10));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_ok(rp_test_rollout(&t, op));
    assert_ok(rp_test_put(&t, "h", 0, 0, 1));
    assert_ok(rp_test_draw(&t, "c", 1, 10));
    other.first_version = 3;
    assert_int_equal(rp_test_rollout(&t, op), RP_PRECONDITION);
}

static void closed_rollouts_refuse_operations(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);

    rp_rollouts_close(t.r);

    assert_fails(rp_test_put(&t, "g", 0, 0, 1), RP_CANCELLED, &t.err, "closed");
}

/* Everything that allocates, once. */
static rp_status scenario(const rp_allocator *alloc)
{
    int32_t tokens[] = {1, 2};
    rp_rollout_column columns[] = {{{"b", 1}, {RP_INT32, {1, {2}}, tokens}},
                                   {{"a", 1}, {RP_BFLOAT16, {1, {2}}, tokens}}};
    rp_rollout_options o = rp_test_rollout_options(1);
    const rp_rollout_op ops[] = {
        {.kind = RP_ROLLOUT_RESERVE, .group = {"g", 1}, .ttl_ns = 5},
        {.kind = RP_ROLLOUT_PUT, .group = {"g", 1}, .columns = columns, .column_count = 1},
        {.kind = RP_ROLLOUT_PUT, .group = {"h", 1}, .columns = columns, .column_count = 2},
        {.kind = RP_ROLLOUT_UPDATE,
         .group = {"g", 1},
         .columns = columns + 1,
         .column_count = 1},
        {.kind = RP_ROLLOUT_DRAW, .groups = 2, .ttl_ns = 5},
        {.kind = RP_ROLLOUT_ACK, .lease = 1},
        {.kind = RP_ROLLOUT_SET_CURSOR, .cursor = {"c", 1}, .data = {"d", 1}},
        {.kind = RP_ROLLOUT_CONFIGURE, .options = &o},
    };
    rp_rollouts *r;
    uint64_t before = 0, after = 0;
    rp_status st = rp_rollouts_new(alloc, 1, rp_test_text("r"), &o, &r, NULL);

    for (size_t i = 0; st == RP_OK && i < COUNT_OF(ops); i++) {
        rp_rollout_result result;
        bool known = rp_rollouts_digest(r, &before) == RP_OK;

        st = rp_rollouts_apply(r, &ops[i], &result, NULL);
        rp_rollout_batch_free(result.batch);
        assert_true(rp_rollouts_check(r));
        if (st == RP_OK) assert_true(result.changed);
        if (known && st != RP_OK && rp_rollouts_digest(r, &after) == RP_OK)
            assert_true(before == after);
        if (!known) st = RP_NO_RESOURCE;
    }
    rp_rollouts_unref(r);
    return st;
}

static void missing_memory_is_a_status(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    start(&o);

    rp_test_survives_oom(scenario);
}

RP_TESTS(rollouts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_group_is_drawn_when_it_is_complete, end),
        cmocka_unit_test_teardown(a_repeated_put_changes_nothing, end),
        cmocka_unit_test_teardown(the_limiter_counts_reserved_and_accepted_groups, end),
        cmocka_unit_test_teardown(stale_groups_are_dropped_unless_they_are_leased, end),
        cmocka_unit_test_teardown(a_consumer_waits_for_its_columns_and_draws_a_group_once, end),
        cmocka_unit_test_teardown(an_existing_column_is_replaced_only_on_request, end),
        cmocka_unit_test_teardown(an_expired_lease_returns_its_groups, end),
        cmocka_unit_test_teardown(a_clock_that_was_ahead_does_not_stop_the_time, end),
        cmocka_unit_test_teardown(the_numbers_of_leases_grow_with_the_time, end),
        cmocka_unit_test_teardown(a_reservation_expires_unless_items_come, end),
        cmocka_unit_test_teardown(a_group_that_nobody_completes_or_draws_can_be_removed, end),
        cmocka_unit_test_teardown(full_rollouts_wait_or_evict_the_oldest, end),
        cmocka_unit_test_teardown(a_group_begins_below_three_quarters_of_the_bytes, end),
        cmocka_unit_test_teardown(a_group_has_at_most_the_bytes_that_can_be_drawn, end),
        cmocka_unit_test_teardown(a_draw_by_tokens_ends_before_the_budget, end),
        cmocka_unit_test_teardown(a_draw_that_waits_needs_no_memory, end),
        cmocka_unit_test_teardown(groups_are_drawn_in_the_order_of_the_options, end),
        cmocka_unit_test_teardown(removed_groups_are_forgotten_one_day, end),
        cmocka_unit_test_teardown(cursors_are_kept_by_name, end),
        cmocka_unit_test_teardown(consumers_change_only_without_groups, end),
        cmocka_unit_test_teardown(closed_rollouts_refuse_operations, end),
        cmocka_unit_test_teardown(missing_memory_is_a_status, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
