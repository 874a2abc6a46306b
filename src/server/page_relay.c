/* SPDX-License-Identifier: Apache-2.0 */
#include "server/page_relay.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/mem.h"

enum {
    BUFFER_BYTES = 16 << 10,
    ROUNDS = 16,             /* of moving in one turn */
    DISCARD_BYTES = 1 << 20, /* that a peer may send after the end of its answer */
};

static const int64_t idle_ns = INT64_C(1000000000) * (RP_HTTP_PAGE_IDLE_S + 5);
static const int64_t linger_ns = INT64_C(2000000000);

/* Bytes on their way: only read into when it is empty. */
typedef struct carried {
    size_t at, size;
    uint8_t data[BUFFER_BYTES];
} carried;

struct rp_page_relay {
    rp_worker *worker;
    rp_page_relay *prev, *next; /* of the worker, the newest first */
    rp_link link;
    int pair_fd;
    rp_watch link_watch, pair_watch;
    bool watches_link, watches_pair;
    rp_timer timer;
    bool peer_ended, page_ended; /* has said its last byte */
    bool told_page, told_peer;   /* that the other has */
    bool page_gone;              /* takes nothing more */
    bool broken;                 /* or over: to be closed */
    size_t discarded;
    int64_t moved_ns; /* when something was carried last */
    int64_t ended_ns; /* when the peer was told */
    carried up, down;
};

/* --- opening and closing ---------------------------------------------------------------------- */

static void close_relay(rp_page_relay *r)
{
    rp_worker *worker = r->worker;

    rp_loop_disarm(worker->loop, &r->timer);
    if (r->watches_link) rp_loop_forget(worker->loop, &r->link_watch);
    if (r->watches_pair) rp_loop_forget(worker->loop, &r->pair_watch);
    *(r->prev != NULL ? &r->prev->next : &worker->relays) = r->next;
    if (r->next != NULL) r->next->prev = r->prev;
    worker->relay_count--;
    rp_link_deinit(&r->link);
    (void)close(r->pair_fd);
    rp_release(&worker->server->alloc, r, sizeof *r);
}

void rp_page_relays_close(rp_worker *worker)
{
    while (worker->relays != NULL) close_relay(worker->relays);
}

static void close_oldest(rp_worker *worker)
{
    rp_page_relay *r = worker->relays;

    while (r->next != NULL) r = r->next;
    rp_counter_add(&worker->metrics->refusals[RP_REFUSED_PAGE_CONNECTIONS], 1);
    close_relay(r);
}

/* --- carrying --------------------------------------------------------------------------------- */

/* What became of a system call on the pair: bytes, or the flag is set unless it may go on
 * later. */
static size_t taken(ssize_t n, bool *over)
{
    if (n > 0) return (size_t)n;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) *over = true;
    return 0;
}

static size_t read_peer(rp_page_relay *r)
{
    struct iovec part = {r->up.data, sizeof r->up.data};
    size_t n = 0;

    switch (rp_link_read(&r->link, &part, 1, &n)) {
    case RP_LINK_OK: rp_counter_add(&r->worker->metrics->bytes_read, n); break;
    case RP_LINK_AGAIN: break;
    case RP_LINK_END: r->peer_ended = true; break;
    case RP_LINK_BROKEN: r->broken = true; break;
    }
    return n;
}

static size_t write_peer(rp_page_relay *r)
{
    struct iovec part = {r->down.data + r->down.at, r->down.size};
    size_t n = 0;
    rp_link_result result = rp_link_write(&r->link, &part, 1, false, &n);

    if (result == RP_LINK_BROKEN || result == RP_LINK_END) r->broken = true;
    rp_counter_add(&r->worker->metrics->bytes_written, n);
    return n;
}

/* What a peer sends when nobody listens any more is thrown away, so that it is not reset while
 * it still reads the answer. */
static size_t write_page(rp_page_relay *r)
{
    if (r->page_gone || r->told_peer) {
        r->discarded += r->up.size;
        if (r->discarded > DISCARD_BYTES) r->broken = true;
        return r->up.size;
    }
    return taken(
        send(r->pair_fd, r->up.data + r->up.at, r->up.size, MSG_NOSIGNAL | MSG_DONTWAIT),
        &r->page_gone);
}

/* From the peer to the page, once. True if anything happened. */
static bool carry_up(rp_page_relay *r)
{
    size_t before = r->up.size, n = 0;
    bool ended = r->peer_ended;

    if (r->up.size == 0 && !r->peer_ended) {
        r->up.at = 0;
        r->up.size = read_peer(r);
    }
    if (r->up.size > 0 && !r->broken) {
        n = write_page(r);
        r->up.at += n;
        r->up.size -= n;
    }
    if (r->peer_ended && r->up.size == 0 && !r->told_page) {
        (void)shutdown(r->pair_fd, SHUT_WR);
        r->told_page = true;
    }
    return n > 0 || r->up.size != before || r->peer_ended != ended;
}

