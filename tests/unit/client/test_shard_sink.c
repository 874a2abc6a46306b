/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/shard_sink.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/streams.h"

enum { SHARDS = 3 };

typedef struct rig {
    rp_test_live live[SHARDS];
    rp_test_line line[SHARDS];
    rp_test_settled *settled;
    rp_sink *parts[SHARDS]; /* borrowed from the sink */
    rp_sink *sink;
    rp_error err;
} rig;

/* With `dead`, which is less than SHARDS, this shard does not listen. */
static void open_rig_with(rig *r, rp_spread spread, int64_t give_up_ms, size_t dead)
{
    rp_shard_options options = {.spread = spread, .give_up_ms = give_up_ms, .seed = 11};
    rp_sink_events events;

    r->settled = malloc(sizeof *r->settled);
    assert_non_null(r->settled);
    rp_test_settled_init(r->settled);
    events = rp_test_settled_events(r->settled);
    for (size_t i = 0; i < SHARDS; i++) {
        rp_test_live_start(&r->live[i], NULL);
        rp_test_live_add(&r->live[i], "all", 1 << 20);
        if (i == dead) rp_test_live_end(&r->live[i]);
        rp_test_line_open_tcp(&r->line[i], &r->live[i]);
        assert_ok_err(rp_remote_sink_new(r->line[i].channel, r->line[i].runtime,
                                         &r->line[i].alloc, &events, &r->parts[i], &r->err),
                      &r->err);
    }
    assert_ok_err(rp_shard_sink_new(r->parts, SHARDS, r->line[0].runtime, &r->line[0].alloc,
                                    &options, &r->sink, &r->err),
                  &r->err);
}

static void open_rig(rig *r, rp_spread spread, int64_t give_up_ms)
{
    open_rig_with(r, spread, give_up_ms, SHARDS);
}

static void close_rig(rig *r)
{
    r->sink->class->close(r->sink);
    for (size_t i = 0; i < SHARDS; i++) {
        rp_test_line_close(&r->line[i]);
        rp_test_live_stop(&r->live[i]);
    }
    rp_test_settled_deinit(r->settled);
    free(r->settled);
}

/* So many at a time. */
static void put_by(rig *r, size_t batch, uint64_t first, size_t count)
{
    enum { BATCH = 70 };

    for (size_t done = 0; done < count;) {
        rp_sink_item items[BATCH];
        size_t n = count - done < batch ? count - done : batch;
        for (size_t i = 0; i < n; i++)
            items[i] = rp_test_sink_item("all", first + done + i, 400);
        assert_ok_err(r->sink->class->put(r->sink, items, n, &r->err), &r->err);
        done += n;
    }
}

static void put_many(rig *r, uint64_t first, size_t count)
{
    put_by(r, 70, first, count);
}

/* The items of a test, which divide by the number of shards. */
static size_t many(void)
{
    return rp_test_length(3000, 900);
}

static size_t size_of(rig *r, size_t shard)
{
    return (size_t)rp_test_live_info(&r->live[shard], "all").size;
}

/* A server that ends ends its streams first: until the connection is gone, the sink may open a
 * new stream on it, and send items that no server takes. */
static void await_away(rig *r, size_t shard)
{
    while (rp_channel_is_connected(r->line[shard].channel)) (void)usleep(1000);
    while (rp_remote_sink_away_since(r->parts[shard]) == 0) (void)usleep(1000);
}

static void await_back(rig *r, size_t shard)
{
    while (rp_remote_sink_away_since(r->parts[shard]) != 0) (void)usleep(1000);
}

static void items_are_spread_in_turns(void **state)
{
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 0);
    put_many(&r, 0, many());
    put_by(&r, 1, many(), 300);
    assert_true(rp_test_settled_await(r.settled, many() + 300));
    rp_test_settled_expect(r.settled, 0, many() + 300, RP_OK);
    for (size_t i = 0; i < SHARDS; i++)
        assert_int_equal(size_of(&r, i), (many() + 300) / SHARDS);
    close_rig(&r);
}

static void items_are_spread_by_key(void **state)
{
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_KEYS, 0);
    put_many(&r, 0, many());
    assert_true(rp_test_settled_await(r.settled, many()));
    put_by(&r, 1, 0, many()); /* the same keys find the same shards */
    assert_true(rp_test_settled_await(r.settled, 2 * many()));
    assert_int_equal(size_of(&r, 0) + size_of(&r, 1) + size_of(&r, 2), many());
    for (size_t i = 0; i < SHARDS; i++) /* a third, and 15% more or less */
        assert_in_range(size_of(&r, i), many() * 85 / 300, many() * 115 / 300);
    close_rig(&r);
}

