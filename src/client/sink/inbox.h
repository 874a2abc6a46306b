/* SPDX-License-Identifier: Apache-2.0 */
/* An inbox: the queue through which writers pass items to the network loop of a sink (sink.h).
 * Any thread puts items; the loop takes all of them at once.
 *
 * A post is a message that wakes the loop. One post is enough for any number of items. If the
 * loop will run soon anyway, it "is near": a few items then need no post. These items wait
 * until the loop takes them, until there are many, or until a caller claims them. A caller that
 * claims the items promises to wake the loop, or to take them itself as a guest of the loop
 * (net/loop.h). Some functions report that the caller must wake the loop; the caller must then
 * send the post.
 *
 * Invariants, while the lock is free:
 *   B1  if items wait, no room is reserved, and the loop has finished the items that it took
 *       before, then one of these holds: a post is pending, the loop is near, or a caller has
 *       claimed the items and is about to take them;
 *   B2  count + reserved <= capacity, and taken_count <= taken_capacity. */
#ifndef RP_CLIENT_SINK_INBOX_H
#define RP_CLIENT_SINK_INBOX_H

#include "client/sink/sink.h"
#include "util/mutex.h"

typedef struct rp_inbox {
    rp_allocator alloc;

    /* The items that the loop has taken. Only the loop thread uses these fields. */
    rp_sink_item *taken;
    size_t taken_count, taken_capacity;

    rp_mutex mu; /* lock rank 84 (util/mutex.h); guards the fields below */
    rp_sink_item *waiting RP_GUARDED_BY(mu);
    size_t count RP_GUARDED_BY(mu), capacity RP_GUARDED_BY(mu);
    size_t bytes RP_GUARDED_BY(mu);    /* of the items in `waiting` */
    size_t reserved RP_GUARDED_BY(mu); /* number of items for which room is reserved; if not 0,
                                          the loop takes no items */
    bool is_near RP_GUARDED_BY(mu), is_posted RP_GUARDED_BY(mu);
} rp_inbox;

void rp_inbox_init(rp_inbox *box, const rp_allocator *alloc);
/* Releases the remaining items. */
void rp_inbox_deinit(rp_inbox *box);

/* Puts items and takes over their references. Sets `*wakes` to whether the caller must wake the
 * loop. If memory runs out, puts no item and returns false. */
RP_NODISCARD bool rp_inbox_put(rp_inbox *box, const rp_sink_item *items, size_t count,
                               bool *wakes);
/* Reserves room for `count` items, for the caller's next rp_inbox_put_reserved(). Until then,
 * other threads can still put items, but the loop takes none. Only one caller at a time is
 * allowed to have a reservation. Returns false if memory runs out. */
RP_NODISCARD bool rp_inbox_reserve(rp_inbox *box, size_t count);
/* Puts all items for which room was reserved. If `count` is 0, cancels the reservation instead.
 * Returns true if the caller must wake the loop. */
RP_NODISCARD bool rp_inbox_put_reserved(rp_inbox *box, const rp_sink_item *items, size_t count);
/* Claims the waiting items. Returns true if at least `least` items wait, no room is reserved
 * and no post is pending. If the result is true, the caller must wake the loop, or enter the
 * loop as a guest and take the items itself. */
RP_NODISCARD bool rp_inbox_claim(rp_inbox *box, size_t least);
/* Returns true if a post is pending. */
bool rp_inbox_is_posted(rp_inbox *box);

/* Records that the post has arrived, or that the caller that claimed the items now runs the
 * loop. Must be called before rp_inbox_take(). */
void rp_inbox_on_posted(rp_inbox *box);
/* Sets whether the loop is near. Returns true if the caller must wake the loop. */
RP_NODISCARD bool rp_inbox_set_near(rp_inbox *box, bool is_near);
/* Takes all waiting items, and returns their number. `*items` is valid until rp_inbox_done().
 * If rp_inbox_done() was not called after the previous take, returns the items of that take
 * again. */
size_t rp_inbox_take(rp_inbox *box, const rp_sink_item **items);
/* Ends a take. The caller now owns the references of the items that were taken. */
void rp_inbox_done(rp_inbox *box);

#endif
