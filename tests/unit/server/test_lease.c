/* SPDX-License-Identifier: Apache-2.0 */
#include "server/shm/lease.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/fd_pass.h"
#include "support/fixture.h"
#include "util/mem.h"

static rp_test_bed bed;
static rp_leases leases;
static rp_loop_metrics metrics;
static rp_shared_arena *arena;
static int sockets[2]; /* ours, and the client's */

static int set_up(void **state)
{
    (void)state;
    rp_test_bed_init(&bed, NULL);
    memset(&metrics, 0, sizeof metrics);
    rp_leases_init(&leases, &bed.alloc, &metrics);
    assert_ok(rp_shared_arena_new(rp_allocator_default(), 64 << 20, 1 << 20, &arena, NULL));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
    return 0;
}

static rp_lease *new_lease(void)
{
    return rp_lease_new(&leases, arena, sockets[0]);
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(rp_counter_get(&metrics.shared_held_bytes), 0);
    assert_int_equal(rp_counter_get(&metrics.leases), 0);
    rp_leases_deinit(&leases);
    rp_shared_arena_unref(arena);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
    rp_test_bed_deinit(&bed); /* nothing may be left alive */
    return 0;
}

static void a_lease_is_found_by_its_id_until_it_ends(void **state)
{
    (void)state;
    rp_lease *a = new_lease(), *b = new_lease(), *found;
    uint8_t id[RP_LEASE_ID_BYTES];

    memcpy(id, rp_lease_id(a), sizeof id);
    assert_memory_not_equal(id, rp_lease_id(b), sizeof id);
    found = rp_leases_find(&leases, id, sizeof id);
    assert_ptr_equal(found, a);
    rp_lease_unref(found);
    assert_null(rp_leases_find(&leases, id, sizeof id - 1));
    assert_int_equal(rp_counter_get(&metrics.leases), 2);
    rp_lease_end(a);
    assert_null(rp_leases_find(&leases, id, sizeof id));
    rp_lease_end(b);
    rp_lease_end(NULL);
}

static void holds_keep_trajectories_until_released(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    rp_lease_call *call = rp_lease_begin_call(lease, 1);
    uint64_t holds[100];

    for (size_t i = 0; i < 100; i++) {
        holds[i] = rp_lease_hold(lease, call, bed.plain, 10, 1000);
        assert_int_not_equal(holds[i], 0);
    }
    assert_int_equal(rp_lease_held_bytes(lease), 1000);
    assert_int_equal(rp_counter_get(&metrics.shared_held_bytes), 1000);
    assert_int_equal(rp_lease_hold(lease, call, bed.plain, 1, 1000), 0); /* the limit */
    assert_true(rp_lease_release(lease, holds, 50));
    assert_int_equal(rp_lease_held_bytes(lease), 500);
    assert_false(rp_lease_release(lease, holds + 49, 2)); /* one of them is gone */
    assert_int_equal(rp_lease_held_bytes(lease), 490);
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 510, 1000), 0);
    assert_int_equal(rp_lease_hold(lease, call, bed.plain, SIZE_MAX, 1000), 0);
    rp_lease_end_call(lease, call);
    rp_lease_end(lease);
}

static void memory_for_many_holds_is_freed_with_them(void **state)
{
    enum { HOLDS = 5000 };
    static uint64_t holds[HOLDS];
    rp_lease *lease = new_lease();
    size_t before = bed.oom.live_bytes;

    (void)state;
    for (uint64_t round = 1; round <= 2; round++) { /* released, or left to a closed call */
        rp_lease_call *call = rp_lease_begin_call(lease, round);
        for (size_t i = 0; i < HOLDS; i++)
            holds[i] = rp_lease_hold(lease, call, bed.plain, 1, HOLDS);
        assert_true(bed.oom.live_bytes > before + 8 * (size_t)HOLDS);
        assert_true(round == 1 ? rp_lease_release(lease, holds, HOLDS)
                               : rp_lease_close_call(lease, round, 0));
        rp_lease_end_call(lease, call);
        assert_true(bed.oom.live_bytes <= before + 1024);
        assert_int_equal(rp_lease_held_bytes(lease), 0);
        assert_false(rp_lease_release(lease, holds, 1));
    }
    rp_lease_end(lease);
}

