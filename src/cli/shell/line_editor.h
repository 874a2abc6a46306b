/* SPDX-License-Identifier: Apache-2.0 */
/* Edits a line: takes the bytes that a terminal in raw mode sends, and draws one line of the
 * screen. Without I/O, so that tests can type.
 *
 * Keys are those of readline's Emacs mode: arrows, Home, End, Delete, Ctrl-A B D E F K N P R T
 * U W Y, Alt-B D F, Tab.
 *
 * Invariants:
 *   E1  cursor <= size < RP_EDIT_BYTES, and text[size] is the terminator;
 *   E2  place <= history->count; it is the count unless a line of the history is shown. */
#ifndef RP_CLI_SHELL_LINE_EDITOR_H
#define RP_CLI_SHELL_LINE_EDITOR_H

#include "cli/shell/line_history.h"
#include "cli/text/text_buffer.h"

enum { RP_EDIT_BYTES = RP_HISTORY_LINE_BYTES, RP_SEARCH_BYTES = 64 };

typedef enum rp_edit {
    RP_EDIT_MORE,     /* go on */
    RP_EDIT_LINE,     /* Enter: `text` is complete */
    RP_EDIT_CANCEL,   /* Ctrl-C */
    RP_EDIT_END,      /* Ctrl-D on an empty line */
    RP_EDIT_COMPLETE, /* Tab */
    RP_EDIT_CLEAR,    /* Ctrl-L: clear the screen */
} rp_edit;

typedef struct rp_line_editor {
    char text[RP_EDIT_BYTES];
    size_t size, cursor; /* bytes */
    const rp_line_history *history;
    size_t place;               /* in the history */
    char draft[RP_EDIT_BYTES];  /* the line before the history was entered */
    char killed[RP_EDIT_BYTES]; /* for Ctrl-Y */
    char keys[16];              /* an escape sequence that is not complete */
    size_t key_count;
    bool searching; /* Ctrl-R */
    char pattern[RP_SEARCH_BYTES];
} rp_line_editor;

/* Starts a new line. The text that was killed stays. Borrows the history. */
void rp_line_editor_start(rp_line_editor *editor, const rp_line_history *history);

/* Handles a byte. */
rp_edit rp_line_editor_feed(rp_line_editor *editor, unsigned char byte);

/* Replaces the bytes from `from` to the cursor, for a completion. Does nothing if the text does
 * not fit into the line. */
void rp_line_editor_replace(rp_line_editor *editor, size_t from, const char *text);

/* Writes what `width` columns show: the prompt, and the part of the line around the cursor.
 * `*column` becomes that of the cursor. */
void rp_line_editor_draw(const rp_line_editor *editor, const char *prompt, size_t width,
                         rp_text_buffer *out, size_t *column);

#endif
