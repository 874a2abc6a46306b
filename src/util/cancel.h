/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation tokens (reprise/wait.h), for the calls that wait. A call that waits adds a link
 * to a token. When the token is fired, it calls on_fire of the link. The call removes the link
 * at the end of its wait. */
#ifndef RP_UTIL_CANCEL_H
#define RP_UTIL_CANCEL_H

#include "reprise/wait.h"

/* A link. A waiting call embeds it in its own struct and sets on_fire. */
typedef struct rp_cancel_link rp_cancel_link;
struct rp_cancel_link {
    /* Called with the token's lock held (rank 50). It may acquire locks of a higher rank, mark
     * the wait as cancelled and wake the waiting thread, and must do nothing else. */
    void (*on_fire)(rp_cancel_link *link);
    /* private */
    rp_cancel_link *prev, *next;
};

/* Adds `link` to the token. Calls on_fire at once if the token was fired before. In this and
 * the next function, `cancel` may be NULL; the function then does nothing. */
void rp_cancel_join(rp_cancel *cancel, rp_cancel_link *link);
/* Removes `link` from the token. When this returns, on_fire is not running and will not be
 * called again. */
void rp_cancel_part(rp_cancel *cancel, rp_cancel_link *link);

#endif
