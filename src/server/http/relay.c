/* SPDX-License-Identifier: Apache-2.0 */
/* Each way has a buffer. It is filled when it is empty, and then written until it is empty
 * again. So a way reads at most one buffer ahead of the other side.
 *
 * A far link that has ended may not have read all that the near one sends. These bytes are
 * discarded for a while: closing the near link with unread bytes would reset it, and the peer
 * could lose the end of the response. */
#include "server/http/relay.h"

#include <assert.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

enum { WAY_BYTES = 16384, DISCARD_BYTES = 1 << 20 };

/* One direction: from one link to the other. */
typedef struct way {
    rp_link *from, *to;
    size_t start, end; /* bytes of the buffer that are to be written */
    bool ended;        /* `from` has ended or broken */
    bool broken;       /* `from` has broken */
    bool done;         /* all bytes were written, and `to` was told the end */
    bool deaf;         /* `to` takes no more bytes: they are discarded */
    size_t discarded;  /* bytes so far */
    uint8_t buffer[WAY_BYTES];
} way;

struct rp_relay {
    rp_allocator alloc;
    rp_relays *relays;
    rp_relay *prev, *next;
    rp_link near, far;
    rp_watch near_watch, far_watch;
    bool near_watched, far_watched;
    bool lingers; /* the far link has ended */
    rp_timer linger;
    way up, down; /* near to far, and far to near */
};

static void close_relay(rp_relay *r)
{
    rp_allocator alloc = r->alloc;
    rp_relays *relays = r->relays;

    rp_loop_disarm(relays->loop, &r->linger);
    if (r->near_watched) rp_loop_forget(relays->loop, &r->near_watch);
    if (r->far_watched) rp_loop_forget(relays->loop, &r->far_watch);
    rp_link_deinit(&r->near);
    rp_link_deinit(&r->far);
    assert(r->prev != NULL ? r->prev->next == r : relays->first == r); /* R1 */
    *(r->prev != NULL ? &r->prev->next : &relays->first) = r->next;
    if (r->next != NULL) r->next->prev = r->prev;
    assert(relays->count > 0); /* R1 */
    relays->count--;
    rp_release(&alloc, r, sizeof *r);
}

/* Discards the buffer. False if more than DISCARD_BYTES were discarded. */
static bool discard(way *w)
{
    w->discarded += w->end - w->start;
    w->start = w->end;
    return w->discarded <= DISCARD_BYTES;
}

/* `to` takes no more bytes. A plain link may still be read. */
static void stop_listening(way *w)
{
    w->deaf = true;
    if (w->to->ssl == NULL) w->to->broken = false;
}

/* Moves bytes one way until a link would block. False if the relay has to end. */
static bool move(way *w)
{
    for (;;) {
        struct iovec part;
        rp_link_result result;
        size_t moved = 0;

        assert(w->start <= w->end && w->end <= WAY_BYTES); /* R2 */
        if (w->start < w->end && w->deaf) {
            if (!discard(w)) return false;
            continue;
        }
        if (w->start < w->end) {
            part = (struct iovec){w->buffer + w->start, w->end - w->start};
            result = rp_link_write(w->to, &part, 1, false, &moved);
            if (result == RP_LINK_AGAIN) return true;
            if (result != RP_LINK_OK) stop_listening(w);
            w->start += moved;
            continue;
        }
        if (w->ended) {
            if (!w->done) rp_link_end_writing(w->to);
            w->done = true;
            return true;
        }
        assert(w->start == w->end); /* R3 */
        w->start = w->end = 0;
        part = (struct iovec){w->buffer, WAY_BYTES};
        result = rp_link_read(w->from, &part, 1, &moved);
        if (result == RP_LINK_AGAIN) return true;
        w->broken = result == RP_LINK_BROKEN;
        w->ended = result != RP_LINK_OK;
        w->end = moved;
    }
}

/* The events that a link waits for: `out` reads from it, `in` writes to it. */
static uint32_t wants(const rp_link *link, const way *out, const way *in)
{
    uint32_t events = 0;

    if (!out->ended && out->start == out->end) events |= link->read_waits;
    if (in->start < in->end) events |= link->write_waits;
    return events;
}

/* Starts to linger: the near link may read the rest, and close. False if there is no memory. */
static bool begin_linger(rp_relay *r)
{
    rp_loop *loop = r->relays->loop;

    if (r->lingers) return true;
    r->lingers = true;
    return rp_loop_arm(loop, &r->linger, rp_loop_now(loop) + r->relays->linger_ns) == RP_OK;
}

