/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may have. */
#ifndef RP_CLI_SERVE_MEMORY_SIZE_H
#define RP_CLI_SERVE_MEMORY_SIZE_H

#include <stdint.h>

/* The machine's memory, or what the control groups of this process (version 1 or 2) allow of
 * it, whichever is less; 0 if nothing can be found out. `root` is "", or a folder that stands
 * in for / in tests (then the machine's own memory is not looked at). */
uint64_t rp_memory_size(const char *root);

#endif
