/* SPDX-License-Identifier: Apache-2.0 */
/* The adaptive kind of glibc's mutex spins briefly before it sleeps: table locks are held for
 * microseconds, and a sleep costs more than that. Where it does not exist, the default kind. */
#include "util/mutex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifndef NDEBUG
enum { MAX_HELD = 8 };
static _Thread_local int held_ranks[MAX_HELD];
static _Thread_local int held_count;

static void note_lock(int rank)
{
    if (held_count > 0 && held_ranks[held_count - 1] >= rank) {
        (void)fprintf(stderr, "lock order: rank %d taken while rank %d is held\n", rank,
                      held_ranks[held_count - 1]);
        abort();
    }
    if (held_count == MAX_HELD) abort();
    held_ranks[held_count++] = rank;
}

static void note_unlock(int rank)
{
    int i = held_count - 1;
    while (i >= 0 && held_ranks[i] != rank) i--;
    if (i < 0) abort(); /* not held */
    held_count--;
    for (; i < held_count; i++) held_ranks[i] = held_ranks[i + 1];
}
#else
static void note_lock(int rank)
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
    pthread_mutexattr_t attr;

    (void)pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP
    (void)pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
    (void)pthread_mutex_init(&m->mu, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    m->rank = rank;
}

void rp_mutex_deinit(rp_mutex *m)
{
    (void)pthread_mutex_destroy(&m->mu);
}

void rp_mutex_lock(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    note_lock(m->rank);
    (void)pthread_mutex_lock(&m->mu);
}

void rp_mutex_unlock(rp_mutex *m) RP_NO_THREAD_SAFETY_ANALYSIS
{
    note_unlock(m->rank);
    (void)pthread_mutex_unlock(&m->mu);
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

bool rp_cond_wait(rp_cond *c, rp_mutex *m, int64_t until_ns)
{
    struct timespec until;

    if (until_ns == INT64_MAX) {
        (void)pthread_cond_wait(&c->cv, &m->mu);
        return true;
    }
    if (until_ns < 0) until_ns = 0;
    until.tv_sec = (time_t)(until_ns / 1000000000);
    until.tv_nsec = (long)(until_ns % 1000000000);
    return pthread_cond_timedwait(&c->cv, &m->mu, &until) != ETIMEDOUT;
}
