/* SPDX-License-Identifier: Apache-2.0 */
/* Delays responses until the changes that they confirm are safe.
 *
 * With a journal, each change has a log sequence number (LSN). A change is safe once the
 * journal has written it, or synced it, depending on the journal's mode. A task that has made a
 * change waits for the change's LSN in a list of its worker. When LSNs become safe, the
 * journal's thread posts to the event loops of the workers whose list is not empty. A turn
 * (iteration) of a worker's loop completes at most 512 waits. Without a journal every LSN is
 * safe, and the check costs one comparison for each response.
 *
 * Invariants:
 *   S1  the list of a worker is in ascending order of LSNs, and only the worker's thread uses
 *       it;
 *   S2  the post is in the loop's queue only while `state` is POSTED;
 *   S3  while the list is not empty, `state` is ARMED or POSTED, so each wait is completed. */
#ifndef RP_SERVER_CORE_SAFETY_H
#define RP_SERVER_CORE_SAFETY_H

#include <stdatomic.h>

#include "durable/async.h"
#include "net/loop.h"
#include "reprise/durable.h"

/* The journal of a server, and the LSN up to which the journal's records are safe. */
typedef struct rp_safety {
    rp_durable *durable;       /* borrowed; NULL: the server has no journal */
    atomic_uint_fast64_t safe; /* all LSNs up to this one are safe; UINT64_MAX without a
                                  journal */
    bool is_listening;
} rp_safety;

/* A wait for an LSN. Embed it in another struct and zero-initialise it. */
typedef struct rp_safe_wait rp_safe_wait;
struct rp_safe_wait {
    rp_safe_wait *prev, *next;
    uint64_t lsn;                        /* the LSN waited for; 0: not waiting */
    void (*on_safe)(rp_safe_wait *wait); /* called when the LSN is safe */
};

/* The waits of a worker. */
typedef struct rp_safe_waits {
    rp_safety *safety;
    rp_loop *loop;
    rp_safe_wait *first, *last;
    rp_post post;
    atomic_int state; /* IDLE, ARMED (the journal's thread will post `post`) or POSTED */
} rp_safe_waits;

static inline uint64_t rp_safe_now(rp_safety *safety)
{
    /* Acquire: pairs with rp_safety_raise() on the journal's thread. */
    return atomic_load_explicit(&safety->safe, memory_order_acquire);
}

/* Initializes `safety` for a server without a journal: every LSN is safe. */
void rp_safety_init(rp_safety *safety);

/* Makes the journal of `durable` call `on_safe` with `ctx` when LSNs become safe. Both pointers
 * are borrowed. Errors: RP_NO_RESOURCE (too many listeners). */
RP_NODISCARD rp_status rp_safety_listen(rp_safety *safety, rp_durable *durable,
                                        rp_safe_listener *on_safe, void *ctx, rp_error *err);
void rp_safety_unlisten(rp_safety *safety, rp_safe_listener *on_safe, void *ctx);

/* Sets `*out` to the error RP_UNAVAILABLE for a change that cannot be made because the
 * journal's backlog, the records that are not yet written, is at its bound. There must be a
 * journal. */
void rp_safety_why_behind(rp_safety *safety, rp_error *out);

/* Raises the safe LSN to `lsn`. Returns false if `lsn` is not higher. Called on the journal's
 * thread. */
bool rp_safety_raise(rp_safety *safety, uint64_t lsn);

void rp_safe_waits_init(rp_safe_waits *waits, rp_safety *safety, rp_loop *loop);
/* Posts to the loop if `state` is ARMED. Must be called after rp_safety_raise(). Any thread may
 * call it. */
void rp_safe_waits_wake(rp_safe_waits *waits);

/* Begins to wait for an LSN. wait->on_safe is called in a later turn, even if the LSN is safe
 * already. If `wait` is waiting for another LSN, it waits from then on for the higher of the
 * two. */
void rp_safe_wait_begin(rp_safe_waits *waits, rp_safe_wait *wait, uint64_t lsn);
/* Ends the wait, if there is one, without calling on_safe. */
void rp_safe_wait_end(rp_safe_waits *waits, rp_safe_wait *wait);

#endif
