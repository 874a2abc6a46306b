/* SPDX-License-Identifier: Apache-2.0 */
/* The memory limit of this process. */
#ifndef RP_CLI_SERVE_MEMORY_SIZE_H
#define RP_CLI_SERVE_MEMORY_SIZE_H

#include <stdint.h>

/* Returns the smaller of the machine's memory and the limits of the process's control groups
 * (version 1 or 2); 0 if neither can be read. Pass "" for `root`. Tests pass a folder that
 * replaces /; then the machine's memory is ignored. */
uint64_t rp_memory_size(const char *root);

#endif
