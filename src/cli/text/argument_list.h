/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the arguments of a command, for starting the command or for writing it to a
 * file. */
#ifndef RP_CLI_TEXT_ARGUMENT_LIST_H
#define RP_CLI_TEXT_ARGUMENT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "reprise/status.h"

/* Zero-initialise it. */
typedef struct rp_argument_list {
    char **list; /* ends with NULL, as execv() requires. NULL while the list is empty */
    size_t count;
    bool failed; /* memory ran out, so an argument is missing */
} rp_argument_list;

/* Appends the formatted text as one argument. */
void rp_argument_list_add(rp_argument_list *arguments, const char *format, ...) RP_PRINTF(2, 3);
void rp_argument_list_deinit(rp_argument_list *arguments);

#endif
