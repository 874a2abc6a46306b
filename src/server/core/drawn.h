/* SPDX-License-Identifier: Apache-2.0 */
/* rp_drawn counts the bytes of the drawn items of one connection: items that its calls have
 * sampled from tables and have not put into a response yet. These bytes are part of the budget
 * of queued bytes (queue_budget.h, rules Q4 and Q7).
 *
 * A table operation can draw items on any thread, and can outlive the connection. So an
 * rp_drawn is allocated separately and has a refcount. Only the worker's thread changes the
 * refcount.
 *
 * Invariants:
 *   D1  while no call of rp_drawn_take(), rp_drawn_give() or rp_drawn_untake() is in progress,
 *       budget->drawn_bytes is the sum of `bytes` over all rp_drawn;
 *   D2  if `loan` is odd, `bytes` includes an item that was drawn against the connection's loan
 *       (room beyond the limit of the budget, Q7). */
#ifndef RP_SERVER_CORE_DRAWN_H
#define RP_SERVER_CORE_DRAWN_H

#include "server/core/queue_budget.h"
#include "table/op.h"

typedef struct rp_drawn {
    rp_draw_room room; /* must be the first field. Its functions are rp_drawn_take(),
                          rp_drawn_untake() and rp_drawn_left() with mine = 0 */
    rp_allocator alloc;
    rp_queue_budget *budget;
    size_t refs;         /* used by the worker's thread only */
    atomic_size_t bytes; /* bytes of the drawn items */
    /* Copies of values that only the worker's thread may use. Other threads read the copies.
     * rp_connection_update_drawn() updates them. */
    atomic_size_t counted; /* the connection's other bytes on the side RP_QUEUE_OUT */
    /* X (queue_budget.h), the limit of that side, and the server's limit
     * connection_queued_bytes. */
    atomic_size_t limit, connection_limit;
    /* Q7: twice the bytes that may be drawn against the connection's loan, plus 1 if an item
     * has been drawn against it. 0: the connection has no loan to draw against. */
    atomic_size_t loan;
} rp_drawn;

/* Makes an rp_drawn with one reference. Returns NULL if there is no memory. */
rp_drawn *rp_drawn_new(const rp_allocator *alloc, rp_queue_budget *budget);
rp_drawn *rp_drawn_ref(rp_drawn *drawn);
void rp_drawn_unref(rp_drawn *drawn); /* NULL is fine */

/* As rp_draw_room.take (table/op.h), for a call whose own drawn items have `mine` bytes. The
 * call's own bytes do not count towards connection_queued_bytes (Q4). Any thread may call it.
 */
size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most);
/* As rp_draw_room.left, with `mine` as in rp_drawn_take(). Any thread may call it. */
size_t rp_drawn_left(const rp_drawn *drawn, size_t mine);
/* Gives back the bytes of drawn items that are in a response now, or were dropped. */
void rp_drawn_give(rp_drawn *drawn, size_t bytes);
/* As rp_draw_room.give: gives back bytes that were taken for items which were not drawn after
 * all. If no drawn bytes remain, an item may be drawn against the loan again (Q7). Any thread
 * may call it. */
void rp_drawn_untake(rp_drawn *drawn, size_t bytes);

static inline size_t rp_drawn_bytes(const rp_drawn *drawn) /* NULL has none */
{
    return drawn != NULL ? atomic_load_explicit(&drawn->bytes, memory_order_relaxed) : 0;
}

/* Returns whether an item of `bytes` may be drawn against a loan. `loan` is a value of
 * rp_drawn.loan. */
static inline bool rp_drawn_loan_has(size_t loan, size_t bytes)
{
    return loan % 2 == 0 && loan / 2 >= bytes && loan > 0;
}

#endif
