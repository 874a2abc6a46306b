/* SPDX-License-Identifier: Apache-2.0 */
#include "server/shm/lease.h"

#include <assert.h>

#include "net/fd_pass.h"
#include "util/clock.h"
#include "util/little_endian.h"
#include "util/mem.h"

enum {
    AT_ONCE = 64,     /* holds that are released under one lock */
    KEPT_HOLDS = 128, /* an array for at most this many holds is kept when all are released */
    MAX_CALLS = 4096, /* calls of a lease that have not ended on both sides */
    EARLY = 64,       /* remembered numbers of calls that were closed before they began */
    SHARES = 4,       /* all leases together hold at most this many times the limit of one */
};

#define NONE UINT32_MAX

/* A hold, or a free entry. */
typedef struct held {
    rp_trajectory *trajectory; /* a reference; NULL: free */
    size_t bytes;
    rp_lease_call *call; /* NULL: the call was closed, and the client has this hold */
    uint64_t ordinal;    /* index among the holds of its call */
    uint32_t next, prev; /* links of the call's holds; or `next` is the next free entry */
} held;

struct rp_lease_call {
    uint64_t number, count; /* number chosen by the client; holds so far */
    uint32_t latest;        /* index of its latest hold, or NONE */
    bool is_closed;         /* the client has closed it: no more holds */
    bool is_settled;        /* no hold refers to it any more */
    bool is_ended;          /* the server has ended it */
    rp_lease_call *prev, *next;
};

struct rp_lease {
    rp_refcount refs;
    rp_leases *leases;
    rp_lease *prev, *next; /* under the list's lock */
    uint8_t id[RP_LEASE_ID_BYTES];
    const rp_shared_arena *arena; /* borrowed, as is the socket, until the lease ends */
    int socket;                   /* to the client */
    rp_mutex lock;                /* guards the following fields */
    size_t parts_sent RP_GUARDED_BY(lock);
    bool is_over RP_GUARDED_BY(lock);
    held *holds RP_GUARDED_BY(lock); /* the number of a hold is its index plus 1 */
    uint32_t capacity RP_GUARDED_BY(lock);
    uint32_t first_free RP_GUARDED_BY(lock);
    size_t bytes RP_GUARDED_BY(lock);
    rp_lease_call *calls RP_GUARDED_BY(lock);
    size_t call_count RP_GUARDED_BY(lock);
    uint64_t early[EARLY] RP_GUARDED_BY(lock); /* numbers of calls, plus 1; a ring */
    size_t early_next RP_GUARDED_BY(lock);
    size_t early_count RP_GUARDED_BY(lock); /* early closes since the last call began */
};

void rp_leases_init(rp_leases *leases, const rp_allocator *alloc, rp_loop_metrics *metrics)
{
    leases->alloc = *alloc;
    leases->metrics = metrics;
    leases->first = NULL;
    rp_mutex_init(&leases->lock, RP_RANK_LEASE);
}

void rp_leases_deinit(rp_leases *leases)
{
    assert(leases->first == NULL);
    rp_mutex_deinit(&leases->lock);
}

rp_lease *rp_lease_new(rp_leases *leases, const rp_shared_arena *arena, int socket)
{
    rp_lease *lease = rp_alloc_zero(&leases->alloc, sizeof *lease);
    uint64_t id[2] = {rp_system_seed(), rp_system_seed()};

    if (lease == NULL) return NULL;
    rp_refcount_init(&lease->refs);
    lease->leases = leases;
    lease->arena = arena;
    lease->socket = socket;
    memcpy(lease->id, id, sizeof lease->id);
    lease->first_free = NONE;
    rp_mutex_init(&lease->lock, RP_RANK_LEASE);
    rp_mutex_lock(&leases->lock);
    lease->next = leases->first;
    if (lease->next != NULL) lease->next->prev = lease;
    leases->first = lease;
    rp_mutex_unlock(&leases->lock);
    rp_counter_add_shared(&leases->metrics->leases, 1);
    return lease;
}

const uint8_t *rp_lease_id(const rp_lease *lease)
{
    return lease->id;
}

