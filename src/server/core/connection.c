/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/connection.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "server/bounds/limits.h"
#include "server/core/calls.h"
#include "server/core/connection_room.h"
#include "server/core/connection_watch.h"
#include "server/core/deferral.h"
#include "server/core/lease_link.h"
#include "server/core/task.h"
#include "util/mem.h"

enum {
    WRITE_PARTS = 64,
    WRITE_FLUSH_BYTES = 4 << 20, /* written to one connection in one flush, at most */
    WARM_BYTES = 16 << 10,       /* responses of this many bytes are written while in the
                                    cache */
    BESIDE_BYTES = 16 << 10,     /* to read behind a large message */
    DENSE = 4, /* a read is dense if its cost is more than this many times its bytes */
    LAST_CALLS_NS = 50000000,  /* between the two GOAWAY frames of a drain */
    SNIFF_AGAIN_NS = 10000000, /* shortest pause if the first bytes arrive one by one */
};

static void on_check(rp_timer *timer);
static void on_rested(rp_timer *timer);
static void on_ready(rp_watch *watch, uint32_t events);

/* Removes the connection from worker->dirty (C2). */
static void clean(rp_connection *c)
{
    rp_connection **link = &c->worker->dirty;

    if (!c->is_dirty) return;
    while (*link != c) link = &(*link)->next_dirty;
    *link = c->next_dirty;
    c->is_dirty = false;
}

/* Wakes rp_server_drain() after the last one. */
void rp_connection_count_out(rp_worker *worker)
{
    rp_server *server = worker->server;
    size_t before =
        atomic_fetch_sub_explicit(&worker->connection_count, 1, memory_order_relaxed);

    assert(before > 0); /* V1 */
    (void)before;
    if (atomic_fetch_sub_explicit(&server->connection_count, 1, memory_order_acq_rel) != 1 ||
        !atomic_load_explicit(&server->draining, memory_order_relaxed))
        return;
    rp_mutex_lock(&server->lock);
    rp_cond_signal(&server->changed);
    rp_mutex_unlock(&server->lock);
}

void rp_connection_open(rp_worker *worker, int fd, const char *peer, rp_tls *tls)
{
    rp_server *server = worker->server;
    rp_connection *c = rp_alloc_zero(&server->alloc, sizeof *c);
    int64_t now_ns = rp_loop_now(worker->loop);

    if (c == NULL || worker->stopping ||
        atomic_load_explicit(&server->draining, memory_order_relaxed) ||
        rp_link_init(&c->link, fd, tls) != RP_OK) {
        (void)close(fd);
        rp_release(&server->alloc, c, sizeof *c);
        rp_connection_count_out(worker);
        return;
    }
    c->worker = worker;
    c->state = tls != NULL ? RP_CONNECTION_HANDSHAKE : RP_CONNECTION_SNIFF;
    (void)snprintf(c->peer, sizeof c->peer, "%s", peer);
    c->opened_ns = c->heard_ns = c->moved_ns = now_ns;
    c->watch = (rp_watch){.fd = fd, .on_ready = on_ready};
    c->handshake = (rp_handshake){.link = &c->link, .watch = &c->watch};
    if (tls != NULL) c->handshake.address = rp_gate_peer(server->gate, peer);
    c->timer.on_due = on_check;
    c->rest.on_due = on_rested;
    c->next = worker->connections;
    if (c->next != NULL) c->next->prev = c;
    worker->connections = c;
    rp_newcomers_enter(&worker->newcomers, &c->newcomer, now_ns);
    rp_clients_enter(&server->clients, &c->client, c->peer, RP_CLIENT_NEW, now_ns);
    rp_counter_add(&worker->metrics->connections_opened, 1);
    rp_counter_add(&worker->metrics->connections, 1);
    if (rp_loop_watch(worker->loop, &c->watch, RP_READABLE) != RP_OK) {
        c->watch.fd = -1;
        rp_connection_close(c);
    } else if (rp_loop_arm(worker->loop, &c->timer,
                           now_ns + rp_ms(worker->limits.handshake_ms)) != RP_OK) {
        rp_connection_close(c);
    }
}

