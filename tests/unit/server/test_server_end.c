/* SPDX-License-Identifier: Apache-2.0 */
/* How a server ends: it drains, or stops at once, with operations that wait in its tables. */
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "reprise/wait.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "table/table.h"

enum { SECOND = 1000000000 };

/* Streams that wait: one that inserts into a full queue, one that samples from an empty table.
 */
typedef struct waiters {
    rp_test_client *client;
    rp_test_stream *insert, *sample;
} waiters;

static waiters park(rp_test_live *live)
{
    waiters w = {.client = rp_test_live_connect(live)};
    rp_buf message;

    assert_non_null(w.client);
    rp_buf_init(&message, rp_allocator_default());
    w.insert = rp_test_client_open(w.client, RP_TEST_REVERB "InsertStream");
    for (uint64_t key = 1; key <= 6; key++) {
        rp_test_put_insert(&message, "queue", key, 50);
        rp_test_stream_put(w.insert, &message);
    }
    w.sample = rp_test_client_open(w.client, RP_TEST_REVERB "SampleStream");
    rp_test_put_sample(&message, "strict", 3, -1);
    rp_test_stream_put(w.sample, &message);
    assert_true(rp_test_await_confirmed(w.insert, 4));
    assert_true(rp_test_live_await(live, "strict", 0, 1));
    for (int i = 0; i < 1000 && rp_test_live_info(live, "queue").waiting_inserts == 0; i++)
        rp_test_client_idle(w.client, 1);
    assert_true(rp_test_live_info(live, "queue").waiting_inserts >= 1);
    rp_buf_deinit(&message);
    return w;
}

static bool can_connect(const rp_test_live *live)
{
    rp_test_client *client = rp_test_live_connect(live);
    bool ok = client != NULL &&
              rp_test_client_unary(client, "/grpc.health.v1.Health/Check", "", 0) == RP_OK;

    rp_test_client_free(client);
    return ok;
}

typedef struct drainer {
    rp_server *server;
    int64_t grace_ms, took_ns;
    atomic_bool is_done;
    pthread_t thread;
} drainer;

static void *drain(void *user)
{
    drainer *d = user;
    int64_t began_ns = rp_now_ns();

    rp_server_drain(d->server, d->grace_ms);
    d->took_ns = rp_now_ns() - began_ns;
    atomic_store(&d->is_done, true);
    return NULL;
}

static void begin_drain(drainer *d, rp_server *server, int64_t grace_ms)
{
    *d = (drainer){.server = server, .grace_ms = grace_ms};
    assert_int_equal(pthread_create(&d->thread, NULL, drain, d), 0);
}

static void an_idle_server_drains_at_once(void **state)
{
    (void)state;
    rp_test_live live;
    int64_t began_ns;

    rp_test_live_start(&live, NULL);
    began_ns = rp_now_ns();
    rp_server_drain(live.server, 10000);
    assert_true(rp_now_ns() - began_ns < 5LL * SECOND);
    assert_false(can_connect(&live));
    rp_server_drain(live.server, 10000); /* again: nothing */
    rp_test_live_stop(&live);
}

static void connections_without_calls_are_not_awaited(void **state)
{
    (void)state;
    rp_test_live live;
    rp_test_client *clients[4];
    drainer d;

    rp_test_live_start(&live, NULL);
    for (int i = 0; i < 4; i++) {
        clients[i] = rp_test_live_connect(&live);
        assert_int_equal(
            rp_test_client_unary(clients[i], "/grpc.health.v1.Health/Check", "", 0), RP_OK);
    }
    begin_drain(&d, live.server, 20000);
    for (int i = 0; i < 4; i++) {
        while (rp_test_client_step(clients[i], 100)) {}
        assert_true(clients[i]->goes_away);
        assert_int_equal(clients[i]->goaway_code, 0);
    }
    (void)pthread_join(d.thread, NULL);
    assert_true(d.took_ns < 10LL * SECOND);
    for (int i = 0; i < 4; i++) rp_test_client_free(clients[i]);
    rp_test_live_stop(&live);
}

