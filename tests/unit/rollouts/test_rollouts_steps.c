/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that change many groups do it in steps: others work in between, and a log of the
 * steps gives the same state. */
#include "support/rollout_rig.h"

enum { MANY = 5 * RP_ROLLOUT_STEP + 7 };

static rp_test_rollouts t;

static int end(void **state)
{
    (void)state;
    rp_test_rollouts_deinit(&t);
    return 0;
}

static rp_string name_of(int number, char text[16])
{
    int size = snprintf(text, 16, "g%d", number);

    return (rp_string){text, (size_t)size};
}

static void put_groups(int first, int count, int64_t version)
{
    for (int i = first; i < first + count; i++) {
        rp_rollout_result result;
        char text[16];
        const rp_rollout_op op = {.kind = RP_ROLLOUT_PUT,
                                  .group = name_of(i, text),
                                  .first_version = version,
                                  .last_version = version};

        assert_ok(rp_rollouts_apply(t.r, &op, &result, NULL));
    }
}

static void start(int groups)
{
    rp_rollout_options o = rp_test_rollout_options(1);

    o.max_staleness = 1;
    rp_test_rollouts_init(&t, &o);
    put_groups(0, groups, 0);
}

static rp_status step(rp_rollout_op op, rp_rollout_result *result)
{
    return rp_rollouts_apply_step(t.r, &op, result, &t.err);
}

static const rp_rollout_op advance = {.kind = RP_ROLLOUT_ADVANCE, .version = 2};

static void an_advance_drops_a_part_under_one_lock(void **state)
{
    (void)state;
    rp_rollout_result result;
    start(MANY);

    assert_ok(step(advance, &result));
    assert_int_equal(result.stale, RP_ROLLOUT_STEP);
    assert_true(result.goes_on);
    assert_int_equal(rp_test_rollout_info(&t).groups, MANY - RP_ROLLOUT_STEP);
    assert_int_equal(rp_test_rollout_info(&t).version, 2);
    assert_int_equal(rp_rollouts_next_expiry(t.r), 0);
    assert_true(rp_rollouts_check(t.r));
}

static void what_sees_stale_groups_waits_for_them(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    const rp_rollout_op ops[] = {
        {.kind = RP_ROLLOUT_RESERVE, .group = {"new", 3}, .ttl_ns = 5},
        {.kind = RP_ROLLOUT_ABORT, .group = {"g5000", 5}},
        {.kind = RP_ROLLOUT_PUT, .group = {"g5000", 5}},
        {.kind = RP_ROLLOUT_DRAW, .groups = 1, .ttl_ns = 5},
        {.kind = RP_ROLLOUT_CONFIGURE, .options = &o},
    };
    rp_rollout_result result;
    rp_rollout_fate fate;
    rp_rollout_batch *batch;
    start(MANY);
    assert_ok(step(advance, &result));

    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        assert_int_equal(step(ops[i], &result), RP_DEADLINE);
        assert_true(result.goes_on && !result.changed);
    }
    assert_ok(rp_rollouts_peek(t.r, rp_test_text("g5000"), &fate, &batch));
    assert_int_equal(fate, RP_ROLLOUT_STALE);
    assert_null(batch);
    assert_fails(rp_test_draw(&t, "", 1, 5), RP_DEADLINE, &t.err, "0 groups are ready");
    assert_int_equal(rp_test_rollout_info(&t).stale, MANY);
}

static void leases_and_cursors_change_between_the_steps(void **state)
{
    (void)state;
    rp_rollout_result result;
    start(MANY);
    assert_ok(rp_test_draw(&t, "", 3, 100));
    assert_ok(rp_test_draw(&t, "", 3, 100));
    assert_ok(step(advance, &result));

    assert_ok(rp_test_lease(&t, RP_ROLLOUT_RENEW, 1));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_RELEASE, 2)); /* its groups are stale */
    assert_int_equal(t.result.stale, 3);
    assert_false(t.result.goes_on);
    assert_ok(rp_test_rollout(
        &t,
        (rp_rollout_op){.kind = RP_ROLLOUT_SET_CURSOR, .cursor = {"c", 1}, .data = {"x", 1}}));
    assert_int_equal(rp_test_rollout_info(&t).groups, MANY - 6 - RP_ROLLOUT_STEP);
}

