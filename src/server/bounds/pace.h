/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how long a condition has held, and whether a peer sends or reads bytes fast enough.
 * The functions read no clock: the caller passes the current time. A stored time of 0 means
 * that the time is not set. */
#ifndef RP_SERVER_BOUNDS_PACE_H
#define RP_SERVER_BOUNDS_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns for how long a condition has held. `is_so` says whether the condition holds now.
 * `*since_ns` stores the time of the first call since which it has held at every call. If the
 * condition does not hold, returns 0 and sets `*since_ns` to 0. */
static inline int64_t rp_lasts_ns(bool is_so, int64_t *since_ns, int64_t now_ns)
{
    if (!is_so) *since_ns = 0;
    if (is_so && *since_ns == 0) *since_ns = now_ns;
    return is_so ? now_ns - *since_ns : 0;
}

/* The state of a test whether a peer moves (sends or reads) its bytes fast enough. The test
 * matters while other connections wait for the room that these bytes take. The peer must move
 * all of its bytes within the grace period. So in each window of time it must move at least
 * bytes * window / grace. Here `bytes` is the lesser of two numbers: the bytes that it still
 * had to move at the beginning of the window, and those at the end. Zero-initialise it. */
typedef struct rp_pace {
    int64_t since_ns; /* beginning of the window; 0: no window has begun */
    uint64_t moved;   /* `moved` at the beginning of the window */
    size_t bytes;     /* `bytes` at the beginning of the window */
} rp_pace;

/* Returns true if the window is over and the peer has moved too few bytes in it. If the peer
 * has moved enough, starts the next window. `matters` says whether other connections wait for
 * room. If `matters` is false, the window ends and nothing is measured. `moved` is the number
 * of bytes that the peer has moved so far, `bytes` the number that it must still move. */
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
