/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of released holds are collected under a lock. They are sent together once there
 * are many, or their memory is large, or no hold is left. A send never waits: bytes that the
 * socket does not take are sent the next time.
 *
 * Invariants of a lease, whenever mu is free:
 *   H1  `out` has room for a number for every hold: out_bytes + hold_count * HOLD_BYTES <=
 *       out_capacity. So releasing a hold needs no memory;
 *   H2  fd is -1 once the connection is broken, and then never changes.
 * Invariants of a share, on the loop thread:
 *   H3  there is a lease exactly in the state READY;
 *   H4  there is a greeting, a watch and an armed timer exactly in the state ASKING;
 *   H5  there are waits only in the state ASKING, linked in both directions. */
#include "client/channel/shared_memory.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/channel/runtime.h"
#include "net/connector.h"
#include "net/fd_pass.h"
#include "util/fork_fds.h"
#include "util/mem.h"
#include "util/mutex.h"
#include "util/refcount.h"
#include "util/shared_map.h"
#include "util/verify.h"

enum {
    HOLD_BYTES = 8,
    BATCH = 128,           /* released holds that are sent together, */
    BATCH_BYTES = 8 << 20, /* or as many as hold this much memory */
    MAGIC_BYTES = 4,
    VERSION = 2,
    GREETING_BYTES = 32,
    PART_BYTES = 8,
    MAX_AUTHORIZATION = 4096,
};

#define ASK_NS ((int64_t)2000000000)

static const char magic[] = "RSM1";
static const uint64_t call_mark = (uint64_t)1 << 63;

struct rp_shared_lease {
    rp_refcount refs; /* the channel's, those of calls, and one for each hold */
    rp_allocator alloc;
    rp_shared_map map;
    uint8_t id[RP_LEASE_BYTES];
    uint64_t generation;      /* of the process: the child of a fork does not use the lease */
    rp_mutex mu;              /* rank 87: the rest */
    int fd RP_GUARDED_BY(mu); /* -1: the connection is broken (H2) */
    uint64_t last_call RP_GUARDED_BY(mu);
    size_t hold_count RP_GUARDED_BY(mu);  /* holds that are not released */
    size_t given_bytes RP_GUARDED_BY(mu); /* memory of released holds that are not sent */
    uint8_t *out RP_GUARDED_BY(mu);       /* numbers to be sent (H1) */
    size_t out_bytes RP_GUARDED_BY(mu);
    size_t out_capacity RP_GUARDED_BY(mu);
};

/* A hold on the memory of one sample, shared by its chunks. */
typedef struct hold {
    rp_refcount refs;
    rp_shared_lease *lease; /* a reference */
    uint64_t id;
    size_t bytes;
} hold;

#ifndef NDEBUG
/* Returns true if H1 holds. */
static bool has_room_locked(const rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
    return lease->out_bytes + lease->hold_count * HOLD_BYTES <= lease->out_capacity;
}

/* Returns true if H3 to H5 hold. */
static bool share_is_valid(const rp_share *share)
{
    const rp_share_wait *prev = NULL;

    if ((share->state == RP_SHARE_READY) != (share->lease != NULL)) return false;     /* H3 */
    if ((share->state == RP_SHARE_ASKING) != (share->greeting != NULL)) return false; /* H4 */
    if (share->state != RP_SHARE_ASKING && share->waits != NULL) return false;        /* H5 */
    for (const rp_share_wait *w = share->waits; w != NULL; prev = w, w = w->next)
        if (!w->is_waiting || w->prev != prev) return false; /* H5 */
    return true;
}
#endif

/* Reads a little-endian number. */
static uint64_t get_number(const uint8_t *at, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++) number |= (uint64_t)at[i] << (8 * i);
    return number;
}

/* Maps the parts of the arena that the server has sent so far. It need not wait for more,
 * because the server sends a part before a response that needs it. Returns false if the server
 * has sent anything else, or a part could not be mapped. */