/* Frees a connection without calls. */
static void free_connection(rp_connection *c)
{
    rp_worker *worker = c->worker;

    assert(c->state == RP_CONNECTION_CLOSED && !c->is_dirty); /* C2 */
    rp_h2_free(c->h2);
    c->h2 = NULL;
    assert(c->tasks == NULL && c->deferred == NULL && c->flushes == NULL);
    assert(c->parked_bytes == 0 && c->pinned_bytes == 0 && c->makers == 0);
    rp_connection_count(c);
    rp_drawn_unref(c->drawn);
    rp_gate_memo_deinit(worker->server->gate, &c->memo);
    rp_clients_leave(&worker->server->clients, &c->client);
    rp_counter_sub(&worker->metrics->connections, 1);
    if (c->is_accepted)
        atomic_fetch_sub_explicit(&worker->server->accepted_count, 1, memory_order_relaxed);
    rp_release(&worker->server->alloc, c, sizeof *c);
    rp_connection_count_out(worker);
}

void rp_connection_close(rp_connection *c)
{
    rp_worker *worker = c->worker;

    assert(c->state != RP_CONNECTION_CLOSED);
    rp_handshake_forget(&worker->handshakes, &c->handshake);
    rp_newcomers_leave(&worker->newcomers, &c->newcomer);
    rp_loop_disarm(worker->loop, &c->timer);
    rp_loop_disarm(worker->loop, &c->rest);
    if (c->watch.fd >= 0) rp_loop_forget(worker->loop, &c->watch);
    rp_lease_link_free(c);
    clean(c);
    assert(c->prev != NULL ? c->prev->next == c : worker->connections == c); /* C1 */
    *(c->prev != NULL ? &c->prev->next : &worker->connections) = c->next;
    if (c->next != NULL) c->next->prev = c->prev;
    rp_link_deinit(&c->link);
    c->state = RP_CONNECTION_CLOSED;
    rp_defer_forget_all(c);
    rp_connection_count(c); /* without bytes that would have arrived */
    rp_connection_leave_loan_queue(c);
    if (c->h2 != NULL)
        rp_closing_add(&worker->closing, &c->closed, c->h2);
    else
        free_connection(c);
}

void rp_connection_on_calls_ended(rp_closed *closed)
{
    /* Frees the budget that the ended calls held. */
    rp_connection_count((rp_connection *)((char *)closed - offsetof(rp_connection, closed)));
}

void rp_connection_on_all_calls_ended(rp_closed *closed)
{
    free_connection((rp_connection *)((char *)closed - offsetof(rp_connection, closed)));
}

/* Writes the remaining output, then closes the connection. */
static void begin_closing(rp_connection *c)
{
    c->state = RP_CONNECTION_CLOSING;
    rp_connection_touch(c);
}

/* Makes the timer call on_check() at `due_ns`. */
static void check_at(rp_connection *c, int64_t due_ns)
{
    if (rp_loop_arm(c->worker->loop, &c->timer, due_ns) != RP_OK) begin_closing(c);
}

void rp_connection_drain(rp_connection *c)
{
    if (c->h2 == NULL) {
        rp_connection_close(c);
        return;
    }
    /* The first GOAWAY announces the end; calls that are already on their way are still taken
     * until the second, which on_check() sends. */
    rp_h2_go_away(c->h2);
    c->is_draining = true;
    rp_connection_touch(c);
    check_at(c, rp_loop_now(c->worker->loop) + LAST_CALLS_NS);
}

