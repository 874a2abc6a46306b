/* SPDX-License-Identifier: Apache-2.0 */
/* Groups, their names and the queues. Memory for each list is reserved before a group begins,
 * so that no later change of a list fails. */
#include <assert.h>

#include "rollouts/rollouts_calls.h"
#include "util/mem.h"
#include "util/wide.h"

enum { FIRST_SLOTS = 16 };

static_assert(sizeof(rp_rollout_group) + sizeof(rp_rollout_entry) + sizeof(rp_rollout_name) +
                      RP_ROLLOUT_NAME_BYTES + 256 <=
                  RP_ROLLOUT_GROUP_COST,
              "info.bytes covers the memory");
static_assert(sizeof(rp_rollout_turn) + sizeof(void *) <= RP_ROLLOUT_CONSUMER_COST,
              "info.bytes covers the memory");

/* A keyed hash, so that a peer that chooses names cannot cause collisions. */
static uint64_t hash_of(const rp_rollouts *r, rp_string name)
{
    uint64_t hash = r->seed ^ name.size;

    for (size_t i = 0; i < name.size; i += 8) {
        uint64_t word = 0;
        rp_u128 product;

        memcpy(&word, name.data + i, name.size - i < 8 ? name.size - i : 8);
        product = (rp_u128)(hash ^ word ^ 0x9e3779b97f4a7c15) * ((r->seed << 1) | 1);
        hash = (uint64_t)(product >> 64) ^ (uint64_t)product;
        product = (rp_u128)(hash ^ 0xd1b54a32d192ed03) * 0xaef17502108ef2d9;
        hash = (uint64_t)(product >> 64) ^ (uint64_t)product;
    }
    return hash;
}

rp_rollout_entry *rp_rollout_find(const rp_rollouts *r, rp_string name)
{
    uint32_t tag = rp_map_tag(&r->map, hash_of(r, name));
    rp_map_cursor at = rp_map_start(&r->map, tag);
    uint32_t slot;

    assert(rp_mutex_is_held(&r->mu));
    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (rp_rollout_equal(rp_rollout_name_text(r->entries[slot]->name), name))
            return r->entries[slot];
    return NULL;
}

static bool reserve_slot(rp_rollouts *r)
{
    size_t capacity = r->slot_capacity > 0 ? 2 * r->slot_capacity : FIRST_SLOTS;

    if (r->free_count > 0 || r->slot_count < r->slot_capacity) return true;
    /* If the second array cannot grow, the first one keeps its old size. */
    uint32_t *slots = rp_alloc_array(&r->alloc, capacity, sizeof *slots);

    if (slots == NULL) return false;
    if (!rp_resize_array(&r->alloc, &r->entries, r->slot_capacity, capacity,
                         sizeof(rp_rollout_entry *))) {
        rp_release(&r->alloc, slots, capacity * sizeof *slots);
        return false;
    }
    if (r->free_count > 0) memcpy(slots, r->free_slots, r->free_count * sizeof *slots);
    rp_release(&r->alloc, r->free_slots, r->slot_capacity * sizeof *slots);
    r->free_slots = slots;
    r->slot_capacity = capacity;
    return true;
}

bool rp_rollout_reserve(rp_rollouts *r)
{
    size_t groups = (size_t)r->group_count + 1;
    bool ok = reserve_slot(r) && rp_map_reserve(&r->map, 1) == RP_OK &&
              rp_rollout_heap_reserve(&r->ages, &r->alloc, groups) &&
              rp_rollout_heap_reserve(&r->oldest, &r->alloc, groups) &&
              rp_rollout_heap_reserve(&r->times, &r->alloc, groups);

    for (size_t i = 0; ok && i < r->options->consumer_count; i++)
        ok = rp_rollout_heap_reserve(&r->queues[i].ready, &r->alloc, groups);
    return ok;
}

rp_rollout_entry *rp_rollout_entry_new(const rp_rollouts *r, rp_string name)
{
    rp_rollout_entry *entry = rp_alloc_zero(&r->alloc, sizeof *entry);

    if (entry == NULL) return NULL;
    entry->name = rp_rollout_name_new(&r->alloc, name);
    if (entry->name != NULL) return entry;
    rp_release(&r->alloc, entry, sizeof *entry);
    return NULL;
}

void rp_rollout_entry_free(rp_rollouts *r, rp_rollout_entry *entry)
{
    if (entry == NULL) return;
    rp_rollout_name_unref(entry->name);
    rp_release(&r->alloc, entry, sizeof *entry);
}

static size_t group_size_of(size_t consumers, size_t items)
{
    return sizeof(rp_rollout_group) + consumers * sizeof(rp_rollout_turn) +
           items * sizeof(rp_rollout_stored *);
}

