/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/newcomers.h"

#include <assert.h>

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

rp_places rp_places_of(size_t connections, size_t descriptors)
{
    /* Of few descriptors only a part is set aside. */
    size_t changing = less(RP_CHANGING_PLACES, descriptors / 8);
    size_t reserved = less(RP_NEW_PLACES, descriptors / 8), room = descriptors - changing;
    rp_places places = {.accepted = less(connections, room - reserved)};

    places.all = places.accepted + reserved;
    places.most = places.all + changing;
    places.is_by_descriptors = places.accepted < connections;
    assert(places.accepted <= places.all && places.most <= descriptors);
    return places;
}

static void publish(rp_newcomers *n, size_t count)
{
    atomic_store_explicit(&n->count, count, memory_order_relaxed);
    atomic_store_explicit(&n->oldest_ns, n->first != NULL ? n->first->since_ns : INT64_MAX,
                          memory_order_relaxed);
    assert((count == 0) == (n->first == NULL)); /* W1 */
}

static size_t count_of(rp_newcomers *n)
{
    return atomic_load_explicit(&n->count, memory_order_relaxed);
}

void rp_newcomers_init(rp_newcomers *n)
{
    n->first = n->last = NULL;
    atomic_init(&n->count, 0);
    atomic_init(&n->oldest_ns, INT64_MAX);
    atomic_init(&n->coming, 0);
    atomic_init(&n->claims, 0);
}

void rp_newcomers_enter(rp_newcomers *n, rp_newcomer *newcomer, int64_t now_ns)
{
    assert(!newcomer->is_listed);
    assert(n->last == NULL || n->last->since_ns <= now_ns); /* W2 */
    *newcomer = (rp_newcomer){.prev = n->last, .since_ns = now_ns, .is_listed = true};
    *(n->last != NULL ? &n->last->next : &n->first) = newcomer;
    n->last = newcomer;
    publish(n, count_of(n) + 1);
}

void rp_newcomers_leave(rp_newcomers *n, rp_newcomer *newcomer)
{
    if (!newcomer->is_listed) return;
    assert(newcomer->prev != NULL ? newcomer->prev->next == newcomer : n->first == newcomer);
    assert(newcomer->next != NULL ? newcomer->next->prev == newcomer : n->last == newcomer);
    *(newcomer->prev != NULL ? &newcomer->prev->next : &n->first) = newcomer->next;
    *(newcomer->next != NULL ? &newcomer->next->prev : &n->last) = newcomer->prev;
    newcomer->is_listed = false;
    publish(n, count_of(n) - 1);
}

int64_t rp_newcomers_oldest_ns(rp_newcomers *n)
{
    size_t coming = atomic_load_explicit(&n->coming, memory_order_relaxed);
    size_t claims = atomic_load_explicit(&n->claims, memory_order_relaxed);
    int64_t oldest_ns = atomic_load_explicit(&n->oldest_ns, memory_order_relaxed);

    if (count_of(n) + coming <= claims) return INT64_MAX;
    return oldest_ns < RP_NEWCOMER_COMING ? oldest_ns : RP_NEWCOMER_COMING;
}

void rp_newcomers_send(rp_newcomers *n, bool replaces)
{
    atomic_fetch_add_explicit(&n->coming, 1, memory_order_relaxed);
    if (replaces) atomic_fetch_add_explicit(&n->claims, 1, memory_order_relaxed);
}

/* Subtracts one from a number that is not zero. */
static void lower(atomic_size_t *number)
{
    size_t before = atomic_fetch_sub_explicit(number, 1, memory_order_relaxed);

    assert(before > 0);
    (void)before;
}

rp_newcomer *rp_newcomers_take(rp_newcomers *n)
{
    lower(&n->claims);
    return n->first;
}

void rp_newcomers_arrived(rp_newcomers *n)
{
    lower(&n->coming);
}
