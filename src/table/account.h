/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a table's items, and of all tables of a store.
 *
 * An account counts, for one table: each item (its trajectory and its entries in the indexes),
 * each chunk once, however many items refer to it, and episodes. A chunk enters the account
 * with the first item that refers to it and leaves with the last. How often a table refers to a
 * chunk stands in the chunk itself (chunk/holders.h).
 *
 * The tables of a store share a budget. It counts a chunk once for all tables, and besides the
 * items the index memory that tables keep for items they no longer have.
 *
 * Invariants:
 *   A1  account.bytes is the sum of item_cost over the items counted in and of cost over the
 *       chunks that these refer to, each chunk once;
 *   A2  budget.used plus the `unsettled` of all accounts is the sum of item_cost over all
 * items,
 *       of cost over all chunks that any table holds, and of `idle` over all accounts;
 *   A3  with a limit, rp_account_settle_within() never takes budget.used past it, nor past what
 *       budget.lost leaves of it;
 *   A4  in a store with a disk tier, budget.lost is part of its `resident` and `small`, and the
 *       limit of the budget, which counts what is on disk as well, does not know of it.
 *
 * An account belongs to a table and is guarded by its lock; a budget is shared and atomic. */
#ifndef RP_TABLE_ACCOUNT_H
#define RP_TABLE_ACCOUNT_H

#include <stdatomic.h>

#include "reprise/store.h"
#include "table/spill.h"
#include "util/count_map.h"
#include "util/mutex.h"
#include "util/refcount.h"

typedef struct rp_budget {
    rp_refcount refs; /* the store's, and one of each table */
    rp_allocator alloc;
    rp_mutex entry; /* with a limit: held while an item is counted in until the account is
                       settled or the item taken back, so that no other table shares a chunk
                       with it that has not been paid for */
    rp_mutex mu;    /* guards the list of tables that wait for bytes */
    uint64_t limit; /* 0: none. Fixed at birth, like the policy */
    rp_budget_policy policy;
    rp_spill *spill;           /* the disk tier, or NULL. Set while nobody uses the store */
    atomic_uint_fast64_t used; /* A2 */
    atomic_uint_fast64_t idle; /* of these, index memory without items */
    atomic_uint_fast64_t lost; /* memory that holds nothing and that others cannot use;
                                  beside `used`. rp_budget_set_lost() */
    atomic_uint_fast64_t kept; /* of chunks that are kept and that no table holds: K1 of
                                  chunk/keep.h; beside `used`, and not bounded by `limit` */
    atomic_bool wants_relief;  /* an insert waits because of lost bytes: rp_store_relieve() */
    atomic_uint_fast32_t cuts; /* open ones of tables: they keep items that have left */
    atomic_uint_fast32_t waiting; /* tables in which somebody waits for bytes: those in line */
    rp_table *first_waiter, *last_waiter RP_GUARDED_BY(mu); /* leave.c */
} rp_budget;

enum {
    RP_MAX_MOVED = 64,
    RP_MAX_MOVED_BYTES = 1 << 20,
    RP_FREE_INDEX_BYTES = 128 << 10, /* of idle index memory that a table is not charged for */
};

/* Numbers of items, by the logarithm of something that they have. */
typedef struct rp_sizes {
    uint32_t counts[64];
    uint64_t used; /* bit i: counts[i] is not 0 */
} rp_sizes;

typedef struct rp_account {
    rp_budget *budget;
    uint16_t id;          /* among the holders of a chunk: >= 1, unique within the budget */
    uint64_t bytes;       /* A1 */
    uint64_t chunk_bytes; /* messages of the chunks */
    uint64_t idle;        /* index memory without items that the budget has been charged for */
    uint64_t small_bytes; /* of what never goes to disk, in a store with a disk tier */
    int64_t deleted_episodes;
    rp_count_map episodes; /* chunks held, by episode */
    rp_count_map spilled;  /* references to chunks that have no room for our count, by chunk */
    rp_sizes chunk_counts; /* of the items */
    int64_t unsettled;     /* change of the budget's bytes that it does not know yet */
    int64_t kept;          /* change of the budget's `kept` that it does not know yet */
    uint64_t freed;        /* bytes that left it since somebody last looked */
    /* What the disk tier, if there is one, has not been told yet. */
    size_t moved_count;
    uint64_t moved_bytes; /* of chunks that came */
    int64_t moved_small;  /* bytes of chunks that never go to disk: come, less gone */
    rp_chunk *moved[RP_MAX_MOVED];
} rp_account;

/* Returns owned, or NULL if there is no memory. */
rp_budget *rp_budget_new(const rp_allocator *alloc, uint64_t limit, rp_budget_policy policy);
rp_budget *rp_budget_ref(rp_budget *b);
void rp_budget_unref(rp_budget *b); /* NULL is fine */

/* The account takes a reference to the budget. */
void rp_account_init(rp_account *a, rp_budget *budget, uint16_t id, const rp_allocator *alloc,
                     uint64_t seed);
void rp_account_deinit(rp_account *a);

