/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns: computes which n-step transitions a step of N parallel environments (copies)
 * completes, with their returns and discounts. Observations and tables are handled elsewhere,
 * in transitions.c.
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
    bool is_end; /* one of the shorter transitions that the end of an episode adds */
} rp_n_step_item;

typedef struct rp_n_step {
    size_t copies, n;
    float discount;
    size_t reward_size, discount_size, return_size; /* number of elements in a row */
    /* Element k of a return is computed from element reward_of[k] of the rewards and element
     * discount_of[k] of the discounts. */
    const uint32_t *reward_of, *discount_of;

    uint64_t calls;    /* of rp_n_step_add() so far */
    uint32_t *lengths; /* of each copy: rows in the ring that are of its current episode */
    float *rewards, *discounts; /* the ring: n x copies rows */

    /* The transitions that the latest call completed. The array has room for copies * n. */
    rp_n_step_item *items;
    size_t item_count;
    /* The return R and the discount D of each item (reprise/rl/adder.h), with return_size and
     * discount_size elements per item. */
    float *returns, *totals;
} rp_n_step;

/* Adds a step of all copies, and writes the transitions that it completes to s->items, those of
 * copy 0 first. `rewards` and `discounts` have a row for each copy. `ended` says for each copy
 * whether this step ends its episode; its next step then begins a new one. */
void rp_n_step_add(rp_n_step *s, const double *rewards, const float *discounts,
                   const bool *ended);

/* Broadcasts an array of shape `part` to the shape `whole` by NumPy's rules: element_of[i]
 * becomes the index of the array's element that is used for element i of the result. */
void rp_n_step_broadcast(const rp_shape *part, const rp_shape *whole, uint32_t *element_of);

/* Drops the kept rows of a copy: its next step begins an episode. */
void rp_n_step_forget(rp_n_step *s, size_t copy);

/* True if the invariants of n_step.c hold. */
bool rp_n_step_verify(const rp_n_step *s);

#endif
