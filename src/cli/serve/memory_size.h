/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how much memory this process is allowed to use. */
#ifndef RP_CLI_SERVE_MEMORY_SIZE_H
#define RP_CLI_SERVE_MEMORY_SIZE_H

#include <stdint.h>

/* Returns a number of bytes: the machine's memory, or the smallest limit of the process's
 * control groups (version 1 or 2) if that is smaller. Returns 0 if none of these can be read.
 * Callers pass "" for `root`. Tests pass a folder that replaces /; the machine's memory is then
 * ignored. */
uint64_t rp_memory_size(const char *root);

#endif
