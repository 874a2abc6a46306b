/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns of N copies of an environment: which transitions a step completes, with their
 * returns and discounts. It knows neither observations nor tables.
 *
 * Every call is a step of all copies. The rewards and discounts of the last n calls are kept in
 * a ring, which has n rows for each copy. The latest lengths[k] rows of copy k are those of its
 * episode. */
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
    size_t reward_size, discount_size, return_size; /* elements of a row */
    /* For each element of a return: the elements of the reward and discount that it uses. */
    const uint32_t *reward_of, *discount_of;

    uint64_t calls;
    uint32_t *lengths; /* for each copy: how many rows of the ring are of its episode, <= n */
    float *rewards, *discounts; /* n x copies rows: the ring */

    /* The transitions of the latest call: room for copies * n. */
    rp_n_step_item *items;
    size_t item_count;
    /* R and D of each item (reprise/rl/adder.h): return_size and discount_size elements. */
    float *returns, *totals;
} rp_n_step;

/* Adds a step of all copies and lists the transitions that it completes, those of copy 0 first.
 * `rewards` and `discounts` have a row for each copy. An ended copy begins a new episode. */
void rp_n_step_add(rp_n_step *s, const double *rewards, const float *discounts,
                   const bool *ended);

/* Broadcasts `part` to `whole`, as NumPy does: for each element of a row of shape `whole`,
 * writes the index of the element of a row of shape `part` that goes with it. */
void rp_n_step_broadcast(const rp_shape *part, const rp_shape *whole, uint32_t *element_of);

/* Forgets the rows of a copy. */
void rp_n_step_forget(rp_n_step *s, size_t copy);

/* True if the invariants of n_step.c hold. */
bool rp_n_step_verify(const rp_n_step *s);

#endif