static void unknown_holds_cannot_be_released(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    const uint64_t nonsense[] = {0, 1, 16, 17, UINT32_MAX, UINT64_MAX >> 1};

    for (size_t i = 0; i < COUNT_OF(nonsense); i++)
        assert_false(rp_lease_release(lease, &nonsense[i], 1));
    assert_true(rp_lease_release(lease, nonsense, 0));
    assert_false(rp_lease_close_call(lease, 5, 1)); /* holds of a call that never came */
    rp_lease_end(lease);
}

static void closing_a_call_releases_holds_that_never_arrived(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    rp_lease_call *a = rp_lease_begin_call(lease, 1), *b = rp_lease_begin_call(lease, 2);

    for (int i = 0; i < 200; i++) {
        assert_int_not_equal(rp_lease_hold(lease, a, bed.plain, 1, 1000), 0);
        assert_int_not_equal(rp_lease_hold(lease, b, bed.plain, 1, 1000), 0);
    }
    assert_true(rp_lease_close_call(lease, 1, 30)); /* 30 of its 200 have come */
    assert_int_equal(rp_lease_held_bytes(lease), 230);
    assert_int_equal(rp_lease_hold(lease, a, bed.plain, 1, 1000), 0); /* nobody hears of it */
    assert_false(rp_lease_close_call(lease, 1, 0));                   /* twice */
    assert_false(rp_lease_close_call(lease, 2, 201));                 /* more than there were */
    rp_lease_end_call(lease, a);
    rp_lease_end_call(lease, b);
    rp_lease_end(lease);
}

/* Holds of several calls, let go in any order: closing a call takes its own and no others. */
static void closing_a_call_releases_only_its_holds(void **state)
{
    enum { CALLS = 50, EACH = 40 };
    rp_lease *lease = new_lease();
    rp_lease_call *calls[CALLS];
    uint64_t holds[EACH][CALLS];

    (void)state;
    for (uint64_t c = 0; c < CALLS; c++) calls[c] = rp_lease_begin_call(lease, c);
    for (size_t i = 0; i < EACH; i++)
        for (size_t c = 0; c < CALLS; c++) {
            holds[i][c] = rp_lease_hold(lease, calls[c], bed.plain, 1, 1000000);
            assert_int_not_equal(holds[i][c], 0);
        }
    for (size_t i = 0; i < EACH; i += 4)
        assert_true(rp_lease_release(lease, holds[i], CALLS)); /* one in four of each */
    assert_int_equal(rp_lease_held_bytes(lease), CALLS * 30);
    for (uint64_t c = 0; c < CALLS; c += 2) { /* of these the first 20 have come */
        if (c % 4 == 0) rp_lease_end_call(lease, calls[c]);
        assert_true(rp_lease_close_call(lease, c, 20));
        if (c % 4 != 0) rp_lease_end_call(lease, calls[c]);
    }
    assert_int_equal(rp_lease_held_bytes(lease), CALLS / 2 * 30 + CALLS / 2 * 15);
    for (size_t c = 0; c < CALLS; c += 2) assert_true(rp_lease_release(lease, &holds[1][c], 1));
    assert_false(rp_lease_release(lease, &holds[21][0], 1)); /* that one is gone */
    for (size_t c = 1; c < CALLS; c += 2) {
        assert_true(rp_lease_release(lease, &holds[39][c], 1));
        rp_lease_end_call(lease, calls[c]);
    }
    rp_lease_end(lease);
}

