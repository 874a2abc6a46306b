/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/rollout_waits.h"

#include <assert.h>

#include "rollouts/rollout_set.h"
#include "util/clock.h"

enum {
    RETRIES = 256,         /* most calls that are tried in a turn */
    RETRY_BYTES = 4 << 20, /* of their requests */
};

/* The timer follows the wall clock, which may be set: it looks once a minute at least. */
static const int64_t longest_ns = INT64_C(60) * 1000000000, shortest_ns = 1000000;

void rp_rollouts_expire(rp_rollouts *rollouts)
{
    const rp_rollout_op op = {.kind = RP_ROLLOUT_EXPIRE, .now_ns = rp_wall_ns(NULL)};
    rp_rollout_result result;

    if (rp_rollouts_next_expiry(rollouts) > op.now_ns) return;
    /* Without memory, or once the rollouts are closed, a later call tries again. */
    (void)!rp_rollouts_apply(rollouts, &op, &result, NULL);
}

static void try_some(rp_rollout_waits *w);

static void on_more(rp_timer *timer)
{
    try_some((rp_rollout_waits *)((char *)timer - offsetof(rp_rollout_waits, more)));
}

/* Tries calls from next_try on. */
static void try_some(rp_rollout_waits *w)
{
    size_t bytes = 0, tries = 0;

    while (w->next_try != NULL || w->again) {
        rp_rollout_wait *wait = w->next_try;

        if (wait == NULL) { /* begins again */
            w->again = false;
            w->next_try = w->first;
            continue;
        }
        if (tries++ == RETRIES || bytes >= RETRY_BYTES) {
            /* Without memory for the timer, the next change continues. */
            (void)!rp_loop_arm(w->loop, &w->more, rp_loop_now(w->loop));
            return;
        }
        bytes += wait->bytes;
        w->next_try = wait->next; /* W2 */
        wait->retry(wait);
    }
}

static void on_changed(rp_post *post)
{
    rp_rollout_waits *w =
        (rp_rollout_waits *)((char *)post - offsetof(rp_rollout_waits, changed));

    /* Cleared first: a change from here on is another post. */
    atomic_store_explicit(&w->is_posted, false, memory_order_seq_cst);
    if (w->first == NULL) return;
    if (w->next_try != NULL)
        w->again = true;
    else
        w->next_try = w->first;
    if (w->more.place == 0) try_some(w);
}

void rp_rollout_waits_wake(rp_rollout_waits *w)
{
    if (atomic_load_explicit(&w->count, memory_order_seq_cst) > 0 &&
        !atomic_exchange_explicit(&w->is_posted, true, memory_order_seq_cst))
        rp_loop_post(w->loop, &w->changed);
}

static void arm(rp_rollout_waits *w, int64_t due_ns)
{
    int64_t left_ns;

    if (due_ns >= w->expiry_ns) return;
    left_ns = due_ns - rp_wall_ns(NULL);
    if (left_ns < shortest_ns) left_ns = shortest_ns;
    if (left_ns > longest_ns) left_ns = longest_ns;
    /* Without memory for the timer, a later operation arms it. */
    if (rp_loop_arm(w->loop, &w->expiry, rp_loop_now(w->loop) + left_ns) == RP_OK)
        w->expiry_ns = due_ns;
}

static void on_expiry(rp_timer *timer)
{
    rp_rollout_waits *w =
        (rp_rollout_waits *)((char *)timer - offsetof(rp_rollout_waits, expiry));
    rp_rollouts *all[RP_ROLLOUT_SET_COUNT];
    size_t count = rp_rollout_set_list(rp_store_rollouts(w->store), all);

    w->expiry_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        rp_rollouts_expire(all[i]);
        arm(w, rp_rollouts_next_expiry(all[i]));
        rp_rollouts_unref(all[i]);
    }
}

void rp_rollout_waits_watch_expiry(rp_rollout_waits *w, rp_rollouts *rollouts)
{
    arm(w, rp_rollouts_next_expiry(rollouts));
}

void rp_rollout_waits_init(rp_rollout_waits *w, rp_loop *loop, rp_store *store)
{
    *w = (rp_rollout_waits){.loop = loop, .store = store};
    w->more.on_due = on_more;
    w->expiry.on_due = on_expiry;
    w->expiry_ns = INT64_MAX;
    w->changed.run = on_changed;
    atomic_init(&w->is_posted, false);
    atomic_init(&w->count, 0);
}

void rp_rollout_waits_deinit(rp_rollout_waits *w)
{
    if (w->loop == NULL) return;
    assert(w->first == NULL && w->last == NULL);
    rp_loop_disarm(w->loop, &w->more);
    rp_loop_disarm(w->loop, &w->expiry);
}

void rp_rollout_waits_add(rp_rollout_waits *w, rp_rollout_wait *wait)
{
    assert(!wait->is_waiting && wait->retry != NULL);
    wait->is_waiting = true;
    wait->prev = w->last;
    wait->next = NULL;
    *(w->last != NULL ? &w->last->next : &w->first) = wait;
    w->last = wait;
    (void)atomic_fetch_add_explicit(&w->count, 1, memory_order_seq_cst);
}

void rp_rollout_waits_remove(rp_rollout_waits *w, rp_rollout_wait *wait)
{
    if (!wait->is_waiting) return;
    assert(wait->prev != NULL ? wait->prev->next == wait : w->first == wait); /* W1 */
    if (w->next_try == wait) w->next_try = wait->next;                        /* W2 */
    *(wait->prev != NULL ? &wait->prev->next : &w->first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &w->last) = wait->prev;
    wait->is_waiting = false;
    (void)atomic_fetch_sub_explicit(&w->count, 1, memory_order_seq_cst);
}
