/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens that end waits (reprise/wait.h), from the side of who waits: join one with a link, be
 * called when it is fired, part from it. */
#ifndef RP_UTIL_CANCEL_H
#define RP_UTIL_CANCEL_H

#include "reprise/wait.h"

/* Embed it, in whatever waits, and set on_fire. */
typedef struct rp_cancel_link rp_cancel_link;
struct rp_cancel_link {
    /* Called with the token's lock held (rank 50): it may take locks of a higher rank, note
     * that the wait is over and wake who waits, and no more. */
    void (*on_fire)(rp_cancel_link *link);
    /* private */
    rp_cancel_link *prev, *next;
};

/* Joins; calls on_fire at once if the token has been fired already. A NULL token is fine. */
void rp_cancel_join(rp_cancel *cancel, rp_cancel_link *link);
/* Once this returns, on_fire is neither running nor called again. */
void rp_cancel_part(rp_cancel *cancel, rp_cancel_link *link);

#endif