static void a_call_closed_before_it_began_does_not_begin(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    rp_lease_call *call;

    assert_true(rp_lease_close_call(lease, 7, 0));
    assert_null(rp_lease_begin_call(lease, 7));
    call = rp_lease_begin_call(lease, 8);
    assert_non_null(call);
    assert_null(rp_lease_begin_call(lease, 8)); /* in use */
    assert_null(rp_lease_begin_call(lease, (uint64_t)1 << 63));
    rp_lease_end_call(lease, call);
    rp_lease_end_call(lease, NULL);
    rp_lease_end(lease);
}

static void closings_of_unknown_calls_are_bounded(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    uint64_t count = 0;

    for (int round = 0; round < 2; round++) {
        uint64_t first = count;
        while (rp_lease_close_call(lease, 1000 + count, 0)) assert_true(count++ < 100000);
        assert_true(round == 1 || count - first >= 16);
        rp_lease_call *call = rp_lease_begin_call(lease, (uint64_t)round);
        assert_non_null(call); /* who makes calls may close some more */
        rp_lease_end_call(lease, call);
    }
    rp_lease_end(lease);
}

static void unclosed_calls_are_bounded(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    uint64_t count = 0;

    for (;; count++) {
        rp_lease_call *call = rp_lease_begin_call(lease, count);
        if (call == NULL) break;
        rp_lease_end_call(lease, call);
        assert_true(count < 100000);
    }
    assert_true(count >= 1000);
    rp_lease_end(lease);
}

static void a_lease_may_end_before_its_calls(void **state)
{
    (void)state;
    rp_lease *lease = new_lease(), *mine;
    rp_lease_call *call = rp_lease_begin_call(lease, 1);

    mine = rp_leases_find(&leases, rp_lease_id(lease), RP_LEASE_ID_BYTES);
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    rp_lease_end(lease);
    assert_int_equal(rp_lease_held_bytes(mine), 0);
    assert_int_equal(rp_lease_hold(mine, call, bed.plain, 10, 1000), 0);
    assert_null(rp_lease_begin_call(mine, 2));
    rp_lease_end_call(mine, call);
    rp_lease_unref(mine);
}

static void all_leases_together_hold_four_times_the_limit_of_one(void **state)
{
    (void)state;
    rp_lease *some[6];
    rp_lease_call *calls[6];
    size_t holding = 0;

    for (size_t i = 0; i < COUNT_OF(some); i++) {
        some[i] = new_lease();
        calls[i] = rp_lease_begin_call(some[i], 1);
        holding += rp_lease_hold(some[i], calls[i], bed.plain, 1000, 1000) != 0;
    }
    assert_int_equal(holding, 4);
    assert_int_equal(rp_counter_get(&metrics.shared_held_bytes), 4000);
    rp_lease_end_call(some[0], calls[0]);
    rp_lease_end(some[0]); /* what one gives back another may hold */
    assert_int_not_equal(rp_lease_hold(some[5], calls[5], bed.plain, 1000, 1000), 0);
    for (size_t i = 1; i < COUNT_OF(some); i++) {
        rp_lease_end_call(some[i], calls[i]);
        rp_lease_end(some[i]);
    }
}

/* The length of the next part that the client has been sent; 0: none. */
static uint64_t take_part(void)
{
    uint64_t bytes = 0;
    bool broken;
    int fd;

    if (rp_fd_receive(sockets[1], &bytes, sizeof bytes, &fd, &broken) < 0) return 0;
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    (void)close(fd);
    return bytes; /* our machines are little-endian */
}

static void a_client_gets_the_parts_before_a_hold(void **state)
{
    (void)state;
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    void *first = rp_alloc(&alloc, 1 << 20), *second;
    rp_lease *lease = new_lease();
    rp_lease_call *call = rp_lease_begin_call(lease, 1);

    assert_int_equal(take_part(), 0);
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    assert_int_equal(take_part(), rp_shared_arena_part(arena, 0)->bytes);
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    assert_int_equal(take_part(), 0); /* once each */
    second = rp_alloc(&alloc, 4 << 20);
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    assert_int_equal(take_part(), rp_shared_arena_part(arena, 1)->bytes);
    assert_int_equal(take_part(), 0);
    rp_lease_end_call(lease, call);
    rp_lease_end(lease);
    rp_release(&alloc, first, 1 << 20);
    rp_release(&alloc, second, 4 << 20);
}

