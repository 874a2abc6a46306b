/* SPDX-License-Identifier: Apache-2.0 */
/* The items of rollout buffers, their columns (named tensors), and the names of groups, in
 * memory. Items, columns and names are immutable and have reference counts, so a reader that
 * holds the buffer's lock acquires references and copies nothing. To add columns to an item,
 * the buffer replaces the item with a new item, which shares the columns of the replaced
 * one. */
#ifndef RP_ROLLOUTS_ROLLOUT_ITEM_H
#define RP_ROLLOUTS_ROLLOUT_ITEM_H

#include "rollouts/rollouts.h"
#include "util/refcount.h"

enum {
    /* The bytes that rp_rollout_info.bytes counts for each object. A "place" is the room for
     * one item in a group: a group has group_size places. */
    RP_ROLLOUT_GROUP_COST = 1024,
    RP_ROLLOUT_CONSUMER_COST = 64,
    RP_ROLLOUT_PLACE_COST = 16,
    RP_ROLLOUT_ITEM_COST = 128,
    RP_ROLLOUT_COLUMN_COST = 256,
};

struct rp_rollout_name {
    rp_refcount refs;
    rp_allocator alloc;
    size_t size; /* of the text, in bytes */
    char text[];
};

/* Copies `text` to a new name, which the caller owns. Returns NULL if memory runs out. */
rp_rollout_name *rp_rollout_name_new(const rp_allocator *alloc, rp_string text);
void rp_rollout_name_unref(rp_rollout_name *name); /* NULL is fine */

/* The header of a block with one column: the column's data and then its name follow. */
typedef struct rp_rollout_value {
    rp_refcount refs;
    rp_allocator alloc;
    size_t size; /* of the whole block */
} rp_rollout_value;

/* An item. */
typedef struct rp_rollout_stored {
    rp_rollout_item view; /* must be first: readers get a pointer to `view`, which is converted
                             back to a pointer to the item */
    rp_refcount refs;
    rp_allocator alloc;
    uint64_t bytes;            /* the bytes that rp_rollout_info.bytes counts for the item */
    rp_rollout_value **values; /* the blocks of the columns */
    rp_rollout_column columns[];
} rp_rollout_stored;

/* Returns the number of bytes of a tensor. The tensor must have passed
 * rp_rollout_check_columns() (rollout_op_inside.h). */
size_t rp_rollout_tensor_bytes(const rp_tensor *tensor);

/* Compares two names byte by byte. The result is < 0, 0 or > 0, as for memcmp(). */
int rp_rollout_compare(rp_string a, rp_string b);
static inline bool rp_rollout_equal(rp_string a, rp_string b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Makes an item that borrows the names and data of its columns. The columns must have passed
 * rp_rollout_check_columns(). Before rp_rollout_stored_copy(), the item may be passed to
 * rp_rollout_stored_measure() but not to rp_rollout_stored_join(). Returns NULL if memory runs
 * out. */
rp_rollout_stored *rp_rollout_stored_borrow(const rp_allocator *alloc,
                                            const rp_rollout_column *columns, size_t count,
                                            int64_t first_version, int64_t last_version);
/* Copies the borrowed names and data into the item. The caller must call this at most once per
 * item. Returns false if memory runs out; the caller must then free the item. */
RP_NODISCARD bool rp_rollout_stored_copy(rp_rollout_stored *item);
/* Makes an item with copied columns: rp_rollout_stored_borrow(), then rp_rollout_stored_copy().
 * The caller owns it. Returns NULL if memory runs out. */
rp_rollout_stored *rp_rollout_stored_new(const rp_allocator *alloc,
                                         const rp_rollout_column *columns, size_t count,
                                         int64_t first_version, int64_t last_version);
void rp_rollout_stored_unref(rp_rollout_stored *item); /* NULL is fine */

/* How the columns of an item `more` are added to an item `item`. The result is called the
 * joined item. */
typedef struct rp_rollout_join {
    bool versions; /* extend the range of versions of `item` by the range of `more` */
    bool replace;  /* replace columns whose values differ */
    /* rp_rollout_stored_measure() sets these: */
    bool is_new;      /* the joined item differs from `item` */
    uint64_t bytes;   /* the bytes that rp_rollout_info.bytes counts for the joined item */
    size_t columns;   /* number of columns of the joined item */
    rp_string column; /* if the function returns RP_EXISTS: the column with other values */
    int64_t first_version, last_version; /* of the joined item */
} rp_rollout_join;

/* Computes the results in `join`, and checks the limits of the joined item. `more` may be an
 * item of rp_rollout_stored_borrow(). Returns RP_EXISTS if `item` has a column of the same name
 * with other values, or RP_INVALID if the joined item would have too many columns or bytes. */
RP_NODISCARD rp_status rp_rollout_stored_measure(const rp_rollout_stored *item,
                                                 const rp_rollout_stored *more,
                                                 rp_rollout_join *join);
/* Makes the joined item after rp_rollout_stored_measure(). The caller owns it. Returns NULL if
 * memory runs out. */
rp_rollout_stored *rp_rollout_stored_join(const rp_rollout_stored *item,
                                          const rp_rollout_stored *more,
                                          const rp_rollout_join *join);

/* Returns the column of an item with this name, or NULL if the item has none. */
const rp_rollout_column *rp_rollout_item_column(const rp_rollout_item *item, rp_string name);

/* Makes an empty batch with room for `count` groups, which rp_rollout_batch_add() adds. Returns
 * NULL if memory runs out. */
rp_rollout_batch *rp_rollout_batch_new(const rp_allocator *alloc, size_t count,
                                       size_t group_size);

#endif
