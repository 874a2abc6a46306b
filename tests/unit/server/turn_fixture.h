/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without a thread, whose turns are observed one by one, and two clients. */
#ifndef RP_TEST_TURN_FIXTURE_H
#define RP_TEST_TURN_FIXTURE_H

#include <sys/socket.h>
#include <unistd.h>

#include "server/core/connection.h"
#include "server/core/server.h"
#include "server/core/task.h"
#include "server/core/worker.h"
#include "support/fixture.h"
#include "support/live_server.h"
#include "table/table.h"
#include "util/clock.h"
#include "wire/fields.h"

enum {
    CALLS = 24,        /* of the peer */
    KEYS = 16 << 10,   /* of each call */
    MANY = 200 << 10,  /* keys of one large call */
    A_TURN = 64 << 10, /* keys or items in one turn, at most, besides one message */
    ITEMS = 20000,     /* in the table */
    JUNK = 1 << 20,    /* bytes of unknown fields in a message */
    UNIT_BYTES = 256,  /* bytes of messages that count as one key */
    LIMIT_S = 300,     /* only a hang takes so long */
};

/* A worker without a thread, and two clients: the peer and the bystander. */
typedef struct stage {
    rp_test_bed bed;
    rp_server *server;
    rp_worker *worker;
    rp_table *table, *queue;
    rp_test_client *peer, *bystander;
    rp_test_stream *asked; /* the call of the bystander, or the only one */
    rp_test_stream *calls[CALLS];
    size_t call_count;
    uint64_t sent; /* bytes of messages that were sent */
    rp_timer probe;
    bool (*is_done)(struct stage *s);
    int64_t until_ns;
    size_t open, most_ended;        /* calls: in the turn before; most less in one turn */
    int64_t changed, most_change;   /* items that were changed: so far; most in one turn */
    int64_t drawn, most_drawn;      /* items that were drawn, likewise */
    uint64_t written, most_written; /* messages that were sent, likewise */
    size_t open_when_answered;
    bool was_answered;
} stage;

static inline size_t count_open(const stage *s)
{
    return (size_t)rp_counter_get(&s->worker->metrics->streams);
}

/* The changes of all items so far. */
static inline int64_t count_changes(const stage *s)
{
    rp_table_info info = rp_test_info_of(s->table);

    return info.updates + info.inserts + info.deletes;
}

static inline void on_probe(rp_timer *timer)
{
    stage *s = (stage *)((char *)timer - offsetof(stage, probe));
    size_t open = count_open(s);
    int64_t changed = count_changes(s), drawn = rp_test_info_of(s->table).samples;
    uint64_t written = rp_counter_get(&s->worker->metrics->messages_written);

    if (s->open > open && s->open - open > s->most_ended) s->most_ended = s->open - open;
    if (changed - s->changed > s->most_change) s->most_change = changed - s->changed;
    if (drawn - s->drawn > s->most_drawn) s->most_drawn = drawn - s->drawn;
    if (written - s->written > s->most_written) s->most_written = written - s->written;
    s->open = open;
    s->changed = changed;
    s->drawn = drawn;
    s->written = written;
    if (s->peer != NULL) (void)rp_test_client_step(s->peer, 0);
    (void)rp_test_client_step(s->bystander, 0);
    if (s->asked != NULL && s->asked->is_over && !s->was_answered) {
        s->was_answered = true;
        s->open_when_answered = open;
    }
    assert_true(rp_now_ns() < s->until_ns);
    if (s->is_done(s))
        rp_loop_stop(s->worker->loop);
    else /* after deferred calls, which are due 1 ns after this turn */
        assert_ok(rp_loop_arm(s->worker->loop, timer, rp_loop_now(s->worker->loop) + 2));
}

static inline void run_until(stage *s, bool (*is_done)(stage *s))
{
    s->probe = (rp_timer){.on_due = on_probe};
    s->is_done = is_done;
    s->until_ns = rp_now_ns() + LIMIT_S * INT64_C(1000000000);
    assert_ok(rp_loop_arm(s->worker->loop, &s->probe, 0));
    rp_loop_run(s->worker->loop);
}

