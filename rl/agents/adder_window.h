/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the steps that an n-step adder (adder.h) needs for its next transitions, so that
 * snapshots can save them. The state of an adder itself cannot be saved, because it depends on
 * a trajectory writer. A new adder to which the kept steps are added again makes the same later
 * transitions as the old adder.
 *
 * The kept steps are called the window. It is one block of bytes, and one part of an agent's
 * state (rp_state_part in agent.h). */
#ifndef RP_AGENTS_ADDER_WINDOW_H
#define RP_AGENTS_ADDER_WINDOW_H

#include "reprise/rl/adder.h"
#include "reprise/rl/agent.h"

typedef struct rp_adder_window rp_adder_window;

typedef struct rp_adder_window_shape {
    size_t copies;            /* number of parallel environments of the adder */
    size_t rows;              /* number of steps kept for each environment: n - 1 */
    size_t observation_bytes; /* bytes of the observation of one environment */
    size_t action_bytes;      /* bytes of the action of one environment */
} rp_adder_window_shape;

/* Makes a window in which no environment has begun an episode. Returns owned.
 * Errors: RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_adder_window_new(const rp_allocator *alloc,
                                           rp_adder_window_shape shape, rp_adder_window **out,
                                           rp_error *err);
void rp_adder_window_free(rp_adder_window *window); /* NULL is fine */

/* The caller must call rp_adder_window_begin() whenever it calls rp_adder_first() for all
 * environments, and rp_adder_window_add() after each successful rp_adder_add(). `before` holds
 * the observations before the step. step->extras and step->discounts must be NULL. */
void rp_adder_window_begin(rp_adder_window *window, const void *observations);
void rp_adder_window_add(rp_adder_window *window, const rp_adder_step *step,
                         const void *before);

/* Returns the window as one part of an agent's state. */
rp_state_part rp_adder_window_state(rp_adder_window *window);

/* Adds the steps of the window to `adder`, which must be new. Creates no items, because the
 * items of these steps exist already. Errors: RP_CORRUPT (the window was restored from bytes
 * that are not a valid window), or a status of the adder. */
RP_NODISCARD rp_status rp_adder_window_restore(rp_adder_window *window, rp_adder *adder,
                                               rp_error *err);

#endif