rp_lease *rp_leases_find(rp_leases *leases, const void *id, size_t size)
{
    rp_lease *lease;

    if (size != RP_LEASE_ID_BYTES) return NULL;
    rp_mutex_lock(&leases->lock);
    lease = leases->first;
    while (lease != NULL && memcmp(lease->id, id, size) != 0) lease = lease->next;
    if (lease != NULL) rp_refcount_inc(&lease->refs);
    rp_mutex_unlock(&leases->lock);
    return lease;
}

void rp_lease_unref(rp_lease *lease)
{
    rp_allocator alloc;

    if (lease == NULL || !rp_refcount_dec(&lease->refs)) return;
    alloc = lease->leases->alloc;
    rp_mutex_deinit(&lease->lock);
    rp_release(&alloc, lease, sizeof *lease);
}

/* Takes a free entry. NONE if there is no memory. */
static uint32_t take_place_locked(rp_lease *lease) RP_REQUIRES(lease->lock)
{
    uint32_t place = lease->first_free, capacity = lease->capacity;

    if (place != NONE) {
        lease->first_free = lease->holds[place].next;
        return place;
    }
    if (capacity >= NONE / 4 ||
        !rp_resize_array(&lease->leases->alloc, &lease->holds, capacity,
                         capacity > 0 ? 2 * (size_t)capacity : 16, sizeof *lease->holds))
        return NONE;
    lease->capacity = capacity > 0 ? 2 * capacity : 16;
    for (uint32_t i = lease->capacity - 1; i > capacity; i--) {
        lease->holds[i].next = lease->first_free;
        lease->first_free = i;
    }
    return capacity;
}

/* Removes a hold from the list of its call. */
static void unlink_locked(rp_lease *lease, held *h) RP_REQUIRES(lease->lock)
{
    if (h->call == NULL) return;
    assert(h->prev != NONE || &lease->holds[h->call->latest] == h); /* L3 */
    *(h->prev != NONE ? &lease->holds[h->prev].next : &h->call->latest) = h->next;
    if (h->next != NONE) lease->holds[h->next].prev = h->prev;
    h->call = NULL;
}

static rp_trajectory *release_locked(rp_lease *lease, uint32_t place) RP_REQUIRES(lease->lock)
{
    held *h = &lease->holds[place];
    rp_trajectory *trajectory = h->trajectory;

    assert(place < lease->capacity && trajectory != NULL && lease->bytes >= h->bytes); /* L1 */
    unlink_locked(lease, h);
    lease->bytes -= h->bytes;
    *h = (held){.next = lease->first_free};
    lease->first_free = place;
    return trajectory;
}

/* Frees the array of a lease without holds. A hold has more than 0 bytes. */
static void trim_locked(rp_lease *lease) RP_REQUIRES(lease->lock)
{
    if (lease->bytes > 0 || lease->capacity <= KEPT_HOLDS) return;
    rp_release(&lease->leases->alloc, lease->holds, lease->capacity * sizeof *lease->holds);
    lease->holds = NULL;
    lease->capacity = 0;
    lease->first_free = NONE;
}

/* Whether `bytes` more are within the limit of this lease and that of all leases together,
 * which is needed because one client may open many leases. */
static bool has_room_locked(const rp_lease *lease, size_t bytes, size_t limit)
    RP_REQUIRES(lease->lock)
{
    size_t total = (size_t)rp_counter_get(&lease->leases->metrics->shared_held_bytes);
    size_t most = limit < SIZE_MAX / SHARES ? SHARES * limit : SIZE_MAX;

    if (bytes > limit || lease->bytes > limit - bytes) return false;
    return total <= most - bytes;
}

/* Sends descriptors of the parts that the client does not have yet; mostly there are none. */
static bool send_parts_locked(rp_lease *lease) RP_REQUIRES(lease->lock)
{
    size_t count = rp_shared_arena_parts(lease->arena);

    for (; lease->parts_sent < count; lease->parts_sent++) {
        const rp_shared_part *part = rp_shared_arena_part(lease->arena, lease->parts_sent);
        uint8_t message[RP_LEASE_PART_BYTES];

        rp_put_u64(message, part->bytes);
        if (!rp_fd_send(lease->socket, message, sizeof message, part->fd)) return false;
    }
    return true;
}

