/* SPDX-License-Identifier: Apache-2.0 */
/* Giving holds back: they gather under a lock, and leave in one send once they are many, or
 * large, or all that there were. A send never waits: what does not go out goes with the next.
 */
#include "client/channel/shared_memory.h"

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

enum {
    HOLD_BYTES = 8,
    GATHERED = 128,           /* holds that leave together, */
    GATHERED_BYTES = 8 << 20, /* or as many as take that much */
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
    uint64_t generation;      /* of the process: a child of a fork leaves all of it alone */
    rp_mutex mu;              /* rank 87: the rest */
    int fd RP_GUARDED_BY(mu); /* -1: the server is gone */
    uint64_t last_call RP_GUARDED_BY(mu);
    size_t hold_count RP_GUARDED_BY(mu);  /* that are not given back */
    size_t given_bytes RP_GUARDED_BY(mu); /* of holds that are to be sent */
    uint8_t *out RP_GUARDED_BY(mu);       /* numbers to be sent, */
    size_t out_bytes RP_GUARDED_BY(mu);
    size_t out_capacity RP_GUARDED_BY(mu);
};

/* What the chunks of one sample share. */
typedef struct hold {
    rp_refcount refs;
    rp_shared_lease *lease; /* a reference */
    uint64_t id;
    size_t bytes;
} hold;

static uint64_t get_number(const uint8_t *at, unsigned bytes)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < bytes; i++) number |= (uint64_t)at[i] << (8 * i);
    return number;
}

/* Maps the parts of the arena that the server has sent so far. Does not wait: a part is in our
 * queue before an answer that needs it. False: the server has said something else, or a part
 * could not be had. */
static bool map_parts_locked(rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
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

static void hang_up_locked(rp_shared_lease *lease) RP_REQUIRES(lease->mu)
{
    if (lease->fd < 0) return;
    (void)map_parts_locked(lease); /* answers that have come may need them */
    rp_fork_fds_remove(lease->fd);
    (void)close(lease->fd);
    lease->fd = -1;
}

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
        lease->out_bytes -= (size_t)sent;
        memmove(lease->out, lease->out + sent, lease->out_bytes);
    }
}

/* Adds a number, which there is room for: giving back must not need memory. */
static void put_locked(rp_shared_lease *lease, uint64_t number) RP_REQUIRES(lease->mu)
{
    for (unsigned i = 0; i < HOLD_BYTES; i++)
        lease->out[lease->out_bytes++] = (uint8_t)(number >> (8 * i));
}

/* Makes room for a number for every hold that is out, and `more`. */
static bool reserve_locked(rp_shared_lease *lease, size_t more) RP_REQUIRES(lease->mu)
{
    size_t need = lease->out_bytes + (lease->hold_count + more) * HOLD_BYTES;
    size_t capacity = lease->out_capacity > 0 ? lease->out_capacity : 4096;

    if (need <= lease->out_capacity) return true;
    while (capacity < need) capacity *= 2;
    if (!rp_resize_array(&lease->alloc, &lease->out, lease->out_capacity, capacity, 1))
        return false;
    lease->out_capacity = capacity;
    return true;
}

static void free_lease(rp_shared_lease *lease)
{
    rp_allocator alloc = lease->alloc;

    if (lease->generation != rp_runtime_generation()) return;
    rp_mutex_lock(&lease->mu);
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

static void give_back(rp_shared_lease *lease, uint64_t id, size_t bytes)
{
    if (lease->generation != rp_runtime_generation()) return;
    rp_mutex_lock(&lease->mu);
    put_locked(lease, id);
    lease->hold_count--;
    lease->given_bytes += bytes;
    if (lease->out_bytes >= (size_t)GATHERED * HOLD_BYTES ||
        lease->given_bytes >= GATHERED_BYTES || lease->hold_count == 0)
        flush_locked(lease);
    rp_mutex_unlock(&lease->mu);
}

static const uint8_t *find(void *ctx, uint64_t offset, uint64_t size)
{
    rp_shared_call *call = ctx;
    rp_shared_lease *lease = call->lease;
    hold *h = call->latest;
    const uint8_t *bytes = rp_shared_map_find(&lease->map, offset, size);

    h->bytes += (size_t)size;
    if (bytes != NULL) return bytes;
    rp_mutex_lock(&lease->mu);
    if (lease->fd >= 0 && !map_parts_locked(lease)) hang_up_locked(lease);
    rp_mutex_unlock(&lease->mu);
    return rp_shared_map_find(&lease->map, offset, size);
}

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
    }
    rp_mutex_unlock(&lease->mu);
    rp_shared_lease_unref(lease);
    call->lease = NULL;
}

static void stop_asking(rp_share *share)
{
    rp_loop_disarm(share->loop, &share->timer);
    if (share->watch.fd >= 0) rp_loop_forget(share->loop, &share->watch);
    rp_release(share->alloc, share->greeting, share->size);
    share->greeting = NULL;
}

static void decide(rp_share *share, rp_share_state state)
{
    share->state = state;
    while (share->waits != NULL) {
        rp_share_wait *wait = share->waits;
        rp_share_forget(share, wait);
        wait->on_done(wait);
    }
}

static void give_up(rp_share *share, rp_share_state state)
{
    int fd = share->watch.fd;

    stop_asking(share);
    if (fd >= 0) rp_connector_close_fd(fd);
    share->watch.fd = -1;
    decide(share, state);
}

static rp_shared_lease *make_lease(rp_share *share, const uint8_t *answer)
{
    rp_shared_lease *lease = rp_alloc_zero(share->alloc, sizeof *lease);

    if (lease == NULL) return NULL;
    if (rp_shared_map_init(&lease->map, get_number(answer + 8, 8), NULL) != RP_OK) {
        rp_release(share->alloc, lease, sizeof *lease);
        return NULL;
    }
    rp_refcount_init(&lease->refs);
    lease->alloc = *share->alloc;
    lease->generation = rp_runtime_generation();
    memcpy(lease->id, answer + 16, RP_LEASE_BYTES);
    rp_mutex_init(&lease->mu, RP_RANK_SHARED);
    lease->fd = share->watch.fd;
    return lease;
}

static void read_answer(rp_share *share)
{
    uint8_t answer[GREETING_BYTES];
    rp_shared_lease *lease = NULL;
    ssize_t moved = recv(share->watch.fd, answer, sizeof answer, MSG_DONTWAIT);

    if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
    if (moved == GREETING_BYTES && memcmp(answer, magic, MAGIC_BYTES) == 0 &&
        get_number(answer + 4, 4) == VERSION)
        lease = make_lease(share, answer);
    if (lease == NULL) {
        give_up(share, RP_SHARE_REFUSED);
        return;
    }
    stop_asking(share);
    share->watch.fd = -1; /* the lease's now */
    share->lease = lease;
    decide(share, RP_SHARE_READY);
}

static void on_ready(rp_watch *watch, uint32_t events)
{
    rp_share *share = (rp_share *)(void *)((char *)watch - offsetof(rp_share, watch));
    ssize_t sent;

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
    read_answer(share);
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

/* A socket to a Unix path is connected at once, or not at all. */
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

static bool ask(rp_share *share)
{
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
        return; /* there is another one by now */
    }
    rp_shared_lease_unref(share->lease);
    share->lease = NULL;
}

void rp_share_deinit(rp_share *share)
{
    if (share->state == RP_SHARE_ASKING) give_up(share, RP_SHARE_REFUSED);
    rp_shared_lease_unref(share->lease);
    share->lease = NULL;
}
