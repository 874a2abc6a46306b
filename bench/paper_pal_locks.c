/* SPDX-License-Identifier: Apache-2.0 */
/* Figure 10 of Zhang et al. (2021): actors and learners on one prioritized buffer, by how they
 * are synchronized. For paper_pal.py:
 *
 *     bench_paper_pal_locks [items=1000000] [batches=5000] [rounds=3] [most=16]
 *
 * Each run makes `batches` inserts of one transition (27 float32) by the actors, and as many
 * batches of 100 by the learners, of which there are half as many: draw, read the priorities,
 * copy the transitions out, write new priorities. Neither computes anything, and neither is
 * ahead by more than 1,000. The buffer is full. Prints CSV: the best time of each scheme.
 *
 *   none      a tree built as the authors' (delta_tree.h) without a lock. Threads race on it,
 * so
 *             its draws are wrong: a bound, as in the paper
 *   global    the same, one mutex around each whole operation, copies included
 *   paper     the same, with Algorithm 3: a lock for the tree, one for its leaves, and lazy
 *             writing. Each batch acquires the lock of the tree once to draw and once to write
 *   table     a table of ours: data is copied outside its lock
 *   buffer    our replay buffer: one lock, held while rows are copied, and batches of draws */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "bench.h"
#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "delta_tree.h"
#include "reprise/replay_buffer.h"
#include "reprise/store.h"

enum { WIDTH = 27, BATCH = 100, SHIFT = 4, GAP = 1000, MOST_THREADS = 32 };

typedef enum scheme { NONE, GLOBAL, PAPER, TABLE, BUFFER, SCHEMES } scheme;

static const char *const scheme_names[SCHEMES] = {"none", "global", "paper", "table", "buffer"};

typedef struct shared {
    scheme how;
    size_t items, batches;
    /* The authors' buffer. */
    delta_tree tree;
    float (*rows)[WIDTH];
    pthread_mutex_t tree_lock, leaves_lock;
    atomic_size_t next;
    /* Ours. */
    rp_store *store;
    rp_table *table;
    rp_replay_buffer *buffer;
    /* The work that threads have taken, and what of it is done. */
    atomic_size_t inserts_taken, batches_taken, inserts_done, batches_done;
} shared;

typedef struct worker {
    shared *s;
    pthread_t thread;
    bench_rng rng;
    rp_chunk_builder *builder;
    rp_decoder *decoder;
    float row[WIDTH], batch[BATCH][WIDTH];
    double weights[BATCH];
} worker;

static void lock(pthread_mutex_t *mutex, bool is_used)
{
    if (is_used) pthread_mutex_lock(mutex);
}

static void unlock(pthread_mutex_t *mutex, bool is_used)
{
    if (is_used) pthread_mutex_unlock(mutex);
}

/* Writes priorities of the authors' buffer. Algorithm 3 holds the lock of the tree throughout,
 * and that of the leaves only while leaves are written, so that priorities can be read
 * meanwhile. */
static void write_priorities(shared *s, const size_t *leaves, const float *weights,
                             size_t count)
{
    float differences[BATCH];

    lock(&s->tree_lock, s->how == PAPER);
    lock(&s->leaves_lock, s->how == PAPER);
    for (size_t i = 0; i < count; i++)
        differences[i] = delta_tree_set_leaf(&s->tree, leaves[i], weights[i]);
    unlock(&s->leaves_lock, s->how == PAPER);
    for (size_t i = 0; i < count; i++)
        delta_tree_add_above(&s->tree, leaves[i], differences[i]);
    unlock(&s->tree_lock, s->how == PAPER);
}

static void insert_theirs(worker *w)
{
    shared *s = w->s;
    size_t at;
    const float none = 0, most = 1;

    lock(&s->tree_lock, s->how == GLOBAL);
    at = atomic_fetch_add(&s->next, 1) % s->items;
    if (s->how == PAPER) write_priorities(s, &at, &none, 1); /* lazy writing */
    memcpy(s->rows[at], w->row, sizeof w->row);
    write_priorities(s, &at, &most, 1);
    unlock(&s->tree_lock, s->how == GLOBAL);
}

static void learn_theirs(worker *w)
{
    shared *s = w->s;
    size_t leaves[BATCH];
    float weights[BATCH], total;

    lock(&s->tree_lock, s->how == GLOBAL || s->how == PAPER);
    total = delta_tree_total(&s->tree);
    for (size_t i = 0; i < BATCH; i++)
        leaves[i] = delta_tree_find(&s->tree, (float)bench_uniform(&w->rng) * total);
    unlock(&s->tree_lock, s->how == PAPER);
    lock(&s->leaves_lock, s->how == PAPER);
    for (size_t i = 0; i < BATCH; i++)
        w->weights[i] = (double)*delta_tree_leaf(&s->tree, leaves[i]);
    unlock(&s->leaves_lock, s->how == PAPER);
    for (size_t i = 0; i < BATCH; i++)
        memcpy(w->batch[i], s->rows[leaves[i]], sizeof w->batch[i]);
    unlock(&s->tree_lock, s->how == GLOBAL);
    for (size_t i = 0; i < BATCH; i++) weights[i] = (float)(0.01 + bench_uniform(&w->rng));
    lock(&s->tree_lock, s->how == GLOBAL);
    write_priorities(s, leaves, weights, BATCH);
    unlock(&s->tree_lock, s->how == GLOBAL);
}

