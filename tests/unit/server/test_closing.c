/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of calls that end at the same moment: at their timeouts or deadlines, with their
 * table or with their connections. Each turn of the loop ends some of them, and another call
 * gets its response before the last of them has ended. */
#include "server/core/closing.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "server/core/connection.h"
#include "server/core/server.h"
#include "server/core/task.h"
#include "server/core/worker.h"
#include "support/fixture.h"
#include "support/h2_client.h"
#include "wire/request_write.h"

enum {
    PEERS = 4,
    A_TURN = 512,  /* calls that one turn ends */
    LIMIT_S = 300, /* only a hang takes so long */
    TIMEOUT_MS = 1000,
};

#define TABLE "q" /* one byte */

/* A worker without a thread, and its clients. The last one is the bystander. */
typedef struct stage {
    rp_test_bed bed;
    rp_server *server;
    rp_worker *worker;
    rp_table *table;
    rp_test_client *clients[PEERS + 1];
    rp_test_stream *asked; /* the bystander's call, once it has made one */
    rp_timer probe;        /* called in every turn */
    bool (*is_done)(struct stage *s);
    int64_t until_ns;
    size_t open, waiting;            /* in the turn before */
    size_t most_ended, most_waiting; /* calls less, and operations less, in one turn */
    size_t open_when_answered;       /* calls when the bystander had its answer */
    bool was_answered;
} stage;

/* Calls of all peers: those of several turns. */
static size_t total(void)
{
    return PEERS * rp_test_part(1000, 640);
}

static rp_test_client *bystander(const stage *s)
{
    return s->clients[PEERS];
}

static size_t count_open(const stage *s)
{
    return (size_t)rp_counter_get(&s->worker->metrics->streams);
}

static void note_less(size_t *most, size_t *before, size_t now)
{
    if (*before > now && *before - now > *most) *most = *before - now;
    *before = now;
}

static void on_probe(rp_timer *timer)
{
    stage *s = (stage *)((char *)timer - offsetof(stage, probe));

    note_less(&s->most_ended, &s->open, count_open(s));
    note_less(&s->most_waiting, &s->waiting, (size_t)rp_test_info_of(s->table).waiting_samples);
    for (size_t i = 0; i <= PEERS; i++)
        if (s->clients[i] != NULL) (void)rp_test_client_step(s->clients[i], 0);
    if (s->asked != NULL && s->asked->is_over && !s->was_answered) {
        s->was_answered = true;
        s->open_when_answered = s->open;
    }
    assert_true(rp_now_ns() < s->until_ns);
    if (s->is_done(s))
        rp_loop_stop(s->worker->loop);
    else
        assert_ok(rp_loop_arm(s->worker->loop, timer, rp_loop_now(s->worker->loop)));
}

static void run_until(stage *s, bool (*is_done)(stage *s))
{
    s->probe = (rp_timer){.on_due = on_probe};
    s->is_done = is_done;
    s->until_ns = rp_now_ns() + LIMIT_S * INT64_C(1000000000);
    assert_ok(rp_loop_arm(s->worker->loop, &s->probe, 0));
    rp_loop_run(s->worker->loop);
}

static bool has_greeted(stage *s)
{
    for (size_t i = 0; i <= PEERS; i++)
        if (s->clients[i]->settings == 0) return false;
    return true;
}

static bool has_read_all(stage *s)
{
    return rp_counter_get(&s->worker->metrics->messages_read) >= total();
}

static bool has_ended_all(stage *s)
{
    return s->was_answered && count_open(s) == 0;
}

