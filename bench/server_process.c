/* SPDX-License-Identifier: Apache-2.0 */
#include "server_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

server_cpus server_cpus_get(void)
{
    server_cpus cpus = {0};
    cpu_set_t all;
    size_t count, seen = 0;

    if (sched_getaffinity(0, sizeof all, &all) != 0) CPU_SET(0, &all);
    count = (size_t)CPU_COUNT(&all);
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &all)) continue;
        if (seen < count - count / 2) CPU_SET(i, &cpus.serve);
        if (seen >= count - count / 2 || count == 1) CPU_SET(i, &cpus.load);
        seen++;
    }
    cpus.serve_count = (size_t)CPU_COUNT(&cpus.serve);
    cpus.load_count = (size_t)CPU_COUNT(&cpus.load);
    return cpus;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void be_server(const server_cpus *cpus, int tell, int (*start)(const void *),
                      const void *arg)
{
    int port;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_setaffinity(0, sizeof cpus->serve, &cpus->serve);
    port = start(arg);
    if (write(tell, &port, sizeof port) != sizeof port) _exit(1);
    close(tell);
    for (;;) pause();
}

void server_process_start(server_process *process, const server_cpus *cpus,
                          int (*start)(const void *arg), const void *arg)
{
    int tell[2];

    fflush(stdout);
    if (pipe(tell) != 0) fail("pipe");
    process->pid = fork();
    if (process->pid < 0) fail("fork");
    if (process->pid == 0) {
        close(tell[0]);
        be_server(cpus, tell[1], start, arg);
    }
    close(tell[1]);
    if (read(tell[0], &process->port, sizeof process->port) != sizeof process->port)
        fail("the server did not start");
    close(tell[0]);
    if (clock_getcpuclockid(process->pid, &process->cpu) != 0) fail("clock_getcpuclockid");
}

void server_process_stop(server_process *process)
{
    kill(process->pid, SIGKILL);
    waitpid(process->pid, NULL, 0);
}

size_t server_process_memory(const server_process *process)
{
    unsigned long long total, resident = 0;
    char path[64];
    FILE *file;

    snprintf(path, sizeof path, "/proc/%d/statm", (int)process->pid);
    file = fopen(path, "r");
    if (file == NULL || fscanf(file, "%llu %llu", &total, &resident) != 2) fail(path);
    fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

double server_process_cpu(const server_process *process)
{
    struct timespec t;

    if (clock_gettime(process->cpu, &t) != 0) return 0;
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double server_machine_cpu(void)
{
    unsigned long long ticks[8] = {0}; /* user nice system idle iowait irq softirq steal */
    FILE *file = fopen("/proc/stat", "r");
    double busy = 0;

    if (file == NULL) return 0;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
               &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) == 8)
        for (size_t i = 0; i < 8; i++)
            if (i != 3 && i != 4) busy += (double)ticks[i];
    fclose(file);
    return busy / (double)sysconf(_SC_CLK_TCK);
}
