/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of an adder:
 *
 *   adder.c            the public calls, and the checks that all kinds share
 *   adder_new.c        options, memory, columns of the writer
 *   adder_signature.c  signatures, and the layout of items
 *   transitions.c      n-step: writes what n_step.c lists
 *   sequences.c        sequences and episodes: writes what plan.c says */
#ifndef RP_ADDER_ADDER_INSIDE_H
#define RP_ADDER_ADDER_INSIDE_H

#include "adder/n_step.h"
#include "adder/plan.h"

/* The columns of an item. Extras follow. */
enum {
    RP_AT_OBSERVATION = 0,
    RP_AT_ACTION = 1,
    RP_AT_REWARD = 2,   /* n-step: the return R */
    RP_AT_DISCOUNT = 3, /* n-step: the discount D */
    RP_AT_START = 4,    /* sequence and episode: start_of_episode */
    RP_AT_NEXT = 4,     /* n-step: next_observation */
    RP_AT_EXTRAS = 5,
};

/* A column of an item. */
typedef struct rp_adder_column {
    rp_spec spec; /* of one row */
    size_t bytes; /* of one row */
} rp_adder_column;

/* The layout that options ask for. */
typedef struct rp_adder_layout {
    rp_adder_column *columns; /* as in the enum above */
    size_t column_count;
    rp_shape return_shape;
    size_t reward_size, discount_size, return_size; /* elements */
} rp_adder_layout;

/* A block of memory of an adder, in front of the bytes in use. */
typedef struct rp_adder_block {
    struct rp_adder_block *next;
    size_t bytes;
} rp_adder_block;

/* n-step. The rings have an entry of `copies` elements for each of the latest calls. In `obs`,
 * entry c % (n + 1) has the observations after c calls; in `cells`, entry c % n has the cells
 * that call c wrote, counted from 0. */
typedef struct rp_adder_transitions {
    rp_n_step core;
    uint32_t odd;       /* the first of three columns for rows that not every call has:
                           observations, returns, discounts */
    rp_ref *obs;        /* ring of n + 1: observations */
    uint64_t *cells;    /* ring of n: cell of action, return, discount and extras */
    rp_ref *last;       /* of each copy: the observation that ended it in this call */
    uint64_t *end_cell; /* of each copy: cell of the next return of the end rule */

    /* Only if a table has prioritize(): copies of the rows of the rings, and the columns of the
     * items of a call. */
    unsigned char *obs_rows, **other_rows; /* other_rows: of the action and each extra */
    void **gathered;
    uint32_t *item_copies;
} rp_adder_transitions;

/* Sequences and episodes. Each copy has columns of its own in the writer, numbered
 * copy * column_count + column. */
typedef struct rp_adder_sequences {
    rp_plan plan;
    int64_t *closed;      /* of each copy: complete rows of the episode or stream */
    uint64_t *obs_base;   /* cell of row 0: observation and start_of_episode */
    uint64_t *base;       /* cell of row 0: other columns */
    void **zero_rows;     /* of each column: a row of zeros */
    void **padding_rows;  /* of each column: a row of padding */
    float *reward;        /* of one copy */
    int64_t most_rows;    /* of an item */
    int64_t window;       /* rows of each copy that items may need */
    unsigned char **kept; /* only with prioritize(): ring of `window` rows for each copy */
    void **gathered;
} rp_adder_sequences;

struct rp_adder {
    rp_allocator alloc;
    rp_adder_block *blocks; /* all memory but this struct */
    rp_adder_kind kind;
    size_t copies;
    rp_adder_layout layout;
    rp_adder_table *tables;
    size_t table_count;
    bool prioritizes; /* a table has prioritize() */
    size_t leave;     /* unconfirmed items above which rp_adder_add() waits */
    rp_trajectory_writer *writer;

    bool *begun;       /* of each copy: it is within an episode */
    size_t waiting;    /* copies that have not begun */
    bool failed;       /* a call failed half-way: only rp_adder_reset() helps */
    bool muted;        /* creates no items */
    rp_error rejected; /* not reported yet; its code is RP_OK if there is none */
    uint64_t created;

    /* Scratch buffers of one call. */
    bool *ended;      /* of each copy */
    float *discounts; /* of each copy */
    rp_value *values; /* of one append */
    rp_ref *refs;     /* of one append, or of one item */
    rp_item_column *item;
    double *priorities; /* for each table, of item_room items */
    size_t item_room;   /* the most items of one call of prioritize() */

    rp_adder_transitions transitions;
    rp_adder_sequences sequences;
};

/* Allocates zeroed memory that rp_adder_free() releases. NULL without memory. */
void *rp_adder_take(rp_adder *a, size_t count, size_t size);

/* Checks the options and fills `out`, whose columns must have room for RP_AT_EXTRAS +
 * extra_count entries. */
rp_status rp_adder_lay_out(const rp_adder_options *options, rp_adder_layout *out,
                           rp_error *err);

/* Computes the priorities of `items` for each table. */
rp_status rp_adder_prioritize(rp_adder *a, const rp_adder_items *items, rp_error *err);

/* Creates item `index` of the call in each table, from a->item. */
rp_status rp_adder_create(rp_adder *a, size_t index, rp_wait wait, rp_error *err);

/* Completes the chunks of all items without waiting. A rejected item is reported by the next
 * call. */
void rp_adder_complete(rp_adder *a);

/* Sets a value of the next append: column `column` of the writer has the row at `data` of
 * column `at` of the layout. */
void rp_adder_set_value(rp_adder *a, size_t index, size_t column, size_t at, const void *data);

rp_status rp_transitions_new(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_configure(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_first(rp_adder *a, const void *observations, const bool *which,
                               rp_error *err);
/* a->ended and the discounts are set; the step has been checked. */
rp_status rp_transitions_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                             rp_wait wait, rp_error *err);

rp_status rp_sequences_new(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_sequences_configure(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_sequences_first(rp_adder *a, const void *observations, const bool *which,
                             rp_error *err);
rp_status rp_sequences_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                           rp_wait wait, rp_error *err);
/* Forgets the rows of a copy. */
void rp_sequences_forget(rp_adder *a, size_t copy);
/* RP_PRECONDITION if a copy's episode is too long for another step. */
rp_status rp_sequences_check(const rp_adder *a, rp_error *err);

#endif
