/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting of memory: each table has an account, and all tables of a store share a budget
 * with a limit.
 *
 * An account counts the bytes of each item (its trajectory and its index entries), the bytes of
 * each chunk (a block of encoded steps, to which the items of a table refer), and the number of
 * episodes. A chunk counts once, even if several items refer to it: from the first item that
 * refers to it until the last such item is removed. The chunk itself stores how many references
 * each table has to the chunk (chunk/holders.h).
 *
 * The budget counts a chunk once for all tables. If several tables hold a chunk, the budget
 * also counts, for each table but the first, RP_HOLDER_BYTES for entries in the table's maps.
 * The budget also counts idle index memory: the index memory of slots (places for items,
 * slots.h) whose items were removed. An account collects changes in `unsettled`. To settle the
 * account means to apply these changes to the budget.
 *
 * Invariants:
 *   A1  account.bytes is the sum of item_cost over the items in the account, plus the memory of
 *       the chunks to which these items refer, each chunk once;
 *   A2  budget.used plus the `unsettled` of all accounts is the sum of these: item_cost of all
 *       items, the memory of all chunks that any table holds, RP_HOLDER_BYTES for each table
 *       but the first that holds the same chunk, and the `idle` of all accounts;
 *   A3  if there is a limit, rp_account_settle_within() never raises budget.used above the
 *       limit minus budget.lost (bytes lost to fragmentation);
 *   A4  in a store with a disk tier (table/spill.h), rp_account_settle_within() ignores
 *       budget.lost, because the limit of the budget then covers bytes in memory and on disk
 *       together. Instead, the tier's `resident` and `small` include budget.lost;
 *   A5  bit i of chunk_counts.used is set exactly if chunk_counts.counts[i] is not 0;
 *   A6  budget.image is the sum of `published` over all accounts; `published` is the value that
 *       `image` plus RP_IMAGE_SLOT_BYTES for each spare slot had at the last
 *       rp_account_publish(). A spare slot is a used slot that has no item;
 *   A7  in the queue of tables that wait for bytes, the tables that were not retried since
 *       bytes were last freed come first. The field rp_table.retried_for of these tables
 *       differs from budget.frees;
 *   A8  while the queue has a table that was not retried since bytes were last freed, a thread
 *       is retrying tables, or on_more has been called and its owner will call
 *       rp_budget_retry().
 *
 * The lock of the table guards its account. A budget is shared, and its counters are atomic. */
#ifndef RP_TABLE_ACCOUNT_H
#define RP_TABLE_ACCOUNT_H

#include <stdatomic.h>

#include "chunk/chunk_api.h"
#include "reprise/store.h"
#include "table/spill.h"
#include "util/count_map.h"
#include "util/mutex.h"
#include "util/refcount.h"

typedef struct rp_budget {
    rp_refcount refs; /* held by the store and by each table */
    rp_allocator alloc;
    rp_mutex entry; /* used only if there is a limit: held from rp_account_enter() until the
                       account is settled or the item is taken back. So before the budget has
                       counted the chunks of the item, no other table can share them */
    rp_mutex mu;    /* guards the queue of tables that wait for bytes */
    uint64_t limit; /* in bytes; 0: none. Constant, like `policy` */
    rp_budget_policy policy;
    rp_spill *spill;           /* the disk tier, or NULL. Set before the store is in use */
    atomic_uint_fast64_t used; /* see invariant A2 */
    atomic_uint_fast64_t idle; /* the part of `used` that is idle index memory */
    atomic_uint_fast64_t lost; /* bytes lost to fragmentation; not part of `used` */
    /* Bytes of chunks that are kept outside tables (invariant N1 in chunk/keep.h). */
    atomic_uint_fast64_t kept;
    atomic_uint_fast64_t image; /* upper bound on the bytes that a checkpoint takes for all
                                   items and slots (invariant A6) */
    atomic_uint_fast64_t freed; /* bytes of items and chunks removed so far */
    atomic_bool wants_relief; /* an insert waits because of `lost`, so rp_store_relieve() should
                                 evict items */
    atomic_uint_fast32_t cuts;    /* number of tables in open cuts (snapshot/cut.h). An open cut
                                     keeps items that are removed from its tables */
    atomic_uint_fast32_t waiting; /* tables that wait for bytes */
    rp_table *first_waiter, *last_waiter RP_GUARDED_BY(mu); /* operation/table_unlock.c */
    uint64_t frees RP_GUARDED_BY(mu); /* how many times bytes were freed while a table waited */
    /* Set by rp_budget_retry_later(); NULL: none. */
    void (*on_more)(void *user) RP_GUARDED_BY(mu);
    void *on_more_user RP_GUARDED_BY(mu);
} rp_budget;

