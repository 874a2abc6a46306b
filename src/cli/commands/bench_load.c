/* SPDX-License-Identifier: Apache-2.0 */
/* Every loader thread counts its own items; the measuring thread adds the counts. A loader that
 * fails keeps its error, and all others are stopped.
 *
 * Invariants:
 *   L1  `running` is the number of loaders that have not ended; it is 0 after all were joined;
 *   L2  `done` of a loader never exceeds the items it has created or received. */
#include "cli/commands/bench_load.h"

#include <assert.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "reprise/sampler.h"
#include "reprise/trajectory_writer.h"

enum {
    SAMPLES = 64,    /* in one call */
    IN_FLIGHT = 200, /* items that a writer may have unconfirmed */
    STACK_BYTES = 512 * 1024,
    TICK_MS = 20,
    FILL_MS = 600 * 1000, /* to insert all items, at most */
    CACHE_LINE = 64,
};

typedef struct load load;

typedef struct loader {
    alignas(CACHE_LINE) atomic_llong done;
    load *load;
    size_t number;
    pthread_t thread;
    rp_status st;
    rp_error err;
} loader;

struct load {
    const rp_load_options *o;
    rp_cancel *stop;
    const void *payload;
    atomic_bool stopping, failed;
    atomic_llong left; /* items still to insert, if there is a limit */
    atomic_size_t running;
};

static rp_wait wait_of(const load *l)
{
    rp_wait wait = l->o->call_ms > 0 ? rp_wait_ms(l->o->call_ms) : rp_wait_forever();

    wait.cancel = l->stop;
    return wait;
}

static const char *table_of(const loader *me)
{
    return me->load->o->tables[me->number % me->load->o->table_count];
}

/* Returns true if the loader is to insert one more item. */
static bool take_one(load *l)
{
    if (atomic_load_explicit(&l->stopping, memory_order_relaxed)) return false;
    return l->o->most == 0 || atomic_fetch_sub(&l->left, 1) > 0;
}

static rp_status insert_loop(loader *me, rp_client *client)
{
    load *l = me->load;
    rp_trajectory_writer_options options = {.column = {.history = 1, .chunk_length = 1},
                                            .max_items = IN_FLIGHT};
    rp_value value = {
        0, "payload", {RP_FLOAT32, {1, {(int64_t)(l->o->payload / 4)}}, l->payload}};
    rp_trajectory_writer *w = NULL;
    rp_ref ref;
    rp_item_column column = {&ref, 1, true, "payload"};
    const char *table = table_of(me);
    long long created = 0, often = l->o->payload < 4096 ? 16 : 1;
    rp_status st = rp_trajectory_writer_new(client, &options, wait_of(l), &w, &me->err);

    while (st == RP_OK && take_one(l)) {
        st = rp_trajectory_writer_append(w, &value, 1, 0, &ref, &me->err);
        if (st == RP_OK)
            st = rp_trajectory_writer_create_item(w, &(rp_new_item){table, 1, &column, 1},
                                                  wait_of(l), NULL, &me->err);
        created++;
        assert(st != RP_OK || (long long)rp_trajectory_writer_pending(w) <= created); /* L2 */
        if (st == RP_OK && created % often == 0)
            atomic_store_explicit(&me->done,
                                  created - (long long)rp_trajectory_writer_pending(w),
                                  memory_order_relaxed);
    }
    if (st == RP_OK && l->o->most > 0)
        st = rp_trajectory_writer_flush(w, 0, wait_of(l), &me->err);
    rp_trajectory_writer_free(w);
    return st;
}

static rp_status sample_loop(loader *me, rp_client *client)
{
    load *l = me->load;
    rp_sampler_options options = {.table = table_of(me), .rate_limiter_timeout_ms = -1};
    rp_sample samples[SAMPLES];
    rp_sampler *s = NULL;
    long long received = 0;
    rp_status st = rp_sampler_new(client, &options, &s, &me->err);

    while (st == RP_OK && !atomic_load_explicit(&l->stopping, memory_order_relaxed)) {
        size_t count = 0;

        st = rp_sampler_next(s, samples, SAMPLES, &count, wait_of(l), &me->err);
        if (st != RP_OK) break;
        assert(count <= SAMPLES);
        rp_samples_release(samples, count);
        received += (long long)count;
        atomic_store_explicit(&me->done, received, memory_order_relaxed);
    }
    rp_sampler_free(s);
    return st;
}

static void *loader_main(void *ctx)
{
    loader *me = ctx;
    load *l = me->load;
    rp_client *client = NULL;

    me->st = rp_client_new(l->o->addresses, l->o->client, &client, &me->err);
    if (me->st == RP_OK)
        me->st = l->o->sample ? sample_loop(me, client) : insert_loop(me, client);
    rp_client_free(client);
    if (me->st == RP_CANCELLED && atomic_load(&l->stopping)) me->st = RP_OK;
    if (me->st != RP_OK) atomic_store(&l->failed, true);
    assert(atomic_load(&l->running) > 0); /* L1 */
    atomic_fetch_sub(&l->running, 1);
    return NULL;
}

