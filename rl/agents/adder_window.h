/* SPDX-License-Identifier: Apache-2.0 */
/* A second copy of the steps that an n-step adder (adder.h) holds, for snapshots. An adder
 * itself cannot be saved, because it is part of a writer. A new adder that receives these steps
 * again is in the same state.
 *
 * A window is one block of bytes, which is one part of an agent's state (agent.h). */
#ifndef RP_AGENTS_ADDER_WINDOW_H
#define RP_AGENTS_ADDER_WINDOW_H

#include "reprise/rl/adder.h"
#include "reprise/rl/agent.h"

typedef struct rp_adder_window rp_adder_window;

typedef struct rp_adder_window_shape {
    size_t copies;            /* parallel environments of the adder */
    size_t rows;              /* steps held for each environment: n - 1 */
    size_t observation_bytes; /* bytes of the observation of one environment */
    size_t action_bytes;      /* bytes of the action of one environment */
} rp_adder_window_shape;

/* Makes a window in which no environment has begun an episode. Returns owned.
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_adder_window_new(const rp_allocator *alloc,
                                           rp_adder_window_shape shape, rp_adder_window **out,
                                           rp_error *err);
void rp_adder_window_free(rp_adder_window *window); /* NULL is fine */

/* The caller must call rp_adder_window_begin() whenever it calls rp_adder_first() for all
 * environments, and rp_adder_window_add() after each successful rp_adder_add(). `before` holds
 * the observations before the step. The fields `extras` and `discounts` of the step must be
 * NULL. */
void rp_adder_window_begin(rp_adder_window *window, const void *observations);
void rp_adder_window_add(rp_adder_window *window, const rp_adder_step *step,
                         const void *before);

/* Returns the window as one part of an agent's state. */
rp_state_part rp_adder_window_state(rp_adder_window *window);

/* Gives the steps to `adder`, which must be new. Creates no items. RP_CORRUPT (the window was
 * restored from bytes that are not a valid window), or a status of the adder. */
RP_NODISCARD rp_status rp_adder_window_restore(rp_adder_window *window, rp_adder *adder,
                                               rp_error *err);

#endif
