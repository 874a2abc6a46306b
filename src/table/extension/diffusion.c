/* SPDX-License-Identifier: Apache-2.0 */
/* An extension that lets a priority update diffuse to the neighbours of its item: prioritized
 * sequence replay (Gruslys et al., 2017).
 *
 * The items of an episode form a list in order of insertion:
 *
 *   keys      key ──► node             episodes   episode ──► last node
 *
 *   nodes     | a | b | c | ... |      a <──> b <──> c         one list per episode
 *
 * When c gets priority p, its k-th neighbour on either side moves to p_n + decay^k * (p - p_n).
 *
 * Events are delivered in batches, after the operations that caused them: when an earlier
 * update diffuses to an item, the item may already have a priority that was set later. Setting
 * that priority again when its event is processed gives the result of single calls.
 *
 * The extension runs under the table's lock and needs no other lock. If there is no memory for
 * an item, the item has no neighbours; nothing else fails.
 *
 * Invariants between calls:
 *   D1  a node is in `keys`, and in the list of its episode, or in the free list;
 *   D2  the last node of every list, and no other, is in `episodes`. */
#include <assert.h>

#include "chunk/chunk_api.h"
#include "chunk/trajectory.h"
#include "reprise/extension.h"
#include "util/error.h"
#include "util/map.h"
#include "util/mem.h"

enum { MAX_RADIUS = 64, FIRST_CAPACITY = 64 };
#define NONE UINT32_MAX

typedef struct node {
    uint64_t key;
    uint64_t episode;
    uint32_t prev, next; /* in the episode, or NONE; `next` also links free nodes */
} node;

typedef struct diffusion {
    rp_allocator alloc;
    int32_t radius;
    double decay;
    rp_map keys, episodes;
    node *nodes;
    size_t capacity;
    uint32_t used; /* nodes that have ever been in use */
    uint32_t free; /* the first free one among them, or NONE */
} diffusion;

static uint32_t find_key(const diffusion *d, uint64_t key, uint32_t tag)
{
    rp_map_cursor at = rp_map_start(&d->keys, tag);
    uint32_t n;

    do n = rp_map_next(tag, &at);
    while (n != NONE && d->nodes[n].key != key);
    return n;
}

/* The last node of an episode. */
static uint32_t find_last(const diffusion *d, uint64_t episode, uint32_t tag)
{
    rp_map_cursor at = rp_map_start(&d->episodes, tag);
    uint32_t n;

    do n = rp_map_next(tag, &at);
    while (n != NONE && d->nodes[n].episode != episode);
    return n;
}

static bool reserve_node(diffusion *d)
{
    size_t capacity = d->capacity > 0 ? 2 * d->capacity : FIRST_CAPACITY;

    if (rp_map_reserve(&d->keys, 1) != RP_OK || rp_map_reserve(&d->episodes, 1) != RP_OK)
        return false;
    if (d->free != NONE || d->used < d->capacity) return true;
    if (capacity >= NONE) return false;
    if (!rp_resize_array(&d->alloc, &d->nodes, d->capacity, capacity, sizeof *d->nodes))
        return false;
    d->capacity = capacity;
    return true;
}

static uint32_t take_node(diffusion *d)
{
    uint32_t n = d->free;

    assert(n != NONE ? n < d->used : d->used < d->capacity); /* D1; reserved */
    if (n == NONE) return d->used++;
    d->free = d->nodes[n].next;
    return n;
}

static void add(diffusion *d, uint64_t key, uint64_t episode)
{
    uint32_t key_tag = rp_map_tag(&d->keys, key);
    uint32_t episode_tag = rp_map_tag(&d->episodes, episode), last, n;

    if (find_key(d, key, key_tag) != NONE || !reserve_node(d)) return;
    last = find_last(d, episode, episode_tag);
    n = take_node(d);
    d->nodes[n] = (node){.key = key, .episode = episode, .prev = last, .next = NONE};
    if (last != NONE) {
        assert(d->nodes[last].next == NONE); /* D2 */
        d->nodes[last].next = n;
        rp_map_remove(&d->episodes, episode_tag, last);
    }
    rp_map_insert(&d->episodes, episode_tag, n); /* D2 */
    rp_map_insert(&d->keys, key_tag, n);
}

