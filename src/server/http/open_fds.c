/* SPDX-License-Identifier: Apache-2.0 */
#include "server/http/open_fds.h"

#include <assert.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"

void rp_open_fds_init(rp_open_fds *fds, rp_loop_metrics *counters, rp_clients *clients)
{
    memset(fds, 0, sizeof *fds);
    fds->counters = counters;
    fds->clients = clients;
    for (size_t i = 0; i < RP_OPEN_FDS; i++) fds->entries[i].fd = -1;
}

static rp_open_fd *find(rp_open_fds *fds, int fd)
{
    for (size_t i = 0; i < RP_OPEN_FDS; i++)
        if (fds->entries[i].fd == fd) return &fds->entries[i];
    return NULL;
}

rp_open_fd *rp_open_fds_find(rp_open_fds *fds, int fd)
{
    return fd >= 0 ? find(fds, fd) : NULL;
}

static void cut(rp_open_fds *fds, rp_open_fd *o)
{
    (void)shutdown(o->fd, SHUT_RDWR); /* which libmicrohttpd will notice */
    if (o->wait != NULL) (void)rp_page_maker_cancel(fds->maker, o->wait);
    o->cut = true;
    assert(fds->live > 0 && fds->groups[o->group].live > 0); /* P1, P3 */
    fds->live--;
    fds->groups[o->group].live--;
    if (fds->counters != NULL)
        rp_counter_add_shared(&fds->counters->refusals[RP_REFUSED_PAGE_CONNECTIONS], 1);
}

/* How much is lost if a connection is cut. */
typedef enum worth { NEW, IDLE, READING, BUSY } worth;

static worth worth_of(const rp_open_fd *o)
{
    if (o->wait != NULL || o->made != NULL) return BUSY;
    if (o->body_due_ns != 0) return READING;
    return o->is_accepted ? IDLE : NEW;
}

/* Whether to cut `a` rather than `b`. */
static bool is_cheaper(const rp_open_fds *fds, const rp_open_fd *a, const rp_open_fd *b)
{
    size_t a_peer = fds->groups[a->group].live, b_peer = fds->groups[b->group].live;

    if (worth_of(a) != worth_of(b)) return worth_of(a) < worth_of(b);
    return a_peer != b_peer ? a_peer > b_peer : a->number < b->number;
}

/* Cuts a connection for a new one, `newest`. */
static void cut_cheapest(rp_open_fds *fds, const rp_open_fd *newest)
{
    rp_open_fd *cheapest = NULL;
    size_t new_count = 0;

    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        const rp_open_fd *o = &fds->entries[i];

        new_count += o->fd >= 0 && !o->cut && worth_of(o) == NEW;
    }
    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        rp_open_fd *o = &fds->entries[i];

        if (o->fd < 0 || o->cut || o == newest) continue;
        if (worth_of(o) == NEW && new_count <= RP_NEW_FDS) continue;
        if (cheapest == NULL || is_cheaper(fds, o, cheapest)) cheapest = o;
    }
    if (cheapest != NULL) cut(fds, cheapest);
}

/* The index of the group of a peer (P3). There is always a free one: there are as many as
 * entries. */
static size_t group_of(rp_open_fds *fds, uint64_t peer)
{
    size_t unused = RP_OPEN_FDS;

    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        if (fds->groups[i].open > 0 && fds->groups[i].peer == peer) return i;
        if (fds->groups[i].open == 0) unused = i;
    }
    assert(unused < RP_OPEN_FDS);
    fds->groups[unused] = (rp_fd_group){.peer = peer};
    return unused;
}

/* Whether a page is being sent to this entry. */
static bool is_read(const rp_open_fd *o)
{
    return o->fd >= 0 && !o->cut && o->made != NULL;
}

/* Bytes of the pages that are being sent, each counted once. `*most` receives the largest bound
 * of one of them. */
