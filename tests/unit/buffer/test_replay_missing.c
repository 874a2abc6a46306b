/* SPDX-License-Identifier: Apache-2.0 */
/* What a caller of a replay buffer may forget is an error with a text, not a crash. */
#include "reprise/replay_buffer.h"
#include "support/unit.h"

static void missing_arguments_are_named(void **state)
{
    const rp_replay_column one = {"x", 4, 0};
    rp_replay_options o = {.capacity = 4, .column_count = 1, .alpha = 1};
    const float value = 1;
    const void *const good[] = {&value}, *const bad[] = {NULL};
    const int64_t index = 0;
    const double priority = 1;
    rp_replay_buffer *b = NULL;
    rp_error err;

    (void)state;
    assert_fails(rp_replay_buffer_new(NULL, NULL, &b, &err), RP_INVALID, &err, "no options");
    assert_fails(rp_replay_buffer_new(NULL, &o, &b, &err), RP_INVALID, &err, "no columns");
    o.columns = &one;
    assert_ok_err(rp_replay_buffer_new(NULL, &o, &b, &err), &err);

    assert_fails(rp_replay_buffer_add(b, NULL, 1, NULL, &err), RP_INVALID, &err, "no columns");
    assert_fails(rp_replay_buffer_add(b, bad, 1, NULL, &err), RP_INVALID, &err,
                 "column 0 ('x') is NULL");
    assert_fails(rp_replay_buffer_put_back(b, bad, 1, &priority, &err), RP_INVALID, &err,
                 "column 0 ('x') is NULL");
    assert_fails(rp_replay_buffer_put_back(b, good, 1, NULL, &err), RP_INVALID, &err,
                 "no weights");
    assert_int_equal(rp_replay_buffer_added(b), 0);
    assert_ok_err(rp_replay_buffer_add(b, NULL, 0, NULL, &err), &err);
    assert_ok_err(rp_replay_buffer_add(b, good, 1, NULL, &err), &err);

    assert_fails(rp_replay_buffer_sample(b, 1, 0, NULL, &err), RP_INVALID, &err, "no output");
    assert_fails(rp_replay_buffer_read(b, 0, 1, NULL, NULL, &err), RP_INVALID, &err,
                 "no columns");
    assert_fails(rp_replay_buffer_update(b, NULL, &priority, 1, NULL, &err), RP_INVALID, &err,
                 "no indices");
    assert_fails(rp_replay_buffer_update(b, &index, NULL, 1, NULL, &err), RP_INVALID, &err,
                 "no priorities");
    assert_fails(rp_replay_buffer_set_state(b, NULL, &err), RP_INVALID, &err, "no state");
    assert_int_equal(rp_replay_buffer_size(b), 1);
    rp_replay_buffer_free(b);
}

RP_TESTS(replay_missing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
