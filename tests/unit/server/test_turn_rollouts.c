/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on rollouts that change many groups: a turn of the loop changes some of them, and
 * a call of another connection is answered before the last. */
#include "rollouts/rollout_messages.h"
#include "rollouts/rollout_set.h"
#include "turn_fixture.h"

#define APPLY "/reprise.v1.Rollouts/ApplyRollouts"

enum {
    GROUPS = 20000,
    TURN_GROUPS = 4 * RP_ROLLOUT_STEP, /* that a turn changes, at most */
};

static rp_rollouts *rollouts;
static uint64_t removed, most_removed; /* groups: so far, and most in one turn */

static uint64_t count_removed(void)
{
    static rp_rollout_info info;

    rp_rollouts_get_info(rollouts, &info);
    return info.stale + info.expired_reservations;
}

static void watch_turn(void)
{
    uint64_t now = count_removed();

    if (now - removed > most_removed) most_removed = now - removed;
    removed = now;
}

static bool has_ended_all(stage *s)
{
    watch_turn();
    return has_ended(s);
}

static bool has_removed_all(stage *s)
{
    (void)s;
    watch_turn();
    return removed == GROUPS;
}

static bool has_removed_some(stage *s)
{
    (void)s;
    watch_turn();
    return removed > 0;
}

/* Fills rollouts by operations of a kind. */
static void start(stage *s, rp_rollout_op op)
{
    rp_rollout_options o;

    open_stage(s, NULL);
    rp_rollout_options_init(&o);
    o.max_staleness = 1;
    assert_ok(rp_rollout_set_create(rp_store_rollouts(s->bed.store), (rp_string){"r", 1}, &o,
                                    &rollouts, NULL, NULL));
    op.now_ns = 1; /* what expires is over now */
    for (int i = 0; i < GROUPS; i++) {
        rp_rollout_result result;
        char text[16];
        int size = snprintf(text, sizeof text, "%d", i);

        op.group = (rp_string){text, (size_t)size};
        assert_ok(rp_rollouts_apply(rollouts, &op, &result, NULL));
    }
    removed = most_removed = 0;
}

static void end(stage *s)
{
    rp_rollouts_unref(rollouts);
    close_stage(s);
}

/* Sends an operation. */
static rp_test_stream *apply(rp_test_client *client, int64_t timeout_ms, rp_rollout_op op)
{
    const rp_rollout_apply request = {.rollouts = {"r", 1}, .op = op, .timeout_ms = timeout_ms};
    rp_test_stream *call = rp_test_client_open(client, APPLY);
    rp_buf out;

    rp_buf_init(&out, rp_allocator_default());
    rp_rollout_apply_write(&out, &request);
    rp_test_stream_put(call, &out);
    rp_test_stream_end(call);
    rp_buf_deinit(&out);
    return call;
}

static rp_rollout_response response_of(const rp_test_stream *call)
{
    rp_rollout_response response;
    const uint8_t *data = call->in.data + 5; /* after the prefix */

    assert_int_equal(call->status, RP_OK);
    assert_int_equal(call->message_count, 1);
    assert_ok(rp_rollout_response_read(rp_allocator_default(), data, call->in.size - 5,
                                       &response, NULL));
    return response;
}

static const rp_rollout_op put = {.kind = RP_ROLLOUT_PUT};
static const rp_rollout_op advance = {.kind = RP_ROLLOUT_ADVANCE, .version = 5};

static void an_advance_takes_many_turns(void **state)
{
    rp_rollout_response response;
    rp_test_stream *call;
    stage s;

    (void)state;
    start(&s, put);
    call = apply(s.peer, 0, advance); /* its timeout does not end it */
    run_until(&s, has_removed_some);
    ask(&s);
    run_until(&s, has_ended_all);

    response = response_of(call);
    assert_int_equal(response.removed, GROUPS);
    assert_int_equal(response.outcome, RP_ROLLOUT_DONE);
    assert_int_equal(response.version, 5);
    assert_true(most_removed <= TURN_GROUPS);
    assert_int_equal(s.asked->status, RP_OK);
    assert_true(s.was_answered && s.open_when_answered > 0); /* before the advance */
    end(&s);
}

/* A put comes while the stale groups are being dropped: it waits for them, even without a
 * timeout. */
static void a_put_waits_for_the_stale_groups(void **state)
{
    rp_test_stream *call, *other;
    stage s;

    (void)state;
    start(&s, put);
    call = apply(s.peer, -1, advance);
    run_until(&s, has_removed_some);
    assert_true(removed < GROUPS);
    other = apply(s.bystander, 0,
                  (rp_rollout_op){.kind = RP_ROLLOUT_PUT,
                                  .group = {"new", 3},
                                  .first_version = 5,
                                  .last_version = 5});
    run_until(&s, has_ended_all);

    assert_int_equal(response_of(other).fate, RP_ROLLOUT_COMPLETE);
    assert_int_equal(response_of(call).removed, GROUPS);
    assert_int_equal(removed, GROUPS);
    assert_true(most_removed <= 2 * TURN_GROUPS); /* both calls drop */
    end(&s);
}

/* The version is set; the timer drops the rest. */
static void stale_groups_are_dropped_if_their_call_ends(void **state)
{
    rp_test_stream *call;
    rp_rollout_info info;
    stage s;

    (void)state;
    start(&s, put);
    call = apply(s.peer, -1, advance);
    run_until(&s, has_removed_some);
    rp_test_stream_reset(call, NGHTTP2_CANCEL);
    run_until(&s, has_removed_all);

    rp_rollouts_get_info(rollouts, &info);
    assert_int_equal(info.version, 5);
    assert_int_equal(info.groups, 0);
    assert_true(rp_rollouts_check(rollouts));
    assert_int_equal(rp_counter_get(&s.worker->metrics->rollout_waits), 0);
    end(&s);
}

static void reservations_expire_in_many_turns(void **state)
{
    rp_test_stream *call;
    stage s;

    (void)state;
    start(&s, (rp_rollout_op){.kind = RP_ROLLOUT_RESERVE, .ttl_ns = 1});
    call = apply(s.peer, 0,
                 (rp_rollout_op){.kind = RP_ROLLOUT_RESERVE, .group = {"0", 1}, .ttl_ns = 1});
    run_until(&s, has_removed_some);
    assert_true(removed < GROUPS);
    ask(&s);
    run_until(&s, has_ended_all);

    assert_int_equal(response_of(call).outcome, RP_ROLLOUT_DONE); /* the old one is over */
    assert_true(removed >= GROUPS);
    assert_true(most_removed <= 2 * TURN_GROUPS); /* the timer and the call */
    assert_true(s.was_answered && s.open_when_answered > 0);
    end(&s);
}

RP_TESTS(turn_rollouts)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_advance_takes_many_turns),
        cmocka_unit_test(a_put_waits_for_the_stale_groups),
        cmocka_unit_test(stale_groups_are_dropped_if_their_call_ends),
        cmocka_unit_test(reservations_expire_in_many_turns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
