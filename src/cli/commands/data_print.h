/* SPDX-License-Identifier: Apache-2.0 */
/* Prints files of a data directory, and tables and items of a checkpoint, as text and as JSON.
 * Pure. */
#ifndef RP_CLI_COMMANDS_DATA_PRINT_H
#define RP_CLI_COMMANDS_DATA_PRINT_H

#include "cli/text/text_buffer.h"
#include "reprise/data.h"

/* Add the headings, and the row of one file, to a grid of RP_DATA_COLUMNS columns. */
enum { RP_DATA_COLUMNS = 6 };
void rp_data_headings(rp_grid *grid);
void rp_data_row(rp_grid *grid, const rp_data_file *file);
void rp_data_file_json(rp_text_buffer *out, const rp_data_file *file);

/* Writes "checkpoint 3: 1000 items in 2 tables, and 12 records in the journal". */
void rp_data_summary_words(rp_text_buffer *out, const rp_data_summary *summary);
/* Writes the members of a JSON object, without its braces. */
void rp_data_summary_json(rp_text_buffer *out, const rp_data_summary *summary);

/* Each writes one line. */
void rp_data_table_words(rp_text_buffer *out, const rp_table_info *table);
void rp_data_table_json(rp_text_buffer *out, const rp_table_info *table);
void rp_data_item_words(rp_text_buffer *out, const rp_sample *item);
void rp_data_item_json(rp_text_buffer *out, const char *table, const rp_sample *item);

#endif
