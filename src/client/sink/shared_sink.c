/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table maps the keys of unsettled items to their writers: open addressing with linear
 * probing, by the low bits of the keys, which are random.
 *
 * Two locks. `put` serialises the put() of the writers, and is taken before any lock of the
 * sink below. `mu` guards the table and is released before on_settled of a writer is called. A
 * writer that closes its sink waits until no thread calls its on_settled.
 *
 * Invariants, whenever mu is free:
 *   H1  used is the number of places with an owner; 2 * used <= capacity, a power of two or 0;
 *   H2  left <= count, given <= count. */
#include "client/sink/shared_sink.h"

#include <assert.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/mutex.h"

enum { FIRST_PLACES = 64, AT_ONCE = 256 };

typedef struct share {
    rp_sink sink; /* first */
    rp_shared_sink *shared;
    rp_sink_events events;
    bool open;      /* guarded by mu */
    size_t telling; /* items whose settlement is being reported to the writer; guarded by mu */
} share;

typedef struct place {
    uint64_t key;
    share *owner; /* NULL: free */
} place;

struct rp_shared_sink {
    rp_allocator alloc;
    rp_sink *under;
    rp_mutex put; /* rank 5 */
    rp_mutex mu;  /* rank 79; guards the fields below */
    rp_cond cv;
    place *places RP_GUARDED_BY(mu);
    size_t capacity, used RP_GUARDED_BY(mu);
    size_t given, left RP_GUARDED_BY(mu); /* left: sinks not closed, given out or not */
    size_t count;
    share shares[];
};

static void add_locked(rp_shared_sink *s, uint64_t key, share *owner) RP_REQUIRES(s->mu)
{
    size_t mask = s->capacity - 1, at = key & mask;

    assert((s->capacity & mask) == 0 && 2 * (s->used + 1) <= s->capacity); /* H1 */
    while (s->places[at].owner != NULL) at = (at + 1) & mask;
    s->places[at] = (place){key, owner};
    s->used++;
}

static bool reserve_locked(rp_shared_sink *s, size_t more) RP_REQUIRES(s->mu)
{
    place *before = s->places, *larger;
    size_t old = s->capacity, capacity = old > 0 ? old : FIRST_PLACES;

    while (capacity < 2 * (s->used + more)) capacity *= 2;
    if (capacity == old) return true;
    larger = rp_alloc_array(&s->alloc, capacity, sizeof *larger);
    if (larger == NULL) return false;
    s->places = larger;
    s->capacity = capacity;
    s->used = 0;
    for (size_t i = 0; i < old; i++)
        if (before[i].owner != NULL) add_locked(s, before[i].key, before[i].owner);
    rp_release(&s->alloc, before, old * sizeof *before);
    return true;
}

/* Removes a key. Returns its owner, or NULL if it is not in the table. */
static share *take_locked(rp_shared_sink *s, uint64_t key) RP_REQUIRES(s->mu)
{
    size_t mask = s->capacity - 1, at = key & mask;
    share *owner;

    if (s->capacity == 0) return NULL;
    while (s->places[at].owner != NULL && s->places[at].key != key) at = (at + 1) & mask;
    owner = s->places[at].owner;
    if (owner == NULL) return NULL;
    for (size_t next = (at + 1) & mask; s->places[next].owner != NULL;
         next = (next + 1) & mask) {
        size_t home = s->places[next].key & mask;
        if (((next - home) & mask) < ((next - at) & mask)) continue;
        s->places[at] = s->places[next]; /* closes the gap */
        at = next;
    }
    assert(s->used > 0);
    s->places[at].owner = NULL;
    s->used--;
    return owner;
}

/* Finds the owners of keys and keeps them from closing; owners that have closed become NULL. */
static void hold_owners(rp_shared_sink *s, const uint64_t *keys, size_t count, share **owners)
{
    rp_mutex_lock(&s->mu);
    for (size_t i = 0; i < count; i++) {
        owners[i] = take_locked(s, keys[i]);
        if (owners[i] != NULL && !owners[i]->open) owners[i] = NULL;
        if (owners[i] != NULL) owners[i]->telling++;
    }
    rp_mutex_unlock(&s->mu);
}

static void let_go(rp_shared_sink *s, share *const *owners, size_t count)
{
    rp_mutex_lock(&s->mu);
    for (size_t i = 0; i < count; i++)
        if (owners[i] != NULL) {
            assert(owners[i]->telling > 0);
            owners[i]->telling--;
        }
    rp_cond_signal(&s->cv);
    rp_mutex_unlock(&s->mu);
}