static long long total(const loader *loaders, size_t count)
{
    long long sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += atomic_load_explicit(&loaders[i].done, memory_order_relaxed);
    return sum;
}

/* Sleeps for `ms`, or until no loader runs, one has failed, or a signal has come. */
static void rest(load *l, int64_t ms)
{
    int64_t until_ns = rp_now_ns() + ms * 1000000;

    while (rp_now_ns() < until_ns && !atomic_load(&l->failed) &&
           atomic_load(l->o->interrupted) == 0 && atomic_load(&l->running) > 0) {
        struct timespec tick = {0, TICK_MS * 1000000};
        int64_t left_ns = until_ns - rp_now_ns();

        if (left_ns > 0 && left_ns < tick.tv_nsec) tick.tv_nsec = (long)left_ns;
        (void)nanosleep(&tick, NULL);
    }
}

/* Starts the threads. Returns the number that were started. */
static size_t start_all(load *l, loader *loaders)
{
    pthread_attr_t attributes;
    size_t started = 0;

    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (; started < l->o->clients; started++) {
        loaders[started].load = l;
        loaders[started].number = started;
        atomic_fetch_add(&l->running, 1);
        if (pthread_create(&loaders[started].thread, &attributes, loader_main,
                           &loaders[started]) == 0)
            continue;
        atomic_fetch_sub(&l->running, 1);
        break;
    }
    (void)pthread_attr_destroy(&attributes);
    return started;
}

static rp_status measure(load *l, loader *loaders, double *items_per_s, rp_error *err)
{
    size_t started = start_all(l, loaders);
    rp_status st = started == l->o->clients ? RP_OK : RP_NO_RESOURCE;
    int64_t begin_ns, ns;
    long long begin;

    if (st != RP_OK) atomic_store(&l->failed, true);
    if (l->o->most > 0) {
        rest(l, FILL_MS); /* until all items are inserted */
    } else {
        rest(l, l->o->warm_ms);
        begin_ns = rp_now_ns();
        begin = total(loaders, started);
        rest(l, l->o->measure_ms);
        ns = rp_now_ns() - begin_ns;
        *items_per_s =
            ns > 0 ? (double)(total(loaders, started) - begin) * 1e9 / (double)ns : 0;
    }
    atomic_store(&l->stopping, true);
    rp_cancel_fire(l->stop);
    for (size_t i = 0; i < started; i++) {
        (void)pthread_join(loaders[i].thread, NULL);
        if (st == RP_OK && loaders[i].st != RP_OK) {
            st = loaders[i].st;
            *err = loaders[i].err;
        }
    }
    assert(atomic_load(&l->running) == 0); /* L1 */
    return atomic_load(l->o->interrupted) != 0 ? RP_CANCELLED : st;
}

/* Fills the bytes with numbers that do not compress (xorshift64). */
static void scramble(uint8_t *bytes, size_t size)
{
    uint64_t state = 0x9e3779b97f4a7c15;

    for (size_t i = 0; i < size; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (uint8_t)(state >> 32);
    }
}

rp_status rp_load_run(const rp_load_options *o, double *items_per_s, rp_error *err)
{
    const rp_allocator *alloc = rp_allocator_default();
    size_t loaders_bytes = o->clients * sizeof(loader);
    load l = {.o = o};
    loader *loaders = NULL;
    void *payload = NULL, *block = NULL;
    rp_cancel *own = NULL;
    rp_status st = RP_NO_RESOURCE;

    assert(o->clients >= 1 && o->clients <= RP_LOAD_MAX_CLIENTS && o->table_count >= 1);
    assert(o->payload > 0 && o->payload % 4 == 0 && o->payload <= RP_LOAD_MAX_PAYLOAD);
    block = alloc->resize(alloc->ctx, NULL, 0, loaders_bytes + CACHE_LINE);
    payload = alloc->resize(alloc->ctx, NULL, 0, o->payload);
    if (block == NULL || payload == NULL || rp_cancel_new(&own) != RP_OK) goto out;
    loaders = (loader *)(((uintptr_t)block + CACHE_LINE - 1) & ~(uintptr_t)(CACHE_LINE - 1));
    memset(loaders, 0, loaders_bytes);
    scramble(payload, o->payload);
    l.stop = own;
    l.payload = payload;
    atomic_store(&l.left, o->most);
    st = measure(&l, loaders, items_per_s, err);
out:
    rp_cancel_free(own);
    if (payload != NULL) (void)alloc->resize(alloc->ctx, payload, o->payload, 0);
    if (block != NULL) (void)alloc->resize(alloc->ctx, block, loaders_bytes + CACHE_LINE, 0);
    return st;
}
