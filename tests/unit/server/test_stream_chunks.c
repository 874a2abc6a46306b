/* SPDX-License-Identifier: Apache-2.0 */
#include "server/rpc/stream_chunks.h"

#include "chunk/chunk.h"
#include "support/fixture.h"
#include "util/rng.h"

typedef struct room {
    rp_test_oom oom;
    rp_allocator alloc;
    rp_stream_chunks chunks;
} room;

static void room_init(room *r, size_t allocations)
{
    *r = (room){.oom = RP_TEST_OOM_INIT(allocations)};
    r->alloc = rp_test_oom_allocator(&r->oom);
    rp_stream_chunks_init(&r->chunks, &r->alloc, 11);
}

static void room_deinit(room *r)
{
    rp_stream_chunks_deinit(&r->chunks);
    assert_int_equal(r->oom.live, 0);
}

static rp_chunk *make(uint64_t key, size_t bytes)
{
    rp_chunk *chunk = rp_test_try_blob(rp_allocator_default(), key, 1, bytes);

    assert_non_null(chunk);
    return chunk;
}

static void add(room *r, uint64_t key, size_t bytes)
{
    assert_ok(rp_stream_chunks_add(&r->chunks, make(key, bytes)));
}

static bool has(room *r, uint64_t key)
{
    rp_chunk *chunk = rp_stream_chunks_find(&r->chunks, key, false);

    assert_true(chunk == NULL || chunk->origin.key == key);
    return chunk != NULL;
}

static void chunks_are_found_by_their_keys(void **state)
{
    (void)state;
    room r;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    assert_false(has(&r, 0));
    for (uint64_t key = 0; key < 500; key++) add(&r, key * key, 8);
    for (uint64_t key = 0; key < 500; key++) assert_true(has(&r, key * key));
    assert_false(has(&r, 2));
    assert_false(has(&r, UINT64_MAX));
    room_deinit(&r);
}

static void chunks_without_items_are_counted(void **state)
{
    (void)state;
    room r;
    size_t both, one;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    assert_int_equal(r.chunks.unused_bytes, 0);
    add(&r, 1, 10000);
    one = r.chunks.unused_bytes;
    assert_true(one >= 10000 && one < 11000);
    add(&r, 2, 100); /* small ones cost more than their bytes */
    both = r.chunks.unused_bytes;
    assert_true(both - one > 100);

    (void)rp_stream_chunks_find(&r.chunks, 1, false); /* looking is not using */
    assert_int_equal(r.chunks.unused_bytes, both);
    rp_chunk *used = rp_stream_chunks_find(&r.chunks, 1, true);
    assert_int_equal(r.chunks.unused_bytes, both - one);
    assert_ptr_equal(rp_stream_chunks_find(&r.chunks, 1, true), used); /* once */
    assert_int_equal(r.chunks.unused_bytes, both - one);
    (void)rp_stream_chunks_find(&r.chunks, 2, true);
    assert_int_equal(r.chunks.unused_bytes, 0);
    room_deinit(&r);
}

static void a_chunk_whose_items_are_gone_counts_again(void **state)
{
    (void)state;
    room r;
    rp_chunk *chunk;
    size_t bytes;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    add(&r, 1, 10000);
    bytes = r.chunks.unused_bytes;
    chunk = rp_chunk_ref(rp_stream_chunks_find(&r.chunks, 1, true)); /* as an item does */
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1}, 1));
    assert_int_equal(r.chunks.unused_bytes, 0);
    rp_chunk_unref(chunk);
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1}, 1));
    assert_int_equal(r.chunks.unused_bytes, bytes);
    (void)rp_stream_chunks_find(&r.chunks, 1, true);
    assert_int_equal(r.chunks.unused_bytes, 0);
    assert_true(rp_stream_chunks_keep(&r.chunks, NULL, 0));
    assert_int_equal(r.chunks.unused_bytes, 0);
    room_deinit(&r);
}

static void only_kept_chunks_stay(void **state)
{
    (void)state;
    room r;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    for (uint64_t key = 1; key <= 10; key++) add(&r, key, 10 * key);
    (void)rp_stream_chunks_find(&r.chunks, 4, true);
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){9, 4, 1}, 3));
    assert_int_equal(r.chunks.count, 3);
    for (uint64_t key = 1; key <= 10; key++)
        assert_int_equal(has(&r, key), key == 1 || key == 4 || key == 9);
    add(&r, 5, 10);
    assert_true(has(&r, 5));
    assert_true(rp_stream_chunks_keep(&r.chunks, NULL, 0));
    assert_int_equal(r.chunks.count, 0);
    assert_int_equal(r.chunks.unused_bytes, 0);
    assert_false(has(&r, 5));
    room_deinit(&r);
}

static void unknown_and_repeated_keys_are_reported(void **state)
{
    (void)state;
    room r;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    for (uint64_t key = 1; key <= 4; key++) add(&r, key, 10);
    assert_false(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1, 7, 3}, 3));
    assert_true(has(&r, 1) && has(&r, 3) && !has(&r, 2)); /* done all the same */
    assert_false(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1, 1}, 2));
    assert_true(has(&r, 1) && !has(&r, 3));
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1}, 1));
    room_deinit(&r);
}

