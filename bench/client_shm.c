/* SPDX-License-Identifier: Apache-2.0 */
/* Compares batches from a server of the same host that are read in its memory with the same
 * batches over TCP.
 *
 * The server is another process and serves one store over both. An item is one row of
 * incompressible bytes. All batches are stacked into the same memory. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "reprise/reprise.h"
#include "reprise/sampler.h"
#include "reprise/trajectory_writer.h"

enum { SIZES = 2, ROUNDS = 5 };

static const struct {
    const char *table, *ratio, *insert;
    size_t bytes, items, batch, batches;
} sizes[SIZES] = {
    {"small", "client.shm.40kB", "client.shm.insert.40kB", 40000, 2000, 256, 120},
    {"large", "client.shm.400kB", "client.shm.insert.400kB", 400000, 400, 64, 60},
};

static char unix_address[96];

static rp_store *make_store(void)
{
    rp_store *store;
    rp_error err;

    bench_check(rp_store_new(NULL, &store, &err), &err);
    for (size_t i = 0; i < SIZES; i++) {
        const rp_table_options options = {
            .name = sizes[i].table,
            .sampler = {.kind = RP_UNIFORM},
            .remover = {.kind = RP_FIFO},
            .limiter = rp_limiter_min_size(1),
            .max_size = (int64_t)sizes[i].items,
        };
        bench_check(rp_store_add_table(store, &options, NULL, &err), &err);
    }
    return store;
}

/* Writes the port to `ready`, then serves until `until` is closed. */
static void serve(int ready, int until, bool shared)
{
    const char *const addresses[] = {"127.0.0.1:0", unix_address};
    const rp_server_options options = {
        .addresses = addresses, .address_count = 2, .shared_memory_off = !shared};
    rp_store *store = make_store();
    rp_server *server;
    rp_error err;
    int port;
    char byte;

    bench_check(rp_server_start(store, &options, &server, &err), &err);
    port = rp_server_port(server);
    if (write(ready, &port, sizeof port) != sizeof port) _exit(1);
    while (read(until, &byte, 1) > 0) continue;
    rp_server_free(server);
    rp_store_free(store);
    _exit(0);
}

typedef struct server_process {
    pid_t pid;
    int until, port;
} server_process;

static int other_until = -1; /* the pipe of the server that was started last */

static server_process start_server(bool shared)
{
    int ready[2], until[2];
    server_process p;

    (void)unlink(unix_address + strlen("unix:"));
    if (pipe(ready) != 0 || pipe(until) != 0) exit(1);
    p.pid = fork();
    if (p.pid == 0) {
        (void)close(until[1]);
        if (other_until >= 0) (void)close(other_until); /* otherwise it never ends */
        serve(ready[1], until[0], shared);
    }
    (void)close(until[0]);
    (void)close(ready[1]);
    p.until = other_until = until[1];
    if (read(ready[0], &p.port, sizeof p.port) != sizeof p.port) exit(1);
    (void)close(ready[0]);
    return p;
}

static void stop_server(server_process p)
{
    if (p.until == other_until) other_until = -1;
    (void)close(p.until);
    (void)waitpid(p.pid, NULL, 0);
}

static rp_client *connect_to(const char *address, bool shared)
{
    const rp_client_options options = {.shared_memory_off = !shared};
    rp_client *client;
    rp_error err;

    bench_check(rp_client_new(address, &options, &client, &err), &err);
    return client;
}

/* Inserts `count` items; returns the seconds it took. */
static double fill(rp_client *client, size_t which, size_t count)
{
    const rp_trajectory_writer_options options = {
        .column = {.history = 1, .chunk_length = 1, .chunk = {.codec = RP_CODEC_NONE}},
        .unchecked = true,
        .max_items = 64,
    };
    uint8_t *row = bench_array(sizes[which].bytes, 1);
    rp_trajectory_writer *writer;
    bench_rng rng = {.state = 3};
    rp_value value = {0};
    double start;
    rp_error err;

    for (size_t i = 0; i < sizes[which].bytes; i++) row[i] = (uint8_t)bench_random(&rng);
    value.tensor.dtype = RP_UINT8;
    value.tensor.shape = (rp_shape){.rank = 1, .dims = {(int64_t)sizes[which].bytes}};
    value.tensor.data = row;
    bench_check(rp_trajectory_writer_new(client, &options, rp_wait_ms(10000), &writer, &err),
                &err);
    start = bench_seconds();
    for (size_t i = 0; i < count; i++) {
        rp_ref ref;
        rp_item_column column = {.refs = &ref, .count = 1, .squeeze = true};
        memcpy(row, &i, sizeof i);
        bench_check(rp_trajectory_writer_append(writer, &value, 1, 0, &ref, &err), &err);
        bench_check(rp_trajectory_writer_create_item(
                        writer, &(rp_new_item){sizes[which].table, 1, &column, 1},
                        rp_wait_ms(30000), NULL, &err),
                    &err);
    }
    bench_check(rp_trajectory_writer_flush(writer, 0, rp_wait_ms(30000), &err), &err);
    start = bench_seconds() - start;
    rp_trajectory_writer_free(writer);
    free(row);
    return start;
}

