/* SPDX-License-Identifier: Apache-2.0 */
/* How fast does Ape-X DQN run, its parts as threads of one process? For apex.py, which runs the
 * same agent written with PyTorch and TorchRL.
 *
 *     bench_apex cartpole ACTORS COPIES SECONDS         64-64, batch 64, one update for 4 steps
 *     bench_apex bricks ACTORS COPIES SECONDS           Atari network, batch 32, one for 4 steps
 *     bench_apex act-cartpole ACTORS COPIES SECONDS     actors and replay only: no updates
 *     ... --share                                       and where the processor time goes
 *
 * Prints one line: steps (inserts), updates, wall seconds, processor seconds, and the replay's
 * share of the processor time (nan without --share). The clock starts after 20 updates.
 *
 * The share is measured by a timer that interrupts the process each millisecond of processor
 * time: a stack with a frame in libreprise.so is the replay's, server and client; all other
 * code is in libreprise-rl.so, the C library and this program. */
#include "bench.h"

#include <execinfo.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "reprise/rl/apex.h"
#include "reprise/rl/dqn.h"

enum { MOST_ACTORS = 64, MOST_FRAMES = 48, TICK_US = 1000, LOOK_MS = 20 };

/* The code of libreprise.so. */
static uintptr_t replay_low, replay_high;
static atomic_ullong ticks, replay_ticks;

static void on_tick(int number)
{
    void *frames[MOST_FRAMES];
    int count = backtrace(frames, MOST_FRAMES), i = 0;

    (void)number;
    while (i < count &&
           ((uintptr_t)frames[i] < replay_low || (uintptr_t)frames[i] >= replay_high))
        i++;
    atomic_fetch_add(&ticks, 1);
    if (i < count) atomic_fetch_add(&replay_ticks, 1);
}

static void find_replay(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long long low, high;

        if (strstr(line, "/libreprise.so") == NULL || strstr(line, " r-xp ") == NULL) continue;
        if (sscanf(line, "%llx-%llx", &low, &high) != 2) continue;
        replay_low = (uintptr_t)low;
        replay_high = (uintptr_t)high;
    }
    if (maps != NULL) (void)fclose(maps);
    if (replay_low != 0) return;
    (void)fprintf(stderr, "libreprise.so is not there\n");
    exit(EXIT_FAILURE);
}

static void start_ticks(void)
{
    const struct itimerval each = {{0, TICK_US}, {0, TICK_US}};
    const struct sigaction act = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    void *warm[MOST_FRAMES];

    find_replay();
    (void)backtrace(warm, MOST_FRAMES); /* loads what it needs, which a handler must not */
    (void)sigaction(SIGPROF, &act, NULL);
    (void)setitimer(ITIMER_PROF, &each, NULL);
}

static double cpu_seconds(void)
{
    struct rusage used;

    (void)getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Of the table "replay", since it was made. */
typedef struct counts {
    int64_t inserts, samples;
} counts;

static counts look(rp_client *client)
{
    rp_client_tables *list = NULL;
    rp_error err;
    counts c = {0};

    bench_check(rp_client_get_tables(client, rp_wait_forever(), &list, &err), &err);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->tables[i].info.name, "replay") != 0) continue;
        c.inserts = list->tables[i].info.inserts;
        c.samples = list->tables[i].info.samples;
    }
    rp_client_tables_free(list);
    return c;
}

static void wait(rp_apex *apex)
{
    rp_error err;
    bool done;

    bench_check(rp_apex_wait(apex, LOOK_MS, &done, &err), &err);
}

static rp_dqn_settings choose(const char *task, int64_t copies)
{
    rp_dqn_settings s;

    rp_dqn_settings_init(&s, NULL);
    s.copies = copies;
    s.batch = 64; /* 16 samples an insert */
    s.steps_per_update = 4;
    s.hidden = 64;
    s.capacity = 100000;
    if (strcmp(task, "bricks") == 0) {
        s.batch = 32; /* 8 samples an insert */
        s.hidden = 512;
        s.layers = 1;
        s.capacity = 20000;
    } else if (strcmp(task, "act-cartpole") == 0) {
        s.start = s.capacity; /* the limiter permits no sample, and any insert */
        s.steps_per_update = 1000000;
    }
    return s;
}

int main(int argc, char **argv)
{
    const char *task = argc > 4 ? argv[1] : "";
    int64_t actors = argc > 4 ? strtol(argv[2], NULL, 10) : 0;
    bool is_acting = strncmp(task, "act-", 4) == 0;
    bool has_share = argc > 5 && strcmp(argv[5], "--share") == 0;
    rp_dqn_settings settings = choose(task, argc > 4 ? strtol(argv[3], NULL, 10) : 1);
    double seconds = argc > 4 ? strtod(argv[4], NULL) : 0, began, cpu;
    rp_apex_options options = {.algorithm = rp_apex_dqn(),
                               .settings = &settings,
                               .env_class = rp_env_find(is_acting ? task + 4 : task),
                               .actors = actors,
                               .seed = 1};
    const int64_t warm_up = 20 * settings.batch; /* samples before the clock starts */
    rp_store *store = NULL;
    rp_apex *apex = NULL;
    rp_error err;
    counts first, last;

    if (options.env_class == NULL || actors < 1 || actors > MOST_ACTORS) {
        (void)fprintf(stderr, "usage: see the top of bench/apex.c\n");
        return 2;
    }
    bench_check(rp_store_new(NULL, &store, &err), &err);
    bench_check(rp_client_local(store, NULL, &options.client, &err), &err);
    bench_check(rp_apex_new(NULL, &options, &apex, &err), &err);
    bench_check(rp_apex_start(apex, RP_APEX_LEARNER, 0, &err), &err);
    for (int64_t i = 0; i < actors; i++)
        bench_check(rp_apex_start(apex, RP_APEX_ACTOR, i, &err), &err);
    do {
        wait(apex);
        first = look(options.client);
    } while (is_acting ? first.inserts == 0 : first.samples < warm_up);
    began = bench_seconds();
    cpu = cpu_seconds();
    if (has_share) start_ticks();
    while (bench_seconds() - began < seconds) wait(apex);
    last = look(options.client);
    cpu = cpu_seconds() - cpu;
    began = bench_seconds() - began;
    if (has_share)
        (void)setitimer(ITIMER_PROF, &(const struct itimerval){{0, 0}, {0, 0}}, NULL);
    printf("%lld %lld %.3f %.3f %.4f\n", (long long)(last.inserts - first.inserts),
           (long long)((last.samples - first.samples) / settings.batch), began, cpu,
           has_share ? (double)replay_ticks / (double)ticks : (double)NAN);
    rp_apex_free(apex);
    rp_client_free(options.client);
    rp_store_free(store);
    return 0;
}
