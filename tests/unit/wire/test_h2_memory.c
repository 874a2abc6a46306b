/* SPDX-License-Identifier: Apache-2.0 */
/* A connection whose allocations fail: no memory leaks, and every call is closed. */
#include "wire/h2/h2_memory.h"

#include "chunk/trajectory.h"
#include "support/fixture.h"
#include "support/h2_pair.h"

enum { MIB = 1 << 20 };

static void blocks_are_counted_with_their_sizes(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    nghttp2_mem memory = rp_h2_memory(&alloc);
    void *user = memory.mem_user_data;
    uint8_t *a = memory.malloc(100, user), *b = memory.calloc(10, 7, user);

    assert_non_null(a);
    assert_non_null(b);
    for (int i = 0; i < 70; i++) assert_int_equal(b[i], 0);
    memset(a, 1, 100);
    a = memory.realloc(a, 1000, user);
    assert_non_null(a);
    assert_int_equal(a[99], 1);
    a = memory.realloc(a, 10, user);
    assert_int_equal(a[9], 1);
    assert_int_equal((uintptr_t)a % _Alignof(max_align_t), 0);
    assert_int_equal(oom.live, 2);
    memory.free(a, user);
    memory.free(b, user);
    memory.free(NULL, user);
    a = memory.realloc(NULL, 5, user);
    assert_non_null(a);
    memory.free(a, user);
    assert_int_equal(oom.live_bytes, 0);
}

static void a_failed_allocation_keeps_the_old_block(void **state)
{
    (void)state;
    rp_test_oom oom = RP_TEST_OOM_INIT(1);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    nghttp2_mem memory = rp_h2_memory(&alloc);
    void *user = memory.mem_user_data;
    uint8_t *a = memory.malloc(8, user);

    assert_non_null(a);
    memcpy(a, "12345678", 8);
    assert_null(memory.malloc(1, user));
    assert_null(memory.calloc(1, 1, user));
    assert_null(memory.calloc(SIZE_MAX, 2, user));
    assert_null(memory.malloc(SIZE_MAX, user));
    assert_null(memory.realloc(a, 100, user));
    assert_memory_equal(a, "12345678", 8);
    memory.free(a, user);
    assert_int_equal(oom.live, 0);
}

typedef struct talk {
    rp_trajectory *trajectory;
    const uint8_t *wire;
    size_t wire_bytes;
} talk;

static void echo(rp_test_pair *p, rp_call *call, const uint8_t *data, size_t size,
                 rp_block *block)
{
    const talk *t = p->user;
    rp_message *reply;

    (void)block;
    if (size > 0 && data[0] == 'p') rp_call_pause(call);
    reply = rp_test_pair_reply(p, size < 4096 ? data : t->wire,
                               size < 4096 ? size : t->wire_bytes, t->trajectory);
    if (reply != NULL)
        rp_call_send(call, reply);
    else
        rp_call_abort(call, RP_NO_RESOURCE, "no answer");
}

static void end(rp_test_pair *p, rp_call *call)
{
    (void)p;
    rp_call_finish(call, RP_OK, NULL);
}

static void refuse(rp_test_pair *p, rp_call *call)
{
    if (strcmp(p->path, "/refused") == 0) rp_call_finish(call, RP_DENIED, "not you");
    if (strcmp(p->path, "/page") == 0)
        rp_call_respond_http(call, &(rp_http_response){200, "text/plain", NULL, NULL},
                             rp_test_pair_reply(p, "page", 4, NULL));
}

static void resume(void *user, rp_call *call)
{
    (void)user;
    rp_call_resume(call);
}

