/* SPDX-License-Identifier: Apache-2.0 */
/* Items, columns and names in memory: immutable, reference counted, so that a reader takes them
 * under the lock without a copy. An item that gets columns is replaced by a new one that shares
 * the old columns. */
#ifndef RP_ROLLOUTS_ROLLOUT_ITEM_H
#define RP_ROLLOUTS_ROLLOUT_ITEM_H

#include "rollouts/rollouts.h"
#include "util/refcount.h"

enum {
    /* What rp_rollout_info.bytes counts. */
    RP_ROLLOUT_GROUP_COST = 1024,
    RP_ROLLOUT_CONSUMER_COST = 64,
    RP_ROLLOUT_PLACE_COST = 16,
    RP_ROLLOUT_ITEM_COST = 128,
    RP_ROLLOUT_COLUMN_COST = 256,
};

struct rp_rollout_name {
    rp_refcount refs;
    rp_allocator alloc;
    size_t size;
    char text[];
};

/* Returns owned. NULL if there is no memory. */
rp_rollout_name *rp_rollout_name_new(const rp_allocator *alloc, rp_string text);
void rp_rollout_name_unref(rp_rollout_name *name); /* NULL is fine */

/* The memory of one column: its data, then its name. */
typedef struct rp_rollout_value {
    rp_refcount refs;
    rp_allocator alloc;
    size_t size; /* of the block */
} rp_rollout_value;

typedef struct rp_rollout_stored {
    rp_rollout_item view; /* first: a rp_rollout_item is the address of its item */
    rp_refcount refs;
    rp_allocator alloc;
    uint64_t bytes; /* that it costs */
    rp_rollout_value **values;
    rp_rollout_column columns[];
} rp_rollout_stored;

/* Bytes of a tensor that was checked. */
size_t rp_rollout_tensor_bytes(const rp_tensor *tensor);

/* The order of names: byte by byte. */
int rp_rollout_compare(rp_string a, rp_string b);
static inline bool rp_rollout_equal(rp_string a, rp_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Makes an item whose columns, which were checked, borrow names and data. It can be measured,
 * and joined once rp_rollout_stored_copy() has copied them. NULL if there is no memory. */
rp_rollout_stored *rp_rollout_stored_borrow(const rp_allocator *alloc,
                                            const rp_rollout_column *columns, size_t count,
                                            int64_t first_version, int64_t last_version);
/* Copies the names and the data, once. False if there is no memory; then free the item. */
RP_NODISCARD bool rp_rollout_stored_copy(rp_rollout_stored *item);
/* Both. Returns owned. */
rp_rollout_stored *rp_rollout_stored_new(const rp_allocator *alloc,
                                         const rp_rollout_column *columns, size_t count,
                                         int64_t first_version, int64_t last_version);
void rp_rollout_stored_unref(rp_rollout_stored *item); /* NULL is fine */

/* How two items are joined. */
typedef struct rp_rollout_join {
    bool versions; /* joins the versions too */
    bool replace;  /* columns that differ are replaced */
    /* The results. */
    bool is_new;      /* `more` has something that the item has not */
    uint64_t bytes;   /* that the joined item costs */
    size_t columns;   /* of the joined item */
    rp_string column; /* of the status */
    int64_t first_version, last_version;
} rp_rollout_join;

/* Computes the results. `more` may be borrowed. RP_EXISTS (join->column has other values),
 * RP_INVALID (too many columns or bytes). */
RP_NODISCARD rp_status rp_rollout_stored_measure(const rp_rollout_stored *item,
                                                 const rp_rollout_stored *more,
                                                 rp_rollout_join *join);
/* Makes the item that was measured. Returns owned; NULL if there is no memory. */
rp_rollout_stored *rp_rollout_stored_join(const rp_rollout_stored *item,
                                          const rp_rollout_stored *more,
                                          const rp_rollout_join *join);

/* Finds a column of an item. NULL if there is none. */
const rp_rollout_column *rp_rollout_item_column(const rp_rollout_item *item, rp_string name);

/* Makes a batch with room for `count` groups, which are added to it one by one. NULL if there
 * is no memory. */
rp_rollout_batch *rp_rollout_batch_new(const rp_allocator *alloc, size_t count,
                                       size_t group_size);

#endif
