/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about shards that calls have left out. A call to all shards succeeds if one of them
 * responds, so its result alone does not say that another one is away. */
#ifndef REPRISE_PYTHON_LEFT_OUT_H
#define REPRISE_PYTHON_LEFT_OUT_H

#include "core.h"

/* What was said about one shard. */
typedef struct core_left_out {
    uint64_t count;   /* calls that had left it out by the last look */
    int64_t next_ns;  /* no warning before this time */
    int64_t pause_ns; /* between the last warning and the next one; 0: there was none */
} core_left_out;

/* Logs each shard that a call has left out since the last look, with the name of the call and
 * of its table (NULL: none). If the call is not `rare`, warnings for one shard come at most
 * after 10 s, 30 s, 90 s, and so on, until it has a connection again. */
int core_say_left_out(core_client *client, const char *call, const char *table, bool rare);

#endif
