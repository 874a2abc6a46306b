/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a command that is started, or written to a file. */
#ifndef RP_CLI_TEXT_ARGUMENT_LIST_H
#define RP_CLI_TEXT_ARGUMENT_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "reprise/status.h"

/* Zero-initialise it. */
typedef struct rp_argument_list {
    char **list; /* ends with NULL, as execv() wants it; NULL before the first argument */
    size_t count;
    bool failed; /* there was no memory for an argument */
} rp_argument_list;

void rp_argument_list_add(rp_argument_list *arguments, const char *format, ...) RP_PRINTF(2, 3);
void rp_argument_list_deinit(rp_argument_list *arguments);

#endif
