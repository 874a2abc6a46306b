/* SPDX-License-Identifier: Apache-2.0 */
/* Measures how a table scales with the number of threads: the experiment of figure 10 of Zhang
 * et al. 2021.
 *
 * Every thread is an actor and a learner. It repeats three steps: insert 16 frames, each as its
 * own chunk; sample 64 items and stack their data; update the priorities of these items. "Ours"
 * is the table as it is: data is copied outside its lock. "Global lock" is the same work with
 * one mutex around each of the three steps, including the copies. Frames are not compressed, so
 * that compression does not make the part outside the lock larger. */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "reprise/store.h"

enum {
    SIDE = 84,
    FRAME = SIDE * SIDE,
    ITEMS = 50000,
    INSERTS = 16,
    SAMPLES = 64,
    MAX_THREADS = 64,
    MAX_COUNTS = 12,
};

typedef struct shared {
    rp_store *store;
    rp_table *table;
    pthread_mutex_t global;
    bool use_global; /* set while no thread runs */
    atomic_bool stop;
} shared;

typedef struct worker {
    shared *s;
    pthread_t thread;
    bench_rng rng;
    rp_chunk_builder *builder;
    rp_decoder *decoder;
    uint8_t *frame, *batch;
    uint64_t transitions; /* inserted and sampled in this run */
} worker;

static void lock_global(shared *s)
{
    if (s->use_global) pthread_mutex_lock(&s->global);
}

static void unlock_global(shared *s)
{
    if (s->use_global) pthread_mutex_unlock(&s->global);
}

static void worker_init(worker *w, shared *s, uint64_t seed)
{
    rp_spec spec = {"frame", RP_UINT8, {.rank = 2, .dims = {SIDE, SIDE}}};
    rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_error error;

    *w = (worker){.s = s, .rng = {.state = seed}};
    bench_check(
        rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &w->builder, &error),
        &error);
    bench_check(rp_decoder_new(rp_allocator_default(), 0, &w->decoder), NULL);
    w->frame = bench_array(FRAME, 1);
    w->batch = bench_array(SAMPLES, FRAME);
    for (size_t i = 0; i < FRAME; i++) w->frame[i] = (uint8_t)bench_random(&w->rng);
}

static void worker_deinit(worker *w)
{
    rp_chunk_builder_free(w->builder);
    rp_decoder_free(w->decoder);
    free(w->frame);
    free(w->batch);
}

static rp_trajectory *make_trajectory(worker *w, uint64_t key)
{
    rp_tensor row = {RP_UINT8, {.rank = 2, .dims = {SIDE, SIDE}}, w->frame};
    rp_chunk_origin origin = {.key = key, .episode = 1};
    rp_chunk_slice slice = {.length = 1};
    rp_slices column = {.slices = &slice, .slice_count = 1, .squeeze = true};
    rp_trajectory *trajectory;
    rp_error error;

    w->frame[bench_below(&w->rng, FRAME)]++;
    bench_check(rp_chunk_builder_append(w->builder, &row, &error), &error);
    bench_check(rp_chunk_builder_finish(w->builder, &origin, &slice.chunk, &error), &error);
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &trajectory, &error),
                &error);
    rp_chunk_unref(slice.chunk);
    return trajectory;
}

static void insert_some(worker *w)
{
    rp_insert items[INSERTS];
    rp_error error;

    lock_global(w->s);
    for (size_t i = 0; i < INSERTS; i++) {
        uint64_t key = bench_random(&w->rng);
        items[i] = (rp_insert){.key = key,
                               .priority = 0.01 + bench_uniform(&w->rng),
                               .trajectory = make_trajectory(w, key)};
    }
    bench_check(rp_table_insert(w->s->table, items, INSERTS, rp_wait_none(), NULL, &error),
                &error);
    for (size_t i = 0; i < INSERTS; i++) rp_trajectory_unref(items[i].trajectory);
    unlock_global(w->s);
}

/* Samples a batch, and sets `updates` to the sampled items. */
static void sample_some(worker *w, rp_update *updates)
{
    const rp_trajectory *batch[SAMPLES];
    rp_sample samples[SAMPLES];
    rp_sample_options options = {.count = SAMPLES};
    rp_error error;
    size_t drawn;

    lock_global(w->s);
    bench_check(rp_table_sample(w->s->table, &options, samples, &drawn, rp_wait_none(), &error),
                &error);
    for (size_t i = 0; i < SAMPLES; i++) {
        batch[i] = samples[i].trajectory;
        updates[i].key = samples[i].key;
        updates[i].priority = 0.01 + bench_uniform(&w->rng);
    }
    bench_check(rp_decoder_stack(w->decoder, batch, SAMPLES, 0, w->batch,
                                 (size_t)SAMPLES * FRAME, &error),
                &error);
    rp_samples_release(samples, SAMPLES);
    unlock_global(w->s);
}

