/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out how much memory this process is allowed to use. */
#ifndef RP_CLI_SERVE_MEMORY_SIZE_H
#define RP_CLI_SERVE_MEMORY_SIZE_H

#include <stdint.h>

/* Returns a number of bytes: the smallest of the machine's memory and the limits of the
 * process's control groups (version 1 or 2), or 0 if none of them can be read. Callers pass ""
 * for `root`. Tests pass a folder that replaces /; the machine's memory is then ignored. */
uint64_t rp_memory_size(const char *root);

#endif
