/* SPDX-License-Identifier: Apache-2.0 */
/* Cancellation tokens (reprise/wait.h), as a waiting call uses them: the call adds a link to a
 * token, the token calls on_fire of the link when it is fired, and the call removes the link at
 * the end of its wait. */
#ifndef RP_UTIL_CANCEL_H
#define RP_UTIL_CANCEL_H

#include "reprise/wait.h"

/* Embedded in the waiting object, which sets on_fire. */
typedef struct rp_cancel_link rp_cancel_link;
struct rp_cancel_link {
    /* Called with the token's lock held (rank 50). It may take locks of a higher rank, mark the
     * wait as cancelled and wake the waiting thread. It must do nothing else. */
    void (*on_fire)(rp_cancel_link *link);
    /* private */
    rp_cancel_link *prev, *next;
};

/* Adds `link` to the token; calls on_fire at once if the token has been fired before. `cancel`
 * may be NULL in both calls. */
void rp_cancel_join(rp_cancel *cancel, rp_cancel_link *link);
/* Removes `link` from the token. When this returns, on_fire is not running and will not be
 * called again. */
void rp_cancel_part(rp_cancel *cancel, rp_cancel_link *link);

#endif