static void begin_h2(rp_connection *c)
{
    rp_worker *worker = c->worker;
    bool is_half_of_queue =
        worker->limits.message_bytes == rp_server_limits_side_bytes(&worker->limits);
    const rp_h2_limits limits = {
        .streams = (uint32_t)worker->limits.streams,
        .message_bytes = worker->limits.message_bytes,
        .message_setting = is_half_of_queue
                               ? "bytes, half of the server's limit queued_bytes: send "
                                 "smaller messages or raise queued_bytes"
                               : "bytes, the server's limit message_bytes",
        .header_bytes = worker->limits.header_bytes,
        .header_fields = worker->limits.header_fields,
        .queued_bytes = worker->limits.stream_queued_bytes,
    };

    assert(c->h2 == NULL && c->drawn == NULL); /* C3 */
    c->drawn = rp_drawn_new(&worker->server->alloc, &worker->server->budget);
    if (c->drawn == NULL || rp_h2_new(&worker->server->alloc, &rp_calls_handler, c, &limits,
                                      &worker->replies, &c->h2) != RP_OK) {
        rp_connection_refused(c, RP_REFUSED_MEMORY);
        rp_connection_close(c);
        return;
    }
    if (worker->server->arena != NULL)
        rp_h2_set_large(c->h2, &worker->server->arena_alloc, RP_SHARED_MIN_BYTES);
    c->state = RP_CONNECTION_H2;
    rp_client_set_protocol(&c->client, RP_CLIENT_H2);
    rp_connection_touch(c); /* clients wait for the server's settings */
}

static void give_to_page(rp_connection *c)
{
    rp_worker *worker = c->worker;
    rp_http_page *page = worker->server->page;

    rp_loop_forget(worker->loop, &c->watch);
    c->watch.fd = -1;
    rp_counter_add(&worker->metrics->connections_page, 1);
    if (c->link.ssl != NULL)
        (void)rp_http_page_take_link(page, &c->link, c->peer, c->certificate);
    else
        (void)rp_http_page_take(page, rp_link_take_fd(&c->link), c->peer, c->certificate);
    rp_connection_close(c);
}

static void read_lease(rp_connection *c)
{
    if (!rp_lease_link_read(c)) rp_connection_close(c);
}

static void begin_lease(rp_connection *c)
{
    if (!rp_lease_link_begin(c)) {
        rp_connection_close(c);
        return;
    }
    assert(c->lease != NULL); /* C4 */
    c->state = RP_CONNECTION_LEASE;
    rp_client_set_protocol(&c->client, RP_CLIENT_LEASE);
    rp_loop_change(c->worker->loop, &c->watch, RP_READABLE);
}

/* Decides by the first bytes which protocol the peer uses. These bytes stay in the socket, so
 * the descriptor stays ready. */
static void sniff(rp_connection *c)
{
    static const char preface[] = "PRI ", lease[] = RP_LEASE_MAGIC;
    char first[4];
    size_t count = 0;
    rp_link_result result = rp_link_peek(&c->link, first, sizeof first, &count);

    if (result == RP_LINK_AGAIN) return;
    if (result != RP_LINK_OK) {
        rp_connection_close(c);
    } else if (count == sizeof first && memcmp(first, lease, count) == 0) {
        begin_lease(c);
    } else if (memcmp(first, preface, count) != 0 && memcmp(first, lease, count) != 0) {
        give_to_page(c);
    } else if (count == sizeof first) {
        begin_h2(c);
    } else { /* level-triggered: pauses reading, for as long as the connection has existed */
        int64_t now_ns = rp_loop_now(c->worker->loop), age_ns = now_ns - c->opened_ns;
        int64_t end_ns = c->opened_ns + rp_ms(c->worker->limits.handshake_ms);
        int64_t due_ns = now_ns + (age_ns > SNIFF_AGAIN_NS ? age_ns : SNIFF_AGAIN_NS);
        rp_loop_change(c->worker->loop, &c->watch, 0);
        check_at(c, due_ns < end_ns ? due_ns : end_ns);
    }
}

/* Makes the next step of the TLS handshake, or closes the connection if the peer has gone. */
static void shake_hands(rp_connection *c)
{
    rp_link_result result = RP_LINK_BROKEN;

    /* After a hang-up, bytes that the peer sent before would still be read, at full cost. */
    if (!rp_link_is_hung_up(&c->link)) result = rp_link_handshake(&c->link);
    if (result == RP_LINK_AGAIN) {
        check_at(c, c->opened_ns + rp_ms(c->worker->limits.handshake_ms));
        rp_loop_change(c->worker->loop, &c->watch, c->link.read_waits);
        return;
    }
    if (result != RP_LINK_OK) {
        rp_link_say_tls(&c->link);
        rp_connection_refused(c, RP_REFUSED_TLS);
        rp_connection_close(c);
        return;
    }
    rp_counter_add(&c->worker->metrics->connections_tls, 1);
    rp_link_peer_name(&c->link, c->certificate, sizeof c->certificate);
    if (rp_link_is_h2(&c->link))
        begin_h2(c);
    else
        give_to_page(c);
}

