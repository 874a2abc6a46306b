/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message.h"

#include "chunk/trajectory.h"
#include "support/fixture.h"

typedef struct bench {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_message_pool pool;
    rp_trajectory *trajectory; /* of a large chunk, not from this allocator */
    const uint8_t *wire;
    size_t wire_bytes;
} bench;

static void bench_init(bench *b, size_t room)
{
    *b = (bench){.oom = RP_TEST_OOM_INIT(room)};
    b->alloc = rp_test_oom_allocator(&b->oom);
    rp_message_pool_init(&b->pool, &b->alloc);
    b->trajectory = rp_test_blob_trajectory(rp_allocator_default(), 3, 1, 10000);
    b->wire = rp_chunk_wire(rp_trajectory_get_chunk(b->trajectory, 0), &b->wire_bytes);
}

static void bench_deinit(bench *b)
{
    rp_message_pool_deinit(&b->pool);
    assert_int_equal(b->oom.live, 0);
    assert_int_equal(atomic_load(&b->trajectory->refs.n), 1);
    rp_trajectory_unref(b->trajectory);
}

static size_t references(const bench *b)
{
    return atomic_load(&b->trajectory->refs.n);
}

/* All of the message, `limit` bytes at a time. */
static rp_buf gather(rp_message *reply, size_t limit)
{
    rp_buf all;
    const uint8_t *data;
    size_t size;

    rp_buf_init(&all, rp_allocator_default());
    while ((size = rp_message_take(reply, limit, &data)) > 0) {
        assert_true(size <= limit);
        rp_buf_append(&all, data, size);
    }
    assert_int_equal(rp_message_remaining(reply), 0);
    return all;
}

static void an_empty_message_is_its_prefix(void **state)
{
    (void)state;
    bench b;
    rp_message *reply;
    rp_buf all;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = rp_message_new(&b.pool);
    assert_true(rp_message_close(reply));
    assert_int_equal(reply->size, 5);
    all = gather(reply, 100);
    assert_int_equal(all.size, 5);
    assert_memory_equal(all.data, "\0\0\0\0\0", 5);
    rp_buf_deinit(&all);
    rp_message_release(&b.pool, reply);
    bench_deinit(&b);
}

static rp_message *mixed(bench *b)
{
    rp_message *reply = rp_message_new(&b->pool);

    rp_buf_text(&reply->bytes, "own ");
    assert_true(rp_message_add(reply, (const uint8_t *)"small", 5));
    assert_true(rp_message_hold(reply, rp_trajectory_ref(b->trajectory)));
    assert_true(rp_message_add(reply, b->wire, b->wire_bytes));
    assert_true(rp_message_add(reply, b->wire, b->wire_bytes)); /* nothing of our own between */
    rp_buf_text(&reply->bytes, " end");
    assert_true(rp_message_close(reply));
    return reply;
}

static void parts_come_in_order_for_every_read_size(void **state)
{
    (void)state;
    bench b;
    size_t limits[] = {1, 2, 3, 4, 5, 7, 4096, 9999, SIZE_MAX};

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        rp_message *reply = mixed(&b);
        size_t body = 4 + 5 + 2 * b.wire_bytes + 4;
        rp_buf all = gather(reply, limits[i]);

        assert_int_equal(all.size, 5 + body);
        assert_int_equal(all.data[0], 0);
        assert_int_equal((size_t)all.data[3] << 8 | all.data[4], body & 0xffff);
        assert_memory_equal(all.data + 5, "own small", 9);
        assert_memory_equal(all.data + 14, b.wire, b.wire_bytes);
        assert_memory_equal(all.data + 14 + b.wire_bytes, b.wire, b.wire_bytes);
        assert_memory_equal(all.data + 14 + 2 * b.wire_bytes, " end", 4);
        rp_buf_deinit(&all);
        rp_message_release(&b.pool, reply);
    }
    bench_deinit(&b);
}

static void large_pieces_are_borrowed_and_small_ones_copied(void **state)
{
    (void)state;
    bench b;
    rp_message *reply;
    const uint8_t *data;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = rp_message_new(&b.pool);
    assert_true(rp_message_add(reply, b.wire, RP_MESSAGE_COPY_BYTES - 1));
    assert_int_equal(reply->piece_count, 0);
    assert_int_equal(reply->borrowed, 0);
    assert_true(rp_message_add(reply, b.wire, RP_MESSAGE_COPY_BYTES));
    assert_int_equal(reply->piece_count, 1);
    assert_int_equal(reply->borrowed, RP_MESSAGE_COPY_BYTES);
    assert_true(rp_message_close(reply));
    assert_int_equal(rp_message_take(reply, SIZE_MAX, &data), 5 + RP_MESSAGE_COPY_BYTES - 1);
    assert_int_equal(rp_message_take(reply, SIZE_MAX, &data), RP_MESSAGE_COPY_BYTES);
    assert_ptr_equal(data, b.wire);
    assert_int_equal(rp_message_take(reply, SIZE_MAX, &data), 0);
    rp_message_release(&b.pool, reply);
    bench_deinit(&b);
}

static void held_trajectories_are_released_with_the_message(void **state)
{
    (void)state;
    bench b;
    rp_message *reply;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = rp_message_new(&b.pool);
    for (int i = 0; i < 20; i++)
        assert_true(rp_message_hold(reply, rp_trajectory_ref(b.trajectory)));
    assert_int_equal(references(&b), 21);
    rp_message_release(&b.pool, reply);
    assert_int_equal(references(&b), 1);
    rp_message_release(&b.pool, NULL);
    bench_deinit(&b);
}

