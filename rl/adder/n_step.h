/* SPDX-License-Identifier: Apache-2.0 */
/* n-step returns of N copies of an environment: which transitions a step completes, with their
 * returns and discounts. It knows neither observations nor tables.
 *
 * Every call is a step of all copies, so the rewards of the last n calls are a ring of n rows.
 * A copy's episode uses its latest entries of the ring. */
#ifndef RP_ADDER_N_STEP_H
#define RP_ADDER_N_STEP_H

#include "reprise/rl/adder.h"

/* A transition over `steps` actions that ends at the latest one. */
typedef struct rp_n_step_item {
    uint32_t copy;
    uint32_t steps;
    bool is_end; /* made by the end rule: all but the first transition of an ended copy */
} rp_n_step_item;

typedef struct rp_n_step {
    size_t copies, n;
    float discount;
    size_t reward_size, discount_size, return_size; /* elements of a row */
    /* For each element of a return: the elements of the reward and discount that it uses. */
    const uint32_t *reward_of, *discount_of;

    uint64_t calls;
    uint32_t *lengths; /* complete rows of each copy's episode that the ring holds, <= n */
    float *rewards, *discounts; /* n x copies rows: the ring */

    /* The transitions of the latest call: room for copies * n. */
    rp_n_step_item *items;
    size_t item_count;
    float *returns, *totals; /* return_size and discount_size elements for each item */
} rp_n_step;

/* Adds a step of all copies and lists the transitions that it completes, those of copy 0 first.
 * `rewards` and `discounts` have a row for each copy. An ended copy begins a new episode. */
void rp_n_step_add(rp_n_step *s, const double *rewards, const float *discounts,
                   const bool *ended);

/* Writes, for each element of a row of shape `whole`, the element of a row of shape `part` that
 * NumPy's broadcasting pairs with it. */
void rp_n_step_broadcast(const rp_shape *part, const rp_shape *whole, uint32_t *element_of);

/* Forgets the rows of a copy. */
void rp_n_step_forget(rp_n_step *s, size_t copy);

/* True if the invariants of n_step.c hold. */
bool rp_n_step_verify(const rp_n_step *s);

#endif
