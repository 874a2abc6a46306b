/* SPDX-License-Identifier: Apache-2.0 */
/* The barrier: see barrier.h.
 *
 * The last thread to arrive clears `arrived` and begins the next generation; the others wait
 * for that. Invariants:
 *   B1  arrived < count, except within the call of the last thread;
 *   B2  no thread arrives for generation g + 1 before `arrived` was cleared: it saw g end
 * first.
 *
 * Memory order. Arrivals are acquire-release on `arrived`, so the last thread has seen what the
 * others wrote; they see it, and what the others wrote, by reading the new generation
 * (acquire). No wakeup is lost: a thread increments `sleepers` before the kernel compares the
 * generation, the last thread increments the generation before it reads `sleepers`, and all
 * four are sequentially consistent. Fences would do as well, but ThreadSanitizer does not know
 * them. */
#include "pal/barrier.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reprise/wait.h"

enum {
    MOST_SPIN_NS = 50000, /* about what falling asleep and being woken cost */
    LEAST_SPIN_NS = 500,
    TRIAL = 64, /* one wait in 64 spins for the longest time, to notice that it helps again */
    PAUSES = 8, /* between looks at the clock */
};

void rp_barrier_init(rp_barrier *b, unsigned count)
{
    assert(count >= 1);
    atomic_init(&b->arrived, 0);
    atomic_init(&b->generation, 0);
    atomic_init(&b->sleepers, 0);
    b->count = count;
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool is_over(rp_barrier *b, unsigned generation)
{
    return atomic_load_explicit(&b->generation, memory_order_acquire) != generation;
}

/* Spins until the generation is over: true; or for too long: false. */
static bool spin(rp_barrier *b, unsigned generation, int64_t spin_ns)
{
    int64_t end_ns = rp_now_ns() + spin_ns;

    do {
        for (int i = 0; i < PAUSES; i++) {
            if (is_over(b, generation)) return true;
            pause_briefly();
        }
    } while (rp_now_ns() < end_ns);
    return false;
}

static void sleep_until_over(rp_barrier *b, unsigned generation)
{
    (void)atomic_fetch_add(&b->sleepers, 1);
    while (atomic_load(&b->generation) == generation)
        (void)syscall(SYS_futex, &b->generation, FUTEX_WAIT_PRIVATE, generation, NULL);
    (void)atomic_fetch_sub(&b->sleepers, 1);
}

static void wait_until_over(rp_barrier *b, rp_barrier_waiter *w, unsigned generation)
{
    int64_t spin_ns = w->waits++ % TRIAL == 0 ? MOST_SPIN_NS : w->spin_ns;

    if (spin(b, generation, spin_ns)) {
        w->spin_ns =
            w->spin_ns < MOST_SPIN_NS / 2 ? 2 * w->spin_ns + LEAST_SPIN_NS : MOST_SPIN_NS;
        return;
    }
    w->spin_ns = w->spin_ns > 2 * LEAST_SPIN_NS ? w->spin_ns / 2 : LEAST_SPIN_NS;
    sleep_until_over(b, generation);
}

void rp_barrier_meet(rp_barrier *b, rp_barrier_waiter *w)
{
    /* Only the last thread to arrive changes it, and this one has not arrived. */
    unsigned generation = atomic_load_explicit(&b->generation, memory_order_relaxed);
    unsigned before = atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel);

    assert(before < b->count); /* B1 */
    if (before + 1 < b->count) {
        wait_until_over(b, w, generation);
        return;
    }
    atomic_store_explicit(&b->arrived, 0, memory_order_relaxed); /* B2 */
    (void)atomic_fetch_add(&b->generation, 1);
    if (atomic_load(&b->sleepers) > 0)
        (void)syscall(SYS_futex, &b->generation, FUTEX_WAKE_PRIVATE, INT_MAX);
}
