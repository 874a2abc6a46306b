/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that an n-step adder holds, kept a second time: an adder is part of a writer and
 * cannot be saved, but another adder that gets the same steps is in the same state.
 *
 * One block of bytes, so that it is one part of an agent's state. */
#ifndef RP_AGENTS_ADDER_WINDOW_H
#define RP_AGENTS_ADDER_WINDOW_H

#include "reprise/rl/adder.h"
#include "reprise/rl/agent.h"

typedef struct rp_adder_window rp_adder_window;

typedef struct rp_adder_window_shape {
    size_t copies;
    size_t rows;              /* steps held for each copy: n - 1 */
    size_t observation_bytes; /* of one copy */
    size_t action_bytes;
} rp_adder_window_shape;

/* Makes a window for which no episode has begun. Returns owned. RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_adder_window_new(const rp_allocator *alloc,
                                           rp_adder_window_shape shape, rp_adder_window **out,
                                           rp_error *err);
void rp_adder_window_free(rp_adder_window *window); /* NULL is fine */

/* Beside rp_adder_first() for all copies, and rp_adder_add(); `before` are the observations
 * before the step. The step must have no extras and no discounts of its own. */
void rp_adder_window_begin(rp_adder_window *window, const void *observations);
void rp_adder_window_add(rp_adder_window *window, const rp_adder_step *step,
                         const void *before);

/* The window as a part of a state. */
rp_state_part rp_adder_window_state(rp_adder_window *window);

/* Gives the steps to `adder`, which is new, without creating items. RP_CORRUPT (the window was
 * restored from bytes that cannot be one), or a status of the adder. */
RP_NODISCARD rp_status rp_adder_window_restore(rp_adder_window *window, rp_adder *adder,
                                               rp_error *err);

#endif
