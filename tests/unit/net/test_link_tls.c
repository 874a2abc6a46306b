/* SPDX-License-Identifier: Apache-2.0 */
/* Links under TLS once they are secured. */
#include <poll.h>
#include <pthread.h>

#include "support/fixture.h"
#include "unit/net/tls_ends.h"
#include "util/rng.h"

static void read_takes_several_records_and_reports_pending_bytes(void **state)
{
    ends e;
    static char out[16000], in[40000];
    struct iovec parts[] = {{in, 10}, {in + 10, 0}, {in + 10, 20}};
    struct pollfd ready;
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    expect_nothing(&e);
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i % 101);
    client_writes(&e, out, sizeof out);
    client_writes(&e, out, sizeof out);

    assert_int_equal(rp_link_read(&e.link, parts, 3, &moved), RP_LINK_OK);
    assert_int_equal(moved, 30);
    assert_true(rp_link_has_pending(&e.link));
    assert_int_equal(rp_link_waiting(&e.link), RP_LINK_ROOM);
    assert_int_equal(read_some(&e, in + 30, sizeof out - 30, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out - 30);
    assert_memory_equal(in, out, sizeof out);

    assert_int_equal(read_some(&e, in, sizeof in, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out);
    assert_memory_equal(in, out, sizeof out);
    assert_false(rp_link_has_pending(&e.link));
    assert_int_equal(rp_link_waiting(&e.link), 0);
    ready = (struct pollfd){.fd = e.link.fd, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 0), 0);
    expect_nothing(&e);
    close_ends(&e);
}

/* Whatever a read with enough room leaves, the descriptor is readable for it. */
static void read_with_a_large_buffer_leaves_no_hidden_bytes(void **state)
{
    enum { MOST = RP_LINK_ROOM + 70000 };
    static unsigned char out[400000], in[MOST];
    size_t sent = 0, received = 0, moved, stopped = 0, next = 1;
    ends e;
    rp_rng rng;

    rp_rng_init(&rng, 5);
    for (size_t i = 0; i < sizeof out; i++) out[i] = (unsigned char)(i * 13 + i / 256);
    open_secured(&e, *state, &(wishes){0});
    while (received < sizeof out) {
        size_t room = RP_LINK_ROOM + rp_rng_below(&rng, 70000),
               cut_at = rp_rng_below(&rng, room);
        struct iovec parts[] = {{in, cut_at}, {in + cut_at, room - cut_at}};
        struct pollfd ready = {.fd = e.link.fd, .events = POLLIN};

        for (int n = 1; n > 0 && sent < sizeof out;) { /* until the socket is full */
            if (next > sizeof out - sent) next = sizeof out - sent;
            n = SSL_write(e.client, out + sent, (int)next);
            if (n <= 0) continue;
            sent += (size_t)n;
            next = rp_rng_below(&rng, 3) == 0 ? 500 : 16384;
        }
        ERR_clear_error();
        assert_int_equal(rp_link_read(&e.link, parts, 2, &moved), RP_LINK_OK);
        assert_memory_equal(in, out + received, moved);
        assert_true(moved < room);
        received += moved;
        if (poll(&ready, 1, 0) == 0)
            expect_nothing(&e);
        else
            stopped++;
    }
    assert_true(stopped > 0); /* it had to be in time at least once */
    close_ends(&e);
}

static void peer_that_sent_close_notify_can_still_be_written_to(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    client_writes(&e, "last", 4);
    assert_int_equal(SSL_shutdown(e.client), 0);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_END);
    assert_int_equal(moved, 0);

    assert_int_equal(write_some(&e, "answer", 6, &moved), RP_LINK_OK);
    assert_int_equal(SSL_read(e.client, data, sizeof data), 6);
    close_ends(&e);
}

static void disconnect_without_close_notify_breaks_the_link(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    client_writes(&e, "last", 4);
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 4); /* what came is not lost */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
        assert_int_equal(moved, 0);
    }
    assert_int_equal(write_some(&e, "x", 1, &moved), RP_LINK_BROKEN);
    assert_int_equal(ERR_peek_error(), 0);
    close_ends(&e);
}

static void forged_record_breaks_the_link_but_no_other(void **state)
{
    ends e, bystander;
    char data[16], forged[30] = "\x17\x03\x03\x00\x19";
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    open_secured(&bystander, *state, &(wishes){0});
    assert_int_equal(write(e.peer, forged, sizeof forged), sizeof forged);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
    expect_nothing(&bystander); /* OpenSSL's errors are per thread, not per connection */
    client_writes(&bystander, "fine", 4);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_BROKEN);
    assert_int_equal(read_some(&bystander, data, sizeof data, &moved), RP_LINK_OK);
    close_ends(&e);
    close_ends(&bystander);
}

