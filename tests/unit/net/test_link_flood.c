/* SPDX-License-Identifier: Apache-2.0 */
/* TLS records that cost work and carry no data: one read handles a bounded number of bytes, and
 * the link counts them. */
#include <poll.h>
#include <sys/ioctl.h>

#include "unit/net/tls_ends.h"

enum {
    STEP_BYTES = 96 << 10, /* that one read of small records may take from the descriptor */
    RECORD_BYTES = 23,     /* of a record with one byte of data */
};

/* Bytes that wait in the link's descriptor. */
static size_t waiting(const ends *e)
{
    int bytes = 0;

    assert_int_equal(ioctl(e->link.fd, FIONREAD, &bytes), 0);
    return (size_t)bytes;
}

/* The same once there are `least` of them. */
static size_t await_waiting(const ends *e, size_t least)
{
    for (int i = 0; i < 1000 && waiting(e) < least; i++) (void)poll(NULL, 0, 10);
    assert_true(waiting(e) >= least);
    return waiting(e);
}

static void await_readable(const ends *e)
{
    struct pollfd ready = {.fd = e->link.fd, .events = POLLIN};

    assert_int_equal(poll(&ready, 1, 10000), 1);
}

/* Sends KeyUpdates until the socket is full, or `most` of them. */
static size_t send_key_updates(SSL *from, size_t most)
{
    size_t sent = 0;

    while (sent < most && SSL_key_update(from, SSL_KEY_UPDATE_NOT_REQUESTED) == 1 &&
           SSL_do_handshake(from) == 1)
        sent++;
    ERR_clear_error();
    return sent;
}

static void one_read_takes_few_of_many_key_updates(void **state)
{
    static char data[256 << 10];
    ends e;
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION, .tcp = true});
    for (int i = 0; i < 4; i++) (void)send_key_updates(e.client, 1000);
    (void)await_waiting(&e, 64 << 10);

    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_AGAIN);
    assert_int_equal(moved, 0);
    assert_true(waiting(&e) > 0);
    assert_in_range(e.link.idle_records, 1, 2000); /* of 8,000 */
    close_ends(&e);
}

static void data_behind_key_updates_arrives(void **state)
{
    ends e;
    char data[64] = "";
    size_t moved = 0;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION, .tcp = true});
    assert_int_equal(send_key_updates(e.client, 2000), 2000);
    client_writes(&e, "hello", 5);

    for (int i = 0; i < 100 && moved == 0; i++) {
        await_readable(&e);
        rp_link_result result = read_some(&e, data, sizeof data, &moved);
        assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
    }
    assert_string_equal(data, "hello");
    /* Each is a record and a message. */
    assert_int_equal(e.link.idle_records, 4000);
    close_ends(&e);
}

static void link_breaks_after_too_many_records_without_data(void **state)
{
    ends e;
    char data[64];
    size_t moved;
    rp_link_result result = RP_LINK_AGAIN;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION, .tcp = true});
    for (int i = 0; i < 10000 && result == RP_LINK_AGAIN; i++) {
        (void)send_key_updates(e.client, 100);
        result = read_some(&e, data, sizeof data, &moved);
    }
    assert_int_equal(result, RP_LINK_BROKEN);
    assert_in_range(e.link.idle_records, RP_LINK_MOST_IDLE, RP_LINK_MOST_IDLE + 2000);
    close_ends(&e);
}

static void one_read_takes_few_of_many_tiny_records(void **state)
{
    static char data[256 << 10];
    ends e;
    size_t moved, sent = 0;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION, .tcp = true});
    while (sent < 20000 && SSL_write(e.client, "x", 1) == 1) sent++;
    ERR_clear_error();
    (void)await_waiting(&e, STEP_BYTES + 1);

    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_true(moved <= STEP_BYTES / RECORD_BYTES);
    while (moved < sent) {
        size_t more;
        await_readable(&e);
        assert_int_equal(read_some(&e, data, sizeof data, &more), RP_LINK_OK);
        moved += more;
    }
    assert_int_equal(e.link.idle_records, 0); /* small, but data */
    close_ends(&e);
}

static void attempts_to_renegotiate_are_counted(void **state)
{
    ends e;
    char data[16];
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_2_VERSION});
    assert_int_equal(e.link.idle_records, 0);
    assert_int_equal(SSL_renegotiate(e.client), 1);
    (void)SSL_do_handshake(e.client);
    ERR_clear_error();
    (void)read_some(&e, data, sizeof data, &moved);
    assert_true(e.link.idle_records > 0);
    close_ends(&e);
}