static void drop(diffusion *d, uint64_t key)
{
    uint32_t tag = rp_map_tag(&d->keys, key), n = find_key(d, key, tag);
    node *own;

    if (n == NONE) return;
    own = &d->nodes[n];
    assert(own->prev == NONE || d->nodes[own->prev].next == n);
    assert(own->next == NONE || d->nodes[own->next].prev == n);
    rp_map_remove(&d->keys, tag, n);
    if (own->prev != NONE) d->nodes[own->prev].next = own->next;
    if (own->next != NONE) {
        d->nodes[own->next].prev = own->prev;
    } else { /* D2: the one before it becomes the last, without an allocation */
        uint32_t episode_tag = rp_map_tag(&d->episodes, own->episode);
        rp_map_remove(&d->episodes, episode_tag, n);
        if (own->prev != NONE) rp_map_insert(&d->episodes, episode_tag, own->prev);
    }
    own->next = d->free;
    d->free = n;
}

static void clear(diffusion *d)
{
    rp_map_clear(&d->keys);
    rp_map_clear(&d->episodes);
    d->used = 0;
    d->free = NONE;
}

static void move_neighbour(rp_table_view *view, uint64_t key, double priority, double share)
{
    double old;

    if (rp_view_priority(view, key, &old))
        (void)rp_view_update(view, key, old + share * (priority - old));
}

static void diffuse(const diffusion *d, rp_table_view *view, uint64_t key, double priority)
{
    uint32_t n = find_key(d, key, rp_map_tag(&d->keys, key)), before, after;
    double share = 1;

    if (n == NONE) return;
    before = after = n;
    for (int32_t k = 1; k <= d->radius; k++) {
        share *= d->decay;
        if (before != NONE) before = d->nodes[before].prev;
        if (after != NONE) after = d->nodes[after].next;
        if (before == NONE && after == NONE) break;
        if (before != NONE) move_neighbour(view, d->nodes[before].key, priority, share);
        if (after != NONE) move_neighbour(view, d->nodes[after].key, priority, share);
    }
}

static uint64_t episode_of(const rp_trajectory *trajectory)
{
    return rp_chunk_get_origin(rp_trajectory_get_chunk(trajectory, 0))->episode;
}

static void on_events(void *ctx, rp_table_view *view, const rp_event *events, size_t count)
{
    diffusion *d = ctx;
    bool diffused = false;

    for (size_t i = 0; i < count; i++) {
        const rp_event *e = &events[i];
        if (diffused && (e->kind == RP_EVENT_INSERT || e->kind == RP_EVENT_UPDATE))
            (void)rp_view_update(view, e->key, e->priority);
        switch (e->kind) {
        case RP_EVENT_INSERT: add(d, e->key, episode_of(e->trajectory)); break;
        case RP_EVENT_UPDATE:
            diffuse(d, view, e->key, e->priority);
            diffused = true;
            break;
        case RP_EVENT_DELETE: drop(d, e->key); break;
        case RP_EVENT_RESET: clear(d); break;
        case RP_EVENT_SAMPLE: break;
        }
    }
}

static void free_diffusion(void *ctx)
{
    diffusion *d = ctx;
    rp_allocator alloc = d->alloc;

    rp_map_deinit(&d->keys);
    rp_map_deinit(&d->episodes);
    rp_release(&alloc, d->nodes, d->capacity * sizeof *d->nodes);
    rp_release(&alloc, d, sizeof *d);
}

rp_status rp_diffusion_extension(const rp_allocator *alloc, int32_t radius, double decay,
                                 rp_extension *out, rp_error *err)
{
    diffusion *d;

    if (radius < 1 || radius > MAX_RADIUS)
        return rp_fail(err, RP_INVALID, "diffusion: radius must be in [1, %d], got %d",
                       MAX_RADIUS, (int)radius);
    if (!(decay > 0 && decay < 1))
        return rp_fail(err, RP_INVALID, "diffusion: decay must be in (0, 1), got %g", decay);
    if (alloc == NULL) alloc = rp_allocator_default();
    d = rp_alloc_zero(alloc, sizeof *d);
    if (d == NULL) return rp_fail_memory(err, sizeof *d);
    d->alloc = *alloc;
    d->radius = radius;
    d->decay = decay;
    /* Results do not depend on the hash. Seeding it with the address makes it hard to guess. */
    rp_map_init(&d->keys, alloc, (uint64_t)(uintptr_t)d);
    rp_map_init(&d->episodes, alloc, ~(uint64_t)(uintptr_t)d);
    clear(d);
    *out = (rp_extension){
        .name = "diffusion", .ctx = d, .on_events = on_events, .free = free_diffusion};
    return RP_OK;
}