static void a_client_that_reads_no_parts_holds_nothing(void **state)
{
    (void)state;
    rp_allocator alloc = rp_shared_arena_allocator(arena);
    void *block = rp_alloc(&alloc, 1 << 20);
    rp_lease *lease = new_lease();
    rp_lease_call *call = rp_lease_begin_call(lease, 1);
    char filler[4096] = {0};

    while (send(sockets[0], filler, sizeof filler, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
    assert_int_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    while (recv(sockets[1], filler, sizeof filler, MSG_DONTWAIT) > 0) continue;
    assert_int_not_equal(rp_lease_hold(lease, call, bed.plain, 10, 1000), 0);
    assert_true(take_part() > 0);
    rp_lease_end_call(lease, call);
    rp_lease_end(lease);
    rp_release(&alloc, block, 1 << 20);
}

typedef struct streamer {
    rp_lease *lease;
    uint64_t number;
} streamer;

static void *stream(void *arg)
{
    streamer *s = arg;
    rp_lease_call *call = rp_lease_begin_call(s->lease, s->number);

    for (int i = 0; i < 3000; i++) {
        uint64_t hold = rp_lease_hold(s->lease, call, bed.plain, 1, SIZE_MAX / 2);
        assert_int_not_equal(hold, 0);
        if (i % 3 != 0) assert_true(rp_lease_release(s->lease, &hold, 1));
    }
    rp_lease_end_call(s->lease, call);
    return NULL;
}

static void streams_of_several_threads_share_a_lease(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    streamer streamers[4];
    pthread_t threads[4];

    for (size_t i = 0; i < 4; i++) {
        streamers[i] = (streamer){lease, i};
        assert_int_equal(pthread_create(&threads[i], NULL, stream, &streamers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(rp_lease_held_bytes(lease), 4000);
    assert_true(rp_lease_close_call(lease, 2, 0));
    assert_int_equal(rp_lease_held_bytes(lease), 3000);
    rp_lease_end(lease);
}

static void without_memory_nothing_is_held(void **state)
{
    (void)state;
    rp_lease *lease = new_lease();
    rp_lease_call *call = rp_lease_begin_call(lease, 1);
    size_t held = 0;

    atomic_store(&bed.oom.left, 0);
    assert_int_equal(rp_lease_hold(lease, call, bed.plain, 1, 1000), 0);
    assert_null(rp_lease_begin_call(lease, 2));
    assert_null(new_lease());
    atomic_store(&bed.oom.left, 1);
    while (rp_lease_hold(lease, call, bed.plain, 1, 1000) != 0) held++;
    assert_int_equal(rp_lease_held_bytes(lease), held);
    assert_true(held > 0 && held < 1000);
    atomic_store(&bed.oom.left, RP_TEST_OOM_UNLIMITED);
    rp_lease_end_call(lease, call);
    rp_lease_end(lease);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

RP_TESTS(lease)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_found_by_its_id_until_it_ends),
        TEST(holds_keep_trajectories_until_released),
        TEST(memory_for_many_holds_is_freed_with_them),
        TEST(unknown_holds_cannot_be_released),
        TEST(closing_a_call_releases_holds_that_never_arrived),
        TEST(closing_a_call_releases_only_its_holds),
        TEST(a_call_closed_before_it_began_does_not_begin),
        TEST(closings_of_unknown_calls_are_bounded),
        TEST(unclosed_calls_are_bounded),
        TEST(a_lease_may_end_before_its_calls),
        TEST(all_leases_together_hold_four_times_the_limit_of_one),
        TEST(a_client_gets_the_parts_before_a_hold),
        TEST(a_client_that_reads_no_parts_holds_nothing),
        TEST(streams_of_several_threads_share_a_lease),
        TEST(without_memory_nothing_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
