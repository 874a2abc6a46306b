/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt to connect:
 *
 *   begin -> try each endpoint in turn -> done
 *         -> lookup -> try ...
 *
 * A lookup has a thread of its own, as it may take long and cannot be cancelled. Connector and
 * lookup point at each other; the lookup's lock guards its pointer. A lookup without an owner
 * is freed by its thread, one with an owner on the loop. A connector has at most one lookup: an
 * attempt that ends first leaves it to the next.
 *
 * Invariants:
 *   C1  watch.fd >= 0 only in the phase TRY, and then it is watched;
 *   C2  the timer is armed in all phases but IDLE;
 *   C3  next <= endpoints.count in the phase TRY. */
#include "net/connector.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fork_fds.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/thread.h"

enum {
    UNIX_SEND_BYTES = 1 << 20, /* the system's default is too small for bulk data */
    UNACKNOWLEDGED_MS = 60000,
};

struct rp_lookup {
    rp_post post;                          /* the first field */
    rp_mutex mu;                           /* rank 85 */
    rp_connector *owner RP_GUARDED_BY(mu); /* NULL: its result is not needed any more */
    rp_loop *loop;
    rp_address address;
    rp_endpoints endpoints;
    rp_status status;
    rp_error err;
};

static void try_next(rp_connector *c);

void rp_connector_close_fd(int fd)
{
    if (fd < 0) return;
    rp_fork_fds_remove(fd);
    (void)close(fd);
}

static void done(rp_connector *c, int fd)
{
    assert(c->phase != RP_CONNECTOR_IDLE && c->watch.fd < 0); /* C1 */
    c->phase = RP_CONNECTOR_IDLE;
    rp_loop_disarm(c->loop, &c->timer);
    c->on_done(c, fd, c->why);
}

static void free_lookup(rp_lookup *l)
{
    rp_mutex_deinit(&l->mu);
    rp_release(rp_allocator_default(), l, sizeof *l);
}

/* Called on the loop's thread, if the lookup had an owner when it ended. */
static void on_looked_up(rp_post *post)
{
    rp_lookup *l = (rp_lookup *)post;
    rp_connector *c;

    rp_mutex_lock(&l->mu); /* the lookup's thread may still hold it */
    c = l->owner;
    rp_mutex_unlock(&l->mu);
    if (c != NULL) {
        assert(c->lookup == l);
        c->lookup = NULL;
        if (c->phase == RP_CONNECTOR_LOOKUP && l->status == RP_OK) {
            c->endpoints = l->endpoints;
            c->phase = RP_CONNECTOR_TRY;
        } else {
            (void)snprintf(c->why, sizeof c->why, "%.150s", l->err.text);
        }
    }
    bool goes_on = c != NULL && c->phase == RP_CONNECTOR_TRY;
    bool fails = c != NULL && c->phase == RP_CONNECTOR_LOOKUP;
    free_lookup(l);
    if (goes_on) try_next(c);
    if (fails) done(c, -1);
}

static void *look_up(void *user)
{
    rp_lookup *l = user;
    bool is_wanted;

    l->status = rp_address_resolve(&l->address, &l->endpoints, &l->err);
    rp_mutex_lock(&l->mu);
    is_wanted = l->owner != NULL;
    if (is_wanted) rp_loop_post(l->loop, &l->post);
    rp_mutex_unlock(&l->mu);
    if (!is_wanted) free_lookup(l);
    return NULL;
}

/* Leaves the lookup to its thread, which frees it when it ends. */
static void forget_lookup(rp_connector *c)
{
    rp_lookup *l = c->lookup;

    if (l == NULL) return;
    c->lookup = NULL;
    rp_mutex_lock(&l->mu);
    l->owner = NULL;
    rp_mutex_unlock(&l->mu);
}

static bool start_lookup(rp_connector *c)
{
    rp_lookup *l = rp_alloc_zero(rp_allocator_default(), sizeof *l);

    assert(c->lookup == NULL);
    if (l == NULL) return false;
    l->post.run = on_looked_up;
    l->owner = c;
    l->loop = c->loop;
    l->address = *c->address;
    rp_mutex_init(&l->mu, RP_RANK_RUNTIME);
    if (rp_thread_detach("reprise-names", look_up, l)) {
        c->lookup = l;
        return true;
    }
    free_lookup(l);
    return false;
}

