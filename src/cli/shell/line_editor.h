/* SPDX-License-Identifier: Apache-2.0 */
/* The line editor of `reprise shell`: handles the bytes that a terminal in raw mode sends, and
 * draws the edited line. The editor does no I/O itself, so tests can feed keys.
 *
 * The keys work as in readline's Emacs mode: arrows, Home, End, Delete, Ctrl-A B D E F K N P R
 * T U W Y, Alt-B D F, Tab.
 *
 * Invariants:
 *   E1  cursor <= size < RP_EDIT_BYTES, and text[size] is the terminating zero byte;
 *   E2  place <= history->count. They are equal while no line of the history is shown. */
#ifndef RP_CLI_SHELL_LINE_EDITOR_H
#define RP_CLI_SHELL_LINE_EDITOR_H

#include "cli/shell/line_history.h"
#include "cli/text/text_buffer.h"

enum { RP_EDIT_BYTES = RP_HISTORY_LINE_BYTES, RP_SEARCH_BYTES = 64 };

/* What the caller has to do after a byte. */
typedef enum rp_edit {
    RP_EDIT_MORE,     /* read the next byte */
    RP_EDIT_LINE,     /* Enter: `text` is the complete line */
    RP_EDIT_CANCEL,   /* Ctrl-C: drop the line */
    RP_EDIT_END,      /* Ctrl-D on an empty line: end the session */
    RP_EDIT_COMPLETE, /* Tab: complete the word before the cursor */
    RP_EDIT_CLEAR,    /* Ctrl-L: clear the screen */
} rp_edit;

typedef struct rp_line_editor {
    char text[RP_EDIT_BYTES];
    size_t size, cursor; /* length of `text`, and offset of the cursor, in bytes */
    const rp_line_history *history;
    size_t place;               /* index of the history's line that is shown */
    char draft[RP_EDIT_BYTES];  /* the user's own line, while a line of the history is shown */
    char killed[RP_EDIT_BYTES]; /* text that was cut last, for Ctrl-Y */
    char keys[16];              /* the received bytes of an incomplete escape sequence */
    size_t key_count;
    bool searching;                /* a search that Ctrl-R began is in progress */
    char pattern[RP_SEARCH_BYTES]; /* text that the search looks for */
} rp_line_editor;

/* Starts an empty line. Ctrl-Y can still insert text that was cut from an earlier line. Borrows
 * the history. */
void rp_line_editor_start(rp_line_editor *editor, const rp_line_history *history);

/* Handles one byte of input. */
rp_edit rp_line_editor_feed(rp_line_editor *editor, unsigned char byte);

/* Replaces the bytes from offset `from` to the cursor with `text`, as a completion does. Does
 * nothing if the line would become too long. */
void rp_line_editor_replace(rp_line_editor *editor, size_t from, const char *text);

/* Writes what a screen of `width` columns must show: the prompt, and the part of the line
 * around the cursor. Sets `*column` to the screen column of the cursor. */
void rp_line_editor_draw(const rp_line_editor *editor, const char *prompt, size_t width,
                         rp_text_buffer *out, size_t *column);

#endif