/* Everything that a connection does; true if all of it worked. */
static bool converse(rp_test_pair *p)
{
    static const uint8_t large[1 << 21] = {1};
    rp_test_stream *a, *b, *refused, *page, *cancelled;

    if (p->opened != RP_OK) return false;
    p->in_bytes = 50000;
    rp_test_pair_carry(p);
    a = rp_test_client_open(p->client, "/a");
    b = rp_test_client_open(p->client, "/b");
    refused = rp_test_client_open(p->client, "/refused");
    page = rp_test_client_get(p->client, "GET", "/page");
    cancelled = rp_test_client_open(p->client, "/c");
    for (int i = 0; i < 20; i++) rp_test_stream_send(a, "small", 5);
    rp_test_stream_send(b, "p", 1);
    for (int i = 0; i < 5; i++) rp_test_stream_send(b, "waits", 5);
    rp_test_stream_send_raw(cancelled, "\0\0\0\1", 4);
    rp_test_pair_carry(p);
    rp_test_stream_send(a, large, sizeof large);
    rp_test_stream_end(a);
    rp_test_stream_reset(cancelled, NGHTTP2_CANCEL);
    rp_test_pair_carry(p);
    rp_h2_each_call(p->h2, resume, NULL);
    rp_test_stream_end(b);
    rp_h2_ping(p->h2);
    rp_test_pair_carry(p);
    rp_test_stream_end(refused);
    rp_h2_sweep(p->h2);
    rp_h2_go_away(p->h2);
    rp_test_pair_carry(p);
    rp_h2_go_away(p->h2);
    rp_test_pair_carry(p);
    return a->status == RP_OK && a->message_count == 21 && b->status == RP_OK &&
           b->message_count == 6 && refused->status == RP_DENIED && page->in.size == 4 &&
           p->client->goes_away && p->client->pings == 1 && rp_h2_is_over(p->h2);
}

static bool converse_in(size_t room, bool for_once, const talk *t)
{
    rp_test_pair p;
    bool ok;

    rp_test_pair_try(&p, NULL, room);
    p.user = (void *)(uintptr_t)t;
    p.on_request = refuse;
    p.on_message = echo;
    p.on_half_close = end;
    if (for_once && p.opened == RP_OK) { /* then there is memory again */
        rp_test_pair_carry(&p);
        atomic_store(&p.oom.left, RP_TEST_OOM_UNLIMITED);
    }
    ok = converse(&p);
    if (p.opened == RP_OK && !ok && rp_h2_is_over(p.h2)) assert_true(p.oom.failed > 0);
    rp_test_pair_deinit(&p); /* nothing is left, every call was closed */
    assert_int_equal(atomic_load(&t->trajectory->refs.n), 1);
    return ok;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    talk t = {.trajectory = rp_test_blob_trajectory(rp_allocator_default(), 3, 1, 10000)};
    size_t room = 0;

    t.wire = rp_chunk_wire(rp_trajectory_get_chunk(t.trajectory, 0), &t.wire_bytes);
    while (!converse_in(room, false, &t)) room++;
    assert_true(room > 100);
    rp_trajectory_unref(t.trajectory);
}

/* The room for one call's memory fails; others must go on. */
static void one_allocation_that_fails_ends_a_call_or_the_connection(void **state)
{
    (void)state;
    size_t whole = 0, broken = 0;

    for (size_t skip = 0; skip < 60; skip++) {
        rp_test_pair p;
        rp_test_stream *a, *b;

        rp_test_pair_init(&p, NULL, NULL);
        p.on_half_close = end;
        a = rp_test_client_open(p.client, "/a");
        rp_test_pair_carry(&p);
        b = rp_test_client_open(p.client, "/b");
        rp_test_stream_send(b, "message in parts", 16);
        rp_test_stream_end(b);
        p.in_bytes = 20;
        atomic_store(&p.oom.left, skip);
        rp_test_pair_carry_in(&p);
        atomic_store(&p.oom.left, RP_TEST_OOM_UNLIMITED);
        rp_test_pair_carry(&p);
        rp_test_stream_end(a);
        rp_test_pair_carry(&p);
        if (rp_h2_is_over(p.h2)) {
            assert_true(p.oom.failed > 0);
            broken++;
        } else {
            assert_int_equal(a->status, RP_OK); /* who has nothing to do with it goes on */
            assert_true(b->is_over);
            whole++;
        }
        assert_int_equal(rp_h2_held_bytes(p.h2), 0);
        rp_test_pair_deinit(&p);
    }
    assert_true(whole > 0 && broken > 0);
}

RP_TESTS(h2_memory)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_counted_with_their_sizes),
        cmocka_unit_test(a_failed_allocation_keeps_the_old_block),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(one_allocation_that_fails_ends_a_call_or_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
