/* SPDX-License-Identifier: Apache-2.0 */
/* What a table's items refer to: chunk bytes and episodes, each counted once.
 *
 * A chunk enters the account with the first item that refers to it and leaves with the last;
 * only then are bytes and episodes counted. How often a table refers to a chunk stands in the
 * chunk itself (chunk/holders.h). Tables of one store share a budget, which counts a chunk once
 * for all of them.
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
    rp_mutex mu;    /* held while chunks enter or leave, if there is a limit: so it is exact */
    uint64_t limit; /* 0: none. Fixed at birth, like the policy */
    rp_budget_policy policy;
    rp_spill *spill;              /* the disk tier, or NULL. Set while nobody uses the store */
    atomic_uint_fast64_t used;    /* bytes of the chunks that any table holds */
    atomic_uint_fast32_t waiting; /* tables in which somebody waits for bytes: those in line */
    rp_table *first_waiter, *last_waiter RP_GUARDED_BY(mu); /* leave.c */
} rp_budget;

enum { RP_MAX_MOVED = 64, RP_MAX_MOVED_BYTES = 1 << 20 };

typedef struct rp_account {
    rp_budget *budget;
    uint16_t id; /* among the holders of a chunk: >= 1, unique within the budget */
    uint64_t bytes;
    int64_t deleted_episodes;
    rp_count_map episodes; /* chunks held, by episode */
    rp_count_map spilled;  /* references to chunks that have no room for our count, by chunk */
    int64_t unsettled;     /* change of the budget's bytes that it does not know yet */
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

/* Bytes that a trajectory would add to this account. */
uint64_t rp_account_cost(const rp_account *a, const rp_trajectory *trajectory);

/* Bytes that would leave the budget if the item `leaving`, which is in the account, made room
 * for `entering`. */
uint64_t rp_account_gain(const rp_account *a, const rp_trajectory *leaving,
                         const rp_trajectory *entering);

/* Bytes that the budget lacks for a trajectory; 0 if it fits, or there is no limit. */
uint64_t rp_budget_shortage(rp_budget *b, const rp_trajectory *trajectory);

/* Counts the chunks of an item that enters, always (if the budget has no limit), or if they
 * fit. False, with nothing counted, if the budget has no room for them. */
bool rp_account_add(rp_account *a, const rp_trajectory *trajectory);

/* Counts them without asking the budget: the item was in before. */
void rp_account_add_always(rp_account *a, const rp_trajectory *trajectory);

/* Counts the chunks of an item that leaves. */
void rp_account_remove(rp_account *a, const rp_trajectory *trajectory);

/* True if there is room in memory for a trajectory; always if the store has no disk tier. */
bool rp_account_has_room(const rp_account *a, const rp_trajectory *trajectory);

/* Tells a budget without a limit, and the disk tier, what has changed: once a batch, not once
 * an item. Before the chunks of what left are let go. */
void rp_account_settle(rp_account *a);

/* Nothing is in the account any more. The caller has removed each trajectory. Zeroes the
 * episode counters. */
void rp_account_reset(rp_account *a);

#endif
