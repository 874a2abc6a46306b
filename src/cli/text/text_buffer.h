/* SPDX-License-Identifier: Apache-2.0 */
/* A text buffer that grows. Commands write their output to a buffer before they print it, so
 * that tests can read it. Not thread-safe.
 *
 * Invariant:
 *   X1  either text is NULL and capacity is 0, or size < capacity and text[size] is the
 *       terminating zero byte. */
#ifndef RP_CLI_TEXT_TEXT_BUFFER_H
#define RP_CLI_TEXT_TEXT_BUFFER_H

#include "reprise/alloc.h"

/* Zero-initialise it. */
typedef struct rp_text_buffer {
    char *text; /* zero-terminated; NULL before the first byte */
    size_t size, capacity;
    bool failed; /* memory ran out; later text is dropped */
} rp_text_buffer;

void rp_text_buffer_deinit(rp_text_buffer *buffer);
void rp_text_buffer_clear(rp_text_buffer *buffer); /* keeps its memory */

void rp_text_buffer_add(rp_text_buffer *buffer, const char *text, size_t size);
void rp_text_buffer_put(rp_text_buffer *buffer, const char *text); /* `text` is
                                                                      zero-terminated */
void rp_text_buffer_format(rp_text_buffer *buffer, const char *format, ...) RP_PRINTF(2, 3);
void rp_text_buffer_repeat(rp_text_buffer *buffer, char byte, size_t count);

/* Returns the text so far, zero-terminated. */
const char *rp_text_buffer_text(const rp_text_buffer *buffer);

/* Appends text from a peer or a file, with unprintable bytes escaped (reprise/printable.h). */
void rp_text_buffer_put_safe(rp_text_buffer *buffer, const char *text, size_t size);

/* Appends one word of a shell command, with unprintable bytes escaped as in
 * rp_text_buffer_put_safe(), and in 'quotes' if a shell needs them. */
void rp_text_buffer_put_word(rp_text_buffer *buffer, const char *word);

/* Returns how many bytes of `text` fit into `columns` columns of a terminal. The text must be
 * escaped UTF-8. */
size_t rp_text_fit(const char *text, size_t size, size_t columns);

/* Returns the number of columns that a terminal needs for `text`, which is its number of
 * characters. The text must be escaped UTF-8. */
size_t rp_text_columns(const char *text, size_t size);

/* A grid: text in rows and columns. The caller adds the cells row by row. rp_grid_write() then
 * makes each column as wide as its widest cell, with two spaces between columns. */
enum { RP_GRID_COLUMNS = 16 };
typedef struct rp_grid {
    rp_text_buffer cells; /* texts of all cells, each zero-terminated */
    size_t columns, cell_count;
    uint32_t right; /* bit i is set if column i is aligned to the right */
} rp_grid;

void rp_grid_init(rp_grid *grid, size_t columns, uint32_t right);
void rp_grid_deinit(rp_grid *grid);
void rp_grid_cell(rp_grid *grid, const char *format, ...) RP_PRINTF(2, 3);
void rp_grid_write(const rp_grid *grid, rp_text_buffer *out);

/* Functions that append JSON. The caller must call them in the order of the JSON text. Each
 * call puts a comma before its text if one is needed. In strings, bytes that are not UTF-8
 * become U+FFFD. */
void rp_json_open(rp_text_buffer *buffer, char bracket);
void rp_json_close(rp_text_buffer *buffer, char bracket);
void rp_json_key(rp_text_buffer *buffer, const char *key);
void rp_json_put_string(rp_text_buffer *buffer, const char *text, size_t size);
void rp_json_put_text(rp_text_buffer *buffer,
                      const char *text); /* zero-terminated; NULL is written as null */
void rp_json_put_raw(rp_text_buffer *buffer, const char *text); /* `text` is a JSON value */
/* Appends a string in quotes, never with a comma before it. */
void rp_json_put_quote(rp_text_buffer *buffer, const char *text, size_t size);
void rp_json_put_integer(rp_text_buffer *buffer, int64_t value);
void rp_json_put_unsigned(rp_text_buffer *buffer, uint64_t value);
/* Appends the shortest number that parses to `value`. NaN and infinities become strings. */
void rp_json_put_number(rp_text_buffer *buffer, double value);
void rp_json_put_boolean(rp_text_buffer *buffer, bool value);

#endif
