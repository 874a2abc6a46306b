/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of ours within a program of somebody else's: signals are for its own threads. */
#ifndef RP_UTIL_THREAD_H
#define RP_UTIL_THREAD_H

#include <pthread.h>

#include "reprise/status.h"

/* Starts a thread that blocks all signals; `name` (at most 15 bytes) is what tools show. False:
 * there is none to be had. Join it. */
bool rp_thread_start(pthread_t *thread, const char *name, void *(*run)(void *arg), void *arg);
/* The same, and nobody joins it. */
bool rp_thread_detach(const char *name, void *(*run)(void *arg), void *arg);

/* Processors that this process may use, at least 1. */
size_t rp_thread_processors(void);

#endif
