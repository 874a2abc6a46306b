/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the servers that could not be reached while calls to all shards were made. */
#ifndef RP_CLI_COMMANDS_LEFT_OUT_H
#define RP_CLI_COMMANDS_LEFT_OUT_H

#include "cli/text/info_print.h"

enum { RP_LISTED_SHARDS = 256 };

/* The caller makes calls between begin and end. After the end, `list` has the servers that at
 * least one of these calls left out; it is NULL if there are none, or no memory for them.
 * Zero-initialise it. */
typedef struct rp_left_out {
    uint64_t before[RP_LISTED_SHARDS];
    rp_unreachable *list; /* owned */
    size_t count;
} rp_left_out;

void rp_left_out_begin(rp_left_out *left_out, rp_client *client);
void rp_left_out_end(rp_left_out *left_out, rp_client *client);
void rp_left_out_deinit(rp_left_out *left_out);

/* Writes the address of a shard and why it cannot be reached now. Returns the number of calls
 * that have left the shard out. */
uint64_t rp_unreachable_set(rp_unreachable *unreachable, rp_client *client, size_t shard);

#endif