enum {
    /* An account reports its changes to the disk tier at the latest after RP_MAX_MOVED changed
     * chunks, or after RP_MAX_MOVED_BYTES bytes of chunks that got their first holder. A holder
     * of a chunk is a table that has references to it (chunk/holders.h). */
    RP_MAX_MOVED = 64,
    RP_MAX_MOVED_BYTES = 1 << 20,
    RP_HOLDER_BYTES = 128, /* for each table but the first that holds a chunk: its entries in
                              the maps `episodes` and `spilled` */
    /* The idle index memory that a table may have before the budget counts it. */
    RP_FREE_INDEX_BYTES = 128 << 10,
};

/* A histogram of sizes with logarithmic buckets. */
typedef struct rp_sizes {
    uint32_t counts[64];
    uint64_t used; /* bit i: counts[i] is not 0 */
} rp_sizes;

typedef struct rp_account {
    rp_budget *budget;
    uint16_t id;    /* id of the table as a holder of chunks: >= 1, unique within the budget */
    uint64_t bytes; /* see invariant A1 */
    uint64_t chunk_bytes; /* bytes of the chunks as serialised messages */
    uint64_t idle;        /* idle index memory that the budget counts */
    uint64_t small_bytes; /* with a disk tier: bytes that never go to disk */
    int64_t deleted_episodes;
    rp_count_map episodes; /* for each episode: its number of chunks in the table */
    rp_count_map spilled;  /* the table's number of references to each chunk that had no free
                              entry for this table (chunk/holders.h) */
    rp_sizes chunk_counts; /* histogram of the number of chunks of an item */
    uint64_t image;        /* the sum of rp_trajectory_image() over the items */
    uint64_t published;    /* this account's part of budget.image (invariant A6) */
    int64_t unsettled;     /* change of budget.used that was not applied yet */
    int64_t kept;          /* change of budget.kept that was not applied yet */
    uint64_t freed;        /* bytes released since this field was last set to 0 */
    /* Changes that were not reported yet to the disk tier (table/spill.h), if there is one. */
    size_t moved_count;
    uint64_t moved_bytes; /* bytes of the chunks that got their first holder */
    int64_t moved_small;  /* change of the bytes that never go to disk */
    /* Chunks that got their first holder or lost their last one. */
    rp_chunk *moved[RP_MAX_MOVED];
} rp_account;

/* Makes a budget, which the caller owns. Returns NULL if there is no memory. */
rp_budget *rp_budget_new(const rp_allocator *alloc, uint64_t limit, rp_budget_policy policy);
rp_budget *rp_budget_ref(rp_budget *b);
void rp_budget_unref(rp_budget *b); /* NULL is fine */

/* Initializes an account, which adds a reference to the budget. */
void rp_account_init(rp_account *a, rp_budget *budget, uint16_t id, const rp_allocator *alloc,
                     uint64_t seed);
void rp_account_deinit(rp_account *a);

/* Makes room for `chunk_count` more chunks. On RP_NO_RESOURCE nothing has changed. */
RP_NODISCARD rp_status rp_account_reserve(rp_account *a, size_t chunk_count);

/* Binds the chunks of a trajectory to the budget. Returns RP_INVALID if a chunk is bound to
 * another budget, since a chunk cannot be in two stores. Needs no lock. */
RP_NODISCARD rp_status rp_budget_claim(rp_budget *b, const rp_trajectory *trajectory,
                                       rp_error *err);

/* Returns budget.used. Any thread may call this. */
uint64_t rp_budget_used(const rp_budget *b);

/* rp_budget_add_kept() adds `change` to budget.kept, modulo 2^64 (chunk/keep.h).
 * rp_budget_kept() returns budget.kept. Any thread may call both. */
void rp_budget_add_kept(rp_budget *b, uint64_t change);
uint64_t rp_budget_kept(const rp_budget *b);

/* The memory that a store uses and its limit. Bytes on disk and lost bytes do not count. Any
 * thread may call rp_budget_memory_now(). */
typedef struct rp_budget_memory {
    uint64_t limit; /* 0: none */
    uint64_t used;
} rp_budget_memory;

rp_budget_memory rp_budget_memory_now(const rp_budget *b);

/* Writes a part of an error text: an empty text if no bytes are lost to fragmentation,
 * otherwise a text with the number of lost bytes. Returns `text`. */
enum { RP_LOST_TEXT_BYTES = 64 };
char *rp_budget_lost_text(const rp_budget *b, char text[RP_LOST_TEXT_BYTES]);