static void update_some(worker *w, const rp_update *updates)
{
    rp_error error;

    lock_global(w->s);
    bench_check(rp_table_update(w->s->table, updates, SAMPLES, NULL, &error), &error);
    unlock_global(w->s);
}

static void *work(void *arg)
{
    worker *w = arg;
    rp_update updates[SAMPLES];

    while (!atomic_load_explicit(&w->s->stop, memory_order_relaxed)) { /* only a flag */
        insert_some(w);
        sample_some(w, updates);
        update_some(w, updates);
        w->transitions += INSERTS + SAMPLES;
    }
    return NULL;
}

/* Returns the transitions a second of `count` threads together. */
static double run(shared *s, worker *workers, size_t count, bool use_global, double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    uint64_t transitions = 0;
    double start = bench_seconds();

    s->use_global = use_global;
    atomic_store(&s->stop, false);
    for (size_t i = 0; i < count; i++) {
        workers[i].transitions = 0;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_check(RP_NO_RESOURCE, NULL);
    }
    nanosleep(&pause, NULL);
    atomic_store(&s->stop, true);
    for (size_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        transitions += workers[i].transitions;
    }
    return (double)transitions / (bench_seconds() - start);
}

static void shared_init(shared *s, worker *first)
{
    rp_store_options store_options = {.seed = 1};
    rp_table_options options = {
        .name = "replay",
        .sampler = {RP_PRIORITIZED, 0.6},
        .remover = {RP_FIFO, 0},
        .limiter = rp_limiter_min_size(1),
        .max_size = ITEMS,
    };
    rp_error error;

    *s = (shared){.use_global = false};
    pthread_mutex_init(&s->global, NULL);
    bench_check(rp_store_new(&store_options, &s->store, &error), &error);
    bench_check(rp_store_add_table(s->store, &options, &s->table, &error), &error);
    for (size_t i = 0; i < ITEMS + ITEMS / 4; i += INSERTS) insert_some(first);
}

/* Sets `counts` to 1, 2, 4, ... 16, and the number of cores if that is not among them. */
static size_t thread_counts(size_t cores, size_t *counts)
{
    size_t n = 0, most = cores > 16 ? cores : 16;

    if (most > MAX_THREADS) most = MAX_THREADS;
    for (size_t count = 1; count <= most; count *= 2) {
        counts[n++] = count;
        if (cores > count && cores < 2 * count && cores <= most) counts[n++] = cores;
    }
    return n;
}

/* Prints the smallest ratio of the throughputs of two consecutive counts, while each thread has
 * a core. */
static void report_scaling(const size_t *counts, const double *rates, size_t n, size_t cores)
{
    size_t worst = 0;

    for (size_t i = 1; i < n && counts[i] <= cores; i++)
        if (worst == 0 || rates[i] / rates[i - 1] < rates[worst] / rates[worst - 1]) worst = i;
    if (worst == 0) {
        printf("one core: no scaling to judge\n");
        return;
    }
    printf("slowest step: from %zu to %zu threads\n", counts[worst - 1], counts[worst]);
    bench_ratio("threads.scaling", rates[worst], "fewer-threads", rates[worst - 1], "/s");
}

int main(int argc, char **argv)
{
    bench_options options =
        bench_parse(argc, argv, "threads on one table, against a global lock");
    size_t counts[MAX_COUNTS], cores = (size_t)sysconf(_SC_NPROCESSORS_ONLN), n;
    double seconds = options.quick ? 0.15 : 0.5, ours[MAX_COUNTS] = {0},
           global[MAX_COUNTS] = {0};
    static worker workers[MAX_THREADS];
    static shared s;

    for (size_t i = 0; i < MAX_THREADS; i++) worker_init(&workers[i], &s, i + 1);
    shared_init(&s, &workers[0]);
    n = thread_counts(cores, counts);
    for (int round = 0; round < 10; round++)
        for (size_t i = 0; i < n; i++) {
            double rate = run(&s, workers, counts[i], false, seconds);
            if (rate > ours[i]) ours[i] = rate;
            rate = run(&s, workers, counts[i], true, seconds);
            if (rate > global[i]) global[i] = rate;
        }
    printf("%zu cores; transitions a second, inserted and sampled\n"
           "threads        ours   global lock\n",
           cores);
    for (size_t i = 0; i < n; i++)
        printf("%7zu %11.0f %13.0f%s\n", counts[i], ours[i], global[i],
               counts[i] > cores ? "   (more than cores)" : "");
    for (size_t i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "threads.%zu", counts[i]);
        bench_ratio(name, ours[i], "global-lock", global[i], "/s");
    }
    report_scaling(counts, ours, n, cores);
    rp_store_free(s.store);
    for (size_t i = 0; i < MAX_THREADS; i++) worker_deinit(&workers[i]);
    return 0;
}
