/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for all benchmarks: a clock, options, random numbers, and the printing of ratios.
 *
 * A benchmark compares two ways of doing the same work within one run: ours and that of a peer,
 * which is another implementation. The two run alternately, so that other load on the machine
 * affects both. The result of each is its shortest time, since other load only adds time. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "reprise/status.h"

typedef struct bench_options {
    bool quick;
} bench_options;

static inline bench_options bench_parse(int argc, char **argv, const char *what)
{
    bench_options options = {.quick = false};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            options.quick = true;
        } else {
            bool help = strcmp(argv[i], "--help") == 0;
            fprintf(help ? stdout : stderr, "%s: %s\nusage: %s [--quick]\n", argv[0], what,
                    argv[0]);
            exit(help ? 0 : 2);
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# %s%s\n", what, options.quick ? " (quick)" : "");
    return options;
}

static inline double bench_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The shortest time so far of one side of a comparison. Zero-initialise it. */
typedef struct bench_best {
    double seconds;
} bench_best;

static inline void bench_keep_seconds(bench_best *best, double seconds)
{
    if (best->seconds == 0 || seconds < best->seconds) best->seconds = seconds;
}

/* Keeps the time from `started` until now if it is the shortest so far. */
static inline void bench_keep(bench_best *best, double started)
{
    bench_keep_seconds(best, bench_seconds() - started);
}

/* Returns the nanoseconds per operation. `count` is the number of operations that were done in
 * `best.seconds`. */
static inline double bench_ns(bench_best best, size_t count)
{
    return best.seconds * 1e9 / (double)count;
}

static inline void *bench_memory(void *ptr)
{
    if (ptr != NULL) return ptr;
    fprintf(stderr, "out of memory\n");
    exit(1);
}

static inline void *bench_array(size_t count, size_t size)
{
    return bench_memory(calloc(count, size));
}

static inline void bench_check(rp_status status, const rp_error *error)
{
    if (status == RP_OK) return;
    fprintf(stderr, "%s: %s\n", rp_status_name(status), error != NULL ? error->text : "");
    exit(1);
}

typedef struct bench_text {
    char text[48];
} bench_text;

/* For qsort() of doubles. */
static inline int bench_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Formats a number with its unit, scaled: 39.1 M/s. */
static inline bench_text bench_scaled(double value, const char *unit)
{
    static const struct {
        double size;
        const char *letter;
    } steps[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    bench_text out;

    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (value < steps[i].size) continue;
        snprintf(out.text, sizeof out.text, "%.3g %s%s", value / steps[i].size, steps[i].letter,
                 unit);
        return out;
    }
    snprintf(out.text, sizeof out.text, "%.3g %s", value, unit);
    return out;
}

/* Prints "ratio <name> <value> (ours <x> vs <peer> <y>)". */
static inline void bench_ratio(const char *name, double ours, const char *peer_name,
                               double peer, const char *unit)
{
    printf("ratio %s %.2f (ours %s vs %s %s)\n", name, ours / peer,
           bench_scaled(ours, unit).text, peer_name, bench_scaled(peer, unit).text);
}

/* Prints the ratio of our speed to the peer's. `ours` and `peer` are the times of both for
 * `count` operations. */
static inline void bench_ratio_time(const char *name, bench_best ours, const char *peer_name,
                                    bench_best peer, size_t count)
{
    bench_ratio(name, (double)count / ours.seconds, peer_name, (double)count / peer.seconds,
                "/s");
}

/* The random generator xorshift64* (Vigna 2016). The seed must not be 0. */
typedef struct bench_rng {
    uint64_t state;
} bench_rng;

static inline uint64_t bench_random(bench_rng *rng)
{
    uint64_t x = rng->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Returns a random number in [0, 1). */
static inline double bench_uniform(bench_rng *rng)
{
    return (double)(bench_random(rng) >> 11) * 0x1p-53;
}

/* Returns a random number in [0, bound), bound > 0. */
static inline size_t bench_below(bench_rng *rng, size_t bound)
{
    return (size_t)(bench_uniform(rng) * (double)bound);
}

/* Measures the latency of main memory: the nanoseconds of one load. The loads are in random
 * order over 64 MiB, and each load reads the address of the next. */
static inline double bench_memory_latency_ns(void)
{
    enum { LINE = 64 / sizeof(size_t), LINES = 1 << 20, LOADS = 1 << 20 };
    size_t *next = bench_array((size_t)LINES * LINE, sizeof *next), at = 0;
    bench_rng rng = {.state = 7};
    bench_best best = {0};

    for (size_t i = 0; i < LINES; i++) next[i * LINE] = i * LINE;
    for (size_t i = LINES - 1; i > 0; i--) { /* one cycle through all lines: Sattolo 1986 */
        size_t j = bench_below(&rng, i), swap = next[i * LINE];
        next[i * LINE] = next[j * LINE];
        next[j * LINE] = swap;
    }
    for (int round = 0; round < 2; round++) {
        double start = bench_seconds();
        for (size_t i = 0; i < LOADS; i++) at = next[at];
        bench_keep(&best, start);
    }
    if (at == SIZE_MAX) printf("never\n"); /* keeps the compiler from removing the loads */
    free(next);
    return bench_ns(best, LOADS);
}

#endif