static void calls_that_end_in_time_are_not_cut_off(void **state)
{
    (void)state;
    rp_test_live live;
    waiters w;
    drainer d;
    rp_buf message;

    rp_buf_init(&message, rp_allocator_default());
    rp_test_live_start(&live, NULL);
    w = park(&live);
    begin_drain(&d, live.server, 20000);
    while (!w.client->goes_away && rp_test_client_step(w.client, 100)) {}
    assert_true(w.client->goes_away);
    /* what waits becomes possible */
    rp_table *strict = rp_test_table(live.store, "strict");
    rp_trajectory *trajectory = rp_test_blob_trajectory(&live.alloc, 9, 1, 50);
    rp_test_put(strict, 9, 1.0, trajectory);
    rp_trajectory_unref(trajectory);
    for (int i = 0; i < 2; i++) assert_true(rp_test_live_take(&live, "queue"));
    assert_true(rp_test_await_confirmed(w.insert, 6));
    assert_true(rp_test_await_sampled(w.sample, 3));
    rp_test_stream_end(w.insert);
    rp_test_stream_end(w.sample);
    assert_true(rp_test_stream_wait(w.insert) && rp_test_stream_wait(w.sample));
    assert_int_equal(w.insert->status, RP_OK);
    assert_int_equal(w.sample->status, RP_OK);
    (void)pthread_join(d.thread, NULL);
    assert_true(d.took_ns < 15LL * SECOND);
    rp_test_client_free(w.client);
    rp_test_live_stop(&live);
    rp_buf_deinit(&message);
}

static void calls_that_outlast_the_drain_end_unavailable(void **state)
{
    (void)state;
    rp_test_live live;
    waiters w[3];
    drainer d;

    rp_test_live_start(&live, NULL);
    w[0] = park(&live);
    begin_drain(&d, live.server, 300);
    while (rp_test_client_step(w[0].client, 100)) {}
    (void)pthread_join(d.thread, NULL);
    assert_true(d.took_ns >= 300000000LL);
    assert_int_equal(w[0].insert->status, RP_UNAVAILABLE);
    assert_int_equal(w[0].sample->status, RP_UNAVAILABLE);
    assert_string_equal(w[0].sample->text, "the server is shutting down");
    assert_int_equal(rp_test_live_info(&live, "queue").waiting_inserts, 0);
    assert_int_equal(rp_test_live_info(&live, "strict").waiting_samples, 0);
    assert_int_equal(rp_test_live_info(&live, "queue").size, 4); /* the store is as it was */
    rp_test_client_free(w[0].client);
    rp_test_live_stop(&live);
}

static void a_drain_may_be_awaited_in_parts(void **state)
{
    (void)state;
    rp_test_live live;
    size_t calls = 0;
    waiters w;

    rp_test_live_start(&live, NULL);
    w = park(&live);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rp_server_drain_wait(live.server, rp_wait_ms(20), &calls),
                         RP_DEADLINE);
        assert_int_equal(calls, 2); /* an insert and a sample */
    }
    assert_false(can_connect(&live));
    while (!w.client->goes_away && rp_test_client_step(w.client, 100)) {}
    assert_true(w.client->goes_away);
    rp_test_client_free(w.client);
    assert_int_equal(rp_server_drain_wait(live.server, rp_wait_ms(20000), &calls), RP_OK);
    assert_int_equal(calls, 0);
    assert_int_equal(rp_server_drain_wait(live.server, rp_wait_none(), NULL), RP_OK);
    rp_test_live_stop(&live);
}