static void open_stage(stage *s)
{
    rp_server_options options = {.loops = 1};
    rp_table_options table = rp_test_options(TABLE, RP_FIFO, RP_FIFO, 1000);

    memset(s, 0, sizeof *s);
    rp_test_bed_init(&s->bed, NULL);
    s->table = rp_table_ref(rp_test_bed_table(&s->bed, &table));
    options.alloc = &s->bed.alloc;
    assert_ok_err(rp_server_new(s->bed.store, &options, &s->server, &s->bed.err), &s->bed.err);
    atomic_store(&s->server->is_loaded, true);
    s->worker = &s->server->workers[0];
    assert_ok_err(rp_worker_init(s->worker, s->server, 0, &s->bed.err), &s->bed.err);
    for (size_t i = 0; i <= PEERS; i++) {
        int fds[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
        atomic_fetch_add(&s->server->connection_count, 1);
        atomic_fetch_add(&s->worker->connection_count, 1);
        rp_connection_open(s->worker, fds[0], "peer", NULL);
        s->clients[i] = rp_test_client_new(NULL);
        s->clients[i]->fd = fds[1];
    }
    run_until(s, has_greeted);
}

/* Every second connection has Sample calls, the others SampleStream. */
static void start_calls(stage *s, int64_t timeout_ms)
{
    const rp_sample_options options = {.count = 1};
    rp_buf out;

    rp_buf_init(&out, &s->bed.alloc);
    for (size_t i = 0; i < total(); i++) {
        bool is_stream = i % PEERS % 2 == 0;
        rp_test_stream *call = rp_test_client_open(
            s->clients[i % PEERS], is_stream ? "/deepmind.reverb.ReverbService/SampleStream"
                                             : "/reprise.v1.Replay/Sample");

        rp_buf_clear(&out);
        if (is_stream)
            rp_wire_write_sample_request(&out, TABLE, 1, timeout_ms);
        else
            rp_wire_write_draw(&out, TABLE, &options, timeout_ms, false);
        rp_test_stream_send(call, out.data, out.size);
        rp_test_stream_end(call);
    }
    rp_buf_deinit(&out);
    run_until(s, has_read_all);
    s->most_ended = s->most_waiting = 0;
}

/* The request is there when the next turn begins. */
static void ask(stage *s)
{
    s->asked = rp_test_client_open(bystander(s), "/deepmind.reverb.ReverbService/ServerInfo");
    rp_test_stream_send(s->asked, "", 0);
    rp_test_stream_end(s->asked);
    (void)rp_test_client_step(bystander(s), 0);
}

static void expect_in_pieces(const stage *s)
{
    assert_int_equal(s->asked->status, RP_OK);
    assert_true(s->open_when_answered > total() / 2);
    /* Between two looks the end of one turn and the beginning of the next may end some. */
    assert_true(s->most_ended <= 2 * A_TURN);
    assert_int_equal(rp_test_info_of(s->table).waiting_samples, 0);
    assert_int_equal(s->worker->outstanding, 0);
}

static void expect_status(const stage *s, int status)
{
    for (size_t i = 0; i < PEERS; i++)
        for (const rp_test_stream *call = s->clients[i]->calls; call != NULL; call = call->next)
            assert_int_equal(call->status, status);
}

static void close_stage(stage *s)
{
    while (s->worker->connections != NULL) rp_connection_close(s->worker->connections);
    for (size_t i = 0; i <= PEERS; i++) rp_test_client_free(s->clients[i]);
    rp_table_unref(s->table);
    rp_server_free(s->server);
    rp_test_bed_deinit(&s->bed);
}

static void timeouts_of_one_moment_end_calls_in_pieces(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, TIMEOUT_MS);
    /* The loop does not run while they pass. */
    for (int64_t due_ns = rp_now_ns() + TIMEOUT_MS * INT64_C(1000000); rp_now_ns() < due_ns;)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);

    ask(&s);
    run_until(&s, has_ended_all);

    expect_in_pieces(&s);
    assert_true(s.most_waiting <= 2 * A_TURN);
    expect_status(&s, RP_DEADLINE);
    close_stage(&s);
}

static void deadlines_of_one_moment_end_calls_in_pieces(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, -1);
    for (rp_connection *c = s.worker->connections; c != NULL; c = c->next)
        for (rp_task *task = c->tasks; task != NULL; task = task->next)
            assert_ok(rp_loop_arm(s.worker->loop, &task->deadline, 0));

    ask(&s);
    run_until(&s, has_ended_all);

    expect_in_pieces(&s);
    assert_true(s.most_waiting <= 2 * A_TURN);
    expect_status(&s, RP_DEADLINE);
    close_stage(&s);
}

static void calls_of_a_dropped_table_end_in_pieces(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, -1);
    assert_ok_err(rp_store_drop_table(s.bed.store, (rp_string){TABLE, 1}, &s.bed.err),
                  &s.bed.err);

    ask(&s);
    run_until(&s, has_ended_all);

    expect_in_pieces(&s);
    expect_status(&s, RP_CANCELLED);
    close_stage(&s);
}

static void unblocked_calls_continue_in_pieces(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, -1);
    rp_test_put(s.table, 1, 1, s.bed.plain);
    assert_int_equal(rp_test_info_of(s.table).waiting_samples, 0);

    ask(&s);
    run_until(&s, has_ended_all);

    expect_in_pieces(&s);
    expect_status(&s, RP_OK);
    close_stage(&s);
}

static void calls_of_closed_connections_end_in_pieces(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, -1);
    for (size_t i = 0; i < PEERS; i++) {
        rp_test_client_free(s.clients[i]);
        s.clients[i] = NULL;
    }

    ask(&s);
    run_until(&s, has_ended_all);

    expect_in_pieces(&s);
    assert_true(s.most_waiting <= 2 * A_TURN);
    assert_int_equal(rp_counter_get(&s.worker->metrics->connections), 1);
    close_stage(&s);
}

/* What is due or done for a call whose connection is closed finds it alive, or not at all. */
static void closed_connections_may_have_unblocked_calls(void **state)
{
    stage s;

    (void)state;
    open_stage(&s);
    start_calls(&s, -1);
    for (rp_connection *c = s.worker->connections; c != NULL; c = c->next)
        for (rp_task *task = c->tasks; task != NULL; task = task->next)
            if ((uintptr_t)task / sizeof(void *) % 2 == 0)
                assert_ok(rp_loop_arm(s.worker->loop, &task->deadline, 0));
    for (size_t i = 0; i < PEERS; i++) {
        rp_test_client_free(s.clients[i]);
        s.clients[i] = NULL;
    }
    rp_test_put(s.table, 1, 1, s.bed.plain);

    ask(&s);
    run_until(&s, has_ended_all);

    assert_int_equal(s.asked->status, RP_OK);
    assert_int_equal(s.worker->outstanding, 0);
    close_stage(&s);
}

RP_TESTS(closing)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timeouts_of_one_moment_end_calls_in_pieces),
        cmocka_unit_test(deadlines_of_one_moment_end_calls_in_pieces),
        cmocka_unit_test(calls_of_a_dropped_table_end_in_pieces),
        cmocka_unit_test(unblocked_calls_continue_in_pieces),
        cmocka_unit_test(calls_of_closed_connections_end_in_pieces),
        cmocka_unit_test(closed_connections_may_have_unblocked_calls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