static rp_connection *connection_of(rp_handshake *handshake)
{
    return (rp_connection *)((char *)handshake - offsetof(rp_connection, handshake));
}

/* Adds a connection to the newcomers as the youngest of them. */
static void become_newcomer(rp_connection *c)
{
    rp_newcomers_leave(&c->worker->newcomers, &c->newcomer); /* one that was late */
    rp_newcomers_enter(&c->worker->newcomers, &c->newcomer, rp_loop_now(c->worker->loop));
}

static void on_handshake_step(rp_handshake *handshake, int64_t waited_ns)
{
    rp_connection *c = connection_of(handshake);

    assert(c->state == RP_CONNECTION_HANDSHAKE);
    c->opened_ns += waited_ns;
    become_newcomer(c);
    shake_hands(c);
}

static void on_late_handshake(rp_handshake *handshake)
{
    rp_connection *c = connection_of(handshake);

    become_newcomer(c); /* C6 */
    check_at(c, rp_loop_now(c->worker->loop) + RP_LATE_NS);
}

const rp_handshakes_handler rp_connection_handshakes = {
    .step = on_handshake_step,
    .on_late = on_late_handshake,
};

/* The most bytes that the budget allows one read to take. While room is short, only a little is
 * read beyond the reserved bytes, since messages that begin there may have to wait (I3). */
static size_t read_limit(const rp_connection *c)
{
    size_t reserved = c->intake.reserved, room = 0;

    if (rp_h2_awaited_bytes(c->h2) <= reserved) room = rp_connection_room(c, RP_QUEUE_IN);
    if (room > RP_QUEUE_FLOOR_BYTES && room < c->worker->limits.message_bytes &&
        rp_queue_is_short(&c->worker->server->budget, RP_QUEUE_IN,
                          rp_loop_now(c->worker->loop)))
        room = RP_QUEUE_FLOOR_BYTES;
    return reserved + room > RP_QUEUE_FLOOR_BYTES ? reserved + room : RP_QUEUE_FLOOR_BYTES;
}

/* Charges the abuse budget for TLS records without data in the last read. False if the budget
 * is spent: the session has ended. */
static bool charge_records(rp_connection *c)
{
    while (c->charged_records < c->link.idle_records) {
        c->charged_records++;
        if (!rp_connection_charge(c, RP_ABUSE_TLS_RECORD)) return false;
    }
    return true;
}

/* Handles bytes that were read. Adds their cost to `*cost`: each frame and message counts more
 * than its bytes. False: the session has ended. */
static bool take(rp_connection *c, const uint8_t *data, size_t size, size_t *cost)
{
    uint64_t events = rp_h2_events(c->h2);
    bool alive = rp_h2_receive(c->h2, data, size);

    *cost += size + (size_t)(rp_h2_events(c->h2) - events) * RP_READ_EVENT_BYTES;
    return alive;
}

/* Reads once: directly into a large message, if one is arriving, and into the worker's buffer.
 * False if there is nothing more to read, or the connection ends. */
