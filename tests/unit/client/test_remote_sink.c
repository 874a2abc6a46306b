/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/remote_sink.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "chunk/chunk.h"
#include "chunk/trajectory.h"
#include "support/streams.h"
#include "table/spill.h"
#include "wire/block.h"

typedef struct rig {
    rp_test_live live;
    rp_test_line line;
    rp_test_settled *settled;
    rp_sink *sink;
    rp_error err;
} rig;

static void open_sink(rig *r)
{
    rp_sink_events events;

    r->settled = malloc(sizeof *r->settled);
    assert_non_null(r->settled);
    rp_test_settled_init(r->settled);
    events = rp_test_settled_events(r->settled);
    assert_ok_err(rp_remote_sink_new(r->line.channel, r->line.runtime, &r->line.alloc, &events,
                                     &r->sink, &r->err),
                  &r->err);
}

static void open_rig(rig *r, bool is_unix)
{
    rp_test_live_start(&r->live, NULL);
    rp_test_live_add(&r->live, "all", 1 << 20);
    if (is_unix)
        rp_test_line_open_unix(&r->line, &r->live);
    else
        rp_test_line_open_tcp(&r->line, &r->live);
    open_sink(r);
}

static void close_sink(rig *r)
{
    r->sink->class->close(r->sink);
    rp_test_settled_deinit(r->settled);
    free(r->settled);
}

static void close_rig(rig *r)
{
    close_sink(r);
    rp_test_line_close(&r->line);
    rp_test_live_stop(&r->live);
}

static void put(rig *r, const rp_sink_item *items, size_t count)
{
    assert_ok_err(r->sink->class->put(r->sink, items, count, &r->err), &r->err);
}

static void put_one(rig *r, rp_sink_item item)
{
    put(r, &item, 1);
}

/* Puts items of 400 bytes, in batches. */
static void put_many(rig *r, const char *table, uint64_t first, size_t count)
{
    enum { BATCH = 100 };

    for (size_t done = 0; done < count;) {
        rp_sink_item items[BATCH];
        size_t n = count - done < BATCH ? count - done : BATCH;
        for (size_t i = 0; i < n; i++)
            items[i] = rp_test_sink_item(table, first + done + i, 400);
        put(r, items, n);
        done += n;
    }
}

static void delivers(bool is_unix)
{
    const size_t count = rp_test_part(50000, rp_test_length(8000, 1200));
    rig r;

    open_rig(&r, is_unix);
    put_many(&r, "all", 0, count);
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, 0, count, RP_OK);
    assert_int_equal(rp_test_live_info(&r.live, "all").size, count);
    assert_int_equal(rp_test_live_find(&r.live, "all", 0, count), count);
    assert_true(r.settled->calls < count / 4); /* the sink reports items in batches */
    close_rig(&r);
}

static void delivers_over_tcp(void **state)
{
    (void)state;
    delivers(false);
}

static void delivers_over_a_unix_socket(void **state)
{
    (void)state;
    delivers(true);
}

/* The chunk of an item, as the server has it. Borrowed from the table. */
static const rp_chunk *served_chunk(rig *r, const char *table, uint64_t key, size_t index)
{
    rp_table *t = rp_test_table(r->live.store, table);
    const rp_chunk *chunk;
    rp_sample sample;
    size_t found = 0;

    assert_non_null(t);
    assert_ok(rp_table_peek(t, &key, 1, &sample, &found, NULL));
    assert_int_equal(found, 1);
    chunk = rp_trajectory_get_chunk(sample.trajectory, index);
    rp_samples_release(&sample, 1);
    return chunk;
}

/* Items over a sliding window of chunks. The server has each chunk once: so each travelled
 * once. If what was to be kept were wrong, it would have ended the stream. */
