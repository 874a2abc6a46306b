/* SPDX-License-Identifier: Apache-2.0 */
/* A mutex with a rank, and a condition variable (docs/threading.md has the table of ranks).
 *
 * A thread acquires mutexes in ascending order of rank. Debug builds record the ranks that a
 * thread holds and abort on the first violation, naming both ranks. */
#ifndef RP_UTIL_MUTEX_H
#define RP_UTIL_MUTEX_H

#include <pthread.h>

#include "reprise/status.h"
#include "util/thread_safety.h"

enum {
    RP_RANK_LOOP = 3,
    RP_RANK_PUT = 5,
    RP_RANK_SERVER = 10,
    RP_RANK_MEMORY = 11,
    RP_RANK_LISTENERS = 12,
    RP_RANK_LOANS = 13,
    RP_RANK_PAGES = 14,
    RP_RANK_DURABLE = 15,
    RP_RANK_STORE = 20,
    RP_RANK_ROLLOUT_SET = 24,
    RP_RANK_TABLE = 30,
    RP_RANK_ROLLOUTS = 34,
    RP_RANK_ROLLOUT_COMMON = 36,
    RP_RANK_ENTRY = 38,
    RP_RANK_BUDGET = 40,
    RP_RANK_TIER = 42,
    RP_RANK_SEGMENTS = 44,
    RP_RANK_EXTENSION = 45,
    RP_RANK_JOURNAL = 46,
    RP_RANK_CANCEL = 50,
    RP_RANK_WAITER = 60,
    RP_RANK_METRICS = 70,
    RP_RANK_RUNS = 71,
    RP_RANK_CLIENTS = 72,
    RP_RANK_ROLLOUT_WATCH = 74,
    RP_RANK_GATE = 75,
    RP_RANK_LEASE = 77,
    RP_RANK_CLIENT = 78,
    RP_RANK_SHARED_SINK = 79,
    RP_RANK_WRITER = 80,
    RP_RANK_BUFFER = 81,
    RP_RANK_SAMPLER = 82,
    RP_RANK_SHARDS = 83,
    RP_RANK_STREAM = 84,
    RP_RANK_RUNTIME = 85,
    RP_RANK_SHARED = 87,
    RP_RANK_ARENA = 90,
    RP_RANK_SEGMENT_INDEX = 92,
};

typedef struct RP_CAPABILITY("mutex") rp_mutex {
    pthread_mutex_t mu;
    int rank;
} rp_mutex;

typedef struct rp_cond {
    pthread_cond_t cv; /* uses the monotonic clock */
} rp_cond;

/* rp_mutex_init() and rp_cond_init() cannot fail on Linux: glibc's process-private mutexes and
 * condition variables hold no resource. */
void rp_mutex_init(rp_mutex *m, int rank);
void rp_mutex_deinit(rp_mutex *m);
void rp_mutex_lock(rp_mutex *m) RP_ACQUIRE(*m);
/* Acquires the mutex and returns true if no wait is needed, otherwise returns false. It is for
 * callers that can do their work without the mutex. An example is the child of a fork: there a
 * mutex possibly stays held for ever, because the thread that held it exists only in the
 * parent. */
bool rp_mutex_try_lock(rp_mutex *m) RP_TRY_ACQUIRE(true, *m);
/* Acquires a second mutex of the same rank as the mutex that the thread acquired last. Two
 * threads that both hold a mutex of a rank and wait for another of the same rank could
 * deadlock. So the caller must know that no other thread does this at the same time;
 * docs/threading.md explains why the callers know it. rp_mutex_try_lock_beside() spins for some
 * microseconds, and then returns false instead of sleeping. */
void rp_mutex_lock_beside(rp_mutex *m) RP_ACQUIRE(*m);
bool rp_mutex_try_lock_beside(rp_mutex *m) RP_TRY_ACQUIRE(true, *m);
void rp_mutex_unlock(rp_mutex *m) RP_RELEASE(*m);
/* Releases the mutex and pauses for a moment, during which waiting threads can acquire the
 * mutex. It is for a thread that acquires a mutex repeatedly. */
void rp_mutex_unlock_and_pause(rp_mutex *m) RP_RELEASE(*m);
#ifndef NDEBUG
/* For asserts: returns true if this thread holds a mutex with the rank of `m`. */
bool rp_mutex_is_held(const rp_mutex *m);
#endif

void rp_cond_init(rp_cond *c);
void rp_cond_deinit(rp_cond *c);
void rp_cond_signal(rp_cond *c);
/* Wakes all waiting threads. Needed instead of rp_cond_signal() if the threads wait for
 * different conditions. */
void rp_cond_broadcast(rp_cond *c);
/* Waits for a signal until the monotonic time `until_ns` (INT64_MAX: for ever). Returns false
 * if the time passed first. Possibly returns true without a signal. */
bool rp_cond_wait(rp_cond *c, rp_mutex *m, int64_t until_ns) RP_REQUIRES(*m);

#endif