static void a_lost_shard_is_skipped(void **state)
{
    const size_t all = 600 + many();
    size_t before;
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 0);
    put_many(&r, 0, 300);
    assert_true(rp_test_settled_await(r.settled, 300));
    rp_test_live_end(&r.live[1]);
    put_by(&r, 1, 300, 300); /* some of these may be for it */
    await_away(&r, 1);
    before = size_of(&r, 1);
    put_many(&r, 600, many());
    while (size_of(&r, 0) + size_of(&r, 2) < 200 + 200 + many()) (void)usleep(1000);
    assert_int_equal(before, 100);
    rp_test_live_restart(&r.live[1]);
    await_back(&r, 1);
    assert_true(rp_test_settled_await(r.settled, all)); /* it has them now */
    rp_test_settled_expect(r.settled, 0, all, RP_OK);
    assert_int_equal(size_of(&r, 0) + size_of(&r, 1) + size_of(&r, 2), all);
    before = size_of(&r, 1);
    put_many(&r, all, 300);
    assert_true(rp_test_settled_await(r.settled, all + 300));
    assert_int_equal(size_of(&r, 1), before + 100);
    close_rig(&r);
}

static void items_of_a_lost_shard_go_to_the_others(void **state)
{
    const uint64_t most = rp_test_length(20000, 3200), step = rp_test_length(64, 8);
    uint64_t next = 300 + many();
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_KEYS, 200);
    put_many(&r, 0, 300);
    assert_true(rp_test_settled_await(r.settled, 300));
    rp_test_live_end(&r.live[2]);
    put_many(&r, 300, many());
    await_away(&r, 2);
    for (; next < most; next++) { /* half a second, in which others are moved */
        put_by(&r, 1, next, 1);
        if (next % step == 0) (void)usleep(2000);
    }
    assert_true(rp_test_settled_await(r.settled, next));
    rp_test_settled_expect(r.settled, 0, next, RP_OK);
    assert_int_equal(size_of(&r, 0) + size_of(&r, 1) + size_of(&r, 2), next);
    close_rig(&r);
}

/* It would keep its items for an hour. None of them was ever sent to it, so none can be in two
 * shards. */
static void items_of_a_shard_that_never_listened_go_to_the_others_at_once(void **state)
{
    const size_t all = many() + 300;
    rig r;

    (void)state;
    open_rig_with(&r, RP_SPREAD_TURNS, 3600000, 1);
    put_many(&r, 0, many());
    assert_true(rp_test_settled_await(r.settled, many()));
    put_by(&r, 1, many(), 300);
    assert_true(rp_test_settled_await(r.settled, all));
    rp_test_settled_expect(r.settled, 0, all, RP_OK);
    assert_int_equal(size_of(&r, 0) + size_of(&r, 2), all);
    rp_test_live_restart(&r.live[1]);
    await_back(&r, 1);
    put_many(&r, all, 300);
    assert_true(rp_test_settled_await(r.settled, all + 300));
    assert_int_equal(size_of(&r, 1), 100);
    close_rig(&r);
}

/* The items of the first round may be in it, those of the second cannot. */
static void a_lost_shard_keeps_only_what_was_sent_to_it(void **state)
{
    size_t taken;
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 3600000);
    put_many(&r, 0, 300);
    assert_true(rp_test_settled_await(r.settled, 300));
    taken = size_of(&r, 1);
    rp_test_live_end(&r.live[1]);
    await_away(&r, 1);
    for (uint64_t i = 0; i < 300; i++) { /* as if put before the break was noticed */
        rp_sink_item item = rp_test_sink_item("all", 300 + i, 400);

        assert_ok_err(r.parts[1]->class->put(r.parts[1], &item, 1, &r.err), &r.err);
    }
    assert_true(rp_test_settled_await(r.settled, 600));
    rp_test_settled_expect(r.settled, 0, 600, RP_OK);
    assert_int_equal(taken, 100);
    assert_int_equal(size_of(&r, 0) + size_of(&r, 2), 500);
    close_rig(&r);
}