/* Returns the bytes that an item with this trajectory would add to this account. */
uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory);

/* rp_account_add() adds an item to the account, and rp_account_remove() removes it. The budget
 * changes when the account is settled. */
void rp_account_add(rp_account *a, const rp_trajectory *trajectory);
void rp_account_remove(rp_account *a, const rp_trajectory *trajectory);

/* Returns an upper bound on the number of chunks of any item in the account. The bound is less
 * than twice the true maximum. Returns 0 if there is no item. */
size_t rp_account_most_chunks(const rp_account *a);

/* How adding an item has changed the account. */
typedef struct rp_entry {
    uint64_t bytes;    /* added to account.bytes */
    int64_t unsettled; /* added to account.unsettled */
    size_t episodes;   /* episodes that are new to the account */
} rp_entry;

/* rp_account_enter() adds an item tentatively, to find out whether the item fits. To make room,
 * the caller may then remove other items from the account; chunks that the new item shares with
 * removed items stay counted. If the new item still does not fit, rp_account_take_back()
 * removes it, and leaves `freed` and deleted_episodes as if the item had never been added. */
void rp_account_enter(rp_account *a, const rp_trajectory *trajectory, rp_entry *entry);
void rp_account_take_back(rp_account *a, const rp_trajectory *trajectory,
                          const rp_entry *entry);

/* In the functions below, `spare` is the number of the table's used slots that have no item.
 * These slots cause idle index memory. */

/* Returns by how many bytes the budget would exceed its limit if the account were settled now.
 * Returns 0 if the limit would not be exceeded, or if there is no limit. */
uint64_t rp_account_shortage(const rp_account *a, size_t spare);

/* Returns the bytes that would become free in the budget if the item `leaving` were removed.
 * Chunks that `leaving` shares with another item in the account do not count. */
uint64_t rp_account_gain(const rp_account *a, const rp_trajectory *leaving, size_t spare);

/* Returns an upper bound on the bytes that would become free in the budget if `count` items,
 * which have `bytes` in their account, were removed. */
uint64_t rp_account_most_gain(uint64_t bytes, size_t count, size_t spare);

/* Settles the account and returns true if the budget then stays within its limit (invariant
 * A3). Otherwise changes nothing and returns false. The caller must have held budget.entry
 * since rp_account_enter(). */
bool rp_account_settle_within(rp_account *a, size_t spare);

/* Settles the account: applies its changes to the budget, even beyond the limit, and reports
 * them to the disk tier. Called once per batch, before references to removed items are dropped.
 */
void rp_account_settle(rp_account *a, size_t spare);

/* Applies the account's changes of `image` to budget.image (invariant A6). rp_account_settle()
 * does the same. */
void rp_account_publish(rp_account *a, size_t spare);
/* Returns budget.image, an upper bound on the bytes that a checkpoint takes for all items and
 * slots. It does not include the other state of the tables. Any thread may call this. */
uint64_t rp_budget_image(const rp_budget *b);

/* Returns true if the table should free its indexes. The table must be empty. Returns true if
 * the budget counts idle memory of this table and one of two conditions holds: some table waits
 * for bytes, or the idle memory of all tables is over 1/16 of the limit of the budget or of the
 * disk tier. */
bool rp_account_has_much_idle(const rp_account *a);

/* Frees unused memory of the maps `episodes` and `spilled`, including room made by
 * rp_account_reserve(). Called before the table's lock is released. */
void rp_account_trim(rp_account *a);

/* Returns true if the disk tier's limit on bytes in memory has room for a trajectory. Always
 * returns true if the store has no disk tier. */
bool rp_account_has_room(const rp_account *a, const rp_trajectory *trajectory);

/* For a store with a disk tier: returns the bytes of all tables that always stay in memory:
 * items, chunk headers and small chunks. */
uint64_t rp_account_small(const rp_account *a);
/* Returns the bytes of memory that an item would add to all tables together. Chunks that some
 * table holds already do not count. */
uint64_t rp_account_new_bytes(const rp_trajectory *trajectory);
/* Returns how many bytes that always stay in memory would be freed if the item `leaving` of
 * this table were removed. */
uint64_t rp_account_small_gain(const rp_account *a, const rp_trajectory *leaving);
/* Returns how many bytes of memory would be missing for a trajectory even if all bytes that can
 * go to disk were on disk. Returns 0 if the store has no disk tier. */
uint64_t rp_account_small_shortage(const rp_account *a, const rp_trajectory *trajectory);

/* Zeroes the episode counters. The caller must have removed every item. */
void rp_account_reset(rp_account *a);

#endif
