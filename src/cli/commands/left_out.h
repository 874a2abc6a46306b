/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the servers (shards) that a command could not reach: a call to all servers leaves out
 * those that cannot be reached. */
#ifndef RP_CLI_COMMANDS_LEFT_OUT_H
#define RP_CLI_COMMANDS_LEFT_OUT_H

#include "cli/text/info_print.h"

enum { RP_LISTED_SHARDS = 256 };

/* Usage: call rp_left_out_begin(), make calls with the client, then call rp_left_out_end().
 * After that, `list` contains each server that at least one of the client's calls left out. The
 * list is NULL if there is no such server, or if memory ran out. The owner must zero-initialise
 * the struct. */
typedef struct rp_left_out {
    uint64_t before[RP_LISTED_SHARDS]; /* for each shard, the number of calls that had left it
                                          out when rp_left_out_begin() was called */
    rp_unreachable *list;              /* owned */
    size_t count;
} rp_left_out;

void rp_left_out_begin(rp_left_out *left_out, rp_client *client);
void rp_left_out_end(rp_left_out *left_out, rp_client *client);
void rp_left_out_deinit(rp_left_out *left_out);

/* Fills `unreachable` with the address of a shard and the reason why it cannot be reached now.
 * Returns the number of calls so far that have left the shard out. */
uint64_t rp_unreachable_set(rp_unreachable *unreachable, rp_client *client, size_t shard);

#endif
