/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that leave only when what they tell of is safe.
 *
 * With a journal a change has a number (LSN), and is safe once the journal says so: written, or
 * on stable storage, as the mode promises. A task that has made a change waits for its number
 * on its worker, in a list in the order of the numbers; the journal's thread posts to workers
 * that have somebody waiting, and no others. A turn of a worker's loop lets 512 of them go on.
 * Without a journal every number is safe, and all of this costs one comparison.
 *
 * Invariants:
 * S1  the list of a worker is in ascending order of numbers, and its worker's alone;
 * S2  the post is in the loop's queue only while `state` is POSTED;
 * S3  a list that is not empty has `state` ARMED or POSTED: nobody is forgotten. */
#ifndef RP_SERVER_CORE_SAFETY_H
#define RP_SERVER_CORE_SAFETY_H

#include <stdatomic.h>

#include "durable/durable.h"
#include "net/loop.h"
#include "reprise/durable.h"

/* What a server knows of the journal. */
typedef struct rp_safety {
    rp_durable *durable;       /* borrowed; NULL: there is none */
    atomic_uint_fast64_t safe; /* numbers up to here are; UINT64_MAX without a journal */
    bool is_listening;
} rp_safety;

/* Somebody who waits. Embed it, zeroed. */
typedef struct rp_safe_wait rp_safe_wait;
struct rp_safe_wait {
    rp_safe_wait *prev, *next;
    uint64_t lsn;                        /* 0: does not wait */
    void (*on_safe)(rp_safe_wait *wait); /* it does not wait any more when this is called */
};

/* Those of a worker who wait. */
typedef struct rp_safe_waits {
    rp_safety *safety;
    rp_loop *loop;
    rp_safe_wait *first, *last;
    rp_post post;
    atomic_int state;
} rp_safe_waits;

static inline uint64_t rp_safe_now(rp_safety *safety)
{
    /* Acquire: who sees that a change is safe sees what the journal did before it said so. */
    return atomic_load_explicit(&safety->safe, memory_order_acquire);
}

/* Everything is safe. */
void rp_safety_init(rp_safety *safety);

/* Has `on_safe` called by the durable's journal from now on; `ctx` and `durable` are borrowed.
 * RP_NO_RESOURCE (too many listeners). */
RP_NODISCARD rp_status rp_safety_listen(rp_safety *safety, rp_durable *durable,
                                        rp_safe_listener *on_safe, void *ctx, rp_error *err);
void rp_safety_unlisten(rp_safety *safety, rp_safe_listener *on_safe, void *ctx);

/* Takes note of a number; false if it is no news. The journal's thread. */
bool rp_safety_raise(rp_safety *safety, uint64_t lsn);

void rp_safe_waits_init(rp_safe_waits *waits, rp_safety *safety, rp_loop *loop);
/* More has become safe: wakes the loop if somebody waits there. Any thread. */
void rp_safe_waits_wake(rp_safe_waits *waits);

/* Begins to wait for a number that is not safe yet, or was not a moment ago: on_safe is called
 * in a later turn. One that waits already waits for the higher of the two. */
void rp_safe_wait_begin(rp_safe_waits *waits, rp_safe_wait *wait, uint64_t lsn);
/* Waits no more; on_safe will not be called. Nothing if it does not wait. */
void rp_safe_wait_end(rp_safe_waits *waits, rp_safe_wait *wait);

#endif