static void chunks_travel_once(size_t bytes)
{
    enum { WINDOW = 8 };
    const size_t count = rp_test_length(2000, 350);
    rp_chunk *window[WINDOW] = {0};
    rig r;

    open_rig(&r, false);
    for (uint64_t key = 0; key < count + WINDOW; key++) {
        rp_chunk_unref(window[0]);
        memmove(window, window + 1, (WINDOW - 1) * sizeof *window);
        window[WINDOW - 1] = rp_test_byte_chunk(key, bytes);
        if (key < WINDOW) continue;
        put_one(&r, rp_test_sink_item_of(key % 3 == 0 ? "replay" : "all", key, window, WINDOW));
        if (key % 301 == 0) assert_true(rp_test_settled_await(r.settled, key - WINDOW + 1));
    }
    for (size_t i = 0; i < WINDOW; i++) rp_chunk_unref(window[i]);
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, WINDOW, count, RP_OK);
    for (uint64_t key = WINDOW; key < count; key++) {
        const char *table = key % 3 == 0 ? "replay" : "all";
        const char *next = (key + 1) % 3 == 0 ? "replay" : "all";
        for (size_t i = 1; i < WINDOW; i++)
            assert_ptr_equal(served_chunk(&r, table, key, i),
                             served_chunk(&r, next, key + 1, i - 1));
    }
    close_rig(&r);
}

static void a_chunk_is_sent_once(void **state)
{
    (void)state;
    chunks_travel_once(300);
    chunks_travel_once(5000); /* is sent from where it is */
}

/* Which of the items of the next test are bad, and how. */
static rp_status fate(uint64_t key)
{
    if (key % 97 == 5) return RP_NOT_FOUND;
    return key % 131 == 7 || key % 173 == 9 ? RP_INVALID : RP_OK;
}

static void bad_items_are_refused_and_no_others(void **state)
{
    const size_t count = rp_test_length(1000, 360);
    size_t good = 0;
    rig r;

    (void)state;
    open_rig(&r, false);
    for (uint64_t key = 0; key < count; key++) {
        rp_sink_item item = rp_test_sink_item("all", key, 100);
        if (fate(key) == RP_NOT_FOUND)
            item.table = "nowhere";
        else if (key % 131 == 7)
            item.priority = NAN;
        else if (key % 173 == 9) {
            rp_chunk *chunk = rp_test_byte_chunk(key, 50), *two[] = {chunk, chunk};
            rp_trajectory_unref(item.trajectory);
            item = rp_test_sink_item_of("strict", key, two, 2);
            rp_chunk_unref(chunk);
            item.priority = -1.0;
        }
        if (fate(key) == RP_OK) good++;
        put_one(&r, item);
    }
    assert_true(rp_test_settled_await(r.settled, count));
    for (uint64_t key = 0; key < count; key++)
        rp_test_settled_expect(r.settled, key, 1, fate(key));
    assert_int_equal(rp_test_live_info(&r.live, "all").size, good);
    put_many(&r, "all", count, count); /* and all is well again */
    assert_true(rp_test_settled_await(r.settled, 2 * count));
    rp_test_settled_expect(r.settled, count, count, RP_OK);
    close_rig(&r);
}

static void an_unknown_table_refuses_all_of_its_items(void **state)
{
    const size_t count = rp_test_part(20000, rp_test_length(5000, 1000));
    rig r;

    (void)state;
    open_rig(&r, false);
    put_many(&r, "nowhere", 0, count);
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, 0, count, RP_NOT_FOUND);
    assert_non_null(strstr(r.settled->text, "nowhere"));
    close_rig(&r);
}

static void survives_restarts(bool is_unix)
{
    enum { RESTARTS = 6 };
    const size_t count = rp_test_part(60000, rp_test_length(12000, 1200));
    rig r;

    open_rig(&r, is_unix);
    for (size_t i = 0; i < RESTARTS; i++) {
        put_many(&r, "all", i * (count / RESTARTS), count / RESTARTS);
        assert_true(rp_test_settled_await(r.settled, i * (count / RESTARTS) + 1));
        rp_test_live_end(&r.live);
        if (i % 2 == 1) { /* it is noticed */
            while (rp_remote_sink_away_since(r.sink) == 0) (void)usleep(1000);
        }
        rp_test_live_restart(&r.live);
    }
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, 0, count, RP_OK);
    assert_int_equal(rp_test_live_info(&r.live, "all").size, count);
    assert_int_equal(rp_test_live_find(&r.live, "all", 0, count), count);
    while (rp_remote_sink_away_since(r.sink) != 0) (void)usleep(1000);
    close_rig(&r);
}