static void items_wait_when_all_shards_are_lost(void **state)
{
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 100);
    put_many(&r, 0, 30);
    assert_true(rp_test_settled_await(r.settled, 30));
    for (size_t i = 0; i < SHARDS; i++) rp_test_live_end(&r.live[i]);
    put_many(&r, 30, many());
    for (size_t i = 0; i < SHARDS; i++) await_away(&r, i);
    put_many(&r, 30 + many(), many());
    rp_test_live_restart(&r.live[0]);
    assert_true(rp_test_settled_await(r.settled, 30 + 2 * many()));
    rp_test_settled_expect(r.settled, 0, 30 + 2 * many(), RP_OK);
    assert_int_equal(size_of(&r, 0), 10 + 2 * many());
    close_rig(&r);
}

static void a_refusal_names_its_shard(void **state)
{
    const char *address;
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 0);
    for (size_t i = 1; i < SHARDS; i++) rp_test_live_add(&r.live[i], "some", 100);
    for (uint64_t i = 0; i < SHARDS; i++) {
        rp_sink_item item = rp_test_sink_item("some", i, 400);
        assert_ok_err(r.sink->class->put(r.sink, &item, 1, &r.err), &r.err);
    }
    assert_true(rp_test_settled_await(r.settled, SHARDS));
    address = rp_channel_address(r.line[0].channel);
    if (strncmp(r.settled->text, address, strlen(address)) != 0)
        fail_msg("%s is not in: %s", address, r.settled->text);
    assert_non_null(strstr(r.settled->text, "some"));
    close_rig(&r);
}

/* Waits until a shard can say why items wait for it. */
static void await_reason(rig *r, size_t shard, char *text, size_t size)
{
    do {
        (void)usleep(1000);
        r->sink->class->why(r->sink, text, size);
    } while (strstr(text, rp_channel_address(r->line[shard].channel)) == NULL);
}

static void only_shards_that_have_items_say_why(void **state)
{
    char text[4 * RP_ERROR_TEXT_BYTES];
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 0);
    put_many(&r, 0, 30);
    assert_true(rp_test_settled_await(r.settled, 30));
    rp_test_live_end(&r.live[1]);
    await_away(&r, 1);
    put_many(&r, 30, 30); /* for the others */
    assert_true(rp_test_settled_await(r.settled, 60));
    r.sink->class->why(r.sink, text, sizeof text);
    assert_string_equal(text, "");
    rp_test_live_end(&r.live[0]);
    rp_test_live_end(&r.live[2]);
    await_away(&r, 0);
    await_away(&r, 2);
    put_many(&r, 60, 30);
    for (size_t i = 0; i < SHARDS; i++) await_reason(&r, i, text, sizeof text);
    close_rig(&r);
}

static void restarts_under_load(void **state)
{
    enum { ROUNDS = 6 };
    const size_t count = rp_test_part(60000, rp_test_length(12000, 1800));
    rig r;

    (void)state;
    open_rig(&r, RP_SPREAD_TURNS, 0);
    for (size_t i = 0; i < ROUNDS; i++) {
        put_by(&r, i < ROUNDS / 2 ? 70 : 1, i * (count / ROUNDS), count / ROUNDS);
        rp_test_live_end(&r.live[i % SHARDS]);
        if (i % 2 == 0) (void)usleep(20000);
        rp_test_live_restart(&r.live[i % SHARDS]);
    }
    assert_true(rp_test_settled_await(r.settled, count));
    rp_test_settled_expect(r.settled, 0, count, RP_OK);
    assert_int_equal(size_of(&r, 0) + size_of(&r, 1) + size_of(&r, 2), count);
    close_rig(&r);
}

RP_TESTS(shard_sink)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_spread_in_turns),
        cmocka_unit_test(items_are_spread_by_key),
        cmocka_unit_test(a_lost_shard_is_skipped),
        cmocka_unit_test(items_of_a_lost_shard_go_to_the_others),
        cmocka_unit_test(items_of_a_shard_that_never_listened_go_to_the_others_at_once),
        cmocka_unit_test(a_lost_shard_keeps_only_what_was_sent_to_it),
        cmocka_unit_test(items_wait_when_all_shards_are_lost),
        cmocka_unit_test(a_refusal_names_its_shard),
        cmocka_unit_test(only_shards_that_have_items_say_why),
        cmocka_unit_test(restarts_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
