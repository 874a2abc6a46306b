/* SPDX-License-Identifier: Apache-2.0 */
/* Items as text and as lines of JSON, and back. Pure. */
#ifndef RP_CLI_TEXT_ITEM_TEXT_H
#define RP_CLI_TEXT_ITEM_TEXT_H

#include "cli/text/tensor_text.h"
#include "reprise/table.h"

/* An item, decoded. Borrows everything. */
typedef struct rp_item_view {
    const char *table;
    const rp_sample *sample;  /* everything but its trajectory */
    const char *const *names; /* of the columns */
    const rp_tensor *tensors;
    size_t column_count;
} rp_item_view;

/* Writes a line about the item, which begins with `number`, and a line for each column. `most`
 * as for rp_tensor_print(). */
void rp_item_print(rp_text_buffer *out, const rp_item_view *item, size_t number, size_t most);

/* Writes one line of JSON, which rp_item_line_parse() can read. */
void rp_item_json(rp_text_buffer *out, const rp_item_view *item);

/* The columns of all lines, from the table's signature or from the first line. */
typedef struct rp_line_columns {
    rp_arena *arena; /* borrowed: memory for the names that the first line sets */
    const char *names[RP_MAX_COLUMNS];
    rp_dtype dtypes[RP_MAX_COLUMNS];
    size_t count;      /* 0: not known yet */
    size_t first_line; /* the line that set them; 0: the signature did */
} rp_line_columns;

/* An item of a line, in the memory of the arena. */
typedef struct rp_item_line {
    double priority; /* 1 if the line has none */
    bool has_priority;
    bool is_named;      /* the columns have names */
    rp_tensor *tensors; /* in the order of the columns */
} rp_item_line;

/* Reads a line:
 *
 *   {"priority": 2, "data": {"obs": [1, 2], "action": {"dtype": "int32", "data": 3}}}
 *
 * `data` may also be an array, in the order of the columns. A value without a dtype has the
 * dtype of its column. If the columns are not known yet, this line sets them. `place` is the
 * place of the line in its file. RP_INVALID, RP_NO_RESOURCE. */
RP_NODISCARD rp_status rp_item_line_parse(rp_arena *arena, const char *text, size_t size,
                                          rp_line_columns *columns, const rp_place *place,
                                          rp_item_line *out, rp_problem *problem);

#endif
