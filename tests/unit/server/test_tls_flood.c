/* SPDX-License-Identifier: Apache-2.0 */
/* Floods inside TLS: records without data are charged to the abuse budget, one connection's
 * flood is handled in bounded steps, and handshakes leave turns to open connections. */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/core/connection.h"
#include "server/core/server.h"
#include "server/core/server_state.h"
#include "server/core/worker.h"
#include "support/certificates.h"
#include "support/fixture.h"
#include "support/h2_client.h"

enum {
    WAIT_S = 120,
    FLOOD = 20000,       /* KeyUpdates a connection tries to send */
    CHARGED_MOST = 4000, /* events that a connection is charged before it is closed */
    ATTACKERS = 8,
    HANDSHAKES = 12,
};

typedef struct stage {
    rp_test_bed bed;
    rp_test_certificates certificates;
    rp_server *server;
    SSL_CTX *context;
} stage;

static rp_server_options tls_options(stage *s)
{
    rp_test_identity *identity = calloc(1, sizeof *identity);
    rp_server_options options = {.loops = 1};

    *identity = rp_test_issue(&s->certificates, "server", "localhost", 9);
    options.alloc = &s->bed.alloc;
    options.security.certificate_file = identity->certificate;
    options.security.key_file = identity->key;
    return options;
}

static void open_stage(stage *s, bool listens)
{
    static const char *const address = "127.0.0.1:0";
    rp_server_options options;

    rp_test_bed_init(&s->bed, NULL);
    rp_test_certificates_init(&s->certificates);
    options = tls_options(s);
    if (listens) {
        options.addresses = &address;
        options.address_count = 1;
        assert_ok_err(rp_server_start(s->bed.store, &options, &s->server, &s->bed.err),
                      &s->bed.err);
    } else {
        assert_ok_err(rp_server_new(s->bed.store, &options, &s->server, &s->bed.err),
                      &s->bed.err);
    }
    free((void *)(uintptr_t)options.security.certificate_file);
    s->context = SSL_CTX_new(TLS_client_method());
    assert_non_null(s->context);
    assert_int_equal(SSL_CTX_set_alpn_protos(s->context, (const uint8_t *)"\x02h2", 3), 0);
}

static void close_stage(stage *s)
{
    SSL_CTX_free(s->context);
    rp_server_free(s->server);
    rp_test_certificates_deinit(&s->certificates);
    rp_test_bed_deinit(&s->bed);
}

static uint64_t charged(stage *s)
{
    rp_loop_metrics sums;

    rp_metrics_sum(s->server->metrics, &sums);
    return rp_counter_get(&sums.abuse[RP_ABUSE_TLS_RECORD]);
}

static uint64_t refused(stage *s)
{
    rp_loop_metrics sums;

    rp_metrics_sum(s->server->metrics, &sums);
    return rp_counter_get(&sums.refusals[RP_REFUSED_ABUSE]);
}

typedef struct peer {
    int fd;
    SSL *ssl;
    rp_test_client *client; /* its HTTP/2 */
} peer;

static peer dial(stage *s)
{
    struct timeval patience = {.tv_sec = WAIT_S};
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)rp_server_port(s->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    peer p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    assert_true(p.fd >= 0);
    (void)setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    (void)setsockopt(p.fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(p.fd, (struct sockaddr *)&address, sizeof address), 0);
    p.ssl = SSL_new(s->context);
    assert_non_null(p.ssl);
    assert_int_equal(SSL_set_fd(p.ssl, p.fd), 1);
    assert_int_equal(SSL_connect(p.ssl), 1);
    p.client = rp_test_client_new(NULL);
    return p;
}

static void hang_up(peer *p)
{
    rp_test_client_free(p->client);
    SSL_free(p->ssl);
    (void)close(p->fd);
    ERR_clear_error();
}

/* Writes what the client has to say, then reads once. False if the server has closed. */
static bool exchange(peer *p)
{
    uint8_t data[16384];
    const uint8_t *out;
    size_t size;
    int n;

    while ((out = rp_test_client_output(p->client, &size)) != NULL) {
        if (SSL_write(p->ssl, out, (int)size) != (int)size) return false;
        rp_test_client_sent(p->client, size);
    }
    n = SSL_read(p->ssl, data, sizeof data);
    if (n <= 0) return false;
    rp_test_client_receive(p->client, data, (size_t)n);
    return true;
}