rp_rollout_group *rp_rollout_group_new(const rp_rollouts *r)
{
    const rp_rollout_options *o = r->options;
    rp_rollout_group *group =
        rp_alloc_zero(&r->alloc, group_size_of(o->consumer_count, o->group_size));

    if (group == NULL) return NULL;
    group->size = o->group_size;
    group->consumer_count = (uint32_t)o->consumer_count;
    group->items = (rp_rollout_stored **)(void *)(group->turns + o->consumer_count);
    group->bytes = rp_rollout_group_cost(r);
    for (size_t i = 0; i < o->consumer_count; i++) /* G5 */
        group->turns[i].missing = o->group_size * (1 + (uint32_t)o->consumers[i].column_count);
    return group;
}

void rp_rollout_group_free(rp_rollouts *r, rp_rollout_group *group)
{
    if (group == NULL) return;
    for (uint32_t i = 0; i < group->size; i++) rp_rollout_stored_unref(group->items[i]);
    rp_release(&r->alloc, group, group_size_of(group->consumer_count, group->size));
}

uint64_t rp_rollout_group_cost(const rp_rollouts *r)
{
    return RP_ROLLOUT_GROUP_COST +
           (uint64_t)RP_ROLLOUT_CONSUMER_COST * r->options->consumer_count +
           (uint64_t)RP_ROLLOUT_PLACE_COST * r->options->group_size;
}

rp_rollout_fate rp_rollout_state(const rp_rollout_group *group)
{
    if (group->lease_count > 0) return RP_ROLLOUT_LEASED;
    if (group->item_count == group->size) return RP_ROLLOUT_COMPLETE;
    return group->item_count > 0 ? RP_ROLLOUT_PARTIAL : RP_ROLLOUT_RESERVED;
}

void rp_rollout_entry_add(rp_rollouts *r, rp_rollout_entry *entry)
{
    entry->tag = rp_map_tag(&r->map, hash_of(r, rp_rollout_name_text(entry->name)));
    if (r->free_count > 0) {
        entry->slot = r->free_slots[--r->free_count];
    } else {
        assert(r->slot_count < r->slot_capacity);
        entry->slot = (uint32_t)r->slot_count++;
    }
    r->entries[entry->slot] = entry;
    rp_map_insert(&r->map, entry->tag, entry->slot);
}

static void forget(rp_rollouts *r, rp_rollout_entry *entry)
{
    assert(entry->group == NULL && r->entries[entry->slot] == entry);
    assert(r->free_count < r->slot_count);
    rp_map_remove(&r->map, entry->tag, entry->slot);
    r->entries[entry->slot] = NULL;
    r->free_slots[r->free_count++] = entry->slot;
}

void rp_rollout_recall(rp_rollouts *r, rp_rollout_entry *entry)
{
    assert(entry->group == NULL && r->gone_count > 0);
    assert((entry->prev == NULL) == (r->gone_first == entry));
    assert((entry->next == NULL) == (r->gone_last == entry));
    if (entry->prev != NULL)
        entry->prev->next = entry->next;
    else
        r->gone_first = entry->next;
    if (entry->next != NULL)
        entry->next->prev = entry->prev;
    else
        r->gone_last = entry->prev;
    entry->prev = entry->next = NULL;
    r->gone_count--;
}

void rp_rollout_retire(rp_rollout_work *w, rp_rollout_entry *entry, rp_rollout_fate fate)
{
    rp_rollouts *r = w->r;

    assert(fate >= RP_ROLLOUT_ACKNOWLEDGED && fate <= RP_ROLLOUT_EXPIRED);
    entry->group = NULL;
    entry->fate = fate;
    entry->prev = r->gone_last;
    entry->next = NULL;
    if (r->gone_last != NULL)
        r->gone_last->next = entry;
    else
        r->gone_first = entry;
    r->gone_last = entry;
    if (++r->gone_count <= RP_ROLLOUT_REMEMBERED) return; /* G1 */
    entry = r->gone_first;
    rp_rollout_recall(r, entry);
    forget(r, entry);
    entry->next = w->forgotten;
    w->forgotten = entry;
}

void rp_rollout_begin(rp_rollouts *r, rp_rollout_entry *entry, rp_rollout_group *group)
{
    assert(entry->group == NULL && entry->prev == NULL && entry->next == NULL);
    assert(group->item_count == 0 && group->lease_count == 0);
    entry->group = group;
    group->entry = entry;
    group->number = r->next_number++;
    group->prev = r->last;
    group->next = NULL;
    if (r->last != NULL)
        r->last->next = group;
    else
        r->first = group;
    r->last = group; /* G2 */
    r->group_count++;
    r->counts[RP_ROLLOUT_RESERVED]++;
    r->bytes += group->bytes;
    group->age.tie = group->turn.tie = group->time.tie = group->number;
    group->turn.key = (int64_t)group->number;
    rp_rollout_heap_insert(&r->oldest, &group->turn); /* G7 */
}