static bool map_parts_locked(rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
    assert(lease->fd >= 0);
    for (;;) {
        uint8_t message[PART_BYTES];
        bool broken, ok;
        int part;
        int64_t moved = rp_fd_receive(lease->fd, message, sizeof message, &part, &broken);

        if (moved < 0) return !broken;
        ok = moved == PART_BYTES && part >= 0 &&
             rp_shared_map_add(&lease->map, part, get_number(message, PART_BYTES), NULL) ==
                 RP_OK;
        if (part >= 0) (void)close(part);
        if (!ok) return false;
    }
}

/* Closes the connection (H2). */
static void hang_up_locked(rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
    if (lease->fd < 0) return;
    (void)map_parts_locked(lease); /* responses that were received may need them */
    rp_fork_fds_remove(lease->fd);
    (void)close(lease->fd);
    lease->fd = -1;
}

/* Sends the collected numbers, as far as the socket takes them. */
static void flush_locked(rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
    ssize_t sent;

    lease->given_bytes = 0;
    if (lease->fd < 0) lease->out_bytes = 0;
    if (lease->out_bytes == 0) return;
    do {
        sent = send(lease->fd, lease->out, lease->out_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        hang_up_locked(lease);
        lease->out_bytes = 0;
    } else if (sent > 0) {
        assert((size_t)sent <= lease->out_bytes);
        lease->out_bytes -= (size_t)sent;
        memmove(lease->out, lease->out + sent, lease->out_bytes);
    }
}

/* Adds a number. There is room for it (H1). */
static void put_locked(rp_shared_lease *lease, uint64_t number) RP_REQUIRES(lease->mu)
{
    assert(lease->out_bytes + HOLD_BYTES <= lease->out_capacity); /* H1 */
    for (unsigned i = 0; i < HOLD_BYTES; i++)
        lease->out[lease->out_bytes++] = (uint8_t)(number >> (8 * i));
}

/* Makes room for a number for every hold, and `more` (H1). */
static bool reserve_locked(rp_shared_lease *lease, size_t more) RP_REQUIRES(lease->mu)
{
    size_t need = lease->out_bytes + (lease->hold_count + more) * HOLD_BYTES;
    size_t capacity = lease->out_capacity > 0 ? lease->out_capacity : 4096;

    if (need <= lease->out_capacity) return true;
    while (capacity < need) capacity *= 2;
    if (!rp_resize_array(&lease->alloc, &lease->out, lease->out_capacity, capacity, 1))
        return false;
    lease->out_capacity = capacity;
    assert(has_room_locked(lease));
    return true;
}

static void free_lease(rp_shared_lease *lease)
{
    rp_allocator alloc = lease->alloc;

    if (lease->generation != rp_runtime_generation()) return;
    rp_mutex_lock(&lease->mu);
    assert(lease->hold_count == 0); /* each hold has a reference */
    flush_locked(lease);
    hang_up_locked(lease);
    rp_release(&alloc, lease->out, lease->out_capacity);
    rp_mutex_unlock(&lease->mu);
    rp_shared_map_deinit(&lease->map);
    rp_mutex_deinit(&lease->mu);
    rp_release(&alloc, lease, sizeof *lease);
}

rp_shared_lease *rp_shared_lease_ref(rp_shared_lease *lease)
{
    rp_refcount_inc(&lease->refs);
    return lease;
}

void rp_shared_lease_unref(rp_shared_lease *lease)
{
    if (lease != NULL && rp_refcount_dec(&lease->refs)) free_lease(lease);
}

const uint8_t *rp_shared_lease_id(const rp_shared_lease *lease)
{
    return lease->id;
}

bool rp_shared_lease_is_lost(rp_shared_lease *lease)
{
    bool lost;

    rp_mutex_lock(&lease->mu);
    lost = lease->fd < 0;
    rp_mutex_unlock(&lease->mu);
    return lost;
}

/* Releases a hold. */
static void give_back(rp_shared_lease *lease, uint64_t id, size_t bytes)
{
    if (lease->generation != rp_runtime_generation()) return;
    rp_mutex_lock(&lease->mu);
    assert(lease->hold_count > 0);
    put_locked(lease, id);
    lease->hold_count--;
    lease->given_bytes += bytes;
    if (lease->out_bytes >= (size_t)BATCH * HOLD_BYTES || lease->given_bytes >= BATCH_BYTES ||
        lease->hold_count == 0)
        flush_locked(lease);
    assert(has_room_locked(lease));
    rp_mutex_unlock(&lease->mu);
}

/* Finds a range in the mappings; maps new parts if it is not there. NULL: there is none. */
static const uint8_t *find(void *ctx, uint64_t offset, uint64_t size)
{
    rp_shared_call *call = ctx;
    rp_shared_lease *lease = call->lease;
    hold *h = call->latest;
    const uint8_t *bytes = rp_shared_map_find(&lease->map, offset, size);

    assert(h != NULL && h->lease == lease);
    h->bytes += (size_t)size;
    if (bytes != NULL) return bytes;
    rp_mutex_lock(&lease->mu);
    if (lease->fd >= 0 && !map_parts_locked(lease)) hang_up_locked(lease);
    rp_mutex_unlock(&lease->mu);
    return rp_shared_map_find(&lease->map, offset, size);
}

/* Creates the hold of a sample. NULL without memory. */
static void *take(void *ctx, uint64_t id)
{
    rp_shared_call *call = ctx;
    rp_shared_lease *lease = call->lease;
    hold *h = rp_alloc(&lease->alloc, sizeof *h);
    bool ok;

    if (h == NULL) return NULL;
    rp_mutex_lock(&lease->mu);
    ok = reserve_locked(lease, 4);
    if (ok) lease->hold_count++;
    assert(!ok || has_room_locked(lease));
    rp_mutex_unlock(&lease->mu);
    if (!ok) {
        rp_release(&lease->alloc, h, sizeof *h);
        return NULL;
    }
    rp_refcount_init(&h->refs);
    h->lease = rp_shared_lease_ref(lease);
    h->id = id & ~call_mark;
    h->bytes = 0;
    call->latest = h;
    call->count++;
    return h;
}

static void ref_hold(void *ctx)
{
    hold *h = ctx;

    rp_refcount_inc(&h->refs);
}

static void unref_hold(void *ctx)
{
    hold *h = ctx;
    rp_shared_lease *lease = h->lease;
    rp_allocator alloc;

    if (!rp_refcount_dec(&h->refs)) return;
    alloc = lease->alloc;
    give_back(lease, h->id, h->bytes);
    rp_release(&alloc, h, sizeof *h);
    rp_shared_lease_unref(lease);
}

void rp_shared_call_begin(rp_shared_call *call, rp_shared_lease *lease)
{
    *call = (rp_shared_call){
        .source = {find, take, ref_hold, unref_hold, call},
        .lease = rp_shared_lease_ref(lease),
    };
    rp_mutex_lock(&lease->mu);
    call->number = ++lease->last_call;
    rp_mutex_unlock(&lease->mu);
}

void rp_shared_call_end(rp_shared_call *call)
{
    rp_shared_lease *lease = call->lease;

    if (lease == NULL) return;
    rp_mutex_lock(&lease->mu);
    if (reserve_locked(lease, 4)) {
        put_locked(lease, call_mark | call->number);
        put_locked(lease, call->count);
        flush_locked(lease);
        assert(has_room_locked(lease));
    }
    rp_mutex_unlock(&lease->mu);
    rp_shared_lease_unref(lease);
    call->lease = NULL;
}

/* Ends the request; keeps the descriptor. */
static void stop_asking(rp_share *share)
{
    rp_loop_disarm(share->loop, &share->timer);
    if (share->watch.fd >= 0) rp_loop_forget(share->loop, &share->watch);
    rp_release(share->alloc, share->greeting, share->size);
    share->greeting = NULL;
}

/* Sets the result of a request and calls all waits. */
static void decide(rp_share *share, rp_share_state state)
{
    assert(share->state == RP_SHARE_ASKING && state != RP_SHARE_ASKING);
    share->state = state;
    /* A wait may find that the lease is lost already and request another: then the remaining
     * waits wait for that. */
    while (share->waits != NULL && share->state != RP_SHARE_ASKING) {
        rp_share_wait *wait = share->waits;
        rp_share_forget(share, wait);
        wait->on_done(wait);
    }
    RP_VERIFY(1, share_is_valid(share));
}

/* Ends the request without a lease. */
static void give_up(rp_share *share, rp_share_state state)
{
    int fd = share->watch.fd;

    stop_asking(share);
    if (fd >= 0) rp_connector_close_fd(fd);
    share->watch.fd = -1;
    decide(share, state);
}

static rp_shared_lease *make_lease(rp_share *share, const uint8_t *response)
{
    rp_shared_lease *lease = rp_alloc_zero(share->alloc, sizeof *lease);

    if (lease == NULL) return NULL;
    if (rp_shared_map_init(&lease->map, get_number(response + 8, 8), NULL) != RP_OK) {
        rp_release(share->alloc, lease, sizeof *lease);
        return NULL;
    }
    rp_refcount_init(&lease->refs);
    lease->alloc = *share->alloc;
    lease->generation = rp_runtime_generation();
    memcpy(lease->id, response + 16, RP_LEASE_BYTES);
    rp_mutex_init(&lease->mu, RP_RANK_SHARED);
    lease->fd = share->watch.fd;
    return lease;
}

static void read_response(rp_share *share)
{
    uint8_t response[GREETING_BYTES];
    rp_shared_lease *lease = NULL;
    ssize_t moved = recv(share->watch.fd, response, sizeof response, MSG_DONTWAIT);

    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (moved == GREETING_BYTES && memcmp(response, magic, MAGIC_BYTES) == 0 &&
        get_number(response + 4, 4) == VERSION)
        lease = make_lease(share, response);
    if (lease == NULL) {
        give_up(share, RP_SHARE_REFUSED);
        return;
    }
    stop_asking(share);
    share->watch.fd = -1;         /* the lease owns it now */
    assert(share->lease == NULL); /* H3 */
    share->lease = lease;
    decide(share, RP_SHARE_READY);
}

static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_share *share = (rp_share *)(void *)((char *)watch - offsetof(rp_share, watch));
    ssize_t sent;

    assert(share->state == RP_SHARE_ASKING && share->sent <= share->size); /* H4 */
    if (share->sent < share->size) {
        sent = send(watch->fd, share->greeting + share->sent, share->size - share->sent,
                    MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) share->sent += (size_t)sent;
        if ((sent < 0 && errno != EAGAIN && errno != EINTR) || (events & RP_HUNG_UP) != 0) {
            give_up(share, RP_SHARE_REFUSED);
            return;
        }
        if (share->sent == share->size) rp_loop_change(share->loop, watch, RP_READABLE);
        return;
    }
    read_response(share);
}

