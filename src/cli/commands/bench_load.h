/* SPDX-License-Identifier: Apache-2.0 */
/* Generates load for `reprise bench`. Each of several threads has its own client, and inserts
 * or samples as fast as possible. */
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
    size_t payload;                /* size of an item in bytes, a multiple of 4 */
    size_t clients;                /* 1 to RP_LOAD_MAX_CLIENTS */
    int64_t call_ms;               /* timeout of a call; 0: none */
    int64_t warm_ms, measure_ms;   /* warm_ms: time before the measurement; measure_ms: time of
                                      the measurement */
    int64_t most;                  /* the most items to insert; 0: no limit */
    const atomic_int *interrupted; /* the run ends when this is not 0 */
} rp_load_options;

/* Runs the load. Writes to `*items_per_s` how many items per second were confirmed (inserts) or
 * received (samples) during measure_ms. Returns RP_CANCELLED if interrupted, or a status of the
 * client. */
RP_NODISCARD rp_status rp_load_run(const rp_load_options *options, double *items_per_s,
                                   rp_error *err);

#endif