static void new_calls_are_refused_while_draining(void **state)
{
    (void)state;
    rp_test_live live;
    waiters w;
    drainer d;
    rp_test_stream *late;

    rp_test_live_start(&live, NULL);
    w = park(&live);
    begin_drain(&d, live.server, 1000);
    /* sent before the notice has come, so that the client does not know yet */
    for (int i = 0; i < 1000 && can_connect(&live); i++) {}
    late = rp_test_client_open(w.client, RP_TEST_REVERB "ServerInfo");
    rp_test_stream_send(late, "", 0);
    rp_test_stream_end(late);
    while (rp_test_client_step(w.client, 50)) {}
    assert_true(late->status == RP_UNAVAILABLE || late->status == -1);
    assert_true(late->message_count == 0);
    (void)pthread_join(d.thread, NULL);
    assert_false(can_connect(&live));
    rp_test_client_free(w.client);
    rp_test_live_stop(&live);
}

static void freeing_ends_waiting_calls(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        rp_test_live live;
        waiters w;

        rp_test_live_start(&live, NULL);
        w = park(&live);
        rp_test_live_end(&live);
        assert_int_equal(rp_test_live_info(&live, "queue").waiting_inserts, 0);
        assert_int_equal(rp_test_live_info(&live, "strict").waiting_samples, 0);
        while (rp_test_client_step(w.client, 100)) {}
        assert_int_equal(w.insert->status, RP_UNAVAILABLE);
        assert_int_equal(w.sample->status, RP_UNAVAILABLE);
        rp_test_client_free(w.client);
        rp_test_live_stop(&live);
    }
}

typedef struct consumer {
    rp_test_live *live;
    const char *table;
    atomic_bool stop;
    size_t taken;
    pthread_t thread;
} consumer;

static void *consume(void *user)
{
    consumer *c = user;

    while (!atomic_load(&c->stop)) {
        if (rp_test_live_take(c->live, c->table))
            c->taken++;
        else
            (void)sched_yield();
    }
    return NULL;
}

/* Others complete operations at the very moment when the server withdraws them. */
static void operations_may_complete_while_the_server_is_freed(void **state)
{
    enum { CLIENTS = 6, MESSAGES = 40 };
    (void)state;
    size_t rounds = rp_test_scaled(30, 3);

    for (size_t round = 0; round < rounds; round++) {
        rp_test_live live;
        rp_test_client *clients[CLIENTS];
        consumer consumers[2];
        rp_buf message;

        rp_buf_init(&message, rp_allocator_default());
        rp_test_live_start(&live, NULL);
        for (uint64_t i = 0; i < CLIENTS; i++) {
            rp_test_stream *insert, *sample;
            clients[i] = rp_test_live_connect(&live);
            insert = rp_test_client_open(clients[i], RP_TEST_REVERB "InsertStream");
            sample = rp_test_client_open(clients[i], RP_TEST_REVERB "SampleStream");
            for (uint64_t k = 0; k < MESSAGES; k++) {
                rp_test_put_insert(&message, k % 2 == 0 ? "queue" : "slow",
                                   1 + i * MESSAGES + k, 30);
                rp_test_stream_put(insert, &message);
            }
            rp_test_put_sample(&message, i % 2 == 0 ? "slow" : "queue", 1000, -1);
            rp_test_stream_put(sample, &message);
            (void)rp_test_client_step(clients[i], 1);
        }
        for (int i = 0; i < 2; i++) {
            consumers[i] = (consumer){.live = &live, .table = i == 0 ? "queue" : "slow"};
            assert_int_equal(pthread_create(&consumers[i].thread, NULL, consume, &consumers[i]),
                             0);
        }
        for (size_t k = 0; k < round % 7; k++)
            for (int i = 0; i < CLIENTS; i++) (void)rp_test_client_step(clients[i], 1);
        rp_test_live_end(&live);
        for (int i = 0; i < 2; i++) {
            atomic_store(&consumers[i].stop, true);
            (void)pthread_join(consumers[i].thread, NULL);
        }
        for (int i = 0; i < CLIENTS; i++) rp_test_client_free(clients[i]);
        rp_test_live_stop(&live);
        rp_buf_deinit(&message);
    }
}