static void small_parts_are_joined_into_records(void **state)
{
    enum { PARTS = 3000, BYTES = 7 };
    ends e;
    static struct iovec parts[PARTS];
    static char out[PARTS * BYTES], in[PARTS * BYTES];
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    for (size_t i = 0; i < sizeof out; i++) out[i] = (char)(i % 113);
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){out + i * BYTES, BYTES};
    assert_int_equal(rp_link_write(&e.link, parts, PARTS, false, &moved), RP_LINK_OK);
    assert_int_equal(moved, sizeof out);

    /* SSL_read() gives one record at a time. */
    assert_int_equal(SSL_read(e.client, in, sizeof in), 16384);
    assert_int_equal(SSL_read(e.client, in + 16384, sizeof in), PARTS * BYTES - 16384);
    assert_memory_equal(in, out, sizeof in);
    close_ends(&e);
}

static void small_head_and_large_body_fill_their_records(void **state)
{
    enum { HEAD = 9, BODY = 40000, TOTAL = 3 * HEAD + BODY };
    ends e;
    static char body[BODY], in[TOTAL];
    struct iovec parts[] = {{"headhead9", HEAD}, {NULL, 0},           {body, BODY},
                            {"headhead9", HEAD}, {"headhead9", HEAD}, {body, 0}};
    size_t moved, at = 0;
    int records = 0;

    open_secured(&e, *state, &(wishes){0});
    memset(body, 'b', sizeof body);
    assert_int_equal(rp_link_write(&e.link, parts, 6, true, &moved), RP_LINK_OK);
    assert_int_equal(moved, TOTAL);
    for (; at < TOTAL; records++) {
        int n = SSL_read(e.client, in + at, (int)(TOTAL - at));
        assert_true(n > 0);
        at += (size_t)n;
    }
    assert_int_equal(records, 3);
    assert_memory_equal(in, "headhead9bbb", 12);
    assert_memory_equal(in + HEAD + BODY - 1, "bheadhead9headhead9", 19);
    assert_int_equal(rp_link_write(&e.link, parts, 0, false, &moved), RP_LINK_OK);
    assert_int_equal(rp_link_write(&e.link, parts + 5, 1, false, &moved), RP_LINK_OK);
    assert_int_equal(moved, 0);
    close_ends(&e);
}

/* Cuts `size` bytes into parts of random length, 40 at most; returns how many. */
static int cut(rp_rng *rng, struct iovec *parts, unsigned char *data, size_t size)
{
    int count = 0;

    while (size > 0 && count < 40) {
        size_t most = rp_rng_below(rng, 4) == 0 ? 60000 : 300, n = rp_rng_below(rng, most);
        if (n > size) n = size;
        parts[count++] = (struct iovec){data, n};
        data += n;
        size -= n;
    }
    return count;
}

/* Writes from a stream cut anew each time, into a buffer that is full most of the time, to a
 * reader that takes odd amounts, and reads what the client writes meanwhile. */
