/* SPDX-License-Identifier: Apache-2.0 */
/* Accounting of memory: an account for each table, a budget for all tables of a store.
 *
 * An account counts the bytes of each item (its trajectory and its index entries), the bytes of
 * each chunk (once, even if several items refer to it), and the number of episodes. A chunk is
 * counted from the first item that refers to it until the last is removed. The number of
 * references of a table to a chunk is stored in the chunk (chunk/holders.h).
 *
 * The tables of a store share a budget. The budget counts a chunk once for all tables, and for
 * each further table that holds it the entries of that table's maps. It also counts idle index
 * memory, which is the index memory of slots whose items were removed. An
 * account collects changes in `unsettled`; to settle the account is to apply them to the
 * budget.
 *
 * Invariants:
 *   A1  account.bytes is the sum of item_cost over the items in the account and of the memory
 *       of the chunks that these refer to, each chunk once;
 *   A2  budget.used plus `unsettled` of all accounts is the sum of item_cost over all items, of
 *       the memory of all chunks that any table holds, of RP_HOLDER_BYTES for each further
 *       table that holds a chunk, and of `idle` over all accounts;
 *   A3  with a limit, rp_account_settle_within() never takes budget.used past the limit less
 *       budget.lost;
 *   A4  in a store with a disk tier, A3 ignores budget.lost, because the limit of the budget is
 *       for bytes in memory and on disk. Instead, budget.lost is included in `resident` and
 *       `small` of the tier (table/spill.h);
 *   A5  bit i of chunk_counts.used is set exactly if chunk_counts.counts[i] is not 0;
 *   A6  budget.image is the sum of `published` over all accounts; `published` is `image` plus
 *       RP_IMAGE_SLOT_BYTES for each spare slot, as of the last rp_account_publish();
 *   A7  in the queue of tables that wait for bytes, tables that were not retried since bytes
 *       were last freed (retried_for is not budget.frees) are before all others;
 *   A8  while the queue has such a table, a thread is retrying tables, or on_more has been
 *       called and rp_budget_retry() will be.
 *
 * An account belongs to a table and is guarded by its lock; a budget is shared and atomic. */
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
    rp_mutex entry; /* with a limit: held from rp_account_enter() until the account is settled
                       or the item is taken back, so that another table cannot share a chunk of
                       the item before the budget has counted the chunk */
    rp_mutex mu;    /* guards the queue of tables that wait for bytes */
    uint64_t limit; /* 0: none. Constant, like the policy */
    rp_budget_policy policy;
    rp_spill *spill;           /* the disk tier, or NULL. Set before the store is in use */
    atomic_uint_fast64_t used; /* A2 */
    atomic_uint_fast64_t idle; /* the part of `used` that is idle index memory */
    atomic_uint_fast64_t lost; /* memory lost to fragmentation; not part of `used` */
    atomic_uint_fast64_t
        kept; /* memory of kept chunks (N1 of chunk/keep.h); not part of `used` */
    atomic_uint_fast64_t image; /* upper bound on the bytes that a checkpoint takes for all
                                   items and slots (A6) */
    atomic_uint_fast64_t
        freed;                 /* bytes of items and chunks that were removed since the start */
    atomic_bool wants_relief;  /* an insert waits because of lost bytes (rp_store_relieve()) */
    atomic_uint_fast32_t cuts; /* tables in open cuts (snapshot/cut.h). An open cut keeps items
                                  that are removed from its tables */
    atomic_uint_fast32_t waiting; /* tables in the queue of tables that wait for bytes */
    rp_table *first_waiter, *last_waiter RP_GUARDED_BY(mu); /* operation/table_unlock.c */
    uint64_t frees RP_GUARDED_BY(mu); /* how often bytes were freed while a table waited */
    void (*on_more)(void *user) RP_GUARDED_BY(mu); /* rp_budget_retry_later(); or NULL */
    void *on_more_user RP_GUARDED_BY(mu);
} rp_budget;