static bool read_some(rp_connection *c, size_t *total, size_t *cost)
{
    rp_worker *worker = c->worker;
    struct iovec parts[2];
    size_t place_bytes = 0, moved = 0, in_place, room, most, cost_before = *cost;
    uint8_t *place = rp_h2_receive_place(c->h2, &place_bytes);
    rp_link_result result;
    bool alive = true;

    /* Bytes behind a large message are copied later, so only a few are read. */
    room = place != NULL ? BESIDE_BYTES : c->is_dense ? RP_LINK_ROOM : RP_READ_BYTES;
    most = read_limit(c);
    if (place_bytes > most) {
        place_bytes = most;
        room = 0;
    } else if (room > most) {
        room = most;
    }
    parts[0] = (struct iovec){place, place_bytes};
    parts[1] = (struct iovec){worker->read_buffer, room};
    result = place != NULL ? rp_link_read(&c->link, parts, 2, &moved)
                           : rp_link_read(&c->link, parts + 1, 1, &moved);
    if (!charge_records(c)) {
        begin_closing(c);
        return false;
    }
    if (result == RP_LINK_AGAIN) return false;
    if (result != RP_LINK_OK) {
        begin_closing(c);
        if (result == RP_LINK_BROKEN) c->ended_writing = true;
        return false;
    }
    assert(moved <= place_bytes + room);
    *total += moved;
    in_place = moved < place_bytes ? moved : place_bytes;
    if (in_place > 0) alive = take(c, place, in_place, cost);
    if (alive && moved > in_place) alive = take(c, worker->read_buffer, moved - in_place, cost);
    c->is_dense = *cost - cost_before > DENSE * moved;
    rp_worker_flush_batches(worker);
    rp_connection_count(c);
    if (!alive) {
        begin_closing(c);
        return false;
    }
    return moved == place_bytes + room;
}

void rp_connection_flush_warm(rp_connection *c)
{
    if (rp_h2_queued_bytes(c->h2) >= WARM_BYTES)
        rp_connection_flush(c);
    else
        rp_connection_touch(c);
}

/* Reads until there are no more bytes, or the connection has used its share of the turn. All
 * connections that are read from share RP_READ_TURN_BYTES, so that a turn stays short. May
 * close the connection. */
static void read_all(rp_connection *c)
{
    rp_worker *worker = c->worker;
    size_t total = 0, cost = 0, readers = ++worker->readers, share;
    bool more;

    if (readers < worker->readers_before) readers = worker->readers_before;
    share = RP_READ_TURN_BYTES / readers;
    do more = read_some(c, &total, &cost);
    while (more && cost < share && rp_connection_may_read(c));
    /* The descriptor does not become ready for bytes that TLS has already read. */
    if (more && rp_link_has_pending(&c->link) &&
        rp_loop_arm(c->worker->loop, &c->rest, rp_loop_now(c->worker->loop)) != RP_OK)
        begin_closing(c);
    rp_counter_add(&c->worker->metrics->bytes_read, total);
    rp_counter_add(&c->client.bytes_in, total);
    c->turn.bytes += total;
    if (total > 0) {
        c->heard_ns = rp_loop_now(c->worker->loop);
        c->pinged_ns = 0;
    }
    rp_connection_flush_warm(c);
}

/* Whether an event calls for a read. Under TLS a read may wait for any event. */
static bool watch_reads(const rp_connection *c, uint32_t events)
{
    return (c->watch.events & RP_READABLE) != 0 || (events & RP_HUNG_UP) != 0 ||
           (c->link.ssl != NULL && rp_connection_may_read(c));
}

/* True if the peer has gone and the connection has to be closed now. A connection that waits
 * for room is not read, so no read would report that its peer has gone. */
static bool is_gone(const rp_connection *c, uint32_t events)
{
    if (c->state == RP_CONNECTION_CLOSING) return (events & RP_HUNG_UP) != 0;
    return c->state == RP_CONNECTION_H2 && (events & RP_PEER_ENDED) != 0 &&
           !rp_connection_may_read(c);
}

/* RP_HUNG_UP is reported in every turn, even if no event was requested. So a connection in a
 * state that does not read must be closed. */
static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_connection *c = (rp_connection *)((char *)watch - offsetof(rp_connection, watch));

    if (c->state == RP_CONNECTION_HANDSHAKE) {
        if ((events & RP_HUNG_UP) != 0 ||
            rp_handshake_may_step(&c->worker->handshakes, &c->handshake))
            shake_hands(c);
        else if (c->handshake.is_queued)
            rp_newcomers_leave(&c->worker->newcomers, &c->newcomer); /* C6 */
    } else if (c->state == RP_CONNECTION_SNIFF) {
        if (watch->events == 0)
            rp_connection_close(c);
        else
            sniff(c);
    } else if (c->state == RP_CONNECTION_LEASE) {
        read_lease(c);
    } else if (is_gone(c, events)) {
        rp_connection_close(c);
    } else if (c->state == RP_CONNECTION_H2 && watch_reads(c, events)) {
        if (rp_defer_may_read(c))
            read_all(c);
        else if (events != RP_READABLE)
            rp_connection_touch(c);
    } else {
        rp_connection_touch(c);
    }
}