static void insert_into_table(worker *w)
{
    const rp_tensor row = {RP_FLOAT32, {.rank = 1, .dims = {WIDTH}}, w->row};
    const uint64_t key = bench_random(&w->rng);
    const rp_chunk_origin origin = {.key = key, .episode = 1};
    rp_chunk_slice slice = {.length = 1};
    const rp_slices column = {.slices = &slice, .slice_count = 1, .squeeze = true};
    rp_insert item = {.key = key, .priority = 1, .flags = RP_INSERT_TAKE};
    rp_error err;

    bench_check(rp_chunk_builder_append(w->builder, &row, &err), &err);
    bench_check(rp_chunk_builder_finish(w->builder, &origin, &slice.chunk, &err), &err);
    bench_check(rp_trajectory_new(rp_allocator_default(), &column, 1, &item.trajectory, &err),
                &err);
    rp_chunk_unref(slice.chunk);
    bench_check(rp_table_insert(w->s->table, &item, 1, rp_wait_none(), NULL, &err), &err);
}

static void learn_from_table(worker *w)
{
    const rp_sample_options options = {.count = BATCH, .beta = 0.4};
    const rp_trajectory *batch[BATCH];
    rp_sample samples[BATCH];
    rp_update updates[BATCH];
    rp_error err;
    size_t drawn;

    bench_check(rp_table_sample(w->s->table, &options, samples, &drawn, rp_wait_none(), &err),
                &err);
    for (size_t i = 0; i < BATCH; i++) {
        batch[i] = samples[i].trajectory;
        updates[i] = (rp_update){samples[i].key, 0.01 + bench_uniform(&w->rng)};
        w->weights[i] = samples[i].weight;
    }
    bench_check(rp_decoder_stack(w->decoder, batch, BATCH, 0, w->batch, sizeof w->batch, &err),
                &err);
    rp_samples_release(samples, BATCH);
    bench_check(rp_table_update(w->s->table, updates, BATCH, NULL, &err), &err);
}

static void insert_into_buffer(worker *w)
{
    const void *row = w->row;
    rp_error err;

    bench_check(rp_replay_buffer_add(w->s->buffer, &row, 1, NULL, &err), &err);
}

static void learn_from_buffer(worker *w)
{
    int64_t indices[BATCH];
    float weights[BATCH];
    void *columns = w->batch;
    const rp_replay_sample out = {.columns = &columns, .indices = indices, .weights = weights};
    rp_error err;

    bench_check(rp_replay_buffer_sample(w->s->buffer, BATCH, 0.4, &out, &err), &err);
    for (size_t i = 0; i < BATCH; i++) w->weights[i] = 0.01 + bench_uniform(&w->rng);
    bench_check(rp_replay_buffer_update(w->s->buffer, indices, w->weights, BATCH, NULL, &err),
                &err);
}

static void insert(worker *w)
{
    w->row[bench_below(&w->rng, WIDTH)] += 1;
    if (w->s->how == TABLE)
        insert_into_table(w);
    else if (w->s->how == BUFFER)
        insert_into_buffer(w);
    else
        insert_theirs(w);
}

static void learn(worker *w)
{
    if (w->s->how == TABLE)
        learn_from_table(w);
    else if (w->s->how == BUFFER)
        learn_from_buffer(w);
    else
        learn_theirs(w);
}

/* Waits while `ahead` pieces of work are taken of one kind, and too few done of the other. */
static void keep_near(size_t ahead, atomic_size_t *other)
{
    while (ahead > atomic_load(other) + GAP) (void)sched_yield();
}

static void *act(void *arg)
{
    worker *w = arg;
    shared *s = w->s;

    for (size_t i; (i = atomic_fetch_add(&s->inserts_taken, 1)) < s->batches;) {
        keep_near(i, &s->batches_done);
        insert(w);
        atomic_fetch_add(&s->inserts_done, 1);
    }
    return NULL;
}

static void *sample(void *arg)
{
    worker *w = arg;
    shared *s = w->s;

    for (size_t i; (i = atomic_fetch_add(&s->batches_taken, 1)) < s->batches;) {
        keep_near(i, &s->inserts_done);
        learn(w);
        atomic_fetch_add(&s->batches_done, 1);
    }
    return NULL;
}

static double run(shared *s, worker *workers, size_t actors, size_t learners)
{
    double started = bench_seconds();

    atomic_store(&s->inserts_taken, 0);
    atomic_store(&s->batches_taken, 0);
    atomic_store(&s->inserts_done, 0);
    atomic_store(&s->batches_done, 0);
    for (size_t i = 0; i < actors + learners; i++)
        if (pthread_create(&workers[i].thread, NULL, i < actors ? act : sample, &workers[i]) !=
            0)
            bench_check(RP_NO_RESOURCE, NULL);
    for (size_t i = 0; i < actors + learners; i++) pthread_join(workers[i].thread, NULL);
    return bench_seconds() - started;
}