/* The same when the clients leave and the server goes on. */
static void operations_may_complete_while_their_calls_are_cancelled(void **state)
{
    (void)state;
    size_t rounds = rp_test_scaled(100, 10);
    rp_test_live live;
    consumer c;

    rp_test_live_start(&live, NULL);
    c = (consumer){.live = &live, .table = "queue"};
    assert_int_equal(pthread_create(&c.thread, NULL, consume, &c), 0);
    for (size_t round = 0; round < rounds; round++) {
        rp_test_client *client = rp_test_live_connect(&live);
        rp_test_stream *stream = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
        rp_buf message;

        rp_buf_init(&message, rp_allocator_default());
        for (uint64_t k = 1; k <= 20; k++) {
            rp_test_put_insert(&message, "queue", k, 30);
            rp_test_stream_put(stream, &message);
        }
        for (size_t k = 0; k < round % 5; k++) (void)rp_test_client_step(client, 1);
        if (round % 2 == 0) {
            rp_test_stream_reset(stream, NGHTTP2_CANCEL);
            (void)rp_test_client_step(client, 0);
        }
        rp_test_client_free(client);
        rp_buf_deinit(&message);
    }
    assert_true(rp_test_live_await(&live, "queue", 0, 0));
    atomic_store(&c.stop, true);
    (void)pthread_join(c.thread, NULL);
    rp_test_live_stop(&live);
}

/* A table goes while operations wait in it. */
static void a_table_may_be_dropped_while_streams_use_it(void **state)
{
    (void)state;
    rp_test_live live;
    waiters w;

    rp_test_live_start(&live, NULL);
    w = park(&live);
    assert_ok(rp_store_drop_table(live.store, (rp_string){"queue", 5}, NULL));
    assert_ok(rp_store_drop_table(live.store, (rp_string){"strict", 6}, NULL));
    assert_true(rp_test_stream_wait_messages(w.insert, SIZE_MAX) || w.insert->status >= 0);
    for (int i = 0; i < 100 && (w.insert->status < 0 || w.sample->status < 0); i++)
        (void)rp_test_client_step(w.client, 100);
    assert_int_equal(w.insert->status, RP_CANCELLED);
    assert_int_equal(w.sample->status, RP_CANCELLED);
    assert_int_equal(rp_test_client_unary(w.client, RP_TEST_REVERB "Reset", "\12\5queue", 7),
                     RP_NOT_FOUND);
    rp_test_client_free(w.client);
    rp_test_live_stop(&live);
}

/* They are idle, and stay open. */
static void streams_release_a_table_that_is_dropped(void **state)
{
    static const char drop[] = "\12\6replay";
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *insert, *sample;
    rp_table *table;
    rp_buf message;

    (void)state;
    rp_test_live_start(&live, NULL);
    table = rp_table_ref(rp_test_table(live.store, "replay"));
    assert_non_null(client = rp_test_live_connect(&live));
    rp_buf_init(&message, rp_allocator_default());
    insert = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
    rp_test_put_insert(&message, "replay", 1, 50);
    rp_test_stream_put(insert, &message);
    assert_true(rp_test_await_confirmed(insert, 1));
    sample = rp_test_client_open(client, RP_TEST_REVERB "SampleStream");
    rp_test_put_sample(&message, "replay", 1, -2);
    rp_test_stream_put(sample, &message);
    assert_true(rp_test_await_sampled(sample, 1));
    assert_int_equal(
        rp_test_client_unary(client, RP_TEST_REPLAY "DropTable", drop, sizeof drop - 1), RP_OK);
    for (int i = 0; i < 1000 && !rp_refcount_is_one(&table->refs); i++)
        (void)rp_test_client_step(client, 10);
    assert_true(rp_refcount_is_one(&table->refs));

    rp_test_put_insert(&message, "replay", 2, 50); /* there is none of that name */
    rp_test_stream_put(insert, &message);
    rp_test_put_sample(&message, "replay", 1, -2);
    rp_test_stream_put(sample, &message);
    for (int i = 0; i < 1000 && (insert->status < 0 || sample->status < 0); i++)
        (void)rp_test_client_step(client, 10);
    assert_int_equal(insert->status, RP_NOT_FOUND);
    assert_int_equal(sample->status, RP_NOT_FOUND);
    rp_table_unref(table);
    rp_buf_deinit(&message);
    rp_test_client_free(client);
    rp_test_live_stop(&live);
}

