/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/safety.h"

#include <assert.h>
#include <stddef.h>

#include "util/error.h"

/* States of a worker's post. ARMED: the thread that raises the safe LSN posts it. */
enum { IDLE, ARMED, POSTED };

enum { TURN_ANSWERS = 512 }; /* waits that one turn of a loop completes */

void rp_safety_init(rp_safety *safety)
{
    *safety = (rp_safety){0};
    atomic_init(&safety->safe, UINT64_MAX);
}

bool rp_safety_raise(rp_safety *safety, uint64_t lsn)
{
    uint64_t before = atomic_load(&safety->safe);

    while (before < lsn)
        if (atomic_compare_exchange_weak(&safety->safe, &before, lsn)) return true;
    return false;
}

rp_status rp_safety_listen(rp_safety *safety, rp_durable *durable, rp_safe_listener *on_safe,
                           void *ctx, rp_error *err)
{
    rp_status st;

    safety->durable = durable;
    if (rp_durable_safe(durable) == UINT64_MAX) return RP_OK; /* there is no journal */
    atomic_store(&safety->safe, 0);
    st = rp_durable_listen(durable, on_safe, ctx);
    if (st != RP_OK) {
        rp_safety_init(safety);
        return rp_fail(err, st, "no room for one more listener of the journal");
    }
    safety->is_listening = true;
    /* This LSN may have become safe before the listener was added. */
    (void)rp_safety_raise(safety, rp_durable_safe(durable));
    return RP_OK;
}

void rp_safety_unlisten(rp_safety *safety, rp_safe_listener *on_safe, void *ctx)
{
    if (safety->is_listening) rp_durable_unlisten(safety->durable, on_safe, ctx);
    safety->is_listening = false;
}

void rp_safety_why_behind(rp_safety *safety, rp_error *out)
{
    rp_durable_info info;

    rp_durable_get_info(safety->durable, &info);
    (void)rp_fail(
        out, RP_UNAVAILABLE,
        "the journal is behind: %llu bytes wait to be written, the bound is %llu; the "
        "disk does not keep up, or cannot be written. Nothing was changed",
        (unsigned long long)info.backlog_bytes, (unsigned long long)info.max_backlog_bytes);
}

/* All atomics of `state` and `safe` are sequentially consistent: the journal raises the LSN and
 * then reads the state, a worker sets the state and then reads the LSN. So at least one of the
 * two sees the change of the other (S3). */
void rp_safe_waits_wake(rp_safe_waits *waits)
{
    int armed = ARMED;

    if (atomic_compare_exchange_strong(&waits->state, &armed, POSTED))
        rp_loop_post(waits->loop, &waits->post);
}

static void arm(rp_safe_waits *waits)
{
    int idle = IDLE;

    assert(waits->first != NULL);
    if (!atomic_compare_exchange_strong(&waits->state, &idle, ARMED)) return;
    if (waits->first->lsn <= atomic_load(&waits->safety->safe)) rp_safe_waits_wake(waits);
}

static void on_posted(rp_post *post)
{
    rp_safe_waits *waits = (rp_safe_waits *)((char *)post - offsetof(rp_safe_waits, post));
    uint64_t safe;

    assert(atomic_load(&waits->state) == POSTED); /* S2 */
    atomic_store(&waits->state, IDLE);
    safe = atomic_load(&waits->safety->safe);
    for (size_t n = 0; n < TURN_ANSWERS && waits->first != NULL && waits->first->lsn <= safe;
         n++) {
        rp_safe_wait *wait = waits->first;
        rp_safe_wait_end(waits, wait);
        wait->on_safe(wait);
    }
    if (waits->first != NULL) arm(waits); /* posts again if the next wait is safe already */
}

void rp_safe_waits_init(rp_safe_waits *waits, rp_safety *safety, rp_loop *loop)
{
    *waits = (rp_safe_waits){.safety = safety, .loop = loop};
    waits->post.run = on_posted;
    atomic_init(&waits->state, IDLE);
}

void rp_safe_wait_begin(rp_safe_waits *waits, rp_safe_wait *wait, uint64_t lsn)
{
    rp_safe_wait *after;

    if (wait->lsn >= lsn) return;
    rp_safe_wait_end(waits, wait);
    after = waits->last; /* LSNs mostly arrive in ascending order */
    while (after != NULL && after->lsn > lsn) after = after->prev;
    wait->lsn = lsn;
    wait->prev = after;
    wait->next = after != NULL ? after->next : waits->first;
    *(wait->prev != NULL ? &wait->prev->next : &waits->first) = wait;
    *(wait->next != NULL ? &wait->next->prev : &waits->last) = wait;
    assert(wait->prev == NULL || wait->prev->lsn <= lsn); /* S1 */
    assert(wait->next == NULL || wait->next->lsn > lsn);
    arm(waits);
}

void rp_safe_wait_end(rp_safe_waits *waits, rp_safe_wait *wait)
{
    if (wait->lsn == 0) return;
    assert(wait->prev != NULL ? wait->prev->next == wait : waits->first == wait);
    assert(wait->next != NULL ? wait->next->prev == wait : waits->last == wait);
    *(wait->prev != NULL ? &wait->prev->next : &waits->first) = wait->next;
    *(wait->next != NULL ? &wait->next->prev : &waits->last) = wait->prev;
    wait->prev = wait->next = NULL;
    wait->lsn = 0;
}
