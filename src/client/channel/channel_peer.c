/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a channel. Bytes are read into the runtime's buffer, or directly into a
 * large message. Output is written at the end of the turn. The invariants are in
 * channel_inside.h. */
#include "client/channel/channel_inside.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/fork_fds.h"
#include "util/mem.h"

enum {
    WRITE_PARTS = 64,
    WRITE_TURN_BYTES = 4 << 20, /* in one turn */
    READ_TURN_BYTES = 4 << 20,
    BESIDE_BYTES = 16 << 10, /* read after a large message: these bytes are copied */
    HEADER_BYTES = 64 << 10,
    HEADER_FIELDS = 256,
    CALL_QUEUED_BYTES = 4 << 20, /* of a call; on_room is called below half of this */
};

static void on_ready(rp_watch *watch, uint32_t events);
static void on_due(rp_timer *timer);
static void on_turn_end(rp_at_turn_end *turn);

static void RP_PRINTF(2, 3) end(rp_peer *p, const char *format, ...)
{
    va_list args;

    if (p->state == RP_PEER_OVER) return;
    p->state = RP_PEER_OVER;
    va_start(args, format);
    (void)vsnprintf(p->why, sizeof p->why, format, args);
    va_end(args);
    rp_peer_touch(p);
}

static void on_message(void *user, rp_call *call, const uint8_t *data, size_t size,
                       rp_block *block)
{
    rp_peer *p = user;
    rp_channel_call *c = rp_call_user(call);

    assert(c->peer == p && c->call == call);
    rp_channel_did_well(p->channel);
    c->class->on_message(c, data, size, block);
}

static void on_room(void *user, rp_call *call)
{
    rp_channel_call *c = rp_call_user(call);

    (void)user;
    if (c->class->on_room != NULL) c->class->on_room(c);
}

static void on_end(void *user, rp_call *call, rp_status status, const char *text)
{
    rp_peer *p = user;
    rp_channel_call *c = rp_call_user(call);
    char why[RP_CHANNEL_TEXT_BYTES + 96];

    assert(c->peer == p && c->call == call);
    if (!p->is_closing) rp_channel_did_well(p->channel);
    if (p->is_closing && status == RP_UNAVAILABLE) {
        (void)snprintf(why, sizeof why, "%.80s: %s", p->channel->options.text, p->why);
        text = why;
    } else if (status != RP_OK && (text == NULL || text[0] == '\0')) {
        /* gRPC servers give no text for calls that they do not know. */
        (void)snprintf(
            why, sizeof why, "%.80s %s %.80s", p->channel->options.text,
            status == RP_UNIMPLEMENTED ? "has no call" : "gives no reason for ending", c->path);
        text = why;
    }
    rp_channel_detach(c);
    c->class->on_end(c, status, text);
}

/* Nothing to do: on_end was called, or the caller has cancelled the call. */
static void on_close(void *user, rp_call *call)
{
    (void)user;
    (void)call;
}

static const rp_h2_handler handler = {
    .on_message = on_message, .on_room = on_room, .on_end = on_end, .on_close = on_close};

rp_peer *rp_peer_new(rp_channel *channel, int fd, int64_t until_ns)
{
    rp_peer *p = rp_alloc_zero(&channel->alloc, sizeof *p);
    const rp_channel_options *o = &channel->options;

    if (p == NULL || rp_link_init(&p->link, fd, o->tls) != RP_OK) {
        rp_connector_close_fd(fd);
        rp_release(&channel->alloc, p, sizeof *p);
        return NULL;
    }
    p->channel = channel;
    p->state = RP_PEER_HANDSHAKE;
    p->watch = (rp_watch){.fd = fd, .on_ready = on_ready};
    p->timer.on_due = on_due;
    p->turn.run = on_turn_end;
    p->heard_ns = rp_loop_now(channel->loop);
    if (rp_link_expect(&p->link, o->server_name) == RP_OK &&
        rp_loop_watch(channel->loop, &p->watch, RP_WRITABLE) == RP_OK) {
        if (rp_loop_arm(channel->loop, &p->timer, until_ns) == RP_OK) return p;
        rp_loop_forget(channel->loop, &p->watch);
    }
    rp_fork_fds_remove(fd);
    rp_link_deinit(&p->link);
    rp_release(&channel->alloc, p, sizeof *p);
    return NULL;
}