static void messages_are_reused_and_cleared(void **state)
{
    (void)state;
    bench b;
    rp_message *reply, *again;
    size_t allocations;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = mixed(&b);
    rp_buf all = gather(reply, 1000);
    rp_buf_deinit(&all);
    rp_message_release(&b.pool, reply);
    allocations = b.oom.total;

    again = mixed(&b);
    assert_ptr_equal(again, reply);
    assert_int_equal(b.oom.total, allocations);
    assert_int_equal(rp_message_remaining(again), again->size);
    assert_int_equal(again->piece_count, 2);
    assert_int_equal(again->hold_count, 1);
    rp_message_release(&b.pool, again);
    bench_deinit(&b);
}

static void the_pool_keeps_no_more_than_its_share(void **state)
{
    enum { MANY = 160, EACH = 250 << 10, SHARE = 16 << 20 };
    (void)state;
    bench b;
    rp_message *replies[MANY], *large;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    for (int i = 0; i < MANY; i++) replies[i] = rp_message_new(&b.pool);
    for (int i = 0; i < MANY; i++) rp_message_release(&b.pool, replies[i]);
    assert_int_equal(b.pool.idle_count, MANY); /* small ones */
    for (int i = 0; i < MANY; i++) {
        replies[i] = rp_message_new(&b.pool);
        assert_non_null(rp_buf_reserve(&replies[i]->bytes, EACH / 2));
    }
    assert_int_equal(b.pool.idle_bytes, 0);
    for (int i = 0; i < MANY; i++) rp_message_release(&b.pool, replies[i]);
    assert_in_range(b.pool.idle_bytes, SHARE - EACH, SHARE);
    assert_true(b.pool.idle_count < MANY);
    rp_message_pool_deinit(&b.pool);
    assert_int_equal(b.pool.idle_count, 0);

    large = rp_message_new(&b.pool);
    assert_non_null(rp_buf_reserve(&large->bytes, 1 << 20));
    rp_message_release(&b.pool, large);
    assert_int_equal(b.pool.idle_count, 0); /* too much memory to keep */
    bench_deinit(&b);
}

static void a_message_over_four_gigabytes_is_refused(void **state)
{
    (void)state;
    bench b;
    rp_message *reply;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = rp_message_new(&b.pool);
    assert_true(rp_message_add(reply, b.wire, UINT32_MAX));
    assert_true(rp_message_close(reply));
    assert_int_equal(reply->size, (size_t)UINT32_MAX + 5);
    rp_message_release(&b.pool, reply);

    reply = rp_message_new(&b.pool);
    assert_true(rp_message_add(reply, b.wire, UINT32_MAX));
    rp_buf_text(&reply->bytes, "x");
    assert_false(rp_message_close(reply));
    rp_message_release(&b.pool, reply);
    bench_deinit(&b);
}

/* Builds a message with many pieces and holds in whatever memory there is. */
static bool build(bench *b)
{
    rp_message *reply = rp_message_new(&b->pool);
    bool ok = true;

    if (reply == NULL) return false;
    for (int i = 0; i < 20; i++) {
        rp_buf_format(&reply->bytes, "piece %d", i);
        ok = rp_message_add(reply, b->wire, b->wire_bytes) && ok;
        if (!rp_message_hold(reply, rp_trajectory_ref(b->trajectory))) {
            rp_trajectory_unref(b->trajectory); /* still ours */
            ok = false;
        }
    }
    assert_int_equal(rp_message_close(reply), ok && !reply->bytes.bad);
    ok = ok && !reply->bytes.bad;
    rp_message_release(&b->pool, reply);
    return ok;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t room = 0;
    bool ok = false;

    for (; !ok; room++) {
        bench b;
        bench_init(&b, room);
        ok = build(&b);
        bench_deinit(&b);
    }
    assert_true(room > 5);
}

static void count_back(void *kept)
{
    ++*(size_t *)kept;
}

static void a_kept_object_is_released_once(void **state)
{
    (void)state;
    size_t given_back = 0;
    rp_message *reply;
    bench b;

    bench_init(&b, RP_TEST_OOM_UNLIMITED);
    reply = rp_message_new(&b.pool);
    rp_reply_keep(reply, &given_back, count_back);
    assert_true(rp_message_close(reply));
    assert_int_equal(given_back, 0);
    rp_message_release(&b.pool, reply);
    assert_int_equal(given_back, 1);
    reply = rp_message_new(&b.pool); /* the same again */
    rp_message_release(&b.pool, reply);
    assert_int_equal(given_back, 1);
    bench_deinit(&b);
}

RP_TESTS(reply)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_message_is_its_prefix),
        cmocka_unit_test(parts_come_in_order_for_every_read_size),
        cmocka_unit_test(large_pieces_are_borrowed_and_small_ones_copied),
        cmocka_unit_test(held_trajectories_are_released_with_the_message),
        cmocka_unit_test(a_kept_object_is_released_once),
        cmocka_unit_test(messages_are_reused_and_cleared),
        cmocka_unit_test(the_pool_keeps_no_more_than_its_share),
        cmocka_unit_test(a_message_over_four_gigabytes_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
