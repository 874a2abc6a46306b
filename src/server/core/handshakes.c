/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/handshakes.h"

#include <assert.h>

static bool take_step(rp_handshakes *hs)
{
    assert(hs->steps <= RP_TURN_HANDSHAKES); /* H1 */
    if (hs->steps >= RP_TURN_HANDSHAKES) return false;
    hs->steps++;
    return true;
}

bool rp_handshake_may_step(rp_handshakes *hs, rp_handshake *h)
{
    if (h->is_queued) return false;
    if (hs->first == NULL && take_step(hs)) return true;
    /* If there is no memory for the timer, the descriptor stays ready, and the next turn tries
     * again. */
    if (rp_loop_arm(hs->loop, &hs->timer, rp_loop_now(hs->loop)) != RP_OK) return false;
    h->is_queued = true;
    h->queued_ns = rp_loop_now(hs->loop);
    h->prev = hs->last;
    h->next = NULL;
    *(hs->last != NULL ? &hs->last->next : &hs->first) = h;
    hs->last = h;
    rp_loop_change(hs->loop, h->watch, 0);
    return false;
}

void rp_handshake_forget(rp_handshakes *hs, rp_handshake *h)
{
    if (!h->is_queued) return;
    assert(h->prev != NULL ? h->prev->next == h : hs->first == h);
    assert(h->next != NULL ? h->next->prev == h : hs->last == h);
    *(h->prev != NULL ? &h->prev->next : &hs->first) = h->next;
    *(h->next != NULL ? &h->next->prev : &hs->last) = h->prev;
    h->is_queued = false;
}

static void on_due(rp_timer *timer)
{
    rp_handshakes *hs = (rp_handshakes *)((char *)timer - offsetof(rp_handshakes, timer));
    int64_t now_ns = rp_loop_now(hs->loop);

    /* Arms it for the next turn. Cannot fail: this timer has just left its place in the heap.
     */
    (void)!rp_loop_arm(hs->loop, timer, now_ns);
    while (hs->first != NULL) {
        rp_handshake *h = hs->first;
        bool is_gone = rp_link_is_hung_up(h->link); /* then `step` closes the connection */
        if (!is_gone && !take_step(hs)) break;
        rp_handshake_forget(hs, h);
        hs->step(h, now_ns - h->queued_ns);
    }
    if (hs->first == NULL) rp_loop_disarm(hs->loop, timer);
}

void rp_handshakes_init(rp_handshakes *hs, rp_loop *loop,
                        void (*step)(rp_handshake *handshake, int64_t waited_ns))
{
    *hs = (rp_handshakes){.loop = loop, .step = step};
    hs->timer.on_due = on_due;
}

void rp_handshakes_end_turn(rp_handshakes *hs)
{
    hs->steps = 0;
}