/* Delays the next read if that lets small messages accumulate. */
static void moderate_reads(rp_connection *c)
{
    rp_worker *worker = c->worker;
    int64_t now_ns = rp_loop_now(worker->loop), rest_ns;

    if (c->turn.messages == 0 || !worker->server->moderate) return;
    rest_ns = rp_read_moderation_judge(&c->moderation, &c->turn, now_ns);
    c->turn = (rp_turn_reads){0};
    if (rest_ns > 0 && rp_loop_arm(worker->loop, &c->rest, now_ns + rest_ns) == RP_OK)
        rp_counter_add(&worker->metrics->rests, 1);
}

static bool is_resting(const rp_connection *c)
{
    return c->rest.place != 0;
}

void rp_connection_read(rp_connection *c)
{
    if (c->state == RP_CONNECTION_H2 && rp_connection_may_read(c)) {
        read_all(c);
        return;
    }
    /* Tries again later to read the bytes that TLS has, when there may be room for them. */
    if (c->state == RP_CONNECTION_H2 && rp_link_has_pending(&c->link) &&
        rp_loop_arm(c->worker->loop, &c->rest, rp_loop_now(c->worker->loop) + RP_HELD_NS) !=
            RP_OK)
        begin_closing(c);
    rp_connection_touch(c);
}

static void on_rested(rp_timer *timer)
{
    rp_connection *c = (rp_connection *)((char *)timer - offsetof(rp_connection, rest));

    if (c->state != RP_CONNECTION_H2 || !rp_connection_may_read(c) || rp_defer_may_read(c))
        rp_connection_read(c);
}

typedef enum written { ALL, SOME, BROKEN } written;

static written write_all(rp_connection *c)
{
    struct iovec parts[WRITE_PARTS];
    rp_worker *worker = c->worker;
    size_t total = 0, count;
    written outcome = ALL;

    while ((count = rp_h2_output(c->h2, parts, WRITE_PARTS)) > 0) {
        size_t moved = 0;
        rp_link_result result = rp_link_write(&c->link, parts, (int)count, false, &moved);
        if (result == RP_LINK_BROKEN || result == RP_LINK_END) return BROKEN;
        outcome = SOME;
        if (result == RP_LINK_AGAIN) break;
        c->blocked_since_ns = 0;
        rp_h2_written(c->h2, moved);
        total += moved;
        if (total >= WRITE_FLUSH_BYTES) break;
        outcome = ALL;
    }
    if (outcome == ALL) c->blocked_since_ns = 0;
    if (outcome == SOME && total == 0 && c->blocked_since_ns == 0)
        c->blocked_since_ns = rp_loop_now(worker->loop);
    rp_counter_add(&worker->metrics->bytes_written, total);
    rp_counter_add(&c->client.bytes_out, total);
    if (rp_h2_left_bytes(c->h2) != c->left_then || rp_h2_queued_bytes(c->h2) == 0)
        c->moved_ns = rp_loop_now(worker->loop);
    c->left_then = rp_h2_left_bytes(c->h2);
    return outcome;
}

void rp_connection_end(rp_connection *c)
{
    if (c->h2 != NULL && c->state == RP_CONNECTION_H2) {
        for (rp_task *task = c->tasks; task != NULL; task = task->next)
            rp_task_abort(task, RP_UNAVAILABLE, "the server is shutting down");
        if (write_all(c) != BROKEN) rp_link_end_writing(&c->link);
    }
    rp_connection_close(c);
}

/* Closes a newcomer whose place another connection takes. */
static void give_way(rp_connection *c, const rp_places *places)
{
    static const char text[] = "too many connections, and this one has had no accepted call";

    rp_connection_refused(c, places->is_by_descriptors ? RP_REFUSED_DESCRIPTORS
                                                       : RP_REFUSED_CONNECTIONS);
    if (c->state == RP_CONNECTION_H2) {
        rp_h2_terminate(c->h2, RP_H2_ENHANCE_YOUR_CALM, text);
        if (write_all(c) != BROKEN) rp_link_end_writing(&c->link);
    }
    rp_connection_close(c);
}