static void bulk_survives_partial_writes_in_both_directions(void **state)
{
    const size_t bulk = rp_test_scaled(16 << 20, 1 << 20);
    unsigned char *out = malloc(bulk), *in = malloc(bulk + 50000), *back = malloc(bulk + 50000);
    size_t sent = 0, received = 0, client_sent = 0, returned = 0, moved, agains = 0,
           offered = 0;
    ends e;
    rp_rng rng;

    assert_true(out != NULL && in != NULL && back != NULL);
    rp_rng_init(&rng, 11);
    for (size_t i = 0; i < bulk; i++) out[i] = (unsigned char)(rp_rng_next(&rng) >> 56);
    open_secured(&e, *state, &(wishes){0});
    while (received < bulk || returned < bulk) {
        struct iovec parts[40];
        int n, count = cut(&rng, parts, out + sent, bulk - sent);

        /* All that was offered and not moved is offered again. */
        for (size_t sum = 0, i = 0; i < (size_t)count; i++) {
            sum += parts[i].iov_len;
            if (i + 1 < (size_t)count) continue;
            if (sum < offered) parts[i].iov_len += offered - sum;
            offered = sum < offered ? offered : sum;
        }
        if (count > 0) {
            rp_link_result result = rp_link_write(&e.link, parts, count, sent % 2 == 0, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            agains += result == RP_LINK_AGAIN;
            sent += moved;
            offered -= moved;
        }
        n = SSL_read(e.client, in + received, (int)rp_rng_below(&rng, 50000) + 1);
        if (n > 0) received += (size_t)n;
        if (client_sent < bulk) {
            size_t most = bulk - client_sent < 30000 ? bulk - client_sent : 30000;
            n = SSL_write(e.client, out + client_sent, (int)most);
            if (n > 0) client_sent += (size_t)n;
        }
        rp_link_result result =
            read_some(&e, back + returned, rp_rng_below(&rng, 50000) + 1, &moved);
        assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
        returned += moved;
        ERR_clear_error();
    }
    assert_int_equal(sent, bulk);
    assert_true(agains > 0);
    assert_memory_equal(in, out, bulk);
    assert_memory_equal(back, out, bulk);
    close_ends(&e);
    free(out);
    free(in);
    free(back);
}

/* Fills the socket until the link says that it must wait. */
static size_t fill(ends *e, const char *data, size_t size)
{
    size_t sum = 0, moved;

    while (write_some(e, data, size, &moved) == RP_LINK_OK) sum += moved;
    assert_false(e->link.broken);
    assert_int_equal(e->link.write_waits, RP_WRITABLE);
    return sum;
}

/* The client asks for new keys while a record is half written. */
static void new_keys_in_the_middle_of_a_record_do_no_harm(void **state)
{
    ends e;
    static char block[16384], in[16384];
    size_t moved, sum, seen = 0, sent;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    memset(block, 'z', sizeof block);
    sum = fill(&e, block, sizeof block);
    assert_int_equal(SSL_key_update(e.client, SSL_KEY_UPDATE_REQUESTED), 1);
    client_writes(&e, "request", 7);

    bool got = false;
    sent = sum;
    for (int i = 0; i < 100000 && (!got || seen < sum + sizeof block); i++) {
        if (!got) {
            rp_link_result result = read_some(&e, in, sizeof in, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            got = result == RP_LINK_OK;
        }
        if (sent < sum + sizeof block) {
            rp_link_result result = write_some(&e, block, sum + sizeof block - sent, &moved);
            assert_true(result == RP_LINK_OK || result == RP_LINK_AGAIN);
            sent += moved;
        }
        int n = SSL_read(e.client, in, sizeof in);
        if (n > 0) seen += (size_t)n;
        ERR_clear_error();
    }
    assert_true(got);
    assert_int_equal(seen, sum + sizeof block);
    close_ends(&e);
}

static void renegotiation_by_the_client_is_refused(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_2_VERSION});
    client_writes(&e, "before", 6);
    assert_int_equal(SSL_renegotiate(e.client), 1);
    (void)SSL_do_handshake(e.client);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 6);
    rp_link_result result = read_some(&e, data, sizeof data, &moved);
    assert_true(result == RP_LINK_AGAIN || result == RP_LINK_BROKEN);
    assert_true(SSL_do_handshake(e.client) <= 0);
    close_ends(&e);
}

/* SIGPIPE has its usual effect in a test: it would end the program. */
static void write_to_a_closed_peer_breaks_the_link_without_a_signal(void **state)
{
    ends e;
    size_t moved;

    open_secured(&e, *state, &(wishes){0});
    assert_int_equal(close(e.peer), 0);
    e.peer = -1;
    for (int i = 0; i < 2; i++)
        assert_int_equal(write_some(&e, "hello", 5, &moved), RP_LINK_BROKEN);
    assert_int_equal(moved, 0);
    rp_link_end_writing(&e.link); /* does no harm */
    close_ends(&e);
}

static void close_notify_reaches_the_peer_that_can_still_write(void **state)
{
    ends e;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.version = TLS1_3_VERSION});
    assert_int_equal(write_some(&e, "last", 4, &moved), RP_LINK_OK);
    rp_link_end_writing(&e.link);
    assert_int_equal(SSL_read(e.client, data, sizeof data), 4);
    int n = SSL_read(e.client, data, sizeof data);
    assert_int_equal(SSL_get_error(e.client, n), SSL_ERROR_ZERO_RETURN);
    assert_int_equal(read(e.peer, data, sizeof data), 0);

    client_writes(&e, "answer", 6);
    assert_int_equal(read_some(&e, data, sizeof data, &moved), RP_LINK_OK);
    assert_int_equal(moved, 6);
    assert_int_equal(write_some(&e, "late", 4, &moved), RP_LINK_BROKEN);
    close_ends(&e);

    open_ends(&e, *state, &(wishes){0}); /* and before the handshake there is none */
    rp_link_end_writing(&e.link);
    assert_int_equal(read(e.peer, data, sizeof data), 0);
    close_ends(&e);
}

