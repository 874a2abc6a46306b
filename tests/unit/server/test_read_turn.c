/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes a loop reads from its connections in one turn: small frames count for more
 * than their bytes, and connections share the turn. */
#include <sys/socket.h>
#include <unistd.h>

#include "server/core/connection.h"
#include "server/core/server.h"
#include "server/core/server_state.h"
#include "server/core/worker.h"
#include "support/fixture.h"
#include "support/h2_client.h"

enum {
    PEERS = 16,
    PART_BYTES = 64, /* of a message in one frame: no fragment yet */
    PARTS = 400,     /* in one write */
};

/* A worker without a thread. */
typedef struct stage {
    rp_test_bed bed;
    rp_server *server;
    rp_worker *worker;
    int peers[PEERS];
    rp_test_client *clients[PEERS];
    size_t filled[PEERS]; /* bytes, by fill() */
} stage;

static rp_loop *stopped_loop;

static void stop_loop(rp_timer *timer)
{
    (void)timer;
    rp_loop_stop(stopped_loop);
}

/* Runs one turn of the loop: whatever is ready now. */
static void run_turn(rp_loop *loop)
{
    rp_timer now = {.on_due = stop_loop};

    stopped_loop = loop;
    assert_ok(rp_loop_arm(loop, &now, 0));
    rp_loop_run(loop);
}

static void send_all(int fd, const uint8_t *data, size_t size)
{
    assert_int_equal(send(fd, data, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void send_output(stage *s, size_t i)
{
    const uint8_t *out;
    size_t size;

    while ((out = rp_test_client_output(s->clients[i], &size)) != NULL) {
        send_all(s->peers[i], out, size);
        rp_test_client_sent(s->clients[i], size);
    }
}

/* A client that has opened an insert stream, on stream 1, and begun a message. */
static void add_peer(stage *s, size_t i)
{
    static const uint8_t begin[] = {0, 0,    5, 0, 0, 0, 0, 0, 1, /* DATA on stream 1 */
                                    0, 0x01, 0, 0, 0};            /* much is to follow */
    uint8_t data[4096];
    int fds[2];
    ssize_t n;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    s->peers[i] = fds[1];
    atomic_fetch_add(&s->server->connection_count, 1);
    atomic_fetch_add(&s->worker->connection_count, 1);
    rp_connection_open(s->worker, fds[0], "peer", NULL);
    s->clients[i] = rp_test_client_new(NULL);
    (void)rp_test_client_open(s->clients[i], "/deepmind.reverb.ReverbService/InsertStream");
    send_output(s, i);
    run_turn(s->worker->loop);
    run_turn(s->worker->loop);
    n = recv(s->peers[i], data, sizeof data, MSG_DONTWAIT);
    assert_true(n > 0);
    rp_test_client_receive(s->clients[i], data, (size_t)n); /* the server's settings */
    send_output(s, i);
    send_all(fds[1], begin, sizeof begin);
}

static void open_stage(stage *s, size_t peers)
{
    rp_server_options options = {.loops = 1};

    memset(s, 0, sizeof *s);
    rp_test_bed_init(&s->bed, NULL);
    options.alloc = &s->bed.alloc;
    assert_ok_err(rp_server_new(s->bed.store, &options, &s->server, &s->bed.err), &s->bed.err);
    atomic_store(&s->server->is_loaded, true);
    s->worker = &s->server->workers[0];
    assert_ok_err(rp_worker_init(s->worker, s->server, 0, &s->bed.err), &s->bed.err);
    for (size_t i = 0; i < peers; i++) add_peer(s, i);
    for (int i = 0; i < 3; i++) run_turn(s->worker->loop); /* all is read */
}

static void close_stage(stage *s)
{
    while (s->worker->connections != NULL) rp_connection_close(s->worker->connections);
    for (size_t i = 0; i < PEERS; i++)
        if (s->clients[i] != NULL) {
            rp_test_client_free(s->clients[i]);
            (void)close(s->peers[i]);
        }
    rp_server_free(s->server);
    rp_test_bed_deinit(&s->bed);
}

/* Fills the socket of a peer with small parts of its message. Returns how many bytes. */
static size_t fill(stage *s, size_t i)
{
    static uint8_t frames[PARTS][9 + PART_BYTES];
    size_t sum = 0;

    for (size_t j = 0; j < PARTS; j++) {
        frames[j][2] = PART_BYTES;
        frames[j][8] = 1;
    }
    for (;;) {
        size_t at = s->filled[i] % sizeof frames;
        ssize_t n = send(s->peers[i], (const uint8_t *)frames + at, sizeof frames - at,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) return sum;
        sum += (size_t)n;
        s->filled[i] += (size_t)n;
    }
}

static uint64_t bytes_read(const stage *s)
{
    return rp_counter_get(&s->worker->metrics->bytes_read);
}

static void connections_with_small_frames_share_a_turn(void **state)
{
    stage s;
    size_t waiting = 0;
    uint64_t before;

    (void)state;
    open_stage(&s, PEERS);
    before = bytes_read(&s);
    for (size_t i = 0; i < PEERS; i++) waiting += fill(&s, i);
    run_turn(s.worker->loop); /* the loop sees how many they are */
    for (size_t i = 0; i < PEERS; i++) waiting += fill(&s, i);
    waiting -= bytes_read(&s) - before;
    assert_true(waiting > 3 * PEERS * RP_LINK_ROOM); /* or there is nothing to be seen */

    before = bytes_read(&s);
    run_turn(s.worker->loop);
    assert_true(bytes_read(&s) > before);
    assert_true(bytes_read(&s) - before <= 2 * PEERS * RP_LINK_ROOM);
    assert_int_equal(rp_counter_get(&s.worker->metrics->abuse[RP_ABUSE_FRAGMENT]), 0);
    close_stage(&s);
}

/* Alone, a connection is read to the end of what there is. */
static void a_single_connection_has_the_whole_turn(void **state)
{
    stage s;
    size_t waiting;
    uint64_t before;

    (void)state;
    open_stage(&s, 1);
    (void)fill(&s, 0);
    run_turn(s.worker->loop);
    waiting = fill(&s, 0);

    before = bytes_read(&s);
    run_turn(s.worker->loop);
    assert_true(bytes_read(&s) - before >= waiting);
    close_stage(&s);
}

RP_TESTS(read_turn)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_with_small_frames_share_a_turn),
        cmocka_unit_test(a_single_connection_has_the_whole_turn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
