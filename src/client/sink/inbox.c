/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/inbox.h"

#include <assert.h>

#include "chunk/trajectory.h"
#include "util/mem.h"

enum {
    FIRST_CAPACITY = 16,
    KEPT_ROOM = 4096,   /* items: memory for more than these is freed once they are taken */
    ENOUGH_ITEMS = 256, /* waiting items that are worth waking the loop for, */
    ENOUGH_BYTES = 128 << 10, /* or waiting bytes */
};

void rp_inbox_init(rp_inbox *box, const rp_allocator *alloc)
{
    *box = (rp_inbox){.alloc = *alloc};
    rp_mutex_init(&box->mu, RP_RANK_STREAM);
}

static void release(const rp_allocator *alloc, rp_sink_item *items, size_t count,
                    size_t capacity)
{
    assert(count <= capacity); /* B2 */
    for (size_t i = 0; i < count; i++) rp_trajectory_unref(items[i].trajectory);
    rp_release(alloc, items, capacity * sizeof *items);
}

void rp_inbox_deinit(rp_inbox *box) RP_NO_THREAD_SAFETY_ANALYSIS
{
    release(&box->alloc, box->taken, box->taken_count, box->taken_capacity);
    release(&box->alloc, box->waiting, box->count, box->capacity);
    rp_mutex_deinit(&box->mu);
}

/* Returns true if no post was pending: the caller must wake the loop. */
static bool claim_locked(rp_inbox *box) RP_REQUIRES(box->mu)
{
    bool was_posted = box->is_posted;

    box->is_posted = true;
    return !was_posted;
}

static bool reserve_locked(rp_inbox *box, size_t more) RP_REQUIRES(box->mu)
{
    size_t needed = box->count + box->reserved + more, capacity = box->capacity;

    if (needed <= capacity) return true;
    if (capacity == 0) capacity = FIRST_CAPACITY;
    while (capacity < needed) capacity *= 2;
    if (!rp_resize_array(&box->alloc, &box->waiting, box->capacity, capacity,
                         sizeof *box->waiting))
        return false;
    box->capacity = capacity;
    assert(box->count + box->reserved + more <= box->capacity); /* B2 */
    return true;
}

/* Puts items for which there is room. Returns true if the caller must wake the loop. */
static bool put_locked(rp_inbox *box, const rp_sink_item *items, size_t count)
    RP_REQUIRES(box->mu)
{
    assert(box->count + box->reserved + count <= box->capacity);
    for (size_t i = 0; i < count; i++) {
        assert(items[i].trajectory != NULL);
        box->waiting[box->count++] = items[i];
        box->bytes += items[i].trajectory->bytes;
    }
    if (box->is_near && box->count < ENOUGH_ITEMS && box->bytes < ENOUGH_BYTES) return false;
    return box->count > 0 && claim_locked(box);
}

bool rp_inbox_put(rp_inbox *box, const rp_sink_item *items, size_t count, bool *wakes)
{
    bool ok;

    rp_mutex_lock(&box->mu);
    ok = reserve_locked(box, count);
    *wakes = ok && put_locked(box, items, count);
    rp_mutex_unlock(&box->mu);
    return ok;
}

bool rp_inbox_reserve(rp_inbox *box, size_t count)
{
    bool ok;

    rp_mutex_lock(&box->mu);
    assert(box->reserved == 0);
    ok = reserve_locked(box, count);
    if (ok) box->reserved = count;
    rp_mutex_unlock(&box->mu);
    return ok;
}

bool rp_inbox_put_reserved(rp_inbox *box, const rp_sink_item *items, size_t count)
{
    bool wakes;

    rp_mutex_lock(&box->mu);
    assert(count == 0 || count == box->reserved);
    box->reserved = 0;
    wakes = put_locked(box, items, count); /* also for items of other threads: B1 */
    rp_mutex_unlock(&box->mu);
    return wakes;
}

bool rp_inbox_claim(rp_inbox *box, size_t least)
{
    bool wakes;

    rp_mutex_lock(&box->mu);
    wakes = box->count >= least && box->count > 0 && box->reserved == 0 && claim_locked(box);
    rp_mutex_unlock(&box->mu);
    return wakes;
}

bool rp_inbox_is_posted(rp_inbox *box)
{
    bool is_posted;

    rp_mutex_lock(&box->mu);
    is_posted = box->is_posted;
    rp_mutex_unlock(&box->mu);
    return is_posted;
}

void rp_inbox_on_posted(rp_inbox *box)
{
    rp_mutex_lock(&box->mu);
    box->is_posted = false;
    rp_mutex_unlock(&box->mu);
}

bool rp_inbox_set_near(rp_inbox *box, bool is_near)
{
    bool wakes = false;

    rp_mutex_lock(&box->mu);
    box->is_near = is_near;
    if (!is_near && box->reserved == 0 && box->count > 0 && box->taken_count == 0)
        wakes = claim_locked(box);
    rp_mutex_unlock(&box->mu);
    return wakes;
}

size_t rp_inbox_take(rp_inbox *box, const rp_sink_item **items)
{
    if (box->taken_count == 0) {
        rp_sink_item *empty = box->taken;
        size_t capacity = box->taken_capacity;

        rp_mutex_lock(&box->mu);
        if (box->reserved == 0 && box->count > 0) {
            box->taken = box->waiting;
            box->taken_count = box->count;
            box->taken_capacity = box->capacity;
            box->waiting = empty;
            box->capacity = capacity;
            box->count = box->bytes = 0;
        }
        rp_mutex_unlock(&box->mu);
    }
    assert(box->taken_count <= box->taken_capacity); /* B2 */
    *items = box->taken;
    return box->taken_count;
}

void rp_inbox_done(rp_inbox *box)
{
    box->taken_count = 0;
    if (box->taken_capacity <= KEPT_ROOM) return;
    rp_release(&box->alloc, box->taken, box->taken_capacity * sizeof *box->taken);
    box->taken = NULL;
    box->taken_capacity = 0;
}