void rp_peer_free(rp_peer *p, bool politely)
{
    rp_channel *channel = p->channel;

    assert(!p->is_closing);
    p->is_closing = true;
    rp_loop_disarm(channel->loop, &p->timer);
    rp_loop_forget(channel->loop, &p->watch);
    rp_h2_free(p->h2);
    assert(p->calls == NULL); /* each has ended */
    rp_runtime_forget_turn_end(channel->runtime, &p->turn);
    if (politely) rp_link_end_writing(&p->link);
    rp_fork_fds_remove(p->link.fd);
    rp_link_deinit(&p->link);
    rp_release(&channel->alloc, p, sizeof *p);
}

void rp_peer_touch(rp_peer *p)
{
    rp_runtime_at_turn_end(p->channel->runtime, &p->turn);
}

bool rp_peer_is_leaving(const rp_peer *p)
{
    return p->state == RP_PEER_OVER || rp_h2_is_leaving(p->h2);
}

static void look_at(rp_peer *p, int64_t due_ns)
{
    if (rp_loop_arm(p->channel->loop, &p->timer, due_ns) != RP_OK) end(p, "out of memory");
}

void rp_peer_began(rp_peer *p, rp_channel_call *call)
{
    assert(p == p->channel->current && p->h2 != NULL);
    assert(call->peer == NULL && call->channel == p->channel);
    if (p->calls == NULL && p->pinged_ns == 0) {
        p->heard_ns = rp_loop_now(p->channel->loop); /* without calls a server is silent */
        if (p->timer.place == 0) look_at(p, p->heard_ns + p->channel->options.ping_ns);
    }
    call->peer = p;
    call->prev = NULL;
    call->next = p->calls;
    if (call->next != NULL) call->next->prev = call;
    p->calls = call;
    rp_peer_touch(p);
}

static void on_due(rp_timer *timer)
{
    rp_peer *p = (rp_peer *)((char *)timer - offsetof(rp_peer, timer));
    const rp_channel_options *o = &p->channel->options;
    int64_t now_ns = rp_loop_now(p->channel->loop);

    if (p->state == RP_PEER_OVER) return;
    if (p->state != RP_PEER_UP) {
        end(p,
            "accepts connections and does not respond within %lld ms: is it stopped or "
            "overloaded, "
            "or no server of gRPC?",
            (long long)(o->connect_timeout_ns / 1000000));
    } else if (p->pinged_ns != 0) {
        end(p, "no sign of life for %lld ms", (long long)((now_ns - p->heard_ns) / 1000000));
    } else if (p->calls != NULL && now_ns - p->heard_ns >= o->ping_ns) {
        rp_h2_ping(p->h2);
        p->pinged_ns = now_ns;
        rp_peer_touch(p);
        look_at(p, now_ns + o->ping_timeout_ns);
    } else if (p->calls != NULL) {
        look_at(p, p->heard_ns + o->ping_ns);
    } /* without calls no ping is needed: rp_peer_began() arms the timer again */
}

static void note_heard(rp_peer *p)
{
    p->heard_ns = rp_loop_now(p->channel->loop);
    atomic_store_explicit(&p->channel->heard_ns, p->heard_ns, memory_order_relaxed);
    if (p->pinged_ns == 0) return;
    p->pinged_ns = 0;
    look_at(p, p->heard_ns + p->channel->options.ping_ns);
}

