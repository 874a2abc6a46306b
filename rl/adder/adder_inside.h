/* SPDX-License-Identifier: Apache-2.0 */
/* The struct rp_adder, for the files that implement adders (reprise/rl/adder.h). An adder takes
 * the steps of N parallel environments, called copies here, and writes items to tables:
 *
 *   adder.c            the public calls, and the checks that all kinds share
 *   adder_new.c        options, memory, columns of the writer
 *   adder_signature.c  signatures, and the layout of items
 *   transitions.c      n-step: writes the transitions that n_step.c lists
 *   sequences.c        sequences and episodes: writes the rows that plan.c chooses
 *
 * A trajectory writer stores the rows. Its columns keep the latest rows as cells; a cell number
 * or an rp_ref (a column and a cell number) names a stored row. */
#ifndef RP_ADDER_ADDER_INSIDE_H
#define RP_ADDER_ADDER_INSIDE_H

#include "adder/n_step.h"
#include "adder/plan.h"

/* The columns of an item, in order. Columns of extras follow. */
enum {
    RP_AT_OBSERVATION = 0,
    RP_AT_ACTION = 1,
    RP_AT_REWARD = 2,   /* n-step: the return R */
    RP_AT_DISCOUNT = 3, /* n-step: the discount D */
    RP_AT_START = 4,    /* sequence and episode: start_of_episode */
    RP_AT_NEXT = 4,     /* n-step: next_observation */
    RP_AT_EXTRAS = 5,
};

/* The type of a column of an item. */
typedef struct rp_adder_column {
    rp_spec spec; /* of one row */
    size_t bytes; /* of one row */
} rp_adder_column;

/* The columns of the items, as the options require them. */
typedef struct rp_adder_layout {
    rp_adder_column *columns; /* in the order of the enum above */
    size_t column_count;
    rp_shape return_shape;
    size_t reward_size, discount_size, return_size; /* elements in a row */
} rp_adder_layout;

/* The header of a block of memory that an adder has allocated. The memory follows it. */
typedef struct rp_adder_block {
    struct rp_adder_block *next;
    size_t bytes; /* of the whole block */
} rp_adder_block;

/* The state of an n-step adder. All copies share the writer's columns. `obs` and `cells` are
 * ring buffers with an entry for each of the latest calls of rp_adder_add(); an entry has an
 * element for each copy. Calls are numbered from 0. Entry c % (n + 1) of `obs` refers to the
 * observations before call c. Entry c % n of `cells` holds the cells that call c wrote. */
typedef struct rp_adder_transitions {
    rp_n_step core;
    uint32_t odd;    /* the first of the writer's three columns for rows that only some calls
                        write: observations, returns, discounts */
    rp_ref *obs;     /* ring of n + 1 entries */
    uint64_t *cells; /* ring of n entries. One cell number serves the action, return, discount
                        and extras */
    rp_ref *last;    /* of each copy whose episode ended in this call: its last observation */
    uint64_t *end_cell; /* of each copy: cell of the next return that its end of episode adds */

    /* Only if a table has prioritize(), which gets the data of the items: */
    unsigned char *obs_rows, **other_rows; /* the rows to which the rings refer: observations;
                                              the action and each extra */
    void **gathered;                       /* each column of the items of a call */
    uint32_t *item_copies;                 /* the copy of each item of a call */
} rp_adder_transitions;

/* The state of an adder of sequences or episodes. Each copy has columns of its own in the
 * writer, numbered copy * column_count + column. */
typedef struct rp_adder_sequences {
    rp_plan plan;
    int64_t *closed; /* of each copy: complete rows of its episode. With RP_ADDER_CONTINUE, rows
                        of all its episodes */
    uint64_t *obs_base;   /* of each copy: cell of row 0 in the columns of observation and
                             start_of_episode */
    uint64_t *base;       /* of each copy: cell of row 0 in its other columns */
    void **zero_rows;     /* of each column: a row of zeros */
    void **padding_rows;  /* of each column: a row of padding */
    float *reward;        /* scratch buffer: the reward of one copy */
    int64_t most_rows;    /* the most rows of an item */
    int64_t window;       /* the latest rows of each copy that items can contain */
    unsigned char **kept; /* only with prioritize(): for each column, a ring of `window` rows of
                             each copy */
    void **gathered;      /* only with prioritize(): each column of an item */
} rp_adder_sequences;

