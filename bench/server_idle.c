/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes are the same on all connections. They are made once with nghttp2 and sent by
 * write(). So the client side of a connection is only a file descriptor. */
#include "server_idle.h"

#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"
#include "h2_load.h"
#include "h2_load_stream.h"

enum { SPARE_FILES = 64 };

void server_idle_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static size_t affordable(size_t connections)
{
    struct rlimit limit;
    size_t files = connections + SPARE_FILES;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < files) files = limit.rlim_cur;
    return files - SPARE_FILES;
}

static void pause_seconds(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};

    t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
    nanosleep(&t, NULL);
}

/* Waits until the server's memory has not grown for a while. Returns its size. */
static double settled_memory(const server_process *process)
{
    size_t before = 0, now = server_process_memory(process);

    for (int i = 0; i < 20 && before != now; i++) {
        pause_seconds(0.2);
        before = now;
        now = server_process_memory(process);
    }
    return (double)now;
}

server_idle server_idle_measure(const server_process *process, size_t connections,
                                bool with_call, double seconds)
{
    server_idle idle = {.connections = affordable(connections)};
    int *sockets = bench_array(idle.connections, sizeof *sockets);
    double memory = settled_memory(process), cpu, started;
    h2_bytes opening = {0};

    h2_stream_opening(&opening, with_call);
    for (size_t i = 0; i < idle.connections; i++) {
        sockets[i] = h2_load_connect(process->port);
        if (write(sockets[i], opening.data, opening.size) != (ssize_t)opening.size)
            bench_check(RP_UNAVAILABLE, NULL);
    }
    idle.bytes = (settled_memory(process) - memory) / (double)idle.connections;
    cpu = server_process_cpu(process);
    started = bench_seconds();
    pause_seconds(seconds);
    idle.cpu = (server_process_cpu(process) - cpu) / (bench_seconds() - started);
    for (size_t i = 0; i < idle.connections; i++) {
        char byte[64];
        if (read(sockets[i], byte, sizeof byte) <= 0) { /* settings, if it is open */
            fprintf(stderr, "the server closed an idle connection\n");
            exit(1);
        }
        close(sockets[i]);
    }
    free(sockets);
    h2_bytes_deinit(&opening);
    return idle;
}