static void link_outlives_its_tls_context_and_may_be_moved(void **state)
{
    ends e, moved_to;
    char data[16] = "";
    size_t moved;

    open_secured(&e, *state, &(wishes){.offer = "\x02h2"});
    rp_tls_unref(e.tls); /* a reload */
    e.tls = NULL;
    moved_to = e;
    memset(&e, 0xee, sizeof e);

    assert_int_equal(write_some(&moved_to, "hello", 5, &moved), RP_LINK_OK);
    assert_int_equal(SSL_read(moved_to.client, data, sizeof data), 5);
    client_writes(&moved_to, "world", 5);
    assert_int_equal(read_some(&moved_to, data, sizeof data, &moved), RP_LINK_OK);
    close_ends(&moved_to);
}

typedef struct visitor {
    const setting *setting;
    rp_tls *tls;
    int visits;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;

    for (int i = 0; i < 5; i++) {
        ends e;
        char data[16] = "";
        size_t moved;
        open_ends_with(&e, v->setting, &(wishes){.offer = "\x02h2"}, rp_tls_ref(v->tls));
        if (shake_hands(&e) == RP_LINK_OK && rp_link_is_h2(&e.link) &&
            write_some(&e, "hello", 5, &moved) == RP_LINK_OK &&
            SSL_read(e.client, data, sizeof data) == 5)
            v->visits++;
        close_ends(&e);
    }
    rp_tls_unref(v->tls);
    return NULL;
}

static void one_context_serves_many_threads(void **state)
{
    const setting *s = *state;
    rp_tls *tls = new_tls(s, &(wishes){0});
    visitor visitors[4];
    pthread_t threads[COUNT_OF(visitors)];

    for (size_t i = 0; i < COUNT_OF(visitors); i++) {
        visitors[i] = (visitor){s, rp_tls_ref(tls), 0};
        assert_int_equal(pthread_create(&threads[i], NULL, visit, &visitors[i]), 0);
    }
    rp_tls_unref(tls); /* whoever is last frees it */
    for (size_t i = 0; i < COUNT_OF(visitors); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(visitors[i].visits, 5);
    }
}

static void failed_allocation_of_a_link_keeps_the_descriptor_open(void **state)
{
    const setting *s = *state;
    rp_test_oom oom = RP_TEST_OOM_INIT(RP_TEST_OOM_UNLIMITED);
    rp_allocator alloc = rp_test_oom_allocator(&oom);
    rp_tls_files files = {.certificate = s->server.certificate, .key = s->server.key};
    rp_tls *tls = NULL;
    rp_link link;
    rp_error err;
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    assert_ok_err(rp_tls_new(&alloc, &files, &tls, &err), &err);
    atomic_store(&oom.left, 0);
    assert_int_equal(rp_link_init(&link, fds[0], tls), RP_NO_RESOURCE);
    assert_int_equal(write(fds[0], "x", 1), 1);

    atomic_store(&oom.left, 1);
    assert_ok(rp_link_init(&link, fds[0], tls));
    rp_tls_unref(tls);
    assert_true(oom.live > 0);
    rp_link_deinit(&link);
    assert_int_equal(oom.live, 0);
    assert_int_equal(write(fds[0], "x", 1), -1); /* closed */
    assert_int_equal(close(fds[1]), 0);
}

RP_TESTS(link_tls)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_takes_several_records_and_reports_pending_bytes),
        cmocka_unit_test(read_with_a_large_buffer_leaves_no_hidden_bytes),
        cmocka_unit_test(peer_that_sent_close_notify_can_still_be_written_to),
        cmocka_unit_test(disconnect_without_close_notify_breaks_the_link),
        cmocka_unit_test(forged_record_breaks_the_link_but_no_other),
        cmocka_unit_test(small_parts_are_joined_into_records),
        cmocka_unit_test(small_head_and_large_body_fill_their_records),
        cmocka_unit_test(bulk_survives_partial_writes_in_both_directions),
        cmocka_unit_test(new_keys_in_the_middle_of_a_record_do_no_harm),
        cmocka_unit_test(renegotiation_by_the_client_is_refused),
        cmocka_unit_test(write_to_a_closed_peer_breaks_the_link_without_a_signal),
        cmocka_unit_test(close_notify_reaches_the_peer_that_can_still_write),
        cmocka_unit_test(link_outlives_its_tls_context_and_may_be_moved),
        cmocka_unit_test(one_context_serves_many_threads),
        cmocka_unit_test(failed_allocation_of_a_link_keeps_the_descriptor_open),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