static void greet(rp_peer *p)
{
    const rp_channel *c = p->channel;
    const rp_h2_limits limits = {
        .message_bytes = c->options.message_bytes,
        .header_bytes = HEADER_BYTES,
        .header_fields = HEADER_FIELDS,
        .queued_bytes = CALL_QUEUED_BYTES,
    };

    assert(p->state == RP_PEER_HANDSHAKE && p->h2 == NULL);
    if (rp_h2_new_client(&c->alloc, &handler, p, &limits, &p->channel->pool, &p->h2) != RP_OK) {
        end(p, "out of memory");
        return;
    }
    rp_h2_use_blocks(p->h2, c->blocks);
    p->state = RP_PEER_GREETING;
    rp_peer_touch(p);
}

static void shake_hands(rp_peer *p)
{
    rp_link_result result = rp_link_handshake(&p->link);
    char why[RP_CHANNEL_TEXT_BYTES - 16];

    if (result == RP_LINK_AGAIN) {
        rp_loop_change(p->channel->loop, &p->watch, p->link.read_waits);
    } else if (result != RP_LINK_OK) {
        rp_link_why(&p->link, why, sizeof why);
        p->is_refused = rp_link_is_refused(&p->link);
        end(p, "%s",
            why[0] != '\0' ? why : "the TLS handshake failed: is that a server of TLS?");
    } else if (p->link.ssl != NULL && !rp_link_is_h2(&p->link)) {
        end(p, "the server does not speak HTTP/2 over TLS");
    } else {
        greet(p);
    }
}

static void end_broken(rp_peer *p, rp_link_result result)
{
    char why[RP_CHANNEL_TEXT_BYTES - 16] = "";

    if (result == RP_LINK_BROKEN) rp_link_why(&p->link, why, sizeof why);
    if (result == RP_LINK_BROKEN) p->is_refused = rp_link_is_refused(&p->link);
    if (why[0] != '\0')
        end(p, "%s", why);
    else
        end(p, result != RP_LINK_END ? "the connection broke"
               : p->state == RP_PEER_GREETING && p->link.ssl == NULL
                   ? "the server closed the connection before its greeting: does it want TLS?"
                   : "the server closed the connection");
}

/* Ends the connection because its HTTP/2 session has ended. */
static void end_gone(rp_peer *p)
{
    uint64_t bytes;
    bool is_strange =
        rp_h2_is_violated(p->h2) || rp_h2_waits_for(p->h2, &bytes) == RP_H2_WAITS_FOR_GREETING;

    end(p, is_strange ? "what answers does not keep to HTTP/2" : "the server said goodbye");
}

/* Ends the connection if the server's first bytes say that it wants TLS. Returns true if so. */
static bool end_plain(rp_peer *p, const uint8_t *first, size_t size)
{
    if (p->state != RP_PEER_GREETING || p->link.ssl != NULL || !rp_link_is_alert(first, size))
        return false;
    p->is_refused = true;
    end(p, "the server wants TLS, and this client sets neither `tls` nor `ca_file`");
    return true;
}

/* Reads once. Returns false when the descriptor has no more bytes, or the connection is over.
 */
static bool read_some(rp_peer *p, size_t *total)
{
    uint8_t *buffer = rp_runtime_read_buffer(p->channel->runtime);
    struct iovec parts[2];
    size_t place_bytes = 0, moved = 0, in_place, room;
    uint8_t *place = rp_h2_receive_place(p->h2, &place_bytes);
    rp_link_result result;
    bool alive = true;

    if (place == NULL) place_bytes = 0;
    room = place != NULL ? BESIDE_BYTES : RP_RUNTIME_READ_BYTES;
    parts[0] = (struct iovec){place, place_bytes};
    parts[1] = (struct iovec){buffer, room};
    result = place != NULL ? rp_link_read(&p->link, parts, 2, &moved)
                           : rp_link_read(&p->link, parts + 1, 1, &moved);
    if (result == RP_LINK_AGAIN) return false;
    if (result != RP_LINK_OK) {
        end_broken(p, result);
        return false;
    }
    assert(moved <= place_bytes + room);
    if (end_plain(p, place != NULL ? place : buffer, moved)) return false;
    *total += moved;
    in_place = moved < place_bytes ? moved : place_bytes;
    if (in_place > 0) alive = rp_h2_receive(p->h2, place, in_place);
    if (alive && moved > in_place) alive = rp_h2_receive(p->h2, buffer, moved - in_place);
    if (!alive) {
        end_gone(p);
        return false;
    }
    return p->state != RP_PEER_OVER && moved == place_bytes + room;
}

