/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a line from a terminal with the line editor (line_editor.h). The terminal is in raw
 * mode only during the call. */
#ifndef RP_CLI_SHELL_TERMINAL_LINE_H
#define RP_CLI_SHELL_TERMINAL_LINE_H

#include <signal.h>

#include "cli/shell/line_editor.h"
#include "cli/shell/shell_completion.h"

typedef struct rp_terminal_line {
    rp_line_editor editor;
    const rp_completer *completer;
    const volatile sig_atomic_t *stop; /* a signal handler sets it to a number other than 0 to
                                          end rp_terminal_line_read() */
    unsigned char keys[256];  /* bytes that the user typed after the end of the line; the next
                                 line begins with them */
    size_t key_count, key_at; /* number of these bytes; index of the next one */
} rp_terminal_line;

/* Reads a line into editor.text. Returns RP_EDIT_LINE, RP_EDIT_CANCEL or RP_EDIT_END. Also
 * returns RP_EDIT_END if the terminal has been closed. */
rp_edit rp_terminal_line_read(rp_terminal_line *line, const char *prompt,
                              const rp_line_history *history);

#endif