enum {
    /* An account reports to the disk tier after RP_MAX_MOVED chunks, or after
     * RP_MAX_MOVED_BYTES bytes of chunks that got a holder. */
    RP_MAX_MOVED = 64,
    RP_MAX_MOVED_BYTES = 1 << 20,
    RP_HOLDER_BYTES = 128, /* entries of a table that is not the only one to hold a chunk, in
                              the maps `episodes` and `spilled` */
    RP_FREE_INDEX_BYTES = 128 << 10, /* of the idle index memory of a table: the part that the
                                        budget does not count */
};

/* A histogram of sizes with logarithmic buckets. */
typedef struct rp_sizes {
    uint32_t counts[64];
    uint64_t used; /* bit i: counts[i] is not 0 */
} rp_sizes;

typedef struct rp_account {
    rp_budget *budget;
    uint16_t id;    /* of the table, as a holder of chunks: >= 1, unique within the budget */
    uint64_t bytes; /* A1 */
    uint64_t chunk_bytes; /* bytes of the chunks as serialised messages */
    uint64_t idle;        /* idle index memory that the budget counts */
    uint64_t small_bytes; /* with a disk tier: bytes that never go to disk */
    int64_t deleted_episodes;
    rp_count_map episodes; /* by episode: the number of chunks held */
    rp_count_map spilled;  /* by chunk: references to chunks that had no free entry
                              (chunk/holders.h) for this table */
    rp_sizes chunk_counts; /* the number of chunks of each item */
    uint64_t image;        /* the sum of rp_trajectory_image() over the items */
    uint64_t published;    /* this account's part of budget.image (A6) */
    int64_t unsettled;     /* change of budget.used that has not been applied */
    int64_t kept;          /* change of budget.kept that has not been applied */
    uint64_t freed;        /* bytes released since the field was last set to 0 */
    /* Changes that have not been reported to the disk tier, if there is one. */
    size_t moved_count;
    uint64_t moved_bytes;          /* bytes of the chunks that got a holder */
    int64_t moved_small;           /* change of the bytes that never go to disk */
    rp_chunk *moved[RP_MAX_MOVED]; /* got their first holder or lost their last one */
} rp_account;

/* Returns owned, or NULL if there is no memory. */
rp_budget *rp_budget_new(const rp_allocator *alloc, uint64_t limit, rp_budget_policy policy);
rp_budget *rp_budget_ref(rp_budget *b);
void rp_budget_unref(rp_budget *b); /* NULL is fine */

/* The account takes a reference to the budget. */
void rp_account_init(rp_account *a, rp_budget *budget, uint16_t id, const rp_allocator *alloc,
                     uint64_t seed);
void rp_account_deinit(rp_account *a);

/* Makes room for `chunk_count` more chunks. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_account_reserve(rp_account *a, size_t chunk_count);

/* Binds the chunks of a trajectory to the budget. RP_INVALID if a chunk is bound to another
 * budget: a chunk cannot be in two stores. Needs no lock. */
RP_NODISCARD rp_status rp_budget_claim(rp_budget *b, const rp_trajectory *trajectory,
                                       rp_error *err);

/* Bytes in use. Safe from any thread. */
uint64_t rp_budget_used(const rp_budget *b);

/* The first adds `change` to budget.kept, modulo 2^64 (chunk/keep.h); the second returns
 * budget.kept. Both are safe from any thread. */
void rp_budget_add_kept(rp_budget *b, uint64_t change);
uint64_t rp_budget_kept(const rp_budget *b);

/* The memory of a store and its limit. With a disk tier, bytes on disk do not count. Lost bytes
 * do not count either. Safe from any thread. */
typedef struct rp_budget_memory {
    uint64_t limit; /* 0: none */
    uint64_t used;
} rp_budget_memory;

rp_budget_memory rp_budget_memory_now(const rp_budget *b);

/* For error texts: "", or the number of lost bytes. */
enum { RP_LOST_TEXT_BYTES = 64 };
char *rp_budget_lost_text(const rp_budget *b, char text[RP_LOST_TEXT_BYTES]);

/* Bytes that an item with this trajectory would add to this account. */
uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory);

