/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes are rounded up to one of 57 classes: eight steps between two powers of two. The idle
 * blocks of a class are a stack: the latest block may still be in the processor's cache.
 *
 * Invariant, while mu is free: L1  idle_bytes is the sum of the sizes of all idle blocks, and
 * is at most RP_LARGE_KEPT_BYTES. */
#include "util/large_pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { STEPS = 8, OCTAVES = 7, CLASSES = STEPS * OCTAVES + 1 };

static_assert(RP_LARGE_LEAST << OCTAVES == RP_LARGE_MOST,
              "the last class has the largest size");

typedef struct block {
    struct block *next;
} block;

static struct {
    pthread_mutex_t mu; /* guards the next three lines; no other lock is acquired under it */
    block *idle[CLASSES];
    size_t idle_bytes; /* L1 */
    unsigned dropped;  /* class of the idle block that was dropped last */
    /* Relaxed: a bound that uses an old value is a little off. */
    atomic_size_t used_bytes;
} pool = {.mu = PTHREAD_MUTEX_INITIALIZER};

static size_t bytes_of(unsigned class)
{
    size_t octave = (size_t)RP_LARGE_LEAST << (class / STEPS);

    return octave + octave / STEPS * (class % STEPS);
}

static unsigned class_of(size_t size)
{
    unsigned octave = 0, class;

    while (octave < OCTAVES && (size_t)RP_LARGE_LEAST << (octave + 1) <= size) octave++;
    class = octave * STEPS;
    while (bytes_of(class) < size) class ++;
    assert(class < CLASSES);
    return class;
}

/* Removes an idle block of a class, or returns NULL. */
static block *take_locked(unsigned class)
{
    block *b = pool.idle[class];

    if (b == NULL) return NULL;
    assert(pool.idle_bytes >= bytes_of(class)); /* L1 */
    pool.idle[class] = b->next;
    pool.idle_bytes -= bytes_of(class);
    return b;
}

/* Removes idle blocks of other classes, in turn, until they have `bytes`. Returns a list. */
static block *take_others_locked(size_t bytes)
{
    block *list = NULL;
    size_t taken = 0;

    while (pool.idle_bytes > 0 && taken < bytes) {
        block *b = take_locked(pool.dropped);

        if (b == NULL) {
            pool.dropped = (pool.dropped + 1) % CLASSES;
            continue;
        }
        taken += bytes_of(pool.dropped);
        b->next = list;
        list = b;
    }
    return list;
}

static void free_list(block *list)
{
    while (list != NULL) {
        block *b = list;

        list = b->next;
        free(b);
    }
}

void *rp_large_alloc(size_t size)
{
    unsigned class = class_of(size);
    size_t bytes = bytes_of(class);
    block *b = NULL, *others = NULL;

    if (pthread_mutex_trylock(&pool.mu) == 0) {
        b = take_locked(class);
        if (b == NULL) others = take_others_locked(bytes);
        (void)pthread_mutex_unlock(&pool.mu);
    }
    free_list(others);
    if (b == NULL) b = malloc(bytes);
    if (b != NULL) atomic_fetch_add_explicit(&pool.used_bytes, bytes, memory_order_relaxed);
    return b;
}

void rp_large_free(void *ptr, size_t size)
{
    unsigned class = class_of(size);
    size_t bytes = bytes_of(class), most;
    block *b = ptr;

    most = atomic_fetch_sub_explicit(&pool.used_bytes, bytes, memory_order_relaxed);
    assert(most >= bytes); /* else it was freed with another size */
    if (most < RP_LARGE_FIRST_BYTES) most = RP_LARGE_FIRST_BYTES;
    if (most > RP_LARGE_KEPT_BYTES) most = RP_LARGE_KEPT_BYTES;
    if (pthread_mutex_trylock(&pool.mu) == 0) {
        if (pool.idle_bytes + bytes <= most) {
            b->next = pool.idle[class];
            pool.idle[class] = b;
            pool.idle_bytes += bytes;
            b = NULL;
        }
        (void)pthread_mutex_unlock(&pool.mu);
    }
    free(b);
}

void rp_large_trim(void)
{
    block *idle;

    if (pthread_mutex_trylock(&pool.mu) != 0) return;
    idle = take_others_locked(SIZE_MAX);
    (void)pthread_mutex_unlock(&pool.mu);
    free_list(idle);
}

rp_large_info rp_large_get_info(void)
{
    rp_large_info info = {.used_bytes =
                              atomic_load_explicit(&pool.used_bytes, memory_order_relaxed)};

    if (pthread_mutex_trylock(&pool.mu) != 0) return info;
    info.idle_bytes = pool.idle_bytes;
    (void)pthread_mutex_unlock(&pool.mu);
    return info;
}