bool rp_connection_make_place(rp_worker *worker)
{
    const rp_places places = rp_worker_places(worker);
    rp_newcomer *oldest = rp_newcomers_take(&worker->newcomers);

    if (oldest == NULL) /* it has had an accepted call, or has been closed */
        return atomic_load_explicit(&worker->server->connection_count, memory_order_relaxed) <=
               places.all;
    give_way((rp_connection *)((char *)oldest - offsetof(rp_connection, newcomer)), &places);
    return true;
}

/* Continues calls that wait for room, if there is room for responses again. */
static void feed(rp_connection *c)
{
    if (!rp_connection_may_feed(c)) return;
    rp_connection_leave_loan_queue(c);
    c->is_starved = false;
    rp_h2_make_room(c->h2);
}

/* Continues calls that wait for room, if there is room for one response by a loan (Q7). Called
 * after a write, since the peer must have taken all responses, including those of this turn of
 * the loop. */
static bool feed_by_loan(rp_connection *c)
{
    if (!c->is_starved || !rp_connection_may_draw(c)) return false;
    c->is_starved = false;
    rp_h2_make_room(c->h2);
    rp_connection_drew(c);
    return true;
}

void rp_connection_flush(rp_connection *c)
{
    rp_loop *loop = c->worker->loop;
    uint32_t events = 0;
    written outcome;

    if (c->h2 == NULL) {
        if (c->state == RP_CONNECTION_CLOSING) rp_connection_close(c);
        return;
    }
    rp_task_flush_all(c);
    feed(c);
    outcome = c->ended_writing ? BROKEN : write_all(c);
    if (outcome != BROKEN && feed_by_loan(c)) outcome = write_all(c);
    rp_connection_count(c);
    if (outcome == SOME) clean(c); /* continues when the socket is writable, not in this turn */
    if (outcome == BROKEN || rp_h2_is_ended(c->h2) ||
        (c->state == RP_CONNECTION_CLOSING && outcome == ALL) || rp_h2_is_over(c->h2)) {
        if (rp_h2_is_violated(c->h2)) rp_connection_refused(c, RP_REFUSED_PROTOCOL);
        rp_connection_close(c);
        return;
    }
    moderate_reads(c);
    if (c->state == RP_CONNECTION_H2 && !rp_connection_may_read(c)) events |= RP_PEER_ENDED;
    if (rp_connection_may_read(c) && !is_resting(c))
        events |= c->link.read_waits != 0 ? c->link.read_waits : RP_READABLE;
    if (outcome == SOME || rp_connection_may_feed(c))
        events |= c->link.write_waits != 0 ? c->link.write_waits : RP_WRITABLE;
    rp_loop_change(loop, &c->watch, events);
    int64_t soon_ns =
        rp_loop_now(loop) + (rp_connection_is_held_up(c) ? RP_HELD_NS : RP_CHECK_NS);
    if (rp_connection_takes_time(c, outcome == SOME) && c->timer.due_ns > soon_ns)
        check_at(c, soon_ns);
}

static void on_check(rp_timer *timer)
{
    rp_connection *c = (rp_connection *)((char *)timer - offsetof(rp_connection, timer));
    int64_t now_ns = rp_loop_now(c->worker->loop), due_ns = 0;
    rp_refusal why;

    switch (rp_connection_check(c, now_ns, &due_ns, &why)) {
    case RP_CHECK_FINE: break;
    case RP_CHECK_NEVER: return;
    case RP_CHECK_AGAIN: check_at(c, due_ns); return;
    case RP_CHECK_READ:
        rp_loop_change(c->worker->loop, &c->watch, RP_READABLE);
        check_at(c, due_ns);
        return;
    case RP_CHECK_TOO_SLOW:
        rp_connection_refused(c, why);
        rp_connection_close(c);
        return;
    }
    if (c->is_draining) {
        rp_h2_go_away(c->h2);
        c->is_draining = false;
    }
    rp_h2_sweep(c->h2);
    rp_connection_touch(c);
    check_at(c, due_ns);
}
