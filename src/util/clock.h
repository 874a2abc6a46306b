/* SPDX-License-Identifier: Apache-2.0 */
/* The system's clocks and its source of seeds. Only the store, whose options can replace them,
 * and blocking waits ask for these. */
#ifndef RP_UTIL_CLOCK_H
#define RP_UTIL_CLOCK_H

#include "reprise/wait.h" /* rp_now_ns() */

/* The wall clock in nanoseconds; `ctx` is not used. */
int64_t rp_wall_ns(void *ctx);

/* A seed from the system, never 0. */
uint64_t rp_system_seed(void);

#endif
