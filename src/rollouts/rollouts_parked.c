/* SPDX-License-Identifier: Apache-2.0 */
/* The operations that wait, for those who ask why. */
#include <assert.h>
#include <stdio.h>

#include "rollouts/rollouts_calls.h"
#include "util/error.h"

void rp_rollouts_park(rp_rollouts *r, rp_rollout_parked *parked, const rp_rollout_op *op,
                      int64_t until_ns)
{
    int64_t now_ns = rp_now_ns();

    parked->is_draw = op->kind == RP_ROLLOUT_DRAW;
    parked->groups = parked->is_draw ? op->groups : 1;
    parked->consumer = op->consumer;
    parked->since_ns =
        op->waited_ns > 0 && op->waited_ns < now_ns ? now_ns - op->waited_ns : now_ns;
    parked->until_ns = until_ns;
    parked->next = NULL;
    rp_mutex_lock(&r->mu);
    assert(until_ns != RP_NOW && (r->first_parked == NULL) == (r->last_parked == NULL));
    parked->prev = r->last_parked;
    *(parked->prev != NULL ? &parked->prev->next : &r->first_parked) = parked;
    r->last_parked = parked;
    rp_mutex_unlock(&r->mu);
}

void rp_rollouts_unpark(rp_rollouts *r, rp_rollout_parked *parked)
{
    rp_mutex_lock(&r->mu);
    assert(parked->prev != NULL ? parked->prev->next == parked : r->first_parked == parked);
    assert(parked->next != NULL ? parked->next->prev == parked : r->last_parked == parked);
    *(parked->prev != NULL ? &parked->prev->next : &r->first_parked) = parked->next;
    *(parked->next != NULL ? &parked->next->prev : &r->last_parked) = parked->prev;
    rp_mutex_unlock(&r->mu);
}

rp_status rp_rollouts_why(rp_rollouts *r, const rp_rollout_parked *parked, rp_error *err)
{
    rp_mutex_lock(&r->mu);
    rp_rollout_say_waiting(r, parked->consumer, &parked->waiting, err);
    rp_mutex_unlock(&r->mu);
    return RP_DEADLINE;
}

static void describe(const rp_rollouts *r, const rp_rollout_parked *parked, int64_t now_ns,
                     rp_waiting *out)
{
    rp_error why = {0};

    assert(parked->groups > 0);
    rp_rollout_say_waiting(r, parked->consumer, &parked->waiting, &why);
    *out = (rp_waiting){
        .is_insert = !parked->is_draw,
        .wanted = parked->is_draw ? parked->groups * r->options->group_size : 1,
        .waiting_ns = now_ns > parked->since_ns ? now_ns - parked->since_ns : 0,
        .until_ns = parked->until_ns,
    };
    (void)snprintf(out->why, sizeof out->why, "%s", why.text);
}

size_t rp_rollouts_waiting(rp_rollouts *r, rp_waiting *out, uint64_t *clients, size_t capacity)
{
    int64_t now_ns = rp_now_ns();
    size_t count = 0;

    rp_mutex_lock(&r->mu);
    for (int draws = 0; draws < 2; draws++)
        for (const rp_rollout_parked *p = r->first_parked; p != NULL; p = p->next) {
            if (p->is_draw != (draws == 1)) continue;
            if (count < capacity) {
                describe(r, p, now_ns, &out[count]);
                if (clients != NULL) clients[count] = p->client;
            }
            count++;
        }
    rp_mutex_unlock(&r->mu);
    return count;
}

rp_rollout_sides rp_rollouts_count_waiting(rp_rollouts *r)
{
    rp_rollout_sides load = {0};
    int64_t now_ns = rp_now_ns();

    rp_mutex_lock(&r->mu);
    for (const rp_rollout_parked *p = r->first_parked; p != NULL; p = p->next) {
        int64_t waited_ns = now_ns - p->since_ns;
        int64_t *longest_ns = p->is_draw ? &load.longest_draw_ns : &load.longest_insert_ns;

        ++*(p->is_draw ? &load.draws : &load.inserts);
        if (waited_ns > *longest_ns) *longest_ns = waited_ns;
    }
    rp_mutex_unlock(&r->mu);
    return load;
}
