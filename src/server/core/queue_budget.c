/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/queue_budget.h"

#include <assert.h>

enum {
    PUBLISH_BYTES = 256 << 10, /* bytes that a worker may count without publishing them */
    SHARE_BYTES = 256 << 10,   /* most bytes of the last quarter for one connection */
    SHORT_NS = 1000000000,     /* longer than the time between two tries to get room */
};

void rp_queue_budget_init(rp_queue_budget *budget, const atomic_size_t *connection_count)
{
    *budget = (rp_queue_budget){.connection_count = connection_count};
    for (int side = 0; side < RP_QUEUE_SIDES; side++) rp_loans_init(&budget->loans[side]);
}

void rp_queue_budget_deinit(rp_queue_budget *budget)
{
    for (int side = 0; side < RP_QUEUE_SIDES; side++) rp_loans_deinit(&budget->loans[side]);
}

void rp_queue_publish(rp_queue_part *part)
{
    for (int side = 0; side < RP_QUEUE_SIDES; side++) {
        if (part->unpublished[side] == 0) continue;
        /* Relaxed: no other memory depends on this number. */
        atomic_fetch_add_explicit(&part->budget->published[side], part->unpublished[side],
                                  memory_order_relaxed);
        part->unpublished[side] = 0;
    }
}

/* Whether a part has counted at most PUBLISH_BYTES, up or down, since it published. */
static bool is_within_block(size_t unpublished)
{
    return unpublished + PUBLISH_BYTES <= 2 * (size_t)PUBLISH_BYTES;
}

void rp_queue_count(rp_queue_part *part, rp_queue_side side, size_t bytes)
{
    assert(side >= 0 && side < RP_QUEUE_SIDES);
    part->unpublished[side] += bytes;
    rp_counter_add(part->counter, bytes);
    if (!is_within_block(part->unpublished[side])) rp_queue_publish(part);
    assert(is_within_block(part->unpublished[side]));
}

/* The sum may be below zero, since workers publish additions and subtractions late: then it
 * counts as 0. */
static size_t sum(const rp_queue_budget *budget, rp_queue_side side, size_t unpublished)
{
    size_t all =
        unpublished + atomic_load_explicit(&budget->published[side], memory_order_relaxed);

    if (side == RP_QUEUE_OUT)
        all += atomic_load_explicit(&budget->drawn_bytes, memory_order_relaxed);
    return all > SIZE_MAX / 2 ? 0 : all;
}

size_t rp_queue_bytes(const rp_queue_part *part, rp_queue_side side)
{
    return sum(part->budget, side, part->unpublished[side]);
}

size_t rp_queue_published_side(const rp_queue_budget *budget, rp_queue_side side)
{
    return sum(budget, side, 0);
}

size_t rp_queue_published(const rp_queue_budget *budget)
{
    return sum(budget, RP_QUEUE_IN, 0) + sum(budget, RP_QUEUE_OUT, 0);
}

/* The part of the last quarter that one connection may use. */
static size_t share_of(const rp_queue_budget *budget, size_t limit)
{
    size_t count = atomic_load_explicit(budget->connection_count, memory_order_relaxed);
    size_t share = limit / 4 / (count > 0 ? count : 1);

    return share < SHARE_BYTES ? share : SHARE_BYTES;
}

size_t rp_queue_room(const rp_queue_budget *budget, size_t limit, size_t all, size_t own)
{
    size_t share, room = 0, open = limit - limit / 4;

    if (all < open) return open - all; /* Q1; at most a little less than Q2 would give */
    share = share_of(budget, limit);
    if (all < limit && own < share) /* Q2 */
        room = share - own < limit - all ? share - own : limit - all;
    if (own < RP_QUEUE_FLOOR_BYTES && room < RP_QUEUE_FLOOR_BYTES - own) /* Q3 */
        room = RP_QUEUE_FLOOR_BYTES - own;
    assert(room <= SHARE_BYTES);
    return room;
}

size_t rp_queue_room_for_one(const rp_queue_budget *budget, size_t limit, size_t all,
                             size_t own)
{
    return all < limit - limit / 4 ? SIZE_MAX : rp_queue_room(budget, limit, all, own);
}

void rp_queue_mark_short(rp_queue_budget *budget, rp_queue_side side, int64_t now_ns)
{
    atomic_int_fast64_t *then_ns = &budget->short_ns[side];

    /* Relaxed: no other memory depends on this time. */
    if (now_ns - atomic_load_explicit(then_ns, memory_order_relaxed) > SHORT_NS / 8)
        atomic_store_explicit(then_ns, now_ns, memory_order_relaxed);
}

bool rp_queue_is_short(const rp_queue_budget *budget, rp_queue_side side, int64_t now_ns)
{
    int64_t then_ns = atomic_load_explicit(&budget->short_ns[side], memory_order_relaxed);

    return then_ns != 0 && now_ns - then_ns < SHORT_NS;
}