static void survives_restarts_over_tcp(void **state)
{
    (void)state;
    survives_restarts(false);
}

static void survives_restarts_over_a_unix_socket(void **state)
{
    (void)state;
    survives_restarts(true);
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static void a_full_table_delays_its_confirmations(void **state)
{
    const size_t count = rp_test_length(2000, 200);
    int64_t before_ns;
    char text[256];
    rig r;

    (void)state;
    open_rig(&r, false);
    put_many(&r, "queue", 0, 4);
    assert_true(rp_test_settled_await(r.settled, 4));
    put_many(&r, "queue", 4, count - 4);
    assert_true(rp_test_live_await(&r.live, "queue", 1, 0));
    before_ns = cpu_ns();
    (void)usleep(300000);
    assert_true(cpu_ns() - before_ns < 150000000); /* nobody is busy waiting */
    assert_int_equal(rp_test_settled_count(r.settled), 4);
    r.sink->class->why(r.sink, text, sizeof text);
    assert_string_equal(text, ""); /* the server knows the reason */
    for (size_t i = 0; i < count; i++) {
        while (!rp_test_live_take(&r.live, "queue")) (void)usleep(100);
    }
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, 0, count, RP_OK);
    close_rig(&r);
}

/* Items that wait for a table are refused when it is closed, and so are later ones. Those of
 * other tables go in. */
static void a_closed_table_refuses_all_of_its_items(void **state)
{
    rig r;

    (void)state;
    open_rig(&r, false);
    put_many(&r, "queue", 0, 4);
    assert_true(rp_test_settled_await(r.settled, 4));
    put_many(&r, "queue", 4, 50);
    assert_true(rp_test_live_await(&r.live, "queue", 1, 0));
    put_many(&r, "all", 54, 30);
    rp_table_close(rp_test_table(r.live.store, "queue"));
    put_many(&r, "queue", 84, 10);
    assert_true(rp_test_settled_await(r.settled, 94));
    rp_test_settled_expect(r.settled, 0, 4, RP_OK);
    rp_test_settled_expect(r.settled, 4, 50, RP_CANCELLED);
    rp_test_settled_expect(r.settled, 54, 30, RP_OK);
    rp_test_settled_expect(r.settled, 84, 10, RP_CANCELLED);
    close_rig(&r);
}

/* The culprit is found behind an item that waits, and those behind it go in. The table lets
 * some wait, so that the stream is not held up as a whole. */
static void a_bad_item_behind_a_waiting_item_is_found(void **state)
{
    enum { ROOM = 200, BAD = 1000 };
    rp_table_options wide = {.name = "wide",
                             .limiter = rp_limiter_queue(ROOM),
                             .max_size = ROOM,
                             .max_times_sampled = 1};
    rig r;

    (void)state;
    open_rig(&r, false);
    assert_ok(rp_store_add_table(r.live.store, &wide, NULL, NULL));
    put_many(&r, "wide", 0, ROOM);
    assert_true(rp_test_settled_await(r.settled, ROOM));
    put_many(&r, "wide", ROOM, 2); /* wait */
    put_many(&r, "all", BAD - 30, 30);
    for (uint64_t key = BAD; key < BAD + 3; key++) {
        rp_sink_item item = rp_test_sink_item("all", key, 100);
        item.priority = NAN;
        put_one(&r, item);
    }
    put_many(&r, "all", BAD + 3, 30);
    assert_true(rp_test_settled_await(r.settled, ROOM + 63));
    rp_test_settled_expect(r.settled, 0, ROOM, RP_OK);
    rp_test_settled_expect(r.settled, BAD - 30, 30, RP_OK);
    rp_test_settled_expect(r.settled, BAD, 3, RP_INVALID);
    rp_test_settled_expect(r.settled, BAD + 3, 30, RP_OK);
    for (size_t i = 0; i < 2; i++) assert_true(rp_test_live_take(&r.live, "wide"));
    assert_true(rp_test_settled_await(r.settled, ROOM + 65));
    rp_test_settled_expect(r.settled, ROOM, 2, RP_OK);
    close_rig(&r);
}

