/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of items from writers to the loop of a sink: any thread puts items, the loop takes
 * all of them at once.
 *
 * A post wakes the loop; one is enough for any number of items. While the loop will run soon
 * anyway (it "is near"), a few items do not need a post: they wait until there are many, or
 * until a caller claims them. A function below that says "must wake the loop" makes its caller
 * responsible for the post.
 *
 * Invariants, while the lock is free:
 *   B1  if items wait, no room is reserved and the loop has finished the items it took before,
 *       then a post is pending, or the loop is near, or a caller has claimed the items and is
 *       about to take them;
 *   B2  count + reserved <= capacity, and taken_count <= taken_capacity. */
#ifndef RP_CLIENT_SINK_INBOX_H
#define RP_CLIENT_SINK_INBOX_H

#include "client/sink/sink.h"
#include "util/mutex.h"

typedef struct rp_inbox {
    rp_allocator alloc;

    /* used by the loop thread only */
    rp_sink_item *taken;
    size_t taken_count, taken_capacity;

    rp_mutex mu; /* rank 84; guards the fields below */
    rp_sink_item *waiting RP_GUARDED_BY(mu);
    size_t count RP_GUARDED_BY(mu), capacity RP_GUARDED_BY(mu);
    size_t bytes RP_GUARDED_BY(mu); /* of `waiting` */
    size_t
        reserved RP_GUARDED_BY(mu); /* items to come; the loop takes none until they are in */
    bool is_near RP_GUARDED_BY(mu), is_posted RP_GUARDED_BY(mu);
} rp_inbox;

void rp_inbox_init(rp_inbox *box, const rp_allocator *alloc);
/* Releases the items that are left. */
void rp_inbox_deinit(rp_inbox *box);

/* Puts items and takes their references. Returns false, with none put, if there is no memory.
 * `*wakes` says whether the caller must wake the loop. */
RP_NODISCARD bool rp_inbox_put(rp_inbox *box, const rp_sink_item *items, size_t count,
                               bool *wakes);
/* Reserves room for items that the caller puts next. Until then other threads may put items,
 * but the loop takes none. One caller at a time. Returns false if there is no memory. */
RP_NODISCARD bool rp_inbox_reserve(rp_inbox *box, size_t count);
/* Puts all items for which room was reserved, or none: a `count` of 0 cancels the reservation.
 * Returns true if the caller must wake the loop. */
RP_NODISCARD bool rp_inbox_put_reserved(rp_inbox *box, const rp_sink_item *items, size_t count);
/* Returns true if `least` items wait and no post is pending: the caller wakes the loop, or
 * takes the items itself as a guest of the loop. */
RP_NODISCARD bool rp_inbox_claim(rp_inbox *box, size_t least);
bool rp_inbox_is_posted(rp_inbox *box);

/* Call it before rp_inbox_take() when the post has arrived, or when the caller that claimed the
 * items runs the loop. */
void rp_inbox_on_posted(rp_inbox *box);
/* Sets whether the loop will run soon. Returns true if the caller must wake it. */
RP_NODISCARD bool rp_inbox_set_near(rp_inbox *box, bool is_near);
/* Takes all waiting items; if rp_inbox_done() was not called since the last take, returns the
 * items of that take again. `*items` is valid until rp_inbox_done(). Returns the number of
 * items. */
size_t rp_inbox_take(rp_inbox *box, const rp_sink_item **items);
/* Ends a take: the caller owns the references of the items that were taken. */
void rp_inbox_done(rp_inbox *box);

#endif