static void on_due(rp_timer *timer)
{
    rp_share *share = (rp_share *)(void *)((char *)timer - offsetof(rp_share, timer));

    give_up(share, RP_SHARE_REFUSED);
}

static bool write_greeting(rp_share *share)
{
    const char *text = share->authorization != NULL ? share->authorization : "";
    size_t size = strlen(text);

    if (size > MAX_AUTHORIZATION) return false;
    share->size = MAGIC_BYTES + 2 + size;
    share->sent = 0;
    share->greeting = rp_alloc(share->alloc, share->size);
    if (share->greeting == NULL) return false;
    memcpy(share->greeting, magic, MAGIC_BYTES);
    share->greeting[4] = (uint8_t)size;
    share->greeting[5] = (uint8_t)(size >> 8);
    memcpy(share->greeting + MAGIC_BYTES + 2, text, size);
    return true;
}

/* Connects to a Unix path, which does not wait. Returns -1 on failure. */
static int connect_now(const rp_address *address)
{
    rp_endpoints where;
    int fd;

    if (!address->is_unix || !rp_address_resolve_now(address, &where) || where.count == 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    rp_fork_fds_add(fd);
    if (connect(fd, (struct sockaddr *)&where.list[0].address, where.list[0].bytes) == 0)
        return fd;
    rp_connector_close_fd(fd);
    return -1;
}

/* Starts a request. Returns false on failure. */
static bool ask(rp_share *share)
{
    assert(share->state == RP_SHARE_NONE && share->greeting == NULL); /* H4 */
    share->watch = (rp_watch){.fd = connect_now(share->address), .on_ready = on_ready};
    share->timer.on_due = on_due;
    if (share->watch.fd < 0) return false;
    if (write_greeting(share) &&
        rp_loop_watch(share->loop, &share->watch, RP_WRITABLE) == RP_OK) {
        if (rp_loop_arm(share->loop, &share->timer, rp_loop_now(share->loop) + ASK_NS) == RP_OK)
            return true;
        rp_loop_forget(share->loop, &share->watch);
    }
    rp_release(share->alloc, share->greeting, share->greeting != NULL ? share->size : 0);
    share->greeting = NULL;
    rp_connector_close_fd(share->watch.fd);
    share->watch.fd = -1;
    return false;
}

rp_shared_lease *rp_share_get(rp_share *share, rp_share_wait *wait, bool *later)
{
    *later = false;
    if (share->state == RP_SHARE_READY && rp_shared_lease_is_lost(share->lease))
        rp_share_lost(share, share->lease);
    if (share->state == RP_SHARE_NONE)
        share->state = ask(share) ? RP_SHARE_ASKING : RP_SHARE_NONE;
    if (share->state == RP_SHARE_READY) return rp_shared_lease_ref(share->lease);
    if (share->state != RP_SHARE_ASKING) return NULL;
    *later = true;
    if (wait->is_waiting) return NULL;
    wait->is_waiting = true;
    wait->prev = NULL;
    wait->next = share->waits;
    if (wait->next != NULL) wait->next->prev = wait;
    share->waits = wait;
    RP_VERIFY(1, share_is_valid(share));
    return NULL;
}

void rp_share_forget(rp_share *share, rp_share_wait *wait)
{
    if (!wait->is_waiting) return;
    wait->is_waiting = false;
    *(wait->prev != NULL ? &wait->prev->next : &share->waits) = wait->next;
    if (wait->next != NULL) wait->next->prev = wait->prev;
}

void rp_share_renew(rp_share *share)
{
    if (share->state == RP_SHARE_REFUSED) share->state = RP_SHARE_NONE;
}

void rp_share_lost(rp_share *share, const rp_shared_lease *lease)
{
    if (lease == NULL && share->state != RP_SHARE_ASKING) {
        share->state = RP_SHARE_REFUSED;
    } else if (lease != NULL && lease == share->lease) {
        share->state = RP_SHARE_NONE;
    } else {
        return; /* the share has another lease by now */
    }
    rp_shared_lease_unref(share->lease);
    share->lease = NULL;
    RP_VERIFY(1, share_is_valid(share));
}

void rp_share_deinit(rp_share *share)
{
    assert(share->waits == NULL); /* the users of the channel have ended */
    if (share->state == RP_SHARE_ASKING) give_up(share, RP_SHARE_REFUSED);
    rp_shared_lease_unref(share->lease);
    share->lease = NULL;
}
