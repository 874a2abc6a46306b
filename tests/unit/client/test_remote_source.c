/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sampler/remote_source.h"

#include <unistd.h>

#include "support/streams.h"

typedef struct rig {
    rp_test_live live;
    rp_test_line line;
    rp_test_drawn drawn;
    rp_source *source;
    rp_error err;
} rig;

static void open_server(rig *r)
{
    rp_table_options queue = {.name = "fifo",
                              .limiter = rp_limiter_min_size(1),
                              .max_size = 1 << 20,
                              .max_times_sampled = 1};

    rp_test_live_start(&r->live, NULL);
    assert_ok_err(rp_store_add_table(r->live.store, &queue, NULL, &r->live.err), &r->live.err);
}

static void open_source(rig *r, rp_source_options options, bool is_unix)
{
    rp_source_events events;

    if (is_unix)
        rp_test_line_open_unix(&r->line, &r->live);
    else
        rp_test_line_open_tcp(&r->line, &r->live);
    rp_test_drawn_init(&r->drawn);
    events = rp_test_drawn_events(&r->drawn);
    assert_ok_err(rp_remote_source_new(r->line.channel, r->line.runtime, &r->line.alloc,
                                       &options, &events, &r->source, &r->err),
                  &r->err);
}

static void close_source(rig *r)
{
    r->source->class->close(r->source);
    rp_test_drawn_deinit(&r->drawn);
    rp_test_line_close(&r->line);
}

static void close_rig(rig *r)
{
    close_source(r);
    rp_test_live_stop(&r->live);
}

static void want(rig *r, size_t count)
{
    r->source->class->want(r->source, count);
}

/* Puts items into a table from within, of one chunk each. */
static void fill(rig *r, const char *table, uint64_t first, size_t count, size_t bytes)
{
    rp_table *t = rp_test_table(r->live.store, table);

    assert_non_null(t);
    for (uint64_t key = first; key < first + count; key++) {
        rp_sink_item item = rp_test_sink_item(table, key, bytes);
        rp_insert insert = {.key = key, .priority = 1.0, .trajectory = item.trajectory};
        assert_ok(rp_table_insert(t, &insert, 1, rp_wait_none(), NULL, NULL));
        rp_trajectory_unref(item.trajectory);
    }
}

static void expect_order(rig *r, size_t count)
{
    assert_int_equal(r->drawn.count, count);
    for (size_t i = 0; i < count; i++) assert_int_equal(r->drawn.keys[i], i);
}

static void in_order(bool is_unix, size_t request, int64_t per_stream)
{
    const size_t count = rp_test_part(20000, rp_test_length(4000, 1100));
    rig r;

    open_server(&r);
    fill(&r, "fifo", 0, count, 200);
    open_source(&r,
                (rp_source_options){.table = "fifo",
                                    .rate_limiter_timeout_ms = -1,
                                    .request_samples = request,
                                    .max_per_stream = per_stream},
                is_unix);
    for (size_t wanted = 0; wanted < count;) {
        size_t n = 1 + wanted % 777;
        if (n > count - wanted) n = count - wanted;
        want(&r, n);
        wanted += n;
        if (wanted % 5 == 0) {
            assert_true(rp_test_drawn_await(&r.drawn, wanted));
            assert_int_equal(rp_test_drawn_count(&r.drawn), wanted); /* and not one more */
        }
    }
    assert_true(rp_test_drawn_await(&r.drawn, count));
    expect_order(&r, count);
    assert_int_equal(rp_test_live_info(&r.live, "fifo").size, 0);
    close_rig(&r);
}

static void samples_come_in_order(void **state)
{
    (void)state;
    in_order(false, 100, 0);
    in_order(true, 1000, 0);
    in_order(true, 1, 0);
}

static void streams_are_reopened(void **state)
{
    (void)state;
    in_order(false, 64, 1000);
    in_order(true, 100, 7);
}

static void a_request_waits_for_items(void **state)
{
    rig r;

    (void)state;
    open_server(&r);
    open_source(&r, (rp_source_options){.table = "fifo", .rate_limiter_timeout_ms = -1}, false);
    want(&r, 50);
    assert_true(rp_test_live_await(&r.live, "fifo", 0, 1));
    assert_int_equal(rp_test_drawn_count(&r.drawn), 0);
    fill(&r, "fifo", 0, 20, 100);
    assert_true(rp_test_drawn_await(&r.drawn, 20));
    fill(&r, "fifo", 20, 40, 100);
    assert_true(rp_test_drawn_await(&r.drawn, 50));
    assert_int_equal(rp_test_live_info(&r.live, "fifo").size, 10);
    expect_order(&r, 50);
    close_rig(&r);
}