static inline bool has_greeted(stage *s)
{
    return s->peer->settings > 0 && s->bystander->settings > 0;
}

/* All bytes of messages have arrived. */
static inline bool has_arrived(stage *s)
{
    return rp_counter_get(&s->worker->metrics->bytes_read) >= s->sent &&
           count_open(s) == s->call_count;
}

static inline bool has_ended(stage *s)
{
    return count_open(s) == 0 && (s->asked == NULL || s->asked->is_over);
}

static inline rp_test_client *connect_one(stage *s)
{
    rp_test_client *client = rp_test_client_new(NULL);
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    atomic_fetch_add(&s->server->connection_count, 1);
    atomic_fetch_add(&s->worker->connection_count, 1);
    rp_connection_open(s->worker, fds[0], "peer", NULL);
    client->fd = fds[1];
    return client;
}

static inline void put_first_items(stage *s)
{
    enum { BATCH = 500 };
    rp_insert items[BATCH];

    for (uint64_t key = 0; key < ITEMS; key += BATCH) {
        for (uint64_t i = 0; i < BATCH; i++)
            items[i] = (rp_insert){.key = key + i, .priority = 1, .trajectory = s->bed.plain};
        assert_ok(rp_table_insert(s->table, items, BATCH, rp_wait_none(), NULL, NULL));
    }
}

static inline void open_stage(stage *s, const rp_server_limits *limits)
{
    rp_server_options options = {.loops = 1};
    rp_table_options table = rp_test_options("t", RP_FIFO, RP_FIFO, 1 << 20);
    rp_table_options queue = rp_test_options("q", RP_FIFO, RP_FIFO, 1 << 20);

    memset(s, 0, sizeof *s);
    rp_test_bed_init(&s->bed, NULL);
    s->table = rp_table_ref(rp_test_bed_table(&s->bed, &table));
    queue.max_times_sampled = 1;
    s->queue = rp_table_ref(rp_test_bed_table(&s->bed, &queue));
    put_first_items(s);
    options.alloc = &s->bed.alloc;
    if (limits != NULL) options.limits = *limits;
    assert_ok_err(rp_server_new(s->bed.store, &options, &s->server, &s->bed.err), &s->bed.err);
    atomic_store(&s->server->is_loaded, true);
    s->worker = &s->server->workers[0];
    assert_ok_err(rp_worker_init(s->worker, s->server, 0, &s->bed.err), &s->bed.err);
    s->peer = connect_one(s);
    s->bystander = connect_one(s);
    run_until(s, has_greeted);
}

static inline void close_stage(stage *s)
{
    while (s->worker->connections != NULL) rp_connection_close(s->worker->connections);
    rp_test_client_free(s->peer);
    rp_test_client_free(s->bystander);
    rp_table_unref(s->table);
    rp_table_unref(s->queue);
    rp_server_free(s->server);
    rp_test_bed_deinit(&s->bed);
}

static inline void put_items(rp_buf *out, uint64_t first, size_t count)
{
    rp_test_put_chunk(out, 1, 8);
    for (size_t i = 0; i < count; i++)
        rp_test_put_item(out, "t", first + ITEMS + i, 1.0, 1, 0, 1);
}

/* A small call of the bystander. */
static inline void ask(stage *s)
{
    rp_buf out;

    rp_buf_init(&out, &s->bed.alloc);
    rp_test_put_update(&out, "t", 1, 3.0);
    s->asked = rp_test_client_open(s->bystander, RP_TEST_REPLAY "Update");
    rp_test_stream_put(s->asked, &out);
    rp_test_stream_end(s->asked);
    rp_buf_deinit(&out);
}

/* Sends one whole call and runs until it is over. */
static inline rp_test_stream *call_once(stage *s, const char *path, rp_buf *message)
{
    rp_test_stream *call = rp_test_client_open(s->peer, path);

    rp_test_stream_put(call, message);
    rp_test_stream_end(call);
    s->changed = count_changes(s);
    s->most_change = 0;
    s->asked = call;
    run_until(s, has_ended);
    return call;
}

#endif
