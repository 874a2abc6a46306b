/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the bytes of items that were drawn for the calls of one connection and are in no
 * response yet. They are part of the budget of queued bytes (queue_budget.h, Q4 and Q7).
 *
 * Operations of tables draw on any thread and may outlive the connection. So rp_drawn is an
 * object of its own, with references that only the worker's thread adds and drops.
 *
 * Invariants:
 *   D1  budget->drawn_bytes is the sum of `bytes` of all rp_drawn, but for calls of take, give
 *       and untake that are in progress;
 *   D2  `loan` is odd only while items that were drawn by the connection's loan (Q7) are
 *       counted in `bytes`. */
#ifndef RP_SERVER_CORE_DRAWN_H
#define RP_SERVER_CORE_DRAWN_H

#include "server/core/queue_budget.h"
#include "table/op.h"

typedef struct rp_drawn {
    rp_draw_room room; /* must be the first field. Its functions take and return bytes with
                          `mine` 0, for operations whose call does not count its own bytes */
    rp_allocator alloc;
    rp_queue_budget *budget;
    size_t refs;         /* used by the worker's thread only */
    atomic_size_t bytes; /* of items that were drawn and not given back */
    /* Copies of the worker's values, for other threads: rp_connection_update_drawn(). */
    atomic_size_t counted; /* other bytes of the connection on the side RP_QUEUE_OUT */
    atomic_size_t limit, connection_limit; /* of the side; connection_queued_bytes */
    /* Q7: twice the bytes that may be drawn by the connection's loan, plus 1 if an item has
     * been drawn by it. 0: nothing may be drawn by a loan. */
    atomic_size_t loan;
} rp_drawn;

/* Makes an rp_drawn with one reference. NULL if there is no memory. */
rp_drawn *rp_drawn_new(const rp_allocator *alloc, rp_queue_budget *budget);
rp_drawn *rp_drawn_ref(rp_drawn *drawn);
void rp_drawn_unref(rp_drawn *drawn); /* NULL is fine */

/* As rp_draw_room.take, for a call that holds `mine` bytes already. Any thread. */
size_t rp_drawn_take(rp_drawn *drawn, size_t mine, size_t least, size_t most);
/* As rp_draw_room.left, for a call that holds `mine` bytes already. Any thread. */
size_t rp_drawn_left(const rp_drawn *drawn, size_t mine);
/* Returns bytes of items that were drawn and are in a response now, or were dropped. */
void rp_drawn_give(rp_drawn *drawn, size_t bytes);
/* As rp_draw_room.give: returns bytes that were taken for items that were then not drawn. If
 * rp_drawn_bytes() falls to 0, an item may be drawn by the loan again (Q7). Any thread. */
void rp_drawn_untake(rp_drawn *drawn, size_t bytes);

static inline size_t rp_drawn_bytes(const rp_drawn *drawn) /* NULL has none */
{
    return drawn != NULL ? atomic_load_explicit(&drawn->bytes, memory_order_relaxed) : 0;
}

/* Whether `loan`, a value of rp_drawn.loan, has room for an item of `bytes`. */
static inline bool rp_drawn_loan_has(size_t loan, size_t bytes)
{
    return loan % 2 == 0 && loan / 2 >= bytes && loan > 0;
}

#endif
