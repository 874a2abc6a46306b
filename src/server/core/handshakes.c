/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/handshakes.h"

#include <assert.h>

enum { PLACES_PART = 8 }; /* H4 */

static bool take_step(rp_handshakes *hs, rp_handshake *h)
{
    assert(hs->steps <= RP_TURN_HANDSHAKES); /* H1 */
    if (hs->steps >= RP_TURN_HANDSHAKES) return false;
    hs->steps++;
    if (h->steps < 2) h->steps++;
    return true;
}

static rp_handshake_queue *queue_of(rp_handshakes *hs, const rp_handshake *h)
{
    /* The high half: some bits of the low half are constant. */
    return &hs->queues[(h->address >> 32) % RP_HANDSHAKE_QUEUES];
}

static void append(rp_handshake_queue *q, rp_handshake *h, rp_handshake_rank rank)
{
    rp_handshake_list *list = &q->lists[rank];

    h->rank = rank;
    h->prev = list->last;
    h->next = NULL;
    *(list->last != NULL ? &list->last->next : &list->first) = h;
    list->last = h;
    if (rank != RP_HANDSHAKE_LATE) q->prompt++; /* H4 */
}

static void take_out(rp_handshake_queue *q, rp_handshake *h)
{
    rp_handshake_list *list = &q->lists[h->rank];

    assert(h->prev != NULL ? h->prev->next == h : list->first == h); /* H2 */
    assert(h->next != NULL ? h->next->prev == h : list->last == h);
    *(h->prev != NULL ? &h->prev->next : &list->first) = h->next;
    *(h->next != NULL ? &h->next->prev : &list->last) = h->prev;
    if (h->rank == RP_HANDSHAKE_LATE) return;
    assert(q->prompt > 0); /* H4 */
    q->prompt--;
}

/* The handshake of a queue that is next; NULL if the queue is empty. Of those that are late,
 * the youngest, as the others are more likely to have given up. */
static rp_handshake *next_of(const rp_handshake_queue *q)
{
    const rp_handshake_list *lists = q->lists;

    if (lists[RP_HANDSHAKE_BEGUN].first != NULL) return lists[RP_HANDSHAKE_BEGUN].first;
    if (lists[RP_HANDSHAKE_NEW].first != NULL) return lists[RP_HANDSHAKE_NEW].first;
    return lists[RP_HANDSHAKE_LATE].last;
}

/* Adds a queue to the ring, as the last of this round. */
static void enter_ring(rp_handshakes *hs, rp_handshake_queue *q)
{
    assert(q->next == NULL && q->prev == NULL); /* H3 */
    hs->busy++;
    if (hs->turn == NULL) {
        q->prev = q->next = hs->turn = q;
        return;
    }
    q->next = hs->turn;
    q->prev = hs->turn->prev;
    q->prev->next = q->next->prev = q;
}

static void leave_ring(rp_handshakes *hs, rp_handshake_queue *q)
{
    assert(q->next->prev == q && q->prev->next == q); /* H3 */
    assert(hs->busy > 0);
    hs->busy--;
    if (hs->turn == q) hs->turn = q->next != q ? q->next : NULL;
    q->prev->next = q->next;
    q->next->prev = q->prev;
    q->prev = q->next = NULL;
}

/* Makes the oldest handshakes of a queue late, except for `added` (H4). */
static void make_late(rp_handshakes *hs, rp_handshake_queue *q, const rp_handshake *added)
{
    size_t part = hs->places / PLACES_PART / hs->busy;
    size_t most = part > RP_PROMPT_HANDSHAKES ? RP_PROMPT_HANDSHAKES : part > 0 ? part : 1;

    while (q->prompt > most) {
        rp_handshake *h = q->lists[RP_HANDSHAKE_NEW].first;
        if (h == NULL || h == added) h = q->lists[RP_HANDSHAKE_BEGUN].first;
        assert(h != NULL && h != added); /* `most` is at least 1, so there are two */
        take_out(q, h);
        append(q, h, RP_HANDSHAKE_LATE);
        hs->handler->on_late(h);
    }
}

bool rp_handshake_may_step(rp_handshakes *hs, rp_handshake *h)
{
    rp_handshake_queue *q = queue_of(hs, h);

    if (h->is_queued) return false;
    if (hs->turn == NULL && take_step(hs, h)) return true;
    /* If there is no memory for the timer, the descriptor stays ready, and the next turn tries
     * again. */
    if (rp_loop_arm(hs->loop, &hs->timer, rp_loop_now(hs->loop)) != RP_OK) return false;
    h->is_queued = true;
    h->queued_ns = rp_loop_now(hs->loop);
    if (next_of(q) == NULL) enter_ring(hs, q);
    append(q, h, h->steps == 1 ? RP_HANDSHAKE_BEGUN : RP_HANDSHAKE_NEW);
    make_late(hs, q, h);
    rp_loop_change(hs->loop, h->watch, 0);
    return false;
}

bool rp_handshake_is_late(const rp_handshake *h)
{
    return h->is_queued && h->rank == RP_HANDSHAKE_LATE;
}

void rp_handshake_forget(rp_handshakes *hs, rp_handshake *h)
{
    rp_handshake_queue *q = queue_of(hs, h);

    if (!h->is_queued) return;
    take_out(q, h);
    h->is_queued = false;
    if (next_of(q) == NULL) leave_ring(hs, q);
}

static void on_due(rp_timer *timer)
{
    rp_handshakes *hs = (rp_handshakes *)((char *)timer - offsetof(rp_handshakes, timer));
    int64_t now_ns = rp_loop_now(hs->loop);

    /* Arms it for the next turn. Cannot fail: this timer has just left its place in the heap.
     */
    (void)!rp_loop_arm(hs->loop, timer, now_ns);
    while (hs->turn != NULL) {
        rp_handshake *h = next_of(hs->turn);
        bool is_gone = rp_link_is_hung_up(h->link); /* then `step` closes the connection */
        if (!is_gone && !take_step(hs, h)) break;
        if (!is_gone) hs->turn = hs->turn->next; /* the others first, then this one again */
        rp_handshake_forget(hs, h);
        hs->handler->step(h, now_ns - h->queued_ns);
    }
    if (hs->turn == NULL) rp_loop_disarm(hs->loop, timer);
}

void rp_handshakes_init(rp_handshakes *hs, rp_loop *loop, const rp_handshakes_handler *handler)
{
    assert(handler->step != NULL && handler->on_late != NULL);
    *hs = (rp_handshakes){.loop = loop, .handler = handler, .places = SIZE_MAX};
    hs->timer.on_due = on_due;
}

void rp_handshakes_set_places(rp_handshakes *hs, size_t places)
{
    hs->places = places;
}

void rp_handshakes_end_turn(rp_handshakes *hs)
{
    hs->steps = 0;
}