/* Items that come while others are confirmed wait for more, but not long: pushed or not. */
static void items_are_batched_and_sent(void **state)
{
    enum { LEFT = 400 };
    const size_t pushed = rp_test_length(4000, 1200), end = pushed + LEFT + 100;
    rig r;

    (void)state;
    open_rig(&r, true);
    for (uint64_t key = 0; key < pushed; key++) {
        put_many(&r, "all", key, 1);
        if (key % 128 == 127) r.sink->class->push(r.sink, 128);
        if (key % 1000 == 7) r.sink->class->push(r.sink, 1);
    }
    r.sink->class->push(r.sink, 1);
    assert_true(rp_test_settled_await(r.settled, pushed));
    for (uint64_t key = pushed; key < pushed + LEFT; key++) {
        put_many(&r, "all", key, 1);
        if (key % 20 == 0) (void)usleep((unsigned)(key % 7) * 300);
        if (key % 50 == 0) assert_true(rp_test_settled_await(r.settled, (size_t)key + 1));
    }
    assert_true(rp_test_settled_await(r.settled, pushed + LEFT));
    for (size_t count = pushed + LEFT; count < end;) { /* the loop sleeps: this thread sends */
        put_many(&r, "all", count, 1);
        assert_true(rp_test_settled_await(r.settled, ++count));
        put_many(&r, "all", count, 1);
        r.sink->class->push(r.sink, 1);
        assert_true(rp_test_settled_await(r.settled, ++count));
        (void)usleep(3000);
    }
    rp_test_settled_expect(r.settled, 0, end, RP_OK);
    close_rig(&r);
}

/* What waits when the server goes away, and the sink after it, is nobody's. */
static void closing_while_the_server_stops(void **state)
{
    rig r;

    (void)state;
    for (int round = 0; round < 20; round += (int)rp_test_step(1, 5)) {
        open_rig(&r, true);
        put_many(&r, "all", 0, 1);
        assert_true(rp_test_settled_await(r.settled, 1));
        for (uint64_t key = 1; key < 50; key++) put_many(&r, "all", key, 1);
        rp_test_live_stop(&r.live);
        for (uint64_t key = 50; key < 60; key++) put_many(&r, "all", key, 1);
        close_sink(&r);
        rp_test_line_close(&r.line);
    }
}

/* More than a message may have, and more than a stream may hold without an item: under tsan,
 * only the latter. */
static void large_items(void **state)
{
#ifdef RP_TEST_NO_RACE
    enum { LEAST = 4 };
#else
    enum { LEAST = 7 };
#endif
    enum { CHUNKS = 10, BYTES = 10000000 };
    const size_t count = rp_test_part(CHUNKS, rp_test_length(7, LEAST)),
                 items = rp_test_part(2, 1);
    rp_chunk *chunks[CHUNKS];
    rig r;

    (void)state;
    open_rig(&r, true);
    for (uint64_t key = 0; key < items; key++) {
        for (uint64_t i = 0; i < count; i++)
            chunks[i] = rp_test_byte_chunk(100 * key + i, BYTES);
        put_one(&r, rp_test_sink_item_of("all", key, chunks, count));
        for (size_t i = 0; i < count; i++) rp_chunk_unref(chunks[i]);
        put_many(&r, "all", 1000 * (key + 1), 10);
    }
    assert_true(rp_test_settled_await(r.settled, 11 * items));
    rp_test_settled_expect(r.settled, 0, items, RP_OK);
    assert_int_equal(rp_test_live_info(&r.live, "all").size, 11 * items);
    close_rig(&r);
}

/* The block of bytes in which the server keeps a chunk. */
static const rp_block *block_of(const rp_chunk *chunk)
{
    rp_chunk_owner owner;

    assert_true(chunk->adopted);
    memcpy(&owner, (const char *)chunk + chunk->size_bytes - sizeof owner, sizeof owner);
    return owner.ctx;
}