static int open_socket(const rp_endpoint *e)
{
    static const int on = 1, unacknowledged_ms = UNACKNOWLEDGED_MS, bytes = UNIX_SEND_BYTES;
    int fd = socket(e->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0) return -1;
    rp_fork_fds_add(fd);
    if (e->address.ss_family == AF_UNIX) {
        (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
        return fd;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms,
                     sizeof unacknowledged_ms);
    return fd;
}

static void drop_try(rp_connector *c)
{
    if (c->watch.fd < 0) return;
    rp_loop_forget(c->loop, &c->watch);
    rp_connector_close_fd(c->watch.fd);
    c->watch.fd = -1;
}

static void set_why(rp_connector *c, int why)
{
    (void)snprintf(c->why, sizeof c->why, "%s", strerror(why));
}

static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_connector *c = (rp_connector *)((char *)watch - offsetof(rp_connector, watch));
    int why = 0, fd = watch->fd;
    socklen_t bytes = sizeof why;

    (void)events;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &bytes) != 0) why = errno;
    if (why != 0) {
        set_why(c, why);
        drop_try(c);
        try_next(c);
        return;
    }
    rp_loop_forget(c->loop, watch);
    watch->fd = -1;
    done(c, fd);
}

/* Starts to connect to an endpoint. True if c->watch is connected or connecting. */
static bool try_one(rp_connector *c, const rp_endpoint *e)
{
    int fd = open_socket(e), connected;

    if (fd < 0) {
        set_why(c, errno);
        return false;
    }
    connected = connect(fd, (const struct sockaddr *)&e->address, e->bytes);
    if (connected != 0 && errno != EINPROGRESS) {
        set_why(c, errno);
        rp_connector_close_fd(fd);
        return false;
    }
    assert(c->watch.fd < 0);
    c->watch.fd = fd;
    if (rp_loop_watch(c->loop, &c->watch, RP_WRITABLE) == RP_OK) return true;
    (void)snprintf(c->why, sizeof c->why, "the loop cannot watch a descriptor more");
    rp_connector_close_fd(fd);
    c->watch.fd = -1;
    return false;
}

static void try_next(rp_connector *c)
{
    assert(c->phase == RP_CONNECTOR_TRY && c->next <= c->endpoints.count); /* C3 */
    while (c->next < c->endpoints.count) {
        int64_t now_ns = rp_loop_now(c->loop), left = (int64_t)(c->endpoints.count - c->next);
        int64_t share_ns = (c->until_ns - now_ns) / left;

        if (c->until_ns <= now_ns || !try_one(c, &c->endpoints.list[c->next++])) continue;
        /* Cannot fail: the timer is armed already (C2). */
        (void)!rp_loop_arm(c->loop, &c->timer, now_ns + share_ns);
        return;
    }
    done(c, -1);
}

static void begin(rp_connector *c)
{
    c->next = 0;
    if (rp_address_resolve_now(c->address, &c->endpoints)) {
        c->phase = RP_CONNECTOR_TRY;
        try_next(c);
        return;
    }
    c->phase = RP_CONNECTOR_LOOKUP;
    if (c->lookup != NULL || start_lookup(c)) return;
    (void)snprintf(c->why, sizeof c->why, "no thread to look up '%.100s'", c->address->host);
    done(c, -1);
}

static void on_due(rp_timer *timer)
{
    rp_connector *c = (rp_connector *)((char *)timer - offsetof(rp_connector, timer));

    /* Cannot fail: this timer has just left its place in the heap. */
    (void)!rp_loop_arm(c->loop, timer, c->until_ns);
    if (c->phase == RP_CONNECTOR_BEGIN) {
        begin(c);
    } else if (c->phase == RP_CONNECTOR_LOOKUP) {
        (void)snprintf(c->why, sizeof c->why, "looking up '%.100s' takes too long",
                       c->address->host);
        done(c, -1);
    } else {
        (void)snprintf(c->why, sizeof c->why, "no answer");
        drop_try(c);
        try_next(c);
    }
}

rp_status rp_connector_start(rp_connector *c, int64_t until_ns)
{
    rp_status st;

    assert(c->phase == RP_CONNECTOR_IDLE && c->on_done != NULL);
    c->timer.on_due = on_due;
    c->watch = (rp_watch){.fd = -1, .on_ready = on_ready};
    c->until_ns = until_ns;
    c->why[0] = '\0';
    st = rp_loop_arm(c->loop, &c->timer, rp_loop_now(c->loop));
    if (st == RP_OK) c->phase = RP_CONNECTOR_BEGIN;
    return st;
}

void rp_connector_stop(rp_connector *c)
{
    forget_lookup(c);
    if (c->phase == RP_CONNECTOR_IDLE) return;
    drop_try(c);
    rp_loop_disarm(c->loop, &c->timer);
    c->phase = RP_CONNECTOR_IDLE;
}
