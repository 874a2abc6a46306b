/* SPDX-License-Identifier: Apache-2.0 */
/* A list of the items that a server has not confirmed or rejected yet, in order of arrival,
 * with lookup by key.
 *
 * Items are in an array of slots, which are reused; links between slots give the order. Any
 * item can be removed in constant time. The list never frees slots. Servers mostly confirm
 * items in order, so a lookup first tries the item after the one that was removed last. Only
 * when this first try fails are items entered in a hash map. Not thread-safe.
 *
 * Invariants:
 *   I1  the links from `first` to `last` visit `count` slots, each once. The other slots below
 *       `used` are in the free list. used <= capacity;
 *   I2  the items from `unmapped` on are not in the map; all items before it are in the map;
 *   I3  `hint` is a slot of the list or RP_MAP_NONE. */
#ifndef RP_CLIENT_SINK_ITEM_LIST_H
#define RP_CLIENT_SINK_ITEM_LIST_H

#include "client/sink/sink.h"
#include "util/map.h"

/* Whether an item is possibly the reason why a server has ended a stream. */
typedef enum rp_trust {
    RP_TRUST_UNTRIED = 0,
    RP_TRUST_SUSPECT, /* the item was unconfirmed when a stream ended */
    RP_TRUST_PASSED,  /* the item was sent again since then, and the stream did not end */
} rp_trust;

typedef struct rp_listed_item {
    rp_sink_item item;
    uint64_t message;    /* number of the message (rp_remote_sink.message) with this item; 0:
                            not sent on this stream */
    uint32_t prev, next; /* slots or RP_MAP_NONE. `next` of a free slot is the next free slot */
    rp_trust trust;
    bool shares_chunks; /* some of its chunks are in the rp_sent_chunks of the stream
                           (sent_chunks.h) */
    bool is_mapped;     /* the item is in the map */
} rp_listed_item;

typedef struct rp_item_list {
    rp_map map;
    rp_listed_item *slots;
    size_t used, capacity;            /* slots that were ever used; slots in the array */
    size_t count;                     /* items */
    uint32_t first, last, free, hint; /* hint: where the next lookup begins */
    uint32_t unmapped;                /* first item that is not in the map */
} rp_item_list;

void rp_item_list_init(rp_item_list *list, const rp_allocator *alloc, uint64_t seed);
/* Releases the remaining items. */
void rp_item_list_deinit(rp_item_list *list);

/* Makes room for `more` further items. Returns false if memory runs out. */
bool rp_item_list_reserve(rp_item_list *list, size_t more);
/* Appends an item, for which there must be room, and takes over the reference to its
 * trajectory. Returns the slot. */
uint32_t rp_item_list_append(rp_item_list *list, const rp_sink_item *item);
/* Returns the slot of the item with this key, or RP_MAP_NONE. */
uint32_t rp_item_list_find(rp_item_list *list, uint64_t key);
/* Moves an item to the front of the list. */
void rp_item_list_put_first(rp_item_list *list, uint32_t slot);
/* Removes an item and returns it. The caller then owns the reference to its trajectory. */
rp_sink_item rp_item_list_remove(rp_item_list *list, uint32_t slot);

#endif
