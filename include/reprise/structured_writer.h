/* SPDX-License-Identifier: Apache-2.0 */
/* A writer that creates items by patterns. A pattern says which rows of the latest steps become
 * an item, and on which steps the writer creates this item. trajectory_writer.h explains steps,
 * rows and chunks.
 *
 * The pattern language is the one of Reverb's structured writer. After every append, of a whole
 * step or of a part of a step, the writer tries the patterns in the order given. A pattern
 * creates at most one item for a step. At the end of an episode the writer tries once more the
 * patterns that have created no item for the last step. The writer skips a pattern if a row
 * that the pattern selects does not exist. Values of columns that no pattern uses are not
 * stored. */
#ifndef REPRISE_STRUCTURED_WRITER_H
#define REPRISE_STRUCTURED_WRITER_H

#include "reprise/codec.h"
#include "reprise/trajectory_writer.h"

RP_BEGIN_DECLS

/* One column of the items: rows of column `source`, counted back from the latest step.
 *   stop alone (has_start false)   the one row at `stop` < 0, without a row dimension
 *   start (has_start true)         every `step`-th row of [start, stop); start < 0, and
 *                                  start < stop <= 0. If has_stop is false, the rows end with
 *                                  the latest step. A `step` of 0 means 1 */
typedef struct rp_pattern_node {
    uint32_t source;
    bool has_start, has_stop;
    int32_t start, stop, step;
    const char *name; /* may be NULL; otherwise as in rp_item_column */
} rp_pattern_node;

typedef enum rp_condition_left {
    RP_LEFT_STEP_INDEX = 0,      /* number of the latest step within its episode, from 0 */
    RP_LEFT_STEPS_SINCE_APPLIED, /* number of steps since this pattern last created an item,
                                    even if that was in an earlier episode; before its first
                                    item: since the writer was made. A step counts only if it
                                    has a value in a column that some pattern uses */
    RP_LEFT_BUFFER_LENGTH,       /* number of latest steps to which patterns can refer, at most
                                    as many as the longest pattern needs */
    RP_LEFT_IS_END_EPISODE,      /* 1 at the end of an episode, else 0; the only comparison
                                    allowed is == 1 */
    RP_LEFT_DATA, /* the value of column `column` in the latest step, an integer or bool scalar.
                     If the step has no such value, the condition does not hold, even with
                     `inverse` */
} rp_condition_left;

typedef enum rp_condition_compare {
    RP_COMPARE_EQ = 0,
    RP_COMPARE_GE = 1,
    RP_COMPARE_MOD_EQ = 2, /* left mod `mod` == value; mod > 0, value >= 0 */
} rp_condition_compare;

typedef struct rp_condition {
    rp_condition_left left;
    uint32_t column;
    rp_condition_compare compare;
    int32_t mod, value;
    bool inverse; /* the condition holds if the comparison does not */
} rp_condition;

typedef enum rp_priority_kind {
    RP_PRIORITY_CONSTANT = 0,
    /* The priority is w * max|x| + (1 - w) * mean|x|. w is max_priority_weight, and x are the
     * rows of the last node whose source is `column`. These rows must be float or integer
     * scalars. */
    RP_PRIORITY_TD_ERROR = 1,
} rp_priority_kind;

typedef struct rp_pattern_priority {
    rp_priority_kind kind;
    double value; /* for RP_PRIORITY_CONSTANT; the other fields are for RP_PRIORITY_TD_ERROR */
    double max_priority_weight;
    uint32_t column;
} rp_pattern_priority;

typedef struct rp_pattern {
    const char *table;
    const rp_pattern_node *nodes; /* one for each column of the item */
    size_t node_count;
    const rp_condition *conditions; /* all must hold, and all rows of the nodes must exist */
    size_t condition_count;
    rp_pattern_priority priority;
} rp_pattern;

typedef struct rp_structured_writer rp_structured_writer;

/* Zero-initialise it. */
typedef struct rp_structured_writer_options {
    int32_t chunk_length; /* rows of a chunk; 0: tuned to the data */
    rp_chunk_options chunk;
    size_t max_items, max_bytes; /* as in rp_trajectory_writer_options */
} rp_structured_writer_options;

/* Creates a writer. Patterns are copied. Returns owned. Errors: RP_INVALID (with a text such as
 * "Invalid configuration at position i: ..."), RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_structured_writer_new(
    rp_client *client, const rp_pattern *patterns, size_t count,
    const rp_structured_writer_options *options, rp_structured_writer **out, rp_error *err);
RP_API void rp_structured_writer_free(rp_structured_writer *writer); /* NULL is fine */

/* Appends like rp_trajectory_writer_append(), then tries the patterns. The first append waits
 * at most a quarter of a second for the signatures of the patterns' tables. While the
 * unconfirmed items have reached max_items or max_bytes, the call waits before it appends.
 *
 * Errors after which nothing is appended: RP_DEADLINE, RP_CANCELLED, RP_INVALID (also if a node
 * and the signature of its table have different names for one column), RP_NO_RESOURCE. If an
 * item cannot be created, the step is still appended, and the call returns RP_INVALID (a TD
 * error is NaN) or RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_structured_writer_append(rp_structured_writer *writer,
                                                          const rp_value *values, size_t count,
                                                          uint32_t flags, rp_wait wait,
                                                          rp_error *err);

/* The following calls behave like the calls of a trajectory writer with the same names. */
RP_API bool rp_structured_writer_is_open(const rp_structured_writer *writer);
RP_API RP_NODISCARD rp_status rp_structured_writer_flush(rp_structured_writer *writer,
                                                         size_t leave, rp_wait wait,
                                                         rp_error *err);
RP_API RP_NODISCARD rp_status rp_structured_writer_end_episode(rp_structured_writer *writer,
                                                               bool clear, rp_wait wait,
                                                               rp_error *err);
/* Returns the number of unconfirmed items, which freeing the writer now would drop. */
RP_API size_t rp_structured_writer_pending(const rp_structured_writer *writer);

typedef struct rp_batch_writer rp_batch_writer;

/* Creates a batch writer, which has one structured writer for each of `environments`
 * environments. Returns owned. Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_batch_writer_new(rp_client *client, size_t environments,
                                                  const rp_pattern *patterns, size_t count,
                                                  const rp_structured_writer_options *options,
                                                  rp_batch_writer **out, rp_error *err);
RP_API void rp_batch_writer_free(rp_batch_writer *writer); /* NULL is fine */

/* Appends one step of every environment. The first dimension of each tensor counts the
 * environments. `ends` may be NULL. If ends[i] is true, the episode of environment i ends with
 * this step, and the history of the environment is emptied, without a flush. The call first
 * waits until the unconfirmed items of every environment are below max_items and max_bytes. If
 * the append of an environment fails after that, the text names the environment, and only the
 * environments before it have the step. */
RP_API RP_NODISCARD rp_status rp_batch_writer_append(rp_batch_writer *writer,
                                                     const rp_value *values, size_t count,
                                                     const bool *ends, rp_wait wait,
                                                     rp_error *err);
RP_API RP_NODISCARD rp_status rp_batch_writer_flush(rp_batch_writer *writer, rp_wait wait,
                                                    rp_error *err);
/* Returns the number of unconfirmed items of all environments. */
RP_API size_t rp_batch_writer_pending(const rp_batch_writer *writer);

RP_END_DECLS

#endif