uint64_t rp_lease_hold(rp_lease *lease, rp_lease_call *call, rp_trajectory *trajectory,
                       size_t bytes, size_t limit)
{
    uint32_t place = NONE;

    assert(bytes > 0);
    rp_mutex_lock(&lease->lock);
    if (!lease->is_over && !call->is_closed && has_room_locked(lease, bytes, limit) &&
        send_parts_locked(lease))
        place = take_place_locked(lease);
    if (place != NONE) {
        assert(lease->holds[place].trajectory == NULL); /* L2 */
        lease->holds[place] = (held){.trajectory = rp_trajectory_ref(trajectory),
                                     .bytes = bytes,
                                     .call = call,
                                     .ordinal = call->count++,
                                     .next = call->latest,
                                     .prev = NONE};
        if (call->latest != NONE) lease->holds[call->latest].prev = place;
        call->latest = place;
        lease->bytes += bytes;
    }
    rp_mutex_unlock(&lease->lock);
    if (place == NONE) return 0;
    rp_counter_add_shared(&lease->leases->metrics->shared_held_bytes, bytes);
    return (uint64_t)place + 1;
}

static bool release_some(rp_lease *lease, const uint64_t *holds, size_t count)
{
    rp_trajectory *gone[AT_ONCE];
    size_t gone_count = 0, before, after;

    assert(count <= AT_ONCE);
    rp_mutex_lock(&lease->lock);
    before = lease->bytes;
    for (size_t i = 0; i < count; i++)
        if (holds[i] >= 1 && holds[i] <= lease->capacity &&
            lease->holds[holds[i] - 1].trajectory != NULL)
            gone[gone_count++] = release_locked(lease, (uint32_t)(holds[i] - 1));
    after = lease->bytes;
    trim_locked(lease);
    rp_mutex_unlock(&lease->lock);
    rp_counter_add_shared(&lease->leases->metrics->shared_held_bytes, after - before);
    for (size_t i = 0; i < gone_count; i++) rp_trajectory_unref(gone[i]);
    return gone_count == count;
}

bool rp_lease_release(rp_lease *lease, const uint64_t *holds, size_t count)
{
    bool ok = true;

    for (size_t i = 0; i < count; i += AT_ONCE)
        ok &= release_some(lease, holds + i, count - i < AT_ONCE ? count - i : AT_ONCE);
    return ok;
}

static rp_lease_call *find_call_locked(rp_lease *lease, uint64_t number)
    RP_REQUIRES(lease->lock)
{
    rp_lease_call *call = lease->calls;

    while (call != NULL && call->number != number) call = call->next;
    return call;
}

/* Frees a call that has ended on both sides. */
static void drop_call_locked(rp_lease *lease, rp_lease_call *call) RP_REQUIRES(lease->lock)
{
    if (!call->is_ended || !(call->is_settled || lease->is_over)) return;
    *(call->prev != NULL ? &call->prev->next : &lease->calls) = call->next;
    if (call->next != NULL) call->next->prev = call->prev;
    assert(lease->call_count > 0); /* L4 */
    lease->call_count--;
    rp_release(&lease->leases->alloc, call, sizeof *call);
}

static bool was_early_locked(const rp_lease *lease, uint64_t number) RP_REQUIRES(lease->lock)
{
    for (size_t i = 0; i < EARLY; i++)
        if (lease->early[i] == number + 1) return true;
    return false;
}

rp_lease_call *rp_lease_begin_call(rp_lease *lease, uint64_t number)
{
    rp_lease_call *call = rp_alloc_zero(&lease->leases->alloc, sizeof *call);
    bool ok;

    if (call == NULL) return NULL;
    call->number = number;
    call->latest = NONE;
    rp_mutex_lock(&lease->lock);
    ok = !lease->is_over && number >> 63 == 0 && lease->call_count < MAX_CALLS &&
         find_call_locked(lease, number) == NULL && !was_early_locked(lease, number);
    if (ok) {
        call->next = lease->calls;
        if (call->next != NULL) call->next->prev = call;
        lease->calls = call;
        lease->call_count++;
        lease->early_count = 0;
    }
    rp_mutex_unlock(&lease->lock);
    if (ok) return call;
    rp_release(&lease->leases->alloc, call, sizeof *call);
    return NULL;
}

