/* SPDX-License-Identifier: Apache-2.0 */
/* How long something lasts, and whether it goes on fast enough. Plain values; time comes in as
 * an argument, and 0 is no time. */
#ifndef RP_SERVER_BOUNDS_PACE_H
#define RP_SERVER_BOUNDS_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* For how long something has been so, which began at `*since_ns`; 0 and begun anew if it is
 * not. */
static inline int64_t rp_lasts_ns(bool is_so, int64_t *since_ns, int64_t now_ns)
{
    if (!is_so) *since_ns = 0;
    if (is_so && *since_ns == 0) *since_ns = now_ns;
    return is_so ? now_ns - *since_ns : 0;
}

/* Bytes that a peer has to move while others wait for their room. In each window as many have
 * to move as it takes to move all within the grace: so a peer moves as much as it keeps from
 * others once in each grace. Zero is the beginning. */
typedef struct rp_pace {
    int64_t since_ns; /* the beginning of the window */
    uint64_t moved;   /* what had moved then */
    size_t bytes;     /* and what there was to move */
} rp_pace;

/* Looks at it, while it matters. `moved` is what has moved so far, `bytes` what there is to
 * move now. True if less has moved in a window than should have. */
static inline bool rp_pace_is_behind(rp_pace *pace, bool matters, uint64_t moved, size_t bytes,
                                     int64_t window_ns, int64_t grace_ns, int64_t now_ns)
{
    int64_t elapsed_ns = rp_lasts_ns(matters, &pace->since_ns, now_ns);

    if (elapsed_ns > 0 && elapsed_ns < window_ns) return false;
    if (elapsed_ns > 0) {
        size_t least = bytes < pace->bytes ? bytes : pace->bytes;
        if ((double)(moved - pace->moved) * (double)grace_ns <
            (double)least * (double)elapsed_ns)
            return true;
        pace->since_ns = now_ns;
    }
    pace->moved = moved;
    pace->bytes = bytes;
    return false;
}

#endif