static rp_sampler *open_sampler(rp_client *client, size_t which)
{
    const rp_sampler_options options = {
        .table = sizes[which].table,
        .max_in_flight = 2 * sizes[which].batch,
        .rate_limiter_timeout_ms = -1,
    };
    rp_sampler *sampler;
    rp_error err;

    bench_check(rp_sampler_new(client, &options, &sampler, &err), &err);
    return sampler;
}

static void take_batches(rp_sampler *sampler, size_t which, size_t count, void *memory,
                         bench_best *best)
{
    const size_t bytes = sizes[which].bytes * sizes[which].batch;
    double start = bench_seconds();
    rp_error err;

    for (size_t i = 0; i < count; i++) {
        rp_batch *batch;
        bench_check(rp_sampler_batch(sampler, sizes[which].batch, RP_RAGGED_REFUSE, true,
                                     rp_wait_ms(30000), &batch, &err),
                    &err);
        bench_check(rp_batch_decode(batch, &memory, &bytes, &err), &err);
        rp_batch_free(batch);
    }
    if (best != NULL) bench_keep(best, start);
}

static void compare_samples(rp_client *tcp, rp_client *local, size_t which, bool quick)
{
    size_t count = quick ? 4 : sizes[which].batches;
    void *memory = bench_array(sizes[which].batch, sizes[which].bytes);
    rp_sampler *samplers[2] = {open_sampler(local, which), open_sampler(tcp, which)};
    bench_best best[2] = {{0}, {0}};

    for (int i = 0; i < 2; i++) take_batches(samplers[i], which, 4, memory, NULL);
    for (int round = 0; round < (quick ? 2 : ROUNDS); round++)
        for (int i = 0; i < 2; i++) take_batches(samplers[i], which, count, memory, &best[i]);
    for (int i = 0; i < 2; i++) rp_sampler_free(samplers[i]);
    bench_ratio(
        sizes[which].ratio,
        (double)(count * sizes[which].batch * sizes[which].bytes) / best[0].seconds, "TCP",
        (double)(count * sizes[which].batch * sizes[which].bytes) / best[1].seconds, "B/s");
    free(memory);
}

/* Measures how much slower inserts are if their chunks are in shared memory. */
static void compare_inserts(size_t which, bool quick)
{
    bench_best best[2] = {{0}, {0}};
    size_t count = sizes[which].items;
    server_process servers[2];
    rp_client *clients[2];

    for (int shared = 0; shared < 2; shared++) {
        char address[64];

        servers[shared] = start_server(shared != 0);
        snprintf(address, sizeof address, "127.0.0.1:%d", servers[shared].port);
        clients[shared] = connect_to(address, false);
        printf("# %s, %s memory: the table fills at %.3g GB/s\n", sizes[which].table,
               shared != 0 ? "shared" : "ordinary",
               (double)(count * sizes[which].bytes) * 1e-9 /
                   fill(clients[shared], which, count));
    }
    for (int round = 0; round < (quick ? 2 : 7); round++)
        for (int shared = 0; shared < 2; shared++)
            bench_keep_seconds(&best[shared], fill(clients[shared], which, count));
    for (int shared = 0; shared < 2; shared++) {
        rp_client_free(clients[shared]);
        stop_server(servers[shared]);
    }
    bench_ratio_time(sizes[which].insert, best[1], "ordinary memory", best[0], count);
}

int main(int argc, char **argv)
{
    bench_options options = bench_parse(argc, argv, "shared memory against TCP");
    server_process server;
    rp_client *tcp, *local;
    char address[64];

    snprintf(unix_address, sizeof unix_address, "unix:/tmp/reprise-bench-%d.sock",
             (int)getpid());
    server = start_server(true);
    snprintf(address, sizeof address, "127.0.0.1:%d", server.port);
    tcp = connect_to(address, false);
    local = connect_to(unix_address, true);
    for (size_t i = 0; i < SIZES; i++) (void)fill(tcp, i, sizes[i].items);
    for (size_t i = 0; i < SIZES; i++) compare_samples(tcp, local, i, options.quick);
    rp_client_free(tcp);
    rp_client_free(local);
    stop_server(server);
    for (size_t i = 0; i < SIZES; i++) compare_inserts(i, options.quick);
    return 0;
}