static void a_timeout_ends_the_request(void **state)
{
    rig r;

    (void)state;
    for (int64_t timeout_ms = 0; timeout_ms <= 60; timeout_ms += 60) {
        open_server(&r);
        open_source(&r,
                    (rp_source_options){.table = "fifo", .rate_limiter_timeout_ms = timeout_ms},
                    false);
        want(&r, 5);
        assert_true(rp_test_drawn_await_end(&r.drawn, 1));
        assert_int_equal(r.drawn.status, RP_DEADLINE);
        assert_non_null(strstr(r.drawn.text, "Timeout exceeded"));
        fill(&r, "fifo", 0, 100, 100); /* nobody wants them */
        want(&r, 3);
        assert_true(rp_test_drawn_await(&r.drawn, 3));
        expect_order(&r, 3);
        assert_int_equal(rp_test_live_info(&r.live, "fifo").size, 97);
        assert_int_equal(r.drawn.ends, 1);
        close_rig(&r);
    }
}

/* Items of 100 bytes are taken, one of 1,000 is not, and those behind it are again. */
static void an_item_over_the_limit_ends_the_request_issue_20(void **state)
{
    rig r;

    (void)state;
    open_server(&r);
    fill(&r, "fifo", 0, 2, 100);
    fill(&r, "fifo", 2, 1, 1000);
    fill(&r, "fifo", 3, 2, 100);
    open_source(&r,
                (rp_source_options){.table = "fifo",
                                    .rate_limiter_timeout_ms = -1,
                                    .request_samples = 1,
                                    .item_bytes = 999},
                false);
    want(&r, 2);
    assert_true(rp_test_drawn_await(&r.drawn, 2));
    want(&r, 1);
    assert_true(rp_test_drawn_await_end(&r.drawn, 1));
    assert_int_equal(r.drawn.status, RP_NO_RESOURCE);
    assert_non_null(strstr(r.drawn.text, "999"));
    assert_non_null(strstr(r.drawn.text, "1000"));
    assert_non_null(strstr(r.drawn.text, "item_bytes"));
    want(&r, 2);
    assert_true(rp_test_drawn_await(&r.drawn, 4));
    close_rig(&r);
}

static void an_unknown_table(void **state)
{
    rig r;

    (void)state;
    open_server(&r);
    open_source(&r, (rp_source_options){.table = "nowhere", .rate_limiter_timeout_ms = -1},
                true);
    want(&r, 5);
    assert_true(rp_test_drawn_await_end(&r.drawn, 1));
    assert_int_equal(r.drawn.status, RP_NOT_FOUND);
    rp_test_live_add(&r.live, "nowhere", 100);
    fill(&r, "nowhere", 0, 1, 100);
    want(&r, 5);
    assert_true(rp_test_drawn_await(&r.drawn, 5));
    close_rig(&r);
}

static void a_closed_table_ends_the_request(void **state)
{
    rp_table *table;
    rig r;

    (void)state;
    open_server(&r);
    open_source(&r, (rp_source_options){.table = "fifo", .rate_limiter_timeout_ms = -1}, false);
    want(&r, 5);
    assert_true(rp_test_live_await(&r.live, "fifo", 0, 1));
    table = rp_test_table(r.live.store, "fifo");
    rp_table_close(table);
    assert_true(rp_test_drawn_await_end(&r.drawn, 1));
    assert_int_equal(r.drawn.status, RP_CANCELLED);
    close_rig(&r);
}

static void a_request_survives_restarts(void **state)
{
    enum { ROUNDS = 5 };
    rig r;

    (void)state;
    open_server(&r);
    open_source(&r, (rp_source_options){.table = "fifo", .rate_limiter_timeout_ms = -1}, false);
    want(&r, ROUNDS * 10);
    for (size_t i = 0; i < ROUNDS; i++) {
        assert_true(rp_test_live_await(&r.live, "fifo", 0, 1));
        rp_test_live_end(&r.live);
        assert_true(rp_test_drawn_await_reach(&r.drawn, i + 1, i));
        rp_test_live_restart(&r.live);
        assert_true(rp_test_drawn_await_reach(&r.drawn, i + 1, i + 1));
        assert_true(rp_test_live_await(&r.live, "fifo", 0, 1));
        fill(&r, "fifo", 10 * i, 10, 100);
        assert_true(rp_test_drawn_await(&r.drawn, 10 * (i + 1)));
    }
    expect_order(&r, ROUNDS * 10);
    assert_int_equal(r.drawn.ends, 0);
    close_rig(&r);
}