static void memory_for_many_chunks_is_freed_with_them(void **state)
{
    enum { CHUNKS = 5000, LEFT = 16 << 10 };
    (void)state;
    room r;

    for (size_t kept = 0; kept <= 2; kept++) {
        room_init(&r, RP_TEST_OOM_UNLIMITED);
        for (uint64_t key = 1; key <= CHUNKS; key++) add(&r, key, 1);
        assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){7, 4999}, kept));
        rp_stream_chunks_settle(&r.chunks);
        assert_int_equal(r.chunks.count, kept);
        assert_true(r.oom.live_bytes <= LEFT);
        assert_int_equal(has(&r, 7), kept > 0);
        assert_int_equal(has(&r, 4999), kept > 1);
        add(&r, 1, 1);
        assert_true(has(&r, 1) && !has(&r, 2));
        room_deinit(&r);
    }
}

/* C4, and the sum of what is told. */
static void chunks_that_stay_are_kept(void **state)
{
    (void)state;
    room r;
    size_t cost, told;
    rp_chunk *chunk;

    room_init(&r, RP_TEST_OOM_UNLIMITED);
    for (uint64_t key = 1; key <= 3; key++) add(&r, key, 100);
    assert_int_equal(rp_stream_chunks_take_change(&r.chunks), 0); /* not in the same turn */
    assert_true(rp_stream_chunks_must_settle(&r.chunks));
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){1, 3}, 2));
    rp_stream_chunks_settle(&r.chunks);
    assert_false(rp_stream_chunks_must_settle(&r.chunks));
    chunk = rp_stream_chunks_find(&r.chunks, 3, false);
    cost = rp_chunk_memory(chunk);
    told = rp_stream_chunks_take_change(&r.chunks);
    assert_int_equal(told, 2 * cost);
    add(&r, 4, 100);
    assert_true(rp_stream_chunks_keep(&r.chunks, (uint64_t[]){4, 3}, 2));
    told += rp_stream_chunks_take_change(&r.chunks);
    assert_int_equal(told, cost); /* 1 has gone, 4 is not marked yet */
    rp_stream_chunks_settle(&r.chunks);
    told += rp_stream_chunks_take_change(&r.chunks);
    assert_int_equal(told, 2 * cost);

    /* An item that is sampled refers to it, and no table does. */
    chunk = rp_chunk_ref(rp_stream_chunks_find(&r.chunks, 3, true));
    (void)rp_stream_chunks_find(&r.chunks, 4, true);
    assert_int_equal(r.chunks.unused_bytes, 0);
    rp_stream_chunks_update_use(&r.chunks);
    assert_true(r.chunks.unused_bytes > 200);
    rp_chunk_unref(chunk);
    rp_stream_chunks_deinit(&r.chunks);
    told += rp_stream_chunks_take_change(&r.chunks);
    assert_int_equal(told, 0);
    room_deinit(&r); /* again */
}

/* Against a plain array. */
static void long_random_runs_agree_with_a_list(void **state)
{
    enum { KEYS = 64, ROUNDS = 3000 };
    (void)state;
    bool there[KEYS] = {false};
    room r;
    rp_rng rng;

    rp_rng_init(&rng, 3);
    room_init(&r, RP_TEST_OOM_UNLIMITED);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t keys[KEYS], key = rp_rng_below(&rng, KEYS);
        size_t count = 0;
        if (rp_rng_below(&rng, 8) > 0) {
            if (!there[key]) add(&r, key, 1 + key);
            there[key] = true;
        } else {
            for (uint64_t k = 0; k < KEYS; k++) {
                if (there[k]) there[k] = rp_rng_below(&rng, 3) > 0;
                if (there[k]) keys[count++] = k;
            }
            assert_true(rp_stream_chunks_keep(&r.chunks, keys, count));
        }
        if (rp_rng_below(&rng, 4) == 0) rp_stream_chunks_settle(&r.chunks);
        count = 0;
        for (uint64_t k = 0; k < KEYS; k++) {
            rp_chunk *chunk = rp_stream_chunks_find(&r.chunks, k, rp_rng_below(&rng, 16) == 0);
            assert_int_equal(chunk != NULL, there[k]);
            count += there[k];
        }
        assert_int_equal(r.chunks.count, count);
    }
    room_deinit(&r);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    size_t failed = 1, rooms = 0;

    for (; failed > 0; rooms++) {
        room r;
        failed = 0;
        room_init(&r, rooms);
        for (uint64_t key = 0; key < 200; key++) {
            rp_chunk *chunk = make(key, 5);
            if (rp_stream_chunks_add(&r.chunks, chunk) != RP_OK) {
                rp_chunk_unref(chunk); /* still ours */
                assert_false(has(&r, key));
                failed++;
            }
        }
        assert_int_equal(r.chunks.count, 200 - failed);
        room_deinit(&r);
    }
    assert_true(rooms > 4);
}

RP_TESTS(stream_chunks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_are_found_by_their_keys),
        cmocka_unit_test(chunks_without_items_are_counted),
        cmocka_unit_test(a_chunk_whose_items_are_gone_counts_again),
        cmocka_unit_test(only_kept_chunks_stay),
        cmocka_unit_test(unknown_and_repeated_keys_are_reported),
        cmocka_unit_test(memory_for_many_chunks_is_freed_with_them),
        cmocka_unit_test(chunks_that_stay_are_kept),
        cmocka_unit_test(long_random_runs_agree_with_a_list),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
