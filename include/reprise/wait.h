/* SPDX-License-Identifier: Apache-2.0 */
/* The clock, deadlines and cancellation of calls that wait. */
#ifndef REPRISE_WAIT_H
#define REPRISE_WAIT_H

#include "reprise/status.h"

RP_BEGIN_DECLS

/* Returns the time of the monotonic clock in nanoseconds. Deadlines are times of this clock. */
RP_API int64_t rp_now_ns(void);

/* A cancellation token. Any number of waiting calls can share a token. */
typedef struct rp_cancel rp_cancel;

/* Makes a token. Returns owned; the caller must not free the token while a call uses it.
 * Errors: RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_cancel_new(rp_cancel **out);
RP_API void rp_cancel_free(rp_cancel *cancel); /* NULL is fine */

/* Fires the token: every present and later wait that uses this token ends with RP_CANCELLED.
 * Safe from any thread, but not from a signal handler. */
RP_API void rp_cancel_fire(rp_cancel *cancel);

enum { RP_NOW = 0 };
#define RP_FOREVER INT64_MAX

/* How long a call is allowed to wait: until the monotonic time `until_ns`, or until `cancel` is
 * fired. With RP_NOW as `until_ns` the call does not wait; with RP_FOREVER it has no deadline.
 * `cancel` may be NULL. */
typedef struct rp_wait {
    int64_t until_ns;
    rp_cancel *cancel;
} rp_wait;

static inline rp_wait rp_wait_forever(void)
{
    rp_wait wait = {RP_FOREVER, NULL};
    return wait;
}
static inline rp_wait rp_wait_none(void)
{
    rp_wait wait = {RP_NOW, NULL};
    return wait;
}
/* Returns a wait that ends `ms` milliseconds from now. If `ms` <= 0, the wait is RP_NOW. */
static inline rp_wait rp_wait_ms(int64_t ms)
{
    rp_wait wait = {RP_FOREVER, NULL};
    int64_t now_ns = rp_now_ns();
    if (ms <= 0)
        wait.until_ns = RP_NOW;
    else if (ms < (RP_FOREVER - now_ns) / 1000000)
        wait.until_ns = now_ns + ms * 1000000;
    return wait;
}

RP_END_DECLS

#endif