static void unlink_group(rp_rollouts *r, rp_rollout_group *group)
{
    if (group->prev != NULL)
        group->prev->next = group->next;
    else
        r->first = group->next;
    if (group->next != NULL)
        group->next->prev = group->prev;
    else
        r->last = group->prev;
}

static void count_removed(rp_rollout_work *w, rp_rollout_fate fate)
{
    rp_rollouts *r = w->r;

    w->result->releases = true;
    if (fate == RP_ROLLOUT_ACKNOWLEDGED) r->acknowledged++, w->result->acknowledged++;
    if (fate == RP_ROLLOUT_STALE) r->stale++, w->result->stale++;
    if (fate == RP_ROLLOUT_EVICTED) r->evicted++, w->result->evicted++;
    if (fate == RP_ROLLOUT_ABORTED) r->aborted++;
    if (fate == RP_ROLLOUT_EXPIRED) r->expired_reservations++, w->result->expired++;
}

void rp_rollout_remove(rp_rollout_work *w, rp_rollout_group *group, rp_rollout_fate fate)
{
    rp_rollouts *r = w->r;

    assert(group->lease_count == 0);
    assert(r->group_count > 0 && r->bytes >= group->bytes);
    assert(r->counts[rp_rollout_state(group)] > 0 && group->entry->group == group);
    rp_rollout_preserve(r, group, true);
    r->counts[rp_rollout_state(group)]--;
    r->group_count--;
    r->item_count -= group->item_count;
    r->bytes -= group->bytes;
    rp_rollout_heap_remove(&r->ages, &group->age);
    rp_rollout_heap_remove(&r->oldest, &group->turn);
    rp_rollout_heap_remove(&r->times, &group->time);
    for (uint32_t i = 0; i < group->consumer_count; i++) {
        rp_rollout_heap_remove(&r->queues[i].ready, &group->turns[i].node);
        r->queues[i].done -= group->turns[i].is_done;
    }
    unlink_group(r, group);
    rp_rollout_retire(w, group->entry, fate);
    count_removed(w, fate);
    group->next = w->removed;
    w->removed = group;
}

void rp_rollout_set_time(rp_rollouts *r, rp_rollout_group *group, int64_t ttl_ns,
                         int64_t until_ns)
{
    assert(ttl_ns >= 0 && ttl_ns <= RP_ROLLOUT_MOST_TTL_NS);
    assert(ttl_ns == 0 || group->item_count < group->size); /* G4 */
    rp_rollout_preserve(r, group, false);
    rp_rollout_heap_remove(&r->times, &group->time);
    group->ttl_ns = ttl_ns;
    group->time.key = until_ns;
    if (ttl_ns > 0) rp_rollout_heap_insert(&r->times, &group->time);
}

static int64_t key_of(const rp_rollouts *r, const rp_rollout_group *group, size_t consumer)
{
    int64_t number = (int64_t)group->turns[consumer].ready_number;

    if (r->options->order == RP_ROLLOUT_FRESHEST) return -group->first_version;
    return r->options->order == RP_ROLLOUT_LIFO ? -number : number;
}

void rp_rollout_enqueue(rp_rollouts *r, rp_rollout_group *group, size_t consumer)
{
    rp_rollout_turn *turn = &group->turns[consumer];

    assert(turn->missing == 0 && turn->lease == 0 && !turn->is_done); /* G6 */
    assert(turn->ready_number > 0 && turn->ready_number < r->next_ready);
    turn->node.key = key_of(r, group, consumer);
    turn->node.tie = turn->ready_number;
    rp_rollout_heap_insert(&r->queues[consumer].ready, &turn->node);
}

void rp_rollout_reorder(rp_rollouts *r)
{
    for (rp_rollout_group *group = r->first; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->consumer_count; i++)
            if (group->turns[i].node.at > 0) group->turns[i].node.key = key_of(r, group, i);
    for (size_t i = 0; i < r->options->consumer_count; i++)
        rp_rollout_heap_rebuild(&r->queues[i].ready);
}

bool rp_rollout_make_ready(rp_rollouts *r, rp_rollout_group *group)
{
    bool any = false;

    for (uint32_t i = 0; i < group->consumer_count; i++) {
        rp_rollout_turn *turn = &group->turns[i];

        if (turn->missing > 0 || turn->ready_number > 0) continue;
        turn->ready_number = r->next_ready++;
        rp_rollout_enqueue(r, group, i);
        any = true;
    }
    return any;
}

