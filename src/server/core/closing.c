/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/closing.h"

#include <assert.h>

/* Ends up to `most` calls, and returns how many. After the last one `closed` may have been
 * freed. */
static size_t end_calls(rp_closing *closing, rp_closed *closed, size_t most)
{
    size_t before = rp_h2_call_count(closed->h2), left = rp_h2_close_calls(closed->h2, most);

    assert(left <= before);
    if (left == 0)
        closing->on_done(closed);
    else
        closing->on_progress(closed);
    return before - left;
}

static void end_first(rp_closing *closing, size_t most)
{
    rp_closed *closed = closing->first;

    assert(closing->timer.place != 0); /* E1 */
    if (rp_h2_call_count(closed->h2) <= most) {
        closing->first = closed->next;
        if (closing->first == NULL) closing->last = NULL;
    }
    closing->ended += end_calls(closing, closed, most);
}

static void on_due(rp_timer *timer)
{
    rp_closing *closing = (rp_closing *)((char *)timer - offsetof(rp_closing, timer));

    /* Arms it for the next turn. Cannot fail: this timer has just left its place in the heap.
     */
    (void)!rp_loop_arm(closing->loop, timer, rp_loop_now(closing->loop));
    while (closing->first != NULL && closing->ended < RP_CLOSING_CALLS)
        end_first(closing, RP_CLOSING_CALLS - closing->ended);
    if (closing->first == NULL) rp_loop_disarm(closing->loop, timer);
    assert((closing->first == NULL) == (closing->last == NULL)); /* E2 */
}

void rp_closing_add(rp_closing *closing, rp_closed *closed, rp_h2 *h2)
{
    size_t count = rp_h2_call_count(h2);

    closed->h2 = h2;
    closed->next = NULL;
    if ((closing->first == NULL && closing->ended + count <= RP_CLOSING_CALLS) ||
        closing->is_urgent ||
        /* If there is no memory for the timer, nothing would end the calls later. */
        rp_loop_arm(closing->loop, &closing->timer, rp_loop_now(closing->loop)) != RP_OK) {
        closing->ended += end_calls(closing, closed, SIZE_MAX);
        return;
    }
    assert((closing->first == NULL) == (closing->last == NULL)); /* E2 */
    *(closing->last != NULL ? &closing->last->next : &closing->first) = closed;
    closing->last = closed;
}

void rp_closing_finish(rp_closing *closing)
{
    closing->is_urgent = true;
    if (closing->first == NULL) return;
    while (closing->first != NULL) end_first(closing, SIZE_MAX);
    rp_loop_disarm(closing->loop, &closing->timer);
}

void rp_closing_init(rp_closing *closing, rp_loop *loop, void (*on_progress)(rp_closed *closed),
                     void (*on_done)(rp_closed *closed))
{
    *closing = (rp_closing){.loop = loop, .on_progress = on_progress, .on_done = on_done};
    closing->timer.on_due = on_due;
}

void rp_closing_end_turn(rp_closing *closing)
{
    closing->ended = 0;
}
