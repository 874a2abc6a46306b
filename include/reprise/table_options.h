/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a table: selectors, a rate limiter and bounds. Some of them can be changed
 * later by rp_table_alter(). */
#ifndef REPRISE_TABLE_OPTIONS_H
#define REPRISE_TABLE_OPTIONS_H

#include "reprise/extension.h"

RP_BEGIN_DECLS

typedef enum rp_selector_kind {
    RP_FIFO = 0,        /* the oldest */
    RP_LIFO = 1,        /* the newest */
    RP_UNIFORM = 2,     /* any, with equal probability */
    RP_PRIORITIZED = 3, /* with probability proportional to priority^exponent */
    RP_MIN_HEAP = 4,    /* the lowest priority; of equal ones the least recently set */
    RP_MAX_HEAP = 5,    /* the highest priority; of equal ones the least recently set */
} rp_selector_kind;

/* The largest exponent of a selector; -RP_MAX_EXPONENT is the smallest. */
#define RP_MAX_EXPONENT 100.0

/* A selector: it picks the items that a table draws (its sampler) or evicts (its remover). Only
 * RP_PRIORITIZED uses `exponent`. The exponent may be negative: the remover of Ape-X has -0.4.
 * An item of priority 0 has weight 0 with any exponent. If all weights are 0, items are picked
 * uniformly. */
typedef struct rp_selector_options {
    rp_selector_kind kind;
    double exponent;
} rp_selector_options;

/* Returns "fifo", "lifo", "uniform", "prioritized", "min_heap" or "max_heap", or NULL for any
 * other number. Static. */
RP_API const char *rp_selector_name(rp_selector_kind kind);

/* The rate limiter decides when inserts and samples may proceed. With I inserts, S samples and
 * D deletes so far:
 *
 *   n samples may be drawn   if  I - D >= min_size
 *                            and I * samples_per_insert - S - n >= min_diff
 *   n items may be inserted  if  I + n - D <= min_size
 *                            or  (I + n) * samples_per_insert - S <= max_diff */
typedef struct rp_limiter_options {
    double samples_per_insert; /* RP_MIN_SAMPLES_PER_INSERT .. RP_MAX_SAMPLES_PER_INSERT */
    int64_t min_size;          /* >= 1 */
    /* A min_diff below -RP_MAX_DIFF, or a max_diff above RP_MAX_DIFF, means no bound. Such
     * values are -DBL_MAX and DBL_MAX, and infinities. */
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

/* The limiters of a queue (a table with the sampler RP_FIFO) and of a stack (RP_LIFO). If
 * max_times_sampled is 1, each item is sampled once, and at most `size` items wait to be
 * sampled. */
RP_API rp_limiter_options rp_limiter_queue(int64_t size);
RP_API rp_limiter_options rp_limiter_stack(int64_t size);

/* The longest name of a table, in bytes of UTF-8: here, on the wire and on disk. */
enum { RP_MAX_TABLE_NAME_BYTES = 255 };

/* The options of a new table. Zero-initialise it; fields marked * must be set. */
typedef struct rp_table_options {
    const char *name; /* * unique in its store; copied */
    rp_selector_options sampler, remover;
    rp_limiter_options limiter; /* * */
    /* * The most items, >= 1; a full table evicts by its remover. If the limiter's min_size is
     * larger, which Reverb permits, samples wait until max_size is raised. */
    int64_t max_size;
    /* The most bytes of the items, as rp_trajectory_cost() counts them, each chunk once. A full
     * table evicts by its remover. 0: no limit. */
    uint64_t max_bytes;
    /* An item is deleted when it has been sampled exactly this often. 0: no limit. */
    int32_t max_times_sampled;
    bool soft_limit; /* items over max_size stay until rp_table_trim() */
    /* The columns that items must have, or NULL. The table takes a reference. */
    rp_signature *signature;
    const rp_extension *extensions; /* copied; owned by the table once it exists */
    size_t extension_count;
    uint64_t seed; /* of random choices; 0: from the store's seed and the table's name */
} rp_table_options;

enum {
    RP_ALTER_MAX_SIZE = 1,
    RP_ALTER_MAX_BYTES = 2,
    RP_ALTER_MAX_TIMES_SAMPLED = 4,
    RP_ALTER_LIMITER = 8,
    /* The limiter starts again half-way between its bounds: an offset is added to the
     * difference I * samples_per_insert - S. The offset is chosen so that the sum is the mean
     * of min_diff and max_diff, less samples_per_insert for each item that is missing up to
     * min_size. If a bound is not finite, the offset is 0. Without this bit, earlier inserts
     * and samples count under the new limiter, and one side may have to catch up. */
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