static void worker_init(worker *w, shared *s, uint64_t seed)
{
    const rp_spec spec = {"transition", RP_FLOAT32, {.rank = 1, .dims = {WIDTH}}};
    const rp_chunk_options options = {.codec = RP_CODEC_NONE};
    rp_error err;

    *w = (worker){.s = s, .rng = {.state = seed}};
    bench_check(
        rp_chunk_builder_new(rp_allocator_default(), &spec, 1, &options, &w->builder, &err),
        &err);
    bench_check(rp_decoder_new(rp_allocator_default(), 0, &w->decoder), NULL);
}

static void worker_deinit(worker *w)
{
    rp_chunk_builder_free(w->builder);
    rp_decoder_free(w->decoder);
}

/* Makes the buffers, and fills each of them. */
static void shared_init(shared *s, worker *first)
{
    const rp_store_options store = {.seed = 1};
    const rp_table_options table = {.name = "replay",
                                    .sampler = {RP_PRIORITIZED, 1},
                                    .remover = {RP_FIFO, 0},
                                    .limiter = rp_limiter_min_size(1),
                                    .max_size = (int64_t)s->items};
    const rp_replay_column column = {.name = "transition", .bytes = sizeof first->row};
    const rp_replay_options buffer = {
        .capacity = s->items, .columns = &column, .column_count = 1, .alpha = 1, .seed = 1};
    rp_error err;

    pthread_mutex_init(&s->tree_lock, NULL);
    pthread_mutex_init(&s->leaves_lock, NULL);
    s->tree = delta_tree_new(SHIFT, s->items, 0);
    s->rows = bench_array(s->items, sizeof *s->rows);
    bench_check(rp_store_new(&store, &s->store, &err), &err);
    bench_check(rp_store_add_table(s->store, &table, &s->table, &err), &err);
    bench_check(rp_replay_buffer_new(rp_allocator_default(), &buffer, &s->buffer, &err), &err);
    for (size_t i = 0; i < s->items; i++)
        for (s->how = NONE; s->how < SCHEMES; s->how++)
            if (s->how == NONE || s->how == TABLE || s->how == BUFFER) insert(first);
}

static void shared_deinit(shared *s)
{
    rp_replay_buffer_free(s->buffer);
    rp_store_free(s->store);
    delta_tree_free(&s->tree);
    free(s->rows);
}

/* The authors' numbers of actors, and smaller ones for machines with few cores. */
static void measure(shared *s, worker *workers, size_t most, int rounds)
{
    static const size_t counts[] = {1, 2, 4, 8, 12, 16, 20};
    long cores = sysconf(_SC_NPROCESSORS_ONLN);

    printf("cores,actors,learners,scheme,seconds\n");
    for (size_t c = 0; c < sizeof counts / sizeof counts[0] && counts[c] <= most; c++) {
        size_t actors = counts[c], learners = actors > 1 ? actors / 2 : 1;
        bench_best best[SCHEMES] = {{0}};

        for (int round = 0; round < rounds; round++)
            for (s->how = NONE; s->how < SCHEMES; s->how++) {
                if (s->how != TABLE && s->how != BUFFER) delta_tree_fill(&s->tree);
                bench_keep_seconds(&best[s->how], run(s, workers, actors, learners));
            }
        for (size_t i = 0; i < SCHEMES; i++)
            printf("%ld,%zu,%zu,%s,%.5f\n", cores, actors, learners, scheme_names[i],
                   best[i].seconds);
    }
}

int main(int argc, char **argv)
{
    static worker workers[MOST_THREADS];
    static shared s;
    struct {
        const char *name;
        double value, most;
    } numbers[] = {{"items=", 1000000, 1e8},
                   {"batches=", 5000, 1e9},
                   {"rounds=", 3, 1e6},
                   {"most=", 16, 20}};
    enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

    for (int i = 1; i < argc; i++) {
        size_t n = 0;
        char *end = NULL;

        while (n < NUMBERS && strncmp(argv[i], numbers[n].name, strlen(numbers[n].name)) != 0)
            n++;
        if (n < NUMBERS) numbers[n].value = strtod(argv[i] + strlen(numbers[n].name), &end);
        if (end == NULL || *end != '\0' ||
            !(numbers[n].value >= 1 && numbers[n].value <= numbers[n].most)) {
            (void)fprintf(stderr, "usage: %s [items=N] [batches=N] [rounds=N] [most=N]\n",
                          argv[0]);
            return 2;
        }
    }
    s.items = (size_t)numbers[0].value;
    s.batches = (size_t)numbers[1].value;
    for (size_t i = 0; i < MOST_THREADS; i++) worker_init(&workers[i], &s, i + 1);
    shared_init(&s, &workers[0]);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    measure(&s, workers, (size_t)numbers[3].value, (int)numbers[2].value);
    shared_deinit(&s);
    for (size_t i = 0; i < MOST_THREADS; i++) worker_deinit(&workers[i]);
    return 0;
}
