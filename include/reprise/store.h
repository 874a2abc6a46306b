/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a set of tables that share one byte budget, one seed, one clock and one allocator.
 *
 * Tables can be dropped while others use them. Who shares a store with somebody that drops
 * tables works with references (rp_store_find_table(), rp_table_ref()); who does not may keep
 * borrowed pointers as long as the store lives. */
#ifndef REPRISE_STORE_H
#define REPRISE_STORE_H

#include "reprise/table.h"

RP_BEGIN_DECLS

typedef struct rp_store rp_store;

/* What happens to an insert that would take all tables together over the budget. */
typedef enum rp_budget_policy {
    RP_BUDGET_EVICT = 0,  /* its table's remover makes room */
    RP_BUDGET_BLOCK = 1,  /* it waits until there is room */
    RP_BUDGET_REJECT = 2, /* it fails with RP_NO_RESOURCE */
} rp_budget_policy;

/* Zero-initialise it; everything has a default. */
typedef struct rp_store_options {
    const rp_allocator *alloc; /* NULL: the C library's. The struct is copied */
    /* Memory of all tables: what rp_trajectory_cost() counts, each chunk once, and index memory
     * that tables keep for items they no longer have, as far as a table has more than 128 KiB
     * of that. 0: no limit */
    uint64_t max_bytes;
    rp_budget_policy policy;
    uint64_t seed; /* of everything random in it; two stores with one seed and one sequence of
                      calls behave alike to the bit. 0: from the system */
    /* The wall clock in nanoseconds, for rp_sample.inserted_at_ns. NULL: the system's. Called
     * on any thread, also under a table's lock: it must not call back. */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_store_options;

/* Makes an empty store. `options` may be NULL. Returns owned.
 * RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_store_new(const rp_store_options *options, rp_store **out,
                                           rp_error *err);

/* Closes the store if it is open, drops its tables and frees it. No call may be in progress on
 * it or on a table that is borrowed from it, nor any writer be left. References to tables, and
 * samples that are still held, stay valid; their memory goes with the last of them, back to the
 * store's allocator. */
RP_API void rp_store_free(rp_store *store); /* NULL is fine */

/* Closes every table: ends all waits with RP_CANCELLED and refuses everything from now on. */
RP_API void rp_store_close(rp_store *store);

/* Makes a table. `*out` (may be NULL) is borrowed, valid until the table is dropped or the
 * store freed. On success the table owns the extensions; on failure they are still the
 * caller's.
 * RP_INVALID (names the option, the value and the bound), RP_EXISTS, RP_PRECONDITION (store
 * closed),
 * RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_store_add_table(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, rp_error *err);

/* The table of that name, or NULL. Returns owned: drop the reference with rp_table_unref(). */
RP_API rp_table *rp_store_find_table(rp_store *store, rp_string name);

/* Writes up to `capacity` tables, in the order they were made, and returns how many there are.
 * Each that was written is a reference: drop it with rp_table_unref(). */
RP_API size_t rp_store_find_tables(rp_store *store, rp_table **out, size_t capacity);

/* Drops a table: ends all its waits with RP_CANCELLED and removes its items, whose bytes leave
 * the budget. Once this has returned every call on it answers RP_CANCELLED, and its name can be
 * used for a new table even before that. Its memory goes with the last reference. Extensions
 * are not told of the items.
 * RP_NOT_FOUND, RP_PRECONDITION (store closed). */
RP_API RP_NODISCARD rp_status rp_store_drop_table(rp_store *store, rp_string name,
                                                  rp_error *err);

/* rp_table_trim() of every table with a soft limit that is over it; but it does not wait until
 * that is safe (durable.h), so that one thread can look after a store whatever its disk does.
 */
RP_API void rp_store_trim(rp_store *store);

typedef struct rp_store_info {
    uint64_t max_bytes;
    rp_budget_policy policy;
    uint64_t bytes; /* in use, as max_bytes counts them */
    /* Memory of the process that holds nothing and that new items cannot use, because of what
     * lies between. It counts against max_bytes, or against the memory of a disk tier. Only a
     * server that measures it knows of any (rp_server_options.owns_process). */
    uint64_t lost_bytes;
    size_t table_count;
    uint64_t seed; /* the one in use: give it to another store to repeat a run */
} rp_store_info;

RP_API void rp_store_get_info(rp_store *store, rp_store_info *out);

RP_END_DECLS

#endif