/* Room for `chunk_count` more chunks. RP_NO_RESOURCE, with nothing changed. */
RP_NODISCARD rp_status rp_account_reserve(rp_account *a, size_t chunk_count);

/* Binds the chunks of a trajectory to the budget. RP_INVALID if one belongs to another: a chunk
 * cannot be in two stores. Needs no lock. */
RP_NODISCARD rp_status rp_budget_adopt(rp_budget *b, const rp_trajectory *trajectory,
                                       rp_error *err);

/* Bytes in use. Safe from any thread. */
uint64_t rp_budget_used(const rp_budget *b);

/* Of chunks that are kept outside of tables and are in none: `change` is modulo 2^64. Safe from
 * any thread. */
void rp_budget_add_kept(rp_budget *b, uint64_t change);
uint64_t rp_budget_kept(const rp_budget *b);

/* What a store may have in memory and has: all of it, or with a disk tier what is not on disk
 * only. Lost bytes are in none of these. Safe from any thread. */
typedef struct rp_budget_memory {
    uint64_t limit; /* 0: none */
    uint64_t used;
} rp_budget_memory;

rp_budget_memory rp_budget_memory_now(const rp_budget *b);

/* For texts: "", or that there are lost bytes and how many. */
enum { RP_LOST_TEXT_BYTES = 64 };
char *rp_budget_lost_text(const rp_budget *b, char text[RP_LOST_TEXT_BYTES]);

/* Bytes that an item over the trajectory would add to this account. */
uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory);

/* Counts an item in or out. The budget learns of it when the account is settled. */
void rp_account_add(rp_account *a, const rp_trajectory *trajectory);
void rp_account_remove(rp_account *a, const rp_trajectory *trajectory);

/* An upper bound of how many chunks an item that is counted in has: less than twice what the
 * largest has. 0 if there is none. */
size_t rp_account_most_chunks(const rp_account *a);

/* What an item that has been counted in brought with it. */
typedef struct rp_entry {
    uint64_t bytes;    /* to the account */
    int64_t unsettled; /* to the budget */
    size_t episodes;   /* that the account did not have */
} rp_entry;

/* Counts an item in that may be counted out again because it does not fit. Meanwhile others may
 * be counted out to make room: chunks that they share with it stay. Counting it out by
 * rp_account_take_back() frees and deletes nothing but what these left behind. */
void rp_account_enter(rp_account *a, const rp_trajectory *trajectory, rp_entry *entry);
void rp_account_take_back(rp_account *a, const rp_trajectory *trajectory,
                          const rp_entry *entry);

/* The functions below take `spare`: slots of the table that have been used and have no item. */

/* Bytes by which the budget would be over its limit if the account were settled now. 0 if it
 * would not be, or has no limit. */
uint64_t rp_account_shortage(const rp_account *a, size_t spare);

/* Bytes of which the budget would be relieved if the item `leaving` were counted out. Another
 * item that is counted in already keeps the chunks that both refer to. */
uint64_t rp_account_gain(const rp_account *a, const rp_trajectory *leaving, size_t spare);

/* At least as many bytes as the budget would be relieved of if `count` items, which take
 * `bytes` in their account, were counted out. */
uint64_t rp_account_most_gain(uint64_t bytes, size_t count, size_t spare);

/* Settles the account if the budget stays within its limit (A3); else returns false. The caller
 * has held budget.entry since it counted the item in. */
bool rp_account_settle_within(rp_account *a, size_t spare);

/* Tells the budget, whether over its limit or not, and the disk tier what has changed: once a
 * batch, not once an item, and before references to removed items are dropped. */
void rp_account_settle(rp_account *a, size_t spare);

/* True if a table that is empty should give back the memory of its indexes: it is charged for
 * some, and somebody waits for bytes, or such memory is over 1/16 of what the store may have.
 */
bool rp_account_has_much_idle(const rp_account *a);

/* Gives back memory of its maps that is not in use, and with it what rp_account_reserve() made
 * room for: for a table whose lock is about to be left. */
void rp_account_trim(rp_account *a);

/* True if there is room in memory for a trajectory; always if the store has no disk tier. */
bool rp_account_has_room(const rp_account *a, const rp_trajectory *trajectory);

/* For a store with a disk tier. Bytes in memory that never go to disk, in all tables: items,
 * heads of chunks, and small chunks. */
uint64_t rp_account_small(const rp_account *a);
/* Bytes that an item would add to the memory. */
uint64_t rp_account_new_bytes(const rp_trajectory *trajectory);
/* Bytes that never go to disk and that would leave memory with an item of ours. */
uint64_t rp_account_small_gain(const rp_account *a, const rp_trajectory *leaving);
/* Bytes that are missing for a trajectory even if all that can go to disk has gone; always 0 if
 * the store has no disk tier. */
uint64_t rp_account_small_shortage(const rp_account *a, const rp_trajectory *trajectory);

/* Nothing is in the account any more. The caller has removed each trajectory. Zeroes the
 * episode counters. */
void rp_account_reset(rp_account *a);

#endif
