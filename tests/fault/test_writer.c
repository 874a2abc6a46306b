/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a writer's life fails once, and in turn. A call that fails has changed
 * nothing: it is made again, and in the end all items read back as if nothing had happened. */
#include "support/writing.h"

/* Writes two episodes with items in two tables, without a second try. */
static rp_status write_once(const rp_allocator *alloc, int32_t chunk_length)
{
    rp_store_options store_options = {.alloc = alloc, .seed = 5};
    rp_table_options a = rp_test_open_table("a"), b = rp_test_open_table("b");
    rp_writer_options options = rp_test_writing(6, chunk_length);
    rp_test_rig r = {0};
    rp_status st = rp_store_new(&store_options, &r.store, NULL);

    if (st == RP_OK) st = rp_store_add_table(r.store, &a, &r.a, NULL);
    if (st == RP_OK) st = rp_store_add_table(r.store, &b, &r.b, NULL);
    if (st == RP_OK) st = rp_writer_new(r.store, &options, &r.writer, NULL);
    for (int s = 0; st == RP_OK && s < 20; s++) {
        st = rp_test_try_append(&r);
        if (st == RP_OK && s % 10 >= 2)
            st = rp_writer_create_latest(r.writer, s % 2 == 0 ? "a" : "b", 1, 3, rp_wait_none(),
                                         NULL, NULL);
        if (st == RP_OK && s % 10 == 9)
            st = rp_writer_end_episode(r.writer, rp_wait_none(), NULL);
    }
    rp_writer_free(r.writer);
    rp_store_free(r.store);
    return st;
}

static rp_status write_short_chunks(const rp_allocator *alloc)
{
    return write_once(alloc, 1);
}

static rp_status write_long_chunks(const rp_allocator *alloc)
{
    return write_once(alloc, 4);
}

static rp_status write_tuned_chunks(const rp_allocator *alloc)
{
    return write_once(alloc, 0);
}

static void writer_leaves_nothing_behind_when_memory_runs_out(void **state)
{
    (void)state;
    rp_test_survives_oom(write_short_chunks);
    rp_test_survives_oom(write_long_chunks);
    rp_test_survives_oom(write_tuned_chunks);
}

/* Makes the allocation after the next `room` ones fail for as long as this call is made, then
 * makes the call again with all the memory it wants. */
#define PERSIST(r, room, call)                                                                 \
    do {                                                                                       \
        rp_status st_;                                                                         \
        (r)->oom.left = (room);                                                                \
        st_ = (call);                                                                          \
        (r)->oom.left = RP_TEST_OOM_UNLIMITED;                                                 \
        if (st_ != RP_OK) {                                                                    \
            assert_int_equal(st_, RP_NO_RESOURCE);                                             \
            failures++;                                                                        \
            assert_ok_err((call), &(r)->err);                                                  \
        }                                                                                      \
    } while (0)

/* No chunk of an item may have more rows than a chunk should. */
static void expect_lengths(rp_test_rig *r, uint64_t key, int32_t chunk_length)
{
    rp_trajectory *t = rp_test_peek(r, r->a, key);

    for (size_t i = 0; i < rp_trajectory_chunk_count(t); i++) {
        const rp_chunk *chunk = rp_trajectory_get_chunk(t, i);
        assert_true(rp_chunk_get_column(chunk, 0)->shape.dims[0] <= chunk_length);
    }
    rp_trajectory_unref(t);
}

/* A life in which each call first meets a shortage after `room` allocations. */
static size_t write_persistently(int32_t chunk_length, size_t room)
{
    enum { STEPS = 30 };
    rp_writer_options options = rp_test_writing(7, chunk_length);
    uint64_t keys[STEPS] = {0};
    size_t failures = 0;
    rp_test_rig r;

    rp_test_rig_init(&r, &options);
    for (int s = 0; s < STEPS; s++) {
        int64_t before = rp_writer_steps(r.writer);
        PERSIST(&r, room, rp_test_try_append(&r));
        assert_int_equal(rp_writer_steps(r.writer), before + 1);
        if (s >= 4)
            PERSIST(&r, room,
                    rp_test_try_item(&r, "a", s, 3, s % 3 == 0 ? -2 : -1, rp_wait_none(),
                                     &keys[s]));
        if (s % 11 == 10) PERSIST(&r, room, rp_writer_flush(r.writer, rp_wait_none(), &r.err));
    }
    PERSIST(&r, room, rp_writer_flush(r.writer, rp_wait_none(), &r.err));

    assert_int_equal(rp_writer_pending(r.writer), 0);
    assert_int_equal(rp_test_info(r.a).size, STEPS - 4);
    for (int s = 4; s < STEPS; s++) {
        rp_test_expect_item(&r, r.a, keys[s], s, 3, s % 3 == 0 ? -2 : -1);
        if (chunk_length > 0) expect_lengths(&r, keys[s], chunk_length);
    }
    rp_test_rig_deinit(&r);
    return failures;
}

static void calls_that_ran_out_of_memory_can_be_made_again(void **state)
{
    (void)state;
    for (int32_t length = 0; length <= 7; length++) {
        size_t room = 0, failures;
        do failures = write_persistently(length, room++);
        while (failures > 0);
        assert_true(room > 3); /* some calls allocate several times */
    }
}

RP_TESTS(writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writer_leaves_nothing_behind_when_memory_runs_out),
        cmocka_unit_test(calls_that_ran_out_of_memory_can_be_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
