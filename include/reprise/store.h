/* SPDX-License-Identifier: Apache-2.0 */
/* The store: a set of tables that share one byte budget, one seed, one clock and one allocator.
 *
 * A table can be dropped while other threads use it. If a program drops tables, each thread
 * must hold a reference to a table while it uses the table (rp_store_find_table(),
 * rp_table_ref()). If a program drops no tables, borrowed pointers to tables are valid as long
 * as the store. */
#ifndef REPRISE_STORE_H
#define REPRISE_STORE_H

#include "reprise/table.h"

RP_BEGIN_DECLS

typedef struct rp_store rp_store;

/* What happens to an insert that would make all tables together exceed `max_bytes`. */
typedef enum rp_budget_policy {
    RP_BUDGET_EVICT = 0,  /* its table first evicts items, chosen by the table's remover. If
                             evicting all of them would not make enough room, the insert fails
                             with RP_NO_RESOURCE */
    RP_BUDGET_BLOCK = 1,  /* the insert waits until there is room */
    RP_BUDGET_REJECT = 2, /* the insert fails with RP_NO_RESOURCE */
} rp_budget_policy;

/* Zero-initialise it; every field has a default. */
typedef struct rp_store_options {
    const rp_allocator *alloc; /* NULL: rp_allocator_default(). The struct is copied */
    /* A limit on the memory of all tables; 0: no limit. The limit counts rp_trajectory_cost()
     * of the items, with each chunk counted once. A table also keeps index memory of removed
     * items for reuse; the limit counts the part of this memory over 128 KiB. Rollouts
     * (rollouts.h) can take a third of max_bytes in addition. If max_bytes is 0, rollouts can
     * take 8 GiB, or half of the machine's memory if that is less. */
    uint64_t max_bytes;
    rp_budget_policy policy;
    /* The seed of all random choices. Two stores with the same seed and the same sequence of
     * calls give bit-identical results. 0: from the system. */
    uint64_t seed;
    /* Returns the wall clock time in nanoseconds, for rp_sample.inserted_at_ns. NULL: the clock
     * of the system. Any thread can make this call, sometimes under a table's lock: the
     * function must not call the store or its tables. */
    int64_t (*wall_ns)(void *ctx);
    void *wall_ctx;
} rp_store_options;

/* Makes an empty store. `options` may be NULL. Returns owned.
 * Errors: RP_INVALID, RP_NO_RESOURCE. */
RP_API RP_NODISCARD rp_status rp_store_new(const rp_store_options *options, rp_store **out,
                                           rp_error *err);

/* Closes the store if it is open, drops its tables and frees it. The caller must ensure that no
 * call is in progress on the store or on a borrowed table, and that no writer exists for it.
 * References to tables stay valid, and so do samples. When the last reference or sample is
 * dropped, the remaining memory is freed with the store's allocator. */
RP_API void rp_store_free(rp_store *store); /* NULL is fine */

/* Closes every table: all waits end with RP_CANCELLED, and later calls return RP_CANCELLED. */
RP_API void rp_store_close(rp_store *store);

/* Makes a table. `*out` (`out` may be NULL) is borrowed, valid until the table is dropped or
 * the store freed. The table takes over the extensions. If the call fails, no table is made,
 * `*out` is not set, and the caller still owns the extensions. There is one exception: if the
 * journal of a durable store cannot write, the call returns RP_UNAVAILABLE, but the table
 * exists and `*out` is set.
 * Errors: RP_INVALID (the text names the option, the value and the bound; or the name is not
 * UTF-8), RP_EXISTS (the name is taken), RP_PRECONDITION (the store is closed), RP_NO_RESOURCE,
 * RP_UNAVAILABLE. */
RP_API RP_NODISCARD rp_status rp_store_add_table(rp_store *store,
                                                 const rp_table_options *options,
                                                 rp_table **out, rp_error *err);

/* Returns the table with this name, or NULL if there is none. `name.data` may be NULL. The
 * caller owns a reference to the table and must drop it with rp_table_unref(). */
RP_API rp_table *rp_store_find_table(rp_store *store, rp_string name);

/* Writes up to `capacity` tables to `out`, in the order in which they were made, and returns
 * the number of all tables. The caller owns a reference to each table in `out` and must drop it
 * with rp_table_unref(). */
RP_API size_t rp_store_find_tables(rp_store *store, rp_table **out, size_t capacity);

/* Drops a table. All its waits end with RP_CANCELLED, and later calls on it return
 * RP_CANCELLED. Its items are removed, so their bytes no longer count against `max_bytes`.
 * Extensions get no events for these items. The name is free for a new table even before this
 * call returns. The memory of the table itself is freed with the last reference to it.
 * Errors: RP_NOT_FOUND (no such table), RP_PRECONDITION (the store is closed), RP_UNAVAILABLE
 * (the journal of a durable store cannot write; the table is dropped). */
RP_API RP_NODISCARD rp_status rp_store_drop_table(rp_store *store, rp_string name,
                                                  rp_error *err);

/* Trims every table that has a soft limit and more than max_size items, as rp_table_trim()
 * does. Unlike rp_table_trim(), this call does not wait until the journal of a durable store
 * (durable.h) is on disk, so a slow disk does not block the calling thread. */
RP_API void rp_store_trim(rp_store *store);

typedef struct rp_store_info {
    uint64_t max_bytes;
    rp_budget_policy policy;
    uint64_t bytes; /* bytes in use, as max_bytes counts them */
    /* Memory of the process that is lost to fragmentation. This memory counts against
     * max_bytes, or against max_memory if the store has a disk tier
     * (rp_durable_options.max_memory). 0 unless a server measures it
     * (rp_server_options.owns_process). */
    uint64_t lost_bytes;
    size_t table_count;
    uint64_t seed; /* the seed in use, to repeat a run in another store */
} rp_store_info;

RP_API void rp_store_get_info(rp_store *store, rp_store_info *out);

RP_END_DECLS

#endif
