/* SPDX-License-Identifier: Apache-2.0 */
/* Text that grows: what commands make before they print it, so that tests can read it. One
 * thread. */
#ifndef RP_CLI_TEXT_SHEET_H
#define RP_CLI_TEXT_SHEET_H

#include "reprise/alloc.h"

/* Zero-initialise it. */
typedef struct rp_sheet {
    char *text; /* terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /* there was no memory: what follows is left out */
} rp_sheet;

void rp_sheet_deinit(rp_sheet *sheet);
void rp_sheet_clear(rp_sheet *sheet); /* keeps its memory */

void rp_sheet_add(rp_sheet *sheet, const char *text, size_t size);
void rp_sheet_put(rp_sheet *sheet, const char *text); /* terminated */
void rp_sheet_format(rp_sheet *sheet, const char *format, ...) RP_PRINTF(2, 3);
void rp_sheet_repeat(rp_sheet *sheet, char byte, size_t count);

/* The text so far, "" if there is none. */
const char *rp_sheet_text(const rp_sheet *sheet);

/* Adds text that came from somebody else, made printable (reprise/printable.h). */
void rp_sheet_put_safe(rp_sheet *sheet, const char *text, size_t size);

/* Returns how many bytes of a text of safe UTF-8 fit into so many columns of a terminal. */
size_t rp_text_fit(const char *text, size_t size, size_t columns);

/* Columns that a terminal needs for a text of safe UTF-8: one for each character. */
size_t rp_text_columns(const char *text, size_t size);

/* Rows of cells.
 *
 * Cells are gathered row by row and then written in columns as wide as their widest, two
 * spaces between. */
enum { RP_GRID_COLUMNS = 16 };
typedef struct rp_grid {
    rp_sheet cells; /* one behind the other, each terminated */
    size_t columns, cell_count;
    uint32_t right; /* a bit for each column that is aligned to the right */
} rp_grid;

void rp_grid_init(rp_grid *grid, size_t columns, uint32_t right);
void rp_grid_deinit(rp_grid *grid);
void rp_grid_cell(rp_grid *grid, const char *format, ...) RP_PRINTF(2, 3);
void rp_grid_write(const rp_grid *grid, rp_sheet *out);

/* JSON.
 *
 * Commas are set by what was written last, so that calls follow one another as the text does.
 * Strings that are not UTF-8 have U+FFFD in the place of what is not. */
void rp_json_open(rp_sheet *sheet, char bracket);
void rp_json_close(rp_sheet *sheet, char bracket);
void rp_json_key(rp_sheet *sheet, const char *key);
void rp_json_put_string(rp_sheet *sheet, const char *text, size_t size);
void rp_json_put_text(rp_sheet *sheet, const char *text); /* terminated; NULL: null */
void rp_json_put_raw(rp_sheet *sheet, const char *text);  /* a value that is JSON already */
/* A string in quotes, with no comma before it. */
void rp_json_put_quote(rp_sheet *sheet, const char *text, size_t size);
void rp_json_put_integer(rp_sheet *sheet, int64_t value);
void rp_json_put_unsigned(rp_sheet *sheet, uint64_t value);
/* The shortest number that reads back as `value`; "NaN", "Infinity", "-Infinity" as strings. */
void rp_json_put_number(rp_sheet *sheet, double value);
void rp_json_put_boolean(rp_sheet *sheet, bool value);

#endif
