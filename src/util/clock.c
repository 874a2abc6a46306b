/* SPDX-License-Identifier: Apache-2.0 */
#include "util/clock.h"

#include <sys/random.h>
#include <time.h>

#include "util/rng.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t rp_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t rp_wall_ns(void *ctx)
{
    (void)ctx;
    return read_clock(CLOCK_REALTIME);
}

int64_t rp_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t rp_system_seed(void)
{
    uint64_t seed = 0;

    while (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed || seed == 0) {
        /* getrandom() was interrupted, is missing, or returned 0, which means "no seed": derive
         * the seed from the clocks. */
        uint64_t state = (uint64_t)rp_now_ns() ^ (uint64_t)rp_wall_ns(NULL) << 20;
        seed = rp_splitmix64(&state);
        if (seed != 0) break;
    }
    return seed;
}
