/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the files of a data directory, and the tables and items of a checkpoint, as text and
 * as JSON, for `reprise data`. The functions only append to their buffer or grid. */
#ifndef RP_CLI_COMMANDS_DATA_PRINT_H
#define RP_CLI_COMMANDS_DATA_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/data.h"

/* rp_data_headings() and rp_data_row() add the headings, and the row of a file, to a grid of
 * RP_DATA_COLUMNS columns. rp_data_file_json() writes the file as JSON. */
enum { RP_DATA_COLUMNS = 6 };
void rp_data_headings(rp_grid *grid);
void rp_data_row(rp_grid *grid, const rp_data_file *file);
void rp_data_file_json(rp_text_buffer *out, const rp_data_file *file);

/* Writes a summary such as "checkpoint 3: 1000 items in 2 tables, and 12 records in the
 * journal". */
void rp_data_summary_words(rp_text_buffer *out, const rp_data_summary *summary);
/* Writes the summary as members of a JSON object, without the braces. */
void rp_data_summary_json(rp_text_buffer *out, const rp_data_summary *summary);

/* Write a table or an item as one line of text or of JSON. In rp_data_item_json(), `table` is
 * the name of the item's table. */
void rp_data_table_words(rp_text_buffer *out, const rp_table_info *table);
void rp_data_table_json(rp_text_buffer *out, const rp_table_info *table);
void rp_data_item_words(rp_text_buffer *out, const rp_sample *item);
void rp_data_item_json(rp_text_buffer *out, const char *table, const rp_sample *item);

#endif
