/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clocks and random seeds. A store uses rp_wall_ns() and rp_system_seed() unless
 * its options have another clock and a seed. */
#ifndef RP_UTIL_CLOCK_H
#define RP_UTIL_CLOCK_H

#include "reprise/wait.h" /* rp_now_ns() */

/* Returns the wall clock in nanoseconds. `ctx` is not used. */
int64_t rp_wall_ns(void *ctx);

/* Returns the processor time of the calling thread in nanoseconds. */
int64_t rp_thread_cpu_ns(void);

/* Returns a random seed from the system, never 0. */
uint64_t rp_system_seed(void);

#endif