/* Joins the versions of an item with those of its group. */
static void join_versions(rp_rollouts *r, rp_rollout_group *group, const rp_rollout_item *item)
{
    bool is_first = group->item_count == 0;

    if (is_first || item->last_version > group->last_version)
        group->last_version = item->last_version;
    if (!is_first && item->first_version >= group->first_version) return;
    group->first_version = item->first_version;
    rp_rollout_heap_set_key(&r->ages, &group->age, item->first_version);
    if (r->options->order != RP_ROLLOUT_FRESHEST) return;
    for (uint32_t i = 0; i < group->consumer_count; i++)
        rp_rollout_heap_set_key(&r->queues[i].ready, &group->turns[i].node,
                                -item->first_version);
}

/* Subtracts the columns of `item` that `old` (may be NULL) does not have. */
static void count_columns(rp_rollouts *r, rp_rollout_group *group, const rp_rollout_item *item,
                          const rp_rollout_item *old)
{
    for (size_t i = 0; i < item->column_count; i++) {
        uint32_t consumers = rp_rollout_needed_by(r, item->columns[i].name);

        if (consumers == 0) continue;
        if (old != NULL && rp_rollout_item_column(old, item->columns[i].name) != NULL) continue;
        for (uint32_t k = 0; k < group->consumer_count; k++)
            group->turns[k].missing -= consumers >> k & 1;
    }
}

rp_rollout_stored *rp_rollout_set_item(rp_rollouts *r, rp_rollout_group *group, uint32_t index,
                                       rp_rollout_stored *item)
{
    rp_rollout_stored *old = group->items[index];
    uint64_t more = item->bytes - (old != NULL ? old->bytes : 0); /* modulo 2^64 */

    assert(index < group->size && group->number < r->next_number);
    assert(old == NULL || old->view.column_count <= item->view.column_count);
    rp_rollout_preserve(r, group, false);
    r->counts[rp_rollout_state(group)]--;
    join_versions(r, group, &item->view);
    count_columns(r, group, &item->view, old != NULL ? &old->view : NULL);
    group->items[index] = item;
    group->bytes += more;
    r->bytes += more;
    if (group->lease_count > 0) r->leased_bytes += more;
    if (old == NULL) {
        group->item_count++;
        r->item_count++;
        for (uint32_t i = 0; i < group->consumer_count; i++) group->turns[i].missing--;
        if (group->age.at == 0 && group->lease_count == 0) {
            group->age.key = group->first_version;
            rp_rollout_heap_insert(&r->ages, &group->age); /* G7 */
        }
        if (group->item_count == group->size) rp_rollout_set_time(r, group, 0, 0); /* G4 */
    }
    r->counts[rp_rollout_state(group)]++;
    return old;
}

void rp_rollout_lease_begins(rp_rollouts *r, rp_rollout_group *group)
{
    assert(group->item_count == group->size && group->lease_count < group->consumer_count);
    if (group->lease_count++ > 0) return;
    r->counts[RP_ROLLOUT_COMPLETE]--;
    r->counts[RP_ROLLOUT_LEASED]++;
    r->leased_bytes += group->bytes;
    rp_rollout_heap_remove(&r->ages, &group->age);
    rp_rollout_heap_remove(&r->oldest, &group->turn);
}

void rp_rollout_lease_ends(rp_rollouts *r, rp_rollout_group *group)
{
    assert(group->lease_count > 0 && group->turn.at == 0 && group->age.at == 0);
    if (--group->lease_count > 0) return;
    r->counts[RP_ROLLOUT_LEASED]--;
    r->counts[RP_ROLLOUT_COMPLETE]++;
    r->leased_bytes -= group->bytes;
    group->age.key = group->first_version;
    rp_rollout_heap_insert(&r->ages, &group->age);
    rp_rollout_heap_insert(&r->oldest, &group->turn);
}

int64_t rp_rollout_staleness_of(const rp_rollouts *r, int64_t first_version)
{
    return r->version > first_version ? r->version - first_version : 0;
}

bool rp_rollout_is_stale(const rp_rollouts *r, int64_t first_version)
{
    return r->options->staleness == RP_ROLLOUT_DROP && r->options->max_staleness >= 0 &&
           rp_rollout_staleness_of(r, first_version) > r->options->max_staleness;
}

void rp_rollout_find_stale(rp_rollouts *r)
{
    const rp_rollout_node *node = rp_rollout_heap_first(&r->ages);

    r->has_stale = node != NULL && rp_rollout_is_stale(r, node->key); /* G9 */
}

size_t rp_rollout_drop_stale(rp_rollout_work *w)
{
    rp_rollouts *r = w->r;
    size_t count = 0;

    rp_rollout_find_stale(r);
    while (r->has_stale && count++ < RP_ROLLOUT_STEP) {
        rp_rollout_node *node = rp_rollout_heap_first(&r->ages);

        rp_rollout_remove(
            w, (rp_rollout_group *)(void *)((char *)node - offsetof(rp_rollout_group, age)),
            RP_ROLLOUT_STALE);
        rp_rollout_find_stale(r);
    }
    return count;
}
