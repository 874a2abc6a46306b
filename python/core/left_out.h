/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings about shards (servers of one client) that calls have left out. A call to all shards
 * succeeds if one of them responds, so its result does not show that another shard could not be
 * reached. */
#ifndef REPRISE_PYTHON_LEFT_OUT_H
#define REPRISE_PYTHON_LEFT_OUT_H

#include "core.h"

/* The last warning about one shard. */
typedef struct core_left_out {
    uint64_t count;   /* number of calls that had left out the shard at the last warning */
    int64_t next_ns;  /* no warning before this time */
    int64_t pause_ns; /* least time between the last warning and the next; 0: there was no
                         warning */
} core_left_out;

/* Logs a warning for each shard that calls have left out since the last warning. The text
 * contains `call` and `table`, the names of the present method and of its table (NULL: none).
 * The pauses between two warnings about one shard are at least 10 s, 30 s, 90 s, and so on,
 * until the shard has a connection again. If `rare` is true, there are no such pauses. */
int core_say_left_out(core_client *client, const char *call, const char *table, bool rare);

#endif
