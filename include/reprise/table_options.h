/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a table: selectors, a rate limiter and bounds. rp_table_alter() can change
 * some of them later. */
#ifndef REPRISE_TABLE_OPTIONS_H
#define REPRISE_TABLE_OPTIONS_H

#include "reprise/extension.h"

RP_BEGIN_DECLS

typedef enum rp_selector_kind {
    RP_FIFO = 0,        /* the item inserted first */
    RP_LIFO = 1,        /* the item inserted last */
    RP_UNIFORM = 2,     /* any item, with equal probability */
    RP_PRIORITIZED = 3, /* any item, with probability proportional to priority^exponent */
    RP_MIN_HEAP = 4,    /* the item with the lowest priority; of items with equal priority, the
                           item whose priority was set least recently */
    RP_MAX_HEAP = 5,    /* the item with the highest priority; of items with equal priority, the
                           item whose priority was set least recently */
} rp_selector_kind;

/* The largest exponent of a selector; -RP_MAX_EXPONENT is the smallest. */
#define RP_MAX_EXPONENT 100.0

/* A selector picks items of a table. Each table has two: the sampler picks the items to draw,
 * and the remover the items to evict. Only RP_PRIORITIZED uses `exponent`. The exponent can be
 * negative: in Ape-X, the remover has -0.4. An item of priority 0 has weight 0 with any
 * exponent. If all weights are 0, items are picked uniformly. */
typedef struct rp_selector_options {
    rp_selector_kind kind;
    double exponent;
} rp_selector_options;

/* Returns "fifo", "lifo", "uniform", "prioritized", "min_heap" or "max_heap", or NULL for any
 * other number. Static. */
RP_API const char *rp_selector_name(rp_selector_kind kind);

/* The rate limiter decides when inserts and samples proceed and when they wait. With I inserts,
 * S samples and D deletes so far:
 *
 *   n samples proceed  if  I - D >= min_size
 *                      and I * samples_per_insert - S - n >= min_diff
 *   n inserts proceed  if  I + n - D <= min_size
 *                      or  (I + n) * samples_per_insert - S <= max_diff */
typedef struct rp_limiter_options {
    double samples_per_insert; /* RP_MIN_SAMPLES_PER_INSERT .. RP_MAX_SAMPLES_PER_INSERT */
    int64_t min_size;          /* >= 1 */
    /* A min_diff below -RP_MAX_DIFF, or a max_diff above RP_MAX_DIFF, means no bound: for
     * example, -DBL_MAX and DBL_MAX, or an infinity. */
    double min_diff, max_diff;
} rp_limiter_options;

#define RP_MIN_SAMPLES_PER_INSERT 1e-12
#define RP_MAX_SAMPLES_PER_INSERT 1e9
#define RP_MAX_DIFF 9007199254740992.0 /* 2^53: float64 has every whole number up to it */

/* Samples wait until the table holds `min_size` items; inserts never wait. */
RP_API rp_limiter_options rp_limiter_min_size(int64_t min_size);

/* Keeps the number of samples within `error_buffer` of (inserts - min_size) *
 * samples_per_insert. */
RP_API rp_limiter_options rp_limiter_ratio(double samples_per_insert, int64_t min_size,
                                           double error_buffer);

/* The limiters of a queue (a table with the sampler RP_FIFO) and of a stack (RP_LIFO). Use them
 * with max_times_sampled 1: then each item is sampled once, and the table has at most `size`
 * items. */
RP_API rp_limiter_options rp_limiter_queue(int64_t size);
RP_API rp_limiter_options rp_limiter_stack(int64_t size);

/* The longest name of a table, in bytes of UTF-8: here, on the wire and on disk. */
enum { RP_MAX_TABLE_NAME_BYTES = 255 };

/* The options of a new table. Zero-initialise it; fields whose comment begins with * must be
 * set. */
typedef struct rp_table_options {
    const char *name; /* * unique in its store; copied */
    rp_selector_options sampler, remover;
    rp_limiter_options limiter; /* * */
    /* * The most items, >= 1. A full table evicts items, chosen by its remover. If max_size is
     * below the limiter's min_size, which Reverb permits, samples wait until max_size is
     * raised. */
    int64_t max_size;
    /* The most bytes of the items, as rp_trajectory_cost() counts them. A chunk that several
     * items use counts once. A full table evicts items, chosen by its remover. 0: no limit. */
    uint64_t max_bytes;
    /* An item is deleted when it has been sampled exactly this number of times. 0: no limit. */
    int32_t max_times_sampled;
    bool soft_limit; /* items over max_size stay until rp_table_trim() or rp_store_trim() */
    /* The columns that items must have, or NULL. The table takes a reference. */
    rp_signature *signature;
    const rp_extension *extensions; /* copied; the table owns them once it exists */
    size_t extension_count;
    uint64_t seed; /* seed of random choices; 0: from the store's seed and the table's name */
} rp_table_options;

enum {
    RP_ALTER_MAX_SIZE = 1,
    RP_ALTER_MAX_BYTES = 2,
    RP_ALTER_MAX_TIMES_SAMPLED = 4,
    RP_ALTER_LIMITER = 8,
    /* The limiter starts again half-way between its bounds. To this end, it adds a whole
     * number, the offset, to the difference I * samples_per_insert - S from now on. In a table
     * with at least min_size items, the offset brings the sum as near as possible to the mean
     * of min_diff and max_diff. If the table has n items fewer than min_size, the sum is lower
     * than this mean by n * samples_per_insert. If min_diff or max_diff means no bound, the
     * offset is 0. Without this bit, earlier inserts and samples count under the new limiter.
     * Then inserts possibly wait for many samples first, or samples for many inserts. */
    RP_ALTER_RECENTER = 16,
};

/* The arguments of rp_table_alter(): the fields whose bit is set in `which` are changed. */
typedef struct rp_table_alteration {
    uint32_t which; /* RP_ALTER_... */
    int32_t max_times_sampled;
    int64_t max_size;
    uint64_t max_bytes;
    rp_limiter_options limiter;
} rp_table_alteration;

RP_END_DECLS

#endif
