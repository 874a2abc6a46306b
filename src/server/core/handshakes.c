/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/handshakes.h"

static bool take_step(rp_worker *worker)
{
    if (worker->handshakes >= RP_TURN_HANDSHAKES) return false;
    worker->handshakes++;
    return true;
}

bool rp_handshake_may_step(rp_connection *c)
{
    rp_worker *worker = c->worker;

    if (c->in_handshakes) return false;
    if (worker->shaking == NULL && take_step(worker)) return true;
    /* Without memory for the timer the descriptor stays ready, and is asked again. */
    if (rp_loop_arm(worker->loop, &worker->shake, rp_loop_now(worker->loop)) != RP_OK)
        return false;
    c->in_handshakes = true;
    c->queued_ns = rp_loop_now(worker->loop);
    c->prev_shaking = worker->shaking_last;
    c->next_shaking = NULL;
    *(worker->shaking_last != NULL ? &worker->shaking_last->next_shaking : &worker->shaking) =
        c;
    worker->shaking_last = c;
    rp_loop_change(worker->loop, &c->watch, 0);
    return false;
}

void rp_handshake_forget(rp_connection *c)
{
    rp_worker *worker = c->worker;

    if (!c->in_handshakes) return;
    *(c->prev_shaking != NULL ? &c->prev_shaking->next_shaking : &worker->shaking) =
        c->next_shaking;
    *(c->next_shaking != NULL ? &c->next_shaking->prev_shaking : &worker->shaking_last) =
        c->prev_shaking;
    c->in_handshakes = false;
}

static void on_due(rp_timer *timer)
{
    rp_worker *worker = (rp_worker *)((char *)timer - offsetof(rp_worker, shake));
    int64_t now_ns = rp_loop_now(worker->loop);

    /* For the next turn. Cannot fail: this timer has just left its place in the heap. */
    (void)!rp_loop_arm(worker->loop, timer, now_ns);
    while (worker->shaking != NULL) {
        rp_connection *c = worker->shaking;
        if (rp_link_is_hung_up(&c->link)) {
            rp_connection_shake_hands(c); /* closes it */
            continue;
        }
        if (!take_step(worker)) break;
        rp_handshake_forget(c);
        c->opened_ns += now_ns - c->queued_ns;
        rp_connection_shake_hands(c);
    }
    if (worker->shaking == NULL) rp_loop_disarm(worker->loop, timer);
}

void rp_handshakes_init(rp_worker *worker)
{
    worker->shake.on_due = on_due;
}

void rp_handshakes_end_turn(rp_worker *worker)
{
    worker->handshakes = 0;
}
