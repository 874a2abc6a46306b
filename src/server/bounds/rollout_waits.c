/* SPDX-License-Identifier: Apache-2.0 */
#include "server/bounds/rollout_waits.h"

#include <assert.h>

#include "rollouts/rollout_set.h"
#include "util/clock.h"

/* The timer follows the wall clock, which may be set: it looks once a minute at least. */
static const int64_t longest_ns = INT64_C(60) * 1000000000, shortest_ns = 1000000;

size_t rp_rollout_waits_expire(rp_rollout_waits *w, rp_rollouts *rollouts)
{
    size_t work = rp_rollouts_expire(rollouts, rp_wall_ns(NULL)) * RP_ROLLOUT_GROUP_WORK;

    if (w->add_work != NULL && work > 0) w->add_work(w, work);
    return work;
}

/* The list of the calls that wait for these rollouts. */
static size_t list_of(const rp_rollouts *rollouts)
{
    return (size_t)(((uint64_t)(uintptr_t)rollouts * UINT64_C(0x9e3779b97f4a7c15)) >> 58);
}

/* Goes to the next list whose calls have to be tried, round robin. False: there is none. */
static bool next_list(rp_rollout_waits *w)
{
    while (w->pending != 0 && w->next_try == NULL) {
        w->at = (w->at + 1) % RP_ROLLOUT_LISTS;
        if ((w->pending >> w->at & 1) == 0) continue;
        w->pending &= ~(UINT64_C(1) << w->at);
        w->next_try = w->lists[w->at].first;
    }
    return w->next_try != NULL;
}

static void try_some(rp_rollout_waits *w)
{
    size_t work = 0;

    while (next_list(w)) {
        rp_rollout_wait *wait = w->next_try;

        if (work >= RP_ROLLOUT_RETRY_WORK) {
            (void)!rp_loop_arm(w->loop, &w->more, rp_loop_now(w->loop)); /* W3 */
            return;
        }
        w->next_try = wait->next; /* W2 */
        work += wait->retry(wait);
    }
}

static void on_more(rp_timer *timer)
{
    try_some((rp_rollout_waits *)((char *)timer - offsetof(rp_rollout_waits, more)));
}

static void on_wake(rp_post *post)
{
    rp_rollout_waits *w = (rp_rollout_waits *)((char *)post - offsetof(rp_rollout_waits, wake));

    /* Cleared first: a change from here on is another post. */
    w->pending |= atomic_exchange_explicit(&w->changed, 0, memory_order_seq_cst);
    if (w->more.place == 0) try_some(w);
}

void rp_rollout_waits_wake(rp_rollout_waits *w, const rp_rollouts *rollouts)
{
    uint64_t lists = rollouts != NULL ? UINT64_C(1) << list_of(rollouts) : UINT64_MAX;

    if (atomic_load_explicit(&w->count, memory_order_seq_cst) > 0 &&
        atomic_fetch_or_explicit(&w->changed, lists, memory_order_seq_cst) == 0)
        rp_loop_post(w->loop, &w->wake);
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
    size_t count = rp_rollout_set_list(rp_store_rollouts(w->store), all), work = 0;

    w->expiry_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t at = (w->next_expiry + i) % count; /* those that were not reached go first */

        if (work < RP_ROLLOUT_RETRY_WORK) {
            work += rp_rollout_waits_expire(w, all[at]);
            if (work >= RP_ROLLOUT_RETRY_WORK) w->next_expiry = at + 1;
        }
        arm(w, rp_rollouts_next_expiry(all[at])); /* soon, if more is over */
    }
    for (size_t i = 0; i < count; i++) rp_rollouts_unref(all[i]);
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
    w->wake.run = on_wake;
    atomic_init(&w->changed, 0);
    atomic_init(&w->count, 0);
}

void rp_rollout_waits_deinit(rp_rollout_waits *w)
{
    if (w->loop == NULL) return;
    assert(atomic_load(&w->count) == 0);
    rp_loop_disarm(w->loop, &w->more);
    rp_loop_disarm(w->loop, &w->expiry);
}

void rp_rollout_waits_add(rp_rollout_waits *w, rp_rollout_wait *wait)
{
    size_t list = list_of(wait->rollouts);

    assert(!wait->is_waiting && wait->retry != NULL);
    wait->is_waiting = true;
    wait->prev = w->lists[list].last;
    wait->next = NULL;
    *(wait->prev != NULL ? &wait->prev->next : &w->lists[list].first) = wait;
    w->lists[list].last = wait;
    (void)atomic_fetch_add_explicit(&w->count, 1, memory_order_seq_cst);
}

void rp_rollout_waits_remove(rp_rollout_waits *w, rp_rollout_wait *wait)
{
    size_t list = list_of(wait->rollouts);

    if (!wait->is_waiting) return;
    assert(wait->prev != NULL ? wait->prev->next == wait
                              : w->lists[list].first == wait); /* W1 */
    if (w->next_try == wait) w->next_try = wait->next;         /* W2 */
    *(wait->prev != NULL ? &wait->prev->next : &w->lists[list].first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &w->lists[list].last) = wait->prev;
    wait->is_waiting = false;
    (void)atomic_fetch_sub_explicit(&w->count, 1, memory_order_seq_cst);
}