/* Whoever is told that the server is away may want nothing of it until it is back. */
static void a_lost_server_is_reconnected_without_a_request(void **state)
{
    rig r;

    (void)state;
    open_server(&r);
    fill(&r, "fifo", 0, 10, 100);
    open_source(&r, (rp_source_options){.table = "fifo", .rate_limiter_timeout_ms = -1}, false);
    want(&r, 10);
    assert_true(rp_test_drawn_await(&r.drawn, 10));
    rp_test_live_end(&r.live);
    assert_true(rp_test_drawn_await_reach(&r.drawn, 1, 0));
    rp_test_live_restart(&r.live);
    assert_true(rp_test_drawn_await_reach(&r.drawn, 1, 1));
    close_rig(&r);
}

/* Restarts while samples flow: what comes is what was asked for, no more. */
static void restarts_under_load(void **state)
{
    const size_t wanted = rp_test_length(30000, 4000);
    rig r;

    (void)state;
    open_server(&r);
    fill(&r, "replay", 0, 1000, 400);
    open_source(&r,
                (rp_source_options){
                    .table = "replay", .rate_limiter_timeout_ms = -1, .request_samples = 500},
                true);
    want(&r, wanted);
    for (size_t i = 1; i <= 4; i++) {
        assert_true(rp_test_drawn_await(&r.drawn, i * wanted / 8));
        rp_test_live_end(&r.live);
        rp_test_live_restart(&r.live);
    }
    assert_true(rp_test_drawn_await(&r.drawn, wanted));
    want(&r, 1);
    assert_true(rp_test_drawn_await(&r.drawn, wanted + 1));
    assert_int_equal(r.drawn.count, wanted + 1);
    assert_int_equal(r.drawn.ends, 0);
    close_rig(&r);
}

static void large_items(void **state)
{
#ifdef RP_TEST_NO_RACE
    enum { LEAST = 2 }; /* asan runs it with more */
#else
    enum { LEAST = 4 };
#endif
    enum { CHUNKS = 10, BYTES = 10000000 };
    const size_t count = rp_test_part(CHUNKS, rp_test_length(4, LEAST)),
                 draws = rp_test_part(3, 2);
    rp_chunk *chunks[CHUNKS];
    rp_sink_item item;
    rp_insert insert;
    rp_table *t;
    rig r;

    (void)state;
    open_server(&r);
    for (uint64_t i = 0; i < count; i++) chunks[i] = rp_test_byte_chunk(i, BYTES);
    item = rp_test_sink_item_of("replay", 1, chunks, count);
    insert = (rp_insert){.key = 1, .priority = 1.0, .trajectory = item.trajectory};
    t = rp_test_table(r.live.store, "replay");
    assert_ok(rp_table_insert(t, &insert, 1, rp_wait_none(), NULL, NULL));
    rp_trajectory_unref(item.trajectory);
    for (size_t i = 0; i < count; i++) rp_chunk_unref(chunks[i]);
    open_source(&r, (rp_source_options){.table = "replay", .rate_limiter_timeout_ms = -1},
                true);
    want(&r, draws);
    assert_true(rp_test_drawn_await(&r.drawn, draws));
    assert_true(r.drawn.bytes >= draws * count * BYTES);
    close_rig(&r);
}

static void closing_in_the_middle_of_a_request(void **state)
{
    rig r;

    (void)state;
    open_server(&r);
    fill(&r, "replay", 0, 100, 4000);
    for (int round = 0; round < (int)rp_test_length(40, 12); round++) {
        open_source(&r,
                    (rp_source_options){.table = round % 3 == 0 ? "fifo" : "replay",
                                        .rate_limiter_timeout_ms = -1},
                    round % 2 == 0);
        want(&r, 100000);
        if (round % 3 == 1) assert_true(rp_test_drawn_await(&r.drawn, 10));
        close_source(&r);
    }
    rp_test_live_stop(&r.live);
}

RP_TESTS(remote_source)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_in_order),
        cmocka_unit_test(streams_are_reopened),
        cmocka_unit_test(a_request_waits_for_items),
        cmocka_unit_test(a_timeout_ends_the_request),
        cmocka_unit_test(an_item_over_the_limit_ends_the_request_issue_20),
        cmocka_unit_test(an_unknown_table),
        cmocka_unit_test(a_closed_table_ends_the_request),
        cmocka_unit_test(a_request_survives_restarts),
        cmocka_unit_test(a_lost_server_is_reconnected_without_a_request),
        cmocka_unit_test(restarts_under_load),
        cmocka_unit_test(large_items),
        cmocka_unit_test(closing_in_the_middle_of_a_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
