/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns: computes which n-step transitions a step of N parallel environments (copies)
 * completes, with their returns and discounts. transitions.c handles the observations and the
 * tables.
 *
 * Each call of rp_n_step_add() is a step of all copies. A ring buffer keeps the rewards and
 * discounts of the last n calls: a row for each call and copy. The latest lengths[k] rows of
 * copy k belong to its current episode. */
#ifndef RP_ADDER_N_STEP_H
#define RP_ADDER_N_STEP_H

#include "reprise/rl/adder.h"

/* A transition over the latest `steps` actions of a copy. */
typedef struct rp_n_step_item {
    uint32_t copy;
    uint32_t steps;
    bool is_end; /* true: one of the shorter transitions that are made only at the end of an
                    episode */
} rp_n_step_item;

typedef struct rp_n_step {
    size_t copies, n;
    float discount;
    size_t reward_size, discount_size, return_size; /* number of elements in a row */
    /* Element k of a return is computed from element reward_of[k] of the rewards and element
     * discount_of[k] of the discounts. */
    const uint32_t *reward_of, *discount_of;

    uint64_t calls;    /* number of calls of rp_n_step_add() so far */
    uint32_t *lengths; /* for each copy: number of rows in the ring that belong to its current
                          episode */
    float *rewards, *discounts; /* the ring: n x copies rows */

    /* The transitions that the latest call completed. The array has room for copies * n. */
    rp_n_step_item *items;
    size_t item_count;
    /* The return R and the discount D of each item (reprise/rl/adder.h), with return_size and
     * discount_size elements per item. */
    float *returns, *totals;
} rp_n_step;

/* Adds a step of all copies, and writes the transitions that the step completes to s->items,
 * those of copy 0 first. `rewards` and `discounts` have a row for each copy. `ended` says for
 * each copy whether this step ends its episode. If so, the next step of the copy is the first
 * of a new episode. */
void rp_n_step_add(rp_n_step *s, const double *rewards, const float *discounts,
                   const bool *ended);

/* Broadcasts an array of shape `part` to the shape `whole` by NumPy's rules: element i of the
 * result is a copy of one element of the array, and the function writes the index of this
 * element to element_of[i]. */
void rp_n_step_broadcast(const rp_shape *part, const rp_shape *whole, uint32_t *element_of);

/* Drops the rows of a copy from the ring: its next step is the first of an episode. */
void rp_n_step_forget(rp_n_step *s, size_t copy);

/* Returns true if the invariants of n_step.c hold. */
bool rp_n_step_verify(const rp_n_step *s);

#endif
