/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/closing.h"

enum { TURN_CALLS = 512 }; /* of closed connections that one turn ends */

/* Ends up to `most` calls of the connection. Returns how many; frees it after the last. */
static size_t end_calls(rp_connection *c, size_t most)
{
    size_t before = rp_h2_call_count(c->h2), left = rp_h2_close_calls(c->h2, most);

    if (left == 0)
        rp_connection_free(c);
    else
        rp_connection_count(c); /* what the others held is free */
    return before - left;
}

static void end_first(rp_worker *worker, size_t most)
{
    rp_connection *c = worker->closing;

    if (rp_h2_call_count(c->h2) <= most) { /* it is freed */
        worker->closing = c->next_closing;
        if (worker->closing == NULL) worker->closing_last = NULL;
    }
    worker->closed_calls += end_calls(c, most);
}

static void on_due(rp_timer *timer)
{
    rp_worker *worker = (rp_worker *)((char *)timer - offsetof(rp_worker, close_more));

    /* For the next turn. Cannot fail: this timer has just left its place in the heap. */
    (void)!rp_loop_arm(worker->loop, timer, rp_loop_now(worker->loop));
    while (worker->closing != NULL && worker->closed_calls < TURN_CALLS)
        end_first(worker, TURN_CALLS - worker->closed_calls);
    if (worker->closing == NULL) rp_loop_disarm(worker->loop, timer);
}

void rp_closing_add(rp_connection *c)
{
    rp_worker *worker = c->worker;
    size_t count = rp_h2_call_count(c->h2);

    if ((worker->closing == NULL && worker->closed_calls + count <= TURN_CALLS) ||
        worker->stopping ||
        /* Without memory for the timer nothing would end them later. */
        rp_loop_arm(worker->loop, &worker->close_more, rp_loop_now(worker->loop)) != RP_OK) {
        worker->closed_calls += end_calls(c, SIZE_MAX);
        return;
    }
    c->next_closing = NULL;
    *(worker->closing_last != NULL ? &worker->closing_last->next_closing : &worker->closing) =
        c;
    worker->closing_last = c;
}

void rp_closing_finish(rp_worker *worker)
{
    if (worker->closing == NULL) return;
    while (worker->closing != NULL) end_first(worker, SIZE_MAX);
    rp_loop_disarm(worker->loop, &worker->close_more);
}

void rp_closing_init(rp_worker *worker)
{
    worker->close_more.on_due = on_due;
}

void rp_closing_end_turn(rp_worker *worker)
{
    worker->closed_calls = 0;
}