/* A stream that goes from table to table, more of them than it remembers, and of these one is
 * made anew. */
static void a_stream_finds_a_recreated_table(void **state)
{
    enum { TABLES = 11 };
    rp_test_live live;
    rp_test_client *client;
    rp_test_stream *stream;
    char names[TABLES][8];
    uint64_t key = 1;
    rp_buf message;

    (void)state;
    rp_test_live_start(&live, NULL);
    for (int i = 0; i < TABLES; i++) {
        rp_table_options o = rp_test_options(names[i], RP_UNIFORM, RP_FIFO, 100);

        (void)snprintf(names[i], sizeof names[i], "t%d", i);
        assert_ok(rp_store_add_table(live.store, &o, NULL, NULL));
    }
    client = rp_test_live_connect(&live);
    assert_non_null(client);
    rp_buf_init(&message, rp_allocator_default());
    stream = rp_test_client_open(client, RP_TEST_REVERB "InsertStream");
    for (int count = 2; count <= TABLES; count += 3)
        for (int round = 0; round < 3; round++) {
            rp_table_options o = rp_test_options(names[0], RP_UNIFORM, RP_FIFO, 100);

            for (int i = 0; i < 2 * count; i++, key++) {
                rp_test_put_insert(&message, names[i % count], key, 50);
                rp_test_stream_put(stream, &message);
            }
            assert_true(rp_test_await_confirmed(stream, key - 1));
            assert_int_equal(rp_test_live_info(&live, names[0]).size, 2);
            assert_ok(rp_store_drop_table(live.store, (rp_string){names[0], 2}, NULL));
            assert_ok(rp_store_add_table(live.store, &o, NULL, NULL));
        }
    assert_int_equal(rp_test_live_info(&live, names[1]).size, 4 * 3 * 2);
    assert_int_equal(stream->status, -1);
    rp_test_client_free(client);
    rp_buf_deinit(&message);
    rp_test_live_stop(&live);
}

static void the_store_may_be_closed_while_the_server_runs(void **state)
{
    (void)state;
    rp_test_live live;
    waiters w;

    rp_test_live_start(&live, NULL);
    w = park(&live);
    rp_store_close(live.store);
    for (int i = 0; i < 100 && (w.insert->status < 0 || w.sample->status < 0); i++)
        (void)rp_test_client_step(w.client, 100);
    assert_int_equal(w.insert->status, RP_CANCELLED);
    assert_int_equal(w.sample->status, RP_CANCELLED);
    rp_test_client_free(w.client);
    rp_test_live_stop(&live);
}

RP_TESTS(server_end)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_idle_server_drains_at_once),
        cmocka_unit_test(connections_without_calls_are_not_awaited),
        cmocka_unit_test(calls_that_end_in_time_are_not_cut_off),
        cmocka_unit_test(calls_that_outlast_the_drain_end_unavailable),
        cmocka_unit_test(a_drain_may_be_awaited_in_parts),
        cmocka_unit_test(new_calls_are_refused_while_draining),
        cmocka_unit_test(freeing_ends_waiting_calls),
        cmocka_unit_test(operations_may_complete_while_the_server_is_freed),
        cmocka_unit_test(operations_may_complete_while_their_calls_are_cancelled),
        cmocka_unit_test(a_table_may_be_dropped_while_streams_use_it),
        cmocka_unit_test(streams_release_a_table_that_is_dropped),
        cmocka_unit_test(a_stream_finds_a_recreated_table),
        cmocka_unit_test(the_store_may_be_closed_while_the_server_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
