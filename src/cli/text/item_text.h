/* SPDX-License-Identifier: Apache-2.0 */
/* Prints items of tables as text, writes them as lines of JSON, and parses these lines. Pure
 * functions. */
#ifndef RP_CLI_TEXT_ITEM_TEXT_H
#define RP_CLI_TEXT_ITEM_TEXT_H

#include "cli/text/tensor_text.h"
#include "reprise/table.h"

/* An item with its decoded data, all borrowed. */
typedef struct rp_item_view {
    const char *table;
    const rp_sample *sample;  /* key, priority and the other fields of the item */
    const char *const *names; /* of the columns */
    const rp_tensor *tensors; /* the data of each column */
    size_t column_count;
} rp_item_view;

/* Writes a line about the item, which begins with `number`, and then a line per column. `most`
 * is the argument for rp_tensor_print(). */
void rp_item_print(rp_text_buffer *out, const rp_item_view *item, size_t number, size_t most);

/* Writes the item as one line of JSON, which rp_item_line_parse() can read. */
void rp_item_json(rp_text_buffer *out, const rp_item_view *item);

/* The columns that all lines of a file must have: those of the table's signature, or of the
 * first line if the table has no signature. */
typedef struct rp_line_columns {
    rp_arena *arena; /* borrowed; memory for the names that the first line sets */
    const char *names[RP_MAX_COLUMNS];
    rp_dtype dtypes[RP_MAX_COLUMNS];
    size_t count;      /* 0: not known yet */
    size_t first_line; /* number of the line that set the columns; 0: the signature did */
} rp_line_columns;

/* An item that was parsed from a line. Its memory belongs to the arena. */
typedef struct rp_item_line {
    double priority; /* 1 if the line has no priority */
    bool has_priority;
    bool is_named;      /* the line names its columns */
    rp_tensor *tensors; /* in the order of the columns */
} rp_item_line;

/* Parses a line such as
 *
 *   {"priority": 2, "data": {"obs": [1, 2], "action": {"dtype": "int32", "data": 3}}}
 *
 * `data` can also be an array of values in the order of the columns. A value without a dtype
 * has the dtype of its column. If the columns are not known yet, this line sets them. `place`
 * is the position of the line in its file, for error texts. Errors: RP_INVALID,
 * RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_item_line_parse(rp_arena *arena, const char *text, size_t size,
                                          rp_line_columns *columns, const rp_place *place,
                                          rp_item_line *out, rp_problem *problem);

#endif
