/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/drawn.h"

#include <assert.h>

#include "util/mem.h"

/* Atomics here are relaxed unless noted: no other memory depends on these numbers. */

static size_t take(rp_draw_room *room, size_t least, size_t most)
{
    return rp_drawn_take((rp_drawn *)(void *)room, 0, least, most);
}

static void give(rp_draw_room *room, size_t bytes)
{
    rp_drawn_untake((rp_drawn *)(void *)room, bytes);
}

static size_t left(const rp_draw_room *room)
{
    return rp_drawn_left((const rp_drawn *)(const void *)room, 0);
}

rp_drawn *rp_drawn_new(const rp_allocator *alloc, rp_queue_budget *budget)
{
    rp_drawn *drawn = rp_alloc_zero(alloc, sizeof *drawn);

    if (drawn == NULL) return NULL;
    drawn->room = (rp_draw_room){.take = take, .give = give, .left = left};
    drawn->alloc = *alloc;
    drawn->budget = budget;
    drawn->refs = 1;
    return drawn;
}

rp_drawn *rp_drawn_ref(rp_drawn *drawn)
{
    assert(drawn->refs > 0);
    drawn->refs++;
    return drawn;
}

void rp_drawn_unref(rp_drawn *drawn)
{
    rp_allocator alloc;

    if (drawn == NULL) return;
    assert(drawn->refs > 0);
    if (--drawn->refs > 0) return;
    assert(rp_drawn_bytes(drawn) == 0); /* all bytes were returned */
    alloc = drawn->alloc;
    rp_release(&alloc, drawn, sizeof *drawn);
}

/* Q7: takes room from a loan in which nothing has been drawn yet. Returns the same as
 * rp_drawn_take(). The bytes are counted before `loan` is changed, because the connection ends
 * a loan without counted bytes. */
static size_t take_lent(rp_drawn *drawn, size_t least, size_t most)
{
    size_t loan = atomic_load_explicit(&drawn->loan, memory_order_relaxed);
    size_t got = most < loan / 2 ? most : loan / 2;

    if (!rp_drawn_loan_has(loan, least)) return 0;
    (void)atomic_fetch_add_explicit(&drawn->bytes, got, memory_order_relaxed);
    if (atomic_compare_exchange_strong_explicit(&drawn->loan, &loan, loan + 1,
                                                memory_order_release, memory_order_relaxed))
        return got;
    (void)atomic_fetch_sub_explicit(&drawn->bytes, got, memory_order_relaxed);
    return 0;
}

/* Takes room within the limit. Returns the same as rp_drawn_take(). */
static size_t take_room(rp_queue_budget *budget, size_t limit, size_t own, size_t least,
                        size_t most)
{
    size_t all = atomic_load_explicit(&budget->drawn_bytes, memory_order_relaxed), got;

    do {
        size_t counted = rp_queue_published_side(budget, RP_QUEUE_OUT);

        if (rp_queue_room_for_one(budget, limit, counted, own) < least) return 0;
        got = rp_queue_room(budget, limit, counted, own);
        if (got > most) got = most;
        if (got < least) got = least;
        assert(got <= most);
    } while (!atomic_compare_exchange_weak_explicit(
        &budget->drawn_bytes, &all, all + got, memory_order_relaxed, memory_order_relaxed));
    return got;
}

size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most)
{
    rp_queue_budget *budget = drawn->budget;
    size_t limit = atomic_load_explicit(&drawn->limit, memory_order_relaxed);
    size_t own = atomic_load_explicit(&drawn->bytes, memory_order_relaxed), got;

    assert(least <= most && own >= mine);
    if (own - mine >= atomic_load_explicit(&drawn->connection_limit, memory_order_relaxed))
        return 0;
    own += atomic_load_explicit(&drawn->counted, memory_order_relaxed);
    got = take_room(budget, limit, own, least, most);
    if (got > 0) {
        (void)atomic_fetch_add_explicit(&drawn->bytes, got, memory_order_relaxed);
    } else {
        got = take_lent(drawn, least, most);
        (void)atomic_fetch_add_explicit(&budget->drawn_bytes, got, memory_order_relaxed);
    }
    rp_counter_add_shared(budget->drawn_counter, got);
    return got;
}

size_t rp_drawn_left(const rp_drawn *drawn, size_t mine)
{
    size_t limit = atomic_load_explicit(&drawn->limit, memory_order_relaxed);
    size_t own = atomic_load_explicit(&drawn->bytes, memory_order_relaxed), room;
    size_t loan = atomic_load_explicit(&drawn->loan, memory_order_relaxed);

    assert(own >= mine);
    if (own - mine >= atomic_load_explicit(&drawn->connection_limit, memory_order_relaxed))
        return 0;
    own += atomic_load_explicit(&drawn->counted, memory_order_relaxed);
    room = rp_queue_room(drawn->budget, limit,
                         rp_queue_published_side(drawn->budget, RP_QUEUE_OUT), own);
    return rp_drawn_loan_has(loan, room) ? loan / 2 : room;
}

void rp_drawn_give(rp_drawn *drawn, size_t bytes)
{
    rp_queue_budget *budget = drawn->budget;
    size_t before;

    if (bytes == 0) return;
    (void)atomic_fetch_sub_explicit(&budget->drawn_bytes, bytes, memory_order_relaxed);
    before = atomic_fetch_sub_explicit(&drawn->bytes, bytes, memory_order_relaxed);
    assert(before >= bytes);
    (void)before;
    rp_counter_add_shared(budget->drawn_counter, 0 - bytes);
}

void rp_drawn_untake(rp_drawn *drawn, size_t bytes)
{
    size_t loan = atomic_load_explicit(&drawn->loan, memory_order_relaxed);

    rp_drawn_give(drawn, bytes);
    if (loan % 2 == 1 && atomic_load_explicit(&drawn->bytes, memory_order_relaxed) == 0)
        (void)atomic_compare_exchange_strong_explicit(
            &drawn->loan, &loan, loan - 1, memory_order_relaxed, memory_order_relaxed);
}
