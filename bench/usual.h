/* SPDX-License-Identifier: Apache-2.0 */
/* A straightforward replay table, the baseline of bench_table. It has a chained hash map from
 * key to item, a malloc() for each item, a linked list for the order of eviction, the textbook
 * sum tree for sampling, and refcounted payloads. Each operation on one item locks the only
 * mutex of the table. */
#ifndef BENCH_USUAL_H
#define BENCH_USUAL_H

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "textbook.h"

typedef struct usual_payload {
    atomic_int refs;
    size_t size;
    uint8_t data[];
} usual_payload;

typedef struct usual_item {
    struct usual_item *hash_next, *older, *newer;
    uint64_t key;
    double priority;
    size_t leaf;
    int64_t inserted_at_ns;
    int times_sampled;
    usual_payload *payload;
} usual_item;

typedef struct usual_sample {
    uint64_t key;
    double priority, probability;
    int64_t table_size, inserted_at_ns;
    int times_sampled;
    usual_payload *payload; /* a reference, which the caller owns */
} usual_sample;

typedef struct usual_table {
    pthread_mutex_t mutex;
    size_t size, max_size, bucket_count;
    double exponent;
    bench_rng rng;
    textbook_tree tree;
    usual_item **buckets, **at_leaf;
    usual_item *oldest, *newest;
    size_t *free_leaves, free_leaf_count;
} usual_table;

static inline usual_payload *usual_payload_new(size_t size)
{
    usual_payload *payload = bench_memory(malloc(sizeof *payload + size));

    atomic_init(&payload->refs, 1);
    payload->size = size;
    memset(payload->data, 1, size);
    return payload;
}

static inline void usual_payload_unref(usual_payload *payload)
{
    if (atomic_fetch_sub(&payload->refs, 1) == 1) free(payload);
}

static inline void usual_init(usual_table *t, size_t max_size, double exponent)
{
    *t = (usual_table){.max_size = max_size, .exponent = exponent, .rng = {.state = 5}};
    pthread_mutex_init(&t->mutex, NULL);
    t->tree = textbook_new(max_size);
    t->bucket_count = t->tree.capacity;
    t->buckets = bench_array(t->bucket_count, sizeof *t->buckets);
    t->at_leaf = bench_array(max_size, sizeof *t->at_leaf);
    t->free_leaves = bench_array(max_size, sizeof *t->free_leaves);
    while (t->free_leaf_count < max_size) {
        t->free_leaves[t->free_leaf_count] = max_size - 1 - t->free_leaf_count;
        t->free_leaf_count++;
    }
}

static inline usual_item **usual_bucket(usual_table *t, uint64_t key)
{
    return &t->buckets[(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (t->bucket_count - 1)];
}

static inline usual_item *usual_lookup(usual_table *t, uint64_t key)
{
    usual_item *item = *usual_bucket(t, key);

    while (item != NULL && item->key != key) item = item->hash_next;
    return item;
}

static inline void usual_evict(usual_table *t)
{
    usual_item *item = t->oldest, **link = usual_bucket(t, item->key);

    while (*link != item) link = &(*link)->hash_next;
    *link = item->hash_next;
    t->oldest = item->newer;
    if (t->oldest != NULL) t->oldest->older = NULL;
    if (t->newest == item) t->newest = NULL;
    textbook_set(&t->tree, item->leaf, 0);
    t->at_leaf[item->leaf] = NULL;
    t->free_leaves[t->free_leaf_count++] = item->leaf;
    t->size--;
    usual_payload_unref(item->payload);
    free(item);
}

static inline void usual_set_priority(usual_table *t, usual_item *item, double priority)
{
    item->priority = priority;
    textbook_set(&t->tree, item->leaf, pow(priority, t->exponent));
}

static inline void usual_link(usual_table *t, usual_item *item)
{
    usual_item **bucket = usual_bucket(t, item->key);

    item->hash_next = *bucket;
    *bucket = item;
    item->older = t->newest;
    if (t->newest != NULL) t->newest->newer = item;
    t->newest = item;
    if (t->oldest == NULL) t->oldest = item;
    item->leaf = t->free_leaves[--t->free_leaf_count];
    t->at_leaf[item->leaf] = item;
    t->size++;
}

static inline int64_t usual_wall_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Takes ownership of the caller's reference to `payload`. */
static inline void usual_insert(usual_table *t, uint64_t key, double priority,
                                usual_payload *payload)
{
    usual_item *item;

    pthread_mutex_lock(&t->mutex);
    item = usual_lookup(t, key);
    if (item != NULL) {
        usual_payload_unref(payload);
    } else {
        if (t->size == t->max_size) usual_evict(t);
        item = bench_array(1, sizeof *item);
        item->key = key;
        item->payload = payload;
        item->inserted_at_ns = usual_wall_ns();
        usual_link(t, item);
    }
    usual_set_priority(t, item, priority);
    pthread_mutex_unlock(&t->mutex);
}

static inline void usual_sample_one(usual_table *t, usual_sample *out)
{
    usual_item *item;
    double total;

    pthread_mutex_lock(&t->mutex);
    total = textbook_total(&t->tree);
    item = t->at_leaf[textbook_find(&t->tree, bench_uniform(&t->rng) * total * (1 - 1e-15))];
    item->times_sampled++;
    atomic_fetch_add(&item->payload->refs, 1);
    *out = (usual_sample){
        .key = item->key,
        .priority = item->priority,
        .probability = t->tree.nodes[t->tree.capacity + item->leaf] / total,
        .table_size = (int64_t)t->size,
        .inserted_at_ns = item->inserted_at_ns,
        .times_sampled = item->times_sampled,
        .payload = item->payload,
    };
    pthread_mutex_unlock(&t->mutex);
}

static inline void usual_update(usual_table *t, uint64_t key, double priority)
{
    usual_item *item;

    pthread_mutex_lock(&t->mutex);
    item = usual_lookup(t, key);
    if (item != NULL) usual_set_priority(t, item, priority);
    pthread_mutex_unlock(&t->mutex);
}

static inline void usual_deinit(usual_table *t)
{
    while (t->size > 0) usual_evict(t);
    pthread_mutex_destroy(&t->mutex);
    textbook_free(&t->tree);
    free(t->buckets);
    free(t->at_leaf);
    free(t->free_leaves);
}

#endif