static void an_advance_in_turns_ends_when_all_are_gone(void **state)
{
    (void)state;
    rp_rollout_result result = {0};
    rp_status st;
    int turns = 0;
    start(MANY);
    put_groups(MANY, 5, 1);

    do {
        uint64_t before = result.stale;

        st = rp_rollouts_apply_once(t.r, &advance, &result, &t.err);
        assert_true(result.stale - before <= RP_ROLLOUT_STEPS * RP_ROLLOUT_STEP);
        assert_true(result.has_effect);
        assert_true(rp_rollouts_check(t.r));
        turns++;
    } while (st == RP_DEADLINE && result.goes_on);
    assert_ok_err(st, &t.err);
    assert_int_equal(turns, (MANY + RP_ROLLOUT_STEPS * RP_ROLLOUT_STEP - 1) /
                                (RP_ROLLOUT_STEPS * RP_ROLLOUT_STEP));
    assert_int_equal(result.outcome, RP_ROLLOUT_DONE);
    assert_int_equal(result.stale, MANY);
    assert_int_equal(rp_test_rollout_info(&t).groups, 5);
    assert_ok(rp_rollouts_apply(t.r, &advance, &result, &t.err));
    assert_int_equal(result.outcome, RP_ROLLOUT_REPEATED);
}

static void a_put_in_turns_drops_what_an_advance_has_left(void **state)
{
    (void)state;
    const rp_rollout_op put = {
        .kind = RP_ROLLOUT_PUT, .group = {"new", 3}, .first_version = 2, .last_version = 2};
    rp_rollout_result result;
    start(MANY);
    assert_ok(step(advance, &result));

    result = (rp_rollout_result){0};
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(rp_rollouts_apply_once(t.r, &put, &result, &t.err), RP_DEADLINE);
        assert_true(result.goes_on && !result.has_effect);
    }
    assert_ok(rp_rollouts_apply_once(t.r, &put, &result, &t.err));
    assert_int_equal(result.stale, 0); /* it has not made them stale */
    assert_int_equal(rp_test_rollout_info(&t).groups, 1);
}

static void other_options_drop_in_steps(void **state)
{
    (void)state;
    rp_rollout_options o = rp_test_rollout_options(1);
    const rp_rollout_op op = {.kind = RP_ROLLOUT_CONFIGURE, .options = &o};
    rp_rollout_result result;
    rp_test_rollouts_init(&t, &o);
    put_groups(0, MANY, 0);
    assert_ok(rp_rollouts_apply(t.r, &advance, &result, &t.err));
    assert_int_equal(result.stale, 0);

    o.max_staleness = 1;
    assert_ok(step(op, &result));
    assert_int_equal(result.stale, RP_ROLLOUT_STEP);
    assert_true(result.goes_on);
    assert_ok(rp_test_rollout(&t, op));
    assert_int_equal(rp_test_rollout_info(&t).stale, MANY);
}

static void reservations_expire_in_steps(void **state)
{
    (void)state;
    enum { COUNT = 2 * RP_ROLLOUT_STEP + 9 };
    start(0);
    for (int i = 0; i < COUNT; i++) {
        char text[16];

        assert_ok(step((rp_rollout_op){.kind = RP_ROLLOUT_RESERVE,
                                       .group = name_of(i, text),
                                       .ttl_ns = 10},
                       &t.result));
    }

    assert_int_equal(rp_rollouts_expire(t.r, 9), 0);
    assert_int_equal(rp_rollouts_expire(t.r, 10), RP_ROLLOUT_STEP);
    assert_int_equal(rp_rollouts_next_expiry(t.r), 10);
    assert_int_equal(rp_rollouts_expire(t.r, 10), RP_ROLLOUT_STEP);
    assert_int_equal(rp_rollouts_expire(t.r, 10), 9);
    assert_int_equal(rp_rollouts_expire(t.r, 10), 0);
    assert_int_equal(rp_test_rollout_info(&t).expired_reservations, COUNT);
}

static void the_groups_of_leases_count_when_they_expire(void **state)
{
    (void)state;
    enum { EACH = RP_ROLLOUT_STEP / 2 + 1 };
    start(5 * EACH);
    for (int i = 0; i < 5; i++) assert_ok(rp_test_draw(&t, "", EACH, 10));

    assert_int_equal(rp_rollouts_expire(t.r, 10), 2 * (EACH + 1));
    assert_int_equal(rp_rollouts_expire(t.r, 10), 2 * (EACH + 1));
    assert_int_equal(rp_rollouts_expire(t.r, 10), EACH + 1);
    assert_int_equal(rp_test_rollout_info(&t).expired_leases, 5);
}