static void on_settled(void *user, const uint64_t *keys, size_t count, rp_status status,
                       const char *text)
{
    rp_shared_sink *s = user;
    share *owners[AT_ONCE];

    while (count > 0) {
        size_t n = count < AT_ONCE ? count : AT_ONCE;
        hold_owners(s, keys, n, owners);
        for (size_t i = 0, end; i < n; i = end) {
            for (end = i + 1; end < n && owners[end] == owners[i];) end++;
            if (owners[i] != NULL)
                owners[i]->events.on_settled(owners[i]->events.user, keys + i, end - i, status,
                                             text);
        }
        let_go(s, owners, n);
        keys += n;
        count -= n;
    }
}

static rp_status put(rp_sink *sink, const rp_sink_item *items, size_t count, rp_error *err)
{
    share *mine = (share *)sink;
    rp_shared_sink *s = mine->shared;
    bool reserved;
    rp_status st;

    rp_mutex_lock(&s->mu);
    reserved = reserve_locked(s, count);
    for (size_t i = 0; reserved && i < count; i++) add_locked(s, items[i].key, mine);
    rp_mutex_unlock(&s->mu);
    if (!reserved) return rp_fail_memory(err, count * sizeof(place));
    rp_mutex_lock(&s->put);
    st = s->under->class->put(s->under, items, count, err);
    rp_mutex_unlock(&s->put);
    if (st == RP_OK) return RP_OK;
    rp_mutex_lock(&s->mu);
    for (size_t i = 0; i < count; i++) (void)take_locked(s, items[i].key);
    rp_mutex_unlock(&s->mu);
    return st;
}

static void push(rp_sink *sink, size_t least)
{
    rp_sink *under = ((share *)sink)->shared->under;

    if (under->class->push != NULL) under->class->push(under, least);
}

/* The sink below counts the items of all writers, so it reports each that is settled. */
static void await(rp_sink *sink, uint64_t settled)
{
    rp_sink *under = ((share *)sink)->shared->under;

    (void)settled;
    if (under->class->await != NULL) under->class->await(under, RP_AWAIT_ANY);
}

static void why(rp_sink *sink, char *text, size_t size)
{
    rp_sink *under = ((share *)sink)->shared->under;

    under->class->why(under, text, size);
}

static void free_shared(rp_shared_sink *s)
{
    rp_allocator alloc = s->alloc;

    if (s->under != NULL) s->under->class->close(s->under);
    rp_release(&alloc, s->places, s->capacity * sizeof *s->places);
    rp_cond_deinit(&s->cv);
    rp_mutex_deinit(&s->mu);
    rp_mutex_deinit(&s->put);
    rp_release(&alloc, s, sizeof *s + s->count * sizeof s->shares[0]);
}

static void close_share(rp_sink *sink)
{
    share *mine = (share *)sink;
    rp_shared_sink *s = mine->shared;
    bool last;

    rp_mutex_lock(&s->mu);
    mine->open = false;
    while (mine->telling > 0) (void)rp_cond_wait(&s->cv, &s->mu, INT64_MAX);
    last = --s->left == 0;
    rp_mutex_unlock(&s->mu);
    if (last) free_shared(s);
}

rp_status rp_shared_sink_new(const rp_allocator *alloc, size_t count, rp_shared_sink **out,
                             rp_error *err)
{
    size_t shares, size;
    rp_shared_sink *s = NULL;

    if (rp_size_mul(count, sizeof(share), &shares) && rp_size_add(shares, sizeof *s, &size))
        s = rp_alloc_zero(alloc, size);
    if (s == NULL) return rp_fail_memory(err, count * sizeof(share));
    s->alloc = *alloc;
    s->count = s->left = count;
    rp_mutex_init(&s->put, RP_RANK_PUT);
    rp_mutex_init(&s->mu, RP_RANK_SHARED_SINK);
    rp_cond_init(&s->cv);
    *out = s;
    return RP_OK;
}

rp_sink_events rp_shared_sink_events(rp_shared_sink *shared)
{
    return (rp_sink_events){.on_settled = on_settled, .user = shared};
}

void rp_shared_sink_attach(rp_shared_sink *shared, rp_sink *sink)
{
    shared->under = sink;
}

rp_sink *rp_shared_sink_give(rp_shared_sink *shared, const rp_sink_events *events)
{
    static const rp_sink_class class = {
        .put = put, .push = push, .await = await, .why = why, .close = close_share};
    share *mine = &shared->shares[shared->given++];

    mine->sink.class = &class;
    mine->shared = shared;
    mine->events = *events;
    mine->open = true;
    return &mine->sink;
}

void rp_shared_sink_release(rp_shared_sink *shared)
{
    bool last;

    rp_mutex_lock(&shared->mu);
    shared->left -= shared->count - shared->given;
    last = shared->left == 0;
    rp_mutex_unlock(&shared->mu);
    if (last) free_shared(shared);
}