/* The link connects; the other end is OpenSSL's server. */
static void open_as_client(ends *e, const setting *s)
{
    const rp_tls_client_files files = {.ca = s->certificates.ca};
    rp_link_result result = RP_LINK_AGAIN;
    rp_error err;
    int fds[2];

    assert_ok_err(rp_tls_new_client(rp_allocator_default(), &files, &e->tls, &err), &err);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok(rp_link_init(&e->link, fds[0], e->tls));
    assert_ok(rp_link_expect(&e->link, "localhost"));
    e->peer = fds[1];
    e->context = SSL_CTX_new(TLS_server_method());
    assert_int_equal(SSL_CTX_use_certificate_chain_file(e->context, s->server.certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey_file(e->context, s->server.key, SSL_FILETYPE_PEM),
                     1);
    e->client = SSL_new(e->context);
    assert_int_equal(SSL_set_fd(e->client, e->peer), 1);
    SSL_set_accept_state(e->client);
    for (int i = 0; i < 20 && result == RP_LINK_AGAIN; i++) {
        result = rp_link_handshake(&e->link);
        (void)SSL_do_handshake(e->client);
        ERR_clear_error();
    }
    assert_int_equal(result, RP_LINK_OK);
    assert_int_equal(SSL_do_handshake(e->client), 1);
}

static void tickets_and_key_updates_of_a_hostile_server_are_bounded(void **state)
{
    ends e;
    char data[64];
    size_t moved;
    rp_link_result result = RP_LINK_AGAIN;

    open_as_client(&e, *state);
    for (int i = 0; i < 10000 && result == RP_LINK_AGAIN; i++) {
        (void)send_key_updates(e.client, 100);
        for (int j = 0; j < 2 && SSL_new_session_ticket(e.client) == 1; j++)
            (void)SSL_do_handshake(e.client);
        ERR_clear_error();
        result = read_some(&e, data, sizeof data, &moved);
    }
    assert_int_equal(result, RP_LINK_BROKEN);
    assert_in_range(e.link.idle_records, RP_LINK_MOST_IDLE, RP_LINK_MOST_IDLE + 2000);
    close_ends(&e);
}

/* A ClientHello that is too long: no more than a step of it is read. */
static void a_step_of_the_handshake_takes_a_bounded_number_of_bytes(void **state)
{
    static unsigned char hello[100 << 10];
    ends e;
    size_t before;

    open_ends(&e, *state, &(wishes){.tcp = true});
    /* Handshake records of 16 KiB, the first of which begins a ClientHello of 128,000 bytes. */
    for (size_t at = 0; at + 5 + 16384 <= sizeof hello; at += 5 + 16384)
        memcpy(hello + at, "\x16\x03\x01\x40\x00", 5);
    memcpy(hello + 5, "\x01\x01\xf4\x00\x03\x03", 6);
    before = (size_t)write(e.peer, hello, sizeof hello);
    assert_in_range(before, 64 << 10, sizeof hello);
    (void)await_waiting(&e, before);

    assert_int_equal(rp_link_handshake(&e.link), RP_LINK_BROKEN);
    assert_true(waiting(&e) > 0);
    assert_true(before - waiting(&e) <= 48 << 10);
    close_ends(&e);
}

/* A finite field of 8192 bits takes tens of milliseconds a handshake. */
static void costly_key_exchanges_are_refused(void **state)
{
    static const char *const groups[] = {"ffdhe8192", "ffdhe2048", "X25519", "P-256"};

    for (int i = 0; i < 4; i++) {
        ends e;

        open_ends(&e, *state, &(wishes){.version = TLS1_3_VERSION});
        assert_int_equal(SSL_set1_groups_list(e.client, groups[i]), 1);
        assert_int_equal(shake_hands(&e), i < 2 ? RP_LINK_BROKEN : RP_LINK_OK);
        close_ends(&e);
    }
}

RP_TESTS(link_flood)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_read_takes_few_of_many_key_updates),
        cmocka_unit_test(data_behind_key_updates_arrives),
        cmocka_unit_test(link_breaks_after_too_many_records_without_data),
        cmocka_unit_test(one_read_takes_few_of_many_tiny_records),
        cmocka_unit_test(attempts_to_renegotiate_are_counted),
        cmocka_unit_test(tickets_and_key_updates_of_a_hostile_server_are_bounded),
        cmocka_unit_test(a_step_of_the_handshake_takes_a_bounded_number_of_bytes),
        cmocka_unit_test(costly_key_exchanges_are_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