void rp_lease_end_call(rp_lease *lease, rp_lease_call *call)
{
    if (call == NULL) return;
    rp_mutex_lock(&lease->lock);
    assert(!call->is_ended);
    call->is_ended = true;
    drop_call_locked(lease, call);
    rp_mutex_unlock(&lease->lock);
}

/* Releases up to AT_ONCE holds of a closed call that are not among its first `count`. The first
 * `count` holds stay, but are no longer linked to the call. Returns false if no holds are
 * linked to it any more; then the call may have been freed. */
static bool settle_some(rp_lease *lease, rp_lease_call *call, uint64_t count)
{
    rp_trajectory *gone[AT_ONCE];
    size_t gone_count = 0, before, after;
    bool is_left;

    rp_mutex_lock(&lease->lock);
    before = lease->bytes;
    while (call->latest != NONE && gone_count < AT_ONCE) {
        uint32_t place = call->latest;
        if (lease->holds[place].ordinal >= count)
            gone[gone_count++] = release_locked(lease, place);
        else
            unlink_locked(lease, &lease->holds[place]);
    }
    after = lease->bytes;
    trim_locked(lease);
    is_left = call->latest != NONE;
    if (!is_left) {
        call->is_settled = true;
        drop_call_locked(lease, call);
    }
    rp_mutex_unlock(&lease->lock);
    rp_counter_add_shared(&lease->leases->metrics->shared_held_bytes, after - before);
    for (size_t i = 0; i < gone_count; i++) rp_trajectory_unref(gone[i]);
    return is_left;
}

bool rp_lease_close_call(rp_lease *lease, uint64_t number, uint64_t count)
{
    rp_lease_call *call;
    bool ok = true;

    rp_mutex_lock(&lease->lock);
    call = find_call_locked(lease, number);
    if (call == NULL) {
        ok = count == 0 && ++lease->early_count <= EARLY;
        lease->early[lease->early_next++ % EARLY] = number + 1;
    } else {
        ok = !call->is_closed && count <= call->count;
        call->is_closed = true; /* no more holds */
    }
    rp_mutex_unlock(&lease->lock);
    while (ok && call != NULL && settle_some(lease, call, count)) continue;
    return ok;
}

size_t rp_lease_held_bytes(rp_lease *lease)
{
    size_t bytes;

    rp_mutex_lock(&lease->lock);
    bytes = lease->bytes;
    rp_mutex_unlock(&lease->lock);
    return bytes;
}

static void drop_calls(rp_lease *lease)
{
    rp_mutex_lock(&lease->lock);
    for (rp_lease_call *call = lease->calls, *next; call != NULL; call = next) {
        next = call->next;
        drop_call_locked(lease,
                         call); /* one that has not ended is freed by rp_lease_end_call() */
    }
    rp_mutex_unlock(&lease->lock);
}

void rp_lease_end(rp_lease *lease)
{
    rp_leases *leases;
    uint32_t capacity;
    size_t bytes;
    held *holds;

    if (lease == NULL) return;
    leases = lease->leases;
    rp_mutex_lock(&leases->lock);
    *(lease->prev != NULL ? &lease->prev->next : &leases->first) = lease->next;
    if (lease->next != NULL) lease->next->prev = lease->prev;
    rp_mutex_unlock(&leases->lock);
    rp_mutex_lock(&lease->lock);
    lease->is_over = true;
    holds = lease->holds;
    capacity = lease->capacity;
    bytes = lease->bytes;
    lease->holds = NULL;
    lease->capacity = 0;
    lease->first_free = NONE;
    lease->bytes = 0;
    rp_mutex_unlock(&lease->lock);
    drop_calls(lease);
    for (uint32_t i = 0; i < capacity; i++) rp_trajectory_unref(holds[i].trajectory);
    rp_release(&leases->alloc, holds, capacity * sizeof *holds);
    rp_counter_add_shared(&leases->metrics->shared_held_bytes, 0 - (uint64_t)bytes);
    rp_counter_add_shared(&leases->metrics->leases, 0 - (uint64_t)1);
    rp_lease_unref(lease);
}
