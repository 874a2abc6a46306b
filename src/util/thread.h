/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library. They block all signals, so that signals go to the threads of the
 * program that uses the library. */
#ifndef RP_UTIL_THREAD_H
#define RP_UTIL_THREAD_H

#include <pthread.h>

#include "reprise/status.h"

/* Starts a thread that blocks all signals; tools show its `name` (at most 15 bytes). The caller
 * joins it. False if the system has no resources for a thread. */
bool rp_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);
/* Starts a thread in the same way, but detached: no thread joins it. */
bool rp_thread_detach(const char *name, void *(*run)(void *arg), void *arg);

/* The number of processors that this process may use, at least 1. */
size_t rp_thread_processors(void);

#endif
