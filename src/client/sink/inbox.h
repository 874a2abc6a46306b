/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sink's items wait for its loop: any thread puts them, the loop takes them all at
 * once.
 *
 * A post wakes the loop, and one is enough however many items follow. While the loop comes by
 * anyway ("is near"), a few items are not worth a post: they wait until they are many, or until
 * somebody asks for it. Whoever is told to wake the loop posts; nobody else has to.
 *
 * Invariants, while nobody has the lock:
 *   B1  if items wait, no room is reserved and the loop is done with what it took before, then
 *       a post is on its way, or the loop is near, or whoever has claimed them is about to take
 *       them;
 *   B2  there is room for what is reserved. */
#ifndef RP_CLIENT_SINK_INBOX_H
#define RP_CLIENT_SINK_INBOX_H

#include "client/sink/sink.h"
#include "util/mutex.h"

typedef struct rp_inbox {
    rp_allocator alloc;

    /* the loop's */
    rp_sink_item *taken;
    size_t taken_count, taken_capacity;

    rp_mutex mu; /* rank 84: the rest */
    rp_sink_item *waiting RP_GUARDED_BY(mu);
    size_t count RP_GUARDED_BY(mu), capacity RP_GUARDED_BY(mu);
    size_t bytes RP_GUARDED_BY(mu);    /* of those that wait */
    size_t reserved RP_GUARDED_BY(mu); /* items; the array stays until they have come */
    bool is_near RP_GUARDED_BY(mu), is_posted RP_GUARDED_BY(mu);
} rp_inbox;

void rp_inbox_init(rp_inbox *box, const rp_allocator *alloc);
/* Lets go of the items that are left. Nobody else uses it any more. */
void rp_inbox_deinit(rp_inbox *box);

/* Puts items, whose references it takes. False: no memory, and none is put. `*wakes`: the
 * caller wakes the loop. */
RP_NODISCARD bool rp_inbox_put(rp_inbox *box, const rp_sink_item *items, size_t count,
                               bool *wakes);
/* Makes room for items that the caller puts next; others may put theirs meanwhile, but the loop
 * takes none. One caller at a time. False: no memory. */
RP_NODISCARD bool rp_inbox_reserve(rp_inbox *box, size_t count);
/* Puts all items for which room was made, or none: 0 takes it back. True: the caller wakes the
 * loop. */
RP_NODISCARD bool rp_inbox_put_reserved(rp_inbox *box, const rp_sink_item *items, size_t count);
/* True if `least` items wait and nobody has woken the loop: the caller does, or is it. */
RP_NODISCARD bool rp_inbox_claim(rp_inbox *box, size_t least);
bool rp_inbox_is_posted(rp_inbox *box);

/* The post has come, or whoever claimed the items is the loop now: it takes them next. */
void rp_inbox_on_posted(rp_inbox *box);
/* Says whether the loop comes by soon. True: the caller wakes it. */
RP_NODISCARD bool rp_inbox_set_near(rp_inbox *box, bool is_near);
/* What was taken and not done with; if that is nothing, all that waits. They stay until
 * rp_inbox_done(). Returns how many. */
size_t rp_inbox_take(rp_inbox *box, const rp_sink_item **items);
/* The references of what was taken are the caller's. */
void rp_inbox_done(rp_inbox *box);

#endif