static size_t held_bytes(const rp_open_fds *fds, size_t *most)
{
    size_t bytes = 0;

    *most = 0;
    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        const rp_open_fd *o = &fds->entries[i];
        size_t before = 0;

        if (!is_read(o)) continue;
        if (o->made->answer.body.most > *most) *most = o->made->answer.body.most;
        while (before < i &&
               !(is_read(&fds->entries[before]) && fds->entries[before].made == o->made))
            before++;
        if (before == i) bytes += o->made->answer.body.size;
    }
    return bytes;
}

/* Cuts the connections that read the oldest page but `newest`. False if there are none. */
static bool cut_readers(rp_open_fds *fds, const rp_made_page *newest)
{
    const rp_made_page *oldest = NULL;

    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        const rp_open_fd *o = &fds->entries[i];

        if (is_read(o) && o->made != newest &&
            (oldest == NULL || o->made->number < oldest->number))
            oldest = o->made;
    }
    if (oldest == NULL) return false;
    for (size_t i = 0; i < RP_OPEN_FDS; i++)
        if (is_read(&fds->entries[i]) && fds->entries[i].made == oldest)
            cut(fds, &fds->entries[i]);
    return true;
}

void rp_open_fds_enter(rp_open_fds *fds, int fd, uint64_t number, const char *peer)
{
    rp_open_fd *place = find(fds, -1);

    if (place == NULL) { /* cannot happen: libmicrohttpd has the same limit */
        (void)shutdown(fd, SHUT_RDWR);
        return;
    }
    *place = (rp_open_fd){.fd = fd, .number = fds->arrivals++, .group = group_of(fds, number)};
    fds->groups[place->group].open++;
    fds->groups[place->group].live++;
    if (fds->clients != NULL)
        rp_clients_enter(fds->clients, &place->client, peer, RP_CLIENT_HTTP1, rp_now_ns());
    fds->live++;
    assert(fds->live <= RP_OPEN_FDS); /* P1 */
    if (fds->live > RP_HTTP_PAGE_CONNECTIONS) cut_cheapest(fds, place);
}

void rp_open_fds_leave(rp_open_fds *fds, int fd)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);

    if (place == NULL) return;
    assert(place->cut || fds->live > 0); /* P1 */
    if (!place->cut) fds->live--, fds->groups[place->group].live--;
    assert(fds->groups[place->group].open > 0); /* P3 */
    fds->groups[place->group].open--;
    rp_made_page_unref(place->made);
    if (fds->clients != NULL) rp_clients_leave(fds->clients, &place->client);
    *place = (rp_open_fd){.fd = -1};
}

void rp_open_fds_cut(rp_open_fds *fds, int fd)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);

    if (place != NULL && !place->cut) cut(fds, place);
}

int64_t rp_open_fds_cut_due(rp_open_fds *fds, int64_t now_ns)
{
    int64_t rest_ns = INT64_MAX;

    for (size_t i = 0; i < RP_OPEN_FDS; i++) {
        rp_open_fd *o = &fds->entries[i];

        if (o->fd < 0 || o->cut || o->body_due_ns == 0) continue;
        if (o->body_due_ns <= now_ns)
            cut(fds, o);
        else if (o->body_due_ns - now_ns < rest_ns)
            rest_ns = o->body_due_ns - now_ns;
    }
    return rest_ns;
}

rp_client *rp_open_fds_client(rp_open_fds *fds, int fd)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);

    return place != NULL ? &place->client : NULL;
}

void rp_open_fds_wait(rp_open_fds *fds, int fd, rp_page_wait *wait)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);

    if (place != NULL) place->wait = wait;
}

void rp_open_fds_hold(rp_open_fds *fds, int fd, rp_made_page *made)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);
    size_t most;

    if (place == NULL) return;
    rp_made_page_unref(place->made);
    place->made = rp_made_page_ref(made);
    /* 0: all of them are sentences */
    while (held_bytes(fds, &most) > RP_HELD_PAGES * most && most > 0)
        if (!cut_readers(fds, made)) return;
}

void rp_open_fds_drop(rp_open_fds *fds, int fd)
{
    rp_open_fd *place = rp_open_fds_find(fds, fd);

    if (place == NULL) return;
    rp_made_page_unref(place->made);
    place->made = NULL;
}
