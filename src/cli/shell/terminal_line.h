/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a line from a terminal, with the line editor. The terminal is in raw mode only while a
 * line is read. */
#ifndef RP_CLI_SHELL_TERMINAL_LINE_H
#define RP_CLI_SHELL_TERMINAL_LINE_H

#include <signal.h>

#include "cli/shell/line_editor.h"
#include "cli/shell/shell_completion.h"

typedef struct rp_terminal_line {
    rp_line_editor editor;
    const rp_completer *completer;
    const volatile sig_atomic_t *stop; /* set by a signal: the line ends */
    unsigned char keys[256];           /* typed ahead: bytes after the end of the line */
    size_t key_count, key_at;
} rp_terminal_line;

/* Reads a line into editor.text. Returns RP_EDIT_LINE, RP_EDIT_CANCEL, or RP_EDIT_END, also if
 * the terminal is gone. */
rp_edit rp_terminal_line_read(rp_terminal_line *line, const char *prompt,
                              const rp_line_history *history);

#endif
