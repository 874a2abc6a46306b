/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sink/item_list.h"

#include <assert.h>

#include "util/mem.h"
#include "util/verify.h"

enum { FIRST_CAPACITY = 64 };

void rp_item_list_init(rp_item_list *list, const rp_allocator *alloc, uint64_t seed)
{
    *list = (rp_item_list){.first = RP_MAP_NONE,
                           .last = RP_MAP_NONE,
                           .free = RP_MAP_NONE,
                           .hint = RP_MAP_NONE,
                           .unmapped = RP_MAP_NONE};
    rp_map_init(&list->map, alloc, seed);
}

#ifndef NDEBUG
/* Returns true if I1, I2 and I3 hold. */
static bool is_valid(const rp_item_list *list)
{
    uint32_t prev = RP_MAP_NONE;
    size_t count = 0, free = 0;
    bool is_mapped = true, has_hint = list->hint == RP_MAP_NONE;

    for (uint32_t i = list->first; i != RP_MAP_NONE; prev = i, i = list->slots[i].next) {
        if (i >= list->used || list->slots[i].prev != prev || ++count > list->count)
            return false;
        if (i == list->unmapped) is_mapped = false;
        if (list->slots[i].is_mapped != is_mapped) return false;
        if (i == list->hint) has_hint = true;
    }
    for (uint32_t i = list->free; i != RP_MAP_NONE; i = list->slots[i].next)
        if (i >= list->used || ++free > list->used) return false;
    return prev == list->last && count == list->count && count + free == list->used &&
           list->used <= list->capacity && has_hint;
}
#endif

void rp_item_list_deinit(rp_item_list *list)
{
    for (uint32_t i = list->first; i != RP_MAP_NONE; i = list->slots[i].next)
        rp_trajectory_unref(list->slots[i].item.trajectory);
    rp_release(&list->map.alloc, list->slots, list->capacity * sizeof *list->slots);
    rp_map_deinit(&list->map);
}

bool rp_item_list_reserve(rp_item_list *list, size_t more)
{
    size_t needed = list->count + more, capacity = list->capacity;

    if (needed > capacity) {
        if (capacity == 0) capacity = FIRST_CAPACITY;
        while (capacity < needed) capacity *= 2;
        if (capacity >= RP_MAP_NONE ||
            !rp_resize_array(&list->map.alloc, &list->slots, list->capacity, capacity,
                             sizeof *list->slots))
            return false;
        list->capacity = capacity;
    }
    return rp_map_reserve(&list->map, needed - list->map.count) == RP_OK;
}

uint32_t rp_item_list_append(rp_item_list *list, const rp_sink_item *item)
{
    uint32_t slot = list->free;

    assert(list->count < list->capacity && item->trajectory != NULL);
    if (slot != RP_MAP_NONE)
        list->free = list->slots[slot].next;
    else
        slot = (uint32_t)list->used++;
    list->slots[slot] =
        (rp_listed_item){.item = *item, .prev = list->last, .next = RP_MAP_NONE};
    *(list->last != RP_MAP_NONE ? &list->slots[list->last].next : &list->first) = slot;
    list->last = slot;
    list->count++;
    if (list->unmapped == RP_MAP_NONE) list->unmapped = slot;
    RP_VERIFY(list->used, is_valid(list));
    return slot;
}

/* Enters all items in the map, which has room for them. */
static void map_items(rp_item_list *list)
{
    for (; list->unmapped != RP_MAP_NONE; list->unmapped = list->slots[list->unmapped].next) {
        rp_listed_item *item = &list->slots[list->unmapped];

        item->is_mapped = true;
        rp_map_insert(&list->map, rp_map_tag(&list->map, item->item.key), list->unmapped);
    }
}

uint32_t rp_item_list_find(rp_item_list *list, uint64_t key)
{
    uint32_t tag, slot = list->hint != RP_MAP_NONE ? list->hint : list->first;
    rp_map_cursor at;

    if (slot != RP_MAP_NONE && list->slots[slot].item.key == key) return slot;
    map_items(list);
    tag = rp_map_tag(&list->map, key);
    at = rp_map_start(&list->map, tag);
    while ((slot = rp_map_next(tag, &at)) != RP_MAP_NONE)
        if (list->slots[slot].item.key == key) return slot;
    return RP_MAP_NONE;
}

static void unlink_item(rp_item_list *list, const rp_listed_item *item)
{
    *(item->prev != RP_MAP_NONE ? &list->slots[item->prev].next : &list->first) = item->next;
    *(item->next != RP_MAP_NONE ? &list->slots[item->next].prev : &list->last) = item->prev;
}

void rp_item_list_put_first(rp_item_list *list, uint32_t slot)
{
    rp_listed_item *item = &list->slots[slot];

    assert(slot < list->used && list->count > 0);
    map_items(list); /* I2 */
    unlink_item(list, item);
    item->prev = RP_MAP_NONE;
    item->next = list->first;
    *(list->first != RP_MAP_NONE ? &list->slots[list->first].prev : &list->last) = slot;
    list->first = slot;
    RP_VERIFY(list->used, is_valid(list));
}

rp_sink_item rp_item_list_remove(rp_item_list *list, uint32_t slot)
{
    rp_listed_item *item = &list->slots[slot];

    assert(slot < list->used && list->count > 0);
    unlink_item(list, item);
    if (item->is_mapped)
        rp_map_remove(&list->map, rp_map_tag(&list->map, item->item.key), slot);
    if (list->unmapped == slot) list->unmapped = item->next;
    list->hint = item->next;
    item->next = list->free;
    list->free = slot;
    list->count--;
    RP_VERIFY(list->used, is_valid(list));
    return item->item;
}