/* Moves both ways. False if the relay ends: the near link has gone, or both have ended. */
static bool move_both(rp_relay *r)
{
    if (!move(&r->up) || r->up.broken || !move(&r->down) || r->down.deaf) return false;
    if (!r->down.done) return true;
    r->up.deaf = true;
    return move(&r->up) && !r->up.ended && begin_linger(r);
}

/* Moves bytes and updates the events. False if the relay has been closed. */
static bool carry(rp_relay *r)
{
    rp_loop *loop = r->relays->loop;

    if (!move_both(r)) {
        close_relay(r);
        return false;
    }
    rp_loop_change(loop, &r->near_watch, wants(&r->near, &r->up, &r->down));
    if (r->far_watched) rp_loop_change(loop, &r->far_watch, wants(&r->far, &r->down, &r->up));
    return true;
}

/* RP_HUNG_UP is reported in every turn, even to a watch that requests no event. So if the near
 * link has hung up and its watch requests no event, the relay ends. If the far link has hung
 * up, it is still read to its end as the near link makes room, but only for linger_ns. */
static void on_near(rp_watch *watch, uint32_t events)
{
    rp_relay *r = (rp_relay *)(void *)((char *)watch - offsetof(rp_relay, near_watch));

    if (carry(r) && (events & RP_HUNG_UP) != 0 && watch->events == 0) close_relay(r);
}

static void on_far(rp_watch *watch, uint32_t events)
{
    rp_relay *r = (rp_relay *)(void *)((char *)watch - offsetof(rp_relay, far_watch));

    if (carry(r) && (events & RP_HUNG_UP) != 0 && watch->events == 0) {
        rp_loop_forget(r->relays->loop, watch);
        r->far_watched = false;
        if (!begin_linger(r)) close_relay(r);
    }
}

static void on_linger(rp_timer *timer)
{
    close_relay((rp_relay *)(void *)((char *)timer - offsetof(rp_relay, linger)));
}

/* If the number of relays has reached its bound, closes the oldest relay that lingers. */
static void make_room(rp_relays *relays)
{
    rp_relay *oldest = NULL;

    if (relays->count < relays->most) return;
    for (rp_relay *r = relays->first; r != NULL; r = r->next)
        if (r->lingers) oldest = r;
    if (oldest != NULL) close_relay(oldest);
}

static rp_relay *new_relay(const rp_allocator *alloc, rp_relays *relays)
{
    rp_relay *r;

    make_room(relays);
    r = relays->count < relays->most ? rp_alloc_zero(alloc, sizeof *r) : NULL;
    if (r == NULL) return NULL;
    r->alloc = *alloc;
    r->relays = relays;
    r->linger.on_due = on_linger;
    r->next = relays->first;
    if (r->next != NULL) r->next->prev = r;
    relays->first = r;
    relays->count++;
    assert(relays->count <= relays->most); /* R1 */
    return r;
}

rp_status rp_relay_start(const rp_allocator *alloc, rp_relays *relays, rp_link *near,
                         rp_link *far)
{
    rp_relay *r = new_relay(alloc, relays);

    if (r == NULL) {
        rp_link_deinit(near);
        rp_link_deinit(far);
        return RP_NO_RESOURCE;
    }
    r->near = *near;
    r->far = *far;
    *near = *far = (rp_link){.fd = -1};
    r->up.from = r->down.to = &r->near;
    r->up.to = r->down.from = &r->far;
    r->near_watch = (rp_watch){.fd = r->near.fd, .on_ready = on_near};
    r->far_watch = (rp_watch){.fd = r->far.fd, .on_ready = on_far};
    r->near_watched = rp_loop_watch(relays->loop, &r->near_watch, RP_READABLE) == RP_OK;
    r->far_watched = rp_loop_watch(relays->loop, &r->far_watch, RP_READABLE) == RP_OK;
    if (!r->near_watched || !r->far_watched) {
        close_relay(r);
        return RP_NO_RESOURCE;
    }
    (void)carry(r); /* TLS may have read more than the handshake */
    return RP_OK;
}

int rp_relay_to_pair(const rp_allocator *alloc, rp_relays *relays, rp_link *near)
{
    int pair[2];
    rp_link far;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return -1;
    if (rp_link_init(&far, pair[0], NULL) != RP_OK) { /* cannot fail for a plain link */
        (void)close(pair[0]);
        (void)close(pair[1]);
        return -1;
    }
    if (rp_relay_start(alloc, relays, near, &far) == RP_OK) return pair[1];
    (void)close(pair[1]);
    return -1;
}

void rp_relays_deinit(rp_relays *relays)
{
    while (relays->first != NULL) close_relay(relays->first);
}
