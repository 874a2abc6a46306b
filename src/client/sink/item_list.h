/* SPDX-License-Identifier: Apache-2.0 */
/* Items that are not settled, in the order in which they came, to be found by their keys.
 *
 * They stand in slots that are used again, linked in order; so what is settled out of order
 * costs no more than what is settled in order, and the memory is that of the most that were
 * ever there at once. Keys are mostly confirmed in order, so the one behind the last that was
 * removed is looked at first; only when that is not the one are items entered in a map. A plain
 * value. */
#ifndef RP_CLIENT_SINK_ITEM_LIST_H
#define RP_CLIENT_SINK_ITEM_LIST_H

#include "client/sink/sink.h"
#include "util/map.h"

/* Whether an item may have been what made a server end a stream. */
typedef enum rp_trust {
    RP_TRUST_UNTRIED = 0,
    RP_TRUST_SUSPECT,
    RP_TRUST_PASSED, /* has been sent since without harm */
} rp_trust;

typedef struct rp_listed_item {
    rp_sink_item item;
    uint64_t message;    /* it went out with; 0: it has not, on this stream */
    uint32_t prev, next; /* slots, or RP_MAP_NONE; of a free one, `next` is the next free one */
    rp_trust trust;
    bool shares_chunks; /* some of its chunks are in the stream's set */
    bool is_mapped;
} rp_listed_item;

typedef struct rp_item_list {
    rp_map map;
    rp_listed_item *slots;
    size_t used, capacity; /* slots that have ever been used */
    size_t count;
    uint32_t first, last, free, hint;
    uint32_t unmapped; /* from here on items are not in the map */
} rp_item_list;

void rp_item_list_init(rp_item_list *list, const rp_allocator *alloc, uint64_t seed);
/* Lets go of the items that are left. */
void rp_item_list_deinit(rp_item_list *list);

/* Makes room for `more` items. False: no memory. */
bool rp_item_list_reserve(rp_item_list *list, size_t more);
/* There must be room. Takes the reference to the trajectory. Returns its slot. */
uint32_t rp_item_list_append(rp_item_list *list, const rp_sink_item *item);
/* A slot, or RP_MAP_NONE. */
uint32_t rp_item_list_find(rp_item_list *list, uint64_t key);
/* Moves an item to the front. */
void rp_item_list_put_first(rp_item_list *list, uint32_t slot);
/* Takes the item out; its trajectory is the caller's. */
rp_sink_item rp_item_list_remove(rp_item_list *list, uint32_t slot);

#endif
