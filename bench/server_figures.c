/* SPDX-License-Identifier: Apache-2.0 */
#include "server_figures.h"

#include "bench.h"
#include "h2_load.h"
#include "server_ours.h"
#include "server_process.h"

enum { BYTES = 512 << 20 };

static const size_t client_counts[] = {1, 2, 5, 10, 25, 50, 100, 150, 200};
enum { CLIENT_COUNTS = sizeof client_counts / sizeof client_counts[0] };

typedef struct plan {
    server_cpus cpus;
    double seconds;
} plan;

static server_process start(const plan *p, size_t tables, size_t payload)
{
    server_ours_options options = {
        .table_count = tables,
        .max_size = (int64_t)(BYTES / payload),
        .loops = p->cpus.serve_count,
    };
    server_process process;

    server_process_start(&process, &p->cpus, server_ours_start, &options);
    return process;
}

static h2_load_options load_of(const plan *p, const server_process *process, h2_kind kind,
                               size_t payload, size_t tables)
{
    return (h2_load_options){
        .port = process->port,
        .kind = kind,
        .payload_bytes = payload,
        .table_count = tables,
        .connections = 1,
        .threads = p->cpus.load_count,
        .cpus = &p->cpus.load,
        .seconds = p->seconds,
        .warm_seconds = p->seconds / 4,
        .server_cpu = process->cpu,
    };
}

/* Returns the best of three runs, or the first that no other program disturbs. */
static h2_load_result quiet_run(const h2_load_options *options)
{
    h2_load_result best = {0};

    for (int i = 0; i < 3; i++) {
        h2_load_result r = h2_load_run(options);
        if (i == 0 || (double)r.items / r.seconds > (double)best.items / best.seconds) best = r;
        if (r.others < 0.15) break;
    }
    return best;
}

/* Measures one curve: a kind of load, a payload and a number of tables, for all numbers of
 * clients. */
static void curve(const plan *p, int figure, h2_kind kind, size_t payload, size_t tables)
{
    server_process process = start(p, tables, payload);
    h2_load_options options = load_of(p, &process, H2_INSERT, payload, tables);

    options.connections = 4;
    options.item_limit = BYTES / payload;
    h2_load_run(&options); /* fills the table */
    options = load_of(p, &process, kind, payload, tables);
    for (size_t i = 0; i < CLIENT_COUNTS; i++) {
        options.connections = client_counts[i];
        h2_load_result r = quiet_run(&options);
        double rate = (double)r.items / r.seconds;
        printf("%d,%s,%zu,%zu,%zu,%.0f,%.0f,%.4f\n", figure,
               kind == H2_INSERT ? "insert" : "sample", payload, tables, client_counts[i], rate,
               rate * (double)payload, r.server_cpu / ((double)r.items + 1) * 1e6);
    }
    server_process_stop(&process);
}

int server_figures(bool quick)
{
    static const size_t payloads[] = {400, 4000, 40000, 400000};
    plan p = {.cpus = server_cpus_get(), .seconds = quick ? 0.2 : 1};

    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("figure,kind,payload_bytes,tables,clients,items_per_s,bytes_per_s,server_cpu_us\n");
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        curve(&p, 5, H2_INSERT, payloads[i], 1);
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++)
        curve(&p, 6, H2_SAMPLE, payloads[i], 1);
    for (size_t tables = 1; tables <= 8; tables *= 2) curve(&p, 7, H2_INSERT, 400, tables);
    return 0;
}
