/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections with large messages to read: a turn of the loop reads some of them. The
 * others wait unread, so that no message has to be copied to wait. */
#include "turn_fixture.h"

enum {
    CLIENTS = 24,
    UPDATES = 6000, /* in the message of each client; an update counts as two keys */
    MESSAGE_BYTES = UPDATES * 13,
};

typedef struct crowd {
    stage s; /* first, for is_done */
    rp_test_client *clients[CLIENTS];
    rp_test_stream *calls[CLIENTS];
    uint64_t most_queued; /* bytes of messages, at the end of any turn */
    size_t most_unread;   /* connections */
    size_t left;          /* calls that were not over when the bystander had its response */
} crowd;

static size_t count_unread(const rp_worker *worker)
{
    size_t count = 0;

    for (const rp_connection *c = worker->unread; c != NULL; c = c->next_unread) {
        assert_true(c->is_unread); /* F4 */
        count++;
    }
    return count;
}

static void step(crowd *c)
{
    uint64_t queued = (uint64_t)rp_counter_get(&c->s.worker->metrics->queued_bytes);
    size_t unread = count_unread(c->s.worker);

    if (queued > c->most_queued) c->most_queued = queued;
    if (unread > c->most_unread) c->most_unread = unread;
    for (size_t i = 0; i < CLIENTS; i++)
        if (c->clients[i] != NULL) (void)rp_test_client_step(c->clients[i], 0);
    if (c->s.asked == NULL || !c->s.asked->is_over || c->left > 0) return;
    for (size_t i = 0; i < CLIENTS; i++) c->left += !c->calls[i]->is_over;
}

static bool have_greeted(stage *s)
{
    crowd *c = (crowd *)s;

    step(c);
    for (size_t i = 0; i < CLIENTS; i++)
        if (c->clients[i]->settings == 0) return false;
    return true;
}

static bool have_ended(stage *s)
{
    step((crowd *)s);
    return has_ended(s) && s->worker->unread == NULL;
}

static bool has_unread(stage *s)
{
    step((crowd *)s);
    return s->worker->unread != NULL;
}

/* Has one message of each client arrive in its socket. */
static void open_crowd(crowd *c)
{
    rp_buf out;

    memset(c, 0, sizeof *c);
    open_stage(&c->s, NULL);
    for (size_t i = 0; i < CLIENTS; i++) c->clients[i] = connect_one(&c->s);
    run_until(&c->s, have_greeted);
    rp_buf_init(&out, &c->s.bed.alloc);
    for (size_t i = 0; i < CLIENTS; i++) {
        rp_wire_put_text(&out, 1, "t");
        for (uint64_t key = 0; key < UPDATES; key++) {
            size_t mark = rp_wire_begin(&out, 2);
            rp_wire_put_number(&out, 1, key);
            rp_wire_put_double(&out, 2, 2.0 + (double)i);
            rp_wire_end(&out, mark);
        }
        c->calls[i] = rp_test_client_open(c->clients[i], RP_TEST_REPLAY "Update");
        rp_test_stream_put(c->calls[i], &out);
        rp_test_stream_end(c->calls[i]);
        (void)rp_test_client_step(c->clients[i], 0);
    }
    rp_buf_deinit(&out);
    c->s.changed = count_changes(&c->s);
    c->s.most_change = 0;
    c->most_queued = 0;
}

static void close_crowd(crowd *c)
{
    assert_null(c->s.worker->unread);
    for (size_t i = 0; i < CLIENTS; i++) rp_test_client_free(c->clients[i]);
    close_stage(&c->s);
}

static void large_messages_wait_in_their_sockets(void **state)
{
    crowd c;

    (void)state;
    open_crowd(&c);
    c.s.asked = rp_test_client_open(c.s.bystander, RP_TEST_REVERB "ServerInfo");
    rp_test_stream_send(c.s.asked, "", 0);
    rp_test_stream_end(c.s.asked);
    run_until(&c.s, have_ended);

    for (size_t i = 0; i < CLIENTS; i++) assert_int_equal(c.calls[i]->status, RP_OK);
    assert_int_equal(rp_test_info_of(c.s.table).updates, CLIENTS * UPDATES);
    assert_true(c.s.most_change <= A_TURN / 2 + UPDATES);
    assert_true(c.most_unread > CLIENTS / 2);
    assert_true(c.most_queued < 4 * MESSAGE_BYTES); /* copies */
    assert_true(c.left > CLIENTS / 2);              /* a small request did not wait */
    close_crowd(&c);
}

static void a_connection_that_waits_unread_may_end(void **state)
{
    crowd c;

    (void)state;
    open_crowd(&c);
    run_until(&c.s, has_unread);
    rp_connection_close(c.s.worker->unread);
    for (size_t i = 0; i < CLIENTS; i += 2) {
        rp_test_client_free(c.clients[i]);
        c.clients[i] = NULL;
    }
    run_until(&c.s, have_ended);
    close_crowd(&c);
}

RP_TESTS(turn_reads)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_messages_wait_in_their_sockets),
        cmocka_unit_test(a_connection_that_waits_unread_may_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