/* From the page to the peer, once. */
static bool carry_down(rp_page_relay *r)
{
    size_t before = r->down.size, n = 0;
    bool ended = r->page_ended;

    if (r->down.size == 0 && !r->page_ended) {
        r->down.at = 0;
        r->down.size = taken(recv(r->pair_fd, r->down.data, sizeof r->down.data, MSG_DONTWAIT),
                             &r->page_ended);
    }
    if (r->down.size > 0 && !r->broken) {
        n = write_peer(r);
        r->down.at += n;
        r->down.size -= n;
    }
    if (r->page_ended && r->down.size == 0 && !r->told_peer) {
        rp_link_end_writing(&r->link);
        r->told_peer = true;
        r->ended_ns = rp_loop_now(r->worker->loop);
    }
    return n > 0 || r->down.size != before || r->page_ended != ended;
}

static void ask_for_events(rp_page_relay *r)
{
    rp_loop *loop = r->worker->loop;
    uint32_t link = 0, pair = 0;

    if (r->up.size == 0 && !r->peer_ended) link |= r->link.read_waits;
    if (r->down.size > 0) link |= r->link.write_waits;
    if (r->down.size == 0 && !r->page_ended) pair |= RP_READABLE;
    if (r->up.size > 0) pair |= RP_WRITABLE;
    rp_loop_change(loop, &r->link_watch, link);
    if (r->watches_pair) rp_loop_change(loop, &r->pair_watch, pair);
}

/* Carries what there is. False if it is over: closed. */
static bool carry(rp_page_relay *r)
{
    rp_loop *loop = r->worker->loop;
    int64_t now_ns = rp_loop_now(loop), due_ns;
    bool moved = true;

    for (int i = 0; i < ROUNDS && moved && !r->broken; i++) {
        moved = carry_up(r);
        moved |= carry_down(r);
        if (moved) r->moved_ns = now_ns;
    }
    due_ns = r->told_peer ? r->ended_ns + linger_ns : r->moved_ns + idle_ns;
    r->broken |= (r->told_peer && r->peer_ended) || due_ns <= now_ns;
    if (moved) due_ns = now_ns; /* what is left may be in TLS, and the descriptor silent */
    if (r->broken || rp_loop_arm(loop, &r->timer, due_ns) != RP_OK) {
        close_relay(r);
        return false;
    }
    ask_for_events(r);
    return true;
}

static void on_link_ready(rp_watch *watch, uint32_t events)
{
    rp_page_relay *r = (rp_page_relay *)((char *)watch - offsetof(rp_page_relay, link_watch));

    /* Nobody is there to read an answer. */
    if (carry(r) && (events & RP_HUNG_UP) != 0) close_relay(r);
}

static void on_pair_ready(rp_watch *watch, uint32_t events)
{
    rp_page_relay *r = (rp_page_relay *)((char *)watch - offsetof(rp_page_relay, pair_watch));

    if ((events & RP_HUNG_UP) != 0) { /* from now on it is never waited for */
        rp_loop_forget(r->worker->loop, &r->pair_watch);
        r->watches_pair = false;
    }
    (void)carry(r);
}

static void on_due(rp_timer *timer)
{
    (void)carry((rp_page_relay *)((char *)timer - offsetof(rp_page_relay, timer)));
}

/* --- beginning -------------------------------------------------------------------------------- */

/* RP_NO_RESOURCE. */
static rp_status begin(rp_page_relay *r)
{
    rp_loop *loop = r->worker->loop;
    rp_status st = rp_loop_arm(loop, &r->timer, r->moved_ns + idle_ns);

    if (st != RP_OK) return st;
    st = rp_loop_watch(loop, &r->link_watch, 0);
    if (st != RP_OK) return st;
    r->watches_link = true;
    st = rp_loop_watch(loop, &r->pair_watch, 0);
    r->watches_pair = st == RP_OK;
    return st;
}

void rp_page_relay_open(rp_worker *worker, rp_link link, const char *peer,
                        const char *certificate)
{
    rp_page_relay *r = rp_alloc(&worker->server->alloc, sizeof *r);
    int pair[2];

    if (r == NULL ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0) {
        rp_counter_add(
            &worker->metrics->refusals[r == NULL ? RP_REFUSED_MEMORY : RP_REFUSED_DESCRIPTORS],
            1);
        rp_release(&worker->server->alloc, r, sizeof *r);
        rp_link_deinit(&link);
        return;
    }
    if (worker->relay_count == RP_HTTP_PAGE_CONNECTIONS) close_oldest(worker);
    memset(r, 0, offsetof(rp_page_relay, up));
    r->up.size = r->down.size = 0;
    r->worker = worker;
    r->link = link;
    r->pair_fd = pair[0];
    r->link_watch = (rp_watch){.fd = link.fd, .on_ready = on_link_ready};
    r->pair_watch = (rp_watch){.fd = pair[0], .on_ready = on_pair_ready};
    r->timer.on_due = on_due;
    r->moved_ns = rp_loop_now(worker->loop);
    r->next = worker->relays;
    if (r->next != NULL) r->next->prev = r;
    worker->relays = r;
    worker->relay_count++;
    if (!rp_http_page_take(worker->server->page, pair[1], peer, certificate) ||
        begin(r) != RP_OK)
        close_relay(r);
    else
        (void)carry(r); /* TLS may have read ahead */
}