/* So the server need not copy a large chunk out of its message. */
static void large_items_have_messages_of_their_own(void **state)
{
    enum { ITEMS = 6, BYTES = 400000, AROUND = 1000 };
    rp_sink_item items[ITEMS];
    rig r;

    (void)state;
    open_rig(&r, true);
    for (uint64_t key = 0; key < ITEMS; key++)
        items[key] = rp_test_sink_item("all", key, BYTES);
    put(&r, items, ITEMS);
    assert_true(rp_test_settled_await(r.settled, ITEMS));
    for (uint64_t key = 0; key < ITEMS; key++) {
        const rp_chunk *chunk = served_chunk(&r, "all", key, 0);
        const rp_block *block = block_of(chunk);
        assert_true(chunk->wire > block->data &&
                    chunk->wire + chunk->wire_bytes <= block->data + block->size);
        assert_true(block->size < chunk->wire_bytes + AROUND);
    }
    close_rig(&r);
}

static void closing_with_items_in_flight(void **state)
{
    rig r;

    (void)state;
    for (int round = 0; round < 20; round += (int)rp_test_step(1, 5)) {
        open_rig(&r, round % 2 == 0);
        put_many(&r, round % 4 == 2 ? "queue" : "all", 0, rp_test_length(3000, 800));
        if (round % 4 == 1) assert_true(rp_test_settled_await(r.settled, 1));
        close_rig(&r);
    }
}

static void items_wait_for_an_absent_server(void **state)
{
    char text[256] = "";
    rig r;

    (void)state;
    rp_test_line_open(&r.line, "unix:/nonexistent/socket");
    open_sink(&r);
    assert_int_equal(rp_remote_sink_away_since(r.sink), 0);
    put_many(&r, "all", 0, 10);
    while (rp_remote_sink_away_since(r.sink) == 0) (void)usleep(1000);
    r.sink->class->why(r.sink, text, sizeof text);
    assert_non_null(strstr(text, "/nonexistent/socket"));
    assert_int_equal(rp_test_settled_count(r.settled), 0);
    close_sink(&r);
    rp_test_line_close(&r.line);
}

/* Who has no token gets nothing in, and is told so for every item. */
static void without_credentials_all_is_refused(void **state)
{
    static const char tokens[] =
        "write w sha256:"
        "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30\n";
    char path[] = "/tmp/reprise-tokens-XXXXXX";
    int fd = mkstemp(path);
    rp_server_options options = {.security.tokens_file = path};
    rig r;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, tokens, sizeof tokens - 1), sizeof tokens - 1);
    (void)close(fd);
    rp_test_live_start(&r.live, &options);
    rp_test_line_open_tcp(&r.line, &r.live);
    open_sink(&r);
    put_many(&r, "replay", 0, 1000);
    assert_true(rp_test_settled_await(r.settled, 1000));
    rp_test_settled_expect(r.settled, 0, 1000, RP_UNAUTHENTICATED);
    close_rig(&r);
    (void)unlink(path);
}

RP_TESTS(remote_sink)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivers_over_tcp),
        cmocka_unit_test(delivers_over_a_unix_socket),
        cmocka_unit_test(a_chunk_is_sent_once),
        cmocka_unit_test(bad_items_are_refused_and_no_others),
        cmocka_unit_test(an_unknown_table_refuses_all_of_its_items),
        cmocka_unit_test(survives_restarts_over_tcp),
        cmocka_unit_test(survives_restarts_over_a_unix_socket),
        cmocka_unit_test(a_full_table_delays_its_confirmations),
        cmocka_unit_test(a_closed_table_refuses_all_of_its_items),
        cmocka_unit_test(a_bad_item_behind_a_waiting_item_is_found),
        cmocka_unit_test(items_are_batched_and_sent),
        cmocka_unit_test(closing_while_the_server_stops),
        cmocka_unit_test(large_items),
        cmocka_unit_test(large_items_have_messages_of_their_own),
        cmocka_unit_test(closing_with_items_in_flight),
        cmocka_unit_test(items_wait_for_an_absent_server),
        cmocka_unit_test(without_credentials_all_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
