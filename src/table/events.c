/* SPDX-License-Identifier: Apache-2.0 */
/* Events for extensions.
 *
 * Events are collected while an operation runs. Atomic extensions get them before the lock is
 * released, or when the buffer is full. Events for deferred extensions are stored, each with a
 * reference to its trajectory, until a thread that has released the lock delivers them:
 *
 *   append_locked -> deferred[] -- swap under the lock -> delivered[] -> on_events, no lock
 *
 * One thread delivers at a time, which keeps the order; it also delivers events that other
 * threads add meanwhile.
 *
 * Invariants:
 *   E1  atomic_count <= RP_EVENTS_AT_ONCE, and 0 whenever the lock is free;
 *   E2  deferred_count <= deferred_capacity: room is reserved before an operation;
 *   E3  without extensions of a kind there are no events of that kind. */
#include <assert.h>
#include <string.h>

#include "table/table_log.h"
#include "util/error.h"
#include "util/mem.h"

/* The nesting depth of calls to deferred extensions on this thread. */
static _Thread_local int deliveries;

bool rp_events_is_behind_locked(const rp_table *t)
{
    return t->events.deferred_count >= RP_MAX_DEFERRED_EVENTS && deliveries == 0;
}

struct rp_table_view {
    rp_table *table; /* its lock is held */
};

rp_status rp_events_init(rp_events *e, const rp_allocator *alloc,
                         const rp_extension *extensions, size_t count, rp_error *err)
{
    if (count == 0) return RP_OK;
    if (extensions == NULL)
        return rp_fail(err, RP_INVALID, "extension_count is %zu, but extensions is NULL",
                       count);
    for (size_t i = 0; i < count; i++)
        if (extensions[i].on_events == NULL)
            return rp_fail(err, RP_INVALID, "extension %zu (%s) has no on_events", i,
                           extensions[i].name != NULL ? extensions[i].name : "unnamed");
    e->extensions = rp_alloc_array(alloc, count, sizeof *extensions);
    if (e->extensions == NULL) return rp_fail_memory(err, count * sizeof *extensions);
    memcpy(e->extensions, extensions, count * sizeof *extensions);
    e->count = count;
    for (size_t i = 0; i < count; i++)
        *(extensions[i].deferred ? &e->has_deferred : &e->has_atomic) = true;
    return RP_OK;
}

void rp_events_deinit(rp_events *e, const rp_allocator *alloc, bool owns)
{
    for (size_t i = 0; i < e->deferred_count; i++)
        rp_trajectory_unref(e->deferred[i].trajectory);
    for (size_t i = 0; owns && i < e->count; i++)
        if (e->extensions[i].free != NULL) e->extensions[i].free(e->extensions[i].ctx);
    rp_release(alloc, e->deferred, e->deferred_capacity * sizeof(rp_event));
    rp_release(alloc, e->delivered, e->delivered_capacity * sizeof(rp_event));
    rp_release(alloc, e->extensions, e->count * sizeof *e->extensions);
}

rp_status rp_events_reserve_locked(rp_table *t, size_t more)
{
    rp_events *e = &t->events;
    size_t need = e->deferred_count + more;
    size_t capacity = e->deferred_capacity < 64 ? 64 : e->deferred_capacity;

    if (!e->has_deferred || need <= e->deferred_capacity) return RP_OK;
    while (capacity < need) capacity *= 2;
    if (!rp_resize_array(&t->alloc, &e->deferred, e->deferred_capacity, capacity,
                         sizeof(rp_event)))
        return RP_NO_RESOURCE;
    e->deferred_capacity = capacity;
    return RP_OK;
}

void rp_events_append_locked(rp_table *t, rp_event_kind kind, const rp_slot *slot)
{
    rp_events *e = &t->events;
    rp_event event = {.kind = kind};

    if (e->muted) return;
    if (slot != NULL) {
        event.key = slot->key;
        event.priority = slot->priority;
        event.times_sampled = slot->times_sampled;
        event.trajectory = slot->trajectory;
    }
    if (e->has_atomic) {
        if (e->atomic_count == RP_EVENTS_AT_ONCE) rp_events_flush_locked(t);
        assert(e->atomic_count < RP_EVENTS_AT_ONCE); /* E1 */
        e->atomic[e->atomic_count++] = event;
    }
    if (e->has_deferred) {
        assert(e->deferred_count < e->deferred_capacity); /* E2 */
        if (event.trajectory != NULL) (void)rp_trajectory_ref(event.trajectory);
        e->deferred[e->deferred_count++] = event;
    }
}

static void deliver(const rp_events *e, bool deferred, rp_table_view *view,
                    const rp_event *events, size_t count)
{
    for (size_t i = 0; i < e->count; i++)
        if (e->extensions[i].deferred == deferred)
            e->extensions[i].on_events(e->extensions[i].ctx, view, events, count);
}

void rp_events_flush_locked(rp_table *t)
{
    rp_table_view view = {t};
    size_t count = t->events.atomic_count;

    if (count == 0) return;
    assert(rp_mutex_is_held(&t->mu) && t->events.has_atomic); /* E3 */
    rp_log_flush_locked(t); /* before the changes that the extensions make */
    t->events.atomic_count = 0;
    deliver(&t->events, false, &view, t->events.atomic, count);
    rp_log_flush_locked(t);
}

void rp_events_deliver(rp_table *t)
{
    rp_events *e = &t->events;

    rp_mutex_lock(&t->mu);
    if (e->delivering || e->deferred_count == 0) {
        rp_mutex_unlock(&t->mu);
        return;
    }
    e->delivering = true;
    while (e->deferred_count > 0) {
        rp_event *batch = e->deferred;
        size_t count = e->deferred_count, capacity = e->deferred_capacity;

        e->deferred = e->delivered;
        e->deferred_capacity = e->delivered_capacity;
        e->deferred_count = 0;
        e->delivered = batch;
        e->delivered_capacity = capacity;
        rp_mutex_unlock(&t->mu);
        deliveries++;
        deliver(e, true, NULL, batch, count); /* `extensions` is constant */
        deliveries--;
        assert(deliveries >= 0);
        for (size_t i = 0; i < count; i++) rp_trajectory_unref(batch[i].trajectory);
        rp_mutex_lock(&t->mu);
    }
    e->delivering = false;
    rp_mutex_unlock(&t->mu);
}

/* The view. Extensions use it under the table's lock, which the thread-safety analysis cannot
 * see through a callback. */

int64_t rp_view_size(const rp_table_view *view) RP_NO_THREAD_SAFETY_ANALYSIS
{
    return (int64_t)view->table->slots.live;
}

bool rp_view_priority(const rp_table_view *view, uint64_t key,
                      double *priority) RP_NO_THREAD_SAFETY_ANALYSIS
{
    const rp_table *t = view->table;
    uint32_t slot = rp_table_find_locked(t, key, rp_map_tag(&t->keys, key));

    if (slot == RP_MAP_NONE) return false;
    *priority = rp_slots_at(&t->slots, slot)->priority;
    return true;
}

bool rp_view_update(rp_table_view *view, uint64_t key,
                    double priority) RP_NO_THREAD_SAFETY_ANALYSIS
{
    rp_table *t = view->table;
    uint32_t slot = rp_table_find_locked(t, key, rp_map_tag(&t->keys, key));
    rp_weighed weighed;

    if (slot == RP_MAP_NONE) return false;
    if (rp_table_weigh(t, priority, &weighed, NULL) != RP_OK) return false;
    rp_table_set_priority_locked(t, slot, &weighed);
    rp_log_add_update_locked(t, key, priority);
    return true;
}
