/* SPDX-License-Identifier: Apache-2.0 */
/* The internal interface of cancellation tokens (reprise/wait.h), for functions that wait. A
 * function that waits adds a link to the caller's token. When the token is fired, it calls
 * on_fire of the link. The function removes the link at the end of its wait. */
#ifndef RP_UTIL_CANCEL_H
#define RP_UTIL_CANCEL_H

#include "reprise/wait.h"

/* A link. A waiting function embeds it in a struct of its own and sets on_fire. */
typedef struct rp_cancel_link rp_cancel_link;
struct rp_cancel_link {
    /* Called with the token's lock held (rank 50, util/mutex.h). on_fire may acquire locks of a
     * higher rank, mark the wait as cancelled and wake the waiting thread. It must do nothing
     * else. */
    void (*on_fire)(rp_cancel_link *link);
    /* private */
    rp_cancel_link *prev, *next;
};

/* Adds `link` to the token. Calls on_fire at once if the token was fired already. If `cancel`
 * is NULL, this function and the next do nothing. */
void rp_cancel_join(rp_cancel *cancel, rp_cancel_link *link);
/* Removes `link` from the token. When this returns, on_fire is not running and will not be
 * called again. */
void rp_cancel_part(rp_cancel *cancel, rp_cancel_link *link);

#endif
