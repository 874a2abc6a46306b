/* SPDX-License-Identifier: Apache-2.0 */
#include "server_ours.h"

#include "bench.h"
#include "reprise/server.h"

static rp_store *new_store(const server_ours_options *o)
{
    rp_store_options options = {.seed = 1};
    rp_store *store;
    rp_error error;

    bench_check(rp_store_new(&options, &store, &error), &error);
    for (size_t i = 0; i < o->table_count; i++) {
        char name[24];
        rp_table_options table = {
            .name = name,
            .sampler = {RP_UNIFORM, 0},
            .remover = {RP_FIFO, 0},
            .limiter = rp_limiter_min_size(1),
            .max_size = o->max_size / (int64_t)o->table_count,
        };
        snprintf(name, sizeof name, "t%zu", i);
        bench_check(rp_store_add_table(store, &table, NULL, &error), &error);
    }
    return store;
}

int server_ours_start(const void *options)
{
    const server_ours_options *o = options;
    char address[32];
    const char *addresses[] = {address};
    rp_server_options server_options = {
        .addresses = addresses,
        .address_count = 1,
        .loops = o->loops,
        .limits = {.connections = 20000},
    };
    rp_server *server;
    rp_error error;

    snprintf(address, sizeof address, "127.0.0.1:%d", o->port);
    bench_check(rp_server_start(new_store(o), &server_options, &server, &error), &error);
    return rp_server_port(server);
}
