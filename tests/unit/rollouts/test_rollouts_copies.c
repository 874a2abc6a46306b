/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of a put or an update are copied once, when it need not wait, and encoded for the
 * log without the lock. */
#include "support/rollout_rig.h"

enum { LARGE = 1 << 20 }; /* bytes of a column */

static rp_rollouts *r;
static rp_rollout_result result;
static rp_error err;
static size_t largest; /* block that was allocated since start() */
static uint8_t data[LARGE];

static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    const rp_allocator *alloc = rp_allocator_default();

    (void)ctx;
    if (new_size > largest) largest = new_size;
    return alloc->resize(alloc->ctx, ptr, old_size, new_size);
}

static void start(uint64_t max_groups)
{
    const rp_allocator alloc = {resize, NULL};
    rp_rollout_options o = rp_test_rollout_options(1);

    o.max_groups = max_groups;
    o.max_bytes = 3 * LARGE;
    o.max_staleness = 1;
    assert_ok_err(rp_rollouts_new(&alloc, 1, rp_test_text("r"), &o, &r, &err), &err);
}

static int end(void **state)
{
    (void)state;
    rp_rollouts_unref(r);
    r = NULL;
    return 0;
}

/* Puts or updates one column; `*copied` says whether a block was large enough for its data. */
static rp_status change(rp_rollout_op_kind kind, const char *group, const char *column,
                        bool *copied)
{
    const rp_rollout_column c = {rp_test_text(column), {RP_UINT8, {1, {LARGE}}, data}};
    const rp_rollout_op op = {
        .kind = kind, .group = rp_test_text(group), .columns = &c, .column_count = 1};
    rp_status st;

    largest = 0;
    st = rp_rollouts_apply(r, &op, &result, &err);
    *copied = largest >= LARGE;
    return st;
}

static void a_put_that_waits_copies_nothing(void **state)
{
    (void)state;
    bool copied;
    start(1);
    assert_ok(change(RP_ROLLOUT_PUT, "a", "x", &copied));
    assert_true(copied);

    assert_fails(change(RP_ROLLOUT_PUT, "b", "x", &copied), RP_DEADLINE, &err, "max_groups");
    assert_false(copied);
    assert_true(rp_rollouts_check(r));
}

static void an_update_that_waits_copies_nothing(void **state)
{
    (void)state;
    bool copied;
    start(2);
    assert_ok(change(RP_ROLLOUT_PUT, "a", "x", &copied));
    assert_ok(change(RP_ROLLOUT_PUT, "b", "x", &copied));

    assert_fails(change(RP_ROLLOUT_UPDATE, "a", "y", &copied), RP_DEADLINE, &err, "bytes");
    assert_false(copied);
    assert_true(rp_rollouts_check(r));
}

static void what_changes_nothing_copies_nothing(void **state)
{
    (void)state;
    const rp_rollout_op advance = {.kind = RP_ROLLOUT_ADVANCE, .version = 2};
    bool copied;
    start(2);
    assert_ok(change(RP_ROLLOUT_PUT, "a", "x", &copied));

    assert_ok(change(RP_ROLLOUT_PUT, "a", "x", &copied));
    assert_int_equal(result.outcome, RP_ROLLOUT_REPEATED);
    assert_false(copied);
    data[7] = 1;
    assert_int_equal(change(RP_ROLLOUT_PUT, "a", "x", &copied), RP_EXISTS);
    assert_false(copied);
    data[7] = 0;
    assert_ok(rp_rollouts_apply(r, &advance, &result, &err));
    assert_ok(change(RP_ROLLOUT_PUT, "a", "x", &copied));
    assert_int_equal(result.outcome, RP_ROLLOUT_GONE);
    assert_false(copied);
    assert_ok(change(RP_ROLLOUT_PUT, "b", "x", &copied)); /* too stale */
    assert_int_equal(result.outcome, RP_ROLLOUT_GONE);
    assert_false(copied);
}

static rp_buf logged;
static size_t ready; /* records that were encoded before */

static uint64_t on_changed(rp_rollout_log *log, const rp_rollouts *rollouts,
                           const rp_rollout_op *op, const rp_buf *encoded)
{
    (void)log, (void)rollouts;
    ready += encoded != NULL;
    if (encoded != NULL)
        rp_buf_append(&logged, encoded->data, encoded->size);
    else
        rp_rollout_op_write(&logged, op);
    return 1;
}

static void a_put_is_encoded_before_it_is_logged(void **state)
{
    (void)state;
    rp_rollout_log log = {.changed = on_changed};
    const rp_rollout_column c = {{"x", 1}, {RP_UINT8, {1, {3}}, "abc"}};
    const rp_rollout_op ops[] = {
        {.kind = RP_ROLLOUT_PUT, .group = {"g", 1}, .columns = &c, .column_count = 1},
        {.kind = RP_ROLLOUT_ADVANCE, .version = 1},
    };
    rp_buf expected;
    start(2);
    rp_rollouts_set_log(r, &log);
    rp_buf_init(&expected, rp_allocator_default());
    rp_buf_init(&logged, rp_allocator_default());
    ready = 0;

    for (size_t i = 0; i < COUNT_OF(ops); i++) {
        assert_ok(rp_rollouts_apply(r, &ops[i], &result, &err));
        rp_rollout_op_write(&expected, &ops[i]);
    }
    assert_int_equal(ready, 1);
    assert_int_equal(logged.size, expected.size);
    assert_memory_equal(logged.data, expected.data, expected.size);
    rp_buf_deinit(&expected);
    rp_buf_deinit(&logged);
    rp_rollouts_set_log(r, NULL);
}

RP_TESTS(rollouts_copies)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_put_that_waits_copies_nothing, end),
        cmocka_unit_test_teardown(an_update_that_waits_copies_nothing, end),
        cmocka_unit_test_teardown(what_changes_nothing_copies_nothing, end),
        cmocka_unit_test_teardown(a_put_is_encoded_before_it_is_logged, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
