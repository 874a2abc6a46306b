/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. They block all signals, so that signals go to the threads of the
 * program that uses the library. */
#ifndef RP_UTIL_THREAD_H
#define RP_UTIL_THREAD_H

#include <pthread.h>

#include "reprise/status.h"

/* Starts a thread that blocks all signals. Tools such as ps show its `name`, which has at most
 * 15 bytes. The caller must join the thread. Returns false if the system has no resources for a
 * thread. */
bool rp_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);
/* Starts a thread in the same way, but detached: no thread joins it. */
bool rp_thread_detach(const char *name, void *(*run)(void *arg), void *arg);

/* Returns the number of processors that the system permits this process to use, at least 1. */
size_t rp_thread_processors(void);

#endif