/* Adds an item to the account, or removes it. The budget changes when the account is settled.
 */
void rp_account_add(rp_account *a, const rp_trajectory *trajectory);
void rp_account_remove(rp_account *a, const rp_trajectory *trajectory);

/* An upper bound on the number of chunks of any item in the account: less than twice the
 * largest number. 0 if there is no item. */
size_t rp_account_most_chunks(const rp_account *a);

/* How adding an item has changed the account. */
typedef struct rp_entry {
    uint64_t bytes;    /* added to account.bytes */
    int64_t unsettled; /* added to account.unsettled */
    size_t episodes;   /* episodes that are new to the account */
} rp_entry;

/* Adds an item tentatively, to find out whether it fits. While it is in the account, other
 * items may be removed to make room, and chunks that they share with it stay counted. If it
 * does not fit, rp_account_take_back() removes it: `freed` and deleted_episodes then reflect
 * only the other items. */
void rp_account_enter(rp_account *a, const rp_trajectory *trajectory, rp_entry *entry);
void rp_account_take_back(rp_account *a, const rp_trajectory *trajectory,
                          const rp_entry *entry);

/* In the functions below, `spare` is the number of slots of the table that have no item: they
 * cause idle index memory. */

/* Bytes by which the budget would exceed its limit if the account were settled now. 0 if it
 * would not, or if there is no limit. */
uint64_t rp_account_shortage(const rp_account *a, size_t spare);

/* Bytes that the budget would gain if the item `leaving` were removed. Chunks that it shares
 * with another item in the account do not count. */
uint64_t rp_account_gain(const rp_account *a, const rp_trajectory *leaving, size_t spare);

/* An upper bound on the bytes that the budget would gain if `count` items, which take `bytes`
 * in their account, were removed. */
uint64_t rp_account_most_gain(uint64_t bytes, size_t count, size_t spare);

/* Settles the account and returns true if the budget then stays within its limit (A3); else
 * returns false. The caller has held budget.entry since rp_account_enter(). */
bool rp_account_settle_within(rp_account *a, size_t spare);

/* Applies the changes to the budget, even beyond its limit, and reports them to the disk tier.
 * Called once per batch, before references to removed items are dropped. */
void rp_account_settle(rp_account *a, size_t spare);

/* Adds the changes of `image` to the budget. rp_account_settle() does so, too. */
void rp_account_publish(rp_account *a, size_t spare);
/* An upper bound on the bytes that a checkpoint takes for all items and slots, without the
 * tables' own state. Safe from any thread. */
uint64_t rp_budget_image(const rp_budget *b);

/* True if an empty table should free its indexes. That is so if the budget counts idle memory
 * of this table, and either a table waits for bytes or the idle memory of all tables is over
 * 1/16 of the limit. */
bool rp_account_has_much_idle(const rp_account *a);

/* Frees unused memory of the maps, including room made by rp_account_reserve(). Called before
 * the table's lock is released. */
void rp_account_trim(rp_account *a);

/* True if there is room in memory for a trajectory; always if the store has no disk tier. */
bool rp_account_has_room(const rp_account *a, const rp_trajectory *trajectory);

/* For a store with a disk tier: the bytes of all tables that never go to disk, which are items,
 * chunk headers and small chunks. */
uint64_t rp_account_small(const rp_account *a);
/* Bytes of memory that an item would add to all tables together: chunks that any table holds
 * already do not count. */
uint64_t rp_account_new_bytes(const rp_trajectory *trajectory);
/* The number of bytes that never go to disk and would be freed if the item `leaving` of this
 * table were removed. */
uint64_t rp_account_small_gain(const rp_account *a, const rp_trajectory *leaving);
/* Bytes of memory that a trajectory would lack even if all bytes that can go to disk were on
 * disk; 0 without a disk tier. */
uint64_t rp_account_small_shortage(const rp_account *a, const rp_trajectory *trajectory);

/* Zeroes the episode counters. The caller has removed every item. */
void rp_account_reset(rp_account *a);

#endif
