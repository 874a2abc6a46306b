/* SPDX-License-Identifier: Apache-2.0 */
/* Each way has a buffer. It is read into when it is empty and written from until it is empty
 * again, so that a link is always offered what it did not take before. Neither way runs ahead
 * of the other side's reading by more than that.
 *
 * A far one that is through may not have taken all that the near one sends: that is thrown away
 * for a while. Were the near link closed while something comes in, it would be reset, and the
 * answer lost on its way. */
#include "server/http/relay.h"

#include "util/mem.h"

enum { WAY_BYTES = 16384, THROWN_BYTES = 1 << 20 };

/* From one link to the other. */
typedef struct way {
    rp_link *from, *to;
    size_t start, end; /* what of the buffer is to be written */
    bool ended;        /* nothing more comes */
    bool broken;       /* nor can anything be sent there */
    bool done;         /* and the other side has been told */
    bool deaf;         /* the other side takes nothing more: it is thrown away */
    size_t thrown;     /* so far */
    uint8_t buffer[WAY_BYTES];
} way;

struct rp_relay {
    rp_allocator alloc;
    rp_relays *relays;
    rp_relay *prev, *next;
    rp_link near, far;
    rp_watch near_watch, far_watch;
    bool near_watched, far_watched;
    bool lingers; /* the far one is through */
    rp_timer linger;
    way up, down; /* to the far side, and from there */
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
    *(r->prev != NULL ? &r->prev->next : &relays->first) = r->next;
    if (r->next != NULL) r->next->prev = r->prev;
    relays->count--;
    rp_release(&alloc, r, sizeof *r);
}

/* Throws away what is in the buffer. False if that has become too much. */
static bool throw_away(way *w)
{
    w->thrown += w->end - w->start;
    w->start = w->end;
    return w->thrown <= THROWN_BYTES;
}

/* The other side takes nothing more. What it has said may still be read, of a plain link. */
static void stop_listening(way *w)
{
    w->deaf = true;
    if (w->to->ssl == NULL) w->to->broken = false;
}

/* Moves what can be moved. False if it cannot go on. */
static bool move(way *w)
{
    for (;;) {
        struct iovec part;
        rp_link_result result;
        size_t moved = 0;

        if (w->start < w->end && w->deaf) {
            if (!throw_away(w)) return false;
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
        w->start = w->end = 0;
        part = (struct iovec){w->buffer, WAY_BYTES};
        result = rp_link_read(w->from, &part, 1, &moved);
        if (result == RP_LINK_AGAIN) return true;
        w->broken = result == RP_LINK_BROKEN;
        w->ended = result != RP_LINK_OK;
        w->end = moved;
    }
}

/* What a link has to become ready for: to be read by one way, to be written by the other. */
static uint32_t wants(const rp_link *link, const way *out, const way *in)
{
    uint32_t events = 0;

    if (!out->ended && out->start == out->end) events |= link->read_waits;
    if (in->start < in->end) events |= link->write_waits;
    return events;
}

/* Waits for the near one to take what is left, and to go. False if that cannot be. */
static bool begin_linger(rp_relay *r)
{
    rp_loop *loop = r->relays->loop;

    if (r->lingers) return true;
    r->lingers = true;
    return rp_loop_arm(loop, &r->linger, rp_loop_now(loop) + r->relays->linger_ns) == RP_OK;
}

/* Moves both ways. False if it is over: the near one is gone, or both are through. */
static bool move_both(rp_relay *r)
{
    if (!move(&r->up) || r->up.broken || !move(&r->down) || r->down.deaf) return false;
    if (!r->down.done) return true;
    r->up.deaf = true;
    return move(&r->up) && !r->up.ended && begin_linger(r);
}

/* Carries on. False if the relay has been closed. */
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

/* Who has hung up is reported for ever, asked for or not. If nothing is asked for, a near one
 * that is gone ends it all; a far one is read to its end as the near one makes room, in so much
 * time and no more. */
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

/* Those who only linger keep nobody out: the oldest makes room. */
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

void rp_relays_deinit(rp_relays *relays)
{
    while (relays->first != NULL) close_relay(relays->first);
}
