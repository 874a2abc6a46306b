/* SPDX-License-Identifier: Apache-2.0 */
/* One atomic bit per descriptor, so that a fork needs no lock and never sees a partial update.
 * Descriptors beyond the last bit are ignored. */
#include "util/fork_fds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

enum { WORDS = 1024, BITS = 64 };

static atomic_uint_fast64_t words[WORDS];

static void close_all(void)
{
    for (int i = 0; i < WORDS; i++) {
        uint64_t bits = atomic_exchange_explicit(&words[i], 0, memory_order_relaxed);

        for (; bits != 0; bits &= bits - 1) (void)close(i * BITS + __builtin_ctzll(bits));
    }
}

static void start(void)
{
    (void)pthread_atfork(NULL, NULL, close_all);
}

void rp_fork_fds_add(int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, start);
    /* Relaxed: a fork sees the bits that its own thread sees. A descriptor that another thread
     * opens during the fork may be missed with any memory order. */
    if (fd >= 0 && fd < WORDS * BITS)
        atomic_fetch_or_explicit(&words[fd / BITS], (uint64_t)1 << fd % BITS,
                                 memory_order_relaxed);
}

void rp_fork_fds_remove(int fd)
{
    if (fd >= 0 && fd < WORDS * BITS)
        atomic_fetch_and_explicit(&words[fd / BITS], ~((uint64_t)1 << fd % BITS),
                                  memory_order_relaxed);
}
