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
 * A trajectory writer (reprise/trajectory_writer.h) stores the rows. Each column of the writer
 * keeps its latest rows in cells. A stored row is named by its cell number, or by an rp_ref: a
 * column and a cell number. */
#ifndef RP_ADDER_ADDER_INSIDE_H
#define RP_ADDER_ADDER_INSIDE_H

#include "adder/n_step.h"
#include "adder/plan.h"

/* The indices of the columns of an item. The extra columns, which the caller defines,
 * follow. */
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
    rp_spec spec; /* type of one row */
    size_t bytes; /* bytes of one row */
} rp_adder_column;

/* The columns of the items, as the options require them. */
typedef struct rp_adder_layout {
    rp_adder_column *columns; /* in the order of the enum above */
    size_t column_count;
    rp_shape return_shape;
    size_t reward_size, discount_size, return_size; /* number of elements in a row */
} rp_adder_layout;

/* The header of a block of memory that an adder has allocated. The memory follows the
 * header. */
typedef struct rp_adder_block {
    struct rp_adder_block *next;
    size_t bytes; /* of the whole block */
} rp_adder_block;

/* The state of an n-step adder. All copies share the columns of the writer. `obs` and `cells`
 * are ring buffers with an entry for each of the latest calls of rp_adder_add(); an entry has
 * an element for each copy. Calls are numbered from 0. Entry c % (n + 1) of `obs` refers to the
 * observations before call c. Entry c % n of `cells` holds the numbers of the cells that call c
 * wrote. */
typedef struct rp_adder_transitions {
    rp_n_step core;
    uint32_t odd;    /* index of the first of three columns: observations, returns, discounts.
                        Only some calls of rp_adder_add() write rows to these columns */
    rp_ref *obs;     /* ring of n + 1 entries */
    uint64_t *cells; /* ring of n entries. For a copy, each call writes a row to each of the
                        columns action, return, discount and extras of the layout, not to the
                        columns at `odd`. All of these rows get the same cell number */
    rp_ref *last;    /* for each copy whose episode ended in this call: its last observation */
    uint64_t *end_cell; /* for each copy whose episode ended in this call: a cell number in the
                           columns of returns and discounts at `odd`. The cells hold the return
                           and discount of the copy's next item with rp_n_step_item.is_end */

    /* The next fields are set only if a table has prioritize(). They hold the data of the items
     * for that function: */
    unsigned char *obs_rows, **other_rows; /* the rows to which the rings refer. obs_rows:
                                              observations; other_rows: the action and each
                                              extra column */
    void **gathered;                       /* for each column: the rows of all items of a
                                              call */
    uint32_t *item_copies;                 /* for each item of a call: its copy */
} rp_adder_transitions;

/* The state of an adder of sequences or episodes. Each copy has columns of its own in the
 * writer, numbered copy * column_count + column. */
typedef struct rp_adder_sequences {
    rp_plan plan;
    int64_t *closed;      /* for each copy: number of complete rows of its episode. With
                             RP_ADDER_CONTINUE: of all its episodes */
    uint64_t *obs_base;   /* for each copy: cell number of row 0 in the columns of observation
                             and start_of_episode */
    uint64_t *base;       /* for each copy: cell number of row 0 in its other columns */
    void **zero_rows;     /* for each column: a row of zeros */
    void **padding_rows;  /* for each column: a row of padding */
    float *reward;        /* scratch buffer: the reward of one copy */
    int64_t most_rows;    /* the most rows of an item */
    int64_t window;       /* number of the latest rows of each copy that an item can contain */
    unsigned char **kept; /* only with prioritize(): for each column, a ring buffer of `window`
                             rows for each copy */
    void **gathered;      /* only with prioritize(): for each column, the rows of one item */
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

    bool *begun;       /* for each copy: an episode has begun and has not ended */
    size_t waiting;    /* number of copies for which `begun` is false */
    bool failed;       /* a call failed half-way: the caller must call rp_adder_reset() next */
    bool muted;        /* rp_adder_set_muted(): no items are created */
    rp_error rejected; /* the error of items that a table has rejected, which the next call
                          reports; the code is RP_OK if there is none */
    uint64_t created;  /* items so far */

    /* Scratch buffers of one call. */
    bool *ended;          /* for each copy: its episode ends in this call */
    float *discounts;     /* of each copy */
    rp_value *values;     /* the values of one append */
    rp_ref *refs;         /* the rows of one append or of one item */
    rp_item_column *item; /* the columns of one item */
    double *priorities;   /* for each table, an array of item_room priorities */
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

/* Creates an item with the columns a->item in each table. `index` is the index of the item
 * among those of the call; its priority for table t is a->priorities[t * item_room + index]. */
rp_status rp_adder_create(rp_adder *a, size_t index, rp_wait wait, rp_error *err);

/* Completes the chunks (blocks of rows) that the created items need, so that the writer can
 * send these items. Does not wait. If a table has rejected an item, the next call of the adder
 * reports the error. */
void rp_adder_complete(rp_adder *a);

/* Prepares element `index` of a->values, the values that the next append passes to the writer.
 * The value is the row at `data`, for column `column` of the writer. The row has the type of
 * column `at` of the layout. */
void rp_adder_set_value(rp_adder *a, size_t index, size_t column, size_t at, const void *data);

/* n-step: the parts of rp_adder_new(), rp_adder_first() and rp_adder_add(). The caller has
 * checked the arguments. */
rp_status rp_transitions_new(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_configure(rp_adder *a, const rp_adder_options *options, rp_error *err);
rp_status rp_transitions_first(rp_adder *a, const void *observations, const bool *which,
                               rp_error *err);
/* Before this call, the caller must set a->ended and compute `discounts`, one row per copy. */
rp_status rp_transitions_add(rp_adder *a, const rp_adder_step *step, const float *discounts,
                             rp_wait wait, rp_error *err);

/* Sequences and episodes: the parts of rp_adder_new(), rp_adder_first() and rp_adder_add(). */
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
