/* SPDX-License-Identifier: Apache-2.0 */
/* Generates load through the client library: threads, each with a client, that insert or sample
 * as fast as they can. */
#ifndef RP_CLI_COMMANDS_BENCH_LOAD_H
#define RP_CLI_COMMANDS_BENCH_LOAD_H

#include <stdatomic.h>

#include "reprise/client.h"

enum { RP_LOAD_MAX_CLIENTS = 1000, RP_LOAD_MAX_PAYLOAD = 1 << 26 };

typedef struct rp_load_options {
    const char *addresses;
    const rp_client_options *client;
    bool sample;               /* true: sample; false: insert */
    const char *const *tables; /* client i uses table i modulo table_count */
    size_t table_count;
    size_t payload; /* bytes of an item, a multiple of 4 */
    size_t clients; /* 1 to RP_LOAD_MAX_CLIENTS */
    int64_t warm_ms, measure_ms;
    int64_t most;                  /* items to insert, at most; 0: no limit */
    const atomic_int *interrupted; /* ends the run when not 0 */
} rp_load_options;

/* Runs the load and counts the items confirmed or received within measure_ms. RP_CANCELLED,
 * statuses of the client. */
RP_NODISCARD rp_status rp_load_run(const rp_load_options *options, double *items_per_s,
                                   rp_error *err);

#endif
