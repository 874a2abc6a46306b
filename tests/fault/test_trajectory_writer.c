/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations of a trajectory writer's life fail, on the caller's thread and in the background.
 * A call that fails has changed nothing: it is made again, and in the end all items are there
 * and read back as if nothing had happened. */
#include "support/client_rig.h"

static rp_status try_append(rp_test_client_rig *r)
{
    int64_t s = rp_trajectory_writer_steps(r->writer);
    int32_t o[] = {(int32_t)(100 * s), (int32_t)(100 * s + 1), (int32_t)(100 * s + 2)};
    double a = (double)s + 0.5;
    rp_value values[] = {{0, "obs", {RP_INT32, SHAPE(3), o}},
                         {9, "action", {RP_FLOAT64, SCALAR, &a}}};

    return rp_trajectory_writer_append(r->writer, values, 2, 0, NULL, &r->err);
}

/* An item of the latest three steps, backwards. */
static rp_status try_item(rp_test_client_rig *r, uint64_t *key)
{
    rp_ref refs[2][3];
    rp_item_column columns[] = {{.refs = refs[0], .count = 3}, {.refs = refs[1], .count = 3}};

    for (int k = 0; k < 3; k++) {
        assert_true(rp_trajectory_writer_find(r->writer, 0, -1 - k, &refs[0][k]));
        assert_true(rp_trajectory_writer_find(r->writer, 9, -1 - k, &refs[1][k]));
    }
    return rp_trajectory_writer_create_item(r->writer, &(rp_new_item){"a", 1, columns, 2},
                                            rp_wait_ms(20000), key, &r->err);
}

static rp_status flush(rp_test_client_rig *r)
{
    return rp_trajectory_writer_flush(r->writer, 0, rp_wait_ms(20000), &r->err);
}

/* Makes the allocation after the next `room` ones fail for as long as this call is made, then
 * makes the call again with all the memory it wants. */
#define PERSIST(r, room, call)                                                                 \
    do {                                                                                       \
        rp_status st_;                                                                         \
        (r)->in.oom.left = (room);                                                             \
        st_ = (call);                                                                          \
        (r)->in.oom.left = RP_TEST_OOM_UNLIMITED;                                              \
        if (st_ != RP_OK) {                                                                    \
            assert_int_equal(st_, RP_NO_RESOURCE);                                             \
            failures++;                                                                        \
            assert_ok_err((call), &(r)->err);                                                  \
        }                                                                                      \
    } while (0)

/* A life in which each call first meets a shortage after `room` allocations. The sink is the
 * test's: a store that lacks memory refuses for good. */
static size_t write_persistently(int32_t chunk_length, rp_codec codec, size_t room)
{
    enum { STEPS = 24 };
    rp_trajectory_writer_options o = {
        .column = {.history = 7, .chunk_length = chunk_length, .chunk = {.codec = codec}}};
    uint64_t keys[STEPS] = {0};
    size_t failures = 0;
    rp_test_client_rig r;

    rp_test_client_open_store(&r);
    rp_test_client_open_writer(&r, &o, false);
    r.sink->automatic = true;
    for (int s = 0; s < STEPS; s++) {
        PERSIST(&r, room, try_append(&r));
        assert_int_equal(rp_trajectory_writer_steps(r.writer), s + 1);
        if (s >= 2) PERSIST(&r, room, try_item(&r, &keys[s]));
        if (s % 11 == 10) PERSIST(&r, room, flush(&r));
    }
    PERSIST(&r, room, flush(&r));

    assert_int_equal(rp_trajectory_writer_pending(r.writer), 0);
    assert_int_equal(r.sink->count, STEPS - 2);
    for (int s = 2; s < STEPS; s++) {
        const rp_trajectory *t = r.sink->items[s - 2].trajectory;
        assert_true(r.sink->items[s - 2].key == keys[s]);
        rp_test_expect_obs(&r.in, t, 0, s, 3, -1);
        rp_test_expect_actions(&r.in, t, 1, s, 3, -1);
    }
    rp_test_client_deinit(&r);
    return failures;
}

static void calls_that_ran_out_of_memory_can_be_made_again(void **state)
{
    rp_runtime *runtime = NULL;
    (void)state;
    assert_ok(rp_runtime_get(&runtime, NULL));
    for (int32_t length = 0; length <= 5; length++) {
        for (rp_codec codec = RP_CODEC_SNAPPY; codec <= RP_CODEC_NONE; codec++) {
            size_t room = 0, failures;
            do failures = write_persistently(length, codec, room++);
            while (failures > 0 && room < 100);
            assert_true(room > 3 && room < 100);
        }
    }
    rp_runtime_put(runtime);
}

/* One life without second tries; whatever fails, nothing may be left. */
static void nothing_is_left_when_memory_runs_out_for_good(void **state)
{
    rp_runtime *runtime = NULL;
    bool done = false;
    (void)state;
    assert_ok(rp_runtime_get(&runtime, NULL));
    for (size_t room = 0; !done; room++) {
        rp_test_client_rig r;
        rp_status st = RP_OK;
        rp_test_client_init(&r, 6, 2, true);
        r.in.oom.left = room;
        for (int s = 0; st == RP_OK && s < 12; s++) {
            st = try_append(&r);
            if (st == RP_OK && s >= 2) st = try_item(&r, NULL);
        }
        if (st == RP_OK)
            st = rp_trajectory_writer_end_episode(r.writer, true, rp_wait_ms(20000), &r.err);
        assert_true(st == RP_OK || st == RP_NO_RESOURCE);
        done = st == RP_OK;
        assert_true(room < 5000);
        r.in.oom.left = RP_TEST_OOM_UNLIMITED;
        rp_test_client_deinit(&r);
    }
    rp_runtime_put(runtime);
}

RP_TESTS(trajectory_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_that_ran_out_of_memory_can_be_made_again),
        cmocka_unit_test(nothing_is_left_when_memory_runs_out_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
