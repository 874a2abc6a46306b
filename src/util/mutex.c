/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that finds the mutex held spins for some microseconds, with exponential backoff,
 * before it sleeps: table locks are held for microseconds, which is less than sleeping and
 * waking cost.
 *
 * Invariants of the ranks that a thread holds (debug builds):
 *   M1  held_ranks ascends strictly;
 *   M2  held_times[i] >= 1 for i < held_count. */
#include "util/mutex.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SPIN_ROUNDS = 96, MAX_PAUSES = 32 };

#ifndef NDEBUG
enum { MAX_HELD = 8 };
static _Thread_local int held_ranks[MAX_HELD];
static _Thread_local int held_times[MAX_HELD]; /* mutexes of that rank */
static _Thread_local int held_count;

bool rp_mutex_is_held(const rp_mutex *m)
{
    for (int i = 0; i < held_count; i++)
        if (held_ranks[i] == m->rank) return true;
    return false;
}

static void note_lock(int rank)
{
    if (held_count > 0 && held_ranks[held_count - 1] >= rank) {
        (void)fprintf(stderr, "lock order: rank %d taken while rank %d is held\n", rank,
                      held_ranks[held_count - 1]);
        abort();
    }
    if (held_count == MAX_HELD) abort();
    assert(held_count >= 0 && held_count < MAX_HELD);
    held_ranks[held_count] = rank;
    held_times[held_count++] = 1;
}

static void note_lock_beside(int rank)
{
    if (held_count == 0 || held_ranks[held_count - 1] != rank) {
        (void)fprintf(stderr, "lock order: rank %d taken beside rank %d\n", rank,
                      held_count == 0 ? 0 : held_ranks[held_count - 1]);
        abort();
    }
    held_times[held_count - 1]++;
}

static void note_unlock(int rank)
{
    int i = held_count - 1;
    while (i >= 0 && held_ranks[i] != rank) i--;
    if (i < 0) abort(); /* not held */
    assert(held_times[i] > 0);
    if (--held_times[i] > 0) return;
    held_count--;
    for (; i < held_count; i++) {
        held_ranks[i] = held_ranks[i + 1];
        held_times[i] = held_times[i + 1];
    }
}
#else
static void note_lock(int rank)
{
    (void)rank;
}
static void note_lock_beside(int rank)
{
    (void)rank;
}
static void note_unlock(int rank)
{
    (void)rank;
}
#endif

void rp_mutex_init(rp_mutex *m, int rank)
{
    assert(rank > 0);
    (void)pthread_mutex_init(&m->mu, NULL);
    m->rank = rank;
}

void rp_mutex_deinit(rp_mutex *m)
{
    (void)pthread_mutex_destroy(&m->mu);
}

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Returns true if it acquired the mutex within some microseconds. */
static bool spin(pthread_mutex_t *mu)
{
    for (int round = 0, pauses = 1; round < SPIN_ROUNDS; round++) {
        for (int i = 0; i < pauses; i++) pause_briefly();
        if (pthread_mutex_trylock(mu) == 0) return true;
        if (pauses < MAX_PAUSES) pauses *= 2;
    }
    return false;
}

static void take(rp_mutex *m)
{
    if (pthread_mutex_trylock(&m->mu) == 0 || spin(&m->mu)) return;
    (void)pthread_mutex_lock(&m->mu);
}

void rp_mutex_lock(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    note_lock(m->rank);
    take(m);
}

void rp_mutex_lock_beside(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    note_lock_beside(m->rank);
    take(m);
}

bool rp_mutex_try_lock_beside(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (pthread_mutex_trylock(&m->mu) != 0 && !spin(&m->mu)) return false;
    note_lock_beside(m->rank);
    return true;
}

bool rp_mutex_try_lock(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    if (pthread_mutex_trylock(&m->mu) != 0) return false;
    note_lock(m->rank);
    return true;
}

void rp_mutex_unlock(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    note_unlock(m->rank);
    (void)pthread_mutex_unlock(&m->mu);
}

/* Pauses long enough for a spinning thread to try again. */
void rp_mutex_unlock_and_pause(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_mutex_unlock(m);
    for (int i = 0; i < 2 * MAX_PAUSES; i++) pause_briefly();
}

void rp_cond_init(rp_cond *c)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->cv, &attr);
    (void)pthread_condattr_destroy(&attr);
}

void rp_cond_deinit(rp_cond *c)
{
    (void)pthread_cond_destroy(&c->cv);
}

void rp_cond_signal(rp_cond *c)
{
    (void)pthread_cond_signal(&c->cv);
}

void rp_cond_broadcast(rp_cond *c)
{
    (void)pthread_cond_broadcast(&c->cv);
}

bool rp_cond_wait(rp_cond *c, rp_mutex *m, int64_t until_ns)
{
    struct timespec until;

    assert(rp_mutex_is_held(m));
    if (until_ns == INT64_MAX) {
        (void)pthread_cond_wait(&c->cv, &m->mu);
        return true;
    }
    if (until_ns < 0) until_ns = 0;
    until.tv_sec = (time_t)(until_ns / 1000000000);
    until.tv_nsec = (long)(until_ns % 1000000000);
    return pthread_cond_timedwait(&c->cv, &m->mu, &until) != ETIMEDOUT;
}