struct rp_adder {
    rp_allocator alloc;
    rp_adder_block *blocks; /* list of all memory except this struct */
    rp_adder_kind kind;
    size_t copies;
    rp_adder_layout layout;
    rp_adder_table *tables;
    size_t table_count;
    bool prioritizes; /* a table has prioritize() */
    size_t leave;     /* unconfirmed items above which rp_adder_add() waits */
    rp_trajectory_writer *writer;

    bool *begun;       /* of each copy: an episode has begun and not ended */
    size_t waiting;    /* copies that have not begun */
    bool failed;       /* a call failed half-way: rp_adder_reset() must come next */
    bool muted;        /* rp_adder_set_muted(): no items are created */
    rp_error rejected; /* an error of rejected items that the next call reports; its code is
                          RP_OK if there is none */
    uint64_t created;  /* items so far */

    /* Scratch buffers of one call. */
    bool *ended;          /* of each copy: its episode ends in this call */
    float *discounts;     /* of each copy */
    rp_value *values;     /* the values of one append */
    rp_ref *refs;         /* the rows of one append or of one item */
    rp_item_column *item; /* the columns of one item */
    double *priorities;   /* for each table, an array for item_room items */
    size_t item_room;     /* the most items that one call of prioritize() gets */

    rp_adder_transitions transitions;
    rp_adder_sequences sequences;
};

/* Allocates zeroed memory for `count` elements of `size` bytes, which rp_adder_free() releases.
 * Returns NULL if memory runs out. */
void *rp_adder_take(rp_adder *a, size_t count, size_t size);

/* Checks the options and writes the layout of items to `out`. The caller must point
 * out->columns to an array of RP_AT_EXTRAS + options->extra_count entries. */
rp_status rp_adder_lay_out(const rp_adder_options *options, rp_adder_layout *out,
                           rp_error *err);

/* For each table with prioritize(), computes the priorities of `items` and writes them to
 * a->priorities. */
rp_status rp_adder_prioritize(rp_adder *a, const rp_adder_items *items, rp_error *err);

/* Creates an item with the columns a->item in each table. `index` is the number of the item
 * within the call, which selects its priority. */
rp_status rp_adder_create(rp_adder *a, size_t index, rp_wait wait, rp_error *err);

/* Completes the chunks of all items without waiting. If a server rejects an item, the next call
 * of the adder reports that. */
void rp_adder_complete(rp_adder *a);

/* Sets value `index` of the next append: the row at `data`, of the type of column `at` of the
 * layout, goes to column `column` of the writer. */
void rp_adder_set_value(rp_adder *a, size_t index, size_t column, size_t at, const void *data);

/* n-step: the parts of rp_adder_new(), rp_adder_first() and rp_adder_add(). The caller has
 * checked the arguments. */
rp_status rp_transitions_new(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_configure(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_first(rp_adder *a, const void *observations, const bool *which,
                               rp_error *err);
/* The caller must set a->ended, and must compute `discounts`, one row per copy. */
rp_status rp_transitions_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                             rp_wait wait, rp_error *err);

/* Sequences and episodes: the same parts. */
rp_status rp_sequences_new(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_sequences_configure(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_sequences_first(rp_adder *a, const void *observations, const bool *which,
                             rp_error *err);
rp_status rp_sequences_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                           rp_wait wait, rp_error *err);
/* Drops the rows of a copy: its next row is row 0. */
void rp_sequences_forget(rp_adder *a, size_t copy);
/* Returns RP_PRECONDITION if the episode of a copy has too many rows for another step. */
rp_status rp_sequences_check(const rp_adder *a, rp_error *err);

#endif