void rp_peer_read(rp_peer *p)
{
    size_t total = 0;
    uint64_t bytes;

    assert(p->h2 != NULL);
    /* Bytes that TLS has buffered do not make the descriptor readable: read all of them. */
    while (read_some(p, &total))
        if (total >= READ_TURN_BYTES && !rp_link_has_pending(&p->link)) break;
    if (total > 0 && p->state != RP_PEER_OVER) note_heard(p);
    if (p->state == RP_PEER_GREETING &&
        rp_h2_waits_for(p->h2, &bytes) != RP_H2_WAITS_FOR_GREETING) {
        p->state = RP_PEER_UP;
        rp_loop_disarm(p->channel->loop, &p->timer);
        rp_channel_on_up(p->channel);
    }
    rp_peer_touch(p);
}

static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_peer *p = (rp_peer *)((char *)watch - offsetof(rp_peer, watch));
    /* Under TLS a read may wait for any event. */
    bool reads =
        (watch->events & RP_READABLE) != 0 || p->link.ssl != NULL || (events & RP_HUNG_UP) != 0;

    if (p->state == RP_PEER_HANDSHAKE)
        shake_hands(p);
    else if (p->state != RP_PEER_OVER && reads &&
             (events != RP_WRITABLE || p->link.ssl != NULL))
        rp_peer_read(p);
    else
        rp_peer_touch(p);
}

/* Returns true if all output is written. */
static bool write_all(rp_peer *p)
{
    struct iovec parts[WRITE_PARTS];
    size_t total = 0, count;

    while ((count = rp_h2_output(p->h2, parts, WRITE_PARTS)) > 0) {
        size_t moved = 0;
        rp_link_result result = rp_link_write(&p->link, parts, (int)count, false, &moved);

        if (result == RP_LINK_BROKEN || result == RP_LINK_END) {
            /* The server may have sent the reason before it closed. */
            if (p->state == RP_PEER_UP) rp_peer_read(p);
            end_broken(p, RP_LINK_BROKEN);
            return false;
        }
        if (result == RP_LINK_AGAIN) return false;
        rp_h2_written(p->h2, moved);
        total += moved;
        if (total >= WRITE_TURN_BYTES) return false;
    }
    return true;
}

static void on_turn_end(rp_at_turn_end *turn)
{
    rp_peer *p = (rp_peer *)((char *)turn - offsetof(rp_peer, turn));
    rp_channel *c = p->channel;
    uint32_t events;
    bool all;

    if (p->h2 == NULL || p->state == RP_PEER_OVER) {
        if (p->state == RP_PEER_OVER) rp_channel_on_over(c, p);
        return;
    }
    /* Before the request is sent: otherwise the response may wake the loop. */
    if (c->borrower != NULL && c->borrower->peer == p)
        rp_loop_change(c->loop, &p->watch, p->watch.events & ~(uint32_t)RP_READABLE);
    all = write_all(p);
    if (p->state != RP_PEER_OVER && (rp_h2_is_ended(p->h2) || rp_h2_is_over(p->h2)))
        end_gone(p);
    if (p->state != RP_PEER_OVER && p != c->current && p->calls == NULL && all)
        end(p, "it had no calls left");
    if (p->state == RP_PEER_OVER) {
        rp_channel_on_over(c, p);
        return;
    }
    events = p->link.read_waits != 0 ? p->link.read_waits : RP_READABLE;
    if (c->borrower != NULL && c->borrower->peer == p) events = 0;
    if (!all) events |= p->link.write_waits != 0 ? p->link.write_waits : RP_WRITABLE;
    rp_loop_change(c->loop, &p->watch, events);
    if (c->waiting != NULL && p == c->current && rp_h2_can_begin(p->h2)) rp_channel_touch(c);
}