static void expect_answer(peer *p)
{
    rp_test_stream *page = rp_test_client_get(p->client, "GET", "/healthz");

    while (!page->is_over) assert_true(exchange(p));
    assert_int_equal(page->http_status, 200);
}

/* Sends as many as go before the server closes. */
static void flood(peer *p)
{
    for (int i = 0; i < FLOOD; i++)
        if (SSL_key_update(p->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 ||
            SSL_do_handshake(p->ssl) != 1)
            break;
    ERR_clear_error();
}

static void a_flood_of_key_updates_is_charged_and_ends_the_connection(void **state)
{
    stage s;
    peer p;

    (void)state;
    open_stage(&s, true);
    p = dial(&s);
    flood(&p);
    while (exchange(&p)) continue;

    assert_int_equal(refused(&s), 1);
    assert_in_range(charged(&s), 1000, CHARGED_MOST);
    hang_up(&p);
    close_stage(&s);
}

static void a_few_key_updates_are_forgiven(void **state)
{
    stage s;
    peer p;

    (void)state;
    open_stage(&s, true);
    p = dial(&s);
    expect_answer(&p);
    for (int i = 0; i < 100; i++)
        assert_int_equal(SSL_key_update(p.ssl, SSL_KEY_UPDATE_REQUESTED) == 1 &&
                             SSL_do_handshake(p.ssl) == 1,
                         1);
    expect_answer(&p);

    assert_int_equal(refused(&s), 0);
    assert_int_equal(charged(&s), 200); /* each is a record and a message */
    hang_up(&p);
    close_stage(&s);
}

/* One loop serves them all: each attack costs it a bounded number of records, and the bystander
 * has its answer after each. */
static void a_bystander_is_served_between_floods(void **state)
{
    stage s;
    peer bystander, attackers[ATTACKERS];

    (void)state;
    open_stage(&s, true);
    bystander = dial(&s);
    expect_answer(&bystander);
    for (int i = 0; i < ATTACKERS; i++) {
        attackers[i] = dial(&s);
        flood(&attackers[i]);
        expect_answer(&bystander);
    }
    for (int i = 0; i < ATTACKERS; i++) {
        while (exchange(&attackers[i])) continue;
        hang_up(&attackers[i]);
    }
    expect_answer(&bystander);

    assert_int_equal(refused(&s), ATTACKERS);
    assert_in_range(charged(&s), ATTACKERS * 1000, ATTACKERS * CHARGED_MOST);
    hang_up(&bystander);
    close_stage(&s);
}

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

/* A worker without a thread, and clients that have sent their hello to it. */
typedef struct queue {
    stage stage;
    rp_worker *worker;
    int peers[HANDSHAKES + 1];
    SSL *clients[HANDSHAKES + 1];
    size_t count;
} queue;

static void add_client_of(queue *q, const char *address)
{
    rp_server *server = q->stage.server;
    int fds[2];
    SSL *client = SSL_new(q->stage.context);

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(SSL_set_fd(client, fds[1]), 1);
    assert_int_equal(SSL_connect(client), -1); /* its hello is out */
    atomic_fetch_add(&server->connection_count, 1);
    atomic_fetch_add(&q->worker->connection_count, 1);
    rp_connection_open(q->worker, fds[0], address, server->tls);
    q->peers[q->count] = fds[1];
    q->clients[q->count++] = client;
}

static void add_client(queue *q)
{
    add_client_of(q, "10.0.0.1:1000");
}

static void hang_up_client(queue *q, size_t i)
{
    SSL_free(q->clients[i]);
    q->clients[i] = NULL;
    (void)close(q->peers[i]);
    q->peers[i] = -1;
}

static void open_queue(queue *q)
{
    memset(q, 0, sizeof *q);
    open_stage(&q->stage, false);
    q->worker = &q->stage.server->workers[0];
    assert_ok_err(rp_worker_init(q->worker, q->stage.server, 0, &q->stage.bed.err),
                  &q->stage.bed.err);
}

static void close_queue(queue *q)
{
    while (q->worker->connections != NULL) rp_connection_close(q->worker->connections);
    for (size_t i = 0; i < q->count; i++)
        if (q->clients[i] != NULL) hang_up_client(q, i);
    ERR_clear_error();
    close_stage(&q->stage);
}

static bool is_answered(const queue *q, size_t i)
{
    char byte;

    return recv(q->peers[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Handshakes that have got an answer. */
static size_t answered(const queue *q)
{
    size_t count = 0;

    for (size_t i = 0; i < q->count; i++) count += is_answered(q, i);
    return count;
}

static void a_turn_makes_few_steps_of_handshakes(void **state)
{
    queue q;

    (void)state;
    open_queue(&q);
    for (int i = 0; i < HANDSHAKES; i++) add_client(&q);

    for (size_t turn = 1; turn <= HANDSHAKES / RP_TURN_HANDSHAKES; turn++) {
        run_turn(q.worker->loop);
        assert_int_equal(answered(&q), turn * RP_TURN_HANDSHAKES);
    }

    close_queue(&q);
}

static void handshakes_are_made_in_the_order_of_their_hellos(void **state)
{
    queue q;

    (void)state;
    open_queue(&q);
    for (int i = 0; i < HANDSHAKES / 2; i++) add_client(&q);
    run_turn(q.worker->loop); /* they wait now, but for the first two */
    for (int i = HANDSHAKES / 2; i < HANDSHAKES; i++) add_client(&q);

    for (size_t turn = 2; turn <= HANDSHAKES / RP_TURN_HANDSHAKES; turn++) {
        run_turn(q.worker->loop);
        for (size_t i = 0; i < q.count; i++)
            assert_int_equal(is_answered(&q, i), i < turn * RP_TURN_HANDSHAKES);
    }

    close_queue(&q);
}

/* A client of another address does not wait for all who have come before it. */
static void addresses_take_turns(void **state)
{
    static const char *const others[] = {"10.0.0.2:1000", "[2001:db8::1]:1000", "unix:"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        queue q;
        open_queue(&q);
        /* Their numbers depend on a random key. It may give both the same queue. */
        rp_gate *gate = q.stage.server->gate;
        bool is_apart = (rp_gate_peer(gate, others[i]) >> 32) % RP_HANDSHAKE_QUEUES !=
                        (rp_gate_peer(gate, "10.0.0.1:1") >> 32) % RP_HANDSHAKE_QUEUES;
        for (int j = 0; j < HANDSHAKES; j++) add_client(&q);
        run_turn(q.worker->loop);
        add_client_of(&q, others[i]);
        run_turn(q.worker->loop); /* it is queued */
        run_turn(q.worker->loop);

        assert_int_equal(answered(&q), 3 * RP_TURN_HANDSHAKES);
        if (is_apart) assert_true(is_answered(&q, HANDSHAKES));
        close_queue(&q);
    }
}

/* Of many from one address, the oldest may be closed while they wait. */
static void a_late_handshake_gives_its_place_to_a_new_connection(void **state)
{
    enum { MOST = 4, LATE = HANDSHAKES - RP_TURN_HANDSHAKES - MOST };
    queue q;

    (void)state;
    open_queue(&q);
    rp_handshakes_set_places(&q.worker->handshakes, 8 * MOST);
    for (int i = 0; i < HANDSHAKES; i++) add_client(&q);
    run_turn(q.worker->loop);
    assert_int_equal(atomic_load(&q.worker->newcomers.count), RP_TURN_HANDSHAKES + LATE);
    for (int i = 0; i < RP_TURN_HANDSHAKES + LATE; i++) {
        rp_newcomers_send(&q.worker->newcomers, true);
        assert_true(rp_connection_make_place(q.worker));
        rp_newcomers_arrived(&q.worker->newcomers);
    }
    assert_int_equal(atomic_load(&q.worker->newcomers.count), 0);

    for (int turn = 0; turn < MOST / RP_TURN_HANDSHAKES; turn++) run_turn(q.worker->loop);
    for (size_t i = HANDSHAKES - MOST; i < HANDSHAKES; i++) assert_true(is_answered(&q, i));
    assert_int_equal(atomic_load(&q.worker->newcomers.count), MOST);
    close_queue(&q);
}

/* When they are checked, those that are late are closed, and the others wait on. */
static void a_late_handshake_is_closed_in_time(void **state)
{
    enum { MOST = 4, LATE = HANDSHAKES - RP_TURN_HANDSHAKES - MOST };
    queue q;
    size_t left = 0;

    (void)state;
    open_queue(&q);
    q.worker->limits.handshake_ms = 3600000;
    rp_handshakes_set_places(&q.worker->handshakes, 8 * MOST);
    for (int i = 0; i < HANDSHAKES; i++) add_client(&q);
    run_turn(q.worker->loop);
    for (rp_connection *c = q.worker->connections; c != NULL; c = c->next) {
        int64_t late_ns = c->timer.due_ns - rp_loop_now(q.worker->loop);
        assert_int_equal(rp_handshake_is_late(&c->handshake), late_ns <= RP_LATE_NS);
        if (c->handshake.is_queued) assert_ok(rp_loop_arm(q.worker->loop, &c->timer, 0));
    }
    run_turn(q.worker->loop);

    for (rp_connection *c = q.worker->connections; c != NULL; c = c->next) left++;
    assert_int_equal(left, HANDSHAKES - LATE);
    run_turn(q.worker->loop);
    for (size_t i = HANDSHAKES - MOST; i < HANDSHAKES; i++) assert_true(is_answered(&q, i));
    close_queue(&q);
}

/* Those who have gone cost no step: who comes behind them is answered in the first turn. */
static void a_disconnected_client_gets_no_handshake(void **state)
{
    queue q;

    (void)state;
    open_queue(&q);
    for (size_t i = 0; i < HANDSHAKES; i++) {
        add_client(&q);
        hang_up_client(&q, i);
    }
    add_client(&q);
    run_turn(q.worker->loop);

    assert_true(is_answered(&q, HANDSHAKES));
    assert_null(q.worker->connections->next); /* the others are closed */
    close_queue(&q);
}

/* The same if they go while they wait. */
static void a_client_that_disconnects_while_waiting_gets_no_handshake(void **state)
{
    queue q;

    (void)state;
    open_queue(&q);
    for (size_t i = 0; i < HANDSHAKES; i++) add_client(&q);
    run_turn(q.worker->loop);
    for (size_t i = 0; i < HANDSHAKES; i++) hang_up_client(&q, i);
    add_client(&q);
    run_turn(q.worker->loop);

    assert_true(is_answered(&q, HANDSHAKES));
    close_queue(&q);
}

/* The time that a client has for its part is long over when its turn comes. */
static void waiting_for_a_turn_does_not_count_against_the_handshake_timeout(void **state)
{
    const size_t turns = HANDSHAKES / RP_TURN_HANDSHAKES;
    queue q;

    (void)state;
    open_queue(&q);
    q.worker->limits.handshake_ms = 0;
    for (int i = 0; i < HANDSHAKES; i++) add_client(&q);
    for (size_t turn = 1; turn <= turns; turn++) {
        run_turn(q.worker->loop);
        assert_int_equal(answered(&q), turn * RP_TURN_HANDSHAKES);
    }

    run_turn(q.worker->loop); /* they have had their turn, and do not go on */
    assert_null(q.worker->connections);
    close_queue(&q);
}

RP_TESTS(tls_flood)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_of_key_updates_is_charged_and_ends_the_connection),
        cmocka_unit_test(a_few_key_updates_are_forgiven),
        cmocka_unit_test(a_bystander_is_served_between_floods),
        cmocka_unit_test(a_turn_makes_few_steps_of_handshakes),
        cmocka_unit_test(handshakes_are_made_in_the_order_of_their_hellos),
        cmocka_unit_test(addresses_take_turns),
        cmocka_unit_test(a_late_handshake_gives_its_place_to_a_new_connection),
        cmocka_unit_test(a_late_handshake_is_closed_in_time),
        cmocka_unit_test(a_disconnected_client_gets_no_handshake),
        cmocka_unit_test(a_client_that_disconnects_while_waiting_gets_no_handshake),
        cmocka_unit_test(waiting_for_a_turn_does_not_count_against_the_handshake_timeout),
    };

    (void)signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