/* Keeps the operations, as a journal does. */
typedef struct journal {
    rp_rollout_log log; /* first */
    rp_buf records[64];
    size_t count;
} journal;

static uint64_t on_changed(rp_rollout_log *log, const rp_rollouts *r, const rp_rollout_op *op,
                           const rp_buf *encoded)
{
    journal *j = (journal *)(void *)log;

    (void)r, (void)encoded;
    assert_true(j->count < COUNT_OF(j->records));
    rp_buf_init(&j->records[j->count], rp_allocator_default());
    rp_rollout_op_write(&j->records[j->count], op);
    return ++j->count;
}

/* Redoes the operations, and frees them. */
static void redo(journal *j, rp_rollouts *copy)
{
    for (size_t i = 0; i < j->count; i++) {
        rp_rollout_result result;
        rp_rollout_op op;

        assert_ok(
            rp_rollout_op_read(&t.alloc, j->records[i].data, j->records[i].size, &op, &t.err));
        assert_ok(rp_rollouts_apply_step(copy, &op, &result, NULL));
        assert_true(result.changed);
        rp_rollout_batch_free(result.batch);
        rp_rollout_op_deinit(&op, &t.alloc);
        rp_buf_deinit(&j->records[i]);
    }
}

/* Loads an image of the rollouts. */
static rp_rollouts *load_copy(void)
{
    rp_rollout_loader *loader = rp_rollout_loader_new(&t.alloc, 5);
    rp_rollout_cut *cut;
    rp_rollouts *copy;
    rp_buf buf;

    assert_non_null(loader);
    assert_ok(rp_rollouts_cut(t.r, &cut, NULL));
    rp_buf_init(&buf, &t.alloc);
    while (rp_rollout_cut_next(cut, &buf)) {
        assert_ok_err(rp_rollout_loader_add(loader, buf.data, buf.size, &t.err), &t.err);
        rp_buf_clear(&buf);
    }
    assert_ok(rp_rollout_loader_finish(loader, &copy, &t.err));
    rp_buf_deinit(&buf);
    rp_rollout_cut_free(cut);
    rp_rollout_loader_free(loader);
    return copy;
}

static void steps_from_a_log_give_the_same_state(void **state)
{
    (void)state;
    journal j = {.log = {.changed = on_changed}};
    rp_rollouts *copy;
    rp_rollout_result result;
    uint64_t first, second;
    start(MANY);
    assert_ok(rp_test_draw(&t, "", 3, 100));
    assert_ok(step(advance, &result));
    copy = load_copy(); /* between two steps */
    rp_rollouts_set_log(t.r, &j.log);

    assert_true(rp_rollouts_expire(t.r, 1) > 0);
    assert_ok(rp_test_lease(&t, RP_ROLLOUT_ACK, 1));
    put_groups(MANY, 3, 2);
    assert_ok(rp_test_advance(&t, 4));

    rp_rollouts_set_log(t.r, NULL);
    assert_true(j.count > 5);
    redo(&j, copy);
    assert_int_equal(rp_test_rollout_info(&t).stale, MANY);
    assert_ok(rp_rollouts_digest(t.r, &first));
    assert_ok(rp_rollouts_digest(copy, &second));
    assert_true(first == second);
    assert_true(rp_rollouts_check(copy));
    rp_rollouts_unref(copy);
}

RP_TESTS(rollouts_steps)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(an_advance_drops_a_part_under_one_lock, end),
        cmocka_unit_test_teardown(what_sees_stale_groups_waits_for_them, end),
        cmocka_unit_test_teardown(leases_and_cursors_change_between_the_steps, end),
        cmocka_unit_test_teardown(an_advance_in_turns_ends_when_all_are_gone, end),
        cmocka_unit_test_teardown(a_put_in_turns_drops_what_an_advance_has_left, end),
        cmocka_unit_test_teardown(other_options_drop_in_steps, end),
        cmocka_unit_test_teardown(reservations_expire_in_steps, end),
        cmocka_unit_test_teardown(the_groups_of_leases_count_when_they_expire, end),
        cmocka_unit_test_teardown(steps_from_a_log_give_the_same_state, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
